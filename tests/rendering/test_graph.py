from __future__ import annotations

from xml.etree import ElementTree

from reconciler.model.address import Address
from reconciler.rendering.plan import graph
from tests.rendering.plans import WHOLE

EDGE, POLICY, RULE, BACKEND = (
    Address("TLSEdge", "payments"),
    Address("IPPolicy", "office"),
    Address("IPPolicyRule", "lan"),
    Address("FailoverBackend", "payments"),
)
NEEDS = {EDGE: [BACKEND, POLICY], RULE: [POLICY], POLICY: [], BACKEND: [POLICY]}


def test_dot_has_every_node_and_no_edge_that_others_imply() -> None:
    assert (
        graph.dot(graph.of_resources(NEEDS))
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
        graph.mermaid(graph.of_resources(NEEDS))
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


def test_layers_stand_in_the_order_of_creation() -> None:
    assert graph.of_resources(NEEDS).layers == (
        ("IPPolicy/office",),
        ("FailoverBackend/payments", "IPPolicyRule/lan"),
        ("TLSEdge/payments",),
    )


def test_the_order_of_the_input_does_not_show() -> None:
    turned = {key: needs[::-1] for key, needs in reversed(NEEDS.items())}
    assert graph.svg(graph.of_resources(turned)) == graph.svg(graph.of_resources(NEEDS))


def test_svg_is_well_formed_and_draws_every_node_once() -> None:
    root = ElementTree.fromstring(graph.svg(graph.of_resources(NEEDS)))  # noqa: S314 - our own output
    titles = [each.text for each in root.iter("{http://www.w3.org/2000/svg}title")]
    assert titles == ["FailoverBackend payments", "IPPolicy office", "IPPolicyRule lan", "TLSEdge payments"]


def test_an_empty_graph_is_drawn_too() -> None:
    assert ElementTree.fromstring(graph.svg(graph.of_resources({}))).tag.endswith("svg")  # noqa: S314 - our own output


def test_a_ring_is_drawn_in_one_column() -> None:
    ring = graph.of_resources({EDGE: [BACKEND], BACKEND: [EDGE]})
    assert ring.layers == (("FailoverBackend/payments", "TLSEdge/payments"),)
    assert ring.edges == (
        ("FailoverBackend/payments", "TLSEdge/payments"),
        ("TLSEdge/payments", "FailoverBackend/payments"),
    )


def test_hostile_text_is_escaped_in_every_format() -> None:
    nodes = (graph.Node('a"\\\x1b', '<b>"&', '</text><script>#"', "x"),)
    hostile = graph.Graph(nodes, ())
    assert r'"a\"\\\x1b" [label="<b>\"&\n</text><script>#\""]' in graph.dot(hostile)
    assert 'n1["#lt;b#gt;#quot;#amp;<br/>#lt;/text#gt;#lt;script#gt;#35;#quot;"]' in graph.mermaid(hostile)
    assert "<script>" not in graph.svg(hostile)


def test_a_plan_is_drawn_by_its_calls() -> None:
    assert graph.of_plan(WHOLE).edges == (
        ("create IPPolicy/office", "update TLSEdge/payments"),
        ("update TLSEdge/payments", "create HTTPSEdgeRoute/api"),
    )
