"""`reconciler show FILE`: renders a plan file. Reads no manifests and needs no secret values."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

import click

from reconciler.cli.terminal import exit_codes, formats, options, output, output_files
from reconciler.cli.terminal.group import Command


@click.command(
    cls=Command,
    examples="""
        reconciler show .reconciler/plan.json
        reconciler show .reconciler/plan.json --format json | jq .summary
        reconciler show .reconciler/plan.json --format html=.reconciler/plan.html --format github
    """,
)
@click.argument("file", type=click.Path(path_type=Path))
@formats.option
@click.option(
    "--project",
    metavar="DIR",
    envvar="RECONCILER_PROJECT",
    type=click.Path(path_type=Path),
    default=Path(),
    help="Project directory, for file names in annotations. [env: RECONCILER_PROJECT; default: as for plan]",
)
@click.option("--no-color", is_flag=True, help="Disable color output. [env: NO_COLOR]")
def command(file: Path, chosen: formats.Outputs, project: Path, no_color: bool) -> int:
    """Show a plan file, written by `plan --out`."""
    from reconciler.operations.applying import plan_files
    from reconciler.rendering.plan import phrases
    from reconciler.rendering.wire import plan_json

    root = options.find_project(click.get_current_context(), project)
    _check_outputs(file, root, formats.files_of(chosen))
    written = plan_files.read_text(file)
    plan, note = plan_files.read_plan(written, str(file), os.environ)
    if note:
        output.print_note(note)
    if not plan_json.is_signed(written):
        output.print_note(plan_files.signature_note(str(file)))
    plan_output = formats.PlanOutput(
        plan,
        plan_json.normalize(written),
        root,
        phrases.Flavour.PLAN,
        has_color=output.supports_color(sys.stdout, no_color),
    )
    plan_output.write_outputs(chosen)
    return exit_codes.DONE


def _check_outputs(file: Path, root: Path, files: list[str]) -> None:
    """Raises if a format would overwrite the plan file, or a file of the project, if there is one."""
    output_files.check_distinct(file, *files)
    if files:
        from reconciler.operations.errors import InvalidProject
        from reconciler.operations.opening.source import ProjectSource

        with suppress(InvalidProject):
            output_files.check_outputs(ProjectSource(root).read_settings(), (), *files)
