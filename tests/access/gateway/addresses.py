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


def unmap(source: str) -> str | None:
    """The IPv4 address that is in an IPv4-mapped address; None for others."""
    address = parse_address(source)
    inner = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(inner) if inner is not None else None


def admits(rules: Iterable[Rule], source: str) -> bool:
    """Whether an address matches a rule that allows it and no rule that denies it. The order has no effect."""
    address = parse_address(source)
    matches = {rule.allows for rule in rules if address in rule.network}
    return matches == {True}
