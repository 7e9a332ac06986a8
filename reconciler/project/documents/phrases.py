"""Phrases for messages about values: their type, a path, a suggestion for a misspelled word."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

from reconciler.model.manifest import Path
from reconciler.model.value import Ref, Secret, Template, Value

_FEW = 1000
_LONGEST_WORD = 200
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


def did_you_mean(word: str, candidates: Iterable[str]) -> str:
    """`did you mean X?`, or an empty text when nothing is close."""
    close = closest(word, candidates)
    return f"did you mean {close}?" if close else ""


def with_suggestion(what: str, word: str, candidates: Iterable[str]) -> dict[str, str]:
    """Values of a problem about an unknown word, such as `{"field": "hostprots", "suggestion": "hostports"}`."""
    close = closest(word, candidates)
    return {what: word, "suggestion": close} if close else {what: word}


def closest(word: str, candidates: Iterable[str]) -> str:
    """The candidate that is most similar to the word; empty if none is close."""
    candidates = list(candidates)
    if len(candidates) > _FEW or len(word) > _LONGEST_WORD:
        return ""  # comparing is slow, and there may be as many misspelled words
    by_folded = {candidate.lower(): candidate for candidate in sorted(candidates)}
    close = difflib.get_close_matches(word.lower(), list(by_folded), n=1, cutoff=0.6)
    return by_folded[close[0]] if close else ""


def join_words(words: Iterable[str], conjunction: str = "or") -> str:
    """Joins words as in `a, b or c`."""
    *most, last = words
    return f"{', '.join(most)} {conjunction} {last}" if most else last
