"""The resources of a plan as a picture: what refers to what, laid out from left to right, ready to be drawn.

Arrows lead from what is referred to, to what refers to it. Beside what changes, the picture shows what stays and is
referred to. Knows no markup; see `html`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import networkx as nx

from reconciler.model.address import Address
from reconciler.model.plan import Plan, Verb
from reconciler.model.value import Value, references
from reconciler.rendering import graph
from reconciler.rendering.cells import clean, cut

MOST = 1500  # boxes: more than that nobody looks at, and a browser is slow to draw
WIDTH, HEIGHT = 196, 44  # of a box
_GAP, _ROW_GAP, _BESIDE = 64, 12, 14  # between columns, between rows, between halves of a folded column
_MARGIN, _AROUND = 16, 28
_TALLEST = 10  # boxes in a column before it is folded
_SHEET = 1240  # pixels a row of islands may take: a window's width
_LETTERS = 22  # cells of a label that fit into a box


@dataclass(frozen=True, slots=True)
class Box:
    """`change` counts from 0 through the plan's changes; None: it stays as it is."""

    address: Address
    change: int | None
    x: float
    y: float

    @property
    def label(self) -> str:
        return cut(clean(self.address.name), _LETTERS)

    @property
    def kind(self) -> str:
        return cut(clean(self.address.kind), _LETTERS + 5)


@dataclass(frozen=True, slots=True)
class Arrow:
    """Between boxes, by their numbers; `path` is its line in the language of SVG."""

    start: int
    end: int
    path: str


@dataclass(frozen=True, slots=True)
class Picture:
    boxes: tuple[Box, ...] = ()
    arrows: tuple[Arrow, ...] = ()
    width: float = 0
    height: float = 0


def picture(plan: Plan) -> Picture:
    """Empty where there is nothing to see, or too much."""
    changes = {change.address: number for number, change in reversed(list(enumerate(plan.changes)))}
    edges = sorted({*_references(plan), *_waits(plan)})
    addresses = sorted(changes.keys() | {each for edge in edges for each in edge})
    if not changes or len(addresses) > MOST:
        return Picture()
    nodes = [graph.Node(str(each), each.kind, each.name, each.kind) for each in addresses]
    drawn = graph.connected(nodes, ((str(before), str(after)) for before, after in edges))
    places, width, height = _placed(drawn)
    boxes = tuple(Box(each, changes.get(each), *places[str(each)]) for each in addresses)
    numbers = {str(each): number for number, each in enumerate(addresses)}
    arrows = tuple(
        Arrow(numbers[before], numbers[after], _curve(places[before], places[after])) for before, after in drawn.edges
    )
    return Picture(boxes, arrows, width, height)


# --- what refers to what ----------------------------------------------------------------------------------------------


def _references(plan: Plan) -> Iterator[tuple[Address, Address]]:
    """By fields, before or after: a reference, or the id of an object that the plan knows."""
    known = {seen.id: address for address, seen in plan.seen.items()}
    for change in plan.changes:
        for field in change.fields:
            targets = {ref.target for value in (field.old, field.new) for ref in references(value)}
            targets |= {known[text] for value in (field.old, field.new) for text in _texts(value) if text in known}
            yield from ((target, change.address) for target in targets if target != change.address)


def _waits(plan: Plan) -> Iterator[tuple[Address, Address]]:
    """By calls, for what no field says: a host name that a domain must exist for. Deletes wait the other way round."""
    said = set(_references(plan))
    said |= {(after, before) for before, after in said}
    calls = {call.id: call for call in plan.calls}
    for call in plan.calls:
        for need in (calls[each] for each in call.needs if each in calls):
            edge = (need.address, call.address)
            if call.verb is Verb.DELETE and need.verb is Verb.DELETE:
                edge = (call.address, need.address)
            if edge[0] != edge[1] and edge not in said:
                said |= {edge, edge[::-1]}
                yield edge


def _texts(value: Value) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for item in value.values():
                yield from _texts(item)
        case list() | tuple():
            for item in value:
                yield from _texts(item)


# --- where it stands --------------------------------------------------------------------------------------------------

_Places = dict[str, tuple[float, float]]


def _placed(drawn: graph.Graph) -> tuple[_Places, float, float]:
    """Each island by itself, the largest first, then row by row what stands alone."""
    around: nx.Graph[str] = nx.Graph()
    around.add_nodes_from(node.key for node in drawn.nodes)
    around.add_edges_from(drawn.edges)
    islands = sorted((sorted(each) for each in nx.connected_components(around)), key=lambda each: (-len(each), each))
    places: _Places = {}
    x = y = float(_MARGIN)
    shelf = right = 0.0
    alone = False
    for island in islands:
        own, wide, high = _island(drawn, island)
        first_alone = len(island) == 1 and not alone
        alone = len(island) == 1
        if x > _MARGIN and (x + wide > _SHEET or first_alone):
            x, y, shelf = _MARGIN, y + shelf, 0.0
        places |= {key: (x + left, y + top) for key, (left, top) in own.items()}
        x += wide + (_BESIDE if alone else _AROUND)
        shelf = max(shelf, high + (_ROW_GAP if alone else _AROUND))
        right = max(right, x)
    return places, right, y + shelf + _MARGIN


def _island(drawn: graph.Graph, keys: Sequence[str]) -> tuple[_Places, float, float]:
    """Places from its own corner, and its size. A column of many is folded."""
    if len(keys) == 1:
        return {keys[0]: (0.0, 0.0)}, WIDTH, HEIGHT
    there = set(keys)
    part = graph.Graph(
        tuple(node for node in drawn.nodes if node.key in there),
        tuple(edge for edge in drawn.edges if edge[0] in there),
    )
    columns = [_folded(column) for column in graph.uncrossed(part)]
    tallest = max(len(fold) for column in columns for fold in column)
    high = tallest * (HEIGHT + _ROW_GAP) - _ROW_GAP
    places: _Places = {}
    x = 0.0
    for column in columns:
        for fold in column:
            top = (high - len(fold) * (HEIGHT + _ROW_GAP) + _ROW_GAP) / 2
            places |= {key: (x, top + row * (HEIGHT + _ROW_GAP)) for row, key in enumerate(fold)}
            x += WIDTH + _BESIDE
        x += _GAP - _BESIDE
    return places, x - _GAP, high


def _folded(column: list[str]) -> list[list[str]]:
    """In as few parts as may be, all about as tall."""
    folds = -(-len(column) // _TALLEST)
    rows = -(-len(column) // folds)
    return [column[start : start + rows] for start in range(0, len(column), rows)]


def _curve(start: tuple[float, float], end: tuple[float, float]) -> str:
    x, y = start[0] + WIDTH, start[1] + HEIGHT / 2
    to_x, to_y = end[0], end[1] + HEIGHT / 2
    if to_x <= x:  # beside or behind it, as in a ring: around the right side of both
        to_x = end[0] + WIDTH
        far = max(x, to_x) + 40
        return f"M{x:.0f} {y:.0f}C{far:.0f} {y:.0f} {far:.0f} {to_y:.0f} {to_x:.0f} {to_y:.0f}"
    bend = max(28.0, (to_x - x) / 2)
    return f"M{x:.0f} {y:.0f}C{x + bend:.0f} {y:.0f} {to_x - bend:.0f} {to_y:.0f} {to_x:.0f} {to_y:.0f}"
