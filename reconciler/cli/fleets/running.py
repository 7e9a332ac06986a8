"""Executes a run over a fleet at the terminal: the pool, progress, interrupts, and the result as an exit code."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.cli.fleets.options import FleetOptions
from reconciler.cli.fleets.output import write_outputs
from reconciler.cli.fleets.progress import report_progress
from reconciler.cli.fleets.session import FleetSession, roll_up
from reconciler.cli.terminal import exit_codes, output, signals
from reconciler.fleet import coordinator, runs
from reconciler.fleet.local_pool import LocalPool
from reconciler.fleet.places import find_cache
from reconciler.fleet.validate import check_variables
from reconciler.fleet.worker import WorkerContext
from reconciler.model.fleet import Member, Run, RunVerb
from reconciler.model.problem import Rejected
from reconciler.operations.errors import ChangedWaves
from reconciler.rendering.fleet import phrases
from reconciler.rendering.fleet.rollup import RollUp
from reconciler.store.errors import Locked
from reconciler.store.fleets.records import FleetRecords

if TYPE_CHECKING:
    from reconciler.fleet.ports import Pool
    from reconciler.fleet.runs import FleetSource


async def start(
    session: FleetSession,
    records: FleetRecords,
    verb: RunVerb,
    *,
    reviewed: Run | None = None,
    approved_shapes: tuple[str, ...] = (),
    health: bool = False,
) -> tuple[Run, FleetSource]:
    """Creates a run of the selected members; nothing is started. Raises Rejected if a variable of theirs is wrong."""
    members = session.require_members()
    if reviewed is None:
        _check_variables(session, members)
    source = session.source() if reviewed is None else session.source_of(reviewed)
    run = await runs.start_run(
        source,
        verb,
        records,
        selected=session.options.selector,
        reviewed=reviewed,
        approved_shapes=approved_shapes,
        actor=session.actor,
        commit=session.commit,
        health=health,
        now=await records.now(),
    )
    return run, source


def _check_variables(session: FleetSession, members: Sequence[Member]) -> None:
    """Prints the warnings about the fleet file. Raises Rejected with every problem of the members' variables."""
    fleet = replace(session.fleet, members={member.name: member for member in members})
    if problems := check_variables(fleet, session.folder, session.runtime):
        raise Rejected((*session.fleet.warnings, *problems))
    output.print_problems(session.fleet.warnings)


async def execute(
    session: FleetSession, records: FleetRecords, run: Run, source: FleetSource, *, wait: bool = True
) -> RollUp:
    """Executes a run, shows its progress, and returns its view. Raises Stop if it was interrupted."""
    interrupts = _Interrupts(run.id)
    with _say_how_to_continue(run, interrupts):
        async with _open_pool(session, records, interrupts) as pool:
            interrupts.catch_signals()
            with report_progress(session.options, run) as on_progress:
                run = await coordinator.execute(
                    source,
                    run,
                    records,
                    pool,
                    runtime=session.runtime,
                    on_progress=on_progress,
                    stop=interrupts.stop,
                    on_task=_observe_tasks(session, run),
                    wait=wait,
                )
        signals.cancel_on_signal()
        rollup = await roll_up(records, session, run)
    if interrupts.is_interrupted:
        write_outputs(rollup, session.options)
        raise exit_codes.Stop(
            exit_codes.INTERRUPTED,
            f"interrupted: the run stays open; to continue: reconciler fleet resume {run.id}",
        )
    return rollup


def _observe_tasks(session: FleetSession, run: Run) -> coordinator.OnTask | None:
    """Reports each ended task to the telemetry of the command, if that is enabled."""
    observer = session.options.observer
    return partial(observer.on_task, verb=str(run.verb)) if observer is not None else None


@asynccontextmanager
async def hold_plan(records: FleetRecords, plan: str) -> AsyncIterator[None]:
    """Makes sure that a plan is applied by one process at a time, and is not run again meanwhile. Raises Stop.

    plan  id of the run of the plan; empty: there is none
    """
    async with AsyncExitStack() as stack:
        try:
            if plan:
                lease = records.lock(runs.lease_of(plan), on_loss=lambda _: None, doing="applied")
                await stack.enter_async_context(lease)
        except Locked as locked:
            raise exit_codes.Stop(
                exit_codes.ERROR,
                f"error: nothing was changed: {locked}",
                "to see how far it is: reconciler fleet status",
            ) from None
        yield


@contextmanager
def _say_how_to_continue(run: Run, interrupts: _Interrupts) -> Iterator[None]:
    """Names the run and the command that continues it, however the block ends before the run has."""
    try:
        yield
    except ChangedWaves:  # says it by itself
        raise
    except BaseException as error:
        if not interrupts.is_interrupted or isinstance(error, Exception):  # otherwise a second interrupt named it
            verb = "to see it" if isinstance(error, Locked) else "to continue"
            command = f"status {run.id}" if isinstance(error, Locked) else f"resume {run.id}"
            output.print_note(f"The run {run.id} has not ended; {verb}: reconciler fleet {command}")
        raise


def write_result(rollup: RollUp, options: FleetOptions, code: int) -> int:
    """Writes the view of a run in each format, and names the run and what can be done next if no text does.

    Returns the exit code.
    """
    run = rollup.run
    try:
        write_outputs(rollup, options)
    except BaseException:
        output.print_note(f"The run {run.id} is stored; to see it: reconciler fleet report {run.id}")
        raise
    has_text = any(form == "text" and not file for form, file in options.chosen)
    if not has_text and (code or not options.quiet):
        output.print_note(f"Run {run.id}: {phrases.describe_members(rollup)}")
        for purpose, command in phrases.next_commands(rollup):
            output.print_note(f"{purpose[0].lower()}{purpose[1:]}: {command}")
    return code


class _Interrupts(Struct):
    """On a first interrupt, lets running calls finish and starts no others; on a second one, cancels the command."""

    run: str
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    on_stop: Callable[[], None] = lambda: None
    is_interrupted: bool = False

    def catch_signals(self) -> None:
        task = asyncio.current_task()

        def interrupt() -> None:
            if self.is_interrupted and task is not None:
                output.print_note(f"to continue: reconciler fleet resume {self.run}")
                task.cancel()
                signals.exit_on_signal()
                return
            self.is_interrupted = True
            self.stop.set()
            self.on_stop()
            output.print_note(
                "interrupted: waiting for running calls to finish, starting no others; interrupt again to exit now"
            )

        signals.set_handler(interrupt)


@asynccontextmanager
async def _open_pool(session: FleetSession, records: FleetRecords, interrupts: _Interrupts) -> AsyncIterator[Pool]:
    """The workers that the options select: of a scheduler, of this machine, or this process."""
    options, fleet, environ = session.options, session.fleet, session.runtime.environ
    if options.scheduler:
        from reconciler.fleet.dask_cluster import open_cluster_pool
        from reconciler.fleet.worker_process import run_task_here

        async with open_cluster_pool(run_task_here, options.scheduler) as cluster:
            yield cluster
    elif options.workers:
        from reconciler.fleet.dask_cluster import open_local_pool
        from reconciler.fleet.worker_process import run_task_here

        variables = {"RECONCILER_STORE": _absolute(session.store)}
        async with open_local_pool(run_task_here, options.workers, environ=variables) as workers:
            yield workers
    else:
        context = WorkerContext(records, session.store, find_cache(environ), session.runtime, session.commit)
        interrupts.on_stop = context.stop
        yield LocalPool(context, at_once=fleet.members_at_once)


def _absolute(store: str) -> str:
    return store if "://" in store else str(Path(store).resolve())
