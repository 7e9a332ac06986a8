"""Connections to one origin, over asyncio: HTTP/1.1 with TLS, kept open for more requests, through a proxy if need be.

A request is written as a whole to a connection that is open at that moment. From then on it counts as sent, whatever
happens; nothing is ever sent again.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Mapping
from functools import lru_cache
from types import TracebackType
from typing import Self, cast
from urllib.parse import quote, urlsplit

from reconciler.api.dialing import Dialer
from reconciler.api.headers import Headers
from reconciler.api.origin import Origin
from reconciler.api.proxies import Proxy, proxy_of
from reconciler.api.response_reader import Malformed, Receiver, ResponseReader
from reconciler.api.transport import Broken, Request, explain, explain_proxy, reason
from reconciler.engine.ports import Refused

_IDLE = 4.0  # seconds; servers often close idle connections after five, and no POST may be sent at that moment


def open_pool(origin: Origin, connections: int, connecting: float | None) -> Pool:
    """Up to so many connections to an origin, through the proxy of the environment. Raises Refused if the proxy or the
    certificates of SSL_CERT_FILE cannot be used.

    connecting  timeout in seconds for opening a connection
    """
    context = _load_certificates() if origin.scheme == "https" else None
    return Pool(origin, connections, connecting, context, proxy_of(origin))


def _load_certificates() -> ssl.SSLContext:
    try:
        return _create_context(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))
    except ssl.SSLError:
        raise Refused("the file in SSL_CERT_FILE contains no certificate") from None
    except OSError as error:  # which does not name the file
        why = (error.strerror or str(error)).lower()
        raise Refused(f"the certificates in SSL_CERT_FILE or SSL_CERT_DIR cannot be read: {why}") from None


@lru_cache(maxsize=1)
def _create_context(file: str | None, folder: str | None) -> ssl.SSLContext:
    """The context for what these variables contain. It takes 20 ms, so members of a fleet share it: changed variables
    are noticed, changed files are not."""
    if file:
        return ssl.create_default_context(cafile=file)
    if folder:
        return ssl.create_default_context(capath=folder)
    import certifi

    return ssl.create_default_context(cafile=certifi.where())


class Pool:
    """A transport over connections of its own. Parameters as in `open_pool`.

    context  for TLS to the origin; None: plain HTTP
    """

    def __init__(
        self,
        origin: Origin,
        connections: int,
        connecting: float | None,
        context: ssl.SSLContext | None = None,
        proxy: Proxy | None = None,
    ) -> None:
        self._origin = origin
        self._connecting = connecting
        self._context = context
        self._proxy = proxy
        first = proxy.origin if proxy else origin
        self._dialer = Dialer(first.host, first.port)
        self._room = asyncio.Semaphore(connections)
        self._idle: list[_Line] = []
        self._opened: set[_Line] = set()

    async def exchange(self, request: Request, receiver: Receiver) -> None:
        content = _encode(request, self._origin.authority)
        async with self._room:
            line = self._take_idle() or await self._open()
            await line.exchange(content, ResponseReader(receiver, request.method))
            if line.is_open:
                line.idle_since = asyncio.get_running_loop().time()
                self._idle.append(line)

    def _take_idle(self) -> _Line | None:
        """The connection that was used last."""
        oldest = asyncio.get_running_loop().time() - _IDLE
        while self._idle:
            line = self._idle.pop()
            if line.is_open and line.idle_since > oldest:
                return line
            line.abort()
        return None

    async def _open(self) -> _Line:
        try:
            async with asyncio.timeout(self._connecting):
                line = await (self._connect_through(self._proxy) if self._proxy else self._connect())
        except TimeoutError:
            raise Broken(f"no connection within {self._connecting:g} s", sent=False) from None
        self._opened = {opened for opened in self._opened if not opened.closed.done()}
        self._opened.add(line)
        return line

    async def _connect(self) -> _Line:
        try:
            return await _connect(self._dialer, self._origin, self._context)
        except OSError as error:  # of which a TimeoutError is one too
            raise explain(error) from None

    async def _connect_through(self, proxy: Proxy) -> _Line:
        """Asks the proxy for a connection to the origin, in which TLS is spoken with the origin."""
        assert self._context is not None, "an origin without TLS is on this machine, and needs no proxy"
        place = f"{proxy.origin.host}:{proxy.origin.port}"
        try:
            context = self._context if proxy.origin.scheme == "https" else None
            line = await _connect(self._dialer, proxy.origin, context)
            status = await _open_tunnel(line, f"{self._origin.bracketed_host}:{self._origin.port}", proxy.headers)
        except OSError as error:
            raise explain(error, proxy=place) from None
        except Broken as broken:
            raise Broken(f"the proxy {place}: {broken.why}", sent=False) from None
        if not 200 <= status < 300:
            line.abort()
            raise explain_proxy(status)
        try:
            return await line.start_tls(self._context, self._origin)
        except OSError as error:
            raise explain(error) from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, what: BaseException | None, where: TracebackType | None
    ) -> None:
        for line in self._opened:
            line.abort()
        for line in self._opened:
            await line.closed


async def _connect(dialer: Dialer, origin: Origin, context: ssl.SSLContext | None) -> _Line:
    """Opens a connection; raises OSError."""
    opened = await dialer.dial()
    name = _name_in_tls(origin) if context else None
    _, line = await asyncio.get_running_loop().create_connection(_Line, sock=opened, ssl=context, server_hostname=name)
    return line


def _name_in_tls(origin: Origin) -> str:
    return origin.host.removesuffix(".")


class _Line(asyncio.Protocol):
    """One connection, with at most one request at a time."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.closed: asyncio.Future[None] = loop.create_future()
        self.idle_since = 0.0
        self._is_over = False  # the server has closed it
        self._reader: ResponseReader | None = None
        self._answered: asyncio.Future[None] = loop.create_future()

    @property
    def is_open(self) -> bool:
        return not self._is_over and not self._transport.is_closing()

    def abort(self) -> None:
        self._transport.abort()

    async def exchange(self, content: bytes, reader: ResponseReader) -> None:
        """Sends a request and reads its response. Afterwards the connection is open only if it can be used again."""
        if not self.is_open:  # nothing would be written
            raise Broken(reason(None), sent=False)
        self._reader = reader
        self._answered = asyncio.get_running_loop().create_future()
        try:
            self._transport.write(content)
            await self._answered
        finally:
            self._reader = None
            # An early response does not wait for the rest of the request.
            if not reader.is_reusable or self._transport.get_write_buffer_size():
                self.abort()

    async def start_tls(self, context: ssl.SSLContext, origin: Origin) -> _Line:
        """The same connection with TLS inside; raises OSError."""
        line = _Line()
        if not self.is_open:
            raise ConnectionResetError
        loop = asyncio.get_running_loop()
        transport = await loop.start_tls(self._transport, line, context, server_hostname=_name_in_tls(origin))
        if transport is None:  # lost during the handshake
            raise ConnectionResetError
        line.connection_made(transport)
        return line

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if self._reader is None:  # without a request: it must not be read as the response to the next one
            self.abort()
            return
        try:
            self._reader.feed(data)
        except Exception as failure:  # noqa: BLE001 - those of the receiver too
            self._end(failure)
        else:
            if self._reader.is_complete:
                self._end()

    def eof_received(self) -> None:
        self._is_over = True
        if self._reader is not None and not self._reader.is_empty:
            try:
                self._reader.end()
            except Malformed as failure:
                self._end(failure)
            else:
                self._end()
        self.abort()  # without the wait for the end of TLS

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_over = True
        self._end(Broken(reason(exc), sent=True))
        if not self.closed.done():
            self.closed.set_result(None)

    def _end(self, failure: Exception | None = None) -> None:
        if self._answered.done():
            return
        if failure is None:
            self._answered.set_result(None)
        elif self._reader is not None:
            self._answered.set_exception(_as_broken(failure))


