"""The geometry of a bar chart of stacked counts; a template draws it as SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

WIDTH, HEIGHT = 1200, 200
_LEFT, _TOP, _BOTTOM = 44, 10, 24  # room for axis labels
_WIDEST = 44  # pixels of a bar
_FARTHEST = 120  # pixels between bars: few bars stand on the right, which a narrow screen shows
_LABELS = 8  # dates below
_LABEL = 70  # pixels of a date


class Bar(Struct, frozen=True):
    """`parts`: CSS class → count, from the bottom up. `link`: the number of the table row with details."""

    label: str
    description: str
    parts: Mapping[str, int]
    link: int


class Piece(Struct, frozen=True):
    hue: str
    y: float
    height: float


class Slot(Struct, frozen=True):
    """A bar with its place in the chart."""

    bar: Bar
    x: float
    width: float
    pieces: tuple[Piece, ...]
    is_labelled: bool


class Chart(Struct, frozen=True):
    slots: tuple[Slot, ...]
    lines: tuple[tuple[float, int], ...]  # height of a line, and its number
    left: int = _LEFT
    base: int = HEIGHT - _BOTTOM
    width: int = WIDTH
    height: int = HEIGHT


def draw_chart(bars: Sequence[Bar]) -> Chart:
    """Places and sizes in pixels; the height of the highest bar is that of a round number at or above it."""
    top = _round_up(max((sum(bar.parts.values()) for bar in bars), default=0))
    room = HEIGHT - _TOP - _BOTTOM
    step = min((WIDTH - _LEFT) / max(len(bars), 1), _FARTHEST)
    wide = min(step * 0.8, _WIDEST)
    slots, labelled, free = list[Slot](), "", 0.0  # the last date below, and where the next one may begin
    for number, bar in enumerate(bars):
        y, pieces = float(HEIGHT - _BOTTOM), []
        for hue, count in bar.parts.items():
            high = count / top * room
            y -= high
            if count:
                pieces.append(Piece(hue, y, high))
        x = WIDTH - (len(bars) - number) * step + (step - wide) / 2
        is_labelled = bar.label != labelled and free <= x <= WIDTH - _LABEL
        if is_labelled:
            labelled, free = bar.label, x + WIDTH / _LABELS
        slots.append(Slot(bar, x, wide, tuple(pieces), is_labelled))
    marks = sorted({0, top // 2, top})
    return Chart(tuple(slots), tuple((HEIGHT - _BOTTOM - mark / top * room, mark) for mark in marks))


def _round_up(number: int) -> int:
    """The next of 2, 4, 6, 8, 10, 12, 16, 20, 40, …: even, since half of it is marked too."""
    unit = 1
    while True:
        for step in (2, 4, 6, 8, 10, 12, 16):
            if number <= step * unit:
                return step * unit
        unit *= 10
