"""Encodes the model's frozen classes as JSON, decodes them, and builds the JSON Schema, all from their type hints.

References, templates and secrets are objects with one key that begins with `$`; a user's key that begins with `$` gets
a second one. A secret is encoded as its source and a digest, never as text.
"""

from __future__ import annotations

import math
import types
import typing
from collections.abc import Callable, Mapping
from contextlib import suppress
from enum import StrEnum
from functools import cache
from typing import Any, TypeGuard, Union, get_args, get_origin

from msgspec import Struct

from reconciler.languages.yaml import scalars
from reconciler.model.address import Address
from reconciler.model.numerals import SpelledFloat, SpelledInteger
from reconciler.model.problem import cut
from reconciler.model.value import Hidden, Json, JsonTemplate, Ref, Secret, Template, UnreadSecret, Value, digest

Secrets = Callable[[str, str], Secret]
"""Returns the secret of a source; raises if its digest is not the given one. Arguments: source, digest."""

Derived = Mapping[type, tuple[str, ...]]
"""Properties that are written for readers of the JSON and ignored by `decode`."""


class Malformed(ValueError):
    """JSON without the expected form; the text says where and why."""


# --- values -----------------------------------------------------------------------------------------------------------


def encode_value(value: Value, salt: str) -> Json:
    """Plain JSON for any value. `salt` keys the digests of secrets."""
    match value:
        case Ref(target, output):
            return {"$ref": f"{target}.{output}"}
        case Template(parts):
            return {"$template": [encode_value(part, salt) for part in parts]}
        case JsonTemplate(parts):
            return {"$json": [encode_value(part, salt) for part in parts]}
        case Hidden(digest_of_value, unread):
            return {"$unread": unread} if unread else {"$hidden": digest_of_value}
        case Secret():
            return {"$secret": {"source": value.source, "digest": secret_digest(value, salt)}}
        case dict():
            return {_escape_key(key): encode_value(value[key], salt) for key in sorted(value)}
        case list() | tuple():
            return [encode_value(item, salt) for item in value]
        case float() if not math.isfinite(value):
            raise Malformed(f"{value} is not a number that JSON can hold")
        case SpelledFloat() | SpelledInteger():
            return {"$number": value.spelling}
        case None | bool() | int() | float() | str():
            return value
    raise Malformed(f"a {type(value).__name__} is not a value")


def secret_digest(secret: Secret, salt: str) -> str:
    """The digest of a secret in a plan of the stack `salt`; empty for one that was not read."""
    return "" if isinstance(secret, UnreadSecret) else digest(secret, salt)


def decode_value(encoded: Json, secrets: Secrets) -> Value:
    """The value that `encode_value` encoded. Raises Malformed."""
    if encoded.__class__ is str or encoded is None:  # most values, first
        return encoded
    match encoded:
        case list():
            return [decode_value(item, secrets) for item in encoded]
        case dict():
            marks = [key for key in encoded if key.startswith("$") and not key.startswith("$$")]
            if not marks:
                return {_unescape_key(key): decode_value(item, secrets) for key, item in encoded.items()}
            if len(encoded) == 1:
                return _decode_marked(marks[0], encoded[marks[0]], secrets)
            raise Malformed(f"{marks[0]} must be the only key of its object")
        case float() if not math.isfinite(encoded):
            raise Malformed(f"{encoded} is not a number that JSON can hold")
    return encoded


def _decode_marked(mark: str, content: Json, secrets: Secrets) -> Value:
    match mark, content:
        case "$ref", str():
            return _parse_reference(content)
        case "$template", list():
            return Template(tuple(_part(part) for part in content))
        case "$json", list():
            return JsonTemplate(tuple(_json_part(part, secrets) for part in content))
        case "$hidden", str():
            return Hidden(content)
        case "$unread", str() if content:
            return Hidden("", content)
        case "$number", str():
            return parse_number(content)
        case "$secret", {"source": str(source), "digest": str(known), **rest} if not rest:
            return secrets(source, known)
    raise Malformed(f"unknown or malformed {mark}")


