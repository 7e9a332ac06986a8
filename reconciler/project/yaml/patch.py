"""Patches values in a YAML file and keeps every other byte: comments, order, quotes and blank lines.

Works on one document at a time, by libyaml's positions. The result is read again and must have exactly the requested
values; otherwise the patch is refused.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

import yaml as libyaml
from msgspec import Struct
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from reconciler.languages.yaml import reader as yaml
from reconciler.model.manifest import Path
from reconciler.model.value import OMITTED, Json, canonical, value_at
from reconciler.project.yaml import emit

_MARKER: Final = re.compile(r"^---(?=[ \t\r\n]|$)", re.MULTILINE)
_COMMENT: Final = re.compile(r"(?:^|\s)#")
_ODD_BREAKS: Final = re.compile("\r(?!\n)|[\x85\u2028\u2029]")  # line breaks to libyaml, but not to most editors


class Unpatchable(Exception):
    """The value cannot be changed without other changes to the file. The text is the reason."""


def patch_text(text: str, line: int, path: Path, value: Json) -> str:
    """Sets the value at a path of the document whose first key is in that line (from 1). Returns the new text.

    GONE removes the key. Existing maps and lists are changed item by item. Raises Unpatchable.
    """
    if _ODD_BREAKS.search(text):
        raise Unpatchable("the file has unusual line breaks")
    start, end = _document(text, line)
    before = text[start:end]
    whole = _value(before)
    while value is not OMITTED and len(path) > 1 and value_at(whole, path[:-1], OMITTED) in (None, OMITTED):
        path, value = path[:-1], {str(path[-1]): value}
    changed = before
    try:
        for edit in _edits(whole, path, value):
            changed = _splice(changed, edit)
    except (ValueError, IndexError, libyaml.YAMLError):
        raise Unpatchable("its layout does not allow it") from None
    wanted = _set_value(whole, path, value)
    if canonical(_value(changed)) != canonical(wanted):
        raise Unpatchable("its layout does not allow it")
    return text[:start] + changed + text[end:]


def insert_key(text: str, line: int, behind: Collection[str], name: str, value: Json) -> str:
    """Adds a key to the top of the document whose first key is in that line, on a line behind the last of some keys.

    Raises Unpatchable.
    """
    start, end = _document(text, line)
    node = _compose_one(text[start:end])
    if node.flow_style:
        return patch_text(text, line, (name,), value)
    offsets = _offsets(text[start:end])
    head = max((item for key, item in node.value if key.value in behind), key=lambda item: item.end_mark.line)
    at = text.find("\n", start + offsets[head.end_mark.line] + head.end_mark.column, end)
    newline = "\r\n" if "\r\n" in text else "\n"
    added = f"{' ' * node.value[0][0].start_mark.column}{name}: {emit.flow(value)}{newline}"
    at, added = (at + 1, added) if at >= 0 else (end, newline + added)
    changed = text[:at] + added + text[at:]
    whole = _value(text[start:end])
    if canonical(_value(changed[start : end + len(added)])) != canonical(_set_value(whole, (name,), value)):
        raise Unpatchable("its layout does not allow it")
    return changed


def _compose_one(text: str) -> MappingNode:
    try:
        node = libyaml.compose(text, Loader=libyaml.CSafeLoader)
    except libyaml.YAMLError:
        raise Unpatchable("its layout does not allow it") from None
    if not isinstance(node, MappingNode):
        raise Unpatchable("its layout does not allow it")
    return node


def patch_unordered(
    text: str,
    line: int,
    path: Path,
    old: Sequence[Json],
    new: Sequence[Json],
    pairs: Mapping[int, int],
    key: str | None = None,
) -> str:
    """Sets a list whose order is not significant, as `patch_text` does. `old` is the list in the text.

    Items that remain keep their order, spelling and comments; new ones are last.

    pairs   position of an item in `old` → position of the same item in `new`
    key     the field that identifies an item, if items are maps: their other fields get the values in `new`
    """
    kept = {at: item for at, item in enumerate(old) if at in pairs}
    same = [item if key is None else {**new[pairs[at]], key: item[key]} for at, item in kept.items()]
    paired = {*pairs.values()}
    added = [item for at, item in enumerate(new) if at not in paired]
    if key is not None:  # removed on their own, so that no map becomes another one and gets its comments
        text = patch_text(text, line, path, [*kept.values()] if kept else [*old, *added])
    return patch_text(text, line, path, [*same, *added])


def _document(text: str, line: int) -> tuple[int, int]:
    """Offsets of the document's beginning, after its `---` or a byte order mark, and of its end."""
    offset = _offsets(text)[line - 1]
    start, end = int(text.startswith("\ufeff")), len(text)
    for mark in _MARKER.finditer(text):
        if mark.end() <= offset:
            start = mark.end()
        elif mark.start() > offset:
            return start, mark.start()
    return start, end


