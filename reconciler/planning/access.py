"""Who can reach what before a plan and after it: both states of the account, and the entry points that change."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from msgspec.structs import replace

from reconciler.access.account import Account, Resource
from reconciler.access.compare import Difference, compare, describe, identify
from reconciler.access.gates import keep_gates
from reconciler.access.places import Region
from reconciler.access.programs import Builder
from reconciler.access.questions import is_public
from reconciler.model.access import Name, WayIn
from reconciler.model.access_change import CONCEALED, AccessChange, Verdict
from reconciler.model.address import Address
from reconciler.model.canonical import canonical_spec
from reconciler.model.change import Action, Change, ChangedBy, Reason
from reconciler.model.fields.field import Field, Shape
from reconciler.model.kind import Home, Kind
from reconciler.model.manifest import Ensure, Manifest
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Live, LiveKey
from reconciler.model.value import Ref, Value, digest, substitute, value_at
from reconciler.planning.comparing.canonical_fields import UNREAD, LiveFields
from reconciler.planning.deciding.decision import Decision
from reconciler.planning.matching.index import LiveIndex, parent_stack


def find_access_changes(
    decisions: Collection[Decision], deleted_with: Collection[LiveKey], index: LiveIndex
) -> tuple[AccessChange, ...]:
    """The entry points of the account that the decisions change.

    decisions      all decisions of the plan
    deleted_with   the live objects that the platform deletes with their parent
    """
    changing = [decision for decision in decisions if decision.action is not None]
    if not any(_decides(decision.kind) for decision in changing):
        return ()
    builder, unread = Builder(), find_unread(index)
    before, after = (Account(resources, builder, unread) for resources in list_states(decisions, deleted_with, index))
    return compare_accounts(before, after, {str(decision.address) for decision in changing})


def list_states(
    decisions: Collection[Decision], deleted_with: Collection[LiveKey], index: LiveIndex
) -> tuple[Iterable[Resource], Iterable[Resource]]:
    """The objects of the account that decide about access, as they are, and as the decisions leave them."""
    before = _read_account(decisions, index)
    return before.values(), _list_after(decisions, deleted_with, before)


def find_drifted_access(drift: Plan, decisions: Collection[Decision], index: LiveIndex) -> tuple[AccessChange, ...]:
    """The entry points that the platform's changes open or close: before, the account without drift; after, as it is.

    drift       its additions and the changes that are not pending are drift
    decisions   all decisions, and those that would delete the additions
    """
    drifted = _list_drifted(drift, index)
    if not drifted:
        return ()
    before, after = find_drift_accounts(drift, decisions, index)
    found = compare_accounts(before, after, {str(change.address) for change in drifted.values()})
    doubts = {str(change.address): doubt for change in drifted.values() if (doubt := _find_doubt(change))}
    return tuple(sorted((_mark_doubts(entry, doubts) for entry in found), key=_weigh))


def find_drift_accounts(drift: Plan, decisions: Collection[Decision], index: LiveIndex) -> tuple[Account, Account]:
    """The account without the drift of a plan, and as it is. Parameters as of `find_drifted_access`."""
    drifted, live = _list_drifted(drift, index), _read_account(decisions, index)
    repairs = [
        (decision, change)
        for decision in decisions
        if decision.action is not None
        and (change := drifted.get((decision.address, decision.live.id if decision.live else None))) is not None
    ]
    builder, unread = Builder(), find_unread(index)
    before = Account(_list_repaired(repairs, decisions, live), builder, unread)
    return before, Account(live.values(), builder, unread)


def _list_drifted(drift: Plan, index: LiveIndex) -> dict[tuple[Address, str | None], Change]:
    """The changes and additions that are drift and decide about access, by address and id."""
    return {
        (change.address, change.id): change
        for change in (*drift.additions, *drift.changes)
        if not change.is_pending and _decides(index.kinds[change.address.kind])
    }


def declare_account(manifest: Manifest, kinds: Mapping[str, Kind]) -> Account:
    """The account of what the manifest declares. What else it has is not known."""
    resources = (
        Resource(kind, str(address), str(address), _complete(kind, _resolve(canonical_spec(kind, item.spec), {})))
        for address, item in manifest.declarations.items()
        if item.ensure is Ensure.PRESENT and _decides(kind := kinds[address.kind])
    )
    return Account(resources, is_partial=True)


def find_unread(index: LiveIndex) -> dict[str, str]:
    """The kinds that decide about access and whose list is incomplete, with the reason."""
    unread = {}
    for kind in index.kinds.values():
        listing = index.snapshot.of(kind.name)
        is_relevant = kind.access is not None and kind.home is Home.PLATFORM
        if is_relevant and not listing.complete and listing.is_offered:
            unread[kind.name] = listing.why or "its list was not read"
    return unread


def mark_risks(changes: Iterable[Change], access: Iterable[AccessChange]) -> Iterator[Change]:
    """The changes, each with the risks of the entry points that it changes."""
    by_cause: dict[str, set[Any]] = {}
    for entry in access:
        if (risk := entry.verdict.risk) is not None:
            for cause in entry.causes:
                by_cause.setdefault(cause, set()).add(risk)
    for change in changes:
        found = by_cause.get(str(change.address))
        if found is None:
            yield change
            continue
        risks = found | {*change.risks}
        yield replace(change, risks=tuple(risk for risk in type(next(iter(found))) if risk in risks))


def compare_accounts(before: Account, after: Account, changed: Collection[str]) -> tuple[AccessChange, ...]:
    """The entry points that differ. `changed`: the resources that may be causes. Both states share one builder."""
    entries = ((_show(difference, changed, after.builder), difference.region) for difference in compare(before, after))
    return tuple(_conceal_others(entries, before, after))


def _show(difference: Difference, changed: Collection[str], builder: Builder) -> AccessChange:
    after = difference.after
    return AccessChange(
        str(difference.region),
        difference.verdict,
        describe(difference.before),
        describe(difference.after),
        difference.witness,
        difference.is_certain,
        tuple(sorted(difference.uses.intersection(changed))),
        identify(difference, builder),
        difference.depends_on,
        public=after is not None and is_public(after.program) is not False,
    )


def _conceal_others(
    entries: Iterable[tuple[AccessChange, Region]], before: Account, after: Account
) -> Iterator[AccessChange]:
    """The entries; those that only objects of other stacks serve by host, and without their gates."""
    hosts: dict[tuple[str, str, bool], AccessChange] = {}
    own: list[AccessChange] = []
    for entry, region in entries:
        stacks = {resource.stack for account in (before, after) for resource in account.list_ways_in(region)}
        if not stacks or "" in stacks:
            own.append(entry)
            continue
        host = str(Region(region.door, region.host))
        key = host, str(entry.verdict), entry.is_certain
        hosts[key] = _join_hosts(hosts.get(key), _conceal(entry, host, stacks))
    return iter(sorted((*own, *hosts.values()), key=lambda entry: tuple(Verdict).index(entry.verdict)))


def _conceal(entry: AccessChange, host: str, stacks: Iterable[str]) -> AccessChange:
    gates = f"{CONCEALED}{', '.join(sorted(stacks))}"
    return replace(entry, entry_point=host, before=gates, after=gates, witness="", depends_on=(), public=False)


def _join_hosts(one: AccessChange | None, other: AccessChange) -> AccessChange:
    """Two regions of one host as one entry, whose digest identifies both."""
    if one is None:
        return other
    causes = tuple(sorted({*one.causes, *other.causes}))
    return replace(one, causes=causes, digest=digest([one.digest, other.digest], ""))


# --- the states of the account ----------------------------------------------------------------------------------------


class _Names:
    """What each live object is called in both states: the address that has it after the plan, or its owner's name."""

    def __init__(self, decisions: Iterable[Decision], index: LiveIndex) -> None:
        self._index = index
        self._by_key = {
            decision.live.key: str(decision.address)
            for decision in decisions
            if decision.live is not None and not decision.address_reused
        }

    def of(self, live: Live) -> str:
        if (name := self._by_key.get(live.key)) is not None:
            return name
        if (owner := live.owner) is not None:
            is_ours = owner.stack == self._index.stack and live.key not in self._index.duplicates
            return str(owner.address) if is_ours else f"{owner.address} (stack {owner.stack}, {live.id})"
        bound = self._index.find_bound_addresses(live)
        return str(bound[0]) if bound else f"{live.kind}/{live.locator}"


