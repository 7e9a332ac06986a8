"""`reconciler report`: an HTML report of recorded drift checks and applies, without network access."""

from __future__ import annotations

import os
import time
from pathlib import Path

import click

from reconciler.cli.terminal import exit_codes, options, output, output_files
from reconciler.cli.terminal.group import Command


@click.command(
    cls=Command,
    examples="""
        reconciler report --out .reconciler/report.html
        reconciler report --days 365 > year.html
    """,
)
@click.option(
    "--out",
    metavar="FILE",
    type=options.OutputPath("omit --out to print the report", whole=False, path_type=Path),
    help="File to write. [default: standard output]",
)
@click.option("--days", metavar="N", type=click.IntRange(1), default=90, help="Number of days to cover. [default: 90]")
@options.project_options
def command(common: options.Options, out: Path | None, days: int) -> int:
    """Create an HTML report of drift over time and of the outcomes of applies.

    Drift checks are recorded by `drift --record`; every apply is recorded.
    """
    from reconciler.cli.terminal import workspaces
    from reconciler.operations.history import read_past
    from reconciler.operations.run_context import read_run_context
    from reconciler.project import atomic_write
    from reconciler.rendering.html import report_page

    project = workspaces.source_of(common).read_settings()
    output_files.check_outputs(project, (), out)
    now = time.time()
    past = workspaces.run(read_past(project, now - days * 86400))
    environment = project.environment.name if project.environment is not None else ""
    context = read_run_context(os.environ, environment=environment)
    page = report_page.render_page(project.stack, past, now=now, days=days, context=context)
    if out is None:
        output.print_result(page)
        return exit_codes.DONE
    atomic_write.write_output(out, page)
    if not common.quiet:
        output.print_note(f"Wrote {out}.")
    return exit_codes.DONE
