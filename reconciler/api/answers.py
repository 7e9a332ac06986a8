"""Bodies of requests and responses as JSON. What JSON allows and no platform means is refused or repaired on decoding:
NaN, halves of characters, too many levels.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final

from reconciler.model.value import Json

DEEPEST = 100  # levels; the deepest known answer has nine, and walking a value takes a stack frame or two a level
_CONTAINERS: Final[frozenset[type]] = frozenset({dict, list})
_LONE: Final = re.compile(rb"\\u[dD]|\xed[\xa0-\xbf]")  # escaped, or in bytes that are not UTF-8 and pass for it


def encode(body: Any) -> bytes:
    try:
        return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:  # half a character, which has no bytes
        return json.dumps(body, separators=(",", ":")).encode()


def decode(content: bytes) -> tuple[Json, bool]:
    """The value, and whether the bytes are JSON that we accept."""
    try:
        value = json.loads(content, parse_constant=_refuse, parse_float=_parse_finite)
    except (ValueError, RecursionError):
        return None, False
    if not _is_shallow(value):
        return None, False
    # Nearly every answer is spared the walk.
    return (_repair(value) if _LONE.search(content) else value), True


def _refuse(constant: str) -> Json:
    raise ValueError(f"{constant} is not JSON")


def _parse_finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number too large")
    return number


def _is_shallow(value: Json) -> bool:
    level: list[Any] = [[value]]
    for _ in range(DEEPEST + 1):  # level by level: a walk by recursion takes longer than decoding did
        level = [
            inside
            for each in level
            for inside in (each.values() if each.__class__ is dict else each)
            if inside.__class__ in _CONTAINERS
        ]
        if not level:
            return True
    return False


def _repair(value: Json) -> Json:
    """Halves of characters, which no file and no terminal takes, become the sign for what cannot be read."""
    match value:
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case dict():
            return {_repair(key): _repair(item) for key, item in value.items()}
        case list():
            return [_repair(item) for item in value]
    return value