def _list_after(
    decisions: Collection[Decision], deleted_with: Collection[LiveKey], before: Mapping[LiveKey, Resource]
) -> Iterator[Resource]:
    """The account as the plan leaves it. What stays is the same object as before."""
    ids = {
        decision.address: decision.live.id
        for decision in decisions
        if decision.live is not None and not decision.is_new and not decision.address_reused
    }
    touched = {
        decision.live.key: decision
        for decision in decisions
        if decision.live is not None and (decision.action is not None or decision.differences)
    }
    for key, resource in before.items():
        decision = touched.get(key)
        if key in deleted_with or (decision is not None and _ends(decision)):
            continue
        if decision is not None and decision.differences:
            resource = replace(resource, fields=_overlay(decision, ids))
        yield resource
    for decision in decisions:
        if decision.is_new and _decides(decision.kind):
            fields = _complete(decision.kind, _resolve(decision.want, ids))
            yield Resource(decision.kind, str(decision.address), str(decision.address), fields)


def _read_account(decisions: Iterable[Decision], index: LiveIndex) -> dict[LiveKey, Resource]:
    """The live objects that decide about access."""
    names = _Names(decisions, index)
    return {live.key: _read(live, index, names) for live in _list_live(index)}


def _list_live(index: LiveIndex) -> Iterator[Live]:
    """The live objects that decide about access. What an agent serves outside any stack may end at any time."""
    for live in index.by_locator.values():
        kind = index.kinds[live.kind]
        if not _decides(kind) or kind.is_automatic(live.body):
            continue
        if kind.home is Home.PLATFORM or index.is_ours(live):
            yield live


