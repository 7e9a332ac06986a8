"""The hooks that `.pre-commit-hooks.yaml` offers: their entries, run in a project as pre-commit would."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
import yaml

from reconciler.cli.main import main

HOOKS = yaml.safe_load((Path(__file__).parents[2] / ".pre-commit-hooks.yaml").read_text())
GOOD = "kind: IPPolicy\nname: office\nspec:\n  description: Office\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "manifests").mkdir()
    (tmp_path / "reconciler.yaml").write_text("version: 1\nstack: prod\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "manifests" / "all.yaml"


def run(hook: dict[str, str]) -> int:
    program, *words = shlex.split(hook["entry"])
    assert program == "reconciler"
    return main(words)


def test_each_hook_has_the_keys_that_pre_commit_requires() -> None:
    for hook in HOOKS:
        assert hook.keys() >= {"id", "name", "entry", "language"}
        assert (hook["language"], hook["pass_filenames"]) == ("python", False)


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: hook["id"])
def test_a_hook_passes_on_a_valid_and_formatted_manifest(hook: dict[str, str], project: Path) -> None:
    project.write_text(GOOD)
    assert run(hook) == 0


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("reconciler-validate", GOOD.replace("description", "descripton")),
        ("reconciler-fmt", GOOD.replace("  description", "      description")),
    ],
)
def test_a_hook_fails_on_an_invalid_or_unformatted_manifest(name: str, wrong: str, project: Path) -> None:
    (hook,) = (hook for hook in HOOKS if hook["id"] == name)
    project.write_text(wrong)
    assert run(hook) == 1
    assert project.read_text() == wrong
