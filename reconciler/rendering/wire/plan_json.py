"""A plan as JSON and back: versioned, exact, the same bytes for the same plan, and never with a secret inside.

The file carries a digest over its own content, so that an edited or torn one is refused; that is no signature, since
whoever may write the file may also write the digest. With a key there is a signature beside it.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections import Counter
from typing import Any

from reconciler.model.change import Action
from reconciler.model.plan import VERSION, Approval, Call, Plan
from reconciler.model.problem import Problem, Rejected
from reconciler.model.value import Json, Secret
from reconciler.rendering.wire import codec

FORMAT = "reconciler plan"
_DEEPEST = 200  # levels; manifests have 64 at most, answers of the platform 100, and a plan stands around them
_DERIVED: codec.Derived = {Call: ("method",), Approval: ("flag",)}


def write(plan: Plan, key: bytes | None = None) -> str:
    """The text of a plan file, signed if there is a key."""
    content = {"format": FORMAT, "version": plan.version, "summary": _summary(plan)}
    content |= codec.encode(Plan, plan, plan.stack, _DERIVED)
    signature = _signature(content, key) if key is not None else None
    return _spelt(content | {"integrity": _integrity(content), "signature": signature})


def normalize(written: str) -> str:
    """The text of a plan file as `write` spells it, whatever else whoever made it has put there."""
    return _spelt(json.loads(written))


def read(text: str, secrets: codec.Secrets, key: bytes | None = None) -> Plan:
    """The plan that was written. Raises Rejected, or whatever `secrets` raises.

    With a key it must have been signed with that; without one a signature is not looked at.
    """
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        raise refused("it is not JSON", "give the file that `plan --out` wrote") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise refused("it is not a plan", "give the file that `plan --out` wrote")
    if not _is_shallow(content):
        raise refused("it is nested too deeply")
    if content.get("version") != VERSION:
        raise refused(f"it is a plan of version {content.get('version')}, not {VERSION}")
    integrity, signature = content.pop("integrity", None), content.pop("signature", None)
    if integrity != _integrity(content):
        raise refused("it was changed after it was written")
    if key is not None:
        _check_signature(signature, _signature(content, key))
    del content["format"]
    content.pop("summary", None)
    try:
        plan: Plan = codec.decode(Plan, content, secrets, _DERIVED)
    except codec.Malformed as error:
        raise refused(str(error)) from None
    return plan


def _is_shallow(content: Json) -> bool:
    """Whether it can be walked by recursion. This walk, level by level, can be taken through whatever there is."""
    level: list[Any] = [content]
    for _ in range(_DEEPEST):
        level = [
            inside
            for each in level
            for inside in (each.values() if each.__class__ is dict else each)
            if inside.__class__ in (dict, list)
        ]
        if not level:
            return True
    return False


def is_signed(text: str) -> bool:
    """Whether what `read` accepts carries a signature."""
    return json.loads(text).get("signature") is not None


def digest(written: str) -> str:
    """What tells the plan that `write` wrote from any other: the digest over its content."""
    return str(json.loads(written)["integrity"])


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
    tail = {
        "integrity": {"description": "A digest over everything before it.", "type": "string"},
        "signature": {"description": "The same with a key, or null.", "type": ["string", "null"]},
    }
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
    return f"blake2b:{hashlib.blake2b(_octets(content), digest_size=16).hexdigest()}"


def _signature(content: dict[str, Json], key: bytes) -> str:
    return f"hmac-sha256:{hmac.new(key, _octets(content), hashlib.sha256).hexdigest()}"


def _octets(content: dict[str, Json]) -> bytes:
    return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()


def _check_signature(found: Json, expected: str) -> None:
    if found is None:
        raise refused("it is not signed", "plan again with the key set, or apply without it")
    # In constant time, and as bytes: the file may hold any characters.
    if not isinstance(found, str) or not hmac.compare_digest(found.encode(errors="replace"), expected.encode()):
        raise refused("its signature is not of this key", "plan again with the same key")


def refused(what: str, remedy: str = "plan again") -> Rejected:
    return Rejected([Problem(f"this plan file cannot be used: {what}", remedy, code="unusable-plan-file")])
