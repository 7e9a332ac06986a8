"""The recipes of `to_command` in docs/manifests.md, with scripts instead of glab and kubectl."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from reconciler.engine.ports import Undeliverable
from reconciler.model.manifest import Delivery
from reconciler.model.value import Secret
from reconciler.project.secrets.sinks import ProjectSinks
from tests.examples.test_reference_pages import MANIFESTS, examples

TOKEN = Secret("canary-token", "test")
GLAB = """#!/bin/sh
# `update` fails for a variable that does not exist, `set` for one that does; both read the value from standard input.
echo "$@" >> log
case "$2" in
  list) test ! -e denied ;;
  update) value=$(cat); test -n "$value" && test -e "variable-$3" && printf %s "$value" > "variable-$3" ;;
  set) value=$(cat); test -n "$value" && test ! -e "variable-$3" && printf %s "$value" > "variable-$3" ;;
esac
"""
KUBECTL = """#!/bin/sh
echo "$@" >> log
case "$1" in
  auth) test ! -e denied || { echo no; exit 1; } ;;
  create) printf '{"kind": "Secret", "name": "%s", "token": "%s"}' "$4" "$(cat /dev/stdin)" ;;
  apply) test "$2" = --filename=- && cat > applied ;;
esac
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "bin").mkdir()
    for name, script in {"glab": GLAB, "kubectl": KUBECTL}.items():
        (tmp_path / "bin" / name).write_text(script, encoding="utf-8")
        (tmp_path / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    return tmp_path


def recipe(name: str) -> Delivery:
    documents: list[Any] = [document for text in examples(MANIFESTS) for document in YAML(typ="safe").load_all(text)]
    (found,) = [document for document in documents if isinstance(document, dict) and document.get("name") == name]
    command = found["deliver"]["token"]["to_command"]
    return Delivery("to_command", command["run"][0], settings=command)


async def test_the_recipe_for_gitlab_sets_and_updates_a_variable(root: Path) -> None:
    sinks = ProjectSinks(root)
    await sinks.check(recipe("dublin"))
    assert not list(root.glob("variable-*"))
    for text in ("canary-token", "canary-token-2"):
        await sinks.deliver(recipe("dublin"), Secret(text, "test"))
        assert (root / "variable-DUBLIN_TOKEN").read_text(encoding="utf-8") == text
    assert "canary" not in (root / "log").read_text(encoding="utf-8")


async def test_the_recipe_for_kubernetes_applies_a_secret(root: Path) -> None:
    sinks = ProjectSinks(root)
    await sinks.check(recipe("geneva"))
    assert not (root / "applied").exists()
    await sinks.deliver(recipe("geneva"), TOKEN)
    applied = json.loads((root / "applied").read_text(encoding="utf-8"))
    assert applied == {"kind": "Secret", "name": "geneva", "token": "canary-token"}
    assert "canary" not in (root / "log").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["dublin", "geneva"])
async def test_the_check_of_a_recipe_fails_without_access(root: Path, name: str) -> None:
    (root / "denied").touch()
    with pytest.raises(Undeliverable, match="failed with exit code 1"):
        await ProjectSinks(root).check(recipe(name))
