"""What SIGINT, SIGTERM and SIGHUP do while a command's event loop runs. They always mean the same: stop, and tell the
truth. Where a terminal that closes is to be ignored (`nohup`), it is.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable

CAUGHT = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def set_handler(act: Callable[[], object]) -> None:
    """From here on a signal does this, instead of what it did before. The loop lets go of them when it is closed."""
    loop = asyncio.get_running_loop()
    with contextlib.suppress(RuntimeError, ValueError):  # not the main thread, which alone receives signals
        for signals in CAUGHT:
            if signals is not signal.SIGHUP or signal.getsignal(signals) is not signal.SIG_IGN:
                loop.add_signal_handler(signals, act)


def cancel_on_signal() -> None:
    """From here on a signal cancels the command: nothing is running that must be waited for. A second one ends it where
    it is, since a database that does not answer cannot be cancelled."""
    task = asyncio.current_task()
    if task is not None:

        def cancelled() -> None:
            task.cancel()
            exit_on_signal()

        set_handler(cancelled)


def exit_on_signal() -> None:
    """From here on a signal ends the process."""
    loop = asyncio.get_running_loop()
    for signals in CAUGHT:
        if loop.remove_signal_handler(signals):
            signal.signal(signals, signal.SIG_DFL)
