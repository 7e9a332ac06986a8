"""Compiles the fields of a spec class, with their annotations, into immutable `Field` objects."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import cache, cached_property
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from msgspec import Struct
from typing_extensions import Doc

from reconciler.model.fields.annotations import (
    AsMap,
    Behavior,
    Between,
    Completed,
    Conceals,
    DefaultBy,
    Described,
    Detach,
    EqualAs,
    ImmutablePart,
    MaxBytes,
    Mentions,
    NameOf,
    Raises,
    ReadAs,
    RefTo,
)
from reconciler.model.fields.form import Form, FormField
from reconciler.model.fields.spec import Module
from reconciler.model.value import Json


class Shape(StrEnum):
    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"
    FLAG = "flag"
    LIST = "list"
    MAP = "map"
    OBJECT = "object"
    ANY = "any"  # text, or an inline document that is sent as text


class Field(Struct, frozen=True, eq=False, dict=True):  # one instance for each field, used as a key
    """One field of a kind, with all properties that planning, the sandbox and the schemas use."""

    name: str
    shape: Shape
    doc: str = ""
    required: bool = False
    default: Json = None
    default_by: DefaultBy | None = None
    behaviors: frozenset[Behavior] = frozenset()
    refs: tuple[str, ...] = ()
    read_as: ReadAs | None = None
    canonical: Callable[[Json], Json] | None = None
    completed: Completed | None = None
    conceals: Conceals | None = None
    immutable_part: ImmutablePart | None = None
    mentions: Mentions | None = None
    name_of: str | None = None
    detach: str | None = None
    as_map: AsMap | None = None
    module: bool = False
    item: Field | None = None  # of a list
    fields: tuple[Field, ...] = ()  # of an object
    choices: tuple[str, ...] = ()
    max_bytes: int | None = None
    between: tuple[int, int] | None = None
    described: str = ""  # the type in words
    raises: tuple[Raises, ...] = ()

    def __contains__(self, behavior: Behavior) -> bool:
        return behavior in self.behaviors

    def default_beside(self, spec: Mapping[str, Any]) -> Json:
        """The default of the field in a spec with these values."""
        return self.default if self.default_by is None else self.default_by.default(spec.get(self.default_by.name))

    def forms_of(self, value: Any) -> tuple[Any, ...]:
        """The declared values that a live value in canonical form may come from: itself, and its incomplete form."""
        if self.completed is None or not isinstance(value, str):
            return (value,)
        return value, self.completed.reduce(value)

    @property
    def delete_segment(self) -> str | None:
        """The path segment whose DELETE clears this field, None if PATCH can clear it."""
        return self.name if self.module else self.detach

    @cached_property
    def is_sensitive(self) -> bool:
        """Whether the field or a field inside it is sensitive."""
        return (
            Behavior.SENSITIVE in self.behaviors
            or any(inner.is_sensitive for inner in self.fields)
            or (self.item is not None and self.item.is_sensitive)
        )

    @cached_property
    def may_conceal(self) -> bool:
        """Whether the field or a field inside it is a document that may have secrets inside."""
        inside = any(inner.may_conceal for inner in self.fields)
        return self.conceals is not None or inside or (self.item is not None and self.item.may_conceal)

    @cached_property
    def may_mention(self) -> bool:
        """Whether the field or a field inside it contains hosts."""
        return self.mentions is not None or any(inner.may_mention for inner in self.fields)

    @cached_property
    def is_verbatim(self) -> bool:
        """Whether every text of the field is its own canonical form."""
        is_foreign = Behavior.SOMETIMES_RETURNED in self.behaviors and self.choices  # a word that may be no choice
        is_plain = self.canonical is None and Behavior.SENSITIVE not in self.behaviors
        return self.shape is Shape.TEXT and is_plain and not is_foreign

    @cached_property
    def is_exact(self) -> bool:
        """Whether equal canonical values are equal on the platform: no part is hidden or free in form."""
        inside = all(field.is_exact for field in self.fields)
        hidden = self.behaviors & {Behavior.INPUT_ONLY, Behavior.SOMETIMES_RETURNED}
        return self.shape is not Shape.ANY and not hidden and inside


@cache
def fields_of(spec: type[Form]) -> tuple[Field, ...]:
    """The compiled fields of a spec or part, in the order of their definition."""
    return tuple(_field(name, info) for name, info in spec.model_fields.items())


def _field(name: str, info: FormField) -> Field:
    default = None if info.is_required() else info.default
    if isinstance(default, Form):
        default = default.model_dump()
    return _compile(name, info.annotation, list(info.metadata), required=info.is_required(), default=default)


def _compile(name: str, annotation: Any, words: list[Any], *, required: bool = False, default: Json = None) -> Field:
    inner, more = _unwrap(annotation)
    words = more + words
    origin, args = get_origin(inner), get_args(inner)
    item: Field | None = None
    fields: tuple[Field, ...] = ()
    choices: tuple[str, ...] = ()
    module = False
    if origin is list:
        shape = Shape.LIST
        item = _compile(name, args[0], [])
    elif origin is dict:
        shape = Shape.MAP
        item = _compile(name, args[1], [])
    elif origin is Literal:
        shape, choices = Shape.TEXT, tuple(str(arg) for arg in args)
    elif isinstance(inner, type) and issubclass(inner, Form):
        shape, fields, module = Shape.OBJECT, fields_of(inner), issubclass(inner, Module)
    else:
        shape = _PLAIN.get(inner, Shape.ANY)

    def last(word: type[Any]) -> Any:
        return next((item for item in reversed(words) if isinstance(item, word)), None)

    behaviors = frozenset(item for item in words if isinstance(item, Behavior))
    refs, read_as, equal, doc, detach = last(RefTo), last(ReadAs), last(EqualAs), last(Doc), last(Detach)
    name_of = last(NameOf)
    size, between, described = last(MaxBytes), last(Between), last(Described)
    return Field(
        name=name,
        shape=shape,
        doc=doc.documentation if doc else _first_line(inner) if fields else "",
        required=required,
        default=default,
        default_by=last(DefaultBy),
        behaviors=behaviors,
        refs=refs.kinds if refs else item.refs if item else (),
        read_as=read_as,
        canonical=_leave_out if Behavior.CREATE_ONLY in behaviors else equal.canonical if equal else None,
        completed=last(Completed),
        conceals=last(Conceals),
        immutable_part=last(ImmutablePart),
        mentions=last(Mentions),
        name_of=name_of.name if name_of else None,
        detach=detach.segment if detach else None,
        as_map=last(AsMap),
        module=module,
        item=item,
        fields=fields,
        choices=choices,
        max_bytes=size.limit if size else None,
        between=(between.low, between.high) if between else None,
        described=described.words if described else "",
        raises=(*(word for word in words if isinstance(word, Raises)), *getattr(inner, "raises", ())),
    )


def _leave_out(value: Json) -> Json:
    """The canonical form of a value that is never compared: all are equal."""
    return None


def _first_line(shape: type[Form]) -> str:
    return (shape.__doc__ or "").strip().partition("\n")[0]


_PLAIN: dict[Any, Shape] = {
    str: Shape.TEXT,
    int: Shape.INTEGER,
    float: Shape.NUMBER,
    bool: Shape.FLAG,
}


def _unwrap(annotation: Any) -> tuple[Any, list[Any]]:
    """The bare type inside `Annotated` and `| None`, and all annotations on the way."""
    words: list[Any] = []
    while True:
        origin = get_origin(annotation)
        if origin is Annotated:
            annotation, *more = get_args(annotation)
            words = more + words
        elif origin in (Union, types.UnionType):
            rest = [arg for arg in get_args(annotation) if arg is not types.NoneType]
            if len(rest) != 1:
                return Any, words
            annotation = rest[0]
        else:
            return annotation, words
