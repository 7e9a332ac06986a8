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
        reconciler show .reconciler/plan-staging.json .reconciler/plan-prod.json --format html=.reconciler/plan.html
    """,
)
@click.argument("files", nargs=-1, type=click.Path(path_type=Path), metavar="[FILE]...")
@formats.option
@click.option(
    "--failed",
    metavar="ENV",
    multiple=True,
    help="Name of an environment that could not be planned, to be listed beside the plans. Repeatable.",
)
@click.option(
    "--project",
    metavar="DIR",
    envvar="RECONCILER_PROJECT",
    type=click.Path(path_type=Path),
    default=Path(),
    help="Project directory, for file names in annotations. [env: RECONCILER_PROJECT; default: as for plan]",
)
@click.option("--no-color", is_flag=True, help="Disable color output. [env: NO_COLOR]")
def command(
    files: tuple[Path, ...], chosen: formats.Outputs, failed: tuple[str, ...], project: Path, no_color: bool
) -> int:
    """Show a plan file, written by `plan --out`.

    Several plan files, such as those of all environments, are shown together as markdown or html: a row for each, and
    each change once with the environments that it is for.
    """
    if not files and not failed:
        raise exit_codes.Stop(exit_codes.USAGE, "error: missing argument FILE, or option --failed ENV")
    if (failed or len(files) > 1) and (single := [form for form, _ in chosen if form not in formats.OF_SEVERAL]):
        raise exit_codes.Stop(
            exit_codes.USAGE, f"error: {single[0]} shows one plan file; pass --format markdown or html for several"
        )
    root = options.find_project(click.get_current_context(), project)
    _check_outputs(files, root, formats.files_of(chosen))
    has_color = output.supports_color(sys.stdout, no_color)
    outputs = [_read_plan(file, root, has_color=has_color) for file in files]
    formats.write_outputs(outputs, chosen, failed)
    return exit_codes.DONE


def _read_plan(file: Path, root: Path, *, has_color: bool) -> formats.PlanOutput:
    from reconciler.operations.applying import plan_files
    from reconciler.rendering.plan import phrases
    from reconciler.rendering.wire import plan_json

    written = plan_files.read_text(file)
    plan, note = plan_files.read_plan(written, str(file), os.environ)
    if note:
        output.print_note(note)
    if not plan_json.is_signed(written):
        output.print_note(plan_files.signature_note(str(file)))
    return formats.PlanOutput(
        plan,
        plan_json.normalize(written),
        root,
        phrases.Flavour.PLAN,
        has_color=has_color,
        environment=plan.environment,
    )


def _check_outputs(plans: tuple[Path, ...], root: Path, files: list[str]) -> None:
    """Raises if a format would overwrite a plan file, or a file of the project, if there is one."""
    for plan in plans:
        output_files.check_distinct(plan, *files)
    if files:
        from reconciler.operations.errors import InvalidProject
        from reconciler.operations.opening.source import ProjectSource

        with suppress(InvalidProject):
            output_files.check_outputs(ProjectSource(root).read_settings(), (), *files)
