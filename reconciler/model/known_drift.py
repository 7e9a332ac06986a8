"""Known drift: differences that a project ignores until a given day."""

from __future__ import annotations

from msgspec import Struct

from reconciler.model.problem import Position


class KnownDrift(Struct, frozen=True):
    """An entry of `drift.ignore` in the project file, or an `--ignore` option.

    match   a glob that is matched with `Kind/name` and `Kind/name.field`
    until   the last day on which the entry is in effect, such as 2026-12-31, in UTC; empty: this run only
    """

    match: str
    until: str = ""
    reason: str = ""
    position: Position | None = None


class IgnoredDifference(Struct, frozen=True):
    """A difference that is ignored; `subject` is `Kind/name` or `Kind/name.field`."""

    subject: str
    until: str = ""
    reason: str = ""
