"""Approvals that are recorded in `approvals.yaml`, and reviewed like any other file."""

from __future__ import annotations

import re

import pytest

from tests.harness.platform import Sandbox
from tests.harness.project import Project, policies, resource

OFFICE = policies("office")[0]
DOMAIN = resource("ReservedDomain", "pay", domain="pay.example.com")
BACKEND = resource("TunnelGroupBackend", "pay", labels={"app": "pay"})
OPEN = {"hostports": ["pay.example.com:443"], "backend": {"backend_id": {"ref": "TunnelGroupBackend/pay"}}}
EDGE = resource("TLSEdge", "pay", **OPEN, ip_restriction={"ip_policy_ids": [{"ref": "IPPolicy/office"}]})
OPEN_EDGE = resource("TLSEdge", "pay", **OPEN)
SERVED = (OFFICE, DOMAIN, BACKEND)
SETTINGS = "version: 1\nstack: prod\nlimits: {requests_per_minute: 100000}\n"


def apply(project: Project, *declared: dict) -> None:
    project.declare(*declared)
    answer = project("apply", "-y", "--quiet")
    assert answer.code == 0, answer


def print_required_entries(project: Project) -> str:
    """What `plan --fail-on approvals` says to write."""
    answer = project("plan", "--fail-on", "approvals")
    assert answer.code == 4, answer
    assert "error: approval required: add to approvals.yaml, in a reviewed commit:\n" in answer.err
    return answer.err[answer.err.index("approvals:\n") :]


@pytest.fixture
def guarded(on_sandbox: Project) -> Project:
    on_sandbox.write("reconciler.yaml", f"{SETTINGS}guards: {{require_approval: [widens_access]}}\n")
    return on_sandbox


def test_a_change_that_widens_access_passes_with_the_entries_that_the_plan_prints(guarded: Project) -> None:
    apply(guarded, *SERVED, EDGE)
    guarded.declare(*SERVED, OPEN_EDGE)
    assert guarded("apply", "-y", "--quiet").code == 4
    guarded.write("approvals.yaml", print_required_entries(guarded))
    assert guarded("plan", "--fail-on", "approvals").code == 0
    assert guarded("apply", "-y", "--quiet").out == "Applied: 1 updated.\n"
    unused = guarded("plan")
    note = "note: widens_access: tls://pay.example.com: this plan has no such change; it can stay until "
    assert note in " ".join(unused.out.partition("match the manifests.\n")[2].split())
    assert (unused.code, unused.err) == (0, "")
    quiet = guarded("apply", "-y", "--quiet")
    assert (quiet.code, quiet.err) == (0, "")


def test_an_irreversible_deletion_is_approved_by_id(on_sandbox: Project, sandbox: Sandbox) -> None:
    apply(on_sandbox, OFFICE, DOMAIN)
    on_sandbox.declare(OFFICE)
    entries = print_required_entries(on_sandbox)
    (live,) = sandbox.get("/reserved_domains")["reserved_domains"]
    assert f'  - delete: ReservedDomain/pay\n    id: "{live["id"]}"\n' in entries
    on_sandbox.write("approvals.yaml", entries)
    assert on_sandbox("apply", "-y", "--quiet").out == "Applied: 1 deleted.\n"


@pytest.mark.parametrize(
    ("pattern", "replacement", "problem"),
    [
        (r'until: ".*"', 'until: "2020-01-01"', "expired on 2020-01-01"),
        (r'id: ".*"', 'id: "rd_other"', "approves rd_other, but the object is rd_"),
        (r'digest: ".*"', 'digest: "0000"', "approves another change: its digest is "),
        (r"ReservedDomain/pay", "ReservedDomain/other", "approves no change of this plan"),
    ],
)
def test_an_entry_for_something_else_approves_nothing(
    on_sandbox: Project, pattern: str, replacement: str, problem: str
) -> None:
    apply(on_sandbox, OFFICE, DOMAIN)
    on_sandbox.declare(OFFICE)
    on_sandbox.write("approvals.yaml", re.sub(pattern, replacement, print_required_entries(on_sandbox)))
    answer = on_sandbox("plan", "--fail-on", "approvals", "--format", "json")
    assert answer.code == 4
    assert problem in answer.out
    assert '"code": "unused-approval"' in answer.out


