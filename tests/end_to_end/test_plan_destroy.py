"""`plan --destroy`: the plan of `destroy`, shown, gated and applied like any other plan."""

from __future__ import annotations

import pytest

from reconciler.cli.terminal import exit_codes
from tests.harness.platform import Sandbox
from tests.harness.project import Project, policies, resource

OFFICE, VPN = policies("office", "vpn")
DOMAIN = resource("ReservedDomain", "pay", domain="pay.example.com")


@pytest.fixture
def applied(on_sandbox: Project) -> Project:
    on_sandbox.declare(OFFICE, VPN, DOMAIN)
    assert on_sandbox("apply", "-y", "--quiet").code == 0
    return on_sandbox


def test_the_plan_is_that_of_destroy(applied: Project, sandbox: Sandbox) -> None:
    sandbox.post("/reserved_domains", {"domain": "theirs.example.com"})
    sandbox.forget_log()
    planned = applied("plan", "--destroy")
    assert sandbox.calls() == []
    destroyed = applied("destroy", "-y")
    assert planned.out.strip() == destroyed.out.strip()
    assert planned.code == 0
    assert destroyed.code == exit_codes.BLOCKED
    assert applied("plan", "--destroy", "--detailed-exitcode").code == exit_codes.CHANGES
    assert applied("plan", "--destroy", "--fail-on", "approvals").code == exit_codes.BLOCKED
    allow = ("--allow", "delete:ReservedDomain=1")
    assert applied("plan", "--destroy", "--fail-on", "approvals", *allow).code == 0
    assert applied("destroy", "-y", "--quiet", *allow).out == "Destroyed: 3 deleted.\n"
    assert applied("plan", "--destroy", "--detailed-exitcode").code == 0


def test_invalid_manifests_do_not_prevent_it(applied: Project) -> None:
    applied.write("manifests/wrong.yaml", "kind: [")
    assert applied("plan").code == exit_codes.ERROR
    assert applied("plan", "--destroy", "--detailed-exitcode").code == exit_codes.CHANGES


def test_its_plan_file_is_applied(applied: Project, sandbox: Sandbox) -> None:
    applied("plan", "--destroy", "--out", "plan.json", "--allow", "delete:ReservedDomain=1")
    answer = applied("apply", "plan.json", "-y", "--quiet", "--allow", "delete:ReservedDomain=1")
    assert (answer.code, answer.out) == (0, "Applied: 3 deleted.\n"), answer
    assert "manifests" not in answer.err
    assert sandbox.get("/ip_policies")["ip_policies"] == sandbox.get("/reserved_domains")["reserved_domains"] == []


def test_its_plan_file_needs_the_same_approvals(applied: Project, sandbox: Sandbox) -> None:
    applied("plan", "--destroy", "--out", "plan.json")
    sandbox.forget_log()
    answer = applied("apply", "plan.json", "-y", "--quiet")
    assert (answer.code, sandbox.calls()) == (exit_codes.BLOCKED, [])
    assert "--allow delete:ReservedDomain=1" in answer.err


def test_a_selection_limits_it(applied: Project, sandbox: Sandbox) -> None:
    answer = applied("plan", "--destroy", "--target", "IPPolicy/*", "--out", "plan.json")
    assert "ReservedDomain/pay" not in answer.out
    assert applied("apply", "plan.json", "-y", "--quiet").out == "Applied: 2 deleted.\n"


def test_a_plan_file_of_destroy_is_stale_after_an_update_of_its_object(applied: Project) -> None:
    applied("plan", "--destroy", "--target", "IPPolicy/vpn", "--out", "plan.json")
    applied.declare(OFFICE, {**VPN, "spec": {"description": "changed"}}, DOMAIN)
    assert applied("apply", "-y", "--quiet").code == 0
    assert applied("apply", "plan.json", "-y", "--quiet").code == exit_codes.STALE


@pytest.mark.parametrize(
    ("flag", "value"), [("--base", "main"), ("--replace", "IPPolicy/vpn"), ("--snapshot", "snapshot.json")]
)
def test_options_for_declared_resources_are_refused(on_sandbox: Project, flag: str, value: str) -> None:
    answer = on_sandbox("plan", "--destroy", flag, value)
    assert (answer.code, answer.err) == (
        exit_codes.USAGE,
        f"error: --destroy cannot be combined with {flag}\n",
    )
