"""Which objects an approval is about, and the digest of what will happen to each."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

from reconciler.model.plan import ApprovalItem
from reconciler.model.snapshot import Live
from reconciler.model.value import Hidden, JsonTemplate, Ref, Secret, Template, Value, canonical, digest

if TYPE_CHECKING:
    from reconciler.planning.deciding.decision import Decision


def describe_item(decision: Decision) -> ApprovalItem:
    """The object of a decision with the digest of its change: action, fields and the former address."""
    live_id = decision.live.id if decision.live is not None else ""
    fields = [
        [change.path, _to_plain(change.old), _to_plain(change.new)]
        for difference in decision.differences
        for change in difference.changes
    ]
    return ApprovalItem(
        str(decision.address),
        live_id,
        _digest([str(decision.address), live_id, str(decision.action), str(decision.former or ""), fields]),
    )


def describe_part(live: Live) -> ApprovalItem:
    """A live object that is deleted with its parent."""
    subject = f"{live.kind}/{live.id}"
    return ApprovalItem(subject, live.id, _digest([subject, "deleted with its parent"]))


def describe_all(decisions: Iterable[Decision]) -> ApprovalItem:
    """All changes that a guard over the whole plan counts."""
    items = sorted((item.subject, item.id, item.digest) for item in map(describe_item, decisions))
    return ApprovalItem("*", "", _digest([list(item) for item in items]))


def _digest(value: Value) -> str:
    return hashlib.blake2b(canonical(value), digest_size=16).hexdigest()


def _to_plain(value: Value) -> Value:
    """The value as JSON. Secrets are digests already, or become one."""
    match value:
        case Ref():
            return {"ref": str(value)}
        case Template(parts) | JsonTemplate(parts):
            return [_to_plain(part) for part in parts]
        case Secret():
            return {"secret": digest(value)}
        case Hidden(text, unread):
            return {"secret": unread or f"Hidden(digest={text!r})"}
        case dict():
            return {str(key): _to_plain(item) for key, item in value.items()}
        case list() | tuple():
            return [_to_plain(item) for item in value]
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)
