"""One history: what a team, another team, chance and bad luck do to an account, all of it out of one seed.

Afterwards everything calms down, both stacks are applied once more in peace, and `invariants` are asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine, Mapping
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from msgspec import structs

from reconciler.engine import apply, observe, recovery
from reconciler.engine.ports import Intent
from reconciler.model.address import Address
from reconciler.model.event import Ended, Outcome
from reconciler.model.kind import Kind
from reconciler.model.manifest import Manifest, Unread
from reconciler.model.plan import Call, Plan
from reconciler.model.snapshot import Binding, Snapshot
from reconciler.planning.planner import PlanOptions, plan
from tests.harness.engine import Crash, MemoryJournal, MemorySinks, SeededChance
from tests.harness.world import RefusedCall
from tests.simulation import manifests
from tests.simulation.account import HUMAN, Account, Key
from tests.simulation.loop import LoopClock, VirtualLoop
from tests.simulation.manifests import Dice, Slot
from tests.simulation.wire import LAG, SETTLE, Weather, Wire

STARTING = LAG + 0.5
"""Seconds a process takes until its first request: a list is not that far behind."""

FINE = Weather()
SCOPES = ("delete", "delete-protected", "update", "empty")


class SlowJournal(MemoryJournal):
    """A write in progress at a crash may have reached the disk, or not."""

    def __init__(self, random: Random) -> None:
        super().__init__()
        self.random = random
        self.slowness = 0.0
        self.life = 0  # how many processes have died

    async def intend(self, intent: Intent) -> None:
        await self._slowly(super().intend(replace(intent, opened=asyncio.get_running_loop().time())))

    async def conclude(self, intent_id: str, object_id: str | None) -> None:
        if intent_id in self.open:
            await self._slowly(super().conclude(intent_id, object_id))

    async def record_object(self, intent_id: str, object_id: str) -> None:
        await self._slowly(super().record_object(intent_id, object_id))

    async def record_receipt(self, intent_id: str) -> None:
        await self._slowly(super().record_receipt(intent_id))

    async def bind(self, bindings: Mapping[Address, Binding | None]) -> None:
        await self._slowly(super().bind(bindings))

    async def _slowly(self, deed: Coroutine[Any, Any, None]) -> None:
        life, outlives = self.life, self.random.random() < 0.5
        try:
            await asyncio.sleep(self.random.random() * self.slowness)
        except asyncio.CancelledError:
            if outlives:
                await deed
            deed.close()
            raise
        if life == self.life or outlives:  # else nobody waited for it, and the process is no more
            await deed
        deed.close()

    async def _write(self) -> None:
        """Writes take no further time."""


@dataclass
class Stack:
    """A team's project with the state that survives a process."""

    name: str
    home: str
    theme: tuple[Slot, ...]
    dice: dict[Slot, Dice]
    journal: SlowJournal
    sinks: MemorySinks = field(default_factory=MemorySinks)
    is_locked: bool = False
    plain: bool = False

    def manifest(self) -> Manifest:
        return manifests.manifest(self.name, self.home, self.theme, self.dice, plain=self.plain)


@dataclass(frozen=True)
class Trouble:
    """The faults of one run."""

    weather: Weather = FINE
    dies_at_point: int | None = None
    dies_at: float | None = None
    interrupted_at: float | None = None
    undeliverable: bool = False
    approvals: bool = True
    slow_disk: bool = False


CALM = Trouble()
"""A run without faults, with valid manifests."""


@dataclass
class Report:
    """The result of one run."""

    fate: str  # locked, blocked, died, broken off, ended
    plan: Plan | None = None
    ended: list[Ended] = field(default_factory=list)
    wire: Wire | None = None
    listed: int = 0

    @property
    def is_done(self) -> bool:
        return self.fate == "ended" and all(ended.outcome in (Outcome.DONE, Outcome.ALREADY) for ended in self.ended)

    def __str__(self) -> str:
        ends = [
            f"{ended.call.id}: {ended.outcome.value}" + (f" ({ended.why})" if ended.why else "") for ended in self.ended
        ]
        problems = [str(problem) for problem in self.plan.problems] if self.plan else []
        consents = [approval.flag for approval in self.plan.missing_approvals] if self.plan else []
        return "\n    ".join([self.fate, *problems, *consents, *ends])


