"""Decides about orphans, objects of this stack without a declaration: deletes them, or reports why it does not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from reconciler.model.address import Address
from reconciler.model.change import Action, Reason
from reconciler.model.problem import Problem, Severity
from reconciler.model.snapshot import Live, Snapshot
from reconciler.planning.deciding.decision import Decision
from reconciler.planning.deciding.options import PlanOptions
from reconciler.planning.matching.assignments import Assignments
from reconciler.planning.matching.unclaimed import find_orphans, find_shared_records

_MOST_NAMES = 5


class OrphanRules(Struct, frozen=True):
    """Decides about orphans, once every declaration is decided.

    held  the addresses whose objects must not be deleted, with the reason
    """

    assignments: Assignments
    decided: Mapping[Address, Decision]
    options: PlanOptions
    held: Mapping[Address, Problem]

    def decide(self) -> Iterator[Decision | Problem]:
        """The delete of each selected orphan, or the problem that prevents it.

        Not deleted are orphans of unmatched declarations, of incomplete lists, and rotated secrets in their overlap.
        """
        index, spared = self.assignments.index, self._find_spared()
        selected = [
            (address, live)
            for address, live in find_orphans(self.assignments, spared)
            if self.options.selects(address) and not (spared and index.reserved_addresses.get(live.key) in spared)
        ]
        if index.manifest.unread is not None:
            undeclared = [
                f"{address} ({live.id})"
                for address, live in selected
                if not self._is_certain(address, live) and address not in index.manifest.unread.addresses
            ]
            selected = [(address, live) for address, live in selected if self._is_certain(address, live)]
            yield from [report_undeclared(undeclared)] if undeclared else []
        doubtful = find_shared_records(selected)
        if doubtful:
            from reconciler.planning.matching.match import report_shared_record  # deferred: few accounts have any

            reports = (report_shared_record(address, lives) for address, lives in doubtful.items())
            yield from (replace(report, confined=True) for report in reports)
        for address, live in selected:
            if address in doubtful or self._is_in_overlap(address, live):
                continue
            if address in self.held:
                yield self.held[address]
                continue
            listing = index.snapshot.of(live.kind)
            yield self._delete(address, live) if listing.complete else _report_unlisted(address, live, listing.why)

    def _is_certain(self, address: Address, live: Live) -> bool:
        """Whether another object has the address although some declarations could not be read: the object is not
        deleted for the absence of its declaration."""
        declared = self.decided.get(address)
        return declared is not None and live.owner is not None and live.owner.address == address

    def _find_spared(self) -> set[Address]:
        """The present and former addresses of declarations that are not selected or could not be matched."""
        spared: set[Address] = set()
        selects = self.options.selects if self.options.is_limited else None  # hot path: runs for every resource
        for address, decision in self.decided.items():
            if decision.problem is not None or (selects is not None and not selects(address)):
                spared |= {address, *self.assignments.index.manifest.declarations[address].moved}
                spared |= {decision.former} if decision.former is not None else set()
        return spared

    def _delete(self, address: Address, live: Live) -> Decision:
        index, declared = self.assignments.index, self.decided.get(address)
        recorded = live.owner.address if live.owner is not None else address
        is_reused = declared is not None and (declared.live is not None or declared.is_new)
        reason = Reason.DESTROYED if self.options.destroy else Reason.REMOVED
        if live.key in index.duplicates:
            reason = Reason.DUPLICATE
        elif is_reused:
            reason = Reason.SUPERSEDED
        kind = index.kinds[live.kind]
        return Decision(
            address,
            kind,
            action=Action.DELETE,
            reason=reason,
            live=live,
            former=recorded if recorded != address else None,
            have=index.form(kind, live),
            live_protected=index.is_protected(live),
            adopted=not kind.keeps_owner and index.is_adopted(live),
            address_reused=is_reused,
        )

    def _is_in_overlap(self, address: Address, live: Live) -> bool:
        """Whether the object was rotated, and stays for the rest of the overlap."""
        decision = self.decided.get(address) or self._find_renamed(address)
        if decision is None or decision.declaration is None or decision.live is None:
            return False
        from reconciler.planning.deciding.rotation import is_in_overlap  # deferred, as above

        return is_in_overlap(decision.declaration, decision.live, live, self.options.now)

    def _find_renamed(self, address: Address) -> Decision | None:
        """The decision about the object whose owner record has the address, and which was moved to another one."""
        by_key = self.assignments.by_key
        recorded = self.assignments.index.by_owner.get(address, ())
        decisions = (self.decided.get(by_key.get(live.key, address)) for live in recorded)
        return next((decision for decision in decisions if decision is not None), None)


def _report_unlisted(address: Address, live: Live, why: str) -> Problem:
    return Problem(
        f"{live.id} is no longer declared, but the list of {live.kind} objects is incomplete",
        f"try again; nothing of a kind is deleted until its list is complete ({why})",
        str(address),
        severity=Severity.WARNING,
        code="kind-not-listed",
    )


def report_undeclared(objects: list[str]) -> Problem:
    """The warning that objects are not deleted, since an invalid manifest may declare them.

    objects  as `Kind/name (ID)`; not those that an invalid manifest is known to declare, which has its own problem
    """
    first = ", ".join(sorted(objects)[:_MOST_NAMES]) + (
        f" and {len(objects) - _MOST_NAMES} more" if len(objects) > _MOST_NAMES else ""
    )
    return Problem(
        f"no valid manifest declares {first}; nothing is deleted while a manifest is invalid",
        "correct the invalid manifests",
        severity=Severity.WARNING,
        code="manifests-incomplete",
    )


def report_unreadable_kinds(snapshot: Snapshot) -> Iterator[Problem]:
    """A warning that names the kinds that the API key may not read."""
    denied = sorted(name for name, listing in snapshot.listings.items() if listing.denied)
    if denied:
        text = f"the API key may not read these kinds: {', '.join(denied)}"
        remedy = "use a key that may read them; until then they are neither compared nor deleted"
        yield Problem(text, remedy, severity=Severity.WARNING, code="kind-not-readable")
