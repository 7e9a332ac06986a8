"""`reconciler graph`: the dependency graph of the manifests or of a plan file's calls, without network access."""

from __future__ import annotations

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
        reconciler graph --plan .reconciler/plan.json --format mermaid
    """,
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["dot", "mermaid", "svg"]),
    default="dot",
    show_default=True,
    help="Output format.",
)
@click.option(
    "--plan", "file", metavar="FILE", type=click.Path(path_type=Path), help="Draw the API calls of a plan file instead."
)
@options.project_options
def command(common: options.Options, form: str, file: Path | None) -> int:
    """Draw the dependency graph of the manifests, without network access.

    Arrows point from a resource to the resources that refer to it.
    """
    from reconciler.rendering.plan import graph

    dependencies = _of_plan(file, common) if file else _of_manifests(common)
    output.print_result(
        {"dot": graph.render_dot, "mermaid": graph.render_mermaid, "svg": graph.render_svg}[form](dependencies)
    )
    return exit_codes.DONE


def _of_plan(file: Path, common: options.Options) -> Graph:
    from reconciler.cli.terminal import workspaces
    from reconciler.operations.applying import plan_files
    from reconciler.rendering.plan import graph

    environ = workspaces.source_of(common).runtime.environ
    plan, note = plan_files.read_plan(plan_files.read_text(file), str(file), environ)
    if note:
        output.print_note(note)
    return graph.build_call_graph(plan)


def _of_manifests(common: options.Options) -> Graph:
    from reconciler.cli.terminal import workspaces
    from reconciler.operations.authoring.resource_graph import read_dependencies
    from reconciler.rendering.plan import graph

    return graph.build_resource_graph(read_dependencies(workspaces.source_of(common)))
