"""One HTTP exchange with the platform: headers, deadline, size, and what came of it as JSON or a Failure.

httpx is imported when the first client is opened: a command that sends nothing does not pay for it.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from http import HTTPStatus
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from reconciler import __version__
from reconciler.api import answers, errors
from reconciler.api.limiter import WINDOW, Limiter, Slot
from reconciler.api.observer import Exchange, Observer
from reconciler.api.origin import Origin
from reconciler.engine.ports import Clock, Failure, Lost, Refused, Transient, Withheld
from reconciler.model import dialect as profiles
from reconciler.model.dialect import PROFILES
from reconciler.model.redaction import Veil
from reconciler.model.value import Json, Secret

if TYPE_CHECKING:
    import httpx

    from reconciler.api.budget import BackgroundLedger

_TOO_LONG = 64 * 2**20  # bytes; a full page of the largest objects (100 × policy and metadata) is a tenth of that
_QUOTED = 20_000  # characters of an error that are looked at; a few hundred are shown
CONNECTING = 10.0  # seconds
IDLE = 4.0  # seconds; servers commonly close an idle connection after five, and a POST must not meet that moment


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
        granted = PROFILES[self.profile].requests_per_minute
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
    """Sends requests to one origin and nowhere else. A client that is `reading` can send nothing but GET."""

    def __init__(
        self,
        http: httpx.AsyncClient,
        account: Account,
        limiter: Limiter,
        *,
        reading: bool,
        before_write: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        import httpx

        self._http = http
        self._origin = Origin.parse(account.base_url)
        self._veils = (
            Veil([account.key.reveal()], "(key)"),
            Veil(each.reveal() for each in account.secrets),
        )
        self._timeout = account.timeout
        self._limiter = limiter
        self.observer = account.observer
        self.has_been_answered = False
        self._methods = {"GET"} if reading else {"GET", "POST", "PATCH", "PUT", "DELETE"}
        self._before_write = before_write
        self.profile = PROFILES[account.profile]
        version, number = self.profile.version
        headers = {
            version: number,
            "Authorization": f"Bearer {account.key.reveal()}",
            "User-Agent": f"reconciler/{__version__}",
            "Accept": "application/json",
            "Accept-Encoding": "gzip, deflate",
        }
        # Made once: httpx takes longer over headers and address of a request than over all the rest.
        self._headers = httpx.Headers(headers)
        self._headers_of_json = httpx.Headers({**headers, "Content-Type": "application/json"})
        self._url = lru_cache(maxsize=256)(httpx.URL)
        self._patience = {"timeout": http.timeout.as_dict()}

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
                    body = await last_check.complete(partial(self._once, slot, "GET"))
                    await self.may_write()
                return await self._once(slot, method, address, body)
        raise AssertionError  # never: the third turn has room for both

    async def _once(self, slot: Slot, method: str, address: str, body: Mapping[str, Json] | None = None) -> Json:
        slot.used += 1
        try:
            if self.observer is not None:
                return await self._watched(self.observer, method, address, body)
            return await self._exchange(method, address, body)
        except Failure as failure:
            if isinstance(failure, Transient) and failure.status == 429 and failure.retry_after:
                self._limiter.hold(failure.retry_after)
            raise

    async def may_write(self) -> None:
        """Raises Withheld if the platform is not to be changed any more."""
        if self._before_write is not None:
            try:
                await self._before_write()
            except Exception as failure:
                raise Withheld from failure

    async def _watched(self, observer: Observer, method: str, address: str, body: Mapping[str, Json] | None) -> Json:
        path = address.removeprefix(str(self._origin)).partition("?")[0]
        with observer.request(method, path) as exchange:
            try:
                return await self._exchange(method, address, body, exchange)
            except Exception as failure:
                exchange.failed(failure)
                raise

    async def _exchange(
        self, method: str, address: str, body: Mapping[str, Json] | None, exchange: Exchange | None = None
    ) -> Json:
        sent = False
        try:
            async with asyncio.timeout(self._timeout):  # over all: a body that drips never trips a read timeout
                request = self._request(method, address, body)
                sent = True
                response = await self._http.send(request, stream=True)
                try:
                    content = await self._content(method, response)
                finally:
                    await response.aclose()
        except TimeoutError as failure:
            text = f"no answer from {self._origin} within {self._timeout:g} s"
            raise errors.unanswered(method, text, sent=sent) from failure
        except Failure:
            raise
        except Exception as failure:  # noqa: BLE001 - two libraries' worth of network errors, and some unwrapped
            broken = network(failure)
            if broken.sent:
                text = f"{self._origin} broke off: {self._concealed(broken.why)}"
                raise errors.unanswered(method, text, sent=True) from None
            text = f"cannot reach {self._origin}: {self._concealed(broken.why)}"
            raise Refused(text) if broken.lasting else errors.Unreachable(text) from None
        self.has_been_answered = True
        if exchange is not None:
            exchange.answered(response.status_code)
        try:
            return self._meaning(method, response, content)
        except Failure:
            raise
        except Exception as failure:  # whatever it was that nobody thought of: it was answered, and may have been done
            text = f"{self._origin} answered with something that cannot be read ({type(failure).__name__})"
            raise errors.unanswered(method, text, sent=True) from failure

    def _request(self, method: str, address: str, body: Mapping[str, Json] | None) -> httpx.Request:
        import httpx

        content = b"" if body is None else json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        # As a stream, which is read at once: for content httpx would look through the headers, as aiohttp does again.
        request = httpx.Request(
            method,
            self._url(address),
            headers=self._headers if body is None else self._headers_of_json,
            stream=httpx.ByteStream(content),
            extensions=self._patience,
        )
        request.read()
        return request

    async def _content(self, method: str, response: httpx.Response) -> bytes:
        content = bytearray()
        async for chunk in response.aiter_bytes():
            content += chunk
            if len(content) > _TOO_LONG:
                text = f"{self._origin} answered with more than {_TOO_LONG // 2**20} MB"
                raise Refused(text) if method == "GET" else errors.unanswered(method, text, sent=True)
        return bytes(content)

    def _meaning(self, method: str, response: httpx.Response, content: bytes) -> Json:
        status = response.status_code
        if 300 <= status < 400:
            text = f"{self._origin} redirects to {self._concealed(self._target(response))}; it was not followed"
            # "See what came of it there" is one meaning of a redirect: a create may have been carried out.
            raise Lost(text, status=status) if method == "POST" else Refused(text, status=status)
        body, is_json = answers.decoded(content)
        if not response.is_success:
            wait = errors.retry_after(response.headers.get("Retry-After"))
            # Before anything is cut to length: a piece of a secret would not be found any more.
            raise errors.failure(method, status, self._quoted(body), retry_after=wait)
        if not content.strip():
            return None
        if is_json:
            return body
        kind = errors.harmless(response.headers.get("Content-Type", "").partition(";")[0], 60) or "an unnamed type"
        text = f"{self._origin} answered with {self._concealed(kind)} that is not JSON (status {status})"
        if method == "GET" and "json" not in kind:
            raise Refused(f"{text}; is base_url the address of the platform's API?", status=status)
        raise errors.unanswered(method, text, sent=True)

    def _target(self, response: httpx.Response) -> str:
        location = errors.harmless(response.headers.get("Location", ""), 2000)
        rest = location.partition("//")[2] if "//" in location else ""
        host = rest.replace("\\", "/").partition("/")[0].rpartition("@")[2]
        return host[:100] or "another path"

    def _quoted(self, body: Json) -> Json:
        """What an error says, without our secrets in it."""
        if isinstance(body, dict):
            return {name: self._quoted(each) for name, each in body.items()}
        if not isinstance(body, str):
            return None
        return self._concealed(body if len(body) <= _QUOTED else f"{body[:_QUOTED]}…")

    def _concealed(self, text: str) -> str:
        for veil in self._veils:
            text = veil.over(text)
        return text


@dataclass(frozen=True, slots=True)
class Broken:
    """How a connection failed. Anything not recognised counts as sent.

    sent     the request may have left
    lasting  it would fail in the same way again
    """

    why: str
    sent: bool
    lasting: bool = False


def network(failure: Exception) -> Broken:
    """What the libraries' error means."""
    import aiohttp
    import httpx

    # httpx-aiohttp calls a connection that broke after sending a connect timeout: the cause is what counts.
    cause = failure.__cause__ if isinstance(failure.__cause__, Exception) else failure
    if isinstance(cause, aiohttp.ClientConnectorError) and isinstance(cause.os_error, ssl.SSLError):
        return _untrusted(cause.os_error)
    if isinstance(cause, aiohttp.ClientHttpProxyError):
        return _turned_away(cause.status)
    if isinstance(cause, aiohttp.ConnectionTimeoutError):
        return Broken(f"no connection within {CONNECTING:g} s", sent=False)
    unsent = isinstance(cause, aiohttp.ClientConnectorError) or (
        cause is failure and isinstance(failure, (httpx.ConnectError, httpx.UnsupportedProtocol, httpx.ProxyError))
    )
    return Broken(_reason(cause) or type(cause).__name__, sent=not unsent)


