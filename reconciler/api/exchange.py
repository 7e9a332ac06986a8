"""Sends one HTTP request and reads its response: with one timeout and a maximum size, without following redirects.

Every HTTP request of this package is sent here: to the platform, an agent, code hosts and webhooks. aiohttp is imported
when the first connection is opened, so that commands without requests start faster.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from reconciler.api import errors
from reconciler.api.inflating import Body, TooLarge, UnusableBody
from reconciler.api.origin import Origin
from reconciler.engine.ports import Failure, Lost, Refused, Transient

if TYPE_CHECKING:
    import httpx

_CONNECTING = 10.0  # seconds


class Response(Struct, frozen=True):
    """A response with its whole body."""

    status: int
    headers: httpx.Headers
    content: bytes

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300


class NoResponse(Exception):
    """There is no response, or it cannot be read.

    what     the problem, with the peer's origin but no path
    why      the error text of the libraries, which may contain text of a proxy
    sent     the request may have reached the peer
    lasting  a retry would fail in the same way
    """

    def __init__(self, what: str, why: str = "", *, sent: bool, lasting: bool = False) -> None:
        super().__init__(what)
        self._what = what
        self._why = why
        self.sent = sent
        self.lasting = lasting

    def as_failure(self, method: str, redact: Callable[[str], str] = str) -> Failure:
        """The Failure for a request of this method. `redact` is applied to the error text of the libraries."""
        text = f"{self._what}: {redact(self._why)}" if self._why else self._what
        if self.sent and method != "GET":
            return Lost(text)
        if self.lasting:
            return Refused(text)
        return Transient(text) if self.sent else errors.Unreachable(text)


@lru_cache(maxsize=1024)
def _parse_url(address: str) -> httpx.URL:
    """Parses a URL, once for all connections: it is most of what httpx adds to the CPU of a request."""
    import httpx

    return httpx.URL(address)


class Connection:
    """Sends requests to one origin; every exchange is exactly one request.

    seconds     timeout of a whole exchange, since a slow body never exceeds a read timeout
    connecting  timeout of opening a connection; None: only `seconds` applies
    peer        the name of the server in errors
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

    async def send(
        self, method: str, address: str, headers: httpx.Headers, content: bytes = b"", *, largest: int
    ) -> Response:
        """The response, whatever its status; raises NoResponse.

        largest  maximum size of the body in bytes; 0: the body is not read
        """
        try:
            async with asyncio.timeout(self._seconds):
                response = await self._transport.handle_async_request(self._request(method, address, headers, content))
                try:
                    return Response(response.status_code, response.headers, await self._read(response, largest))
                finally:
                    await response.aclose()
        except TimeoutError:
            raise NoResponse(f"no response from {self._peer} within {self._seconds:g} s", sent=True) from None
        except NoResponse:
            raise
        except Exception as failure:  # noqa: BLE001 - network errors of two libraries, some of them unwrapped
            raise self._explain(failure) from None

    def _request(self, method: str, address: str, headers: httpx.Headers, content: bytes) -> httpx.Request:
        import httpx

        # As a stream that is read at once: for `content` httpx would parse the headers, which aiohttp does anyway.
        stream = httpx.ByteStream(content)
        request = httpx.Request(
            method, _parse_url(address), headers=headers, stream=stream, extensions=dict(self._extensions)
        )
        request.read()
        return request

    async def _read(self, response: httpx.Response, largest: int) -> bytes:
        import httpx

        if not largest:
            return b""
        assert isinstance(response.stream, httpx.AsyncByteStream)
        try:
            # Not httpx's decoding: it inflates any number of encodings without a limit.
            body = Body(response.headers.get("Content-Encoding", ""), largest)
            async for chunk in response.stream:
                body.feed(chunk)
            return body.end()
        except TooLarge:
            text = f"the response of {self._peer} is larger than {largest // 2**20} MB"
            raise NoResponse(text, sent=True, lasting=True) from None
        except UnusableBody as wrong:
            raise NoResponse(f"the response of {self._peer} {wrong}", sent=True, lasting=wrong.lasting) from None

    def _explain(self, failure: Exception) -> NoResponse:
        from reconciler.api.transport import explain

        broken = explain(failure, self._connecting)
        what = f"lost the connection to {self._peer}" if broken.sent else f"cannot reach {self._peer}"
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
    """Opens up to `connections` connections to an origin, and closes them at the end of the block.

    transport  where requests are sent instead of the network

    Other parameters as in `Connection`. Raises Refused if the environment names an unusable proxy or certificate.
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
    """Sends one request over a new connection, for callers without an event loop.

    Raises Transient or Refused without a response, never Lost: these requests may be repeated.
    """
    import httpx

    async def exchange() -> Response:
        async with open_connection(origin, seconds=seconds, connecting=None) as connection:
            return await connection.send(method, address, httpx.Headers(headers), content, largest=largest)

    try:
        return asyncio.run(exchange())
    except NoResponse as failure:
        raise failure.as_failure("GET") from None
