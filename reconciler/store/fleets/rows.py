"""Converts runs and tasks of fleets to rows and back. An invalid row raises Damaged."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import Row

from reconciler.model.fleet import Run, RunState, RunVerb, TaskRecord, TaskState, Wave
from reconciler.model.history import CheckedHealth
from reconciler.model.value import Secret
from reconciler.rendering.wire import codec
from reconciler.store import encoding
from reconciler.store.errors import Damaged


def read_run(row: Row[Any], place: str) -> Run:
    """The run in a row. `place`: the store, for the error. Raises Damaged."""
    check_seal(row, place, row.id, row.reviewed, row.approved_shapes, row.approved_waves)
    try:
        waves = json.loads(row.approved_waves)
        return Run(
            row.id,
            row.fleet,
            RunVerb(row.verb),
            row.source,
            row.file,
            row.commit,
            row.created,
            RunState(row.state),
            row.ended,
            row.reviewed,
            tuple(json.loads(row.approved_shapes)),
            tuple(waves["approved"]),
            row.actor,
            row.reason,
            codec.decode(tuple[Wave, ...], waves["waves"], _read_secret, {}),
            bool(row.health),
        )
    except (TypeError, ValueError) as error:
        raise Damaged(place, str(error)) from error


def read_task(row: Row[Any], place: str) -> TaskRecord:
    """The task in a row, as `read_run`."""
    check_seal(row, place, row.run, row.member, row.project, row.shape, row.changes)
    try:
        return TaskRecord(
            row.run,
            row.member,
            row.project,
            row.wave,
            TaskState(row.state),
            row.tries,
            row.worker,
            row.exit_code,
            json.loads(row.counts),
            json.loads(row.changes),
            row.shape,
            row.reason,
            row.seconds,
            row.requests,
            row.started,
            row.ended,
            codec.decode(CheckedHealth, json.loads(row.health), _read_secret, {}) if row.health is not None else None,
            row.alive,
        )
    except ValueError as error:
        raise Damaged(place, str(error)) from error


def _read_secret(source: str, _digest: str) -> Secret:
    return Secret("", source)


def check_seal(row: Row[Any], place: str, *content: object) -> None:
    """Raises Damaged if the content of a row is not that of its seal."""
    if row.seal != encoding.seal(*content):
        raise Damaged(place, "a row does not match its seal")


def write_run(run: Run) -> dict[str, Any]:
    """The row of a run."""
    shapes = encoding.encode_json(run.approved_shapes)
    waves = encoding.encode_json(
        {"approved": run.approved_waves, "waves": codec.encode(tuple[Wave, ...], run.waves, "", {})}
    )
    return {
        "id": run.id,
        "fleet": run.fleet,
        "verb": run.verb.value,
        "source": run.source,
        "file": run.file,
        "commit": run.commit,
        "created": run.created,
        "state": run.state.value,
        "ended": run.ended,
        "reviewed": run.reviewed,
        "approved_shapes": shapes,
        "approved_waves": waves,
        "actor": run.actor,
        "reason": run.reason,
        "health": int(run.health),
        "seal": encoding.seal(run.id, run.reviewed, shapes, waves),
    }


def write_task(record: TaskRecord) -> dict[str, Any]:
    """The row of a task that no worker has claimed."""
    return {
        "run": record.run,
        "member": record.member,
        "project": record.project,
        "wave": record.wave,
        "state": record.state.value,
        "tries": record.attempts,
        "worker": record.worker,
        "exit_code": record.exit_code,
        "counts": encoding.encode_json(dict(record.counts)),
        "changes": encoding.encode_json(dict(record.changes)),
        "shape": record.shape,
        "reason": record.reason,
        "seconds": record.seconds,
        "requests": record.requests,
        "started": record.started,
        "ended": record.ended,
        "health": write_health(record),
        "alive": None,
        "sent": 0,
        "earlier_alive": None,
        "earlier_sent": 0,
        "seal": seal_task(record),
    }


def write_health(record: TaskRecord) -> str | None:
    """The health of a task's row: JSON; None if it was not judged."""
    if record.health is None:
        return None
    return encoding.encode_json(codec.encode(CheckedHealth, record.health, "", {}))


def seal_task(record: TaskRecord) -> str:
    """The seal of a task's row, which changes with its shape and its changes."""
    changes = encoding.encode_json(dict(record.changes))
    return encoding.seal(record.run, record.member, record.project, record.shape, changes)
