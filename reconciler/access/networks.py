"""`Networks`: sets of IPv4 and IPv6 addresses as sorted ranges, with exact union, intersection and difference."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import lru_cache
from ipaddress import IPv6Address, ip_network
from itertools import islice
from typing import Final

from msgspec import Struct

Range = tuple[int, int]
"""The first and the last address. IPv6 addresses follow the IPv4 addresses, so that one list holds both."""

_V4: Final = 1 << 32
_END: Final = _V4 + (1 << 128)
_MAPPED: Final = _V4 + (0xFFFF << 32)  # IPv4-mapped addresses, ::ffff:0:0/96, begin here


class Networks(Struct, frozen=True, cache_hash=True):
    """A set of addresses: disjoint ranges that do not touch, in ascending order."""

    ranges: tuple[Range, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.ranges)

    def __or__(self, other: Networks) -> Networks:
        return Networks(_join(sorted((*self.ranges, *other.ranges))))

    def __and__(self, other: Networks) -> Networks:
        if self is EVERYWHERE:
            return other
        return Networks(tuple(_intersect(self.ranges, other.ranges)))

    def __sub__(self, other: Networks) -> Networks:
        return self & other.complement() if self.ranges and other.ranges else self

    def complement(self) -> Networks:
        """All addresses that are not in the set."""
        return Networks(tuple(_invert(self.ranges)))

    def contains(self, address: str) -> bool:
        return self._has(_range_of(address)[0])

    def _has(self, number: int) -> bool:
        after = bisect_right(self.ranges, (number, _END))
        return after > 0 and number <= self.ranges[after - 1][1]

    def size(self) -> int:
        """How many addresses the set has."""
        return sum(last - first + 1 for first, last in self.ranges)

    def first(self) -> str:
        """An address of the set: one for documentation if it has one, else its first, which is an IPv4-mapped one only
        if all are. The set is not empty."""
        for address, number in _PLAIN:
            if self._has(number):
                return address
        plain = (self & _UNMAPPED).ranges or self.ranges
        return _spell(plain[0][0])

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
        return ", ".join(self.networks()) or "nowhere"

    def shorten(self) -> str:
        """A few networks and the number of the others."""
        networks = self.networks()
        texts, more = [*islice(networks, 4)], sum(1 for _ in networks)
        if not texts:
            return "no address"
        others = f" and {more} more network{'s' if more > 1 else ''}" if more else ""
        return ", ".join(texts) + others

    def networks(self) -> Iterator[str]:
        """The set as networks in CIDR notation, in ascending order."""
        for first, last in self.ranges:
            if first < _V4:
                yield from _list_networks(first, min(last, _V4 - 1), 0, 32)
            if last >= _V4:
                yield from _list_networks(max(first, _V4) - _V4, last - _V4, _V4, 128)


def _list_networks(first: int, last: int, family: int, bits: int) -> Iterator[str]:
    """The largest networks that a range of addresses of one family consists of, counted from its first address."""
    while first <= last:
        aligned = (first & -first).bit_length() - 1 if first else bits
        free = min(aligned, (last - first + 1).bit_length() - 1)
        yield f"{_spell(family + first)}/{bits - free}"
        first += 1 << free


def _spell(number: int) -> str:
    if number >= _V4:
        return str(IPv6Address(number - _V4))
    return f"{number >> 24}.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"


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
_UNMAPPED: Final = MAPPED.complement()


def unmap(address: str) -> str | None:
    """The IPv4 address that an IPv4-mapped address contains; None for other addresses."""
    if ":" not in address:
        return None
    inner = parse_networks([address]).unmap()
    return inner.first() if inner else None


_IPV4: Final = re.compile(r"{0}\.{0}\.{0}\.{0}(?:/(\d\d?))?".format(r"(0|[1-9]\d{0,2})"), re.ASCII)


@lru_cache(maxsize=65536)
def _range_of(cidr: str) -> Range:
    if (match := _IPV4.fullmatch(cidr)) is not None:  # what nearly all are, ten times as fast
        *octets, length = (int(part or 32) for part in match.groups())
        if max(octets) <= 255 and length <= 32:
            size = 1 << 32 - length
            first = int.from_bytes(octets) & -size
            return first, first + size - 1
    network = ip_network(cidr, strict=False)
    offset = 0 if network.version == 4 else _V4
    return int(network.network_address) + offset, int(network.broadcast_address) + offset


def parse_networks(cidrs: Iterable[str]) -> Networks:
    """The union of networks in CIDR notation. Raises ValueError if a text is no network."""
    return Networks(_join(sorted(_range_of(cidr) for cidr in cidrs)))


_PLAIN: Final = tuple(
    (address, _range_of(address)[0])
    for address in ("192.0.2.1", "198.51.100.1", "203.0.113.1", "2001:db8::1")  # of no one, by RFC 5737 and RFC 3849
)


@lru_cache(maxsize=1024)
def decide(allowed: tuple[str, ...], denied: tuple[str, ...]) -> Networks:
    """The addresses that an `allow` rule and no `deny` rule matches. Raises ValueError as `parse_networks`."""
    return parse_networks(allowed) - parse_networks(denied)
