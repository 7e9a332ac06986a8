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
from reconciler.model.manifest import Path
from reconciler.project.documents import entries
from reconciler.project.manifests import children
from reconciler.project.yaml import emit, patch
from reconciler.project.yaml.patch import Unpatchable

_EXPRESSION: Final = re.compile(r"(\$?)(\$\{\{\s*)([^{}\s]+)(\s*\}\})")
_ODD_BREAKS: Final = re.compile("\r(?!\n)|[\x85\u2028\u2029\ufeff]")  # would shift libyaml's positions
_HEAD: Final = ("kind", "component", "name", "id", "ensure")  # keys that stand before `moved`

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
    changed = rename_references(text, renaming)
    for node in compose(changed)[0]:
        if _find_place(keys_of(node), renaming.old) == ():
            return rename_name(changed, node.start_mark.line + 1, renaming.new.name, str(renaming.old))
    return changed


def rename_references(text: str, renaming: Renaming) -> str:
    """Renames the references to the resource in a file of manifests, or of a component. Raises Unpatchable."""
    nodes, positions = compose(text)
    edits: list[_Edit] = []
    for keys in map(keys_of, nodes):
        for key in ("spec", "for_each", "with", *maps_of(keys)):
            if key in keys:
                edits += _rename_references(keys[key], text, positions, renaming)
    return splice(text, edits)


def rename_name(text: str, line: int, new: str, former: str) -> str:
    """Renames the document whose first key is in that line, and adds its former name. Raises Unpatchable."""
    nodes, positions = compose(text)
    name = keys_of(_node_at(nodes, line)).get("name")
    if not isinstance(name, ScalarNode) or "${{" in name.value:
        raise Unpatchable("its name is made of other values")
    text = splice(text, [replace_in(name, text, positions, str(name.value), _name_as_yaml(name, new))])
    return _add_move(text, line, new, former)


def rename_key(text: str, line: int, path: Path, new: str, former: str) -> str:
    """Renames the entry at a path of the document whose first key is in that line, and adds its former address.

    Raises Unpatchable.
    """
    nodes, positions = compose(text)
    *around, old = path
    node: Node | None = _node_at(nodes, line)
    for part in around:
        node = _child_at(node, part)
    key, entry = next(((key, value) for key, value in pairs_of(node) if key.value == old), (None, None))
    if key is None or entry is None:
        raise Unpatchable("its key is not written there")
    if isinstance(entry, ScalarNode) and "${{" in entry.value:
        raise Unpatchable("the entry is an expression")
    written = keys_of(entry).get("moved")
    text = splice(text, [replace_in(key, text, positions, str(old), _name_as_yaml(key, new))])
    kind = former.partition("/")[0]
    if kinds.get(kind).home is Home.FILE:
        return text
    renamed = f"{former.removesuffix(str(old))}{new}"
    moved = [address for address in _former_of(written) if address not in (renamed, former)] + [former]
    return patch.patch_text(text, line, (*around, new, "moved"), moved[0] if len(moved) == 1 else list(moved))


def has_key(text: str, line: int, key: str) -> bool:
    """Whether the document whose first key is in that line has a key. Raises Unpatchable."""
    return key in keys_of(_node_at(compose(text)[0], line))


def is_declared(text: str, address: Address) -> bool:
    """Whether a document declares the resource under its name, and not as an inline child. Raises Unpatchable."""
    return any(_find_place(keys_of(node), address) == () for node in compose(text)[0])


def rename_in_component(text: str, renaming: Renaming) -> str:
    """Renames the references of a component to a resource of the project. Raises Unpatchable.

    Its own resources come first: a reference that names one of them is left as it is.
    """
    nodes = compose(text)[0]
    is_own = any(_find_place(keys_of(node), address) is not None for address in renaming.addresses for node in nodes)
    return text if is_own else rename_references(text, renaming)


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
            edits += _rename_entries(key.value, value, text, positions, renaming)
            if "/" in key.value or key.value == "defaults":
                edits += _rename_references(value, text, positions, renaming)
            if key.value == "drift":
                edits += _rename_known_drift(value, text, positions, renaming)
    return splice(text, edits)


