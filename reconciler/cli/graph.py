"""`reconciler graph`: what depends on what, of the manifests or of a plan file. Needs no network."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler.cli import exits, options, talk
from reconciler.cli.group import Command

if TYPE_CHECKING:
    from reconciler.rendering.graph import Graph


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
    from reconciler.rendering import graph

    drawn = _of_plan(file) if file else _of_manifests(common)
    talk.answer({"dot": graph.dot, "mermaid": graph.mermaid, "svg": graph.svg}[form](drawn))
    return exits.DONE


def _of_plan(file: Path) -> Graph:
    from reconciler.cli import planfile
    from reconciler.rendering import graph

    plan, _ = planfile.shown(file)
    return graph.of_plan(plan)


def _of_manifests(common: options.Options) -> Graph:
    from reconciler import kinds
    from reconciler.model.address import Address
    from reconciler.planning import order
    from reconciler.planning.aliases import spelt_out
    from reconciler.project import config, manifests
    from reconciler.rendering import graph

    loaded = manifests.load(config.load(common.project, os.environ, common.environment), os.environ, common.variables)
    catalogue = {kind.name: kind for kind in kinds.planned()}
    hosts: order.HostIndex[Address] = order.HostIndex()
    for address, declaration in loaded.manifest.declarations.items():
        if host := catalogue[address.kind].host:
            hosts.add(declaration.spec.get(host), address)
    declared = {**loaded.manifest.declarations, **spelt_out(loaded.manifest.declarations, catalogue)}
    return graph.of_resources(order.dependencies(replace(loaded.manifest, declarations=declared), catalogue, hosts))