def _decides(kind: Kind) -> bool:
    """Whether objects of a kind decide about access: names alone do not."""
    return kind.access is not None and not isinstance(kind.access, Name)


def _read(live: Live, index: LiveIndex, names: _Names) -> Resource:
    kind, stack = index.kinds[live.kind], find_other_stack(index, live)
    known = read_fields(kind, live, index.find_form(live))
    fields = keep_gates_of(kind, known) if stack else known
    key = live.id if kind.id_prefix else f"{live.kind}/{live.locator}"  # users choose names, which may look like ids
    is_managed = bool(stack) or live.owner is not None or bool(parent_stack(index, live)) or index.is_ours(live)
    return Resource(kind, key, names.of(live), fields, stack, "" if is_managed else "unmanaged")


def read_fields(kind: Kind, live: Live, form: Mapping[str, Value] = MappingProxyType({})) -> Mapping[str, Value]:
    """The fields of a live object in canonical form, of which some may be known, with the URL that it serves."""
    url = kind.access.live_url if isinstance(kind.access, WayIn) else ""
    return LiveFields(kind, live, {url: live.body.get(url)} if url else {}, form)


def find_other_stack(index: LiveIndex, live: Live) -> str:
    """The other stack that manages an object, by its owner record or that of its parent; empty if there is none."""
    stack = live.owner.stack if live.owner is not None else parent_stack(index, live)
    return "" if stack == index.stack else stack


def keep_gates_of(kind: Kind, fields: Mapping[str, Value]) -> dict[str, Value]:
    """The fields of an object with its traffic policy reduced to gates."""
    kept = dict(fields)
    if isinstance(kind.access, WayIn) and kind.access.policy in kept:
        kept[kind.access.policy] = keep_gates(kept[kind.access.policy])
    elif isinstance(module := kept.get("traffic_policy"), dict) and "value" in module:
        kept["traffic_policy"] = {**module, "value": keep_gates(module["value"])}
    return kept


def _ends(decision: Decision) -> bool:
    """Whether the live object is no way in of its own after the plan: it is deleted, or its successor counts."""
    return decision.action in (Action.DELETE, Action.REPLACE)


