"""Each signal that interrupts a command: SIGINT of a terminal, SIGTERM of a pipeline, SIGHUP of a closed terminal."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator

import pytest

from reconciler.cli.terminal import signals

INTERRUPTING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture(autouse=True)
def missed() -> Iterator[list[signal.Signals]]:
    """The signals that nothing caught, which would have ended the process."""
    found: list[signal.Signals] = []
    before = {how: signal.signal(how, lambda number, _: found.append(signal.Signals(number))) for how in INTERRUPTING}
    yield found
    for how, handler in before.items():
        signal.signal(how, handler)


async def send(how: signal.Signals) -> None:
    """Sends a signal to this process, and lets the event loop act on it."""
    os.kill(os.getpid(), how)
    await asyncio.sleep(0.001)


@pytest.mark.parametrize("how", INTERRUPTING)
def test_each_signal_calls_the_last_handler_until_the_default_is_restored(
    missed: list[signal.Signals], how: signal.Signals
) -> None:
    async def work() -> list[str]:
        called: list[str] = []
        signals.set_handler(lambda: called.append("first"))
        await send(how)
        signals.set_handler(lambda: called.append("second"))
        await send(how)
        await send(how)
        signals.exit_on_signal()
        return called

    assert asyncio.run(work()) == ["first", "second", "second"]
    assert missed == []
    assert [signal.getsignal(number) for number in INTERRUPTING] == [signal.SIG_DFL] * len(INTERRUPTING)


@pytest.mark.parametrize("how", INTERRUPTING)
def test_each_signal_cancels_a_command_and_a_second_one_ends_it(
    missed: list[signal.Signals], how: signal.Signals
) -> None:
    async def work() -> None:
        signals.cancel_on_signal()
        await send(how)
        await asyncio.sleep(5)

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(work())
    assert missed == []
    assert signal.getsignal(how) is signal.SIG_DFL


@pytest.mark.parametrize("how", INTERRUPTING)
def test_only_a_hangup_that_the_parent_ignores_remains_ignored(how: signal.Signals) -> None:
    """`nohup` lets a run go on without its terminal; a shell ignores SIGINT for what it starts in the background."""

    async def work() -> list[str]:
        called: list[str] = []
        signal.signal(how, signal.SIG_IGN)
        signals.set_handler(lambda: called.append("called"))
        await send(how)
        signals.exit_on_signal()
        return called

    is_hangup = how is signal.SIGHUP
    assert asyncio.run(work()) == ([] if is_hangup else ["called"])
    assert signal.getsignal(how) is (signal.SIG_IGN if is_hangup else signal.SIG_DFL)


def test_a_command_outside_the_main_thread_leaves_signals_to_its_caller(missed: list[signal.Signals]) -> None:
    async def work() -> None:
        signals.cancel_on_signal()
        signals.exit_on_signal()

    async def in_thread() -> None:
        await asyncio.to_thread(lambda: asyncio.run(work()))
        await send(signal.SIGTERM)

    asyncio.run(in_thread())
    assert missed == [signal.SIGTERM]
