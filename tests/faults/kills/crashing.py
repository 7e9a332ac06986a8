"""A process that dies at any moment, played in memory: the real planner and engine over an account that survives.

A moment is whatever the engine calls a point, each durable write beside those, and the two halves of a request's way.
They are counted as they come, so that a new one cannot be forgotten. What is in memory dies with the run; the account,
the journal and the delivered secrets stay, and the next run has nothing else.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections import Counter
from collections.abc import Awaitable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import TypeVar

from reconciler import kinds as registry
from reconciler.engine import apply, observe, recovery
from reconciler.engine.ports import Check, Intent, Journal, Lost, complete_body
from reconciler.model.address import Address
from reconciler.model.event import Ended, Outcome
from reconciler.model.manifest import Manifest
from reconciler.model.plan import Call, Plan, Verb
from reconciler.model.snapshot import Binding
from reconciler.model.value import Json
from reconciler.planning.planner import PlanOptions, plan
from tests.faults.kills.projects import STACK, CrashProject
from tests.harness.engine import Crash, MemoryJournal, MemorySinks, SeededChance
from tests.simulation.account import Account
from tests.simulation.loop import LoopClock, VirtualLoop
from tests.simulation.wire import Weather, Wire

KINDS = registry.every()
WIRE = ("mid-request", "after effect before response")
_EVERYTHING = {
    (what, kind): 999
    for what in ("delete", "delete-protected", "update", "empty", "account")
    for kind in ("*", *(kind.name for kind in KINDS))
}
T = TypeVar("T")


class Moments:
    """Counts the moments of one run, and ends it at the n-th."""

    def __init__(self, dies_at: int | None = None) -> None:
        self._dies_at = dies_at
        self._inside: ContextVar[bool] = ContextVar("inside", default=False)
        self.passed: list[tuple[str, str]] = []
        self.is_dead = False

    def on_checkpoint(self, point: str, call: Call) -> None:
        """The engine's hook."""
        self._inside.set(point.startswith("before"))
        self.come(point, call.id)

    def outside(self, point: str) -> None:
        """A durable write that is not a step of a call."""
        if not self._inside.get():
            self.come(point, "")

    def come(self, point: str, what: str) -> None:
        self.check()
        self.passed.append((point, what))
        if len(self.passed) - 1 == self._dies_at:
            self.is_dead = True
        self.check()

    def check(self) -> None:
        if self.is_dead:
            raise Crash


@dataclass
class CrashingJournal:
    inner: MemoryJournal | Journal
    moments: Moments

    async def intend(self, intent: Intent) -> None:
        await self._around("intend", self.inner.intend(intent))

    async def conclude(self, intent_id: str, object_id: str | None) -> None:
        await self._around("conclude", self.inner.conclude(intent_id, object_id))

    async def record_object(self, intent_id: str, object_id: str) -> None:
        await self._around("receive", self.inner.record_object(intent_id, object_id))

    async def record_receipt(self, intent_id: str) -> None:
        await self._around("receipt", self.inner.record_receipt(intent_id))

    async def bind(self, bindings: Mapping[Address, Binding | None]) -> None:
        await self._around("bind", self.inner.bind(bindings))

    async def _around(self, name: str, write: Awaitable[T]) -> T:
        try:
            self.moments.outside(f"before {name}")
        except Crash:
            asyncio.ensure_future(write).cancel()  # so that nobody complains that it was never awaited
            raise
        written = await write
        self.moments.outside(f"after {name}")
        return written


@dataclass
class CrashingWire(Wire):
    """A quick and honest platform, but that the answer to the first create of each path may be lost."""

    moments: Moments = field(default_factory=Moments)
    loses_answers: bool = False
    carried: list[tuple[str, str]] = field(default_factory=list)  # (method, kind) of what took effect
    _lost: set[str] = field(default_factory=set)

    async def send(
        self, method: str, path: str, body: Mapping[str, Json] | None = None, *, check: Check | None = None
    ) -> Json:
        body = await complete_body(check, body, self.get)
        self.moments.check()
        self.log.append((method, path, ""))
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            # The process is dead, its request is not.
            if self.random.random() < 0.5:
                self._carry(method, path, body)
            raise
        self.moments.come(WIRE[0], f"{method} {path}")
        answer = self._carry(method, path, body)
        self.moments.come(WIRE[1], f"{method} {path}")
        await asyncio.sleep(0)
        if self.loses_answers and method == "POST" and path not in self._lost:
            self._lost.add(path)
            raise Lost("connection reset")
        return answer

    def _carry(self, method: str, path: str, body: Mapping[str, Json] | None) -> Json:
        answer = self._carry_out(method, path, body or {})
        self.carried.append((method, self._find(path).kind.name))
        return answer


