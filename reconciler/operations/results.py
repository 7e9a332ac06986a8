"""What operations return: frozen results, complete enough to be rendered without asking anything else."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from reconciler.model.change import Change
from reconciler.model.event import Ended, Outcome
from reconciler.model.plan import Call, Plan
from reconciler.model.problem import Problem
from reconciler.model.snapshot import Snapshot

if TYPE_CHECKING:
    from reconciler.operations.workspace import Workspace


class Status(StrEnum):
    """How an apply ended."""

    UNCHANGED = "unchanged"  # nothing was to be done
    APPLIED = "applied"  # every call succeeded, and a fresh reading shows no difference
    PARTIAL = "partial"  # some calls succeeded, or something is left for a person to decide
    STALE = "stale"  # what the plan touches changed since it was created: nothing was sent
    BLOCKED = "blocked"  # an approval is missing or a project policy forbids it: nothing was sent
    DECLINED = "declined"  # `approve` said no: nothing was sent
    FAILED = "failed"  # no call succeeded, the plan has errors, or resources still differ after the apply
    UNAUTHORIZED = "unauthorized"  # no call succeeded, because the API key may not do this
    INTERRUPTED = "interrupted"  # `stop` was set: no further call was started


@dataclass(frozen=True)
class SkippedCall:
    """A call of a plan file that is not carried out, and why."""

    call: Call
    why: str


@dataclass(frozen=True)
class PlanResult:
    """A plan, with the snapshot and the workspace that it was made from."""

    plan: Plan
    snapshot: Snapshot
    workspace: Workspace = field(repr=False)

    @property
    def problems(self) -> tuple[Problem, ...]:
        return self.plan.problems


@dataclass(frozen=True)
class ApplyResult:
    """What became of a plan.

    outcomes   how each call ended, in the order in which they ended
    skipped    calls of a plan file that were left out because what they touch changed
    reasons    why nothing was sent, or what changed since the plan was created, a sentence each
    remaining  what a fresh reading of the account shows as still different from the manifests
    problems   errors that are left: those that block the plan, or were found after the apply
    failure    why the store could not be written any more; empty if it could
    unverified why the account could not be read again after the calls; empty if it was
    """

    status: Status
    plan: Plan
    outcomes: tuple[Ended, ...] = ()
    skipped: tuple[SkippedCall, ...] = ()
    reasons: tuple[str, ...] = ()
    remaining: tuple[Change, ...] = ()
    problems: tuple[Problem, ...] = ()
    failure: str = ""
    unverified: str = ""
    recorded_in_store: tuple[str, ...] = ()  # of an adoption: addresses that only the store had to remember

    def with_outcome(self, *outcomes: Outcome) -> list[Ended]:
        """The calls that ended in one of these ways."""
        return [outcome for outcome in self.outcomes if outcome.outcome in outcomes]

    @property
    def is_complete(self) -> bool:
        """Whether every call of the plan succeeded and was recorded."""
        succeeded = self.with_outcome(Outcome.DONE, Outcome.ALREADY)
        return len(succeeded) == len(self.plan.calls) and not self.failure


@dataclass(frozen=True)
class DriftResult:
    """What changed on the platform since the last apply.

    `plan` holds it as changes and additions, without known drift; `has_drift` and `has_pending` sum it up.
    """

    plan: Plan
    snapshot: Snapshot

    @property
    def has_drift(self) -> bool:
        return self.plan.has_drift

    @property
    def has_pending(self) -> bool:
        return self.plan.has_pending


@dataclass(frozen=True)
class ValidationResult:
    """What is wrong with the manifests and policies of one environment, or of the project alone.

    environment  its name; None for the project without one
    resources    how many are declared
    shared       on the last result: warnings about what several environments share
    """

    environment: str | None
    problems: tuple[Problem, ...]
    resources: int = 0
    files: int = 0
    policies: int = 0
    shared: tuple[Problem, ...] = ()

    @property
    def is_valid(self) -> bool:
        return not any(problem.is_error for problem in self.problems)
