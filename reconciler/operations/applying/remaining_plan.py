"""Computes the part of a plan file that may still be applied: without finished calls and without changed objects."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from reconciler.model.address import Address
from reconciler.model.change import Action, Change
from reconciler.model.plan import Approval, Call, Forecast, Plan, create_id
from reconciler.model.snapshot import Live, Snapshot
from reconciler.model.value import Json, Secret, Value, references
from reconciler.operations import unread_secrets
from reconciler.operations.applying import plan_files
from reconciler.operations.applying.plan_files import PlanFile
from reconciler.operations.applying.reviewed import Reviewed
from reconciler.operations.applying.staleness import Comparison, calls_by_address, find_changed_objects, live_fields
from reconciler.operations.results import SkippedCall
from reconciler.project.settings.config import Config

_WHY_OTHER: Final = "a secret changed after the plan was created"


class RemainingPlan(Struct, frozen=True):
    """The part of a plan file that may be applied.

    changed  lines for the user, by address: what changed since the plan was created
    skipped  the calls that are left out because of these changes
    reason   a summary of the changes
    remedy   what the user can do
    """

    plan: Plan
    changed: Mapping[Address, Sequence[str]]
    skipped: tuple[SkippedCall, ...]
    reason: str
    remedy: str = "plan again"

    @property
    def lines(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(line for _, lines in sorted(self.changed.items()) for line in lines))


def find_remaining_plan(
    planned: PlanFile,
    snapshot: Snapshot,
    config: Config,
    allow: Mapping[tuple[str, str], int],
    done: Collection[str] = (),
) -> RemainingPlan:
    """Compares a plan file with the account. Raises Rejected if the file breaks a rule of manifests.

    done  ids of the calls of the file that succeeded in earlier runs
    """
    found = plan_files.with_secrets(planned, config, live_fields(planned.plan, snapshot))
    changed = find_changed_objects(found.plan, snapshot, done)
    reason = "the platform changed after the plan was created" if changed else _WHY_OTHER
    plan, lost = without_finished_calls(found.plan, snapshot, done)
    plan = _compare_assumed(plan, found.texts, changed)
    open_calls = {call.address for call in plan.calls}
    for address, lines in (*lost.items(), *found.changed.items()):
        if address in open_calls:
            changed.setdefault(address, []).extend(lines)
    plan_files.check_rules(planned, plan)
    plan, dropped = without_changed(plan, changed)
    skipped = tuple(SkippedCall(call, _reason_skipped(call, changed)) for call in dropped)
    return RemainingPlan(_with_approvals(plan, snapshot, allow), changed, skipped, reason)


def find_reviewed_part(
    plan: Plan, reviewed: Reviewed, texts: Mapping[str, Secret], *, has_begun: bool
) -> RemainingPlan:
    """The part of a new plan that was reviewed, with its secrets.

    texts      the secrets by source
    has_begun  an earlier run of the pipeline began to apply it
    """
    unreviewed = set(reviewed.find_unreviewed(plan, has_begun=has_begun))
    actions: dict[Address, list[str]] = {}
    for change in plan.changes:
        actions.setdefault(change.address, []).append(str(change.action))
    concerned = dict.fromkeys([*actions, *(call.address for call in plan.calls)])
    changed = {
        address: [f"{address}: not reviewed: {' and '.join(actions.get(address, ['calls']))}"]
        for address in concerned
        if str(address) in unreviewed
    }
    is_unreviewed = bool(changed)
    plan = unread_secrets.fill_secrets(_compare_assumed(plan, texts, changed), texts)
    rest, dropped = without_changed(plan, changed)
    why = {True: "it was not reviewed", False: "it needs a change that was not reviewed"}
    skipped = tuple(SkippedCall(call, why[call.address in changed]) for call in dropped)
    names = " and ".join(reviewed.names)
    reason = f"these changes are not in the reviewed plan of {names}" if is_unreviewed else _WHY_OTHER
    if reviewed.missing and changed:
        reason = "; ".join((reason, *reviewed.missing))
    return RemainingPlan(rest, changed, skipped, reason, "open another request, whose plan shows them")


def _compare_assumed(plan: Plan, texts: Mapping[str, Secret], changed: dict[Address, list[str]]) -> Plan:
    """The plan with a warning for each secret that is not as assumed; those of resources with calls are changes."""
    called = {call.address for call in plan.calls}
    warnings = []
    for address, problem in unread_secrets.compare_assumed(plan.assumed, texts):
        if address in called:
            changed.setdefault(address, []).append(f"{problem.subject}: {problem.text}; {problem.remedy}")
        else:
            warnings.append(problem)
    return replace(plan, problems=(*plan.problems, *warnings)) if warnings else plan


def _reason_skipped(call: Call, changed: Collection[Address]) -> str:
    return "it changed since the plan was created" if call.address in changed else "it needs a resource that changed"


def _with_approvals(plan: Plan, snapshot: Snapshot, allow: Mapping[tuple[str, str], int]) -> Plan:
    doubts = [Approval("account", "*", 1, snapshot.doubt)] if snapshot.doubt and plan.changes else []
    approvals = tuple(
        replace(approval, granted=approval.granted or allow.get((approval.what, approval.kind), 0) >= approval.count)
        for approval in (
            *(approval for approval in plan.approvals if approval.what != "account" or not doubts),
            *doubts,
        )
    )
    return replace(plan, approvals=approvals)


def without_finished_calls(
    plan: Plan, snapshot: Snapshot, done: Collection[str]
) -> tuple[Plan, dict[Address, list[str]]]:
    """The plan without the calls that succeeded in earlier runs, and lines for the user, by address, about objects that
    these calls created and that do not exist any more.

    References to objects that these calls created are resolved from the snapshot.
    """
    if not done:
        return plan, {}
    comparison = Comparison(plan, snapshot, done)
    needed = {ref for call in plan.calls if call.id not in done for ref in references(_parts(call))}
    resolved: dict[str, Json] = dict(plan.resolved)
    created: dict[Address, Live] = {}
    for address in {ref.target for ref in needed if create_id(ref.target) in done}:
        if (live := comparison.find_created(address)) is not None:
            created[address] = live
    for ref in needed & {ref for ref in needed if ref.target in created}:
        resolved[f"{ref.target}.{ref.output}"] = _output(created[ref.target], ref.output)
    lost: dict[Address, list[str]] = {}
    calls: list[Call] = []
    for call in plan.calls:
        if call.id in done:
            continue
        for target in dict.fromkeys(ref.target for ref in references(_parts(call))):
            if create_id(target) in done and target not in created:
                lost.setdefault(call.address, []).append(
                    f"{call.address}: {target}, which this plan created, does not exist any more"
                )
        draft, live = call.owner, created.get(call.address)
        if draft is not None and draft.intent is None and live is not None and live.owner is not None:
            draft = replace(draft, intent=live.owner.intent)  # the object keeps the intent of its create
        needs = tuple(need for need in call.needs if need not in done)
        calls.append(replace(call, needs=needs, owner=draft))
    changes = tuple(change for change in plan.changes if change.address not in comparison.finished)
    approvals = tuple(_approvals_for(plan, changes))
    forecast = _scale_forecast(plan, len(calls))
    rest = replace(plan, changes=changes, calls=tuple(calls), approvals=approvals, resolved=resolved, forecast=forecast)
    return rest, lost


def _parts(call: Call) -> Value:
    """The parts of a call that may contain references."""
    return [call.path, call.body, *((call.owner.text, dict(call.owner.applied)) if call.owner else ())]


def _output(live: Live, output: str) -> Json:
    """The live value of `Kind/name.output`; None if no response has it."""
    if output == "id":
        return live.id
    value: Json = live.body
    for part in output.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def without_changed(plan: Plan, refused: Collection[Address]) -> tuple[Plan, tuple[Call, ...]]:
    """The plan without the changes of these addresses and the changes that need them, and the calls left out."""
    addresses, dropped = _find_dropped(plan, refused)
    skipped = tuple(call for call in plan.calls if call.id in dropped)
    # A resource whose move is skipped keeps the binding of its former address.
    unbound = addresses | {change.former for change in plan.changes if change.address in addresses}
    changes = tuple(change for change in plan.changes if change.address not in addresses)
    calls = tuple(call for call in plan.calls if call.id not in dropped)
    rest = replace(
        plan,
        changes=changes,
        calls=calls,
        approvals=tuple(_approvals_for(plan, changes)) if addresses else plan.approvals,
        forecast=_scale_forecast(plan, len(calls)),
        bindings={address: binding for address, binding in plan.bindings.items() if address not in unbound},
    )
    return rest, skipped


def _find_dropped(plan: Plan, refused: Collection[Address]) -> tuple[set[Address], set[str]]:
    """The addresses and the ids of the calls to leave out if these addresses are refused.

    If one call of a change is left out, all of them are, and all changes with a call that needs one of them.
    """
    calls_of, dependents = calls_by_address(plan), _dependents(plan)
    addresses: set[Address] = set()
    dropped: set[str] = set()
    pending = list(refused)
    while pending:
        address = pending.pop()
        if address in addresses:
            continue
        addresses.add(address)
        for call in calls_of.get(address, ()):
            dropped.add(call.id)
            pending += [dependent.address for dependent in dependents.get(call.id, ())]
    return addresses, dropped


def _dependents(plan: Plan) -> Mapping[str, list[Call]]:
    """The calls that need a call, by its id."""
    found: dict[str, list[Call]] = {}
    for call in plan.calls:
        for need in call.needs:
            found.setdefault(need, []).append(call)
    return found


def _approvals_for(plan: Plan, remaining: Sequence[Change]) -> Iterator[Approval]:
    """The approvals that the remaining changes need at most. Parts that are deleted with their object count too."""
    for approval in plan.approvals:
        if (actions := _COUNTED.get(approval.what)) is None:
            yield approval
            continue
        changes = sum(change.action in actions and approval.kind in ("*", change.address.kind) for change in remaining)
        if count := min(approval.count, changes + approval.parts):
            yield replace(approval, count=count)


_COUNTED: Mapping[str, Collection[Action]] = {  # approvals → actions that may need them: rather too many than too few
    "update": (Action.UPDATE, Action.MOVE),
    "create": (Action.CREATE,),
    "adopt": (Action.ADOPT, Action.REPLACE),
    "overwrite": (Action.CREATE, Action.REPLACE),
    "delete": (Action.DELETE, Action.REPLACE),
    "delete-protected": (Action.DELETE, Action.REPLACE),
}


def _scale_forecast(plan: Plan, calls: int) -> Forecast:
    """The forecast for this number of calls of the plan, as if each took the same time."""
    return Forecast(calls, plan.forecast.estimated_seconds * calls / max(len(plan.calls), 1))
