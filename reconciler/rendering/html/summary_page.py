"""A short document as one HTML file: a headline and tables."""

from __future__ import annotations

from reconciler.rendering.html import environment
from reconciler.rendering.summary import Summary
from reconciler.rendering.terminal_text import sanitize


def render_page(summary: Summary) -> str:
    """The whole file."""
    return environment.render_template(
        "summary.html",
        title=sanitize(summary.title),
        headline=sanitize(summary.headline),
        tone=str(summary.tone),
        lines=list(map(sanitize, summary.lines)),
        sections=[
            (section.title, section.columns, [list(map(sanitize, row)) for row in section.rows])
            for section in summary.sections
            if section.rows
        ],
    )