@dataclass
class Survivors:
    """All that outlives a process."""

    account: Account = field(default_factory=lambda: Account(KINDS))
    journal: MemoryJournal = field(default_factory=MemoryJournal)
    sinks: MemorySinks = field(default_factory=MemorySinks)
    chance: SeededChance = field(default_factory=SeededChance)
    carried: list[tuple[str, str]] = field(default_factory=list)

    def copy(self) -> Survivors:
        account, journal, sinks = self.account, MemoryJournal(), MemorySinks()
        journal.open, journal.concluded = dict(self.journal.open), dict(self.journal.concluded)
        journal.receipts, journal.bindings = set(self.journal.receipts), dict(self.journal.bindings)
        journal.made, journal.arrived = dict(self.journal.made), list(self.journal.arrived)
        sinks.delivered = dict(self.sinks.delivered)
        return Survivors(
            dataclasses.replace(
                account,
                objects=dict(account.objects),
                parents=dict(account.parents),
                makers=dict(account.makers),
                numbers=dict(account.numbers),
                tokens=dict(account.tokens),
                log=[],
                broken=[],
                _derived={},
            ),
            journal,
            sinks,
            SeededChance(len(self.carried) + 7),
            list(self.carried),
        )

    @property
    def remains(self) -> str:
        """The state from which the next run starts. It seeds randomness: runs from the same state are the same."""
        account, journal = self.account, self.journal
        things = (account.created, account.objects, account.parents, account.makers, account.numbers, account.tokens)
        memory = (journal.open, journal.concluded, sorted(journal.receipts), journal.bindings)
        return repr((things, memory, journal.made, journal.arrived, self.sinks.delivered, self.carried))


@dataclass
class Run:
    plan: Plan
    wire: CrashingWire
    moments: Moments
    ended: list[Ended] = field(default_factory=list)

    @property
    def is_done(self) -> bool:
        done = [ended for ended in self.ended if ended.outcome in (Outcome.DONE, Outcome.ALREADY)]
        return len(done) == len(self.plan.calls) and not self.plan.errors and not self.moments.is_dead

    def __str__(self) -> str:
        reasons = [f"{ended.call.id}: {ended.outcome}: {ended.why}" for ended in self.ended if ended.why]
        return "; ".join([*(str(error) for error in self.plan.errors), *reasons])


@cache
def _loop() -> VirtualLoop:
    return VirtualLoop()


def run(state: Survivors, manifest: Manifest, *, dies_at: int | None = None, loses_answers: bool = False) -> Run:
    """One apply, as the command does it, until it ends or dies."""
    return _loop().play(_run(state, manifest, Moments(dies_at), loses_answers))


async def _run(state: Survivors, manifest: Manifest, moments: Moments, loses_answers: bool) -> Run:
    random = Random(len(state.carried))
    wire = CrashingWire(STACK, state.account, random, Weather(), moments=moments, loses_answers=loses_answers)
    wire.carried = state.carried
    journal = CrashingJournal(state.journal, moments)
    this = Run(Plan(STACK), wire, moments)
    try:
        snapshot = await observe.observe(
            wire, KINDS, bindings=dict(state.journal.bindings), receipts=frozenset(state.journal.receipts)
        )
        bound = await recovery.settle(tuple(state.journal.open.values()), snapshot, KINDS, journal)
        snapshot = state.journal.beside(snapshot, bound)
        this.plan = new_plan = plan(manifest, snapshot, KINDS, PlanOptions(allow=_EVERYTHING))
        if new_plan.errors or new_plan.missing_approvals:
            return this
        events = apply.apply(
            new_plan,
            kinds=KINDS,
            platform=wire,
            journal=journal,
            clock=LoopClock(),
            random=state.chance,
            sinks=state.sinks,
            stop=asyncio.Event(),
            concurrency=4,
            on_checkpoint=moments.on_checkpoint,
        )
        async for event in events:
            if isinstance(event, Ended):
                this.ended.append(event)
        if new_plan.bindings:
            await journal.bind(new_plan.bindings)
    except Crash:
        pass
    return this


