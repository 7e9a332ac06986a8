"""httpx over aiohttp, without what nobody here uses of either.

aiohttp sends a request whose connection broke a second time, unasked and unseen: one exchange is to be one request, or
the limiter and the engine count wrongly. It reads the machine's certificates as it is imported, twice, for contexts
that nobody here uses: every client brings its own. And httpx takes longer over cookies, redirects and log lines of a
request than aiohttp over sending it. Imported when the first client is opened: aiohttp is heavy.
"""

from __future__ import annotations

import ssl
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import httpx

from reconciler.api.origin import Origin
from reconciler.api.proxies import proxy_of
from reconciler.engine.ports import Refused


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
    def __init__(self, origin: Origin, limits: httpx.Limits) -> None:
        """By the proxy that the environment names for it. Refused if that, or SSL_CERT_FILE, will not do."""
        super().__init__(verify=_verifying(origin), limits=limits)
        self._through = _through(proxy_of(origin))

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
                **self._through,
            )
        return httpx.Response(
            answer.status, headers=answer.raw_headers, stream=AiohttpResponseStream(answer), request=request
        )


def _verifying(origin: Origin) -> ssl.SSLContext:
    if origin.scheme == "http":
        # Plain http meets no certificate: a context that trusts nobody is free, reading the machine's takes 15 ms.
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        return httpx.create_ssl_context()
    except ssl.SSLError:
        raise Refused("the file that SSL_CERT_FILE names holds no certificate") from None
    except OSError as error:  # of which ssl does not say what it could not read
        why = (error.strerror or str(error)).lower()
        raise Refused(f"the certificates that SSL_CERT_FILE or SSL_CERT_DIR names cannot be read: {why}") from None


def _through(proxy: httpx.Proxy | None) -> dict[str, Any]:
    if proxy is None:
        return {}
    if proxy.auth is None:
        return {"proxy": str(proxy.url)}
    login = b64encode(":".join(proxy.auth).encode()).decode()
    return {"proxy": str(proxy.url), "proxy_headers": {"Proxy-Authorization": f"Basic {login}"}}


@lru_cache(maxsize=8)
def _timeout(connect: float | None, read: float | None, pool: float | None) -> ClientTimeout:
    return ClientTimeout(sock_connect=connect, sock_read=read, connect=pool)
