"""What requests are sent through, and the reasons for which it fails: sockets, certificates, TLS, proxies."""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from http import HTTPStatus
from types import TracebackType
from typing import Protocol, Self

from msgspec import Struct

from reconciler.api import errors
from reconciler.api.response_reader import Receiver


class Request(Struct, frozen=True):
    """A request.

    address  with the origin
    """

    method: str
    address: str
    headers: Mapping[str, str]
    content: bytes


class Transport(Protocol):
    """Sends requests to one origin."""

    async def exchange(self, request: Request, receiver: Receiver) -> None:
        """Sends a request once, and passes its response to the receiver. Raises Broken, or what the receiver raises.

        No exception but a Broken that says so means that the request was not sent.
        """

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, what: BaseException | None, where: TracebackType | None
    ) -> None:
        """Closes all connections."""


class Broken(Exception):
    """A connection failed.

    sent     the request may have been sent
    lasting  a retry would fail in the same way
    """

    def __init__(self, why: str, *, sent: bool, lasting: bool = False) -> None:
        super().__init__(why)
        self.why = why
        self.sent = sent
        self.lasting = lasting


def explain(error: Exception, *, proxy: str = "") -> Broken:
    """Explains why no connection was opened, before which nothing is sent. `proxy`: the proxy that it was opened to."""
    broken = _explain_tls(error) if isinstance(error, ssl.SSLError) else Broken(reason(error), sent=False)
    return Broken(f"the proxy {proxy}: {broken.why}", sent=False, lasting=broken.lasting) if proxy else broken


def explain_proxy(status: int) -> Broken:
    """Explains the status with which a proxy refused to open a connection."""
    # Not the phrase of the response, which cannot be trusted.
    phrase = next((f" {known.phrase}" for known in HTTPStatus if known == status), "")
    remedy = "; check the user and password in HTTPS_PROXY" if status == 407 else ""
    passing = status >= 500 or status in (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS)
    return Broken(f"the proxy returned {status}{phrase}{remedy}", sent=False, lasting=not passing)


def _explain_tls(error: ssl.SSLError) -> Broken:
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
    return Broken(f"TLS handshake failed: {_words_of(error)}", sent=False)


_UNKNOWN_AUTHORITY = frozenset({2, 18, 19, 20, 21})  # X509_V_ERR_…: no issuer, self-signed, in a chain, no first link
_NOT_TLS = frozenset({"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG", "HTTP_REQUEST"})


def _words_of(error: ssl.SSLError) -> str:
    return str(getattr(error, "reason", None) or "connection closed").replace("_", " ").lower()


def reason(error: Exception | None) -> str:
    """The error text of the system if there is one, such as `connection refused`; None: the connection was closed."""
    if error is None:
        return "it closed the connection"
    if isinstance(error, ssl.SSLError):
        return f"TLS failed: {_words_of(error)}"
    if isinstance(error, OSError):
        if error.errno is not None and error.errno < 0:  # of the name service
            return errors.sanitize(str(error.strerror), 200).lower()
        if error.errno:
            return os.strerror(error.errno).lower()
        if isinstance(error, ConnectionError):  # from asyncio, during the TLS handshake
            return "it closed the connection"
    return errors.sanitize(str(error), 200) or type(error).__name__
