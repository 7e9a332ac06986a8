"""Finds out whether a create without a response took effect, before anything is created again.

An object is recognized by the intent in its owner record. An object of a kind without owner records is recognized by
its natural key, among the ids that did not exist before the create.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from urllib.parse import quote

from reconciler.engine import observe, requests
from reconciler.engine.context import RunContext
from reconciler.engine.ports import Failure, Intent, Journal, Lost, MadeObject, Reader
from reconciler.engine.requests import make_locator, natural_key
from reconciler.model import owner_record as owners
from reconciler.model.address import Address
from reconciler.model.kind import Kind
from reconciler.model.plan import Call
from reconciler.model.snapshot import Binding, Live, LiveKey, Snapshot
from reconciler.model.value import Json

_FINAL = frozenset({408, 500, 503})
_SECOND = len("2026-01-01T00:00:00")


def may_still_take_effect(failure: Lost) -> bool:
    """Whether the request may take effect later. Not after 408, 500 and 503, which come from the platform's own server;
    502 and 504 come from a gateway that did not wait for that server."""
    return failure.status not in _FINAL


async def find_by_intent(
    run: RunContext, call: Call, intents: Sequence[Intent], cause: Failure
) -> list[tuple[Mapping[str, Json], Intent]]:
    """The objects that one create made, each with its intent, by a new list. Raises Lost if the list cannot be read."""
    kind = run.facts.kind_of(call)
    try:
        return await run.with_retries(
            call, lambda: run.checkpoint("search", call, lambda: _find_matches(run, kind, intents))
        )
    except Failure as failure:
        raise Lost(
            f"the response to the create was lost ({cause}), and its outcome is unknown, because the list cannot be "
            f"read: {failure}; apply again when the platform responds"
        ) from failure


async def _find_matches(
    run: RunContext, kind: Kind, intents: Sequence[Intent]
) -> list[tuple[Mapping[str, Json], Intent]]:
    known = requests.ids_in_plan(run.facts.plan, kind.name)
    bodies = await _list_newest(run.ports.platform, kind, intents[0].path, known)
    found = ((body, next((intent for intent in intents if is_created_by(kind, body, intent)), None)) for body in bodies)
    return [(body, intent) for body, intent in found if intent is not None]


async def _list_newest(reader: Reader, kind: Kind, path: str, known: frozenset[str]) -> list[Mapping[str, Json]]:
    """The objects of a collection, read again, back to those `known` from before the create.

    Children are read from the body of their parent, if it contains them.
    """
    if kind.parent is not None:
        parent = await reader.get(path.rpartition("/")[0])
        inside = observe.find_embedded(kind, parent) if isinstance(parent, Mapping) else None
        if inside is not None:
            return [body for body in inside if isinstance(body, Mapping)]
    found: list[Mapping[str, Json]] = []
    async for page in reader.pages(path, kind.list_key):
        found += page
        if _reaches_back(found, kind, known):
            break
    return found


def _reaches_back(found: Sequence[Mapping[str, Json]], kind: Kind, known: frozenset[str]) -> bool:
    """Whether the next pages can only be older than the create: the list is sorted, newest first, and has reached a
    known object. Compared to the second: within a second the order is not documented.
    """
    created = [str(body.get("created_at") or "")[:_SECOND] for body in found]
    in_order = all(created) and all(after <= before for before, after in pairwise(created))
    return in_order and any(
        moment > created[-1] and body.get(kind.key) in known for body, moment in zip(found, created, strict=True)
    )


def is_created_by(kind: Kind, body: Mapping[str, Json], intent: Intent) -> bool:
    """Whether this object was created by the intent's create."""
    if kind.keeps_owner:
        text = body.get("metadata")
        record = owners.read(text if isinstance(text, str) else "")[1]
        return record is not None and record.intent == intent.id
    return (
        bool(intent.identity)
        and body.get(kind.key) not in intent.before
        and (
            {name: value for name, value in natural_key(kind, body).items() if name in intent.identity}
            == intent.identity
        )
    )


