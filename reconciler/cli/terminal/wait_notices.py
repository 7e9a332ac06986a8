"""Messages about reading the account: its progress, repeated reads, and waits for the request budget."""

from __future__ import annotations

from msgspec import Struct, field

from reconciler.cli.terminal import output
from reconciler.model.event import Waited
from reconciler.operations.opening.account_reading import without_operation_id
from reconciler.operations.reporting import ListRead, Note, OperationEvent, ReadRetried

MIN_REPORTED_WAIT = 1.0  # seconds; near the limit of the budget most requests wait for a fraction of a second


class ReadProgress(Struct, frozen=True):
    """Receives the events of an operation and prints delays and notes; prints the reason of a retry only once."""

    quiet: bool = False
    _printed: set[str] = field(default_factory=set)

    def __call__(self, event: OperationEvent) -> None:
        match event:
            case Waited(seconds):
                self.report_wait(seconds)
            case ListRead(read, total) if not self.quiet:
                output.show_progress(f"reading the account, {read} of {total} lists" if read < total else "")
            case ReadRetried(_, why):
                self.report_retry(why)
            case Note(text, problems, is_detail):
                if not (is_detail and self.quiet):
                    output.print_note(text)
                output.print_problems(problems)

    def report_wait(self, seconds: float) -> None:
        if seconds >= MIN_REPORTED_WAIT and not self.quiet:
            from reconciler.rendering.wire import events

            output.print_note(events.format_line(Waited(seconds)))

    def report_retry(self, why: str) -> None:
        reason = without_operation_id(why)
        if reason not in self._printed and not self.quiet:
            self._printed.add(reason)
            output.print_note(f"{why}; retrying")
