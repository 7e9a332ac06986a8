"""Opens the HTTP transport, aiohttp, with proxy and certificates, and explains its errors.

Imported when the first connection is opened, since aiohttp is large.
"""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus

import aiohttp
import certifi

from reconciler.api import errors
from reconciler.api.exchange import Incoming, Transport
from reconciler.api.origin import Origin
from reconciler.api.proxies import Proxy, proxy_of
from reconciler.engine.ports import Refused

_IDLE = 4.0  # seconds; servers often close idle connections after five, and no POST may be sent at that moment


def open_transport(origin: Origin, connections: int, connecting: float | None) -> Transport:
    """A transport to an origin, through the proxy of the environment. Raises Refused if the proxy or the certificates
    of SSL_CERT_FILE cannot be used. Parameters as in `exchange.open_connection`."""
    proxy, context = proxy_of(origin), _ssl_context(origin)
    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=connections, keepalive_timeout=_IDLE, ssl=context),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(sock_connect=connecting),
    )
    # By default aiohttp repeats a PUT or DELETE after a broken connection, which limiter and engine would not notice.
    # There is no public setting for it.
    session._retry_connection = False
    return _Aiohttp(session, proxy)


@dataclass(frozen=True, slots=True)
class _Aiohttp:
    """A session as a transport."""

    session: aiohttp.ClientSession
    proxy: Proxy | None

    @asynccontextmanager
    async def send(
        self, method: str, address: str, headers: Mapping[str, str], content: bytes
    ) -> AsyncIterator[Incoming]:
        async with self.session.request(
            method,
            address,
            headers=headers,
            data=content or None,
            allow_redirects=False,
            proxy=self.proxy.url if self.proxy else None,
            proxy_headers=self.proxy.headers if self.proxy else None,
        ) as response:
            yield Incoming(response.status, response.headers, response.content.iter_any())

    async def aclose(self) -> None:
        await self.session.close()


def _ssl_context(origin: Origin) -> ssl.SSLContext:
    if origin.scheme == "http":
        # Plain http needs no certificates, and reading those of the machine takes 15 ms.
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    file, folder = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
    try:
        if file or not folder:
            return ssl.create_default_context(cafile=file or certifi.where())
        return ssl.create_default_context(capath=folder)
    except ssl.SSLError:
        raise Refused("the file in SSL_CERT_FILE contains no certificate") from None
    except OSError as error:  # which does not name the file
        why = (error.strerror or str(error)).lower()
        raise Refused(f"the certificates in SSL_CERT_FILE or SSL_CERT_DIR cannot be read: {why}") from None


@dataclass(frozen=True, slots=True)
class Broken:
    """How a connection failed.

    sent     the request may have been sent
    lasting  a retry would fail in the same way
    """

    why: str
    sent: bool
    lasting: bool = False


def explain(failure: Exception, connecting: float | None) -> Broken:
    """Explains an error of aiohttp; for an unknown error the request counts as sent. `connecting`: the timeout in
    seconds for opening a connection."""
    if isinstance(failure, aiohttp.ClientConnectorError) and isinstance(failure.os_error, ssl.SSLError):
        return _explain_tls(failure.os_error)
    if isinstance(failure, aiohttp.ClientHttpProxyError):
        return _explain_proxy(failure.status)
    if isinstance(failure, aiohttp.ConnectionTimeoutError):
        return Broken(f"no connection within {connecting:g} s", sent=False)
    unsent = isinstance(failure, (aiohttp.ClientConnectorError, aiohttp.InvalidURL))
    return Broken(_reason(failure) or type(failure).__name__, sent=not unsent)


def _explain_tls(error: ssl.SSLError) -> Broken:
    """Explains a failed TLS handshake, before which nothing is sent."""
    if isinstance(error, ssl.SSLCertVerificationError):
        reason = errors.sanitize(error.verify_message, 200).rstrip(".")
        remedy = (
            "; set SSL_CERT_FILE to a file with the certificate of its authority"
            if error.verify_code in _UNKNOWN_AUTHORITY
            else ""
        )
        reason = reason if reason[1:2].isupper() else f"{reason[:1].lower()}{reason[1:]}"  # `IP address mismatch`
        return Broken(f"its certificate is not trusted: {reason}{remedy}", sent=False, lasting=True)
    if error.reason in _NOT_TLS:
        return Broken("it does not speak TLS", sent=False, lasting=True)
    return Broken(
        f"TLS handshake failed: {str(error.reason or 'connection closed').replace('_', ' ').lower()}", sent=False
    )


_UNKNOWN_AUTHORITY = frozenset({2, 18, 19, 20, 21})  # X509_V_ERR_…: no issuer, self-signed, in a chain, no first link
_NOT_TLS = frozenset({"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG", "HTTP_REQUEST"})


def _explain_proxy(status: int) -> Broken:
    """Explains the status with which a proxy refused to open a connection."""
    # Not the phrase of the response, which cannot be trusted.
    phrase = next((f" {known.phrase}" for known in HTTPStatus if known == status), "")
    remedy = "; check the user and password in HTTPS_PROXY" if status == 407 else ""
    passing = status >= 500 or status in (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS)
    return Broken(f"the proxy returned {status}{phrase}{remedy}", sent=False, lasting=not passing)


def _reason(cause: Exception) -> str:
    """The error text of the operating system if there is one, such as `connection refused`."""
    if isinstance(cause, aiohttp.ClientConnectorError):
        number = cause.os_error.errno
        if number is None:  # from asyncio, during the TLS handshake
            return "it closed the connection"
        why = (os.strerror(number) if number > 0 else str(cause.os_error.strerror)).lower()
        by_proxy = isinstance(cause, aiohttp.ClientProxyConnectionError)
        return f"the proxy {cause.host}:{cause.port}: {why}" if by_proxy else why
    if isinstance(cause, OSError) and cause.errno is not None and cause.errno > 0:
        return os.strerror(cause.errno).lower()
    if isinstance(cause, aiohttp.ClientResponseError):  # whose text ends with the address
        return errors.sanitize(cause.message, 200)
    return errors.sanitize(_CONNECTING.sub("", str(cause)), 200)


_CONNECTING = re.compile(r"^Cannot connect to host \S+ ssl:\S+ ")  # how aiohttp's text begins, before the reason
