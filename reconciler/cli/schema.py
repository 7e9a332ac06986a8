"""`reconciler schema KIND`: a JSON Schema, for editors and other checkers."""

from __future__ import annotations

import json

import click

from reconciler.cli import exits, named, talk
from reconciler.cli.group import Command


@click.command(
    cls=Command,
    examples="""
        reconciler schema TLSEdge > tls-edge.schema.json
    """,
)
@click.argument("kind", metavar="KIND", shell_complete=named.complete)
def command(kind: str) -> int:
    """Print the JSON Schema of a kind."""
    from reconciler.rendering import schema

    talk.answer(json.dumps(schema.kind_schema(named.kind(kind)), indent=2))
    return exits.DONE
