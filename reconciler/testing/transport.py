"""A transport to ASGI applications in this process, without sockets and threads."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import AsyncIterator, Iterable, Mapping
from urllib.parse import unquote, urlsplit

import httpx
from starlette.types import ASGIApp, Message, Scope

from reconciler.api.headers import Headers
from reconciler.api.pool import target_of
from reconciler.api.response_reader import Receiver
from reconciler.api.transport import Broken, Request

_CUT = "reconciler.testing.cut"
_RESET = os.strerror(errno.ECONNRESET).lower()
Fields = Iterable[tuple[bytes, bytes]]
Place = tuple[str, str | None, int | None]  # scheme, host, port


def cut(scope: Scope) -> None:
    """Simulates a reset connection: the response ends here, and reading it raises an error."""
    scope[_CUT] = True


class AppTransport(httpx.AsyncBaseTransport):
    """Passes each request to the application of its host. A response is complete before it is returned.

    It is a `Transport` of `reconciler.api` and one of httpx, for clients of other programs.
    """

    def __init__(self, apps: Mapping[str, ASGIApp]) -> None:
        self._apps = apps

    async def exchange(self, request: Request, receiver: Receiver) -> None:
        url = urlsplit(request.address)
        app = self._apps.get(url.hostname or "")
        if app is None:
            raise Broken(f"no application serves {url.hostname}", sent=False)
        fields = [(name.lower().encode(), value.encode()) for name, value in request.headers.items()]
        scope = _describe(request.method, (url.scheme, url.hostname, url.port), target_of(request.address), fields)
        response = await _serve(app, scope, request.content)
        if response is None:
            raise Broken(_RESET, sent=True)
        if receiver.begin(response.status, Headers((_text(name), _text(value)) for name, value in response.fields)):
            if response.content:
                receiver.feed(response.content)
            if response.is_cut:
                raise Broken(_RESET, sent=True)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        app = self._apps.get(request.url.host)
        if app is None:
            raise httpx.ConnectError(f"no application serves {request.url.host}", request=request)
        fields = [(name.lower(), value) for name, value in request.headers.raw]
        place = (request.url.scheme, request.url.host, request.url.port)
        scope = _describe(request.method, place, request.url.raw_path.decode(), fields)
        response = await _serve(app, scope, await request.aread())
        if response is None:
            raise _reset()
        stream = _CutStream(response.content) if response.is_cut else httpx.ByteStream(response.content)
        return httpx.Response(response.status, headers=[*response.fields], stream=stream, request=request)


class _Response:
    """A response of an application.

    is_cut  the connection was reset after this content
    """

    def __init__(self, messages: list[Message], *, is_cut: bool) -> None:
        start, *rest = messages
        self.status: int = start["status"]
        self.fields: Fields = start["headers"]
        self.content = b"".join(message.get("body", b"") for message in rest)
        self.is_cut = is_cut


async def _serve(app: ASGIApp, scope: Scope, content: bytes) -> _Response | None:
    """The response of the application; None if the connection was reset before it."""
    messages: list[Message] = []
    unread = [content]

    async def receive() -> Message:
        if not unread:
            await asyncio.Event().wait()  # until it is cancelled: the client sends no more
        return {"type": "http.request", "body": unread.pop(), "more_body": False}

    async def send(message: Message) -> None:
        messages.append(message)

    await app(scope, receive, send)
    return _Response(messages, is_cut=_CUT in scope) if messages else None


def _describe(method: str, place: Place, target: str, fields: Fields) -> Scope:
    """The scope of a request. `target`: path and query, as in the first line of a request."""
    scheme, host, port = place
    path, _, query = target.partition("?")
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": scheme,
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [*fields],
        "server": (host, port),
        "client": ("127.0.0.1", 0),
    }


def _text(octets: bytes) -> str:
    return octets.decode("latin-1")


class _CutStream(httpx.AsyncByteStream):
    """The part of a response that arrived before its connection was reset."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._content
        raise _reset()


def _reset() -> httpx.ReadError:
    return httpx.ReadError(_RESET)
