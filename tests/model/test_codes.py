"""Every warning that the program can give has a code of the catalog."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import reconciler
from reconciler.model.codes import CODES, is_strict

SOURCES = sorted(Path(reconciler.__file__).parent.rglob("*.py"))
SEVERITY = {"Problem": 4, "Finding": 3, "Flaw": 2}  # which positional argument it is


def _severity(call: ast.Call) -> ast.expr | None:
    """The argument for the severity, where the call has one."""
    by_name = next((each.value for each in call.keywords if each.arg == "severity"), None)
    if by_name is not None or not isinstance(call.func, ast.Name):
        return by_name
    if any(isinstance(each, ast.Starred) for each in call.args):
        return next((each for each in call.args if "Severity." in ast.unparse(each)), None)
    place = SEVERITY.get(call.func.id, len(call.args))
    return call.args[place] if place < len(call.args) else None


def _code(call: ast.Call, severity: ast.expr) -> ast.expr | None:
    by_name = next((each.value for each in call.keywords if each.arg == "code"), None)
    if by_name is not None or severity not in call.args:
        return by_name
    behind = call.args[call.args.index(severity) + 1 :]
    is_last = isinstance(call.func, ast.Name) and call.func.id == "Problem"
    return behind[-1 if is_last else 0] if behind else None


def _warnings(tree: ast.AST) -> Iterator[tuple[ast.Call, ast.expr | None]]:
    """Calls that make a problem or finding that is, or may be, a warning; and the argument for its code."""
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in (*SEVERITY, "replace"):
            severity = _severity(call)
            if severity is not None and ast.unparse(severity) != "Severity.ERROR":
                yield call, _code(call, severity)


def _given(tree: ast.AST, call: ast.Call, code: ast.expr | None) -> Iterator[ast.expr | None]:
    """The code, or where it is a variable of the function around the call: what that is set to, or called with."""
    functions = [each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef) and call in ast.walk(each)]
    if not isinstance(code, ast.Name) or not functions:
        yield code
        return
    around = functions[-1]
    assigned = [each for each in ast.walk(around) if isinstance(each, ast.Assign)]
    set_to = [each.value for each in assigned if ast.unparse(each.targets[0]) == code.id]
    yield from set_to
    if set_to:
        return
    place = [each.arg for each in around.args.args].index(code.id)
    for each in ast.walk(tree):
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Name) and each.func.id == around.name:
            yield from _given(tree, each, each.args[place])


def _texts(expression: ast.expr) -> set[str]:
    values = {each.value for each in ast.walk(expression) if isinstance(each, ast.Constant)}
    return {each for each in values if isinstance(each, str) and each}


def test_every_warning_has_a_code_of_the_catalog() -> None:
    wrong = []
    for source in SOURCES:
        tree = ast.parse(source.read_text())
        for call, written in _warnings(tree):
            for code in _given(tree, call, written):
                texts = set() if code is None else set(CODES) if isinstance(code, ast.Attribute) else _texts(code)
                if not texts or not texts <= CODES.keys():
                    wrong.append(f"{source}:{call.lineno}: {texts or 'no code'}")
    assert not wrong, "give each warning a code, and the code a row in model/codes.py"


def test_the_scan_finds_warnings_however_they_are_made() -> None:
    made = """
Problem(text, remedy, "", None, Severity.WARNING)
Problem(text, severity=Severity.WARNING)
Finding(path, text, remedy, Severity.WARNING)
Finding(path, *both, Severity.WARNING)
Finding(path, text, remedy, severity)
replace(problem, severity=Severity.WARNING)
"""
    assert [code for _, code in _warnings(ast.parse(made))] == [None] * 6
    assert not list(_warnings(ast.parse("Problem(text, severity=Severity.ERROR); Finding(path, text, remedy)")))


def test_every_code_of_the_catalog_is_used() -> None:
    used = {
        each.value
        for source in SOURCES
        if source.name != "codes.py"
        for each in ast.walk(ast.parse(source.read_text()))
        if isinstance(each, ast.Constant) and isinstance(each.value, str)
    }
    assert CODES.keys() <= used


def test_strict_never_fails_on_what_this_version_does_not_know() -> None:
    assert not [code for code in CODES if code.startswith("unknown") and is_strict(code)]
    assert not is_strict("not-a-code")
