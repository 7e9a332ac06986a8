"""The functions of `${{ … }}`: lower, join, split, default and format. Pure, and without access to secrets.

An expression is a call such as `lower(var.name)` or `join(split(var.hosts, ","), "-")`. Its arguments are variables,
texts in quotes, numbers, and other calls; within `for_each` also `each.key` and `each.value.name`. References are not
arguments: their values are known only after an apply.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from reconciler.languages.yaml import scalars
from reconciler.model.numerals import Spelled
from reconciler.model.problem import cut
from reconciler.model.suggestions import did_you_mean
from reconciler.model.value import Json
from reconciler.project.documents import phrases

NAMES: Final = ("lower", "join", "split", "default", "format")
MAX_LENGTH: Final = 100_000  # characters or items of a result
_MAX_DEPTH: Final = 8
_LONGEST_NUMBER: Final = 40  # characters
_CALL: Final = re.compile(rf"({'|'.join(NAMES)})\s*\(")
_ANY_CALL: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\s*\(")
_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<text>"(?:[^"\\]|\\.)*"|'[^']*')|(?P<number>-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)(?![A-Za-z0-9_])"""
    r"""|(?P<name>[A-Za-z_][A-Za-z0-9_./-]*)|(?P<mark>[(),]))"""
)
_END: Final = re.compile(r"\s*\Z")
_NUMBER: Final = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_WHOLE: Final = re.compile(r"\$\{\{\s*((?:(?!\}\}).)*)\}\}", re.DOTALL)
_FIELD: Final = re.compile(r"\{([0-9]+)\}")

Lookup = Callable[[str], Json]
"""The value of a name such as `var.region`. None: it has no value."""


class InvalidCall(Exception):
    """A function call is wrong. `remedy`: what to write."""

    def __init__(self, text: str, remedy: str = "") -> None:
        super().__init__(text)
        self.remedy = remedy


def is_call(expression: str) -> bool:
    """Whether the inside of a `${{ … }}` is a function call, of a known or an unknown function."""
    return _ANY_CALL.match(expression) is not None


Charge = Callable[[Json], None]
"""Called with the result of each call, also of one inside another; may raise."""


def evaluate(expression: str, lookup: Lookup, charge: Charge) -> Json:
    """The value of a call. Raises InvalidCall, or what `charge` raises."""
    call = _CALL.match(expression)
    if call is None:
        name = cut(expression.partition("(")[0].strip())
        hint = did_you_mean(name, NAMES)
        raise InvalidCall(f"unknown function {name}", hint or f"use {phrases.join_words(NAMES)}")
    tokens = list(_tokens(expression))
    value, end = _Evaluation(tokens, lookup, charge).value_at(0, 0)
    if end != len(tokens):
        raise InvalidCall(f"unexpected {cut(tokens[end][1])} after the call", "write one call in ${{ … }}")
    return value


def names_in(expression: str) -> Iterator[str]:
    """Yields the names among the arguments of a call, such as `var.region`; nothing if it is invalid."""
    try:
        for kind, text in _tokens(expression):
            if kind == "name" and "." in text:
                yield text
    except InvalidCall:
        return


def to_literal(value: Json) -> str:
    """A value as an argument, without characters that could end the expression."""
    if isinstance(value, Spelled):
        return value.spelling if _NUMBER.fullmatch(value.spelling) else json.dumps(value.spelling)
    return json.dumps(value).replace("}", "\\u007d").replace("{", "\\u007b").replace("$", "\\u0024")


class Unevaluated(Struct, frozen=True):
    """An argument that is itself an expression, such as `var.name` or a call."""

    expression: str


def to_argument(text: str) -> str | Unevaluated:
    """A text as an argument. Raises InvalidCall if it mixes text and expressions, or is a reference."""
    if "${{" not in text.replace("$${{", ""):
        return text
    whole = _WHOLE.fullmatch(text)
    if whole is None or not (whole[1].startswith("var.") or is_call(whole[1])):
        raise InvalidCall(f"{cut(text)} is no argument of a function", "pass a value, or only ${{ var.NAME }}")
    return Unevaluated(whole[1].strip())


def substitute(expression: str, values: Mapping[str, Json | Unevaluated]) -> str:
    """The call with these names replaced by their values. Lists and maps cannot be replaced."""
    put: list[str] = []
    length = 0
    for kind, text in _tokens(expression):
        if kind == "name" and text in values:
            value = values[text]
            if isinstance(value, (list, dict)):
                raise InvalidCall(f"{cut(text)} is {phrases.describe_found(value)}", "use it without var in one call")
            put.append(_to_literal_or_expression(value))
        else:
            put.append(text)
        length += len(put[-1])
        _limit("the call", length)
    return "".join(put)


def _to_literal_or_expression(value: Json | Unevaluated) -> str:
    if isinstance(value, Unevaluated):
        return value.expression
    return to_literal(str(value).lower() if isinstance(value, bool) else value)


def _tokens(expression: str) -> Iterator[tuple[str, str]]:
    at = 0
    while not _END.match(expression, at):
        found = _TOKEN.match(expression, at)
        if found is None or found.lastgroup is None:
            text = f"cannot read {cut(expression[at : at + MAX_LENGTH].strip())!r}"
            raise InvalidCall(text, 'write arguments as var.name, "text" or a number')
        yield found.lastgroup, found[found.lastgroup]
        at = found.end()


