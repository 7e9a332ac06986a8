"""The results of operations: immutable, with all that is needed to render them.

What renders them is imported by the method that is called: most callers need none of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import TYPE_CHECKING

from msgspec import Struct

from reconciler.model import exit_codes

if TYPE_CHECKING:
    from reconciler.model.access_change import AccessChange
    from reconciler.model.access_test import AccessResult
    from reconciler.model.address import Address
    from reconciler.model.change import Change
    from reconciler.model.event import Ended, Outcome
    from reconciler.model.health import HealthRow, Wait
    from reconciler.model.plan import Call, Plan
    from reconciler.model.problem import Problem
    from reconciler.model.snapshot import Snapshot
    from reconciler.model.value import Json
    from reconciler.operations.open_project import OpenProject
    from reconciler.rendering.summary import Summary


class Status(StrEnum):
    """How an apply ended."""

    UNCHANGED = "unchanged"  # there was nothing to do
    APPLIED = "applied"  # every call succeeded, and the account, read again, is in sync or due for rotation
    PARTIAL = "partial"  # some calls succeeded, or something was skipped or needs a decision
    STALE = "stale"  # the platform changed after the plan was created: nothing was sent
    BLOCKED = "blocked"  # an approval is missing or a project policy forbids it: nothing was sent
    DECLINED = "declined"  # `approve` returned False: nothing was sent
    FAILED = "failed"  # no call succeeded, the plan has errors, or resources still differ after the apply
    UNAUTHORIZED = "unauthorized"  # no call succeeded, because the API key may not do this
    INTERRUPTED = "interrupted"  # `stop` was set: no further call was started


_EXIT_CODES = {
    Status.UNCHANGED: exit_codes.DONE,
    Status.APPLIED: exit_codes.DONE,
    Status.PARTIAL: exit_codes.PARTLY,
    Status.STALE: exit_codes.STALE,
    Status.BLOCKED: exit_codes.BLOCKED,
    Status.DECLINED: exit_codes.ERROR,
    Status.FAILED: exit_codes.ERROR,
    Status.UNAUTHORIZED: exit_codes.AUTH,
    Status.INTERRUPTED: exit_codes.INTERRUPTED,
}


class SkippedCall(Struct, frozen=True):
    """A call of a plan file that is skipped, and why."""

    call: Call
    why: str


class PlanResult(Struct, frozen=True):
    """A plan, with the snapshot and the project that it was created from."""

    plan: Plan
    snapshot: Snapshot
    project: OpenProject

    @property
    def problems(self) -> tuple[Problem, ...]:
        return self.plan.problems

    @property
    def access(self) -> tuple[AccessChange, ...]:
        """The entry points that the plan changes, the gravest first."""
        return self.plan.access

    def markdown(self) -> str:
        """As `reconciler plan --format markdown`."""
        from reconciler.operations import result_documents
        from reconciler.rendering.plan.phrases import Flavour

        return result_documents.render_plan(self.plan, self.project, Flavour.PLAN)

    def html(self) -> str:
        """As `reconciler plan --format html`."""
        from reconciler.operations import result_documents
        from reconciler.rendering.plan.phrases import Flavour

        return result_documents.render_plan_page(self.plan, self.project, self.snapshot, Flavour.PLAN)

    def to_json(self) -> str:
        """As `reconciler plan --format json`: a plan file."""
        from reconciler.operations import result_documents

        return result_documents.write_plan(self.plan, self.project)


class HealthWait(Struct, frozen=True):
    """How waiting for the health of what an apply changed ended.

    rows            the objects that it changed or broke and that have health, and what waiting says about each
    seconds         how long it took, at most the time that it was given
    is_interrupted  it was stopped before it was over; the apply itself is not affected
    """

    rows: tuple[tuple[HealthRow, Wait], ...]
    seconds: float
    is_interrupted: bool = False

    def with_wait(self, wait: Wait) -> tuple[HealthRow, ...]:
        return tuple(row for row, found in self.rows if found is wait)

    @property
    def exit_code(self) -> int:
        from reconciler.model.health import Wait

        if self.is_interrupted:
            return exit_codes.INTERRUPTED
        return exit_codes.DEGRADED if self.with_wait(Wait.FAILED) else exit_codes.DONE


class ApplyResult(Struct, frozen=True):
    """The result of applying a plan.

    outcomes           how each call ended, in the order of their ends
    skipped            calls of a plan file that were skipped because their objects changed
    changed            what changed since the plan was created, and the remedy, one sentence each
    remaining          changes that are still needed after the apply, by a new snapshot
    problems           errors that block the plan, or that were found after the apply
    failure            why the store could not be written any more; empty if it could
    unverified         why the account could not be read again after the calls; empty if it was
    lost_store         whether that was for the store, which may be back soon
    recorded_in_store  of an adoption: addresses whose ownership only the store records
    health             how waiting for health ended; None: the caller asked for none, or nothing was applied
    """

    status: Status
    plan: Plan
    outcomes: tuple[Ended, ...] = ()
    skipped: tuple[SkippedCall, ...] = ()
    changed: tuple[str, ...] = ()
    remaining: tuple[Change, ...] = ()
    problems: tuple[Problem, ...] = ()
    failure: str = ""
    unverified: str = ""
    lost_store: bool = False
    recorded_in_store: tuple[str, ...] = ()
    health: HealthWait | None = None

    def with_outcome(self, *outcomes: Outcome) -> list[Ended]:
        """The calls that ended in one of these ways."""
        return [outcome for outcome in self.outcomes if outcome.outcome in outcomes]

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it is not unchanged or applied, one sentence each; empty if it is."""
        if self.status in (Status.UNCHANGED, Status.APPLIED):
            return ()
        return tuple(dict.fromkeys(self._list_reasons()))

    def _list_reasons(self) -> Iterator[str]:
        from reconciler.model.event import Outcome

        if self.status is Status.DECLINED:
            yield "the plan was not approved by the caller"
        elif self.status is Status.INTERRUPTED:
            yield "interrupted: no further call was started"
        elif self.status is Status.BLOCKED:
            for approval in self.plan.missing_approvals:
                yield f"approval required: {approval.what}:{approval.kind}={approval.count}: {approval.why}"
        yield from self.changed
        for skipped in self.skipped:
            yield f"{Outcome.SKIPPED}: {skipped.call.id}: {skipped.why}"
        for ended in self.with_outcome(Outcome.FAILED, Outcome.SKIPPED, Outcome.UNKNOWN):
            yield f"{ended.outcome}: {ended.call.id}" + (f": {ended.why}" if ended.why else "")
        yield from filter(None, (self.failure, self.unverified))
        yield from map(str, self.problems)
        for change in self.remaining:
            yield f"{change.address} still differs: {change.reason.text}"

    @property
    def exit_code(self) -> int:
        """Of the commands that apply. What was skipped because of an error is an error, though the rest was applied."""
        is_skipped = self.status is Status.PARTIAL and self.is_complete and any(item.is_error for item in self.problems)
        code = exit_codes.ERROR if is_skipped else _EXIT_CODES[self.status]
        return self.health.exit_code if code == exit_codes.DONE and self.health is not None else code

    @property
    def is_complete(self) -> bool:
        """Whether every call of the plan succeeded and was recorded."""
        from reconciler.model.event import Outcome  # not above: `validate` has no events

        succeeded = self.with_outcome(Outcome.DONE, Outcome.ALREADY)
        return len(succeeded) == len(self.plan.calls) and not self.failure

    def markdown(self) -> str:
        """A headline, and tables of the objects for which a person has to do something."""
        from reconciler.rendering import summary

        return summary.render_markdown(self._summarize())

    def html(self) -> str:
        """The same as a page."""
        from reconciler.rendering.html import summary_page

        return summary_page.render_page(self._summarize())

    def to_json(self) -> str:
        """JSON with a `version`."""
        from reconciler.rendering.summary import list_problems

        return _write_json(
            {
                "stack": self.plan.stack,
                "status": str(self.status),
                "exit_code": self.exit_code,
                "reasons": list(self.reasons),
                "changes": [
                    {"address": str(change.address), "action": str(change.action)} for change in self.plan.changes
                ],
                "calls": [
                    {"id": ended.call.id, "outcome": str(ended.outcome), "why": ended.why} for ended in self.outcomes
                ],
                "skipped": [{"id": skipped.call.id, "why": skipped.why} for skipped in self.skipped],
                "remaining": [str(change.address) for change in self.remaining],
                "problems": list_problems(self.problems),
            }
        )

    def _summarize(self) -> Summary:
        from reconciler.rendering.summary import summarize_apply

        is_good = self.status in (Status.UNCHANGED, Status.APPLIED)
        return summarize_apply(self.plan, str(self.status), self.reasons, self.outcomes, self.problems, is_good=is_good)


