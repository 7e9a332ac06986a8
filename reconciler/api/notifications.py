"""Sends notifications: posts to a webhook, or sends a mail. Their text is rendered in `rendering.notice`.

The URL of a webhook may be a secret, as Slack's are: errors name only its host. Redirects are not followed.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import smtplib
import ssl
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from email.message import EmailMessage
from typing import TypeVar
from urllib.parse import SplitResult, unquote, urlsplit

from reconciler.api.exchange import ask
from reconciler.api.origin import Origin
from reconciler.engine.ports import Refused, Transient

SIGNATURE = "X-Reconciler-Signature"
_TIMEOUT = 15.0  # seconds
MAIL_TIMEOUT = 60.0  # seconds for one mail: servers may delay it on purpose
_PORTS = {"smtp": 587, "smtps": 465}
_T = TypeVar("_T")
_ADDRESS = re.compile(r"[!#-'*+/-9=?A-Z^-~-]+(\.[!#-'*+/-9=?A-Z^-~-]+)*@[A-Za-z0-9.-]+")


@dataclass(frozen=True)
class Webhook:
    """A webhook.

    address  an https URL, or http on this machine
    key      signs the requests; see `signature`
    """

    address: str = field(repr=False)
    key: bytes | None = field(default=None, repr=False)

    def __str__(self) -> str:
        return str(_parse_origin(self.address))

    def check(self) -> None:
        """Raises Refused if the address is invalid."""
        _parse_origin(self.address)

    def post(self, body: str, now: float) -> None:
        """Posts a body; raises a Failure unless the response is 2xx. `now`: seconds since 1970."""
        content = body.encode()
        headers = {"Content-Type": "application/json", "User-Agent": "reconciler"}
        if self.key is not None:
            headers[SIGNATURE] = signature(content, self.key, int(now))
        origin = _parse_origin(self.address)
        answer = ask(origin, "POST", self.address, headers, content, seconds=_TIMEOUT, largest=0)
        if not answer.is_success:
            raise Refused(f"{self} returned status {answer.status}", status=answer.status)


def signature(content: bytes, key: bytes, at: int) -> str:
    """`t=…,v1=…`: the time, and an HMAC-SHA256 of the time, a dot and the body."""
    return f"t={at},v1={hmac.new(key, f'{at}.'.encode() + content, hashlib.sha256).hexdigest()}"


@dataclass(frozen=True)
class Mail:
    """A mail.

    server  smtp://user:password@host:port, or smtps://. smtp uses STARTTLS, except on this machine
    """

    server: str = field(repr=False)
    sender: str
    recipients: Sequence[str]

    def __str__(self) -> str:
        return f"mail to {', '.join(self.recipients)}"

    def check(self) -> None:
        """Raises Refused if the server's address or a mail address is invalid, or no recipient is given."""
        _parse_server(self.server)
        wrong = next((address for address in (self.sender, *self.recipients) if not _ADDRESS.fullmatch(address)), None)
        if wrong is not None or not self.recipients:
            raise Refused(f"{wrong!r} is not a mail address" if wrong else "no mail address follows mailto:")

    def send(self, subject: str, text: str) -> None:
        """Sends a mail; raises a Failure unless the server accepts it for all recipients."""
        self.check()
        message = EmailMessage()
        message["Subject"] = " ".join(subject.split())
        message["From"], message["To"] = self.sender, ", ".join(self.recipients)
        message.set_content(text)
        try:
            refused = _run_within(MAIL_TIMEOUT, lambda: self._deliver(message))
        except smtplib.SMTPAuthenticationError:
            raise Refused(f"{self}: the server does not accept the user or password") from None
        except (smtplib.SMTPException, OSError) as error:
            raise Transient(f"{self}: the server cannot be reached or rejected the mail: {_explain(error)}") from None
        if refused is None:
            raise Transient(f"{self}: the server did not accept the mail within {MAIL_TIMEOUT:g} s")
        if refused:
            raise Refused(f"{self}: the server rejected the recipients {', '.join(refused)}")

    def _deliver(self, message: EmailMessage) -> dict[str, tuple[int, bytes]]:
        """Sends a message; returns the recipients that the server rejected."""
        with self._connect() as server:
            return server.send_message(message)

    def _connect(self) -> smtplib.SMTP:
        parts = _parse_server(self.server)
        host, port = parts.hostname or "", parts.port or _PORTS[parts.scheme]
        context = ssl.create_default_context()
        if parts.scheme == "smtps":
            server: smtplib.SMTP = smtplib.SMTP_SSL(host, port, timeout=_TIMEOUT, context=context)
        else:
            server = smtplib.SMTP(host, port, timeout=_TIMEOUT)
        try:
            if parts.scheme == "smtp" and not _is_loopback(host):
                server.starttls(context=context)
            if parts.username:
                server.login(unquote(parts.username), unquote(parts.password or ""))
        except BaseException:
            server.close()
            raise
        return server


def _parse_origin(address: str) -> Origin:
    """The origin of a webhook's URL, which may have any path and query. Raises Refused if it is invalid."""
    no_address = "this is not the address of a webhook"
    try:
        parts = urlsplit(address)
        _ = parts.port  # raises for a port that is not a number
    except ValueError:  # whose text may quote the URL
        raise Refused(f"{no_address}: write https://host/path") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or not address.isprintable():
        raise Refused(f"{no_address}: write https://host/path")
    try:
        secure = Origin.parse(f"https://{parts.netloc}")
    except ValueError as error:
        raise Refused(f"{no_address}: {error}") from None
    if parts.scheme == "https":
        return secure
    if not secure.is_loopback:
        raise Refused(f"{no_address}: plain http is not encrypted; use https")
    return Origin.parse(f"http://{parts.netloc}")


def _parse_server(server: str) -> SplitResult:
    """The parts of a mail server's URL. Raises Refused if it is invalid."""
    wrong = Refused("this is not the address of a mail server: write smtp://user:password@host:port, or smtps://")
    try:
        parts = urlsplit(server)
        _ = parts.port  # raises for a port that is not a number
        host = parts.hostname or ""
        Origin.parse(f"https://[{host}]" if ":" in host else f"https://{host}")
    except ValueError:
        raise wrong from None
    if parts.scheme not in _PORTS:
        raise wrong
    if not (unquote(parts.username or "") + unquote(parts.password or "")).isascii():
        raise Refused("the user or password of the mail server contains characters other than ASCII")
    return parts


def _run_within(seconds: float, work: Callable[[], _T]) -> _T | None:
    """The result of `work`, run in a thread; None after `seconds`, when the thread is abandoned.

    smtplib has no timeout for a whole mail.
    """
    ended: Future[_T] = Future()

    def run() -> None:
        try:
            ended.set_result(work())
        except BaseException as error:  # noqa: BLE001 - raised by `ended.result()`
            ended.set_exception(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    return ended.result() if ended.done() else None


def _explain(error: OSError) -> str:
    """The reason without the server's own text, which cannot be trusted."""
    match error:
        case ssl.SSLCertVerificationError():
            return f"its certificate is not trusted: {error.verify_message}"
        case ssl.SSLError():
            return "TLS negotiation failed"
        case TimeoutError():
            return f"no response within {_TIMEOUT:g} s"
        case smtplib.SMTPResponseException():
            return f"it returned {error.smtp_code}"
        case smtplib.SMTPNotSupportedError():
            return "it does not support STARTTLS or authentication"
        case smtplib.SMTPServerDisconnected():
            return "it closed the connection"
    return (error.strerror or type(error).__name__).lower()


def _is_loopback(host: str) -> bool:
    return Origin("smtp", host, 25).is_loopback
