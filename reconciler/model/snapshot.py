"""Snapshots of an account: live objects by kind, whether each list is complete, and the state of the store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, Self

from msgspec import Struct, field

from reconciler.model import owner_record as owners
from reconciler.model.address import Address
from reconciler.model.owner_record import Owner
from reconciler.model.value import Json

NOT_OFFERED: Final = "the platform does not offer "
"""The beginning of `Listing.why` if the platform does not have the collection; its path follows."""


LiveKey = tuple[str, str]
"""Kind and locator of a live object, unique within the account."""


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
    """One object as a list response returned it. A tuple for speed, like its owner record.

    id         the id in the object's path
    owner      the owner record in its metadata; None for a record that names another kind, which was copied by hand
    metadata   the user's metadata, without the owner record
    locator    `id`, or `parent id/id` for a child: unique within the kind
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

    def without_owner(self) -> Live:
        """The same object with all of its metadata as the user's, for kinds that keep no owner record."""
        text = self.body.get("metadata")
        return self._replace(owner=None, metadata=text if isinstance(text, str) else "")

    def with_body(self, body: Mapping[str, Json]) -> Live:
        """The same object with another body."""
        return Live(self.kind, self.id, body, self.parent_id)


class Listing(Struct, frozen=True):
    """The live objects of one kind. If not `complete`, nothing may be concluded from the absence of an object.

    why      why the list is incomplete
    denied   the API key is not permitted to read the list
    """

    objects: tuple[Live, ...] = ()
    complete: bool = True
    why: str = ""
    denied: bool = False

    @property
    def is_offered(self) -> bool:
        """Whether the platform has the collection."""
        return NOT_OFFERED not in self.why


class Binding(Struct, frozen=True):
    """The store's record of an object. For kinds without `metadata` it is the only record of ownership.

    adopted   the object was found by its name and adopted without approval, since nothing had to be changed: only an
              approval that names it deletes it
    """

    id: str  # the locator, see `Live`
    applied: Mapping[str, str] = field(default_factory=dict)
    protect: bool = False
    replaces: str | None = None  # locator of the object this one was created to replace, until that is deleted
    adopted: bool = False


class Place(Struct, frozen=True):
    """The target of a delivery of a one-time secret.

    way        the kind of delivery, such as `to_file`
    path       a file below the project's root, a program, or the URL of an entry of Vault or a repository of GitHub
    entry      the entry at the path, if it has entries
    checkout   identifies this folder on this machine
    """

    way: str
    path: str
    entry: str = ""
    host: str = ""
    checkout: str = ""

    def is_same(self, other: Place) -> bool:
        """Whether both are the same target of the project, possibly on different machines."""
        return (self.way, self.path, self.entry) == (other.way, other.path, other.entry)


class IssuedSecret(Struct, frozen=True):
    """The store's record of a create that issued a one-time secret.

    arrived   whether the delivery is known to have succeeded; if not, it may have
    """

    intent: str
    address: Address
    place: Place
    arrived: bool


class Target(Struct, frozen=True):
    """The state of the file, or the entry of a secret store, that a declared one-time secret is delivered to.

    label        the display name, such as "secrets/agent.token"
    is_there     the target exists, and a delivery would overwrite it
    is_ours      a secret of this resource was, or may have been, delivered there
    is_gone      a secret was delivered there on this machine, and the target no longer exists
    """

    label: str
    is_there: bool = False
    is_ours: bool = False
    is_gone: bool = False


class Snapshot(Struct, frozen=True):
    """The account as one refresh returned it, and the state of the store."""

    listings: Mapping[str, Listing]
    bindings: Mapping[Address, Binding] = field(default_factory=dict)
    receipts: frozenset[str] = frozenset()  # intents whose one-time secret was delivered
    undelivered: frozenset[str] = frozenset()  # intents whose one-time secret was not delivered anywhere
    overwritten: Mapping[str, Address] = field(default_factory=dict)  # intents with a later delivery for the address
    targets: Mapping[Address, Target] = field(default_factory=dict)  # of deliveries to files; empty if not read
    doubt: str = ""  # why this may not be the account that the stack belongs to
    elsewhere: Mapping[tuple[str, str], str] = field(default_factory=dict)  # kind and locator → the other stack
    is_remembered: bool = False  # the store took part in an apply of this stack
    once_ours: frozenset[LiveKey] = frozenset()  # absent objects that manifests name by id, and that calls changed

    def of(self, kind: str) -> Listing:
        return self.listings.get(kind, Listing(complete=False, why="it was not listed"))
