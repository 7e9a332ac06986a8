"""Writes a run over a fleet in each of the chosen formats, to its file or to standard output."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from reconciler.cli.fleets.options import FleetOptions
from reconciler.cli.terminal import output
from reconciler.rendering.fleet.rollup import RollUp

WIDTH = 80  # columns, if standard output is not a terminal; also of files


RenderText = Callable[[RollUp, int, bool], str]
"""Renders a run for a terminal of this width, with color or without."""


def write_outputs(rollup: RollUp, options: FleetOptions, render_text: RenderText | None = None) -> None:
    """Writes each format to its file, or to standard output. `render_text`: another text than that of the whole run."""
    for form, file in options.chosen:
        if not file:
            width = output.width() if sys.stdout.isatty() else WIDTH
            output.print_result(render(rollup, form, width, options.has_color, render_text))
            continue
        from reconciler.project import atomic_write

        atomic_write.write_output(Path(file), render(rollup, form, WIDTH, False, render_text))


def render(rollup: RollUp, form: str, width: int, has_color: bool, render_text: RenderText | None) -> str:
    """The run in one format."""
    renderers: Mapping[str, Callable[[], str]] = {
        "text": lambda: (render_text or _text)(rollup, width, has_color),
        "markdown": lambda: _markdown(rollup),
        "html": lambda: _html(rollup),
        "json": lambda: _json(rollup),
        "junit": lambda: _junit(rollup),
    }
    return renderers[form]()


def _text(rollup: RollUp, width: int, has_color: bool) -> str:
    from reconciler.rendering.fleet import text

    return text.render_text(rollup, width=width, color=has_color)


def _markdown(rollup: RollUp) -> str:
    from reconciler.rendering.fleet import markdown

    return markdown.render_markdown(rollup)


def _html(rollup: RollUp) -> str:
    from reconciler.operations.run_context import read_run_context
    from reconciler.rendering.html import fleet_page

    return fleet_page.render_page(rollup, context=read_run_context(os.environ, commit=rollup.run.commit))


def _json(rollup: RollUp) -> str:
    from reconciler.rendering.fleet import report_json

    return report_json.render_json(rollup)


def _junit(rollup: RollUp) -> str:
    from reconciler.rendering.fleet import junit

    return junit.render_junit(rollup)
