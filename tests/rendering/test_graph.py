from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.model.address import Address
from reconciler.rendering.plan import graph
from tests.harness.tiers import examples
from tests.rendering.plans import WHOLE
from tests.rendering.test_text import compare

EDGE, POLICY, RULE, BACKEND = (
    Address("TLSEdge", "payments"),
    Address("IPPolicy", "office"),
    Address("IPPolicyRule", "lan"),
    Address("FailoverBackend", "payments"),
)
NEEDS = {EDGE: [BACKEND, POLICY], RULE: [POLICY], POLICY: [], BACKEND: [POLICY]}


def test_dot_has_every_node_and_no_edge_that_others_imply() -> None:
    assert (
        graph.render_dot(graph.build_resource_graph(NEEDS))
        == r"""digraph {
  rankdir=LR
  node [shape=box, style=rounded, fontname=Helvetica]
  "FailoverBackend/payments" [label="FailoverBackend\npayments"]
  "IPPolicy/office" [label="IPPolicy\noffice"]
  "IPPolicyRule/lan" [label="IPPolicyRule\nlan"]
  "TLSEdge/payments" [label="TLSEdge\npayments"]
  "FailoverBackend/payments" -> "TLSEdge/payments"
  "IPPolicy/office" -> "FailoverBackend/payments"
  "IPPolicy/office" -> "IPPolicyRule/lan"
}
"""
    )


def test_mermaid_numbers_its_nodes() -> None:
    assert (
        graph.render_mermaid(graph.build_resource_graph(NEEDS))
        == """flowchart LR
  n1["FailoverBackend<br/>payments"]
  n2["IPPolicy<br/>office"]
  n3["IPPolicyRule<br/>lan"]
  n4["TLSEdge<br/>payments"]
  n1 --> n4
  n2 --> n1
  n2 --> n3
"""
    )


def test_layers_are_in_the_order_of_creation() -> None:
    assert graph.build_resource_graph(NEEDS).layers == (
        ("IPPolicy/office",),
        ("FailoverBackend/payments", "IPPolicyRule/lan"),
        ("TLSEdge/payments",),
    )


def test_the_graph_does_not_depend_on_the_order_of_the_input() -> None:
    turned = {key: needs[::-1] for key, needs in reversed(NEEDS.items())}
    assert graph.render_svg(graph.build_resource_graph(turned)) == graph.render_svg(graph.build_resource_graph(NEEDS))


def test_svg_is_well_formed_and_draws_every_node_once() -> None:
    root = ElementTree.fromstring(graph.render_svg(graph.build_resource_graph(NEEDS)))  # noqa: S314 - our own output
    titles = [element.text for element in root.iter("{http://www.w3.org/2000/svg}title")]
    assert titles == ["FailoverBackend payments", "IPPolicy office", "IPPolicyRule lan", "TLSEdge payments"]


def test_an_empty_graph_is_drawn_too() -> None:
    assert ElementTree.fromstring(graph.render_svg(graph.build_resource_graph({}))).tag.endswith("svg")  # noqa: S314 - our own output


def test_circular_references_are_drawn_in_one_column() -> None:
    ring = graph.build_resource_graph({EDGE: [BACKEND], BACKEND: [EDGE]})
    assert ring.layers == (("FailoverBackend/payments", "TLSEdge/payments"),)
    assert ring.edges == (
        ("FailoverBackend/payments", "TLSEdge/payments"),
        ("TLSEdge/payments", "FailoverBackend/payments"),
    )


def test_hostile_text_is_escaped_in_every_format() -> None:
    nodes = (graph.Node('a"\\\x1b', '<b>"&', '</text><script>#"', "x"),)
    hostile = graph.Graph(nodes, ())
    assert r'"a\"\\\x1b" [label="<b>\"&\n</text><script>#\""]' in graph.render_dot(hostile)
    assert 'n1["#lt;b#gt;#quot;#amp;<br/>#lt;/text#gt;#lt;script#gt;#35;#quot;"]' in graph.render_mermaid(hostile)
    assert "<script>" not in graph.render_svg(hostile)


def test_a_plan_is_drawn_by_its_calls() -> None:
    assert graph.build_call_graph(WHOLE).edges == (
        ("create IPPolicy/office", "update TLSEdge/payments"),
        ("update TLSEdge/payments", "create HTTPSEdgeRoute/api"),
    )


SVG = "{http://www.w3.org/2000/svg}"
ADDRESSES = [Address("TLSEdge", f"edge-{number}" + "x" * (number % 5 * 6)) for number in range(14)]


def points_of(line: str) -> list[tuple[float, float]]:
    """Points along the path of an edge, from its start to its end."""
    points: list[tuple[float, float]] = []
    for command, text in re.findall(r"([MCH])([^MCH]*)", line):
        numbers = [float(number) for number in text.split()]
        match command:
            case "M":
                points.append((numbers[0], numbers[1]))
            case "H":
                (x, y), steps = points[-1], 40
                points += [(x + (numbers[0] - x) * step / steps, y) for step in range(1, steps + 1)]
            case "C":
                curve = [points[-1], *zip(numbers[::2], numbers[1::2], strict=True)]
                points += [bezier_point(curve, step / 60) for step in range(1, 61)]
    return points


