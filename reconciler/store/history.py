"""Stores the results of drift checks, and lists drift checks and runs. For reports only: no plan depends on them."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, TypeVar

from sqlalchemy import Engine, Row, Select, func, insert, select

from reconciler.model.address import Address
from reconciler.model.change import Action, ChangedBy, Reason
from reconciler.model.event import Outcome
from reconciler.model.history import DriftCheck, DriftedResource, Run
from reconciler.store import database, schema
from reconciler.store.errors import Damaged
from reconciler.store.scope import WITHOUT_SCOPE, Scope, row_id

_Code = TypeVar("_Code", bound=StrEnum)


class History:
    """The drift checks and runs of a store."""

    def __init__(self, engine: Engine, place: str, scope: Scope = WITHOUT_SCOPE) -> None:
        self._engine = engine
        self._place = place
        self._scope = scope

    async def record(self, stack: str, check: DriftCheck) -> None:
        """Stores a drift check; returns when it is durable."""
        name = row_id(check.at)
        rows = [
            {
                "look": name,
                "address": str(resource.address),
                "action": resource.action.value,
                "reason": str(resource.reason),
                "mover": str(resource.changed_by),
                "fields": json.dumps(resource.fields),
            }
            for resource in check.moved
        ]

        def write() -> None:
            with database.explain_errors(self._place), self._engine.begin() as connection:
                head = {"id": name, "stack": self._scope.key(stack), "at": check.at}
                head |= {"declared": check.declared, "commit": check.commit}
                connection.execute(insert(schema.drift_checks), [head])
                if rows:
                    connection.execute(insert(schema.drifted_resources), rows)

        await asyncio.to_thread(write)

    async def list_drift_checks(self, stack: str, since: float = 0.0) -> tuple[DriftCheck, ...]:
        """Drift checks of a stack, oldest first. `since`: seconds since 1970."""
        check, drift = schema.drift_checks, schema.drifted_resources
        selected = (check.c.stack == self._scope.key(stack)) & (check.c.at >= since)
        heads = await self._rows(select(check).where(selected).order_by(check.c.at, check.c.id))
        drifted: Mapping[str, list[DriftedResource]] = defaultdict(list)
        rows = select(drift).join(check, check.c.id == drift.c.look).where(selected).order_by(drift.c.address)
        for row in await self._rows(rows):
            drifted[row.look].append(
                DriftedResource(
                    Address.parse(row.address),
                    Action(row.action),
                    self._parse(Reason, row.reason),
                    self._parse(ChangedBy, row.mover),
                    tuple(json.loads(row.fields)),
                )
            )
        return tuple(DriftCheck(row.at, row.declared, row.commit, tuple(drifted.get(row.id, ()))) for row in heads)

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