def find_mentions(text: str, address: Address) -> Iterator[int]:
    """Yields the numbers of the lines that contain the address, except as a former one."""
    mention = re.compile(rf"(?<![A-Za-z0-9/]){re.escape(str(address))}(?![A-Za-z0-9_-])")
    for number, line in enumerate(_without_former(text).split("\n"), 1):
        if mention.search(line):
            yield number


def _without_former(text: str) -> str:
    """The text with blanks for the values of `moved`; as it is if it is no YAML."""
    try:
        nodes, positions = compose(text)
    except Unpatchable:
        return text
    spans = [_span(scalar, positions) for node in nodes for scalar in _former_scalars(node, is_former=False)]
    return splice(text, [(start, end, " " * (end - start)) for start, end in spans if "\n" not in text[start:end]])


def _former_scalars(node: Node, *, is_former: bool) -> Iterator[Node]:
    if isinstance(node, ScalarNode) and is_former:
        yield node
    elif isinstance(node, SequenceNode):
        for item in node.value:
            yield from _former_scalars(item, is_former=is_former)
    for key, value in pairs_of(node):
        yield from _former_scalars(value, is_former=is_former or key.value == "moved")


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


def pairs_of(node: Node | None) -> list[tuple[Node, Node]]:
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


def _node_at(nodes: Sequence[Node], line: int) -> Node:
    """The document that has a line. Raises Unpatchable."""
    found = [node for node in nodes if node.start_mark.line < line]
    if not found:
        raise Unpatchable("its layout does not allow it")
    return found[-1]


def _child_at(node: Node | None, part: str | int) -> Node | None:
    if isinstance(node, SequenceNode) and isinstance(part, int) and part < len(node.value):
        return node.value[part]  # type: ignore[no-any-return]  # PyYAML has no types
    return keys_of(node).get(str(part)) if isinstance(node, MappingNode) else None


def _rename_entries(
    address: str, patch_node: Node, text: str, positions: list[int], renaming: Renaming
) -> Iterator[_Edit]:
    """Renames the keys of inline children in an environment's patch of their parent."""
    kind, _, parent = address.partition("/")
    for key, child in kinds.inline_children(kind).items() if kind.isidentifier() else ():
        for entry, _ in pairs_of(keys_of(patch_node).get(key)):
            old = entries.address_of(child, parent, str(entry.value))
            new = renaming.addresses.get(old)
            if new is not None and new.name.startswith(f"{parent}-"):  # otherwise the parent has another name
                renamed = _name_as_yaml(entry, new.name.removeprefix(f"{parent}-"))
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


def _former_of(moved: Node | None) -> list[str]:
    if isinstance(moved, SequenceNode):
        return [str(item.value) for item in moved.value]
    return [str(moved.value)] if isinstance(moved, ScalarNode) and moved.value not in ("", "null", "~") else []


def _add_move(text: str, line: int, name: str, former: str) -> str:
    """Adds the former name to `moved` of the document whose first key is in that line.

    name    the new name
    former  an address; of a use of a component a name
    """
    kind, slash, _ = former.partition("/")
    if slash and kinds.get(kind).home is Home.FILE:
        return text  # it has no object that could be moved
    nodes, positions = compose(text)
    node = _node_at(nodes, line)
    keys = keys_of(node)
    before = keys.get("moved")
    renamed = f"{kind}/{name}" if slash else name
    moved = [address for address in _former_of(before) if address != renamed] + [former]
    if before is not None or getattr(node, "flow_style", False):
        return patch.patch_text(text, line, ("moved",), list(moved))
    head = max((keys[key] for key in _HEAD if key in keys), key=lambda value: value.end_mark.line)
    first = node.value[0][0]
    at = text.find("\n", positions[head.end_mark.line] + head.end_mark.column)
    newline = "\r\n" if "\r\n" in text else "\n"
    added = f"{' ' * first.start_mark.column}moved: {emit.flow(moved)}{newline}"
    return text[: at + 1] + added + text[at + 1 :] if at >= 0 else f"{text}{newline}{added}"
