"""A documented default that is not live is sent: left out, the platform might take another value for it."""

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
from tests.planning.builders import KINDS, declare, live, make_plan, record, snapshot

_EMPTY: dict[Shape, Any] = {Shape.INTEGER: 1, Shape.NUMBER: 1.0, Shape.FLAG: True, Shape.LIST: [], Shape.MAP: {}}


def _minimal(fields: tuple[Field, ...]) -> dict[str, Any]:
    return {field.name: _some(field) for field in fields if field.required}


def _some(field: Field) -> Any:
    if field.shape is Shape.OBJECT:
        return _minimal(field.fields)
    return field.choices[0] if field.choices else _EMPTY.get(field.shape, "some")


def _another(field: Field) -> Any:
    """A value that is not the default, as a response shows it."""
    if field.as_map is not None:
        return {"other": 1}
    match field.shape:
        case Shape.FLAG:
            return not field.default
        case Shape.LIST if field.item is not None:
            return [_minimal(field.item.fields) if field.item.fields else "other"]
        case Shape.MAP:
            return {"other": "other"}
        case Shape.INTEGER:
            return 7
    return next((choice for choice in field.choices if choice != field.default), "other")


def _defaults(fields: tuple[Field, ...], above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Field]]:
    for field in fields:
        path = (*above, field.name)
        if {Immutable, InputOnly, PathOnly, ServerDefault, UpdateOnly} & field.behaviors or path == ("metadata",):
            continue
        if field.shape is Shape.OBJECT:
            yield from _defaults(field.fields, path)
        elif field.default is not None:
            yield path, field


CASES = [(kind, path, field) for kind in KINDS for path, field in _defaults(kind.fields)]


@pytest.mark.parametrize(
    ("kind", "path", "field"), CASES, ids=[f"{kind.name}.{'.'.join(path)}" for kind, path, _ in CASES]
)
def test_a_default_that_is_not_live_is_in_the_body(kind: Kind, path: tuple[str, ...], field: Field) -> None:
    spec = _minimal(kind.fields)
    inside, fields = spec, kind.fields
    for name in path[:-1]:
        (part,) = (field for field in fields if field.name == name)
        inside = inside.setdefault(name, {**_minimal(part.fields), **inside.get(name, {})})
        fields = part.fields
    shown = deepcopy(spec)
    inside = shown
    for name in path[:-1]:
        inside = inside[name]
    inside[path[-1]] = _another(field)
    address = f"{kind.name}/a"
    owner = record(address, spec) if kind.keeps_owner else None
    parent = "some" if kind.parent else None
    live_object = live(kind.name, "id-1", shown, owner=owner, parent=parent)
    bindings = {} if kind.keeps_owner else {address: Binding(live_object.locator)}
    plan = make_plan(declare(address, spec), seen=snapshot(live_object, bindings=bindings))
    (call,) = plan.calls
    body: Any = reveal(dict(call.body or {}))
    for name in path[1:] if str(call.path).endswith(f"/{path[0]}") else path:
        body = body[name]
    assert body == field.default


def test_the_sandbox_takes_the_documented_defaults() -> None:
    for kind, path, field in CASES:
        taken = bodies.fill_defaults(kind.name, field, None, "".join(f"{name}." for name in path[:-1]))
        assert canonicalize_live(field, taken) == empty(field), (kind.name, path)


def test_there_is_a_case_for_every_sort_of_default() -> None:
    names = {f"{kind.name}.{'.'.join(path)}" for kind, path, _ in CASES}
    assert names >= {
        "HTTPSEdgeRoute.saml.allow_idp_initiated",
        "HTTPSEdgeRoute.backend.enabled",
        "HTTPSEdgeRoute.oauth.provider.github.teams",
        "IPRestriction.enforced",
        "TLSEdge.description",
        "BotUser.active",
    }