def bezier_point(curve: list[tuple[float, float]], at: float) -> tuple[float, float]:
    weights = [(1 - at) ** 3, 3 * at * (1 - at) ** 2, 3 * at**2 * (1 - at), at**3]
    x, y = (sum(weight * point[axis] for weight, point in zip(weights, curve, strict=True)) for axis in (0, 1))
    return x, y


@given(st.dictionaries(st.sampled_from(ADDRESSES), st.sets(st.sampled_from(ADDRESSES), max_size=3), max_size=14))
@settings(max_examples=examples(60))
def test_no_edge_passes_through_a_box(needs: dict[Address, set[Address]]) -> None:
    root = ElementTree.fromstring(graph.render_svg(graph.build_resource_graph(needs)))  # noqa: S314 - our own output
    boxes = [
        tuple(float(box.attrib[name]) for name in ("x", "y", "width", "height"))
        for box in root.iterfind(f"{SVG}g/{SVG}rect")
    ]
    for edge in root.iterfind(f"{SVG}path"):
        for x, y in points_of(edge.attrib["d"]):
            inside = [box for box in boxes if 0.1 < x - box[0] < box[2] - 0.1 and 0.1 < y - box[1] < box[3] - 0.1]
            assert not inside, (edge.attrib["d"], inside)


def test_a_layer_is_in_the_order_of_its_neighbors() -> None:
    low, high = (Address("IPPolicy", name) for name in ("a", "b"))
    first, second, third = (Address("TLSEdge", name) for name in ("a", "b", "c"))
    drawn = graph.build_resource_graph({first: [high], second: [low], third: [low], low: [], high: []})
    assert graph.order_layers(drawn) == [["IPPolicy/b", "IPPolicy/a"], ["TLSEdge/a", "TLSEdge/b", "TLSEdge/c"]]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [(0.0, 0.0), (91.0, 91.0), (92.0, 91.0), (120.0, 91.0), (122.0, 151.0), (150.0, 151.0), (151.0, 151.0)],
)
def test_a_line_passes_beside_the_boxes_of_a_column(wanted: float, found: float) -> None:
    box = graph._Box(0.0, 100.0, 80.0)
    assert graph._find_free_height(wanted, [box]) == found
    assert graph._find_free_height(wanted, []) == wanted
    assert graph._find_free_height(wanted, [box, graph._Box(0.0, 400.0, 80.0)]) == found


def test_a_drawing_is_as_reviewed() -> None:
    """Columns of different heights and widths, lines that pass columns, and two boxes that need each other."""
    names = {letter: Address(kind, name) for letter, kind, name in (
        ("a", "IPPolicy", "a"), ("b", "IPPolicyRule", "a-name-that-is-wider-than-the-narrowest-box"),
        ("c", "TLSEdge", "c"), ("d", "CertificateManagementPolicy", "d"), ("e", "HTTPSEdge", "e-<&>"),
        ("f", "HTTPSEdgeRoute", "f"), ("g", "HTTPSEdgeRoute", "g"), ("x", "BotUser", "x"), ("y", "BotUser", "y"),
    )}  # fmt: skip
    pairs = ("ba", "ca", "da", "cb", "ed", "fe", "fa", "ge", "gb", "xy", "yx", "ea", "gd")
    needs: dict[Address, list[Address]] = {address: [] for address in names.values()}
    for pair in pairs:
        needs[names[pair[0]]].append(names[pair[1]])
    drawn = graph.build_resource_graph(needs)
    acyclic = graph.build_resource_graph({a: n for a, n in needs.items() if a.kind != "BotUser"})
    compare("graph.svg", graph.render_svg(drawn) + graph.render_svg(acyclic))
    compare("graph.txt", graph.render_dot(acyclic) + graph.render_mermaid(drawn) + repr(graph.order_layers(acyclic)))


def test_the_calls_of_a_plan_are_drawn_as_reviewed() -> None:
    calls = graph.build_call_graph(WHOLE)
    compare("graph-calls.txt", graph.render_dot(calls) + graph.render_mermaid(calls) + graph.render_svg(calls))


def test_an_edge_to_an_unknown_node_is_left_out() -> None:
    node = graph.Node("a", "over", "a", "x")
    assert graph.build_graph([node], [("a", "b"), ("b", "a"), ("b", "c")]) == graph.Graph((node,), ())
    compare(
        "graph-one.svg", graph.render_svg(graph.build_graph([node], [])) + graph.render_svg(graph.build_graph([], []))
    )


def test_a_line_passes_a_column_at_its_own_height_if_it_is_free() -> None:
    first = [Address("IPPolicy", f"a{place}") for place in range(7)]
    middle, last = Address("TLSEdge", "m"), [Address("TLSEdge", f"z{place}") for place in range(5)]
    needs = {middle: [first[3]], **{address: [middle] for address in last}, **{address: [] for address in first}}
    needs[last[1]] = [middle, first[0]]
    needs[last[4]] = [middle, first[6], first[5]]
    drawing = graph.render_svg(graph.build_resource_graph(needs))
    compare("graph-lines.txt", "".join(f"{line}\n" for line in re.findall(r'<path d="(M[^"z]*)"', drawing)))
