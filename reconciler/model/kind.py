"""`Kind`, the declarative description of a resource kind: its collection, identity, parent and special rules.

Validation, diff, order of calls, sandbox, schemas and reference pages are derived from it. `fields` describes fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from functools import cached_property
from typing import Any

from msgspec import Struct, field

from reconciler.model.access import Access, Name, PathOf, Upstream, WayIn
from reconciler.model.fields.field import Field, fields_of
from reconciler.model.fields.spec import Read, Spec
from reconciler.model.health import AccountFacts, Body, Health, Record
from reconciler.model.value import Json


class PartOf(Struct, frozen=True):
    """The parent of a kind of child objects."""

    kind: str
    """The kind of the parent."""
    field: str
    """The spec field that refers to the parent."""
    deleted_with: bool = True
    """The platform deletes children with their parent. False: it does not delete a parent with children."""
    inline: str = ""
    """The key under which a manifest of the parent can declare its children, as a map from name to spec."""


class Parent(PartOf, frozen=True):
    """A parent whose path is part of the child's path."""

    embedded: str = ""
    """The key in the parent's response that contains the children, so that they need no list call."""


class Modules(Struct, frozen=True):
    """Rules for the modules of an object, besides those of their fields."""

    traffic: str = ""
    """The module that admits traffic. Of a kind that has one, a declaration with only an `id` manages the modules of an
    existing object: all others are set before this one, and removed after it."""
    exclusive: tuple[str, ...] = ()
    """Modules of which an object has at most one, and which only one object below a parent may have. The traffic module
    is removed while one of them replaces another."""
    remove_before: Mapping[str, str] = field(default_factory=dict)
    """Values that the platform accepts only after the removed modules were deleted."""


class Endpoint(Struct, frozen=True):
    """Which other objects may serve the same address, besides the fields that are `Exclusive`."""

    url: str | None = None
    """The field with the URL that the object serves: no object of another kind may have the host and port of the URL in
    its exclusive field."""
    shared_while: str | None = None
    """The flag field; several objects that set it may serve one URL."""
    beside_https: bool = False
    """A URL with the scheme https may have the host and port of the exclusive field, too."""


class Wire(Struct, frozen=True):
    """What differs from most kinds in requests and responses."""

    fixed: Mapping[str, str] = field(default_factory=dict)
    """Values that every create sends, and that distinguish this kind from others in the same collection."""
    automatic: str | None = None
    """The response field that is set if the platform created the object and renews it."""
    untimed: bool = False
    """Responses have no `created_at`."""
    supports: tuple[str, ...] | None = None
    """Of a kind that cannot be declared: the operations besides reading, such as `delete`."""


class Home(StrEnum):
    """Where the objects of a kind exist."""

    PLATFORM = "the platform"  # managed with the management API
    AGENT = "the agent"  # managed with the local API of an agent, while the agent runs
    FILE = "a file"  # no objects: a declaration is rendered to a file, and never planned


