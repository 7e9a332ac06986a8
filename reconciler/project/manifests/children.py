"""Declares children that are written inline in the manifest of their parent: a map from name to spec.

Runs after `for_each` and the environment's patches, so that both apply to the map. Each entry becomes a document like
any other: its name is that of the parent, a dash and the key, and its reference to the parent is filled in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from reconciler import kinds
from reconciler.languages.yaml.reader import Document
from reconciler.model.address import NAME, Address
from reconciler.model.kind import Kind
from reconciler.model.manifest import Path
from reconciler.model.problem import Finding, cut
from reconciler.model.value import Json
from reconciler.project import component_files
from reconciler.project.documents import entries, phrases
from reconciler.project.documents.budget import Budget, weigh
from reconciler.project.documents.manifest_document import ManifestDocument
from reconciler.project.documents.merge import Layer, find_path, layers_of, merge
from reconciler.project.documents.validation import MAX_FINDINGS

_ORDINARY: Final = frozenset(ManifestDocument.model_fields)
_EACH_VALUE: Final = re.compile(r"\$\{\{\s*each\.value((?:\.[A-Za-z0-9_-]+)*)\s*\}\}")
_FOREIGN: Final = ("kind", "spec", "for_each")  # keys of a manifest that an entry does not have


class Family(Struct):
    """A document without its inline children, and these as documents of their own.

    kinds      the kinds of the children that it lists, none or some
    findings   with paths in the document
    """

    parent: Document
    children: list[Document]
    kinds: tuple[str, ...]
    findings: list[Finding]


def may_have(value: Json) -> bool:
    """Whether a document has a key that could be a map of children. Most do not, and need no kinds."""
    return isinstance(value, dict) and not value.keys() <= _ORDINARY


def separate(document: Document, budget: Budget) -> Family:
    """Separates a document from its inline children. Raises OverBudget."""
    value: dict[str, Any] = document.value
    maps = _find_maps(value)
    parent = (
        document._replace(value={key: item for key, item in value.items() if key not in maps}) if maps else document
    )
    family = Family(parent, [], tuple(child.name for child in maps.values()), [])
    for key, child in maps.items():
        _add_entries(family, document, key, child, budget)
    return family


def list_addresses(value: Mapping[str, Json]) -> Iterator[Address]:
    """The addresses of the children that a document with this value declares inline."""
    for key, child in _find_maps(value).items():
        written, name = value[key], value.get("name")
        if isinstance(written, dict) and isinstance(name, str):
            yield from (entries.address_of(child, name, entry) for entry in written)


class Place(Struct, frozen=True):
    """Where a file declares a resource: a document, and the path of the entry in it, or `()` for the whole document."""

    document: Document
    entry: Path

    def at(self, path: Path) -> Path:
        """The path in the document of a path in the manifest of the resource."""
        return (*self.entry, *entries.to_entry(path)) if self.entry else path


def find_in_file(documents: Iterable[Document], address: Address) -> Place | None:
    """The first place in a file that declares a resource literally."""
    for document in documents:
        if component_files.is_head(document.value):
            return None  # names in a component are no addresses
        if (entry := find_place(document.value, address)) is not None:
            return Place(document, entry)
    return None


def find_place(value: Json, address: Address) -> Path | None:
    """The path of the declaration of a resource in a document: `()` or that of an entry. None if it is not there.

    A document with `for_each` declares nothing literally.
    """
    if not isinstance(value, dict) or "for_each" in value or not isinstance(name := value.get("name"), str):
        return None
    if (value.get("kind"), name) == address:
        return ()
    for key, child in _find_maps(value).items():
        entry = address.name.removeprefix(f"{name}-")
        if child.name == address.kind and entry != address.name and find_path(value, (key, entry))[1]:
            return (key, entry)
    return None


def find_each_value(written: Json) -> Path | None:
    """The path in each item of `for_each` of a map of children that is written `${{ each.value… }}`; else None."""
    whole = _EACH_VALUE.fullmatch(written.strip()) if isinstance(written, str) else None
    return None if whole is None else tuple(whole[1].split(".")[1:])


def _find_maps(value: Mapping[str, Json]) -> Mapping[str, Kind]:
    """The kinds of the children that a document lists, by the key of their map."""
    name = value.get("kind")
    if not may_have(value) or not isinstance(name, str) or not name.isidentifier():
        return {}
    return {key: child for key, child in kinds.inline_children(name).items() if key in value}


def _add_entries(family: Family, document: Document, key: str, child: Kind, budget: Budget) -> None:
    written, name = document.value[key], document.value.get("name")
    if not isinstance(written, dict):
        text = f"expected a map from name to spec, found {phrases.describe_found(written)}"
        family.findings.append(Finding((key,), text, f"write {key}: {{NAME: {{…}}}}", code="wrong-type"))
        return
    if not isinstance(name, str) or not NAME.fullmatch(name):
        return  # reported with the envelope of the parent
    formers = _former_names(document.value)
    size = sum(map(weigh, formers))
    for entry, item in written.items():
        findings = list(_check_entry(name, entry, item, child)) if document.sound else []
        family.findings += [replace(found, path=(key, entry, *found.path)) for found in findings]
        if len(family.findings) > MAX_FINDINGS:
            text, remedy = f"more than {MAX_FINDINGS} problems in this map", "correct those above first"
            family.findings.append(Finding((key,), text, remedy, code="too-many-problems"))
            return
        if NAME.fullmatch(entries.address_of(child, name, entry).name):
            is_sound = document.sound and not findings
            budget.charge_addresses(len(formers), size + len(formers) * weigh(f"{child.name}/-{entry}"))
            former = [str(entries.address_of(child, before, entry)) for before in formers]
            family.children.append(_to_document(document, key, entry, child, former, sound=is_sound))


def _check_entry(parent: str, key: str, entry: Json, child: Kind) -> Iterator[Finding]:
    """Findings about an entry, with paths in it. Its fields are validated with the document that it becomes."""
    if not NAME.fullmatch(key) or not NAME.fullmatch(entries.address_of(child, parent, key).name):
        text = f"{cut(key)!r} is not a valid name here: {parent}-KEY is the name of the {child.name}"
        rule = "use letters, digits, '.', '_' and '-', at most 100 with the name of the parent"
        yield Finding((), text, rule, code="invalid-name", is_key=True)
    if not isinstance(entry, dict):
        text = f"expected a map, the spec of {child.name}, found {phrases.describe_found(entry)}"
        yield Finding((), text, f"write {key}: {{{child.entry_fields[0].name}: …}}", code="wrong-type")
        return
    assert child.part_of is not None
    above = child.part_of
    for name in (field.name for field in child.fields if field.name in entry and field not in child.entry_fields):
        text = f"cannot be set here: the resource belongs to the {above.kind} around it"
        yield Finding((name,), text, "remove it", code="field-not-applicable", is_key=True)
    for name in _FOREIGN:
        if name in entry and name not in child.by_name:
            remedy = (
                "write the fields of the spec directly"
                if name == "spec"
                else f"remove it, or declare the {child.name} in a manifest of its own"
            )
            yield Finding(
                (name,), f"an entry of {above.inline} has no {name}", remedy, code="unknown-field", is_key=True
            )


def _to_document(document: Document, key: str, entry: str, child: Kind, former: list[str], *, sound: bool) -> Document:
    """The document that an entry stands for: the entries of all layers, in the form of a manifest.

    former  the addresses that the child had below the former names of its parent
    """
    parent = document.value
    assert child.part_of is not None
    head = {"kind": child.name, "name": entries.address_of(child, parent["name"], entry).name}
    if parent.get("ensure") in ("absent", "forgotten"):
        head["ensure"] = parent["ensure"]
    layers: list[Layer] = []
    for layer in layers_of(document.places):
        written, exists = find_path(layer.value, (key, entry))
        if not exists or (not isinstance(written, dict) and layers):
            continue
        values = entries.to_values(written) if isinstance(written, dict) else {"spec": {}}
        if not layers:
            spec = {child.part_of.field: {"ref": f"{parent['kind']}/{parent['name']}"}, **values["spec"]}
            values = {**head, **values, "spec": spec}
            if former:
                values["moved"] = _join_moves(former, values.get("moved"))
        layers.append(replace(layer, value=values, below=(*layer.below, key, entry), is_entry=True))
    own = layers[0]
    return merge(layers, own, sound=sound)


def _former_names(parent: Mapping[str, Json]) -> list[str]:
    """The names that a parent had before."""
    moved = parent.get("moved")
    formers = moved if isinstance(moved, list) else [moved]
    kind = f"{parent['kind']}/"
    return [text.removeprefix(kind) for text in formers if isinstance(text, str) and text.startswith(kind)]


def _join_moves(former: list[str], own: Json) -> Json:
    written = own if isinstance(own, list) else [own] if own is not None else []
    known = {address for address in written if isinstance(address, str)}
    return [*written, *(address for address in former if address not in known)]
