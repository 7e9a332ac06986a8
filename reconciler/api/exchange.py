"""Sends one HTTP request and reads its response: with one timeout and a maximum size, without following redirects.

Every HTTP request of this package is sent here: to the platform, an agent, code hosts and webhooks.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

from msgspec import Struct

from reconciler.api import errors
from reconciler.api.headers import Headers
from reconciler.api.inflating import Body, TooLarge, UnusableBody
from reconciler.api.origin import Origin
from reconciler.api.pool import open_pool
from reconciler.api.transport import Broken, Request, Transport, reason
from reconciler.engine.ports import Failure, Lost, Refused, Transient

_CONNECTING = 10.0  # seconds


class Response(Struct, frozen=True):
    """A response with its whole body."""

    status: int
    headers: Headers
    content: bytes

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300


class NoResponse(Exception):
    """There is no response, or it cannot be read.

    what     the problem, with the peer's origin but no path
    why      the reason, which may contain text of others
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
        """The Failure for a request of this method. `redact` is applied to the reason."""
        text = f"{self._what}: {redact(self._why)}" if self._why else self._what
        if self.sent and method != "GET":
            return Lost(text)
        if self.lasting:
            return Refused(text)
        return Transient(text) if self.sent else errors.Unreachable(text)


class Connection:
    """Sends requests to one origin; every exchange is exactly one request.

    seconds  timeout of a whole exchange, since a slow body never exceeds a read timeout
    peer     the name of the server in errors
    """

    def __init__(self, transport: Transport, peer: str, *, seconds: float) -> None:
        self._transport = transport
        self._peer = peer
        self._seconds = seconds

    async def send(
        self, method: str, address: str, headers: Mapping[str, str], content: bytes = b"", *, largest: int
    ) -> Response:
        """The response, whatever its status; raises NoResponse.

        largest  maximum size of the body in bytes; 0: the body is not read
        """
        received = _Received(largest)
        try:
            async with asyncio.timeout(self._seconds):
                await self._transport.exchange(Request(method, address, headers, content), received)
            return received.response()
        except TimeoutError:
            raise NoResponse(f"no response from {self._peer} within {self._seconds:g} s", sent=True) from None
        except TooLarge:
            text = f"the response of {self._peer} is larger than {largest // 2**20} MB"
            raise NoResponse(text, sent=True, lasting=True) from None
        except UnusableBody as wrong:
            raise NoResponse(f"the response of {self._peer} {wrong}", sent=True, lasting=wrong.lasting) from None
        except Broken as broken:
            raise self._explain(broken) from None
        except Exception as failure:  # noqa: BLE001 - whatever it is, the request may have been sent
            raise self._explain(Broken(reason(failure), sent=True)) from None

    def _explain(self, broken: Broken) -> NoResponse:
        what = f"lost the connection to {self._peer}" if broken.sent else f"cannot reach {self._peer}"
        return NoResponse(what, broken.why, sent=broken.sent, lasting=broken.lasting)


class _Received:
    """Receives one response, with a body up to a size."""

    def __init__(self, largest: int) -> None:
        self._largest = largest
        self._status = 0
        self._headers = Headers()
        self._body: Body | None = None

    def begin(self, status: int, headers: Headers) -> bool:
        self._status, self._headers = status, headers
        if self._largest:
            self._body = Body(headers.get("Content-Encoding", ""), self._largest)
        return self._body is not None

    def feed(self, piece: bytes) -> None:
        assert self._body is not None
        self._body.feed(piece)

    def response(self) -> Response:
        return Response(self._status, self._headers, self._body.end() if self._body is not None else b"")


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

    connecting  timeout of opening a connection; None: only `seconds` applies
    transport   where requests are sent instead of the network

    Other parameters as in `Connection`. Raises Refused if the environment names an unusable proxy or certificate.
    """
    async with transport or open_pool(origin, connections, connecting) as opened:
        yield Connection(opened, peer or str(origin), seconds=seconds)


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
