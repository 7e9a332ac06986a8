"""Annotations of fields in kind files (`Annotated` metadata): behaviors, references, canonical forms, bounds.

Behaviors have the names of Google AIP-203 where it defines one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from reconciler.model.change import Risk
from reconciler.model.fields.readers import InDoubt, Reader
from reconciler.model.value import Json, replace_at

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler
    from pydantic_core import CoreSchema


class Behavior(Enum):
    """How the platform treats a field. The values are the texts of `explain`."""

    IMMUTABLE = "cannot be updated in place: another value replaces the object"
    INPUT_ONLY = "never returned by the platform: compared by the digest in the owner record"
    SERVER_DEFAULT = "set by the platform unless declared, and again after the declaration is removed"
    SOMETIMES_RETURNED = "not returned by every agent: then compared by the digest of the last apply, if that is known"
    UNORDERED = "a list whose order does not matter"
    SENSITIVE = "never displayed, logged or stored"
    PATH_ONLY = "part of the object's path, not of its body"
    EXCLUSIVE = "only one object may have an item: it is removed from one object before another gets it"
    UPDATE_ONLY = "accepted by PATCH but not by POST: a create is followed by an update"
    CREATE_ONLY = "sent when the object is created, and never compared: a later change has no effect"
    ALWAYS_SENT = "sent in every PATCH: the public platform empties it if it is omitted"

    __hash__ = object.__hash__  # faster than Enum's own, which is written in Python


Immutable = Behavior.IMMUTABLE

InputOnly = Behavior.INPUT_ONLY

ServerDefault = Behavior.SERVER_DEFAULT

SometimesReturned = Behavior.SOMETIMES_RETURNED

Unordered = Behavior.UNORDERED

Sensitive = Behavior.SENSITIVE

PathOnly = Behavior.PATH_ONLY

Exclusive = Behavior.EXCLUSIVE

UpdateOnly = Behavior.UPDATE_ONLY

CreateOnly = Behavior.CREATE_ONLY

AlwaysSent = Behavior.ALWAYS_SENT


@dataclass(frozen=True)
class RefTo:
    """The value is the id of an object of one of these kinds."""

    kinds: tuple[str, ...]

    def __init__(self, *kinds: str) -> None:
        object.__setattr__(self, "kinds", kinds)


class ReadAs(Struct, frozen=True):
    """The place of the value in responses: `backend.id`, or `ip_policies[].id` for a list.

    While the response's field `unless` is set, the place holds a value of the platform, and the field is not set.
    """

    path: str
    unless: str = ""


class AsMap(Struct, frozen=True):
    """A list of parts that the platform represents as a map, from each part's field `key` to its field `value`."""

    key: str
    value: str

    def to_map(self, parts: list[Json]) -> Json:
        return {part[self.key]: part[self.value] for part in parts}

    def from_map(self, spelt: Mapping[str, Json]) -> list[Json]:
        return [{self.key: key, self.value: value} for key, value in spelt.items()]


class EqualAs(Struct, frozen=True):
    """Two values are equal if their canonical forms are. `canonical` is pure and accepts any plain JSON."""

    canonical: Callable[[Json], Json]


class Completed(Struct, frozen=True):
    """The platform completes an incomplete value, such as `tcp://`. `reduce` returns the incomplete form of a value.

    It is pure and accepts any plain JSON.
    """

    reduce: Callable[[Json], Json]


class Conceals(Struct, frozen=True):
    """The value is a document or map that may have secrets inside.

    `find` yields their paths within the canonical form. It is pure and accepts any plain JSON.
    """

    find: Callable[[Json], Iterator[tuple[str | int, ...]]]

    def mark(self, value: Json, wrap: Callable[[str], Any]) -> Any:
        """The value with the text of each secret replaced by `wrap` of it."""
        return replace_at(value, self.find(value), wrap)


class Described(Struct, frozen=True):
    """The type of the value in words, for documentation, where its Python type says too little."""

    words: str


class MaxBytes(Struct, frozen=True):
    """The maximum length of a text in bytes of UTF-8, as the platform counts."""

    limit: int

    def reader(self, read: Reader) -> Reader:
        def read_short(value: Any) -> Any:
            if len((text := read(value)).encode()) > self.limit:
                raise InDoubt
            return text

        return read_short

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return _check_after(self._check, source, handler)

    def _check(self, text: str) -> str:
        if (size := len(text.encode())) > self.limit:
            from pydantic_core import PydanticCustomError

            wrong = f"{size} bytes, and at most {self.limit} are allowed; shorten it"
            raise PydanticCustomError("too_many_bytes", "{wrong}", {"wrong": wrong, "limit": self.limit})
        return text


class Between(Struct, frozen=True):
    """The bounds of a number, inclusive."""

    low: int
    high: int

    def reader(self, read: Reader) -> Reader:
        def read_between(value: Any) -> Any:
            if self.low <= (number := read(value)) <= self.high:
                return number
            raise InDoubt

        return read_between

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return _check_after(self._check, source, handler)

    def _check(self, number: int) -> int:
        if not self.low <= number <= self.high:
            from pydantic_core import PydanticCustomError

            wrong = f"{number} is out of range; write a number from {self.low} to {self.high}"
            raise PydanticCustomError("out_of_range", "{wrong}", {"wrong": wrong, "limit": [self.low, self.high]})
        return number


class MinItems(Struct, frozen=True):
    """The minimum length of a list."""

    least: int

    def reader(self, read: Reader) -> Reader:
        def read_long(value: Any) -> Any:
            if len(items := read(value)) < self.least:
                raise InDoubt
            return items

        return read_long

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return {**handler(source), "min_length": self.least}


def _check_after(check: Callable[[Any], Any], source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
    from pydantic_core import core_schema

    return core_schema.no_info_after_validator_function(check, handler(source))


class ImmutablePart(Struct, frozen=True):
    """Only this part of the value cannot be updated in place, such as the scheme of a URL."""

    part: Callable[[Json], Json]
    called: str


class DefaultBy(Struct, frozen=True):
    """The platform's default depends on the value of the field `name`."""

    name: str
    default: Callable[[Json], Json]


class NameOf(Struct, frozen=True):
    """The value is the name of the object that the field `name` refers to by id. Planning treats both alike."""

    name: str


class Mentions(Struct, frozen=True):
    """The value contains hosts: the resource depends on the reserved domain or address of each of them."""

    hosts: Callable[[Json], Iterator[str]]


class Detach(Struct, frozen=True):
    """The field is cleared by DELETE on this path segment of the object; PATCH cannot clear it."""

    segment: str


class Raises(Struct, frozen=True):
    """A risk of changing the value: `when(old, new)` compares canonical values, `None` standing for an absent one.

    It returns None where that is unknown, which counts as true. On a part it is about the whole part; on a spec about
    the whole resource, whose values are maps.
    """

    risk: Risk
    when: Callable[[Any, Any], bool | None]
