"""`reconciler apply`: carries out a plan, made now or read from a file."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from reconciler.cli.terminal import exit_codes, options
from reconciler.cli.terminal.group import Command


def _age(context: click.Context, parameter: click.Parameter, text: str | None) -> int | None:
    from reconciler.cli.commands import snapshot

    return None if text is None else snapshot.parse_age(context, parameter, text)


approve = click.option("--auto-approve", "-y", is_flag=True, help="Do not ask.")


@click.command(
    cls=Command,
    examples="""
        reconciler apply
        reconciler plan --out plan.json && reconciler apply plan.json -y
        reconciler apply --target 'IPPolicy/*' --events events.ndjson
    """,
)
@click.argument("file", required=False, metavar="[FILE]", type=click.Path(path_type=Path))
@click.option("--partial", is_flag=True, help="Of a FILE that is stale in part, carry out the rest.")
@click.option(
    "--max-age",
    metavar="AGE",
    callback=_age,
    help="Refuse a FILE that was created longer ago, as in 12h. [default: any age]",
)
@approve
@options.applying
def command(common: options.Options, file: Path | None, partial: bool, max_age: int | None, auto_approve: bool) -> int:
    """Carry out a plan: the one in FILE if the platform has not moved since, or a fresh one."""
    refuse_to_guess("apply", auto_approve)
    _refuse_to_mix(common, file, partial, max_age)
    from reconciler.cli import applying, session
    from reconciler.cli.terminal.apply_summary import Wording

    wording = Wording("apply", "Carry out these changes?", "Applied:")
    if file is None:
        opened, planned = session.opened(common), None
    else:
        opened, planned = session.opened_for(common, file, max_age=max_age)
    return session.run(applying.apply(opened, common, planned, ask=not auto_approve, wording=wording, partial=partial))


def _refuse_to_mix(common: options.Options, file: Path | None, partial: bool, max_age: int | None) -> None:
    """What a plan file covers was decided when it was made, and reviewed so."""
    if file is None and max_age is not None:
        raise exit_codes.Stop(exit_codes.USAGE, "error: --max-age is for a plan file; name the file, or omit --max-age")
    if file is None and partial:
        raise exit_codes.Stop(exit_codes.USAGE, "error: --partial is for a plan file, and none is named; leave it out")
    given = {
        "--target": common.targets,
        "--exclude": common.excludes,
        "--replace": common.to_replace,
        "--adopt": common.adopt,
    }
    flags = [flag for flag, value in given.items() if value]
    if file is not None and flags:
        raise exit_codes.Stop(
            exit_codes.USAGE,
            f"error: {file} says what is carried out, and {' and '.join(flags)} would change it; "
            f"give {'it' if len(flags) == 1 else 'them'} to `plan --out {file}`",
        )


def refuse_to_guess(name: str, auto_approve: bool) -> None:
    """There is nobody to ask in a pipeline, and silence is no consent."""
    if not auto_approve and not sys.stdin.isatty():
        raise exit_codes.Stop(
            exit_codes.USAGE, f"error: {name} asks before it changes anything, and nobody is there to answer; give -y"
        )
