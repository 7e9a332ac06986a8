"""A PostgreSQL server: connections that give up one which says nothing. Knows nothing of our tables; see `database`."""

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
    """`connect` and `answer`: seconds until a server is given up that does not let us in, or does not answer.

    Raises ImportError where the driver is not installed.
    """
    for each in ("psycopg", "sqlalchemy"):  # both write to standard error what they then raise, unless somebody listens
        logging.getLogger(each).addHandler(logging.NullHandler())
    made = create_engine(url.set(query={"connect_timeout": str(connect), **url.query}), pool_pre_ping=True)
    event.listen(made, "do_connect", partial(_connect, answer))
    return made


def display_name(url: URL) -> str:
    """How to call it in messages: what follows the `?` may be a password too."""
    return url.set(drivername="postgresql", query={}).render_as_string(hide_password=True)


def find_passwords(url: URL) -> Iterator[str]:
    """All that are in the URL; `password` and `sslpassword` may also follow the `?`."""
    if url.password:
        yield url.password
    for name, value in url.query.items():
        if "password" in name.lower():
            yield from [value] if isinstance(value, str) else value


def _connect(answer: float, dialect: Any, _: object, arguments: Any, options: Any) -> Any:
    connection = dialect.connect(*arguments, **options)
    # The driver waits for every answer in here, and for ever: a timeout that the server keeps ends with the server.
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
            raise type(failure)(f"connection given up: the server did not answer for {answer:.0f} s") from failure
        raise
    finally:
        patience.cancel()
