"""The budget of requests of an account, with a platform that counts: runs that share a ledger get no 429."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from reconciler import kinds
from reconciler.api import budget
from reconciler.api.budget import FLIGHT, Busy, SharedLedger
from reconciler.api.limiter import Limiter
from reconciler.engine.retry import RetryPolicy as Retries
from reconciler.planning.deciding.options import PlanOptions
from tests.faults.matrix.world import SkippingClock, Stack
from tests.harness.engine import VirtualClock
from tests.harness.platform import SandboxProcess

BUDGET, WINDOW = 40, 1.0  # requests, seconds: the platform's rule with a short window
REFRESH = len({kind.path for kind in kinds.every() if kind.parent is None})


class Ledger(budget.Ledger):
    """A ledger that is closed at the end of its test."""

    opened: ClassVar[list[Ledger]] = []

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.opened.append(self)


@pytest.fixture(autouse=True)
def close_ledgers() -> Iterator[None]:
    yield
    while Ledger.opened:
        Ledger.opened.pop().close()


class WaitingClock(SkippingClock):
    """The machine's clock: the platform counts by another one, so that waits must be real."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def open_stack(sandbox: SandboxProcess, root: Path, name: str, count: int) -> Stack:
    stack = Stack(sandbox, root, name=name, retries=Retries())
    stack.clock = WaitingClock()
    stack.account = {
        "requests_per_minute": BUDGET,
        "window": WINDOW,
        "ledger": root / "requests.db",
        "timeout": 10.0,
    }
    stack.policy = PlanOptions(requests_per_minute=BUDGET)
    for number in range(count):
        stack.declare(f"IPPolicy/p{number}", {"description": f"{name} {number}"})
    return stack


@pytest.fixture
def counting(sandbox: SandboxProcess) -> Any:
    sandbox.request("PUT", "/_sandbox/budget", {"limit": BUDGET, "window": WINDOW})
    yield sandbox
    sandbox.request("PUT", "/_sandbox/budget", {"limit": None})


def statuses(sandbox: SandboxProcess) -> Counter[int]:
    return Counter(request["status"] for request in sandbox.log())


async def test_a_plan_and_an_apply_right_after_it_get_no_429(counting: SandboxProcess, tmp_path: Path) -> None:
    await open_stack(counting, tmp_path, "prod", 50).plan_again()
    applying = open_stack(counting, tmp_path, "prod", 50)
    started = time.monotonic()
    run = await applying.run()
    took = time.monotonic() - started
    assert run.is_good
    assert statuses(counting) == {200: 2 * REFRESH, 201: 50}
    waits = run.plan.forecast.estimated_seconds / 60  # the forecast is for a window of a minute
    # The plan before has used a part of the budget; and a machine under load may pause for seconds.
    assert waits * WINDOW <= took <= (waits + 1) * WINDOW + 10


async def test_two_runs_that_share_a_ledger_get_no_429(counting: SandboxProcess, tmp_path: Path) -> None:
    runs = await asyncio.gather(*(open_stack(counting, tmp_path, name, 20).run() for name in ("one", "two")))
    assert all(run.is_good for run in runs)
    assert statuses(counting) == {200: 2 * REFRESH, 201: 40}


async def test_two_runs_with_separate_ledgers_get_a_429_and_succeed(counting: SandboxProcess, tmp_path: Path) -> None:
    both = [open_stack(counting, tmp_path, name, 20) for name in ("one", "two")]
    for stack in both:
        stack.account = {**stack.account, "ledger": None}
    runs = await asyncio.gather(*(stack.run() for stack in both))
    assert all(run.is_good for run in runs)
    assert statuses(counting)[201] == 40
    assert statuses(counting)[429] > 0


