"""The last line of a terminal while an apply goes on: how far, how fast, what is waited for, how long still.

Draws only; what happens comes from `progress`, which loads this module where there is a terminal, since rich is heavy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console, RenderableType
from rich.progress import Progress, Task, TaskID
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

MAX_WIDTH = 40  # cells of the bar itself; a longer one tells no more
MIN_WIDTH = 8  # a shorter one tells nothing
MIN_ELAPSED = 1.0  # seconds after which a rate is worth showing


@dataclass(frozen=True)
class State:
    """What is known at one moment; times in seconds."""

    ended: int
    total: int
    rate: float | None = None  # calls a second, waits included
    wait: float = 0.0  # until the request budget lets the next one go

    @property
    def seconds_left(self) -> float | None:
        return (self.total - self.ended) / self.rate + self.wait if self.rate else None


def fit_line(state: State, width: int) -> tuple[str, int, list[str]]:
    """What stands before the bar, its width, and what stands after it: as much as fits, the count in any case."""
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
        after = [each for each in after if each]
        taken = sum(len(each) + 1 for each in (before, *after) if each)
        if taken + MIN_WIDTH < width:
            return before, min(MAX_WIDTH, width - taken - 1), after
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
    """Progress in one line, however narrow the terminal is at the moment."""

    def get_renderables(self) -> Iterable[RenderableType]:
        for task in self.tasks:
            yield _render_line(self.state(task), self.console.width)

    def state(self, task: Task) -> State:
        until = task.fields.get("until", 0.0)
        wait = max(0.0, until - self.get_time())
        ended, elapsed = int(task.completed), task.elapsed or 0.0
        # Of the whole run: what a budget lets through in a moment says nothing of the hour to come.
        rate = ended / elapsed if elapsed >= MIN_ELAPSED and ended else None
        return State(ended, int(task.total or 0), rate, wait)


def _render_line(state: State, width: int) -> RenderableType:
    before, bar, after = fit_line(state, width)
    line = Table.grid(padding=(0, 1, 0, 0))
    cells: list[RenderableType] = [Text(before)] if before else []
    if bar:
        cells.append(ProgressBar(total=state.total, completed=state.ended, width=bar))
    cells += [Text(each, style="dim" if place else "") for place, each in enumerate(after)]
    for _ in cells:
        line.add_column(no_wrap=True)
    line.add_row(*cells)
    return line


@dataclass(frozen=True)
class Bar:
    """The one bar of an apply, and the lines that scroll by above it."""

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
    """For the time of one apply; gone afterwards, whatever ended it."""
    with Line(console=console or Console(stderr=True), transient=True) as line:
        yield Bar(line, line.add_task("applying", total=total))
