"""Connections to a server, as far as no server is needed: passwords in URLs, and timeouts of responses."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import make_url

from reconciler.store import postgres
from reconciler.store.database import Timeouts
from reconciler.store.lock import LOCK_SECONDS
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


def test_all_passwords_of_a_url_are_found() -> None:
    url = make_url("postgresql://u:a@h/x?PASSWORD=b&sslpassword=c&sslpassword=d&passfile=e&sslmode=require")
    assert sorted(postgres.find_passwords(url)) == ["a", "b", "c", "d"]
    assert list(postgres.find_passwords(make_url("postgresql://u@h/x"))) == []


def test_a_server_may_be_silent_for_half_of_the_time_that_a_lock_lasts() -> None:
    assert Timeouts().answer == LOCK_SECONDS / 2


def connect() -> tuple[socket.socket, socket.socket, Callable[[str], str]]:
    """Both ends of a connection, and a function that waits for a response as a driver does."""
    ours, theirs = socket.socketpair()

    def wait(prefix: str, *, suffix: str = "") -> str:
        if not (response := ours.recv(100)):
            raise ConnectionError("closed")
        return prefix + response.decode() + suffix

    return ours, theirs, wait


def test_a_connection_on_which_no_response_comes_is_closed() -> None:
    ours, theirs, wait = connect()
    with ours, theirs:
        with pytest.raises(ConnectionError, match=r"connection closed: the server did not respond within 0 s"):
            postgres.wait_for_response(ours, wait, 0.01, "")
        assert theirs.recv(1) == b""


def test_a_response_in_time_and_an_error_of_the_driver_are_passed_on() -> None:
    ours, theirs, wait = connect()
    with ours:
        theirs.send(b"b")
        assert postgres.wait_for_response(ours, wait, 30.0, "a", suffix="c") == "abc"
        theirs.close()
        with pytest.raises(ConnectionError, match=r"^closed$"):
            postgres.wait_for_response(ours, wait, 30.0, "a")
