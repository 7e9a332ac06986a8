"""Renames a resource in the texts of a project: its manifest, references to it, and patches of environments.

Changes only the characters of names and references, so that comments, order, quotes and layout stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

import yaml as libyaml
from msgspec import Struct
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from reconciler import kinds
from reconciler.model.address import Address
from reconciler.model.kind import Home, Kind
from reconciler.project.documents import entries
from reconciler.project.manifests import children
from reconciler.project.yaml import emit, patch
from reconciler.project.yaml.patch import Unpatchable

_EXPRESSION: Final = re.compile(r"(\$?)(\$\{\{\s*)([^{}\s]+)(\s*\}\})")
_ODD_BREAKS: Final = re.compile("\r(?!\n)|[\x85\u2028\u2029\ufeff]")  # would shift libyaml's positions
_MOVED: Final = re.compile(r"""\bmoved["']?:\s*(\[[^\]]*\]|\S+)""")
_ITEM: Final = re.compile(r"""\s*- ["']?[A-Za-z0-9]+/[^\s"']+["']?\s*""")  # of a list of former addresses
_HEAD: Final = ("kind", "name", "id", "ensure")  # keys that stand before `moved`

_Edit = tuple[int, int, str]  # offsets of the replaced characters, and their replacement


class Renaming(Struct, frozen=True):
    """A new name of a declared resource.

    declared   all addresses, since a name may contain dots
    addresses  old → new address of the resource and of its inline children, whose names begin with its name
    """

    old: Address
    new: Address
    declared: Collection[Address]
    addresses: Mapping[Address, Address]

    def rename_reference(self, text: str) -> str | None:
        """The new text of a reference such as `Kind/name.output`; None if it refers to another resource."""
        kind, slash, rest = text.partition("/")
        if not slash:
            return None
        name = rest
        while Address(kind, name) not in self.declared:
            name, dot, _ = name.rpartition(".")
            if not dot:
                return None
        renamed = self.addresses.get(Address(kind, name))
        return None if renamed is None else f"{renamed}{rest[len(name) :]}"


def rename_in_manifests(text: str, renaming: Renaming) -> str:
    """Renames the resource and the references to it in a file of manifests. Raises Unpatchable."""
    nodes, positions = compose(text)
    edits: list[_Edit] = []
    declaring: tuple[int, tuple[str, ...]] | None = None
    for index, node in enumerate(nodes):
        keys = keys_of(node)
        for key in ("spec", "for_each", "with", *maps_of(keys)):
            if key in keys:
                edits += _rename_references(keys[key], text, positions, renaming)
        place = _find_place(keys, renaming.old)
        if place is None:
            continue
        if not place:
            declaring, name, renamed = (index, ()), keys["name"], renaming.new.name
        else:
            parent = str(keys["name"].value)
            declaring, renamed = (index, (place[0], _key_below(parent, renaming))), _key_below(parent, renaming)
            name = next(key for key, _ in pairs_of(keys[place[0]]) if key.value == place[1])
        edits.append(replace_in(name, text, positions, str(name.value), _name_as_yaml(name, renamed)))
    changed = splice(text, edits)
    return changed if declaring is None else _add_move(changed, *declaring, renaming)


def rename_in_component(text: str, renaming: Renaming) -> str:
    """Renames the references of a component to a resource of the project. Raises Unpatchable.

    Its own resources come first: a reference that names one of them is left as it is.
    """
    nodes, positions = compose(text)
    own = [
        address
        for address in renaming.addresses
        if any(_find_place(keys_of(node), address) is not None for node in nodes)
    ]
    edits: list[_Edit] = []
    for node in nodes if not own else ():
        keys = keys_of(node)
        for key in ("spec", "for_each", "with", *maps_of(keys)):
            if key in keys:
                edits += _rename_references(keys[key], text, positions, renaming)
    return splice(text, edits)


