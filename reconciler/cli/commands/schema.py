"""`reconciler schema`: JSON Schemas of kinds, manifests, project and fleet files, for editors and other validators."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import click

from reconciler.cli.terminal import exit_codes, lookup, options, output
from reconciler.cli.terminal.group import Command
from reconciler.project.discovery import FILE


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
    help="Write the schemas of manifests, policies, access tests, project and fleet file to DIR, for editors.",
)
@options.project_options
def command(common: options.Options, kind: str | None, folder: Path | None) -> int:
    """Print the JSON Schema of a kind, or write all schemas that editors use.

    In a project, the schemas have the names of its resources: editors complete references, and mark those that name no
    resource. `reconciler validate` keeps the names in .reconciler/schemas up to date.
    """
    from reconciler.rendering.schemas import manifest as manifest_schema

    if folder is not None and kind is None:
        return _write(folder, common)
    if kind is None or folder is not None:
        raise click.UsageError("pass either a KIND or --all DIR")
    output.print_result(json.dumps(manifest_schema.kind_schema(lookup.kind(kind)), indent=2))
    return exit_codes.DONE


def _write(folder: Path, common: options.Options) -> int:
    """With the names of the project's resources, if there is a project and it is valid."""
    from reconciler.operations.authoring.editor_schemas import find_addresses, read_component_forms, write_schemas
    from reconciler.operations.validate import validate_project

    addresses = None
    if (common.project / FILE).is_file():
        addresses = find_addresses(validate_project(replace(common.source, environment=None)))
        if addresses is None:
            output.print_note("note: references are checked by their form only, because the project is not valid")
    for file in write_schemas(folder, addresses, read_component_forms(common.project)):
        output.print_result(f"{file}\n")
    return exit_codes.DONE
