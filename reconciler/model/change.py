"""Changes of resources and of their fields, with the codes and texts of reasons, risks and causes."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Self

from msgspec import Struct, field

from reconciler.model.address import Address
from reconciler.model.dns import PlannedRecord
from reconciler.model.problem import Position
from reconciler.model.value import Value


class Action(StrEnum):
    """What a plan does to a resource."""

    CREATE = "create"
    UPDATE = "update"
    REPLACE = "replace"
    DELETE = "delete"
    ADOPT = "adopt"  # start to manage an existing unmanaged object; may carry field changes
    FORGET = "forget"  # remove the owner record, keep the object
    MOVE = "move"  # the same object under another address; may carry field changes

    @property
    def past(self) -> str:
        """The word for an action that was done, such as `created`."""
        return "forgotten" if self is Action.FORGET else f"{self.value.removesuffix('e')}ed"


class Coded(StrEnum):
    """A code for files and programs, with the text that people read."""

    _value_: str
    text: str

    def __new__(cls, code: str, text: str) -> Self:
        member = str.__new__(cls, code)
        member._value_ = code
        member.text = text
        return member


class Cause(StrEnum):
    """Where a change or the change of a field comes from, seen from a review."""

    THIS_CHANGE = "this_change"  # the manifests since the base commit
    PENDING = "pending"  # in Git before the base commit, and not applied yet
    DRIFT = "drift"  # changed on the platform since the last apply


class ChangedBy(Coded):
    """What changed a field since it was last applied."""

    GIT = "git", "changed in Git"
    PLATFORM = "platform", "changed on the platform"
    BOTH = "both", "changed in Git and on the platform"
    FOLLOWS = "follows", "refers to a replaced resource"
    UNKNOWN = "unknown", "unknown cause"  # an adopted object, or a field that the owner record lacks


class Order(Coded):
    """Which half of a replacement is sent first."""

    CREATE_FIRST = "create_first", "create before delete"
    DELETE_FIRST = "delete_first", "delete before create"


class Risk(Coded):
    """A property of a change that a reviewer must see. Ordered by weight."""

    WIDENS_ACCESS = "widens_access", "widens access"
    LOCKS_OUT = "locks_out", "locks everyone out"
    EXPOSES = "exposes", "opens a new way in"
    IRREVERSIBLE = "irreversible", "irreversible: cannot be recovered after deletion"
    LEAVES_DNS_RECORD = "leaves_dns_record", "leaves a dangling DNS record: others may take the name over"
    INTERRUPTS_TRAFFIC = "interrupts_traffic", "interrupts live traffic"
    RUNS_COMMAND = "runs_command", "runs a command"
    ISSUES_CREDENTIAL = "issues_credential", "issues a one-time secret"
    DISABLES_AGENT = "disables_agent", "disables agents"
    ADDED = "added", "added on the platform, outside Git"


class FieldChange(Struct, frozen=True):
    """One field, old → new, in canonical form. Sensitive values are digests, never plain text."""

    path: str  # "tls_termination.min_version"
    old: Value
    new: Value  # with a Ref or Template inside: known after apply
    changed_by: ChangedBy = ChangedBy.UNKNOWN
    forces_replacement: bool = False
    position: Position | None = None
    cause: Cause | None = None  # None: the plan was not compared with a base


class Reason(Coded):
    """Why a resource changes."""

    DECLARED = "declared", "does not exist on the platform"
    VANISHED = "vanished", "was deleted on the platform"
    NO_SUCH_ID = "no_such_id", "no object has the id that its manifest names"
    FIELDS = "fields", "fields differ"
    IMMUTABLE = "immutable", "a field differs that cannot be updated in place"
    REMOVED = "removed", "no longer declared"
    ADDED = "added", "added on the platform, not declared"
    SUPERSEDED = "superseded", "another object replaced it"
    DESTROYED = "destroyed", "`destroy` deletes the whole stack"
    ABSENT = "absent", "declared with `ensure: absent`"
    UNOWNED = "unowned", "already exists and is not managed by any stack"
    RENAMED = "renamed", "declared under another address"
    RECORD = "record", "the owner record is out of date"
    FORGOTTEN = "forgotten", "declared with `ensure: forgotten`"
    UNDELIVERED = "undelivered", "its one-time secret was not delivered"
    OVERWRITTEN = "overwritten", "its delivered one-time secret was overwritten by a later one"
    ROTATION = "rotation", "its one-time secret is due for rotation"
    REQUESTED = "requested", "replacement requested with --replace"
    EXCHANGED = "exchanged", "exchanges an exclusive value with another resource"
    PARENT = "parent", "its parent is replaced"
    DUPLICATE = "duplicate", "duplicate created by a concurrent run; the earlier object is kept"


class Change(Struct, frozen=True):
    """What will happen to one resource, why, and in which fields."""

    address: Address
    action: Action
    reason: Reason
    id: str | None = None  # of the live object, if there is one
    fields: tuple[FieldChange, ...] = ()
    order: Order | None = None  # of a replacement
    risks: tuple[Risk, ...] = ()
    protected: bool = False
    position: Position | None = None
    former: Address | None = None  # of a move, and of a replacement under another address
    parent: Address | None = None  # of an addition: the declared resource that it is part of
    is_pending: bool = False  # proven to come from Git alone: the platform is as last applied
    cause: Cause | None = None  # as of a field
    identity: Mapping[str, Value] = field(default_factory=dict)  # of a delete: what the object is, such as its domain
    needs_records: tuple[PlannedRecord, ...] = ()  # to be set in DNS for the new object
    leaves_records: tuple[PlannedRecord, ...] = ()  # set in DNS for the deleted object
