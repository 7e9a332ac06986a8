"""The dependency graph of resources, or of the calls of a plan, as DOT, Mermaid or SVG.

An edge leads from a node to those that depend on it: a drawing reads from left to right in the order of creation.
The same input gives the same bytes.
"""

from __future__ import annotations

import hashlib
import html
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from statistics import fmean

import networkx as nx
from msgspec import Struct

from reconciler.model.address import Address
from reconciler.model.plan import Plan
from reconciler.rendering.terminal_text import sanitize, width


class Node(Struct, frozen=True):
    key: str
    over: str  # a small line above the label: the kind, or the method
    label: str
    hue: str  # nodes with the same text here have the same color


class Graph(Struct, frozen=True, dict=True):
    """Nodes in the order of their keys, and edges (before, after) without those that other edges imply."""

    nodes: tuple[Node, ...]
    edges: tuple[tuple[str, str], ...]

    @cached_property
    def layers(self) -> tuple[tuple[str, ...], ...]:
        """Keys column by column: each node right of those that it depends on. The nodes of a cycle share a column."""
        cycles = nx.condensation(_to_networkx((node.key for node in self.nodes), self.edges))
        return tuple(
            tuple(sorted(key for cycle in generation for key in cycles.nodes[cycle]["members"]))
            for generation in nx.topological_generations(cycles)
        )


def build_resource_graph(needs: Mapping[Address, Collection[Address]]) -> Graph:
    """The graph of declared resources. `needs`: the addresses that each resource refers to."""
    addresses = sorted(needs.keys() | {need for collection in needs.values() for need in collection})
    nodes = [Node(str(address), address.kind, address.name, address.kind) for address in addresses]
    return build_graph(nodes, ((str(need), str(address)) for address, wanted in needs.items() for need in wanted))


def build_call_graph(plan: Plan) -> Graph:
    """The graph of a plan's calls."""
    nodes = [
        Node(call.id, f"{number}  {call.method}", sanitize(str(call.address)), call.address.kind)
        for number, call in enumerate(plan.calls, start=1)
    ]
    return build_graph(nodes, ((need, call.id) for call in plan.calls for need in call.needs))


def render_dot(graph: Graph) -> str:
    """The graph in the language of Graphviz."""
    lines = ["digraph {", "  rankdir=LR", "  node [shape=box, style=rounded, fontname=Helvetica]"]
    lines += [f"  {_dot(node.key)} [label={_dot(node.over, node.label)}]" for node in graph.nodes]
    lines += [f"  {_dot(before)} -> {_dot(after)}" for before, after in graph.edges]
    return "\n".join([*lines, "}", ""])


def render_mermaid(graph: Graph) -> str:
    """The graph as a Mermaid flowchart, for Markdown pages."""
    short = {node.key: f"n{number}" for number, node in enumerate(graph.nodes, start=1)}
    lines = ["flowchart LR"]
    lines += [f'  {short[node.key]}["{_mermaid(node.over)}<br/>{_mermaid(node.label)}"]' for node in graph.nodes]
    lines += [f"  {short[before]} --> {short[after]}" for before, after in graph.edges]
    return "\n".join([*lines, ""])


def render_svg(graph: Graph) -> str:
    """The graph as an SVG file, with all styles inside."""
    return "\n".join(_Drawing(graph).lines()) + "\n"


# --- building ---------------------------------------------------------------------------------------------------------


def _to_networkx(keys: Iterable[str], edges: Iterable[tuple[str, str]]) -> nx.DiGraph[str]:
    directed: nx.DiGraph[str] = nx.DiGraph()
    directed.add_nodes_from(sorted(keys))
    directed.add_edges_from(sorted(edges))
    return directed


def build_graph(nodes: Iterable[Node], edges: Iterable[tuple[str, str]]) -> Graph:
    """The graph without edges to unknown nodes, and without edges that other edges imply."""
    nodes = tuple(sorted(nodes, key=lambda node: node.key))
    keys = {node.key for node in nodes}
    directed = _to_networkx(keys, ((before, after) for before, after in edges if {before, after} <= keys))
    if nx.is_directed_acyclic_graph(directed):
        directed = nx.transitive_reduction(directed)
    return Graph(nodes, tuple(sorted(directed.edges)))


# --- text ---------------------------------------------------------------------------------------------------------


def _dot(*lines: str) -> str:
    escaped = (sanitize(line.replace("\\", "\\\\").replace('"', '\\"')) for line in lines)
    return '"' + "\\n".join(escaped) + '"'


def _mermaid(text: str) -> str:
    escapes = {"#": "#35;", '"': "#quot;", "<": "#lt;", ">": "#gt;", "&": "#amp;"}
    return "".join(escapes.get(character, character) for character in sanitize(text))


# --- drawing ----------------------------------------------------------------------------------------------------------

_CELL, _SMALL_CELL = 7.6, 5.9  # pixels of an average letter at 13 px and at 10 px
_HEIGHT, _ROW, _GAP, _MARGIN = 42, 60, 70, 20
_NARROWEST = 90


class _Box(Struct, frozen=True):
    x: float
    y: float
    width: float

    @property
    def middle(self) -> float:
        return self.y + _HEIGHT / 2

    @property
    def right(self) -> float:
        return self.x + self.width


