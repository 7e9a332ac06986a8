"""Records what drift checks found, and lists drift checks and runs: for reports, never for a decision."""

from __future__ import annotations

import asyncio
import json
import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Engine, Row, Select, func, insert, select

from reconciler.model.address import Address
from reconciler.model.change import Action, ChangedBy, Reason
from reconciler.model.event import Outcome
from reconciler.model.history import DriftCheck, DriftedResource, Run
from reconciler.store import database, schema


class History:
    def __init__(self, engine: Engine, place: str) -> None:
        self._engine = engine
        self._place = place

    async def record(self, stack: str, look: DriftCheck) -> None:
        """Returns when it is durable."""
        name = f"{look.at:.6f}-{os.getpid()}"
        rows = [
            {
                "look": name,
                "address": str(drifted_resource.address),
                "action": drifted_resource.action.value,
                "reason": drifted_resource.reason.value,
                "mover": drifted_resource.changed_by.value,
                "fields": json.dumps(drifted_resource.fields),
            }
            for drifted_resource in look.moved
        ]

        def write() -> None:
            with database.explain_errors(self._place), self._engine.begin() as connection:
                head = {"id": name, "stack": stack, "at": look.at, "declared": look.declared, "commit": look.commit}
                connection.execute(insert(schema.drift_checks), [head])
                if rows:
                    connection.execute(insert(schema.drifted_resources), rows)

        await asyncio.to_thread(write)

    async def list_drift_checks(self, stack: str, since: float = 0.0) -> tuple[DriftCheck, ...]:
        """Oldest first."""
        look, drift = schema.drift_checks, schema.drifted_resources
        wanted = (look.c.stack == stack) & (look.c.at >= since)
        heads = await self._rows(select(look).where(wanted).order_by(look.c.at, look.c.id))
        moved: Mapping[str, list[DriftedResource]] = defaultdict(list)
        rows = select(drift).join(look, look.c.id == drift.c.look).where(wanted).order_by(drift.c.address)
        for row in await self._rows(rows):
            moved[row.look].append(
                DriftedResource(
                    Address.parse(row.address),
                    Action(row.action),
                    Reason(row.reason),
                    ChangedBy(row.mover),
                    tuple(json.loads(row.fields)),
                )
            )
        return tuple(DriftCheck(row.at, row.declared, row.commit, tuple(moved.get(row.id, ()))) for row in heads)

    async def list_runs(self, stack: str, since: float = 0.0) -> tuple[Run, ...]:
        """Oldest first, with how many calls ended how."""
        run, outcome = schema.runs, schema.outcomes
        wanted = (run.c.stack == stack) & (run.c.started >= since)
        counted: Mapping[str, dict[Outcome, int]] = defaultdict(dict)
        counts = (
            select(outcome.c.run, outcome.c.outcome, func.count().label("calls"))
            .join(run, run.c.id == outcome.c.run)
            .where(wanted)
            .group_by(outcome.c.run, outcome.c.outcome)
        )
        for row in await self._rows(counts):
            counted[row.run][Outcome(row.outcome)] = row.calls
        heads = await self._rows(select(run).where(wanted).order_by(run.c.started, run.c.id))
        return tuple(
            Run(row.command, row.started, row.ended, row.outcome or "", counted.get(row.id, {})) for row in heads
        )

    async def _rows(self, query: Select[Any]) -> Sequence[Row[Any]]:
        def read() -> Sequence[Row[Any]]:
            with database.explain_errors(self._place), self._engine.connect() as connection:
                return connection.execute(query).all()

        return await asyncio.to_thread(read)
