"""Policies of a project: a violation stops plans and applies with exit code 4, and a warning does not."""

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


VIOLATION = (
    "manifests/all.yaml:1:1: IPPolicy/office: has no description (policy described); "
    "correct it, or add an exemption at policies/all.yaml:1"
)


def test_resources_that_satisfy_the_policies_are_applied(ruled: Project) -> None:
    assert ruled("validate").out == "Valid: 1 resource in 1 file, under 1 policy.\n"
    assert ruled("apply", "-y").code == 0


def test_validate_reports_a_violation_at_its_position_without_a_network(ruled: Project) -> None:
    bare(ruled)
    ruled.environ.clear()
    result = ruled("validate")
    assert (result.code, result.out, result.err) == (4, "", f"{VIOLATION}\n1 error\n")


def test_a_plan_shows_a_violation_in_every_format_and_exits_with_4(ruled: Project) -> None:
    bare(ruled)
    forms = ("markdown", "html", "json", "sarif", "github")
    result = ruled(
        "plan", *(word for form in forms for word in ("--format", f"{form}=plan.{form}")), "--format", "text"
    )
    assert (result.code, result.err) == (4, "1 error in the plan\n")
    assert "(policy described)" in " ".join(result.out.split())
    for form in forms:
        assert "has no description" in (ruled.root / f"plan.{form}").read_text()
    results = json.loads((ruled.root / "plan.sarif").read_text())["runs"][0]["results"]
    assert (results[0]["ruleId"], results[0]["level"]) == ("policy", "error")


def test_an_apply_with_a_violation_changes_nothing(ruled: Project, sandbox: Sandbox) -> None:
    bare(ruled)
    result = ruled("apply", "-y")
    assert (result.code, result.err.splitlines()[-1]) == (
        4,
        "error: nothing was changed: a policy does not allow the plan",
    )
    assert sandbox.calls() == []


def test_a_policy_of_severity_warning_does_not_stop_an_apply(ruled: Project) -> None:
    ruled.write("policies/all.yaml", f"{NAMED}severity: warning\n")
    bare(ruled)
    assert ruled("plan").err == "1 warning in the plan: policy\n"
    assert ruled("apply", "-y", "-q").code == 0


def test_an_invalid_policy_is_an_error_and_not_a_violation(ruled: Project) -> None:
    ruled.declare(resource("IPPolicy", "office"), resource("ReservedDomain", "a", domain="a.example.com"))
    ruled.write("policies/all.yaml", "policy: a\ncheck: resource.\nmessage: x\n")
    assert ruled("plan").code == 1


def test_a_plan_file_is_judged_again_at_its_apply(ruled: Project, sandbox: Sandbox) -> None:
    ruled("plan", "--out", "plan.json")
    ruled.write("policies/more.yaml", "policy: later\ncheck: change.action != 'create'\nmessage: not today\n")
    result = ruled("apply", "plan.json", "-y")
    assert (result.code, sandbox.calls()) == (4, [])
    assert "not today (policy later)" in " ".join(result.out.split())


def test_a_plan_file_of_other_manifests_is_judged_by_what_it_changes(ruled: Project, sandbox: Sandbox) -> None:
    ruled("apply", "-y")
    ruled.declare()
    ruled("plan", "--out", "plan.json", "--allow", "empty:*=1")
    bare(ruled)  # a violation that the plan file does not contain
    sandbox.forget_log()
    ruled.write("policies/more.yaml", NO_DELETES)
    assert ruled("apply", "plan.json", "-y").code == 4
    (ruled.root / "policies/more.yaml").unlink()
    assert (ruled("apply", "plan.json", "-y").code, len(sandbox.calls())) == (0, 1)


def write_invalid_manifest(project: Project) -> list[str]:
    project.write("manifests/more.yaml", "kind: [")
    return []


def unset_secret(project: Project) -> list[str]:
    del project.environ["HOOK"]
    return []


def write_comment(project: Project) -> list[str]:
    project.write("manifests/more.yaml", "# nothing\n")
    return []


def set_variable(project: Project) -> list[str]:
    return ["--var", "words=Home"]


NO_OFFICES = "policy: no-offices\ncheck: resource.spec.description != 'Office'\nmessage: ${resource.address} is one\n"
EXEMPT = f"{NO_OFFICES}exemptions: [{{address: '*', reason: so far, until: 2040-06-30}}]\n"
ANYTIME = (
    "policy: anytime\nscope: {kinds: [IPPolicy]}\ncheck: now > timestamp('2020-01-01T00:00:00Z')\nmessage: early\n"
)
UNREADABLE = "note: the manifests cannot be read; "
CHANGED = "note: the manifests or their variables changed after this plan was created; "
NOT_THESE = [
    (write_invalid_manifest, UNREADABLE, "manifests/more.yaml:2:1: invalid YAML"),
    (unset_secret, UNREADABLE, "the environment variable HOOK is not set"),
    (write_comment, CHANGED, ""),
    (set_variable, CHANGED, ""),
]


