"""The entry points of an account as compact data, of which the script `access.js` draws the rows that are looked at."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from reconciler.model.access_change import AccessChange
from reconciler.model.access_entry import AccessEntry
from reconciler.rendering import inventory
from reconciler.rendering.plan import access_drift, phrases
from reconciler.rendering.plan.outline import Outline, show_entry
from reconciler.rendering.plan.phrases import Flavour
from reconciler.rendering.terminal_text import cut, sanitize

_MOST = 5_000  # rows of a page: changes first, then public and unknown ones
_LONGEST = 1_000  # cells of a text
_MOST_TEXTS = 12  # resources, and facts that are not known, of a row
_BINDING = re.compile(r" \((internal|kubernetes)\)$")
_PLACE = re.compile(r"([a-z]+://[^/ …]*)(.*)", re.DOTALL)


class AccessList(Struct, frozen=True):
    """The list of the page.

    data     for the script: texts, groups, and rows of name, group, who gets through (by index), whether it is public,
             resources, facts that are not known, and labels (each by index), and the change, if it changes
    number   of rows
    more     number of those that the page has no room for
    changed  number of entry points that change; `public`, `unknown`: in the same way
    """

    data: dict[str, Any]
    number: int
    more: int
    public: int
    changed: int
    unknown: int


class _Row(Struct, frozen=True):
    entry: AccessEntry
    change: AccessChange | None

    @property
    def is_public(self) -> bool:
        return self.entry.public and inventory.is_place(self.entry)

    @property
    def weight(self) -> int:
        return 3 * (self.change is not None) + 2 * self.is_public + bool(self.entry.unknown)


def build_list(
    entries: Sequence[AccessEntry], changes: Sequence[AccessChange], rows: Outline, flavour: Flavour
) -> AccessList:
    """The entry points of one state of the account, with the changes that led or will lead to it."""
    changed = {change.entry_point: change for change in changes}
    known = {entry.entry_point for entry in entries}
    every = [_Row(entry, changed.get(entry.entry_point)) for entry in entries]
    every += [_Row(_name_entry(change), change) for change in changes if change.entry_point not in known]
    heaviest = sorted(every, key=lambda row: -row.weight)[:_MOST]
    data = _Data(rows, flavour)
    encoded = [data.encode(row) for row in sorted(heaviest, key=_order)]
    return AccessList(
        {"texts": [*data.texts], "groups": [*inventory.GROUPS.values()], "rows": encoded},
        len(encoded),
        len(every) - len(encoded),
        sum(row.is_public for row in heaviest),
        sum(row.change is not None for row in heaviest),
        sum(bool(row.entry.unknown) for row in heaviest),
    )


def _name_entry(change: AccessChange) -> AccessEntry:
    """The entry for a change of requests that are no entry point of their own in the listed state."""
    name = change.entry_point
    place, bound = _PLACE.fullmatch(name), _BINDING.search(name)
    part = "credential" if name.startswith("what ") else "account"
    binding = (bound[1] if bound else "public") if place else part
    return AccessEntry(name, "", "", 0, "", False, binding, change.after, change.public, (), change.causes)


def _order(row: _Row) -> tuple[int, str, str]:
    """By group, host and path."""
    entry = row.entry
    place = _PLACE.fullmatch(entry.entry_point)
    host, path = place.groups() if place else (entry.entry_point, "")
    return [*inventory.GROUPS].index(entry.binding), host, path.rstrip("…")


class _Data:
    """Distinct texts by index, and rows that refer to them."""

    def __init__(self, rows: Outline, flavour: Flavour) -> None:
        self.texts: dict[str, int] = {}
        self._rows = rows
        self._flavour = flavour
        self._groups = [*inventory.GROUPS]

    def encode(self, row: _Row) -> list[Any]:
        entry, unknown = row.entry, row.change.depends_on if row.change else ()
        return [
            sanitize(inventory.name_entry(entry)),
            self._groups.index(entry.binding),
            self._find(entry.admits),
            int(row.is_public),
            self._find_all(entry.resources),
            self._find_all([text for text in entry.unknown if text not in unknown]),
            self._find_all(inventory.list_labels(entry)),
            *([self._encode_change(row.change)] if row.change else []),
        ]

    def _encode_change(self, change: AccessChange) -> list[Any]:
        """Its CSS class, the verdict and the details."""
        row = show_entry(change)
        level = "severe" if phrases.is_grave(row) else "mild"
        if self._flavour is Flavour.DRIFT:
            verdict = access_drift.describe_verdict(row)
            details = [access_drift.describe_states(self._rows, row), *access_drift.explain(row)]
        else:
            verdict = phrases.describe_verdict(row)
            details = [text for text in (phrases.describe_access_cause(row),) if text]
            details += phrases.explain_access(row)
        return [level, self._find(verdict), [self._find(text) for text in details]]

    def _find_all(self, texts: Sequence[str]) -> list[int]:
        more = len(texts) - _MOST_TEXTS
        return [self._find(text) for text in (*texts[:_MOST_TEXTS], *([f"and {more} more"] if more > 0 else []))]

    def _find(self, text: str) -> int:
        return self.texts.setdefault(cut(sanitize(text), _LONGEST), len(self.texts))
