"""What a kind file declares of a kind: its collection, how its objects are found again, and what is special of them.

A kind file never acts: validation, diff, order, calls, sandbox, schema and docs follow from it. Its fields are in
`fields`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any

from reconciler.model.fields.field import Field, fields_of
from reconciler.model.fields.spec import Read, Spec


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
    remove_before: Mapping[str, str] = field(default_factory=dict)
    carries_traffic: bool = False
    host: str | None = None
    uri_is_path: bool = False
    untimed: bool = False
    required_unless_id: tuple[str, ...] = ()
    same_as: str | None = None
    shared_while: str | None = None
    exclusive_modules: tuple[str, ...] = ()
    traffic_module: str | None = None
    supports: tuple[str, ...] | None = None
    home: Home = Home.PLATFORM
    automatic: str | None = None
    part_kinds: tuple[str, ...] = ()
    requires_parts: Callable[[Mapping[str, Any]], bool] | None = None
    exclusive_endpoint: tuple[str, str] | None = None
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
    remove_before   values that the platform accepts only once the removed modules are gone, and without its own choices
    carries_traffic  traffic passes through it, so that losing it breaks what is live
    host            the field or output with the host name it reserves, which other values may mention
    untimed         responses carry no `created_at`
    required_unless_id  fields a declaration must have, unless it names an existing object by `id`
    same_as         the kind whose objects these are as well, by ids that differ in nothing but the prefix
    shared_while    the flag that, while it is set, lets several objects have one identity
    exclusive_modules  modules of which an object has at most one, and of all below one parent only one has any
    traffic_module  the module that lets traffic through: off while one of the exclusive modules replaces another
    supports        of what no manifest declares: what can be done with it besides reading, such as `delete`
    home            whose API has the collection
    automatic       the response field that is set while the platform itself made the object and renews it
    part_kinds      kinds that are part of what this one refers to: this one is created or updated after the parts are
                    created, and detached before they are deleted
    requires_parts  of a kind with `part_kinds`: whether one with these fields cannot do without any for a moment
    exclusive_endpoint  the field with its url, and the exclusive field: no object of another kind may have the url's
                    host and port there
    beside_https    an endpoint whose url has the scheme https may have a host and port of the exclusive field as well
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
