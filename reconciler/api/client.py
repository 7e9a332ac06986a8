"""Requests to the platform: key and headers, budget, the last check before a change; a response as JSON or Failure."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from reconciler import __version__
from reconciler.api import answers, errors
from reconciler.api.exchange import Connection, NoResponse, Response, open_connection
from reconciler.api.limiter import WINDOW, Limiter, Slot
from reconciler.api.observer import Exchange, Observer
from reconciler.api.origin import Origin
from reconciler.engine.ports import Clock, Failure, Lost, NotSent, Refused, Transient
from reconciler.model import dialect as profiles
from reconciler.model.dialect import DIALECTS
from reconciler.model.redaction import Redactor
from reconciler.model.value import Json, Secret

if TYPE_CHECKING:
    import httpx

    from reconciler.api.budget import BackgroundLedger

LARGEST = 64 * 2**20  # bytes; a full page of the largest objects (100 × policy and metadata) is a tenth of that
_QUOTED = 20_000  # characters of an error that are looked at; a few hundred are shown


@dataclass(frozen=True, slots=True)
class Account:
    """Which platform, with which key, and how hard it may be pressed. None: what the profile says.

    The budget is for any `window` of seconds; `budget` is a file shared with other processes that use it up.
    """

    base_url: str
    key: Secret
    profile: profiles.Name = "specification"
    requests_per_minute: int | None = None
    timeout: float = 30.0
    connections: int = 32
    secrets: tuple[Secret, ...] = ()  # what the platform knows besides the key, and might quote in an error
    window: float = WINDOW
    ledger: Path | None = None
    agent: str | None = None  # address of the agent beside the platform
    observer: Observer | None = None

    @property
    def budget(self) -> int:
        granted = DIALECTS[self.profile].requests_per_minute
        return granted if self.requests_per_minute is None else self.requests_per_minute


class LastCheck(Protocol):
    """Asked when a request may leave, behind every wait."""

    async def prepare(self) -> None:
        """Awaited before each wait; may send requests of its own."""

    def is_due(self) -> bool:
        """Whether `complete` has to read something."""

    async def complete(self, read: Callable[[str], Awaitable[Json]]) -> Mapping[str, Json] | None:
        """The body to send; raises a Failure if nothing is to be sent. `read` takes an address of the origin."""


class Client:
    """Sends requests to one origin and nowhere else. With `read_only` it sends nothing but GET."""

    def __init__(
        self,
        connection: Connection,
        account: Account,
        limiter: Limiter,
        *,
        read_only: bool,
        before_write: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        import httpx

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
            "Accept-Encoding": "gzip, deflate",
        }
        # Made once: httpx takes longer over the headers of a request than over most of the rest.
        self._headers = httpx.Headers(headers)
        self._headers_of_json = httpx.Headers({**headers, "Content-Type": "application/json"})

    @property
    def origin(self) -> Origin:
        return self._origin

    async def exchange(
        self,
        method: str,
        address: str,
        body: Mapping[str, Json] | None = None,
        last_check: LastCheck | None = None,
    ) -> Json:
        """The decoded answer, None where there is none. `address` comes from `origin`; raises a Failure.

        `last_check` is completed behind every wait. Where it has to read first, there is room for both requests at
        once: with a wait between them, what was read would be old again.
        """
        if method not in self._methods or not address.startswith(f"{self._origin}/"):
            raise Refused(f"{method} {address} is not for this client to send")
        for turn in count():
            if last_check is not None:
                await last_check.prepare()
            reads = last_check is not None and (last_check.is_due() or turn > 1)
            async with self._limiter.slot(2 if reads else 1) as slot:
                slot.used = 0
                if method != "GET":
                    await self.may_write()  # behind every wait: a process may have slept in one
                if last_check is not None:
                    if last_check.is_due() and not reads:
                        continue  # it became due while it waited
                    body = await last_check.complete(partial(self._send_once, slot, "GET"))
                    await self.may_write()
                return await self._send_once(slot, method, address, body)
        raise AssertionError  # never: the third turn has room for both

    async def _send_once(self, slot: Slot, method: str, address: str, body: Mapping[str, Json] | None = None) -> Json:
        slot.used += 1
        try:
            if self.observer is not None:
                return await self._exchange_observed(self.observer, method, address, body)
            return await self._exchange(method, address, body)
        except Failure as failure:
            if isinstance(failure, Transient) and failure.status == 429 and failure.retry_after:
                self._limiter.hold(failure.retry_after)
            raise

    async def may_write(self) -> None:
        """Raises NotSent if the platform is not to be changed any more."""
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
        except Exception as failure:  # whatever it was that nobody thought of: it was answered, and may have been done
            text = f"{self._origin} answered with something that cannot be read ({type(failure).__name__})"
            raise errors.failure_without_answer(method, text, sent=True) from failure

    def _decode(self, method: str, response: Response) -> Json:
        status = response.status
        if 300 <= status < 400:
            text = f"{self._origin} redirects to {self._redact(self._redirect_target(response))}; it was not followed"
            # "See what came of it there" is one meaning of a redirect: a create may have been carried out.
            raise Lost(text, status=status) if method == "POST" else Refused(text, status=status)
        body, is_json = answers.decode(response.content)
        if not response.is_success:
            wait = errors.retry_after(response.headers.get("Retry-After"))
            # Before anything is cut to length: a piece of a secret would not be found any more.
            raise errors.failure_of(method, status, self._redact_body(body), retry_after=wait)
        if not response.content.strip():
            return None
        if is_json:
            return body
        kind = errors.sanitize(response.headers.get("Content-Type", "").partition(";")[0], 60) or "an unnamed type"
        text = f"{self._origin} answered with {self._redact(kind)} that is not JSON (status {status})"
        if method == "GET" and "json" not in kind:
            raise Refused(f"{text}; is base_url the address of the platform's API?", status=status)
        raise errors.failure_without_answer(method, text, sent=True)

    def _redirect_target(self, response: Response) -> str:
        location = errors.sanitize(response.headers.get("Location", ""), 2000)
        rest = location.partition("//")[2] if "//" in location else ""
        host = rest.replace("\\", "/").partition("/")[0].rpartition("@")[2]
        return host[:100] or "another path"

    def _redact_body(self, body: Json) -> Json:
        """What an error says, without our secrets in it."""
        if isinstance(body, dict):
            return {name: self._redact_body(each) for name, each in body.items()}
        if not isinstance(body, str):
            return None
        return self._redact(body if len(body) <= _QUOTED else f"{body[:_QUOTED]}…")

    def _redact(self, text: str) -> str:
        for redactor in self._redactors:
            text = redactor.redact(text)
        return text


@asynccontextmanager
async def _open_ledger(file: Path | None) -> AsyncIterator[BackgroundLedger | None]:
    """The file in which processes count together, for as long as it is needed; None if there is none."""
    if file is None:
        yield None
        return
    from reconciler.api.budget import BackgroundLedger, Ledger  # and with it SQLite

    ledger = BackgroundLedger(Ledger(file))
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
    transport: httpx.AsyncBaseTransport | None = None,
) -> AsyncIterator[Client]:
    """A client whose connections are closed at the end; with a `transport`, requests go there instead of the network.

    ValueError if the base address will not do, Refused if the environment names a proxy or certificates that will not.
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
        limiter = Limiter(account.budget, clock, window=account.window, on_wait=on_wait, ledger=ledger)
        yield Client(connection, account, limiter, read_only=read_only, before_write=before_write)
