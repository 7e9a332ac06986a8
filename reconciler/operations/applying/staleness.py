"""Compares the objects of a plan with a new snapshot: what changed on the platform since the plan was created.

Only objects that the plan changes or refers to are compared; manifests are not used.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache

from reconciler import kinds
from reconciler.engine.observe import ById, collection_path
from reconciler.model.address import Address
from reconciler.model.canonical import CanonicalFields, canonical_spec
from reconciler.model.change import Change
from reconciler.model.kind import Kind
from reconciler.model.manifest import Manifest
from reconciler.model.plan import Call, Observed, Plan, Verb, create_id
from reconciler.model.snapshot import Live, Snapshot
from reconciler.model.value import Value, walk_texts
from reconciler.planning.comparing.canonical_fields import natural_key
from reconciler.planning.comparing.plan_fields import show_fields
from reconciler.planning.matching.index import LiveIndex, describe_owner
from reconciler.rendering.plan.outline import format_value

_ID = re.compile(r"([a-z0-9]+_)[A-Za-z0-9]{27}")  # prefix and KSUID


def kinds_of(plan: Plan) -> frozenset[str]:
    """The kinds to list for the comparison: those of changes, and those of objects whose ids the calls contain."""
    touched = {change.address.kind for change in plan.changes}
    return frozenset(touched | {kind for call in plan.calls for kind, _ in _ids_in_call(call)})


def by_id(plan: Plan) -> ById:
    """The objects of the plan of which only modules are managed, for `observe`."""
    named: dict[str, list[tuple[str, str | None]]] = {}
    for address, seen in plan.observed.items():
        parent, slash, id = seen.id.rpartition("/")
        if slash and kinds.get(address.kind).modules_by_id:
            named.setdefault(address.kind, []).append((id, parent))
    return named


def live_fields(plan: Plan, snapshot: Snapshot) -> Mapping[Address, CanonicalFields]:
    """The live fields of the objects that the plan observed, in canonical form, by address."""
    index = _build_index(plan, snapshot)
    found = {address: index.by_locator.get((address.kind, seen.id)) for address, seen in plan.observed.items()}
    return {address: index.form(kinds.get(address.kind), live) for address, live in found.items() if live}


def find_changed_objects(plan: Plan, snapshot: Snapshot, done: Collection[str] = ()) -> dict[Address, list[str]]:
    """Lines for the user, by address, about objects of the plan that changed on the platform since it was created.

    done  ids of calls of the plan that succeeded in earlier runs: what they wrote is not compared
    """
    comparison = Comparison(plan, snapshot, done)
    lines_of: dict[Address, list[str]] = {}
    for change in plan.changes:  # an address with duplicates has several
        lines_of.setdefault(change.address, []).extend(comparison.compare(change))
    return {address: list(dict.fromkeys(lines)) for address, lines in lines_of.items() if lines}


def calls_by_address(plan: Plan) -> Mapping[Address, list[Call]]:
    """The calls of a plan, by address, in its order."""
    found: dict[Address, list[Call]] = {}
    for call in plan.calls:
        found.setdefault(call.address, []).append(call)
    return found


class Comparison:
    """Compares a snapshot with what a plan observed. Objects are looked up by id, owner and natural key."""

    def __init__(self, plan: Plan, snapshot: Snapshot, done: Collection[str] = ()) -> None:
        self._plan = plan
        self._done = frozenset(done)
        self._snapshot = snapshot
        self._index = _build_index(plan, snapshot)
        self._calls = calls_by_address(plan)
        self._changed_ids: dict[Address, set[str | None]] = {}
        for change in plan.changes:
            self._changed_ids.setdefault(change.address, set()).add(change.id)
        self._by_id: dict[tuple[str, str], Live] = {}
        self._by_owner: dict[Address, list[Live]] = {}
        for live in self._index.by_locator.values():
            self._by_id.setdefault((live.kind, live.id), live)
            if live.owner is not None and live.owner.stack == plan.stack:
                self._by_owner.setdefault(live.owner.address, []).append(live)
        self._parents: dict[str, dict[str, str | None]] = {}
        self.finished = {
            address for address, calls in self._calls.items() if all(call.id in self._done for call in calls)
        }

    def find_created(self, address: Address) -> Live | None:
        """The object that an earlier run of the plan created for an address; None if it does not exist any more."""
        seen = self._plan.observed.get(address)
        found = [live for live in self._by_owner.get(address, ()) if seen is None or live.locator != seen.id]
        binding = self._snapshot.bindings.get(address)
        if not found and binding is not None and (seen is None or binding.id != seen.id):
            bound = self._index.by_locator.get((address.kind, binding.id))
            found = [bound] if bound is not None and bound.owner is None else []
        return found[0] if len(found) == 1 else None

    def compare(self, change: Change) -> Iterator[str]:
        """Yields a line for each difference between the account and what the plan observed for a change."""
        address, kind = change.address, kinds.get(change.address.kind)
        if address in self.finished:
            return
        listing = self._snapshot.of(kind.name)
        seen = self._plan.observed.get(address)
        done = [call for call in self._calls.get(address, ()) if call.id in self._done]
        deleted = {call.target for call in done if call.verb is Verb.DELETE}
        if not listing.complete and not (seen and (kind.name, seen.id) in self._index.by_locator):
            yield f"the list of {kind.name} objects is incomplete: {listing.why}"  # the same line for each address
            return
        if seen is not None and _id(seen) not in deleted:
            yield from self._compare_observed(address, kind, seen, done)
        if change.id is not None and change.id not in deleted and (seen is None or change.id != _id(seen)):
            yield from self._compare_duplicate(change, change.id)
        if create_id(address) in self._done and self.find_created(address) is None:
            yield f"{address}: the object that this plan created does not exist any more"
        for call in self._calls.get(address, ()):
            if call.id in self._done:
                continue
            yield from self._check_references(call)
            if call.verb is Verb.CREATE:
                yield from self._find_conflicts(call, kind, seen)

    def _compare_observed(self, address: Address, kind: Kind, seen: Observed, done: Sequence[Call]) -> Iterator[str]:
        live = self._index.by_locator.get((kind.name, seen.id))
        if live is None:
            yield f"{address}: {_id(seen)} was deleted"
            return
        is_written = any(call.owner is not None and call.target == live.id for call in done)
        is_same = (
            live in self._by_owner.get(address, ())
            if is_written and kind.keeps_owner
            else describe_owner(live) == seen.owner
        )
        if kind.keeps_owner and not is_same:
            now = describe_owner(live)
            yield f"{address}: {live.id} was {_owner_text(seen.owner)}, is now {_owner_text(now)}"
        fields = show_fields(kind, self._index.form(kind, live), address)
        written = {name for call in done if call.target == live.id for name in _fields_set_by(kind, call)}
        for name in sorted((seen.fields.keys() | fields.keys()) - written):
            old, new = seen.fields.get(name), fields.get(name)
            if old != new:
                yield f"{address}.{name}: was {format_value(old)}, is now {format_value(new)}"

    def _compare_duplicate(self, change: Change, id: str) -> Iterator[str]:
        """Compares the owner of a duplicate that the plan deletes, of which it has no fields."""
        address, is_written = change.address, (change.address, change.former)
        live = self._by_id.get((address.kind, id))
        if live is None:
            yield f"{address}: {id} was deleted"
        elif live.owner is not None and not (live.owner.stack == self._plan.stack and live.owner.address in is_written):
            yield f"{address}: {id} is now {_owner_text(describe_owner(live))}"

    def _check_references(self, call: Call) -> Iterator[str]:
        """Yields a line for each object that a call refers to by id and that does not exist any more."""
        for kind, id in _ids_in_call(call):
            if id != call.target and (kind, id) not in self._by_id and self._snapshot.of(kind).complete:
                yield f"{call.address}: {id}, which it refers to, was deleted"

    def _find_conflicts(self, call: Call, kind: Kind, seen: Observed | None) -> Iterator[str]:
        duplicates = self._changed_ids.get(call.address, set()) - {_id(seen) if seen else None}
        owned = self._by_owner.get(call.address, [])
        key = self._key(call, kind)
        alike = [] if key is None else self._index.by_key.get((kind.name, key), [])
        names = " and ".join(kind.identity)
        lines = {
            live.key: f"{live.id} exists now, with the same {names}, and is {_owner_text(describe_owner(live))}"
            for live in alike
        }
        lines |= {live.key: f"{live.id} exists now" for live in owned}
        for live in sorted({live.key: live for live in (*owned, *alike)}.values(), key=lambda live: live.locator):
            if live.id not in duplicates and (seen is None or live.locator != seen.id):
                yield f"{call.address}: {lines[live.key]}"

    def _key(self, call: Call, kind: Kind) -> tuple[object, ...] | None:
        """The natural key of the object that a call creates, if the platform refuses a second one."""
        if not kind.is_unique(call.body or {}) or not isinstance(call.path, str):
            return None  # a new parent has no children yet
        spec: dict[str, Value] = dict(call.body or {})
        if kind.parent is not None:
            spec[kind.parent.field] = self._parents_of(kind).get(call.path)
        return natural_key(kind, canonical_spec(kind, spec))

    def _parents_of(self, kind: Kind) -> Mapping[str, str | None]:
        """The id of the parent of each collection of this kind, by the collection's path."""
        if kind.name not in self._parents:
            ids = {live.parent_id for live in self._snapshot.of(kind.name).objects}
            self._parents[kind.name] = {collection_path(kind, parent_id): parent_id for parent_id in ids}
        return self._parents[kind.name]


