"""Sends requests to the platform: key, headers, rate limit, check before a change. Returns JSON or raises a Failure."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from reconciler import __version__
from reconciler.api import answers, errors, inflating
from reconciler.api.exchange import Connection, NoResponse, Response, open_connection
from reconciler.api.limiter import WINDOW, Limiter, Slot
from reconciler.api.observer import Exchange, Observer
from reconciler.api.origin import Origin
from reconciler.api.transport import Transport
from reconciler.engine.ports import Clock, Failure, Lost, NotSent, Refused, Transient
from reconciler.model import dialect as profiles
from reconciler.model.dialect import DIALECTS
from reconciler.model.redaction import Redactor
from reconciler.model.value import Json, Secret

if TYPE_CHECKING:
    from reconciler.api.budget import SharedLedger

LARGEST = 64 * 2**20  # bytes; a full page of the largest objects (100 × policy and metadata) is a tenth of that
_QUOTED = 20_000  # characters of an error text that are redacted; a few hundred are shown


class Account(Struct, frozen=True):
    """An account of a platform: address, key and limits.

    requests_per_minute  None: that of the profile; 0: no limit
    timeout              seconds for one request
    connections          at the same time
    window               seconds for which the budget of requests applies
    ledger               file that counts requests together with other processes; see `api.budget`
    spent                requests that others sent before: seconds ago, and their number
    """

    base_url: str
    key: Secret
    profile: profiles.Name = "specification"
    requests_per_minute: int | None = None
    timeout: float = 30.0
    connections: int = 32
    secrets: tuple[Secret, ...] = ()  # redacted in errors, beside the key
    window: float = WINDOW
    ledger: Path | None = None
    spent: tuple[tuple[float, int], ...] = ()
    agent: str | None = None  # address of the agent's local API
    observer: Observer | None = None

    @property
    def budget(self) -> int:
        """Requests per window; 0: no limit."""
        granted = DIALECTS[self.profile].requests_per_minute
        return granted if self.requests_per_minute is None else self.requests_per_minute


class LastCheck(Protocol):
    """Completes a request right before it is sent, after every wait."""

    async def prepare(self) -> None:
        """Awaited before each wait; may send other requests."""

    def is_due(self) -> bool:
        """Whether `complete` has to send a request."""

    async def complete(self, read: Callable[[str], Awaitable[Json]]) -> Mapping[str, Json] | None:
        """The body to send; raises a Failure if nothing may be sent. `read` gets an address of the origin."""


class Client:
    """Sends requests to one origin only. With `read_only` it sends nothing but GET."""

    def __init__(
        self,
        connection: Connection,
        account: Account,
        limiter: Limiter,
        *,
        read_only: bool,
        before_write: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._connection = connection
        self._origin = Origin.parse(account.base_url)
        self._redactors = (
            Redactor([account.key.reveal()], "(key)"),
            Redactor(secret.reveal() for secret in account.secrets),
        )
        self._limiter = limiter
        self.observer = account.observer
        self.has_been_answered = False
        self._methods = {"GET"} if read_only else {"GET", "POST", "PATCH", "PUT", "DELETE"}
        self._before_write = before_write
        self.profile = DIALECTS[account.profile]
        version, number = self.profile.version
        headers = {
            version: number,
            "Authorization": f"Bearer {account.key.reveal()}",
            "User-Agent": f"reconciler/{__version__}",
            "Accept": "application/json",
            "Accept-Encoding": inflating.ACCEPTED,
        }
        self._headers = headers
        self._headers_of_json = {**headers, "Content-Type": "application/json"}

    @property
    def origin(self) -> Origin:
        return self._origin

    def address_of(self, path: str) -> str:
        """The address of a path of the specification, in the spelling of the dialect."""
        return self._origin.at(self.profile.wire_path(path))

    async def exchange(
        self,
        method: str,
        address: str,
        body: Mapping[str, Json] | None = None,
        last_check: LastCheck | None = None,
    ) -> Json:
        """The decoded body of the response, None if it is empty; raises a Failure.

        address     of the origin; anything else is refused
        last_check  completed after every wait. If it has to read first, both requests are admitted at once: with a
                    wait between them, the reading would be too old again
        """
        if method not in self._methods or not address.startswith(f"{self._origin}/"):
            raise Refused(f"this client must not send {method} {address}")
        for turn in count():
            if last_check is not None:
                await last_check.prepare()
            reads = last_check is not None and (last_check.is_due() or turn > 1)
            async with self._limiter.slot(2 if reads else 1) as slot:
                slot.used = 0
                if method != "GET":
                    await self.may_write()  # after every wait: the process may have been suspended
                if last_check is not None:
                    if last_check.is_due() and not reads:
                        continue  # it became due during the wait
                    body = await last_check.complete(partial(self._send_once, slot, "GET"))
                    await self.may_write()
                return await self._send_once(slot, method, address, body)
        raise AssertionError  # unreachable: the third turn admits both requests

    async def _send_once(self, slot: Slot, method: str, address: str, body: Mapping[str, Json] | None = None) -> Json:
        slot.used += 1
        try:
            if self.observer is not None:
                return await self._exchange_observed(self.observer, method, address, body)
            return await self._exchange(method, address, body)
        except Failure as failure:
            if isinstance(failure, Transient) and failure.status == 429 and failure.retry_after:
                self._limiter.hold(failure.retry_after)
            if errors.is_for_concurrency(failure):
                self._limiter.narrow()
            raise

    async def may_write(self) -> None:
        """Raises NotSent if nothing may be changed any more, for example because the lock was lost."""
        if self._before_write is not None:
            try:
                await self._before_write()
            except Exception as failure:
                raise NotSent from failure

    async def _exchange_observed(
        self, observer: Observer, method: str, address: str, body: Mapping[str, Json] | None
    ) -> Json:
        path = address.removeprefix(str(self._origin)).partition("?")[0]
        with observer.watch_request(method, path) as exchange:
            try:
                return await self._exchange(method, address, body, exchange)
            except Exception as failure:
                exchange.on_failure(failure)
                raise

    async def _exchange(
        self, method: str, address: str, body: Mapping[str, Json] | None, exchange: Exchange | None = None
    ) -> Json:
        headers, content = (self._headers, b"") if body is None else (self._headers_of_json, answers.encode(body))
        try:
            response = await self._connection.send(method, address, headers, content, largest=LARGEST)
        except NoResponse as failure:
            raise failure.as_failure(method, self._redact) from None
        self.has_been_answered = True
        if exchange is not None:
            exchange.on_response(response.status)
        try:
            return self._decode(method, response)
        except Failure:
            raise
        except Exception as failure:  # an unexpected response: the request may have been done
            text = f"the response of {self._origin} cannot be decoded ({type(failure).__name__})"
            raise errors.failure_without_answer(method, text, sent=True) from failure

    def _decode(self, method: str, response: Response) -> Json:
        status = response.status
        if 300 <= status < 400:
            target = self._redact(self._redirect_target(response))
            text = f"{self._origin} redirects to {target}; the redirect was not followed"
            # A redirect may mean that the result is at that address: the create may have been done.
            raise Lost(text, status=status) if method == "POST" else Refused(text, status=status)
        body, is_json = answers.decode(response.content)
        if not response.is_success:
            wait = errors.retry_after(response.headers.get("Retry-After"))
            # Redacted before the text is shortened: a part of a secret would not be found.
            raise errors.failure_of(method, status, self._redact_body(body), retry_after=wait)
        if not response.content.strip():
            return None
        if is_json:
            return body
        kind = (
            errors.sanitize(response.headers.get("Content-Type", "").partition(";")[0], 60)
            or "content of an unknown type"
        )
        text = f"{self._origin} returned {self._redact(kind)}, not JSON (status {status})"
        if method == "GET" and "json" not in kind:
            raise Refused(f"{text}; check platform.base_url", status=status)
        raise errors.failure_without_answer(method, text, sent=True)

    def _redirect_target(self, response: Response) -> str:
        location = errors.sanitize(response.headers.get("Location", ""), 2000)
        rest = location.partition("//")[2] if "//" in location else ""
        host = rest.replace("\\", "/").partition("/")[0].rpartition("@")[2]
        return host[:100] or "another path"

    def _redact_body(self, body: Json) -> Json:
        """The texts of an error's body, with key and secrets redacted."""
        if isinstance(body, dict):
            return {name: self._redact_body(value) for name, value in body.items()}
        if not isinstance(body, str):
            return None
        return self._redact(body if len(body) <= _QUOTED else f"{body[:_QUOTED]}…")

    def _redact(self, text: str) -> str:
        for redactor in self._redactors:
            text = redactor.redact(text)
        return text


