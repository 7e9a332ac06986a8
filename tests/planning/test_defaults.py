"""A documented default that the live object lacks is sent: if omitted, the platform may choose another value."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

from reconciler.model.canonical import canonicalize_live, empty
from reconciler.model.fields.annotations import Immutable, InputOnly, PathOnly, ServerDefault, UpdateOnly
from reconciler.model.fields.field import Field, Shape
from reconciler.model.kind import Kind
from reconciler.model.snapshot import Binding
from reconciler.model.value import reveal
from reconciler.sandbox.wire import bodies
from tests.harness.builders import KINDS, declare, live, make_plan, record, snapshot

MINIMAL: dict[Shape, Any] = {Shape.INTEGER: 1, Shape.NUMBER: 1.0, Shape.FLAG: True, Shape.LIST: [], Shape.MAP: {}}


def minimal_spec(fields: tuple[Field, ...]) -> dict[str, Any]:
    return {field.name: minimal_value(field) for field in fields if field.required}


def minimal_value(field: Field) -> Any:
    if field.shape is Shape.OBJECT:
        return minimal_spec(field.fields)
    return field.choices[0] if field.choices else MINIMAL.get(field.shape, "some")


def other_value(field: Field) -> Any:
    """A value that is not the default, as a response shows it."""
    if field.as_map is not None:
        return {"other": 1}
    match field.shape:
        case Shape.FLAG:
            return not field.default
        case Shape.LIST if field.item is not None:
            return [minimal_spec(field.item.fields) if field.item.fields else "other"]
        case Shape.MAP:
            return {"other": "other"}
        case Shape.INTEGER:
            return 7
    return next((choice for choice in field.choices if choice != field.default), "other")


def list_defaults(fields: tuple[Field, ...], above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Field]]:
    for field in fields:
        path = (*above, field.name)
        if {Immutable, InputOnly, PathOnly, ServerDefault, UpdateOnly} & field.behaviors or path == ("metadata",):
            continue
        if field.shape is Shape.OBJECT:
            yield from list_defaults(field.fields, path)
        elif field.default is not None:
            yield path, field


CASES = [(kind, path, field) for kind in KINDS for path, field in list_defaults(kind.fields)]


@pytest.mark.parametrize(
    ("kind", "path", "field"), CASES, ids=[f"{kind.name}.{'.'.join(path)}" for kind, path, _ in CASES]
)
def test_a_default_that_is_not_live_is_sent(kind: Kind, path: tuple[str, ...], field: Field) -> None:
    spec = minimal_spec(kind.fields)
    inside, fields = spec, kind.fields
    for name in path[:-1]:
        (part,) = (field for field in fields if field.name == name)
        inside = inside.setdefault(name, {**minimal_spec(part.fields), **inside.get(name, {})})
        fields = part.fields
    body_of_object = deepcopy(spec)
    inside = body_of_object
    for name in path[:-1]:
        inside = inside[name]
    inside[path[-1]] = other_value(field)
    address = f"{kind.name}/a"
    owner = record(address, spec) if kind.keeps_owner else None
    parent = "some" if kind.parent else None
    live_object = live(kind.name, "id-1", body_of_object, owner=owner, parent=parent)
    bindings = {} if kind.keeps_owner else {address: Binding(live_object.locator)}
    plan = make_plan(declare(address, spec), seen=snapshot(live_object, bindings=bindings))
    (call,) = plan.calls
    body: Any = reveal(dict(call.body or {}))
    for name in path[1:] if str(call.path).endswith(f"/{path[0]}") else path:
        body = body[name]
    assert body == field.default


def test_the_sandbox_uses_the_documented_defaults() -> None:
    for kind, path, field in CASES:
        value = bodies.fill_defaults(kind.name, field, None, "".join(f"{name}." for name in path[:-1]))
        assert canonicalize_live(field, value) == empty(field), (kind.name, path)


def test_each_sort_of_default_has_a_case() -> None:
    names = {f"{kind.name}.{'.'.join(path)}" for kind, path, _ in CASES}
    assert names >= {
        "HTTPSEdgeRoute.saml.allow_idp_initiated",
        "HTTPSEdgeRoute.backend.enabled",
        "HTTPSEdgeRoute.oauth.provider.github.teams",
        "IPRestriction.enforced",
        "TLSEdge.description",
        "BotUser.active",
    }
