"""Warns of written ids that no object has, and of hosts that no reserved domain or address covers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from reconciler.model.change import Action
from reconciler.model.fields.annotations import Exclusive
from reconciler.model.fields.field import Field
from reconciler.model.manifest import Declaration, Ensure
from reconciler.model.problem import Problem, Severity
from reconciler.model.value import Value, is_known
from reconciler.planning.deciding.decision import Decision
from reconciler.planning.deciding.options import PlanOptions
from reconciler.planning.matching.index import LiveIndex
from reconciler.planning.ordering.dependencies import HostIndex


def report_missing_targets(index: LiveIndex, decided: Iterable[Decision], options: PlanOptions) -> Iterator[Problem]:
    """The warnings about fields that will be sent. Nothing is known to be missing from an incomplete list."""
    declared = [
        (_select_sent(decision), decision.declaration)
        for decision in decided
        if decision.declaration is not None
        and decision.action not in (None, Action.DELETE, Action.FORGET)
        and options.selects(decision.address)
    ]
    yield from _report_ids(index, declared)
    yield from _report_hosts(index, declared)


def _select_sent(decision: Decision) -> tuple[Field, ...]:
    """The fields that differ, or all of a new object: the platform has accepted the others."""
    if decision.is_new:
        return decision.kind.fields
    differing = {difference.field.name for difference in decision.differences}
    return tuple(field for field in decision.kind.fields if field.name in differing)


def _report_ids(index: LiveIndex, declared: Sequence[tuple[Sequence[Field], Declaration]]) -> Iterator[Problem]:
    existing: dict[str, set[str]] = {}
    using: dict[tuple[str, str], list[Declaration]] = {}
    for fields, declaration in declared:
        for allowed, id in _find_ids(fields, declaration.spec):
            named = next((name for name in allowed if _has_prefix(index, name, id)), None)
            listing = index.snapshot.listings.get(named) if named is not None else None
            if named is None or listing is None or not listing.complete:
                continue
            if named not in existing:
                existing[named] = {live.id for live in listing.objects}
            if id not in existing[named]:
                using.setdefault((named, id), []).append(declaration)
    for (name, id), users in using.items():
        remedy = f"correct the id, or declare the object and write {{ref: {name}/NAME}}"
        yield _warn(users, f"no {name} has the id {id}", remedy, "id-not-found")


def _has_prefix(index: LiveIndex, name: str, id: str) -> bool:
    kind = index.kinds.get(name)
    return kind is not None and bool(kind.id_prefix) and id.startswith(kind.id_prefix)


def _find_ids(fields: Iterable[Field], spec: Value) -> Iterator[tuple[tuple[str, ...], str]]:
    """The kinds that a field takes, and each id that is written in it."""
    if not isinstance(spec, dict):
        return
    for field in fields:
        value = spec.get(field.name)
        if value is None:
            continue
        refs = field.refs or (field.item.refs if field.item is not None else ())
        if refs:
            yield from ((refs, id) for id in (value if isinstance(value, list) else [value]) if isinstance(id, str))
        elif field.fields:
            yield from _find_ids(field.fields, value)
        elif field.item is not None and field.item.fields and isinstance(value, list):
            for part in value:
                yield from _find_ids(field.item.fields, part)


def _report_hosts(index: LiveIndex, declared: Sequence[tuple[Sequence[Field], Declaration]]) -> Iterator[Problem]:
    serving = [
        (declaration, hosts)
        for fields, declaration in declared
        for field in fields
        if Exclusive in field
        and field.mentions is not None
        and isinstance(hosts := declaration.spec.get(field.name), list)
    ]
    holders = _index_holders(index) if serving else None
    if holders is None:
        return
    using: dict[str, list[Declaration]] = {}
    for declaration, hosts in serving:
        for host in hosts:
            if isinstance(host, str) and not holders.holders(host.replace(".:", ":")):
                using.setdefault(host, []).append(declaration)
    for host, users in using.items():
        remedy = "declare a ReservedDomain or ReservedAddress for it, or correct the host"
        yield _warn(users, f"no reserved domain or address covers {host}", remedy, "host-not-reserved")


def _index_holders(index: LiveIndex) -> HostIndex[str] | None:
    """The hosts of all reserved domains and addresses; None if some are not known."""
    found: HostIndex[str] = HostIndex()
    for kind in index.kinds.values():
        if kind.host is None:
            continue
        listing = index.snapshot.listings.get(kind.name)
        if listing is None or not listing.complete:
            return None
        for live in listing.objects:
            found.add(live.body.get(kind.host), kind.name)
        for address, declaration in index.manifest.declarations.items():
            if address.kind == kind.name and declaration.ensure is Ensure.PRESENT:
                host = declaration.spec.get(kind.host)
                if host is not None and not is_known(host):
                    return None
                found.add(host, kind.name)
    return found


def _warn(users: Sequence[Declaration], text: str, remedy: str, code: str) -> Problem:
    first = users[0]
    more = f" ({len(users):,} resources)" if len(users) > 1 else ""
    return Problem(text + more, remedy, str(first.address), first.position, Severity.WARNING, code=code)
