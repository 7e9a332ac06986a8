"""The options --snapshot and --max-age, and the plan from a snapshot file."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from reconciler.cli.terminal import exit_codes, output
from reconciler.cli.terminal.options import Options
from reconciler.rendering.text_tools import format_duration

if TYPE_CHECKING:
    from reconciler.operations.results import PlanResult

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def parse_age(_context: click.Context, _parameter: click.Parameter, text: str | None) -> int | None:
    """The age in seconds of a text such as `12h`; None for None."""
    if text is None:
        return None
    match = re.fullmatch(r"([0-9]{1,6})([smhdw])", text)
    if match is None:
        raise click.BadParameter(f"invalid duration {text!r}; use a number and a unit (s, m, h, d, w), as in 12h")
    return int(match[1]) * _SECONDS[match[2]]


def add_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds --snapshot and --max-age."""
    for option in (
        click.option(
            "--max-age",
            metavar="AGE",
            default="48h",
            callback=parse_age,
            help="With --snapshot: fail if the snapshot is older. [default: 48h]",
        ),
        click.option(
            "--snapshot",
            "taken",
            metavar="FILE",
            type=click.Path(path_type=Path),
            help="Plan from a file written by `snapshot`, without API key and network access.",
        ),
    ):
        command = option(command)
    return command


def refuse_age_alone() -> None:
    """Raises Stop if --max-age is given without --snapshot."""
    if click.get_current_context().get_parameter_source("max_age") is not ParameterSource.DEFAULT:
        raise exit_codes.Stop(exit_codes.USAGE, "error: --max-age requires --snapshot FILE")


def plan_offline(common: Options, file: Path, max_age: int, base: str | None = None) -> PlanResult:
    """The plan from a snapshot file. Prints the snapshot's age and what the plan cannot know.

    max_age  seconds; an older snapshot is an error
    base     see `plan --base`
    """
    from reconciler.cli.terminal import workspaces
    from reconciler.operations.authoring import snapshot_files
    from reconciler.operations.results import PlanResult

    opened = snapshot_files.open_with_snapshot(workspaces.source_of(common), file, max_age)
    project = workspaces.select(opened.project, common)
    if not common.quiet:
        output.print_note(f"Planned from snapshot {file}, which is {format_duration(opened.age)} old.")
        if not opened.is_verified:
            output.print_note(
                "note: the snapshot's signature was not verified; set snapshots.public_key in reconciler.yaml"
            )
        for name in opened.unread:
            output.print_note(f"note: the secret of {name} is neither set here nor in the snapshot")
    plan = snapshot_files.plan_offline(project, opened.snapshot_file, base, file)
    return PlanResult(plan, opened.snapshot_file.snapshot, project)
