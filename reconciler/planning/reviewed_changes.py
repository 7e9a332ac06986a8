"""What a review covers: the digests by which an apply recognizes the changes that were reviewed."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TypeVar

from reconciler.model.change import Action, Change, Reason
from reconciler.model.plan import Call, OwnerDraft, Plan
from reconciler.model.value import Hidden, Json, JsonTemplate, Ref, Secret, Template, Value, canonical

T = TypeVar("T", Change, Call)

_ENDING = frozenset({Action.DELETE, Action.REPLACE, Action.FORGET})
_CLEANING_UP = frozenset({Reason.DUPLICATE, Reason.SUPERSEDED, Reason.UNDELIVERED})
"""Why an apply that was cut leaves objects that the next one deletes, whatever the reviewed change was."""


def digest_changes(plan: Plan) -> dict[str, str]:
    """Two digests for each address, as `CHANGES.ORIGIN`: of what the plan does there, and of what it was planned from.

    CHANGES covers every change and call of the address, with ids, deliveries and digests of secrets, and all fields of
    an object that will be deleted. Positions in files and commits are not part of it. ORIGIN covers the account, the
    manifests with their variables, and whether an object is deleted, replaced or forgotten.
    """
    changes, calls = _by_address(plan.changes), _by_address(plan.calls)
    parts = [item.id for approval in plan.approvals if approval.parts for item in approval.items]
    observed = defaultdict[str, list[Json]](list)
    for place, seen in plan.observed.items():
        observed[str(place)].append([seen.id, seen.owner, {name: _plain(value) for name, value in seen.fields.items()}])
    digests = {}
    for address in sorted(changes.keys() | calls.keys()):
        is_ending = _is_ending(changes[address])
        content = [
            plan.account,
            sorted(map(_describe_change, changes[address]), key=canonical),
            sorted(map(_describe_call, calls[address]), key=canonical),
            sorted(parts) if is_ending else [],
            observed[address] if is_ending else [],
        ]
        digests[address] = f"{_digest(content, 16)}.{_origin(plan, is_ending=is_ending)}"
    return digests


def find_unreviewed(plan: Plan, reviewed: Mapping[str, str], *, has_begun: bool) -> list[str]:
    """The addresses at which a plan contains changes or calls that were not reviewed.

    reviewed   the result of `digest_changes` for the reviewed plan
    has_begun  an earlier run began to apply the reviewed plan, and did not end

    What is left of an apply that was cut may look different from its plan. Then the changes must be on reviewed
    addresses and come from the same manifests, and end an object only where a reviewed change does, or where the apply
    that was cut left an object that nothing needs.
    """
    changes = _by_address(plan.changes)

    def is_rest(address: str, origin: str) -> bool:
        ends = [change for change in changes[address] if change.reason not in _CLEANING_UP]
        return origin in {_origin(plan, is_ending=True), _origin(plan, is_ending=_is_ending(ends))}

    found = []
    for address, digest in digest_changes(plan).items():
        change, _, origin = reviewed.get(address, "").partition(".")
        if change != digest.partition(".")[0] and not (has_begun and is_rest(address, origin)):
            found.append(address)
    return found


def _origin(plan: Plan, *, is_ending: bool) -> str:
    return _digest([plan.account, plan.manifest_digest, is_ending], 6)


def _is_ending(changes: Iterable[Change]) -> bool:
    return any(change.action in _ENDING for change in changes)


def _by_address(items: Iterable[T]) -> defaultdict[str, list[T]]:
    found: defaultdict[str, list[T]] = defaultdict(list)
    for item in items:
        found[str(item.address)].append(item)
    return found


def _describe_change(change: Change) -> Json:
    return [
        *map(str, (change.action, change.id or "", change.former or "", change.order or "")),
        [[field.path, _plain(field.old), _plain(field.new)] for field in change.fields],
    ]


def _describe_call(call: Call) -> Json:
    owner = call.owner
    return [
        [str(call.verb), _plain(call.path), call.target, _plain(call.body), call.overwrites],
        sorted([output, item.way, item.target, _plain(item.settings)] for output, item in call.deliver.items()),
        owner and _describe_record(owner),
    ]


def _describe_record(owner: OwnerDraft) -> Json:
    fields = [_plain(owner.text), _plain(owner.applied), _plain(owner.sources)]
    return [str(owner.address), *fields, owner.protect, owner.replaces]


def _plain(value: Value) -> Json:
    match value:
        case Hidden(text, unread):
            return {"unread": unread} if unread else {"hidden": text}
        case Secret():
            return {"secret": value.source}
        case Ref():
            return {"reference": str(value)}
        case Template(parts):
            return {"template": [_plain(part) for part in parts]}
        case JsonTemplate(parts):
            return {"json": [_plain(part) for part in parts]}
        case Mapping():
            return {"map": {str(key): _plain(item) for key, item in value.items()}}
        case list() | tuple():
            return [_plain(item) for item in value]
    return value


def _digest(content: Json, size: int) -> str:
    return hashlib.blake2b(canonical(content), digest_size=size).hexdigest()
