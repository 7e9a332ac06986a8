"""Waits after an apply until the objects that it changed are healthy: reads those that are not, again and again."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import quote

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler import kinds
from reconciler.engine.observe import collection_path, observe
from reconciler.engine.ports import Failure, Gone, Reader
from reconciler.engine.retry import sleep_until_stopped
from reconciler.health.facts import Facts
from reconciler.health.waiting import Watched, decide_wait, follow, next_pause
from reconciler.kinds import read_only
from reconciler.model.change import Action
from reconciler.model.event import Ended, HealthChanged
from reconciler.model.health import Actor, Health, HealthRow, State, Wait
from reconciler.model.plan import Plan, Verb
from reconciler.model.snapshot import Listing, Live, LiveKey, Snapshot
from reconciler.model.value import Json
from reconciler.operations.health import build_facts, list_own
from reconciler.operations.reporting import Note, OnEvent
from reconciler.operations.results import HealthWait

if TYPE_CHECKING:
    from reconciler.operations.open_project import OpenProject

_PAGE = 100  # objects of a list response
_ONLINE = tuple(kind.name for kind in read_only.KINDS)
_ABSENT = Health(State.UNKNOWN, "it no longer exists")


class Applied(Struct, frozen=True):
    """What a wait begins with.

    before, after  the account before the first call and after the last one
    plan           that was applied
    outcomes       how its calls ended
    """

    before: Snapshot
    after: Snapshot
    plan: Plan
    outcomes: tuple[Ended, ...]


async def wait_until_healthy(
    project: OpenProject, applied: Applied, seconds: float, *, on_event: OnEvent, stop: asyncio.Event | None
) -> HealthWait:
    """Waits for at most that many `seconds`, or until `stop` is set. Changes nothing."""
    async with project.open_reader(on_event) as reader:
        wait = _Wait(project, reader, on_event, stop or asyncio.Event(), applied.after)
        return await wait.run(applied, seconds)


class Reading(Struct, frozen=True):
    """What to read next: single objects, and whole lists where these are fewer requests."""

    objects: tuple[LiveKey, ...] = ()
    lists: tuple[str, ...] = ()
    requests: int = 0


def choose_reading(snapshot: Snapshot, rows: Iterable[tuple[LiveKey, HealthRow]]) -> Reading:
    """The reading that shows whether these objects are healthy now. Lists of tunnels show what waits for an agent."""
    by_kind: dict[str, list[LiveKey]] = defaultdict(list)
    lists: dict[str, int] = {}
    for key, row in rows:
        if row.health.actor is Actor.AGENT:
            lists |= {name: _count_pages(snapshot, name) for name in _ONLINE if name in snapshot.listings}
        else:
            by_kind[key[0]].append(key)
    objects: list[LiveKey] = []
    for name, keys in by_kind.items():
        pages = _count_pages(snapshot, name)
        if kinds.get(name).parent is None and pages < len(keys):
            lists[name] = pages
        else:
            objects += keys
    return Reading(tuple(objects), tuple(lists), len(objects) + sum(lists.values()))


def _count_pages(snapshot: Snapshot, kind: str) -> int:
    return len(snapshot.of(kind).objects) // _PAGE + 1


class _Wait(Struct):
    """One wait. `snapshot` is what is known of the account, with lists of kinds that cannot be declared."""

    project: OpenProject
    reader: Reader
    on_event: OnEvent
    stop: asyncio.Event
    snapshot: Snapshot
    reported: dict[LiveKey, tuple[Wait, str]] = field(default_factory=dict)
    failures: set[str] = field(default_factory=set)

    async def run(self, applied: Applied, seconds: float) -> HealthWait:
        clock, started = self.project.runtime.clock, self.project.runtime.now()
        began, pause = clock.now(), 0.0
        watched = await self._find_watched(applied, started)
        while True:
            now = started + clock.now() - began
            watched = follow(watched, self._judge(watched, now), now)
            waits = decide_wait(watched.values(), started, now, seconds)
            self._report(watched, waits)
            is_over = Wait.WAITING not in waits
            if is_over or self.stop.is_set():
                rows = tuple((item.row, wait) for item, wait in zip(watched.values(), waits, strict=True))
                return HealthWait(rows, min(now - started, seconds), is_interrupted=not is_over)
            awaited = zip(watched.items(), waits, strict=True)
            reading = choose_reading(
                self.snapshot, [(key, item.row) for (key, item), wait in awaited if wait is Wait.WAITING]
            )
            pause = next_pause(pause, reading.requests, self.project.account.budget, started + seconds - now)
            if not await sleep_until_stopped(clock.sleep(pause), self.stop):
                await self._read(reading)

    # --- what to wait for ---------------------------------------------------------------------------------------------

    async def _find_watched(self, applied: Applied, now: float) -> dict[LiveKey, Watched]:
        """What the apply changed, and what was healthy before and no longer is. Of kinds that have health."""
        changed = _find_changed(applied)
        old = {live.key: live for listing in applied.before.listings.values() for live in listing.objects}
        while True:
            facts, before = build_facts(self.project, self.snapshot, now), self._facts_before(applied, now)
            own, watched = list_own(self.project, self.snapshot), {}
            for live in (live for listing in self.snapshot.listings.values() for live in listing.objects):
                if live.key not in own and live.key not in changed:
                    continue
                health, served = facts.judge(live), _is_healthy(before, old.get(live.key))
                if health is not None and (live.key in changed or (served and health.state is not State.HEALTHY)):
                    watched[live.key] = Watched(HealthRow(own.get(live.key, ""), live.id, health), now, served)
            unread = (facts.unread | before.unread) - self.snapshot.listings.keys()
            if not unread:
                return watched
            await self._read(Reading(lists=tuple(sorted(unread))))
            hidden = {name: Listing((), complete=False) for name in unread}  # the key may not permit to read them
            self.snapshot = replace(self.snapshot, listings={**hidden, **self.snapshot.listings})

    def _facts_before(self, applied: Applied, now: float) -> Facts:
        """The account before the apply, with the agents of now: what differs then is due to the change."""
        listings = {name: self.snapshot.listings[name] for name in _ONLINE if name in self.snapshot.listings}
        account = replace(applied.before, listings={**applied.before.listings, **listings})
        return build_facts(self.project, account, now)

    def _judge(self, watched: Iterable[LiveKey], now: float) -> dict[LiveKey, HealthRow]:
        facts, own, by_key = build_facts(self.project, self.snapshot, now), list_own(self.project, self.snapshot), {}
        for kind, keys in _by_kind(watched).items():
            objects = {live.key: live for live in self.snapshot.of(kind).objects}
            for key in keys:
                live = objects.get(key)
                health = None if live is None else facts.judge(live)
                by_key[key] = HealthRow(own.get(key, ""), key[1] if live is None else live.id, health or _ABSENT)
        return {key: by_key[key] for key in watched}

    def _report(self, watched: dict[LiveKey, Watched], waits: Sequence[Wait]) -> None:
        """Reports each object once, and again when it changes."""
        for (key, item), wait in zip(watched.items(), waits, strict=True):
            seen = (wait, item.row.health.reason)
            if self.reported.get(key) != seen:
                self.reported[key] = seen
                self.on_event(HealthChanged(item.row, wait))

    # --- reading ------------------------------------------------------------------------------------------------------

    async def _read(self, reading: Reading) -> None:
        """Reads into the snapshot. What cannot be read stays as it is known, and is read again later."""
        try:
            bodies = await asyncio.gather(*(self._read_object(key) for key in reading.objects))
            found = [read_only.find(name) for name in reading.lists]
            read = await observe(self.reader, [kind for kind in found if kind is not None]) if found else None
        except Failure as failure:
            self._note(str(failure))
            return
        listings = dict(self.snapshot.listings)
        for (kind, locator), body in zip(reading.objects, bodies, strict=True):
            listings[kind] = _with_body(listings[kind], locator, body)
        for name, listing in read.listings.items() if read is not None else ():
            if listing.complete or name not in listings:
                listings[name] = listing
            else:
                self._note(listing.why)
        self.snapshot = replace(self.snapshot, listings=listings)

    async def _read_object(self, key: LiveKey) -> Mapping[str, Json] | None:
        """The body of an object; None if it does not exist."""
        parent, _, id = key[1].rpartition("/")
        path = f"{collection_path(kinds.get(key[0]), parent or None)}/{quote(id, safe='')}"
        try:
            body = await self.reader.get(path)
        except Gone:
            return None
        if not isinstance(body, dict):
            raise Failure(f"the response to GET {path} is not an object")
        return body

    def _note(self, why: str) -> None:
        if why not in self.failures:
            self.failures.add(why)
            self.on_event(Note(f"note: the health could not be read, which is tried again: {why}"))


def _find_changed(applied: Applied) -> frozenset[LiveKey]:
    """The objects that the plan created, changed, moved or adopted, as far as they exist afterwards."""
    ids = {
        (change.address.kind, change.id)
        for change in applied.plan.changes
        if change.action not in (Action.DELETE, Action.FORGET)
    }
    ids |= {(ended.call.address.kind, ended.id) for ended in applied.outcomes if ended.call.verb is Verb.CREATE}
    return frozenset(
        live.key
        for kind in {kind for kind, _ in ids}
        for live in applied.after.of(kind).objects
        if (kind, live.id) in ids
    )


def _is_healthy(facts: Facts, live: Live | None) -> bool:
    health = None if live is None else facts.judge(live)
    return health is not None and health.state is State.HEALTHY


def _by_kind(keys: Iterable[LiveKey]) -> dict[str, list[LiveKey]]:
    found: dict[str, list[LiveKey]] = defaultdict(list)
    for key in keys:
        found[key[0]].append(key)
    return found


def _with_body(listing: Listing, locator: str, body: Mapping[str, Json] | None) -> Listing:
    """The listing with another body of an object; without the object if there is none."""
    kept = (live for live in listing.objects if live.locator != locator or body is not None)
    return replace(
        listing,
        objects=tuple(live.with_body(body) if live.locator == locator and body is not None else live for live in kept),
    )
