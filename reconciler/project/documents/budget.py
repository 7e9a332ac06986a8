"""The limits of what the files of a project unfold to: a small file must not take the memory of the machine.

A variable, a file, a default or an item of `for_each` that is used a thousand times is shared in memory while manifests
are read; digests, plans and requests contain it a thousand times. So each use is counted, as characters and values of
the unfolded form, right before it is produced. Limits of a single file are in `project.yaml`.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

MAX_CHARACTERS: Final = 60_000_000  # 50,000 resources of 1,200 characters; a plan holds each of them several times
MAX_VALUES: Final = 3_000_000  # keys and values: 50,000 resources of 30 fields
MAX_INSTANCES: Final = 50_000  # resources from `for_each` and components
_VALUES_OF_ADDRESS: Final = 20


class OverBudget(Exception):
    """A project unfolds to more than a limit.

    is_first  whether this is the first time: a limit is reported once
    """

    code = "limit-exceeded"
    remedy = "use less: shorten the largest texts, or insert them in fewer resources"

    def __init__(self, text: str, *, is_first: bool) -> None:
        super().__init__(text)
        self.is_first = is_first


class Budget(Struct):
    """What remains of the limits of one project. Each method raises OverBudget, before anything is produced."""

    instances: int = MAX_INSTANCES
    values: int = MAX_VALUES
    characters: int = MAX_CHARACTERS
    is_spent: bool = False

    def charge_instance(self) -> None:
        self._charge(instances=1)

    def charge_key(self, key: str) -> None:
        self._charge(1, weigh(key))

    def charge_text(self, text: str) -> None:
        """Charges the characters of a text, but no value: it is a part of one."""
        self._charge(0, weigh(text))

    def charge(self, value: Any) -> None:
        """Charges a value with everything inside."""
        match value:
            case str():
                self._charge(1, weigh(value))
            case dict():
                self._charge(1)
                for key, item in value.items():
                    self.charge_key(key)
                    self.charge(item)
            case list():
                self._charge(1)
                for item in value:
                    self.charge(item)
            case _:
                self._charge(1)

    def charge_file(self, text: bytes) -> None:
        """Charges the bytes of a file."""
        self._charge(0, len(text))

    def charge_content(self, text: bytes) -> None:
        """Charges about as many values as a YAML file holds: each takes one of these signs."""
        self._charge(2 * text.count(b":") + sum(map(text.count, (b"\n", b",", b"- ", b"[", b"{"))))

    def charge_copies(self, values: int, characters: int) -> None:
        """Charges what aliases repeat."""
        self._charge(values, characters)

    def charge_addresses(self, count: int, characters: int) -> None:
        """Charges former addresses. Each costs about as much as twenty values when manifests are read."""
        self._charge(_VALUES_OF_ADDRESS * count, characters)

    def _charge(self, values: int = 0, characters: int = 0, instances: int = 0) -> None:
        self.values -= values
        self.characters -= characters
        self.instances -= instances
        if self.values < 0 or self.characters < 0 or self.instances < 0:
            is_first, self.is_spent = not self.is_spent, True
            raise OverBudget(self._describe(), is_first=is_first)

    def _describe(self) -> str:
        if self.instances < 0:
            return f"for_each and components expand to more than {MAX_INSTANCES:,} resources in this project"
        what = f"{MAX_CHARACTERS:,} characters" if self.characters < 0 else f"{MAX_VALUES:,} values"
        return f"the manifests hold more than {what}, with everything that they insert"


def weigh(text: str) -> int:
    """The characters of a text as they are charged: of a text that is not ASCII, each takes up to four bytes."""
    return len(text) if text.isascii() else 4 * len(text)
