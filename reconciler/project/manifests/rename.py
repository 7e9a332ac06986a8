"""Renames a resource in the texts of a project: its manifest, references to it, and patches of environments.

Changes only the characters of names and references, so that comments, order, quotes and layout stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Any, Final

import yaml as libyaml
from msgspec import Struct
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from reconciler import kinds
from reconciler.model.address import Address
from reconciler.model.kind import Home
from reconciler.project.yaml import emit, patch
from reconciler.project.yaml.patch import Unpatchable

_EXPRESSION: Final = re.compile(r"(\$?)(\$\{\{\s*)([^{}\s]+)(\s*\}\})")
_ODD_BREAKS: Final = re.compile("\r(?!\n)|[\x85\u2028\u2029\ufeff]")  # would shift libyaml's positions
_MOVED: Final = re.compile(r"""\bmoved["']?:\s*(\[[^\]]*\]|\S+)""")
_ITEM: Final = re.compile(r"""\s*- ["']?[A-Za-z0-9]+/[^\s"']+["']?\s*""")  # of a list of former addresses
_HEAD: Final = ("kind", "name", "id", "ensure")  # keys that stand before `moved`

_Edit = tuple[int, int, str]  # offsets of the replaced characters, and their replacement


class Renaming(Struct, frozen=True):
    """A new name of a declared resource. `declared`: all addresses, since a name may contain dots."""

    old: Address
    new: Address
    declared: Collection[Address]

    def rename_reference(self, text: str) -> str | None:
        """The new text of a reference such as `Kind/name.output`; None if it refers to another resource."""
        kind, slash, rest = text.partition("/")
        if not slash or kind != self.old.kind:
            return None
        name = rest
        while Address(kind, name) not in self.declared:
            name, dot, _ = name.rpartition(".")
            if not dot:
                return None
        return f"{self.new}{rest[len(name) :]}" if name == self.old.name else None


def rename_in_manifests(text: str, renaming: Renaming) -> str:
    """Renames the resource and the references to it in a file of manifests. Raises Unpatchable."""
    nodes, positions = _compose(text)
    edits: list[_Edit] = []
    declaring = None
    for index, node in enumerate(nodes):
        keys = _keys(node)
        for key in ("spec", "for_each"):
            if key in keys:
                edits += _rename_references(keys[key], text, positions, renaming)
        if _declares(node, renaming.old):
            declaring = index
            name = keys["name"]
            edits.append(_replace(name, text, positions, renaming.old.name, _name_as_yaml(name, renaming)))
    changed = _splice(text, edits)
    return changed if declaring is None else _add_move(changed, declaring, renaming)


def declares(text: str, address: Address) -> bool:
    """Whether a document of the file declares the address literally, without `for_each`. Raises Unpatchable."""
    return any(_declares(node, address) for node in _compose(text)[0])


def rename_in_settings(text: str, renaming: Renaming) -> str:
    """Renames the resource in the project file or an environment: patches, defaults and known drift.

    Raises Unpatchable.
    """
    nodes, positions = _compose(text)
    edits: list[_Edit] = []
    for node in nodes:
        for key, value in node.value if isinstance(node, MappingNode) else ():
            if key.value == str(renaming.old):
                edits.append(_replace(key, text, positions, str(renaming.old), str(renaming.new)))
            if "/" in key.value or key.value == "defaults":
                edits += _rename_references(value, text, positions, renaming)
            if key.value == "drift":
                edits += _rename_known_drift(value, text, positions, renaming)
    return _splice(text, edits)


def find_mentions(text: str, address: Address) -> Iterator[int]:
    """Yields the numbers of the lines that contain the address, except as a former one."""
    mention = re.compile(rf"(?<![A-Za-z0-9/]){re.escape(str(address))}(?![A-Za-z0-9_-])")
    for number, line in enumerate(text.split("\n"), 1):
        if mention.search(_MOVED.sub("", line)) and not _ITEM.fullmatch(line):
            yield number


def _compose(text: str) -> tuple[list[Node], list[int]]:
    """The documents of a file, and the offsets of its lines."""
    body = text.removeprefix("\ufeff")
    if _ODD_BREAKS.search(body):
        raise Unpatchable("the file has unusual line breaks")
    try:
        nodes = list(libyaml.compose_all(body, Loader=libyaml.CSafeLoader))
    except libyaml.YAMLError:
        raise Unpatchable("its layout does not allow it") from None
    return nodes, [len(text) - len(body), *(found.end() for found in re.finditer("\n", text))]


def _keys(node: Node) -> dict[Any, Node]:
    return {key.value: value for key, value in node.value} if isinstance(node, MappingNode) else {}


def _declares(node: Node, address: Address) -> bool:
    keys = _keys(node)
    kind, name = keys.get("kind"), keys.get("name")
    return (
        isinstance(kind, ScalarNode)
        and isinstance(name, ScalarNode)
        and (kind.value, name.value) == address
        and "for_each" not in keys
    )


def _name_as_yaml(node: Node, renaming: Renaming) -> str:
    """The new name as it stands in the file: in quotes if it would not be text without them."""
    name = renaming.new.name
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
        keys = _keys(node)
        if list(keys) == ["ref"] and isinstance(ref := keys["ref"], ScalarNode):
            if (renamed := renaming.rename_reference(ref.value)) is not None:
                yield _replace(ref, text, positions, ref.value, renamed)
            return
        for value in keys.values():
            yield from _rename_references(value, text, positions, renaming)


def _rename_known_drift(node: Node, text: str, positions: list[int], renaming: Renaming) -> Iterator[_Edit]:
    ignored = _keys(node).get("ignore")
    for item in ignored.value if isinstance(ignored, SequenceNode) else ():
        match = _keys(item).get("match")
        if isinstance(match, ScalarNode) and (renamed := renaming.rename_reference(match.value)) is not None:
            yield _replace(match, text, positions, match.value, renamed)


def _span(node: Node, positions: list[int]) -> tuple[int, int]:
    return (
        positions[node.start_mark.line] + node.start_mark.column,
        positions[node.end_mark.line] + node.end_mark.column,
    )


def _replace(node: Node, text: str, positions: list[int], old: str, new: str) -> _Edit:
    start, end = _span(node, positions)
    at = text.find(old, start, end)
    if at < 0:
        raise Unpatchable("a name is written with escapes")
    return at, at + len(old), new


def _splice(text: str, edits: list[_Edit]) -> str:
    for start, end, put in sorted(set(edits), reverse=True):  # an alias of YAML leads to one node twice
        text = text[:start] + put + text[end:]
    return text


def _add_move(text: str, index: int, renaming: Renaming) -> str:
    """Adds the former address to `moved` of the document with this number."""
    if kinds.get(renaming.old.kind).home is Home.FILE:
        return text  # it has no object that could be moved
    node = _compose(text)[0][index]
    before = _keys(node).get("moved")
    written = [item.value for item in before.value] if isinstance(before, SequenceNode) else []
    written += [before.value] if isinstance(before, ScalarNode) and before.value not in ("", "null", "~") else []
    moved = [address for address in written if address != str(renaming.new)] + [str(renaming.old)]
    line = node.start_mark.line + 1
    if before is not None:
        return patch.patch_text(text, line, ("moved",), list(moved))
    return patch.insert_key(text, line, _HEAD, "moved", list(moved))
