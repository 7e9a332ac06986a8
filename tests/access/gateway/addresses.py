"""Decisions on source addresses: some rule allows the address, and none denies it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import NamedTuple

Network = IPv4Network | IPv6Network


class Rule(NamedTuple):
    """A network that is allowed or denied."""

    network: Network
    allows: bool


@lru_cache(65536)
def parse_address(text: str) -> IPv4Address | IPv6Address:
    return ip_address(text)


@lru_cache(65536)
def parse_network(text: str) -> Network:
    """A network of any source: an address with host bits is the network around it."""
    return ip_network(text, strict=False)


def is_mapped(source: str) -> bool:
    """Whether an address is an IPv4 address in the form of IPv6."""
    address = parse_address(source)
    return isinstance(address, IPv6Address) and address.ipv4_mapped is not None


def admits(rules: Iterable[Rule], source: str) -> bool:
    """Whether an address matches a rule that allows it and no rule that denies it. The order has no effect."""
    address = parse_address(source)
    matches = {rule.allows for rule in rules if address in rule.network}
    return matches == {True}
