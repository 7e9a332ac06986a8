"""Each form of a value is decoded as each type of the model, or is refused with the reason."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from msgspec import Struct

from reconciler.languages.yaml import scalars
from reconciler.model.address import Address
from reconciler.model.health import State
from reconciler.model.value import Hidden, JsonTemplate, Ref, Secret, Template, UnreadSecret
from reconciler.rendering.wire import codec
from tests.rendering.test_text import compare


class Inner(Struct, frozen=True):
    """The inner class.

    Of which only the first line is in the schema.
    """

    text: str
    next: Inner | None = None


class Outer(Struct, frozen=True):
    """The outer class."""

    flag: bool
    count: int
    share: float
    state: State
    target: Address
    pair: tuple[str, int]
    inner: tuple[Inner, ...]
    by_address: Mapping[Address, Inner | None]
    by_name: Mapping[str, int]
    path: str | Template
    value: Any

    @property
    def size(self) -> int:
        return 7


DERIVED: codec.Derived = {Outer: ("size",)}
HINTS: dict[str, Any] = {
    "bool": bool,
    "int": int,
    "float": float,
    "str": str,
    "state": State,
    "address": Address,
    "int or null": int | None,
    "text or template": str | Template,
    "pair": tuple[str, int],
    "list of int": tuple[int, ...],
    "map of int": Mapping[str, int],
    "map by address": Mapping[Address, int],
    "inner": Inner,
    "any": Any,
}
REF = {"$ref": "IPPolicy/a.b.id"}
ENCODED: tuple[Any, ...] = (
    None,
    True,
    0,
    7,
    -0.5,
    10**400,
    float("inf"),
    "",
    "x",
    "degraded",
    "Kind/name",
    [],
    [7],
    [True],
    ["a"],
    ["a", 7],
    ["a", 7, 8],
    {},
    {"a": 7},
    {"$$a": 7, "b$": 8},
    {"$$": 7},
    {"Kind/name": 7},
    {"text": "a", "next": None},
    {"text": "a", "next": {"text": "b", "next": None}},
    {"text": "a", "next": {"text": 7, "next": None}},
    {"text": "a"},
    {"text": "a", "next": None, "more": 1},
    REF,
    {**REF, "x": 1},
    {"$template": [], "$ref": 7},
    {"$ref": 7},
    {"$ref": "IPPolicy/a"},
    {"$ref": "no address.id"},
    {"$ref": "id"},
    {"$unheard": 1},
    {"$template": ["a", REF]},
    {"$template": "a"},
    {"$template": [7]},
    {"$template": [{**REF, "x": 1}]},
    {"$template": [{"$ref": 7}]},
    {"$json": ["a", REF, {"$template": [REF]}, {"$secret": {"source": "env:A", "digest": "d"}}]},
    {"$json": [7]},
    {"$json": REF},
    {"$hidden": "0a"},
    {"$hidden": 7},
    {"$unread": "env:A"},
    {"$unread": ""},
    {"$number": "1.10"},
    {"$number": "0x1F"},
    {"$number": "true"},
    {"$number": "x"},
    {"$number": ""},
    {"$number": ".inf"},
    {"$number": 7},
    {"$secret": {"source": "env:A", "digest": "d"}},
    {"$secret": {"source": "env:A", "digest": "d", "more": 1}},
    {"$secret": {"source": "env:A"}},
    {"$secret": "env:A"},
    [[{"a": [REF]}]],
)


def find(source: str, digest: str) -> Secret:
    return Secret(f"{source} {digest}", source)


def show(value: object) -> str:
    spelling = getattr(value, "spelling", None)
    text = f"{value!r} spelled {spelling}" if spelling else repr(value)
    return text.replace("0" * 400, "0×400")


def decode(hint: Any, encoded: Any) -> str:
    try:
        return show(codec.decode(hint, encoded, find, DERIVED))
    except codec.Malformed as error:
        return f"refused: {error}".replace("0" * 400, "0×400")


def test_each_form_is_decoded_or_refused_by_each_type() -> None:
    lines = []
    for name, hint in HINTS.items():
        lines += [f"# {name}"]
        for encoded in ENCODED:
            found = decode(hint, encoded)
            if not found.startswith("refused: ") or not isinstance(encoded, dict) or hint in (Any, Inner):
                lines.append(f"{show(encoded)} → {found}")
    compare("codec.txt", "".join(f"{line}\n" for line in lines))


VALUES: tuple[Any, ...] = (
    None,
    True,
    7,
    0.5,
    "x",
    [],
    [7, (8,)],
    {},
    {"b": 1, "a": {"$x": 2, "$": 3, "$$y": 4}},
    Ref(Address("IPPolicy", "a.b"), "id"),
    Template(("a", Ref(Address("IPPolicy", "a"), "id"))),
    JsonTemplate(("a", Ref(Address("IPPolicy", "a"), "id"), Secret("hunter2", "env:A"))),
    Hidden("0a"),
    Hidden("", "env:A"),
    Secret("hunter2", "env:A"),
    UnreadSecret("env:B"),
    scalars.plain("1.10"),
    scalars.plain("0x1F"),
)


def test_each_value_is_encoded() -> None:
    encoded = [codec.encode_value(value, "prod") for value in VALUES]
    compare("codec-values.txt", "".join(f"{show(v)} → {json.dumps(e)}\n" for v, e in zip(VALUES, encoded, strict=True)))
    for value, written in zip(VALUES, encoded, strict=True):
        if not isinstance(value, (Secret, JsonTemplate)) and value != [7, (8,)]:
            assert codec.decode_value(written, find) == value


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (float("nan"), "nan is not a number that JSON can hold"),
        (float("-inf"), "-inf is not a number that JSON can hold"),
        ([{"a": b"x"}], "a bytes is not a value"),
    ],
)
def test_values_that_json_cannot_hold_are_not_encoded(value: Any, why: str) -> None:
    with pytest.raises(codec.Malformed) as error:
        codec.encode_value(value, "prod")
    assert str(error.value) == why


OUTER = Outer(
    True,
    7,
    0.5,
    State.DEGRADED,
    Address("Kind", "name"),
    ("a", 7),
    (Inner("b", Inner("c")),),
    {Address("Kind", "z"): None, Address("Kind", "a"): Inner("d")},
    {"z": 1, "$a": 2},
    Template((Ref(Address("IPPolicy", "a"), "id"),)),
    {"$free": [Secret("hunter2", "env:A")]},
)


def test_a_class_is_encoded_with_sorted_keys_and_what_is_derived() -> None:
    encoded = codec.encode(Outer, OUTER, "prod", DERIVED)
    compare("codec-class.txt", json.dumps([encoded, codec.schema(Outer, DERIVED)], indent=1) + "\n")
    assert codec.decode(Outer, encoded, lambda *_: Secret("hunter2", "env:A"), DERIVED) == OUTER


def test_a_damaged_class_is_refused_with_the_reason() -> None:
    encoded = codec.encode(Outer, OUTER, "prod", DERIVED)
    assert isinstance(encoded, dict)
    lines = []
    for name in encoded:
        for wrong in (None, 7.5, ["a"], {"b": "c"}):
            lines += [f"{name}: {show(wrong)} → {decode(Outer, {**encoded, name: wrong})[:200]}"]
        without = {key: value for key, value in encoded.items() if key != name}
        lines += [f"{name}: missing → {decode(Outer, without)}"]
    compare("codec-damaged.txt", "".join(f"{line}\n" for line in lines))
