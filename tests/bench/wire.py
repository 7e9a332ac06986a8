"""Presses a server as hard as a thin client can: prepared requests over kept connections, answers hardly looked at."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from urllib.parse import urlsplit


def request(method: str, path: str, key: str, body: object = None) -> bytes:
    content = b"" if body is None else json.dumps(body).encode()
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {key}\r\nService-Version: 2\r\n"
        + ("" if body is None else "Content-Type: application/json\r\n")
        + f"Content-Length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content


def press(url: str, requests: Sequence[bytes], connections: int) -> float:
    """Seconds for all of them."""
    return asyncio.run(_press(url, requests, connections))


async def _press(url: str, requests: Sequence[bytes], connections: int) -> float:
    left = iter(requests)
    started = time.monotonic()
    await asyncio.gather(*(_send_all(url, left) for _ in range(connections)))
    return time.monotonic() - started


async def _send_all(url: str, left: Iterator[bytes]) -> None:
    async with connect(url) as exchange:
        for body in left:
            await exchange(body)


@asynccontextmanager
async def connect(url: str) -> AsyncIterator[Callable[[bytes], Awaitable[bytes]]]:
    """A connection: send a request, get the body of the answer. AssertionError if it is refused."""
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)

    async def exchange(sent: bytes) -> bytes:
        writer.write(sent)
        head = await reader.readuntil(b"\r\n\r\n")
        assert head[9:10] == b"2", head
        length = next(line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))
        return await reader.readexactly(int(length.partition(b":")[2]))

    try:
        yield exchange
    finally:
        writer.close()
        await writer.wait_closed()