def _overlay(decision: Decision, ids: Mapping[Any, str], kept: Collection[str] = ()) -> dict[str, Value]:
    """The fields of an object after its update: the live values, except where a declared value differs.

    kept   paths of differing values that stay as they are
    """
    fields = dict(decision.have)
    for difference in decision.differences:
        name = difference.field.name
        have = fields.get(name)
        fields[name] = _merge(difference.field, have, decision.want.get(name))
        for path in (change.path for change in difference.changes if change.path in kept):
            fields[name] = _put(fields[name], path.split(".")[1:], value_at(have, path.split(".")[1:]))
    return _complete(decision.kind, _resolve(fields, ids))


def _put(value: Value, path: Sequence[str], part: Value) -> Value:
    """The value with a part of it at a path."""
    if not path:
        return part
    fields = value if isinstance(value, dict) else {}
    return {**fields, path[0]: _put(fields.get(path[0]), path[1:], part)}


def _merge(field: Field, have: Value, want: Value) -> Value:
    """The declared value, with the parts of the live one that are not declared."""
    if field.shape is not Shape.OBJECT or not isinstance(have, dict) or not isinstance(want, dict):
        return want
    parts = {part.name: part for part in field.fields}
    merged = {key: _merge(parts[key], have.get(key), value) if key in parts else value for key, value in want.items()}
    return {**have, **merged}


def _resolve(fields: Mapping[str, Value], ids: Mapping[Any, str]) -> dict[str, Value]:
    """The fields with references as keys: the id of an object that stays, or the address of a new one."""

    def resolve(ref: Ref) -> Value:
        return ids.get(ref.target, str(ref.target)) if ref.output == "id" else f"${{{{ {ref} }}}}"

    return {name: substitute(value, resolve) for name, value in fields.items()}


def _complete(kind: Kind, fields: Mapping[str, Value]) -> dict[str, Value]:
    """All fields of the kind; None for those that are not declared or not shown."""
    return {field.name: None if (value := fields.get(field.name)) is UNREAD else value for field in kind.fields}


# --- drift ------------------------------------------------------------------------------------------------------------

_GIT = (ChangedBy.GIT, ChangedBy.FOLLOWS)


def _list_repaired(
    repairs: Collection[tuple[Decision, Change]], decisions: Iterable[Decision], live: Mapping[LiveKey, Resource]
) -> Iterator[Resource]:
    """The account with its drift repaired, and without what Git changed meanwhile."""
    ids = {
        decision.address: decision.live.id
        for decision in decisions
        if decision.live is not None and not decision.address_reused and decision.action is not Action.DELETE
    }
    touched = {decision.live.key: (decision, change) for decision, change in repairs if decision.live is not None}
    for key, resource in live.items():
        if key not in touched:
            yield resource
            continue
        decision, change = touched[key]
        if decision.action is Action.DELETE:
            continue
        drifted = {field.path for field in change.fields if field.changed_by not in _GIT}
        paths = {field.path for difference in decision.differences for field in difference.changes}
        yield replace(resource, fields=_overlay(decision, ids, paths - drifted)) if drifted else resource
    for decision, _ in repairs:
        if decision.live is None:
            fields = _complete(decision.kind, _resolve(decision.want, ids))
            yield Resource(decision.kind, str(decision.address), str(decision.address), fields)


def _find_doubt(change: Change) -> str:
    """Why it is not certain that the platform made the change; empty if it is."""
    causes = {field.changed_by for field in change.fields} - {*_GIT}
    if change.reason in (Reason.VANISHED, Reason.ADDED) or causes == {ChangedBy.PLATFORM}:
        return ""
    if change.reason is Reason.DECLARED:
        return f"whether {change.address} was ever created"
    return f"whether the platform or Git changed {change.address}"


def _weigh(entry: AccessChange) -> tuple[object, ...]:
    """The gravest first: by verdict, certain ones, and those that are open to everyone."""
    return tuple(Verdict).index(entry.verdict), not entry.is_certain, not entry.public


def _mark_doubts(entry: AccessChange, doubts: Mapping[str, str]) -> AccessChange:
    found = tuple(doubts[cause] for cause in entry.causes if cause in doubts)
    return replace(entry, is_certain=False, depends_on=(*entry.depends_on, *found)) if found else entry
