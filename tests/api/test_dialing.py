"""Sockets to the first address of a host that answers."""

from __future__ import annotations

import asyncio
import errno
import gc
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from reconciler.api import dialing
from reconciler.api.dialing import Address, Dialer, connect_first, interleave
from tests.api.wire import listen


@pytest.fixture
def silent() -> Iterator[Address]:
    """An address whose connections neither open nor fail: its queue of connections is full."""
    with socket.socket() as listening, socket.socket() as first, socket.socket() as second:
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        for filling in (first, second):
            filling.setblocking(False)
            filling.connect_ex(listening.getsockname())
        yield (socket.AF_INET, listening.getsockname())


def find_unused_address() -> Address:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return (socket.AF_INET, free.getsockname())


async def never_respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


async def test_the_first_address_that_answers_is_used(silent: Address) -> None:
    async with listen(never_respond) as port:
        answering = (socket.AF_INET, ("127.0.0.1", port))
        for addresses in (
            [answering],
            [find_unused_address(), answering],
            [silent, answering],
            [silent, find_unused_address(), answering],
        ):
            async with asyncio.timeout(10):
                opened = await connect_first(addresses)
            assert opened.getpeername()[1] == port
            opened.close()
    await asyncio.sleep(0)
    gc.collect()  # which would warn of an open socket


async def test_the_error_of_the_first_address_is_reported_if_none_answers() -> None:
    unusable: Address = (socket.AF_INET, ("255.255.255.255", 1))
    for addresses in (
        [find_unused_address()],
        [find_unused_address(), unusable],
        [find_unused_address(), find_unused_address()],
    ):
        with pytest.raises(OSError) as failed:  # noqa: PT011 - the number tells more than its text
            await connect_first(addresses)
        assert failed.value.errno == errno.ECONNREFUSED
    with pytest.raises(OSError, match="has no address"):
        await connect_first([])


async def test_an_attempt_that_is_cancelled_leaves_no_socket(silent: Address) -> None:
    for addresses in ([silent], [silent, silent]):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await connect_first(addresses)
    await asyncio.sleep(0)
    gc.collect()  # which would warn of an open socket


def test_the_families_of_addresses_alternate() -> None:
    six: list[Address] = [(socket.AF_INET6, (f"::{number}", 1, 0, 0)) for number in range(3)]
    four: list[Address] = [(socket.AF_INET, (f"10.0.0.{number}", 1)) for number in range(2)]
    assert interleave([*six, *four]) == [six[0], four[0], six[1], four[1], six[2]]
    assert interleave(four) == four
    assert interleave([]) == []


async def test_the_addresses_of_a_name_are_read_once_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    async def look_up(*words: Any, **options: Any) -> Any:
        asked.append(words)
        await asyncio.sleep(0)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", look_up)
    async with listen(never_respond) as port:
        dialer = Dialer("name.example", port)
        for opened in await asyncio.gather(*(dialer.dial() for _ in range(3))):
            opened.close()
        assert asked == [("name.example", port)]
        monkeypatch.setattr(dialing, "_KNOWN", -1.0)
        dialer = Dialer("name.example", port)
        for _ in range(2):
            (await dialer.dial()).close()
        assert len(asked) == 3
        (await Dialer("127.0.0.1", port).dial()).close()
        assert len(asked) == 3
    assert Dialer("::1", 80)._addresses == [(socket.AF_INET6, ("::1", 80, 0, 0))]
