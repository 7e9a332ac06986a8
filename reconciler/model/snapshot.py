"""What was seen on the platform, and whether a list was seen to its end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from reconciler.model import owner as owners
from reconciler.model.address import Address
from reconciler.model.owner import Owner
from reconciler.model.value import Json


@dataclass(frozen=True)
class Live:
    """One object as a list response showed it. `id` is what names it in its path."""

    kind: str
    id: str
    body: Mapping[str, Json]
    parent_id: str | None = None

    @cached_property
    def _metadata(self) -> tuple[str, Owner | None]:
        text = self.body.get("metadata")
        return owners.read(text if isinstance(text, str) else "")

    @property
    def owner(self) -> Owner | None:
        """The record on it. One that names another kind was copied by hand, and says nothing."""
        owner = self._metadata[1]
        return owner if owner is not None and owner.address.kind == self.kind else None

    @property
    def metadata(self) -> str:
        """The user's own metadata, without our record."""
        return self._metadata[0]

    @property
    def locator(self) -> str:
        """Its id, below its parent's if it has one: unique within the kind."""
        return f"{self.parent_id}/{self.id}" if self.parent_id else self.id


@dataclass(frozen=True)
class Listing:
    """The objects of one kind. Incomplete means unknown: `why` says what cut the list short."""

    objects: tuple[Live, ...] = ()
    complete: bool = True
    why: str = ""


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
    doubt: str = ""  # why this may not be the account that the stack belongs to

    def of(self, kind: str) -> Listing:
        return self.listings.get(kind, Listing(complete=False, why="it was not listed"))
