"""`reconciler validate`: everything that can be known to be wrong without a network."""

from __future__ import annotations

import os
import time

import click

from reconciler.cli import exits, judging, options, talk
from reconciler.cli.group import Command


@click.command(
    cls=Command,
    examples="""
        reconciler validate
        reconciler validate --env prod --var region=eu
    """,
)
@options.offline
def command(common: options.Options) -> int:
    """Check the manifests, and what policies say of them; needs no network."""
    from reconciler.project import config, manifests

    project = config.load(common.project, os.environ, common.environment)
    loaded = manifests.load(project, os.environ, common.variables)
    rules = judging.rules(project)
    problems = (*loaded.warnings, *judging.of_manifest(rules, loaded.manifest, time.time()))
    talk.problems(problems)
    code = judging.code(problems)
    if not common.quiet and code == exits.DONE:
        resources = talk.count(len(loaded.manifest.declarations) + len(loaded.rendered), "resource")
        under = f", under {talk.count(len(rules), 'policy', 'policies')}" if rules else ""
        talk.answer(f"Valid: {resources} in {talk.count(len(loaded.files), 'file')}{under}.")
    return code
