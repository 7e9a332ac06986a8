"""From the bytes of an answer to JSON that the rest may work with: no NaN, no half characters, not too deep.

What JSON allows and no platform means is refused here or mended, so that nobody further in has to expect it.
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


def decoded(content: bytes) -> tuple[Json, bool]:
    """What the bytes say, and whether they are JSON that we accept."""
    try:
        value = json.loads(content, parse_constant=_refused, parse_float=_finite)
    except (ValueError, RecursionError):
        return None, False
    if not _is_shallow(value):
        return None, False
    # Nearly every answer is spared the walk.
    return (_whole(value) if _LONE.search(content) else value), True


def _refused(constant: str) -> Json:
    raise ValueError(f"{constant} is not JSON")


def _finite(text: str) -> float:
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


def _whole(value: Json) -> Json:
    """Halves of characters, which no file and no terminal takes, become the sign for what cannot be read."""
    match value:
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case dict():
            return {_whole(key): _whole(item) for key, item in value.items()}
        case list():
            return [_whole(item) for item in value]
    return value
