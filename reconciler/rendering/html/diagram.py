"""The resources of a plan as a picture: what refers to what, laid out from left to right, ready to be drawn.

Arrows lead from what is referred to, to what refers to it; others, from what comes first to what waits for it with no
reference to say so. Beside what changes, the picture shows what stays and is referred to. Knows no markup; see
`plan_page`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import networkx as nx

from reconciler.model.address import Address
from reconciler.model.change import Action, Change
from reconciler.model.plan import Plan
from reconciler.model.value import Value, references
from reconciler.rendering.plan import graph
from reconciler.rendering.terminal_text import cut, sanitize

MOST = 1500  # boxes: more than that nobody looks at, and a browser is slow to draw
WIDTH, HEIGHT = 196, 44  # of a box
_GAP, _ROW_GAP, _BESIDE = 64, 12, 14  # between columns, between rows, between halves of a folded column
_MARGIN, _AROUND = 16, 28
_TALLEST = 10  # boxes in a column before it is folded
_SHEET = 1500  # pixels a row of islands may take: two of three columns; most windows show them a little smaller
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
        return cut(sanitize(self.address.name), _LETTERS)

    @property
    def kind(self) -> str:
        return cut(sanitize(self.address.kind), _LETTERS + 5)


@dataclass(frozen=True, slots=True)
class Arrow:
    """Between boxes, by their numbers; `path` is its line in the language of SVG. `is_wait`: no reference."""

    start: int
    end: int
    path: str
    is_wait: bool


@dataclass(frozen=True, slots=True)
class Diagram:
    boxes: tuple[Box, ...] = ()
    arrows: tuple[Arrow, ...] = ()
    width: float = 0
    height: float = 0

    @property
    def has_waits(self) -> bool:
        return any(arrow.is_wait for arrow in self.arrows)


def draw_diagram(plan: Plan) -> Diagram:
    """Empty where there is nothing to see, or too much."""
    changes = {change.address: number for number, change in reversed(list(enumerate(plan.changes)))}
    references, waits = set(_references(plan)), set(_waits(plan))
    addresses = sorted(changes.keys() | {each for edge in references | waits for each in edge})
    if not changes or len(addresses) > MOST:
        return Diagram()
    drawn = _graph(addresses, references, waits)
    islands = _islands(drawn)
    places, width, height = _place_islands(drawn, islands)
    columns: dict[str, _Columns] = {}
    for island in islands:
        columns |= dict.fromkeys(island, _columns(places[key] for key in island))
    boxes = tuple(Box(address, changes.get(address), *places[str(address)]) for address in addresses)
    numbers = {str(each): number for number, each in enumerate(addresses)}
    arrows = []
    for before, after in drawn.edges:
        start, end = numbers[before], numbers[after]
        line = _line(places[before], places[after], columns[before])
        arrows.append(Arrow(start, end, line, is_wait=(addresses[start], addresses[end]) not in references))
    return Diagram(boxes, tuple(arrows), width, height)


_Edges = set[tuple[Address, Address]]


def _graph(addresses: Sequence[Address], references: _Edges, waits: _Edges) -> graph.Graph:
    """Every reference, and those waits that nothing else implies."""
    nodes = [graph.Node(str(address), address.kind, address.name, address.kind) for address in addresses]
    sparse = graph.build_graph(nodes, ((str(before), str(after)) for before, after in references | waits))
    said = {(str(before), str(after)) for before, after in references}
    return graph.Graph(sparse.nodes, tuple(sorted(said.union(sparse.edges))))


# --- what refers to what ----------------------------------------------------------------------------------------------


def _references(plan: Plan) -> Iterator[tuple[Address, Address]]:
    """By fields, before or after: a reference, or the id of an object that the plan knows."""
    known = {seen.id: address for address, seen in plan.observed.items()}
    for change in plan.changes:
        for value in _values(change, plan):
            targets = {ref.target for ref in references(value)}
            targets |= {known[text] for text in _texts(value) if text in known}
            yield from ((target, change.address) for target in targets if target != change.address)


def _values(change: Change, plan: Plan) -> Iterator[Value]:
    """Of its fields, before and after; of a delete, which lists none, all that the object had."""
    for field in change.fields:
        yield from (field.old, field.new)
    if change.action is Action.DELETE and change.address in plan.observed:
        yield from plan.observed[change.address].fields.values()


def _waits(plan: Plan) -> Iterator[tuple[Address, Address]]:
    """By calls, for what no field says: a host name that a domain must exist for, or who comes first."""
    said = set(_references(plan))
    said |= {(after, before) for before, after in said}
    calls = {call.id: call for call in plan.calls}
    for call in plan.calls:
        for need in (calls[each] for each in call.needs if each in calls):
            edge = (need.address, call.address)
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

_Place = tuple[float, float]
_Places = dict[str, _Place]


def _islands(drawn: graph.Graph) -> list[list[str]]:
    """What hangs together, the largest first."""
    around: nx.Graph[str] = nx.Graph()
    around.add_nodes_from(node.key for node in drawn.nodes)
    around.add_edges_from(drawn.edges)
    return sorted(
        (sorted(component) for component in nx.connected_components(around)), key=lambda each: (-len(each), each)
    )


def _place_islands(drawn: graph.Graph, islands: Sequence[Sequence[str]]) -> tuple[_Places, float, float]:
    """Each island by itself, then row by row what stands alone."""
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
    columns = [_fold(column) for column in graph.order_layers(part)]
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


def _fold(column: list[str]) -> list[list[str]]:
    """In as few parts as may be, all about as tall."""
    folds = -(-len(column) // _TALLEST)
    rows = -(-len(column) // folds)
    return [column[start : start + rows] for start in range(0, len(column), rows)]


# --- how arrows go ----------------------------------------------------------------------------------------------------

_Columns = Mapping[float, Sequence[float]]  # x → the tops of the boxes that stand there


def _columns(places: Iterable[_Place]) -> _Columns:
    columns: dict[float, list[float]] = defaultdict(list)
    for x, y in sorted(places):
        columns[x].append(y)
    return columns


def _line(first: _Place, second: _Place, columns: _Columns) -> str:
    """From the right side of the first to the left side of the second, between the boxes on its way."""
    x, y = first[0] + WIDTH, first[1] + HEIGHT / 2
    end, to_y = second[0], second[1] + HEIGHT / 2
    line = f"M{x:.0f} {y:.0f}"
    if end <= x:  # beside or behind it, as in a ring: around the right side of both
        far = max(x, end + WIDTH) + 40
        return f"{line}C{far:.0f} {y:.0f} {far:.0f} {to_y:.0f} {end + WIDTH:.0f} {to_y:.0f}"
    for left in [column for column in columns if x < column < end]:
        straight = y + (to_y - y) * (left + WIDTH / 2 - x) / (end - x)
        free = _free(straight, columns[left])
        line += f"{_bend(x, y, left, free)}H{left + WIDTH:.0f}"
        x, y = left + WIDTH, free
    return line + _bend(x, y, end, to_y)


def _bend(x: float, y: float, to_x: float, to_y: float) -> str:
    middle = (x + to_x) / 2
    return f"C{middle:.0f} {y:.0f} {middle:.0f} {to_y:.0f} {to_x:.0f} {to_y:.0f}"


def _free(y: float, tops: Sequence[float]) -> float:
    """The height next to `y` at which no box stands."""
    beside = _ROW_GAP / 2
    if not any(top - beside < y < top + HEIGHT + beside for top in tops):
        return y
    return min((each for top in tops for each in (top - beside, top + HEIGHT + beside)), key=lambda each: abs(each - y))
