"""Tells others of something: posts to a webhook, or sends a mail. What is told, `rendering.notice` says.

An address may be a secret itself, as Slack's are, so that no failure repeats more of it than its host. No redirect is
followed.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import smtplib
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from email.message import EmailMessage
from urllib.parse import SplitResult, unquote, urlsplit

import httpx

from reconciler.api.origin import Origin
from reconciler.api.proxies import proxy_of
from reconciler.engine.ports import Refused, Transient

SIGNATURE = "X-Reconciler-Signature"
_TIMEOUT = 15.0  # seconds
_PORTS = {"smtp": 587, "smtps": 465}
_ADDRESS = re.compile(r"[!#-'*+/-9=?A-Z^-~-]+(\.[!#-'*+/-9=?A-Z^-~-]+)*@[A-Za-z0-9.-]+")


@dataclass(frozen=True)
class Webhook:
    """`address` must be https, or http on this machine. Requests are signed with `key`, if there is one."""

    address: str = field(repr=False)
    key: bytes | None = field(default=None, repr=False)

    def __str__(self) -> str:
        return str(_origin(self.address))

    def check(self) -> None:
        """Refused if this is no address of a webhook."""
        _origin(self.address)

    def post(self, body: str, now: float) -> None:
        """Raises a Failure unless it was taken."""
        through = httpx.HTTPTransport(proxy=proxy_of(_origin(self.address)))
        content = body.encode()
        headers = {"Content-Type": "application/json", "User-Agent": "reconciler"}
        if self.key is not None:
            headers[SIGNATURE] = signature(content, self.key, int(now))
        try:
            with httpx.Client(transport=through, timeout=_TIMEOUT, follow_redirects=False) as client:
                answer = client.post(self.address, content=content, headers=headers)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise Transient(f"{self} cannot be reached: {type(error).__name__}") from None
        if not answer.is_success:
            raise Refused(f"{self} answered {answer.status_code}", status=answer.status_code)


def signature(content: bytes, key: bytes, at: int) -> str:
    """`t=…,v1=…`: the time, and an HMAC-SHA256 of the time, a dot and the body."""
    return f"t={at},v1={hmac.new(key, f'{at}.'.encode() + content, hashlib.sha256).hexdigest()}"


@dataclass(frozen=True)
class Mail:
    """`server` is smtp://user:password@host:port, or smtps. Nothing is sent in the clear but on this machine."""

    server: str = field(repr=False)
    sender: str
    recipients: Sequence[str]

    def __str__(self) -> str:
        return f"mail to {', '.join(self.recipients)}"

    def check(self) -> None:
        """Refused if there is no such server, or nobody to write to."""
        _server(self.server)
        wrong = next((each for each in (self.sender, *self.recipients) if not _ADDRESS.fullmatch(each)), None)
        if wrong is not None or not self.recipients:
            raise Refused(f"{wrong!r} is not a mail address" if wrong else "there is no mail address after mailto:")

    def send(self, subject: str, text: str) -> None:
        """Raises a Failure unless the server took it for everybody."""
        self.check()
        message = EmailMessage()
        message["Subject"] = " ".join(subject.split())
        message["From"], message["To"] = self.sender, ", ".join(self.recipients)
        message.set_content(text)
        try:
            with self._connected() as server:
                refused = server.send_message(message)
        except smtplib.SMTPAuthenticationError:
            raise Refused(f"{self}: the server does not accept the user or password") from None
        except (smtplib.SMTPException, OSError) as error:
            raise Transient(
                f"{self}: the server cannot be reached, or did not take it: {type(error).__name__}"
            ) from None
        if refused:
            raise Refused(f"{self}: the server did not take it for {', '.join(refused)}")

    def _connected(self) -> smtplib.SMTP:
        parts = _server(self.server)
        host, port = parts.hostname or "", parts.port or _PORTS[parts.scheme]
        context = ssl.create_default_context()
        if parts.scheme == "smtps":
            server: smtplib.SMTP = smtplib.SMTP_SSL(host, port, timeout=_TIMEOUT, context=context)
        else:
            server = smtplib.SMTP(host, port, timeout=_TIMEOUT)
        try:
            if parts.scheme == "smtp" and not _is_near(host):
                server.starttls(context=context)
            if parts.username:
                server.login(unquote(parts.username), unquote(parts.password or ""))
        except BaseException:
            server.close()
            raise
        return server


def _origin(address: str) -> Origin:
    """Of a webhook, whose query and path are its own business. Refused for what is none."""
    try:
        parts = urlsplit(address)
        return Origin.parse(f"{parts.scheme}://{parts.netloc}")
    except ValueError as error:
        raise Refused(f"this is not the address of a webhook: {error}") from None


def _server(server: str) -> SplitResult:
    """Refused for what is not the address of a mail server."""
    wrong = Refused("this is not the address of a mail server: write smtp://user:password@host:port, or smtps://")
    try:
        parts = urlsplit(server)
        _ = parts.port  # raises for a port that is no number
    except ValueError:
        raise wrong from None
    if parts.scheme not in _PORTS or not parts.hostname:
        raise wrong
    return parts


def _is_near(host: str) -> bool:
    return Origin("smtp", host, 25).is_loopback
