"""The time by which the rows of a store are compared."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import ColumnElement, Engine, Float, cast, extract, func, literal

SERVER_CLOCK: ColumnElement[float] = cast(extract("epoch", func.clock_timestamp()), Float)
"""Seconds since 1970 by the clock of a server, which all its users share."""


def is_server(engine: Engine) -> bool:
    """Whether the engine is of a server, and not of a file or a store in memory."""
    return engine.dialect.name == "postgresql"


def now_expression(engine: Engine, now: Callable[[], float]) -> ColumnElement[float]:
    """Seconds since 1970, for a statement. On a server by the server's clock."""
    return SERVER_CLOCK if is_server(engine) else literal(now(), Float)
