"""Events of an apply as lines of text and as JSON lines."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, get_args

from msgspec.structs import asdict, fields

from reconciler.model.address import Address
from reconciler.model.event import Ended, Event, HealthChanged, Outcome, Retried, Started, Waited
from reconciler.model.health import Health, Wait
from reconciler.model.plan import Verb
from reconciler.model.value import Json
from reconciler.rendering.terminal_text import sanitize
from reconciler.rendering.wire import codec

VERSION = 2  # of a record; raised with every change that a reader would notice
_MEANINGS = {
    "version": "The version of this form.",
    "event": "The type of event.",
    "call": "The call's id in the plan.",
    "address": "The resource of the call.",
    "method": "The HTTP method of the call.",
    "at": "Seconds on a monotonic clock of the run; only differences are meaningful.",
    "attempt": "The number of the next attempt; the first one is 1.",
    "wait": "Seconds until that attempt.",
    "why": "The reason; may be empty if the call succeeded.",
    "outcome": "How the call ended.",
    "id": "The object's id on the platform; null if it has none or it is not known.",
    "denied": "Whether the call failed because the API key is invalid or lacks a permission.",
    "seconds": "How long all calls wait for the request budget.",
}
_HEALTH_MEANINGS = _MEANINGS | {
    "address": "The address of the resource; empty if no manifest declares the object.",
    "state": "Whether the object works.",
    "reason": "Why it is not healthy.",
    "advice": "What to do.",
    "actor": "Who acts next; empty: nobody.",
    "due": "When something comes due, such as a renewal, in seconds since 1970; null if it is not known.",
    "retries_at": "When the platform tries again, in seconds since 1970; null if it is not known.",
    "wait": "What `apply --wait` does about the object.",
}


def format_line(event: Event) -> str:
    """`create IPPolicy/office  ipp_…`, sanitized; empty for events that are not printed."""
    match event:
        case Started():
            return ""
        case Retried(call, attempt, wait, why):
            return sanitize(f"{call.id}: attempt {attempt} in {wait:.1f} s: {why}")
        case Waited(seconds):
            return f"waiting {seconds:.1f} s for the request budget"
        case Ended(call, Outcome.DONE, id=object_id):
            has_new_id = object_id and object_id not in call.id
            delivered = "".join(f"  {name} delivered to {to.target}" for name, to in call.deliver.items())
            return sanitize(f"{call.id}{f'  {object_id}' if has_new_id else ''}{delivered}")
        case Ended(call, outcome, why=why):
            return sanitize(f"{call.id}: {outcome}{f': {why}' if why else ''}")


def format_json(event: Event | HealthChanged) -> str:
    """One JSON object on one line of ASCII, as `event_schema` describes it."""
    record: dict[str, object] = {"version": VERSION, "event": _name_event(type(event))}
    if isinstance(event, HealthChanged):
        row = event.row
        record |= {"address": row.address, "id": row.id, **asdict(row.health), "wait": event.wait}
        return _format_line(record)
    if not isinstance(event, Waited):
        call = event.call
        record |= {"call": call.id, "address": str(call.address), "method": call.method}
    record |= {field.name: getattr(event, field.name) for field in fields(event) if field.name != "call"}
    return _format_line(record)


def _name_event(kind: type) -> str:
    return "health" if kind is HealthChanged else kind.__name__.lower()


def _format_line(record: Mapping[str, object]) -> str:
    return json.dumps(record).replace("##", "#\\u0023") + "\n"  # the runner of a pipeline would execute `##[…]`


def event_schema() -> dict[str, Json]:
    """The JSON Schema of a line of `format_json`."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Event",
        "description": "One line of `--events`: an event of one call of a plan, or of all calls.",
        "oneOf": [*(_event_form(event) for event in get_args(Event)), _health_form()],
    }


def _event_form(kind: type) -> dict[str, Json]:
    own = codec.schema(kind, {})["properties"]
    head = {"version": {"const": VERSION}, "event": {"const": kind.__name__.lower()}}
    if own.pop("call", None) is not None:
        methods = sorted({verb.method for verb in Verb})
        head |= {"call": {"type": "string"}, "address": codec.plain_schema(Address), "method": {"enum": methods}}
    return _object_form(kind.__name__, head | own)


def _health_form() -> dict[str, Json]:
    head = {"version": {"const": VERSION}, "event": {"const": _name_event(HealthChanged)}}
    own = {"address": {"type": "string"}, "id": {"type": "string"}, **codec.schema(Health, {})["properties"]}
    return _object_form("Health", head | own | {"wait": codec.plain_schema(Wait)}, _HEALTH_MEANINGS)


def _object_form(title: str, forms: Mapping[str, Any], meanings: Mapping[str, str] = _MEANINGS) -> dict[str, Json]:
    properties = {name: {"description": meanings[name], **form} for name, form in forms.items()}
    return {
        "title": title,
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
