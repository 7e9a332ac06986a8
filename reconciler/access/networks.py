"""`Networks`: sets of IPv4 and IPv6 addresses as sorted ranges, with exact union, intersection and difference."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network, summarize_address_range
from typing import Final

from msgspec import Struct

Range = tuple[int, int]
"""The first and the last address. IPv6 addresses follow the IPv4 addresses, so that one list holds both."""

_V4: Final = 1 << 32
_END: Final = _V4 + (1 << 128)
_MAPPED: Final = _V4 + (0xFFFF << 32)  # IPv4-mapped addresses, ::ffff:0:0/96, begin here


_PLAIN: Final = ("192.0.2.1", "198.51.100.1", "203.0.113.1", "2001:db8::1")  # of no one, by RFC 5737 and RFC 3849


class Networks(Struct, frozen=True, cache_hash=True):
    """A set of addresses: disjoint ranges that do not touch, in ascending order."""

    ranges: tuple[Range, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.ranges)

    def __or__(self, other: Networks) -> Networks:
        return Networks(_join(sorted((*self.ranges, *other.ranges))))

    def __and__(self, other: Networks) -> Networks:
        return Networks(tuple(_intersect(self.ranges, other.ranges)))

    def __sub__(self, other: Networks) -> Networks:
        return self & other.complement()

    def complement(self) -> Networks:
        """All addresses that are not in the set."""
        return Networks(tuple(_invert(self.ranges)))

    def contains(self, address: str) -> bool:
        number = _range_of(address)[0]
        return any(first <= number <= last for first, last in self.ranges)

    def size(self) -> int:
        """How many addresses the set has."""
        return sum(last - first + 1 for first, last in self.ranges)

    def first(self) -> str:
        """An address of the set: one for documentation if it has one, else its first, which is an IPv4-mapped one only
        if all are. The set is not empty."""
        plain = (self - MAPPED).ranges or self.ranges
        return next((address for address in _PLAIN if self.contains(address)), _spell(plain[0][0]))

    def map(self) -> Networks:
        """The IPv4 addresses of the set in the form of IPv6."""
        return Networks(tuple((first + _MAPPED, last + _MAPPED) for first, last in (self & FAMILIES[0]).ranges))

    def unmap(self) -> Networks:
        """The IPv4-mapped addresses of the set, as the IPv4 addresses that they contain."""
        return Networks(tuple((first - _MAPPED, last - _MAPPED) for first, last in (self & MAPPED).ranges))

    def __str__(self) -> str:
        """The set in CIDR notation, separated by commas; `nowhere` if it is empty, `everywhere` if it has all."""
        if self == EVERYWHERE:
            return "everywhere"
        return ", ".join(str(network) for network in self.networks()) or "nowhere"

    def shorten(self) -> str:
        """A few networks and the number of the others."""
        texts = [str(network) for network in self.networks()]
        if not texts:
            return "no address"
        return ", ".join(texts[:4]) + (f" and {len(texts) - 4} more networks" if len(texts) > 4 else "")

    def networks(self) -> Iterator[IPv4Network | IPv6Network]:
        """The set as networks, in ascending order."""
        for first, last in self.ranges:
            if first < _V4:
                yield from summarize_address_range(IPv4Address(first), IPv4Address(min(last, _V4 - 1)))
            if last >= _V4:
                yield from summarize_address_range(IPv6Address(max(first, _V4) - _V4), IPv6Address(last - _V4))


def _spell(number: int) -> str:
    return str(IPv4Address(number)) if number < _V4 else str(IPv6Address(number - _V4))


def _join(ranges: Iterable[Range]) -> tuple[Range, ...]:
    joined: list[Range] = []
    for first, last in ranges:
        if joined and first <= joined[-1][1] + 1:
            if last > joined[-1][1]:
                joined[-1] = (joined[-1][0], last)
        else:
            joined.append((first, last))
    return tuple(joined)


def _intersect(one: tuple[Range, ...], other: tuple[Range, ...]) -> Iterator[Range]:
    i = j = 0
    while i < len(one) and j < len(other):
        first, last = max(one[i][0], other[j][0]), min(one[i][1], other[j][1])
        if first <= last:
            yield first, last
        if one[i][1] < other[j][1]:
            i += 1
        else:
            j += 1


def _invert(ranges: tuple[Range, ...]) -> Iterator[Range]:
    start = 0
    for first, last in ranges:
        if start < first:
            yield start, first - 1
        start = last + 1
    if start < _END:
        yield start, _END - 1


NOWHERE: Final = Networks()
EVERYWHERE: Final = Networks(((0, _END - 1),))
FAMILIES: Final = Networks(((0, _V4 - 1),)), Networks(((_V4, _END - 1),))
"""All IPv4 addresses, and all IPv6 addresses."""
MAPPED: Final = Networks(((_MAPPED, _MAPPED + _V4 - 1),))
"""IPv4-mapped addresses: IPv6 addresses that contain an IPv4 address. Which rules hold for them is not documented."""


def unmap(address: str) -> str | None:
    """The IPv4 address that an IPv4-mapped address contains; None for other addresses."""
    inner = parse_networks([address]).unmap()
    return inner.first() if inner else None


@lru_cache(maxsize=65536)
def _range_of(cidr: str) -> Range:
    network = ip_network(cidr, strict=False)
    offset = 0 if network.version == 4 else _V4
    return int(network.network_address) + offset, int(network.broadcast_address) + offset


def parse_networks(cidrs: Iterable[str]) -> Networks:
    """The union of networks in CIDR notation. Raises ValueError if a text is no network."""
    return Networks(_join(sorted(_range_of(cidr) for cidr in cidrs)))


@lru_cache(maxsize=1024)
def decide(allowed: tuple[str, ...], denied: tuple[str, ...]) -> Networks:
    """The addresses that an `allow` rule and no `deny` rule matches. Raises ValueError as `parse_networks`."""
    return parse_networks(allowed) - parse_networks(denied)
