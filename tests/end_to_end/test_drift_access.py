"""A night in which somebody opens an entry point on the platform: the issue, its repair, and what `accept` asks."""

from __future__ import annotations

import json
import os
import pty
import re
import sys
from typing import Any

import pytest

from tests.cli.code_hosts import TOKEN, CodeHost
from tests.harness.platform import Sandbox
from tests.harness.project import Project, resource


def ref(address: str) -> dict[str, str]:
    return {"ref": address}


OFFICE = {"ip_policy_ids": [ref("IPPolicy/office")]}
LEDGER = [
    resource("ReservedDomain", "ledger", domain="ledger.example.com"),
    {
        **resource("IPPolicy", "office", description="Office"),
        "lifecycle": {"unmanaged_children": "delete"},
    },
    resource("IPPolicyRule", "office", ip_policy_id=ref("IPPolicy/office"), cidr="203.0.113.0/24", action="allow"),
    resource("TunnelGroupBackend", "web", labels={"app": "web"}),
    resource(
        "TLSEdge",
        "ledger",
        hostports=["ledger.example.com:443"],
        backend={"backend_id": ref("TunnelGroupBackend/web")},
        ip_restriction=OFFICE,
    ),
]
TLS_1_2 = {"terminate_at": "edge", "min_version": "1.2"}
ENTRY = "tls://ledger.example.com"


@pytest.fixture
def applied(on_sandbox: Project) -> Project:
    on_sandbox.declare(*LEDGER)
    assert on_sandbox("apply", "-y", "--quiet").code == 0
    return on_sandbox


@pytest.fixture(params=["github", "gitlab"])
def hosted(
    request: pytest.FixtureRequest, applied: Project, host: CodeHost, monkeypatch: pytest.MonkeyPatch
) -> Project:
    for name in ("CI_API_V4_URL", "GITHUB_REPOSITORY"):
        monkeypatch.delenv(name, raising=False)
    variables = {
        "github": {"GITHUB_API_URL": host.url, "GITHUB_REPOSITORY": "octo/infra", "GITHUB_TOKEN": TOKEN},
        "gitlab": {"CI_API_V4_URL": f"{host.url}/api/v4", "CI_PROJECT_ID": "42", "GITLAB_TOKEN": TOKEN},
    }
    applied.environ |= variables[request.param]
    return applied


def plant(sandbox: Sandbox, cidr: str = "0.0.0.0/0") -> None:
    """Somebody adds a rule in the platform's dashboard."""
    (policy,) = sandbox.get("/ip_policies")["ip_policies"]
    sandbox.post("/ip_policy_rules", {"ip_policy_id": policy["id"], "cidr": cidr, "action": "allow"})


def change_edge(sandbox: Sandbox, **fields: Any) -> None:
    (edge,) = sandbox.get("/edges/tls")["tls_edges"]
    sandbox.patch(f"/edges/tls/{edge['id']}", fields)


def test_a_night_in_which_a_rule_is_planted_and_the_morning_in_which_it_is_deleted(
    hosted: Project, host: CodeHost, sandbox: Sandbox
) -> None:
    assert hosted("drift", "--issue").code == 0
    assert host.issues == []
    plant(sandbox)
    found = hosted("drift", "--issue")
    assert (found.code, "Issue opened.\n" in found.err) == (2, True)
    (issue,) = host.issues
    title = f"Drift in prod: {ENTRY} is open to 0.0.0.0/0 (manifests: 203.0.113.0/24)"
    assert issue["title"] == title
    first = next(line for line in issue["body"].splitlines() if line.startswith("- "))
    assert first.startswith(
        f"- ⚠️ **Access was widened on the platform**: `{ENTRY}` from `203.0.113.0/24` → `0.0.0.0/0`"
    )
    assert "because of `IPPolicyRule/ipr_" in first
    assert first.endswith("`, which was added")
    assert "for example: " in issue["body"]
    change_edge(sandbox, description="also changed")
    assert "Issue updated.\n" in hosted("drift", "--issue").err
    assert (len(host.issues), issue["title"]) == (1, title)
    assert hosted("apply", "-y", "--quiet", "--allow", "delete:IPPolicyRule=1").code == 0
    repaired = hosted("drift", "--issue")
    assert (repaired.code, "Issue closed.\n" in repaired.err) == (0, True)
    assert (issue["state"], issue["title"], "widened" in issue["body"]) == ("closed", title, False)


