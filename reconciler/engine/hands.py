"""Makes sure, just before an object is changed or deleted, that it has not changed hands since the plan was made.

The platform knows no conditional requests, so a look at the owner record is all there is. The objects of a collection
are asked for one by one or by a list, whichever takes fewer requests. A list serves all calls for a while.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from urllib.parse import unquote

from reconciler.engine import compose
from reconciler.engine.ports import Clock, Platform, Refused
from reconciler.model.change import Action, Reason
from reconciler.model.kind import Kind
from reconciler.model.plan import Call, Plan, Verb
from reconciler.model.snapshot import Live
from reconciler.model.value import Json

FRESH = 5.0  # seconds for which a list is as good as asking anew
SHARE = 10  # times as long as it took to be had is a list good for: looking must not take longer than acting
PAGE = 100  # objects: the platform's largest page


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
        live = await self._from_list(kind, path) if _collection(path) in self._quicker_by_list else None
        if live is None:
            live = _live(kind, await self.platform.get(path), path)
        self._check(call, live)

    @cached_property
    def _quicker_by_list(self) -> frozenset[str]:
        """The collections of which a list takes fewer requests than the objects that the plan's calls are to."""
        wanted: dict[tuple[str, str], set[str]] = defaultdict(set)
        for call in self.plan.calls:
            if self.concerns(call) and self.kinds[call.address.kind].parent is None:
                path = _object(call)
                wanted[call.address.kind, _collection(path)].add(path)
        return frozenset(
            collection
            for (kind, collection), paths in wanted.items()
            if len(paths) > 1 + len(compose.ids(self.plan, kind)) // PAGE
        )

    async def _from_list(self, kind: Kind, path: str) -> Live | None:
        collection = _collection(path)
        async with self._turns.setdefault(collection, asyncio.Lock()):
            good_until, found = self._lists.get(collection, (float("-inf"), {}))
            began = self.clock.now()
            if began > good_until:
                found = {}
                async for page in self.platform.pages(collection, kind.list_key):
                    found |= {str(body.get(kind.key)): _live(kind, body, path) for body in page}
                took = self.clock.now() - began
                self._lists[collection] = (began + max(FRESH, SHARE * took), found)
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
