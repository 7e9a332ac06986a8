"""Stores the results of drift checks, and lists drift checks and runs. For reports only: no plan depends on them."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Engine, Row, Select, Table, func, insert, select

from reconciler.model.access_change import Verdict
from reconciler.model.address import Address
from reconciler.model.change import Action, ChangedBy, Reason
from reconciler.model.event import Outcome
from reconciler.model.health import Actor, Health, HealthRow, State
from reconciler.model.history import CheckedHealth, DriftCheck, DriftedResource, Opening, Run
from reconciler.store import database, schema
from reconciler.store.errors import Damaged
from reconciler.store.scope import WITHOUT_SCOPE, Scope, row_id
from reconciler.store.statements import execute

_TABLES = (schema.drift_checks, schema.drifted_resources, schema.openings, schema.health)
_INSERT = {table: insert(table) for table in _TABLES}

_Code = TypeVar("_Code", bound=StrEnum)
_Part = TypeVar("_Part")


class History:
    """The drift checks and runs of a store."""

    def __init__(self, engine: Engine, place: str, scope: Scope = WITHOUT_SCOPE) -> None:
        self._engine = engine
        self._place = place
        self._scope = scope

    async def record(self, stack: str, check: DriftCheck) -> None:
        """Stores a drift check; returns when it is durable."""
        name = row_id(check.at)
        judged = check.health.judged if check.health is not None else None
        head = {"id": name, "stack": self._scope.key(stack), "at": check.at, "declared": check.declared}
        head |= {"commit": check.commit, "complete": int(check.complete), "judged": judged}
        tables = {
            schema.drift_checks: [head],
            schema.drifted_resources: [_write_drifted(resource) for resource in check.moved],
            schema.openings: [_write_opening(opening) for opening in check.openings],
            schema.health: [_write_health(row) for row in (check.health.rows if check.health is not None else ())],
        }

        def write() -> None:
            with database.explain_errors(self._place), self._engine.begin() as connection:
                for table, rows in tables.items():
                    if rows:
                        own = {} if table is schema.drift_checks else {"look": name}
                        execute(connection, _INSERT[table], *({**own, **row} for row in rows))

        await asyncio.to_thread(write)

    async def list_drift_checks(self, stack: str, since: float = 0.0) -> tuple[DriftCheck, ...]:
        """Drift checks of a stack, oldest first. `since`: seconds since 1970."""
        check = schema.drift_checks
        selected = (check.c.stack == self._scope.key(stack)) & (check.c.at >= since)
        return await self._read_checks(selected)

    async def list_judged(self, stack: str, limit: int) -> tuple[DriftCheck, ...]:
        """The last `limit` drift checks of a stack that judged health, oldest first."""
        check = schema.drift_checks
        of_stack = (check.c.stack == self._scope.key(stack)) & check.c.judged.is_not(None)
        latest = select(check.c.id).where(of_stack).order_by(check.c.at.desc(), check.c.id.desc()).limit(limit)
        return await self._read_checks(check.c.id.in_([row.id for row in await self._rows(latest)]))

    async def _read_checks(self, selected: ColumnElement[bool]) -> tuple[DriftCheck, ...]:
        check, drift, opening, health = schema.drift_checks, schema.drifted_resources, schema.openings, schema.health
        heads = await self._rows(select(check).where(selected).order_by(check.c.at, check.c.id))
        drifted = await self._group(drift, selected, drift.c.address, self._parse_drifted)
        openings = await self._group(opening, selected, opening.c.entry_point, self._parse_opening)
        rows = await self._group(health, selected, health.c.address, self._parse_health, health.c.object)
        return tuple(
            DriftCheck(
                row.at,
                row.declared,
                row.commit,
                tuple(drifted.get(row.id, ())),
                bool(row.complete),
                tuple(openings.get(row.id, ())),
                CheckedHealth(row.judged, tuple(rows.get(row.id, ()))) if row.judged is not None else None,
            )
            for row in heads
        )

    async def _group(
        self,
        table: Table,
        selected: ColumnElement[bool],
        order: ColumnElement[str],
        parse: Callable[[Row[Any]], _Part],
        *more: ColumnElement[str],
    ) -> Mapping[str, list[_Part]]:
        """The rows of a table that belong to the selected drift checks, by the id of the check."""
        check = schema.drift_checks
        found: dict[str, list[_Part]] = defaultdict(list)
        query = select(table).join(check, check.c.id == table.c.look).where(selected).order_by(order, *more)
        for row in await self._rows(query):
            found[row.look].append(parse(row))
        return found

    def _parse_drifted(self, row: Row[Any]) -> DriftedResource:
        return DriftedResource(
            Address.parse(row.address),
            Action(row.action),
            self._parse(Reason, row.reason),
            self._parse(ChangedBy, row.mover),
            tuple(json.loads(row.fields)),
        )

    def _parse_opening(self, row: Row[Any]) -> Opening:
        return Opening(row.entry_point, self._parse(Verdict, row.verdict), row.before, row.after, bool(row.certain))

    def _parse_health(self, row: Row[Any]) -> HealthRow:
        state, actor = self._parse(State, row.state), self._parse(Actor, row.actor)
        return HealthRow(row.address, row.object, Health(state, row.reason, row.advice, actor, row.due, row.retries_at))

    async def list_runs(self, stack: str, since: float = 0.0) -> tuple[Run, ...]:
        """Runs of a stack, oldest first, with the number of calls by outcome. `since`: seconds since 1970."""
        run, outcome = schema.runs, schema.outcomes
        selected = (run.c.stack == self._scope.key(stack)) & (run.c.started >= since)
        counted: Mapping[str, dict[Outcome, int]] = defaultdict(dict)
        counts = (
            select(outcome.c.run, outcome.c.outcome, func.count().label("calls"))
            .join(run, run.c.id == outcome.c.run)
            .where(selected)
            .group_by(outcome.c.run, outcome.c.outcome)
        )
        for row in await self._rows(counts):
            ended = self._parse(Outcome, row.outcome)
            counted[row.run][ended] = counted[row.run].get(ended, 0) + row.calls
        origin = schema.run_origins
        heads = await self._rows(
            select(run, origin.c.commit, origin.c.actor)
            .join(origin, origin.c.run == run.c.id, isouter=True)
            .where(selected)
            .order_by(run.c.started, run.c.id)
        )
        return tuple(
            Run(
                row.command,
                row.started,
                row.ended,
                row.outcome or "",
                counted.get(row.id, {}),
                row.commit or "",
                row.actor or "",
            )
            for row in heads
        )

    async def find_applied(self, stack: str, since: float) -> Mapping[Address, float]:
        """When each resource was last changed by a run after `since` in which all calls for it succeeded."""
        run, outcome = schema.runs, schema.outcomes
        query = (
            select(outcome.c.run, outcome.c.address, outcome.c.outcome, outcome.c.at)
            .join(run, run.c.id == outcome.c.run)
            .where((run.c.stack == self._scope.key(stack)) & (outcome.c.at > since))
            .order_by(outcome.c.at, outcome.c.run, outcome.c.place)
        )
        ends: dict[str, dict[str, tuple[float, bool]]] = defaultdict(dict)  # by address and run
        for row in await self._rows(query):
            is_done = self._parse(Outcome, row.outcome) in (Outcome.DONE, Outcome.ALREADY)
            _, was_done = ends[row.address].get(row.run, (0.0, True))
            ends[row.address][row.run] = row.at, is_done and was_done
        last = {address: max(by_run.values()) for address, by_run in ends.items()}
        return {Address.parse(address): at for address, (at, is_done) in last.items() if is_done}

    async def _rows(self, query: Select[Any]) -> Sequence[Row[Any]]:
        def read() -> Sequence[Row[Any]]:
            with database.explain_errors(self._place), self._engine.connect() as connection:
                return connection.execute(query).all()

        return await asyncio.to_thread(read)

    def _parse(self, codes: type[_Code], stored: str) -> _Code:
        try:
            return codes(stored)
        except ValueError as failure:
            raise Damaged(self._place, str(failure)) from failure


def _write_drifted(resource: DriftedResource) -> dict[str, Any]:
    return {
        "address": str(resource.address),
        "action": resource.action.value,
        "reason": str(resource.reason),
        "mover": str(resource.changed_by),
        "fields": json.dumps(resource.fields),
    }


def _write_opening(opening: Opening) -> dict[str, Any]:
    return {
        "entry_point": opening.entry_point,
        "verdict": str(opening.verdict),
        "before": opening.before,
        "after": opening.after,
        "certain": int(opening.is_certain),
    }


def _write_health(row: HealthRow) -> dict[str, Any]:
    health = row.health
    return {
        "address": row.address,
        "object": row.id,
        "state": health.state.value,
        "reason": health.reason,
        "advice": health.advice,
        "actor": health.actor.value,
        "due": health.due,
        "retries_at": health.retries_at,
    }
