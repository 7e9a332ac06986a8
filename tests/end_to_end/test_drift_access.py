"""A night in which somebody opens an entry point on the platform: the issue, its repair, and what `accept` asks."""

from __future__ import annotations

import json
from collections.abc import Iterator
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
ENTRY = "tls://ledger.example.com"


@pytest.fixture
def host() -> Iterator[CodeHost]:
    with CodeHost() as running:
        yield running


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
