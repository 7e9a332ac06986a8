"""The engine's ports, and the five ways in which a request can fail.

Failure
├── Transient   not done, may work later: try again
├── Conflict    not done, the object is not as expected
├── Gone        there is no such object
├── Refused     not done, and will not be: the request itself is wrong, or not allowed
└── Lost        sent, no answer: done or not done
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from reconciler.model.address import Address
from reconciler.model.manifest import Delivery
from reconciler.model.snapshot import Binding, Place
from reconciler.model.value import Json, Secret


class Failure(Exception):
    """Why a request did not succeed.

    `code` is the platform's own error code (`ERR_NGROK_446`), `status` the HTTP status; empty and 0 if none came.
    """

    def __init__(self, text: str, *, code: str = "", status: int = 0) -> None:
        super().__init__(text)
        self.code = code
        self.status = status


class Transient(Failure):
    """Not done, and may work later. `retry_after`: seconds the platform asked to wait, or None."""

    def __init__(self, text: str, *, code: str = "", status: int = 0, retry_after: float | None = None) -> None:
        super().__init__(text, code=code, status=status)
        self.retry_after = retry_after


class Conflict(Failure):
    """Not done: the object is not as expected."""


class Gone(Failure):
    """There is no such object."""


class Refused(Failure):
    """Not done, and the same request never will be."""

    @property
    def is_permission(self) -> bool:
        """Whether the key, not the request, is what is wrong."""
        return self.status in (401, 403)

    @property
    def is_unauthenticated(self) -> bool:
        """Whether the key is not known at all, so that nothing else need be asked with it."""
        return self.status == 401


class Lost(Failure):
    """Sent, and whether it was done is unknown."""


class NotSent(Exception):
    """The request was withheld, as every further one will be; the cause says why."""


class Reader(Protocol):
    """The platform, read-only. Paths are relative to the base address."""

    async def get(self, path: str) -> Json:
        """The decoded answer; raises a Failure."""

    def pages(self, path: str, key: str) -> AsyncIterator[Sequence[Mapping[str, Json]]]:
        """Each page of a collection, newest object first. Raises a Failure when a page cannot be had, is not
        what a page must be, leads elsewhere, or comes round again: then what came before is incomplete."""


class Check(Protocol):
    """Decides, when a request may leave, whether it still should."""

    @property
    def path(self) -> str:
        """The object to be read where the check is due."""

    def is_due(self) -> bool:
        """Whether `confirm` has to read the object: what is known of it is too old."""

    async def prepare(self) -> None:
        """Reads what spares several checks their own reading. To be awaited before each wait for the request's turn."""

    async def confirm(self, read: Callable[[], Awaitable[Json]]) -> Mapping[str, Json]:
        """What the body has to carry in addition, as it is on the platform now; raises a Failure.

        To be awaited behind every wait. `read` answers with the object at `path`, in one attempt.
        """


class Platform(Reader, Protocol):
    """The platform with everything it can do. One attempt each: repeating is the engine's business."""

    async def send(
        self, method: str, path: str, body: Mapping[str, Json] | None = None, *, check: Check | None = None
    ) -> Json:
        """The decoded answer, None where there is no body; raises a Failure.

        `check` is confirmed after all waits, right before the request leaves; if it fails, nothing is sent.
        """


async def complete_body(
    check: Check | None, body: Mapping[str, Json] | None, read: Callable[[str], Awaitable[Json]]
) -> Mapping[str, Json] | None:
    """The body with what the check adds to it; raises a Failure if the request is not to be sent. For a platform on
    which nothing waits."""
    if check is None:
        return body
    await check.prepare()
    return add_fields(body, await check.confirm(lambda: read(check.path)))


def add_fields(body: Mapping[str, Json] | None, kept: Mapping[str, Json]) -> Mapping[str, Json] | None:
    """The body with the fields that a check adds to it, but for those that it has already."""
    return {**kept, **(body or {})} if kept else body


@dataclass(frozen=True, slots=True)
class Intent:
    """A create that is about to leave, or whose answer was never recorded.

    The object of a kind that cannot carry the intent is found again by `identity`, the natural key in canonical form,
    among the ids that were not there `before`. The store says when it was `opened`, in seconds since the epoch.
    """

    id: str
    address: Address
    stack: str
    path: str
    before: frozenset[str] = field(default=frozenset())
    identity: Mapping[str, Json] = field(default_factory=dict)
    place: Place | None = None  # where the object's one-time secret is to be delivered
    opened: float = field(default=0.0, compare=False)


class Journal(Protocol):
    """Durable memory. Each method returns once a loss of power would not undo it."""

    async def intend(self, intent: Intent) -> None: ...

    async def conclude(self, intent_id: str, object_id: str | None) -> None:
        """The intent's create is settled: this object came of it, or (None) nothing did."""

    async def record_receipt(self, intent_id: str) -> None:
        """The one-time secret of this intent's object has been delivered."""

    async def bind(self, bindings: Mapping[Address, Binding | None]) -> None:
        """Remember (None: forget) the objects of kinds that keep no owner record: all of these, or none."""


class Clock(Protocol):
    def now(self) -> float:
        """Seconds, monotonic."""

    async def sleep(self, seconds: float) -> None: ...


class Random(Protocol):
    def intent(self) -> str:
        """A new intent id: 16 characters, never the same twice."""

    def fraction(self) -> float:
        """Uniform in [0, 1): the jitter of a retry."""


class Sinks(Protocol):
    """Where one-time secrets go."""

    def place(self, delivery: Delivery) -> Place:
        """Where the delivery goes, as the journal keeps it."""

    async def check(self, delivery: Delivery, *, overwrites: bool) -> None:
        """Raises Undeliverable unless a delivery would work now. Leaves nothing behind."""

    async def deliver(self, delivery: Delivery, secret: Secret, *, overwrites: bool) -> None:
        """Returns when the secret would survive a loss of power; raises Undeliverable.

        What is at the target already is replaced only where it `overwrites`.
        """


class Undeliverable(Exception):
    """A one-time secret has nowhere to go; the text says why and what to do."""
