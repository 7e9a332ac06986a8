"""Tells on standard error why something takes longer: reads that are repeated, and the wait for the request budget."""

from __future__ import annotations

from dataclasses import dataclass, field

from reconciler.cli.terminal import output
from reconciler.model.event import Waited
from reconciler.operations.opening.account_reading import without_operation_id
from reconciler.operations.reporting import Note, OperationEvent, ReadRetried

MIN_REPORTED_WAIT = 1.0  # seconds of waiting; within a full window each request waits a moment for the one before


@dataclass
class ReadProgress:
    """Hears an operation that reads. Prints each reason once, however many lists it holds up."""

    quiet: bool = False
    _told: set[str] = field(default_factory=set)

    def __call__(self, event: OperationEvent) -> None:
        match event:
            case Waited(seconds):
                self.report_wait(seconds)
            case ReadRetried(_, why):
                self.report_retry(why)
            case Note(text, problems, is_detail):
                if not (is_detail and self.quiet):
                    output.print_note(text)
                output.print_problems(problems)

    def report_wait(self, seconds: float) -> None:
        if seconds >= MIN_REPORTED_WAIT and not self.quiet:
            from reconciler.rendering.wire import events

            output.print_note(events.line(Waited(seconds)))

    def report_retry(self, why: str) -> None:
        reason = without_operation_id(why)
        if reason not in self._told and not self.quiet:
            self._told.add(reason)
            output.print_note(f"{why}; trying again")
