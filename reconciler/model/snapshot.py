"""Live objects as read from the platform, and whether each list was read to its end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Self

from reconciler.model import owner_record as owners
from reconciler.model.address import Address
from reconciler.model.owner_record import Owner
from reconciler.model.value import Json

NOT_OFFERED: Final = "the platform does not offer "
"""So begins why a list is incomplete if there is no such collection; then comes its path."""


LiveKey = tuple[str, str]
"""Kind and locator: names a live object within the account."""


class _LiveFields(NamedTuple):
    kind: str
    id: str
    body: Mapping[str, Json]
    parent_id: str | None
    owner: Owner | None
    metadata: str
    locator: str
    key: LiveKey


class Live(_LiveFields):
    """One object as a list response showed it. `id` is what names it in its path. A tuple, as its owner record is.

    owner      the record on it; one that names another kind was copied by hand, and says nothing
    metadata   the user's own, without our record
    locator    its id, below its parent's if it has one: unique within the kind
    key        kind and locator
    """

    __slots__ = ()

    def __new__(cls, kind: str, id: str, body: Mapping[str, Json], parent_id: str | None = None) -> Self:
        text = body.get("metadata")
        metadata, owner = owners.read(text) if isinstance(text, str) else ("", None)
        if owner is not None and owner.address.kind != kind:
            owner = None
        locator = f"{parent_id}/{id}" if parent_id else id
        return super().__new__(cls, kind, id, body, parent_id, owner, metadata, locator, (kind, locator))

    def with_body(self, body: Mapping[str, Json]) -> Live:
        """The same object with another body."""
        return Live(self.kind, self.id, body, self.parent_id)


@dataclass(frozen=True)
class Listing:
    """The objects of one kind. Incomplete means unknown: `why` says what cut the list short, and `denied` that the key
    may not read it."""

    objects: tuple[Live, ...] = ()
    complete: bool = True
    why: str = ""
    denied: bool = False

    @property
    def is_offered(self) -> bool:
        """False: the platform has no such collection."""
        return NOT_OFFERED not in self.why


@dataclass(frozen=True, slots=True)
class Binding:
    """What the store remembers of an object: all that is known of its owner where there is no `metadata`."""

    id: str  # as `Live.locator`
    applied: Mapping[str, str] = field(default_factory=dict)
    protect: bool = False
    replaces: str | None = None  # locator of the object this one was created to replace, until that is deleted


@dataclass(frozen=True, slots=True)
class Place:
    """Where a one-time secret was to be delivered.

    path       a file below the project's root, or a program
    entry      within the file, where it has entries
    checkout   tells this folder on this machine from every other one
    """

    way: str
    path: str
    entry: str = ""
    host: str = ""
    checkout: str = ""

    def is_same(self, other: Place) -> bool:
        """Whether the two name the same target of a project, on whatever machine."""
        return (self.way, self.path, self.entry) == (other.way, other.path, other.entry)


@dataclass(frozen=True, slots=True)
class IssuedSecret:
    """A create of an object with a one-time secret, as the store knows it.

    place     None: of a store of before, which did not record it
    arrived   whether the delivery is known to have succeeded; otherwise it may have
    """

    intent: str
    address: Address
    place: Place | None
    arrived: bool


@dataclass(frozen=True, slots=True)
class Target:
    """What is known of the place where a declared one-time secret goes.

    shown        in words: "secrets/agent.token"
    is_there     something is there that a delivery would overwrite
    is_ours      a secret of this resource was, or may have been, delivered there
    is_gone      what was delivered there on this machine is not there any more
    """

    shown: str
    is_there: bool = False
    is_ours: bool = False
    is_gone: bool = False


@dataclass(frozen=True)
class Snapshot:
    """One look at the account, and the store's memory beside it."""

    listings: Mapping[str, Listing]
    bindings: Mapping[Address, Binding] = field(default_factory=dict)
    receipts: frozenset[str] = frozenset()  # intents whose one-time secret the store knows to be delivered
    undelivered: frozenset[str] = frozenset()  # and those whose secret it knows to have arrived nowhere
    overwritten: Mapping[str, Address] = field(default_factory=dict)  # and those after which the address got another
    targets: Mapping[Address, Target] = field(default_factory=dict)  # of deliveries to files; empty if not looked at
    doubt: str = ""  # why this may not be the account that the stack belongs to
    elsewhere: Mapping[tuple[str, str], str] = field(default_factory=dict)  # kind and locator → the other stack
    is_remembered: bool = False  # the store took part in an apply of this stack

    def of(self, kind: str) -> Listing:
        return self.listings.get(kind, Listing(complete=False, why="it was not listed"))
