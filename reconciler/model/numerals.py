"""Numbers that keep the spelling of their source, such as `1.10`, where it is not the one that Python would write.

They compute as the number, and are equal only to a number of the same spelling: a platform that reads a number as text,
such as the value of a header, sees the spelling.
"""

from __future__ import annotations

import json
import re
from typing import Any

_PARTS = re.compile(r"[-+]?0*([0-9]*)(\.[0-9]*)?([eE][-+]?[0-9]+)?")


class _Spelling:
    """Text, equality and hash of a number by its spelling."""

    spelling: str

    def __repr__(self) -> str:
        return self.spelling

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self.spelling == other.spelling

    def __hash__(self) -> int:
        return hash(self.spelling)


class SpelledFloat(_Spelling, float):
    """A number with a fraction or an exponent, and its spelling."""

    def __new__(cls, spelling: str, number: float) -> SpelledFloat:
        made = super().__new__(cls, number)
        made.spelling = spelling
        return made

    def __reduce__(self) -> Any:
        return SpelledFloat, (self.spelling, float(self))


class SpelledInteger(_Spelling, int):
    """A whole number with its spelling, such as `007` or `0x1F`."""

    def __new__(cls, spelling: str, number: int) -> SpelledInteger:
        made = super().__new__(cls, number)
        made.spelling = spelling
        return made

    def __reduce__(self) -> Any:
        return SpelledInteger, (self.spelling, int(self))


Spelled = (SpelledFloat, SpelledInteger)
"""The classes of numbers with a spelling, for `isinstance`."""


def keep_spelling(spelling: str, number: float) -> int | float:
    """The number, with its spelling if Python would write it in another way."""
    if repr(number) == spelling:
        return number
    return SpelledInteger(spelling, number) if isinstance(number, int) else SpelledFloat(spelling, number)


def to_plain(number: Any) -> Any:
    """The number without its spelling; any other value unchanged."""
    match number:
        case SpelledFloat():
            return float(number)
        case SpelledInteger():
            return int(number)
    return number


def in_json(number: SpelledFloat | SpelledInteger) -> int | float:
    """The number as JSON can represent it: `1.10` unchanged, `+07` as 7, `.5` as 0.5, `0x1F` as 31."""
    if isinstance(number, SpelledInteger):
        return keep_spelling("-0", 0) if number.spelling == "-0" else int(number)
    match = _PARTS.fullmatch(number.spelling)
    if match is None:
        return float(number)
    whole, fraction, exponent = match[1] or "0", match[2] or "", match[3] or ""
    sign = "-" if number.spelling.startswith("-") else ""
    return keep_spelling(f"{sign}{whole}{'.0' if fraction == '.' else fraction}{exponent}", float(number))


def dump_json(value: Any) -> str:
    """Compact JSON in which numbers keep their spelling."""
    match value:
        case SpelledFloat() | SpelledInteger():
            return repr(in_json(value))
        case dict():
            return "{" + ",".join(f"{dump_json(key)}:{dump_json(item)}" for key, item in value.items()) + "}"
        case list():
            return "[" + ",".join(map(dump_json, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def mark_spelled(value: Any) -> Any:
    """The value with `{"$number": spelling}` for each number with a spelling; the value itself if it has none."""
    match value:
        case SpelledFloat() | SpelledInteger():
            return {"$number": value.spelling}
        case dict():
            marked = {key: mark_spelled(item) for key, item in value.items()}
            return marked if any(item is not value[key] for key, item in marked.items()) else value
        case list():
            items = [mark_spelled(item) for item in value]
            return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    return value