def test_other_drift_does_not_wake_those_who_wait_for_access_only(applied: Project, sandbox: Sandbox) -> None:
    change_edge(sandbox, description="changed by hand")
    assert applied("drift").code == 2
    assert applied("drift", "--fail-on", "access").code == 0
    plant(sandbox)
    found = applied("drift", "--fail-on", "access")
    assert found.code == 2
    assert " ".join(found.out.split()).startswith(
        f"! Access was widened on the platform: {ENTRY} from 203.0.113.0/24 → 0.0.0.0/0, because of IPPolicyRule/"
    )
    assert applied("drift", "--fail-on", "access", "--pending").code == 64


def test_narrower_access_does_not_wake_anyone_but_a_lockout_does(applied: Project, sandbox: Sandbox) -> None:
    (rule,) = sandbox.get("/ip_policy_rules")["ip_policy_rules"]
    sandbox.post(
        "/ip_policy_rules",
        {"ip_policy_id": rule["ip_policy"]["id"], "cidr": "203.0.113.0/25", "action": "deny"},
    )
    narrowed = applied("drift", "--fail-on", "access")
    assert (narrowed.code, narrowed.out.startswith("~ Access was narrowed on the platform: ")) == (0, True)
    sandbox.delete(f"/ip_policy_rules/{rule['id']}")
    assert applied("drift", "--fail-on", "access").code == 2


def test_json_has_what_drift_opens_before_by_the_manifests_and_after_as_it_is(
    applied: Project, sandbox: Sandbox
) -> None:
    plant(sandbox)
    (entry,) = json.loads(applied("drift", "--format", "json").out)["access"]
    assert [entry[name] for name in ("entry_point", "verdict", "before", "after", "public")] == [
        *(ENTRY, "widens", "203.0.113.0/24", "0.0.0.0/0"),
        True,
    ]


def change_rule(sandbox: Sandbox, **fields: Any) -> None:
    (rule,) = sandbox.get("/ip_policy_rules")["ip_policy_rules"]
    sandbox.patch(f"/ip_policy_rules/{rule['id']}", fields)


def read_manifest(project: Project) -> str:
    return (project.root / "manifests/all.yaml").read_text()


def test_accept_writes_no_wider_access_without_approval_and_reports_the_openings(
    applied: Project, sandbox: Sandbox
) -> None:
    before = read_manifest(applied)
    change_rule(sandbox, cidr="0.0.0.0/0", description="for the vendor")
    refused = applied("accept", "--quiet")
    assert (refused.code, refused.out, read_manifest(applied)) == (4, "", before)
    assert refused.err.splitlines() == [
        "Access:",
        f"  ! {ENTRY} lets in requests that were refused",
        "      203.0.113.0/24 → 0.0.0.0/0",
        f"      for example: {ENTRY} from 192.0.2.1",
        "      caused by IPPolicyRule/office",
        "",
        "Approval required: pass --allow widens_access:*=1",
        "      widens access",
        "error: nothing was written: approval required: pass --allow widens_access:*=1",
    ]
    assert applied("accept", "--allow", "widens_access:IPPolicyRule=1").code == 4
    allowed = applied("accept", "--allow", "widens_access:*=1")
    assert (allowed.code, "Approved: --allow widens_access:*=1" in allowed.err) == (0, True)
    assert read_manifest(applied) == before.replace("203.0.113.0/24", "0.0.0.0/0").replace(
        '"action": "allow"', '"action": "allow", description: for the vendor'
    )
    assert applied("plan").code == 0