def find_settling(
    made: Iterable[MadeObject], bindings: Mapping[Address, Binding], kinds: Iterable[Kind], settle: float
) -> Mapping[LiveKey, float]:
    """The seconds for which the absence of each of these objects means nothing, by kind and locator.

    settle  seconds after which the platform shows what it made

    Not of an object that a later call deleted: then no binding names it any more.
    """
    found: dict[LiveKey, float] = {}
    for key, _, seconds in _still_settling(made, bindings, kinds, settle):
        found[key] = max(seconds, found.get(key, 0.0))
    return found


def find_settling_paths(
    made: Iterable[MadeObject], bindings: Mapping[Address, Binding], kinds: Iterable[Kind], settle: float
) -> Mapping[str, float]:
    """As `find_settling`, by the path of the object."""
    found: dict[str, float] = {}
    for _, path, seconds in _still_settling(made, bindings, kinds, settle):
        found[path] = max(seconds, found.get(path, 0.0))
    return found


def _still_settling(
    made: Iterable[MadeObject], bindings: Mapping[Address, Binding], kinds: Iterable[Kind], settle: float
) -> Iterator[tuple[LiveKey, str, float]]:
    by_name = {kind.name: kind for kind in kinds}
    bound = {(address.kind, binding.id) for address, binding in bindings.items()}
    for item in made:
        kind = by_name.get(item.address.kind)
        if kind is None:
            continue
        key = (kind.name, make_locator(kind, item.path, item.id))
        seconds = min(settle - item.age, settle)  # the clock that wrote it may have been ahead
        if seconds > 0 and (item.is_open or key in bound):
            yield key, f"{item.path}/{quote(item.id, safe='')}", seconds


def find_unsettled(intents: Iterable[Intent], snapshot: Snapshot, kinds: Iterable[Kind]) -> list[Intent]:
    """The intents without an object in this snapshot: their requests were never sent, failed, or have not taken effect
    yet."""
    by_name = {kind.name: kind for kind in kinds}
    return [
        intent
        for intent in intents
        if (kind := by_name.get(intent.address.kind)) is not None and not _find_objects(kind, intent, snapshot)
    ]


def _find_objects(kind: Kind, intent: Intent, snapshot: Snapshot) -> list[Live]:
    return [
        live
        for live in snapshot.of(kind.name).objects
        if observe.collection_path(kind, live.parent_id) == intent.path and is_created_by(kind, live.body, intent)
    ]


async def settle(
    intents: Iterable[Intent], snapshot: Snapshot, kinds: Iterable[Kind], journal: Journal
) -> Mapping[Address, Binding]:
    """Closes the intents that an earlier run left open, by a new snapshot; returns the bindings that were missing.

    An object with an owner record needs no binding: planning finds it. An intent whose list is incomplete stays open.
    """
    by_name = {kind.name: kind for kind in kinds}
    bound: dict[Address, Binding] = {}
    for intent in intents:
        kind = by_name.get(intent.address.kind)
        listing = snapshot.of(intent.address.kind)
        if kind is None or not listing.complete:
            continue
        found = _find_objects(kind, intent, snapshot)
        known = snapshot.bindings.get(intent.address)
        # An open intent is newer than any binding, which then names an object that was deleted or is being replaced.
        if not kind.keeps_owner and len(found) == 1 and (known is None or known.id != found[0].locator):
            existing = {live.locator for live in listing.objects if live is not found[0]}
            former = [known.id, known.replaces] if known is not None else []
            replaced = next((locator for locator in former if locator in existing), None)
            bound[intent.address] = Binding(found[0].locator, replaces=replaced)
            await journal.bind({intent.address: bound[intent.address]})
        if len(found) <= 1:
            await journal.conclude(intent.id, found[0].id if found else intent.object)
    return bound