async def test_requests_take_the_forecast_number_of_minutes() -> None:
    for requests in (REFRESH + 1, 120, 121, 240, 241, 500):
        clock = VirtualClock()
        limiter = Limiter(120, clock)

        async def one(limiter: Limiter = limiter, clock: VirtualClock = clock) -> None:
            async with limiter.slot():
                await clock.sleep(0.01)

        await asyncio.gather(*(one() for _ in range(requests)))
        assert clock.now() == pytest.approx(60 * ((requests - 1) // 120), abs=1)


# --- the ledger -------------------------------------------------------------------------------------------------------


def at(moment: float) -> Callable[[], float]:
    return lambda: moment


def test_the_ledger_counts_requests_of_other_processes(tmp_path: Path) -> None:
    one, two = Ledger(tmp_path / "requests.db"), Ledger(tmp_path / "requests.db")
    first, _ = one.enter(at(100.0), 2, 60.0)
    second, _ = two.enter(at(101.0), 2, 60.0)
    assert first is not None
    assert second is not None
    one.record_answers({first: 102.0})
    two.record_answers({second: 103.0})
    assert one.enter(at(110.0), 2, 60.0) == (None, 52.0)
    assert one.enter(at(162.5), 2, 60.0)[0]


def test_the_clock_is_read_while_the_ledger_is_locked(tmp_path: Path) -> None:
    """Otherwise a process that waited for the file would treat entries of that time as those of an earlier boot."""
    one, two = Ledger(tmp_path / "requests.db", timeout=0.0), Ledger(tmp_path / "requests.db", timeout=0.0)
    seen: list[int] = []

    def clock() -> float:
        with pytest.raises(Busy):
            two.enter(at(100.0), 1, 60.0)
        seen.append(1)
        return 100.0

    assert one.enter(clock, 1, 60.0)[0]
    assert seen == [1]


def test_requests_of_a_clock_slightly_ahead_count_and_those_of_an_earlier_boot_do_not(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "requests.db")
    ledger.enter(at(100.001), 1, 60.0)
    assert ledger.enter(at(100.0), 1, 60.0)[0] is None
    ledger.enter(at(9_000.0), 1, 60.0)
    assert ledger.enter(at(100.0), 1, 60.0)[0]


def test_a_ticket_is_issued_once(tmp_path: Path) -> None:
    """Otherwise a late response would be recorded for the request of another process."""
    ledger = Ledger(tmp_path / "requests.db")
    first, _ = ledger.enter(at(100.0), 1, 60.0)
    second, _ = ledger.enter(at(900.0), 1, 60.0)
    assert first != second


def test_a_request_without_a_response_counts_until_its_timeout_and_a_window(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "requests.db")
    ledger.enter(at(100.0), 1, 60.0)
    assert ledger.enter(at(100.0 + FLIGHT + 59), 1, 60.0)[0] is None
    assert ledger.enter(at(100.0 + FLIGHT + 61), 1, 60.0)[0]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"a": "b"}', '{"a": 1e9}'])
def test_a_ledger_with_useless_content_does_not_delay_requests(tmp_path: Path, text: str) -> None:
    (tmp_path / "requests.db").write_text(text)
    assert Ledger(tmp_path / "requests.db").enter(at(100.0), 1, 60.0)[0]


def test_a_file_that_is_no_database_is_replaced_by_a_ledger(tmp_path: Path) -> None:
    (tmp_path / "requests.db").write_bytes(b"no database at all" * 100)
    ledger = Ledger(tmp_path / "requests.db")
    assert [ledger.enter(at(100.0), 1, 60.0)[0] is not None for _ in range(3)] == [True, True, False]


def test_a_ledger_that_cannot_be_replaced_does_not_delay_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_path: Path, **_more: Any) -> None:
        raise PermissionError

    (tmp_path / "requests.db").write_bytes(b"no database at all" * 100)
    monkeypatch.setattr(Path, "unlink", refuse)  # as in a folder of another user, since root may write everywhere
    assert Ledger(tmp_path / "requests.db").enter(at(100.0), 1, 60.0)[0]


