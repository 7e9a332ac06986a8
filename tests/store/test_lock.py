"""The lock of a stack: one run at a time, and no lock needs to be removed by hand."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator
from contextlib import nullcontext
from itertools import pairwise
from pathlib import Path

import pytest
from msgspec.structs import replace
from sqlalchemy import event

from reconciler.engine.ports import Intent
from reconciler.model.address import Address
from reconciler.store import lock
from reconciler.store.errors import Locked, LockLost, StoreError, Unavailable
from reconciler.store.store import Store, open_store
from tests.store.stores import Now

INTENT = Intent("i1", Address("BotUser", "b"), "prod", "/bot_users")


@pytest.fixture
def elapsed() -> Now:
    """The machine's monotonic clock, beside the wall clock `now`."""
    return Now()


@pytest.fixture
async def store(tmp_path: Path, now: Now, elapsed: Now) -> AsyncIterator[Store]:
    async with open_store(str(tmp_path / "prod.db"), now=now, elapsed=elapsed) as opened_store:
        yield opened_store


def fail(failure: StoreError) -> None:
    raise AssertionError(failure)


async def test_a_second_run_is_refused_with_the_holder_of_the_lock(store: Store) -> None:
    async with store.lock("prod", on_loss=fail):
        with pytest.raises(Locked, match=re.escape(f"by process {os.getpid()} on ")) as refused:
            async with store.lock("prod", on_loss=fail):
                pass
    assert "since 1970-01-12T13:46:40Z" in str(refused.value)
    assert "within 60 s" in str(refused.value)


async def test_other_stacks_are_not_locked(store: Store) -> None:
    async with store.lock("prod", on_loss=fail), store.lock("dev", on_loss=fail):
        pass


async def test_the_lock_is_released_after_an_error(store: Store) -> None:
    with pytest.raises(KeyError):
        async with store.lock("prod", on_loss=fail):
            raise KeyError
    async with store.lock("prod", on_loss=fail):
        pass


async def test_an_expired_lock_is_taken_over_and_its_former_holder_cannot_write(store: Store, now: Now) -> None:
    async with store.lock("prod", on_loss=fail) as asleep, store.journal("prod", command="a", holder=asleep) as journal:
        await journal.intend(INTENT)
        now.time += 61
        async with store.lock("prod", on_loss=fail) as next_one:
            assert next_one.token != asleep.token
            with pytest.raises(LockLost, match="another run acquired it"):
                await journal.conclude("i1", "bot_1")
        assert await store.find_open_intents("prod") == (INTENT,)


async def test_a_holder_that_slept_past_the_expiry_fails_before_it_sends_a_request(
    store: Store, now: Now, elapsed: Now
) -> None:
    async with store.lock("prod", on_loss=fail) as asleep, store.journal("prod", command="a", holder=asleep) as journal:
        await journal.intend(INTENT)
        await journal.check_lock()
        now.time += 61
        async with store.lock("prod", on_loss=fail):
            await journal.check_lock()  # the last write confirmed the lock a moment ago
            elapsed.time += 61
            for _ in range(2):  # a write that failed confirms nothing
                with pytest.raises(LockLost, match="another run acquired it"):
                    await journal.check_lock()


@pytest.mark.parametrize(("seconds", "is_checked"), [(15.0, False), (15.1, True)])
async def test_the_lock_is_confirmed_again_after_a_quarter_of_its_duration(
    store: Store, now: Now, elapsed: Now, seconds: float, is_checked: bool
) -> None:
    async with store.lock("prod", on_loss=fail) as asleep, store.journal("prod", command="a", holder=asleep) as journal:
        await journal.intend(INTENT)
        now.time += 61
        async with store.lock("prod", on_loss=fail):
            elapsed.time += seconds
            with pytest.raises(LockLost) if is_checked else nullcontext():
                await journal.check_lock()


async def test_a_commit_confirms_the_lock_as_of_its_start(store: Store, now: Now, elapsed: Now) -> None:
    def sleep(_: object) -> None:
        elapsed.time += 16

    async with store.lock("prod", on_loss=fail) as asleep, store.journal("prod", command="a", holder=asleep) as journal:
        event.listen(store._engine, "commit", sleep)
        await journal.intend(INTENT)
        event.remove(store._engine, "commit", sleep)
        now.time += 61
        async with store.lock("prod", on_loss=fail):
            with pytest.raises(LockLost):
                await journal.check_lock()


async def test_a_lock_is_released_if_its_acquisition_is_cancelled(store: Store) -> None:
    acquiring = asyncio.ensure_future(store.lock("prod", on_loss=fail).__aenter__())
    await asyncio.sleep(0)
    acquiring.cancel()
    with pytest.raises(asyncio.CancelledError):
        await acquiring
    async with store.lock("prod", on_loss=fail):
        pass


