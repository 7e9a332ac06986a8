"""What was seen on the platform, and whether a list was seen to its end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.model import owner as owners
from reconciler.model.address import Address
from reconciler.model.owner import Owner
from reconciler.model.value import Json


@dataclass(frozen=True, slots=True)
class Live:
    """One object as a list response showed it. `id` is what names it in its path.

    owner      the record on it; one that names another kind was copied by hand, and says nothing
    metadata   the user's own, without our record
    locator    its id, below its parent's if it has one: unique within the kind
    """

    kind: str
    id: str
    body: Mapping[str, Json]
    parent_id: str | None = None
    owner: Owner | None = field(init=False, repr=False, compare=False)
    metadata: str = field(init=False, repr=False, compare=False)
    locator: str = field(init=False, repr=False, compare=False)
    key: tuple[str, str] = field(init=False, repr=False, compare=False)  # kind and locator

    def __post_init__(self) -> None:
        text = self.body.get("metadata")
        metadata, owner = owners.read(text) if isinstance(text, str) else ("", None)
        object.__setattr__(self, "owner", owner if owner is not None and owner.address.kind == self.kind else None)
        object.__setattr__(self, "metadata", metadata)
        locator = f"{self.parent_id}/{self.id}" if self.parent_id else self.id
        object.__setattr__(self, "locator", locator)
        object.__setattr__(self, "key", (self.kind, locator))


@dataclass(frozen=True)
class Listing:
    """The objects of one kind. Incomplete means unknown: `why` says what cut the list short, and `denied` that the key
    may not read it."""

    objects: tuple[Live, ...] = ()
    complete: bool = True
    why: str = ""
    denied: bool = False


@dataclass(frozen=True, slots=True)
class Binding:
    """What the store remembers of an object: all that is known of its owner where there is no `metadata`."""

    id: str  # as `Live.locator`
    applied: Mapping[str, str] = field(default_factory=dict)
    protect: bool = False
    replaces: str | None = None  # locator of the object this one was created to replace, until that is deleted


@dataclass(frozen=True)
class Snapshot:
    """One look at the account, and the store's memory beside it."""

    listings: Mapping[str, Listing]
    bindings: Mapping[Address, Binding] = field(default_factory=dict)
    receipts: frozenset[str] = frozenset()  # intents whose one-time secret the store knows to be delivered
    undelivered: frozenset[str] = frozenset()  # and those whose secret it knows to have arrived nowhere
    overwritten: Mapping[str, Address] = field(default_factory=dict)  # and those after which the address got another
    doubt: str = ""  # why this may not be the account that the stack belongs to

    def of(self, kind: str) -> Listing:
        return self.listings.get(kind, Listing(complete=False, why="it was not listed"))
