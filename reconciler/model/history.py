"""Past drift checks and runs: what drifted, what changed it, and how calls ended. No values.

Times are seconds since 1970, in UTC.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.model.address import Address
from reconciler.model.change import Action, ChangedBy, Reason
from reconciler.model.event import Outcome


@dataclass(frozen=True, slots=True)
class DriftedResource:
    """A resource that differed at a look. `fields`: paths."""

    address: Address
    action: Action
    reason: Reason
    changed_by: ChangedBy
    fields: tuple[str, ...] = ()


@dataclass(frozen=True)
class DriftCheck:
    """What one look at the account found, beside so many declared resources."""

    at: float
    declared: int
    commit: str = ""
    moved: tuple[DriftedResource, ...] = ()


@dataclass(frozen=True)
class Run:
    """One apply or destroy. `ended` is None, and `outcome` empty, if it died."""

    command: str
    started: float
    ended: float | None = None
    outcome: str = ""
    calls: Mapping[Outcome, int] = field(default_factory=dict)  # how many ended so
