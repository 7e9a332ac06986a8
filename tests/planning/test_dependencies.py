"""Dependencies between declarations, host names, and the topological order."""

from __future__ import annotations

from collections.abc import Mapping
from graphlib import CycleError
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from reconciler.model.address import Address
from reconciler.model.kind import Kind
from reconciler.model.value import Template
from reconciler.planning.ordering.dependencies import HostIndex, find_cycle, find_dependencies, find_mentions, sort
from tests.harness.builders import KINDS, at, declare, manifest, ref
from tests.harness.tiers import examples


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
def test_a_host_name_finds_its_reserved_names(host: str, holders: list[str]) -> None:
    index = host_index("app.example.com", "*.apps.example.com", "1.tcp.example.net:20000")
    assert list(index.holders(host)) == holders


@pytest.mark.parametrize(
    ("stored", "requested"),
    [
        (" App.Example.COM. ", "app.example.com"),
        ("app.example.com", " APP.example.com "),
        ("*.example.com", "app.example.com:443"),
        ("*.Example.com.", "a.app.example.com:80"),
    ],
)
def test_a_host_name_is_found_in_any_notation(stored: str, requested: str) -> None:
    assert list(host_index(stored).holders(requested)) == [stored]


def test_the_nearest_wildcard_is_found_with_all_its_holders() -> None:
    index = host_index("*.example.com", "*.apps.example.com")
    index.add("*.apps.example.com", "another")
    assert list(index.holders("x.apps.example.com")) == ["*.apps.example.com", "another"]
    assert list(index.holders("x.example.com")) == ["*.example.com"]
    assert list(index.holders("*.org")) == []


def test_the_address_with_its_port_precedes_the_host() -> None:
    index = host_index("1.tcp.example.net", "1.tcp.example.net:20000")
    assert list(index.holders("1.tcp.example.net:20000")) == ["1.tcp.example.net:20000"]
    assert list(index.holders("1.tcp.example.net:1")) == ["1.tcp.example.net"]


def test_the_exact_name_precedes_a_wildcard() -> None:
    assert list(host_index("*.x.org", "a.x.org").holders("a.x.org")) == ["a.x.org"]


def test_a_value_that_is_no_text_reserves_nothing() -> None:
    index: HostIndex[str] = HostIndex()
    index.add({"odd": 1}, "x")
    assert list(index.holders("odd")) == []


def test_a_reference_among_hostports_names_no_host_and_hides_none() -> None:
    field = kind("TCPEdge").by_name["hostports"]
    assert "a.x" in list(find_mentions(field, [ref("ReservedAddress/a", "addr"), "a.x:1"]))


@pytest.mark.parametrize(
    "value", [None, ref("ReservedAddress/a", "addr"), Template(("tls://", ref("ReservedAddress/a")))]
)
def test_a_value_that_is_not_resolved_names_no_host(value: Any) -> None:
    assert list(find_mentions(kind("CloudEndpoint").by_name["url"], value)) == []


def test_fields_inside_an_object_name_hosts() -> None:
    hostports = kind("TLSEdge").by_name["hostports"]
    outer = replace(kind("TLSEdge").by_name["mutual_tls"], fields=(hostports, kind("TLSEdge").by_name["description"]))
    assert "a.x" in list(find_mentions(outer, {"hostports": ["a.x:443"], "description": "b.x:443"}))
    assert list(find_mentions(outer, {"hostports": None})) == list(find_mentions(outer, "a.x:443")) == []


def test_a_declaration_depends_once_on_each_reference_and_each_named_host() -> None:
    hosts: HostIndex[Address] = HostIndex()
    for host, holder in (("a.x", "ReservedDomain/a"), ("b.x", "ReservedDomain/b"), ("c.x", "ReservedDomain/unknown")):
        hosts.add(host, at(holder))
    edge = declare(
        "TLSEdge/e",
        {
            "description": "b.x:443",  # text, and no field that names hosts
            "hostports": ["b.x:443", "c.x:443", "a.x:443", "b.x:8443"],
            "mutual_tls": {"certificate_authority_ids": [ref("CertificateAuthority/z"), ref("CertificateAuthority/c")]},
            "ip_restriction": {"ip_policy_ids": [ref("IPPolicy/unknown"), ref("TLSEdge/e")]},
        },
    )
    others = [declare(f"ReservedDomain/{name}", {"domain": f"{name}.x"}) for name in "ab"]
    others += [declare(f"CertificateAuthority/{name}", {"ca_pem": "PEM"}) for name in "cz"]
    needs = find_dependencies(manifest(edge, *others), {kind_.name: kind_ for kind_ in KINDS}, hosts)
    assert list(map(str, needs.pop(at("TLSEdge/e")))) == [
        "CertificateAuthority/z",
        "CertificateAuthority/c",
        "ReservedDomain/b",
        "ReservedDomain/a",
    ]
    assert needs == {other.address: () for other in others}


# --- orders -----------------------------------------------------------------------------------------------------------


def order_naively(needs: Mapping[str, set[str]], rank: Mapping[str, int]) -> list[str]:
    """Repeatedly the lowest of the nodes without unmet needs, until there is none."""
    ordered: list[str] = []
    while ready := [node for node in needs if node not in ordered and needs[node] <= set(ordered)]:
        ordered.append(min(ready, key=lambda node: (rank.get(node, 0), node)))
    return ordered


NODES = st.sampled_from("abcde")


@settings(max_examples=examples(60))
@given(st.dictionaries(NODES, st.sets(NODES, max_size=2)), st.dictionaries(NODES, st.integers(0, 2)), st.booleans())
def test_an_order_has_the_lowest_ready_node_first_or_a_cycle_is_reported(
    drawn: dict[str, set[str]], ranks: dict[str, int], ranked: bool
) -> None:
    needs = {node: needed & drawn.keys() for node, needed in drawn.items()}
    rank = {node: ranks.get(node, 0) for node in needs} if ranked else {}
    expected = order_naively(needs, rank)
    if len(expected) == len(needs):
        assert sort(needs, rank or None) == expected
        assert find_cycle(needs) is None
        return
    with pytest.raises(CycleError) as caught:
        sort(needs, rank or None)
    cycle = caught.value.args[1]
    assert cycle == find_cycle(dict(reversed(needs.items())))
    assert len(cycle) > 1
    assert cycle[0] == cycle[-1]
    assert len(set(cycle[1:])) == len(cycle) - 1
    assert all(before in needs[after] for before, after in pairwise(cycle))


def test_each_node_follows_its_dependencies_and_otherwise_its_order() -> None:
    assert sort({"c": ["a"], "b": [], "a": ["d"], "d": []}) == ["b", "d", "a", "c"]


def test_no_cycle_is_found_without_one() -> None:
    assert find_cycle({"a": ["b"], "b": []}) is None


@pytest.mark.parametrize("is_reversed", [False, True])
def test_a_cycle_is_the_same_from_either_end(is_reversed: bool) -> None:
    needs = {"a": {"b", "c"}, "b": {"a", "c"}, "c": {"a", "b"}}
    assert find_cycle(dict(reversed(needs.items())) if is_reversed else needs) == ["a", "b", "a"]


def test_addresses_can_be_ordered() -> None:
    assert sort({Address("B", "a"): [], Address("A", "b"): []}) == [Address("A", "b"), Address("B", "a")]
