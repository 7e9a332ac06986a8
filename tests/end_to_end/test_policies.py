"""Policies of a project: they stop plans and applies with exit code 4, and a warning only tells."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.harness.platform import Sandbox
from tests.harness.project import Project, resource

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
    "correct it, or add an exemption at policies/all.yaml:1"
)


def test_who_keeps_the_policies_notices_nothing(ruled: Project) -> None:
    assert ruled("validate").out == "Valid: 1 resource in 1 file, under 1 policy.\n"
    assert ruled("apply", "-y").code == 0


def test_validate_tells_a_breach_at_its_place_without_a_network(ruled: Project) -> None:
    bare(ruled)
    ruled.environ.clear()
    said = ruled("validate")
    assert (said.code, said.out, said.err) == (4, "", f"{TOLD}\n1 error\n")


def test_a_plan_shows_it_in_every_form_and_ends_with_4(ruled: Project) -> None:
    bare(ruled)
    forms = ("markdown", "html", "json", "sarif", "github")
    said = ruled("plan", *(word for form in forms for word in ("--format", f"{form}=plan.{form}")), "--format", "text")
    assert (said.code, said.err) == (4, "1 error\n")
    assert "(policy described)" in " ".join(said.out.split())
    for form in forms:
        assert "has no description" in (ruled.root / f"plan.{form}").read_text()
    results = json.loads((ruled.root / "plan.sarif").read_text())["runs"][0]["results"]
    assert (results[0]["ruleId"], results[0]["level"]) == ("policy", "error")


def test_an_apply_changes_nothing(ruled: Project, sandbox: Sandbox) -> None:
    bare(ruled)
    said = ruled("apply", "-y")
    assert (said.code, said.err.splitlines()[-1]) == (4, "error: nothing was changed: a policy does not allow the plan")
    assert sandbox.calls() == []


def test_a_warning_tells_and_lets_pass(ruled: Project) -> None:
    ruled.write("policies/all.yaml", f"{NAMED}severity: warning\n")
    bare(ruled)
    assert ruled("plan").err == "1 warning: policy\n"
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


def broken(project: Project) -> list[str]:
    project.write("manifests/more.yaml", "kind: [")
    return []


def without_a_secret(project: Project) -> list[str]:
    del project.environ["HOOK"]
    return []


def changed(project: Project) -> list[str]:
    project.write("manifests/more.yaml", "# nothing\n")
    return []


def with_another_variable(project: Project) -> list[str]:
    return ["--var", "words=Home"]


NO_OFFICES = "policy: no-offices\ncheck: resource.spec.description != 'Office'\nmessage: ${resource.address} is one\n"
EXEMPT = f"{NO_OFFICES}exemptions: [{{address: '*', reason: so far, until: 2040-06-30}}]\n"
ANYTIME = (
    "policy: anytime\nscope: {kinds: [IPPolicy]}\ncheck: now > timestamp('2020-01-01T00:00:00Z')\nmessage: early\n"
)
UNREADABLE = "note: the manifests cannot be read; "
CHANGED = "note: the manifests or their variables changed after this plan was created; "
NOT_THESE = [
    (broken, UNREADABLE, "manifests/more.yaml:2:1: invalid YAML"),
    (without_a_secret, UNREADABLE, "the environment variable HOOK is not set"),
    (changed, CHANGED, ""),
    (with_another_variable, CHANGED, ""),
]


@pytest.fixture
def reviewed(ruled: Project) -> Project:
    """A plan file for what the policies of now allow."""
    ruled.write("reconciler.yaml", "stack: e2e\nvariables: {words: Office}\n")
    ruled.write("policies/offices.yaml", EXEMPT)
    ruled.environ["HOOK"] = "canary-6e1f9c0d27"
    ruled.declare(
        resource("IPPolicy", "office", description="${{ var.words }}"),
        resource("Secret", "hook", vault_id="vault_x", name="hook", value={"from_env": "HOOK"}),
    )
    assert ruled("plan", "--out", "plan.json", "-q", "--exclude", "Secret/*").code == 0
    return ruled


@pytest.mark.parametrize(("meanwhile", "note", "why"), NOT_THESE)
@pytest.mark.parametrize("policy", [NO_OFFICES, EXEMPT.replace("2040", "2020"), ANYTIME])
def test_a_plan_of_other_manifests_is_not_carried_out_where_a_policy_would_have_to_ask_them(
    reviewed: Project, sandbox: Sandbox, policy: str, meanwhile: Callable[[Project], list[str]], note: str, why: str
) -> None:
    reviewed.write("policies/offices.yaml", policy)
    said = reviewed("apply", "plan.json", "-y", "-q", *meanwhile(reviewed))
    assert (said.code, sandbox.calls()) == (4, [])
    name = policy.split()[1]
    told = (
        f"the policy {name} cannot be evaluated again for IPPolicy/office: "
        "the manifests changed after the plan was created"
    )
    assert note in said.err
    assert why in said.err
    assert f"policies/offices.yaml:1:1: {told}; plan again" in said.err


@pytest.mark.parametrize(("meanwhile", "note", "why"), NOT_THESE)
def test_a_plan_of_other_manifests_is_carried_out_where_the_policies_are_those_that_it_was_judged_by(
    reviewed: Project, meanwhile: Callable[[Project], list[str]], note: str, why: str
) -> None:
    said = reviewed("apply", "plan.json", "-y", "-q", *meanwhile(reviewed))
    assert (said.code, said.out) == (0, "Applied: 1 created.\n")
    assert said.err.startswith(note)
    assert why in said.err


def test_a_policy_about_others_than_the_plan_changes_need_not_be_asked(reviewed: Project) -> None:
    reviewed.write("policies/offices.yaml", f"{NO_OFFICES}scope: {{kinds: [TLSEdge]}}\n")
    broken(reviewed)
    assert reviewed("apply", "plan.json", "-y", "-q").code == 0


def test_how_much_was_declared_is_known_of_a_plan_of_other_manifests_too(reviewed: Project) -> None:
    reviewed.write("policies/few.yaml", "policy: few\ncheck: plan.resources < 1\nmessage: too much\n")
    broken(reviewed)
    assert reviewed("apply", "plan.json", "-y", "-q").code == 4


def test_a_variable_that_there_is_not_is_refused_with_a_plan_file_too(reviewed: Project, sandbox: Sandbox) -> None:
    said = reviewed("apply", "plan.json", "-y", "--var", "typo=1")
    assert (said.code, said.err.splitlines()[0], sandbox.calls()) == (
        1,
        "--var typo: unknown variable; define it under variables: in reconciler.yaml",
        [],
    )


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
