"""Carries out a plan and reports what happens as a stream of events. It decides nothing that the plan left open.

A loop starts what is ready and listens; what one call takes is in `change`, `create`, `recovery` and `delivery`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Iterable
from contextlib import aclosing
from dataclasses import replace

from reconciler.engine import change, create, requests, retry
from reconciler.engine import concurrency as bounds
from reconciler.engine.context import POINTS, OnCheckpoint, PlanFacts, Ports, RunContext, RunMemory, Stop
from reconciler.engine.create import CallResult
from reconciler.engine.ownership import OwnershipCheck
from reconciler.engine.ports import Clock, Failure, Journal, NotSent, Platform, Random, Refused, Sinks
from reconciler.engine.requests import ResolvedValues
from reconciler.engine.schedule import Schedule
from reconciler.model.event import Ended, Event, Outcome, Retried, Started
from reconciler.model.kind import Kind
from reconciler.model.plan import Call, Plan, Verb
from reconciler.model.redaction import Redactor

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
    random: Random,
    sinks: Sinks,
    stop: Stop,
    concurrency: int = 16,
    retries: retry.RetryPolicy | None = None,
    on_checkpoint: OnCheckpoint | None = None,
) -> AsyncGenerator[Event]:
    """Every call ends in exactly one `Ended`. Setting `stop` lets running calls finish; closing the stream
    cancels them.

    A journal that fails ends the run: nothing new starts, running calls finish, and the exception is raised.
    """
    facts = PlanFacts(plan, {kind.name: kind for kind in kinds})
    bounded = bounds.BoundedPlatform(platform, concurrency)
    redactor = requests.make_redactor(plan)
    memory = RunMemory(ResolvedValues(plan), OwnershipCheck(plan, bounded, clock, facts.kinds), redactor)
    events: asyncio.Queue[Event | None] = asyncio.Queue()
    ports = Ports(
        platform=bounded,
        journal=journal,
        clock=clock,
        random=random,
        sinks=sinks,
        stop=stop,
        report=lambda event: events.put_nowait(_redact(event, redactor)),
        on_checkpoint=on_checkpoint or (lambda point, call: None),
        retries=retries or retry.RetryPolicy(),
    )
    running = _RunningCalls(RunContext(ports, facts, memory), concurrency + bounds.extra_calls(concurrency), events)
    try:
        if plan.bindings:
            await journal.bind(plan.bindings)
        async with aclosing(running.events()) as stream:
            async for event in stream:
                yield event
    finally:
        await running.cancel()


def _redact(event: Event, redactor: Redactor) -> Event:
    """The event without secrets: a platform may quote in its refusal what it was sent, or what it has just sent."""
    if not isinstance(event, (Retried, Ended)) or not event.why:
        return event
    return replace(event, why=redactor.redact(event.why))


class _RunningCalls:
    """Starts calls and yields their events. Workers put events on the queue, and None when one of them has ended."""

    def __init__(self, run: RunContext, at_once: int, queue: asyncio.Queue[Event | None]) -> None:
        self._run = run
        self._at_once = at_once
        self._queue = queue
        self._schedule = Schedule(run.facts.plan.calls)
        self._tasks: dict[asyncio.Task[None], None] = {}  # in the order they were started
        self._broken: BaseException | None = None

    async def events(self) -> AsyncGenerator[Event]:
        while True:
            if self._broken and not isinstance(self._broken, Exception):
                raise self._broken  # the end of the process, as far as this run is concerned
            if self._broken or self._run.ports.stop.is_set():
                for call in self._schedule.abandon():
                    yield self._skip(call, BROKEN if self._broken else STOPPED)
            while len(self._tasks) < self._at_once and (ready := self._schedule.take()) is not None:
                self._start(ready)
            if not self._tasks and self._queue.empty():
                break
            event = await self._queue.get()
            if event is None:
                continue
            yield event
            if isinstance(event, Ended):
                for call, why in self._schedule.end(event.call.id, event.outcome):
                    yield self._skip(call, why)
        if self._broken:
            raise self._broken

    def _start(self, call: Call) -> None:
        task = asyncio.ensure_future(self._work(call))
        self._tasks[task] = None
        task.add_done_callback(self._end)

    def _end(self, task: asyncio.Task[None]) -> None:
        self._tasks.pop(task, None)
        if not task.cancelled() and (broken := task.exception()) is not None:
            self._broken = self._broken or (broken.__cause__ if isinstance(broken, NotSent) else None) or broken
        self._queue.put_nowait(None)

    async def _work(self, call: Call) -> None:
        report, now = self._run.ports.report, self._run.ports.clock.now
        report(Started(call, now()))
        try:
            result = await _perform(self._run, call)
        except Failure as failure:
            denied = isinstance(failure, Refused) and failure.is_permission
            report(Ended(call, Outcome.FAILED, now(), call.target, str(failure), denied))
        except Exception:
            outcome = Outcome.UNKNOWN if call.id in self._run.memory.sent else Outcome.SKIPPED
            report(Ended(call, outcome, now(), call.target, BROKEN))
            raise
        else:
            report(Ended(call, result.outcome, now(), result.id, result.why))

    def _skip(self, call: Call, why: str) -> Ended:
        return Ended(call, Outcome.SKIPPED, self._run.ports.clock.now(), call.target, why)

    async def cancel(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def _perform(run: RunContext, call: Call) -> Awaitable[CallResult]:
    """One call, from first to last; raises a Failure."""
    if call.verb is Verb.CREATE:
        return create.create(run, call)
    return change.delete(run, call) if call.verb in (Verb.DELETE, Verb.REMOVE) else change.update(run, call)