def test_accept_needs_no_approval_of_values_that_narrow_access(applied: Project, sandbox: Sandbox) -> None:
    change_rule(sandbox, cidr="203.0.113.0/25")
    found = applied("accept")
    assert (found.code, "refuses requests that passed" in found.err, "pproval" in found.err) == (0, True, False)


def test_accept_needs_approval_of_an_older_tls_version(applied: Project, sandbox: Sandbox) -> None:
    change_edge(sandbox, tls_termination={"terminate_at": "edge", "min_version": "1.0"})
    applied.declare(*LEDGER[:-1], {**LEDGER[-1], "spec": {**LEDGER[-1]["spec"], "tls_termination": TLS_1_2}})
    before = read_manifest(applied)
    refused = applied("accept", "--both")
    assert (refused.code, read_manifest(applied)) == (4, before)
    assert "  ! TLSEdge/ledger widens access" in refused.err.splitlines()
    assert applied("accept", "--both", "--allow", "widens_access:TLSEdge=1").code == 0


def test_accept_needs_approval_of_a_lockout_if_the_project_requires_it(applied: Project, sandbox: Sandbox) -> None:
    applied.declare(*LEDGER, resource("IPPolicy", "closed", description="Closed"))
    assert applied("apply", "-y", "--quiet").code == 0
    closed = next(one for one in sandbox.get("/ip_policies")["ip_policies"] if one["description"] == "Closed")
    change_edge(sandbox, ip_restriction={"ip_policy_ids": [closed["id"]]})
    applied.write("reconciler.yaml", "version: 1\nstack: prod\nguards: {require_approval: [locks_out]}\n")
    assert applied("accept").code == 4
    applied.write("reconciler.yaml", "version: 1\nstack: prod\n")
    found = applied("accept")
    assert (found.code, f"  ! {ENTRY} locks everyone out" in found.err.splitlines()) == (0, True)


def test_the_approval_of_an_edit_in_git_approves_that_accept_writes_the_same_edit(
    applied: Project, sandbox: Sandbox
) -> None:
    before = read_manifest(applied)
    wide = before.replace("203.0.113.0/24", "0.0.0.0/0")
    applied.write("reconciler.yaml", "version: 1\nstack: prod\nguards: {require_approval: [widens_access]}\n")
    applied.write("manifests/all.yaml", wide)
    entries = applied("plan", "--quiet", "--fail-on", "approvals").err
    applied.write("manifests/all.yaml", before)
    (digest,) = re.findall(r'digest: "?([0-9a-f]{32})', entries)
    for planted, code in (("0.0.0.0/1", 4), ("0.0.0.0/0", 0)):
        change_rule(sandbox, cidr=planted)
        entry = {"widens_access": ENTRY, "until": "2999-01-01", "digest": digest}
        applied.write("approvals.yaml", json.dumps({"approvals": [entry]}))
        assert (applied("accept").code, read_manifest(applied)) == (code, before if code else wide)


