"""One canonical form: the digests that the engine records are those that planning computes from the live object."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler import kinds
from reconciler.model.address import Address
from reconciler.model.canonical import (
    canonical_spec,
    canonical_value,
    canonicalize,
    collect_applied,
    digests,
    is_sorted,
    settle,
    sort_items,
)
from reconciler.model.fields.annotations import InputOnly, Sensitive
from reconciler.model.fields.field import Field, Shape
from reconciler.model.kind import Kind
from reconciler.model.snapshot import Live
from reconciler.model.value import JsonTemplate, Ref, Secret, Template, Value, digest, reveal, substitute
from reconciler.planning.comparing.canonical_fields import agrees, body_value, canonical_live_value, columns
from tests.harness.tiers import examples

each_kind = pytest.mark.parametrize("kind", kinds.list_planned(), ids=lambda kind: kind.name)

SALT = "intent"
TEXTS = (
    *("", " ", "a", "b", "A b", "*", "null", "eu", "edge", "global", "HTTPS://A.example.com:443/", "App.Example.com."),
    *("a.x:443", "A.x:443", "10.1.2.3/8", "2001:DB8::/32", "2030-01-01T01:00:00+01:00", "service_1", "bot_1", "1"),
    *("BEGIN\nabc\n\nEND\n", "ssh-ed25519 AAAA me@home", "http", "{}", '{"on_http_request": []}', "[1]", "x: [1"),
)
ANSWERS = {str(number): text for number, text in enumerate(TEXTS)}  # output → its value in a response
KNOWN = st.sampled_from(TEXTS)
PAY = Address("ReservedDomain", "pay")
ANSWERED = str(TEXTS.index("a"))
REFS = st.sampled_from([Ref(PAY, output) for output in ANSWERS])
TEMPLATES = st.builds(lambda before, ref, after: Template((before, ref, after)), KNOWN, REFS, KNOWN)
DOCUMENTS: st.SearchStrategy[Value] = st.dictionaries(
    st.sampled_from(["on_http_request", "inbound", "rules"]),
    st.lists(
        st.dictionaries(st.sampled_from(["name", "expressions", "actions"]), KNOWN | REFS | TEMPLATES | st.just([]))
    )
    | st.none(),
    min_size=1,
)


def answer(ref: Ref) -> str:
    return ANSWERS[ref.output]


def field_values(field: Field) -> st.SearchStrategy[Value]:
    """Values that a manifest may declare for a field, with and without references."""
    if Sensitive in field:
        return REFS | KNOWN.map(lambda text: Secret(text, "env:SECRET"))
    match field.shape:
        case Shape.OBJECT:
            return _object(field.fields)
        case Shape.LIST if field.item is not None:
            return st.lists(field_values(field.item), max_size=1 if field.as_map else 3)
        case Shape.MAP if field.item is not None:
            return st.dictionaries(KNOWN, field_values(field.item), max_size=3)
        case Shape.ANY:
            return KNOWN | REFS | TEMPLATES | DOCUMENTS
        case Shape.INTEGER:
            return st.integers(0, 3)
        case Shape.NUMBER:
            return st.sampled_from([0, 0.0, 1, 1.0, 0.5])
        case Shape.FLAG:
            return st.booleans()
    return KNOWN | REFS | TEMPLATES | (st.sampled_from(field.choices) if field.choices else st.nothing())


def _object(fields: tuple[Field, ...]) -> st.SearchStrategy[Value]:
    always = {field.name: field_values(field) for field in fields if field.required}
    some = {field.name: st.none() | field_values(field) for field in fields if not field.required}
    return st.fixed_dictionaries(always, optional=some)


@cache
def specs(kind: Kind) -> st.SearchStrategy[dict[str, Value]]:
    """Declarations of one field each, since each field has its own canonical form."""
    return st.one_of([st.fixed_dictionaries({field.name: st.none() | field_values(field)}) for field in kind.fields])


@each_kind
@settings(max_examples=examples(25))
@given(st.data())
def test_recorded_digests_are_those_of_the_declaration_with_resolved_references(
    kind: Kind, data: st.DataObject
) -> None:
    spec = data.draw(specs(kind))
    recorded = digests(settle(kind, collect_applied(kind, canonical_spec(kind, spec)), answer), SALT)
    once_live = {name: substitute(value, answer) for name, value in spec.items()}
    assert recorded == digests(collect_applied(kind, canonical_spec(kind, once_live)), SALT)


@each_kind
@settings(max_examples=examples(25))
@given(st.data())
def test_a_response_to_the_sent_value_agrees_with_the_declaration(kind: Kind, data: st.DataObject) -> None:
    """For every field that responses contain: after one apply there are no changes."""
    column = data.draw(st.sampled_from(columns(kind)))
    field = column.field
    declared_value = data.draw(st.none() | field_values(field))
    known = substitute(declared_value, answer)
    sent: Any = (
        None if known is None else _response_value(field, reveal(substitute(body_value(field, declared_value), answer)))
    )
    live = Live(kind.name, "id-1", {field.name: sent}, str(sent) if sent else None)
    if declared_value is not None or not column.is_optional:
        assert agrees(field, canonical_value(field, known), canonical_live_value(column, live))


def _response_value(field: Field, value: Any) -> Any:
    """The value in a response, without `InputOnly` parts."""
    if field.shape is Shape.OBJECT and isinstance(value, Mapping):
        named = {part.name: part for part in field.fields}
        return {
            name: _response_value(named[name], part) for name, part in value.items() if InputOnly not in named[name]
        }
    if field.as_map is not None and isinstance(value, list):
        return field.as_map.to_map(value)
    return value


@each_kind
@settings(max_examples=examples(25))
@given(st.data())
def test_a_canonical_form_is_its_own_canonical_form(kind: Kind, data: st.DataObject) -> None:
    field = data.draw(st.sampled_from(kind.fields))
    form = canonical_value(field, data.draw(st.none() | field_values(field)))
    assert form is None or canonicalize(field, form) == form


def test_owner_records_have_no_unsalted_digest_of_a_sensitive_value() -> None:
    """Not even of a value from a reference."""
    plain = {digest(text) for text in TEXTS}
    for kind in kinds.list_planned():
        for field in (field for field in kind.fields if field.is_sensitive):
            for path in _sensitive_paths(field):
                (recorded,) = digests(settle(kind, {path: Ref(PAY, ANSWERED)}, answer), SALT).values()
                assert recorded not in plain, path


def _sensitive_paths(field: Field, above: str = "") -> list[str]:
    path = above + field.name
    below = [inner for sub in field.fields for inner in _sensitive_paths(sub, f"{path}.")]
    return [path, *below] if Sensitive in field else below


def test_items_of_every_sort_have_an_order() -> None:
    """Also those that only an edited plan file contains, such as a template without a reference."""
    items: list[Value] = [
        "b",
        1,
        {"a": [JsonTemplate(("[", "1]"))]},
        JsonTemplate(()),
        Ref(Address("IPPolicy", "office")),
        Secret("x", "env:X"),
    ]
    field = next(field for field in kinds.get("IPRestriction").fields if field.name == "ip_policy_ids")
    assert is_sorted(sort_items(field, items))
    assert len(sort_items(field, [*items, *items])) == len(items)
