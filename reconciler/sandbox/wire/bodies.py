"""Request bodies: parsing, supported fields, types, and the platform's defaults of omitted fields.

Field names and types come from the kinds. Defaults and limits are independent of the kinds, so that errors in the kinds
are found by tests.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from msgspec.structs import replace

from reconciler import kinds
from reconciler.model.fields.annotations import Behavior
from reconciler.model.fields.field import Field, Shape
from reconciler.model.kind import Kind
from reconciler.model.value import Json
from reconciler.sandbox.base.database import Document
from reconciler.sandbox.wire import refusal

# Fields that a create accepts besides those of the kind.
_ASIDE: dict[str, tuple[Field, ...]] = {
    "EventDestination": (
        Field("verify_with_test_event", Shape.FLAG, "Whether to send a test event to the new destination."),
    ),
}

# Fields of an object that manifests declare as children of it.
_CHILDREN = {"EventSubscription": ("sources", "EventSource")}

# The platform's defaults of omitted fields. Fields not listed: "" for text, [] for lists, false, 0, null.
_DEFAULTS: dict[str, Json] = {
    "enabled": True,
    "active": True,
    "terminate_at": "edge",
    "min_version": None,
    "allow_idp_initiated": True,
    "cookie_prefix": "ngrok.",
    "nameid_format": "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent",
    "authority": "letsencrypt",
    "ReservedDomain.certificate_management_policy.private_key_type": "ecdsa",
    "AgentIngress.certificate_management_policy.private_key_type": "rsa",
    "ReservedAddress.region": "us",
    "SSHCertificateAuthority.private_key_type": "ed25519",
    "HTTPResponseBackend.status_code": 200,
    "EventDestination.format": "json",
    "StaticBackend.tls": {"enabled": False},
    "StaticBackend.tls.enabled": False,
    "SSHUserCertificate.extensions": {"permit-pty": "", "permit-user-rc": ""},
    "HTTPSEdgeRoute.oidc.cookie_prefix": "",
    "HTTPSEdgeRoute.circuit_breaker.tripped_duration": 10,
    "HTTPSEdgeRoute.circuit_breaker.rolling_window": 10,
    "HTTPSEdgeRoute.circuit_breaker.num_buckets": 10,
    "HTTPSEdgeRoute.circuit_breaker.volume_threshold": 10,
    "HTTPSEdgeRoute.circuit_breaker.error_threshold_percentage": 0.5,
}
_EMPTY: dict[Shape, Json] = {Shape.TEXT: "", Shape.ANY: "", Shape.FLAG: False, Shape.INTEGER: 0, Shape.NUMBER: 0.0}

_INTEGERS = dict.fromkeys(
    ("inactivity_timeout", "maximum_duration", "auth_check_interval", "volume_threshold"),
    (0, 2**32 - 1, "an integer from 0 to 4294967295"),
)
_INT64 = (-(2**63), 2**63 - 1, "a 64-bit integer")
_WANTED = {
    Shape.TEXT: (str, "text"),
    Shape.ANY: (str, "text"),
    Shape.FLAG: (bool, "true or false"),
    Shape.INTEGER: (int, "an integer"),
    Shape.NUMBER: ((int, float), "a number"),
    Shape.LIST: (list, "a list"),
    Shape.MAP: (dict, "an object"),
    Shape.OBJECT: (dict, "an object"),
}


def parse(raw: bytes) -> Document:
    """The JSON object in a body."""
    value = read(raw)
    if not isinstance(value, dict):
        raise refusal.UNPARSABLE_BODY(why="it is not an object")
    return value


def read(raw: bytes) -> Any:
    """The JSON value in a body."""
    try:
        text = raw.decode()
        value = json.loads(text) if text.startswith("\ufeff") else _JSON.decode(text)
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()  # fails for an unpaired surrogate
    except json.JSONDecodeError as error:
        if error.pos >= len(error.doc.rstrip()) or error.msg.startswith("Unterminated"):
            raise refusal.TRUNCATED_BODY() from error
        raise refusal.UNPARSABLE_BODY(why=error.msg) from error
    except (ValueError, RecursionError) as error:
        raise refusal.UNPARSABLE_BODY(why=type(error).__name__) from error
    return value


def _no_constant(name: str) -> None:
    raise ValueError(name)


_JSON = json.JSONDecoder(parse_constant=_no_constant)


@cache
def fields(kind: Kind) -> tuple[Field, ...]:
    """The stored fields of a kind: all except those in the path."""
    own = tuple(_apply_map_shape(field) for field in kind.fields if Behavior.PATH_ONLY not in field)
    if kind.name not in _CHILDREN:
        return own
    name, child = _CHILDREN[kind.name]
    within = tuple(replace(field, behaviors=frozenset()) for field in fields(kinds.get(child)))
    return (*own, Field(name, Shape.LIST, default=[], item=Field(name, Shape.OBJECT, fields=within)))


@cache
def holders(kind: Kind, names: frozenset[str]) -> tuple[Field, ...]:
    """The fields that have one of these names, or contain a field that does."""
    return tuple(field for field in fields(kind) if _holds(field, names))


def _holds(field: Field, names: frozenset[str]) -> bool:
    return field.name in names or (field.shape is Shape.OBJECT and any(_holds(inner, names) for inner in field.fields))


def _apply_map_shape(field: Field) -> Field:
    """The field in its wire form: a list that the platform represents as a map (`AsMap`) becomes a map."""
    if field.as_map is None or field.item is None:
        return field
    value = next(inner for inner in field.item.fields if inner.name == field.as_map.value)
    return replace(field, shape=Shape.MAP, item=replace(value, required=True))


@cache
def list_accepted(kind: Kind, *, update: bool) -> tuple[Field, ...]:
    """The fields that the body of a create or an update may have."""
    unsupported = {Behavior.IMMUTABLE, Behavior.CREATE_ONLY} if update else {Behavior.UPDATE_ONLY}
    fixed = () if update else tuple(Field(name, Shape.TEXT) for name in kind.wire.fixed if name not in kind.by_name)
    aside = () if update else _ASIDE.get(kind.name, ())
    return (
        *fixed,
        *(field for field in fields(kind) if not unsupported & field.behaviors),
        *aside,
    )


def drop_parameters(parameters: Mapping[str, str], body: Document) -> Document:
    """The body without the parameters of the path, which it may repeat. Null is the same as omitted."""
    for name, value in parameters.items():
        if body.get(name) not in (None, value):
            raise refusal.OTHER_PARAMETER(field=name, value=value)
    return {name: value for name, value in body.items() if name not in parameters}


def unwrap_module(body: Document) -> Document:
    """The module in a body, which some clients send as `{"module": {…}}`."""
    return body["module"] if body.keys() == {"module"} and isinstance(body["module"], dict) else body


def check(known: tuple[Field, ...], body: Mapping[str, Json], where: str = "") -> None:
    """Checks that every field of a body is known and has the right type. Null is the same as omitted."""
    by_name = _by_name(known)
    for name, value in body.items():
        if name not in by_name:
            raise refusal.UNKNOWN_FIELD(field=where + name, supported=", ".join(sorted(by_name)) or "none")
        if value is not None:
            _check_type(by_name[name], value, where + name)


@cache
def _by_name(known: tuple[Field, ...]) -> Mapping[str, Field]:
    return {field.name: field for field in known}


def _check_type(field: Field, value: Json, where: str) -> None:
    types, described = _WANTED[field.shape]
    if not isinstance(value, types) or (isinstance(value, bool) and field.shape is not Shape.FLAG):  # type: ignore[arg-type]
        raise refusal.WRONG_TYPE(field=where, wanted=described)
    if field.shape is Shape.INTEGER:
        lowest, highest, described = _INTEGERS.get(field.name, _INT64)
        if not lowest <= value <= highest:
            raise refusal.WRONG_TYPE(field=where, wanted=described)
    elif field.shape is Shape.OBJECT:
        check(field.fields, value, f"{where}.")
    elif field.shape in (Shape.LIST, Shape.MAP):
        assert field.item is not None
        for key, item in enumerate(value) if isinstance(value, list) else value.items():
            _check_type(field.item, item, f"{where}.{key}")


def complete(kind: str, known: Iterable[Field], body: Mapping[str, Json], where: str = "") -> Document:
    """The document with all fields: omitted and null fields have the platform's default."""
    return {field.name: fill_defaults(kind, field, body.get(field.name), where) for field in known}


