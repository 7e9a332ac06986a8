"""Stores the runs of fleets: tasks, shapes of plans, pauses, and the lease of each task.

Every method is one transaction. Times that are compared are those of the store's clock.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, nullcontext
from typing import Any, TypeVar

from msgspec.structs import replace
from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    Row,
    Select,
    and_,
    bindparam,
    delete,
    insert,
    or_,
    select,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import IntegrityError

from reconciler.model.fleet import Pause, Run, RunState, RunVerb, Shape, TaskRecord, TaskState
from reconciler.store import database, encoding, lock, schema
from reconciler.store.clock import now_expression
from reconciler.store.database import Timeouts
from reconciler.store.errors import AlreadyExists, AmbiguousRun, StoreError, UnknownRun, UnknownTask
from reconciler.store.fleets.requests import HEARTBEAT_SECONDS, WINDOW, count_requests, last_moment, sum_attempts
from reconciler.store.fleets.rows import (
    check_seal,
    read_run,
    read_task,
    seal_task,
    write_health,
    write_run,
    write_task,
)
from reconciler.store.lock import Holder
from reconciler.store.shared_engines import open_engine

_RUNS, _TASKS, _SHAPES, _PAUSES = schema.fleet_runs, schema.fleet_tasks, schema.fleet_shapes, schema.fleet_pauses
_CHUNK = 500  # parameters in one statement; SQLite has a limit
_MIN_PREFIX = 4

_IS_TASK = (
    (_TASKS.c.run == bindparam("of_run"))
    & (_TASKS.c.member == bindparam("of_member"))
    & (_TASKS.c.project == bindparam("of_project"))
)
_SKIP = (
    update(_TASKS)
    .where(_IS_TASK, _TASKS.c.state == TaskState.WAITING.value)
    .values(state=TaskState.SKIPPED.value, reason=bindparam("why"))
)

T = TypeVar("T")


@asynccontextmanager
async def open_fleet_records(
    location: str, *, now: Callable[[], float] = time.time, timeouts: Timeouts | None = None
) -> AsyncIterator[FleetRecords]:
    """Opens the store at a path or URL, and creates it if it does not exist. Raises a StoreError.

    now  seconds since 1970; a server uses its own clock
    """
    async with open_engine(location, timeouts or Timeouts(), shared=True) as (engine, place):
        yield FleetRecords(engine, place, now)


def task_lease(key: str) -> str:
    """The name of the lease of a task, by its key."""
    return f"fleet {key}"


class FleetRecords:
    """The runs of fleets in one store. May be used from several threads and event loops.

    Every method raises a StoreError if the database cannot be used, or Damaged if a row is not valid.
    """

    def __init__(self, engine: Engine, place: str, now: Callable[[], float]) -> None:
        self._engine = engine
        self._place = place
        self._now = now
        self._insert = (postgresql if engine.dialect.name == "postgresql" else sqlite).insert
        # SQLite lets one connection write; waiting here costs less than its polling.
        self._writing: AbstractContextManager[Any] = (
            threading.Lock() if engine.dialect.name == "sqlite" else nullcontext()
        )

    async def now(self) -> float:
        """The time of the store's clock, in seconds since 1970."""
        return await self._read(lambda connection: float(connection.execute(select(self._moment)).scalar_one()))

    # --- runs ---------------------------------------------------------------------------------------------------------

    async def create_run(self, run: Run, tasks: Sequence[TaskRecord]) -> None:
        """Stores a new run with all its tasks."""
        if any(task.run != run.id for task in tasks):
            raise ValueError(f"a task is not of the run {run.id}")
        rows = [write_task(task) for task in tasks]

        def write(connection: Connection) -> None:
            connection.execute(insert(_RUNS), [write_run(run)])
            if rows:
                connection.execute(insert(_TASKS), rows)

        try:
            await self._write(write)
        except AlreadyExists as failure:
            raise AlreadyExists(f"run {run.id} exists already; run again") from failure

    async def find_run(self, fleet: str, text: str = "") -> Run | None:
        """The run of a fleet with an id, the last part of an id, or an unambiguous prefix of at least 4 characters.

        Empty text: the newest run of the fleet. Raises AmbiguousRun if several runs match.
        """
        if not text:
            newest = await self.list_runs(fleet, 1)
            return newest[0] if newest else None
        found = _RUNS.c.id == text
        if len(text) >= _MIN_PREFIX:
            found |= _RUNS.c.id.startswith(text, autoescape=True) | _RUNS.c.id.endswith(f"-{text}", autoescape=True)
        query = select(_RUNS).where(_RUNS.c.fleet == fleet, found).order_by(_RUNS.c.created.desc(), _RUNS.c.id.desc())
        rows = await self._rows(query.limit(10))
        exact = [row for row in rows if row.id == text]
        if len(rows) > 1 and not exact:
            raise AmbiguousRun(text, [row.id for row in rows])
        return self._run(*(exact or rows)) if rows else None

    async def find_judged(self, fleet: str) -> Run | None:
        """The newest run of a fleet that judges health."""
        judged = select(_RUNS).where(_RUNS.c.fleet == fleet, _RUNS.c.health == 1)
        rows = await self._rows(judged.order_by(_RUNS.c.created.desc(), _RUNS.c.id.desc()).limit(1))
        return self._run(rows[0]) if rows else None

    async def list_runs(self, fleet: str, limit: int = 20) -> tuple[Run, ...]:
        """The last runs of a fleet, newest first."""
        query = select(_RUNS).where(_RUNS.c.fleet == fleet).order_by(_RUNS.c.created.desc(), _RUNS.c.id.desc())
        return tuple(self._run(row) for row in await self._rows(query.limit(limit)))

    async def list_open_applies(self, fleet: str) -> tuple[Run, ...]:
        """The applies of a fleet that have not ended, newest first."""
        is_open = (_RUNS.c.verb == RunVerb.APPLY.value) & (_RUNS.c.state == RunState.OPEN.value)
        query = select(_RUNS).where(_RUNS.c.fleet == fleet, is_open).order_by(_RUNS.c.created.desc(), _RUNS.c.id.desc())
        return tuple(self._run(row) for row in await self._rows(query))

    async def update_run(
        self,
        run_id: str,
        *,
        state: RunState | None = None,
        approved_shapes: Iterable[str] = (),
        approved_waves: Iterable[str] = (),
        reason: str | None = None,
    ) -> Run:
        """Changes a run, and returns it.

        state            OPEN also clears `ended`; other states set it, to the time of the store
        approved_shapes  added to those that are approved
        approved_waves   added to those that are approved
        reason           None: unchanged

        Raises UnknownRun.
        """

        def write(connection: Connection) -> Run:
            # The write comes first: from here on no other transaction can change the row.
            connection.execute(update(_RUNS).where(_RUNS.c.id == run_id).values(id=_RUNS.c.id))
            row = connection.execute(select(_RUNS, self._moment.label("moment")).where(_RUNS.c.id == run_id)).first()
            if row is None:
                raise UnknownRun(run_id, self._place)
            run = self._run(row)
            new = Run(
                run.id,
                run.fleet,
                run.verb,
                run.source,
                run.file,
                run.commit,
                run.created,
                state=state or run.state,
                ended=run.ended if state is None else None if state is RunState.OPEN else row.moment,
                reviewed=run.reviewed,
                approved_shapes=_union(run.approved_shapes, approved_shapes),
                approved_waves=_union(run.approved_waves, approved_waves),
                actor=run.actor,
                reason=run.reason if reason is None else reason,
                waves=run.waves,
                health=run.health,
            )
            connection.execute(update(_RUNS).where(_RUNS.c.id == run_id).values(**write_run(new)))
            return new

        return await self._write(write)

    # --- tasks --------------------------------------------------------------------------------------------------------

    async def tasks(self, run_id: str) -> tuple[TaskRecord, ...]:
        """The tasks of a run, ordered by wave, member and project."""
        rows = await self._rows(select(_TASKS).where(_TASKS.c.run == run_id))
        records = [self._task(row) for row in rows]
        # Sorted here: databases order texts differently.
        return tuple(sorted(records, key=lambda record: (record.wave, record.member, record.project)))

    async def list_running(self, run_id: str) -> tuple[TaskRecord, ...]:
        """The running tasks of a run, the first started first."""
        is_running = (_TASKS.c.run == run_id) & (_TASKS.c.state == TaskState.RUNNING.value)
        rows = await self._rows(select(_TASKS).where(is_running).order_by(_TASKS.c.started))
        return tuple(map(self._task, rows))

    async def task(self, run_id: str, member: str, project: str) -> TaskRecord | None:
        """One task; None if there is none."""
        rows = await self._rows(select(_TASKS).where(_is_task(run_id, member, project)))
        return self._task(rows[0]) if rows else None

    async def claim(self, run_id: str, member: str, project: str, worker: str) -> TaskRecord:
        """Claims a task for a worker that holds its lease.

        Returns a task that ended unchanged, and any other as RUNNING with one more attempt. Raises UnknownTask.
        """
        is_task = _is_task(run_id, member, project)

        def write(connection: Connection) -> TaskRecord:
            connection.execute(update(_TASKS).where(is_task).values(tries=_TASKS.c.tries))  # locks the row
            row = connection.execute(select(_TASKS, self._moment.label("moment")).where(is_task)).first()
            if row is None:
                raise UnknownTask(f"{run_id}/{member}/{project}", self._place)
            task = self._task(row)
            if task.state.is_final:
                return task
            alive, sent = sum_attempts(row)
            claimed = {
                "state": TaskState.RUNNING.value,
                "tries": row.tries + 1,
                "worker": worker,
                "started": row.moment,
                "alive": row.moment,
                "sent": 0,
                "earlier_alive": alive,
                "earlier_sent": sent,
            }
            connection.execute(update(_TASKS).where(is_task).values(**claimed))
            return replace(task, state=TaskState.RUNNING, attempts=task.attempts + 1, worker=worker, started=row.moment)

        return await self._write(write)

    async def store_heartbeat(self, record: TaskRecord) -> bool:
        """Stores the heartbeat of a running task, at least every HEARTBEAT_SECONDS, with its requests so far.

        record  as `claim` returned it, with `requests` increased by those of this attempt

        Returns False if another worker claimed the task since: this worker must then stop.
        """
        return await self._update_running(record, {})

    async def begin_apply(self, record: TaskRecord) -> bool:
        """Stores the changes that a running task is about to apply, before its first call. After a crash, the next
        worker reads from them what may have been applied in part. Returns False as `store_heartbeat` does.
        """
        changes = encoding.encode_json(dict(record.changes))
        return await self._update_running(record, {"changes": changes, "seal": seal_task(record)})

    async def finish(self, record: TaskRecord) -> bool:
        """Stores the result of a task. `ended` is the time of the store.

        record  as `claim` returned it, with a final state and results; `requests` increased by those of this attempt

        Returns False, and stores nothing, if another worker claimed the task since.
        """
        if not record.state.is_final:
            raise ValueError(f"{record.state} is not the state of a task that ended")
        results = {
            "state": record.state.value,
            "exit_code": record.exit_code,
            "counts": encoding.encode_json(dict(record.counts)),
            "changes": encoding.encode_json(dict(record.changes)),
            "shape": record.shape,
            "reason": record.reason,
            "seconds": record.seconds,
            "ended": self._moment,
            "health": write_health(record),
            "seal": seal_task(record),
        }
        return await self._update_running(record, results)

    async def _update_running(self, record: TaskRecord, values: Mapping[str, Any]) -> bool:
        is_claimed = (
            _is_task(record.run, record.member, record.project)
            & (_TASKS.c.state == TaskState.RUNNING.value)
            & (_TASKS.c.tries == record.attempts)
        )
        earlier = _TASKS.c.requests - _TASKS.c.sent
        counted = {"requests": record.requests, "sent": record.requests - earlier, "alive": self._moment}
        statement = update(_TASKS).where(is_claimed).values(**counted, **values)
        return await self._write(lambda connection: connection.execute(statement).rowcount == 1)

    async def skip(self, run_id: str, keys: Iterable[tuple[str, str]], reason: str) -> int:
        """Skips waiting tasks, by member and project. Returns their number."""
        rows = [
            {"of_run": run_id, "of_member": member, "of_project": project, "why": reason} for member, project in keys
        ]
        return await self._write(lambda connection: connection.execute(_SKIP, rows).rowcount) if rows else 0

    async def reset(self, run_id: str, states: Collection[TaskState], *, keep: Collection[tuple[str, str]] = ()) -> int:
        """Resets tasks in these final states to WAITING, without their results. Returns their number.

        keep  tasks that are not reset, by member and project

        The number of attempts is not reset, so that a worker of an earlier attempt cannot finish a later one.
        """
        if not all(state.is_final for state in states):
            raise ValueError("only tasks that ended can be reset")
        chosen = (_TASKS.c.run == run_id) & _TASKS.c.state.in_([state.value for state in states])
        empty = {"counts": "{}", "changes": "{}", "shape": "", "reason": "", "seconds": 0.0, "worker": ""}
        empty |= {"exit_code": None, "started": None, "ended": None, "health": None, "state": TaskState.WAITING.value}
        clear = update(_TASKS).where(_IS_TASK).values(**empty, seal=bindparam("digest"))

        def write(connection: Connection) -> int:
            connection.execute(update(_TASKS).where(chosen).values(tries=_TASKS.c.tries))  # locks the rows
            found = connection.execute(select(_TASKS.c.member, _TASKS.c.project).where(chosen)).all()
            rows = [
                {
                    "of_run": run_id,
                    "of_member": row.member,
                    "of_project": row.project,
                    "digest": seal_task(TaskRecord(run_id, row.member, row.project)),
                }
                for row in found
                if (row.member, row.project) not in keep
            ]
            if rows:
                connection.execute(clear, rows)
            return len(rows)

        return await self._write(write)

    async def find_spent_requests(self, record: TaskRecord, window: float = WINDOW) -> tuple[tuple[float, int], ...]:
        """Requests of the last `window` seconds for the account of a task's member, by other tasks and earlier
        attempts: seconds ago, and their number, as `Account.spent` expects.

        The requests of an ended task count at its end, those of a running task at its last heartbeat. A killed worker
        may have sent any number of requests after its last heartbeat: they count as the whole budget, sent at the
        latest moment at which it may have died, HEARTBEAT_SECONDS after that heartbeat.

        record  as `claim` returned it
        """
        query = (
            select(_TASKS, self._moment.label("moment"))
            .join(_RUNS, _RUNS.c.id == _TASKS.c.run)
            .where(
                _TASKS.c.member == record.member,
                _RUNS.c.fleet == select(_RUNS.c.fleet).where(_RUNS.c.id == record.run).scalar_subquery(),
                _TASKS.c.alive > self._moment - window - HEARTBEAT_SECONDS,  # later than those of earlier attempts
            )
        )
        spent: list[tuple[float, int]] = []
        for row in await self._rows(query):
            spent.append((row.moment - (row.earlier_alive or 0.0), row.earlier_sent))
            if (row.run, row.project, row.tries) == (record.run, record.project, record.attempts):
                continue
            if row.moment - row.alive <= 2 * HEARTBEAT_SECONDS:  # a running or ended task
                spent.append((row.moment - row.alive, row.sent))
            else:
                spent.append((row.moment - last_moment(row), count_requests(row)))
        return tuple(sorted((max(0.0, ago), number) for ago, number in spent if number and ago < window))

    # --- shapes -------------------------------------------------------------------------------------------------------

    async def save_shape(self, fleet: str, shape: Shape) -> None:
        """Stores a shape, unless the fleet has one with this digest."""
        content = (fleet, shape.digest, shape.member, shape.project, shape.plan)
        names = ("fleet", "digest", "member", "project", "plan")
        row = {**dict(zip(names, content, strict=True)), "seal": encoding.seal(*content)}
        statement = self._insert(_SHAPES).values(row).on_conflict_do_nothing()
        await self._write(lambda connection: connection.execute(statement))

    async def shapes(self, fleet: str, digests: Iterable[str]) -> Mapping[str, Shape]:
        """The shapes of a fleet with these digests, by digest."""
        wanted = sorted(set(digests))
        found: dict[str, Shape] = {}
        for start in range(0, len(wanted), _CHUNK):
            chosen = _SHAPES.c.digest.in_(wanted[start : start + _CHUNK])
            for row in await self._rows(select(_SHAPES).where(_SHAPES.c.fleet == fleet, chosen)):
                check_seal(row, self._place, row.fleet, row.digest, row.member, row.project, row.plan)
                found[row.digest] = Shape(row.digest, row.member, row.project, row.plan)
        return found

    # --- pauses -------------------------------------------------------------------------------------------------------

    async def pause(self, pause: Pause) -> None:
        """Pauses a fleet, instead of an earlier pause."""
        row = {name: getattr(pause, name) for name in ("fleet", "since", "until", "reason", "actor")}
        statement = self._insert(_PAUSES).values(row).on_conflict_do_update(index_elements=["fleet"], set_=row)
        await self._write(lambda connection: connection.execute(statement))

    async def end_pause(self, fleet: str) -> bool:
        """Ends the pause of a fleet. Returns False if there was none."""
        statement = delete(_PAUSES).where(_PAUSES.c.fleet == fleet)
        return await self._write(lambda connection: connection.execute(statement).rowcount == 1)

    async def pause_of(self, fleet: str) -> Pause | None:
        """The pause of a fleet; None if there is none, or it is over."""
        current = or_(_PAUSES.c.until.is_(None), _PAUSES.c.until > self._moment)
        for row in await self._rows(select(_PAUSES).where(_PAUSES.c.fleet == fleet, current)):
            return Pause(row.fleet, row.since, row.until, row.reason, row.actor)
        return None

    # --- leases -------------------------------------------------------------------------------------------------------

    def lock(
        self, name: str, on_loss: Callable[[StoreError], None], *, lasts: float = lock.LOCK_SECONDS, doing: str = "run"
    ) -> AbstractAsyncContextManager[Holder]:
        """The lease with this name, as the lock of a stack; see `lock.hold_lock`."""
        short = name.removeprefix("fleet ")
        title = short if short.startswith("run ") else f"task {short}"
        return lock.hold_lock(
            self._engine, self._place, name, title=title, doing=doing, on_loss=on_loss, lasts=lasts, now=self._now
        )

    # --- rows ---------------------------------------------------------------------------------------------------------

    @property
    def _moment(self) -> Any:
        return now_expression(self._engine, self._now)

    def _run(self, row: Row[Any]) -> Run:
        return read_run(row, self._place)

    def _task(self, row: Row[Any]) -> TaskRecord:
        return read_task(row, self._place)

    async def _rows(self, query: Select[Any]) -> Sequence[Row[Any]]:
        return await self._read(lambda connection: connection.execute(query).all())

    async def _read(self, read: Callable[[Connection], T]) -> T:
        def run() -> T:
            with database.explain_errors(self._place), self._engine.connect() as connection:
                return read(connection)

        return await asyncio.to_thread(run)

    async def _write(self, write: Callable[[Connection], T]) -> T:
        """Runs the function in a transaction of its own. Raises AlreadyExists if a new row has the key of another."""

        def run() -> T:
            with database.explain_errors(self._place), self._writing:
                try:
                    with self._engine.begin() as connection:
                        return write(connection)
                except IntegrityError as failure:
                    raise AlreadyExists("a row with this key exists already") from failure

        return await asyncio.to_thread(run)


def _is_task(run_id: str, member: str, project: str) -> ColumnElement[bool]:
    return and_(_TASKS.c.run == run_id, _TASKS.c.member == member, _TASKS.c.project == project)


def _union(known: tuple[str, ...], added: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*known, *added)))
