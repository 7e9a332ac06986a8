"""`reconciler explain Kind[.field]`: what a kind or a field is for, and how it behaves."""

from __future__ import annotations

import click

from reconciler.cli import exits, named, talk
from reconciler.cli.group import Command


@click.command(
    cls=Command,
    examples="""
        reconciler explain TLSEdge
        reconciler explain TLSEdge.tls_termination.min_version
    """,
)
@click.argument("what", metavar="KIND[.FIELD]", shell_complete=named.complete)
def command(what: str) -> int:
    """Say what a kind, or one of its fields, is for."""
    from reconciler.rendering import reference

    name, _, path = what.partition(".")
    kind = named.kind(name)
    if not path:
        talk.answer(reference.page(kind, talk.width()))
        return exits.DONE
    talk.answer(reference.field_page(kind, path, named.field(kind, path), talk.width()))
    return exits.DONE
