"""`reconciler kinds`: what can be declared, one line each."""

from __future__ import annotations

import click

from reconciler.cli import exits, talk
from reconciler.cli.group import Command


@click.command(
    cls=Command,
    examples="""
        reconciler kinds
        reconciler explain TLSEdge
    """,
)
def command() -> int:
    """List the kinds of resources that manifests may declare."""
    from reconciler import kinds
    from reconciler.rendering import reference

    talk.answer(reference.listing(kinds.declarable()))
    return exits.DONE