def parse_number(spelling: str) -> Value:
    """The number of a spelling. Raises Malformed."""
    with suppress(ValueError):
        number = scalars.plain(spelling)
        if isinstance(number, (int, float)) and not isinstance(number, bool):
            return number
    raise Malformed(f"{cut(spelling)!r} is not a number")


def _part(part: Json) -> str | Ref:
    match part:
        case str():
            return part
        case {"$ref": str(target), **rest} if not rest:
            return _parse_reference(target)
    raise Malformed("a part of $template is neither text nor $ref")


def _json_part(part: Json, secrets: Secrets) -> str | Ref | Template | Secret:
    value = decode_value(part, secrets)
    if isinstance(value, (str, Ref, Template, Secret)):
        return value
    raise Malformed("a part of $json is neither text nor $ref, $template or $secret")


def _parse_reference(text: str) -> Ref:
    address, dot, output = text.rpartition(".")  # a name may hold dots, an output never does
    if not dot:
        raise Malformed(f"{text!r} is not Kind/name.output")
    return Ref(_parse_address(address), output)


def _parse_address(text: Json) -> Address:
    if not isinstance(text, str):
        raise Malformed(f"{text!r} is not an address")
    try:
        return Address.parse(text)
    except ValueError as error:
        raise Malformed(str(error)) from None


def _escape_key(key: str) -> str:
    return f"${key}" if key.startswith("$") else key


def _unescape_key(key: str) -> str:
    return key[1:] if key.startswith("$$") else key


# --- classes ----------------------------------------------------------------------------------------------------------


def encode(hint: Any, held: Any, salt: str, derived: Derived) -> Json:
    """Plain JSON for an instance of a model class, with mappings sorted by key."""
    if _is_class(hint):
        fields = {name: encode(part, getattr(held, name), salt, derived) for name, part in _hints(hint).items()}
        return fields | {name: getattr(held, name) for name in derived.get(hint, ())}
    origin, args = get_origin(hint), get_args(hint)
    if hint is Address:
        return str(held)
    if origin is tuple:
        items = [args[0]] * len(held) if args[-1] is ... else args
        return [encode(item, part, salt, derived) for item, part in zip(items, held, strict=True)]
    if origin in (dict, Mapping):
        return {_escape_key(str(key)): encode(args[1], held[key], salt, derived) for key in sorted(held, key=str)}
    if (inner := _optional(hint)) is not None:
        return None if held is None else encode(inner, held, salt, derived)
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return str(held)
    return encode_value(held, salt)


def decode(hint: Any, encoded: Json, secrets: Secrets, derived: Derived) -> Any:
    """The instance that `encode` encoded. Raises Malformed."""
    return _decoder(hint, tuple(derived.items()))(encoded, secrets)


_Decoder = Callable[[Any, Secrets], Any]
_DerivedItems = tuple[tuple[type, tuple[str, ...]], ...]


@cache
def _decoder(hint: Any, derived: _DerivedItems) -> _Decoder:
    """The decoder of a hint. Made once for each: a plan of 10,000 changes has two million values."""
    if _is_class(hint):
        return _class_decoder(hint, derived)
    origin, args = get_origin(hint), get_args(hint)
    if hint is Address:
        return lambda encoded, secrets: _parse_address(encoded)
    if origin is tuple:
        return _tuple_decoder(args, derived)
    if origin in (dict, Mapping):
        return _map_decoder(args, derived)
    if (inner := _optional(hint)) is not None:
        decode_inner = _decoder(inner, derived)
        return lambda encoded, secrets: None if encoded is None else decode_inner(encoded, secrets)
    return _plain_decoder(hint)


def _class_decoder(hint: type[Struct], derived: _DerivedItems) -> _Decoder:
    hints = _hints(hint)
    keys = {*hints, *dict(derived).get(hint, ())}
    parts: dict[str, _Decoder] = {}

    def decode_class(encoded: Json, secrets: Secrets) -> Any:
        if not isinstance(encoded, dict) or encoded.keys() != keys:
            raise Malformed(f"{hint.__name__.lower()}: unexpected or missing keys")
        if not parts:  # not earlier: a class may contain itself
            parts.update({name: _decoder(part, derived) for name, part in hints.items()})
        try:
            return hint(**{name: decode_part(encoded[name], secrets) for name, decode_part in parts.items()})
        except Malformed as error:
            raise Malformed(f"{hint.__name__.lower()}: {error}") from None

    return decode_class


