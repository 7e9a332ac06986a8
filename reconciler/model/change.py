"""What differs between what is declared and what is live, with reasons as values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from reconciler.model.address import Address
from reconciler.model.problem import Position
from reconciler.model.value import Value


class Action(StrEnum):
    CREATE = "create"
    UPDATE = "update"
    REPLACE = "replace"
    DELETE = "delete"
    ADOPT = "adopt"  # take over an object that nobody owns; may carry field changes
    FORGET = "forget"  # remove our record, leave the object
    MOVE = "move"  # the same object under another address; may carry field changes


class ChangedBy(StrEnum):
    """Who moved a field since it was last applied."""

    GIT = "changed in Git"
    PLATFORM = "changed on the platform"
    BOTH = "changed on both sides"
    FOLLOWS = "follows what it refers to"  # which is made anew
    UNKNOWN = "not known"  # nothing was recorded: an adopted object, or a field of an older record


class Cause(StrEnum):
    """Where a change or the change of a field comes from, seen from a review."""

    THIS_CHANGE = "this_change"  # the manifests since the base commit
    PENDING = "pending"  # in Git before the base commit, and not applied yet
    DRIFT = "drift"  # changed on the platform since the last apply


class Order(StrEnum):
    """Which half of a replacement comes first."""

    CREATE_FIRST = "create first"
    DELETE_FIRST = "delete first"


class Risk(StrEnum):
    """What a reviewer must not overlook."""

    TRAFFIC = "breaks live traffic"
    GONE = "cannot be had back"
    COMMAND = "runs a command"
    ADDED = "added on the platform, outside Git"
    TOKEN = "token will be issued"  # noqa: S105 - words for a reviewer, no password


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field, old → new, in canonical form. Sensitive values stand as digests, never in the clear."""

    path: str  # "tls_termination.min_version"
    old: Value
    new: Value  # a Ref or Template inside: known after apply
    changed_by: ChangedBy = ChangedBy.UNKNOWN
    forces_replacement: bool = False
    position: Position | None = None
    cause: Cause | None = None  # None: the plan was not compared with a base


class Reason(StrEnum):
    """Why a resource changes at all."""

    DECLARED = "declared, and not on the platform"
    VANISHED = "declared and once created, but gone from the platform"
    FIELDS = "fields differ"
    IMMUTABLE = "a field that cannot change in place differs"
    REMOVED = "no longer declared"
    ADDED = "added on the platform, not declared"
    SUPERSEDED = "another took its place"
    DESTROYED = "all of the stack goes"
    TOMBSTONE = "declared absent"
    UNOWNED = "exists and belongs to nobody"
    RENAMED = "declared under another name"
    RECORD = "the owner record is out of date"
    FORGOTTEN = "declared forgotten"
    UNDELIVERED = "its one-time secret never arrived"
    OVERWRITTEN = "its one-time secret was delivered, and overwritten by a later one"
    ROTATION = "its one-time secret is due for renewal"
    ASKED = "asked for by --replace"
    EXCHANGED = "it trades what only one may have with another"
    PARENT = "what it belongs to is replaced"
    DUPLICATE = "made twice by two runs at once; the earlier one stays"


@dataclass(frozen=True)
class Change:
    """What happens to one resource."""

    address: Address
    action: Action
    reason: Reason
    id: str | None = None  # of the live object, if there is one
    fields: tuple[FieldChange, ...] = ()
    order: Order | None = None  # of a replacement
    risks: tuple[Risk, ...] = ()
    protected: bool = False
    position: Position | None = None
    former: Address | None = None  # of a move, and of what was renamed as it was replaced
    parent: Address | None = None  # of an addition: the declared resource that it is part of
    is_pending: bool = False  # proven to come from Git alone: the platform is still as it was last applied
    cause: Cause | None = None  # as of a field
