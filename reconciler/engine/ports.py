"""The engine's ports, as protocols, and the five ways in which a request can fail.

Failure
├── Transient   not done, may succeed later: retry
├── Conflict    not done: the object is not in the expected state
├── Gone        the object does not exist
├── Refused     not done, and a retry would not help: the request is invalid or not allowed
└── Lost        sent, no response: the outcome is unknown
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from msgspec import Struct

from reconciler.model.address import Address
from reconciler.model.manifest import Delivery
from reconciler.model.problem import ReconcilerError
from reconciler.model.snapshot import Binding, Place
from reconciler.model.value import Json, Secret


class Failure(ReconcilerError):
    """Why a request did not succeed.

    `code` is the platform's own error code (`ERR_NGROK_446`), `status` the HTTP status; empty and 0 if none came.
    """

    def __init__(self, text: str, *, code: str = "", status: int = 0) -> None:
        super().__init__(text)
        self.code = code
        self.status = status


class Transient(Failure):
    """Not done, and may succeed later. `retry_after`: seconds that the platform asked to wait, or None."""

    def __init__(self, text: str, *, code: str = "", status: int = 0, retry_after: float | None = None) -> None:
        super().__init__(text, code=code, status=status)
        self.retry_after = retry_after


class Conflict(Failure):
    """Not done: the object is not in the expected state."""


class Gone(Failure):
    """The object does not exist."""


class Refused(Failure):
    """Not done, and a retry would not help: the request is invalid or not allowed."""

    @property
    def is_permission(self) -> bool:
        """Whether the API key is the reason: 401 or 403."""
        return self.status in (401, 403)

    @property
    def is_unauthenticated(self) -> bool:
        """Whether the platform does not know the API key, so that every other request would fail too."""
        return self.status == 401


class Lost(Failure):
    """Sent, and the outcome is unknown."""


class NotSent(Exception):
    """The request was not sent, and no further change will be: `__cause__` says why, such as a lost lock."""


class Reader(Protocol):
    """The platform, read-only. Paths are relative to the base address."""

    async def get(self, path: str) -> Json:
        """The decoded body of the response; raises a Failure."""

    def pages(self, path: str, key: str) -> AsyncIterator[Sequence[Mapping[str, Json]]]:
        """Yields each page of a collection, newest object first, and requests it only when it is asked for.

        Raises a Failure if a page cannot be read, is not a page, or links to another host or to an earlier page: then
        the pages so far are incomplete.
        """


class Check(Protocol):
    """Decides, right before a request is sent, whether it still should be."""

    @property
    def path(self) -> str:
        """The path of the object to read if the check is due."""

    def is_due(self) -> bool:
        """Whether `confirm` has to read the object, because the last reading is too old."""

    async def prepare(self) -> None:
        """Reads a list if that saves the readings of several checks. To be awaited before each wait for the limiter."""

    async def confirm(self, read: Callable[[], Awaitable[Json]]) -> Mapping[str, Json]:
        """Fields to add to the body, with their values on the platform; raises a Failure if nothing may be sent.

        To be awaited after every wait. `read` returns the object at `path`, in one attempt.
        """


class Platform(Reader, Protocol):
    """The platform, readable and writable. Each method makes one attempt: the engine retries."""

    async def send(
        self, method: str, path: str, body: Mapping[str, Json] | None = None, *, check: Check | None = None
    ) -> Json:
        """The decoded body of the response, None if it is empty; raises a Failure.

        `check` is confirmed after all waits, right before the request is sent; if it fails, nothing is sent.
        """


async def complete_body(
    check: Check | None, body: Mapping[str, Json] | None, read: Callable[[str], Awaitable[Json]]
) -> Mapping[str, Json] | None:
    """The body with the fields that the check adds; raises a Failure if the request must not be sent. For a platform
    without a limiter."""
    if check is None:
        return body
    await check.prepare()
    return add_fields(body, await check.confirm(lambda: read(check.path)))


def add_fields(body: Mapping[str, Json] | None, fields: Mapping[str, Json]) -> Mapping[str, Json] | None:
    """The body with these fields added; a field that the body has keeps its value."""
    return {**fields, **(body or {})} if fields else body


@dataclass(frozen=True, slots=True)
class Intent:
    """A create that is about to be sent, or whose result was never stored.

    id        random; part of the new object's owner record
    before    for kinds without owner records: ids that existed before the create
    identity  for kinds without owner records: the natural key in canonical form, by which the object is found again
    opened    when the store received it, in seconds since 1970
    object    id of the object that the create made, stored before its one-time secret is delivered
    """

    id: str
    address: Address
    stack: str
    path: str
    before: frozenset[str] = field(default=frozenset())
    identity: Mapping[str, Json] = field(default_factory=dict)
    place: Place | None = None  # the delivery target of the object's one-time secret
    opened: float = field(default=0.0, compare=False)
    object: str | None = field(default=None, compare=False)


class MadeObject(Struct, frozen=True):
    """An object that a create made not long ago, as the store recorded it.

    path     of its collection
    age      seconds since the store recorded the object or the delivery of its secret
    is_open  the result of the create was never stored
    """

    address: Address
    path: str
    id: str
    age: float
    is_open: bool = False


class Journal(Protocol):
    """Durable storage of what a run does. Each method returns once the write would survive a power failure."""

    async def intend(self, intent: Intent) -> None:
        """Stores an intent, before its create is sent."""

    async def conclude(self, intent_id: str, object_id: str | None) -> None:
        """Closes an intent: its create made this object, or (None) no object."""

    async def record_object(self, intent_id: str, object_id: str) -> None:
        """Stores which object an open intent made, before its one-time secret is delivered."""

    async def record_receipt(self, intent_id: str) -> None:
        """Records that the one-time secret of this intent's object was delivered."""

    async def bind(self, bindings: Mapping[Address, Binding | None]) -> None:
        """Stores these bindings, or removes them (None), in one transaction."""


class Clock(Protocol):
    def now(self) -> float:
        """Monotonic seconds."""

    async def sleep(self, seconds: float) -> None: ...


class Random(Protocol):
    def intent(self) -> str:
        """A new intent id: 16 random characters, unique."""

    def fraction(self) -> float:
        """A random number, uniform in [0, 1), for the jitter of retries."""


class Sinks(Protocol):
    """The targets to which one-time secrets are delivered."""

    def place(self, delivery: Delivery) -> Place:
        """The target of a delivery, in the form in which the journal stores it."""

    async def check(self, delivery: Delivery, *, overwrites: bool) -> None:
        """Raises Undeliverable unless a delivery would succeed now. Changes nothing."""

    async def deliver(self, delivery: Delivery, secret: Secret, *, overwrites: bool) -> None:
        """Returns when the secret would survive a power failure; raises Undeliverable.

        Existing content of the target is replaced only with `overwrites`.
        """


class Undeliverable(ReconcilerError):
    """A one-time secret cannot be delivered; the text says why and what to do."""


class Stop(Protocol):
    """Set when no new call may start. An `asyncio.Event` is one."""

    def is_set(self) -> bool: ...

    async def wait(self) -> object: ...
