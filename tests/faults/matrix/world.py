"""One stack against a sandbox process over real sockets, with faults on request; a test can run it repeatedly.

Only the clock and the journal are not real: the clock skips each sleep and counts it, the journal is in memory.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from reconciler import kinds
from reconciler.api import client as http
from reconciler.api.client import Account, Client, LastCheck
from reconciler.api.clock import MachineClock
from reconciler.api.platform import HTTPPlatform
from reconciler.engine import recovery
from reconciler.engine.apply import apply
from reconciler.engine.observe import ById, Settling, observe
from reconciler.engine.retry import RetryPolicy as Retries
from reconciler.model.address import Address
from reconciler.model.event import Ended, Event, Outcome, Retried
from reconciler.model.manifest import Declaration, Delivery, Manifest
from reconciler.model.plan import Plan
from reconciler.model.problem import Position
from reconciler.model.snapshot import Snapshot
from reconciler.model.value import Json, Secret
from reconciler.planning import planner
from reconciler.planning.deciding import delivery_targets
from reconciler.planning.deciding.options import PlanOptions
from reconciler.project.secrets import sinks
from reconciler.project.secrets.sinks import ProjectSinks
from tests.faults.between import Between
from tests.harness.engine import MemoryJournal, SeededChance
from tests.harness.platform import KEY, Sandbox

PATIENT = 20.0  # seconds for a response, which no request needs
IMPATIENT = 0.4  # seconds if there will be no response, and still many times what the sandbox needs for one
FEW = Retries(attempts=3, state_attempts=3)  # enough to show that retries end
UNGUARDED = PlanOptions(max_delete_percent=100, max_update_percent=100)


class SkippingClock:
    """The machine's time plus the skipped sleeps."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def now(self) -> float:
        return time.monotonic() + sum(self.slept)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(0)


Wrap = Callable[[Client], Client]
"""Wraps the client below the platform's port: changes responses, or sends requests to another platform."""


@dataclass
class Run:
    """Snapshot, plan and events of one apply."""

    snapshot: Snapshot
    plan: Plan
    events: list[Event] = field(default_factory=list)

    @property
    def end_events(self) -> dict[str, Ended]:
        return {event.call.id: event for event in self.events if isinstance(event, Ended)}

    @property
    def retries(self) -> list[Retried]:
        return [event for event in self.events if isinstance(event, Retried)]

    @property
    def is_good(self) -> bool:
        return all(ended.outcome in (Outcome.DONE, Outcome.ALREADY) for ended in self.end_events.values())


