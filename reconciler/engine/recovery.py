"""Finds out whether a create without a response took effect, before anything is created again.

An object carries the intent it was created for in its owner record. A kind that has nowhere to keep one is found by
its natural key among the ids that were not there before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from reconciler.engine import observe, requests
from reconciler.engine.context import RunContext
from reconciler.engine.ports import Failure, Intent, Journal, Lost, Reader
from reconciler.engine.requests import natural_key
from reconciler.model import owner_record as owners
from reconciler.model.address import Address
from reconciler.model.kind import Kind
from reconciler.model.plan import Call
from reconciler.model.snapshot import Binding, Live, Snapshot
from reconciler.model.value import Json

_ENDED = frozenset({408, 500, 503})
_SECOND = len("2026-01-01T00:00:00")


def may_still_take_effect(failure: Lost) -> bool:
    """Whether the request may take effect even now. Not after a status by which its own server gives it up; 502 and
    504 come from somebody on the way who did not wait for that server."""
    return failure.status not in _ENDED


async def find_by_intent(
    run: RunContext, call: Call, intents: Sequence[Intent], cause: Failure
) -> list[tuple[Mapping[str, Json], Intent]]:
    """The objects that came of one create's intents, each with its own, by a fresh list. Raises Lost if the list cannot
    be had."""
    kind = run.facts.kind_of(call)
    try:
        return await run.with_retries(
            call, lambda: run.checkpoint("search", call, lambda: _find_matches(run, kind, intents))
        )
    except Failure as failure:
        raise Lost(
            f"the answer to the create was lost ({cause}), and whether it took effect cannot be told, because the list "
            f"cannot be read: {failure}; run again when the platform answers"
        ) from failure


async def _find_matches(
    run: RunContext, kind: Kind, intents: Sequence[Intent]
) -> list[tuple[Mapping[str, Json], Intent]]:
    known = requests.ids_in_plan(run.facts.plan, kind.name)
    there = await _list_newest(run.ports.platform, kind, intents[0].path, known)
    found = ((body, next((intent for intent in intents if is_created_by(kind, body, intent)), None)) for body in there)
    return [(body, intent) for body, intent in found if intent is not None]


async def _list_newest(reader: Reader, kind: Kind, path: str, known: frozenset[str]) -> list[Mapping[str, Json]]:
    """The objects of a collection, asked for again, at least as far back as those `known` from before the create.

    Children come through their parent, which carries them.
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
    """Whether what follows is older than the create. Only where the list proves to be in order, newest first.

    To the second: within one nobody promises an order.
    """
    born = [str(body.get("created_at") or "")[:_SECOND] for body in found]
    in_order = all(born) and all(after <= before for before, after in pairwise(born))
    return in_order and any(
        moment > born[-1] and body.get(kind.key) in known for body, moment in zip(found, born, strict=True)
    )


def is_created_by(kind: Kind, body: Mapping[str, Json], intent: Intent) -> bool:
    """Whether this object is the one the intent asked for."""
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


def find_unsettled(intents: Iterable[Intent], snapshot: Snapshot, kinds: Iterable[Kind]) -> list[Intent]:
    """The intents of which this look shows nothing: their requests died with their sender, or are still on the way."""
    by_name = {kind.name: kind for kind in kinds}
    return [
        intent
        for intent in intents
        if (kind := by_name.get(intent.address.kind)) is not None and not _find_objects(kind, intent, snapshot)
    ]


def _find_objects(kind: Kind, intent: Intent, snapshot: Snapshot) -> list[Live]:
    there = snapshot.of(kind.name).objects
    return [
        live
        for live in there
        if observe.collection_path(kind, live.parent_id) == intent.path and is_created_by(kind, live.body, intent)
    ]


async def settle(
    intents: Iterable[Intent], snapshot: Snapshot, kinds: Iterable[Kind], journal: Journal
) -> Mapping[Address, Binding]:
    """Close what an earlier run left open, from a fresh snapshot; answers the bindings that were missing.

    An object that carries its intent needs nothing more: planning finds it by its owner record. An intent whose list is
    not complete stays open.
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
        # An open intent is younger than any binding: that one is of an object which is gone, or being replaced.
        if not kind.keeps_owner and len(found) == 1 and (known is None or known.id != found[0].locator):
            replaced = known.id if known and any(live.locator == known.id for live in listing.objects) else None
            bound[intent.address] = Binding(found[0].locator, replaces=replaced)
            await journal.bind({intent.address: bound[intent.address]})
        if len(found) <= 1:
            await journal.conclude(intent.id, found[0].id if found else None)
    return bound
