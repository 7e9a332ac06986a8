"""Declares resources `ensure: forgotten` in the texts of a project; comments, order and layout stay as they are."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from reconciler.languages.yaml import reader as yaml
from reconciler.model.address import Address
from reconciler.model.manifest import Path
from reconciler.model.value import OMITTED, Json
from reconciler.project.documents.budget import Budget
from reconciler.project.documents.merge import find_path
from reconciler.project.manifests import children, for_each, write
from reconciler.project.yaml import emit, patch

_HEAD: Final = ("kind", "name", "id")


def forget_in_manifest(
    text: str, addresses: Collection[Address], ids: Mapping[Address, str], referenced: Collection[Address]
) -> str:
    """Declares the resources forgotten in a file of manifests that declares them. Raises Unpatchable.

    An item of `for_each` gets a document of its own if other items stay, or if something refers to it by its id.

    ids  ids to write with some of them
    """
    documents = yaml.read(text.encode(), "").documents
    added = ""
    for document in sorted(documents, key=lambda found: -found.places[()].line):  # an edit moves what is below it
        value = document.value if isinstance(document.value, dict) else {}
        line = document.places[()].line
        if for_each.KEY in value:
            items = dict(_items(document))
            selected = [path for path, instance in items.items() if _address(instance) in addresses]
            if items and len(selected) == len(items) and {*referenced}.isdisjoint(map(_address, items.values())):
                text = _forget_document(text, line, value, None)
                continue
            text = _forget_entries(
                text, line, value, {p: i for p, i in items.items() if p not in selected}, addresses, ids
            )
            for path in reversed(selected):  # the last one first: positions stay valid
                text = _remove_item(text, line, value, path)
                added = write.append(added, _render(items[path], ids))
        else:
            text = _forget_resources(text, line, value, addresses, ids)
    return write.append(text, added) if added else text


def find_declared(text: str) -> Iterator[Address]:
    """Yields the addresses that a file declares: in documents, and as items of a literal `for_each`."""
    for document in yaml.read(text.encode(), "").documents:
        value = document.value if isinstance(document.value, dict) else {}
        instances = [instance for _, instance in _items(document)] if for_each.KEY in value else [value]
        for instance in instances:
            yield _address(instance)
            yield from children.list_addresses(instance)


def forget_in_environment(text: str, addresses: Collection[Address], ids: Mapping[Address, str]) -> str:
    """Declares the resources forgotten in patches of an environment's file. Raises Unpatchable."""
    for address in sorted(addresses):
        document = next(iter(yaml.read(text.encode(), "").documents), None)
        patched: dict[str, Json] = {"ensure": "forgotten"} | ({"id": ids[address]} if address in ids else {})
        if document is None or not isinstance(document.value, dict) or not document.value:
            entry = "\n".join(emit.block({str(address): patched}, ""))
            text = f"{text}{'' if not text or text.endswith(chr(10)) else chr(10)}{entry}\n"
            continue
        before = document.value.get(str(address))
        whole = {**before, **patched} if isinstance(before, dict) else patched
        text = patch.patch_text(text, document.places[()].line, (str(address),), whole)
    return text


def _address(value: Mapping[str, Any]) -> Address:
    return Address(str(value.get("kind")), str(value.get("name")))


def _forget_resources(
    text: str, line: int, value: Mapping[str, Any], addresses: Collection[Address], ids: Mapping[Address, str]
) -> str:
    """Changes one document without `for_each`: the resource, or some of its inline children."""
    own = _address(value)
    if own in addresses:
        text = _forget_document(text, line, value, ids.get(own))
    for address in children.list_addresses(value):
        is_left = own not in addresses or address in ids  # otherwise it is forgotten with its parent
        if is_left and address in addresses and (place := children.find_place(value, address)):
            text = patch.patch_text(text, line, (*place, "ensure"), "forgotten")
            text = patch.patch_text(text, line, (*place, "id"), ids[address]) if address in ids else text
    return text


def _forget_entries(
    text: str,
    line: int,
    value: Mapping[str, Any],
    items: Mapping[Path, Mapping[str, Any]],
    addresses: Collection[Address],
    ids: Mapping[Address, str],
) -> str:
    """Changes inline children of items that stay: in their item, or in the map that all items share."""
    found = [
        (address, path, place)
        for path, instance in items.items()
        for address in children.list_addresses(instance)
        if (place := children.find_place(instance, address)) is not None
    ]
    for address, path, (key, entry) in found:
        if address not in addresses:
            continue
        within = children.find_each_value(value.get(str(key)))
        if within is not None:
            at: Path = (*path, *within, entry)
            text = patch.patch_text(text, line, (*at, "id"), ids[address]) if address in ids else text
            text = patch.patch_text(text, line, (*at, "ensure"), "forgotten")
        elif all(other in addresses for other, _, place in found if place == (key, entry)):
            text = patch.patch_text(text, line, (key, entry, "ensure"), "forgotten")
    return text


def _remove_item(text: str, line: int, value: Mapping[str, Any], path: Path) -> str:
    """Removes an item, and its former address."""
    text = patch.patch_text(text, line, path, OMITTED)
    moved, items = value.get("moved"), value[for_each.KEY]
    key = str(path[-1] if isinstance(items, dict) else items[path[-1]])
    if isinstance(moved, dict) and key in moved:
        text = patch.patch_text(text, line, ("moved", key) if len(moved) > 1 else ("moved",), OMITTED)
    return text


def _forget_document(text: str, line: int, value: Mapping[str, Any], id: str | None) -> str:
    if "ensure" in value:
        text = patch.patch_text(text, line, ("ensure",), "forgotten")
    else:
        text = patch.insert_key(text, line, _HEAD, "ensure", "forgotten")
    return patch.insert_key(text, line, _HEAD, "id", id) if id and "id" not in value else text


def _items(document: yaml.Document) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """The path of each item of a literal `for_each`, and the value of its instance."""
    items = document.value[for_each.KEY]
    entries = items.items() if isinstance(items, dict) else enumerate(items) if isinstance(items, list) else ()
    for key, item in entries:
        single = {key: item} if isinstance(items, dict) else [item]
        value = {**document.value, for_each.KEY: single}
        if isinstance(moved := value.get("moved"), dict):
            own = str(key if isinstance(items, dict) else item)
            value["moved"] = {own: moved[own]} if own in moved else {}
        alone = document._replace(value=value)
        for instance in for_each.expand(alone, {}, Budget())[0] or ():
            yield (for_each.KEY, key), instance.value


def _render(instance: Mapping[str, Any], ids: Mapping[Address, str]) -> str:
    """A document for an item that was removed, with its inline children: without them, they would be deleted."""
    own = _address(instance)
    document: dict[str, Json] = {"kind": own.kind, "name": own.name}
    document |= {"id": ids[own]} if own in ids else {}
    document["ensure"] = "forgotten"
    document |= {"moved": instance["moved"]} if instance.get("moved") else {}
    for address in children.list_addresses(instance):
        key, entry = map(str, children.find_place(instance, address) or ())
        written = find_path(instance, (key, entry))[0]
        kept = {name: written[name] for name in ("id", "moved") if name in written} if isinstance(written, dict) else {}
        entries = document.setdefault(key, {})
        assert isinstance(entries, dict)
        entries[entry] = kept | ({"id": ids[address]} if address in ids else {})
    return "".join(f"{line}\n" for line in emit.block(document, ""))
