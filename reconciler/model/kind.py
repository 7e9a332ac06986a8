"""What a kind file declares. It never acts: validation, diff, order, calls, sandbox, schema and docs follow from it.

Field behaviours are `Annotated` words, with Google AIP-203 names where one exists. `fields_of` compiles a spec class
into the frozen `Field` rows that the rest of the program reads.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from functools import cache, cached_property
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, PydanticCustomError, core_schema
from typing_extensions import Doc

from reconciler.model.problem import Severity
from reconciler.model.value import Json

# --- behaviours of a field --------------------------------------------------------------------------------------------


class Behaviour(Enum):
    IMMUTABLE = "another value needs another object"
    INPUT_ONLY = "never read back: compared by the digest in the owner record"
    SERVER_DEFAULT = "the platform fills it in: compared when declared, and given back when declared no more"
    UNORDERED = "a list whose order means nothing"
    SENSITIVE = "never shown, logged or stored"
    PATH_ONLY = "part of the object's path, not of its body"
    EXCLUSIVE = "no two objects may hold the same item: it is let go before it is taken"
    UPDATE_ONLY = "accepted by PATCH but not by POST: a create is followed by an update"
    ALWAYS_SENT = "in every PATCH: the public platform empties it where it is left out"

    __hash__ = object.__hash__  # Enum's own is Python code, and planning asks a million times


Immutable = Behaviour.IMMUTABLE
InputOnly = Behaviour.INPUT_ONLY
ServerDefault = Behaviour.SERVER_DEFAULT
Unordered = Behaviour.UNORDERED
Sensitive = Behaviour.SENSITIVE
PathOnly = Behaviour.PATH_ONLY
Exclusive = Behaviour.EXCLUSIVE
UpdateOnly = Behaviour.UPDATE_ONLY
AlwaysSent = Behaviour.ALWAYS_SENT


@dataclass(frozen=True)
class RefTo:
    """The value is the id of one of these kinds."""

    kinds: tuple[str, ...]

    def __init__(self, *kinds: str) -> None:
        object.__setattr__(self, "kinds", kinds)


@dataclass(frozen=True)
class ReadAs:
    """Where the written value stands in a response: `backend.id`, or `ip_policies[].id` for a list.

    While the response's field `unless` is set, the platform itself fills the place in, and nothing was written.
    """

    path: str
    unless: str = ""


@dataclass(frozen=True)
class AsMap:
    """A list of parts that the platform spells as a map, from the field `key` of each to its field `value`."""

    key: str
    value: str

    def written(self, parts: list[Json]) -> Json:
        return {each[self.key]: each[self.value] for each in parts}

    def read(self, spelt: Mapping[str, Json]) -> list[Json]:
        return [{self.key: key, self.value: value} for key, value in spelt.items()]


@dataclass(frozen=True)
class EqualAs:
    """Two values are equal when their canonical forms are. `canonical` is pure and total on plain JSON."""

    canonical: Callable[[Json], Json]


@dataclass(frozen=True, slots=True)
class MaxBytes:
    """A text's limit in bytes of UTF-8, which is how the platform counts."""

    limit: int

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def _check(self, text: str) -> str:
        if (size := len(text.encode())) > self.limit:
            wrong = f"{size} bytes, and at most {self.limit} are allowed; shorten it"
            raise PydanticCustomError("too_many_bytes", "{wrong}", {"wrong": wrong})
        return text


@dataclass(frozen=True, slots=True)
class Between:
    """A number's bounds, both allowed."""

    low: int
    high: int

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def _check(self, number: int) -> int:
        if not self.low <= number <= self.high:
            wrong = f"{number} is out of range; write a number from {self.low} to {self.high}"
            raise PydanticCustomError("out_of_range", "{wrong}", {"wrong": wrong})
        return number


@dataclass(frozen=True)
class ImmutablePart:
    """Only this part of the value cannot change in place (the scheme of a url, the member of a target)."""

    part: Callable[[Json], Json]
    called: str


@dataclass(frozen=True)
class DefaultBy:
    """What the platform takes by default follows from what another field, `name`, says."""

    name: str
    default: Callable[[Json], Json]


@dataclass(frozen=True)
class NameOf:
    """The value is the name of what another field, `name`, refers to by its id; planning takes it for that."""

    name: str


@dataclass(frozen=True)
class Mentions:
    """The value names hosts: the resource depends on the reserved domain or address behind each of them."""

    hosts: Callable[[Json], Iterator[str]]


@dataclass(frozen=True)
class Detach:
    """Cleared by DELETE on this segment below the object; PATCH cannot empty it."""

    segment: str


# --- the classes a kind file derives from -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Finding:
    """A broken rule within a declaration; `path` leads to the value that is wrong.

    Where that value is a text that is a document itself, `within` leads on from there; `spot` is the line and column,
    from 1, within the text that is reached.
    """

    path: tuple[str | int, ...]
    text: str
    remedy: str = ""
    severity: Severity = Severity.ERROR
    code: str = ""  # as of a Problem
    within: tuple[str | int, ...] = ()
    spot: tuple[int, int] | None = None
    is_key: bool = False  # whether it is about the last key of the path, and not about its value


