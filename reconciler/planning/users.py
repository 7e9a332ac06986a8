"""Who uses what a plan changes: the resources that refer to it, directly or through others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from reconciler.model.address import Address
from reconciler.model.kind import Kind
from reconciler.model.plan import Users

NAMED = 25  # users of a change that a plan names
_MOST = 1_000  # users of a change that are counted: a plan of thousands of changes stays quick


def find_users(
    dependencies: Mapping[Address, Collection[Address]], kinds: Mapping[str, Kind], changed: Iterable[Address]
) -> dict[Address, Users]:
    """The users of each changed resource that has any.

    What refers to a resource uses it, by an id or by a host name. A parent uses its children, as a policy its rules:
    what refers to the parent uses them, too.

    dependencies  by declaration, the declarations that it depends on
    """
    wanted = list(changed)
    if not wanted:
        return {}
    users: dict[Address, list[Address]] = defaultdict(list)
    for address, needed in dependencies.items():
        for other in needed:
            part_of = kinds[address.kind].part_of
            is_part = part_of is not None and part_of.kind == other.kind
            user, used = (other, address) if is_part else (address, other)
            users[used].append(user)
    found = {address: list(_walk(address, users)) for address in wanted}
    return {address: _limit(names) for address, names in found.items() if names}


def _walk(address: Address, users: Mapping[Address, Sequence[Address]]) -> Iterator[Address]:
    """The users, the nearest first; all that are equally near, until there are more than are counted."""
    seen, nearest = {address}, [address]
    while nearest and len(seen) <= _MOST + 1:
        following = sorted({user for here in nearest for user in users.get(here, ())} - seen)
        yield from following
        seen.update(following)
        nearest = following


def _limit(names: Sequence[Address]) -> Users:
    return Users(tuple(names[:NAMED]), min(len(names), _MOST + 1))
