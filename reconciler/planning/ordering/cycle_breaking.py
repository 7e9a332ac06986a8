"""Breaks a cycle of calls: one of them first releases an exclusive key that the others wait for."""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from reconciler.model.change import Action, Order, Reason
from reconciler.model.fields.annotations import Exclusive
from reconciler.model.plan import Call, Verb
from reconciler.model.value import canonical
from reconciler.planning.comparing.canonical_fields import body_value
from reconciler.planning.deciding.decision import Decision
from reconciler.planning.deciding.exclusive_keys import ExclusiveKey
from reconciler.planning.ordering.call_graph import CallGraph, Release
from reconciler.planning.ordering.calls import object_path


def release_items(graph: CallGraph, cycle: Collection[str]) -> Release | None:
    """A call that breaks the cycle by removing contested items, such as hostports, from a list; None if none can.

    A list can be shortened for a moment; the only name of an object cannot be removed.
    """
    for position, decision in enumerate(graph.decisions):
        for giver in set(cycle) & set(graph.setters.get(decision.address, ())):
            takers = {taker: keys for (taker, other), keys in graph.handovers.items() if other == giver}
            call = _build_release(decision, {key for keys in takers.values() for key in keys})
            if call is None or call.id in graph.calls:
                continue
            in_fields = (
                taker for taker, keys in takers.items() if all(name in decision.kind.by_name for name, _ in keys)
            )
            return Release(call, (0, position, -1), giver, tuple(in_fields))
    return None


def replace_instead(graph: CallGraph, cycle: Collection[str]) -> Decision | None:
    """An update in the cycle as a replacement that deletes first, if nothing is lost with the object.

    Nothing may refer to it, and the kind must be recoverable, without one-time secret, and allowed to be replaced.
    """
    needed = {address for needs in graph.dependencies.values() for address in needs}
    for decision in graph.decisions:
        kind, declaration = decision.kind, decision.declaration
        setters = graph.setters.get(decision.address, ())
        is_plain = kind.keeps_owner and not kind.irreplaceable and kind.one_time is None and not kind.modules_by_id
        if (
            decision.action is Action.UPDATE
            and set(cycle) & set(setters)
            and any(giver in setters for _, giver in graph.handovers)
            and kind.is_unique(decision.want)
            and is_plain
            and declaration is not None
            and declaration.lifecycle.replace
            and not declaration.lifecycle.ignore
            and not decision.live_protected
            and decision.address not in needed
        ):
            return replace(
                decision, action=Action.REPLACE, order=Order.DELETE_FIRST, reason=Reason.EXCHANGED, moves_record=True
            )
    return None


def delete_first(graph: CallGraph, cycle: Collection[str]) -> Decision | None:
    """A replacement in the cycle that deletes before it creates instead of after.

    Objects that are irreversible to delete or have a one-time secret are chosen only if another replacement in the
    cycle must delete first anyway.
    """
    is_forced = any(
        decision.order is Order.DELETE_FIRST and graph.creators.get(decision.address) in cycle
        for decision in graph.decisions
    )
    for decision in graph.decisions:
        is_precious = decision.kind.irreplaceable or decision.kind.one_time is not None
        if decision.order is not Order.CREATE_FIRST or not decision.ends_live or (is_precious and not is_forced):
            continue
        if graph.deleter(decision) in cycle and not set(graph.own_calls(decision)).isdisjoint(cycle):
            return replace(decision, order=Order.DELETE_FIRST)
    return None


def _build_release(decision: Decision, contested: Collection[ExclusiveKey]) -> Call | None:
    """The call that removes contested items from a list and changes nothing else; None without such a list."""
    for field in decision.kind.fields:
        held = decision.have.get(field.name)
        if Exclusive not in field or not isinstance(held, list):
            continue
        remaining = [item for item in held if (field.name, canonical(item)) not in contested]
        if len(remaining) < len(held):
            assert decision.live is not None
            return Call(
                id=f"release {field.name} of {decision.address}",
                address=decision.address,
                verb=Verb.UPDATE,
                path=object_path(decision.kind, decision.live),
                target=decision.live.id,
                body={field.name: body_value(field, remaining)},
            )
    return None
