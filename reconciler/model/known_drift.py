"""Drift that a project knows of and ignores for a while."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.model.problem import Position


@dataclass(frozen=True, slots=True)
class KnownDrift:
    """An entry of `drift.ignore` in the project file, or one `--ignore`.

    match   a glob over `Kind/name` and `Kind/name.field`
    until   the last day on which it hides anything, as 2026-12-31 in UTC; empty: one run
    """

    match: str
    until: str = ""
    reason: str = ""
    position: Position | None = None


@dataclass(frozen=True, slots=True)
class IgnoredDifference:
    """A difference that an entry hides; `subject` is `Kind/name`, or `Kind/name.field`."""

    subject: str
    until: str = ""
    reason: str = ""
