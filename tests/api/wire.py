"""An HTTP server on a loopback port that returns given bytes and records the requests."""

from __future__ import annotations

import asyncio
import json
import struct
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from socket import SO_LINGER, SOL_SOCKET
from ssl import SSLContext
from typing import Any

from reconciler.api.client import Account
from reconciler.model.value import Secret

KEY = "key-canary-5f2c"


@dataclass
class Request:
    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    connection: int


@dataclass
class Wire:
    """Returns each of `answers` once, in order, and the last one from then on."""

    answers: list[Callable[[Wire], bytes | None] | bytes] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    port: int = 0
    connections: int = 0

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def account(self, **more: Any) -> Account:
        return Account(self.base_url, Secret(KEY, "test"), **more)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        number = self.connections
        try:
            while request := await self._request(reader, number):
                self.requests.append(request)
                answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
                sent = answer(self) if callable(answer) else answer
                if sent is None:
                    await asyncio.Event().wait()
                assert sent is not None
                writer.write(sent.removesuffix(CUT).removesuffix(RESET))
                await writer.drain()
                if sent.endswith(RESET):
                    linger = struct.pack("ii", 1, 0)  # closing sends RST instead of FIN
                    writer.get_extra_info("socket").setsockopt(SOL_SOCKET, SO_LINGER, linger)
                if sent.endswith((CUT, RESET)):
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _request(self, reader: asyncio.StreamReader, number: int) -> Request | None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
        except asyncio.IncompleteReadError:
            return None
        first, *lines = head.split("\r\n")
        method, target, _ = first.split(" ")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        return Request(method, target, headers, body, number)


CUT = b"\0cut\0"  # at the end of an answer: the server closes the connection
RESET = b"\0reset\0"  # the same, with a reset


def answer(body: Any, status: int = 200, content_type: str = "application/json", **headers: str) -> bytes:
    content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(content)}", f"Content-Type: {content_type}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + content


Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]


@asynccontextmanager
async def listen(serve: Serve, tls: SSLContext | None = None) -> AsyncIterator[int]:
    """The port of a listener. At the end all its connections are closed, including those that are not served yet."""
    tasks: list[asyncio.Task[None]] = []
    writers: list[asyncio.StreamWriter] = []

    def serve_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        tasks.append(asyncio.ensure_future(serve(reader, writer)))

    server = await asyncio.start_server(serve_connection, "127.0.0.1", 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for writer in writers:
            writer.close()
        await asyncio.gather(*(writer.wait_closed() for writer in writers), return_exceptions=True)
        await server.wait_closed()


@asynccontextmanager
async def wire(*answers: Callable[[Wire], bytes | None] | bytes, tls: SSLContext | None = None) -> AsyncIterator[Wire]:
    served = Wire(list(answers))
    async with listen(served.serve, tls) as served.port:
        yield served
