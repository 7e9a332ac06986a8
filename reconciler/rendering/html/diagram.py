"""Lays out the dependency graph of a plan from left to right, as boxes and arrows; `plan_page` renders them.

An arrow leads from a resource to one that refers to it, or to one whose call waits for it without a reference.
The graph has the changed resources and the unchanged ones that they refer to.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import networkx as nx
from msgspec import Struct

from reconciler.model.address import Address
from reconciler.model.change import Action, Change
from reconciler.model.plan import Plan
from reconciler.model.value import Value, references, walk_texts
from reconciler.rendering.plan import graph
from reconciler.rendering.terminal_text import cut, sanitize

MOST = 1500  # boxes; a browser is slow with more
WIDTH, HEIGHT = 196, 44  # of a box
_GAP, _ROW_GAP, _BESIDE = 64, 12, 14  # between columns, between rows, between halves of a folded column
_MARGIN, _AROUND = 16, 28
_TALLEST = 10  # boxes in a column before it is folded
_SHEET = 1500  # maximum width of a row of islands in pixels
_LETTERS = 22  # cells of a label in a box


class Box(Struct, frozen=True):
    """A resource. `change` is the index of its change in the plan; None: unchanged."""

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


class Arrow(Struct, frozen=True):
    """An arrow between boxes, by index. `path` is an SVG path. `is_wait`: a call waits without a reference."""

    start: int
    end: int
    path: str
    is_wait: bool


class Diagram(Struct, frozen=True):
    boxes: tuple[Box, ...] = ()
    arrows: tuple[Arrow, ...] = ()
    width: float = 0
    height: float = 0

    @property
    def has_waits(self) -> bool:
        return any(arrow.is_wait for arrow in self.arrows)


def draw_diagram(plan: Plan) -> Diagram:
    """The layout; empty if the plan changes nothing or has more than `MOST` boxes."""
    changes = {change.address: number for number, change in reversed(list(enumerate(plan.changes)))}
    references, waits = set(_references(plan)), set(_waits(plan))
    addresses = sorted(changes.keys() | {address for edge in references | waits for address in edge})
    if not changes or len(addresses) > MOST:
        return Diagram()
    drawn = _graph(addresses, references, waits)
    islands = _islands(drawn)
    places, width, height = _place_islands(drawn, islands)
    columns: dict[str, _Columns] = {}
    for island in islands:
        columns |= dict.fromkeys(island, _columns(places[key] for key in island))
    boxes = tuple(Box(address, changes.get(address), *places[str(address)]) for address in addresses)
    numbers = {str(address): number for number, address in enumerate(addresses)}
    arrows = []
    for before, after in drawn.edges:
        start, end = numbers[before], numbers[after]
        line = _line(places[before], places[after], columns[before])
        arrows.append(Arrow(start, end, line, is_wait=(addresses[start], addresses[end]) not in references))
    return Diagram(boxes, tuple(arrows), width, height)


_Edges = set[tuple[Address, Address]]


def _graph(addresses: Sequence[Address], references: _Edges, waits: _Edges) -> graph.Graph:
    """All references, and the waits that follow from no other edge."""
    nodes = [graph.Node(str(address), address.kind, address.name, address.kind) for address in addresses]
    sparse = graph.build_graph(nodes, ((str(before), str(after)) for before, after in references | waits))
    edges = {(str(before), str(after)) for before, after in references}
    return graph.Graph(sparse.nodes, tuple(sorted(edges.union(sparse.edges))))


# --- edges ------------------------------------------------------------------------------------------------------------


def _references(plan: Plan) -> Iterator[tuple[Address, Address]]:
    """Pairs of referenced and referring address: by references, and by ids of objects that the plan knows."""
    addresses = {observed.id: address for address, observed in plan.observed.items()}
    for change in plan.changes:
        for value in _values(change, plan):
            targets = {ref.target for ref in references(value)}
            targets |= {addresses[text] for _, text in walk_texts(value) if text in addresses}
            yield from ((target, change.address) for target in targets if target != change.address)


def _values(change: Change, plan: Plan) -> Iterator[Value]:
    """The old and new values of the fields; for a delete, which lists no fields, the values of the object."""
    for field in change.fields:
        yield from (field.old, field.new)
    if change.action is Action.DELETE and change.address in plan.observed:
        yield from plan.observed[change.address].fields.values()


def _waits(plan: Plan) -> Iterator[tuple[Address, Address]]:
    """Pairs of addresses whose calls wait without a reference, such as an edge for the domain of a host name."""
    known = set(_references(plan))
    known |= {(after, before) for before, after in known}
    calls = {call.id: call for call in plan.calls}
    for call in plan.calls:
        for need in (calls[id] for id in call.needs if id in calls):
            edge = (need.address, call.address)
            if edge[0] != edge[1] and edge not in known:
                known |= {edge, edge[::-1]}
                yield edge


# --- places -----------------------------------------------------------------------------------------------------------

_Place = tuple[float, float]
_Places = dict[str, _Place]


def _islands(drawn: graph.Graph) -> list[list[str]]:
    """The connected components, largest first."""
    around: nx.Graph[str] = nx.Graph()
    around.add_nodes_from(node.key for node in drawn.nodes)
    around.add_edges_from(drawn.edges)
    return sorted(
        (sorted(component) for component in nx.connected_components(around)), key=lambda keys: (-len(keys), keys)
    )


def _place_islands(drawn: graph.Graph, islands: Sequence[Sequence[str]]) -> tuple[_Places, float, float]:
    """Places of all boxes: islands in rows, then single boxes in rows. Also the width and height."""
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
    """Places relative to the corner of the island, and its size. Long columns are folded."""
    if len(keys) == 1:
        return {keys[0]: (0.0, 0.0)}, WIDTH, HEIGHT
    members = set(keys)
    part = graph.Graph(
        tuple(node for node in drawn.nodes if node.key in members),
        tuple(edge for edge in drawn.edges if edge[0] in members),
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
    """The column in as few parts of similar height as possible."""
    folds = -(-len(column) // _TALLEST)
    rows = -(-len(column) // folds)
    return [column[start : start + rows] for start in range(0, len(column), rows)]


# --- arrows -----------------------------------------------------------------------------------------------------------

_Columns = Mapping[float, Sequence[float]]  # x → tops of the boxes in that column


def _columns(places: Iterable[_Place]) -> _Columns:
    columns: dict[float, list[float]] = defaultdict(list)
    for x, y in sorted(places):
        columns[x].append(y)
    return columns


def _line(first: _Place, second: _Place, columns: _Columns) -> str:
    """An SVG path from the right side of the first box to the left side of the second, between other boxes."""
    x, y = first[0] + WIDTH, first[1] + HEIGHT / 2
    end, to_y = second[0], second[1] + HEIGHT / 2
    line = f"M{x:.0f} {y:.0f}"
    if end <= x:  # in the same column or to the left, as in a cycle: around the right side of both
        far = max(x, end + WIDTH) + 40
        return f"{line}C{far:.0f} {y:.0f} {far:.0f} {to_y:.0f} {end + WIDTH:.0f} {to_y:.0f}"
    for left in [column for column in columns if x < column < end]:
        straight = y + (to_y - y) * (left + WIDTH / 2 - x) / (end - x)
        free = _find_gap(straight, columns[left])
        line += f"{_bend(x, y, left, free)}H{left + WIDTH:.0f}"
        x, y = left + WIDTH, free
    return line + _bend(x, y, end, to_y)


def _bend(x: float, y: float, to_x: float, to_y: float) -> str:
    middle = (x + to_x) / 2
    return f"C{middle:.0f} {y:.0f} {middle:.0f} {to_y:.0f} {to_x:.0f} {to_y:.0f}"


def _find_gap(y: float, tops: Sequence[float]) -> float:
    """The nearest height to `y` between boxes."""
    beside = _ROW_GAP / 2
    if not any(top - beside < y < top + HEIGHT + beside for top in tops):
        return y
    return min((gap for top in tops for gap in (top - beside, top + HEIGHT + beside)), key=lambda gap: abs(gap - y))
