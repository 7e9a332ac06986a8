"""The transport of httpx over aiohttp: proxy, certificates, one request for each exchange; and what its errors mean.

Imported when the first connection is opened: aiohttp is heavy. httpx's own transport takes ten times as long as soon as
there are many requests at once.
"""

from __future__ import annotations

import os
import re
import ssl
from dataclasses import dataclass
from http import HTTPStatus

import aiohttp
import httpx
from httpx_aiohttp import AiohttpTransport

from reconciler.api import errors
from reconciler.api.origin import Origin
from reconciler.api.proxies import proxy_of
from reconciler.engine.ports import Refused

_IDLE = 4.0  # seconds; servers commonly close an idle connection after five, and a POST must not meet that moment


def open_transport(origin: Origin, connections: int) -> httpx.AsyncBaseTransport:
    """Goes by the proxy that the environment names for the origin. Raises Refused if that, or SSL_CERT_FILE, cannot
    be used."""
    context = _ssl_context(origin)

    def open_session() -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(limit=connections, keepalive_timeout=_IDLE, ssl=context)
        session = aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())
        # aiohttp sends a PUT or DELETE whose connection broke a second time, unseen by limiter and engine; there is no
        # public way to say that it must not.
        session._retry_connection = False
        return session

    return AiohttpTransport(verify=context, proxy=proxy_of(origin), client=open_session)


def _ssl_context(origin: Origin) -> ssl.SSLContext:
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


@dataclass(frozen=True, slots=True)
class Broken:
    """How a connection failed.

    sent     the request may have left
    lasting  it would fail in the same way again
    """

    why: str
    sent: bool
    lasting: bool = False


def explain(failure: Exception, connecting: float | None) -> Broken:
    """What the libraries' error means; anything not recognized counts as sent. `connecting`: seconds that were
    allowed for a connection."""
    # httpx-aiohttp calls a connection that broke after sending a connect timeout: the cause is what counts.
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
    """Why there was no TLS: nothing is sent without."""
    if isinstance(error, ssl.SSLCertVerificationError):
        told = errors.sanitize(error.verify_message, 200).rstrip(".")
        remedy = "; SSL_CERT_FILE names the authorities to trust" if error.verify_code in _UNKNOWN_AUTHORITY else ""
        told = told if told[1:2].isupper() else f"{told[:1].lower()}{told[1:]}"  # `IP address mismatch`
        return Broken(f"its certificate is not trusted: {told}{remedy}", sent=False, lasting=True)
    if error.reason in _NOT_TLS:
        return Broken("it does not speak TLS", sent=False, lasting=True)
    return Broken(f"no TLS with it: {str(error.reason or 'broken off').replace('_', ' ').lower()}", sent=False)


_UNKNOWN_AUTHORITY = frozenset({2, 18, 19, 20, 21})  # X509_V_ERR_…: no issuer, self-signed, in a chain, no first link
_NOT_TLS = frozenset({"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG", "HTTP_REQUEST"})


def _explain_proxy(status: int) -> Broken:
    """A proxy refused the connection, which was all that was asked of it."""
    phrase = next(
        (f" {httpstatu.phrase}" for httpstatu in HTTPStatus if httpstatu == status), ""
    )  # ours: theirs is anybody's text
    remedy = "; check the user and password in HTTPS_PROXY" if status == 407 else ""
    passing = status >= 500 or status in (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS)
    return Broken(f"the proxy answered {status}{phrase}{remedy}", sent=False, lasting=not passing)


def _reason(cause: Exception) -> str:
    """In the machine's own words where there are some: `connection refused`."""
    if isinstance(cause, aiohttp.ClientConnectorError):
        number = cause.os_error.errno
        if number is None:  # asyncio's own, while TLS was being agreed on
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
