"""Sends one HTTP request and reads its response: with one timeout and a maximum size, without following redirects.

Every HTTP request of this package is sent here: to the platform, an agent, code hosts and webhooks. aiohttp is imported
when the first connection is opened, so that commands without requests start faster.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

from reconciler.api import errors
from reconciler.api.origin import Origin
from reconciler.engine.ports import Failure, Lost, Refused, Transient

_CONNECTING = 10.0  # seconds


@dataclass(frozen=True, slots=True)
class Incoming:
    """A response whose body is still to be read, and decompressed. Names of headers are found in any case."""

    status: int
    headers: Mapping[str, str]
    chunks: AsyncIterable[bytes]


class Transport(Protocol):
    """Where requests are sent."""

    def send(
        self, method: str, address: str, headers: Mapping[str, str], content: bytes
    ) -> AbstractAsyncContextManager[Incoming]:
        """Sends one request, exactly once; the response can be read in the block."""

    async def aclose(self) -> None:
        """Closes its connections."""


@dataclass(frozen=True, slots=True)
class Response:
    """A response with its whole body."""

    status: int
    headers: Mapping[str, str]
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


class Connection:
    """Sends requests to one origin; every exchange is exactly one request.

    seconds     timeout of a whole exchange, since a slow body never exceeds a read timeout
    connecting  timeout of opening a connection; None: only `seconds` applies
    peer        the name of the server in errors
    """

    def __init__(self, transport: Transport, peer: str, *, seconds: float, connecting: float | None) -> None:
        self._transport = transport
        self._peer = peer
        self._seconds = seconds
        self._connecting = connecting

    async def send(
        self, method: str, address: str, headers: Mapping[str, str], content: bytes = b"", *, largest: int
    ) -> Response:
        """The response, whatever its status; raises NoResponse.

        largest  maximum size of the body in bytes; 0: the body is not read
        """
        try:
            async with asyncio.timeout(self._seconds), self._transport.send(method, address, headers, content) as found:
                return Response(found.status, found.headers, await self._read(found, largest))
        except TimeoutError:
            raise NoResponse(f"no response from {self._peer} within {self._seconds:g} s", sent=True) from None
        except NoResponse:
            raise
        except Exception as failure:  # noqa: BLE001 - network errors of the library, some of them unwrapped
            raise self._explain(failure) from None

    async def _read(self, response: Incoming, largest: int) -> bytes:
        content = bytearray()
        if largest:
            async for chunk in response.chunks:
                content += chunk
                if len(content) > largest:
                    text = f"the response of {self._peer} is larger than {largest // 2**20} MB"
                    raise NoResponse(text, sent=True, lasting=True)
        return bytes(content)

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
    transport: Transport | None = None,
) -> AsyncIterator[Connection]:
    """Opens up to `connections` connections to an origin, and closes them at the end of the block.

    transport  where requests are sent instead of the network

    Other parameters as in `Connection`. Raises Refused if the environment names an unusable proxy or certificate.
    """
    if transport is None:
        from reconciler.api.transport import open_transport

        transport = open_transport(origin, connections, connecting)
    try:
        yield Connection(transport, peer or str(origin), seconds=seconds, connecting=connecting)
    finally:
        await transport.aclose()


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

    async def exchange() -> Response:
        async with open_connection(origin, seconds=seconds, connecting=None) as connection:
            return await connection.send(method, address, headers, content, largest=largest)

    try:
        return asyncio.run(exchange())
    except NoResponse as failure:
        raise failure.as_failure("GET") from None
