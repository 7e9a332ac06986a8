"""Policies of a project: they stop plans and applies with exit code 4, and a warning only tells."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.end_to_end.project import Project, resource
from tests.platform import Sandbox

OFFICE = resource("IPPolicy", "office", description="Office")
NAMED = "policy: described\ncheck: resource.spec.description != ''\nmessage: ${resource.address} has no description\n"
NO_DELETES = "policy: keep\nscope: {actions: [delete]}\ncheck: now < timestamp('2020-01-01T00:00:00Z')\nmessage: kept\n"


@pytest.fixture
def ruled(on_sandbox: Project) -> Project:
    on_sandbox.write("policies/all.yaml", NAMED)
    on_sandbox.declare(OFFICE)
    return on_sandbox


def bare(project: Project) -> None:
    project.declare(resource("IPPolicy", "office"))


TOLD = (
    "manifests/all.yaml:1:1: IPPolicy/office: IPPolicy/office has no description (policy described); "
    "correct it, or write an exemption at policies/all.yaml:1"
)


def test_who_keeps_the_policies_notices_nothing(ruled: Project) -> None:
    assert ruled("validate").out == "Valid: 1 resource in 1 file, under 1 policy.\n"
    assert ruled("apply", "-y").code == 0


def test_validate_tells_a_breach_at_its_place_without_a_network(ruled: Project) -> None:
    bare(ruled)
    ruled.environ.clear()
    said = ruled("validate")
    assert (said.code, said.out, said.err) == (4, "", f"{TOLD}\n1 problem\n")


def test_a_plan_shows_it_in_every_form_and_ends_with_4(ruled: Project) -> None:
    bare(ruled)
    forms = ("markdown", "html", "json", "sarif", "github")
    said = ruled("plan", *(word for each in forms for word in ("--format", f"{each}=plan.{each}")), "--format", "text")
    assert (said.code, said.err) == (4, "1 problem\n")
    assert "(policy described)" in " ".join(said.out.split())
    for each in forms:
        assert "has no description" in (ruled.root / f"plan.{each}").read_text()
    results = json.loads((ruled.root / "plan.sarif").read_text())["runs"][0]["results"]
    assert (results[0]["ruleId"], results[0]["level"]) == ("policy", "error")


def test_an_apply_changes_nothing(ruled: Project, sandbox: Sandbox) -> None:
    bare(ruled)
    said = ruled("apply", "-y")
    assert (said.code, said.err.splitlines()[-1]) == (4, "error: nothing was changed, because a policy forbids it")
    assert sandbox.calls() == []


def test_a_warning_tells_and_lets_pass(ruled: Project) -> None:
    ruled.write("policies/all.yaml", f"{NAMED}severity: warning\n")
    bare(ruled)
    assert ruled("plan").err == "1 warning\n"
    assert ruled("apply", "-y", "-q").code == 0


def test_a_problem_of_the_programs_own_comes_before_a_policy(ruled: Project) -> None:
    ruled.declare(resource("IPPolicy", "office"), resource("ReservedDomain", "a", domain="a.example.com"))
    ruled.write("policies/all.yaml", "policy: a\ncheck: resource.\nmessage: x\n")
    assert ruled("plan").code == 1


def test_a_plan_file_is_judged_when_it_is_carried_out(ruled: Project, sandbox: Sandbox) -> None:
    ruled("plan", "--out", "plan.json")
    ruled.write("policies/more.yaml", "policy: later\ncheck: change.action != 'create'\nmessage: not today\n")
    said = ruled("apply", "plan.json", "-y")
    assert (said.code, sandbox.calls()) == (4, [])
    assert "not today (policy later)" in " ".join(said.out.split())


def test_a_plan_file_of_other_manifests_is_judged_by_what_it_changes(ruled: Project, sandbox: Sandbox) -> None:
    ruled("apply", "-y")
    ruled.declare()
    ruled("plan", "--out", "plan.json", "--allow", "empty:*=1")
    bare(ruled)  # which breaks a policy, and has no say in this
    sandbox.forget_log()
    ruled.write("policies/more.yaml", NO_DELETES)
    assert ruled("apply", "plan.json", "-y").code == 4
    (ruled.root / "policies/more.yaml").unlink()
    assert (ruled("apply", "plan.json", "-y").code, len(sandbox.calls())) == (0, 1)


def test_what_a_destroy_deletes_is_judged(ruled: Project, sandbox: Sandbox) -> None:
    ruled("apply", "-y")
    ruled.write("policies/more.yaml", NO_DELETES)
    assert ruled("destroy", "-y").code == 4
    assert len(sandbox.get("/ip_policies")["ip_policies"]) == 1


def test_drift_is_no_matter_of_policies(ruled: Project) -> None:
    ruled("apply", "-y")
    ruled.write("policies/more.yaml", "policy: never\ncheck: resource.kind == ''\nmessage: x\n")
    assert ruled("drift").code == 0


def test_nothing_of_the_language_is_loaded_where_there_are_no_policies(project: Project) -> None:
    project.declare(OFFICE)
    script = (
        "import sys; from reconciler.cli.main import main; code = main(['validate', '-q']); "
        "sys.exit(code or any(name.startswith('cel_expr_python') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", script], cwd=project.root, check=False).returncode == 0