def _value(text: str) -> Json:
    reading = yaml.read(text.encode(), "")
    if reading.problems or len(reading.documents) != 1:
        raise Unpatchable("the result would not be valid YAML")
    return reading.documents[0].value


# --- the edits, one value after the other -----------------------------------------------------------------------------


class _Edit(Struct, frozen=True):
    """A new value at a path. `insert`: insert it before the item at the path, or last."""

    path: Path
    value: Json
    insert: bool = False


def _edits(whole: Json, path: Path, value: Json) -> Iterator[_Edit]:
    old = value_at(whole, path, OMITTED)
    if (
        value is not OMITTED
        and isinstance(old, dict)
        and isinstance(value, dict)
        and old
        and not _is_source(old, value)
    ):
        for key in (*old, *(added for added in value if added not in old)):
            if key not in old or key not in value or canonical(old[key]) != canonical(value[key]):
                yield from _edits(whole, (*path, key), value.get(key, OMITTED))
    elif value is not OMITTED and isinstance(old, list) and isinstance(value, list) and old and value:
        yield from _item_edits(whole, path, old, value)
    elif value is not OMITTED or old is not OMITTED:
        yield _Edit(path, value)


def _item_edits(whole: Json, path: Path, old: list[Json], new: list[Json]) -> Iterator[_Edit]:
    """Edits of a list, from its end, so that positions before an edit stay valid."""
    matcher = difflib.SequenceMatcher(None, [*map(canonical, old)], [*map(canonical, new)], autojunk=False)
    for word, i1, i2, j1, j2 in reversed(matcher.get_opcodes()):
        if word == "equal":
            continue
        same = min(i2 - i1, j2 - j1)
        for index in range(i2 - 1, i1 + same - 1, -1):
            yield _Edit((*path, index), OMITTED)
        for item in reversed(new[j1 + same : j2]):
            yield _Edit((*path, i1 + same), item, insert=True)
        for at in range(same - 1, -1, -1):
            before, item, place = old[i1 + at], new[j1 + at], (*path, i1 + at)
            # A list in a list may start on the line of another dash, so that nothing can be put before its first item.
            is_nested = isinstance(before, list) and isinstance(item, list)
            yield from [_Edit(place, item)] if is_nested else _edits(whole, place, item)


def _is_source(old: dict[str, Json], new: dict[str, Json]) -> bool:
    """Whether one of the maps is a single value such as `{ref: …}`, which is replaced as a whole."""
    return (emit.is_flow(old) or emit.is_flow(new)) and old.keys() != new.keys()


def _set_value(whole: Json, path: Path, value: Json) -> Json:
    """Returns the document with the value at the path. Creates missing maps on the way."""
    if not path:
        return value
    head, *rest = path
    if isinstance(whole, list) and isinstance(head, int):
        return [_set_value(item, tuple(rest), value) if at == head else item for at, item in enumerate(whole)]
    inside = dict(whole) if isinstance(whole, dict) else {}
    if not rest and value is OMITTED:
        inside.pop(str(head), None)
        return inside
    return {**inside, str(head): _set_value(inside.get(str(head)), tuple(rest), value)}


# --- in the text ------------------------------------------------------------------------------------------------------


def _splice(text: str, edit: _Edit) -> str:
    root = libyaml.compose(text, Loader=libyaml.CSafeLoader)
    where = _Text(text)
    parent, node, key = _find(root, edit)
    last = edit.path[-1]
    if edit.insert:
        assert isinstance(parent, SequenceNode)
        return where.insert_item(parent, int(last), edit.value)
    if isinstance(parent, SequenceNode) and node is not None:
        return where.remove_item(parent, int(last)) if edit.value is OMITTED else where.replace_item(node, edit.value)
    if not isinstance(parent, MappingNode):
        raise Unpatchable("the value around it is not a map")
    if edit.value is OMITTED:
        return where.remove_key(parent, str(last))
    if node is None or key is None:
        return where.add_key(parent, str(last), edit.value)
    return where.replace_value(key, node, edit.value, flow=bool(parent.flow_style))


