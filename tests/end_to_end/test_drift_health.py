"""A night in which a certificate comes due: `drift --health` tells it apart from drift, in its output and exit code."""

from __future__ import annotations

import json

import pytest

from tests.cli.code_hosts import TOKEN, CodeHost
from tests.end_to_end.webhook import Hook
from tests.harness.platform import Sandbox
from tests.harness.project import Project, resource

SHOP = resource(
    "ReservedDomain",
    "shop",
    domain="shop.example.com",
    certificate_management_policy={"authority": "letsencrypt", "private_key_type": "ecdsa"},
)
OFFICE = resource("IPPolicy", "office", description="Office")
UNSET = {"host": "*.example.com", "error_code": "DNS_ERROR"}


@pytest.fixture
def due(on_sandbox: Project, sandbox: Sandbox) -> Project:
    """A domain whose certificate expires in five days: the DNS record that its renewal needs was deleted."""
    on_sandbox.declare(SHOP, OFFICE)
    sandbox.move_clock(days=-85)
    assert on_sandbox("apply", "-y", "--quiet").code == 0
    sandbox.get("/reserved_domains")
    sandbox.move_clock(days=-84)
    sandbox.get("/reserved_domains")
    sandbox.provision(UNSET)
    sandbox.move_clock()
    for _ in range(2):  # the platform tries to renew it
        sandbox.get("/reserved_domains")
    return on_sandbox


@pytest.fixture(params=["github", "gitlab"])
def hosted(request: pytest.FixtureRequest, due: Project, host: CodeHost, monkeypatch: pytest.MonkeyPatch) -> Project:
    for name in ("CI_API_V4_URL", "GITHUB_REPOSITORY"):
        monkeypatch.delenv(name, raising=False)
    variables = {
        "github": {"GITHUB_API_URL": host.url, "GITHUB_REPOSITORY": "octo/infra", "GITHUB_TOKEN": TOKEN},
        "gitlab": {"CI_API_V4_URL": f"{host.url}/api/v4", "CI_PROJECT_ID": "42", "GITLAB_TOKEN": TOKEN},
    }
    due.environ |= variables[request.param]
    return due


def change(sandbox: Sandbox, description: str) -> None:
    (policy,) = sandbox.get("/ip_policies")["ip_policies"]
    sandbox.patch(f"/ip_policies/{policy['id']}", {"description": description})


def test_a_degraded_object_is_exit_code_7_and_drift_is_2(due: Project, sandbox: Sandbox) -> None:
    assert due("drift").code == 0
    found = due("drift", "--health")
    assert found.code == 7
    assert "No drift. 2 resources match the manifests.\n" in found.out
    assert "\nHealth: 1 degraded.\n! degraded: ReservedDomain/shop: " in found.out
    assert due("drift", "--health", "IPPolicy/office").code == 0
    change(sandbox, "by hand")
    both = due("drift", "--health")
    assert (both.code, "Drift: 1 resource changed" in both.out, "1 degraded" in both.out) == (2, True, True)
    assert due("drift", "--health", "--fail-on", "access").code == 7


def test_markdown_and_json_have_drift_and_health_apart(due: Project, sandbox: Sandbox) -> None:
    written = due("drift", "--health", "--format", "markdown").out
    assert "**Health: 1 degraded.**\n\n- ❌ degraded: `ReservedDomain/shop: " in written
    document = json.loads(due("drift", "--health", "--format", "json").out)
    (row,) = document["health"]
    assert (row["address"], row["health"]["state"], document["changes"]) == ("ReservedDomain/shop", "degraded", [])
    assert json.loads(due("drift", "--format", "json").out)["health"] is None


def test_a_renewed_certificate_is_healthy(due: Project, sandbox: Sandbox) -> None:
    sandbox.provision()
    found = [due("drift", "--health") for _ in range(3)][-1]
    assert (found.code, "Health: 1 healthy." in found.out) == (0, True)


def test_without_health_no_further_list_is_read(on_sandbox: Project, sandbox: Sandbox) -> None:
    edge = resource("TLSEdge", "shop", backend={"backend_id": {"ref": "TunnelGroupBackend/web"}})
    on_sandbox.declare(edge, resource("TunnelGroupBackend", "web", labels={"app": "web"}))
    on_sandbox("apply", "-y", "--quiet")
    lists = []
    for words in (("drift",), ("drift", "--health")):
        sandbox.forget_log()
        on_sandbox(*words)
        lists.append({entry["path"].partition("?")[0] for entry in sandbox.log()})
    assert lists[1] - lists[0] == {"/tunnels"}


@pytest.mark.parametrize("memory", [("--record",), ()], ids=["store", "issue"])
def test_a_degraded_certificate_opens_the_issue_and_its_renewal_closes_it(
    hosted: Project, host: CodeHost, sandbox: Sandbox, hook: Hook, memory: tuple[str, ...]
) -> None:
    night = ("drift", "--health", "--issue", "--notify", f"slack:{hook.url}", *memory)
    found = hosted(*night)
    assert (found.code, "Issue opened.\n" in found.err, len(hook.posted)) == (7, True, 1)
    (issue,) = host.issues
    assert issue["title"] == "Health in prod: ReservedDomain/shop is degraded"
    assert "- ❌ degraded: `ReservedDomain/shop: " in issue["body"]
    assert b"*Health in prod: ReservedDomain/shop is degraded; " in hook.posted[0][2]
    hosted(*night)
    assert (len(host.issues), issue["state"], len(hook.posted)) == (1, "open", 1)  # nothing new

    sandbox.fault("GET /reserved_domains", then="status", times=1, status=418)
    unread = hosted(*night)
    assert ("note: issue not changed, because" in unread.err, issue["state"], len(hook.posted)) == (True, "open", 1)

    sandbox.provision()
    renewed = [hosted(*night) for _ in range(3)][-1]
    assert (renewed.code, issue["state"], len(hook.posted)) == (0, "closed", 2)
    assert b"1 healthy" in hook.posted[1][2]
    assert "Health: 1 healthy." in issue["body"]
