"""`reconciler graph`: what depends on what, of the manifests or of a plan file. Needs no network."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler.cli.terminal import exit_codes, options, output
from reconciler.cli.terminal.group import Command

if TYPE_CHECKING:
    from reconciler.rendering.plan.graph import Graph


@click.command(
    cls=Command,
    examples="""
        reconciler graph --format svg > graph.svg
        reconciler graph --format dot | dot -Tpng > graph.png
        reconciler graph --plan plan.json --format mermaid
    """,
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["dot", "mermaid", "svg"]),
    default="dot",
    show_default=True,
    help="How to draw it.",
)
@click.option(
    "--plan", "file", metavar="FILE", type=click.Path(path_type=Path), help="Draw the calls of a plan file instead."
)
@options.offline
def command(common: options.Options, form: str, file: Path | None) -> int:
    """Draw what depends on what, from what is needed to what needs it."""
    from reconciler.rendering.plan import graph

    drawn = _of_plan(file) if file else _of_manifests(common)
    output.answer({"dot": graph.dot, "mermaid": graph.mermaid, "svg": graph.svg}[form](drawn))
    return exit_codes.DONE


def _of_plan(file: Path) -> Graph:
    from reconciler.cli import planfile
    from reconciler.rendering.plan import graph

    plan, _ = planfile.shown(file)
    return graph.of_plan(plan)


def _of_manifests(common: options.Options) -> Graph:
    from reconciler import kinds
    from reconciler.model.address import Address
    from reconciler.planning.comparing.name_references import spelt_out
    from reconciler.planning.ordering import dependencies
    from reconciler.project.manifests import load as manifests
    from reconciler.project.settings import config
    from reconciler.rendering.plan import graph

    loaded = manifests.load(config.load(common.project, os.environ, common.environment), os.environ, common.variables)
    catalogue = {kind.name: kind for kind in kinds.planned()}
    hosts: dependencies.HostIndex[Address] = dependencies.HostIndex()
    for address, declaration in loaded.manifest.declarations.items():
        if host := catalogue[address.kind].host:
            hosts.add(declaration.spec.get(host), address)
    declared = {**loaded.manifest.declarations, **spelt_out(loaded.manifest.declarations, catalogue)}
    return graph.of_resources(
        dependencies.dependencies(replace(loaded.manifest, declarations=declared), catalogue, hosts)
    )
