"""Sends requests through a transport of httpx that a caller passes, such as that of an emulated platform.

Imports httpx, which no command needs for requests to the network.
"""

from __future__ import annotations

from functools import lru_cache
from types import TracebackType
from typing import Self

import httpx

from reconciler.api.headers import Headers
from reconciler.api.response_reader import Receiver
from reconciler.api.transport import Broken, Request, reason


class HttpxTransport:
    """A transport of httpx with the interface `Transport`.

    connecting  timeout in seconds for opening a connection
    """

    def __init__(self, transport: httpx.AsyncBaseTransport, connecting: float | None) -> None:
        self._transport = transport
        self._connecting = connecting
        self._timeout = httpx.Timeout(None, connect=connecting).as_dict()

    async def exchange(self, request: Request, receiver: Receiver) -> None:
        try:
            response = await self._transport.handle_async_request(self._convert(request))
        except httpx.ConnectTimeout:
            raise Broken(f"no connection within {self._connecting:g} s", sent=False) from None
        except Exception as failure:  # noqa: BLE001 - errors of a library, some of them unwrapped
            raise explain(failure) from None
        try:
            if receiver.begin(response.status_code, Headers(response.headers.multi_items())):
                await _read(response, receiver)
        finally:
            await response.aclose()

    def _convert(self, request: Request) -> httpx.Request:
        # As a stream that is read at once: for `content` httpx would parse the headers.
        converted = httpx.Request(
            request.method,
            _parse_url(request.address),
            headers=dict(request.headers),
            stream=httpx.ByteStream(request.content),
            extensions={"timeout": dict(self._timeout)},
        )
        converted.read()
        return converted

    async def __aenter__(self) -> Self:
        await self._transport.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, what: BaseException | None, where: TracebackType | None
    ) -> None:
        await self._transport.__aexit__(kind, what, where)


@lru_cache(maxsize=1024)
def _parse_url(address: str) -> httpx.URL:
    """Cached, because parsing URLs is most of the CPU that httpx adds to a request."""
    return httpx.URL(address)


async def _read(response: httpx.Response, receiver: Receiver) -> None:
    assert isinstance(response.stream, httpx.AsyncByteStream)
    pieces = response.stream.__aiter__()
    while True:
        try:
            piece = await anext(pieces)
        except StopAsyncIteration:
            return
        except Exception as failure:  # noqa: BLE001 - errors of a library, some of them unwrapped
            raise Broken(reason(_cause(failure)), sent=True) from None
        receiver.feed(piece)


def explain(failure: Exception) -> Broken:
    """Explains an error of the transport; for an unknown error the request counts as sent."""
    cause = _cause(failure)
    # One with a cause may be of a connection that broke after sending.
    is_unsent = cause is failure and isinstance(
        failure, (httpx.ConnectError, httpx.UnsupportedProtocol, httpx.ProxyError)
    )
    return Broken(reason(cause), sent=not is_unsent)


def _cause(failure: Exception) -> Exception:
    return failure.__cause__ if isinstance(failure.__cause__, Exception) else failure
