"""Checks whether the current account is the one that a stack belongs to.

The platform has no account id. An account is recognized by its base URL, the name that the project gives it, and above
all by the objects of the last apply.
"""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import quote

from reconciler import kinds
from reconciler.api.origin import Origin
from reconciler.engine.observe import collection_path
from reconciler.engine.ports import Failure, Reader
from reconciler.model.kind import Home
from reconciler.model.plan import Plan, Verb
from reconciler.model.snapshot import Snapshot
from reconciler.store.account import AccountMembership

MANY = 100  # objects that are stored as witnesses: more than one, since any may be deleted by hand
FEW = 3  # fewer missing objects may all have been deleted by hand


def account_of(base_url: str, name: str | None) -> str:
    """The account: base URL and name. Raises ValueError for an invalid base URL."""
    origin = Origin.parse(base_url)
    return f"{origin}{origin.prefix}" + (f" ({name})" if name else "")


def account_mismatch(remembered: AccountMembership | None, account: str, stack: str, snapshot: Snapshot) -> str:
    """Why this may be another account than that of the last apply; empty if there is no reason.

    One object of the last apply that still exists proves that it is the same account, at any URL. An incomplete list
    may contain one.
    """
    if remembered is None or any(_may_be_there(witness, snapshot) for witness in remembered.witnesses):
        return ""
    count = len(remembered.witnesses)
    gone = f"none of the {count} objects of its last apply exists" if count else ""
    if count == 1:
        gone = "the only object of its last apply does not exist"
    if remembered.account != account:
        more = f", and {gone}" if gone else ""
        return f"stack {stack} belongs to {remembered.account}, but the current account is {account}{more}"
    if count < FEW:
        return ""
    return f"stack {stack} belongs to {account}, but {gone}: the API key may belong to another account"


async def is_witnessed(remembered: AccountMembership, snapshot: Snapshot, reader: Reader) -> bool:
    """Whether an object of the stack's last apply exists: one that a list shows, or else one that is read by id."""
    objects = {f"{kind}:{live.locator}" for kind, listing in snapshot.listings.items() for live in listing.objects}
    if not objects.isdisjoint(remembered.witnesses):
        return True
    for kind_name, _, locator in (witness.partition(":") for witness in remembered.witnesses[:FEW]):
        kind, (parent_id, _, id) = kinds.find(kind_name), locator.rpartition("/")
        if kind is None:
            continue
        try:
            body = await reader.get(f"{collection_path(kind, parent_id or None)}/{quote(id, safe='')}")
        except Failure:
            continue
        if isinstance(body, dict) and body.get(kind.key) == id:
            return True
    return False


def membership_after(
    remembered: AccountMembership | None, account: str, plan: Plan, snapshot: Snapshot
) -> AccountMembership:
    """The account to store for a stack before the deletes of a plan are sent."""
    deleted = {call.target for call in plan.calls if call.verb is Verb.DELETE and call.target is not None}
    return membership(remembered, account, plan.stack, snapshot, deleted)


def membership(
    remembered: AccountMembership | None, account: str, stack: str, snapshot: Snapshot, deleted: Collection[str]
) -> AccountMembership:
    """The account to store for a stack, without the objects with the ids `deleted` as witnesses."""
    bound = {(address.kind, binding.id) for address, binding in snapshot.bindings.items()}
    found = {
        f"{kind}:{live.locator}"
        for kind, listing in snapshot.listings.items()
        if kinds.get(kind).home is Home.PLATFORM  # objects of an agent do not identify the account
        for live in listing.objects
        if live.id not in deleted
        and ((live.owner is not None and live.owner.stack == stack) or (kind, live.locator) in bound)
    }
    unlisted = {
        witness
        for witness in (remembered.witnesses if remembered and remembered.account == account else ())
        if not snapshot.of(witness.partition(":")[0]).complete
        and witness.rpartition("/")[2].rpartition(":")[2] not in deleted
    }
    return AccountMembership(account, tuple(sorted(found | unlisted)[:MANY]))


def _may_be_there(witness: str, snapshot: Snapshot) -> bool:
    kind, _, locator = witness.partition(":")
    listing = snapshot.of(kind)
    return not listing.complete or any(live.locator == locator for live in listing.objects)
