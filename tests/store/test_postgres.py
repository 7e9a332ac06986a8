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


def test_a_deadline_calls_back_once_for_a_block_that_exceeds_it() -> None:
    deadlines, called, expired = _Deadlines(), list[str](), threading.Event()

    def report() -> None:
        called.append("soon")
        expired.set()

    with deadlines.call_after(LATE, lambda: called.append("late")):
        with deadlines.call_after(SOON, report):
            assert expired.wait(30)
        expired.clear()
        with deadlines.call_after(SOON, report):  # the thread, which waits for the late deadline, is woken
            assert expired.wait(30)
    assert called == ["soon", "soon"]


def test_a_deadline_does_not_call_back_after_its_block() -> None:
    deadlines, called = _Deadlines(), list[int]()

    def use(number: int) -> None:
        for _ in range(100):
            with deadlines.call_after(SOON, lambda: called.append(number)):
                pass

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(use, range(8)))
    before = len(called)  # on a slow machine some deadlines may have expired
    time.sleep(10 * SOON)
    assert len(called) == before
    assert len([thread for thread in threading.enumerate() if thread is deadlines._thread]) == 1


def test_all_passwords_of_a_url_are_found() -> None:
    url = make_url("postgresql://u:a@h/x?PASSWORD=b&sslpassword=c&sslpassword=d&passfile=e&sslmode=require")
    assert sorted(postgres.find_passwords(url)) == ["a", "b", "c", "d"]
    assert list(postgres.find_passwords(make_url("postgresql://u@h/x"))) == []


def test_the_timeout_of_a_response_is_half_the_duration_of_a_lock() -> None:
    assert Timeouts().answer == LOCK_SECONDS / 2


def connect() -> tuple[socket.socket, socket.socket, Callable[[str], str]]:
    """Both ends of a connection, and a function that waits for a response as a driver does."""
    client, server = socket.socketpair()

    def wait(prefix: str, *, suffix: str = "") -> str:
        if not (response := client.recv(100)):
            raise ConnectionError("closed")
        return prefix + response.decode() + suffix

    return client, server, wait


def test_a_connection_without_a_response_in_time_is_closed() -> None:
    client, server, wait = connect()
    with client, server:
        with pytest.raises(ConnectionError, match=r"connection closed: the server did not respond within 0 s"):
            postgres.wait_for_response(client, wait, 0.01, "")
        assert server.recv(1) == b""


def test_a_response_in_time_and_an_error_of_the_driver_are_returned() -> None:
    client, server, wait = connect()
    with client:
        server.send(b"b")
        assert postgres.wait_for_response(client, wait, 30.0, "a", suffix="c") == "abc"
        server.close()
        with pytest.raises(ConnectionError, match=r"^closed$"):
            postgres.wait_for_response(client, wait, 30.0, "a")
