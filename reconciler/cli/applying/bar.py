"""The progress bar of an apply, drawn with rich: ended calls, rate, wait for the request budget and remaining time.

Loaded by `progress` only if standard error is a terminal, because rich is slow to import.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from msgspec import Struct
from rich.console import Console, RenderableType
from rich.progress import Progress, Task, TaskID
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

MAX_WIDTH = 40  # cells of the bar
MIN_WIDTH = 8  # cells; without room for this many, no bar is drawn
MIN_ELAPSED = 1.0  # seconds before a rate is computed


class State(Struct, frozen=True):
    """The progress at one moment; times in seconds."""

    ended: int
    total: int
    rate: float | None = None  # calls per second, including waits
    wait: float = 0.0  # until the request budget allows the next request

    @property
    def seconds_left(self) -> float | None:
        return (self.total - self.ended) / self.rate + self.wait if self.rate else None


def fit_line(state: State, width: int) -> tuple[str, int, list[str]]:
    """The label before the bar, the width of the bar, and the texts after it, as far as they fit in `width` cells.

    The count is always included.
    """
    count = f"{state.ended:>{len(str(state.total))}}/{state.total}"
    rate = f"{_format_rate(state.rate)}/s" if state.rate else ""
    left = f"{format_duration(state.seconds_left)} left" if state.seconds_left is not None else ""
    words = _labels(state)
    for before, after in (
        (words[0], [count, rate, left]),
        (words[-1], [count, rate, left]),
        (words[-1], [count, left]),
        ("", [count, left]),
        ("", [count]),
    ):
        after = [text for text in after if text]
        cells = sum(len(text) + 1 for text in (before, *after) if text)
        if cells + MIN_WIDTH < width:
            return before, min(MAX_WIDTH, width - cells - 1), after
    return "", 0, [count]


def _labels(state: State) -> list[str]:
    if not state.wait:
        return ["applying"]
    return [f"waiting {format_duration(state.wait)} for the request budget", f"waiting {format_duration(state.wait)}"]


def format_duration(seconds: float) -> str:
    """`0:07`, `12:30`, `1:02:03`"""
    minutes, rest = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _format_rate(rate: float) -> str:
    return f"{rate:.0f}" if rate >= 10 else f"{rate:.1f}"


class Line(Progress):
    """Progress in one line that fits the current width of the terminal."""

    def get_renderables(self) -> Iterable[RenderableType]:
        for task in self.tasks:
            yield _render_line(self.state(task), self.console.width)

    def state(self, task: Task) -> State:
        until = task.fields.get("until", 0.0)
        wait = max(0.0, until - self.get_time())
        ended, elapsed = int(task.completed), task.elapsed or 0.0
        # The average of the whole run: with a request budget, the current rate does not predict the remaining time.
        rate = ended / elapsed if elapsed >= MIN_ELAPSED and ended else None
        return State(ended, int(task.total or 0), rate, wait)


def _render_line(state: State, width: int) -> RenderableType:
    before, bar, after = fit_line(state, width)
    line = Table.grid(padding=(0, 1))
    cells: list[RenderableType] = [Text(before)] if before else []
    if bar:
        cells.append(ProgressBar(total=state.total, completed=state.ended, width=bar))
    cells += [Text(text, style="dim" if place else "") for place, text in enumerate(after)]
    line.add_row(*cells)
    return line


class Bar(Struct, frozen=True):
    """The bar of an apply, and the lines printed above it."""

    line: Line
    task: TaskID

    def advance(self, ended: int) -> None:
        self.line.update(self.task, completed=ended)

    def wait(self, seconds: float) -> None:
        self.line.update(self.task, until=self.line.get_time() + seconds)

    def print(self, text: str, *, is_bad: bool) -> None:
        style = "red" if is_bad else None
        self.line.console.print(f"  {text}", style=style, markup=False, highlight=False, soft_wrap=True)


@contextmanager
def show_bar(total: int, console: Console | None = None) -> Iterator[Bar]:
    """Shows a bar inside the block and erases it at the end, also after an error."""
    with Line(console=console or Console(stderr=True), transient=True) as line:
        yield Bar(line, line.add_task("applying", total=total))
