"""The budget of a project: no insertion, repetition or function makes a value larger than what was charged for it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconciler.model.problem import Rejected
from reconciler.model.value import Secret, Template
from reconciler.project.documents import budget as limits
from reconciler.project.documents.budget import Budget, OverBudget
from reconciler.project.manifests import load
from reconciler.project.manifests.load import Loaded, load_manifests
from reconciler.project.settings.config import load_config
from tests.bench import worlds
from tests.harness.tiers import examples

WORDS = st.text("ab: ,[]{}é", max_size=12)  # without `$`, which would begin an expression
TEXTS = st.sampled_from(
    [
        "${{ var.text }}",
        "x ${{ var.text }}${{ var.text }}",
        "${{ format('{0}{0}', var.text) }}",
        "${{ join(split(var.text, 'a'), 'bb') }}",
        "${{ lower(var.text) }} plain",
        "plain",
    ]
)
OF_ITEM = st.sampled_from(
    [
        "${{ each.value }}",
        "${{ each.value }} and ${{ each.value }}${{ each.key }}",
        "${{ format('{0}{1}', each.value, each.key) }}",
        "${{ format('{0}{1}', each.value, var.text) }}",
        "${{ lower(each.value) }} ${{ var.text }}",
        "plain",
    ]
)


def measure(value: Any) -> tuple[int, int]:
    """The number of characters and of values in a value."""
    match value:
        case str():
            return len(value), 1
        case Secret():
            return len(value.reveal()), 1
        case Template():
            return sum(len(part) for part in value.parts if isinstance(part, str)), 1
        case dict():
            inside = [measure(item) for pair in value.items() for item in pair]
        case list():
            inside = [measure(item) for item in value]
        case _:
            return 0, 1
    return sum(characters for characters, _ in inside), 1 + sum(values for _, values in inside)


def measure_specs(loaded: Loaded) -> tuple[int, int, int]:
    sizes = [measure(declaration.spec) for declaration in loaded.manifest.declarations.values()]
    return sum(size for size, _ in sizes), sum(values for _, values in sizes), len(sizes)


PROJECTS = st.fixed_dictionaries(
    {
        "text": WORDS,
        "file": WORDS,
        "default": TEXTS,
        "patch": TEXTS,
        "description": TEXTS,
        "of_item": OF_ITEM,
        "items": st.dictionaries(st.from_regex(r"[a-z][a-z0-9]{0,4}", fullmatch=True), WORDS, min_size=1, max_size=5),
        "headers": st.dictionaries(st.from_regex(r"[a-z]{1,6}", fullmatch=True), TEXTS, max_size=4),
        "is_aliased": st.booleans(),
    }
)


def write(root: Path, project: dict[str, Any]) -> None:
    (root / "manifests").mkdir(exist_ok=True)
    (root / "environments").mkdir(exist_ok=True)
    (root / "body.txt").write_text(project["file"], encoding="utf-8")
    settings = {
        "stack": "shop",
        "variables": {"text": project["text"]},
        "defaults": {"HTTPResponseBackend": {"spec": {"metadata": project["default"]}}},
    }
    (root / "reconciler.yaml").write_text(json.dumps(settings), encoding="utf-8")
    patch = {"HTTPResponseBackend/one": {"spec": {"description": project["patch"]}}}
    (root / "environments/prod.yaml").write_text(json.dumps(patch), encoding="utf-8")
    spec = {"body": {"from_file": "body.txt"}, "description": project["description"], "headers": project["headers"]}
    one = {"kind": "HTTPResponseBackend", "name": "one", "spec": spec}
    many = {
        "kind": "HTTPResponseBackend",
        "name": "n-${{ each.key }}",
        "for_each": project["items"],
        "spec": {"body": project["of_item"], "description": {"from_file": "body.txt"}},
    }
    texts = [json.dumps(one), json.dumps(many)]
    if project["is_aliased"]:
        shared = json.dumps(project["text"] + "shared")
        texts.append(f"kind: IPPolicy\nname: p\nspec: {{description: &a {shared}, metadata: *a}}")
    (root / "manifests/all.yaml").write_text("\n---\n".join(texts) + "\n", encoding="utf-8")


def load_with(root: Path, budget: Budget, monkeypatch: pytest.MonkeyPatch) -> Loaded:
    with monkeypatch.context() as patched:
        patched.setattr(load, "Budget", lambda: budget)
        return load_manifests(load_config(root, {}, "prod"), {})


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(100), deadline=None)
@given(PROJECTS)
def test_no_value_is_larger_than_what_was_charged_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, project: dict[str, Any]
) -> None:
    write(tmp_path, project)
    budget = Budget()
    loaded = load_with(tmp_path, budget, monkeypatch)
    characters, values, _ = measure_specs(loaded)
    charged = Budget()
    assert characters <= charged.characters - budget.characters
    assert values <= charged.values - budget.values
    assert charged.instances - budget.instances == len(project["items"])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(60), deadline=None)
@given(PROJECTS, st.integers(0, 100), st.sampled_from(["characters", "values", "instances"]))
def test_a_project_fits_its_budget_or_is_refused_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, project: dict[str, Any], percent: int, name: str
) -> None:
    write(tmp_path, project)
    whole = Budget()
    load_with(tmp_path, whole, monkeypatch)
    needed = getattr(Budget(), name) - getattr(whole, name)
    small = Budget()
    setattr(small, name, needed * percent // 100)
    if percent == 100:
        load_with(tmp_path, small, monkeypatch)
        assert getattr(small, name) == 0
        return
    with pytest.raises(Rejected) as rejected:
        load_with(tmp_path, small, monkeypatch)
    over = [problem for problem in rejected.value.problems if problem.code == "limit-exceeded"]
    assert len(over) == 1
    assert over[0].position is not None
    assert over[0].position.file == "manifests/all.yaml"


CHARGES: list[tuple[str, int, Callable[[Budget], None]]] = [
    ("characters", 5, lambda budget: budget.charge("12345")),
    ("characters", 5, lambda budget: budget.charge_text("12345")),
    ("characters", 8, lambda budget: budget.charge("éé")),
    ("characters", 5, lambda budget: budget.charge_file(b"12345")),
    ("values", 3, lambda budget: budget.charge([1, 2])),
    ("values", 3, lambda budget: budget.charge({"a": 1})),
    ("values", 1, lambda budget: budget.charge_key("a")),
    ("values", 3, lambda budget: budget.charge_content(b"a: 1\n")),
    ("values", 10, lambda budget: budget.charge_copies(10, 0)),
    ("values", 40, lambda budget: budget.charge_addresses(2, 0)),
    ("characters", 5, lambda budget: budget.charge_addresses(0, 5)),
    ("instances", 1, lambda budget: budget.charge_instance()),
]


@pytest.mark.parametrize(("name", "number", "charge"), CHARGES, ids=map(str, range(len(CHARGES))))
def test_a_project_one_above_a_limit_is_refused(name: str, number: int, charge: Callable[[Budget], None]) -> None:
    budget = Budget()
    setattr(budget, name, number)
    charge(budget)
    assert getattr(budget, name) == 0
    setattr(budget, name, number - 1)
    with pytest.raises(OverBudget) as over:
        charge(budget)
    assert over.value.is_first
    with pytest.raises(OverBudget) as again:
        charge(budget)
    assert not again.value.is_first


def test_50_000_ordinary_resources_fit(tmp_path: Path) -> None:
    worlds.project(tmp_path, 500)
    budget = Budget()
    for file in sorted(tmp_path.rglob("manifests/**/*.yaml")):
        for _ in range(100):
            budget.charge_file(file.read_bytes())
            budget.charge_content(file.read_bytes())
    assert budget.characters < limits.MAX_CHARACTERS
    for _ in range(50_000):
        budget.charge_instance()
