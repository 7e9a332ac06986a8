"""What is told of earlier looks and runs: no values, only what moved, who moved it, and how calls ended.

Times are seconds since 1970, in UTC.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.model.address import Address
from reconciler.model.change import Action, Mover, Reason
from reconciler.model.event import Outcome


@dataclass(frozen=True, slots=True)
class Moved:
    """A resource that differed at a look. `fields`: paths."""

    address: Address
    action: Action
    reason: Reason
    mover: Mover
    fields: tuple[str, ...] = ()


@dataclass(frozen=True)
class Look:
    """What one look at the account found, beside so many declared resources."""

    at: float
    declared: int
    commit: str = ""
    moved: tuple[Moved, ...] = ()


@dataclass(frozen=True)
class Run:
    """One apply or destroy. `ended` is None, and `outcome` empty, if it died."""

    command: str
    started: float
    ended: float | None = None
    outcome: str = ""
    calls: Mapping[Outcome, int] = field(default_factory=dict)  # how many ended so
