"""Stores the results of drift checks, and lists drift checks and runs. For reports only: no plan depends on them."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, TypeVar

from reconciler.model.access_change import Verdict
from reconciler.model.address import Address
from reconciler.model.change import Action, ChangedBy, Reason
from reconciler.model.event import Outcome
from reconciler.model.health import Actor, Health, HealthRow, State
from reconciler.model.history import CheckedHealth, DriftCheck, DriftedResource, Opening, Run
from reconciler.store.errors import Damaged
from reconciler.store.scope import WITHOUT_SCOPE, Scope, row_id
from reconciler.store.sql import Condition, Session, insert, is_one_of

_READ_LATEST = (
    "SELECT id FROM {looks} WHERE stack = :stack AND judged IS NOT NULL ORDER BY at DESC, id DESC LIMIT :limit"
)
_COUNT_CALLS = (
    "SELECT o.run, o.outcome, count(*) AS calls FROM {outcomes} AS o JOIN {runs} AS r ON r.id = o.run"
    " WHERE r.stack = :stack AND r.started >= :since GROUP BY o.run, o.outcome"
)
_READ_RUNS = (
    'SELECT r.*, g."commit", g.actor FROM {runs} AS r LEFT JOIN {run_origins} AS g ON g.run = r.id'
    " WHERE r.stack = :stack AND r.started >= :since ORDER BY r.started, r.id"
)
_READ_CALLS = (
    "SELECT o.run, o.address, o.outcome, o.at FROM {outcomes} AS o JOIN {runs} AS r ON r.id = o.run"
    " WHERE r.stack = :stack AND o.at > :since ORDER BY o.at, o.run, o.place"
)

_Code = TypeVar("_Code", bound=StrEnum)
_Part = TypeVar("_Part")


class History:
    """The drift checks and runs of a store."""

    def __init__(self, session: Session, scope: Scope = WITHOUT_SCOPE) -> None:
        self._session = session
        self._scope = scope

    async def record(self, stack: str, check: DriftCheck) -> None:
        """Stores a drift check; returns when it is durable."""
        name = row_id(check.at)
        judged = check.health.judged if check.health is not None else None
        head = {"id": name, "stack": self._scope.key(stack), "at": check.at, "declared": check.declared}
        head |= {"commit": check.commit, "complete": int(check.complete), "judged": judged}
        parts = {
            "drifts": [_write_drifted(resource) for resource in check.moved],
            "openings": [_write_opening(opening) for opening in check.openings],
            "health": [_write_health(row) for row in (check.health.rows if check.health is not None else ())],
        }
        tables = {"looks": [head], **{table: [{"look": name, **row} for row in rows] for table, rows in parts.items()}}
        statements = {insert(table, rows[0]): rows for table, rows in tables.items() if rows}
        await asyncio.to_thread(self._session.write, statements)

    async def list_drift_checks(self, stack: str, since: float = 0.0) -> tuple[DriftCheck, ...]:
        """Drift checks of a stack, oldest first. `since`: seconds since 1970."""
        selected = Condition("c.stack = :stack AND c.at >= :since", {"stack": self._scope.key(stack), "since": since})
        return await self._read_checks(selected)

    async def list_judged(self, stack: str, limit: int) -> tuple[DriftCheck, ...]:
        """The last `limit` drift checks of a stack that judged health, oldest first."""
        latest = await self._rows(_READ_LATEST, stack=self._scope.key(stack), limit=limit)
        return await self._read_checks(is_one_of("c.id", [row.id for row in latest], "id"))

    async def _read_checks(self, selected: Condition) -> tuple[DriftCheck, ...]:
        """Drift checks that meet a condition, in which `c` is the table."""
        query = f"SELECT * FROM {{looks}} AS c WHERE {selected.text} ORDER BY c.at, c.id"
        heads = await self._rows(query, **selected.values)
        drifted = await self._group("drifts", selected, "p.address", self._parse_drifted)
        openings = await self._group("openings", selected, "p.entry_point", self._parse_opening)
        rows = await self._group("health", selected, "p.address, p.object", self._parse_health)
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
        self, table: str, selected: Condition, order: str, parse: Callable[[Any], _Part]
    ) -> Mapping[str, list[_Part]]:
        """The rows of a table that belong to the selected drift checks, by the id of the check."""
        found: dict[str, list[_Part]] = defaultdict(list)
        joined = f"{{{table}}} AS p JOIN {{looks}} AS c ON c.id = p.look"
        query = f"SELECT p.* FROM {joined} WHERE {selected.text} ORDER BY {order}"
        for row in await self._rows(query, **selected.values):
            found[row.look].append(parse(row))
        return found

    def _parse_drifted(self, row: Any) -> DriftedResource:
        return DriftedResource(
            Address.parse(row.address),
            Action(row.action),
            self._parse(Reason, row.reason),
            self._parse(ChangedBy, row.mover),
            tuple(json.loads(row.fields)),
        )

    def _parse_opening(self, row: Any) -> Opening:
        return Opening(row.entry_point, self._parse(Verdict, row.verdict), row.before, row.after, bool(row.certain))

    def _parse_health(self, row: Any) -> HealthRow:
        state, actor = self._parse(State, row.state), self._parse(Actor, row.actor)
        return HealthRow(row.address, row.object, Health(state, row.reason, row.advice, actor, row.due, row.retries_at))

    async def list_runs(self, stack: str, since: float = 0.0) -> tuple[Run, ...]:
        """Runs of a stack, oldest first, with the number of calls by outcome. `since`: seconds since 1970."""
        selected = {"stack": self._scope.key(stack), "since": since}
        counted: Mapping[str, dict[Outcome, int]] = defaultdict(dict)
        for row in await self._rows(_COUNT_CALLS, **selected):
            ended = self._parse(Outcome, row.outcome)
            counted[row.run][ended] = counted[row.run].get(ended, 0) + row.calls
        heads = await self._rows(_READ_RUNS, **selected)
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
        ends: dict[str, dict[str, tuple[float, bool]]] = defaultdict(dict)  # by address and run
        for row in await self._rows(_READ_CALLS, stack=self._scope.key(stack), since=since):
            is_done = self._parse(Outcome, row.outcome) in (Outcome.DONE, Outcome.ALREADY)
            _, was_done = ends[row.address].get(row.run, (0.0, True))
            ends[row.address][row.run] = row.at, is_done and was_done
        last = {address: max(by_run.values()) for address, by_run in ends.items()}
        return {Address.parse(address): at for address, (at, is_done) in last.items() if is_done}

    async def _rows(self, query: str, **parameters: object) -> Sequence[Any]:
        return await asyncio.to_thread(self._session.rows, query, parameters)

    def _parse(self, codes: type[_Code], stored: str) -> _Code:
        try:
            return codes(stored)
        except ValueError as failure:
            raise Damaged(self._session.place, str(failure)) from failure


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