class DriftResult(Struct, frozen=True):
    """What changed on the platform since the last apply.

    plan      its changes and additions are what differs, without known drift
    snapshot  the account as it was read
    """

    plan: Plan
    snapshot: Snapshot
    project: OpenProject

    @property
    def has_drift(self) -> bool:
        return self.plan.has_drift

    @property
    def health(self) -> tuple[HealthRow, ...] | None:
        """The health of the stack's objects; None: it was not judged."""
        return self.plan.health

    @property
    def has_pending(self) -> bool:
        return self.plan.has_pending

    @property
    def access(self) -> tuple[AccessChange, ...]:
        """The entry points that the drift changes: before, by the manifests; after, as they are. The gravest first."""
        return self.plan.access

    def markdown(self) -> str:
        """As `reconciler drift --format markdown`."""
        from reconciler.operations import result_documents
        from reconciler.rendering.plan.phrases import Flavour

        return result_documents.render_plan(self.plan, self.project, Flavour.DRIFT)

    def html(self) -> str:
        """As `reconciler drift --format html`."""
        from reconciler.operations import result_documents
        from reconciler.rendering.plan.phrases import Flavour

        return result_documents.render_plan_page(self.plan, self.project, self.snapshot, Flavour.DRIFT)

    def to_json(self) -> str:
        """As `reconciler drift --format json`."""
        from reconciler.operations import result_documents

        return result_documents.write_plan(self.plan, self.project)


