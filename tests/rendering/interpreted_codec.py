"""The decoder of the wire format without compiled decoders: interprets the type hint of each value.

Slow and simple; `test_wire` compares the compiled decoders with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, get_args, get_origin

from msgspec import Struct

from reconciler.model.address import Address
from reconciler.model.value import Json
from reconciler.rendering.wire.codec import (
    Derived,
    Malformed,
    Secrets,
    _hints,
    _is_class,
    _is_finite,
    _is_value,
    _optional,
    _parse_address,
    _unescape_key,
    decode_value,
)


def decode(hint: Any, encoded: Json, secrets: Secrets, derived: Derived) -> Any:
    """Does the same as `codec.decode`."""
    if _is_class(hint):
        return _decode_class(hint, encoded, secrets, derived)
    origin, args = get_origin(hint), get_args(hint)
    if hint is Address:
        return _parse_address(encoded)
    if origin is tuple:
        if not isinstance(encoded, list) or (args[-1] is not ... and len(encoded) != len(args)):
            raise Malformed("expected a list")
        items = [args[0]] * len(encoded) if args[-1] is ... else args
        return tuple(decode(item, part, secrets, derived) for item, part in zip(items, encoded, strict=True))
    if origin in (dict, Mapping):
        if not isinstance(encoded, dict):
            raise Malformed("expected an object")
        return {
            decode(args[0], _unescape_key(key), secrets, derived): decode(args[1], item, secrets, derived)
            for key, item in encoded.items()
        }
    if (inner := _optional(hint)) is not None:
        return None if encoded is None else decode(inner, encoded, secrets, derived)
    return _decode_plain(hint, encoded, secrets)


def _decode_class(hint: type[Struct], encoded: Json, secrets: Secrets, derived: Derived) -> Any:
    hints = _hints(hint)
    if not isinstance(encoded, dict) or set(encoded) != {*hints, *derived.get(hint, ())}:
        raise Malformed(f"{hint.__name__.lower()}: unexpected or missing keys")
    try:
        return hint(**{name: decode(part, encoded[name], secrets, derived) for name, part in hints.items()})
    except Malformed as error:
        raise Malformed(f"{hint.__name__.lower()}: {error}") from None


def _decode_plain(hint: Any, encoded: Json, secrets: Secrets) -> Any:
    if hint is Any:
        return decode_value(encoded, secrets)
    if _is_value(hint):
        value = decode_value(encoded, secrets)
        if not isinstance(value, get_args(hint)):
            raise Malformed(f"{encoded!r} is not one of {', '.join(arg.__name__ for arg in get_args(hint))}")
        return value
    if issubclass(hint, StrEnum):
        try:
            return hint(encoded)
        except ValueError:
            raise Malformed(f"{encoded!r} is not one of {', '.join(hint)}") from None
    accepted = {float: (int, float)}.get(hint, hint)
    if not isinstance(encoded, accepted) or (isinstance(encoded, bool) and hint is not bool):
        raise Malformed(f"{encoded!r} is not a {hint.__name__}")
    if hint is float and not _is_finite(encoded):
        raise Malformed("a number is too large")
    return encoded