BUSY, LOST = Unavailable("the store", "locked"), LockLost("prod")


@pytest.mark.parametrize(
    ("beats", "reported"),
    [
        ([LOST], 1),
        ([BUSY, LOST], 2),
        ([BUSY, BUSY, BUSY], 3),  # three quarters of the duration without a renewal
        ([BUSY, BUSY, None, BUSY, BUSY, None, BUSY, BUSY, BUSY], 9),
    ],
)
async def test_a_lock_that_cannot_be_renewed_is_reported_before_it_expires(
    beats: list[StoreError | None], reported: int
) -> None:
    row = BeatingRow(beats)
    lost: list[StoreError] = []
    await lock._renew_until_lost(row, lost.append)  # type: ignore[arg-type]
    assert (lost, row.count) == ([beats[-1]], reported)


class BeatingRow:
    """A lock row whose n-th renewal fails as the list says."""

    lasts = 0.004

    def __init__(self, beats: list[StoreError | None]) -> None:
        self._beats = beats
        self.count = 0

    def now(self) -> float:
        return self.count * self.lasts / 4

    def renew(self) -> None:
        failure = self._beats[self.count]
        self.count += 1
        if failure is not None:
            raise failure


async def test_the_lock_is_renewed_several_times_before_it_would_expire(
    monkeypatch: pytest.MonkeyPatch, now: Now
) -> None:
    """Two renewals in a row may fail."""
    renewals = [now.time]

    class Row(BeatingRow):
        lasts = 60.0

        def now(self) -> float:
            return now()

        def renew(self) -> None:
            renewals.append(now.time)
            super().renew()

    async def sleep(seconds: float) -> None:
        now.time += seconds

    monkeypatch.setattr(asyncio, "sleep", sleep)
    await lock._renew_until_lost(Row([None] * 8 + [LOST]), lambda failure: None)  # type: ignore[arg-type]
    assert all(10 <= after - before < 20 for before, after in pairwise(renewals))


async def test_a_holder_that_lost_its_lock_does_not_release_that_of_the_next(store: Store, now: Now) -> None:
    late = store.lock("prod", on_loss=lambda failure: None)
    await late.__aenter__()
    now.time += lock.LOCK_SECONDS + 1
    async with store.lock("prod", on_loss=fail):
        await late.__aexit__(None, None, None)
        with pytest.raises(Locked):
            async with store.lock("prod", on_loss=fail):
                pass


async def test_a_lock_from_a_clock_that_ran_ahead_is_taken_over(store: Store, now: Now) -> None:
    now.time += 10_000
    held = store.lock("prod", on_loss=fail)
    await held.__aenter__()
    now.time -= 10_000
    async with store.lock("prod", on_loss=fail):
        pass
    await held.__aexit__(None, None, None)


async def test_a_heartbeat_renews_the_lock(store: Store, now: Now) -> None:
    async with store.lock("prod", on_loss=fail, lasts=0.04):
        now.time += 0.03
        while await read_expiry(store) < now.time + 0.04:  # noqa: ASYNC110 - until the next heartbeat, which no event reports
            await asyncio.sleep(0)
        now.time += 0.03
        with pytest.raises(Locked):
            async with store.lock("prod", on_loss=fail, lasts=0.04):
                pass


async def read_expiry(store: Store) -> float:
    with store._engine.connect() as connection:
        return float(connection.exec_driver_sql("SELECT expires FROM locks").scalar_one())


async def test_the_loss_of_a_lock_is_reported_to_its_holder(tmp_path: Path) -> None:
    async with open_store(str(tmp_path / "prod.db")) as store:
        lost: asyncio.Future[StoreError] = asyncio.get_running_loop().create_future()
        async with store.lock("prod", on_loss=lost.set_result, lasts=0.04):
            with store._engine.begin() as connection:
                connection.exec_driver_sql("UPDATE locks SET holder = 'another'")
            assert isinstance(await lost, LockLost)


@pytest.mark.parametrize("pid", [1, 2**22 + 1], ids=["running here", "not running here"])
async def test_a_lock_of_another_machine_is_free_only_after_its_expiry(store: Store, pid: int) -> None:
    remote = lock.Holder("t", "elsewhere", "another machine", pid)
    async with lock.hold_lock(store._engine, "the store", "prod", on_loss=fail, holder=remote, now=store._now):
        with pytest.raises(Locked, match=f"process {pid} on elsewhere"):
            async with store.lock("prod", on_loss=fail):
                pass


