"""The deadline of each response of a server."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

from reconciler.store.postgres import _Deadlines

SOON, LATE = 0.01, 60.0


def test_a_block_that_takes_too_long_is_told_once_and_others_are_not() -> None:
    deadlines, called, told = _Deadlines(), list[str](), threading.Event()

    def tell() -> None:
        called.append("soon")
        told.set()

    with deadlines.call_after(LATE, lambda: called.append("late")):
        with deadlines.call_after(SOON, tell):
            assert told.wait(30)
        told.clear()
        with deadlines.call_after(SOON, tell):  # the thread that waits for the late one is woken again
            assert told.wait(30)
    assert called == ["soon", "soon"]


def test_nothing_is_called_after_its_block() -> None:
    deadlines, called = _Deadlines(), list[int]()

    def use(number: int) -> None:
        for _ in range(100):
            with deadlines.call_after(SOON, lambda: called.append(number)):
                pass

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(use, range(8)))
    before = len(called)  # a slow machine may have been too late for some
    time.sleep(10 * SOON)
    assert len(called) == before
    assert len([thread for thread in threading.enumerate() if thread is deadlines._thread]) == 1