@cache
def prepare_survivors(project: CrashProject) -> Survivors:
    """What there is before the change, made in peace."""
    state = Survivors()
    if project.before:
        assert run(state, _manifest(project, "before")).is_done
        assert not run(state, _manifest(project, "before")).plan.changes
    for key, record in list(state.account.records()):
        for kind, name, module in project.undone:
            if record.address == Address(kind, name):
                state.account.edit(key, {module: None})
    state.carried.clear()
    return state


@cache
def _manifest(project: CrashProject, which: str) -> Manifest:
    return project.manifest(project.before if which == "before" else project.after)


@dataclass(frozen=True)
class Change:
    """The way from `before` to `after`, with or without lost answers; what it takes when nothing else happens."""

    project: CrashProject
    loses_answers: bool = False

    def __str__(self) -> str:
        return f"{self.project}{', answers lost' if self.loses_answers else ''}"

    def start(self) -> Survivors:
        return prepare_survivors(self.project).copy()

    def go(self, state: Survivors, dies_at: int | None = None) -> Run:
        manifest = _manifest(self.project, "after")
        return run(state, manifest, dies_at=dies_at, loses_answers=self.loses_answers)

    def moments(self, state: Survivors) -> list[tuple[str, str]]:
        """The kill points of a run from here."""
        return self.go(state.copy()).moments.passed

    def kill_at(self, state: Survivors, at: int) -> Survivors:
        """The state after a run from here that is killed at its n-th point."""
        after = state.copy()
        assert self.go(after, at).moments.is_dead
        return after

    def flaws(self, state: Survivors) -> list[str]:
        """Violations after one run without faults and another that must find no changes."""
        peace = dataclasses.replace(self, loses_answers=False)
        after = state.copy()
        clean, still = peace.go(after), peace.go(after)
        found = [] if clean.is_done else [f"the clean run: {clean}"]
        if still.plan.changes or still.wire.changes:
            found.append(f"the next run: {[f'{change.action} {change.address}' for change in still.plan.changes]}")
        return [*found, *self._unlike_declared(after), *self._copies(after), *self._unheld(after)]

    def _unlike_declared(self, state: Survivors) -> list[str]:
        """Objects that are undeclared, duplicated or missing."""
        due = Counter(document["kind"] for document in self.project.after)
        live = Counter(kind for kind, _ in state.account.objects)
        found = [] if due == live else [f"declared {due - live} more, live {live - due} more"]
        for address, count in Counter(record.address for _, record in state.account.records()).items():
            found += [f"{count} objects are {address}"] if count > 1 else []
        return found + [f"{intent.address}: its intent is open" for intent in state.journal.open.values()]

    def _copies(self, state: Survivors) -> list[str]:
        """Creates beyond the planned ones. An undelivered token costs another credential."""
        due = Counter(call.address.kind for call in creates(self))
        created = Counter(kind for method, kind in state.carried if method == "POST")
        return [
            f"{created[kind]} creates of {kind}, not {due[kind]}"
            for kind in created
            if created[kind] != due[kind] and not registry.get(kind).one_time
        ]

    def _unheld(self, state: Survivors) -> list[str]:
        """Live one-time secrets that were not delivered to their targets."""
        found = []
        for key, record in state.account.records():
            if registry.get(key[0]).one_time:
                held = state.sinks.delivered.get(f"secrets/{record.address.name}")
                found += [] if held == state.account.tokens[key] else [f"nobody holds the token of {key}"]
        return found


class Known:
    """The results of a change from each state. Many crashes leave the same state, which is run once."""

    def __init__(self, change: Change) -> None:
        self.change = change
        self._moments: dict[str, list[tuple[str, str]]] = {}
        self._died: dict[tuple[str, int], Survivors] = {}
        self._flaws: dict[str, list[str]] = {}

    def moments(self, state: Survivors) -> list[tuple[str, str]]:
        remains = state.remains
        if remains not in self._moments:
            self._moments[remains] = self.change.moments(state)
        return self._moments[remains]

    def kill_at(self, state: Survivors, at: int) -> Survivors:
        remains = state.remains
        if (remains, at) not in self._died:
            self._died[remains, at] = self.change.kill_at(state, at)
        return self._died[remains, at]

    def flaws(self, state: Survivors) -> list[str]:
        remains = state.remains
        if remains not in self._flaws:
            self._flaws[remains] = self.change.flaws(state)
        return self._flaws[remains]


@cache
def creates(change: Change) -> tuple[Call, ...]:
    return tuple(call for call in plan_change(change).calls if call.verb is Verb.CREATE)


@cache
def plan_change(change: Change) -> Plan:
    return dataclasses.replace(change, loses_answers=False).go(change.start()).plan