class _Shape(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, hide_input_in_errors=True, defer_build=True)


class Spec(_Shape):
    """What a user may declare: the platform's own write shape."""

    def findings(self) -> Iterator[Finding]:
        """The rules between fields that this declaration breaks. Values may still be references."""
        return iter(())


class Part(_Shape):
    """An object inside a spec."""

    def findings(self) -> Iterator[Finding]:
        """As of a spec, with paths relative to this object."""
        return iter(())


class Module(Part):
    """A part with an address of its own: PUT, GET and DELETE on `<object>/<field name>`."""

    enabled: Annotated[bool, Doc("Whether the module is applied to traffic.")] = True


class Read(BaseModel):
    """What a response carries beyond the declared fields."""

    model_config = ConfigDict(extra="allow", frozen=True, defer_build=True)


class Ref(BaseModel):
    """A pointer to another resource, as responses spell it."""

    model_config = ConfigDict(extra="allow", frozen=True, defer_build=True)

    id: str
    uri: str = ""


# --- the compiled form ------------------------------------------------------------------------------------------------


class Shape(StrEnum):
    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"
    FLAG = "flag"
    LIST = "list"
    MAP = "map"
    OBJECT = "object"
    ANY = "any"  # text, or an inline document that is sent as text


@dataclass(frozen=True, eq=False)  # there is one of each, and it serves as a key
class Field:
    """One declared field, with everything that planning, the sandbox and the schemas need to know of it."""

    name: str
    shape: Shape
    doc: str = ""
    required: bool = False
    default: Json = None
    default_by: DefaultBy | None = None
    behaviours: frozenset[Behaviour] = frozenset()
    refs: tuple[str, ...] = ()
    read_as: ReadAs | None = None
    canonical: Callable[[Json], Json] | None = None
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

    def __contains__(self, behaviour: Behaviour) -> bool:
        return behaviour in self.behaviours

    def default_beside(self, spec: Mapping[str, Any]) -> Json:
        """What is taken by default in an object with these values."""
        return self.default if self.default_by is None else self.default_by.default(spec.get(self.default_by.name))

    @property
    def clearing(self) -> str | None:
        """The path segment whose DELETE empties this field, if PATCH cannot."""
        return self.name if self.module else self.detach

    @cached_property
    def is_sensitive(self) -> bool:
        """Whether it, or anything inside it, must not be shown."""
        return (
            Behaviour.SENSITIVE in self.behaviours
            or any(inner.is_sensitive for inner in self.fields)
            or (self.item is not None and self.item.is_sensitive)
        )

    @cached_property
    def may_mention(self) -> bool:
        """Whether it, or anything inside it, names hosts."""
        return self.mentions is not None or any(inner.may_mention for inner in self.fields)

    @cached_property
    def is_verbatim(self) -> bool:
        """Whether any text in it is its own canonical form."""
        return self.shape is Shape.TEXT and self.canonical is None and Behaviour.SENSITIVE not in self.behaviours

    @cached_property
    def is_exact(self) -> bool:
        """Whether equal canonical values say all: nothing inside is unread or free in form."""
        inside = all(each.is_exact for each in self.fields)
        return self.shape is not Shape.ANY and Behaviour.INPUT_ONLY not in self.behaviours and inside


@dataclass(frozen=True)
class PartOf:
    """The kind that an object is part of; `field` is the spec field that names its parent.

    deleted_with   the platform deletes the object with its parent; False: it refuses to delete a parent that has parts
    """

    kind: str
    field: str
    deleted_with: bool = True


@dataclass(frozen=True)
class Parent(PartOf):
    """A parent below whose path the object lives. `embedded` is the key under which the parent's own response carries
    its children, so that they need no list call."""

    embedded: str = ""


class Home(StrEnum):
    """Where the objects of a kind live."""

    PLATFORM = "the platform"  # behind the management API
    AGENT = "the agent"  # behind the local API of an agent, for as long as that runs
    FILE = "a file"  # nowhere: a declaration is rendered, and never planned


