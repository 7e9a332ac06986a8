"""Past drift checks and runs: which resources drifted, what changed them, which ways in were open, and the outcomes of
calls. No field values.

Times are seconds since 1970, in UTC.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from reconciler.model.access_change import Verdict
from reconciler.model.address import Address
from reconciler.model.change import Action, ChangedBy, Reason
from reconciler.model.event import Outcome
from reconciler.model.health import HealthRow


class DriftedResource(Struct, frozen=True):
    """A resource that differed in a drift check. `fields`: the dotted paths of the fields that differed."""

    address: Address
    action: Action
    reason: Reason
    changed_by: ChangedBy
    fields: tuple[str, ...] = ()

    @property
    def is_pending(self) -> bool:
        """Whether Git alone caused the difference: it is an unapplied change, no drift."""
        return self.changed_by in (ChangedBy.GIT, ChangedBy.FOLLOWS)


class Opening(Struct, frozen=True):
    """An entry point that let in more requests than the manifests say, in words; see `AccessChange`."""

    entry_point: str
    verdict: Verdict
    before: str
    after: str
    is_certain: bool = True


class CheckedHealth(Struct, frozen=True):
    """The health that a drift check found.

    judged   the number of objects that have health
    rows     those that are not healthy, or for which something comes due
    """

    judged: int
    rows: tuple[HealthRow, ...] = ()


class DriftCheck(Struct, frozen=True):
    """The result of one drift check.

    declared   the number of declared resources
    complete   every list of the account was read: what was not found does not exist
    health     None: it was not judged
    """

    at: float
    declared: int
    commit: str = ""
    moved: tuple[DriftedResource, ...] = ()
    complete: bool = True
    openings: tuple[Opening, ...] = ()
    health: CheckedHealth | None = None

    @property
    def drift(self) -> tuple[DriftedResource, ...]:
        return tuple(resource for resource in self.moved if not resource.is_pending)

    @property
    def git_changes(self) -> tuple[DriftedResource, ...]:
        return tuple(resource for resource in self.moved if resource.is_pending)


class Run(Struct, frozen=True):
    """One apply or destroy. `ended` is None, and `outcome` empty, if the process was killed.

    commit  of the manifests; empty: unknown
    actor   who started the run, as the CI system names the person; empty: unknown
    """

    command: str
    started: float
    ended: float | None = None
    outcome: str = ""
    calls: Mapping[Outcome, int] = field(default_factory=dict)  # number of calls by outcome
    commit: str = ""
    actor: str = ""


class Past(Struct, frozen=True):
    """What a store remembers of a stack, oldest first.

    applied   when an apply last changed each resource with success, since the last drift check
    """

    checks: tuple[DriftCheck, ...] = ()
    runs: tuple[Run, ...] = ()
    applied: Mapping[Address, float] = field(default_factory=dict)
