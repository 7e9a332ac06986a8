"""Reports the progress of a run over a fleet: a bar at a terminal, and a line every few seconds otherwise."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from reconciler.cli.fleets.options import FleetOptions
from reconciler.cli.terminal import output
from reconciler.fleet.coordinator import FleetProgress, OnProgress
from reconciler.model.fleet import Run, RunVerb, TaskState
from reconciler.rendering.fleet.reasons import NAMED
from reconciler.rendering.terminal_text import sanitize
from reconciler.rendering.text_tools import format_seconds

if TYPE_CHECKING:
    from rich.console import Console

INTERVAL = 10.0  # seconds between lines
_VERBS = {RunVerb.PLAN: "planning", RunVerb.APPLY: "applying", RunVerb.DRIFT: "checking drift"}


@contextmanager
def report_progress(options: FleetOptions, run: Run) -> Iterator[OnProgress]:
    """What the coordinator calls inside the block."""
    verb = f"{_VERBS[run.verb]}, run {run.id}"  # a process that is killed cannot name it at its end
    if options.quiet:
        yield lambda _: None
    elif output.is_json_log() or not output.supports_color(sys.stderr, options.no_color):
        yield LineReporter(verb)
    else:
        with show_bar(verb) as report:
            yield report


class LineReporter:
    """Prints a line when the wave or the reason for waiting changes, and otherwise at most every INTERVAL."""

    def __init__(self, verb: str, now: Callable[[], float] = time.monotonic) -> None:
        self._verb = verb
        self._now = now
        self._last = now()
        self._key = ("", "")

    def __call__(self, progress: FleetProgress) -> None:
        now, key = self._now(), (progress.wave, progress.waiting)
        is_other = key != self._key and (bool(progress.waiting) or self._key != ("", ""))
        self._key = key
        if not is_other and now - self._last < INTERVAL:
            return
        self._last = now
        line = describe_progress(self._verb, progress)
        if output.is_json_log():
            counts = {str(state): number for state, number in progress.states.items() if number}
            slow = {member: round(seconds) for member, seconds in progress.slow}
            details = {"tasks": counts, "wave": progress.wave, "waiting": progress.waiting, "slow": slow}
            output.log("info", line, details)
        else:
            output.print_note(line)


def describe_progress(verb: str, progress: FleetProgress) -> str:
    """`planning: 120 of 800 done, 3 failed, 680 waiting, 2.1/s, about 5 min left`"""
    parts = [f"{progress.ended_tasks} of {progress.total} done"]
    if failed := progress.states.get(TaskState.FAILED, 0):
        parts.append(f"{failed} failed")
    if progress.ended_tasks < progress.total:
        parts.append(f"{progress.total - progress.ended_tasks} waiting")
    if progress.waiting:
        return f"{verb}: {', '.join(parts)}; the run waits: {progress.waiting}"
    if progress.slow:
        return f"{verb}: {', '.join([*parts, _describe_slow(progress.slow)])}"
    if progress.rate:
        parts.append(f"{progress.rate:.1f}/s")
    left = progress.remaining_seconds
    if left and progress.ended_tasks < progress.total:
        parts.append(f"about {format_seconds(left)} left")
    return f"{verb}: {', '.join(parts)}"


def _describe_slow(slow: Sequence[tuple[str, float]]) -> str:
    """`waiting for m055 (3 min), m071 (2 min) and 4 more`"""
    named = ", ".join(f"{sanitize(member)} ({format_seconds(seconds)})" for member, seconds in slow[:NAMED])
    more = f" and {len(slow) - NAMED} more" if len(slow) > NAMED else ""
    return f"waiting for {named}{more}"


@contextmanager
def show_bar(verb: str, console: Console | None = None) -> Iterator[OnProgress]:
    """Shows a bar inside the block, which is erased at the end."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (
        TextColumn("{task.fields[verb]}", markup=False),
        BarColumn(),
        TextColumn("{task.description}", markup=False),
    )
    with Progress(*columns, console=console or Console(stderr=True), transient=True, expand=False) as bar:
        task = bar.add_task("", total=None, verb=verb)

        def report(progress: FleetProgress) -> None:
            text = describe_progress(verb, progress).removeprefix(f"{verb}: ")
            bar.update(task, total=progress.total, completed=progress.ended_tasks, description=text)

        yield report
