"""Shared by commands that use a workspace: opening it from options, the event loop, and exit codes of plans."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from reconciler.cli.terminal import exit_codes, output
from reconciler.cli.terminal.options import Options
from reconciler.model.problem import Problem, Severity
from reconciler.operations.opening.source import ProjectSource

if TYPE_CHECKING:
    from reconciler.model.plan import Plan
    from reconciler.operations.open_project import OpenProject
    from reconciler.operations.workspace import Workspace

T = TypeVar("T")


def source_of(options: Options) -> ProjectSource:
    """The project directory, environment and variables that the options select."""
    return options.source


def open_workspace(options: Options, opening: Callable[[ProjectSource], OpenProject] | None = None) -> Workspace:
    """The workspace of the project, with the selection and approvals of the options."""
    from reconciler.operations.project_openers import open_project
    from reconciler.operations.workspace import Workspace

    if not options.quiet:
        output.show_progress("reading the project")
    try:
        return Workspace.of(select((opening or open_project)(source_of(options)), options))
    finally:
        output.show_progress("")


def open_partial_workspace(options: Options) -> Workspace:
    """The workspace without the invalid declarations of the project, if only some are invalid."""
    from reconciler.operations.project_openers import open_partial_project

    return open_workspace(options, open_partial_project)


def select(project: OpenProject, options: Options) -> OpenProject:
    """The project with the options' targets, replacements, adoption and approvals."""
    from reconciler.operations.open_project import Selection

    selection = Selection(options.targets, options.excludes, options.to_replace)
    return project.select(selection, allow=options.allow, adopt=options.adopt)


def run(work: Coroutine[Any, Any, T]) -> T:
    """Runs the event loop of a command. Raises KeyboardInterrupt if a signal cancels it."""
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
    """The exit code of a command that shows a plan. `changes` is the code of a plan with changes."""
    if plan.errors:
        return problems_exit_code(plan.errors)
    return exit_codes.DONE if plan.is_empty else changes


def drift_exit_code(plan: Plan, *, pending: bool = False, access_only: bool = False) -> int:
    """CHANGES if there is drift, or, with `pending`, unapplied changes in Git; otherwise DEGRADED if an object is.

    A plan with errors has their code.

    access_only  only drift that opens an entry point, or may do so, or locks everyone out, and failed access tests
    """
    if plan.errors:
        return exit_code(plan)
    if access_only:
        differs = bool(plan.failed_tests) or any(entry.verdict.risk for entry in plan.access)
    else:
        differs = plan.has_drift or (pending and plan.has_pending)
    if differs:
        return exit_codes.CHANGES
    return exit_codes.DEGRADED if plan.is_degraded else exit_codes.DONE


def problems_exit_code(problems: Sequence[Problem]) -> int:
    """BLOCKED if all errors are violations of policies, ERROR for any other error, DONE without errors."""
    errors = [problem for problem in problems if problem.is_error]
    if not errors:
        return exit_codes.DONE
    return exit_codes.BLOCKED if all(error.rule for error in errors) else exit_codes.ERROR


def print_tally(plan: Plan, of: str = "plan") -> None:
    """Prints the number of problems and the codes of warnings on standard error, for plans written to a file.

    of  what has these problems: `plan` or `drift check`
    """
    problems = [problem for problem in plan.problems if problem.severity is not Severity.NOTE]
    if problems:
        codes = sorted({problem.code for problem in problems if not problem.is_error and problem.code})
        output.print_note(f"{output.tally(problems)} in the {of}" + (f": {', '.join(codes)}" if codes else ""))
