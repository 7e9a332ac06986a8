"""Performs one create exactly once: intent, request, search after a lost response, delivery, record.

The process may die after each step; the order of the steps makes every such state recoverable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import quote

from msgspec import Struct

from reconciler.engine import delivery, recovery, requests
from reconciler.engine.context import RunContext, not_visible_yet
from reconciler.engine.ownership import SendTime
from reconciler.engine.ports import Conflict, Failure, Gone, Intent, Lost, Refused, Transient
from reconciler.model.event import Outcome
from reconciler.model.kind import Kind
from reconciler.model.owner_record import Owner
from reconciler.model.plan import Call
from reconciler.model.snapshot import Binding
from reconciler.model.value import Json, Value


class CallResult(Struct, frozen=True):
    """How a call ended that did not fail."""

    outcome: Outcome
    id: str | None = None
    why: str = ""


class _Answer(Struct, frozen=True):
    body: Mapping[str, Json]
    intent: Intent
    found: bool  # by a search, since the response was lost: then the one-time secret is lost too


async def create(run: RunContext, call: Call) -> CallResult:
    """Creates an object. After a Failure no object exists, or its intent stays open and the next run settles it."""
    await delivery.check_sinks(run, call)
    path = run.memory.values.path(call.path)
    attempt = 1
    while (result := await _Create(run, call, path).execute()) is None:
        await run.back_off(
            call, attempt, Lost("the response with its secret was lost, so the object was deleted; creating it again")
        )
        attempt += 1
    return result


class _Create:
    """One create, with all its attempts.

    A request that may have taken effect never shares its intent with another request: an object that appears later,
    even much later, can be told apart, and planning deletes it.
    """

    def __init__(self, run: RunContext, call: Call, path: str) -> None:
        self._run = run
        self._call = call
        self._path = path
        self._kind = run.facts.kind_of(call)
        self._intents: list[Intent] = []  # the last one is that of the next request
        self._record: Owner | None = None
        self._body: dict[str, Value] = {}
        self._is_spent = False  # a request with the last intent may have taken effect
        self._in_doubt = False  # a request with any of the intents may have taken effect
        self._may_linger = False  # and the platform may still be processing it

    async def execute(self) -> CallResult | None:
        """The result; None if the object was deleted again because its secret was lost, and must be created again."""
        await self._intend()
        try:
            answer = await self._send()
        except Failure:
            if not self._in_doubt:
                await self._conclude(None)
            raise
        if self._call.deliver:
            if answer.found:
                await self._discard(answer)
                return None
            await self._deliver(answer)
        await self._remember(answer)
        object_id = self._id(answer)
        if answer.found:
            return CallResult(Outcome.ALREADY, object_id, "its response was lost; the object was found in a new list")
        return CallResult(Outcome.DONE, object_id)

    async def _intend(self) -> None:
        """Stores a new intent, and prepares the body that carries it."""
        run, call = self._run, self._call
        intent_id = run.ports.random.intent()
        if call.owner is not None:
            self._record = requests.make_owner(
                call.owner, run.memory.values, self._kind, stack=run.facts.plan.stack, intent=intent_id
            )
        self._body = requests.make_body(call, run.memory.values, self._kind, self._record) or {}
        places = [run.ports.sinks.place(delivery) for delivery in call.deliver.values()]
        intent = requests.make_intent(intent_id, call, self._body, self._kind, run.facts.plan, self._path, *places)
        self._intents.append(intent)
        self._is_spent = False
        await run.checkpoint("intend", call, lambda: run.ports.journal.intend(intent))

    async def _send(self) -> _Answer:
        attempt = 1
        while True:
            try:
                body = await self._run.checkpoint("send", self._call, self._send_once)
            except (Transient, Lost) as failure:
                found = await self._wait_and_search(attempt, failure)
            except (Conflict, Gone, Refused) as failure:
                found = await self._search(failure) if self._in_doubt else None
                if found is None:
                    if not isinstance(failure, Gone) or not self._run.is_settling(self._path):
                        raise
                    await self._run.back_off(self._call, attempt, not_visible_yet(self._path, failure))
            else:
                return await self._replace_late_duplicates(body)
            if found is not None:
                return found
            if self._is_spent:
                await self._intend()
            attempt += 1

    async def _send_once(self) -> Mapping[str, Json]:
        send_time = SendTime(self._run.ports.clock)
        body = requests.reveal_body(self._body)
        answer = await self._run.ports.platform.send("POST", self._path, body, check=send_time)
        answer = _name_as_sent(self._kind, answer, body)
        if not isinstance(answer, Mapping) or not isinstance(answer.get(self._kind.key), str):
            raise Lost(f"the platform's response to the create has no {self._kind.key}")
        self._run.memory.ownership.learn(self._kind, self._object_path(answer), send_time.sent_at, answer)
        self._run.memory.made[self._object_path(answer)] = self._run.ports.clock.now()
        return answer

    async def _wait_and_search(self, attempt: int, failure: Failure) -> _Answer | None:
        """Waits, then searches for the object of a lost request. Raises if no attempt is left."""
        if isinstance(failure, Lost):
            self._is_spent = self._in_doubt = True
            self._may_linger = self._may_linger or recovery.may_still_take_effect(failure)
        try:
            # Wait before the search: the object of a request that is still being processed is not in the list yet.
            least = self._run.ports.retries.lag if self._in_doubt else 0.0
            await self._run.back_off(self._call, attempt, failure, least=least)
        except Failure:
            found = await self._search(failure) if self._in_doubt else None
            if found is None:
                raise
            return found
        return await self._search(failure) if self._in_doubt else None

    async def _search(self, cause: Failure) -> _Answer | None:
        found = await self._find_created(cause)
        return await self._keep_one(found) if found else None

    async def _replace_late_duplicates(self, body: Mapping[str, Json]) -> _Answer:
        """The created object. Deletes objects of earlier requests that took effect after the search for them."""
        answer = _Answer(body, self._intents[-1], found=False)
        if not self._may_linger or not self._kind.keeps_owner:
            return answer
        found = await self._find_created(Lost("an earlier request had no response"))
        return await self._keep_one([answer, *(other for other in found if self._id(other) != self._id(answer))])

    async def _find_created(self, cause: Failure) -> list[_Answer]:
        found = await recovery.find_by_intent(self._run, self._call, self._intents, cause)
        return [_Answer(body, intent, found=True) for body, intent in found]

    async def _keep_one(self, created: Sequence[_Answer]) -> _Answer:
        """Keeps one of several objects and deletes the others: keeps the oldest, as planning would, or the one whose
        secret was received."""
        best = min(created, key=self._rank)
        for answer in created if self._kind.keeps_owner else ():
            if answer is not best:
                await self._revoke(answer, "it was created twice")
        return best

    def _rank(self, created: _Answer) -> tuple[bool, str, str]:
        return bool(self._call.deliver) and created.found, str(created.body.get("created_at") or ""), self._id(created)

    async def _discard(self, answer: _Answer) -> None:
        await self._revoke(answer, "the response with it was lost")
        await self._conclude(None)

    async def _deliver(self, answer: _Answer) -> None:
        journal, intent_id, object_id = self._run.ports.journal, answer.intent.id, self._id(answer)
        # The secret may overwrite an earlier one: the next run must know that even if this object is gone by then.
        await self._run.checkpoint("receive", self._call, lambda: journal.record_object(intent_id, object_id))
        try:
            await delivery.deliver(self._run, self._call, self._object(answer), answer.body)
        except Refused as failure:
            if isinstance(failure.__cause__, Failure):
                raise  # the object could not be deleted: its intent stays open
            await self._conclude(None)
            raise
        await self._run.checkpoint("receipt", self._call, lambda: journal.record_receipt(intent_id))

    async def _remember(self, answer: _Answer) -> None:
        run, call = self._run, self._call
        run.memory.values.learn(call.address, self._kind, answer.body)
        run.memory.intents[call.address] = answer.intent.id
        if self._record is not None:
            await bind(run, call, requests.make_locator(self._kind, self._path, self._id(answer)), self._record)
        await self._conclude(answer)

    async def _conclude(self, created: _Answer | None) -> None:
        """Closes the intents: the given object belongs to its intent, and no object to the others."""
        for intent in self._intents:
            object_id = self._id(created) if created is not None and intent is created.intent else None
            await self._conclude_one(intent, object_id)

    async def _conclude_one(self, intent: Intent, object_id: str | None) -> None:
        run = self._run
        await run.checkpoint("conclude", self._call, lambda: run.ports.journal.conclude(intent.id, object_id))

    async def _revoke(self, created: _Answer, because: str) -> None:
        await delivery.revoke(self._run, self._call, self._object(created), because=because)

    def _id(self, created: _Answer) -> str:
        return str(created.body[self._kind.key])

    def _object(self, created: _Answer) -> str:
        return self._object_path(created.body)

    def _object_path(self, body: Mapping[str, Json]) -> str:
        return f"{self._path}/{quote(str(body[self._kind.key]), safe='')}"


def _name_as_sent(kind: Kind, answer: Json, body: Mapping[str, Json] | None) -> Json:
    """The response with the name that was sent, where an agent answers with an empty one."""
    if kind.key == "id" or not isinstance(answer, Mapping) or answer.get(kind.key):
        return answer
    return {**answer, kind.key: (body or {}).get(kind.key)}


async def bind(run: RunContext, call: Call, locator: str, record: Owner) -> None:
    """Writes the binding of an address to its object; after a move, removes the binding of the former address."""
    has_record = run.facts.kind_of(call).keeps_owner  # then the owner record holds the applied digests
    known = run.memory.bindings.get(call.address)
    replaces = known.replaces if record.replaces is None and known is not None else record.replaces
    applied = {} if has_record else dict(record.applied)
    adopted = call.owner is not None and call.owner.adopted
    binding = Binding(locator, applied, record.protect, None if has_record else replaces, adopted)
    former = run.facts.former_addresses.get(call.address)
    bindings = {call.address: binding} if former is None else {call.address: binding, former: None}
    await run.checkpoint("bind", call, lambda: run.ports.journal.bind(bindings))
    run.memory.bindings[call.address] = binding
