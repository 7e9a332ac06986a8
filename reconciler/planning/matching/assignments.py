"""The assignment of live objects to declarations while a plan is created."""

from __future__ import annotations

from reconciler.model.address import Address
from reconciler.model.snapshot import Live, LiveKey
from reconciler.planning.matching.index import LiveIndex


class Assignments:
    """The live objects that are assigned to a declaration so far, by (kind, locator)."""

    def __init__(self, index: LiveIndex) -> None:
        self.index = index
        self.by_key: dict[LiveKey, Address] = {}

    def assign(self, live: Live, address: Address) -> Address:
        """Assigns the object to the address, unless another declaration has it. Returns its holder."""
        return self.by_key.setdefault(live.key, address)

    def is_assigned(self, live: Live) -> bool:
        """Whether the object is assigned to a declaration."""
        return live.key in self.by_key

    def is_free(self, live: Live, address: Address) -> bool:
        """Whether a natural key may assign the object: it is neither assigned nor reserved for another declaration."""
        return not self.is_assigned(live) and self.index.reserved_addresses.get(live.key, address) == address
