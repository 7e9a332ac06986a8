"""Divides members among the waves of a fleet."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from reconciler.model.fleet import Fleet, Member


def assign_waves(fleet: Fleet, members: Sequence[Member]) -> Mapping[str, int]:
    """The index of the wave of each member, by name.

    Each wave takes the members that it selects and that no earlier wave took. With `percent` it takes that share of
    all members that it selects, at least one, in the order of a digest of the names: the choice depends neither on the
    alphabet nor on the order of the file. `percent` counts the given members, which may be a part of the fleet.
    """
    assigned: dict[str, int] = {}
    last = len(fleet.waves) - 1
    for index, wave in enumerate(fleet.waves):
        selected = [member.name for member in members if member.matches(wave.select)]
        free = [name for name in selected if name not in assigned]
        if wave.percent is not None:
            count = max(1, len(selected) * wave.percent // 100)
            free = sorted(free, key=_order)[:count]
        assigned |= dict.fromkeys(free, index)
    return {member.name: assigned.get(member.name, last) for member in members}


def _order(name: str) -> bytes:
    return hashlib.blake2b(name.encode(), digest_size=8).digest()
