"""The engine's ports in memory: a platform, a virtual clock, seeded randomness and a journal.

The platform stores objects, returns lists and applies requests. A test schedules faults, each for the n-th request that
matches.
"""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import heapq
import itertools
import random
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from reconciler import kinds as registry
from reconciler.engine.apply import apply
from reconciler.engine.ports import Check, Failure, Gone, Intent, MadeObject, Refused, Undeliverable, complete_body
from reconciler.model.address import Address
from reconciler.model.event import Ended, Event, Outcome
from reconciler.model.kind import Kind
from reconciler.model.manifest import Delivery
from reconciler.model.plan import Call, OwnerDraft, Plan, Verb
from reconciler.model.snapshot import Binding, IssuedSecret, Place, Snapshot
from reconciler.model.value import Json, Secret


class VirtualClock:
    """Time passes only when no task of the event loop can run."""

    def __init__(self) -> None:
        self.time = 0.0
        self.slept: list[float] = []
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._count = itertools.count()
        self._driving = False

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self.time + max(0.0, seconds), next(self._count), woken))
        if not self._driving:
            self._driving = True
            asyncio.get_running_loop().call_soon(self._drive)
        await woken

    def _drive(self) -> None:
        loop: Any = asyncio.get_running_loop()
        if not loop._ready:  # nothing else can run at this instant
            while self._sleepers:
                due, _, woken = heapq.heappop(self._sleepers)
                if not woken.done():
                    self.time = max(self.time, due)
                    woken.set_result(None)
                    break
        self._driving = bool(self._sleepers)
        if self._driving:
            loop.call_soon(self._drive)


class SeededChance:
    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)
        self._count = itertools.count(1)
        self._seed = seed

    def intent(self) -> str:
        return f"intent-{self._seed % 1000:03}-{next(self._count):05}"

    def fraction(self) -> float:
        return self._random.random()


@dataclass
class Fault:
    """What happens to the `nth` request that matches: raised before or after it takes effect."""

    method: str
    path: str  # a part of it
    failure: Failure
    effect: bool = False
    nth: int = 1
    times: int = 1


@dataclass
class MemoryPlatform:
    kinds: tuple[Kind, ...]
    faults: list[Fault] = field(default_factory=list)
    objects: dict[str, dict[str, dict[str, Json]]] = field(default_factory=dict)  # collection path → id → body
    log: list[tuple[str, str]] = field(default_factory=list)
    bodies: list[Mapping[str, Json] | None] = field(default_factory=list)
    refuse: Callable[[str, str, Mapping[str, Json] | None], Failure | None] | None = None
    stale: int = 0  # the number of lists that are still returned as they were at first
    count: int = 0
    _first: dict[str, list[Json]] = field(default_factory=dict)

    async def get(self, path: str) -> Json:
        await self._begin("GET", path)
        collection, _, id = path.rpartition("/")
        body = self._find(collection, id)
        self._fail("GET", path, after=True)
        return self._render(collection, body)

    async def pages(self, path: str, key: str) -> AsyncIterator[Sequence[Mapping[str, Json]]]:
        await self._begin("GET", path)
        newest_first = [self._render(path, body) for body in reversed(self.objects.get(path, {}).values())]
        self._first.setdefault(path, newest_first)
        if self.stale:
            self.stale -= 1
            newest_first = self._first[path]
        for start in range(0, max(1, len(newest_first)), 100):
            yield copy.deepcopy(newest_first[start : start + 100])

    async def send(
        self, method: str, path: str, body: Mapping[str, Json] | None = None, *, check: Check | None = None
    ) -> Json:
        body = await complete_body(check, body, self.get)
        await self._begin(method, path, body)
        answer = self._carry_out(method, path, copy.deepcopy(dict(body or {})))
        self._fail(method, path, after=True)
        await asyncio.sleep(0)
        return answer

    def all(self, path: str) -> list[dict[str, Json]]:
        return list(self.objects.get(path, {}).values())

    def requests(self, *methods: str) -> list[tuple[str, str]]:
        return [request for request in self.log if request[0] in methods]

    async def _begin(self, method: str, path: str, body: Mapping[str, Json] | None = None) -> None:
        self.log.append((method, path))
        self.bodies.append(body)
        await asyncio.sleep(0)
        self._fail(method, path, after=False)
        if self.refuse and (failure := self.refuse(method, path, body)):
            raise failure

    def _fail(self, method: str, path: str, *, after: bool) -> None:
        for fault in self.faults:
            if fault.method == method and fault.path in path and fault.effect is after and fault.times:
                fault.nth -= 1
                if fault.nth <= 0:
                    fault.times -= 1
                    raise fault.failure

    def _find(self, collection: str, id: str) -> dict[str, Json]:
        try:
            return self.objects[collection][id]
        except KeyError:
            raise Gone("Resource not found", status=404) from None

    def _carry_out(self, method: str, path: str, body: dict[str, Json]) -> Json:
        if method == "POST":
            return self._create(path, body)
        collection, _, id = path.rpartition("/")
        if method == "PUT":
            owner, _, owner_id = collection.rpartition("/")
            self._find(owner, owner_id)[id] = body
            return body
        if method == "PATCH":
            self._find(collection, id).update(body)
            return self._render(collection, self._find(collection, id))
        try:
            self._find(collection, id)
        except Gone:
            owner, _, owner_id = collection.rpartition("/")
            if self._find(owner, owner_id).pop(id, None) is None:
                raise
            return None
        del self.objects[collection][id]
        return None

    def _create(self, path: str, body: dict[str, Json]) -> Json:
        kind = self._kind(path)
        self.count += 1
        id = body["type"] if kind.key == "type" else f"{kind.id_prefix}{self.count:04}"
        if kind.key == "id":
            body["id"] = id
        self.objects.setdefault(path, {})[id] = body
        answer = self._render(path, body)
        return answer | {kind.one_time: f"{id}_secret"} if kind.one_time else answer

    def _kind(self, path: str) -> Kind:
        for kind in self.kinds:
            head, _, tail = kind.path.partition("{")
            if (not tail and path == head) or (
                tail and path.startswith(head) and path.endswith(tail.partition("}")[2])
            ):
                return kind
        raise Refused(f"no such collection: {path}")

    def _render(self, collection: str, body: dict[str, Json]) -> dict[str, Json]:
        rendered = copy.deepcopy(body)
        for kind in self.kinds:
            if kind.parent and registry.get(kind.parent.kind).path == collection:
                below = kind.path.replace(f"{{{kind.parent.field}}}", str(body["id"]))
                rendered[kind.parent.embedded] = copy.deepcopy(self.all(below))
        return rendered


