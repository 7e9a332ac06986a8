"""The flags of a command that plans from a snapshot file, and the plan that they ask for."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from reconciler.cli.terminal import exit_codes, output
from reconciler.cli.terminal.options import Options

if TYPE_CHECKING:
    from reconciler.model.plan import Plan
    from reconciler.operations.workspace import Workspace

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def parse_age(_context: click.Context, _parameter: click.Parameter, text: str | None) -> int | None:
    """Seconds; None for a flag that is not given."""
    if text is None:
        return None
    found = re.fullmatch(r"([0-9]{1,6})([smhdw])", text)
    if found is None:
        raise click.BadParameter(f"{text!r} is not an age; write a number and s, m, h, d or w, as in 12h")
    return int(found[1]) * _SECONDS[found[2]]


def add_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds --snapshot and --max-age."""
    for option in (
        click.option(
            "--max-age",
            metavar="AGE",
            default="48h",
            show_default=True,
            callback=parse_age,
            help="Of --snapshot: refuse an older one.",
        ),
        click.option(
            "--snapshot",
            "taken",
            metavar="FILE",
            type=click.Path(path_type=Path),
            help="Plan from what `snapshot` wrote: needs no key and no network.",
        ),
    ):
        command = option(command)
    return command


def refuse_age_alone() -> None:
    """Of --max-age where no snapshot file is named."""
    if click.get_current_context().get_parameter_source("max_age") is not ParameterSource.DEFAULT:
        raise exit_codes.Stop(exit_codes.USAGE, "error: --max-age is for --snapshot; give that too")


def plan_offline(common: Options, file: Path, max_age: int, base: str | None = None) -> tuple[Workspace, Plan]:
    """The plan from a snapshot file, with notes about the file."""
    from reconciler.cli.terminal import workspaces
    from reconciler.operations.authoring import snapshot_files
    from reconciler.project import snapshots

    opened = snapshot_files.open_with_snapshot(workspaces.source_of(common), file, max_age)
    workspace = workspaces.select(opened.workspace, common)
    if not common.quiet:
        output.print_note(f"Planned from {file}, which is {snapshots.format_age(opened.age)} old.")
        if not opened.is_verified:
            output.print_note(
                "note: its signature was not checked: there is no snapshots.public_key in reconciler.yaml"
            )
        for name in opened.unread:
            text = f"the secret of {name} is not here, and not in the snapshot either; it counts as a new one"
            output.print_note(f"note: {text}")
    return workspace, snapshot_files.plan_offline(workspace, opened.snapshot_file, base)