def _as_broken(failure: Exception) -> Exception:
    return Broken(f"its response {failure}", sent=True) if isinstance(failure, Malformed) else failure


class _Status:
    """Receives a response of which only the status counts."""

    status = 0

    def begin(self, status: int, headers: Headers) -> bool:
        self.status = status
        return False

    def feed(self, piece: bytes) -> None:
        """Never called."""


async def _open_tunnel(line: _Line, place: str, headers: Mapping[str, str]) -> int:
    """Asks a proxy for a connection to a place; returns the status of its response. Raises Broken."""
    answer = _Status()
    await line.exchange(_encode_head("CONNECT", place, place, headers), ResponseReader(answer, "CONNECT"))
    return answer.status


def _encode(request: Request, host: str) -> bytes:
    headers = dict(request.headers)
    if request.content or request.method != "GET":
        headers["Content-Length"] = str(len(request.content))
    return _encode_head(request.method, target_of(request.address), host, headers) + request.content


def _encode_head(method: str, target: str, host: str, headers: Mapping[str, str]) -> bytes:
    lines = [f"{method} {target} HTTP/1.1", f"Host: {host}", *(f"{name}: {headers[name]}" for name in headers)]
    if not _is_plain("".join(lines)):
        wrong = next((name for name in headers if not _is_plain(name + headers[name])), "Host")
        raise Broken(
            f"the header {wrong} must not contain characters other than printable ASCII", sent=False, lasting=True
        )
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable()


@lru_cache(maxsize=1024)
def target_of(address: str) -> str:
    """Path and query of an address, in the spelling of the first line of a request."""
    parts = urlsplit(address)
    query = f"?{quote(parts.query, safe=_IN_QUERY)}" if parts.query else ""
    return quote(parts.path or "/", safe=_IN_PATH) + query


_IN_QUERY = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in '"#<>')
_IN_PATH = "".join(letter for letter in _IN_QUERY if letter not in "?`{}")