class _Evaluation(Struct, frozen=True):
    tokens: list[tuple[str, str]]
    lookup: Lookup
    charge: Charge

    def value_at(self, at: int, depth: int) -> tuple[Json, int]:
        """The value of the argument that begins at a token, and the index of the token after it."""
        if depth > _MAX_DEPTH:
            raise InvalidCall(f"more than {_MAX_DEPTH} calls inside each other", "use fewer calls")
        kind, text = self._token(at)
        if kind == "text":
            return _unquote(text), at + 1
        if kind == "number":
            if len(text) > _LONGEST_NUMBER:
                raise InvalidCall(f"the number {cut(text)} is too long", "write it in quotes")
            return scalars.plain(text), at + 1
        if kind != "name":
            raise InvalidCall(f"expected an argument, found {text!r}", 'write var.name, "text" or a number')
        if self._token(at + 1) == ("mark", "("):
            arguments, end = self._arguments(at + 2, depth)
            result = _call(text, arguments)
            self.charge(result)
            return result, end
        if text == "null":
            return None, at + 1
        if "/" in text:
            raise InvalidCall(
                f"{cut(text)} is a reference, whose value is known only after an apply",
                "use functions with variables and texts",
            )
        return self.lookup(text), at + 1

    def _token(self, at: int) -> tuple[str, str]:
        return self.tokens[at] if at < len(self.tokens) else ("end", "the end")

    def _arguments(self, at: int, depth: int) -> tuple[list[Json], int]:
        arguments: list[Json] = []
        while self._token(at) != ("mark", ")"):
            value, at = self.value_at(at, depth + 1)
            arguments.append(value)
            if self._token(at) == ("mark", ","):
                at += 1
            elif self._token(at) != ("mark", ")"):
                raise InvalidCall(f"expected ',' or ')', found {self._token(at)[1]!r}", "separate arguments by ','")
        return arguments, at + 1


def _unquote(text: str) -> str:
    if text.startswith("'"):
        return text[1:-1]
    try:
        unquoted = str(json.loads(text))
        unquoted.encode()  # half of a surrogate pair has no UTF-8 form
        return unquoted
    except ValueError:
        raise InvalidCall(f"{cut(text)} is not a text", "escape characters as in JSON, or use single quotes") from None


def _call(name: str, arguments: list[Json]) -> Json:
    function = _FUNCTIONS.get(name)
    if function is None:
        hint = did_you_mean(name, NAMES)
        raise InvalidCall(f"unknown function {cut(name)}", hint or f"use {phrases.join_words(NAMES)}")
    run, count, usage = function
    if len(arguments) != count and (name != "format" or not arguments):
        raise InvalidCall(f"{name} takes {count} {'argument' if count == 1 else 'arguments'}", f"write {usage}")
    return run(*arguments)


def _limit(name: str, length: int) -> None:
    """Raises InvalidCall if a result would be too long, before it is built."""
    if length > MAX_LENGTH:
        raise InvalidCall(f"the result of {name} has more than {MAX_LENGTH:,} characters or items", "use less text")


def _lower(text: Json) -> Json:
    lowered = _text("lower", text)
    _limit("lower", len(lowered))
    return lowered.lower()


def _join(items: Json, separator: Json) -> Json:
    if not isinstance(items, list):
        raise InvalidCall(f"join takes a list, found {phrases.describe_found(items)}", 'write join(var.list, ",")')
    mark, texts = _text("join", separator), [_text("join", item) for item in items]
    _limit("join", sum(map(len, texts)) + len(mark) * (len(texts) - 1))
    return mark.join(texts)


def _split(text: Json, separator: Json) -> Json:
    mark = _text("split", separator)
    if not mark:
        raise InvalidCall("the separator of split is empty", 'write split(var.text, ",")')
    whole = _text("split", text)
    _limit("split", whole.count(mark) + 1)
    return list(whole.split(mark)) if whole else []


def _default(value: Json, fallback: Json) -> Json:
    return fallback if value is None or value == "" else value


def _format(pattern: Json, *values: Json) -> Json:
    length = len(_text("format", pattern))

    def put(field: re.Match[str]) -> str:
        nonlocal length
        index = int(field[1]) if len(field[1]) < 6 else len(values)
        if index >= len(values):
            raise InvalidCall(f"format has no argument for {cut(field[0])}", "number the arguments from {0}")
        text = _text("format", values[index])
        length += len(text) - len(field[0])
        _limit("format", length)
        return text

    _limit("format", length)
    return _FIELD.sub(put, _text("format", pattern))


def _text(function: str, value: Json) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if value is None or isinstance(value, (list, dict)):
        raise InvalidCall(f"{function} takes text, found {phrases.describe_found(value)}", "name a text or a number")
    return str(value)


_FUNCTIONS: Final[dict[str, tuple[Callable[..., Json], int, str]]] = {
    "lower": (_lower, 1, "lower(var.name)"),
    "join": (_join, 2, 'join(var.list, ",")'),
    "split": (_split, 2, 'split(var.text, ",")'),
    "default": (_default, 2, 'default(var.name, "text")'),
    "format": (_format, 1, 'format("{0}-{1}", var.a, var.b)'),
}