@dataclass
class Stack:
    """`declare`, then `run`. Only `journal` is kept between runs, as a store would be."""

    sandbox: Sandbox
    root: Path
    name: str = "prod"
    kinds: tuple[str, ...] = ()  # those to read; none: all
    declared: dict[Address, Declaration] = field(default_factory=dict)
    journal: MemoryJournal = field(default_factory=MemoryJournal)
    chance: SeededChance = field(default_factory=SeededChance)
    clock: SkippingClock | MachineClock = field(default_factory=SkippingClock)
    wrap: Wrap = lambda client: client
    retries: Retries = FEW
    account: Mapping[str, Any] = field(default_factory=dict)
    policy: PlanOptions = UNGUARDED
    settle: float = 0.0  # seconds for which an object that a run created may not be visible

    def declare(self, address: str, spec: dict[str, Any], **more: Any) -> Address:
        where = Address.parse(address)
        self.declared[where] = Declaration(where, spec, Position("m.yaml", 1, 1), **more)
        return where

    def secret(self, address: str) -> Address:
        name = address.partition("/")[2]
        return self.declare(address, {"description": name}, deliver={"token": Delivery("to_file", f"{name}.token")})

    def remove(self, address: Address) -> None:
        del self.declared[address]

    @asynccontextmanager
    async def platform(self) -> AsyncIterator[HTTPPlatform]:
        account = replace(
            Account(self.sandbox.base_url, Secret(KEY, "test"), timeout=PATIENT, requests_per_minute=0), **self.account
        )
        async with http.open_client(account, self.clock, read_only=False, transport=self.sandbox.transport) as client:
            yield HTTPPlatform(self.wrap(client), self.clock, self.chance, self.retries)

    async def look(self, platform: HTTPPlatform) -> Snapshot:
        seen = [kind for kind in kinds.every() if not self.kinds or kind.name in self.kinds]
        snapshot = await observe(
            platform,
            seen,
            bindings=self.journal.bindings,
            receipts=frozenset(self.journal.receipts),
            by_id=self._by_id(),
            expected=self.declared,
            settling=self._find_settling(),
        )
        bound = await recovery.settle(tuple(self.journal.open.values()), snapshot, kinds.every(), self.journal)
        beside = self.journal.beside(snapshot, bound)
        manifest = Manifest(self.name, dict(self.declared))
        places, is_there = partial(sinks.place, self.root), partial(sinks.target_exists, self.root)
        deliveries = delivery_targets.find_deliveries(manifest, kinds.every())
        found = delivery_targets.find_targets(
            manifest, beside, deliveries, self.journal.issued_secrets, places, is_there
        )
        return replace(beside, targets=found)

    def _find_settling(self) -> Settling:
        created = self.journal.list_made_objects()
        return Settling(recovery.find_settling(created, self.journal.bindings, kinds.every(), self.settle), self.clock)

    def plan(self, snapshot: Snapshot) -> Plan:
        return planner.plan(Manifest(self.name, dict(self.declared)), snapshot, kinds.every(), self.policy)

    async def run(self, between: Callable[[], object] = lambda: None) -> Run:
        """Refresh, plan, apply. `between` is called after the refresh."""
        async with self.platform() as platform:
            snapshot = await self.look(platform)
            run = Run(snapshot, self.plan(snapshot))
            between()
            if run.plan.errors:  # as the command does: a plan with problems is not applied
                return run
            async for event in self._apply(run.plan, platform):
                run.events.append(event)
            return run

    def _apply(self, plan: Plan, platform: HTTPPlatform) -> AsyncIterator[Event]:
        return apply(
            plan,
            kinds=kinds.every(),
            platform=platform,
            journal=self.journal,
            clock=self.clock,
            random=self.chance,
            sinks=ProjectSinks(self.root),
            stop=asyncio.Event(),
            retries=self.retries,
            settling=recovery.find_settling_paths(
                self.journal.list_made_objects(), self.journal.bindings, kinds.every(), self.settle
            ),
        )

    async def plan_again(self) -> Plan:
        async with self.platform() as platform:
            return self.plan(await self.look(platform))

    def _by_id(self) -> ById:
        named: dict[str, list[tuple[str, str | None]]] = {}
        for address, declaration in self.declared.items():
            if declaration.id is not None and kinds.get(address.kind).modules_by_id:
                named.setdefault(address.kind, []).append((declaration.id, str(declaration.spec["edge_id"])))
        return named

    async def converges(self) -> list[str]:
        """One run without faults: its write requests. Afterwards the plan must be empty."""
        self.sandbox.delete("/_sandbox/faults")
        self.wrap = lambda client: client
        self.sandbox.forget_log()
        run = await self.run()
        assert not run.plan.errors, run.plan.errors
        assert run.is_good, run.end_events
        calls = self.sandbox.calls()
        again = await self.plan_again()
        assert (again.errors, again.changes, again.calls) == ((), (), ())
        assert not self.journal.open
        return calls


class Astray(Between):
    """Sends the first `times` requests that match (0: all) to another platform."""

    def __init__(self, client: Client, other: Client, method: str, part: str, times: int) -> None:
        super().__init__(client)
        self._other, self._method, self._part, self._times = other, method, part, times
        self.count = 0

    async def exchange(
        self,
        method: str,
        address: str,
        body: Mapping[str, Json] | None = None,
        last_check: LastCheck | None = None,
    ) -> Json:
        if method == self._method and self._part in address and (not self._times or self.count < self._times):
            self.count += 1
            if last_check is not None:
                body = await last_check.complete(partial(self._to.exchange, "GET"))
            return await self._other.exchange(
                method, address.replace(str(self._to.origin), str(self._other.origin), 1), body
            )
        return await self._to.exchange(method, address, body, last_check)


def ids(objects: Iterable[Mapping[str, Any]]) -> set[str]:
    return {body["id"] for body in objects}
