"""Finds duplicates that two concurrent runs created, so that an apply deletes the newer objects at its end."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from reconciler.model.change import Reason
from reconciler.model.plan import Call, Plan, Verb
from reconciler.operations.reporting import Note, OnEvent


def cleanup_plan(plan: Plan, on_event: OnEvent) -> Plan | None:
    """The part of a plan that deletes duplicates, with the calls that these deletes need; None if there is none.

    Deletes that need approval are left out.
    """
    later = {(change.address, change.id) for change in plan.changes if change.reason is Reason.DUPLICATE}
    unapproved = {approval.kind for approval in plan.missing_approvals}
    if not later or plan.blocking_errors or "*" in unapproved:
        return None
    calls = {call.id: call for call in plan.calls}
    chosen: set[str] = set()
    for call in plan.calls:
        if call.verb is not Verb.DELETE or (call.address, call.target) not in later:
            continue
        needed = _with_needs(call, calls)
        if unapproved.isdisjoint(calls[id].address.kind for id in needed):
            chosen |= needed
            on_event(
                Note(f"{call.address} was created by two concurrent runs; its duplicate {call.target} will be deleted")
            )
    if not chosen:
        return None
    return replace(plan, calls=tuple(call for call in plan.calls if call.id in chosen), bindings={})


def _with_needs(call: Call, calls: Mapping[str, Call]) -> set[str]:
    """The ids of a call and of all calls that it needs, directly or not."""
    found: set[str] = set()
    pending = [call.id]
    while pending:
        if (id := pending.pop()) not in found:
            found.add(id)
            pending += calls[id].needs
    return found