class MemoryJournal:
    """Stores what the engine records, as if on disk."""

    def __init__(self) -> None:
        self.open: dict[str, Intent] = {}
        self.concluded: dict[str, str | None] = {}
        self.receipts: set[str] = set()
        self.bindings: dict[Address, Binding] = {}
        self.made: dict[str, Address] = {}
        self.places: dict[str, Place] = {}
        self.arrived: list[str] = []
        self.received: dict[str, str] = {}  # intent → object, in the order in which deliveries began
        self.intents: dict[str, Intent] = {}
        self.written: dict[str, float] = {}  # intent → time of its last write
        self.fails: Exception | None = None

    @property
    def undelivered_intents(self) -> frozenset[str]:
        return frozenset(self.made.keys() - self.receipts)

    @property
    def overwritten(self) -> dict[str, Address]:
        latest = {self.made[intent]: intent for intent in self.arrived if intent in self.made}
        later = {
            self.made[intent]: intent
            for intent, object_id in self.received.items()
            if intent not in self.receipts and self.concluded.get(intent, object_id) is not None
        }
        return {
            intent: self.made[intent]
            for intent in self.arrived
            if intent in self.made
            and (latest[self.made[intent]] != intent or self._began(intent) < self._began(later.get(self.made[intent])))
        }

    def _began(self, intent: str | None) -> int:
        return [*self.received].index(intent) if intent in self.received else -1

    @property
    def issued_secrets(self) -> tuple[IssuedSecret, ...]:
        nothing = {intent for intent, made in self.concluded.items() if made is None} - self.receipts
        return tuple(
            IssuedSecret(intent, self.made[intent], place, intent in self.receipts)
            for intent, place in self.places.items()
            if intent not in nothing
        )

    def list_made_objects(self) -> list[MadeObject]:
        """As `Store.find_made_objects`."""
        now, objects = asyncio.get_running_loop().time(), {**self.received, **self.concluded}
        return [
            MadeObject(intent.address, intent.path, made, now - self.written[id], is_open=id in self.open)
            for id, intent in self.intents.items()
            if (made := objects.get(id)) is not None
        ]

    def _date(self, intent_id: str) -> None:
        self.written[intent_id] = asyncio.get_running_loop().time()

    def beside(self, snapshot: Snapshot, bound: Mapping[Address, Binding]) -> Snapshot:
        """The snapshot with the data of this journal; `bound` are the bindings that recovery found."""
        return replace(
            snapshot,
            bindings={**self.bindings, **bound},
            receipts=frozenset(self.receipts),
            undelivered=self.undelivered_intents,
            overwritten=self.overwritten,
        )

    async def intend(self, intent: Intent) -> None:
        await self._write()
        self.open[intent.id] = self.intents[intent.id] = intent
        self.made[intent.id] = intent.address
        self._date(intent.id)
        if intent.place is not None:
            self.places[intent.id] = intent.place

    async def conclude(self, intent_id: str, object_id: str | None) -> None:
        await self._write()
        del self.open[intent_id]
        self.concluded[intent_id] = object_id
        self._date(intent_id)

    async def record_object(self, intent_id: str, object_id: str) -> None:
        await self._write()
        self.received[intent_id] = object_id
        if intent_id in self.open:
            self.open[intent_id] = dataclasses.replace(self.open[intent_id], object=object_id)

    async def record_receipt(self, intent_id: str) -> None:
        await self._write()
        self.receipts.add(intent_id)
        self._date(intent_id)
        self.arrived.append(intent_id)

    async def bind(self, bindings: Mapping[Address, Binding | None]) -> None:
        await self._write()
        for address, binding in bindings.items():
            assert isinstance(address, Address)
            if binding is None:
                self.bindings.pop(address, None)
            else:
                self.bindings[address] = binding

    async def _write(self) -> None:
        await asyncio.sleep(0)
        if self.fails:
            raise self.fails


