"""Renders imported objects as manifests: one file for each service and each family of kinds, and files of long texts.

Returns texts by path and writes nothing: the caller decides what may be written, and where.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from reconciler.model.address import NAME, Address
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
    manifests: dict[str, str] = {}
    for path, members in sorted(files.items()):
        inline, others = _find_inline(_sort_members(members, kinds), kinds)
        documents = [render_document(member, folder, included, inline.get(member.address)) for member in others]
        manifests[path] = "---\n".join(documents)
    return manifests, included


_Maps = Mapping[str, list[Imported]]
"""The inline children of a resource, by the key of their map."""


def _find_inline(
    members: Iterable[Imported], kinds: Mapping[str, Kind]
) -> tuple[Mapping[Address, _Maps], list[Imported]]:
    """The children in a file that are written inline, by parent, and the other resources."""
    members = list(members)
    here = {member.address for member in members}
    inline: dict[Address, dict[str, list[Imported]]] = defaultdict(lambda: defaultdict(list))
    others = []
    for member in members:
        part_of = kinds[member.address.kind].part_of
        link = member.spec.get(part_of.field) if part_of is not None and part_of.inline else None
        if part_of is not None and isinstance(link, Ref) and link.target in here and _key(member, link.target):
            inline[link.target][part_of.inline].append(member)
        else:
            others.append(member)
    return inline, others


def _key(child: Imported, parent: Address) -> str:
    """The key of a child in the map of its parent; empty if its name does not begin with that of the parent."""
    key = child.address.name.removeprefix(f"{parent.name}-")
    return key if key != child.address.name and NAME.fullmatch(key) else ""


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


def render_document(resource: Imported, folder: str, included: dict[str, str], children: _Maps | None = None) -> str:
    """Renders one manifest, with its inline children. Adds long texts to `included`, by path."""
    lines = [f"kind: {resource.address.kind}", f"name: {emit.scalar(resource.address.name)}"]
    if resource.id is not None:
        lines.append(f"id: {emit.scalar(resource.id)}")
    lines += _lifecycle(resource)
    spec = {name: _to_yaml_value(value, resource, (name,), folder, included) for name, value in resource.spec.items()}
    lines += emit.block({"spec": spec})
    for name, members in (children or {}).items():
        lines.append(f"{name}:")
        for member in members:
            lines += _render_entry(member, resource.address, folder, included)
    return "\n".join(lines) + "\n"


def _render_entry(child: Imported, parent: Address, folder: str, included: dict[str, str]) -> Iterator[str]:
    """Renders an inline child: its spec without the reference to the parent, and the other keys of its manifest."""
    inner = emit.INDENT * 2
    yield f"{emit.INDENT}{emit.scalar(_key(child, parent))}:"
    if child.id is not None:
        yield f"{inner}id: {emit.scalar(child.id)}"
    yield from (f"{inner}{line}" for line in _lifecycle(child))
    spec = {
        name: _to_yaml_value(value, child, (name,), folder, included)
        for name, value in child.spec.items()
        if not (isinstance(value, Ref) and value.target == parent)
    }
    yield from emit.block(spec, inner)


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
