"""A log-log plot as SVG, drawn by hand: a benchmark is no reason to depend on a plotting library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from math import ceil, floor, log10

WIDTH, HEIGHT, MARGIN = 640, 400, 64
COLOURS = ("#1f6feb", "#8250df", "#bf8700")

Points = Sequence[tuple[float, float]]


def log_log(title: str, across: str, up: str, lines: Mapping[str, Points]) -> str:
    every = [point for points in lines.values() for point in points]
    if not every:
        return ""
    left, right = _decades([x for x, _ in every])
    bottom, top = _decades([y for _, y in every])

    def place(x: float, y: float) -> tuple[float, float]:
        return (
            MARGIN + (log10(x) - left) / (right - left) * (WIDTH - 2 * MARGIN),
            HEIGHT - MARGIN - (log10(y) - bottom) / (top - bottom) * (HEIGHT - 2 * MARGIN),
        )

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        f'font-size="12" role="img" aria-label="{escape(title)}">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        _text(WIDTH / 2, 24, title, size=16),
        _text(WIDTH / 2, HEIGHT - 16, across),
        f'<text transform="translate(16 {HEIGHT / 2}) rotate(-90)" text-anchor="middle">{escape(up)}</text>',
    ]
    for decade in range(left, right + 1):
        x, _ = place(10**decade, 10**bottom)
        parts += [_rule(x, MARGIN, x, HEIGHT - MARGIN), _text(x, HEIGHT - MARGIN + 18, f"{10**decade:,}")]
    for decade in range(bottom, top + 1):
        _, y = place(10**left, 10**decade)
        parts += [_rule(MARGIN, y, WIDTH - MARGIN, y), _text(MARGIN - 24, y + 4, f"{10**decade:g}")]
    for colour, (name, points) in zip(COLOURS, lines.items(), strict=False):
        placed = [place(x, y) for x, y in points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>' for x, y in placed]
        parts.append(_text(placed[-1][0] - 8, placed[-1][1] - 10, name, colour=colour))
    return "\n".join([*parts, "</svg>\n"])


def _decades(values: Sequence[float]) -> tuple[int, int]:
    low, high = floor(log10(min(values))), ceil(log10(max(values)))
    return low, max(high, low + 1)


def _text(x: float, y: float, text: str, *, size: int = 12, colour: str = "black") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle" font-size="{size}" fill="{colour}">{escape(text)}</text>'
    )


def _rule(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#d0d7de"/>'
