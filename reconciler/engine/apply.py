"""Applies a plan: starts each call when the calls it needs have succeeded, and yields events.

What one call does is in `create`, `change`, `recovery` and `delivery`. No decision is made here: the plan has them all.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Iterable, Mapping
from contextlib import aclosing

from msgspec.structs import replace

from reconciler.engine import change, create, requests, retry
from reconciler.engine import concurrency as bounds
from reconciler.engine.context import POINTS, OnCheckpoint, PlanFacts, Ports, RunContext, RunMemory
from reconciler.engine.create import CallResult
from reconciler.engine.ownership import OwnershipCheck
from reconciler.engine.ports import Clock, Failure, Journal, NotSent, Platform, Random, Refused, Sinks, Stop
from reconciler.engine.requests import ResolvedValues
from reconciler.engine.schedule import Schedule
from reconciler.model.event import Ended, Event, Outcome, Retried, Started
from reconciler.model.kind import Kind
from reconciler.model.plan import Call, Plan, Verb
from reconciler.model.redaction import Redactor

__all__ = ["POINTS", "apply"]

STOPPED = "the run was stopped"
ABORTED = "the run was aborted"


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
    settling: Mapping[str, float] | None = None,
    on_checkpoint: OnCheckpoint | None = None,
) -> AsyncGenerator[Event]:
    """Applies a plan and yields its events; every call ends in exactly one `Ended`.

    kinds          every kind that occurs in the plan
    stop           set it to start no further call; running calls are finished. Closing the stream cancels them
    concurrency    requests at once
    settling       paths of objects that earlier runs created a moment ago → seconds for which a 404 may mean that the
                   platform does not show the object yet
    on_checkpoint  called before and after each durable step

    A Failure ends its call only. Any other exception, such as one of the journal, ends the run: no further call starts,
    running calls are finished, and the exception is raised.
    """
    facts = PlanFacts(plan, {kind.name: kind for kind in kinds})
    bounded = bounds.BoundedPlatform(platform, concurrency)
    redactor = requests.make_redactor(plan)
    retries = retries or retry.RetryPolicy()
    began = clock.now() - retries.settle
    memory = RunMemory(
        ResolvedValues(plan),
        OwnershipCheck(plan, bounded, clock, facts.kinds),
        redactor,
        made={path: began + seconds for path, seconds in (settling or {}).items()},
    )
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
        retries=retries,
    )
    calls = _RunningCalls(RunContext(ports, facts, memory), concurrency + bounds.extra_calls(concurrency), events)
    try:
        if plan.bindings:
            await journal.bind(plan.bindings)
            memory.bindings.update({address: known for address, known in plan.bindings.items() if known is not None})
        async with aclosing(calls.events()) as stream:
            async for event in stream:
                yield event
    finally:
        await calls.cancel()


def _redact(event: Event, redactor: Redactor) -> Event:
    """The event with its reason redacted: the platform may quote a secret in an error."""
    if not isinstance(event, (Retried, Ended)) or not event.why:
        return event
    return replace(event, why=redactor.redact(event.why))


class _RunningCalls:
    """Starts calls and yields their events. Each task puts its events on the queue, and None when it ends."""

    def __init__(self, run: RunContext, limit: int, queue: asyncio.Queue[Event | None]) -> None:
        self._run = run
        self._limit = limit
        self._queue = queue
        self._schedule = Schedule(run.facts.plan.calls)
        self._tasks: dict[asyncio.Task[None], None] = {}  # an ordered set: in the order of their start
        self._error: BaseException | None = None

    async def events(self) -> AsyncGenerator[Event]:
        """Yields the events of all calls until the last one has ended; raises the first unexpected exception."""
        while True:
            if self._error and not isinstance(self._error, Exception):
                raise self._error  # such as KeyboardInterrupt: running calls are cancelled
            if self._error or self._run.ports.stop.is_set():
                for call in self._schedule.abandon():
                    yield self._skip(call, ABORTED if self._error else STOPPED)
            while len(self._tasks) < self._limit and (ready := self._schedule.take()) is not None:
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
        if self._error:
            raise self._error

    def _start(self, call: Call) -> None:
        task = asyncio.ensure_future(self._work(call))
        self._tasks[task] = None
        task.add_done_callback(self._end)

    def _end(self, task: asyncio.Task[None]) -> None:
        self._tasks.pop(task, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._error = self._error or (error.__cause__ if isinstance(error, NotSent) else None) or error
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
            report(Ended(call, outcome, now(), call.target, ABORTED))
            raise
        else:
            report(Ended(call, result.outcome, now(), result.id, result.why))

    def _skip(self, call: Call, why: str) -> Ended:
        return Ended(call, Outcome.SKIPPED, self._run.ports.clock.now(), call.target, why)

    async def cancel(self) -> None:
        """Cancels the running calls and waits until they have ended."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def _perform(run: RunContext, call: Call) -> Awaitable[CallResult]:
    """Performs one call; raises a Failure."""
    if call.verb is Verb.CREATE:
        return create.create(run, call)
    return change.delete(run, call) if call.verb in (Verb.DELETE, Verb.REMOVE) else change.update(run, call)