@pytest.mark.parametrize(
    ("later", "is_free"),
    [(0.0, False), (59.9, False), (60.0, True), (-540.0, False), (-540.1, True)],
    ids=["at once", "before its end", "at its end", "from a clock that is a little ahead", "from a wrong clock"],
)
async def test_a_lock_is_free_from_its_expiry_on(store: Store, now: Now, later: float, is_free: bool) -> None:
    async with store.lock("prod", on_loss=lambda failure: None):
        now.time += later
        with nullcontext() if is_free else pytest.raises(Locked):
            async with store.lock("prod", on_loss=fail):
                pass


async def test_expired_locks_of_other_stacks_are_unchanged(store: Store, now: Now) -> None:
    async with store.lock("dev", on_loss=lambda _: None) as dev, store.lock("test", on_loss=lambda _: None) as test:
        now.time += 61
        async with store.lock("prod", on_loss=fail) as prod:
            with store._engine.connect() as connection:
                rows = connection.exec_driver_sql("SELECT stack, holder FROM locks ORDER BY stack").all()
            assert [tuple(row) for row in rows] == [("dev", dev.token), ("prod", prod.token), ("test", test.token)]
            with pytest.raises(Locked):
                async with store.lock("prod", on_loss=fail):
                    pass


@pytest.mark.parametrize(("later", "left"), [(20.0, 40), (59.4, 1), (59.9, 1)])
async def test_a_refusal_has_the_seconds_until_the_lock_expires(
    store: Store, now: Now, later: float, left: int
) -> None:
    async with store.lock("prod", on_loss=fail):
        now.time += later
        with pytest.raises(Locked, match=f"^stack prod is being applied by .* within {left} s"):
            async with lock.hold_lock(store._engine, "the store", "prod", on_loss=fail, now=now):
                pass


@pytest.mark.parametrize(
    "pid", [os.getppid(), os.getpid(), 2**22 + 1], ids=["another process", "this process", "no process"]
)
async def test_a_lock_of_this_machine_is_free_once_its_process_has_ended(store: Store, pid: int) -> None:
    local = replace(lock.Holder.this_process(), token="t", pid=pid)
    async with (
        store.lock("dev", on_loss=fail),
        store.lock("test", on_loss=fail),
        lock.hold_lock(store._engine, "the store", "prod", on_loss=fail, holder=local, now=store._now),
    ):
        with pytest.raises(Locked) if pid <= 2**22 else nullcontext():
            async with store.lock("prod", on_loss=fail):
                pass


def test_processes_are_identified_by_machine_boot_and_container() -> None:
    one, other = lock.Holder.this_process(), lock.Holder.this_process()
    assert one.token != other.token
    assert replace(one, token=other.token) == other
    boot, container = Path("/proc/sys/kernel/random/boot_id"), Path("/proc/self/ns/pid")
    if boot.exists():
        assert set(one.machine.split()) >= {one.host, boot.read_text().strip(), str(container.readlink())}


def test_without_a_boot_id_each_process_counts_as_one_of_another_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The lock of a killed process is then free only after its expiry."""

    def refuse(_: Path) -> str:
        raise PermissionError

    monkeypatch.setattr(Path, "read_text", refuse)
    assert lock.Holder.this_process().machine != lock.Holder.this_process().machine


async def test_a_lock_released_during_its_refusal_is_refused_for_a_second(store: Store) -> None:
    """Between the attempt to acquire it and the query of its holder."""

    def release(*_: object) -> None:
        with sqlite3.connect(store._place) as connection:
            connection.execute("DELETE FROM locks")
        connection.close()

    async with store.lock("prod", on_loss=lambda failure: None):
        event.listen(store._engine, "handle_error", lambda _: event.listen(store._engine, "checkin", release))
        with pytest.raises(Locked, match=r"^stack prod is being applied by .* within 1 s"):
            async with store.lock("prod", on_loss=fail):
                pass
        event.remove(store._engine, "checkin", release)


KILLED = textwrap.dedent(
    """
    import asyncio, os, signal, sys
    from reconciler.store.store import open_store

    async def main():
        async with open_store(sys.argv[1]) as store, store.lock("prod", on_loss=print):
            os.kill(os.getpid(), signal.SIGKILL)

    asyncio.run(main())
    """
)


async def test_a_killed_process_of_this_machine_has_no_lock(tmp_path: Path) -> None:
    file = str(tmp_path / "prod.db")
    killed = subprocess.run([sys.executable, "-c", KILLED, file], check=False)  # noqa: ASYNC221 - waits for its end
    assert killed.returncode == -signal.SIGKILL
    async with open_store(file) as store, store.lock("prod", on_loss=fail):
        pass
