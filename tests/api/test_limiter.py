"""The budget of requests: never exceeded in any window, and used in the order of the requests."""

from __future__ import annotations

import asyncio

import pytest

from reconciler.api.limiter import Limiter
from reconciler.engine.ports import Transient
from tests.harness.engine import VirtualClock


async def send(limiter: Limiter, clock: VirtualClock, count: int, takes: float = 0.0) -> list[tuple[float, int]]:
    """The time and number of each request, in the order in which they were sent."""
    starts: list[tuple[float, int]] = []

    async def one(number: int) -> None:
        async with limiter.slot():
            starts.append((clock.now(), number))
            await clock.sleep(takes)

    await asyncio.gather(*(one(number) for number in range(count)))
    return starts


async def test_no_window_has_more_requests_than_the_budget() -> None:
    clock = VirtualClock()
    times = [time for time, _ in await send(Limiter(120, clock), clock, 1000, takes=0.3)]
    for start in times:
        assert sum(start <= time < start + 60 for time in times) <= 120
    assert clock.now() == pytest.approx(8 * 60, abs=10)


async def test_a_request_counts_until_a_window_after_its_response() -> None:
    clock = VirtualClock()
    assert [time for time, _ in await send(Limiter(1, clock), clock, 3, takes=5)] == [0, 65, 130]


async def test_requests_are_sent_in_their_order() -> None:
    clock = VirtualClock()
    numbers = [number for _, number in await send(Limiter(3, clock), clock, 20)]
    assert numbers == list(range(20))


async def test_requests_without_a_budget_do_not_wait() -> None:
    clock = VirtualClock()
    await send(Limiter(0, clock), clock, 1000)
    assert clock.now() == 0


async def test_waits_are_reported() -> None:
    clock = VirtualClock()
    waits: list[float] = []
    await send(Limiter(2, clock, on_wait=waits.append), clock, 3)
    assert waits == [60]


async def test_a_cancelled_request_does_not_use_the_budget() -> None:
    clock = VirtualClock()
    limiter = Limiter(1, clock)
    async with limiter.slot():
        waiting = asyncio.ensure_future(send(limiter, clock, 1))
        await asyncio.sleep(0)
        waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert [time for time, _ in await send(limiter, clock, 1)] == [60]


async def test_requests_of_other_tasks_count_until_a_window_after_them() -> None:
    clock = VirtualClock()
    clock.time = 1000.0
    limiter = Limiter(4, clock, spent=[(20.0, 1), (50.0, 2), (70.0, 9)])
    assert [time - 1000 for time, _ in await send(limiter, clock, 4)] == [0, 10, 10, 40]


async def test_an_unknown_number_of_requests_counts_as_the_whole_budget() -> None:
    clock = VirtualClock()
    limiter = Limiter(3, clock, spent=[(15.0, 1_000_000_000), (5.0, 1_000_000_000)])
    assert [time for time, _ in await send(limiter, clock, 4)] == [55, 55, 55, 115]
    unlimited = Limiter(0, clock, spent=[(0.0, 1_000_000_000)])
    assert [time - 115 for time, _ in await send(unlimited, clock, 1)] == [0]


async def test_a_hold_delays_all_requests() -> None:
    clock = VirtualClock()
    limiter = Limiter(0, clock)
    limiter.hold(9)
    assert [time for time, _ in await send(limiter, clock, 2)] == [9, 9]


async def test_a_hold_above_the_longest_wait_fails_at_once() -> None:
    clock = VirtualClock()
    limiter = Limiter(0, clock)
    limiter.hold(3600)
    with pytest.raises(Transient, match="asks for a wait of 3600 s"):
        await send(limiter, clock, 1)
    assert clock.now() == 0


async def test_a_slot_of_two_requests_waits_for_both() -> None:
    clock = VirtualClock()
    limiter = Limiter(3, clock)
    await send(limiter, clock, 2)
    async with limiter.slot(2):
        assert clock.now() == 60
    async with limiter.slot():
        assert clock.now() == 60


