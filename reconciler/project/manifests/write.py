"""Renders imported objects as manifests: one file for each service and each family of kinds, and files of long texts.

Returns texts by path and writes nothing: the caller decides what may be written, and where.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from reconciler.model.address import Address
from reconciler.model.kind import Kind
from reconciler.model.value import Ref, Template, Value
from reconciler.planning.importing.describe import Attachment
from reconciler.planning.importing.naming import to_kebab_case
from reconciler.planning.importing.secret_variables import FromEnvironment
from reconciler.planning.importing.survey import Imported
from reconciler.project.documents.phrases import format_path
from reconciler.project.yaml import emit

ATTACHMENTS: Final = "files"  # folder for long texts, inside that of the manifests
SERVICES: Final = "services"  # folder for the files of services, inside that of the manifests
_WHY_IGNORED: Final = "# Secret values cannot be imported and stay unmanaged; declare them to manage them."


def render_files(
    imported: Iterable[Imported], kinds: Mapping[str, Kind], folder: str
) -> tuple[dict[str, str], dict[str, str]]:
    """Renders manifests and the files that they include, both by path relative to the project's root."""
    files: dict[str, list[Imported]] = defaultdict(list)
    for resource in imported:
        files[file_of(resource, kinds, folder)].append(resource)
    included: dict[str, str] = {}
    manifests = {
        path: "---\n".join(render_document(member, folder, included) for member in _sort_members(members, kinds))
        for path, members in sorted(files.items())
    }
    return manifests, included


def file_of(resource: Imported, kinds: Mapping[str, Kind], folder: str) -> str:
    """The path of the file of the resource's service, or of its family of kinds if it belongs to no service."""
    if resource.service is not None:
        return join_path(folder, f"{SERVICES}/{resource.service.name.lower()}.yaml")
    return join_path(folder, f"{to_kebab_case(family_of(kinds[resource.address.kind], kinds))}.yaml")


def join_path(folder: str, path: str) -> str:
    return path if folder == "." else f"{folder}/{path}"


def append(present: str, text: str) -> str:
    """Appends documents to those of a file, without changing the existing ones."""
    if not present.strip():
        return present + text
    return f"{present}{'' if present.endswith(chr(10)) else chr(10)}---\n{text}"


def family_of(kind: Kind, kinds: Mapping[str, Kind]) -> str:
    """The kind whose file contains resources of `kind`: that of the object that its identity refers to, or itself."""
    above = next((target for part in kind.identity for target in kind.by_name[part].refs), None)
    return above if above is not None and above in kinds else kind.name


def _sort_members(members: list[Imported], kinds: Mapping[str, Kind]) -> list[Imported]:
    """The resources of a file: the service and its parts first, parents before their children."""

    def order(resource: Imported) -> tuple[bool, str, bool, Address]:
        kind, service = resource.address.kind, resource.service
        family = family_of(kinds[kind], kinds)
        return service is None or family != service.kind, family, kind != family, resource.address

    return sorted(members, key=order)


def render_document(resource: Imported, folder: str, included: dict[str, str]) -> str:
    """Renders one manifest. Adds long texts to `included`, by path."""
    lines = [f"kind: {resource.address.kind}", f"name: {emit.scalar(resource.address.name)}"]
    if resource.id is not None:
        lines.append(f"id: {emit.scalar(resource.id)}")
    lines += _lifecycle(resource)
    spec = {name: _to_yaml_value(value, resource, (name,), folder, included) for name, value in resource.spec.items()}
    lines += emit.block({"spec": spec})
    return "\n".join(lines) + "\n"


def _lifecycle(resource: Imported) -> Iterator[str]:
    if resource.protect or resource.ignore:
        yield "lifecycle:"
    if resource.protect:
        yield f"{emit.INDENT}protect: true"
    if resource.ignore:
        yield f"{emit.INDENT}{_WHY_IGNORED}"
        yield f"{emit.INDENT}ignore: {emit.flow(list(resource.ignore))}"


def _to_yaml_value(
    value: Value, of: Imported, path: tuple[str | int, ...], folder: str, included: dict[str, str]
) -> dict[str, Any] | Any:
    match value:
        case Ref():
            return {"ref": str(value)}
        case FromEnvironment(name):
            return {"from_env": name}
        case Template():
            return str(value)
        case Attachment() if value.document is not None:
            return _to_yaml_value(value.document, of, path, folder, included)
        case Attachment(text, ending):
            name = f"{of.address.name}.{format_path(path)}.{ending}"
            file = join_path(folder, f"{ATTACHMENTS}/{to_kebab_case(of.address.kind)}/{name}")
            included[file] = text
            return {"from_file": file}
        case str():
            return value.replace("${{", "$${{")
        case dict():
            return {key: _to_yaml_value(item, of, (*path, key), folder, included) for key, item in value.items()}
        case list():
            return [_to_yaml_value(item, of, (*path, index), folder, included) for index, item in enumerate(value)]
    return value
