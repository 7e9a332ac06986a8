"""Reports the progress of an apply: a bar at a terminal, lines or JSON otherwise, and events to a file."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TextIO

from msgspec import Struct, field

from reconciler.cli.terminal import output
from reconciler.cli.terminal.options import Options
from reconciler.cli.terminal.wait_notices import MIN_REPORTED_WAIT, ReadProgress
from reconciler.model.event import Ended, Event, HealthChanged, Outcome, Started, Waited
from reconciler.project import atomic_write
from reconciler.rendering.wire import events

if TYPE_CHECKING:
    from reconciler.cli.applying import bar


class Reporter(Protocol):
    def report(self, event: Event, ended: int) -> None:
        """Reports an event. `ended` is the number of ended calls, including the one of this event."""


class EventLog(Struct, frozen=True):
    """Collects the events of a run and passes them to reporters."""

    reading: ReadProgress = field(default_factory=ReadProgress)
    reporters: list[Reporter] = field(default_factory=list)
    files: list[EventFileReporter] = field(default_factory=list)  # of all events, also those of the wait for health
    ended: list[Ended] = field(default_factory=list)
    started: set[str] = field(default_factory=set)  # ids of calls

    def report(self, event: Event) -> None:
        if isinstance(event, Ended):
            self.ended.append(event)
        elif isinstance(event, Started):
            self.started.add(event.call.id)
        for reporter in (*self.reporters, *self.files):
            reporter.report(event, len(self.ended))

    def report_health(self, event: HealthChanged) -> None:
        for file in self.files:
            file.write(event)

    def report_wait(self, seconds: float) -> None:
        if self.reporters or self.files:
            self.report(Waited(seconds))
        else:
            self.reading.report_wait(seconds)

    def with_outcome(self, *outcomes: Outcome) -> list[Ended]:
        return [ended for ended in self.ended if ended.outcome in outcomes]


@contextmanager
def report_progress(log: EventLog, options: Options, total: int) -> Iterator[None]:
    """Adds the reporters that the options select to the log, and shows a bar inside the block. `total`: calls."""
    with ExitStack() as opened:
        if total and not options.quiet and options.events != "-":
            if output.is_json_log():
                log.reporters.append(JsonLogReporter())
            elif output.supports_color(sys.stderr, options.no_color):
                log.reporters.append(opened.enter_context(_show_bar(total)))
            else:
                log.reporters.append(LineReporter(total))
        if options.observer is not None:
            log.reporters.append(options.observer)
        yield


@contextmanager
def write_events(log: EventLog, options: Options) -> Iterator[None]:
    """Adds the reporter of `--events` to the log: for all calls, and the wait after them."""
    with ExitStack() as opened:
        if options.events == "-":
            log.files.append(EventFileReporter(sys.stderr, "standard error"))
        elif options.events:
            log.files.append(opened.enter_context(_open_event_file(Path(options.events))))
        yield


class LineReporter:
    """Prints a numbered line for each ended call; the summary lists skipped calls."""

    def __init__(self, total: int) -> None:
        self._total = total

    def report(self, event: Event, ended: int) -> None:
        text = _line(event)
        if text:
            digits = len(str(self._total))
            number = f"{ended:>{digits}}/{self._total}" if isinstance(event, Ended) else " " * (2 * digits + 1)
            output.print_note(f"{number}  {text}")


class JsonLogReporter:
    """Logs a JSON line for each event that `LineReporter` prints, with the event as a field."""

    def report(self, event: Event, ended: int) -> None:
        if text := _line(event):
            output.log(
                "error" if _has_failed(event) else "info", text, {"event": json.loads(events.format_json(event))}
            )


def _has_failed(event: Event) -> bool:
    return isinstance(event, Ended) and event.outcome in (Outcome.FAILED, Outcome.UNKNOWN)


class EventFileReporter:
    """Writes every event as a JSON line and flushes it, so that other programs can follow the file."""

    def __init__(self, file: TextIO, name: str) -> None:
        self._file = file
        self._name = name
        self._is_full = False

    def report(self, event: Event, ended: int) -> None:
        self.write(event)

    def write(self, event: Event | HealthChanged) -> None:
        if self._is_full:
            return
        try:
            self._file.write(events.format_json(event))
            self._file.flush()
        except OSError as error:
            self._is_full = True
            output.discard(self._file)
            output.print_note(f"warning: {self._name}: {output.reason(error)}; no further events are written to it")


@contextmanager
def _open_event_file(path: Path) -> Iterator[EventFileReporter]:
    with atomic_write.open_output(path) as file:
        yield EventFileReporter(file, str(path))


class BarReporter:
    """Updates the bar, and prints a line above it for each ended call."""

    def __init__(self, drawing: bar.Bar) -> None:
        self._bar = drawing

    def report(self, event: Event, ended: int) -> None:
        if isinstance(event, Waited):
            self._bar.wait(event.seconds if event.seconds >= MIN_REPORTED_WAIT else 0)
            return
        try:
            self._bar.advance(ended)
            if text := _line(event):
                self._bar.print(text, is_bad=_has_failed(event))
        except OSError:  # the terminal was closed
            output.discard(sys.stderr)


@contextmanager
def _show_bar(total: int) -> Iterator[BarReporter]:
    from reconciler.cli.applying import bar

    with bar.show_bar(total) as drawing:
        yield BarReporter(drawing)


def _line(event: Event) -> str:
    if isinstance(event, Waited) and event.seconds < MIN_REPORTED_WAIT:
        return ""
    skipped = isinstance(event, Ended) and event.outcome is Outcome.SKIPPED
    return "" if skipped else events.format_line(event)
