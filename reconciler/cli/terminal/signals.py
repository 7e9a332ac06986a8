"""Handling of SIGINT, SIGTERM and SIGHUP while the event loop of a command runs.

All of them interrupt the command. SIGHUP is ignored if it was ignored at the start, as with `nohup`.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable

CAUGHT = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def set_handler(act: Callable[[], object]) -> None:
    """Calls `act` for each later signal, instead of the previous handler, until the event loop is closed."""
    loop = asyncio.get_running_loop()
    with contextlib.suppress(RuntimeError, ValueError):  # raised outside the main thread, which receives all signals
        for signals in CAUGHT:
            if signals is not signal.SIGHUP or signal.getsignal(signals) is not signal.SIG_IGN:
                loop.add_signal_handler(signals, act)


def cancel_on_signal() -> None:
    """Makes a signal cancel the command's task, while no call is running.

    A second signal ends the process: waiting for a database that does not respond cannot be cancelled.
    """
    task = asyncio.current_task()
    if task is not None:

        def cancel() -> None:
            task.cancel()
            exit_on_signal()

        set_handler(cancel)


def exit_on_signal() -> None:
    """Restores the default handlers: a signal ends the process."""
    loop = asyncio.get_running_loop()
    for signals in CAUGHT:
        if loop.remove_signal_handler(signals):
            signal.signal(signals, signal.SIG_DFL)