@pytest.fixture
def reviewed(ruled: Project) -> Project:
    """A plan file that the current policies allow."""
    ruled.write("reconciler.yaml", "stack: e2e\nvariables: {words: Office}\n")
    ruled.write("policies/offices.yaml", EXEMPT)
    ruled.environ["HOOK"] = "canary-6e1f9c0d27"
    ruled.declare(
        resource("IPPolicy", "office", description="${{ var.words }}"),
        resource("Secret", "hook", vault_id="vault_x", name="hook", value={"from_env": "HOOK"}),
    )
    assert ruled("plan", "--out", "plan.json", "-q", "--exclude", "Secret/*").code == 0
    return ruled


@pytest.mark.parametrize(("change", "note", "why"), NOT_THESE)
@pytest.mark.parametrize("policy", [NO_OFFICES, EXEMPT.replace("2040", "2020"), ANYTIME])
def test_a_plan_of_other_manifests_is_not_applied_if_a_policy_has_to_be_evaluated(
    reviewed: Project, sandbox: Sandbox, policy: str, change: Callable[[Project], list[str]], note: str, why: str
) -> None:
    reviewed.write("policies/offices.yaml", policy)
    result = reviewed("apply", "plan.json", "-y", "-q", *change(reviewed))
    assert (result.code, sandbox.calls()) == (4, [])
    name = policy.split()[1]
    problem = (
        f"the policy {name} cannot be evaluated again for IPPolicy/office: "
        "the manifests changed after the plan was created"
    )
    assert note in result.err
    assert why in result.err
    assert f"policies/offices.yaml:1:1: {problem}; plan again" in result.err


@pytest.mark.parametrize(("change", "note", "why"), NOT_THESE)
def test_a_plan_of_other_manifests_is_applied_if_its_policies_are_unchanged(
    reviewed: Project, change: Callable[[Project], list[str]], note: str, why: str
) -> None:
    result = reviewed("apply", "plan.json", "-y", "-q", *change(reviewed))
    assert (result.code, result.out) == (0, "Applied: 1 created.\n")
    assert result.err.startswith(note)
    assert why in result.err


def test_a_policy_about_kinds_outside_the_plan_is_not_evaluated(reviewed: Project) -> None:
    reviewed.write("policies/offices.yaml", f"{NO_OFFICES}scope: {{kinds: [TLSEdge]}}\n")
    write_invalid_manifest(reviewed)
    assert reviewed("apply", "plan.json", "-y", "-q").code == 0


def test_the_number_of_declared_resources_is_recorded_in_a_plan_file(reviewed: Project) -> None:
    reviewed.write("policies/few.yaml", "policy: few\ncheck: plan.resources.size() < 1\nmessage: too much\n")
    write_invalid_manifest(reviewed)
    assert reviewed("apply", "plan.json", "-y", "-q").code == 4


def test_an_unknown_variable_is_refused_with_a_plan_file(reviewed: Project, sandbox: Sandbox) -> None:
    result = reviewed("apply", "plan.json", "-y", "--var", "typo=1")
    assert (result.code, result.err.splitlines()[0], sandbox.calls()) == (
        1,
        "--var typo: unknown variable; define it under variables: in reconciler.yaml",
        [],
    )


def test_the_deletes_of_destroy_are_judged(ruled: Project, sandbox: Sandbox) -> None:
    ruled("apply", "-y")
    ruled.write("policies/more.yaml", NO_DELETES)
    assert ruled("destroy", "-y").code == 4
    assert len(sandbox.get("/ip_policies")["ip_policies"]) == 1


def test_drift_is_not_judged_by_policies(ruled: Project) -> None:
    ruled("apply", "-y")
    ruled.write("policies/more.yaml", "policy: never\ncheck: resource.kind == ''\nmessage: x\n")
    assert ruled("drift").code == 0


def test_the_expression_library_is_not_loaded_without_policies(project: Project) -> None:
    project.declare(OFFICE)
    script = (
        "import sys; from reconciler.cli.main import main; code = main(['validate', '-q']); "
        "sys.exit(code or any(name.startswith(('cel_expr_python', 'google.protobuf')) for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", script], cwd=project.root, check=False).returncode == 0