def _untrusted(error: ssl.SSLError) -> Broken:
    """Why there was no TLS: nothing is sent without."""
    if isinstance(error, ssl.SSLCertVerificationError):
        told = errors.harmless(error.verify_message, 200).rstrip(".")
        remedy = "; SSL_CERT_FILE names the authorities to trust" if error.verify_code in _UNKNOWN_AUTHORITY else ""
        told = told if told[1:2].isupper() else f"{told[:1].lower()}{told[1:]}"  # `IP address mismatch`
        return Broken(f"its certificate is not trusted: {told}{remedy}", sent=False, lasting=True)
    if error.reason in _NOT_TLS:
        return Broken("it does not speak TLS", sent=False, lasting=True)
    return Broken(f"no TLS with it: {str(error.reason or 'broken off').replace('_', ' ').lower()}", sent=False)


_UNKNOWN_AUTHORITY = frozenset({2, 18, 19, 20, 21})  # X509_V_ERR_…: no issuer, self-signed, in a chain, no first link
_NOT_TLS = frozenset({"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG", "HTTP_REQUEST"})


def _turned_away(status: int) -> Broken:
    """By a proxy, which was asked for a connection and for nothing else."""
    phrase = next((f" {each.phrase}" for each in HTTPStatus if each == status), "")  # ours: theirs is anybody's text
    remedy = "; check the user and password in HTTPS_PROXY" if status == 407 else ""
    passing = status >= 500 or status in (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS)
    return Broken(f"the proxy answered {status}{phrase}{remedy}", sent=False, lasting=not passing)