def test_accept_requests_confirmation_at_a_terminal_before_it_writes_wider_access(
    applied: Project, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = read_manifest(applied)
    change_rule(sandbox, cidr="0.0.0.0/0")
    terminal, stdin = pty.openpty()
    with os.fdopen(stdin) as typed:
        monkeypatch.setattr(sys, "stdin", typed)
        os.write(terminal, b"no\n")
        declined = applied("accept")
        assert (declined.code, read_manifest(applied)) == (1, before)
        assert declined.err.endswith(
            "Write what was opened into the manifests?\nOnly 'yes' will be accepted: Cancelled; nothing was written.\n"
        )
        os.write(terminal, b"yes\n")
        assert (applied("accept").code, read_manifest(applied)) == (0, before.replace("203.0.113.0/24", "0.0.0.0/0"))
    os.close(terminal)


# --- access tests

OUTSIDE = "- {from: 198.51.100.7, to: 'tls://ledger.example.com', expect: deny}\n"
STRANGE = "- {from: 198.51.100.7, to: 'https://strange.example.com', expect: deny}\n"


def open_strange(sandbox: Sandbox) -> None:
    """Somebody serves a host that no manifest mentions, which is no drift."""
    sandbox.post("/reserved_domains", {"domain": "strange.example.com"})
    answer = {"actions": [{"type": "custom-response", "config": {"status_code": 200}}]}
    policy = json.dumps({"on_http_request": [answer]})
    sandbox.post("/endpoints", {"url": "https://strange.example.com", "traffic_policy": policy})


def test_an_access_test_that_fails_on_the_account_as_it_is_counts_as_drift(
    hosted: Project, host: CodeHost, sandbox: Sandbox
) -> None:
    hosted.write("tests/access.yaml", OUTSIDE + STRANGE)
    assert (hosted("drift", "--issue").code, host.issues) == (0, [])
    open_strange(sandbox)
    found = hosted("drift", "--issue", "--fail-on", "access", "--format", "text", "--format", "junit=drift.xml")
    assert (found.code, found.out.splitlines()[-2]) == (2, "Drift: 1 access test fails.")
    text = " ".join(found.out.split())
    assert (
        "tests/access.yaml:2:3: warning: access test failed: GET https://strange.example.com from 198.51.100.7" in text
    )
    assert 'tests="2" failures="1"' in (hosted.root / "drift.xml").read_text()
    (issue,) = host.issues
    assert (issue["state"], "1 access test fails" in issue["body"]) == ("open", True)
    endpoint = next(one for one in sandbox.get("/endpoints")["endpoints"] if "strange" in one["url"])
    sandbox.delete(f"/endpoints/{endpoint['id']}")
    assert (hosted("drift", "--issue").code, issue["state"]) == (0, "closed")


def test_drift_reports_a_failed_access_test_beside_the_opening(applied: Project, sandbox: Sandbox) -> None:
    applied.write("tests/access.yaml", OUTSIDE)
    plant(sandbox)
    found = applied("drift")
    assert (found.code, "Drift: 1 resource added on the platform. 1 access test fails." in found.out) == (2, True)
    assert "who gets through: 203.0.113.0/24 → 0.0.0.0/0" in " ".join(found.out.split())
    assert applied("drift", "TLSEdge/ledger").code == 0  # of some resources, without the tests of the whole account


def test_an_access_test_that_waits_for_an_apply_or_concerns_known_drift_is_no_drift(
    applied: Project, sandbox: Sandbox
) -> None:
    applied.write("manifests/all.yaml", read_manifest(applied).replace("203.0.113.0/24", "198.51.100.0/24"))
    applied.write("tests/access.yaml", OUTSIDE.replace("deny", "allow"))
    pending = applied("drift", "--format", "json")
    (result,) = json.loads(pending.out)["access_tests"]
    assert (pending.code, result["status"]) == (0, "skipped")
    assert result["decides"].startswith("fails because of known drift, or of what is not applied yet: 203.0.113.0/24")
    assert applied("plan").code == 0
    plant(sandbox)
    applied.write("tests/access.yaml", OUTSIDE.replace("198.51.100.7", "192.0.2.7"))
    assert applied("drift").code == 2
    assert applied("drift", "--ignore", "IPPolicyRule/*").code == 0


def test_drift_is_reported_although_the_access_tests_are_invalid(applied: Project, sandbox: Sandbox) -> None:
    applied.write("tests/access.yaml", "- {form: 198.51.100.7, expect: deny}\n")
    assert applied("drift").code == 0
    plant(sandbox)
    found = applied("drift")
    assert (found.code, "Access was widened" in found.out, "unknown field" in found.out) == (2, True, True)