def fill_defaults(kind: str, field: Field, value: Json, where: str = "") -> Json:
    path = where + field.name
    if value is None:
        return _default(kind, field, path)
    if field.shape is Shape.OBJECT:
        return complete(kind, field.fields, value, f"{path}.")
    if field.shape is Shape.LIST and field.item is not None and field.item.shape is Shape.OBJECT:
        return [complete(kind, field.item.fields, item, f"{path}.") for item in value]
    return value


def _default(kind: str, field: Field, path: str) -> Json:
    value = _default_of(kind, field, path)
    return value.copy() if isinstance(value, (list, dict)) else value


@cache
def _default_of(kind: str, field: Field, path: str) -> Json:
    for key in (f"{kind}.{path}", field.name):
        if key in _DEFAULTS:
            return _DEFAULTS[key]
    if field.shape is Shape.LIST:
        return []
    if field.shape is Shape.MAP:
        return {}
    return _EMPTY.get(field.shape)


def walk(known: Iterable[Field], document: Mapping[str, Any], where: str = "") -> Iterable[tuple[Field, str, Json]]:
    """Yields each field of a complete document with its path and value, outer before inner fields."""
    for field in known:
        value = document.get(field.name)
        yield field, where + field.name, value
        if field.shape is Shape.OBJECT and isinstance(value, dict):
            yield from walk(field.fields, value, f"{where}{field.name}.")
