"""Runs an apply for the terminal: prints the plan, asks for confirmation, shows progress and handles interrupts."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Protocol

from reconciler.cli.applying.progress import EventLog, report_progress, write_events
from reconciler.cli.applying.questions import is_confirmed
from reconciler.cli.applying.summary import Wording, print_summary, report_interrupted
from reconciler.cli.terminal import output, output_files, plan_output, signals, workspaces
from reconciler.cli.terminal.options import Options
from reconciler.cli.terminal.wait_notices import ReadProgress
from reconciler.model.event import HealthChanged
from reconciler.model.health import Wait
from reconciler.model.plan import Plan
from reconciler.model.problem import Problem, Severity
from reconciler.operations.applying.apply import Approve
from reconciler.operations.reporting import (
    CallsBegan,
    CallsEnded,
    ListRead,
    Note,
    OnEvent,
    OperationEvent,
    Planned,
    ReadRetried,
    WaitBegan,
)
from reconciler.operations.results import ApplyResult
from reconciler.operations.workspace import Workspace
from reconciler.rendering import health_text


class Operation(Protocol):
    """A method of a workspace that changes the account, such as `Workspace.apply`."""

    def __call__(
        self, *, approve: Approve | None, on_event: OnEvent, stop: asyncio.Event
    ) -> Coroutine[Any, Any, ApplyResult]: ...


def run_apply(operation: Operation, workspace: Workspace, options: Options, wording: Wording, *, ask: bool) -> int:
    """Runs an operation that changes the account; prints what happens and returns the exit code."""
    if options.events != "-":
        output_files.check_outputs(workspace.config, workspace.manifest.declarations.values(), options.events)
    return workspaces.run(_run(operation, _Presenter(workspace, options, ask), wording))


async def _run(operation: Operation, presenter: _Presenter, wording: Wording) -> int:
    async def approve(_plan: Plan) -> bool:
        return await is_confirmed(wording.question)

    with presenter.open:
        try:
            result = await operation(
                approve=approve if presenter.ask else None, on_event=presenter, stop=presenter.stop
            )
        except asyncio.CancelledError:
            presenter.report_interrupted(wording)
            raise
        finally:
            presenter.calls.close()
        return print_summary(result, wording, has_begun=presenter.has_begun, printed=presenter.printed)


@dataclass
class _Presenter:
    """Receives every event of an apply and prints it."""

    workspace: Workspace
    options: Options
    ask: bool
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    open: ExitStack = field(default_factory=ExitStack)
    calls: ExitStack = field(default_factory=ExitStack)
    has_begun: bool = False
    is_interrupted: bool = False
    plan: Plan | None = None
    waited: set[str] = field(default_factory=set)  # names of objects
    printed: Sequence[Problem] = ()  # on standard error, which does not show them again at the end

    def __post_init__(self) -> None:
        self.log = EventLog(ReadProgress(self.options.quiet))

    def __call__(self, event: OperationEvent) -> None:
        match event:
            case Planned(plan):
                self._show(plan)
            case CallsBegan(total, is_cleanup):
                self._begin(total, is_cleanup=is_cleanup)
            case CallsEnded():
                self.calls.close()
                signals.cancel_on_signal()
            case WaitBegan(timeout):
                self._begin_wait(timeout)
            case HealthChanged():
                self._report_health(event)
            case Note() | ReadRetried() | ListRead():
                self.log.reading(event)
            case _:
                self.log.report(event)

    def _show(self, plan: Plan) -> None:
        self.plan = plan
        if self.ask or not self.options.quiet:
            plan_output.show(plan, self.workspace, self.options, [("text", "")])
            workspaces.print_tally(plan)
        else:
            self.printed = [problem for problem in plan.problems if problem.severity is not Severity.NOTE]
            output.print_problems(self.printed)

    def _begin(self, total: int, *, is_cleanup: bool) -> None:
        if not self.has_begun:
            self.has_begun = True
            self.open.enter_context(output.ignore_closed_output())
            self.open.enter_context(write_events(self.log, self.options))
        self.calls = ExitStack()
        if not is_cleanup:
            self.calls.enter_context(report_progress(self.log, self.options, total))
        self._catch_signals()

    def _catch_signals(self) -> None:
        """On a first interrupt, waits for running calls and starts no others; on a second one, cancels the command."""
        task = asyncio.current_task()

        def interrupt() -> None:
            if self.is_interrupted and task is not None:
                task.cancel()
                signals.exit_on_signal()
                return
            self.is_interrupted = True
            self.stop.set()
            output.print_note(
                "interrupted: waiting for running calls to finish, starting no others; interrupt again to exit now"
            )

        signals.set_handler(interrupt)

    def _begin_wait(self, timeout: float) -> None:
        if self._prints_progress:
            output.print_note(f"waiting up to {timeout:.0f} s until what was changed is healthy")

        def interrupt() -> None:
            self.stop.set()
            signals.exit_on_signal()

        signals.set_handler(interrupt)

    @property
    def _prints_progress(self) -> bool:
        return not self.options.quiet and self.options.events != "-"

    def _report_health(self, event: HealthChanged) -> None:
        """Prints what is waited for, and what has become healthy during the wait; the summary has the rest."""
        self.log.report_health(event)
        if not self._prints_progress:
            return
        name = health_text.name_object(event.row)
        if event.wait is Wait.WAITING:
            self.waited.add(name)
            output.print_note(f"waiting: {health_text.format_row(event.row)}")
        elif event.wait is Wait.READY and name in self.waited:
            output.print_note(f"healthy: {name}")

    def report_interrupted(self, wording: Wording) -> None:
        if self.has_begun and self.plan is not None:
            self.calls.close()
            signals.cancel_on_signal()
            report_interrupted(self.plan, self.log, wording)