def _tuple_decoder(args: tuple[Any, ...], derived: _DerivedItems) -> _Decoder:
    decode_each = [_decoder(arg, derived) for arg in args if arg is not ...]
    is_open, decode_first = args[-1] is ..., decode_each[0]

    def decode_tuple(encoded: Json, secrets: Secrets) -> Any:
        if not isinstance(encoded, list) or (not is_open and len(encoded) != len(decode_each)):
            raise Malformed("expected a list")
        if is_open:
            return tuple([decode_first(part, secrets) for part in encoded])
        return tuple([decode_one(part, secrets) for decode_one, part in zip(decode_each, encoded, strict=True)])

    return decode_tuple


def _map_decoder(args: tuple[Any, ...], derived: _DerivedItems) -> _Decoder:
    decode_key, decode_item = (_decoder(arg, derived) for arg in args)

    def decode_map(encoded: Json, secrets: Secrets) -> Any:
        if not isinstance(encoded, dict):
            raise Malformed("expected an object")
        return {decode_key(_unescape_key(key), secrets): decode_item(item, secrets) for key, item in encoded.items()}

    return decode_map


def _plain_decoder(hint: Any) -> _Decoder:
    if hint is Any:
        return decode_value
    if _is_value(hint):
        return _value_decoder(get_args(hint))
    if issubclass(hint, StrEnum):
        return _enum_decoder(hint)
    accepted = {float: (int, float)}.get(hint, hint)

    def decode_scalar(encoded: Json, secrets: Secrets) -> Any:
        if not isinstance(encoded, accepted) or (isinstance(encoded, bool) and hint is not bool):
            raise Malformed(f"{encoded!r} is not a {hint.__name__}")
        if hint is float and not _is_finite(encoded):
            raise Malformed("a number is too large")
        return encoded

    return decode_scalar


def _value_decoder(accepted: tuple[type, ...]) -> _Decoder:
    def decode_union(encoded: Json, secrets: Secrets) -> Any:
        value = decode_value(encoded, secrets)
        if not isinstance(value, accepted):
            raise Malformed(f"{encoded!r} is not one of {', '.join(arg.__name__ for arg in accepted)}")
        return value

    return decode_union


def _enum_decoder(hint: type[StrEnum]) -> _Decoder:
    def decode_enum(encoded: Json, secrets: Secrets) -> Any:
        try:
            return hint(encoded)
        except ValueError:
            raise Malformed(f"{encoded!r} is not one of {', '.join(hint)}") from None

    return decode_enum


def _is_finite(number: float) -> bool:
    try:
        return math.isfinite(number)
    except OverflowError:  # of an integer
        return False


@cache
def _hints(hint: type[Struct]) -> dict[str, Any]:
    hints = typing.get_type_hints(hint)
    return {name: hints[name] for name in hint.__struct_fields__}


def _is_class(hint: Any) -> TypeGuard[type[Struct]]:
    """Whether the hint is a class of the model that is written as an object; a template is written as a value."""
    return isinstance(hint, type) and issubclass(hint, Struct) and hint is not Template


def _optional(hint: Any) -> Any:
    """X for `X | None`; None for anything else."""
    if get_origin(hint) not in (Union, types.UnionType):
        return None
    rest = [arg for arg in get_args(hint) if arg is not types.NoneType]
    return rest[0] if len(rest) == 1 else None


def _is_value(hint: Any) -> bool:
    """Whether the hint is a union such as `str | Template`, which is encoded as a value."""
    return get_origin(hint) in (Union, types.UnionType)


# --- schema -----------------------------------------------------------------------------------------------------------

_ADDRESS = {"type": "string", "pattern": "^[A-Z][A-Za-z0-9]*/[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"}
_USER_KEY = {"pattern": r"^(?!\$[^$])(?!\$$)"}


