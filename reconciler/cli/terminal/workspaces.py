"""Shared by commands that meet a platform: opening a workspace, the event loop, the exit code of a plan."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from reconciler.cli.terminal import exit_codes, output
from reconciler.cli.terminal.options import Options
from reconciler.operations.opening.source import ProjectSource
from reconciler.operations.runtime import Runtime

if TYPE_CHECKING:
    from reconciler.model.plan import Plan
    from reconciler.model.problem import Problem
    from reconciler.operations.workspace import Workspace

T = TypeVar("T")


def source_of(options: Options) -> ProjectSource:
    """Where the project is, and how the flags want it read."""
    runtime = options.runtime or Runtime()
    if options.observer is not None:
        runtime = replace(runtime, observer=options.observer)
    return ProjectSource(options.project, options.environment, options.variables, options.parallelism, runtime)


def open_workspace(options: Options, opening: Callable[[ProjectSource], Workspace] | None = None) -> Workspace:
    """The workspace that the flags ask for, with their selection and approvals."""
    from reconciler.operations.opening.project import open_project

    return select((opening or open_project)(source_of(options)), options)


def select(workspace: Workspace, options: Options) -> Workspace:
    """What the flags select and allow."""
    from reconciler.operations.workspace import Selection

    selection = Selection(options.targets, options.excludes, options.to_replace)
    return workspace.select(selection, allow=options.allow, adopt=options.adopt)


def run(work: Coroutine[Any, Any, T]) -> T:
    """The one event loop of a command."""
    import asyncio

    try:
        return asyncio.run(_stoppable(work))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


async def _stoppable(work: Coroutine[Any, Any, T]) -> T:
    from reconciler.cli.terminal import signals

    signals.cancel_on_signal()
    return await work


def exit_code(plan: Plan, *, changes: int = exit_codes.DONE) -> int:
    """The exit code of a command that shows a plan; `changes` where changes have one of their own."""
    if plan.blocking_errors:
        return problems_exit_code(plan.blocking_errors)
    return exit_codes.DONE if plan.is_empty else changes


def problems_exit_code(problems: Sequence[Problem]) -> int:
    """BLOCKED if only policies object, ERROR if anything is wrong."""
    errors = [problem for problem in problems if problem.is_error]
    if not errors:
        return exit_codes.DONE
    return exit_codes.BLOCKED if all(error.rule for error in errors) else exit_codes.ERROR


def print_tally(plan: Plan) -> None:
    """On standard error, for readers who keep the plan in a file: how many there are, and the codes of warnings."""
    if plan.problems:
        named = sorted({problem.code for problem in plan.problems if not problem.is_error and problem.code})
        output.print_note(output.tally(plan.problems) + (f": {', '.join(named)}" if named else ""))
