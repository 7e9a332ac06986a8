"""Prints how an apply ended: what succeeded, what failed, what was skipped, and what is still to be done."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from reconciler import kinds
from reconciler.cli.applying.progress import EventLog
from reconciler.cli.terminal import exit_codes, output
from reconciler.engine.apply import STOPPED
from reconciler.model.address import Address
from reconciler.model.change import Action, Change
from reconciler.model.event import Ended, Outcome
from reconciler.model.plan import Plan
from reconciler.operations.results import ApplyResult, Status
from reconciler.rendering.plan.outline import symbol

_MOST = 20  # additions named one by one


@dataclass(frozen=True)
class Wording:
    question: str
    done: str


EXIT_CODES = {
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


def print_summary(result: ApplyResult, wording: Wording, *, has_begun: bool) -> int:
    """Prints the result; returns the exit code. `has_begun`: calls could have been sent."""
    if has_begun:
        _print_calls(result, wording)
    else:
        _print_refusal(result)
    return EXIT_CODES[result.status]


def _print_refusal(result: ApplyResult) -> None:
    """Why nothing was sent. What is wrong with the plan was printed with it."""
    plan = result.plan
    if result.status is Status.DECLINED:
        output.print_note("Nothing was changed.")
    elif result.reasons:
        *lines, why = result.reasons
        for line in lines:
            output.print_note(line)
        output.print_note(f"error: {why}")
    elif plan.blocking_errors:
        why = "because a policy forbids it" if result.status is Status.BLOCKED else "because the plan has problems"
        output.print_note(f"error: nothing was changed, {why}")
    else:
        for approval in plan.missing_approvals:
            output.print_note(f"blocked: {approval.what}:{approval.kind}={approval.count}: {approval.why}")
        flags = " ".join(approval.flag for approval in plan.missing_approvals)
        output.print_note(f"error: nothing was changed; it needs your consent: {flags}")


def _print_calls(result: ApplyResult, wording: Wording) -> None:
    _print_additions(result.plan)
    for skipped in result.skipped:
        output.print_note(f"{Outcome.SKIPPED}: {skipped.call.id}: {skipped.why}")
    if result.is_complete:
        if not result.plan.is_empty:
            output.print_result(f"{wording.done} {_count_actions(result.plan)}")
    else:
        _print_outcomes(result)
    if result.recorded_in_store:
        output.print_result(f"Remembered as ours: {', '.join(result.recorded_in_store)}.")
    for text in filter(None, (result.failure, result.unverified)):
        output.print_note(f"error: {text}")
    if result.remaining:
        print_remaining(result.remaining)
    elif result.status is Status.FAILED and result.is_complete and result.problems:
        output.print_note("error: everything was carried out, and yet not all is well:")
        output.print_problems(result.problems)
    else:
        for problem in result.problems if result.is_complete else ():
            output.print_note(str(problem))


def _print_outcomes(result: ApplyResult) -> None:
    succeeded, failed = result.with_outcome(Outcome.DONE, Outcome.ALREADY), result.with_outcome(Outcome.FAILED)
    skipped, unknown = result.with_outcome(Outcome.SKIPPED), result.with_outcome(Outcome.UNKNOWN)
    _print_ended([*failed, *skipped])
    for ended in unknown:
        output.print_note(
            f"{ended.outcome}: {ended.call.id}: it was sent, and not written down; the next run finds out"
        )
    counts = f"{output.count(len(succeeded), 'call')} done, {len(failed)} failed, {len(skipped)} not tried"
    output.print_result(f"{counts}, {len(unknown)} not known." if unknown else f"{counts}.")


def _print_ended(ended: list[Ended]) -> None:
    for each in ended:
        output.print_note(f"{each.outcome}: {each.call.id}" + (f": {each.why}" if each.why else ""))


def report_interrupted(plan: Plan, log: EventLog, wording: Wording) -> None:
    """After an interrupt that does not wait: running calls may or may not have taken effect."""
    ended = {ended.call.id for ended in log.ended}
    succeeded, failed = log.with_outcome(Outcome.DONE, Outcome.ALREADY), log.with_outcome(Outcome.FAILED)
    unknown = [call for call in plan.calls if call.id in log.started and call.id not in ended]
    unknown += [ended.call for ended in log.with_outcome(Outcome.UNKNOWN)]
    left = [call for call in plan.calls if call.id not in log.started and call.id not in ended]
    skipped = log.with_outcome(Outcome.SKIPPED)
    _print_ended([*failed, *skipped])
    for call in unknown:
        output.print_note(f"{Outcome.UNKNOWN}: {call.id}: it was on its way; the next run finds out")
    for call in left:
        output.print_note(f"{Outcome.SKIPPED}: {call.id}: {STOPPED}")
    if len(succeeded) == len(plan.calls):
        output.print_result(f"{wording.done} {_count_actions(plan)}")
        return
    count = len(skipped) + len(left)
    calls = output.count(len(succeeded), "call")
    output.print_result(f"{calls} done, {len(failed)} failed, {count} not tried, {len(unknown)} not known.")


def _print_additions(plan: Plan) -> None:
    """What was added to our objects on the platform, and stays there."""
    flags = {approval.kind: approval.flag for approval in plan.missing_optional_approvals}
    for addition in plan.additions[:_MOST]:
        flag = flags.get(addition.address.kind)
        remedy = f"delete it with {flag}" if flag else "declare it, or delete it on the platform"
        output.print_note(
            f"left alone: {addition.address}: added to {addition.parent} on the platform, not declared; {remedy}"
        )
    if len(plan.additions) > _MOST:
        output.print_note(f"left alone: {output.count(len(plan.additions) - _MOST, 'more addition')}")


def _count_actions(plan: Plan) -> str:
    """`2 created, 1 updated.`"""
    counts = Counter(change.action for change in plan.changes)
    return ", ".join(f"{counts[action]} {_PAST[action]}" for action in Action if counts[action]) + "."


_PAST = {
    Action.CREATE: "created",
    Action.UPDATE: "updated",
    Action.REPLACE: "replaced",
    Action.DELETE: "deleted",
    Action.ADOPT: "adopted",
    Action.FORGET: "forgotten",
    Action.MOVE: "moved",
}


def print_remaining(changes: tuple[Change, ...]) -> None:
    """What a fresh reading of the account finds still different, with the remedy."""
    output.print_note("error: applied, but these resources still differ from the manifests:")
    for change in changes:
        fields = ", ".join(field.path for field in change.fields)
        output.print_note(
            f"  {symbol(change.action, change.order)} {change.address}: {change.reason.text}"
            + (f": {fields}" if fields else "")
        )
        if change.action is Action.UPDATE and change.fields:
            paths = dict.fromkeys(_field_path(change.address, field.path) for field in change.fields)
            ignore = f"lifecycle: {{ignore: [{', '.join(paths)}]}}"
            output.print_note(f"    if the platform keeps a value of its own, declare that value, or add `{ignore}`")


def _field_path(address: Address, path: str) -> str:
    """The dotted path of the field that a change lies in, without the place inside a document."""
    fields, names = kinds.get(address.kind).fields, list[str]()
    for name in path.replace("[", ".").split("."):
        field = next((field for field in fields if field.name == name), None)
        if field is None:
            break
        names.append(name)
        fields = field.fields
    return ".".join(names)