def find_declaration(text: str, address: Address) -> tuple[Address, Sequence[Address]] | None:
    """The resource of the document that declares the address literally, and its inline children. Raises Unpatchable.

    The resource is another one if the address is that of an inline child.
    """
    for node in compose(text)[0]:
        keys = keys_of(node)
        if _find_place(keys, address) is not None:
            whole = Address(str(keys["kind"].value), str(keys["name"].value))
            below = [
                entries.address_of(child, whole.name, str(key.value))
                for name, child in maps_of(keys).items()
                for key, _ in pairs_of(keys[name])
            ]
            return whole, below
    return None


def rename_in_settings(text: str, renaming: Renaming) -> str:
    """Renames the resource in the project file or an environment: patches, defaults and known drift.

    Raises Unpatchable.
    """
    nodes, positions = compose(text)
    edits: list[_Edit] = []
    for node in nodes:
        for key, value in pairs_of(node):
            if (renamed := renaming.rename_reference(key.value)) is not None and key.value in map(
                str, renaming.addresses
            ):
                edits.append(replace_in(key, text, positions, key.value, renamed))
            edits += _rename_entry(key.value, value, text, positions, renaming)
            if "/" in key.value or key.value == "defaults":
                edits += _rename_references(value, text, positions, renaming)
            if key.value == "drift":
                edits += _rename_known_drift(value, text, positions, renaming)
    return splice(text, edits)


def find_mentions(text: str, address: Address) -> Iterator[int]:
    """Yields the numbers of the lines that contain the address, except as a former one."""
    mention = re.compile(rf"(?<![A-Za-z0-9/]){re.escape(str(address))}(?![A-Za-z0-9_-])")
    for number, line in enumerate(text.split("\n"), 1):
        if mention.search(_MOVED.sub("", line)) and not _ITEM.fullmatch(line):
            yield number


def compose(text: str) -> tuple[list[Node], list[int]]:
    """The documents of a file, and the offsets of its lines. Raises Unpatchable."""
    body = text.removeprefix("\ufeff")
    if _ODD_BREAKS.search(body):
        raise Unpatchable("the file has unusual line breaks")
    try:
        nodes = list(libyaml.compose_all(body, Loader=libyaml.CSafeLoader))
    except libyaml.YAMLError:
        raise Unpatchable("its layout does not allow it") from None
    return nodes, [len(text) - len(body), *(found.end() for found in re.finditer("\n", text))]


def pairs_of(node: Node) -> list[tuple[Node, Node]]:
    """The keys and values of a map, as nodes; none of anything else."""
    return node.value if isinstance(node, MappingNode) else []


def keys_of(node: Node) -> dict[Any, Node]:
    """The values of a map by key."""
    return {key.value: value for key, value in pairs_of(node)}


def maps_of(keys: Mapping[Any, Node]) -> Mapping[str, Kind]:
    """The kinds of the children that a document with these keys declares inline, by the key of their map."""
    kind = keys.get("kind")
    if not isinstance(kind, ScalarNode) or not kind.value.isidentifier():
        return {}
    return {key: child for key, child in kinds.inline_children(kind.value).items() if key in keys}


def _find_place(keys: Mapping[Any, Node], address: Address) -> tuple[str, ...] | None:
    """The path of the literal declaration of a resource in a document, as of `children.find_place`."""
    names = {key: keys[key].value for key in ("kind", "name", "for_each") if key in keys}
    maps = {key: {str(entry.value): None for entry, _ in pairs_of(keys[key])} for key in maps_of(keys)}
    found = children.find_place({**names, **maps}, address)
    return None if found is None else tuple(map(str, found))


def _key_below(parent: str, renaming: Renaming) -> str:
    """The new key of an inline child. Raises Unpatchable if the new name is not one below its parent."""
    key = renaming.new.name.removeprefix(f"{parent}-")
    if not key or key == renaming.new.name:
        raise Unpatchable(f"it is declared inline, so that its name begins with {parent}-")
    return key


def _rename_entry(
    address: str, patch_node: Node, text: str, positions: list[int], renaming: Renaming
) -> Iterator[_Edit]:
    """Renames the key of an inline child in an environment's patch of its parent."""
    kind, _, parent = address.partition("/")
    for key, child in kinds.inline_children(kind).items() if kind.isidentifier() else ():
        for entry, _ in pairs_of(keys_of(patch_node).get(key, patch_node)) if key in keys_of(patch_node) else ():
            if entries.address_of(child, parent, str(entry.value)) == renaming.old:
                renamed = _name_as_yaml(entry, _key_below(parent, renaming))
                yield replace_in(entry, text, positions, str(entry.value), renamed)


