"""httpx over aiohttp, without what nobody here uses of either.

aiohttp sends a request whose connection broke a second time, unasked and unseen: one exchange is to be one request, or
the limiter and the engine count wrongly. It reads the machine's certificates as it is imported, twice, for contexts
that nobody here uses: every client brings its own. And httpx takes longer over cookies, redirects and log lines of a
request than aiohttp over sending it. Imported when the first client is opened: aiohttp is heavy.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import httpx


@contextmanager
def _no_certificates() -> Iterator[None]:
    """Contexts made meanwhile trust nobody, and cost nothing."""
    ssl.SSLContext.set_default_verify_paths = lambda self: None  # type: ignore[method-assign]
    try:
        yield
    finally:
        del ssl.SSLContext.set_default_verify_paths  # what it hid, of the class that it inherits from, is there again


with _no_certificates():
    from aiohttp import ClientSession, ClientTimeout
    from httpx_aiohttp import AiohttpTransport, HttpxAiohttpClient
    from httpx_aiohttp.transport import AiohttpResponseStream, map_aiohttp_exceptions

__all__ = ["HTTP", "OneRequest"]


class HTTP(HttpxAiohttpClient):
    """Hands a request to its transport as it is, and the answer back: no login, no cookie, no redirect, no log line."""

    async def send(self, request: httpx.Request, *, stream: bool = False, **_: Any) -> httpx.Response:
        response = await self._transport_for_url(request.url).handle_async_request(request)
        if not stream:
            await response.aread()
        return response


class OneRequest(AiohttpTransport):
    def get_client(self) -> ClientSession:
        session = super().get_client()
        session._retry_connection = False  # there is no public way to say it
        return session

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if not isinstance(self.client, ClientSession):
            self.client = self.get_client()
        patience = request.extensions["timeout"]
        with map_aiohttp_exceptions():
            answer = await self.client.request(
                request.method,
                str(request.url),
                headers=request.headers.multi_items(),
                data=request.content or None,
                allow_redirects=False,
                auto_decompress=False,
                timeout=_timeout(patience["connect"], patience["read"], patience["pool"]),
            )
        return httpx.Response(
            answer.status, headers=answer.raw_headers, stream=AiohttpResponseStream(answer), request=request
        )


@lru_cache(maxsize=8)
def _timeout(connect: float | None, read: float | None, pool: float | None) -> ClientTimeout:
    return ClientTimeout(sock_connect=connect, sock_read=read, connect=pool)
