"""What depends on what, and orders that respect it."""

from __future__ import annotations

import pytest

from reconciler.model.address import Address
from reconciler.model.kind import Kind
from reconciler.planning.matching.references import find_live_references
from reconciler.planning.ordering.dependencies import HostIndex, find_cycle, find_mentions, sort
from tests.planning.builders import KINDS, live, ref


def host_index(*names: str) -> HostIndex[str]:
    index: HostIndex[str] = HostIndex()
    for name in names:
        index.add(name, name)
    return index


def kind(name: str) -> Kind:
    return next(kind for kind in KINDS if kind.name == name)


@pytest.mark.parametrize(
    ("host", "holders"),
    [
        ("app.example.com", ["app.example.com"]),
        ("APP.example.com", ["app.example.com"]),
        ("app.example.com:443", ["app.example.com"]),
        ("x.apps.example.com", ["*.apps.example.com"]),
        ("x.y.apps.example.com", ["*.apps.example.com"]),
        ("1.tcp.example.net:20000", ["1.tcp.example.net:20000"]),
        ("1.tcp.example.net:30000", []),
        ("apps.example.com", []),
        ("other.org", []),
        ("", []),
    ],
)
def test_a_host_name_finds_what_reserves_it(host: str, holders: list[str]) -> None:
    index = host_index("app.example.com", "*.apps.example.com", "1.tcp.example.net:20000")
    assert list(index.holders(host)) == holders


def test_the_exact_name_comes_before_a_wildcard() -> None:
    assert list(host_index("*.x.org", "a.x.org").holders("a.x.org")) == ["a.x.org"]


def test_what_is_no_text_reserves_nothing() -> None:
    index: HostIndex[str] = HostIndex()
    index.add({"odd": 1}, "x")
    assert list(index.holders("odd")) == []


def test_a_reference_among_hostports_names_no_host_and_hides_none() -> None:
    field = kind("TCPEdge").by_name["hostports"]
    assert "a.x" in list(find_mentions(field, [ref("ReservedAddress/a", "addr"), "a.x:1"]))


def test_everything_comes_after_what_it_needs_and_otherwise_in_order() -> None:
    assert sort({"c": ["a"], "b": [], "a": ["d"], "d": []}) == ["b", "d", "a", "c"]


def test_no_ring_is_found_where_there_is_none() -> None:
    assert find_cycle({"a": ["b"], "b": []}) is None


@pytest.mark.parametrize("turned", [False, True])
def test_a_ring_is_found_the_same_from_either_end(turned: bool) -> None:
    needs = {"a": {"b", "c"}, "b": {"a", "c"}, "c": {"a", "b"}}
    assert find_cycle(dict(reversed(needs.items())) if turned else needs) == ["a", "b", "a"]


def test_a_live_object_refers_by_the_ids_in_its_modules_and_by_its_parent() -> None:
    route = live(
        "HTTPSEdgeRoute", "r", {"ip_restriction": {"ip_policies": [{"id": "ipp_1"}, {"odd": 1}, None]}}, parent="e"
    )
    assert list(find_live_references(kind("HTTPSEdgeRoute"), route)) == [
        ("ip_restriction", ("IPPolicy", "ipp_1")),
        ("edge_id", ("HTTPSEdge", "e")),
    ]


def test_addresses_can_be_ordered() -> None:
    assert sort({Address("B", "a"): [], Address("A", "b"): []}) == [Address("A", "b"), Address("B", "a")]