def _name_as_yaml(node: Node, name: str) -> str:
    """The new name as it stands in the file: in quotes if it would not be text without them."""
    return name if getattr(node, "style", None) in ("'", '"') else emit.scalar(name)


def _rename_references(node: Node, text: str, positions: list[int], renaming: Renaming) -> Iterator[_Edit]:
    if isinstance(node, ScalarNode):
        start, end = _span(node, positions)
        for found in _EXPRESSION.finditer(text, start, end):
            renamed = renaming.rename_reference(found[3])
            if renamed is not None and not found[1]:
                yield found.start(3), found.end(3), renamed
    elif isinstance(node, SequenceNode):
        for item in node.value:
            yield from _rename_references(item, text, positions, renaming)
    elif isinstance(node, MappingNode):
        keys = keys_of(node)
        if list(keys) == ["ref"] and isinstance(ref := keys["ref"], ScalarNode):
            if (renamed := renaming.rename_reference(ref.value)) is not None:
                yield replace_in(ref, text, positions, ref.value, renamed)
            return
        for value in keys.values():
            yield from _rename_references(value, text, positions, renaming)


def _rename_known_drift(node: Node, text: str, positions: list[int], renaming: Renaming) -> Iterator[_Edit]:
    ignored = keys_of(node).get("ignore")
    for item in ignored.value if isinstance(ignored, SequenceNode) else ():
        match = keys_of(item).get("match")
        if isinstance(match, ScalarNode) and (renamed := renaming.rename_reference(match.value)) is not None:
            yield replace_in(match, text, positions, match.value, renamed)


def _span(node: Node, positions: list[int]) -> tuple[int, int]:
    return (
        positions[node.start_mark.line] + node.start_mark.column,
        positions[node.end_mark.line] + node.end_mark.column,
    )


def replace_in(node: Node, text: str, positions: list[int], old: str, new: str) -> _Edit:
    """The edit that replaces a text within a node. Raises Unpatchable."""
    start, end = _span(node, positions)
    at = text.find(old, start, end)
    if at < 0:
        raise Unpatchable("a name is written with escapes")
    return at, at + len(old), new


def splice(text: str, edits: list[_Edit]) -> str:
    """The text with the edits."""
    for start, end, put in sorted(set(edits), reverse=True):  # an alias of YAML leads to one node twice
        text = text[:start] + put + text[end:]
    return text


def _add_move(text: str, index: int, entry: tuple[str, ...], renaming: Renaming) -> str:
    """Adds the former address to `moved` of the document with this number, or of an entry in it."""
    if kinds.get(renaming.old.kind).home is Home.FILE:
        return text  # it has no object that could be moved
    nodes, positions = compose(text)
    node = nodes[index]
    within = node
    for key in entry:
        within = keys_of(within)[key]
    keys = keys_of(within)
    before = keys.get("moved")
    written = [item.value for item in before.value] if isinstance(before, SequenceNode) else []
    written += [before.value] if isinstance(before, ScalarNode) and before.value not in ("", "null", "~") else []
    moved = [address for address in written if address != str(renaming.new)] + [str(renaming.old)]
    if before is not None or entry or getattr(node, "flow_style", False):
        value = moved[0] if entry and len(moved) == 1 else list(moved)
        return patch.patch_text(text, node.start_mark.line + 1, (*entry, "moved"), value)
    head = max((keys[name] for name in _HEAD if name in keys), key=lambda value: value.end_mark.line)
    first = node.value[0][0]
    at = text.find("\n", positions[head.end_mark.line] + head.end_mark.column)
    newline = "\r\n" if "\r\n" in text else "\n"
    line = f"{' ' * first.start_mark.column}moved: {emit.flow(moved)}{newline}"
    return text[: at + 1] + line + text[at + 1 :] if at >= 0 else f"{text}{newline}{line}"
