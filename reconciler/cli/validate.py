"""`reconciler validate`: everything that can be known to be wrong without a network."""

from __future__ import annotations

import os

import click

from reconciler.cli import exits, options, talk
from reconciler.cli.group import Command


@click.command(
    cls=Command,
    examples="""
        reconciler validate
        reconciler validate --project environments/prod --var region=eu
    """,
)
@options.offline
def command(common: options.Options) -> int:
    """Check the manifests; needs no network."""
    from reconciler.project import config, manifests

    project = config.load(common.project, os.environ)
    loaded = manifests.load(project, os.environ, common.variables)
    talk.problems(loaded.warnings)
    if not common.quiet:
        resources = talk.count(len(loaded.manifest.declarations) + len(loaded.rendered), "resource")
        talk.answer(f"Valid: {resources} in {talk.count(len(loaded.files), 'file')}.")
    return exits.DONE
