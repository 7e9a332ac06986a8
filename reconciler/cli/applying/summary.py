"""Prints the summary of an apply: succeeded, failed, skipped and unknown calls, and remaining differences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from msgspec import Struct

from reconciler import kinds
from reconciler.cli.applying.progress import EventLog
from reconciler.cli.terminal import approvals, output
from reconciler.engine.apply import STOPPED
from reconciler.model.address import Address
from reconciler.model.change import Action, Change
from reconciler.model.event import Ended, Outcome
from reconciler.model.health import Wait
from reconciler.model.plan import Plan
from reconciler.model.problem import Problem
from reconciler.operations.results import ApplyResult, HealthWait, Status
from reconciler.rendering import health_text
from reconciler.rendering.plan.outline import symbol
from reconciler.rendering.text_tools import count

_MAX_ADDITIONS = 20  # lines; further additions are counted


class Wording(Struct, frozen=True):
    """`approves_in_git`: whether only `approvals.yaml` approves."""

    question: str
    done: str
    approves_in_git: bool = False


def print_summary(result: ApplyResult, wording: Wording, *, has_begun: bool, printed: Collection[Problem] = ()) -> int:
    """Prints the result; returns the exit code.

    `has_begun`: calls could have been sent. `printed`: problems that are not to be repeated.
    """
    if has_begun:
        _print_calls(result, wording, printed)
    else:
        _print_refusal(result, wording)
    return result.exit_code


def _print_refusal(result: ApplyResult, wording: Wording) -> None:
    """Prints why no call was sent. The problems of the plan were printed with the plan."""
    plan = result.plan
    if result.status is Status.DECLINED:
        output.print_note("Cancelled; nothing was changed.")
    elif result.changed:
        *lines, why = result.changed
        for line in lines:
            output.print_note(line)
        output.print_note(f"error: {why}")
    elif plan.blocking_errors:
        why = "a policy does not allow the plan" if result.status is Status.BLOCKED else "the plan has errors"
        output.print_note(f"error: nothing was changed: {why}")
    elif wording.approves_in_git:
        approvals.print_missing(plan)
    else:
        for approval in plan.missing_approvals:
            output.print_note(f"blocked: {approval.what}:{approval.kind}={approval.count}: {approval.why}")
        flags = " ".join(approval.flag for approval in plan.missing_approvals)
        output.print_note(f"error: nothing was changed: approval required: pass {flags}")


def _print_calls(result: ApplyResult, wording: Wording, printed: Collection[Problem]) -> None:
    _print_additions(result.plan)
    for skipped in result.skipped:
        output.print_note(f"{Outcome.SKIPPED}: {skipped.call.id}: {skipped.why}")
    if result.is_complete:
        if not result.plan.is_empty:
            output.print_result(f"{wording.done} {_count_actions(result.plan)}")
    else:
        _print_outcomes(result)
    if result.recorded_in_store:
        output.print_result(f"Recorded as managed in the store: {', '.join(result.recorded_in_store)}.")
    for text in filter(None, (result.failure, result.unverified)):
        output.print_note(f"error: {text}")
    if result.remaining:
        print_remaining(result.remaining)
    elif result.status is Status.FAILED and result.is_complete and result.problems:
        output.print_note("error: all calls succeeded, but these problems remain:")
        output.print_problems(result.problems)
    else:
        for problem in result.problems if result.is_complete else ():
            if problem not in printed:
                output.print_note(str(problem))
    if result.health is not None:
        _print_health(result.health)


def _print_health(health: HealthWait) -> None:
    """Prints what is not healthy: what was not waited for, and why the wait failed or ended early."""
    for row in health.with_wait(Wait.REPORTED):
        output.print_note(f"{row.health.state}, not waited for: {health_text.format_row(row)}")
    waited, failed = health.with_wait(Wait.WAITING), health.with_wait(Wait.FAILED)
    if health.is_interrupted:
        output.print_note("interrupted: the changes are applied, and their health was not waited for any longer")
    elif failed:
        output.print_note(f"error: applied, but not healthy after {health.seconds:.0f} s:")
    for row in (*failed, *waited):
        output.print_note(f"  {health_text.format_row(row)}")
    if healthy := health.with_wait(Wait.READY):
        output.print_result(f"Healthy: {count(len(healthy), 'object')}.")


def _print_outcomes(result: ApplyResult) -> None:
    succeeded, failed = result.with_outcome(Outcome.DONE, Outcome.ALREADY), result.with_outcome(Outcome.FAILED)
    skipped, unknown = result.with_outcome(Outcome.SKIPPED), result.with_outcome(Outcome.UNKNOWN)
    _print_ended([*failed, *skipped])
    for ended in unknown:
        output.print_note(
            f"{ended.outcome}: {ended.call.id}: sent, but the outcome was not recorded; the next run checks it"
        )
    _print_counts(len(succeeded), len(failed), len(skipped), len(unknown))


def _print_counts(succeeded: int, failed: int, skipped: int, unknown: int) -> None:
    counts = f"{count(succeeded, 'call')} succeeded, {failed} failed, {skipped} skipped"
    output.print_result(f"{counts}, {unknown} unknown." if unknown else f"{counts}.")


def _print_ended(ended: list[Ended]) -> None:
    for event in ended:
        output.print_note(f"{event.outcome}: {event.call.id}" + (f": {event.why}" if event.why else ""))


def report_interrupted(plan: Plan, log: EventLog, wording: Wording) -> None:
    """Prints the summary after a second interrupt, which does not wait: the outcome of running calls is unknown."""
    ended = {ended.call.id for ended in log.ended}
    succeeded, failed = log.with_outcome(Outcome.DONE, Outcome.ALREADY), log.with_outcome(Outcome.FAILED)
    unknown = [call for call in plan.calls if call.id in log.started and call.id not in ended]
    unknown += [ended.call for ended in log.with_outcome(Outcome.UNKNOWN)]
    not_started = [call for call in plan.calls if call.id not in log.started and call.id not in ended]
    skipped = log.with_outcome(Outcome.SKIPPED)
    _print_ended([*failed, *skipped])
    for call in unknown:
        output.print_note(f"{Outcome.UNKNOWN}: {call.id}: interrupted while in progress; the next run checks it")
    for call in not_started:
        output.print_note(f"{Outcome.SKIPPED}: {call.id}: {STOPPED}")
    if len(succeeded) == len(plan.calls):
        output.print_result(f"{wording.done} {_count_actions(plan)}")
        return
    _print_counts(len(succeeded), len(failed), len(skipped) + len(not_started), len(unknown))


def _print_additions(plan: Plan) -> None:
    """Prints children that were added to objects of this stack on the platform, and that the apply does not delete."""
    flags = {approval.kind: approval.flag for approval in plan.missing_optional_approvals}
    for addition in plan.additions[:_MAX_ADDITIONS]:
        flag = flags.get(addition.address.kind)
        remedy = f"declare it, or delete it with {flag}" if flag else "declare it, or delete it on the platform"
        output.print_note(
            f"not managed: {addition.address}: added to {addition.parent} on the platform, not declared; {remedy}"
        )
    if len(plan.additions) > _MAX_ADDITIONS:
        output.print_note(f"not managed: {count(len(plan.additions) - _MAX_ADDITIONS, 'more addition')}")


def _count_actions(plan: Plan) -> str:
    """`2 created, 1 updated.`"""
    counts = Counter(change.action for change in plan.changes)
    return ", ".join(f"{counts[action]} {action.past}" for action in Action if counts[action]) + "."


def print_remaining(changes: tuple[Change, ...]) -> None:
    """Prints the changes that a plan after the apply still contains, each with its remedy."""
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
            output.print_note(f"    if the platform normalizes the value, declare its result, or add `{ignore}`")


def _field_path(address: Address, path: str) -> str:
    """The dotted path of the field of a kind that contains `path`, which may point inside a document."""
    fields, names = kinds.get(address.kind).fields, list[str]()
    for name in path.replace("[", ".").split("."):
        field = next((field for field in fields if field.name == name), None)
        if field is None:
            break
        names.append(name)
        fields = field.fields
    return ".".join(names)
