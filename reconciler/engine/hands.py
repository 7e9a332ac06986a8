"""Makes sure, just before an object is changed or deleted, that it has not changed hands since the plan was made.

The platform knows no conditional requests, so a look at the owner record is all there is. A few objects of a collection
are asked for one by one, many by a list that serves all calls of the next seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote

from reconciler.engine.ports import Clock, Platform, Refused
from reconciler.model.change import Action, Reason
from reconciler.model.kind import Kind
from reconciler.model.plan import Call, Plan, Verb
from reconciler.model.snapshot import Live
from reconciler.model.value import Json

FRESH = 5.0  # seconds for which a list is as good as asking anew
FEW = 3  # requests for single objects that cost no more than a list


@dataclass
class Hands:
    """What is known of the owners of a run's objects, collection by collection."""

    plan: Plan
    platform: Platform
    clock: Clock
    kinds: Mapping[str, Kind]
    _lists: dict[str, tuple[float, dict[str, Live]]] = field(default_factory=dict)
    _turns: dict[str, asyncio.Lock] = field(default_factory=dict)

    def concerns(self, call: Call) -> bool:
        """Whether the call is to an object that was there before, of a kind that says whose it is."""
        return call.target is not None and isinstance(call.path, str) and self.kinds[call.address.kind].keeps_owner

    async def confirm(self, call: Call) -> None:
        """Raises Refused if the object is somebody else's by now, Gone if it is no more."""
        kind = self.kinds[call.address.kind]
        path = _object(call)
        live = await self._from_list(kind, path) if self._are_many(kind, path) else None
        if live is None:
            live = _live(kind, await self.platform.get(path), path)
        self._check(call, live)

    def _are_many(self, kind: Kind, path: str) -> bool:
        collection = _collection(path)
        same = {_object(each) for each in self.plan.calls if self.concerns(each) and each.address.kind == kind.name}
        return kind.parent is None and sum(_collection(each) == collection for each in same) > FEW

    async def _from_list(self, kind: Kind, path: str) -> Live | None:
        collection = _collection(path)
        async with self._turns.setdefault(collection, asyncio.Lock()):
            looked, found = self._lists.get(collection, (float("-inf"), {}))
            if self.clock.now() - looked > FRESH:
                looked = self.clock.now()
                found = {}
                async for page in self.platform.pages(collection, kind.list_key):
                    found |= {str(body.get(kind.key)): _live(kind, body, path) for body in page}
                self._lists[collection] = (looked, found)
        return found.get(unquote(path.rpartition("/")[2]))

    def _check(self, call: Call, live: Live) -> None:
        owner = live.owner
        if owner is not None and owner.stack != self.plan.stack:
            raise Refused(
                f"{live.id} was left alone: since the plan was made it became {owner.address} of stack {owner.stack}"
            )
        if owner is None and self._was_ours(call):
            raise Refused(f"{live.id} was left alone: since the plan was made our record on it was removed; plan again")

    def _was_ours(self, call: Call) -> bool:
        """Whether the plan saw our record on the object. Where it may have been anybody's, the answer is no."""
        if call.owner is not None:
            return call.owner.intent is not None
        changes = [each for each in self.plan.changes if each.address == call.address]
        may_be_anybodys = any(each.action is Action.ADOPT or each.reason is Reason.TOMBSTONE for each in changes)
        return call.verb is Verb.DELETE and not may_be_anybodys


def _object(call: Call) -> str:
    """The path of the object that a call is to, which the path of a module extends."""
    path = str(call.path)
    return path.rpartition("/")[0] if call.verb in (Verb.PUT, Verb.REMOVE) else path


def _collection(path: str) -> str:
    return path.rpartition("/")[0]


def _live(kind: Kind, body: Json | Mapping[str, Json], path: str) -> Live:
    if not isinstance(body, Mapping):
        raise Refused(f"{path} did not answer with an object")
    return Live(kind.name, str(body.get(kind.key)), body)
