"""What a plan file may contain: each call is sent once, and tokens are delivered only as the manifests declare."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.model.manifest import Delivery
from reconciler.model.plan import Call, Plan, Verb
from reconciler.model.value import Secret
from reconciler.rendering.wire import plan_json
from tests.harness.builders import at
from tests.harness.platform import Sandbox
from tests.harness.project import Project, policies, resource

CREDENTIAL = {
    "kind": "TunnelCredential",
    "name": "agent",
    "spec": {"acl": ["bind:*.example.com"]},
    "deliver": {"token": {"to_file": "secrets/agent.token"}},
}


def refuse_next(sandbox: Sandbox, on: str) -> None:
    """Makes the next such request fail with a permanent error."""
    sandbox.fault(on, then="status", status=422, body={"msg": "not today"})


def test_after_a_failure_only_the_calls_that_did_not_succeed_are_sent(on_sandbox: Project, sandbox: Sandbox) -> None:
    domain = resource("ReservedDomain", "web", domain="web.example.com")
    edge = resource("TLSEdge", "web", hostports=["web.example.com:443"])
    on_sandbox.declare(*policies("a"), domain, edge)
    on_sandbox("plan", "--out", "plan.json")
    refuse_next(sandbox, "POST /edges/tls")
    assert on_sandbox("apply", "plan.json", "-y").code == 5
    sandbox.forget_log()
    result = on_sandbox("apply", "plan.json", "-y", "--quiet")
    assert (result.code, result.out, result.err) == (0, "Applied: 1 created.\n", "")
    assert sandbox.calls() == ["POST /edges/tls"]
    assert on_sandbox("apply", "plan.json", "-y").code == 3
    assert on_sandbox("plan", "--detailed-exitcode").code == 0


def test_a_credential_that_git_removed_is_not_issued_again_by_an_old_plan(
    on_sandbox: Project, sandbox: Sandbox
) -> None:
    on_sandbox.declare(CREDENTIAL, *policies("a"))
    on_sandbox("plan", "--out", "plan.json")
    refuse_next(sandbox, "POST /ip_policies")
    assert on_sandbox("apply", "plan.json", "-y").code == 5
    on_sandbox.declare()
    assert on_sandbox("apply", "-y", "--allow", "empty:*=1", "--allow", "delete:TunnelCredential=1").code == 0
    assert sandbox.get("/credentials")["credentials"] == []
    sandbox.forget_log()
    assert on_sandbox("apply", "plan.json", "-y", "--partial").code in (0, 5)
    assert sandbox.get("/credentials")["credentials"] == []
    assert "POST /credentials" not in sandbox.calls()


def test_a_partly_created_resource_is_completed_without_another_create(on_sandbox: Project, sandbox: Sandbox) -> None:
    """The call that records the delivery of the token in the owner record failed."""
    on_sandbox.declare(CREDENTIAL)
    on_sandbox("plan", "--out", "plan.json")
    refuse_next(sandbox, "PATCH /credentials/*")
    assert on_sandbox("apply", "plan.json", "-y").code == 5
    token = (on_sandbox.root / "secrets/agent.token").read_text()
    sandbox.forget_log()
    result = on_sandbox("apply", "plan.json", "-y", "--quiet")
    assert (result.code, result.err) == (0, "")
    assert [call.split()[0] for call in sandbox.calls()] == ["PATCH"]
    assert (on_sandbox.root / "secrets/agent.token").read_text() == token
    assert on_sandbox("plan", "--detailed-exitcode").code == 0


def test_a_deleted_object_that_a_remaining_call_needs_is_reported(on_sandbox: Project, sandbox: Sandbox) -> None:
    on_sandbox.declare(
        *policies("a"),
        resource("IPPolicyRule", "lan", ip_policy_id={"ref": "IPPolicy/a"}, cidr="192.0.2.0/24", action="allow"),
    )
    on_sandbox("plan", "--out", "plan.json")
    refuse_next(sandbox, "POST /ip_policy_rules")
    assert on_sandbox("apply", "plan.json", "-y").code == 5
    (policy,) = sandbox.get("/ip_policies")["ip_policies"]
    sandbox.delete(f"/ip_policies/{policy['id']}")
    sandbox.forget_log()
    result = on_sandbox("apply", "plan.json", "-y", "--quiet")
    assert (result.code, sandbox.calls()) == (3, [])
    assert "IPPolicyRule/lan: IPPolicy/a, which this plan created, does not exist any more\n" in result.err


def test_a_later_plan_of_the_same_content_is_another_plan(on_sandbox: Project, sandbox: Sandbox) -> None:
    on_sandbox.declare(*policies("a"))
    for _ in range(2):
        on_sandbox("plan", "--out", "plan.json")
        assert on_sandbox("apply", "plan.json", "-y").code == 0
        (policy,) = sandbox.get("/ip_policies")["ip_policies"]
        sandbox.delete(f"/ip_policies/{policy['id']}")


def test_a_store_in_memory_is_reported_as_without_earlier_runs(on_sandbox: Project, sandbox: Sandbox) -> None:
    on_sandbox.environ["RECONCILER_STORE"] = "memory:"
    on_sandbox.declare(*policies("a"))
    on_sandbox("plan", "--out", "plan.json")
    result = on_sandbox("apply", "plan.json", "-y")
    assert result.code == 0
    assert "so only the account shows whether plan.json was applied before\n" in result.err
    again = on_sandbox("apply", "plan.json", "-y").number_ids()
    assert (again.code, "IPPolicy/a: ipp_1 exists now\n" in again.err) == (3, True)


# --- age and signature ------------------------------------------------------------------------------------------------


def test_a_plan_file_may_be_of_any_age_without_max_age(on_sandbox: Project, sandbox: Sandbox) -> None:
    on_sandbox.declare(*policies("a"))
    on_sandbox("plan", "--out", "plan.json")
    edit(on_sandbox, lambda plan: replace(plan, created=plan.created - 4_000))
    result = on_sandbox("apply", "plan.json", "-y", "--quiet", "--max-age", "1h")
    assert result.code == 3
    assert "seconds ago, and --max-age allows 3600; plan again, or increase --max-age\n" in result.err
    assert on_sandbox("apply", "plan.json", "-y", "--max-age", "2h").code == 0
    assert on_sandbox("apply", "-y", "--max-age", "2h").code == 64


def test_an_unsigned_plan_file_is_reported(on_sandbox: Project) -> None:
    on_sandbox.declare(*policies("a"))
    on_sandbox("plan", "--out", "plan.json")
    for words in (("show", "plan.json"), ("apply", "plan.json", "-y")):
        assert "note: plan.json is not signed, so it may differ" in on_sandbox(*words).err
    on_sandbox.environ["RECONCILER_PLAN_KEY"] = "k" * 16
    on_sandbox.declare(*policies("a", "b"))
    on_sandbox("plan", "--out", "plan.json")
    for words in (("show", "plan.json"), ("apply", "plan.json", "-y")):
        assert "not signed" not in on_sandbox(*words).err


# --- files that no plan wrote -----------------------------------------------------------------------------------------


def edit(project: Project, change: Callable[[Plan], Plan]) -> None:
    """Changes the plan file and its digest, as every user who can write the file can."""
    file = project.root / "plan.json"
    plan = plan_json.read_plan(file.read_text(), lambda source, _: Secret("", source))
    file.write_text(plan_json.write_plan(change(plan)))


def every_call(**changes: Any) -> Callable[[Plan], Plan]:
    return lambda plan: replace(plan, calls=tuple(replace(call, **changes) for call in plan.calls))


def one_more(call: Call) -> Callable[[Plan], Plan]:
    return lambda plan: replace(plan, calls=(*plan.calls, call))


def with_body(**fields: Any) -> Callable[[Plan], Plan]:
    return lambda plan: replace(
        plan,
        calls=tuple(
            replace(call, body={**(call.body or {}), **fields}) if call.body is not None else call
            for call in plan.calls
        ),
    )


COMMAND = Delivery("to_command", "sh", None, {"run": ["sh", "-c", "touch stolen"], "check": []})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (every_call(deliver={"token": COMMAND}), "delivers its token to another target than the manifests declare"),
        (every_call(path="/api_keys"), "/api_keys is not a path of TunnelCredential for this"),
        (every_call(path="/credentials/../api_keys"), "is not a path of TunnelCredential for this"),
        (
            one_more(Call("delete all", at("IPPolicy/a"), Verb.DELETE, "/ip_policies/ipp_1", "ipp_1")),
            "no listed change of IPPolicy/a includes this call",
        ),
        (every_call(owner=None), "creates an object without an owner record"),
        (with_body(acl="all"), "acl: expected a list, found text"),
        (with_body(owner_of_it="me"), "TunnelCredential has no field owner_of_it"),
    ],
)
def test_a_plan_file_with_calls_that_manifests_cannot_cause_is_refused(
    on_sandbox: Project, sandbox: Sandbox, change: Callable[[Plan], Plan], message: str
) -> None:
    on_sandbox.declare(CREDENTIAL)
    on_sandbox("plan", "--out", "plan.json")
    edit(on_sandbox, change)
    sandbox.forget_log()
    result = on_sandbox("apply", "plan.json", "-y", "--quiet", "--partial")
    assert (result.code, result.out) == (1, "")
    assert message in result.err
    assert sandbox.calls() == []
    assert not (on_sandbox.root / "stolen").exists()


def test_a_plan_file_is_refused_if_the_manifests_deliver_the_token_elsewhere(
    on_sandbox: Project, sandbox: Sandbox
) -> None:
    on_sandbox.declare(CREDENTIAL)
    on_sandbox("plan", "--out", "plan.json")
    on_sandbox.declare({**CREDENTIAL, "deliver": {"token": {"to_file": "secrets/other.token"}}})
    assert on_sandbox("apply", "plan.json", "-y", "--quiet").code == 1
    on_sandbox.declare()
    result = on_sandbox("apply", "plan.json", "-y", "--quiet")
    assert (result.code, "issues a token that the manifests do not declare" in result.err) == (1, True)
    assert sandbox.get("/credentials")["credentials"] == []


def test_a_protected_object_is_not_deleted_by_a_file_that_leaves_out_the_approval(
    on_sandbox: Project, sandbox: Sandbox
) -> None:
    domain = resource("ReservedDomain", "web", domain="web.example.com")
    on_sandbox.declare({**domain, "lifecycle": {"protect": True}}, *policies("a"))
    on_sandbox("apply", "-y")
    on_sandbox.declare(*policies("a"))
    on_sandbox("plan", "--out", "plan.json")
    edit(on_sandbox, lambda plan: replace(plan, approvals=()))
    result = on_sandbox("apply", "plan.json", "-y", "--quiet")
    assert (result.code, "--allow delete-protected:ReservedDomain=1" in result.err) == (1, True)
    assert len(sandbox.get("/reserved_domains")["reserved_domains"]) == 1


def test_a_plan_with_a_warning_is_applied_from_its_file(on_sandbox: Project) -> None:
    policy = {"on_http_request": [{"actions": [{"type": "custom-response", "config": {"content": "All well."}}]}]}
    domain = resource("ReservedDomain", "web", domain="web.example.com")
    url = "https://web.example.com"
    on_sandbox.declare(domain, resource("CloudEndpoint", "web", url=url, traffic_policy=policy))
    assert "1 warning in the plan: " in on_sandbox("plan", "--out", "plan.json").err
    assert on_sandbox("apply", "plan.json", "-y").code == 0
