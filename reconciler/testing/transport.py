"""An httpx transport to ASGI applications in this process, without sockets and threads."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx
from starlette.types import ASGIApp, Message, Scope

_CUT = "reconciler.testing.cut"


def cut(scope: Scope) -> None:
    """Simulates a reset connection: the response ends here, and reading it raises an error."""
    scope[_CUT] = True


class AppTransport(httpx.AsyncBaseTransport):
    """Passes each request to the application of its host. A response is complete before it is returned."""

    def __init__(self, apps: Mapping[str, ASGIApp]) -> None:
        self._apps = apps

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        app = self._apps.get(request.url.host)
        if app is None:
            raise httpx.ConnectError(f"no application serves {request.url.host}", request=request)
        exchange = _Exchange(request, await request.aread())
        await app(exchange.scope, exchange.receive, exchange.send)
        return exchange.response()


class _Exchange:
    """One request and its response messages."""

    def __init__(self, request: httpx.Request, content: bytes) -> None:
        self._request, self._content, self._is_read = request, content, False
        self._messages: list[Message] = []
        self.scope = _scope_of(request)

    async def receive(self) -> Message:
        if self._is_read:
            await asyncio.Event().wait()  # until it is cancelled: the client sends no more
        self._is_read = True
        return {"type": "http.request", "body": self._content, "more_body": False}

    async def send(self, message: Message) -> None:
        self._messages.append(message)

    def response(self) -> httpx.Response:
        if not self._messages:
            raise _reset()
        start, *rest = self._messages
        content = b"".join(message.get("body", b"") for message in rest)
        is_cut = bool(self.scope.get(_CUT))
        return httpx.Response(
            start["status"],
            headers=start["headers"],
            stream=_CutStream(content) if is_cut else httpx.ByteStream(content),
            request=self._request,
        )


class _CutStream(httpx.AsyncByteStream):
    """The part of a response that arrived before its connection was reset."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._content
        raise _reset()


def _reset() -> httpx.ReadError:
    failure = httpx.ReadError("the connection was reset")
    failure.__cause__ = ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")
    return failure


def _scope_of(request: httpx.Request) -> dict[str, Any]:
    url = request.url
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": url.scheme,
        "path": url.path,
        "raw_path": url.raw_path.partition(b"?")[0],
        "query_string": url.query,
        "root_path": "",
        "headers": [(name.lower(), value) for name, value in request.headers.raw],
        "server": (url.host, url.port),
        "client": ("127.0.0.1", 0),
    }
