"""Where a declared value comes from: every place that has a say in it, and which of them counts."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.model.problem import Position
from reconciler.model.value import Value


@dataclass(frozen=True, slots=True)
class Origin:
    """One place that has a say: `manifest`, `environment prod`, `variable region, from --var`. Holds nothing secret."""

    what: str
    position: Position | None
    written: Value  # as it stands there, with Hidden for what must not be shown
    counts: bool = True  # False: something else takes its place
    feeds: bool = False  # a part of the origin before it
    gist: str = ""  # `a list of 3`: said in the place of what was written


@dataclass(frozen=True, slots=True)
class Trace:
    """One value and its origins, the one that counts first; Hidden is what must not be shown."""

    path: str  # "tls_termination.min_version"
    value: Value
    origins: tuple[Origin, ...]
