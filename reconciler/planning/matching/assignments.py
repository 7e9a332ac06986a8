"""Which declaration each live object is assigned to, while a plan is made."""

from __future__ import annotations

from reconciler.model.address import Address
from reconciler.model.snapshot import Live, LiveKey
from reconciler.planning.matching.index import LiveIndex


class Assignments:
    """The live objects that declarations have found so far."""

    def __init__(self, index: LiveIndex) -> None:
        self.index = index
        self.by_key: dict[LiveKey, Address] = {}

    def assign(self, live: Live, address: Address) -> Address:
        """The address that the object is assigned to: the first that asks."""
        key = live.key
        if (twin := self.index.aliases.get(key)) in self.by_key and twin is not None:
            return self.by_key[twin]
        return self.by_key.setdefault(key, address)

    def is_assigned(self, live: Live) -> bool:
        key = live.key
        return key in self.by_key or self.index.aliases.get(key) in self.by_key

    def is_free(self, live: Live, address: Address) -> bool:
        """Whether the object is assigned or promised to no other declaration."""
        return not self.is_assigned(live) and self.index.reserved_addresses.get(live.key, address) == address
