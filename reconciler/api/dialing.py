"""Opens sockets to a host: to the first of its addresses that answers, as RFC 8305 has it.

asyncio can do the same, but leaves about 50 objects in cycles for each socket, and looks the name up each time.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Sequence
from itertools import chain, zip_longest
from typing import Any

_NEXT_ADDRESS = 0.25  # seconds until another address is tried at the same time
_KNOWN = 10.0  # seconds for which the addresses of a name are known

Address = tuple[int, tuple[Any, ...]]
"""The family, and what `socket.connect` takes."""


class Dialer:
    """Opens sockets to one host and port."""

    def __init__(self, host: str, port: int) -> None:
        self._host = host
        self._port = port
        self._looking_up = asyncio.Lock()
        self._addresses: Sequence[Address] = _numeric(host, port)
        self._known_until = float("inf") if self._addresses else float("-inf")

    async def dial(self) -> socket.socket:
        """A connected socket. Raises OSError."""
        return await connect_first(await self._look_up())

    async def _look_up(self) -> Sequence[Address]:
        loop = asyncio.get_running_loop()
        async with self._looking_up:  # several connections are opened at once
            if loop.time() > self._known_until:
                found = await loop.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
                self._addresses = interleave([(family, address) for family, _, _, _, address in found])
                self._known_until = loop.time() + _KNOWN
            return self._addresses


def _numeric(host: str, port: int) -> Sequence[Address]:
    """The address of a host that is written as one."""
    try:
        is_new = ipaddress.ip_address(host).version == 6
    except ValueError:
        return []
    return [(socket.AF_INET6, (host, port, 0, 0)) if is_new else (socket.AF_INET, (host, port))]


def interleave(addresses: Sequence[Address]) -> Sequence[Address]:
    """The addresses in an order that alternates between the families, the preferred one first."""
    first = [address for address in addresses if address[0] == addresses[0][0]]
    others = [address for address in addresses if address[0] != addresses[0][0]]
    return [address for address in chain.from_iterable(zip_longest(first, others)) if address is not None]


async def connect_first(addresses: Sequence[Address]) -> socket.socket:
    """A socket to the first address that answers. Raises OSError: if none answers, that of the first one."""
    if len(addresses) == 1:
        return await _connect(addresses[0])
    waiting = list(reversed(addresses))
    running: set[asyncio.Task[socket.socket]] = set()
    failures: list[BaseException] = []
    try:
        while waiting or running:
            if waiting:
                running.add(asyncio.ensure_future(_connect(waiting.pop())))
            patience = _NEXT_ADDRESS if waiting else None
            done, _ = await asyncio.wait(running, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                if (failure := task.exception()) is None:
                    running.discard(task)
                    return task.result()
                failures.append(failure)
            running -= done
    finally:
        for task in running:
            task.add_done_callback(_close)
            task.cancel()
    raise failures[0] if failures else OSError("the name has no address")


async def _connect(address: Address) -> socket.socket:
    opened = socket.socket(address[0], socket.SOCK_STREAM)
    try:
        opened.setblocking(False)
        await asyncio.get_running_loop().sock_connect(opened, address[1])
    except BaseException:
        opened.close()
        raise
    return opened


def _close(task: asyncio.Task[socket.socket]) -> None:
    """Closes the socket of an attempt that another one was faster than."""
    if not task.cancelled() and task.exception() is None:
        task.result().close()
