"""The provenance of a declared value: every place that sets it, and which of them takes effect."""

from __future__ import annotations

from msgspec import Struct

from reconciler.model.problem import Position
from reconciler.model.value import Value


class Origin(Struct, frozen=True):
    """One place that sets a value: `manifest`, `environment prod`, `variable region, from --var`. Holds no secret."""

    what: str
    position: Position | None
    written: Value  # the value as written there, with Hidden for sensitive values
    counts: bool = True  # False: overridden by another origin
    feeds: bool = False  # part of the origin before it
    gist: str = ""  # a summary that is displayed instead of the value, such as `a list of 3`


class Trace(Struct, frozen=True):
    """One value and its origins, the effective one first; Hidden for a sensitive value."""

    path: str  # "tls_termination.min_version"
    value: Value
    origins: tuple[Origin, ...]
