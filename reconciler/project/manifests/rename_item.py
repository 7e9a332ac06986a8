"""Renames one item of `for_each` in the texts of a project: its key in the list or map, and its former address."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from reconciler.model.address import Address
from reconciler.model.value import OMITTED
from reconciler.project.manifests import rename
from reconciler.project.manifests.for_each import KEY, VARIABLE
from reconciler.project.settings import environments
from reconciler.project.settings.config import FILE
from reconciler.project.yaml import emit, patch
from reconciler.project.yaml.patch import Unpatchable

_EACH_KEY: Final = re.compile(r"\$\{\{\s*each\.key\s*\}\}")
_HEAD: Final = ("kind", "component", "name", KEY, "when", "id", "ensure")  # keys that stand before `moved`


class Item(Struct, frozen=True):
    """The item that declares a resource.

    file, index   the manifest, and the number of its document
    source        the file with the list or map: the manifest, or the project file for a variable
    variable      its name; empty for a list or map in the manifest
    old, new      the keys
    """

    file: str
    index: int
    source: str
    variable: str
    old: str
    new: str


def find_item(
    manifests: Mapping[str, str], texts: Mapping[str, str], old: Address, new: Address, former: str
) -> Item | None:
    """The item whose resource has the address, or whose instance of a component has that name.

    texts   also of the project file and the environments, by path
    former  what `moved` names

    None if no document with `for_each` declares it. Raises Unpatchable, with the reason, if the key cannot be changed.
    """
    for file, text in manifests.items():
        for index, node in enumerate(rename.compose(text)[0]):
            keys = rename.keys_of(node)
            if KEY not in keys or not _is_kind(keys, old.kind):
                continue
            source, variable, items = _find_items(texts, file, keys[KEY])
            for key in _keys_of_items(items):
                if _name_of(keys, key) == old.name:
                    _check_source(texts, variable, former)
                    return Item(file, index, source, variable, key, _new_key(keys, new, former))
    return None


def rename_item(texts: Mapping[str, str], item: Item, former: str) -> dict[str, str]:
    """The texts that change: the list or map with the new key, and the manifest with `moved`. Raises Unpatchable."""
    changed = {item.source: _replace_key(texts[item.source], item)}
    text = changed.get(item.file, texts[item.file])
    changed[item.file] = _add_move(text, item, former)
    return changed


def _is_kind(keys: Mapping[str, Node], kind: str) -> bool:
    written = keys.get("component", keys.get("kind"))
    return isinstance(written, ScalarNode) and written.value == kind


def _find_items(texts: Mapping[str, str], file: str, written: Node) -> tuple[str, str, Node | None]:
    """The file with the items, the name of the variable, and the list or map."""
    variable = VARIABLE.fullmatch(written.value.strip()) if isinstance(written, ScalarNode) else None
    if variable is None:
        return file, "", written
    return FILE, variable[1], _find_default(rename.compose(texts[FILE])[0], variable[1])


def _find_default(nodes: Sequence[Node], name: str) -> Node | None:
    """The value of a variable in the project file."""
    for node in nodes:
        declared = rename.keys_of(rename.keys_of(node).get("variables", node)).get(name)
        within = rename.keys_of(declared) if declared is not None else {}
        return within.get("default", None if within else declared)
    return None


def _keys_of_items(items: Node | None) -> Iterator[str]:
    if isinstance(items, MappingNode):
        yield from (str(key.value) for key, _ in items.value)
    elif isinstance(items, SequenceNode):
        yield from (str(item.value) for item in items.value if isinstance(item, ScalarNode))


def _name_of(keys: Mapping[str, Node], key: str) -> str:
    name = keys.get("name")
    return _EACH_KEY.sub(lambda _: key, str(name.value)) if isinstance(name, ScalarNode) else ""


def _check_source(texts: Mapping[str, str], variable: str, former: str) -> None:
    """Raises Unpatchable if another file has the same items, too."""
    if not variable:
        return
    for file, text in texts.items():
        if file.startswith(f"{environments.FOLDER}/"):
            for node in rename.compose(text)[0]:
                if variable in rename.keys_of(rename.keys_of(node).get("variables", node)):
                    raise Unpatchable(
                        f"its for_each is the variable {variable}, which {FILE} and {file} set: change the key in "
                        f"each file, and add moved: {{NEWKEY: {former}}} beside for_each"
                    )


def _new_key(keys: Mapping[str, Node], new: Address, former: str) -> str:
    """The key with which the name becomes the new one. Raises Unpatchable."""
    template = str(keys["name"].value)
    before, *rest = _EACH_KEY.split(template)
    if len(rest) != 1 or "${{" in before + rest[0]:
        raise Unpatchable(f"its name is {template}, of which not only each.key is an expression")
    after = rest[0]
    if not new.name.startswith(before) or not new.name.endswith(after) or len(new.name) <= len(before + after):
        end = f" and ends with {after!r}" if after else ""
        raise Unpatchable(f"its name is {template}: a name from the same list begins with {before!r}{end}")
    key = new.name[len(before) : len(new.name) - len(after)]
    if any("each.key" in text for moved in _moves_of_entries(keys) for text in _texts(moved)):
        reason = "moved of an inline child uses each.key, and would name another former address"
        raise Unpatchable(f"{reason}; apply what it says, remove that line, and rename then")
    if where := next(_find_uses(keys), ""):
        raise Unpatchable(
            f"{where} uses each.key too, and would change; write that value in each item, as each.value.NAME, and "
            f"rename then, or change the key by hand and add moved: {{{key}: {former}}} beside for_each"
        )
    return key


def _find_uses(keys: Mapping[str, Node]) -> Iterator[str]:
    """The keys of the document, besides the name, whose values use the key of the item."""
    for key, node in keys.items():
        if key not in ("name", KEY, "moved") and any("each.key" in text for text in _texts(node)):
            yield key


def _moves_of_entries(keys: Mapping[str, Node]) -> Iterator[Node]:
    """The values of `moved` in the entries of inline children."""
    for name in rename.maps_of(keys):
        for _, entry in rename.pairs_of(keys[name]):
            yield from (node for key, node in rename.pairs_of(entry) if key.value == "moved")


def _texts(node: Node) -> Iterator[str]:
    if isinstance(node, ScalarNode):
        yield str(node.value)
    elif isinstance(node, SequenceNode):
        for item in node.value:
            yield from _texts(item)
    elif isinstance(node, MappingNode):
        for _, item in node.value:
            yield from _texts(item)


def _replace_key(text: str, item: Item) -> str:
    nodes, positions = rename.compose(text)
    items = _find_default(nodes, item.variable) if item.variable else rename.keys_of(nodes[item.index])[KEY]
    if isinstance(items, MappingNode):
        node = next(key for key, _ in items.value if str(key.value) == item.old)
    elif isinstance(items, SequenceNode):
        node = next(entry for entry in items.value if str(entry.value) == item.old)
    else:
        raise Unpatchable("its layout does not allow it")
    put = item.new if getattr(node, "style", None) in ("'", '"') else emit.scalar(item.new)
    return rename.splice(text, [rename.replace_in(node, text, positions, item.old, put)])


def _add_move(text: str, item: Item, former: str) -> str:
    """Adds the former address to the map `moved`, by the new key. What the old key had moves with it."""
    node = rename.compose(text)[0][item.index]
    line = node.start_mark.line + 1
    written = rename.keys_of(node).get("moved")
    if written is None:
        return _insert_move(text, node, {item.new: former})
    if not isinstance(written, MappingNode):
        raise Unpatchable(f"moved is no map from the keys of for_each: write moved: {{KEY: {former}}}")
    before = rename.keys_of(written).get(item.old)
    if before is None:
        return patch.patch_text(text, line, ("moved", item.new), former)
    earlier = [str(entry.value) for entry in before.value] if isinstance(before, SequenceNode) else [str(before.value)]
    text = patch.patch_text(text, line, ("moved", item.old), OMITTED)
    return patch.patch_text(text, line, ("moved", item.new), [*earlier, former])


def _insert_move(text: str, node: Node, moved: dict[str, str]) -> str:
    """Adds `moved` on a line behind the head of the document: before the next key, and the comments above that."""
    _, positions = rename.compose(text)
    pairs = rename.pairs_of(node)
    last = max(index for index, (key, _) in enumerate(pairs) if key.value in _HEAD)
    if getattr(node, "flow_style", False) or last + 1 == len(pairs):
        return patch.insert_key(text, node.start_mark.line + 1, _HEAD, "moved", moved)
    first, following = pairs[0][0], pairs[last + 1][0]
    line = following.start_mark.line
    lines = text.split("\n")
    while lines[line - 1].lstrip().startswith("#"):
        line -= 1
    newline = "\r\n" if "\r\n" in text else "\n"
    added = f"{' ' * first.start_mark.column}moved: {emit.flow(moved)}{newline}"
    return text[: positions[line]] + added + text[positions[line] :]
