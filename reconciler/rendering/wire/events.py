"""What happens during an apply, as a line for people and as a line of JSON for programs."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import get_args

from reconciler.model.address import Address
from reconciler.model.event import Ended, Event, Outcome, Retried, Started, Waited
from reconciler.model.plan import Verb
from reconciler.model.value import Json
from reconciler.rendering.terminal_text import sanitize
from reconciler.rendering.wire import codec

VERSION = 2  # of a record; raised with every change that a reader would notice
_MEANINGS = {
    "version": "Of the form of these records.",
    "event": "What happened.",
    "call": "The call's id in the plan.",
    "address": "The resource it is about.",
    "method": "The HTTP method of the call.",
    "at": "Seconds on the run's own clock, which begins anywhere: differences mean something.",
    "attempt": "Which attempt comes next; the first of all is 1.",
    "wait": "Seconds until that attempt.",
    "why": "The reason in words; may be empty where it ended well.",
    "outcome": "How the call ended.",
    "id": "The object's id on the platform, or null where it has none or it is not known.",
    "denied": "Whether it failed because the API key is not accepted, or not allowed this.",
    "seconds": "How long the request budget makes everybody wait.",
}


def line(event: Event) -> str:
    """`create IPPolicy/office  ipp_…`; clean, and empty for what needs no words."""
    match event:
        case Started():
            return ""
        case Retried(call, attempt, wait, why):
            return sanitize(f"{call.id}: attempt {attempt} in {wait:.1f} s: {why}")
        case Waited(seconds):
            return f"waiting {seconds:.1f} s for the request budget"
        case Ended(call, Outcome.DONE, id=object_id):
            known = object_id and object_id not in call.id
            sunk = "".join(f"  {name} delivered to {to.target}" for name, to in call.deliver.items())
            return sanitize(f"{call.id}{f'  {object_id}' if known else ''}{sunk}")
        case Ended(call, outcome, why=why):
            return sanitize(f"{call.id}: {outcome}{f': {why}' if why else ''}")


def record(event: Event) -> str:
    """One object on one line of ASCII; `event` names what happened, `call` is the call's id in the plan."""
    told: dict[str, object] = {"version": VERSION, "event": type(event).__name__.lower()}
    if not isinstance(event, Waited):
        call = event.call
        told |= {"call": call.id, "address": str(call.address), "method": call.method}
    told |= {field.name: getattr(event, field.name) for field in fields(event) if field.name != "call"}
    return json.dumps(told).replace("##", "#\\u0023") + "\n"  # a pipeline obeys `##[…]` anywhere in a line


def event_schema() -> dict[str, Json]:
    """The JSON Schema of what `record` writes on a line."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Event",
        "description": "One line of what `--events` writes: something that happened to a call of a plan, or to all.",
        "oneOf": [_form(arg) for arg in get_args(Event)],
    }


def _form(kind: type) -> dict[str, Json]:
    own = codec.schema(kind, {})["properties"]
    head = {"version": {"const": VERSION}, "event": {"const": kind.__name__.lower()}}
    if own.pop("call", None) is not None:
        methods = sorted({verb.method for verb in Verb})
        head |= {"call": {"type": "string"}, "address": codec.of(Address), "method": {"enum": methods}}
    properties = {name: {"description": _MEANINGS[name], **form} for name, form in (head | own).items()}
    return {
        "title": kind.__name__,
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
