"""Carries out one create, exactly once: intent, request, search after a lost answer, delivery, record.

The process may die after each step, so their order matters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from reconciler.engine import delivery, recovery, requests
from reconciler.engine.context import RunContext
from reconciler.engine.ownership import SendTime
from reconciler.engine.ports import Conflict, Failure, Gone, Intent, Lost, Refused, Transient
from reconciler.model.event import Outcome
from reconciler.model.owner_record import Owner
from reconciler.model.plan import Call
from reconciler.model.snapshot import Binding
from reconciler.model.value import Json, Value


@dataclass(frozen=True, slots=True)
class CallResult:
    """How a call that did not fail ended."""

    outcome: Outcome
    id: str | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class _Answer:
    body: Mapping[str, Json]
    intent: Intent
    found: bool  # by a search: the platform's own answer was lost, and with it what it says only once


async def create(run: RunContext, call: Call) -> CallResult:
    """Creates an object. After a Failure there is none, or the intent stays open for the next run to settle."""
    await delivery.check_sinks(run, call)
    path = run.memory.values.path(call.path)
    for attempt in range(1, run.ports.retries.attempts + 1):
        result = await _Create(run, call, path).execute()
        if result is not None:
            return result
        await run.back_off(
            call, attempt, Lost("its secret went with the lost answer, and it is deleted: creating anew")
        )
    raise Lost("its secret was lost with every answer, and each object deleted again")


class _Create:
    """One create, from first to last.

    A request that may have taken effect never shares its intent with another request: an object that appears later,
    even much later, is told from the others, and planning deletes it.
    """

    def __init__(self, run: RunContext, call: Call, path: str) -> None:
        self._run = run
        self._call = call
        self._path = path
        self._kind = run.facts.kind_of(call)
        self._intents: list[Intent] = []  # the latest last, which the next request is for
        self._record: Owner | None = None
        self._body: dict[str, Value] = {}
        self._is_spent = False  # a request left for the latest intent that may have taken effect
        self._in_doubt = False  # or for any of them
        self._may_linger = False  # and that may still be worked on

    async def execute(self) -> CallResult | None:
        """None: it took effect, but its secret is lost, so it was deleted and must be created anew."""
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
            return CallResult(Outcome.ALREADY, object_id, "its answer was lost; found by a fresh list")
        return CallResult(Outcome.DONE, object_id)

    async def _intend(self) -> None:
        run, call = self._run, self._call
        intent_id = run.ports.random.intent()
        if call.owner is not None:
            self._record = requests.make_owner(
                call.owner, run.memory.values, self._kind, stack=run.facts.plan.stack, intent=intent_id
            )
        self._body = requests.make_body(call, run.memory.values, self._kind, self._record) or {}
        places = [run.ports.sinks.place(each) for each in call.deliver.values()]
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
                    raise
            else:
                return await self._replace_late_duplicates(body)
            if found is not None:
                return found
            if self._is_spent:
                await self._intend()
            attempt += 1

    async def _send_once(self) -> Mapping[str, Json]:
        departure = SendTime(self._run.ports.clock)
        body = requests.reveal_body(self._body)
        answer = await self._run.ports.platform.send("POST", self._path, body, check=departure)
        if not isinstance(answer, Mapping) or not isinstance(answer.get(self._kind.key), str):
            raise Lost(f"the platform's answer to the create names no {self._kind.key}")
        self._run.memory.ownership.learn(self._kind, self._object_path(answer), departure.sent_at, answer)
        return answer

    async def _wait_and_search(self, attempt: int, failure: Failure) -> _Answer | None:
        """Wait, then look for what a lost request did. Raises when there is to be no further attempt."""
        if isinstance(failure, Lost):
            self._is_spent = self._in_doubt = True
            self._may_linger = self._may_linger or recovery.may_still_take_effect(failure)
        try:
            # Waiting comes first: a request that is still being worked on is not in the list yet.
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
        """Deletes the object of an earlier request that took effect only after the search for it."""
        answer = _Answer(body, self._intents[-1], found=False)
        if not self._may_linger or not self._kind.keeps_owner:
            return answer
        found = await self._find_created(Lost("the create was repeated"))
        return await self._keep_one([answer, *(each for each in found if self._id(each) != self._id(answer))])

    async def _find_created(self, cause: Failure) -> list[_Answer]:
        found = await recovery.find_by_intent(self._run, self._call, self._intents, cause)
        return [_Answer(body, intent, found=True) for body, intent in found]

    async def _keep_one(self, made: Sequence[_Answer]) -> _Answer:
        """Keeps one of several objects, as planning would: the first, or the one whose secret is at hand."""
        kept = min(made, key=self._rank)
        for answer in made if self._kind.keeps_owner else ():
            if answer is not kept:
                await self._revoke(answer, "it was created twice")
        return kept

    def _rank(self, made: _Answer) -> tuple[bool, str, str]:
        return bool(self._call.deliver) and made.found, str(made.body.get("created_at") or ""), self._id(made)

    async def _discard(self, answer: _Answer) -> None:
        await self._revoke(answer, "the answer that held it was lost")
        await self._conclude(None)

    async def _deliver(self, answer: _Answer) -> None:
        try:
            await delivery.deliver(self._run, self._call, self._object(answer), answer.body)
        except Refused as failure:
            if isinstance(failure.__cause__, Failure):
                raise  # it could not be deleted either: the intent stays open
            await self._conclude(None)
            raise
        journal, intent_id = self._run.ports.journal, answer.intent.id
        await self._run.checkpoint("receipt", self._call, lambda: journal.record_receipt(intent_id))

    async def _remember(self, answer: _Answer) -> None:
        run, call = self._run, self._call
        run.memory.values.learn(call.address, self._kind, answer.body)
        run.memory.intents[call.address] = answer.intent.id
        if self._record is not None:
            await bind(run, call, requests.make_locator(self._kind, self._path, self._id(answer)), self._record)
        await self._conclude(answer)

    async def _conclude(self, made: _Answer | None) -> None:
        """Records that this object came of its intent, and nothing of the other intents."""
        for intent in self._intents:
            object_id = self._id(made) if made is not None and intent is made.intent else None
            await self._conclude_one(intent, object_id)

    async def _conclude_one(self, intent: Intent, object_id: str | None) -> None:
        run = self._run
        await run.checkpoint("conclude", self._call, lambda: run.ports.journal.conclude(intent.id, object_id))

    async def _revoke(self, made: _Answer, because: str) -> None:
        await delivery.revoke(self._run, self._call, self._object(made), because=because)

    def _id(self, made: _Answer) -> str:
        return str(made.body[self._kind.key])

    def _object(self, made: _Answer) -> str:
        return self._object_path(made.body)

    def _object_path(self, body: Mapping[str, Json]) -> str:
        return f"{self._path}/{quote(str(body[self._kind.key]), safe='')}"


async def bind(run: RunContext, call: Call, locator: str, record: Owner) -> None:
    """Writes the binding of an address to its object; after a move, removes the one of the former address."""
    has_record = run.facts.kind_of(call).keeps_owner  # which says what was applied
    applied = {} if has_record else dict(record.applied)
    binding = Binding(locator, applied, record.protect, None if has_record else record.replaces)
    former = run.facts.former_addresses.get(call.address)
    bindings = {call.address: binding} if former is None else {call.address: binding, former: None}
    await run.checkpoint("bind", call, lambda: run.ports.journal.bind(bindings))
    run.memory.bound[call.address] = binding
