"""Sends one HTTP request and reads its response: under one deadline, up to a largest size, without following redirects.

Every request of this package is sent here: to the platform, an agent, code hosts and webhooks. aiohttp below httpx is
imported when the first connection is opened: a command that sends nothing does not pay for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from reconciler.api import errors
from reconciler.api.origin import Origin
from reconciler.engine.ports import Failure, Lost, Refused, Transient

if TYPE_CHECKING:
    import httpx

_CONNECTING = 10.0  # seconds


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    headers: httpx.Headers
    content: bytes

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300


class NoResponse(Exception):
    """There is no response, or none that can be read. `what` names the peer by its origin, not by an address.

    why      what the libraries say; a proxy may have had a say in it
    sent     the request may have reached the peer
    lasting  it would fail in the same way again
    """

    def __init__(self, what: str, why: str = "", *, sent: bool, lasting: bool = False) -> None:
        super().__init__(what)
        self._what = what
        self._why = why
        self.sent = sent
        self.lasting = lasting

    def as_failure(self, method: str, redact: Callable[[str], str] = str) -> Failure:
        """What it means for a request of this method; what the libraries say is passed through `redact`."""
        text = f"{self._what}: {redact(self._why)}" if self._why else self._what
        if self.sent and method != "GET":
            return Lost(text)
        if self.lasting:
            return Refused(text)
        return Transient(text) if self.sent else errors.Unreachable(text)


class Connection:
    """The way to one origin; every exchange over it is one request.

    seconds     for an exchange as a whole: a body that drips never trips a read timeout
    connecting  seconds of these until there is a connection; None: all of them
    peer        what errors call the other side
    """

    def __init__(
        self, transport: httpx.AsyncBaseTransport, peer: str, *, seconds: float, connecting: float | None
    ) -> None:
        import httpx

        self._transport = transport
        self._peer = peer
        self._seconds = seconds
        self._connecting = connecting
        self._extensions: Mapping[str, Any] = {"timeout": httpx.Timeout(None, connect=connecting).as_dict()}
        self._url = lru_cache(maxsize=256)(httpx.URL)  # httpx takes longer over an address than over all the rest

    async def send(
        self, method: str, address: str, headers: httpx.Headers, content: bytes = b"", *, largest: int
    ) -> Response:
        """The response, whatever its status. Raises NoResponse. `largest`: bytes of its body; 0: it is not read."""
        try:
            async with asyncio.timeout(self._seconds):
                response = await self._transport.handle_async_request(self._request(method, address, headers, content))
                try:
                    return Response(response.status_code, response.headers, await self._read(response, largest))
                finally:
                    await response.aclose()
        except TimeoutError:
            raise NoResponse(f"no answer from {self._peer} within {self._seconds:g} s", sent=True) from None
        except NoResponse:
            raise
        except Exception as failure:  # noqa: BLE001 - two libraries' worth of network errors, and some unwrapped
            raise self._explain(failure) from None

    def _request(self, method: str, address: str, headers: httpx.Headers, content: bytes) -> httpx.Request:
        import httpx

        # As a stream, which is read at once: for content httpx would look through the headers, as aiohttp does again.
        stream = httpx.ByteStream(content)
        request = httpx.Request(
            method, self._url(address), headers=headers, stream=stream, extensions=dict(self._extensions)
        )
        request.read()
        return request

    async def _read(self, response: httpx.Response, largest: int) -> bytes:
        content = bytearray()
        if largest:
            async for chunk in response.aiter_bytes():
                content += chunk
                if len(content) > largest:
                    text = f"{self._peer} answered with more than {largest // 2**20} MB"
                    raise NoResponse(text, sent=True, lasting=True)
        return bytes(content)

    def _explain(self, failure: Exception) -> NoResponse:
        from reconciler.api.transport import explain

        broken = explain(failure, self._connecting)
        what = f"{self._peer} broke off" if broken.sent else f"cannot reach {self._peer}"
        return NoResponse(what, broken.why, sent=broken.sent, lasting=broken.lasting)


@asynccontextmanager
async def open_connection(
    origin: Origin,
    *,
    seconds: float,
    connecting: float | None = _CONNECTING,
    connections: int = 1,
    peer: str = "",
    transport: httpx.AsyncBaseTransport | None = None,
) -> AsyncIterator[Connection]:
    """Up to so many connections, closed at the end; with a `transport`, requests go there instead of the network.

    Raises Refused if the environment names a proxy or certificates that cannot be used.
    """
    if transport is None:
        from reconciler.api.transport import open_transport

        transport = open_transport(origin, connections)
    async with transport:
        yield Connection(transport, peer or str(origin), seconds=seconds, connecting=connecting)


def ask(
    origin: Origin,
    method: str,
    address: str,
    headers: Mapping[str, str],
    content: bytes = b"",
    *,
    seconds: float,
    largest: int,
) -> Response:
    """One exchange over a connection of its own, for callers without an event loop.

    Raises Transient or Refused where there is no response; a request of these callers may be repeated.
    """
    import httpx

    async def exchange() -> Response:
        async with open_connection(origin, seconds=seconds, connecting=None) as connection:
            return await connection.send(method, address, httpx.Headers(headers), content, largest=largest)

    try:
        return asyncio.run(exchange())
    except NoResponse as failure:
        raise failure.as_failure("GET") from None
