"""`fleet apply`: shows the reviewed plans, asks once, checks the guards of the fleet, and applies wave by wave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from reconciler.cli.applying.questions import is_confirmed
from reconciler.cli.fleets.commands import check_guards, describe_approvals, find_shapes, with_records, work_on
from reconciler.cli.fleets.options import FleetOptions
from reconciler.cli.fleets.output import WIDTH
from reconciler.cli.fleets.running import execute, hold_plan, start
from reconciler.cli.fleets.session import FleetSession, require_run, roll_up
from reconciler.cli.terminal import exit_codes, output
from reconciler.model.fleet import RunState, RunVerb, TaskState
from reconciler.rendering.fleet import phrases
from reconciler.rendering.fleet.reasons import NAMED
from reconciler.rendering.fleet.rollup import RollUp
from reconciler.rendering.fleet.text import render_text
from reconciler.rendering.text_tools import count
from reconciler.store.fleets.records import FleetRecords


class Review(Struct, frozen=True):
    """What a person reviewed and approves.

    run     id of a plan run; empty: plan now
    shapes  digests of shapes that need an approval
    limits  guards of the fleet that may be exceeded: `members` or `deletes` → number
    ask     whether to ask at the terminal
    """

    run: str
    shapes: Sequence[str]
    limits: Mapping[str, int]
    ask: bool


def apply(options: FleetOptions, review: Review, *, wait: bool) -> int:
    async def act(session: FleetSession, records: FleetRecords) -> int:
        session.require_members()
        rollup = await _find_plans(session, records, review.run)
        async with hold_plan(records, rollup.run.id):
            return await _apply(session, records, rollup)

    async def _apply(session: FleetSession, records: FleetRecords, rollup: RollUp) -> int:
        await _refuse_if_open(session, records, rollup.run.id)
        approved = _approve_shapes(rollup, review.shapes)
        _show_plans(rollup, options, ask=review.ask)
        if not approved:
            return _end_without_changes(rollup, options)
        plans = [task for task in await records.tasks(rollup.run.id) if _is_selected(session, task.member)]
        command = f"reconciler fleet apply {rollup.run.id}{describe_approvals(review.shapes)}"
        check_guards(session, plans, approved, review.limits, command)
        if review.ask and not await _is_confirmed(rollup, approved):
            return exit_codes.ERROR
        run, _ = await start(session, records, RunVerb.APPLY, reviewed=rollup.run, approved_shapes=tuple(approved))
        return await work_on(session, records, run, wait=wait)

    return with_records(options, act)


async def _refuse_if_open(session: FleetSession, records: FleetRecords, plan: str) -> None:
    """Raises Stop if an apply of this plan has not ended for a member that is selected: it would be applied twice.

    Names open applies of other plans: what they left is part of no new plan of theirs.
    """
    for run in await records.list_open_applies(session.fleet.name):
        resume = f"reconciler fleet resume {run.id}"
        if run.reviewed != plan:
            output.print_note(f"note: apply {run.id} of another plan has not ended; to continue it: {resume}")
            continue
        left = {task.member for task in await records.tasks(run.id) if not task.state.is_final}
        if selected := sorted(member for member in left if _is_selected(session, member)):
            named = phrases.list_first(selected[:NAMED], len(selected))
            raise exit_codes.Stop(
                exit_codes.USAGE,
                f"error: nothing was changed: apply {run.id} of this plan has not ended for "
                f"{count(len(selected), 'member')} ({named})",
                f"to continue it: {resume}",
            )


async def _is_confirmed(rollup: RollUp, approved: frozenset[str]) -> bool:
    """Asks the person at the terminal. Says how to apply the plan later if the answer is no, or an interrupt."""
    confirmed = False
    try:
        confirmed = await is_confirmed(_question(rollup, approved))
    finally:
        if not confirmed:
            output.print_note("Cancelled; nothing was changed.")
            output.print_note(f"to apply this plan later: reconciler fleet apply {rollup.run.id}")
    return confirmed


async def _find_plans(session: FleetSession, records: FleetRecords, text: str) -> RollUp:
    """The reviewed run, or a new one. Raises Stop if RUN is not a plan that has ended."""
    if not text:
        run, source = await start(session, records, RunVerb.PLAN)
        # The formats that were chosen are those of the apply.
        planning = replace(session, options=replace(session.options, chosen=[]))
        rollup = await execute(planning, records, run, source)
        if rollup.run.state is RunState.OPEN:
            why = f": {rollup.wait.text}" if rollup.wait is not None else ""
            raise exit_codes.Stop(
                exit_codes.PARTLY,
                f"error: nothing was changed: the plan has not ended{why}",
                f"to continue: reconciler fleet resume {run.id}, then reconciler fleet apply {run.id}",
            )
        return rollup
    run = await require_run(records, session, text)
    if run.verb is not RunVerb.PLAN:
        raise exit_codes.Stop(
            exit_codes.USAGE, f"error: run {run.id} is no plan but {run.verb}; name a run of `reconciler fleet plan`"
        )
    if run.state is RunState.OPEN:
        raise exit_codes.Stop(
            exit_codes.USAGE, f"error: run {run.id} has not ended; continue it with `reconciler fleet resume {run.id}`"
        )
    return await roll_up(records, session, run)


def _is_selected(session: FleetSession, member: str) -> bool:
    known = session.fleet.members.get(member)
    return known is not None and known.matches(session.options.selector)


def _approve_shapes(rollup: RollUp, given: Sequence[str]) -> frozenset[str]:
    """The shapes to apply: those that need no approval, and those that are approved by digest."""
    chosen = find_shapes({row.digest for row in rollup.shapes}, given)
    return frozenset(chosen) | {row.digest for row in rollup.shapes if not row.needs and row.digest in rollup.plans}


def _show_plans(rollup: RollUp, options: FleetOptions, *, ask: bool) -> None:
    """Prints the plans for people: always before a question, on standard error if another format is on standard
    output."""
    if options.quiet and not ask:
        return
    has_color = options.has_color and options.prints_text
    width = output.width() if has_color else WIDTH
    text = render_text(rollup, width=width, color=has_color, with_commands=False)
    if options.prints_text:
        output.print_result(f"{text}\n")
    elif ask:
        for line in text.splitlines():
            output.print_note(line)


def _end_without_changes(rollup: RollUp, options: FleetOptions) -> int:
    """The exit code if no shape may be applied: there are no changes, or all of them need an approval."""
    if rollup.shapes:
        flags = " ".join(f"--approve {row.digest}" for row in rollup.shapes)
        raise exit_codes.Stop(
            exit_codes.BLOCKED,
            f"error: nothing was changed: approval required: pass {flags}",
            f"to apply this plan: reconciler fleet apply {rollup.run.id} {flags}",
        )
    if not options.quiet:
        output.print_result("Nothing to apply.")
    return rollup.exit_code()


def _question(rollup: RollUp, approved: frozenset[str]) -> str:
    """`Apply 2 shapes to 790 members? 1 shape is not approved and is left out.`"""
    rows = [row for row in rollup.shapes if row.digest in approved]
    members = {task.member for task in rollup.tasks if task.shape in approved and task.state is TaskState.SUCCEEDED}
    question = f"Apply {count(len(rows), 'shape')} to {count(len(members), 'member')}?"
    if left := len(rollup.shapes) - len(rows):
        verb = "is" if left == 1 else "are"
        question += f" {count(left, 'shape')} {verb} not approved and {verb} left out."
    return question
