"""What happens during an apply, as a line for people and as a line of JSON for programs."""

from __future__ import annotations

import json
from dataclasses import fields

from reconciler.model.event import Ended, Event, Outcome, Retried, Started, Waited
from reconciler.rendering.cells import clean


def line(event: Event) -> str:
    """`create IPPolicy/office  ipp_…`; clean, and empty for what needs no words."""
    match event:
        case Started():
            return ""
        case Retried(call, attempt, wait, why):
            return clean(f"{call.id}: attempt {attempt} in {wait:.1f} s: {why}")
        case Waited(seconds):
            return f"waiting {seconds:.1f} s for the request budget"
        case Ended(call, Outcome.DONE, id=object_id):
            known = object_id and object_id not in call.id
            sunk = "".join(f"  {name} delivered to {to.target}" for name, to in call.deliver.items())
            return clean(f"{call.id}{f'  {object_id}' if known else ''}{sunk}")
        case Ended(call, outcome, why=why):
            return clean(f"{call.id}: {outcome}{f': {why}' if why else ''}")


def record(event: Event) -> str:
    """One object on one line of ASCII; `event` names what happened, `call` is the call's id in the plan."""
    told: dict[str, object] = {"event": type(event).__name__.lower()}
    if not isinstance(event, Waited):
        call = event.call
        told |= {"call": call.id, "address": str(call.address), "method": call.method}
    told |= {each.name: getattr(event, each.name) for each in fields(event) if each.name != "call"}
    return json.dumps(told).replace("##", "#\\u0023") + "\n"  # a pipeline obeys `##[…]` anywhere in a line
