"""Presses a server as hard as a thin client can: prepared requests over kept connections, answers hardly looked at."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator, Sequence
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
    await asyncio.gather(*(_connection(url, left) for _ in range(connections)))
    return time.monotonic() - started


async def _connection(url: str, left: Iterator[bytes]) -> None:
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    for each in left:
        writer.write(each)
        head = await reader.readuntil(b"\r\n\r\n")
        assert head[9:10] == b"2", head
        length = next(line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))
        await reader.readexactly(int(length.partition(b":")[2]))
    writer.close()
    await writer.wait_closed()
