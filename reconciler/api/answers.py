"""Encodes and decodes JSON bodies. Rejects NaN, infinity and deep nesting; repairs unpaired surrogates."""

from __future__ import annotations

import json
import math
from contextlib import suppress
from functools import cache
from typing import Any, Final, cast

import msgspec

from reconciler.model.value import Json

DEEPEST = 100  # levels; the deepest known response has nine, and walking a value takes two stack frames for each level
_LARGE: Final = 16_384  # bytes: the decoder that knows levels takes 3 ms to build
_LEVELS: Final = 7  # of nearly all pages; each more doubles the time to build
_CONTAINERS: Final[frozenset[type]] = frozenset({dict, list})
_DECODER: Final = msgspec.json.Decoder()


def encode(body: Any) -> bytes:
    """The body as compact JSON in UTF-8."""
    try:
        return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:  # an unpaired surrogate has no UTF-8 form
        return json.dumps(body, separators=(",", ":")).encode()


def decode(content: bytes) -> tuple[Json, bool]:
    """The value, and whether the bytes are acceptable JSON."""
    if len(content) >= _LARGE:  # a page of a list
        with suppress(ValueError):
            return cast("Json", _shallow_decoder().decode(content)), True
    try:
        value = _parse(content)
    except (ValueError, RecursionError):
        return None, False
    return (value, True) if _is_shallow(value) else (None, False)


@cache
def _shallow_decoder() -> msgspec.json.Decoder[Any]:
    """Accepts values of few levels, whose depth need not be checked."""
    value: Any = None | bool | int | float | str
    for _ in range(_LEVELS):
        value = None | bool | int | float | str | list[value] | dict[str, value]
    return msgspec.json.Decoder(value)


def _parse(content: bytes) -> Json:
    try:
        return cast("Json", _DECODER.decode(content))
    except ValueError:  # it also refuses unpaired surrogates, UTF-16 and a byte order mark
        return _repair(json.loads(content, parse_constant=_refuse, parse_float=_parse_finite))


def _refuse(constant: str) -> Json:
    raise ValueError(f"{constant} is not JSON")


def _parse_finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number too large")
    return number


def _is_shallow(value: Json) -> bool:
    level: list[Any] = [[value]]
    for _ in range(DEEPEST + 1):  # level by level: recursion would take longer than the decoding
        level = [
            inside
            for container in level
            for inside in (container.values() if container.__class__ is dict else container)
            if inside.__class__ in _CONTAINERS
        ]
        if not level:
            return True
    return False


def _repair(value: Json) -> Json:
    """The value with unpaired surrogates, which cannot be written to a file, replaced by U+FFFD."""
    match value:
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case dict():
            return {_repair(key): _repair(item) for key, item in value.items()}
        case list():
            return [_repair(item) for item in value]
    return value
