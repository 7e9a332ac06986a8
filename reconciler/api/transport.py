"""Opens the HTTP transport, httpx over aiohttp, with proxy and certificates, and explains its errors.

Imported when the first connection is opened, since aiohttp is large. httpx's own transport takes ten times as long with
many concurrent requests.
"""

from __future__ import annotations

import os
import re
import ssl
from functools import lru_cache
from http import HTTPStatus

import aiohttp
import httpx
from httpx_aiohttp import AiohttpTransport
from msgspec import Struct

from reconciler.api import errors
from reconciler.api.origin import Origin
from reconciler.api.proxies import proxy_of
from reconciler.engine.ports import Refused

_IDLE = 4.0  # seconds; servers often close idle connections after five, and no POST may be sent at that moment


def open_transport(origin: Origin, connections: int) -> httpx.AsyncBaseTransport:
    """A transport to an origin, through the proxy of the environment. Raises Refused if the proxy or the certificates
    of SSL_CERT_FILE cannot be used."""
    context = _ssl_context(origin)

    def open_session() -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(limit=connections, keepalive_timeout=_IDLE, ssl=context)
        session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=["Accept-Encoding"],  # aiohttp would accept every encoding that it knows
        )
        # By default aiohttp repeats a PUT or DELETE after a broken connection, which limiter and engine would not
        # notice. There is no public setting for it.
        session._retry_connection = False
        return session

    return AiohttpTransport(verify=context, proxy=proxy_of(origin), client=open_session)


def _ssl_context(origin: Origin) -> ssl.SSLContext:
    if origin.scheme == "http":
        # Plain http needs no certificates, and reading those of the machine takes 15 ms.
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        return _load_certificates(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))
    except ssl.SSLError:
        raise Refused("the file in SSL_CERT_FILE contains no certificate") from None
    except OSError as error:  # which does not name the file
        why = (error.strerror or str(error)).lower()
        raise Refused(f"the certificates in SSL_CERT_FILE or SSL_CERT_DIR cannot be read: {why}") from None


@lru_cache(maxsize=1)
def _load_certificates(file: str | None, folder: str | None) -> ssl.SSLContext:
    """The context for what these variables contain. It takes 20 ms, so members of a fleet share it: changed variables
    are noticed, changed files are not."""
    return httpx.create_ssl_context()


class Broken(Struct, frozen=True):
    """How a connection failed.

    sent     the request may have been sent
    lasting  a retry would fail in the same way
    """

    why: str
    sent: bool
    lasting: bool = False


def explain(failure: Exception, connecting: float | None) -> Broken:
    """Explains an error of the libraries; for an unknown error the request counts as sent. `connecting`: the timeout in
    seconds for opening a connection."""
    # httpx-aiohttp reports a connection that broke after sending as a connect timeout: only the cause is right.
    cause = failure.__cause__ if isinstance(failure.__cause__, Exception) else failure
    if isinstance(cause, aiohttp.ClientConnectorError) and isinstance(cause.os_error, ssl.SSLError):
        return _explain_tls(cause.os_error)
    if isinstance(cause, aiohttp.ClientHttpProxyError):
        return _explain_proxy(cause.status)
    if isinstance(cause, aiohttp.ConnectionTimeoutError):
        return Broken(f"no connection within {connecting:g} s", sent=False)
    unsent = isinstance(cause, aiohttp.ClientConnectorError) or (
        cause is failure and isinstance(failure, (httpx.ConnectError, httpx.UnsupportedProtocol, httpx.ProxyError))
    )
    return Broken(_reason(cause) or type(cause).__name__, sent=not unsent)


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
