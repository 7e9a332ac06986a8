"""Phrases for messages about values: their type, a path, a list of words."""

from __future__ import annotations

import re
from collections.abc import Iterable

from reconciler.model.manifest import Path
from reconciler.model.value import Ref, Secret, Template, Value

EXPRESSIONS = {"ref": "a reference", "from_env": "a value from the environment", "from_file": "a value from a file"}


_MEANT = {
    "ref": ("refs", "reference", "refto", "$ref"),
    "from_env": ("env", "fromenv", "envvar", "environment", "valuefromenv", "secret"),
    "from_file": ("file", "fromfile", "path", "include", "valuefromfile"),
}
_OPERANDS = {  # operands that a message may repeat: nothing that may be a secret
    "from_env": re.compile(r"[A-Z_][A-Z0-9_]{0,60}"),
    "from_file": re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_./-]{0,120}"),
    "ref": re.compile(r"[A-Z][A-Za-z]{0,40}/[A-Za-z0-9_./-]{1,120}"),
}


def suggest_expression(key: str, operand: Value) -> str:
    """The remedy `write {from_env: X}` for `{env: X}` and similar mistakes; empty for any other map."""
    plain = key.lower().replace("_", "").replace("-", "")
    word = next((word for word, others in _MEANT.items() if plain in others), "")
    if not word:
        return ""
    text = operand if isinstance(operand, str) and _OPERANDS[word].fullmatch(operand) else "…"
    return f"write {{{word}: {text}}}"


def describe_found(value: Value) -> str:
    """The type of a value in words, never the value itself, which may be secret."""
    match value:
        case None:
            return "nothing"
        case bool():
            return "true" if value else "false"
        case int():
            return "a whole number"
        case float():
            return "a number"
        case str() | Secret():
            return "text"
        case list():
            return "a list"
        case dict() if len(value) == 1 and next(iter(value)) in EXPRESSIONS:
            return EXPRESSIONS[next(iter(value))]
        case dict():
            return "a map"
        case Ref() | Template():
            return "a reference"
    return "something else"


def format_path(path: Path) -> str:
    """Formats the path `("hostports", 0)` as `hostports[0]`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text


def join_words(words: Iterable[str], conjunction: str = "or") -> str:
    """Joins words as in `a, b or c`."""
    *most, last = words
    return f"{', '.join(most)} {conjunction} {last}" if most else last
