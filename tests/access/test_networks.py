"""Sets of addresses, compared with the ranges and networks of Python's `ipaddress`."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_network, summarize_address_range

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reconciler.access.networks import FAMILIES, Networks, parse_networks

FIRST_IPV6 = FAMILIES[1].ranges[0][0]
NUMBER = st.integers(0, 300).map(str) | st.sampled_from(["01", "256", "", "٣", "1 ", "-1", "0x1"])
OCTETS = st.lists(NUMBER, min_size=3, max_size=5).map(".".join) | st.ip_addresses(v=4).map(str)
LENGTH = st.integers(0, 40).map(str) | st.sampled_from(["", "08", "255.0.0.0", "0.0.0.255", "+8", "٨"])
IPV6 = st.ip_addresses(v=6).map(str)
CIDR = st.builds(lambda address, length: f"{address}{length}", OCTETS | IPV6, st.just("") | LENGTH.map("/{}".format))


@given(CIDR)
@example("10.0.0.1/8\n")
@example("10.0.0.1/0")
def test_a_network_has_the_addresses_of_its_notation(cidr: str) -> None:
    """What is no network for `ipaddress` is an error here, too."""
    try:
        network = ip_network(cidr, strict=False)
    except ValueError:
        with pytest.raises(ValueError, match=r"."):
            parse_networks([cidr])
        return
    offset = 0 if network.version == 4 else FIRST_IPV6
    assert parse_networks([cidr]).ranges == ((int(network[0]) + offset, int(network[-1]) + offset),)


IPV4_BORDERS = st.integers(0, 2**32 - 1) | st.sampled_from([0, 2**31, 2**32 - 1])
IPV6_BORDERS = st.integers(0, 2**128 - 1) | st.sampled_from([0, 2**33, 2**64, 2**128 - 1])


@given(st.tuples(IPV4_BORDERS, IPV4_BORDERS).map(sorted))
def test_a_range_of_ipv4_addresses_is_shown_as_its_networks(pair: list[int]) -> None:
    first, last = pair
    assert [*Networks(((first, last),)).networks()] == [
        *map(str, summarize_address_range(IPv4Address(first), IPv4Address(last)))
    ]


@given(st.tuples(IPV6_BORDERS, IPV6_BORDERS).map(sorted))
def test_a_range_of_ipv6_addresses_is_shown_as_its_networks(pair: list[int]) -> None:
    first, last = pair
    assert [*Networks(((FIRST_IPV6 + first, FIRST_IPV6 + last),)).networks()] == [
        *map(str, summarize_address_range(IPv6Address(first), IPv6Address(last)))
    ]


@given(st.lists(CIDR.filter(lambda text: "." in text)), st.ip_addresses(v=4))
def test_a_set_contains_the_addresses_of_its_ranges(cidrs: list[str], address: IPv4Address) -> None:
    networks = Networks()
    for cidr in cidrs:
        try:
            networks |= parse_networks([cidr])
        except ValueError:
            continue
    expected = any(first <= int(address) <= last for first, last in networks.ranges)
    assert networks.contains(str(address)) is expected
    assert networks.complement().contains(str(address)) is not expected


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "no address"),
        (1, "10.0.0.0/24"),
        (2, "10.0.0.0/24, 10.0.2.0/24"),
        (4, "10.0.0.0/24, 10.0.2.0/24, 10.0.4.0/24, 10.0.6.0/24"),
        (5, "10.0.0.0/24, 10.0.2.0/24, 10.0.4.0/24, 10.0.6.0/24 and 1 more network"),
        (6, "10.0.0.0/24, 10.0.2.0/24, 10.0.4.0/24, 10.0.6.0/24 and 2 more networks"),
        (20, "10.0.0.0/24, 10.0.2.0/24, 10.0.4.0/24, 10.0.6.0/24 and 16 more networks"),
    ],
)
def test_many_networks_are_shown_as_a_few_and_the_number_of_the_others(count: int, text: str) -> None:
    assert parse_networks(f"10.0.{2 * number}.0/24" for number in range(count)).shorten() == text
