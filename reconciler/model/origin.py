"""Where a declared value comes from: every place that has a say in it, and which of them counts."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.model.problem import Position
from reconciler.model.value import Value


@dataclass(frozen=True, slots=True)
class Origin:
    """One place that has a say: `manifest`, `environment prod`, `variable region, from --var`."""

    what: str
    position: Position | None
    written: Value  # as it stands there
    counts: bool = True  # False: something else takes its place
    feeds: bool = False  # a part of the origin before it


@dataclass(frozen=True, slots=True)
class Trace:
    """One value and its origins, the one that counts first. Sensitive: nothing of it may be shown."""

    path: str  # "tls_termination.min_version"
    value: Value
    origins: tuple[Origin, ...]
    sensitive: bool = False
