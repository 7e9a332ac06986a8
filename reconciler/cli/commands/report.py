"""`reconciler report`: an HTML page of a stack's recorded history. Meets no platform."""

from __future__ import annotations

import time
from pathlib import Path

import click

from reconciler.cli.terminal import exit_codes, options, output
from reconciler.cli.terminal.group import Command


@click.command(
    cls=Command,
    examples="""
        reconciler report --out report.html
        reconciler report --days 365 > year.html
    """,
)
@click.option(
    "--out",
    metavar="FILE",
    type=options.OutputPath("leave --out out to print it", whole=False, path_type=Path),
    help="Where to; standard output by default.",
)
@click.option("--days", metavar="N", type=click.IntRange(1), default=90, show_default=True, help="How far back.")
@options.project_options
def command(common: options.Options, out: Path | None, days: int) -> int:
    """Write a page about drift over time and what the applies came to.

    `drift --record` records looks, each apply records itself.
    """
    from reconciler.cli.terminal import workspaces
    from reconciler.operations.history import read_checks_and_runs
    from reconciler.project import atomic_write
    from reconciler.rendering.html import report_page

    project = workspaces.source_of(common).read_settings()
    now = time.time()
    looks, runs = workspaces.run(read_checks_and_runs(project, now - days * 86400))
    page = report_page.render_page(project.stack, looks, runs, now=now, days=days)
    if out is None:
        output.print_result(page)
        return exit_codes.DONE
    atomic_write.write_output(out, page)
    if not common.quiet:
        output.print_note(f"Written to {out}.")
    return exit_codes.DONE