def test_a_ledger_that_cannot_be_written_does_not_delay_requests(tmp_path: Path) -> None:
    (tmp_path / "folder").write_text("a file")
    ledger = Ledger(tmp_path / "folder" / "requests.db")
    assert all(ledger.enter(at(100.0), 1, 60.0)[0] for _ in range(3))


# Retries while another process creates the file.
ENTERING = """
import sys, time
from pathlib import Path
from reconciler.api.budget import Busy, Ledger

def enter(ledger):
    while True:
        try:
            return bool(ledger.enter(time.monotonic, 50, 60.0)[0])
        except Busy:
            time.sleep(0.01)

ledger = Ledger(Path(sys.argv[1]))
print(sum(enter(ledger) for _ in range(100)))
"""


def test_requests_of_concurrent_processes_are_counted_together(tmp_path: Path) -> None:
    command = [sys.executable, "-c", ENTERING, str(tmp_path / "requests.db")]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert sum(int(process.communicate()[0]) for process in processes) == 50


def test_the_cost_of_a_request_does_not_grow_with_their_number(tmp_path: Path) -> None:
    """Measured in steps of SQLite's virtual machine, which grow with the rows that are read."""
    ledger, steps = Ledger(tmp_path / "requests.db"), Counter[int]()
    for number in range(600):
        ticket, _ = ledger.enter(at(100.0), 1_000, 60.0)
        assert ticket is not None
        ledger.record_answers({ticket: 100.0})
        if number in (50, 500):
            assert ledger._opened is not None
            ledger._opened.set_progress_handler(lambda place=number: steps.update([place]), 1)  # type: ignore[misc]
        elif number in (51, 501):
            assert ledger._opened is not None
            ledger._opened.set_progress_handler(None, 0)
    ledger.close()
    assert 0 < steps[500] <= steps[50] + 10


# --- the event loop ---------------------------------------------------------------------------------------------------


def lock_file(file: Path, seconds: float) -> subprocess.Popen[str]:
    """A process that has acquired the write lock of the file."""
    script = (
        "import sqlite3, sys, time; file = sqlite3.connect(sys.argv[1], isolation_level=None); "
        "file.execute('BEGIN IMMEDIATE'); print(flush=True); time.sleep(float(sys.argv[2])); file.execute('ROLLBACK')"
    )
    command = [sys.executable, "-c", script, str(file), str(seconds)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    return process


async def measure_longest_pause(until: asyncio.Event) -> float:
    """The longest time in seconds for which an independent coroutine did not run."""
    longest, last = 0.0, time.monotonic()
    while not until.is_set():
        await asyncio.sleep(0.005)
        longest, last = max(longest, time.monotonic() - last), time.monotonic()
    return longest


async def test_a_locked_ledger_does_not_block_the_event_loop(tmp_path: Path) -> None:
    Ledger(tmp_path / "requests.db").enter(at(time.monotonic()), 100, 60.0)
    ledger, done = SharedLedger(tmp_path / "requests.db"), asyncio.Event()
    limiter = Limiter(100, WaitingClock(), ledger=ledger)
    async with limiter.slot():
        holder = lock_file(tmp_path / "requests.db", 0.8)  # a response and an entry wait for it
        watching = asyncio.ensure_future(measure_longest_pause(done))
        await asyncio.sleep(0.02)
    started = time.monotonic()
    async with limiter.slot():
        waited = time.monotonic() - started
    await ledger.close()
    done.set()
    assert waited > 0.4, "the file was not locked"
    assert await watching < 0.3
    holder.communicate()


async def test_responses_are_written_when_the_ledger_is_closed(tmp_path: Path) -> None:
    ledger = SharedLedger(tmp_path / "requests.db")
    for moment in (100.0, 101.0):
        ticket, _ = await ledger.enter(at(moment), 2, 60.0)
        assert ticket is not None
        ledger.record_answers(ticket, moment)
    await ledger.close()
    assert Ledger(tmp_path / "requests.db").enter(at(110.0), 2, 60.0) == (None, 50.0)


async def test_responses_are_written_soon_for_other_processes(tmp_path: Path) -> None:
    ledger, other = SharedLedger(tmp_path / "requests.db"), Ledger(tmp_path / "requests.db")
    ticket, _ = await ledger.enter(at(100.0), 1, 60.0)
    assert ticket is not None
    ledger.record_answers(ticket, 101.0)
    deadline = time.monotonic() + 10
    while other.enter(at(110.0), 1, 60.0) != (None, 51.0):  # until then the request counts as running
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)
    await ledger.close()


