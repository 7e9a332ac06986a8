"""Connections to a PostgreSQL server, with a timeout for each response. The tables are created in `database`."""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
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
    connection.wait = partial(_wait, connection, connection.wait, answer)
    return connection


def _wait(connection: Any, wait: Callable[..., Any], answer: float, *arguments: Any, **options: Any) -> Any:
    silent = threading.Event()

    def cut() -> None:
        silent.set()
        with suppress(Exception), socket.socket(fileno=os.dup(connection.fileno())) as line:
            line.shutdown(socket.SHUT_RDWR)

    patience = threading.Timer(answer, cut)
    patience.daemon = True
    patience.start()
    try:
        return wait(*arguments, **options)
    except Exception as failure:
        if silent.is_set():
            raise type(failure)(f"connection closed: the server did not respond within {answer:.0f} s") from failure
        raise
    finally:
        patience.cancel()
