"""The JSON Schemas that editors check a project with: in a project, references are checked against what it declares."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from reconciler.model.address import Address
from reconciler.model.json_text import write_json
from reconciler.operations.results import ValidationResult
from reconciler.project import atomic_write
from reconciler.project.atomic_write import SCHEMAS

if TYPE_CHECKING:
    from reconciler.rendering.schemas.component import Forms

_NONE: Forms = MappingProxyType({})
_MANIFEST = "manifest.json"
_HEAD = 200  # characters of a schema that contain the digest of the names


def render_schemas(addresses: Collection[Address] | None = None, components: Forms = _NONE) -> dict[str, str]:
    """The content of each schema by file name.

    addresses   of the declared resources; None: they are not known
    components  the inputs of those of the project
    """
    from reconciler import kinds
    from reconciler.project.fleets.fleet_file import FleetFile
    from reconciler.project.policies.load import PolicyDocument
    from reconciler.project.settings.project_file import ProjectFile
    from reconciler.rendering.schemas.project import editor_schemas

    found = editor_schemas(ProjectFile, FleetFile, PolicyDocument, kinds.declarable(), addresses, components)
    head = {"$comment": _mark(addresses, components)}
    return {name: write_json({**head, **schema}, indent=1) + "\n" for name, schema in found.items()}


def write_schemas(folder: Path, addresses: Collection[Address] | None = None, components: Forms = _NONE) -> list[Path]:
    """Writes the schemas to a folder, which is created. Returns the files."""
    atomic_write.make_generated_folder(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in (texts := render_schemas(addresses, components)).items():
        atomic_write.write(folder / name, text, 0o644)
    return [folder / name for name in texts]


def find_addresses(results: Sequence[ValidationResult]) -> frozenset[Address] | None:
    """What the environments of a project declare; None if one is not valid, so that its resources are not known."""
    if any(problem.is_error and not problem.rule for result in results for problem in result.problems):
        return None
    return frozenset(address for result in results for address in result.addresses)


def read_component_forms(root: Path) -> Forms:
    """The inputs of the components that a project has; none outside a project. Invalid ones are left out."""
    from reconciler.model.problem import Rejected
    from reconciler.project.files import Unreadable
    from reconciler.project.manifests.components import read_components
    from reconciler.project.settings.config import load_config
    from reconciler.rendering.schemas.component import InputForm

    try:
        config = load_config(root, {}, None, lambda source, is_secret: "")
    except (Rejected, Unreadable):
        return _NONE
    return {
        component.name: {
            name: InputForm(declared.type, declared.description, not declared.has_default, declared.default)
            for name, declared in component.inputs.items()
        }
        for component in read_components(config)
    }


def refresh_schemas(root: Path, results: Sequence[ValidationResult]) -> None:
    """Brings the schemas in the project's folder up to date with its resources and components, if it has the schemas.

    results  of all environments
    """
    file = root / SCHEMAS / _MANIFEST
    if not os.path.isfile(file) or (addresses := find_addresses(results)) is None:  # noqa: PTH113 - raises nothing
        return
    components = read_component_forms(root)
    with file.open(encoding="utf-8", errors="replace") as opened:
        if _mark(addresses, components) in opened.read(_HEAD):
            return
    write_schemas(file.parent, addresses, components)


def _mark(addresses: Collection[Address] | None, components: Forms) -> str:
    """Tells which names a schema has."""
    if addresses is None:
        return "References are checked by their form; `reconciler validate` adds the names of the project."
    text = "\n".join([*sorted(map(str, addresses)), *sorted(map(str, components.items()))])
    return f"Names of the project: {hashlib.blake2b(text.encode(), digest_size=8).hexdigest()}"
