"""Checks the expressions of traffic policies: names, members, methods, types, and that conditions are booleans.

Google's implementation of CEL checks types against the variables and functions of `traffic_catalog`. Certain mistakes
are errors. Unknown names are warnings, since the platform adds names.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import cache, lru_cache
from typing import Any, Final

from msgspec import Struct

from reconciler.languages import cel, traffic_catalog
from reconciler.model.problem import Severity
from reconciler.model.suggestions import closest

_UNCLEAR: Final = "check the spelling"
_LANGUAGE: Final = "expressions are written in CEL (https://cel.dev)"
_SELECT_ERROR: Final = re.compile(r"expression of type '(.*?)' cannot be the operand of a select operation")
_OVERLOAD_ERROR: Final = re.compile(r"found no matching overload for '(.*?)' applied to '\((.*)\)'")
_HAS: Final = re.compile(r"\bhas\(\s*([A-Za-z_][\w.]*)(\[\s*(?:'[^'\\]*'|\"[^\"\\]*\")\s*\])?\s*\)")
_SORT_BY: Final = ".sortBy("  # a macro that the implementation lacks
_SPLIT: Final = (".split()", ".SPLIT()")  # the implementation requires a separator, and no second declaration
_TEXTS: Final = frozenset({"string", "list(string)"})
_QUOTED: Final = r"""(?:'\d+(?:\.\d+)?'|"\d+(?:\.\d+)?")"""
_QUOTED_BEFORE: Final = re.compile(rf"{_QUOTED}\s*$")
_QUOTED_AFTER: Final = re.compile(rf"(?:[<>=!]=|[<>])\s*{_QUOTED}|in\s*\[\s*{_QUOTED}(?:\s*,\s*{_QUOTED})*\s*\]")
_SORT: Final = re.compile(r"\.sort\(\s*([A-Za-z_]\w*)\s*,\s*([A-Za-z_]\w*)\s*,")  # names that guides bind so
_NUMBERS: Final = frozenset({"int", "uint", "double"})
_KNOWN_TYPES: Final = frozenset("BOOL BYTES DOUBLE DURATION INT LIST MAP STRING TIMESTAMP UINT".split())  # noqa: SIM905


class Flaw(Struct, frozen=True):
    """A problem of an expression, with its line and column in the expression, from 1."""

    text: str
    remedy: str
    severity: Severity
    code: str
    line: int = 1
    column: int = 1


@lru_cache(maxsize=4096)
def find_flaws(text: str, *, is_condition: bool = True) -> tuple[Flaw, ...]:
    """Checks an expression. Returns its problems in the order of the text. `is_condition`: it must be a boolean."""
    checked = _HAS.sub(_replace_has, text).replace(*_SPLIT)
    if (wrong := cel.find_syntax_error(checked)) is not None:
        what = f"the expression {wrong.text}"
        return (
            Flaw(
                what,
                _LANGUAGE,
                Severity.ERROR,
                "traffic-syntax",
                wrong.line,
                wrong.column,
            ),
        )
    if _SORT_BY in checked:
        return tuple(_unknown_names(checked.replace(_SORT_BY, ".map   (")))
    kind, problems = cel.check_types(checked, _language())
    found = {(flaw.line, flaw.column): flaw for flaw in _flaws(checked, problems)}
    if not found and is_condition and kind not in ("BOOL", "DYN", ""):
        what = f"the condition evaluates to {cel.describe_type(kind)}, not to true or false"
        return (
            Flaw(
                what,
                "compare it with a value, as in `conn.client_ip == '192.0.2.1'`",
                Severity.ERROR,
                "traffic-condition",
            ),
        )
    bound = {f"unknown variable {name!r}" for names in _SORT.findall(checked) for name in names}
    return tuple(found[place] for place in sorted(found) if found[place].text not in bound)


@cache
def _language() -> Any:
    functions: dict[tuple[str, bool], list[Any]] = {("SPLIT", True): [(["string"], "list<string>")]}
    for table in (traffic_catalog.FUNCTIONS, traffic_catalog.METHODS):
        for receiver, name, arguments, result in traffic_catalog.signatures(table):
            every = ([receiver] if receiver else []) + list(arguments)
            functions.setdefault((name, bool(receiver)), []).append((every, result))
    holders = traffic_catalog.members().keys() - traffic_catalog.variables().keys() - {""}
    return cel.make_typed_environment(traffic_catalog.variables(), holders, functions)


def _replace_has(found: re.Match[str]) -> str:
    """Replaces `has(…)` of a known name by a text of the same length that the implementation accepts.

    The implementation accepts neither variables with dotted names nor an index in `has`; the platform documents both.
    """
    name, index = found[1], found[2]
    known = name in traffic_catalog.variables() or name in traffic_catalog.members()
    return "true".ljust(len(found[0])) if known and (index is None or name in traffic_catalog.variables()) else found[0]


def _unknown_names(text: str) -> Iterator[Flaw]:
    for unknown in cel.find_unknown_names(text, traffic_catalog.members()[""]):
        if not unknown.is_function:
            yield _report_unknown(
                "traffic-variable", unknown.name, traffic_catalog.members()[""], unknown.line, unknown.column
            )
        elif unknown.name not in traffic_catalog.functions():
            yield _report_unknown(
                "traffic-function", unknown.name, traffic_catalog.functions(), unknown.line, unknown.column
            )


def _flaws(text: str, problems: Collection[cel.TypeProblem]) -> Iterator[Flaw]:
    lines = text.split("\n")
    calls = {  # positions of the receivers of unknown functions: not reported a second time
        (
            problem.line,
            problem.column - len(problem.undeclared_name) - len(_receiver_of(lines[problem.line - 1], problem)) - 1,
        )
        for problem in problems
        if problem.undeclared_name and _is_call(lines[problem.line - 1], problem)
    }
    for problem in problems:
        line = lines[problem.line - 1] if 0 < problem.line <= len(lines) else ""
        if not problem.undeclared_name:
            yield from _check_type_problem(line, problem)
        elif _is_call(line, problem):
            yield _check_call(line, problem)
        elif (problem.line, problem.column) not in calls or problem.undeclared_name in traffic_catalog.members()[""]:
            yield from _check_variable(line, problem)


def _is_call(line: str, problem: cel.TypeProblem) -> bool:
    return line[problem.column - 1 : problem.column] == "("


def _receiver_of(line: str, problem: cel.TypeProblem) -> str:
    """The receiver of a method call; empty for a function."""
    begin = problem.column - 1 - len(problem.undeclared_name)
    return _receiver(line, begin - 1) if line[begin - 1 : begin] == "." else ""


def _check_call(line: str, problem: cel.TypeProblem) -> Flaw:
    name = problem.undeclared_name
    begin = problem.column - len(name)
    if not line[: begin - 1].endswith("."):
        if name in traffic_catalog.functions():
            what = f"{name} is called with the wrong number of arguments"
            return Flaw(what, _usage(name), Severity.WARNING, "traffic-types", problem.line, begin)
        return _report_unknown("traffic-function", name, traffic_catalog.functions(), problem.line, begin)
    before = _receiver_of(line, problem)
    if f"{before}.{name}" in traffic_catalog.functions():
        what = f"{before}.{name} is called with the wrong number of arguments"
        return Flaw(what, _usage(f"{before}.{name}"), Severity.WARNING, "traffic-types", problem.line, begin)
    if name in traffic_catalog.methods():
        what = f"{name} is called with arguments of the wrong type"
        remedy = f"{_usage(name)}, or list<dyn>.sortBy(x, key)" if name == "sort" else _usage(name)
        # Of a method that is the platform's own, it may have forms that it does not document.
        severity = Severity.ERROR if name in traffic_catalog.OWN_METHODS else Severity.WARNING
        return Flaw(what, remedy, severity, "traffic-method", problem.line, begin)
    spaces = [full for full in traffic_catalog.functions() if full.startswith(f"{before}.")]
    if spaces:
        known = frozenset(full.rpartition(".")[2] for full in spaces)
        if name not in known:
            return _report_unknown("traffic-function", name, known, problem.line, begin, prefix=f"{before}.")
    flaw = _report_unknown("traffic-method", name, traffic_catalog.methods(), problem.line, begin)
    if flaw.severity is Severity.ERROR or not before:
        return flaw
    kind, wrong = cel.check_types(before, _language())
    if wrong and "." not in before and before.isidentifier() and before not in traffic_catalog.members()[""]:
        return _report_unknown(
            "traffic-function", f"{before}.{name}", traffic_catalog.functions(), problem.line, begin - len(before) - 1
        )
    kind = kind.partition("<")[0]
    if wrong or kind not in _KNOWN_TYPES:
        return flaw
    what = f"{cel.describe_type(kind)} has no method {name!r}"
    return Flaw(what, flaw.remedy, Severity.ERROR, "traffic-method", problem.line, begin)


def _usage(name: str) -> str:
    """How a documented function or method is called: `write rand.int() or rand.int(int, int)`."""
    calls = [
        f"{receiver}.{called}({', '.join(arguments)})" if receiver else f"{called}({', '.join(arguments)})"
        for table in (traffic_catalog.FUNCTIONS, traffic_catalog.METHODS)
        for receiver, called, arguments, _ in traffic_catalog.signatures(table)
        if called == name
    ]
    return f"write {' or '.join(calls)}" if calls else "check the number and types of its arguments"


def _check_variable(line: str, problem: cel.TypeProblem) -> Iterator[Flaw]:
    """Reports an unknown variable, or an unknown member of a known one."""
    owner, _, member = problem.undeclared_name.rpartition(".")
    if not owner:
        yield _report_unknown("traffic-variable", member, traffic_catalog.members()[""], problem.line, problem.column)
    elif owner in traffic_catalog.members():
        yield _report_unknown_member(owner, member, problem.line, problem.column + 1)
    else:
        begin = max(1, problem.column - len(owner))
        yield _report_unknown(
            "traffic-variable", owner.partition(".")[0], traffic_catalog.members()[""], problem.line, begin
        )


def _check_type_problem(line: str, problem: cel.TypeProblem) -> Iterator[Flaw]:
    if (selected := _SELECT_ERROR.match(problem.text)) is not None:
        if selected[1] == "*error*":
            return
        at = problem.column
        if line[at - 1 : at] == "(":  # of has()
            whole = re.match(r"\(\s*([\w.]+)", line[at - 1 :])
            owner, _, member = whole[1].rpartition(".") if whole else ("", "", "")
            at += whole.start(1) + len(owner) if whole else 0
        else:
            owner = re.sub(r"\s", "", _receiver(line, at - 1))
            named = re.match(r"\??\s*(\w*)", line[at:])
            member = named[1] if named else ""
        if line[at : at + 1] == "?":
            what = "the expression could not be checked: optional members are not documented"
            yield Flaw(
                what, f"write has({owner}.{member}) && …", Severity.WARNING, "traffic-unchecked", problem.line, at
            )
        elif owner in traffic_catalog.members():
            yield _report_unknown_member(owner, member, problem.line, at + 1)
        else:
            what, remedy = (
                f"{cel.describe_type(selected[1])} has no member {member!r}",
                "remove it",
            )
            if member in traffic_catalog.methods():
                remedy = f"write {member}(…)"
            yield Flaw(what, remedy, Severity.ERROR, "traffic-member", problem.line, at + 1)
    elif (mismatch := _OVERLOAD_ERROR.match(problem.text)) is not None:
        types = mismatch[2].split(", ")
        is_uncertain = "null_type" in types or (len(set(types)) > 1 and _NUMBERS.issuperset(types))
        what, remedy = f"the expression {cel.rewrite_error(problem.text)}", _LANGUAGE
        if _TEXTS.intersection(types) and _NUMBERS.intersection(types) and _is_quoted_number(line, problem.column - 1):
            is_uncertain, remedy = True, "write the number without quotes"
        severity = Severity.WARNING if is_uncertain else Severity.ERROR
        yield Flaw(what, remedy, severity, "traffic-types", problem.line, problem.column)
    else:
        what = f"the expression could not be checked: {cel.rewrite_error(problem.text)}"
        yield Flaw(
            what,
            "simplify the expression",
            Severity.WARNING,
            "traffic-unchecked",
            max(1, problem.line),
            max(1, problem.column),
        )


def _is_quoted_number(line: str, at: int) -> bool:
    """Whether the comparison at an offset has a number in quotes on one side, as guides of the platform show it."""
    return bool(_QUOTED_AFTER.match(line, at) or _QUOTED_BEFORE.search(line[:at]))


def _report_unknown_member(owner: str, member: str, line: int, column: int) -> Flaw:
    known = traffic_catalog.members()[owner]
    full = f"{owner}.{member}"
    if (old := _old_spelling(member, known)) is not None:
        what = f"{full} is a former name"
        return Flaw(what, f"write {owner}.{old}", Severity.WARNING, "traffic-renamed", line, column)
    deeper = sorted(
        variable
        for variable in traffic_catalog.variables()
        if variable.startswith(f"{owner}.") and variable.endswith(f".{member}")
    )
    if (meant := find_misspelling(member, known)) is not None:
        what, remedy = f"{owner} has no member {member!r}", f"did you mean {owner}.{meant}?"
        return Flaw(what, remedy, Severity.ERROR, "traffic-member", line, column)
    near = closest(member, known)
    close = [*([f"{owner}.{near}"] if near else ()), *deeper]
    remedy = f"did you mean {close[0]}?" if close else _UNCLEAR
    return Flaw(f"unknown variable {full}", remedy, Severity.WARNING, "traffic-variable", line, column)


def _report_unknown(code: str, name: str, known: Collection[str], line: int, column: int, prefix: str = "") -> Flaw:
    """Reports an unknown name: an error if it is a misspelling of a known one, else a warning, since it may be new."""
    what = code.removeprefix("traffic-")
    meant = find_misspelling(name, known)
    hint = meant or traffic_catalog.OTHER_LANGUAGES.get(name) or closest(name, known)
    remedy = f"did you mean {prefix}{hint}?" if hint else _UNCLEAR
    severity = Severity.ERROR if meant else Severity.WARNING
    return Flaw(f"unknown {what} {prefix + name!r}", remedy, severity, code, line, column)


def find_misspelling(name: str, known: Collection[str]) -> str | None:
    """The known name of which a name is a misspelling: it differs in case, underscores or one letter."""
    same = [candidate for candidate in sorted(known) if _fold(candidate) == _fold(name)]
    near = [candidate for candidate in sorted(known) if len(name) > 2 and _is_one_letter_off(name, candidate)]
    return next(iter(same + near), None)


def _old_spelling(name: str, known: Collection[str]) -> str | None:
    """The current name for a name of the earlier documentation, such as `CountryCode`."""
    if not name[:1].isupper():
        return None
    return next((candidate for candidate in sorted(known) if _fold(candidate) == _fold(name)), None)


def _fold(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


def _is_one_letter_off(name: str, other: str) -> bool:
    """Whether the names differ in one letter (added, removed, replaced or swapped). Different digits do not count."""
    if re.sub(r"\D", "", name) != re.sub(r"\D", "", other) or abs(len(name) - len(other)) > 1:
        return False
    at = next((at for at, (a, b) in enumerate(zip(name, other, strict=False)) if a != b), min(len(name), len(other)))
    rest, others = name[at:], other[at:]
    swapped = rest[:2] == others[1::-1] and rest[2:] == others[2:] and len(rest) > 1
    return rest[1:] == others[1:] or rest == others[1:] or rest[1:] == others or swapped


def _receiver(line: str, end: int) -> str:
    """The expression that ends at an offset of the line: names, calls, indexes and texts."""
    at = end
    while at > 0:
        sign = line[at - 1]
        if sign.isalnum() or sign in "_.":
            at -= 1
        elif sign in ")]" and (opening := _find_opening(line, at - 1)) is not None:
            at = opening
        elif sign in "'\"" and at == end:
            at = line.rfind(sign, 0, at - 1)
            return line[max(at, 0) : end]
        else:
            break
    return line[at:end]


def _find_opening(line: str, closing: int) -> int | None:
    """Offset of the opening bracket for the closing one at an offset. Ignores that texts may contain brackets."""
    depth = 0
    for at in range(closing, -1, -1):
        depth += (line[at] in ")]") - (line[at] in "([")
        if depth == 0:
            return at
    return None
