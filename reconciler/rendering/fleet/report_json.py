"""A run over a fleet as versioned JSON, with the exemplars as plan files in it, and its JSON Schema."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import fields

from reconciler.model.fleet import Pause, Run
from reconciler.model.json_text import write_json
from reconciler.model.value import Json
from reconciler.rendering.fleet.health import FleetHealth
from reconciler.rendering.fleet.openings import OpeningRow
from reconciler.rendering.fleet.reasons import ReasonRow
from reconciler.rendering.fleet.rollup import RollUp, ShapeRow, TaskRow
from reconciler.rendering.fleet.waits import Wait, WaveRow
from reconciler.rendering.wire import codec

FORMAT = "reconciler fleet run"
VERSION = 1


class Report(Struct, frozen=True):
    """A run over a fleet."""

    fleet: str
    run: Run
    at: float
    members: int
    states: Mapping[str, int]
    actions: Mapping[str, int]
    changed: int
    drifted: int
    requests: int
    seconds: float
    shapes: tuple[ShapeRow, ...]
    access: tuple[OpeningRow, ...]
    health: FleetHealth | None
    reasons: tuple[ReasonRow, ...]
    waves: tuple[WaveRow, ...]
    wait: Wait | None
    pause: Pause | None
    tasks: tuple[TaskRow, ...]


def render_json(rollup: RollUp) -> str:
    """The whole file."""
    report = Report(**{field.name: getattr(rollup, field.name) for field in fields(Report)})
    content: dict[str, Any] = {"format": FORMAT, "version": VERSION, "exit_code": rollup.exit_code()}
    content |= codec.encode(Report, report, "", {})
    content["plans"] = {digest: json.loads(rollup.exemplars[digest].plan) for digest in sorted(rollup.plans)}
    # ASCII, without `##[…]`, which the runner of a pipeline would execute if the file is printed.
    return write_json(content).replace("##", "#\\u0023") + "\n"


def report_schema() -> dict[str, Json]:
    """The JSON Schema of the files that `render_json` returns."""
    body = codec.schema(Report, {})
    head = {
        "format": {"const": FORMAT},
        "version": {"const": VERSION},
        "exit_code": {"description": "Of the command, without --detailed-exitcode.", "type": "integer"},
    }
    plans = {
        "description": "By shape: the exemplar, a plan file without secrets (plan.json).",
        "type": "object",
        "additionalProperties": {"type": "object"},
    }
    properties = head | body["properties"] | {"plans": plans}
    definitions = {name: form for name, form in body["$defs"].items() if name != "value"}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Run over a fleet",
        **body,
        "properties": properties,
        "required": list(properties),
        "$defs": definitions,
    }