@asynccontextmanager
async def _open_ledger(file: Path | None) -> AsyncIterator[SharedLedger | None]:
    """The shared counter of requests, open until the end of the block; None without a file."""
    if file is None:
        yield None
        return
    from reconciler.api.budget import SharedLedger  # and with it SQLite

    ledger = SharedLedger(file)
    try:
        yield ledger
    finally:
        await ledger.close()


def _call_both(first: Callable[[float], None] | None, second: Callable[[float], None]) -> Callable[[float], None]:
    def call(seconds: float) -> None:
        second(seconds)
        if first is not None:
            first(seconds)

    return call


@asynccontextmanager
async def open_client(
    account: Account,
    clock: Clock,
    *,
    read_only: bool,
    on_wait: Callable[[float], None] | None = None,
    before_write: Callable[[], Awaitable[None]] | None = None,
    transport: Transport | None = None,
) -> AsyncIterator[Client]:
    """A client, whose connections are closed at the end of the block.

    on_wait       called with the seconds for which requests wait for the budget
    before_write  awaited right before each request that changes anything; raises if it must not be sent
    transport     where requests are sent instead of the network

    Raises ValueError for an invalid base URL, and Refused if the environment names an unusable proxy or certificate.
    """
    origin = Origin.parse(account.base_url)
    if account.observer is not None:
        on_wait = _call_both(on_wait, account.observer.on_wait)
    async with (
        open_connection(
            origin, seconds=account.timeout, connections=account.connections, transport=transport
        ) as connection,
        _open_ledger(account.ledger) as ledger,
    ):
        limiter = Limiter(
            account.budget, clock, window=account.window, on_wait=on_wait, ledger=ledger, spent=account.spent
        )
        yield Client(connection, account, limiter, read_only=read_only, before_write=before_write)
