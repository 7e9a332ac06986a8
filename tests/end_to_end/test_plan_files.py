"""A plan that is written to a file, reviewed and applied."""

from __future__ import annotations

import json
import re

from tests.harness.platform import Sandbox
from tests.harness.project import Project, policies, resource
from tests.kinds import pems


def test_a_plan_file_is_applied_call_by_call(on_sandbox: Project, sandbox: Sandbox) -> None:
    on_sandbox.declare(
        *policies("office"),
        resource("IPPolicyRule", "lan", ip_policy_id={"ref": "IPPolicy/office"}, cidr="192.0.2.0/24", action="allow"),
    )
    assert on_sandbox("plan", "--out", "plan.json").code == 0
    sandbox.forget_log()
    result = on_sandbox("apply", "plan.json", "-y", "--quiet")
    assert (result.code, result.out, result.err) == (0, "Applied: 2 created.\n", "")
    planned = json.loads((on_sandbox.root / "plan.json").read_text())["calls"]
    assert sandbox.calls() == [f"{call['method']} {call['path']}" for call in planned]


def test_a_plan_file_is_not_applied_twice(on_sandbox: Project, sandbox: Sandbox) -> None:
    on_sandbox.declare(*policies("office"))
    on_sandbox("plan", "--out", "plan.json")
    on_sandbox("apply", "plan.json", "-y")
    sandbox.forget_log()
    result = on_sandbox("apply", "plan.json", "-y", "--quiet")
    assert (result.code, result.out) == (3, "")
    assert re.fullmatch(
        r"error: plan\.json was applied already, on \d{4}-\d\d-\d\d at \d\d:\d\d UTC; plan again\n", result.err
    )
    assert sandbox.log() == []


def test_each_field_that_changed_since_the_plan_is_reported_with_both_values(
    on_sandbox: Project, sandbox: Sandbox
) -> None:
    on_sandbox.declare(resource("HTTPResponseBackend", "sorry", status_code=503, body="sorry"))
    on_sandbox("apply", "-y")
    on_sandbox.declare(resource("HTTPResponseBackend", "sorry", status_code=503, body="very sorry"))
    on_sandbox("plan", "--out", "plan.json")
    (backend,) = sandbox.get("/backends/http_response")["backends"]
    sandbox.patch(f"/backends/http_response/{backend['id']}", {"status_code": 500, "headers": {"x-a": "1"}})
    result = on_sandbox("apply", "plan.json", "-y", "--quiet")
    assert (result.code, result.out) == (3, "")
    assert result.err == (
        'HTTPResponseBackend/sorry.headers: was {}, is now {x-a: "1"}\n'
        "HTTPResponseBackend/sorry.status_code: was 503, is now 500\n"
        "error: the platform changed after the plan was created; plan again\n"
    )


def test_an_edited_plan_file_is_refused(on_sandbox: Project, sandbox: Sandbox) -> None:
    on_sandbox.declare(*policies("office"))
    on_sandbox("plan", "--out", "plan.json")
    file = on_sandbox.root / "plan.json"
    file.write_text(file.read_text().replace("/ip_policies", "/bot_users"))
    sandbox.forget_log()
    result = on_sandbox("apply", "plan.json", "-y")
    assert (result.code, result.out) == (1, "")
    assert "it was changed after it was written; plan again" in result.err
    assert sandbox.calls() == []


def test_a_secret_is_found_in_a_plan_file_that_another_program_wrote(on_sandbox: Project, sandbox: Sandbox) -> None:
    on_sandbox.write("leaf.key", pems.private_key("leaf") + "\n")
    spec = {"certificate_pem": pems.certificate("leaf"), "private_key_pem": {"from_file": "leaf.key"}}
    on_sandbox.declare(resource("TLSCertificate", "leaf", **spec))
    on_sandbox("plan", "--out", "plan.json")
    file = on_sandbox.root / "plan.json"
    file.write_text(file.read_text().replace('"$secret"', '"\\u0024secret"'))  # the same content
    assert on_sandbox("apply", "plan.json", "-y").code == 0
    assert len(sandbox.get("/tls_certificates")["tls_certificates"]) == 1
    assert on_sandbox("plan", "--detailed-exitcode").code == 0


def test_an_owner_record_from_a_plan_file_has_digests_of_canonical_secrets(on_sandbox: Project) -> None:
    on_sandbox.write("leaf.key", pems.private_key("leaf") + "\n")
    spec = {"certificate_pem": pems.certificate("leaf"), "private_key_pem": {"from_file": "leaf.key"}}
    on_sandbox.declare(resource("TLSCertificate", "leaf", **spec))
    on_sandbox("plan", "--out", "plan.json")
    assert on_sandbox("apply", "plan.json", "-y").code == 0
    on_sandbox.declare(resource("TLSCertificate", "leaf", **spec, description="of the shop"))
    on_sandbox("plan", "--out", "plan.json")
    assert on_sandbox("apply", "plan.json", "-y").code == 0
    assert on_sandbox("plan", "--detailed-exitcode").code == 0
