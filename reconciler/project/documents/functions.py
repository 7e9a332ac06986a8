"""The functions of `${{ … }}`: lower, join, split, default and format. Pure, and without access to secrets.

An expression is a call such as `lower(var.name)` or `join(split(var.hosts, ","), "-")`. Its arguments are variables,
texts in quotes, numbers, and other calls; within `for_each` also `each.key` and `each.value.name`. References are not
arguments: their values are known only after an apply.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Final

from reconciler.model.problem import cut
from reconciler.model.value import Json
from reconciler.project.documents import phrases

NAMES: Final = ("lower", "join", "split", "default", "format")
MAX_LENGTH: Final = 100_000  # characters or items of a result
_MAX_DEPTH: Final = 8
_CALL: Final = re.compile(rf"({'|'.join(NAMES)})\s*\(")
_ANY_CALL: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\s*\(")
_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<text>"(?:[^"\\]|\\.)*"|'[^']*')|(?P<number>-?[0-9]+(?:\.[0-9]+)?)(?![A-Za-z0-9_])"""
    r"""|(?P<name>[A-Za-z_][A-Za-z0-9_./-]*)|(?P<mark>[(),]))"""
)
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


def evaluate(expression: str, lookup: Lookup) -> Json:
    """The value of a call. Raises InvalidCall."""
    call = _CALL.match(expression)
    if call is None:
        name = cut(expression.partition("(")[0].strip())
        hint = phrases.did_you_mean(name, NAMES)
        raise InvalidCall(f"unknown function {name}", hint or f"use {phrases.join_words(NAMES)}")
    tokens = list(_tokens(expression))
    value, end = _evaluate(tokens, 0, lookup, 0)
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
    return json.dumps(value).replace("}", "\\u007d").replace("{", "\\u007b").replace("$", "\\u0024")


def substitute(expression: str, lookup: Lookup) -> str:
    """The call with names that begin with `each.` replaced by their values. Lists and maps cannot be replaced."""
    put = []
    for kind, text in _tokens(expression):
        if kind == "name" and text.startswith("each."):
            value = lookup(text)
            if isinstance(value, (list, dict)):
                raise InvalidCall(f"{cut(text)} is {phrases.describe_found(value)}", "use it without var in one call")
            put.append(to_literal(str(value).lower() if isinstance(value, bool) else value))
        else:
            put.append(text)
    return "".join(put)


def _tokens(expression: str) -> Iterator[tuple[str, str]]:
    at = 0
    while expression[at:].strip():
        found = _TOKEN.match(expression, at)
        if found is None or found.lastgroup is None:
            text = f"cannot read {cut(expression[at:].strip())!r}"
            raise InvalidCall(text, 'write arguments as var.name, "text" or a number')
        yield found.lastgroup, found[found.lastgroup]
        at = found.end()


def _evaluate(tokens: list[tuple[str, str]], at: int, lookup: Lookup, depth: int) -> tuple[Json, int]:
    """The value of the argument that begins at a token, and the index of the token after it."""
    if depth > _MAX_DEPTH:
        raise InvalidCall(f"more than {_MAX_DEPTH} calls inside each other", "use fewer calls")
    kind, text = _token(tokens, at)
    if kind == "text":
        return _unquote(text), at + 1
    if kind == "number":
        return (float(text) if "." in text else int(text)), at + 1
    if kind != "name":
        raise InvalidCall(f"expected an argument, found {text!r}", 'write var.name, "text" or a number')
    if _token(tokens, at + 1) == ("mark", "("):
        arguments, end = _arguments(tokens, at + 2, lookup, depth)
        return _call(text, arguments), end
    if text == "null":
        return None, at + 1
    if "/" in text:
        raise InvalidCall(
            f"{cut(text)} is a reference, whose value is known only after an apply",
            "use functions with variables and texts",
        )
    return lookup(text), at + 1


def _token(tokens: list[tuple[str, str]], at: int) -> tuple[str, str]:
    return tokens[at] if at < len(tokens) else ("end", "the end")


def _arguments(tokens: list[tuple[str, str]], at: int, lookup: Lookup, depth: int) -> tuple[list[Json], int]:
    arguments: list[Json] = []
    while _token(tokens, at) != ("mark", ")"):
        value, at = _evaluate(tokens, at, lookup, depth + 1)
        arguments.append(value)
        if _token(tokens, at) == ("mark", ","):
            at += 1
        elif _token(tokens, at) != ("mark", ")"):
            raise InvalidCall(f"expected ',' or ')', found {_token(tokens, at)[1]!r}", "separate arguments by ','")
    return arguments, at + 1


def _unquote(text: str) -> str:
    if text.startswith("'"):
        return text[1:-1]
    try:
        return str(json.loads(text))
    except ValueError:
        raise InvalidCall(f"{cut(text)} is not a text", "escape characters as in JSON, or use single quotes") from None


def _call(name: str, arguments: list[Json]) -> Json:
    function = _FUNCTIONS.get(name)
    if function is None:
        hint = phrases.did_you_mean(name, NAMES)
        raise InvalidCall(f"unknown function {cut(name)}", hint or f"use {phrases.join_words(NAMES)}")
    run, count, usage = function
    if len(arguments) != count and (name != "format" or not arguments):
        raise InvalidCall(f"{name} takes {count} {'argument' if count == 1 else 'arguments'}", f"write {usage}")
    value = run(*arguments)
    if isinstance(value, (str, list)) and len(value) > MAX_LENGTH:
        raise InvalidCall(f"the result of {name} has more than {MAX_LENGTH:,} characters or items", "use less text")
    return value


def _lower(text: Json) -> Json:
    return _text("lower", text).lower()


def _join(items: Json, separator: Json) -> Json:
    if not isinstance(items, list):
        raise InvalidCall(f"join takes a list, found {phrases.describe_found(items)}", 'write join(var.list, ",")')
    return _text("join", separator).join(_text("join", item) for item in items)


def _split(text: Json, separator: Json) -> Json:
    mark = _text("split", separator)
    if not mark:
        raise InvalidCall("the separator of split is empty", 'write split(var.text, ",")')
    whole = _text("split", text)
    return list(whole.split(mark)) if whole else []


def _default(value: Json, fallback: Json) -> Json:
    return fallback if value is None or value == "" else value


def _format(pattern: Json, *values: Json) -> Json:
    def put(field: re.Match[str]) -> str:
        index = int(field[1])
        if index >= len(values):
            raise InvalidCall(f"format has no argument for {field[0]}", "number the arguments from {0}")
        return _text("format", values[index])

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
