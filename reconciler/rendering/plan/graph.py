"""What comes before what, as DOT, Mermaid or SVG. Arrows lead from what is needed to what needs it, so that a drawing
reads from left to right in the order of creation. The same input gives the same bytes.
"""

from __future__ import annotations

import hashlib
import html
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean

import networkx as nx

from reconciler.model.address import Address
from reconciler.model.plan import Plan
from reconciler.rendering.terminal_text import sanitize, width


@dataclass(frozen=True, slots=True)
class Node:
    key: str
    over: str  # a small line above: the kind, or the method
    label: str
    hue: str  # nodes with the same text here share a colour


@dataclass(frozen=True)
class Graph:
    """Nodes in the order of their keys, and edges (before, after) without those that others imply."""

    nodes: tuple[Node, ...]
    edges: tuple[tuple[str, str], ...]

    @cached_property
    def layers(self) -> tuple[tuple[str, ...], ...]:
        """Keys column by column: each node right of all it needs; a ring shares one column."""
        rings = nx.condensation(_directed((node.key for node in self.nodes), self.edges))
        return tuple(
            tuple(sorted(key for ring in generation for key in rings.nodes[ring]["members"]))
            for generation in nx.topological_generations(rings)
        )


def of_resources(needs: Mapping[Address, Collection[Address]]) -> Graph:
    """The graph of declared resources: each address with what it refers to."""
    addresses = sorted(needs.keys() | {need for collection in needs.values() for need in collection})
    nodes = [Node(str(address), address.kind, address.name, address.kind) for address in addresses]
    return connected(nodes, ((str(need), str(each)) for each, wanted in needs.items() for need in wanted))


def of_plan(plan: Plan) -> Graph:
    """The graph of a plan's calls."""
    nodes = [
        Node(call.id, f"{number}  {call.method}", sanitize(str(call.address)), call.address.kind)
        for number, call in enumerate(plan.calls, start=1)
    ]
    return connected(nodes, ((need, call.id) for call in plan.calls for need in call.needs))


def dot(graph: Graph) -> str:
    """For Graphviz."""
    lines = ["digraph {", "  rankdir=LR", "  node [shape=box, style=rounded, fontname=Helvetica]"]
    lines += [f"  {_dot(node.key)} [label={_dot(node.over, node.label)}]" for node in graph.nodes]
    lines += [f"  {_dot(before)} -> {_dot(after)}" for before, after in graph.edges]
    return "\n".join([*lines, "}", ""])


def mermaid(graph: Graph) -> str:
    """For Markdown pages that draw Mermaid."""
    short = {node.key: f"n{number}" for number, node in enumerate(graph.nodes, start=1)}
    lines = ["flowchart LR"]
    lines += [f'  {short[node.key]}["{_mermaid(node.over)}<br/>{_mermaid(node.label)}"]' for node in graph.nodes]
    lines += [f"  {short[before]} --> {short[after]}" for before, after in graph.edges]
    return "\n".join([*lines, ""])


def svg(graph: Graph) -> str:
    """A drawing that stands alone."""
    return "\n".join(_Drawing(graph).lines()) + "\n"


# --- building ---------------------------------------------------------------------------------------------------------


def _directed(keys: Iterable[str], edges: Iterable[tuple[str, str]]) -> nx.DiGraph[str]:
    directed: nx.DiGraph[str] = nx.DiGraph()
    directed.add_nodes_from(sorted(keys))
    directed.add_edges_from(sorted(edges))
    return directed


def connected(nodes: Iterable[Node], edges: Iterable[tuple[str, str]]) -> Graph:
    """Edges between nodes that there are, without those that others imply."""
    nodes = tuple(sorted(nodes, key=lambda node: node.key))
    known = {node.key for node in nodes}
    directed = _directed(known, ((before, after) for before, after in edges if {before, after} <= known))
    if nx.is_directed_acyclic_graph(directed):
        directed = nx.transitive_reduction(directed)
    return Graph(nodes, tuple(sorted(directed.edges)))


# --- spelling ---------------------------------------------------------------------------------------------------------


def _dot(*lines: str) -> str:
    escaped = (sanitize(line.replace("\\", "\\\\").replace('"', '\\"')) for line in lines)
    return '"' + "\\n".join(escaped) + '"'


def _mermaid(text: str) -> str:
    escapes = {"#": "#35;", '"': "#quot;", "<": "#lt;", ">": "#gt;", "&": "#amp;"}
    return "".join(escapes.get(each, each) for each in sanitize(text))


# --- drawing ----------------------------------------------------------------------------------------------------------

_CELL, _SMALL_CELL = 7.6, 5.9  # pixels of an average letter at 13 px and at 10 px
_HEIGHT, _ROW, _GAP, _MARGIN = 42, 60, 70, 20
_NARROWEST = 90


@dataclass(frozen=True, slots=True)
class _Box:
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
    """Boxes in a column per layer, edges as curves behind them."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.nodes = {node.key: node for node in graph.nodes}
        self.boxes = self._placed(uncrossed(graph))

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

    def _placed(self, columns: list[list[str]]) -> dict[str, _Box]:
        boxes: dict[str, _Box] = {}
        tallest = max((len(column) for column in columns), default=0)
        x: float = _MARGIN
        for column in columns:
            wide = max(_NARROWEST, *(_wide(self.nodes[key]) for key in column))
            top = _MARGIN + (tallest - len(column)) * _ROW / 2
            boxes |= {key: _Box(x, top + row * _ROW, wide) for row, key in enumerate(column)}
            x += wide + _GAP
        return boxes

    def _edge(self, start: _Box, end: _Box) -> str:
        bend = max(30.0, abs(end.x - start.right) / 2)
        return (
            f'<path d="M{start.right:.1f} {start.middle:.1f} C{start.right + bend:.1f} {start.middle:.1f} '
            f'{end.x - bend:.1f} {end.middle:.1f} {end.x:.1f} {end.middle:.1f}" '
            'fill="none" stroke="#667" stroke-width="1.3" marker-end="url(#tip)"/>'
        )

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


def _wide(node: Node) -> float:
    return max(width(node.label) * _CELL, width(node.over) * _SMALL_CELL) + 24


def uncrossed(graph: Graph) -> list[list[str]]:
    """The layers, each ordered by the mean place of its nodes' neighbours: few edges cross then."""
    columns = [list(layer) for layer in graph.layers]
    around: dict[str, list[str]] = {node.key: [] for node in graph.nodes}
    for before, after in graph.edges:
        around[before].append(after)
        around[after].append(before)
    for _ in range(4):  # sweeps: hardly anything moves after the third
        for column in columns:
            place = {key: row - len(other) / 2 for other in columns for row, key in enumerate(other)}
            column.sort(key=lambda key: (fmean(place[each] for each in around[key] or [key]), key))
    return columns
