"""`ensure: forgotten` and `ensure: absent` on resources that refer to each other: no other edit is needed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness.platform import Sandbox
from tests.harness.project import Project, resource

OFFICE, PARTNERS = resource("IPPolicy", "office"), resource("IPPolicy", "partners")
RULE = resource("IPPolicyRule", "desk", ip_policy_id={"ref": "IPPolicy/office"}, cidr="192.0.2.0/24", action="allow")
EDGE = resource(
    "TLSEdge",
    "pay",
    ip_restriction={"ip_policy_ids": [{"ref": "IPPolicy/office"}, {"ref": "IPPolicy/partners"}]},
)
FILE = (OFFICE, PARTNERS, RULE, EDGE)


def ensure(state: str, *declared: dict[str, Any]) -> list[dict[str, Any]]:
    return [{**item, "ensure": state} for item in declared]


def read_restriction(sandbox: Sandbox) -> list[str]:
    (edge,) = sandbox.get("/edges/tls")["tls_edges"]
    return sorted(policy["id"] for policy in edge["ip_restriction"]["ip_policies"])


@pytest.fixture
def applied(on_sandbox: Project) -> Project:
    on_sandbox.declare(*FILE)
    assert on_sandbox("apply", "-y", "-q").code == 0
    return on_sandbox


@pytest.mark.parametrize("state", ["forgotten", "absent"])
def test_a_whole_file_of_resources_that_refer_to_each_other(applied: Project, sandbox: Sandbox, state: str) -> None:
    applied.declare(*ensure(state, *FILE))
    assert applied("validate").code == 0
    assert applied("apply", "-y", "-q", "--allow", "delete:*=4", "--allow", "update:*=4").code == 0
    left = 0 if state == "absent" else 2
    assert len(sandbox.get("/ip_policies")["ip_policies"]) == left
    assert applied("plan", "--detailed-exitcode").code == 0


def test_references_to_a_forgotten_resource_remain_unchanged(applied: Project, sandbox: Sandbox) -> None:
    before = read_restriction(sandbox)
    for _ in range(3):
        applied.declare(*ensure("forgotten", OFFICE, RULE), PARTNERS, EDGE)
        assert applied("validate").code == 0
        assert applied("apply", "-y", "-q").code == 0
        sandbox.forget_log()
        again = applied("plan", "--detailed-exitcode")
        assert (again.code, again.err) == (0, "")
    assert read_restriction(sandbox) == before
    assert applied("drift").code == 0
    applied.declare(*ensure("forgotten", OFFICE), PARTNERS, {**EDGE, "spec": {**EDGE["spec"], "description": "new"}})
    result = applied("apply", "-y", "-q")
    assert result.err == ""
    assert result.out == "Applied: 1 updated.\n"
    assert read_restriction(sandbox) == before


def test_a_reference_changed_on_the_platform_is_not_one_to_a_forgotten_resource(
    applied: Project, sandbox: Sandbox
) -> None:
    applied.declare(*ensure("forgotten", OFFICE, RULE), PARTNERS, EDGE)
    assert applied("apply", "-y", "-q").code == 0
    (edge,) = sandbox.get("/edges/tls")["tls_edges"]
    wide = sandbox.post("/ip_policies", {"description": "open to all"})
    (partners,) = (
        found["id"] for found in sandbox.get("/ip_policies")["ip_policies"] if "partners" in found["metadata"]
    )
    sandbox.put(f"/edges/tls/{edge['id']}/ip_restriction", {"ip_policy_ids": [wide["id"], partners]})
    result = applied("plan")
    assert result.code == 1
    assert (
        "it refers to IPPolicy/office.id, which this stack does not manage any more; "
        "write the id instead of the reference, or set `id:` on IPPolicy/office"
    ) in " ".join(result.out.split()).replace("IPPolicy/office, which", "IPPolicy/office.id, which")


def test_a_new_referrer_of_a_forgotten_resource_needs_its_id(applied: Project, sandbox: Sandbox) -> None:
    applied.declare(*ensure("forgotten", OFFICE, RULE), PARTNERS, EDGE)
    assert applied("apply", "-y", "-q").code == 0
    new = resource("TLSEdge", "new", ip_restriction={"ip_policy_ids": [{"ref": "IPPolicy/office"}]})
    applied.declare(*ensure("forgotten", OFFICE), PARTNERS, EDGE, new)
    assert "set `id:` on IPPolicy/office" in " ".join(applied("plan").out.split())
    (office,) = set(read_restriction(sandbox)) - {
        found["id"] for found in sandbox.get("/ip_policies")["ip_policies"] if "partners" in found["metadata"]
    }
    applied.declare({**OFFICE, "ensure": "forgotten", "id": office}, PARTNERS, EDGE, new)
    assert applied("apply", "-y", "-q").out == "Applied: 1 created.\n"