class ValidationResult(Struct, frozen=True):
    """The problems of the manifests and policies of one environment, or of the project without an environment.

    environment  its name; None for the project without an environment
    problems     errors, warnings and notes
    resources    number of declared resources
    files        number of manifest files
    policies     number of policies
    tests        results of the access tests on what the manifests declare
    addresses    of the declared resources
    shared       only of the last result: warnings about delivery targets that environments share
    """

    environment: str | None
    problems: tuple[Problem, ...]
    resources: int = 0
    files: int = 0
    policies: int = 0
    shared: tuple[Problem, ...] = ()
    tests: tuple[AccessResult, ...] = ()
    addresses: tuple[Address, ...] = ()

    @property
    def is_valid(self) -> bool:
        return not any(problem.is_error for problem in self.problems)

    def markdown(self) -> str:
        """A headline, and tables of the objects for which a person has to do something."""
        from reconciler.rendering import summary

        return summary.render_markdown(self._summarize())

    def html(self) -> str:
        """The same as a page."""
        from reconciler.rendering.html import summary_page

        return summary_page.render_page(self._summarize())

    def to_json(self) -> str:
        """JSON with a `version`."""
        from reconciler.rendering.summary import list_problems

        return _write_json(
            {
                "environment": self.environment,
                "is_valid": self.is_valid,
                "resources": self.resources,
                "files": self.files,
                "policies": self.policies,
                "problems": list_problems(self.problems),
                "tests": [{"name": test.test, "status": str(test.status)} for test in self.tests],
            }
        )

    def _summarize(self) -> Summary:
        from reconciler.rendering.summary import summarize_validation

        return summarize_validation(
            self.environment, self.problems, self.tests, resources=self.resources, files=self.files
        )


_JSON_VERSION = 1  # of an apply and of a validation


def _write_json(content: dict[str, Json]) -> str:
    from reconciler.model.json_text import write_json

    return write_json({"version": _JSON_VERSION, **content}) + "\n"
