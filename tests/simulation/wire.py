"""The engine's platform port on the account, with weather: seeded latencies and faults of each kind.

One wire per run, so that each request is known to be somebody's.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

from reconciler.engine import retry
from reconciler.engine.ports import Check, Conflict, Failure, Gone, Lost, Refused, Transient, complete_body
from reconciler.model import owner_record as owners
from reconciler.model.address import Address
from reconciler.model.manifest import Manifest
from reconciler.model.snapshot import Binding
from reconciler.model.value import Json
from tests.harness.world import RefusedCall
from tests.simulation.account import Account, Place, place

LAG = retry.RetryPolicy().lag
"""Seconds after which what was sent shows in every list, if it is ever to have an effect."""

LATE = 0.4 * LAG
"""Seconds by which a request may outlive its connection; lists lag by no more than the rest."""

LATEST = 9 * LAG
"""The same of a create that says in its record which request it came of: the run may have ended long ago."""

SETTLE = 10.0
"""Seconds for which an object that was created may not be visible: `limits.settle_seconds`."""

HIDDEN = 8.0
"""The seconds for which it is not visible at most, in lists and by its id, where a platform has such replicas."""

_READS = ("busy", "throttled", "reset", "cut", "stale", "stale", "stale")
_WRITES = (
    "refused",
    "conflict",
    "busy",
    "throttled",
    "lost before",
    "lost after",
    "lost late",
    "broken before",
    "broken after",
)


@dataclass(frozen=True)
class Weather:
    """How often a request has a fault, and the objects of a page. Latencies are up to `slowness` seconds."""

    faults: float = 0.0
    page: int = 100
    slowness: float = 0.2

    @property
    def is_fine(self) -> bool:
        return not self.faults


@dataclass
class Wire:
    stack: str
    account: Account
    random: Random
    weather: Weather
    log: list[tuple[str, str, str]] = field(default_factory=list)  # method, path, what happened
    cut: set[str] = field(default_factory=set)  # kinds of which the run has not seen every object, before it acted
    acting: bool = False
    hiding: Random | None = None  # chooses how long new objects are hidden; None: they are visible at once
    bindings: Mapping[Address, Binding] = field(default_factory=dict)  # of the stack, as its store has them
    partial: Manifest | None = None  # the manifest of the run, if some of its declarations could not be read

    # --- reading -----------------------------------------------------------------------------------------------------

    async def get(self, path: str) -> Json:
        fault = await self._leave("GET", path, _READS)
        where, bodies = self._find(path), self._bodies(fault)
        if where.key not in bodies:
            raise Gone(f"{path} is not there", status=404)
        return self.account.render_object(where.kind, where.key, bodies)

    async def pages(self, path: str, key: str) -> AsyncIterator[Sequence[Mapping[str, Json]]]:
        where = self._find(path)
        before: int | None = None
        try:
            while True:
                fault = await self._leave("GET", path, _READS)
                listed = self.account.list_objects(where, self._bodies(fault))
                listed = [entry for entry in listed if before is None or entry[0] < before]
                page = listed[: self.weather.page]
                yield [body for _, body in page]
                if len(page) == len(listed):
                    return
                before = page[-1][0]
                if fault == "cut":
                    raise Transient("the second page is not to be had", status=502)
        except Failure:
            if not self.acting:
                self.cut.add(where.kind.name)
            raise

    def _bodies(self, fault: str) -> dict[tuple[str, str], dict[str, Any]]:
        if fault != "stale":
            return self.account.visible(self.account.objects)
        return self.account.visible(self.account.at(self.account.now() - self.random.random() * (LAG - LATE)))

    # --- writing -----------------------------------------------------------------------------------------------------

    async def send(
        self, method: str, path: str, body: Mapping[str, Json] | None = None, *, check: Check | None = None
    ) -> Json:
        body = await complete_body(check, body, self.get)
        outlives = self.random.random() < 0.5
        try:
            fault = await self._leave(method, path, _WRITES)
        except asyncio.CancelledError:
            # The process is dead, its request may not be.
            if outlives:
                self._outlive(method, path, body or {})
            raise
        match fault:
            case "refused":
                raise Refused("not like that", status=422)
            case "conflict":
                raise Conflict("not now", status=409)
            case "lost before":
                raise _make_lost()
            case "lost late":
                self._outlive(method, path, body or {})
                raise _make_lost()
            case "broken before":
                raise _make_reset(method)
        before = set(self.account.objects)
        answer = self._carry_out(method, path, body or {})
        if method == "POST" and self.hiding is not None and self.hiding.random() < 0.7:
            self._hide(self.account.objects.keys() - before, is_lost=fault in ("lost after", "broken after"))
        await self._travel()
        match fault:
            case "lost after":
                raise _make_lost()
            case "broken after":
                raise _make_reset(method)
        return answer

    def _hide(self, made: Iterable[tuple[str, str]], *, is_lost: bool) -> None:
        """An object without owner record is found only if a list shows it, or its response arrived."""
        assert self.hiding is not None
        for key in made:
            if self.account.by_name[key[0]].keeps_owner or not is_lost:
                self.account.hidden[key] = self.account.now() + self.hiding.random() * HIDDEN

    def _outlive(self, method: str, path: str, body: Mapping[str, Any]) -> None:
        # What is known by its name alone is refused when it comes late, or is taken for somebody else's.
        longest = LATE
        if method == "POST" and self._find(path).kind.keeps_owner and self.random.random() < 0.5:
            longest = LATEST
        asyncio.get_running_loop().call_later(self.random.random() * longest, self._late, method, path, body)

    def _late(self, method: str, path: str, body: Mapping[str, Any]) -> None:
        with suppress(Failure):
            self._carry_out(method, path, body)

    def _carry_out(self, method: str, path: str, body: Mapping[str, Any]) -> Json:
        where, account = self._find(path), self.account
        if method != "POST" and where.key not in account.objects:
            raise Gone(f"{path} is not there", status=404)
        if where.parent is not None and (_parent(where), where.parent) not in account.objects:
            raise Gone(f"{path} is not there", status=404)
        self._watch(method, where, body)
        try:
            match method:
                case "POST":
                    key = account.make(self.stack, where.kind, _own(where, body), where.parent)
                    token = {where.kind.one_time: account.tokens[key]} if where.kind.one_time else {}
                    return {**account.render_object(where.kind, key, account.objects), **token}
                case "PUT":
                    account.edit(where.key, {str(where.segment): body})
                case "PATCH":
                    account.edit(where.key, body)
                case _ if where.segment is not None:
                    cleared = next(field for field in where.kind.fields if field.delete_segment == where.segment)
                    account.edit(where.key, {cleared.name: None})
                case _:
                    account.end(where.key)
                    return None
        except RefusedCall as why:
            raise Refused(str(why), status=400) from why
        return account.render_object(where.kind, where.key, account.objects)

    def _watch(self, method: str, where: Place, body: Mapping[str, Any]) -> None:
        """The invariants that are checked at each write request."""
        account = self.account
        key = (_parent(where), str(where.parent)) if method == "POST" and where.parent else where.key
        # What is known by its name alone is adopted without a question if it is as declared.
        adopted = {(address.kind, binding.id) for address, binding in self.bindings.items() if binding.adopted}
        if (method != "POST" or where.parent) and account.makers[key] != self.stack and key not in adopted:
            account.broken.append(f"hands off: {self.stack} sent {method} to {key}, made by {account.makers[key]}")
        if method == "DELETE" and where.segment is None:
            record = owners.read(account.objects[where.key].get("metadata"))[1]
            fresh = record is not None and record.intent in self.made
            if self.partial is not None and record is not None and record.address not in self.partial.declarations:
                account.broken.append(f"unknown: {where.key} was deleted, and its declaration may not have been read")
            if where.kind.name in self.cut and not fresh:
                account.broken.append(f"{where.key} was deleted, and not all objects of its kind had been listed")
            if record is not None and record.protect and not fresh and not self.may_end_protected:
                account.broken.append(f"protected: {where.key} was deleted without approval")
        if method == "POST":
            record = owners.read(body.get("metadata"))[1]
            self.made.update({record.intent} if record else ())

    may_end_protected: bool = True
    made: set[str] = field(default_factory=set)  # intents of this very run

    # --- on the way --------------------------------------------------------------------------------------------------

    async def _leave(self, method: str, path: str, faults: Sequence[str]) -> str:
        """The time until the request arrives; its fault, if any."""
        # Most runs must complete their first refresh.
        likely = self.weather.faults if self.acting else self.weather.faults / 3
        fault = self.random.choice(faults) if self.random.random() < likely else ""
        self.log.append((method, path, fault))
        await self._travel()
        match fault:
            case "busy":
                raise Transient("busy", status=503) if method != "POST" else _make_reset(method)
            case "throttled":
                raise Transient("throttled", status=429, retry_after=self.random.choice([None, 0.0, 3.0]))
            case "reset":
                raise Transient("connection reset")
        return fault

    async def _travel(self) -> None:
        await asyncio.sleep(self.random.random() * self.weather.slowness)

    def _find(self, path: str) -> Place:
        try:
            return place(path)
        except (LookupError, StopIteration):
            raise Gone(f"{path} is not there", status=404) from None

    @property
    def changes(self) -> list[tuple[str, str, str]]:
        return [request for request in self.log if request[0] != "GET"]


def _make_lost() -> Failure:
    return Lost("connection reset")


def _make_reset(method: str) -> Failure:
    """A 5xx, as the client reads it."""
    return Lost("500", status=500) if method == "POST" else Transient("500", status=500)


def _parent(where: Place) -> str:
    return where.kind.parent.kind if where.kind.parent else ""


def _own(where: Place, body: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name in where.kind.by_name}