class Kind(Struct, frozen=True, eq=False, dict=True):
    """A kind of resource."""

    spec: type[Spec]
    """The fields that a manifest may declare. The name of the class is the name of the kind."""
    path: str = ""
    """The path of the collection, relative to the base address; `{edge_id}` is the id of the parent."""
    list_key: str = ""
    """The name of the array in a list response."""
    id_prefix: str = ""
    """The prefix of ids, with its underscore; empty if the objects have no id."""
    read: type[Read] = Read
    """The fields that responses have besides those of the spec."""
    key: str = "id"
    """The response field that identifies an object in its path."""
    home: Home = Home.PLATFORM
    """The API that has the collection."""
    identity: tuple[str, ...] = ()
    """The natural key: fields that identify an object without an owner record."""
    unique: bool = False
    """The platform rejects a second object with the same identity."""
    display_fields: tuple[str, ...] = ()
    """Fields and outputs that tell people which object this is, besides its identity and description."""
    part_of: PartOf | None = None
    """The parent of child objects; children of a managed parent that are not declared are additions."""
    part_kinds: tuple[str, ...] = ()
    """Kinds of children of the objects that this kind refers to: objects of this kind are created or updated after
    these children are created, and detached before they are deleted."""
    requires_parts: Callable[[Mapping[str, Any]], bool] | None = None
    """Of a kind with `part_kinds`: whether an object with these fields always needs at least one child."""
    one_time: str | None = None
    """The response field of the one-time secret, returned only by the create."""
    irreplaceable: bool = False
    """Irreversible if deleted: another account may then acquire the same name or address."""
    access: Access | None = None
    """What the object means for who can reach what: a way in, a gate, an upstream; None: nothing."""
    health: Callable[[Body, AccountFacts], Health | None] | None = None
    """Whether an object works; None: nothing is said about it."""
    records: Callable[[Body], Iterable[Record]] | None = None
    """The DNS records that an object needs."""
    host: str | None = None
    """The field or output with the reserved hostname, which values of other resources may mention."""
    modules: Modules = Modules()
    endpoint: Endpoint = Endpoint()
    wire: Wire = Wire()
    example: str = ""
    """A spec as YAML, for the reference page; validated by the tests."""

    @property
    def name(self) -> str:
        return self.spec.__name__

    @property
    def carries_traffic(self) -> bool:
        """Whether traffic passes through the objects, so that deleting one interrupts traffic."""
        return isinstance(self.access, WayIn | PathOf | Upstream | Name)

    @cached_property
    def parent(self) -> Parent | None:
        """The parent whose path is part of the object's path, or None."""
        return self.part_of if isinstance(self.part_of, Parent) else None

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        return fields_of(self.spec)

    @cached_property
    def entry_fields(self) -> tuple[Field, ...]:
        """The fields of a child that is declared inline: all but those that name its parent."""
        above = self.part_of.field if self.part_of is not None else ""
        return tuple(field for field in self.fields if above not in (field.name, field.name_of))

    @cached_property
    def by_name(self) -> Mapping[str, Field]:
        return {field.name: field for field in self.fields}

    @cached_property
    def alias(self) -> Field | None:
        """The field that may hold the name of an object that another field refers to by id (`NameOf`)."""
        return next((field for field in self.fields if field.name_of is not None), None)

    def is_unique(self, fields: Mapping[str, Any]) -> bool:
        """Whether an object with these fields must be the only one with its identity."""
        flag = self.identity_shared_while
        return self.unique and (flag is None or fields.get(flag) is not True)

    @property
    def identity_shared_while(self) -> str | None:
        """The flag field with which several objects may have one identity, which is the URL that they serve."""
        return self.endpoint.shared_while if self.endpoint.url in self.identity else None

    def is_automatic(self, body: Mapping[str, Json]) -> bool:
        """Whether the platform created the object with this body for another one. It cannot be declared or deleted."""
        return self.wire.automatic is not None and body.get(self.wire.automatic) is not None

    @cached_property
    def modules_by_id(self) -> tuple[str, ...]:
        """The modules that can be managed on an existing object that is declared only by its id, in the order in which
        they are set; they are removed in the opposite order."""
        traffic = self.modules.traffic
        if not traffic:
            return ()
        return (*(field.name for field in self.fields if field.module and field.name != traffic), traffic)

    @cached_property
    def required_unless_id(self) -> tuple[str, ...]:
        """The fields that a declaration must have unless it has the `id` of an object whose modules it manages."""
        return tuple(name for name in self.identity if self.modules_by_id and not self.by_name[name].required)

    @cached_property
    def keeps_owner(self) -> bool:
        """Whether objects have `metadata`, which holds the owner record. Agents may not return it."""
        return self.home is Home.PLATFORM and "metadata" in self.by_name

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        """The fields that other resources may refer to: `id`, then the fields that the platform sets."""
        return ("id", *(name for name in self.read.model_fields if name != "id"))
