"""Every code of a problem is in the catalog, with its meaning, cause and remedy."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import reconciler
from reconciler.model.codes import AREAS, CODES, is_strict
from reconciler.model.problem import Problem, Severity

ROOT = Path(reconciler.__file__).parent
THEIRS = ("api", "engine", "sandbox")  # their codes are those of the platform
SOURCES = [path for path in sorted(ROOT.rglob("*.py")) if path.relative_to(ROOT).parts[0] not in THEIRS]


@cache
def _parse(source: Path) -> ast.AST:
    return ast.parse(source.read_text())


def _texts(expression: ast.expr) -> set[str]:
    """The texts that an expression may return, without those that it compares or looks up."""
    match expression:
        case ast.Constant(str(text)):
            return {text} - {""}
        case ast.IfExp(body=body, orelse=other):
            return _texts(body) | _texts(other)
        case ast.Call(func=ast.Attribute(attr="get"), args=[_, other]):
            return _texts(other)
    return set()


def _takers(tree: ast.AST) -> Iterator[tuple[str, int | None]]:
    """Functions and classes of a module with a parameter `code`, and its position."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name, args=taken):
                names = [one.arg for one in taken.args if one.arg != "self"]
                if "code" in names or "code" in [one.arg for one in taken.kwonlyargs]:
                    yield name, names.index("code") if "code" in names else None
            case ast.ClassDef(name=name, body=body):
                fields = [one.target.id for one in body if isinstance(one, ast.AnnAssign) and hasattr(one.target, "id")]
                if "code" in fields:
                    yield name, fields.index("code")


def _defaults(taken: ast.arguments) -> Iterator[tuple[ast.arg, ast.expr]]:
    yield from zip(taken.args[len(taken.args) - len(taken.defaults) :], taken.defaults, strict=True)
    yield from ((one, value) for one, value in zip(taken.kwonlyargs, taken.kw_defaults, strict=True) if value)


def _codes(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Every literal code in a module, and its line."""
    takers = dict(_takers(tree))
    for node in ast.walk(tree):
        codes: list[ast.expr] = []
        match node:
            case ast.FunctionDef(args=taken):
                codes += [value for one, value in _defaults(taken) if one.arg == "code"]
            case ast.Assign(targets=[ast.Name("_RULES")], value=ast.Dict(values=values)):
                codes += values
            case ast.AnnAssign(target=ast.Name("_RULES"), value=ast.Dict(values=values)):
                codes += values
            case ast.Call(func=ast.Name(name) | ast.Attribute(attr=name), args=args, keywords=words):
                codes += [word.value for word in words if word.arg == "code"]
                place = takers.get(name)
                codes += [args[place]] if place is not None and place < len(args) else []
            case ast.Assign(targets=[ast.Name("code")], value=value):
                codes.append(value)
        yield from ((value.lineno, text) for value in codes for text in _texts(value))


def test_every_code_is_in_the_catalog() -> None:
    wrong = [
        f"{source.relative_to(ROOT)}:{line}: {code}"
        for source in SOURCES
        if "code" in source.read_text(encoding="utf-8")
        for line, code in _codes(_parse(source))
        if code not in CODES
    ]
    assert not wrong, "add the code to model/codes.py"


def test_the_scan_finds_codes_in_every_form_of_a_call() -> None:
    source = """
class Flaw:
    text: str
    code: str
def _doubt(at, code): return Finding(at, code=code)
class Reader:
    def _problem(self, mark, code): ...
Problem(text, code="a")
Finding(path, *both, code="b" if surely else "c")
_doubt(at, "d")
self._problem(mark, "e")
Flaw(what, "f")
code = "g"
Finding(path, code=RULES.get(name, "h"))
"""
    assert sorted(code for _, code in _codes(ast.parse(source))) == [*"abcdefgh"]


def test_every_code_of_the_catalog_is_used() -> None:
    used = {
        node.value
        for source in SOURCES
        if source.name != "codes.py"
        for node in ast.walk(_parse(source))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert not CODES.keys() - used


def test_the_catalog_has_a_meaning_a_cause_and_a_remedy_for_each_code() -> None:
    assert sum(map(len, AREAS.values())) == len(CODES), "a code is in two areas"
    for code, entry in CODES.items():
        assert re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", code)
        for text in (entry.meaning, entry.cause, entry.remedy):
            assert text[:1].isupper() or text[:1] in "`$-", (code, text)
            assert text.endswith("."), (code, text)
        assert not entry.is_strict or Severity.WARNING in entry.severities, code


def test_strict_never_fails_on_types_that_this_version_does_not_know() -> None:
    doubts = {code for code in CODES if code.startswith("unknown") and Severity.ERROR not in CODES[code].severities}
    assert not [code for code in doubts if is_strict(code)]
    assert not is_strict("not-a-code")


def test_values_of_a_problem_are_truncated_like_its_text() -> None:
    problem = Problem("is long", code="unknown-field", values={"field": "x" * 10_000, "limit": 3})
    assert len(problem.values["field"]) <= 120
    assert problem.values["limit"] == 3
    assert hash(problem) == hash(Problem("is long", code="unknown-field"))
