"""`reconciler validate`: everything that can be known to be wrong without a network."""

from __future__ import annotations

import os
import time

import click

from reconciler.cli import exits, judging, options, sharing, talk
from reconciler.cli.group import Command
from reconciler.model import codes


@click.command(
    cls=Command,
    examples="""
        reconciler validate
        reconciler validate --strict
        reconciler validate --env prod --var region=eu
    """,
)
@click.option("--strict", is_flag=True, help="Fail on literal secrets and on warnings that are certain mistakes.")
@options.offline
def command(common: options.Options, strict: bool) -> int:
    """Check the manifests, and what policies say of them; needs no network."""
    from reconciler.project import config, manifests

    project = config.load(common.project, os.environ, common.environment)
    loaded = manifests.load(project, os.environ, common.variables)
    rules = judging.rules(project)
    problems = (
        *loaded.warnings,
        *sharing.check(common),
        *judging.of_manifest(rules, loaded.manifest, time.time()),
    )
    talk.problems(problems)
    refused = sorted({each.code for each in problems if codes.is_strict(each.code)}) if strict else []
    if refused:
        talk.say(f"error: --strict fails on these warnings: {', '.join(refused)}")
    code = judging.code(problems) or (exits.ERROR if refused else exits.DONE)
    if not common.quiet and code == exits.DONE:
        resources = talk.count(len(loaded.manifest.declarations) + len(loaded.rendered), "resource")
        under = f", under {talk.count(len(rules), 'policy', 'policies')}" if rules else ""
        talk.answer(f"Valid: {resources} in {talk.count(len(loaded.files), 'file')}{under}.")
    return code
