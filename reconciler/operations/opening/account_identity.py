"""Whether this account is the one that a stack belongs to.

The platform names no account. What tells one from another is its address, the name that the project gives it, and above
all the objects that were there when the stack was last applied.
"""

from __future__ import annotations

from collections.abc import Collection

from reconciler import kinds
from reconciler.api.origin import Origin
from reconciler.model.kind import Home
from reconciler.model.plan import Plan, Verb
from reconciler.model.snapshot import Snapshot
from reconciler.store.account import AccountMembership

MANY = 100  # witnesses that are kept: one alone would do, if nobody ever deleted it by hand
FEW = 3  # of fewer objects all may well have been deleted by hand


def account_of(base_url: str, name: str | None) -> str:
    """The account in a few words. ValueError if the base address will not do."""
    origin = Origin.parse(base_url)
    return f"{origin}{origin.prefix}" + (f" ({name})" if name else "")


def account_mismatch(remembered: AccountMembership | None, account: str, stack: str, snapshot: Snapshot) -> str:
    """Why this may be another account than the one remembered; empty if there is no reason to think so.

    An object that is still there tells that it is the same one, under whatever address. What could not be listed may
    hold one.
    """
    if remembered is None or any(_may_be_there(witness, snapshot) for witness in remembered.witnesses):
        return ""
    count = len(remembered.witnesses)
    gone = f"none of the {count} objects it was last seen with is there" if count else ""
    if remembered.account != account:
        more = f", and {gone}" if gone else ""
        return f"stack {stack} belongs to {remembered.account}, and this is {account}{more}"
    if count < FEW:
        return ""
    return f"stack {stack} belongs to {account}, but {gone}: the key may be of another account"


def membership_after(
    remembered: AccountMembership | None, account: str, plan: Plan, snapshot: Snapshot
) -> AccountMembership:
    """What to remember of a stack before the deletes of a plan are sent."""
    doomed = {call.target for call in plan.calls if call.verb is Verb.DELETE and call.target is not None}
    return membership(remembered, account, plan.stack, snapshot, doomed)


def membership(
    remembered: AccountMembership | None, account: str, stack: str, snapshot: Snapshot, doomed: Collection[str]
) -> AccountMembership:
    """What to remember of a stack before the objects with the ids `doomed` are deleted."""
    bound = {(address.kind, binding.id) for address, binding in snapshot.bindings.items()}
    found = {
        f"{kind}:{live.locator}"
        for kind, listing in snapshot.listings.items()
        if kinds.get(kind).home is Home.PLATFORM  # what ends with an agent says nothing of the account
        for live in listing.objects
        if live.id not in doomed
        and ((live.owner is not None and live.owner.stack == stack) or (kind, live.locator) in bound)
    }
    unseen = {
        each
        for each in (remembered.witnesses if remembered and remembered.account == account else ())
        if not snapshot.of(each.partition(":")[0]).complete and each.rpartition("/")[2].rpartition(":")[2] not in doomed
    }
    return AccountMembership(account, tuple(sorted(found | unseen)[:MANY]))


def _may_be_there(witness: str, snapshot: Snapshot) -> bool:
    kind, _, locator = witness.partition(":")
    listing = snapshot.of(kind)
    return not listing.complete or any(live.locator == locator for live in listing.objects)