def _build_index(plan: Plan, snapshot: Snapshot) -> LiveIndex:
    return LiveIndex.of(Manifest(plan.stack, {}), snapshot, kinds.list_planned())


def _id(seen: Observed) -> str:
    return seen.id.rpartition("/")[2]


def _fields_set_by(kind: Kind, call: Call) -> Iterator[str]:
    """The fields that an update or a request to a module sets."""
    if call.verb in (Verb.PUT, Verb.REMOVE) and isinstance(call.path, str):
        segment = call.path.rpartition("/")[2]
        yield from (field.name for field in kind.fields if segment in (field.name, field.delete_segment))
    elif call.verb is Verb.UPDATE:
        yield from call.body or {}
        if call.owner is not None:
            yield "metadata"


def _owner_text(owner: str) -> str:
    return f"managed by {owner}" if owner else "not managed by any stack"


def _ids_in_call(call: Call) -> Iterator[tuple[str, str]]:
    """Yields kind and id of every object whose id the call's body or path contains."""
    prefixes = _prefixes()
    parts = (call.path,) if isinstance(call.path, str) else call.path.parts
    segments = (segment for part in parts if isinstance(part, str) for segment in part.split("/"))
    for text in (*(text for _, text in walk_texts(call.body)), *segments):
        found = _ID.fullmatch(text)
        if found and found[1] in prefixes and text != call.target:
            yield prefixes[found[1]], text


@cache
def _prefixes() -> Mapping[str, str]:
    """The kinds by the prefixes of their ids."""
    return {kind.id_prefix: kind.name for kind in kinds.every() if kind.id_prefix}
