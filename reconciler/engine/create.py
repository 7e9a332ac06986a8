"""Carries out one create, exactly once: intent, request, search after a lost answer, delivery, record.

The order of the steps is the whole point; each may be the last thing this process ever does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

from reconciler.engine import compose, delivery, lost
from reconciler.engine.means import Means
from reconciler.engine.ports import Conflict, Failure, Gone, Intent, Lost, Refused, Transient
from reconciler.model.event import Outcome
from reconciler.model.owner import Owner
from reconciler.model.plan import Call
from reconciler.model.snapshot import Binding
from reconciler.model.value import Json, Value


@dataclass(frozen=True, slots=True)
class Made:
    """How a call came out well."""

    outcome: Outcome
    id: str | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class _Answer:
    body: Mapping[str, Json]
    found: bool  # by a search: the platform's own answer was lost, and with it what it says only once


async def create(means: Means, call: Call) -> Made:
    """Raises a Failure; then nothing came of it, or the intent stays open for the next run to settle."""
    await delivery.prove(means, call)
    path = means.known.path(call.path)
    for attempt in range(1, means.retries.attempts + 1):
        made = await _Create(means, call, path).run()
        if made is not None:
            return made
        await means.pause(call, attempt, Lost("its secret went with the lost answer, and it is deleted: creating anew"))
    raise Lost("its secret was lost with every answer, and each object deleted again")


class _Create:
    """One intent, from first to last."""

    def __init__(self, means: Means, call: Call, path: str) -> None:
        self._means = means
        self._call = call
        self._path = path
        self._kind = means.kind_of(call)
        self._record: Owner | None = None
        draft = call.owner
        intent_id = means.chance.intent()
        if draft is not None:
            self._record = compose.owner(draft, means.known, self._kind, stack=means.plan.stack, intent=intent_id)
        self._body: dict[str, Value] = compose.body(call, means.known, self._kind, self._record) or {}
        self._intent: Intent = compose.intent(intent_id, call, self._body, self._kind, means.plan, path)
        self._in_doubt = False  # a request left that may have taken effect
        self._may_linger = False  # and that may still be worked on

    async def run(self) -> Made | None:
        """None: it took effect, but its secret is lost, so it was deleted and must be created anew."""
        means, call, intent = self._means, self._call, self._intent
        await means.step("intend", call, lambda: means.journal.intend(intent))
        try:
            answer = await self._send()
        except Failure:
            if not self._in_doubt:
                await self._conclude(None)
            raise
        object_id = str(answer.body[self._kind.key])
        if call.deliver:
            if answer.found:
                await self._discard(object_id, "the answer that held it was lost")
                return None
            await self._deliver(object_id, answer.body)
        await self._remember(object_id, answer.body)
        if answer.found:
            return Made(Outcome.ALREADY, object_id, "its answer was lost; found by a fresh list")
        return Made(Outcome.DONE, object_id)

    async def _send(self) -> _Answer:
        attempt = 1
        while True:
            try:
                answer = await self._means.step("send", self._call, self._post)
            except (Transient, Lost) as failure:
                found = await self._after(attempt, failure)
            except (Conflict, Gone, Refused) as failure:
                found = await self._search(failure) if self._in_doubt else None
                if found is None:
                    raise
            else:
                if self._may_linger:
                    await self._remove_twins(answer)
                return _Answer(answer, found=False)
            if found is not None:
                return _Answer(found, found=True)
            attempt += 1

    async def _post(self) -> Mapping[str, Json]:
        answer = await self._means.platform.send("POST", self._path, compose.payload(self._body))
        if not isinstance(answer, Mapping) or not isinstance(answer.get(self._kind.key), str):
            raise Lost(f"the platform's answer to the create names no {self._kind.key}")
        return answer

    async def _after(self, attempt: int, failure: Failure) -> Mapping[str, Json] | None:
        """Wait, then look for what a lost request did. Raises when there is to be no further attempt."""
        if isinstance(failure, Lost):
            self._in_doubt = True
            self._may_linger = self._may_linger or lost.may_linger(failure)
        try:
            # Waiting comes first: a request that is still being worked on is not in the list yet.
            least = self._means.retries.lag if self._in_doubt else 0.0
            await self._means.pause(self._call, attempt, failure, least=least)
        except Failure:
            found = await self._search(failure) if self._in_doubt else None
            if found is None:
                raise
            return found
        return await self._search(failure) if self._in_doubt else None

    async def _search(self, cause: Failure) -> Mapping[str, Json] | None:
        found = await lost.look(self._means, self._call, self._intent, cause)
        return found[0] if found else None

    async def _remove_twins(self, answer: Mapping[str, Json]) -> None:
        """A first request that outlived the search for it leaves a second object of the same intent."""
        if not self._kind.keeps_owner:
            return
        key = self._kind.key
        cause = Lost("the create was repeated")
        for twin in await lost.look(self._means, self._call, self._intent, cause):
            if twin.get(key) != answer[key]:
                path = self._object(str(twin.get(key)))
                await delivery.revoke(self._means, self._call, path, because="it was created twice")

    async def _discard(self, object_id: str, because: str) -> None:
        await delivery.revoke(self._means, self._call, self._object(object_id), because=because)
        await self._conclude(None)

    async def _deliver(self, object_id: str, answer: Mapping[str, Json]) -> None:
        try:
            await delivery.deliver(self._means, self._call, self._object(object_id), answer)
        except Refused as failure:
            if isinstance(failure.__cause__, Failure):
                raise  # it could not be deleted either: the intent stays open
            await self._conclude(None)
            raise
        await self._means.step("receipt", self._call, lambda: self._means.journal.receipt(self._intent.id))

    async def _remember(self, object_id: str, answer: Mapping[str, Json]) -> None:
        means, call = self._means, self._call
        means.known.learn(call.address, self._kind, answer)
        means.intents[call.address] = self._intent.id
        if self._record is not None:
            await bind(means, call, compose.locator(self._kind, self._path, object_id), self._record)
        await self._conclude(object_id)

    async def _conclude(self, object_id: str | None) -> None:
        means, intent = self._means, self._intent
        await means.step("conclude", self._call, lambda: means.journal.conclude(intent.id, object_id))

    def _object(self, object_id: str) -> str:
        return f"{self._path}/{quote(object_id, safe='')}"


async def bind(means: Means, call: Call, locator: str, record: Owner) -> None:
    """Remember the object of an address; after a move, no longer under its former one."""
    told_elsewhere = means.kind_of(call).keeps_owner  # the object's own record says what was applied
    applied = {} if told_elsewhere else dict(record.applied)
    binding = Binding(locator, applied, record.protect, None if told_elsewhere else record.replaces)
    former = means.formers.get(call.address)
    bindings = {call.address: binding} if former is None else {call.address: binding, former: None}
    await means.step("bind", call, lambda: means.journal.bind(bindings))
    means.bound[call.address] = binding
