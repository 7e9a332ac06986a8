"""The syntax tree of a compiled expression, with the line and column of each node. Pure.

The library serializes it as messages of Protocol Buffers (`cel/expr/checked.proto` and `cel/expr/syntax.proto`), whose
few fields are read here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct

from reconciler.languages.cel_cost import read_varint

_CONSTANTS: Final = {1: "null", 2: "bool", 3: "int", 4: "uint", 5: "double", 6: "string", 7: "bytes"}
_SHAPES: Final = {3: "constant", 4: "name", 5: "member", 6: "call", 7: "list", 8: "map", 9: "macro"}
_PARTS: Final = {
    "member": (1,),
    "call": (1, 3),
    "list": (1,),
    "macro": (2, 4, 6, 7),  # the range, the initial value, the step, the result
}
_NAMES: Final = {"name": 1, "member": 2, "has": 2, "call": 2, "macro": 1}


class Node(Struct, frozen=True):
    """One expression within another.

    shape      constant, name, member, has (whether there is a member), call, list, map or macro
    name       of a variable, member or function; of a constant its type; of a macro that of the item
    offset     of the node in the text, in characters
    parts      the nodes in it
    is_method  the first part is the value whose method is called
    others     the names of the second item and of the accumulated value of a macro
    """

    shape: str
    name: str
    offset: int
    parts: tuple[Node, ...] = ()
    is_method: bool = False
    others: tuple[str, str] = ("", "")


def parse_tree(program: bytes) -> Node:
    """The tree of a checked expression, as `serialize` of the library returns it."""
    checked = dict(_read_fields(_find(program, 2)))
    positions: dict[int, int] = {}
    for number, entry in _read_fields(checked[5]):
        if number == 4:
            values = dict(_read_fields(entry))
            positions[values.get(1, 0)] = values.get(2, 0)
    return _parse_node(checked[4], positions)


def _parse_node(message: bytes, positions: dict[int, int]) -> Node:
    fields = list(_read_fields(message))
    offset = positions.get(next((value for number, value in fields if number == 2), 0), 0)
    number, content = next(((number, value) for number, value in fields if number in _SHAPES), (3, b""))
    shape = _SHAPES[number]
    inside = list(_read_fields(content))
    if shape == "constant":
        return Node(shape, _CONSTANTS[inside[0][0]] if inside else "null", offset)
    if shape == "map":
        entries = [part for number, entry in inside if number == 2 for part in _read_fields(entry)]
        return Node(shape, "", offset, tuple(_parse_node(part, positions) for of, part in entries if of in (3, 4)))
    parts = tuple(
        _parse_node(part, positions) for wanted in _PARTS.get(shape, ()) for of, part in inside if of == wanted
    )
    if shape == "member" and any(of == 3 for of, _ in inside):
        shape = "has"
    names = {of: value.decode(errors="replace") for of, value in inside if of in (1, 2, 3, 8) and type(value) is bytes}
    name = names.get(_NAMES.get(shape, 0), "")
    is_method = shape == "call" and any(of == 1 for of, _ in inside)
    return Node(shape, name, offset, parts, is_method, (names.get(8, ""), names.get(3, "")))


def _find(message: bytes, wanted: int) -> Any:
    return next((value for number, value in _read_fields(message) if number == wanted), b"")


def _read_fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """Number and value of each field: an integer, or bytes."""
    at = 0
    while at < len(message):
        tag, at = read_varint(message, at)
        if (wire := tag & 7) == 0:
            value, at = read_varint(message, at)
            yield tag >> 3, value
            continue
        length, at = read_varint(message, at) if wire == 2 else ({1: 8, 5: 4}.get(wire, len(message)), at)
        yield tag >> 3, message[at : at + length]
        at += length