def _reason(cause: Exception) -> str:
    """In the machine's own words where there are some: `connection refused`."""
    import aiohttp

    if isinstance(cause, aiohttp.ClientConnectorError):
        number = cause.os_error.errno
        if number is None:  # asyncio's own, while TLS was being agreed on
            return "it closed the connection"
        why = (os.strerror(number) if number > 0 else str(cause.os_error.strerror)).lower()
        by_proxy = isinstance(cause, aiohttp.ClientProxyConnectionError)
        return f"the proxy {cause.host}:{cause.port}: {why}" if by_proxy else why
    if isinstance(cause, OSError) and cause.errno is not None and cause.errno > 0:
        return os.strerror(cause.errno).lower()
    return errors.harmless(_CONNECTING.sub("", str(cause)), 200)


_CONNECTING = re.compile(r"^Cannot connect to host \S+ ssl:\S+ ")  # aiohttp's way to begin, of which we told the rest


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


def _both(first: Callable[[float], None] | None, second: Callable[[float], None]) -> Callable[[float], None]:
    def told(seconds: float) -> None:
        second(seconds)
        if first is not None:
            first(seconds)

    return told


@asynccontextmanager
async def opened(
    account: Account,
    clock: Clock,
    *,
    reading: bool,
    on_wait: Callable[[float], None] | None = None,
    before_write: Callable[[], Awaitable[None]] | None = None,
) -> AsyncIterator[Client]:
    """A client whose connections are closed at the end. ValueError if the base address will not do, Refused if the
    environment names a proxy or certificates that will not."""
    origin = Origin.parse(account.base_url)
    import sys

    # httpx would bring its own command line along, and with it rich and pygments: half of what it costs to import.
    sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]  # None says that there is no such module
    import httpx

    from reconciler.api.transport import HTTP, OneRequest

    if account.observer is not None:
        on_wait = _both(on_wait, account.observer.waited)
    limits = httpx.Limits(max_connections=account.connections, keepalive_expiry=IDLE)
    async with (
        HTTP(
            transport=OneRequest(origin, limits),
            follow_redirects=False,
            timeout=httpx.Timeout(None, connect=CONNECTING),  # the exchange as a whole has its deadline
        ) as http,
        _open_ledger(account.ledger) as ledger,
    ):
        limiter = Limiter(account.budget, clock, window=account.window, on_wait=on_wait, ledger=ledger)
        yield Client(http, account, limiter, reading=reading, before_write=before_write)
