"""How the annotations of a spec are compiled into fields."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import ValidationError
from typing_extensions import Doc

from reconciler.model.fields.annotations import (
    Behavior,
    Between,
    Detach,
    EqualAs,
    Immutable,
    MaxBytes,
    ReadAs,
    RefTo,
    Sensitive,
    ServerDefault,
    Unordered,
)
from reconciler.model.fields.field import Shape, fields_of
from reconciler.model.fields.spec import Module, Part, Spec
from reconciler.model.value import Json


def lower(value: Json) -> Json:
    return value.lower() if isinstance(value, str) else value


Name = Annotated[str, MaxBytes(8), EqualAs(lower), Doc("A name.")]


class Inner(Part):
    """Something inside.

    More of it.
    """

    secret: Annotated[str, Sensitive]
    size: Annotated[int, Between(1, 3)] = 1


class Guard(Module):
    """Guards it."""

    policy_ids: Annotated[list[Annotated[str, RefTo("Policy")]], ReadAs("policies[].id"), Unordered]


class Example(Spec):
    """An example."""

    name: Annotated[Name, Immutable]
    other: Annotated[Name | None, Immutable, Doc("Another name."), Detach("elsewhere")] = None
    names: list[Name] = []  # noqa: RUF012 - as in kinds; copied for each instance
    labels: dict[str, Name] = {}  # noqa: RUF012 - as above
    ratio: float = 0.5
    on: bool = True
    choice: Annotated[Literal["a", "b"], ServerDefault] = "a"
    maybe: Annotated[Literal["a", "b"], Unordered] | None = None
    inner: Inner | None = None
    inners: list[Inner] = []  # noqa: RUF012 - as above
    document: str | dict[str, Any] = ""
    guard: Guard | None = None
    started: Inner = Inner(secret="x", size=2)


FIELDS = {field.name: field for field in fields_of(Example)}


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("name", Shape.TEXT),
        ("other", Shape.TEXT),
        ("names", Shape.LIST),
        ("labels", Shape.MAP),
        ("ratio", Shape.NUMBER),
        ("on", Shape.FLAG),
        ("choice", Shape.TEXT),
        ("maybe", Shape.TEXT),
        ("inner", Shape.OBJECT),
        ("document", Shape.ANY),
        ("guard", Shape.OBJECT),
    ],
)
def test_a_shape_is_that_of_the_type_without_annotations_and_none(name: str, shape: Shape) -> None:
    assert FIELDS[name].shape is shape


def test_outer_annotations_override_inner_ones() -> None:
    assert FIELDS["name"].doc == "A name."
    assert FIELDS["other"].doc == "Another name."
    assert FIELDS["other"].canonical is lower
    assert FIELDS["other"].max_bytes == 8
    assert Immutable in FIELDS["other"]


def test_the_items_of_a_list_and_a_map_have_their_own_annotations() -> None:
    for name in ("names", "labels"):
        item = FIELDS[name].item
        assert item is not None
        assert (item.shape, item.canonical, item.max_bytes) == (Shape.TEXT, lower, 8)
        assert FIELDS[name].canonical is None


def test_a_list_of_references_has_the_kinds_of_its_items() -> None:
    (policy_ids,) = [field for field in FIELDS["guard"].fields if field.name == "policy_ids"]
    assert policy_ids.refs == ("Policy",)
    assert policy_ids.read_as == ReadAs("policies[].id")
    assert Unordered in policy_ids


def test_only_a_field_without_a_default_is_required() -> None:
    assert [name for name, field in FIELDS.items() if field.required] == ["name"]


def test_the_default_of_an_object_is_plain() -> None:
    assert FIELDS["started"].default == {"secret": "x", "size": 2}
    assert FIELDS["names"].default == []
    assert FIELDS["guard"].default is None


def test_an_optional_field_has_the_choices_of_its_type() -> None:
    assert FIELDS["choice"].choices == FIELDS["maybe"].choices == ("a", "b")
    assert Behavior.SERVER_DEFAULT in FIELDS["choice"]
    assert Unordered in FIELDS["maybe"]


def test_an_object_is_documented_by_the_first_line_of_its_docstring() -> None:
    assert FIELDS["inner"].doc == "Something inside."
    assert FIELDS["guard"].doc == "Guards it."


def test_a_field_with_a_nested_secret_is_sensitive() -> None:
    assert [name for name, field in FIELDS.items() if field.is_sensitive] == ["inner", "inners", "started"]


def test_a_module_is_deleted_at_its_name_and_a_detached_field_at_its_segment() -> None:
    cleared = {name: field.delete_segment for name, field in FIELDS.items() if field.delete_segment}
    assert cleared == {"guard": "guard", "other": "elsewhere"}
    assert FIELDS["guard"].module
    assert not FIELDS["inner"].module


def test_bounds_are_compiled() -> None:
    assert [field.between for field in FIELDS["inner"].fields] == [None, (1, 3)]


def test_a_spec_is_strict_closed_and_frozen() -> None:
    for wrong in ({"name": 1}, {"name": "a", "on": "yes"}, {"name": "a", "surprise": 1}, {"name": "far too long"}):
        with pytest.raises(ValidationError):
            Example.model_validate(wrong)
    with pytest.raises(ValidationError):
        setattr(Example(name="a"), "name", "b")  # noqa: B010 - what a type checker would refuse


def test_an_error_never_shows_the_value() -> None:
    with pytest.raises(ValidationError) as caught:
        Example.model_validate({"name": "a", "inner": {"secret": 12345}})
    assert "12345" not in str(caught.value)
