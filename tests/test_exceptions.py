"""docs/architecture.md draws the exceptions of the product: each class with its base class, and no other."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import reconciler
from reconciler.cli.terminal import output
from reconciler.engine import ports
from reconciler.model.problem import Rejected
from reconciler.store import errors as store_errors

ROOT = Path(__file__).parents[1]
TREE = re.compile(r"(?P<branch>(?:(?:│   )*[├└]── )?)(?P<name>[A-Z]\w+) +(?P<code>[0-9]+)  \S")


def _section() -> str:
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    return text.partition("\n## Exceptions\n")[2].partition("\n## ")[0]


def _read_trees() -> Iterator[tuple[str, str, int]]:
    """Each class of the trees: name, name of the base class, exit code."""
    path = ["Exception"]
    for line in _section().split("```")[1].strip().splitlines():
        if not line:
            continue
        match = TREE.match(line)
        assert match is not None, line
        depth = len(match["branch"]) // 4 + 1
        yield match["name"], path[depth - 1], int(match["code"])
        path[depth:] = [match["name"]]


def _read_table() -> set[str]:
    """The classes of the table below the trees."""
    table = _section().partition("| exception | exit code |")[2]
    cells = (line.split("|")[1] for line in table.splitlines() if line.startswith("| `"))
    return {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}


_DERIVED = re.compile(r"^ *class \w+\(", re.MULTILINE)


@cache
def _find_classes() -> dict[str, str]:
    """Each public exception class of the product, and its base class: `Exception` for a standard exception."""
    pairs: list[tuple[str, str]] = []
    for file in sorted((ROOT / "reconciler").rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        nodes = ast.walk(ast.parse(text)) if _DERIVED.search(text) else ()
        classes = [node for node in nodes if isinstance(node, ast.ClassDef) and node.bases]
        pairs += [(node.name, ast.unparse(node.bases[0]).rpartition(".")[2]) for node in classes]
    found: dict[str, str] = {}
    while added := {name: base for name, base in pairs if name not in found and (base in found or _is_standard(base))}:
        found |= {name: base if base in found else "Exception" for name, base in added.items()}
    return {name: base for name, base in found.items() if not name.startswith("_")}


def _is_standard(name: str) -> bool:
    found = getattr(builtins, name, None)
    return isinstance(found, type) and issubclass(found, BaseException)


def test_each_exception_is_drawn_or_listed_once() -> None:
    trees = [name for name, _, _ in _read_trees()]
    assert len(set(trees)) == len(trees)
    assert not _read_table() & set(trees)
    assert _read_table() | set(trees) == set(_find_classes())


def test_each_tree_has_the_base_classes_of_the_code() -> None:
    defined = _find_classes()
    assert {name: base for name, base, _ in _read_trees()} == {name: defined[name] for name, _, _ in _read_trees()}


@pytest.mark.parametrize(("name", "code"), [(name, code) for name, _, code in _read_trees()])
def test_an_exception_ends_a_command_with_the_drawn_exit_code(name: str, code: int) -> None:
    kind = getattr(reconciler, name)
    if issubclass(kind, Rejected):
        error = kind([])
    else:
        error = kind.__new__(kind) if issubclass(kind, store_errors.StoreError) else kind("text")
    assert output.print_error(error) == code


def test_a_refused_api_key_ends_a_command_with_a_code_of_its_own() -> None:
    assert "6 if the API key is the reason (401, 403)" in _section()
    assert {output.print_error(ports.Refused("text", status=status)) for status in (401, 403)} == {6}
