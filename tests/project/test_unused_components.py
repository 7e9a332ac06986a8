"""Components that nothing uses are checked too: what only a use can give is valid, other mistakes have their line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from reconciler import Runtime
from reconciler.model.problem import Problem
from reconciler.operations.opening.source import ProjectSource
from reconciler.operations.validate import validate_project
from reconciler.project.documents import budget
from reconciler.project.manifests.unused_components import find_problems
from reconciler.project.settings.config import load_config

EXAMPLES = Path(__file__).parents[2] / "examples"
HEAD = "inputs: {host: {type: string}, more: {type: map}, on: {type: boolean, default: null}}\n---\n"


def write(root: Path, texts: Mapping[str, str]) -> Path:
    for path, text in {"reconciler.yaml": "stack: s\nvariables: {zone: example.com}\n", **texts}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def check(root: Path) -> list[Problem]:
    return find_problems(load_config(root, {}), {}, {}, ())


def lines(root: Path) -> list[str]:
    return [*map(str, check(root))]


def test_the_components_of_the_examples_are_valid_without_a_use() -> None:
    assert check(EXAMPLES / "components") == []


@pytest.mark.parametrize(
    "document",
    [
        "kind: TLSEdge\nname: ${{ component.name }}\nspec: {hostports: ['${{ input.host }}.${{ var.zone }}:443']}\n",
        "kind: TLSEdge\nname: e\nspec: {hostports: '${{ split(input.host, \",\") }}', description: '$${{ a.b }}'}\n",
        "kind: TLSEdge\nname: e\nspec: ${{ input.more }}\n",
        "kind: TLSEdge\nname: e\nspec: {ip_restriction: '${{ input.more }}', metadata: '\"input.x\" of input.y'}\n",
        "kind: IPPolicy\nname: p\nwhen: ${{ input.on }}\nlifecycle: {protect: '${{ input.on }}'}\n"
        "ensure: ${{ input.host }}\nmoved: [IPPolicy/old, 'IPPolicy/${{ component.name }}']\nspec: {}\n",
        "kind: IPPolicy\nname: p-${{ each.key }}\nfor_each: ${{ input.more }}\nmoved: {a: IPPolicy/p-b}\nspec: {}\n"
        "rules:\n  lan: ${{ each.value.lan }}\n  vpn: {when: '${{ input.on }}', cidr: '${{ each.value.vpn }}', "
        "action: allow, ensure: '${{ input.host }}', moved: 'IPPolicyRule/${{ component.name }}-x'}\n",
        "kind: IPPolicy\nname: p\nspec: {}\nrules: ${{ input.more }}\n",
        "kind: IPPolicyRule\nname: r\nensure: absent\nspec: {ip_policy_id: {ref: IPPolicy/elsewhere}}\n",
        "kind: TunnelCredential\nname: c\nspec: {description: 'of ${{ IPPolicy/elsewhere.id }}'}\n"
        "deliver: {token: {to_file: 'secrets/${{ component.name }}'}}\nrotate: {after: '${{ input.host }}'}\n",
        "kind: EventDestination\nname: d\nspec: {target: {metrics: {api_key: '${{ input.more }}', service: x}}}\n",
        "component: part\nname: x-${{ each.key }}\nfor_each: ${{ input.more }}\n"
        "with: {host: '${{ each.value }}', more: {a: '${{ input.host }}'}}\n",
    ],
)
def test_values_of_a_missing_use_are_valid(tmp_path: Path, document: str) -> None:
    texts = {"components/a.yaml": HEAD + document, "components/part.yaml": HEAD.removesuffix("---\n")}
    assert lines(write(tmp_path, texts)) == []


def test_a_component_that_an_environment_uses_is_not_checked_twice(tmp_path: Path) -> None:
    wrong = f"{HEAD}kind: BotUser\nname: b\nspec: {{nam: b}}\n"
    use = "component: a\nname: x\nwith: {host: h, more: {}}\n"
    settings = "manifests: [manifests, prod]\n"
    root = write(tmp_path, {"components/a.yaml": wrong, "manifests/m.yaml": "kind: IPPolicy\nname: p\nspec: {}\n"})
    source = ProjectSource(root, runtime=Runtime(environ={}))
    (alone,) = validate_project(source)
    assert [problem.text for problem in alone.problems] == ["missing required field", "unknown field"]
    write(root, {"environments/prod.yaml": settings, "prod/m.yaml": use, "components/b.yaml": wrong})
    without, prod = validate_project(source)
    assert {problem.position.file for problem in without.problems if problem.position} == {"components/b.yaml"}
    assert [problem.text.partition(" (")[0] for problem in prod.problems] == [
        "missing required field", "unknown field", "missing required field", "unknown field"
    ]  # fmt: skip


def test_components_of_other_folders_are_not_checked(tmp_path: Path) -> None:
    root = write(tmp_path / "project", {"reconciler.yaml": "stack: s\ncomponents: [../common]\n"})
    write(tmp_path, {"common/a.yaml": "inputs: {a: {type: x}}\n"})
    (tmp_path / ".git").mkdir()
    assert lines(root) == []


def test_hostile_components_end_with_a_named_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = "".join(f"---\nkind: BotUser\nname: b{number}\nspec: {{x: 1}}\n" for number in range(700))
    root = write(tmp_path, {"components/many.yaml": f"inputs: {{}}\n{wrong}", "components/loop.yaml": "inputs: {}\n"})
    write(root, {"elsewhere.txt": "inputs: {}\n"})
    (root / "components/outside.yaml").symlink_to("/etc/hostname")
    (root / "components/folder.yaml").mkdir()
    found = lines(root)
    assert len(found) == 1000
    assert found[0] == "components/folder.yaml:1:1: components/folder.yaml is not a regular file; name a file"
    write(root, {"components/many.yaml": "inputs: {}\n"})
    assert [line.split(":")[0] for line in lines(root)] == ["components/folder.yaml", "components/outside.yaml"]
    monkeypatch.setattr(budget.Budget, "charge_file", budget.Budget(characters=1).charge_file)
    assert "characters" in lines(root)[-1]
