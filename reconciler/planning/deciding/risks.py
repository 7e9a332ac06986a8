"""The risks of a change, from what kinds say of their fields: which change of a value widens access, for example."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.model.change import Action, Order, Risk
from reconciler.model.fields.field import Field
from reconciler.model.value import is_known
from reconciler.planning.comparing.canonical_fields import UNREAD
from reconciler.planning.comparing.leaf_differences import leaf_value
from reconciler.planning.deciding.decision import Decision
from reconciler.planning.deciding.dns_records import leaves_record


def find_risks(decision: Decision) -> tuple[Risk, ...]:
    """What a reviewer must not overlook in the change of one resource, each risk once, the gravest first."""
    found = set(_find_declared_risks(decision))
    kind = decision.kind
    if kind.carries_traffic and (
        decision.action is Action.DELETE or decision.order is Order.DELETE_FIRST or decision.interrupts_traffic
    ):
        found.add(Risk.INTERRUPTS_TRAFFIC)
    if kind.irreplaceable and decision.ends_live:
        found.add(Risk.IRREVERSIBLE)
    if leaves_record(decision):
        found.add(Risk.LEAVES_DNS_RECORD)
    if kind.one_time and decision.is_new:
        found.add(Risk.ISSUES_CREDENTIAL)
        if decision.declaration is not None and any(
            delivery.way == "to_command" for delivery in decision.declaration.deliver.values()
        ):
            found.add(Risk.RUNS_COMMAND)
    return tuple(risk for risk in Risk if risk in found)


def _find_declared_risks(decision: Decision) -> Iterator[Risk]:
    """The risks that the kind declares: of the resource as a whole, then of each part and field that differs."""
    # The successor of a one-time secret does not help who uses the old one.
    is_deleted = decision.action is Action.DELETE or (decision.ends_live and decision.kind.one_time is not None)
    old = decision.have if decision.live is not None else None
    new = None if is_deleted else decision.want
    if decision.action in (Action.FORGET, None):
        return
    yield from (word.risk for word in decision.kind.spec.raises if word.when(old, new) is not False)
    for difference in decision.differences:
        yield from _check_field(difference.field, decision, {change.path for change in difference.changes})


def _check_field(field: Field, decision: Decision, paths: set[str], prefix: str = "") -> Iterator[Risk]:
    """The risks of one field of which `paths` differ, and of the fields inside."""
    path = f"{prefix}{field.name}"
    if not any(f"{differing}.".startswith(f"{path}.") or path.startswith(f"{differing}.") for differing in paths):
        return
    top, _, _ = path.partition(".")
    old, new = leaf_value(path, decision.have.get(top)), leaf_value(path, decision.want.get(top))
    is_comparable = old is not UNREAD and is_known(old) and is_known(new)
    yield from (word.risk for word in field.raises if not is_comparable or word.when(old, new) is not False)
    if isinstance(old, dict) and isinstance(new, dict):
        for inner in field.fields:
            yield from _check_field(inner, decision, paths, f"{path}.")
