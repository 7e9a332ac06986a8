"""Connections to a PostgreSQL server, with a timeout for each response. The tables are created in `database`."""

from __future__ import annotations

import logging
import math
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from sqlalchemy import URL, Engine, create_engine, event

DRIVER = "postgresql+psycopg"  # SQLAlchemy's own choice is the driver's predecessor


def make_engine(url: URL, *, connect: int, answer: float) -> Engine:
    """An SQLAlchemy engine for a server. Raises ImportError if the driver is not installed.

    connect  seconds until a connection attempt fails
    answer   seconds until a request fails to which the server does not respond
    """
    for name in ("psycopg", "sqlalchemy"):  # without a handler, both print to stderr the errors that they raise
        logging.getLogger(name).addHandler(logging.NullHandler())
    engine = create_engine(url.set(query={"connect_timeout": str(connect), **url.query}), pool_pre_ping=True)
    event.listen(engine, "do_connect", partial(_connect, answer))
    return engine


def display_name(url: URL) -> str:
    """The URL for messages, without its password and its query, which may contain a password too."""
    return url.set(drivername="postgresql", query={}).render_as_string(hide_password=True)


def find_passwords(url: URL) -> Iterator[str]:
    """All passwords in the URL, including `password` and `sslpassword` in its query."""
    if url.password:
        yield url.password
    for name, value in url.query.items():
        if "password" in name.lower():
            yield from [value] if isinstance(value, str) else value


def _connect(answer: float, dialect: Any, _: object, arguments: Any, options: Any) -> Any:
    connection = dialect.connect(*arguments, **options)
    # The driver waits here for every response, without a timeout; a timeout of the server would end with the server.
    connection.wait = partial(wait_for_response, connection, connection.wait, answer)
    return connection


def wait_for_response(connection: Any, wait: Callable[..., Any], answer: float, *arguments: Any, **options: Any) -> Any:
    """Calls a function that waits for a response, with these arguments. If it takes longer than this number of seconds,
    the connection is closed, so that the function raises an error, and that error says so."""
    is_silent = False

    def cut() -> None:
        nonlocal is_silent
        is_silent = True
        with suppress(Exception), socket.socket(fileno=os.dup(connection.fileno())) as line:
            line.shutdown(socket.SHUT_RDWR)

    with _deadlines.call_after(answer, cut):
        try:
            return wait(*arguments, **options)
        except Exception as failure:
            if is_silent:
                why = f"connection closed: the server did not respond within {answer:.0f} s"
                raise type(failure)(why) from failure
            raise


class _Deadlines:
    """Calls functions at their deadlines, in one thread: one for each request would cost more than the request."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._calls: dict[object, tuple[float, Callable[[], None]]] = {}
        self._next = math.inf  # when the thread looks again
        self._thread: threading.Thread | None = None

    @contextmanager
    def call_after(self, seconds: float, call: Callable[[], None]) -> Iterator[None]:
        """Calls the function once if the block takes longer than this number of seconds; never after the block."""
        key, deadline = object(), time.monotonic() + seconds
        with self._changed:
            self._calls[key] = (deadline, call)
            if deadline < self._next:
                self._changed.notify()
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, name="store deadlines", daemon=True)
                self._thread.start()
        try:
            yield
        finally:
            with self._changed:
                self._calls.pop(key, None)

    def _watch(self) -> None:
        with self._changed:
            while True:
                now = time.monotonic()
                for key, (deadline, call) in list(self._calls.items()):
                    if deadline <= now:
                        del self._calls[key]
                        call()
                self._next = min((deadline for deadline, _ in self._calls.values()), default=math.inf)
                self._changed.wait(None if self._next == math.inf else self._next - now)


_deadlines = _Deadlines()
os.register_at_fork(after_in_child=_deadlines.__init__)  # type: ignore[misc] # the thread stays with the parent
