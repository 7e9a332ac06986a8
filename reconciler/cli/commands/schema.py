"""`reconciler schema`: JSON Schemas of kinds, manifests, project and fleet files, for editors and other validators."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler.cli.terminal import exit_codes, lookup, output
from reconciler.cli.terminal.group import Command
from reconciler.project import atomic_write

if TYPE_CHECKING:
    from reconciler.rendering.schemas.component import Forms


@click.command(
    cls=Command,
    examples="""
        reconciler schema TLSEdge > tls-edge.schema.json
        reconciler schema --all .reconciler/schemas
    """,
)
@click.argument("kind", metavar="[KIND]", required=False, shell_complete=lookup.complete)
@click.option(
    "--all",
    "folder",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write the schemas of manifests, access tests, project and fleet file to DIR, for editors.",
)
def command(kind: str | None, folder: Path | None) -> int:
    """Print the JSON Schema of a kind, or write all schemas that editors use."""
    from reconciler.rendering.schemas import manifest as manifest_schema

    if folder is not None and kind is None:
        _write(folder)
        return exit_codes.DONE
    if kind is None or folder is not None:
        raise click.UsageError("pass either a KIND or --all DIR")
    output.print_result(json.dumps(manifest_schema.kind_schema(lookup.kind(kind)), indent=2))
    return exit_codes.DONE


def _write(folder: Path) -> None:
    from reconciler import kinds
    from reconciler.project.fleets.fleet_file import FleetFile
    from reconciler.project.settings.project_file import ProjectFile
    from reconciler.rendering.schemas.project import editor_schemas

    atomic_write.make_generated_folder(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, schema in editor_schemas(ProjectFile, FleetFile, kinds.declarable(), _read_components()).items():
        atomic_write.write(folder / name, json.dumps(schema, indent=1) + "\n", 0o644)
        output.print_result(f"{folder / name}\n")


def _read_components() -> Forms:
    """The inputs of the components that the project has; none outside a project. Invalid ones are left out."""
    from reconciler.model.problem import Rejected
    from reconciler.project import discovery, files
    from reconciler.project.manifests.components import read_components
    from reconciler.project.settings.config import load_config
    from reconciler.rendering.schemas.component import InputForm

    try:
        config = load_config(discovery.find_project(Path()), {}, None, lambda source, is_secret: "")
    except (Rejected, files.Unreadable):
        return {}
    return {
        component.name: {
            name: InputForm(declared.type, declared.description, not declared.has_default, declared.default)
            for name, declared in component.inputs.items()
        }
        for component in read_components(config)
    }
