"""Plan files: a plan as versioned JSON, and back. The same plan gives the same bytes; secrets are not in it.

A digest over the content detects edited and incomplete files. It is no signature, since everyone who can write the file
can write the digest; with a key the file also has a signature.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections import Counter
from typing import Any, NamedTuple

from reconciler.model.change import Action
from reconciler.model.json_text import write_json
from reconciler.model.plan import VERSION, Approval, Call, Plan
from reconciler.model.problem import Problem, Rejected
from reconciler.model.value import Json, Secret
from reconciler.rendering.wire import codec

FORMAT = "reconciler plan"
_DEEPEST = 200  # levels; manifests have at most 64, responses of the platform 100
_DERIVED: codec.Derived = {Call: ("method",), Approval: ("flag",)}


def write_plan(plan: Plan, key: bytes | None = None) -> str:
    """The text of a plan file, signed if a key is given."""
    content = {"format": FORMAT, "version": plan.version, "summary": _summary(plan)}
    content |= codec.encode(Plan, plan, plan.stack, _DERIVED)
    signature = _signature(content, key) if key is not None else None
    return _serialize(content | {"integrity": _integrity(content), "signature": signature})


def normalize(written: str) -> str:
    """The text of a plan file in the layout of `write_plan`, for files that another program wrote."""
    return _serialize(json.loads(written))


class WrittenPlan(NamedTuple):
    """The content of a plan file. `digest`: over the rest of the file; identifies the plan."""

    plan: Plan
    digest: str
    is_signed: bool


def read_plan(text: str, secrets: codec.Secrets, key: bytes | None = None) -> Plan:
    """The plan of a file; parameters and errors as in `read_file`."""
    return read_file(text, secrets, key).plan


def read_file(text: str, secrets: codec.Secrets, key: bytes | None = None) -> WrittenPlan:
    """The content of a file. Raises Rejected, or what `secrets` raises.

    With a key, the file must be signed with it. Without one, a signature is not checked.
    """
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        raise refuse("it is not JSON", "pass a file that `plan --out` wrote") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise refuse("it is not a plan", "pass a file that `plan --out` wrote")
    if not _is_shallow(content):
        raise refuse("it is nested too deeply")
    if content.get("version") != VERSION:
        raise refuse(f"its version is {content.get('version')}, and this release reads version {VERSION}")
    integrity, signature = content.pop("integrity", None), content.pop("signature", None)
    if integrity != _integrity(content):
        raise refuse("it was changed after it was written")
    if key is not None:
        _check_signature(signature, _signature(content, key))
    del content["format"]
    content.pop("summary", None)
    try:
        plan: Plan = codec.decode(Plan, content, secrets, _DERIVED)
    except codec.Malformed as error:
        raise refuse(str(error)) from None
    return WrittenPlan(plan, str(integrity), signature is not None)


def _is_shallow(content: Json) -> bool:
    """Whether the nesting is limited. Checks level by level, without recursion."""
    level: list[Any] = [content]
    for _ in range(_DEEPEST):
        level = [
            item
            for container in level
            for item in (container.values() if container.__class__ is dict else container)
            if item.__class__ in (dict, list)
        ]
        if not level:
            return True
    return False


def is_signed(text: str) -> bool:
    """Whether a plan file that `read_plan` accepts has a signature."""
    return json.loads(text).get("signature") is not None


def digest(written: str) -> str:
    """The digest over the content of a plan file, which identifies the plan."""
    return str(json.loads(written)["integrity"])


def secret_digest(secret: Secret, stack: str) -> str:
    """The digest of a secret in plans of a stack."""
    return codec.secret_digest(secret, stack)


def plan_schema() -> dict[str, Json]:
    """The JSON Schema of plan files."""
    body = codec.schema(Plan, _DERIVED)
    count = {"type": "integer", "minimum": 0}
    head = {
        "format": {"const": FORMAT},
        "version": {"const": VERSION},
        "summary": {
            "description": "The number of changes by action.",
            "type": "object",
            "properties": {str(action): count for action in Action},
            "required": [str(action) for action in Action],
            "additionalProperties": False,
        },
    }
    tail = {
        "integrity": {"description": "A digest over the rest of the file.", "type": "string"},
        "signature": {"description": "An HMAC over the same content, or null.", "type": ["string", "null"]},
    }
    properties = head | {key: form for key, form in body["properties"].items() if key not in head} | tail
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Plan",
        **body,
        "properties": properties,
        "required": list(properties),
    }


def _serialize(content: dict[str, Json]) -> str:
    # ASCII, without `##[…]`, which the runner of a pipeline would execute if the plan is printed.
    return write_json(content).replace("##", "#\\u0023") + "\n"


def _summary(plan: Plan) -> dict[str, int]:
    counts = Counter(change.action for change in plan.changes)
    return {str(action): counts[action] for action in Action}


def _integrity(content: dict[str, Json]) -> str:
    return f"blake2b:{hashlib.blake2b(_octets(content), digest_size=16).hexdigest()}"


def _signature(content: dict[str, Json], key: bytes) -> str:
    return f"hmac-sha256:{hmac.new(key, _octets(content), hashlib.sha256).hexdigest()}"


def _octets(content: dict[str, Json]) -> bytes:
    return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()


def _check_signature(signature: Json, expected: str) -> None:
    if signature is None:
        raise refuse("it is not signed", "plan again with RECONCILER_PLAN_KEY set, or apply without it")
    # In constant time, and as bytes, since the file may contain any characters.
    if not isinstance(signature, str) or not hmac.compare_digest(signature.encode(errors="replace"), expected.encode()):
        raise refuse("its signature was made with another key", "plan again with the same RECONCILER_PLAN_KEY")


def refuse(reason: str, remedy: str = "plan again") -> Rejected:
    """The error about a plan file that cannot be used, to be raised."""
    return Rejected([Problem(f"this plan file cannot be used: {reason}", remedy, code="unusable-plan-file")])
