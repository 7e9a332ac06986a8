"""Carries out a plan and tells what happens, as a stream of events. It decides nothing that the plan left open.

A loop of a few lines starts what is ready and listens; what one call takes is in `create`, `recovery` and `delivery`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from dataclasses import replace
from urllib.parse import unquote

from reconciler.engine import concurrency as pace
from reconciler.engine import create, requests, retry
from reconciler.engine.context import POINTS, Means, Reach, Stop
from reconciler.engine.create import Made
from reconciler.engine.ports import Chance, Clock, Failure, Gone, Journal, Platform, Refused, Sinks, Withheld
from reconciler.engine.requests import Known
from reconciler.engine.schedule import Schedule
from reconciler.model.event import Ended, Event, Outcome, Retried, Started
from reconciler.model.kind import Kind
from reconciler.model.owner_record import Owner
from reconciler.model.plan import Call, Plan, Verb
from reconciler.model.redaction import Veil
from reconciler.model.value import Json, Value

__all__ = ["POINTS", "apply"]

STOPPED = "the run was stopped"
BROKEN = "the run broke off"


async def apply(
    plan: Plan,
    *,
    kinds: Iterable[Kind],
    platform: Platform,
    journal: Journal,
    clock: Clock,
    chance: Chance,
    sinks: Sinks,
    stop: Stop,
    concurrency: int = 16,
    retries: retry.Policy | None = None,
    reach: Reach | None = None,
) -> AsyncGenerator[Event]:
    """Every call ends in exactly one `Ended`. Setting `stop` lets what runs finish; closing the stream cancels it.

    A journal that fails breaks the run: nothing new starts, what runs is finished, and the exception is raised.
    """
    told: asyncio.Queue[Event | None] = asyncio.Queue()
    means = Means(
        plan=plan,
        kinds={kind.name: kind for kind in kinds},
        platform=pace.Paced(platform, concurrency),
        journal=journal,
        clock=clock,
        chance=chance,
        sinks=sinks,
        stop=stop,
        tell=lambda event: told.put_nowait(_without_secrets(event, means.veil)),
        reach=reach or (lambda point, call: None),
        retries=retries or retry.Policy(),
        known=Known(plan),
        veil=requests.veil(plan),
    )
    run = _Run(means, concurrency + pace.ahead(concurrency), told)
    try:
        if plan.bindings:
            await journal.bind(plan.bindings)
        async with aclosing(run.events()) as events:
            async for event in events:
                yield event
    finally:
        await run.cancel()


def _without_secrets(event: Event, veil: Veil) -> Event:
    """The event as anybody may hear it: a platform may quote in its refusal what it was sent, or has just told us."""
    if not isinstance(event, (Retried, Ended)) or not event.why:
        return event
    return replace(event, why=veil.over(event.why))


class _Run:
    """The calls in flight. Workers put events on the queue, and None to say that one of them is gone."""

    def __init__(self, means: Means, concurrency: int, told: asyncio.Queue[Event | None]) -> None:
        self._means = means
        self._concurrency = concurrency
        self._told = told
        self._schedule = Schedule(means.plan.calls)
        self._running: dict[asyncio.Task[None], None] = {}  # in the order they were started
        self._broken: BaseException | None = None

    async def events(self) -> AsyncGenerator[Event]:
        while True:
            if self._broken and not isinstance(self._broken, Exception):
                raise self._broken  # the end of the process, as far as this run is concerned
            if self._broken or self._means.stop.is_set():
                for call in self._schedule.abandon():
                    yield self._skipped(call, BROKEN if self._broken else STOPPED)
            while len(self._running) < self._concurrency and (ready := self._schedule.take()) is not None:
                self._start(ready)
            if not self._running and self._told.empty():
                break
            event = await self._told.get()
            if event is None:
                continue
            yield event
            if isinstance(event, Ended):
                for call, why in self._schedule.end(event.call.id, event.outcome):
                    yield self._skipped(call, why)
        if self._broken:
            raise self._broken

    def _start(self, call: Call) -> None:
        task = asyncio.ensure_future(self._work(call))
        self._running[task] = None
        task.add_done_callback(self._gone)

    def _gone(self, task: asyncio.Task[None]) -> None:
        self._running.pop(task, None)
        if not task.cancelled() and (broken := task.exception()) is not None:
            self._broken = self._broken or (broken.__cause__ if isinstance(broken, Withheld) else None) or broken
        self._told.put_nowait(None)

    async def _work(self, call: Call) -> None:
        means = self._means
        means.tell(Started(call, means.clock.now()))
        try:
            made = await perform(means, call)
        except Failure as failure:
            denied = isinstance(failure, Refused) and failure.is_permission
            means.tell(Ended(call, Outcome.FAILED, means.clock.now(), call.target, str(failure), denied))
        except Exception:
            outcome = Outcome.UNKNOWN if call.id in means.sent else Outcome.SKIPPED
            means.tell(Ended(call, outcome, means.clock.now(), call.target, BROKEN))
            raise
        else:
            means.tell(Ended(call, made.outcome, means.clock.now(), made.id, made.why))

    def _skipped(self, call: Call, why: str) -> Ended:
        return Ended(call, Outcome.SKIPPED, self._means.clock.now(), call.target, why)

    async def cancel(self) -> None:
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)


async def perform(means: Means, call: Call) -> Made:
    """One call, from first to last; raises a Failure."""
    match call.verb:
        case Verb.CREATE:
            return await create.create(means, call)
        case Verb.DELETE | Verb.REMOVE:
            return await _delete(means, call)
        case Verb.UPDATE | Verb.PUT:
            return await _update(means, call)


async def _update(means: Means, call: Call) -> Made:
    """All of these may be repeated: twice is once."""
    kind = means.kind_of(call)
    record = _record(means, call, kind)
    body = requests.body(call, means.known, kind, record)
    if body or call.verb is Verb.PUT:
        answer = await _send(means, call, body or {})
        if call.verb is Verb.UPDATE:
            means.known.learn(call.address, kind, answer)
    # Of what was adopted no create is remembered: without this, the store could not tell that it vanished.
    remembered = not kind.keeps_owner or call.address in means.formers or call.address in means.adopted
    if remembered and call.verb is Verb.UPDATE and record is not None:
        await create.bind(means, call, _locator(means, call, kind), record)
    return Made(Outcome.DONE, call.target)


def _record(means: Means, call: Call, kind: Kind) -> Owner | None:
    """The owner record to write. An object created just now keeps its intent, with which its digests are salted."""
    draft = call.owner
    if draft is None:
        return None
    intent = draft.intent or means.intents.get(call.address) or means.chance.intent()
    return requests.owner(draft, means.known, kind, stack=means.plan.stack, intent=intent)


def _locator(means: Means, call: Call, kind: Kind) -> str:
    collection, _, object_id = means.known.path(call.path).rpartition("/")
    return requests.locator(kind, collection, unquote(object_id))


async def _send(means: Means, call: Call, body: dict[str, Value] | None) -> Json:
    path = means.known.path(call.path)
    try:
        return await means.patiently(call, lambda: _attempt(means, call, path, body))
    except Gone as failure:
        raise Gone(
            f"{path} is gone: it was deleted after the plan was made", code=failure.code, status=404
        ) from failure


async def _attempt(means: Means, call: Call, path: str, body: dict[str, Value] | None) -> Json:
    """One attempt, each with a check of its own: meanwhile the object may have become another stack's."""
    check = means.ownership.check(call, path)
    payload = requests.payload(body)
    try:
        answer = await means.step("send", call, lambda: means.platform.send(call.method, path, payload, check=check))
    except Failure:
        if check is not None:
            means.ownership.forget(check.path)
        raise
    if check is not None and call.verb is Verb.UPDATE:
        means.ownership.learn(means.kind_of(call), path, check.left, answer)
    return answer


async def _delete(means: Means, call: Call) -> Made:
    made = Made(Outcome.DONE, call.target)
    try:
        await _send(means, call, None)
    except Gone:
        made = Made(Outcome.ALREADY, call.target, "it was gone already")
    if call.verb is Verb.DELETE:
        successor = means.bound.get(call.address)
        if call.unbinds:
            gone = [each for each in (call.address, means.formers.get(call.address)) if each is not None]
            await means.step("bind", call, lambda: means.journal.bind(dict.fromkeys(gone)))
        elif successor is not None and successor.replaces is not None:
            settled = replace(successor, replaces=None)
            await means.step("bind", call, lambda: means.journal.bind({call.address: settled}))
    return made
