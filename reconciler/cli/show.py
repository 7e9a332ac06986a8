"""`reconciler show FILE`: a plan file, rendered anew. Reads no manifest, so the file's secrets stay unread."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from reconciler.cli import exits, talk
from reconciler.cli.group import Command


@click.command(
    cls=Command,
    examples="""
        reconciler show plan.json
        reconciler show plan.json --format json | jq .summary
    """,
)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="How to show it.")
@click.option("--no-color", is_flag=True, help="Plain text, as NO_COLOR asks for too.")
def command(file: Path, form: str, no_color: bool) -> int:
    """Show a plan file that `plan --out` wrote."""
    from reconciler.cli import planfile
    from reconciler.rendering import json, text

    plan, written = planfile.shown(file)
    if form == "json":
        talk.answer(json.respelt(written))
    else:
        talk.answer(text.text(plan, width=talk.width(), colour=talk.is_coloured(sys.stdout, no_color)))
    return exits.DONE