async def test_the_ticket_of_a_cancelled_request_is_returned(tmp_path: Path) -> None:
    ledger = SharedLedger(tmp_path / "requests.db")
    await ledger.enter(at(0.0), 2, 60.0)
    holder = lock_file(tmp_path / "requests.db", 0.3)
    entering = asyncio.ensure_future(ledger.enter(at(100.0), 2, 60.0))
    await asyncio.sleep(0.1)
    entering.cancel()
    await asyncio.wait([entering])
    await ledger.close()
    holder.communicate()
    assert Ledger(tmp_path / "requests.db").enter(at(161.0), 1, 60.0)[0], "it still counts as running"


async def test_two_requests_of_one_slot_count_as_two_in_the_ledger(tmp_path: Path) -> None:
    clock, ledger = VirtualClock(), SharedLedger(tmp_path / "requests.db")
    clients = [Limiter(3, clock, ledger=ledger) for _ in range(3)]
    async with clients[0].slot(2) as slot:
        slot.used = 0  # the check refused the request
    async with clients[1].slot(2):
        assert clock.now() == 0
    async with clients[2].slot():
        assert clock.now() == 0
    async with clients[2].slot(2):
        assert clock.now() == 60
    await ledger.close()


async def test_without_a_limit_nothing_is_counted(tmp_path: Path) -> None:
    ledger = SharedLedger(tmp_path / "requests.db")
    async with Limiter(0, VirtualClock(), ledger=ledger).slot():
        pass
    await ledger.close()
    assert list(tmp_path.iterdir()) == []


def test_a_request_counts_until_one_window_after_its_response(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "requests.db")
    tickets = [ledger.enter(at(moment), 2, 60.0)[0] for moment in (100.0, 101.0)]
    ledger.record_answers({ticket: moment for ticket, moment in zip(tickets, (102.0, 105.0), strict=True) if ticket})
    assert ledger.enter(at(110.0), 2, 60.0) == (None, 52.0)
    assert ledger.enter(at(161.5), 2, 60.0) == (None, 0.5)
    assert ledger.enter(at(161.5), 3, 60.0)[0] is not None
    ledger.record_answers({})
    ticket, wait = ledger.enter(at(165.0), 2, 60.0)
    assert (ticket, wait) != (None, 0.0)
    ledger.close()
    ledger.close()


def test_a_budget_used_by_running_requests_is_retried_soon(tmp_path: Path) -> None:
    """Their duration is unknown."""
    ledger = Ledger(tmp_path / "folder" / "requests.db")
    assert ledger.enter(at(100.0), 1, 60.0)[1] == 0.0
    ticket, wait = ledger.enter(at(100.0), 1, 60.0)
    assert ticket is None
    assert 0 < wait < 1
    ticket, wait = ledger.enter(at(100.0 + FLIGHT), 1, 60.0)
    assert (ticket, wait) == (None, 60.0)
    assert ledger.enter(at(100.0 + FLIGHT + 60.0), 1, 60.0)[0] is not None


def test_the_ledger_is_readable_by_its_owner_only_and_no_link_is_followed(tmp_path: Path) -> None:
    file = tmp_path / "requests.db"
    Ledger(file).enter(at(100.0), 1, 60.0)
    assert file.stat().st_mode & 0o777 == 0o600
    link = tmp_path / "link.db"
    link.symlink_to(tmp_path / "elsewhere")
    assert Ledger(link).enter(at(100.0), 1, 60.0)[1] == 0.0
    assert not (tmp_path / "elsewhere").exists()
