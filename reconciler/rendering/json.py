"""A plan as JSON and back: versioned, exact, the same bytes for the same plan, and never with a secret inside.

The file carries a digest over its own content, so that an edited or torn one is refused; it is no signature, and
whoever may write the file may also write the digest.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter

from reconciler.model.change import Action
from reconciler.model.plan import VERSION, Call, Consent, Plan
from reconciler.model.problem import Problem, Rejected
from reconciler.model.value import Json, Secret
from reconciler.rendering import codec

FORMAT = "reconciler plan"
_DERIVED: codec.Derived = {Call: ("method",), Consent: ("flag",)}


def write(plan: Plan) -> str:
    content = {"format": FORMAT, "version": plan.version, "summary": _summary(plan)}
    content |= codec.encode(Plan, plan, plan.stack, _DERIVED)
    return _spelt(content | {"integrity": _integrity(content)})


def respelt(written: str) -> str:
    """The text of a plan file as `write` spells it, whatever else whoever made it has put there."""
    return _spelt(json.loads(written))


def read(text: str, secrets: codec.Secrets) -> Plan:
    """The plan that was written. Raises Rejected, or whatever `secrets` raises."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        raise _refused("it is not JSON", "give the file that `plan --out` wrote") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise _refused("it is not a plan", "give the file that `plan --out` wrote")
    if content.get("version") != VERSION:
        raise _refused(f"it is a plan of version {content.get('version')}, not {VERSION}", "plan again")
    if content.pop("integrity", None) != _integrity(content):
        raise _refused("it was changed after it was written", "plan again")
    del content["format"]
    content.pop("summary", None)
    try:
        plan: Plan = codec.decode(Plan, content, secrets, _DERIVED)
    except codec.Malformed as error:
        raise _refused(str(error), "plan again") from None
    return plan


def secret_digest(secret: Secret, stack: str) -> str:
    """What stands for a secret in the plans of a stack; `secrets` compares it with what `read` asks for."""
    return codec.secret_digest(secret, stack)


def plan_schema() -> dict[str, Json]:
    """The JSON Schema of what `write` writes."""
    body = codec.schema(Plan, _DERIVED)
    count = {"type": "integer", "minimum": 0}
    head = {
        "format": {"const": FORMAT},
        "version": {"const": VERSION},
        "summary": {
            "description": "How many changes of each sort there are.",
            "type": "object",
            "properties": {str(action): count for action in Action},
            "required": [str(action) for action in Action],
            "additionalProperties": False,
        },
    }
    tail = {"integrity": {"description": "A digest over everything else in the file.", "type": "string"}}
    properties = head | {key: each for key, each in body["properties"].items() if key not in head} | tail
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Plan",
        **body,
        "properties": properties,
        "required": list(properties),
    }


def _spelt(content: dict[str, Json]) -> str:
    # ASCII only, and nothing that a pipeline takes for an order: a plan may quote the platform, and may be printed.
    return json.dumps(content, indent=2).replace("##", "#\\u0023") + "\n"


def _summary(plan: Plan) -> dict[str, int]:
    counts = Counter(change.action for change in plan.changes)
    return {str(action): counts[action] for action in Action}


def _integrity(content: dict[str, Json]) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return f"blake2b:{hashlib.blake2b(text.encode(), digest_size=16).hexdigest()}"


def _refused(what: str, remedy: str) -> Rejected:
    return Rejected([Problem(f"this plan file cannot be used: {what}", remedy)])