def _find(root: Node | None, edit: _Edit) -> tuple[Node, Node | None, Node | None]:
    """Returns the parent node, the node at the path and the node of its key."""
    if root is None or not edit.path:
        raise Unpatchable("there is no document")
    parent, node, key = root, root, None
    for depth, part in enumerate(edit.path):
        parent, key, found = node, None, None
        if isinstance(parent, MappingNode):
            key, found = next(((name, child) for name, child in parent.value if name.value == part), (None, None))
        elif isinstance(parent, SequenceNode) and isinstance(part, int) and part < len(parent.value):
            found = parent.value[part]
        if found is None:
            if depth + 1 < len(edit.path):
                raise Unpatchable("the value around it does not exist")
            return parent, None, None
        node = found
    return parent, node, key


class _Text:
    """The text of a document, with positions as offsets. Each change returns the new text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts = _offsets(text)
        self._newline = "\r\n" if "\r\n" in text else "\n"

    def start(self, node: Node) -> int:
        return self._starts[node.start_mark.line] + node.start_mark.column

    def end(self, node: Node) -> int:
        """Offset after the last character of a node. libyaml's own mark is at the next node."""
        if isinstance(node, (MappingNode, SequenceNode)) and not node.flow_style and node.value:
            last = node.value[-1]
            return self.end(last[1] if isinstance(last, tuple) else last)
        end = self._starts[node.end_mark.line] + node.end_mark.column
        if isinstance(node, ScalarNode) and node.style in ("|", ">"):
            return self.start(node) + len(self.text[self.start(node) : end].rstrip())
        return end

    def splice(self, start: int, end: int, put: str) -> str:
        return self.text[:start] + put.replace("\n", self._newline) + self.text[end:]

    def line_end(self, offset: int) -> int:
        """Offset of the end of the line, without its line break."""
        found = self.text.find("\n", offset)
        end = len(self.text) if found < 0 else found
        return end - 1 if self.text[end - 1 : end] == "\r" else end

    def line_start(self, offset: int) -> int:
        return self.text.rfind("\n", 0, offset) + 1

    def next_line(self, offset: int) -> int:
        found = self.text.find("\n", offset)
        return len(self.text) if found < 0 else found + 1

    # --- changes

    def replace_item(self, node: Node, value: Json) -> str:
        """Replaces an item, or a value that stays on its line."""
        start, end = self.start(node), self.end(node)
        self._keep_comments(start, end)
        return self.splice(start, end, _inside(value))

    def replace_value(self, key: Node, node: Node, value: Json, *, flow: bool) -> str:
        start, end, colon = self.start(node), self.end(node), self.text.index(":", self.end(key)) + 1
        if not flow and not _is_one_line(value):
            start, end = self.start(key), max(end, colon)
            self._keep_comments(start, end)
            return self.splice(start, end, _entry(str(key.value), value, key.start_mark.column))
        put = _inside(value) if flow else emit.flow(value)
        if start == end or (node.start_mark.line != key.end_mark.line and not flow):  # empty, or below the key
            start, end, put = colon, max(end, colon), f" {put}"
        self._keep_comments(start, end)
        is_block = isinstance(node, (MappingNode, SequenceNode)) and not node.flow_style
        if value in ([], {}) and is_block and "\n" in self.text[start:end]:
            end = self.line_end(end)  # a comment on the last removed line is removed too
        return self.splice(start, end, put)

    def add_key(self, parent: MappingNode, name: str, value: Json) -> str:
        if parent.flow_style:
            if not parent.value:
                return self.splice(
                    self.start(parent), self.end(parent), "{" + f"{_inside(name)}: {_inside(value)}" + "}"
                )
            at = self.end(parent.value[-1][1])
            return self.splice(at, at, f", {_inside(name)}: {_inside(value)}")
        first, last = parent.value[0][0], parent.value[-1]
        at = self.line_end(max(self.end(last[1]), self.end(last[0])))
        indent = first.start_mark.column
        return self.splice(at, at, "\n" + " " * indent + _entry(name, value, indent))

    def remove_key(self, parent: MappingNode, name: str) -> str:
        index = next((at for at, (key, _) in enumerate(parent.value) if key.value == name), None)
        if index is None:
            return self.text
        key, node = parent.value[index]
        start, end = self.start(key), max(self.end(node), self.text.index(":", self.end(key)) + 1)
        if len(parent.value) == 1:
            return self._empty_parent(parent, "{}", end)
        following = self.start(parent.value[index + 1][0]) if index + 1 < len(parent.value) else self.end(parent)
        if parent.flow_style:
            return self._remove_from_flow(
                self.end(parent.value[index - 1][1]) if index else None, start, end, following
            )
        self._keep_comments(start, end)
        if self.text[self.line_start(start) : start].strip():  # the first key after a dash
            self._keep_comments(self.line_end(end), following)
            return self.splice(start, following, "")
        return self.splice(self.line_start(start), self.next_line(end), "")

    def _empty_parent(self, parent: Node, put: str, end: int) -> str:
        """Replaces a map or list without remaining items by an empty one on the line of its key."""
        if getattr(parent, "flow_style", False):
            self._keep_comments(self.start(parent), self.end(parent))
            return self.splice(self.start(parent), self.end(parent), put)
        self._keep_comments(self.start(parent), end)
        before = self.text[: self.start(parent)].rstrip()
        if "\n" in self.text[len(before) : self.start(parent)]:
            end = self.line_end(end)  # its comment is removed too
        return self.splice(len(before), end, f" {put}") if before else self.splice(self.start(parent), end, put)

    def _remove_from_flow(self, before: int | None, start: int, end: int, following: int) -> str:
        """Removes an item between brackets. `before`: offset of the end of the previous item, if there is one."""
        first, last = (before, end) if before is not None else (start, following)
        rest = self.text[end : self.line_end(end)].lstrip(", \t")
        is_alone = not self.text[self.line_start(start) : start].strip() and (not rest or rest.startswith("#"))
        if is_alone and (rest or _COMMENT.search(self.text[first:last])):
            self._keep_comments(start, end)
            return self.splice(self.line_start(start), self.next_line(end), "")
        self._keep_comments(first, last)
        return self.splice(first, last, "")

    def remove_item(self, parent: SequenceNode, index: int) -> str:
        node = parent.value[index]
        start, end = self.start(node), self.end(node)
        if len(parent.value) == 1:
            return self._empty_parent(parent, "[]", end)
        if parent.flow_style:
            before = self.end(parent.value[index - 1]) if index else None
            following = self.start(parent.value[index + 1]) if index + 1 < len(parent.value) else self.end(parent)
            return self._remove_from_flow(before, start, end, following)
        self._keep_comments(start, end)
        if self.text[self.line_start(start) : start].strip() != "-":
            raise Unpatchable("its layout does not allow it")
        return self.splice(self.line_start(start), self.next_line(end), "")

    def insert_item(self, parent: SequenceNode, index: int, value: Json) -> str:
        put = _inside(value)
        if parent.flow_style:
            if index:
                at = self.end(parent.value[index - 1])
                return self.splice(at, at, f", {put}")
            at = self.start(parent.value[0])
            return self.splice(at, at, f"{put}, ")
        dash = " " * parent.start_mark.column + "- "
        if index:
            at = self.line_end(self.end(parent.value[index - 1]))
            return self.splice(at, at, f"\n{dash}{put}")
        at = self.line_start(self.start(parent.value[0]))
        return self.splice(at, at, f"{dash}{put}\n")

    def _keep_comments(self, start: int, end: int) -> None:
        if "\n" in self.text[start:end] and _COMMENT.search(self.text[start:end]):
            raise Unpatchable("a comment inside the value would be lost")


def _offsets(text: str) -> list[int]:
    return [0, *(found.end() for found in re.finditer("\n", text))]


def _is_one_line(value: Json) -> bool:
    if isinstance(value, str):
        return "\n" not in value
    return not isinstance(value, (dict, list)) or emit.is_flow(value)


def _inside(value: Json) -> str:
    """Renders a value as an item in brackets, a form that is valid everywhere."""
    return emit.flow([value])[1:-1]


def _entry(name: str, value: Json, column: int) -> str:
    """Renders a key with its value, indented to the column of the key."""
    return "\n".join(emit.block({name: value}, " " * column)).lstrip(" ")
