"""What depends on what, and orders that respect it."""

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
from tests.harness.tiers import examples
from tests.planning.builders import KINDS, at, declare, manifest, ref


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


@pytest.mark.parametrize(
    ("stored", "asked"),
    [
        (" App.Example.COM. ", "app.example.com"),
        ("app.example.com", " APP.example.com "),
        ("*.example.com", "app.example.com:443"),
        ("*.Example.com.", "a.app.example.com:80"),
    ],
)
def test_a_host_name_is_found_however_it_is_written(stored: str, asked: str) -> None:
    assert list(host_index(stored).holders(asked)) == [stored]


def test_the_nearest_wildcard_is_found_and_all_of_its_holders() -> None:
    index = host_index("*.example.com", "*.apps.example.com")
    index.add("*.apps.example.com", "another")
    assert list(index.holders("x.apps.example.com")) == ["*.apps.example.com", "another"]
    assert list(index.holders("x.example.com")) == ["*.example.com"]
    assert list(index.holders("*.org")) == []


def test_the_address_with_its_port_comes_before_the_host_alone() -> None:
    index = host_index("1.tcp.example.net", "1.tcp.example.net:20000")
    assert list(index.holders("1.tcp.example.net:20000")) == ["1.tcp.example.net:20000"]
    assert list(index.holders("1.tcp.example.net:1")) == ["1.tcp.example.net"]


def test_the_exact_name_comes_before_a_wildcard() -> None:
    assert list(host_index("*.x.org", "a.x.org").holders("a.x.org")) == ["a.x.org"]


def test_what_is_no_text_reserves_nothing() -> None:
    index: HostIndex[str] = HostIndex()
    index.add({"odd": 1}, "x")
    assert list(index.holders("odd")) == []


def test_a_reference_among_hostports_names_no_host_and_hides_none() -> None:
    field = kind("TCPEdge").by_name["hostports"]
    assert "a.x" in list(find_mentions(field, [ref("ReservedAddress/a", "addr"), "a.x:1"]))


@pytest.mark.parametrize(
    "value", [None, ref("ReservedAddress/a", "addr"), Template(("tls://", ref("ReservedAddress/a")))]
)
def test_a_value_that_is_not_known_yet_names_no_host(value: Any) -> None:
    assert list(find_mentions(kind("CloudEndpoint").by_name["url"], value)) == []


def test_fields_inside_an_object_name_hosts_too() -> None:
    hostports = kind("TLSEdge").by_name["hostports"]
    outer = replace(kind("TLSEdge").by_name["mutual_tls"], fields=(hostports, kind("TLSEdge").by_name["description"]))
    assert "a.x" in list(find_mentions(outer, {"hostports": ["a.x:443"], "description": "b.x:443"}))
    assert list(find_mentions(outer, {"hostports": None})) == list(find_mentions(outer, "a.x:443")) == []


def test_a_declaration_needs_the_others_that_it_refers_to_or_whose_host_it_names_each_once() -> None:
    hosts: HostIndex[Address] = HostIndex()
    for host, holder in (("a.x", "ReservedDomain/a"), ("b.x", "ReservedDomain/b"), ("c.x", "ReservedDomain/gone")):
        hosts.add(host, at(holder))
    edge = declare(
        "TLSEdge/e",
        {
            "description": "b.x:443",  # text, and no field that names hosts
            "hostports": ["b.x:443", "c.x:443", "a.x:443", "b.x:8443"],
            "mutual_tls": {"certificate_authority_ids": [ref("CertificateAuthority/z"), ref("CertificateAuthority/c")]},
            "ip_restriction": {"ip_policy_ids": [ref("IPPolicy/gone"), ref("TLSEdge/e")]},
        },
    )
    others = [declare(f"ReservedDomain/{name}", {"domain": f"{name}.x"}) for name in "ab"]
    others += [declare(f"CertificateAuthority/{name}", {"ca_pem": "PEM"}) for name in "cz"]
    needs = find_dependencies(manifest(edge, *others), {each.name: each for each in KINDS}, hosts)
    assert list(map(str, needs.pop(at("TLSEdge/e")))) == [
        "CertificateAuthority/z",
        "CertificateAuthority/c",
        "ReservedDomain/b",
        "ReservedDomain/a",
    ]
    assert needs == {other.address: () for other in others}


# --- orders -----------------------------------------------------------------------------------------------------------


def naive_order(needs: Mapping[str, set[str]], rank: Mapping[str, int]) -> list[str]:
    """The lowest of the nodes that wait for nothing any more, again and again, as far as there is one."""
    ordered: list[str] = []
    while ready := [node for node in needs if node not in ordered and needs[node] <= set(ordered)]:
        ordered.append(min(ready, key=lambda node: (rank.get(node, 0), node)))
    return ordered


NODES = st.sampled_from("abcde")


@settings(max_examples=examples(60))
@given(st.dictionaries(NODES, st.sets(NODES, max_size=2)), st.dictionaries(NODES, st.integers(0, 2)), st.booleans())
def test_an_order_takes_the_lowest_of_what_is_ready_and_a_ring_is_one(
    drawn: dict[str, set[str]], ranks: dict[str, int], ranked: bool
) -> None:
    needs = {node: needed & drawn.keys() for node, needed in drawn.items()}
    rank = {node: ranks.get(node, 0) for node in needs} if ranked else {}
    expected = naive_order(needs, rank)
    if len(expected) == len(needs):
        assert sort(needs, rank or None) == expected
        assert find_cycle(needs) is None
        return
    with pytest.raises(CycleError) as caught:
        sort(needs, rank or None)
    ring = caught.value.args[1]
    assert ring == find_cycle(dict(reversed(needs.items())))
    assert len(ring) > 1
    assert ring[0] == ring[-1]
    assert len(set(ring[1:])) == len(ring) - 1
    assert all(before in needs[after] for before, after in pairwise(ring))


def test_everything_comes_after_what_it_needs_and_otherwise_in_order() -> None:
    assert sort({"c": ["a"], "b": [], "a": ["d"], "d": []}) == ["b", "d", "a", "c"]


def test_no_ring_is_found_where_there_is_none() -> None:
    assert find_cycle({"a": ["b"], "b": []}) is None


@pytest.mark.parametrize("turned", [False, True])
def test_a_ring_is_found_the_same_from_either_end(turned: bool) -> None:
    needs = {"a": {"b", "c"}, "b": {"a", "c"}, "c": {"a", "b"}}
    assert find_cycle(dict(reversed(needs.items())) if turned else needs) == ["a", "b", "a"]


def test_addresses_can_be_ordered() -> None:
    assert sort({Address("B", "a"): [], Address("A", "b"): []}) == [Address("A", "b"), Address("B", "a")]
