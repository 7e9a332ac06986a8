"""Finds additions: children on the platform, below objects of this stack, that no manifest declares (docs/drift.md).

A rule that is created in an IP policy outside Git changes who has access, although no declared resource differs.
Objects with an owner record or a binding of any stack are not additions.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from reconciler.model.address import Address
from reconciler.model.canonical import collect_applied
from reconciler.model.change import Action, Change, ChangedBy, FieldChange, Reason, Risk
from reconciler.model.kind import Kind
from reconciler.model.manifest import Ensure
from reconciler.model.problem import Problem, Severity
from reconciler.model.snapshot import Live, LiveKey
from reconciler.planning.comparing.canonical_fields import UNREAD
from reconciler.planning.comparing.plan_fields import show_fields
from reconciler.planning.deciding.decision import Decision
from reconciler.planning.deciding.options import PlanOptions
from reconciler.planning.matching.assignments import Assignments
from reconciler.planning.matching.index import LiveIndex

_LONGEST = 100  # characters of a name
_UNFIT = re.compile(r"[^A-Za-z0-9._-]+")


class Addition(NamedTuple):
    """An undeclared child, as the decision that would delete it, with the decision about its parent.

    is_newly_listed  whether the manifest of its parent lists all children of the kind, and that of the base does not
    """

    decision: Decision
    parent: Decision
    is_newly_listed: bool = False

    @property
    def is_to_be_deleted(self) -> bool:
        """Whether it will be deleted: at once if it is unlisted, otherwise with an approval.

        That is for `unmanaged_children: delete`, and for a branch that begins to list the children.
        """
        declaration = self.parent.declaration
        is_requested = declaration is not None and declaration.lifecycle.unmanaged_children == "delete"
        return (is_requested or self._is_left_out) and self.parent.is_kept

    @property
    def is_unlisted(self) -> bool:
        """Whether it is of a kind without owner records, and the manifest of its parent lists all children of the kind.

        A child that is removed from the list is then deleted without the store, which may have lost its binding.
        """
        return self._is_left_out and not self.is_newly_listed

    @property
    def _is_left_out(self) -> bool:
        declaration, kind = self.parent.declaration, self.decision.kind
        return declaration is not None and kind.name in declaration.listed and not kind.keeps_owner

    def change(self) -> Change:
        """The change that the plan shows, with every field that differs from its default."""
        from reconciler.planning.deciding.changes import describe_change  # deferred: few plans have an addition

        kind, form, address = self.decision.kind, self.decision.have, self.decision.address
        through = kind.part_of.field if kind.part_of is not None else ""
        readable = {name: value for name, value in form.items() if value is not UNREAD and name != through}
        values = show_fields(kind, dict(collect_applied(kind, readable)), address)
        change = describe_change(self.decision)
        assert change is not None
        return replace(
            change,
            fields=tuple(FieldChange(path, value, None, ChangedBy.PLATFORM) for path, value in values.items()),
            risks=(Risk.ADDED,),
            parent=self.parent.address,
            position=self.parent.declaration.position if self.parent.declaration is not None else None,
        )


def find_additions(assignments: Assignments, decided: Iterable[Decision], options: PlanOptions) -> list[Addition]:
    """The additions below each declared and selected object of this stack, sorted by kind and locator.

    `decided` are the decisions about declared resources.
    """
    index = assignments.index
    if index.manifest.unread is not None:
        return []  # an invalid manifest may declare them
    parents = _find_parents(index, decided)
    parent_kinds = {name for name, _ in parents}
    additions: list[Addition] = []
    names: set[Address] = set(index.manifest.declarations)
    for kind in index.kinds.values():
        if kind.part_of is None or kind.part_of.kind not in parent_kinds:
            continue
        unrecorded = [live for live in index.snapshot.of(kind.name).objects if live.owner is None]
        for live in sorted(unrecorded, key=lambda live: live.locator):
            parent = parents.get(find_parent_key(kind, live))
            if parent is None or not _is_unclaimed(assignments, live):
                continue
            address = choose_address(kind, live, parent.address, names)
            if _is_selected(options, address, parent.address):
                names.add(address)
                is_newly_listed = (parent.address, kind.name) in options.newly_listed
                additions.append(Addition(_build_deletion(index, kind, address, live), parent, is_newly_listed))
    return additions


def report_unknown_additions(index: LiveIndex, decided: Iterable[Decision]) -> Iterator[Problem]:
    """A warning for each kind whose incomplete list may hide additions."""
    incomplete = [kind for kind in index.kinds.values() if kind.part_of and _may_hide_additions(index, kind)]
    parents = _find_parents(index, decided) if incomplete else {}
    for kind in incomplete:
        listing, parent = index.snapshot.listings[kind.name], kind.part_of
        assert parent is not None
        above = [decision for (name, _), decision in parents.items() if name == parent.kind]
        if above:
            yield Problem(
                f"cannot determine whether {kind.name} objects were added on the platform: {listing.why}",
                "run `reconciler drift` again with a key that may list them",
                str(min(decision.address for decision in above)) if len(above) == 1 else parent.kind,
                severity=Severity.WARNING,
                code="additions-unknown",
            )


def _may_hide_additions(index: LiveIndex, kind: Kind) -> bool:
    listing = index.snapshot.listings.get(kind.name)
    return listing is not None and not listing.complete and listing.is_offered


def select_approved(additions: Sequence[Addition], options: PlanOptions) -> list[Addition]:
    """The additions that will be deleted: unlisted ones, and those of a kind whose approved count covers them all."""
    wanted: dict[str, list[Addition]] = {}
    unlisted = [addition for addition in additions if addition.is_to_be_deleted and addition.is_unlisted]
    for addition in additions:
        if addition.is_to_be_deleted and not addition.is_unlisted:
            wanted.setdefault(addition.decision.kind.name, []).append(addition)
    return unlisted + [
        addition
        for kind, requested in wanted.items()
        if options.allow.get(("delete", kind), 0) >= len(requested)
        for addition in requested
    ]


def _find_parents(index: LiveIndex, decided: Iterable[Decision]) -> Mapping[LiveKey, Decision]:
    """The declared live objects of this stack, of kinds with children, that do not ignore additions."""
    kinds_with_children = {kind.part_of.kind for kind in index.kinds.values() if kind.part_of is not None}
    return {
        decision.live.key: decision
        for decision in decided
        if decision.kind.name in kinds_with_children
        and decision.live is not None
        and decision.declaration is not None
        and decision.declaration.ensure is Ensure.PRESENT
        and decision.declaration.lifecycle.unmanaged_children != "ignore"
        and index.is_ours(decision.live)
    }


def find_parent_key(kind: Kind, live: Live) -> LiveKey:
    """The object that a child is part of; empty if its response does not say it."""
    from reconciler.planning.matching.references import find_live_references  # deferred, as above

    through = kind.part_of.field if kind.part_of is not None else ""
    return next((target for name, target in find_live_references(kind, live) if name == through), ("", ""))


def _is_unclaimed(assignments: Assignments, live: Live) -> bool:
    """Whether no declaration, record or binding claims the object."""
    index = assignments.index
    if assignments.is_assigned(live) or index.find_bound_addresses(live):
        return False
    return live.key not in index.reserved_addresses and live.key not in index.snapshot.elsewhere


def _is_selected(options: PlanOptions, address: Address, parent: Address) -> bool:
    if options.is_excluded(address) or options.is_excluded(parent):
        return False
    return options.selects(address) or options.selects(parent)


def choose_address(kind: Kind, live: Live, parent: Address, names: Collection[Address] = ()) -> Address:
    """A name for an undeclared object: its id, preceded by the parent's name if ids are unique within a parent only."""
    text = live.id if kind.key == "id" else f"{parent.name}-{live.id}"
    best = _UNFIT.sub("-", text).strip("-._")[:_LONGEST] or kind.name.lower()
    address, number = Address(kind.name, best), 1
    while address in names:
        number += 1
        address = Address(kind.name, f"{best[: _LONGEST - 6]}-{number}")
    return address


def _build_deletion(index: LiveIndex, kind: Kind, address: Address, live: Live) -> Decision:
    form = index.form(kind, live)
    return Decision(address, kind, action=Action.DELETE, reason=Reason.ADDED, live=live, have=form)
