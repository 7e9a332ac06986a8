"""Whether live objects work: `Health` with its reason, and the DNS records that an account needs (`Kind.health`,
`Kind.records`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Final, Protocol

from msgspec import Struct

from reconciler.model.value import Json

Body = Mapping[str, Json]
"""An object as a response returned it. Its shape is not trusted."""

DAY: Final = 86_400.0


class State(StrEnum):
    """Whether an object works."""

    HEALTHY = "healthy"
    PROGRESSING = "progressing"
    DEGRADED = "degraded"
    UNKNOWN = "unknown"


WORST_FIRST: Final = (State.DEGRADED, State.UNKNOWN, State.PROGRESSING, State.HEALTHY)


class Actor(StrEnum):
    """Who acts next."""

    NOBODY = ""
    PLATFORM = "platform"
    ZONE_OWNER = "zone owner"
    AGENT = "agent"
    YOU = "you"


class Health(Struct, frozen=True):
    """The health of an object.

    reason      one sentence without the object's name: `the certificate waits for DNS`
    advice      what to do: `set shop.example.com CNAME …`
    actor       who acts next
    due         when something comes due: an expiry, a renewal, a rotation; in seconds since 1970
    retries_at  when the platform tries again; in seconds since 1970
    """

    state: State
    reason: str = ""
    advice: str = ""
    actor: Actor = Actor.NOBODY
    due: float | None = None
    retries_at: float | None = None


class HealthRow(Struct, frozen=True):
    """The health of one object. `address` is empty for an object that no manifest declares."""

    address: str
    id: str
    health: Health


class Wait(StrEnum):
    """What a wait after an apply says about an object."""

    READY = "ready"  # it is healthy
    WAITING = "waiting"
    REPORTED = "not waited for"  # only an agent or time can change it, or its health is unknown
    FAILED = "failed"  # it holds an error that the platform does not try again in time, or time is over


class Record(Struct, frozen=True):
    """A DNS record that the account needs.

    owner      the name that has the record
    needed_by  the address of the object, or its kind and id: a name to show, which objects of two stacks may share
    purpose    what does not work without it: `traffic`
    object     kind and id of the object
    """

    owner: str
    type: str
    value: str
    needed_by: str = ""
    purpose: str = ""
    object: str = ""


class Issued(Struct, frozen=True):
    """What is known of a one-time secret.

    rotates_at  when it comes due for rotation; None: never
    """

    is_delivered: bool = True
    rotates_at: float | None = None


class AccountFacts(Protocol):
    """What a kind may ask about the rest of the account, to tell the health of one object."""

    @property
    def now(self) -> float:
        """In seconds since 1970."""

    @property
    def expires_within(self) -> float:
        """How long before its expiry an object is degraded, in seconds."""

    @property
    def forward_targets(self) -> frozenset[str]:
        """The internal URLs to which traffic policies forward, in canonical form; `*` for one chosen at run time."""

    def is_complete(self, kind: str) -> bool:
        """Whether all objects of a kind are known. If not, the absence of an object means nothing."""

    def find(self, kind: str, id: str) -> Body | None:
        """The object with this id."""

    def list_where(self, kind: str, path: tuple[str, ...], value: str) -> Sequence[Body]:
        """The objects with a text at a path, which leads through the items of lists: `("destinations", "id")`."""

    def list_ids(self, kind: str) -> Sequence[str]:
        """The ids of the objects of a kind."""

    def secret_of(self, id: str) -> Issued:
        """The one-time secret of an object."""

    def health_of(self, names: Iterable[str], id: str) -> Health:
        """The health of another object, which is of one of these kinds."""


def read_instant(value: Json) -> float | None:
    """An RFC 3339 timestamp in seconds since 1970; None for any other value."""
    try:
        moment = datetime.fromisoformat(value.upper()) if isinstance(value, str) else None
    except ValueError:
        return None
    return moment.timestamp() if moment is not None and moment.tzinfo is not None else None
