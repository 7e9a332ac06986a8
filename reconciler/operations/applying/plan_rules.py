"""Checks a plan read from a file before it is applied: a file must not request more than manifests can declare.

Each call must match its kind, belong to a listed change, act on the observed object, and have a body that a manifest
could declare. Every plan that `plan` creates passes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from typing import Any
from urllib.parse import unquote

from reconciler import kinds
from reconciler.model import owner_record as owners
from reconciler.model.address import Address
from reconciler.model.change import Action, Change
from reconciler.model.fields.annotations import PathOnly, UpdateOnly
from reconciler.model.fields.field import fields_of
from reconciler.model.fields.form import Form
from reconciler.model.kind import Home, Kind
from reconciler.model.plan import Call, Plan, Verb, create_id
from reconciler.model.problem import Finding, Problem, Severity
from reconciler.model.value import JsonTemplate, Ref, Secret, Template, value_at
from reconciler.project.documents import validation

_REMEDY = "the file was edited, or was not created by `plan`; plan again"
_SEGMENT = r"(?!\.{1,2}(?:/|\Z))[A-Za-z0-9._~%:@!$&'()+*,;=-]+"  # of a path: no `.` and `..`
_VERBS: Mapping[Action, Collection[Verb]] = {
    Action.CREATE: (Verb.CREATE, Verb.UPDATE),
    Action.REPLACE: (Verb.CREATE, Verb.UPDATE, Verb.DELETE),
    Action.UPDATE: (Verb.UPDATE, Verb.PUT, Verb.REMOVE),
    Action.ADOPT: (Verb.UPDATE, Verb.PUT, Verb.REMOVE),
    Action.MOVE: (Verb.UPDATE, Verb.PUT, Verb.REMOVE),
    Action.DELETE: (Verb.DELETE, Verb.UPDATE),
    Action.FORGET: (Verb.UPDATE,),
}


def find_problems(plan: Plan) -> Iterator[Problem]:
    """Yields every violation of the rules."""
    changes: dict[Address, list[Change]] = {}
    for change in plan.changes:
        changes.setdefault(change.address, []).append(change)
        if change.id is not None and change.address not in plan.observed:
            yield _problem(change.address, f"changes {change.id} without the state that the plan observed")
    for address, seen in plan.observed.items():
        has_record = kinds.get(address.kind).keeps_owner
        if has_record and seen.owner and not seen.owner.startswith(f"{plan.stack} "):
            yield _problem(address, f"acts on an object managed by {seen.owner}")
    for call in plan.calls:
        for text in _check_call(plan, call, changes.get(call.address, [])):
            yield _problem(call.address, f"{call.id}: {text}")
    yield from _find_unapproved(plan, changes)


def _problem(address: Address, text: str) -> Problem:
    return Problem(text, _REMEDY, str(address), code="plan-file-rule")


def _check_call(plan: Plan, call: Call, changes: list[Change]) -> Iterator[str]:
    kind = kinds.get(call.address.kind)
    if not any(call.verb in _VERBS[change.action] for change in changes):
        yield f"no listed change of {call.address} includes this call"
    if call.verb is Verb.CREATE and call.id != create_id(call.address):
        yield "is not the id of a create"
    if call.is_whole is not (call.verb is Verb.UPDATE and kind.home is Home.AGENT):
        yield f"is not the way to update {kind.name}"
    if not _is_path_of_kind(kind, call):
        yield f"{_path_text(call.path)} is not a path of {kind.name} for this call"
    seen = plan.observed.get(call.address)
    known = {seen.id.rpartition("/")[2]} if seen is not None else set()
    known |= {change.id for change in changes if change.id is not None}
    if call.target is not None and call.target not in known:
        yield f"acts on {call.target}, which is not the object of {call.address}"
    yield from _check_owner_record(kind, call, changes)
    yield from _check_body(kind, call)


def _is_path_of_kind(kind: Kind, call: Call) -> bool:
    """Whether the kind sends such a request to the path, and the path names the call's target."""
    path = _path_text(call.path)
    collection, item, module = _paths(kind)
    match call.verb:
        case Verb.CREATE:
            return call.target is None and collection.fullmatch(path) is not None
        case Verb.UPDATE | Verb.DELETE:
            found = item.fullmatch(path)
        case _:
            found = module.fullmatch(path)
    if found is None:
        return False
    if call.target is None:  # an object that the plan creates
        return isinstance(call.path, Template) and call.verb is Verb.UPDATE
    return unquote(found["id"]) == call.target


def _path_text(path: str | Template) -> str:
    """The path with a placeholder for each reference."""
    return path if isinstance(path, str) else "".join("_" if isinstance(part, Ref) else part for part in path.parts)


