"""One project in two environments on one account: each has its stack, and neither sees the other's objects."""

from __future__ import annotations

from tests.harness.platform import Sandbox
from tests.harness.project import Project, all_of

MANIFEST = """\
kind: IPPolicy
name: "${{ each.key }}"
for_each: ${{ var.offices }}
spec: {description: "${{ each.key }} in ${{ var.stage }}"}
"""


def write_project(project: Project) -> None:
    settings = "limits: {requests_per_minute: 100000}\nguards: {max_delete_percent: 100}\n"
    project.write(
        "reconciler.yaml", f"stack: shop-dev\n{settings}variables: {{stage: dev, offices: [berlin, oslo, rome]}}\n"
    )
    project.write("environments/prod.yaml", "stack: shop\nvariables: {stage: prod}\nIPPolicy/rome: null\n")
    project.write("manifests/all.yaml", MANIFEST)


def list_policies(sandbox: Sandbox) -> list[str]:
    return sorted(item["description"] for item in all_of(sandbox, "/ip_policies", "ip_policies"))


def test_each_environment_is_applied_to_its_own_stack(on_sandbox: Project, sandbox: Sandbox) -> None:
    write_project(on_sandbox)
    assert on_sandbox("apply", "-y", "--quiet").code == 0
    assert on_sandbox("apply", "-y", "--quiet", "--env", "prod").code == 0
    assert list_policies(sandbox) == ["berlin in dev", "berlin in prod", "oslo in dev", "oslo in prod", "rome in dev"]
    assert on_sandbox("plan", "--env", "prod", "--detailed-exitcode").code == 0
    assert on_sandbox("destroy", "-y", "--quiet", "--env", "prod").code == 0
    assert list_policies(sandbox) == ["berlin in dev", "oslo in dev", "rome in dev"]


def test_an_item_removed_from_the_middle_deletes_only_its_resource(on_sandbox: Project, sandbox: Sandbox) -> None:
    write_project(on_sandbox)
    on_sandbox("apply", "-y", "--quiet")
    result = on_sandbox("apply", "-y", "--quiet", "--var", "offices=[rome, berlin]")
    assert (result.code, result.out) == (0, "Applied: 1 deleted.\n")
    assert list_policies(sandbox) == ["berlin in dev", "rome in dev"]


def test_a_plan_file_of_one_environment_is_not_applied_in_another(on_sandbox: Project, sandbox: Sandbox) -> None:
    write_project(on_sandbox)
    assert on_sandbox("plan", "--env", "prod", "--out", "plan.json", "--quiet").code == 0
    result = on_sandbox("apply", "plan.json", "-y")
    assert (result.code, "plan.json is a plan for the stack shop, not shop-dev" in result.err) == (1, True)
    assert on_sandbox("apply", "plan.json", "-y", "--env", "prod", "--quiet").code == 0
    assert list_policies(sandbox) == ["berlin in prod", "oslo in prod"]