class MemorySinks:
    def __init__(self) -> None:
        self.delivered: dict[str, str] = {}
        self.proves: str = ""  # why the check of a target fails
        self.delivers: str = ""

    def place(self, delivery: Delivery) -> Place:
        return Place(delivery.way, delivery.target, host="here", checkout="here")

    async def check(self, delivery: Delivery, *, overwrites: bool) -> None:
        if self.proves:
            raise Undeliverable(self.proves)

    async def deliver(self, delivery: Delivery, secret: Secret, *, overwrites: bool) -> None:
        await asyncio.sleep(0)
        if self.delivers:
            raise Undeliverable(self.delivers)
        self.delivered[delivery.target] = secret.reveal()


class Crash(BaseException):
    """The process dies here."""


@dataclass
class EngineHarness:
    """The ports of an apply. After a crash, platform, journal and sinks are those of the next run."""

    platform: MemoryPlatform
    journal: MemoryJournal = field(default_factory=MemoryJournal)
    sinks: MemorySinks = field(default_factory=MemorySinks)
    clock: VirtualClock = field(default_factory=VirtualClock)
    chance: SeededChance = field(default_factory=SeededChance)
    stop: asyncio.Event = field(default_factory=asyncio.Event)

    async def apply(self, plan: Plan, **options: Any) -> list[Event]:
        return [event async for event in self.run(plan, **options)]

    def run(self, plan: Plan, **options: Any) -> AsyncIterator[Event]:
        return apply(
            plan,
            kinds=self.platform.kinds,
            platform=self.platform,
            journal=self.journal,
            clock=self.clock,
            random=self.chance,
            sinks=self.sinks,
            stop=self.stop,
            **options,
        )

    async def outcomes(self, plan: Plan, **options: Any) -> dict[str, Outcome]:
        return {event.call.id: event.outcome for event in await self.apply(plan, **options) if isinstance(event, Ended)}

    async def end_events(self, plan: Plan, **options: Any) -> dict[str, Ended]:
        return {event.call.id: event for event in await self.apply(plan, **options) if isinstance(event, Ended)}


def create(address: str, path: Any, body: dict[str, Any] | None = None, **more: Any) -> Call:
    where = Address.parse(address)
    draft = OwnerDraft(where, applied=more.pop("applied", {}), pending=more.pop("pending", False))
    return Call(f"create {address}", where, Verb.CREATE, path, body=body or {}, owner=draft, **more)


def delete(address: str, path: str, target: str, **more: Any) -> Call:
    return Call(f"delete {address}", Address.parse(address), Verb.DELETE, path, target=target, **more)


def update(address: str, path: Any, body: dict[str, Any] | None = None, **more: Any) -> Call:
    return Call(f"update {address}", Address.parse(address), Verb.UPDATE, path, body=body, **more)