def test_another_change_of_the_same_entry_point_needs_another_approval(guarded: Project) -> None:
    apply(guarded, *SERVED, EDGE)
    guarded.declare(*SERVED, OPEN_EDGE)
    guarded.write("approvals.yaml", print_required_entries(guarded))
    rule = resource(
        "IPPolicyRule", "home", ip_policy_id={"ref": "IPPolicy/office"}, cidr="192.0.2.0/24", action="allow"
    )
    guarded.declare(*SERVED, EDGE, rule)
    assert guarded("plan", "--fail-on", "approvals").code == 4
    guarded.declare(*SERVED, OPEN_EDGE)
    assert guarded("plan", "--fail-on", "approvals").code == 0


def test_a_guard_over_the_whole_plan_is_approved_for_exactly_its_changes(on_sandbox: Project) -> None:
    many = policies(*(f"p{number}" for number in range(12)))
    apply(on_sandbox, *many)
    on_sandbox.declare(*many[:6])
    on_sandbox.write("approvals.yaml", print_required_entries(on_sandbox))
    on_sandbox.declare(*many[:5])
    assert on_sandbox("plan", "--fail-on", "approvals").code == 4
    on_sandbox.declare(*many[:6])
    assert on_sandbox("apply", "-y", "--quiet").out == "Applied: 6 deleted.\n"


def test_entries_of_another_environment_are_not_used(on_sandbox: Project) -> None:
    on_sandbox.write("environments/prod.yaml", "{}\n")
    apply(on_sandbox, OFFICE, DOMAIN)
    on_sandbox.declare(OFFICE)
    on_sandbox.write("approvals.yaml", print_required_entries(on_sandbox).replace("    id:", "    env: prod\n    id:"))
    alone = on_sandbox("plan", "--fail-on", "approvals")
    assert (alone.code, "unused" in alone.out) == (4, False)
    assert on_sandbox("plan", "--fail-on", "approvals", "--env", "prod").code == 0


def test_an_entry_for_staging_never_approves_prod_and_one_for_both_does(on_sandbox: Project) -> None:
    on_sandbox.write("reconciler.yaml", f"{SETTINGS}guards: {{require_approval: [issues_credential]}}\n")
    for name in ("staging", "prod"):
        on_sandbox.write(f"environments/{name}.yaml", f"stack: shop-{name}\n")
    credential = resource("TunnelCredential", "rome")
    on_sandbox.declare({**credential, "deliver": {"token": {"to_file": "secrets/rome"}}})
    refused = on_sandbox("plan", "--fail-on", "approvals", "--env", "staging")
    entries = refused.err[refused.err.index("approvals:\n") :]
    assert "id:" not in entries  # there is no object yet
    assert "  - issues_credential: TunnelCredential/rome\n    env: staging\n    until: " in entries
    on_sandbox.write("approvals.yaml", entries)
    codes = [on_sandbox("plan", "--fail-on", "approvals", "--env", name).code for name in ("staging", "prod")]
    assert codes == [0, 4]
    on_sandbox.write("approvals.yaml", entries.replace("env: staging", "env: [staging, prod]"))
    codes = [on_sandbox("plan", "--fail-on", "approvals", "--env", name).code for name in ("staging", "prod")]
    assert codes == [0, 0]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("approvals: {}\n", "approvals.yaml:1:12: expected a list, found a map"),
        ("approvals: [a]\n", "approvals.yaml:1:13: expected a map, found text"),
        ("other: []\n", "approvals.yaml:1:8: unknown key 'other'"),
        ("approvals:\n- {id: a}\n", "approvals.yaml:2:3: expected one rule, found none"),
        ("approvals:\n- {destroy: A/b}\n", "approvals.yaml:2:3: expected one rule, found destroy"),
        ("approvals:\n- {delete: A/b, until: 2026-1-1, digest: a}\n", "'2026-1-1' is not a date"),
        ("approvals:\n- {delete: A/b, until: 2026-01-01}\n", "digest must be a text"),
        ("- delete: A/b\n", "expected a map"),
        (": :\n", "invalid YAML"),
    ],
)
def test_a_file_that_cannot_be_read_is_an_error_with_its_position(on_sandbox: Project, text: str, problem: str) -> None:
    on_sandbox.declare(OFFICE)
    on_sandbox.write("approvals.yaml", text)
    for command in ("plan", "validate"):
        answer = on_sandbox(command)
        assert answer.code == 1
        assert problem in (answer.out + answer.err), answer
