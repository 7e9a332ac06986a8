"""Changes values in a YAML file and leaves every other byte as it is: comments, order, quotes and blank lines.

Works on one document at a time, by the places that libyaml tells of. What cannot be done for certain is refused: the
result is read again, and says exactly what was asked for or is not handed out.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import yaml as libyaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from reconciler.model.manifest import Path
from reconciler.model.value import Json, canonical
from reconciler.planning.drift_acceptance import OMITTED
from reconciler.project.yaml import emit
from reconciler.project.yaml import reader as yaml

_MARKER: Final = re.compile(r"^---(?=[ \t\r\n]|$)", re.MULTILINE)
_COMMENT: Final = re.compile(r"(?:^|\s)#")
_ODD_BREAKS: Final = re.compile("\r(?!\n)|[\x85\u2028\u2029]")  # lines to libyaml, and to few others


class Unpatchable(Exception):
    """The change cannot be made without touching something else; says why."""


def patch_text(text: str, line: int, path: Path, value: Json) -> str:
    """The file's text with another value at a path of the document whose first key stands in that line, from 1.

    GONE takes the key away with its value. Maps and lists that were there are changed item by item.
    """
    if _ODD_BREAKS.search(text):
        raise Unpatchable("the file has odd line breaks")
    start, end = _document(text, line)
    before = text[start:end]
    whole = _value(before)
    while value is not OMITTED and len(path) > 1 and _at(whole, path[:-1]) in (None, OMITTED):
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


def _document(text: str, line: int) -> tuple[int, int]:
    """Where the document begins, behind its `---`, and where it ends."""
    offset = _offsets(text)[line - 1]
    start, end = 0, len(text)
    for mark in _MARKER.finditer(text):
        if mark.end() <= offset:
            start = mark.end()
        elif mark.start() > offset:
            return start, mark.start()
    return start, end


def _value(text: str) -> Json:
    reading = yaml.read(text.encode(), "")
    if reading.problems or len(reading.documents) != 1:
        raise Unpatchable("it would no longer be YAML")
    return reading.documents[0].value


# --- what is to be done, one value after the other --------------------------------------------------------------------


@dataclass(frozen=True)
class _Edit:
    """`insert`: the value comes before the item at the path, or last."""

    path: Path
    value: Json
    insert: bool = False


def _edits(whole: Json, path: Path, value: Json) -> Iterator[_Edit]:
    old = _at(whole, path)
    if (
        value is not OMITTED
        and isinstance(old, dict)
        and isinstance(value, dict)
        and old
        and not _is_source(old, value)
    ):
        for key in (*old, *(each for each in value if each not in old)):
            if key not in old or key not in value or canonical(old[key]) != canonical(value[key]):
                yield from _edits(whole, (*path, key), value.get(key, OMITTED))
    elif value is not OMITTED and isinstance(old, list) and isinstance(value, list) and old and value:
        yield from _item_edits(whole, path, old, value)
    elif value is not OMITTED or old is not OMITTED:
        yield _Edit(path, value)


def _item_edits(whole: Json, path: Path, old: list[Json], new: list[Json]) -> Iterator[_Edit]:
    """From the end, so that the places before stay."""
    matcher = difflib.SequenceMatcher(None, [*map(canonical, old)], [*map(canonical, new)], autojunk=False)
    for word, i1, i2, j1, j2 in reversed(matcher.get_opcodes()):
        if word == "equal":
            continue
        same = min(i2 - i1, j2 - j1)
        for index in range(i2 - 1, i1 + same - 1, -1):
            yield _Edit((*path, index), OMITTED)
        for each in reversed(new[j1 + same : j2]):
            yield _Edit((*path, i1 + same), each, insert=True)
        for at in range(same - 1, -1, -1):
            yield from _edits(whole, (*path, i1 + at), new[j1 + at])


def _is_source(old: dict[str, Json], new: dict[str, Json]) -> bool:
    """`{ref: …}` is a value, and no map, but beside another one."""
    return (emit.is_flow(old) or emit.is_flow(new)) and old.keys() != new.keys()


def _at(value: Json, path: Path) -> Any:
    for part in path:
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            return OMITTED
    return value


def _set_value(whole: Json, path: Path, value: Json) -> Json:
    """The document with the value at the path; maps on the way that are not there are made."""
    if not path:
        return value
    head, *rest = path
    if isinstance(whole, list) and isinstance(head, int):
        return [_set_value(each, tuple(rest), value) if at == head else each for at, each in enumerate(whole)]
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
        raise Unpatchable("what surrounds it is no map")
    if edit.value is OMITTED:
        return where.remove_key(parent, str(last))
    if node is None or key is None:
        return where.add_key(parent, str(last), edit.value)
    return where.replace_value(key, node, edit.value, flow=bool(parent.flow_style))


def _find(root: Node | None, edit: _Edit) -> tuple[Node, Node | None, Node | None]:
    """What surrounds the place, what is there, and its key."""
    if root is None or not edit.path:
        raise Unpatchable("there is no document")
    parent, node, key = root, root, None
    for depth, part in enumerate(edit.path):
        parent, key, found = node, None, None
        if isinstance(parent, MappingNode):
            key, found = next(((name, each) for name, each in parent.value if name.value == part), (None, None))
        elif isinstance(parent, SequenceNode) and isinstance(part, int) and part < len(parent.value):
            found = parent.value[part]
        if found is None:
            if depth + 1 < len(edit.path):
                raise Unpatchable("what surrounds it is not there")
            return parent, None, None
        node = found
    return parent, node, key


class _Text:
    """A document's text with its places as offsets."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts = _offsets(text)
        self._newline = "\r\n" if "\r\n" in text else "\n"

    def start(self, node: Node) -> int:
        return self._starts[node.start_mark.line] + node.start_mark.column

    def end(self, node: Node) -> int:
        """Behind its last character: libyaml ends a block where the next thing begins."""
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
        """Where the line ends, without what breaks it."""
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
        """An item, or a value that stays on its line."""
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
        if start == end or (node.start_mark.line != key.end_mark.line and not flow):  # nothing, or below the key
            start, end, put = colon, max(end, colon), f" {put}"
        self._keep_comments(start, end)
        is_block = isinstance(node, (MappingNode, SequenceNode)) and not node.flow_style
        if value in ([], {}) and is_block and "\n" in self.text[start:end]:
            end = self.line_end(end)  # what is said of the last that goes, goes with it
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
        if self.text[self.line_start(start) : start].strip():  # the first key behind a dash
            self._keep_comments(self.line_end(end), following)
            return self.splice(start, following, "")
        return self.splice(self.line_start(start), self.next_line(end), "")

    def _empty_parent(self, parent: Node, put: str, end: int) -> str:
        """A map or list with nothing left in it stays on the line of its key."""
        if getattr(parent, "flow_style", False):
            self._keep_comments(self.start(parent), self.end(parent))
            return self.splice(self.start(parent), self.end(parent), put)
        self._keep_comments(self.start(parent), end)
        before = self.text[: self.start(parent)].rstrip()
        if "\n" in self.text[len(before) : self.start(parent)]:
            end = self.line_end(end)  # what is said of it goes with it
        return self.splice(len(before), end, f" {put}") if before else self.splice(self.start(parent), end, put)

    def _remove_from_flow(self, before: int | None, start: int, end: int, following: int) -> str:
        """Without what stands between brackets from the start to the end; `before` is the end of what comes before."""
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
            raise Unpatchable("a comment inside it would be lost")


def _offsets(text: str) -> list[int]:
    return [0, *(found.end() for found in re.finditer("\n", text))]


def _is_one_line(value: Json) -> bool:
    if isinstance(value, str):
        return "\n" not in value
    return not isinstance(value, (dict, list)) or emit.is_flow(value)


def _inside(value: Json) -> str:
    """As an item of a list in brackets: what may stand there may stand anywhere."""
    return emit.flow([value])[1:-1]


def _entry(name: str, value: Json, column: int) -> str:
    """A key with its value, whose further lines are indented to the key's column."""
    return "\n".join(emit.block({name: value}, " " * column)).lstrip(" ")


def order_like(old: Sequence[Json], new: Sequence[Json]) -> list[Json]:
    """The same items, those that were there before in the order they had."""
    left = list(new)
    kept = []
    for each in old:
        if each in left:
            left.remove(each)
            kept.append(each)
    return [*kept, *left]
