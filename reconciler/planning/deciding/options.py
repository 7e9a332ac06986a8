"""What the user allows this plan to do, as plain values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from reconciler.model.address import Address


@dataclass(frozen=True)
class PlanOptions:
    """
    allow                  consents given: ("delete", "ReservedDomain") → how many
    adopt                  take over what nobody owns wherever a natural key finds it
    destroy                everything is meant to go: an empty manifest is no mistake
    targets, excludes      globs over addresses; no target means everything
    to_replace             declared resources to be made anew, whether or not anything differs
    max_…_percent          of ten or more owned objects, how many may go or change without consent
    now                    seconds since 1970: tells what is due for renewal
    requests_per_minute    the account's budget, 0 for none
    """

    allow: Mapping[tuple[str, str], int] = field(default_factory=dict)
    adopt: bool = False
    destroy: bool = False
    targets: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()
    to_replace: frozenset[Address] = frozenset()
    max_delete_percent: int = 30
    max_update_percent: int = 30
    requests_per_minute: int = 0
    commit: str = ""
    now: float = 0.0

    @property
    def is_limited(self) -> bool:
        return bool(self.targets or self.excludes)

    def find_unmatched(self, addresses: Iterable[Address]) -> list[str]:
        """The globs that match none of these: a name that is misspelt there would quietly select nothing."""
        texts = [str(address) for address in addresses]
        return [
            glob
            for glob in dict.fromkeys((*self.targets, *self.excludes))
            if not any(fnmatchcase(text, glob) for text in texts)
        ]

    def selects(self, address: Address) -> bool:
        if not self.is_limited:
            return True
        text = str(address)
        wanted = not self.targets or any(fnmatchcase(text, glob) for glob in self.targets)
        return wanted and not self.is_excluded(address)

    def is_excluded(self, address: Address) -> bool:
        """Whether it is excluded by name."""
        return any(fnmatchcase(str(address), glob) for glob in self.excludes)
