"""`Kind`, the declarative description of a resource kind: its collection, identity, parent and special rules.

Validation, diff, order of calls, sandbox, schemas and reference pages are derived from it. `fields` describes fields.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import cached_property
from typing import Any

from msgspec import Struct, field

from reconciler.model.fields.field import Field, fields_of
from reconciler.model.fields.spec import Read, Spec
from reconciler.model.value import Json


class PartOf(Struct, frozen=True):
    """The parent of a kind of child objects; `field` is the spec field that refers to the parent.

    deleted_with   the platform deletes children with their parent; False: it does not delete a parent with children
    """

    kind: str
    field: str
    deleted_with: bool = True


class Parent(PartOf, frozen=True):
    """A parent whose path is part of the child's path.

    embedded   the key in the parent's response that contains the children, so that they need no list call
    """

    embedded: str = ""


class Home(StrEnum):
    """Where the objects of a kind exist."""

    PLATFORM = "the platform"  # managed with the management API
    AGENT = "the agent"  # managed with the local API of an agent, while the agent runs
    FILE = "a file"  # no objects: a declaration is rendered to a file, and never planned


class Kind(Struct, frozen=True, eq=False, dict=True):
    """A kind of resource. The text below the fields describes each of them."""

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
    display_fields: tuple[str, ...] = ()
    example: str = ""
    """
    path            the path of the collection, relative to the base address; `{edge_id}` is the id of the parent
    list_key        the name of the array in a list response
    id_prefix       the prefix of ids, with its underscore; empty if the objects have no id
    identity        the natural key: fields that identify an object without an owner record
    unique          the platform rejects a second object with the same identity
    part_of         the parent of child objects; children of a managed parent that are not declared are additions
    key             the response field that identifies an object in its path
    fixed           values that every create sends, and that distinguish this kind from others in the same collection
    one_time        the response field of the one-time secret, returned only by the create
    irreplaceable   irreversible if deleted: another account may then acquire the same name or address
    modules_by_id   modules that can be managed on an existing object that is declared only by its id
    remove_before   values that the platform accepts only after the removed modules were deleted
    carries_traffic  traffic passes through the object, so that deleting it interrupts traffic
    host            the field or output with the reserved hostname, which values of other resources may mention
    untimed         responses have no `created_at`
    required_unless_id  fields that a declaration must have unless it has the `id` of an existing object
    shared_while    the flag field; several objects that set it may have one identity
    exclusive_modules  modules of which an object has at most one, and which only one object below a parent may have
    traffic_module  the module that admits traffic; removed while one exclusive module replaces another
    supports        of a kind that cannot be declared: the operations besides reading, such as `delete`
    home            the API that has the collection
    automatic       the response field that is set if the platform created the object and renews it
    part_kinds      kinds of children of the objects that this kind refers to: objects of this kind are created or
                    updated after these children are created, and detached before they are deleted
    requires_parts  of a kind with `part_kinds`: whether an object with these fields always needs at least one child
    exclusive_endpoint  the field with the URL, and the exclusive field: no object of another kind may have the host and
                    port of the URL in that field
    beside_https    an endpoint with the scheme https may have the host and port of the exclusive field, too
    display_fields  fields and outputs that tell people which object this is, besides its identity and description
    example         a spec as YAML, for the reference page; validated by the tests
    """

    @property
    def name(self) -> str:
        return self.spec.__name__

    @cached_property
    def parent(self) -> Parent | None:
        """The parent whose path is part of the object's path, or None."""
        return self.part_of if isinstance(self.part_of, Parent) else None

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        return fields_of(self.spec)

    @cached_property
    def by_name(self) -> Mapping[str, Field]:
        return {field.name: field for field in self.fields}

    @cached_property
    def alias(self) -> Field | None:
        """The field that may hold the name of an object that another field refers to by id (`NameOf`)."""
        return next((field for field in self.fields if field.name_of is not None), None)

    def is_unique(self, fields: Mapping[str, Any]) -> bool:
        """Whether an object with these fields must be the only one with its identity."""
        return self.unique and (self.shared_while is None or fields.get(self.shared_while) is not True)

    def is_automatic(self, body: Mapping[str, Json]) -> bool:
        """Whether the platform created the object with this body for another one. It cannot be declared or deleted."""
        return self.automatic is not None and body.get(self.automatic) is not None

    @cached_property
    def keeps_owner(self) -> bool:
        """Whether objects have `metadata`, which holds the owner record."""
        return "metadata" in self.by_name

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        """The fields that other resources may refer to: `id`, then the fields that the platform sets."""
        return ("id", *(name for name in self.read.model_fields if name != "id"))
