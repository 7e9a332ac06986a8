"""The time by which the rows of a store are compared."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import ColumnElement, Engine, Float, cast, extract, func, literal


def now_expression(engine: Engine, now: Callable[[], float]) -> ColumnElement[float]:
    """Seconds since 1970, for a statement. On a server by the server's clock, which all its users share."""
    if engine.dialect.name == "postgresql":
        return cast(extract("epoch", func.clock_timestamp()), Float)
    return literal(now(), Float)