@cache
def _paths(kind: Kind) -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    collection = "".join(
        _SEGMENT if part.startswith("{") else re.escape(part) for part in re.split(r"(\{[^}]*\})", kind.path)
    )
    item = rf"{collection}/(?P<id>{_SEGMENT})"
    segments = {
        name for field in kind.fields for name in (field.name if field.module else None, field.delete_segment) if name
    }
    module = rf"{item}/(?:{'|'.join(map(re.escape, sorted(segments))) or '(?!)'})"
    return re.compile(collection), re.compile(item), re.compile(module)


def _check_owner_record(kind: Kind, call: Call, changes: list[Change]) -> Iterator[str]:
    """Checks that an owner record names the address of its call, and that only the engine writes owner records."""
    if call.owner is None:
        if call.verb is Verb.CREATE:
            yield "creates an object without an owner record"
    elif call.owner.address != call.address:
        yield f"writes an owner record of {call.owner.address}"
    elif _has_record(call.owner.text):
        yield "has an owner record in its metadata"
    body = call.body or {}
    if "metadata" not in body or not kind.keeps_owner or call.owner is not None:
        return  # the engine writes the owner record into metadata
    if not any(change.action is Action.FORGET for change in changes) or _has_record(body["metadata"]):
        yield "overwrites the owner record"


def _has_record(text: Any) -> bool:
    text = text.reveal() if isinstance(text, Secret) else text
    return isinstance(text, str) and owners.read(text)[1] is not None


def _check_body(kind: Kind, call: Call) -> Iterator[str]:
    """Reports content of a body that no manifest could declare. Does not repeat sensitive values."""
    if call.verb in (Verb.DELETE, Verb.REMOVE):
        if call.body is not None:
            yield "sends a body"
        return
    if call.verb is Verb.PUT:
        module = _path_text(call.path).rpartition("/")[2]
        body: dict[str, Any] = {module: dict(call.body or {})}
    else:
        body = dict(call.body or {})
        if call.verb is Verb.CREATE and any(body.pop(name, None) != value for name, value in kind.wire.fixed.items()):
            yield f"is not a create of {kind.name}"
    accepted = {field.name for field in kind.fields if PathOnly not in field}
    if unknown := sorted(body.keys() - accepted):
        yield f"{kind.name} has no field {unknown[0]}"
        return
    for finding in _findings(kind, body, is_whole=call.verb is Verb.CREATE):
        where = ".".join(map(str, finding.path))
        yield f"{where}: {finding.text}" if where else finding.text


def _findings(kind: Kind, body: dict[str, Any], *, is_whole: bool) -> Iterator[Finding]:
    """Validates a body by the spec of its kind. A partial body may lack fields, and may empty a field."""
    spec = dict(body)
    if kind.parent is not None and is_whole:
        spec[kind.parent.field] = Ref(Address(kind.parent.kind, "parent"))
    valid = kind.spec.model_try(spec)
    if not isinstance(valid, Form):
        found = validation.problems_of(valid, spec, fields_of(kind.spec))
    else:
        found = (
            [finding for finding in validation.findings_of(valid) if finding.severity is Severity.ERROR]
            if is_whole
            else []
        )
    later = {field.name for field in kind.fields if UpdateOnly in field}
    for finding in found:
        value = value_at(spec, finding.path)
        is_missing = (
            finding.text == validation.MISSING and len(finding.path) == 1 and (not is_whole or finding.path[0] in later)
        )
        # Unknown values cannot be validated. `stale` reports a secret that cannot be read, with its source.
        is_unread = isinstance(value, JsonTemplate) or (isinstance(value, Secret) and not value.reveal())
        if not (is_missing or is_unread or (not is_whole and value in (None, "", [], {}))):
            yield finding


def _find_unapproved(plan: Plan, changes: Mapping[Address, list[Change]]) -> Iterator[Problem]:
    """Reports deletions that need an approval which the file does not list."""
    needed: Counter[tuple[str, str]] = Counter()
    for call in plan.calls:
        if call.verb is not Verb.DELETE:
            continue
        kind, seen = kinds.get(call.address.kind), plan.observed.get(call.address)
        is_seen = seen is not None and seen.id.rpartition("/")[2] == call.target
        was_protected = is_seen and seen is not None and seen.owner.endswith(", protected")
        if was_protected or any(change.protected for change in changes.get(call.address, [])):
            needed["delete-protected", kind.name] += 1
        elif kind.irreplaceable:
            needed["delete", kind.name] += 1
    listed: Counter[tuple[str, str]] = Counter()
    for approval in plan.approvals:
        listed[approval.what, approval.kind] = max(listed[approval.what, approval.kind], approval.count)
    for (what, name), count in sorted(needed.items()):
        if listed[what, name] < count:
            text = f"deletes {count} without listing the required approval --allow {what}:{name}={count}"
            yield Problem(text, _REMEDY, name, code="plan-file-rule")
