"""`reconciler apply`: carries out a plan, made now or read from a file."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from reconciler.cli import exits, options
from reconciler.cli.group import Command

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
@approve
@options.writing
def command(common: options.Options, file: Path | None, auto_approve: bool) -> int:
    """Carry out a plan: the one in FILE if the platform has not moved since, or a fresh one."""
    refuse_to_guess("apply", auto_approve)
    from reconciler.cli import applying, session

    wording = applying.Wording("apply", "Carry out these changes?", "Applied:")
    opened = session.opened(common)
    return session.run(applying.apply(opened, common, file, ask=not auto_approve, wording=wording))


def refuse_to_guess(name: str, auto_approve: bool) -> None:
    """There is nobody to ask in a pipeline, and silence is no consent."""
    if not auto_approve and not sys.stdin.isatty():
        raise exits.Stop(
            exits.USAGE, f"error: {name} asks before it changes anything, and nobody is there to answer; give -y"
        )
