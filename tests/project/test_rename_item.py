"""Items of `for_each` get a new key and keep their object; what cannot be renamed is refused with the reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler import Runtime
from reconciler.operations.authoring.rename_resource import rename_resource
from reconciler.operations.errors import UnusableEdit
from reconciler.operations.opening.source import ProjectSource
from tests.harness.builders import at
from tests.project.texts import ProjectFolder

RULES = """\
# Our offices.
kind: IPPolicyRule
name: office-${{ each.key }}
for_each:
  berlin: {cidr: 203.0.113.0/24} # old
  oslo: {cidr: 198.51.100.0/24}
spec:
  ip_policy_id: {ref: IPPolicy/office}
  cidr: ${{ each.value.cidr }}
  action: allow
"""


def rename(project: ProjectFolder, old: str, new: str) -> dict[str, str]:
    renamed = rename_resource(ProjectSource(project.root, runtime=Runtime(environ={})), at(old), at(new))
    for path, (_, after) in renamed.texts.items():
        project.write(path, after)
    return {path: after for path, (_, after) in renamed.texts.items()}


def list_moves(project: ProjectFolder) -> dict[str, list[str]]:
    return {name: [*map(str, found.moved)] for name, found in project.declarations().items() if found.moved}


def test_the_key_in_a_map_is_renamed_and_the_object_moves(project: ProjectFolder) -> None:
    project.write("manifests/rules.yaml", RULES)
    project.write("environments/prod.yaml", "IPPolicyRule/office-berlin: {spec: {description: x}}\n")
    changed = rename(project, "IPPolicyRule/office-berlin", "IPPolicyRule/office-hq")
    assert changed["manifests/rules.yaml"] == RULES.replace("  berlin:", "  hq:").replace(
        "spec:\n", "moved: {hq: IPPolicyRule/office-berlin}\nspec:\n"
    )
    assert changed["environments/prod.yaml"] == "IPPolicyRule/office-hq: {spec: {description: x}}\n"
    assert list_moves(project) == {"IPPolicyRule/office-hq": ["IPPolicyRule/office-berlin"]}


def test_an_item_that_is_renamed_again_has_both_former_addresses(project: ProjectFolder) -> None:
    project.write("manifests/rules.yaml", RULES)
    for old, new in (("berlin", "hq"), ("oslo", "north"), ("hq", "main")):
        rename(project, f"IPPolicyRule/office-{old}", f"IPPolicyRule/office-{new}")
    assert list_moves(project) == {
        "IPPolicyRule/office-main": ["IPPolicyRule/office-berlin", "IPPolicyRule/office-hq"],
        "IPPolicyRule/office-north": ["IPPolicyRule/office-oslo"],
    }


@pytest.mark.parametrize(
    ("items", "renamed"),
    [("[a, b]", "[c, b]"), ("\n  - b\n  - 'a'", "\n  - b\n  - 'c'"), ('["a"]', '["c"]')],
)
def test_an_item_of_a_list_is_its_own_key(project: ProjectFolder, items: str, renamed: str) -> None:
    text = f"kind: IPPolicy\nname: ${{{{ each.key }}}}\nfor_each: {items}\nspec: {{}}\n"
    project.write("manifests/a.yaml", text)
    changed = rename(project, "IPPolicy/a", "IPPolicy/c")
    assert changed["manifests/a.yaml"] == text.replace(items, renamed).replace("spec:", "moved: {c: IPPolicy/a}\nspec:")
    assert list_moves(project) == {"IPPolicy/c": ["IPPolicy/a"]}


@pytest.mark.parametrize("declared", ["[a, b]", "{type: list, default: [a, b]}"])
def test_the_key_in_a_variable_of_the_project_file_is_renamed(project: ProjectFolder, declared: str) -> None:
    project.write("reconciler.yaml", f"stack: shop\nvariables: {{names: {declared}}}\n")
    project.write("manifests/a.yaml", "kind: IPPolicy\nname: ${{ each.key }}\nfor_each: ${{ var.names }}\nspec: {}\n")
    changed = rename(project, "IPPolicy/a", "IPPolicy/c")
    assert changed["reconciler.yaml"].endswith(f"{declared.replace('[a', '[c')}}}\n")
    assert list_moves(project) == {"IPPolicy/c": ["IPPolicy/a"]}


def test_inline_children_of_the_item_move_with_it(project: ProjectFolder) -> None:
    project.write(
        "manifests/a.yaml",
        "kind: IPPolicy\nname: ${{ each.key }}\nfor_each: [a, b]\nspec: {}\n"
        "rules:\n  lan: {cidr: 10.0.0.0/8, action: allow}\n",
    )
    rename(project, "IPPolicy/a", "IPPolicy/c")
    assert list_moves(project) == {"IPPolicy/c": ["IPPolicy/a"], "IPPolicyRule/c-lan": ["IPPolicyRule/a-lan"]}


def test_the_object_is_moved_by_hand_with_a_map_from_key_to_address(project: ProjectFolder) -> None:
    text = (
        "kind: IPPolicy\nname: ${{ each.key }}\nfor_each: [a, b]\nmoved: {a: [IPPolicy/x, IPPolicy/y], B: IPPolicy/z}\n"
    )
    project.write("manifests/a.yaml", text)
    assert project.problem_lines() == [
        "manifests/a.yaml:4:38: IPPolicy/${{ each.key }}.moved.B: no item has the key 'B'; did you mean b?"
    ]
    project.write("manifests/a.yaml", text.replace("B:", "b:"))
    assert list_moves(project) == {"IPPolicy/a": ["IPPolicy/x", "IPPolicy/y"], "IPPolicy/b": ["IPPolicy/z"]}


def test_an_item_within_a_component_moves_with_the_name_of_the_instance(project: ProjectFolder) -> None:
    project.write(
        "components/part.yaml",
        "inputs: {}\n---\nkind: IPPolicy\nname: p-${{ each.key }}\nfor_each: [new]\nmoved: {new: IPPolicy/p-old}\n",
    )
    project.write("manifests/a.yaml", "component: part\nname: x\n")
    assert list_moves(project) == {"IPPolicy/x-p-new": ["IPPolicy/x-p-old"]}
    project.write("manifests/a.yaml", "component: part\nname: x\nmoved: y\n")
    (line,) = project.problem_lines()
    assert "moves items while the instance has a former name" in line


def test_an_instance_of_a_list_of_uses_moves_by_its_key(project: ProjectFolder) -> None:
    project.write("components/part.yaml", "inputs: {}\n---\nkind: IPPolicy\nname: p\n")
    project.write("manifests/a.yaml", "component: part\nname: ${{ each.key }}\nfor_each: [new]\nmoved: {new: old}\n")
    assert list_moves(project) == {"IPPolicy/new-p": ["IPPolicy/old-p"]}


@pytest.mark.parametrize(
    ("texts", "reason"),
    [
        (
            {"manifests/a.yaml": "kind: IPPolicy\nname: n-${{ each.key }}\nfor_each: [a]\nspec: {}\n"},
            "its name is n-${{ each.key }}: a name from the same list begins with 'n-'",
        ),
        (
            {
                "manifests/a.yaml": "kind: IPPolicy\nname: n-${{ each.key }}\nfor_each: [a]\n"
                "spec: {description: 'x ${{ each.key }}'}\n"
            },
            "its name is n-${{ each.key }}: a name from the same list begins with 'n-'",
        ),
        (
            {"manifests/a.yaml": "kind: IPPolicy\nname: ${{ each.value.n }}\nfor_each: [{n: n-a}]\nspec: {}\n"},
            "and no key of it is its name",
        ),
        (
            {
                "manifests/a.yaml": "kind: IPPolicy\nname: ${{ each.key }}\nfor_each: ${{ var.names }}\nspec: {}\n",
                "reconciler.yaml": "stack: shop\nvariables: {names: [n-a]}\n",
                "environments/prod.yaml": "variables: {names: [n-a, b]}\n",
            },
            "its for_each is the variable names, which reconciler.yaml and environments/prod.yaml set",
        ),
        (
            {
                "manifests/a.yaml": "kind: IPPolicy\nname: ${{ each.key }}\nfor_each: [n-a]\n"
                "spec: {description: 'x ${{ each.key }}'}\n"
            },
            "spec uses each.key too, and would change; write that value in each item",
        ),
        (
            {
                "manifests/a.yaml": "kind: IPPolicy\nname: ${{ each.key }}\nfor_each: [n-a]\n"
                "moved: 'IPPolicy/old-${{ each.key }}'\n"
            },
            "moved is no map from the keys of for_each",
        ),
        (
            {
                "manifests/a.yaml": "kind: IPPolicy\nname: ${{ each.key }}\nfor_each: [n-a]\nspec: {}\nrules:\n"
                "  lan: {cidr: 10.0.0.0/8, action: allow, moved: 'IPPolicyRule/${{ each.key }}-x'}\n"
            },
            "moved of an inline child uses each.key, and would name another former address; apply what it says",
        ),
    ],
)
def test_an_item_that_cannot_be_renamed_is_refused_with_the_reason(
    tmp_path: Path, texts: dict[str, str], reason: str
) -> None:
    project = ProjectFolder(tmp_path)
    for path, text in texts.items():
        project.write(path, text)
    with pytest.raises(UnusableEdit) as refused:
        rename(project, "IPPolicy/n-a", "IPPolicy/c")
    assert reason in str(refused.value)
