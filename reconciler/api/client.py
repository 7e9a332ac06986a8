"""One HTTP exchange with the platform: headers, deadline, size, and what came of it as JSON or a Failure.

httpx is imported when the first client is opened: a command that sends nothing does not pay for it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from reconciler import __version__
from reconciler.api import errors
from reconciler.api.limiter import WINDOW, Limiter
from reconciler.api.origin import Origin
from reconciler.engine.ports import Clock, Failure, Refused, Transient
from reconciler.model.value import Json, Secret

if TYPE_CHECKING:
    import httpx

Profile = Literal["specification", "ngrok"]

_VERSION = {"specification": ("Service-Version", "2"), "ngrok": ("Ngrok-Version", "2")}
_BUDGET = {"specification": 0, "ngrok": 120}  # requests per rolling minute that the public platform grants an account
_TOO_LONG = 64 * 2**20  # bytes; a full page of the largest objects (100 × policy and metadata) is a tenth of that
_IDLE = 4.0  # seconds; servers commonly close an idle connection after five, and a POST must not meet that moment


@dataclass(frozen=True, slots=True)
class Account:
    """Which platform, with which key, and how hard it may be pressed. None: what the profile says."""

    base_url: str
    key: Secret
    profile: Profile = "specification"
    requests_per_minute: int | None = None
    timeout: float = 30.0
    connections: int = 32

    @property
    def budget(self) -> int:
        return _BUDGET[self.profile] if self.requests_per_minute is None else self.requests_per_minute


class Client:
    """Sends requests to one origin and nowhere else. A client that is `reading` can send nothing but GET."""

    def __init__(self, http: httpx.AsyncClient, account: Account, limiter: Limiter, *, reading: bool) -> None:
        self._http = http
        self._origin = Origin.parse(account.base_url)
        self._key = account.key
        self._timeout = account.timeout
        self._limiter = limiter
        self._methods = {"GET"} if reading else {"GET", "POST", "PATCH", "PUT", "DELETE"}
        version, number = _VERSION[account.profile]
        self._headers = {
            version: number,
            "Authorization": f"Bearer {account.key.reveal()}",
            "User-Agent": f"reconciler/{__version__}",
            "Accept": "application/json",
        }

    @property
    def origin(self) -> Origin:
        return self._origin

    async def exchange(self, method: str, address: str, body: Mapping[str, Json] | None = None) -> Json:
        """The decoded answer, None where there is none. `address` comes from `origin`; raises a Failure."""
        if method not in self._methods or not address.startswith(f"{self._origin}/"):
            raise Refused(f"{method} {address} is not for this client to send")
        async with self._limiter.slot():
            try:
                return await self._exchange(method, address, body)
            except Failure as failure:
                if isinstance(failure, Transient) and failure.status == 429 and failure.retry_after:
                    self._limiter.hold(min(failure.retry_after, WINDOW))  # more is for whoever asked to decide
                raise

    async def _exchange(self, method: str, address: str, body: Mapping[str, Json] | None) -> Json:
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
            unsent, why = _network(failure)
            text = f"cannot reach {self._origin}: {why}" if unsent else f"{self._origin} broke off: {why}"
            raise errors.unanswered(method, self._without_key(text), sent=not unsent) from None
        return self._meaning(method, response, content)

    def _request(self, method: str, address: str, body: Mapping[str, Json] | None) -> httpx.Request:
        headers = dict(self._headers)
        content = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        return self._http.build_request(method, address, headers=headers, content=content)

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
            raise Refused(f"{self._origin} redirects to {self._target(response)}; it was not followed", status=status)
        body, is_json = _decoded(content)
        if not response.is_success:
            wait = errors.retry_after(response.headers.get("Retry-After"))
            raise self._shown(errors.failure(method, status, body, retry_after=wait))
        if not content.strip():
            return None
        if is_json:
            return body
        kind = errors.harmless(response.headers.get("Content-Type", "").partition(";")[0], 60) or "an unnamed type"
        text = f"{self._origin} answered with {kind} that is not JSON (status {status})"
        if method == "GET" and "json" not in kind:
            raise Refused(f"{text}; is base_url the address of the platform's API?", status=status)
        raise errors.unanswered(method, text, sent=True)

    def _target(self, response: httpx.Response) -> str:
        location = errors.harmless(response.headers.get("Location", ""), 2000)
        rest = location.partition("//")[2] if "//" in location else ""
        host = rest.replace("\\", "/").partition("/")[0].rpartition("@")[2]
        return host[:100] or "another path"

    def _shown(self, failure: Failure) -> Failure:
        failure.args = (self._without_key(str(failure)),)
        return failure

    def _without_key(self, text: str) -> str:
        return text.replace(self._key.reveal(), "(key)") if self._key.reveal() else text


def _decoded(content: bytes) -> tuple[Json, bool]:
    try:
        return json.loads(content), True
    except (ValueError, RecursionError):
        return None, False


def _network(failure: Exception) -> tuple[bool, str]:
    """Whether the request surely never left, and why it failed. Anything not recognised counts as sent."""
    import aiohttp
    import httpx

    # httpx-aiohttp calls a connection that broke after sending a connect timeout: the cause is what counts.
    cause = failure.__cause__ if isinstance(failure.__cause__, Exception) else failure
    unsent = isinstance(cause, (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)) or (
        cause is failure and isinstance(failure, (httpx.ConnectError, httpx.UnsupportedProtocol, httpx.ProxyError))
    )
    return unsent, errors.harmless(str(cause), 200) or type(cause).__name__


@asynccontextmanager
async def opened(
    account: Account, clock: Clock, *, reading: bool, on_wait: Callable[[float], None] | None = None
) -> AsyncIterator[Client]:
    """A client whose connections are closed at the end. ValueError if the base address will not do."""
    origin = Origin.parse(account.base_url)
    import httpx
    from httpx_aiohttp import HttpxAiohttpClient

    limiter = Limiter(account.budget, clock, on_wait=on_wait)
    async with HttpxAiohttpClient(
        follow_redirects=False,
        timeout=httpx.Timeout(account.timeout, connect=10.0),
        limits=httpx.Limits(max_connections=account.connections, keepalive_expiry=_IDLE),
        trust_env=not origin.is_loopback,  # proxies of the environment
    ) as http:
        yield Client(http, account, limiter, reading=reading)