def schema(hint: Any, derived: Derived) -> dict[str, Json]:
    """The JSON Schema of what `encode` returns for a class, with `$defs` for the classes in it."""
    definitions: dict[str, Json] = {"value": _value_schema()}
    root = _schema(hint, derived, definitions)
    return {**definitions.pop(root["$ref"].rpartition("/")[2]), "$defs": dict(sorted(definitions.items()))}


def plain_schema(hint: Any) -> dict[str, Json]:
    """The JSON Schema of a hint that contains no model class other than Address."""
    return _schema(hint, {}, {})


def _schema(hint: Any, derived: Derived, definitions: dict[str, Json]) -> dict[str, Json]:
    origin, args = get_origin(hint), get_args(hint)
    if hint is Address:
        return _ADDRESS
    if hint is Any or (_is_value(hint) and _optional(hint) is None):
        return {"$ref": "#/$defs/value"}
    if _is_class(hint):
        name = hint.__name__.lower()
        if name not in definitions:
            definitions[name] = {}  # reserves the name, for a class that contains itself
            definitions[name] = _class_schema(hint, derived, definitions)
        return {"$ref": f"#/$defs/{name}"}
    if origin is tuple and args[-1] is ...:
        return {"type": "array", "items": _schema(args[0], derived, definitions)}
    if origin is tuple:
        items = [_schema(arg, derived, definitions) for arg in args]
        return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}
    if origin in (dict, Mapping):
        keys = _ADDRESS if args[0] is Address else _USER_KEY
        return {"type": "object", "propertyNames": keys, "additionalProperties": _schema(args[1], derived, definitions)}
    if (inner := _optional(hint)) is not None:
        return {"anyOf": [_schema(inner, derived, definitions), {"type": "null"}]}
    if issubclass(hint, StrEnum):
        return {"enum": [str(member) for member in hint]}
    return {"type": {str: "string", bool: "boolean", int: "integer", float: "number"}[hint]}


def _class_schema(hint: type[Struct], derived: Derived, definitions: dict[str, Json]) -> dict[str, Json]:
    properties = {name: _schema(part, derived, definitions) for name, part in _hints(hint).items()}
    for name in derived.get(hint, ()):
        result = typing.get_type_hints(getattr(hint, name).fget)["return"]
        properties[name] = _schema(result, derived, definitions)
    return {
        "description": (hint.__doc__ or "").partition("\n")[0],
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _value_schema() -> dict[str, Json]:
    def tag(mark: str, content: Json, description: str) -> Json:
        return {
            "description": description,
            "type": "object",
            "properties": {mark: content},
            "required": [mark],
            "additionalProperties": False,
        }

    text = {"type": "string"}
    ref = tag("$ref", text, "A field of another resource, as Kind/name.output.")
    parts = {"type": "array", "items": {"anyOf": [text, ref]}}
    template = tag("$template", parts, "Text with references inside.")
    secret = {
        "type": "object",
        "properties": {"source": text, "digest": text},
        "required": ["source", "digest"],
        "additionalProperties": False,
    }
    described = "A secret, which is read from its source again and must have this digest; empty: it was not read."
    marked_secret = tag("$secret", secret, described)
    values = {"type": "array", "items": {"anyOf": [text, ref, template, marked_secret]}}
    value = {"$ref": "#/$defs/value"}
    return {
        "description": "Plain JSON, with the forms below in it. A user's key that begins with $ gets a second $.",
        "anyOf": [
            {"type": ["null", "boolean", "number", "string"]},
            {"type": "array", "items": value},
            {"type": "object", "propertyNames": _USER_KEY, "additionalProperties": value},
            ref,
            template,
            tag("$json", values, "JSON text: literal parts, and values that are written as JSON."),
            tag("$hidden", text, "A sensitive value as a digest. Equal values have equal digests."),
            tag("$unread", text, "A sensitive value that was not read, by its source, such as env:NAME."),
            marked_secret,
            tag("$number", text, "A number by its spelling, where that is not the usual one, such as 1.10."),
        ],
    }