class _Drawing:
    """Boxes in a column per layer, and edges that pass other columns between their boxes."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.nodes = {node.key: node for node in graph.nodes}
        self.boxes = self._place_boxes(order_layers(graph))
        self.columns: dict[float, list[_Box]] = {}  # by their left edge
        for box in sorted(self.boxes.values(), key=lambda box: (box.x, box.y)):
            self.columns.setdefault(box.x, []).append(box)

    def lines(self) -> Iterator[str]:
        right = max((box.right for box in self.boxes.values()), default=0) + _MARGIN
        bottom = max((box.y + _HEIGHT for box in self.boxes.values()), default=0) + _MARGIN
        yield (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {right:.0f} {bottom:.0f}" '
            f'width="{right:.0f}" height="{bottom:.0f}" font-family="Helvetica, Arial, sans-serif">'
        )
        yield (
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" '
            'orient="auto"><path d="M0 0 L8 4 L0 8 z" fill="#667"/></marker></defs>'
        )
        yield f'<rect width="{right:.0f}" height="{bottom:.0f}" fill="#fff"/>'
        for before, after in self.graph.edges:
            yield self._edge(self.boxes[before], self.boxes[after])
        for node in self.graph.nodes:
            yield from self._box(node, self.boxes[node.key])
        yield "</svg>"

    def _place_boxes(self, columns: list[list[str]]) -> dict[str, _Box]:
        boxes: dict[str, _Box] = {}
        tallest = max((len(column) for column in columns), default=0)
        x: float = _MARGIN
        for column in columns:
            wide = max(_NARROWEST, *(_estimate_width(self.nodes[key]) for key in column))
            top = _MARGIN + (tallest - len(column)) * _ROW / 2
            boxes |= {key: _Box(x, top + row * _ROW, wide) for row, key in enumerate(column)}
            x += wide + _GAP
        return boxes

    def _edge(self, start: _Box, end: _Box) -> str:
        line = " ".join(self._line(start, end))
        return f'<path d="{line}" fill="none" stroke="#667" stroke-width="1.3" marker-end="url(#tip)"/>'

    def _line(self, start: _Box, end: _Box) -> Iterator[str]:
        """From the right side of a box to the left side of another one, horizontally through the columns between."""
        x, y = start.right, start.middle
        yield f"M{x:.1f} {y:.1f}"
        if end.x <= x:  # of a cycle: both are in one column
            far = x + _GAP / 2
            yield f"C{far:.1f} {y:.1f} {far:.1f} {end.middle:.1f} {end.right:.1f} {end.middle:.1f}"
            return
        for left, boxes in self.columns.items():
            if x < left < end.x:
                straight = y + (end.middle - y) * (left - x) / (end.x - x)
                free = _find_free_height(straight, boxes)
                yield f"{_bend(x, y, left, free)} H{boxes[0].right:.1f}"
                x, y = boxes[0].right, free
        yield _bend(x, y, end.x, end.middle)

    def _box(self, node: Node, box: _Box) -> Iterator[str]:
        hue = int.from_bytes(hashlib.blake2b(node.hue.encode(), digest_size=2).digest()) % 360
        over, label = html.escape(sanitize(node.over)), html.escape(sanitize(node.label))
        yield f"<g><title>{over} {label}</title>"
        yield (
            f'<rect x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{_HEIGHT}" rx="6" '
            f'fill="hsl({hue},60%,93%)" stroke="hsl({hue},45%,45%)"/>'
        )
        yield f'<text x="{box.x + 12:.1f}" y="{box.y + 16:.1f}" font-size="10" fill="#556">{over}</text>'
        yield f'<text x="{box.x + 12:.1f}" y="{box.y + 32:.1f}" font-size="13" fill="#112">{label}</text></g>'


def _bend(x: float, y: float, to_x: float, to_y: float) -> str:
    middle = (x + to_x) / 2
    return f"C{middle:.1f} {y:.1f} {middle:.1f} {to_y:.1f} {to_x:.1f} {to_y:.1f}"


def _find_free_height(y: float, boxes: list[_Box]) -> float:
    """The height nearest to `y` at which a line passes between the boxes of a column."""
    beside = (_ROW - _HEIGHT) / 2
    if all(y <= box.y - beside or y >= box.y + _HEIGHT + beside for box in boxes):
        return y
    heights = [height for box in boxes for height in (box.y - beside, box.y + _HEIGHT + beside)]
    return min(heights, key=lambda height: (abs(height - y), height))


def _estimate_width(node: Node) -> float:
    return max(width(node.label) * _CELL, width(node.over) * _SMALL_CELL) + 24


def order_layers(graph: Graph) -> list[list[str]]:
    """The layers, each ordered by the mean position of its nodes' neighbors, which leaves few crossings."""
    columns = [list(layer) for layer in graph.layers]
    around: dict[str, list[str]] = {node.key: [] for node in graph.nodes}
    for before, after in graph.edges:
        around[before].append(after)
        around[after].append(before)
    for _ in range(4):  # sweeps; the order rarely changes after the third
        for column in columns:
            place = {key: row - len(other) / 2 for other in columns for row, key in enumerate(other)}
            column.sort(key=lambda key: (fmean(place[neighbor] for neighbor in around[key] or [key]), key))
    return columns