class History:
    def __init__(self, seed: int, loop: VirtualLoop, tell: Any = None) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.loop = loop
        self.tell = tell or (lambda *words: None)
        self.theme = self.random.choice(manifests.THEMES)
        self.kinds: tuple[Kind, ...] = manifests.kinds_of(self.theme)
        self.account = Account(self.kinds, now=loop.time, remembers=LAG)
        self.chance = SeededChance(seed)
        self.ours = self._stack("ours")
        self.theirs = self._stack("theirs")
        self.has_theirs = self.random.random() < 0.3
        self.squatters: list[Key] = []
        hiding = Random(f"hiding {seed}")  # of its own: the history is the same with and without
        self.hiding = hiding if hiding.random() < 0.3 else None
        spoiling = Random(f"spoiling {seed}")
        self.spoiling = spoiling if spoiling.random() < 0.3 else None  # chooses which declarations are invalid

    def _stack(self, name: str) -> Stack:
        dice = {slot: manifests.roll(self.random) for slot in self.theme}
        return Stack(name, name, self.theme, dice, SlowJournal(self.random))

    @property
    def stacks(self) -> list[Stack]:
        return [self.ours, self.theirs] if self.has_theirs else [self.ours]

    # --- what happens ------------------------------------------------------------------------------------------------

    async def unfold(self) -> None:
        for _ in range(self.random.randint(1, 3)):
            self._edit(self.ours)
            await self._turn()

    def _edit(self, stack: Stack) -> None:
        for slot in self.random.sample(self.theme, self.random.choice((0, 1, 1, 2))):
            rolled = manifests.roll(self.random)
            if self.random.random() < 0.6:
                die = self.random.randrange(len(rolled))
                rolled = (*stack.dice[slot][:die], rolled[die], *stack.dice[slot][die + 1 :])
            stack.dice[slot] = rolled

    async def _turn(self) -> None:
        """One apply, and concurrent changes of others."""
        random = self.random
        beside: list[Awaitable[Any]] = [self.run(self.ours, self._trouble())]
        if self.has_theirs and random.random() < 0.5:
            self._edit(self.theirs)
            beside.append(self.run(self.theirs, self._trouble()))
        if random.random() < 0.2:
            beside.append(self.run(self.ours, Trouble(), after=random.random() * 4))
        if random.random() < 0.6:
            beside.append(self._meddle(random.random() * 6))
        await asyncio.gather(*beside)

    def _trouble(self) -> Trouble:
        random = self.random
        if random.random() < 0.15:
            return Trouble()
        weather = Weather(
            random.choice((0.0, 0.1, 0.25, 0.4)), random.choice((1, 2, 100)), random.choice((0.0, 0.2, 2.0))
        )
        dies = random.random()
        return Trouble(
            weather,
            dies_at_point=random.randrange(40) if dies < 0.3 else None,
            dies_at=STARTING + random.random() * 4 if 0.3 <= dies < 0.45 else None,
            interrupted_at=STARTING + random.random() * 3 if random.random() < 0.1 else None,
            undeliverable=random.random() < 0.1,
            approvals=random.random() < 0.8,
            slow_disk=random.random() < 0.5,
        )

    async def _meddle(self, after: float) -> None:
        """Changes by hand."""
        await asyncio.sleep(after)
        random, account = self.random, self.account
        for _ in range(random.randint(1, 2)):
            keys = list(account.objects)
            try:
                match random.randrange(4):
                    case 0 if keys:
                        key = random.choice(keys)
                        account.end(key)
                        self.tell(f"  by hand: deleted {key}")
                    case 1 | 2 if keys:
                        key = random.choice(keys)
                        changed = self._by_hand(account.by_name[key[0]])
                        account.edit(key, changed)
                        self.tell(f"  by hand: changed {key}: {changed}")
                    case _:
                        self._squat()
            except RefusedCall as why:
                self.tell(f"  by hand: refused: {why}")

    def _by_hand(self, kind: Kind) -> dict[str, Any]:
        modules = [field.name for field in kind.fields if field.module]
        if modules and self.random.random() < 0.4:
            return {self.random.choice(modules): None}
        if "description" in kind.by_name:
            return {"description": "by hand"}
        return {"active": False} if "active" in kind.by_name else {}

    def _squat(self) -> None:
        """Creates by hand a declared object, or a similar one, without owner record."""
        declared = list(self.ours.manifest().declarations.values())
        simple = [
            declaration
            for declaration in declared
            if declaration.address.kind in ("BotUser", "ReservedDomain", "CertificateAuthority", "TunnelGroupBackend")
        ]
        # Objects without owner record are found by name: one created by hand at that moment is not distinguishable.
        pending = {intent.address for intent in self.ours.journal.open.values()}
        simple = [
            declaration
            for declaration in simple
            if declaration.address.kind != "BotUser" or not (pending or self.ours.is_locked)
        ]
        if simple:
            like = self.random.choice(simple)
            kind = self.account.by_name[like.address.kind]
            body = {name: value for name, value in like.spec.items() if name != "metadata"}
            key = self.account.make(HUMAN, kind, body)
            self.tell(f"  by hand: made {key} like {like.address}")

    # --- one run, as the command does it -----------------------------------------------------------------------------

    async def run(self, stack: Stack, trouble: Trouble, *, after: float = 0.0, empty: bool = False) -> Report:
        await asyncio.sleep(after)
        if stack.is_locked:
            self.tell(f"{stack.name}: locked")
            return Report("locked")
        stack.is_locked = True
        stack.journal.slowness = 0.3 if trouble.slow_disk else 0.0
        stack.sinks.delivers = "the disk is full" if trouble.undeliverable and self.random.random() < 0.5 else ""
        stack.sinks.proves = "the disk is full" if trouble.undeliverable and not stack.sinks.delivers else ""
        report = Report("died")
        work = asyncio.ensure_future(self._apply(stack, trouble, report, empty))
        death = self.loop.call_later(trouble.dies_at, work.cancel) if trouble.dies_at is not None else None
        try:
            await work
        except (Crash, asyncio.CancelledError):
            report.fate = "died"
            stack.journal.life += 1
        finally:
            if death is not None:
                death.cancel()
            stack.is_locked = False
        self.tell(f"{stack.name} at {self.loop.time():.2f}: {report}")
        return report

    async def _apply(self, stack: Stack, trouble: Trouble, report: Report, empty: bool) -> None:
        journal, kinds = stack.journal, self.kinds
        wire = report.wire = Wire(
            stack.name, self.account, self.random, trouble.weather, hiding=self.hiding, bindings=journal.bindings
        )
        await asyncio.sleep(STARTING)
        manifest = Manifest(stack.name, {}) if empty else stack.manifest()
        if trouble is not CALM and not empty:
            manifest = self._spoil(manifest)
            wire.partial = manifest if manifest.unread is not None else None
        began = self.loop.time()
        snapshot = await self._read(wire, stack, manifest)
        if self.hiding is not None and await self._wait_for_open(stack, snapshot, began):
            wire.cut.clear()
            snapshot = await self._read(wire, stack, manifest)
        report.listed = len(wire.log)
        bound = await recovery.settle(tuple(journal.open.values()), snapshot, kinds, journal)
        snapshot = journal.beside(snapshot, bound)
        scopes = ("*", *(kind.name for kind in kinds))
        allow = {(what, scope): 99 for what in SCOPES for scope in scopes} if trouble.approvals else {}
        report.plan = made = plan(manifest, snapshot, kinds, PlanOptions(allow=allow, destroy=empty))
        if made.blocking_errors or made.missing_approvals:
            report.fate = "blocked"
            return
        wire.acting, wire.may_end_protected = True, trouble.approvals
        stop = asyncio.Event()
        if trouble.interrupted_at is not None:
            self.loop.call_later(trouble.interrupted_at, stop.set)
        points = iter(range(10**6))

        def reach(point: str, call: Call) -> None:
            if next(points) == trouble.dies_at_point:
                self.tell(f"  {stack.name} dies {point} of {call.id}")
                raise Crash

        events = apply.apply(
            made,
            kinds=kinds,
            platform=wire,
            journal=journal,
            clock=LoopClock(),
            random=self.chance,
            sinks=stack.sinks,
            stop=stop,
            concurrency=4,
            settling=recovery.find_settling_paths(journal.list_made_objects(), journal.bindings, kinds, SETTLE),
            on_checkpoint=reach,
        )
        async for event in events:
            if isinstance(event, Ended):
                report.ended.append(event)
        report.fate = "ended"

    def _spoil(self, manifest: Manifest) -> Manifest:
        """The manifest as it is read if some declarations are invalid, or a whole file."""
        if self.spoiling is None or self.spoiling.random() < 0.5 or len(manifest.declarations) < 2:
            return manifest
        wrong = self.spoiling.sample(sorted(manifest.declarations), self.spoiling.randint(1, 2))
        left = {address: declaration for address, declaration in manifest.declarations.items() if address not in wrong}
        has_unknown = self.spoiling.random() < 0.5
        self.tell(f"  invalid: {', '.join(map(str, wrong))}{' in a file' if has_unknown else ''}")
        unread = Unread(frozenset(() if has_unknown else wrong), has_unknown)
        return structs.replace(manifest, declarations=left, unread=unread)

    async def _read(self, wire: Wire, stack: Stack, manifest: Manifest) -> Snapshot:
        """As `read_account`. If each new object is visible at once, no object is read by id."""
        journal, settling = stack.journal, None
        if self.hiding is not None:
            seconds = recovery.find_settling(journal.list_made_objects(), journal.bindings, self.kinds, SETTLE)
            settling = observe.Settling(seconds, LoopClock())
        return await observe.observe(
            wire,
            self.kinds,
            bindings=dict(journal.bindings),
            receipts=frozenset(journal.receipts),
            expected=manifest.declarations if self.hiding is not None else (),
            settling=settling,
            concurrency=4,
        )

    async def _wait_for_open(self, stack: Stack, snapshot: Snapshot, began: float) -> bool:
        """As `first_reading` does. Returns whether the account has to be read again."""
        unsettled = recovery.find_unsettled(stack.journal.open.values(), snapshot, self.kinds)
        due = max((intent.opened for intent in unsettled), default=-SETTLE) + SETTLE
        if began < due:
            await asyncio.sleep(max(0.0, due - self.loop.time()))
        return began < due

    # --- peace -------------------------------------------------------------------------------------------------------

    async def calm_down(self) -> None:
        """Ends changes by hand and deletes objects that hold a declared name; the last edits are plain ones."""
        if self.random.random() < 0.7:
            self._edit(self.ours)
        for stack in self.stacks:
            stack.plain = True
        await asyncio.sleep(10 * LAG if self.hiding is None else 2 * SETTLE)
        for key in [*self.account.find_created_by(HUMAN), *self._find_contested_names()]:
            self.account.vanish(key)
        self.tell("calm")

    def _find_contested_names(self) -> list[Key]:
        """The domains of the other stack that this stack created and edges of the other use: only people can decide.

        This stack cannot delete such a domain while it is in use, and the other one must not adopt it.
        """
        kind = self.account.by_name.get("ReservedDomain")
        return [
            key
            for key, record in self.account.records()
            if kind is not None and key[0] == kind.name and record.stack == self.ours.name
            if str(self.account.objects[key]["domain"]).endswith(f".{self.theirs.home}.example.com")
            if any(self.account.find_users(kind, key[1]))
        ]
