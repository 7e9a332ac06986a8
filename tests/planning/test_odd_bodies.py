"""A list response is untrusted input: any content results in a plan and not in an exception."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconciler.model import owner_record as owners
from reconciler.model.fields.field import Field, Shape
from reconciler.model.kind import Kind
from reconciler.model.snapshot import Live
from reconciler.model.value import Secret
from reconciler.planning.importing.survey import survey
from reconciler.rendering.wire.plan_json import write_plan
from tests.harness.builders import KINDS, LENIENT, declare, make_plan, manifest, record, snapshot
from tests.harness.tiers import examples

TEXTS = st.sampled_from(
    [
        "",
        "x",
        "*",
        "a.example.com",
        "A.example.com.:443",
        "https://a.example.com",
        "10.0.0.0/8",
        "\ud800",
        "\x00",
        "id-1",
    ]
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS
JUNK = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner, max_size=2), max_leaves=5
)


def value_of(field: Field) -> st.SearchStrategy[Any]:
    """A value of a shape like that of the field, with odd values inside; or any value."""
    match field.shape:
        case Shape.OBJECT:
            similar: st.SearchStrategy[Any] = st.fixed_dictionaries(
                {}, optional={key_of(inner_field): value_of(inner_field) for inner_field in field.fields}
            )
        case Shape.LIST if field.item is not None:
            similar = st.lists(value_of(field.item), max_size=2)
        case Shape.TEXT | Shape.ANY:
            similar = TEXTS
        case _:
            similar = SCALARS
    return similar | JUNK


def key_of(field: Field) -> str:
    return field.read_as.path.partition(".")[0].removesuffix("[]") if field.read_as else field.name


def body_of(kind: Kind) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional={key_of(field): value_of(field) for field in kind.fields})


def spec_of(kind: Kind) -> dict[str, Any]:
    return {field.name: plain_value(field) for field in kind.fields if field.name != "metadata"}


def plain_value(field: Field) -> Any:
    match field.shape:
        case Shape.OBJECT:
            return {inner_field.name: plain_value(inner_field) for inner_field in field.fields}
        case Shape.LIST:
            return [plain_value(field.item)] if field.item else []
        case Shape.MAP:
            return {"k": "v"}
        case Shape.FLAG:
            return True
        case Shape.INTEGER | Shape.NUMBER:
            return 7
    return Secret("s3cret-value", "env:S") if field.is_sensitive else "id-1"


@st.composite
def worlds(draw: Any) -> tuple[Kind, list[Live]]:
    kind = draw(st.sampled_from(KINDS))
    objects = []
    for number in range(draw(st.integers(1, 3))):
        body = {kind.key: f"id-{number}", **draw(body_of(kind))}
        address = f"{kind.name}/{draw(st.sampled_from('ab'))}"
        if kind.keeps_owner and draw(st.booleans()):
            body["metadata"] = owners.write("", record(address, spec_of(kind), intent=draw(TEXTS)))
        objects.append(Live(kind.name, f"id-{number}", body, "parent" if kind.parent else None))
    return kind, objects


@settings(max_examples=examples(400), suppress_health_check=list(HealthCheck))
@given(worlds())
def test_a_list_with_any_content_results_in_a_plan(world: tuple[Kind, list[Live]]) -> None:
    kind, objects = world
    for spec in ({}, spec_of(kind)):
        plan = make_plan(declare(f"{kind.name}/a", spec), seen=snapshot(*objects), options=LENIENT)
        assert "s3cret-value" not in write_plan(plan)


@settings(max_examples=examples(200), suppress_health_check=list(HealthCheck))
@given(worlds())
def test_each_object_of_a_list_with_any_content_is_offered_or_skipped_with_a_reason(
    world: tuple[Kind, list[Live]],
) -> None:
    _, objects = world
    found = survey(manifest(), snapshot(*objects), KINDS)
    offered = {(imported.live.kind, imported.live.locator) for imported in found.imported}
    skipped = {(left_out.kind, left_out.id) for left_out in found.left_out if left_out.why}
    assert offered | skipped == {(live_object.kind, live_object.locator) for live_object in objects}
    assert offered & skipped == set()
