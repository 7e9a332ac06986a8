"""The fleet commands other than apply: each opens the fleet and its store, does its work and prints the result."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from reconciler.cli.fleets.options import FleetOptions
from reconciler.cli.fleets.output import write_outputs
from reconciler.cli.fleets.running import execute, hold_plan, start, write_result
from reconciler.cli.fleets.session import FleetSession, open_session, require_run, roll_up
from reconciler.cli.terminal import exit_codes, output, workspaces
from reconciler.fleet.guards import find_excess
from reconciler.model.fleet import Pause, Run, RunState, RunVerb, TaskRecord, TaskState
from reconciler.rendering.fleet import phrases
from reconciler.rendering.fleet.reasons import NAMED
from reconciler.rendering.fleet.rollup import RollUp
from reconciler.rendering.terminal_text import sanitize
from reconciler.rendering.text_tools import count, format_time
from reconciler.store.fleets.records import FleetRecords

_LATEST = datetime(9999, 1, 1, tzinfo=UTC).timestamp()  # of a pause: a time with five digits cannot be shown

Act = Callable[[FleetSession, FleetRecords], Coroutine[Any, Any, int]]


def with_records(options: FleetOptions, act: Act) -> int:
    """Opens the fleet and its store, and runs the event loop of a command."""
    session = open_session(options)

    async def run() -> int:
        async with session.open_records() as records:
            return await act(session, records)

    return workspaces.run(run())


def run_once(options: FleetOptions, verb: str, *, changes: int = exit_codes.DONE, health: bool = False) -> int:
    """`fleet plan` and `fleet drift`. `changes`: the exit code of a plan with changes; `health`: also judge health."""

    async def act(session: FleetSession, records: FleetRecords) -> int:
        run, source = await start(session, records, RunVerb(verb), health=health)
        rollup = await execute(session, records, run, source)
        return write_result(rollup, options, rollup.exit_code(changes=changes))

    return with_records(options, act)


async def go_on(session: FleetSession, records: FleetRecords, run: Run, *, wait: bool) -> int:
    """Continues a run, as `work_on`. Raises Stop if another process applies its plan."""
    async with hold_plan(records, run.reviewed):
        return await work_on(session, records, run, wait=wait)


async def work_on(session: FleetSession, records: FleetRecords, run: Run, *, wait: bool) -> int:
    """Executes what has not ended of a run, and prints the result."""
    rollup = await execute(session, records, run, session.source_of(run), wait=wait)
    return write_result(rollup, session.options, rollup.exit_code())


# --- pause, resume, retry ---------------------------------------------------------------------------------------------


def pause(options: FleetOptions, until: timedelta | datetime | None, reason: str) -> int:
    """`fleet pause`. `until`: None: until it is resumed."""

    async def act(session: FleetSession, records: FleetRecords) -> int:
        name, now = session.fleet.name, await records.now()
        over = _find_end(until, now)
        await records.pause(Pause(name, now, over, reason, session.actor))
        if not options.quiet:
            end = f"until {format_time(over)}" if over is not None else "until `reconciler fleet resume`"
            output.print_result(f"Paused: no further task of fleet {name} starts, {end}. Running tasks finish.")
        return exit_codes.DONE

    return with_records(options, act)


def _find_end(until: timedelta | datetime | None, now: float) -> float | None:
    """The end of a pause by the clock of the store, which every process compares it with. `now`: by that clock."""
    if until is None:
        return None
    end = now + until.total_seconds() if isinstance(until, timedelta) else until.timestamp()
    if now < end < _LATEST:
        return end
    problem = "in the past" if end <= now else "too late; without --until, the pause lasts until `fleet resume`"
    raise click.BadParameter(f"{until} is {problem}", param_hint="'--until'")


def resume(options: FleetOptions, text: str, waves: Sequence[str], *, wait: bool) -> int:
    async def act(session: FleetSession, records: FleetRecords) -> int:
        name = session.fleet.name
        run = await (require_run(records, session, text) if text else _find_open(records, name))
        if waves:
            _check_approval(session, run, waves)
        if await records.end_pause(name) and not options.quiet:
            output.print_note(f"The pause of fleet {name} ended.")
        if run is None or run.state is not RunState.OPEN:
            if not options.quiet:
                which = f"run {run.id}" if run is not None else f"every run of fleet {name}"
                output.print_result(f"Nothing to continue: {which} has ended.")
            return exit_codes.DONE
        if waves:
            run = await records.update_run(run.id, approved_waves=waves)
        return await go_on(session, records, run, wait=wait)

    return with_records(options, act)


async def _find_open(records: FleetRecords, fleet: str) -> Run | None:
    return next((run for run in await records.list_runs(fleet) if run.state is RunState.OPEN), None)


def _check_approval(session: FleetSession, run: Run | None, waves: Sequence[str]) -> None:
    """Raises Stop for a wave that does not exist, or a run that has no waves, and ChangedWaves."""
    from reconciler.fleet.runs import check_waves

    if run is None or run.verb is not RunVerb.APPLY or run.state is not RunState.OPEN:
        raise exit_codes.Stop(exit_codes.USAGE, "error: --approve-wave requires an apply that has not ended")
    check_waves(session.source_of(run), run)
    known = [wave.name for wave in run.waves]
    for name in waves:
        if name not in known:
            raise exit_codes.Stop(
                exit_codes.USAGE, f"error: --approve-wave: there is no wave {name}; the waves are {', '.join(known)}"
            )


def retry(
    options: FleetOptions,
    text: str,
    states: Sequence[str],
    shapes: Sequence[str],
    limits: Mapping[str, int],
    *,
    wait: bool,
) -> int:
    """`fleet retry`. `shapes`: approved in addition; `limits`: guards of the fleet that may be exceeded."""

    async def act(session: FleetSession, records: FleetRecords) -> int:
        from reconciler.fleet.runs import check_waves, reopen_run

        run = await require_run(records, session, text)
        if shapes and run.verb is not RunVerb.APPLY:
            raise exit_codes.Stop(exit_codes.USAGE, "error: --approve requires the run of an apply")
        check_waves(session.source_of(run), run)
        tasks = await records.tasks(run.id)
        of_run = {(task.member, task.project) for task in tasks}
        plans = [plan for plan in await records.tasks(run.reviewed) if (plan.member, plan.project) in of_run]
        approved = find_shapes({plan.shape for plan in plans if plan.shape}, shapes)
        if approved or any((plan.ended or 0.0) > run.created for plan in plans):  # more than the apply was checked for
            chosen_states = "".join(f" --only {state}" for state in states)
            command = f"reconciler fleet retry {run.id}{chosen_states}{describe_approvals(shapes)}"
            check_guards(session, plans, {*run.approved_shapes, *approved}, limits, command)
        chosen = {TaskState(state) for state in states}
        if TaskState.FAILED in chosen:
            chosen.add(TaskState.SKIPPED)  # what was not started because of the failures
        unplanned = {(plan.member, plan.project): plan.state for plan in plans if plan.state is not TaskState.SUCCEEDED}
        _report_unplanned(run, [task for task in tasks if task.state in chosen], unplanned)
        if not (again := await reopen_run(run, records, chosen, approved, keep=unplanned)):
            raise exit_codes.Stop(exit_codes.USAGE, f"error: run {run.id} has no member that is {' or '.join(states)}")
        run = again
        return await go_on(session, records, run, wait=wait)

    return with_records(options, act)


def _report_unplanned(run: Run, tasks: Sequence[TaskRecord], unplanned: Mapping[tuple[str, str], TaskState]) -> None:
    """Names the members to run again whose plan did not succeed. Raises Stop if there is no other: first they must be
    planned."""
    left = [task for task in tasks if (task.member, task.project) in unplanned]
    if not left:
        return
    members = sorted({task.member for task in left})
    states = sorted({unplanned[task.member, task.project] for task in left})
    only = "" if states == [TaskState.FAILED] else "".join(f" --only {state}" for state in states)
    named = phrases.list_first(members[:NAMED], len(members))
    why = f"{count(len(members), 'member')} without a plan to apply ({named})"
    how = f"reconciler fleet retry {run.reviewed}{only}, then reconciler fleet retry {run.id} --only skipped"
    if len(left) == len(tasks):
        raise exit_codes.Stop(exit_codes.USAGE, f"error: nothing was changed: {why}", f"to plan again: {how}")
    output.print_note(f"left out: {why}; to plan again: {how}")


def check_guards(
    session: FleetSession,
    plans: Sequence[TaskRecord],
    shapes: Collection[str],
    limits: Mapping[str, int],
    command: str,
) -> None:
    """Raises Stop if applying plans of these shapes exceeds a guard of the fleet.

    limits   what a person allowed
    command  applies these plans
    """
    excess = list(find_excess(session.fleet, plans, shapes, limits))
    for found in excess:
        output.print_note(f"blocked: {found}")
    if excess:
        flags = " ".join(found.flag for found in excess)
        raise exit_codes.Stop(
            exit_codes.BLOCKED,
            f"error: nothing was changed: approval required: pass {flags}",
            f"to apply these plans: {command} {flags}",
        )


def describe_approvals(shapes: Sequence[str]) -> str:
    """The flags that approve these shapes, each behind a space."""
    return "".join(f" --approve {shlex.quote(shape)}" for shape in shapes)


def find_shapes(known: set[str], given: Sequence[str]) -> tuple[str, ...]:
    """The digests that the user gave, which may be shortened. Raises Stop for one that is not a shape of the run."""
    found = []
    for text in given:
        matching = sorted(digest for digest in known if digest.startswith(text)) if len(text) >= 4 else []
        if len(matching) != 1:
            why = "is ambiguous" if matching else "is not a shape of the run"
            listed = f"; its shapes are {', '.join(sorted(known)[:10])}" if known else ""
            raise exit_codes.Stop(exit_codes.USAGE, f"error: {text} {why}{listed}")
        found.append(matching[0])
    return tuple(found)


# --- status and report ------------------------------------------------------------------------------------------------


def show_status(options: FleetOptions, text: str, number: int, *, health: bool) -> int:
    async def act(session: FleetSession, records: FleetRecords) -> int:
        if health:
            return await _show_health(session, records, text)
        run = await require_run(records, session, text)
        write_outputs(await roll_up(records, session, run), options, _render_status)
        if not options.prints_text:
            return exit_codes.DONE
        earlier = [other for other in await records.list_runs(session.fleet.name, number + 1) if other.id != run.id]
        if earlier[:number]:
            lines = [f"  {other.id}  {other.verb:<5}  {other.state:<9}  {other.actor}" for other in earlier[:number]]
            output.print_result("\nOther runs:\n" + "\n".join(sanitize(line.rstrip()) for line in lines))
        return exit_codes.DONE

    return _with_stored_runs(options, act)


def _render_status(rollup: RollUp, width: int, color: bool) -> str:
    from reconciler.rendering.fleet import text

    return text.render_status(rollup, width=width, color=color)


def _render_health(rollup: RollUp, width: int, color: bool) -> str:
    from reconciler.rendering.fleet import text

    return text.render_status(rollup, width=width, color=color, health=True)


async def _show_health(session: FleetSession, records: FleetRecords, text: str) -> int:
    """Shows the run with this id, or the newest one that judges health. Raises Stop if it does not."""
    run = await require_run(records, session, text) if text else await records.find_judged(session.fleet.name)
    if run is None or not run.health:
        which = f"run {run.id} did not check" if run is not None else f"no run of fleet {session.fleet.name} checked"
        how = "start one that does with `reconciler fleet drift --health`"
        raise exit_codes.Stop(exit_codes.USAGE, f"error: {which} health; {how}")
    rollup = await roll_up(records, session, run)
    write_outputs(rollup, session.options, _render_health)
    return rollup.health_exit_code


def report(options: FleetOptions, text: str, shape: str) -> int:
    async def act(session: FleetSession, records: FleetRecords) -> int:
        run = await require_run(records, session, text)
        if shape:
            return await _show_shape(session, records, run, shape)
        write_outputs(await roll_up(records, session, run), options)
        return exit_codes.DONE

    return _with_stored_runs(options, act)


def _with_stored_runs(options: FleetOptions, act: Act) -> int:
    """As `with_records`, for commands that only read. Creates no store."""
    session = open_session(options)
    if not session.has_store:
        name = session.fleet.name
        raise exit_codes.Stop(
            exit_codes.USAGE, f"error: fleet {name} has no run yet; start one with `reconciler fleet plan`"
        )
    return with_records(options, act)


async def _show_shape(session: FleetSession, records: FleetRecords, run: Run, text: str) -> int:
    """Prints the whole plan of the member that represents a shape."""
    from reconciler.cli.terminal.formats import PlanOutput
    from reconciler.rendering.plan.phrases import Flavour

    rollup = await roll_up(records, session, run)
    (digest,) = find_shapes(set(rollup.exemplars), [text])
    plan = rollup.plans.get(digest)
    if plan is None:
        raise exit_codes.Stop(exit_codes.ERROR, f"error: the plan of shape {digest} was written by another release")
    if any(form == "junit" for form, _ in session.options.chosen):
        raise exit_codes.Stop(exit_codes.USAGE, "error: --shape cannot be combined with --format junit")
    flavour = Flavour.DRIFT if run.verb is RunVerb.DRIFT else Flavour.PLAN
    plan_output = PlanOutput(
        plan, rollup.exemplars[digest].plan, session.folder, flavour, has_color=session.options.has_color
    )
    plan_output.write_outputs(session.options.chosen)
    return exit_codes.DONE