@dataclass(frozen=True, eq=False)
class Kind:
    """A kind of resource; of the platform unless its `home` says otherwise."""

    spec: type[Spec]
    path: str
    list_key: str
    id_prefix: str
    read: type[Read] = Read
    identity: tuple[str, ...] = ()
    unique: bool = False
    part_of: PartOf | None = None
    key: str = "id"
    fixed: Mapping[str, str] = field(default_factory=dict)
    one_time: str | None = None
    irreplaceable: bool = False
    modules_by_id: tuple[str, ...] = ()
    removals_first: Mapping[str, str] = field(default_factory=dict)
    serves: bool = False
    host: str | None = None
    uri_is_path: bool = False
    untimed: bool = False
    required_unless_id: tuple[str, ...] = ()
    same_as: str | None = None
    shared_while: str | None = None
    one_of: tuple[str, ...] = ()
    opens: str | None = None
    offers: tuple[str, ...] | None = None
    home: Home = Home.PLATFORM
    automatic: str | None = None
    settled_by: tuple[str, ...] = ()
    insists: Callable[[Mapping[str, Any]], bool] | None = None
    stands_at: tuple[str, str] | None = None
    beside_https: bool = False
    example: str = ""
    """
    path            the collection, relative to the base address; `{edge_id}` is filled from the parent
    list_key        the array's name in a list response
    id_prefix       with its underscore; empty where the platform gives no id
    identity        fields that find an object again when there is no owner record
    unique          the platform refuses a second object with the same identity
    part_of         the parent that an object is a child of; what nobody declares below a parent of ours is drift
    key             the response field that names an object in its path
    fixed           values every create sends, and that tell this kind from others in the same collection
    one_time        the response field that is readable once, in the answer to the create
    irreplaceable   once deleted, the same name or address may belong to somebody else
    modules_by_id   modules that can be managed on an object that is named by id and not otherwise managed
    removals_first  values that the platform accepts only once the removed modules are gone, and without its own choices
    serves          traffic passes through it, so that losing it breaks what is live
    host            the field or output with the host name it reserves, which other values may mention
    untimed         responses carry no `created_at`
    required_unless_id  fields a declaration must have, unless it names an existing object by `id`
    same_as         the kind whose objects these are as well, by ids that differ in nothing but the prefix
    shared_while    the flag that, while it is set, lets several objects have one identity
    one_of          modules of which an object has at most one, and of all below one parent only one has any
    opens           the module that lets traffic through: off while one of `one_of` takes the place of another
    offers          of what no manifest declares: what can be done with it besides reading, such as `delete`
    home            whose API has the collection
    automatic       the response field that is set while the platform itself made the object and renews it
    settled_by      kinds that are part of what this one refers to: this one is created or updated after the parts are
                    created, and detached before they are deleted
    insists         of what is settled by parts: whether one with these fields cannot do without any for a moment
    stands_at       the field with its url, and the exclusive field in which no object of another kind may have the host
                    and port of that
    beside_https    a `stands_at` url of the scheme https may have a host and port of the exclusive field as well
    example         a spec as YAML: shown on the kind's page, and validated by the tests
    """

    @property
    def name(self) -> str:
        return self.spec.__name__

    @cached_property
    def parent(self) -> Parent | None:
        """The parent whose path the object's path begins with."""
        return self.part_of if isinstance(self.part_of, Parent) else None

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        return fields_of(self.spec)

    @cached_property
    def by_name(self) -> Mapping[str, Field]:
        return {each.name: each for each in self.fields}

    @cached_property
    def alias(self) -> Field | None:
        """The field that may name what another one refers to by its id."""
        return next((each for each in self.fields if each.name_of is not None), None)

    def is_unique(self, fields: Mapping[str, Any]) -> bool:
        """Whether no second object may have the identity of one with these fields."""
        return self.unique and (self.shared_while is None or fields.get(self.shared_while) is not True)

    @cached_property
    def keeps_owner(self) -> bool:
        """Whether an object has `metadata`, the home of the owner record."""
        return "metadata" in self.by_name

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        """Fields another resource may refer to: `id` first, then what the platform fills in."""
        return ("id", *(name for name in self.read.model_fields if name != "id"))


@cache
def fields_of(spec: type[BaseModel]) -> tuple[Field, ...]:
    """The compiled fields of a spec or part, in the order they are written."""
    return tuple(_field(name, info) for name, info in spec.model_fields.items())


def _field(name: str, info: FieldInfo) -> Field:
    default = None if info.is_required() else info.get_default(call_default_factory=True)
    if isinstance(default, BaseModel):
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
    elif isinstance(inner, type) and issubclass(inner, BaseModel):
        shape, fields, module = Shape.OBJECT, fields_of(inner), issubclass(inner, Module)
    else:
        shape = _PLAIN.get(inner, Shape.ANY)

    def last(word: type[Any]) -> Any:
        return next((each for each in reversed(words) if isinstance(each, word)), None)

    refs, read_as, equal, doc, detach = last(RefTo), last(ReadAs), last(EqualAs), last(Doc), last(Detach)
    name_of = last(NameOf)
    size, between = last(MaxBytes), last(Between)
    return Field(
        name=name,
        shape=shape,
        doc=doc.documentation if doc else _first_line(inner) if fields else "",
        required=required,
        default=default,
        default_by=last(DefaultBy),
        behaviours=frozenset(each for each in words if isinstance(each, Behaviour)),
        refs=refs.kinds if refs else item.refs if item else (),
        read_as=read_as,
        canonical=equal.canonical if equal else None,
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
    )


def _first_line(shape: type[BaseModel]) -> str:
    return (shape.__doc__ or "").strip().partition("\n")[0]


_PLAIN: dict[Any, Shape] = {
    str: Shape.TEXT,
    int: Shape.INTEGER,
    float: Shape.NUMBER,
    bool: Shape.FLAG,
}


def _unwrap(annotation: Any) -> tuple[Any, list[Any]]:
    """The bare type behind `Annotated` and `| None`, and the words met on the way."""
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