async def test_unused_requests_of_a_slot_are_returned() -> None:
    clock = VirtualClock()
    limiter = Limiter(2, clock)
    for used in (0, 1):
        async with limiter.slot(2) as slot:
            slot.used = used
    async with limiter.slot():
        assert clock.now() == 0


async def test_the_longest_hold_applies() -> None:
    clock = VirtualClock()
    limiter = Limiter(0, clock)
    limiter.hold(10)
    limiter.hold(5)
    assert [time for time, _ in await send(limiter, clock, 1)] == [10]
    limiter.hold(300)
    assert [time for time, _ in await send(limiter, clock, 1)] == [310]
    limiter.hold(300.5)
    with pytest.raises(Transient) as refused:
        await send(limiter, clock, 1)
    assert (refused.value.status, refused.value.retry_after) == (429, 300.5)


async def test_more_requests_than_the_budget_are_admitted_as_the_whole_budget() -> None:
    """An update that reads the object first, at a budget of one."""
    clock = VirtualClock()
    limiter = Limiter(1, clock)
    async with limiter.slot(2) as slot:
        assert slot.used == 1
    async with limiter.slot(2):
        assert clock.now() == 60
    async with Limiter(0, clock).slot(2) as slot:
        assert (clock.now(), slot.used) == (60, 2)


async def test_both_requests_of_a_slot_count() -> None:
    clock = VirtualClock()
    limiter = Limiter(3, clock)
    async with limiter.slot(2):
        pass
    assert [time for time, _ in await send(limiter, clock, 3)] == [0, 60, 60]


async def test_waits_for_running_requests_are_not_reported_and_those_for_the_budget_are() -> None:
    clock = VirtualClock()
    waits: list[float] = []
    limiter = Limiter(2, clock, window=10, on_wait=waits.append)
    assert [time for time, _ in await send(limiter, clock, 3, takes=4)] == [0, 0, 14]
    assert waits == [10]


async def test_a_slot_that_fails_counts_as_sent() -> None:
    clock = VirtualClock()
    limiter = Limiter(1, clock)
    with pytest.raises(ValueError, match="broken"):
        async with limiter.slot():
            raise ValueError("broken")
    assert [time for time, _ in await send(limiter, clock, 1)] == [60]


async def test_a_request_cancelled_during_its_wait_does_not_count_as_sent() -> None:
    clock = VirtualClock()
    limiter = Limiter(1, clock)
    await send(limiter, clock, 1)
    waiting = asyncio.ensure_future(send(limiter, clock, 1))
    await clock.sleep(30)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert [time for time, _ in await send(limiter, clock, 1)] == [60]


@pytest.mark.parametrize("accepted", [1, 3, 8, 31])
async def test_after_a_refusal_for_their_number_as_many_requests_run_at_once_as_were_accepted(accepted: int) -> None:
    clock = VirtualClock()
    limiter = Limiter(0, clock)
    running, refused, most = 0, [], 0

    async def one() -> None:
        nonlocal running, most
        while True:
            async with limiter.slot():
                if running >= accepted:
                    refused.append(clock.now())
                    limiter.narrow()
                else:
                    running += 1
                    most = max(most, running)
                    await clock.sleep(1)
                    running -= 1
                    return

    await asyncio.gather(*(one() for _ in range(32)))
    assert set(refused) == {0.0}
    assert most == accepted
    assert clock.now() == -(-32 // accepted)


async def test_fewer_requests_at_once_are_sent_for_one_window_only() -> None:
    clock = VirtualClock()
    limiter = Limiter(0, clock, window=10)
    limiter.narrow()
    assert [time for time, _ in await send(limiter, clock, 3, takes=4)] == [0, 4, 8]
    assert [time for time, _ in await send(limiter, clock, 2, takes=4)] == [12, 12]
