"""Which resource of a cycle of calls is deleted before it is created again: none of which something would be lost."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import pytest

from reconciler.model.change import Action, Order, Reason
from reconciler.planning.deciding.decision import Decision
from reconciler.planning.matching.index import LiveIndex
from reconciler.planning.ordering.call_graph import CallGraph, Wait
from reconciler.planning.ordering.cycle_breaking import delete_first, replace_instead
from tests.planning.builders import (
    KINDS,
    declare,
    live,
    manifest,
    plan_on,
    record,
    settle,
    snapshot,
)


def decision(address: str, action: Action, order: Order | None = None, **more: Any) -> Decision:
    declaration = declare(address)
    kind = next(kind for kind in KINDS if kind.name == declaration.address.kind)
    there = live(kind.name, f"id-{declaration.address.name}", owner=record(address, {}))
    want = dict.fromkeys(kind.identity, "x")
    return Decision(
        declaration.address, kind, action, live=there, declaration=declaration, order=order, want=want, **more
    )


def graph_of(*decisions: Decision) -> CallGraph:
    lives = [decision.live for decision in decisions if decision.live is not None]
    return CallGraph.of(decisions, {}, LiveIndex.of(manifest(), snapshot(*lives), KINDS))


def calls_of(graph: CallGraph, *decisions: Decision) -> list[str]:
    return [call.id for call in graph.calls.values() if call.address in {each.address for each in decisions}]


def replacement(address: str, order: Order = Order.CREATE_FIRST, **more: Any) -> Decision:
    return decision(address, Action.REPLACE, order, **more)


KEY, DOMAIN, TOKEN = (replacement(f"{kind}/a") for kind in ("SSHCredential", "ReservedDomain", "TunnelCredential"))
FORCED = replacement("IPPolicyRule/first", Order.DELETE_FIRST)


@pytest.mark.parametrize(
    ("one", "others", "in_cycle", "chosen"),
    [
        (KEY, [], [KEY], True),
        (DOMAIN, [], [DOMAIN], False),
        (TOKEN, [], [TOKEN], False),
        (DOMAIN, [FORCED], [DOMAIN, FORCED], True),
        (TOKEN, [FORCED], [TOKEN, FORCED], True),
        (DOMAIN, [FORCED], [DOMAIN], False),  # what is deleted first elsewhere forces nothing here
        (TOKEN, [FORCED], [TOKEN], False),
        (KEY, [FORCED], [FORCED], False),
        (replacement("SSHCredential/a", keeps_predecessor=True), [], [], False),
    ],
    ids=lambda value: str(value.address) if isinstance(value, Decision) else None,
)
def test_what_cannot_be_had_back_is_deleted_first_only_if_something_in_the_cycle_must_be(
    one: Decision, others: Collection[Decision], in_cycle: Collection[Decision], chosen: bool
) -> None:
    graph = graph_of(one, *others)
    expected = replace(one, order=Order.DELETE_FIRST) if chosen else None
    assert delete_first(graph, calls_of(graph, *in_cycle)) == expected


@pytest.mark.parametrize("part", [0, 1], ids=["only its create", "only its delete"])
def test_a_replacement_of_which_one_call_is_in_the_cycle_does_not_break_it(part: int) -> None:
    graph = graph_of(KEY)
    assert delete_first(graph, [calls_of(graph, KEY)[part]]) is None


def test_two_domains_that_swap_names_are_both_kept() -> None:
    def domains(first: str, second: str) -> list[Any]:
        return [declare("ReservedDomain/1", {"domain": first}), declare("ReservedDomain/2", {"domain": second})]

    made = plan_on(settle(*domains("a.x", "b.x")), *domains("b.x", "a.x"))
    assert (made.calls, [problem.code for problem in made.errors]) == ((), ["circular-calls"])


@pytest.mark.parametrize(
    ("kind", "chosen"),
    [
        ("IPPolicyRule", True),
        ("Vault", True),
        ("ReservedDomain", False),  # another account could acquire the name
        ("TunnelCredential", False),  # the token could not be had back
        ("BotUser", False),  # only the store knows its owner
        ("HTTPSEdgeRoute", False),  # its modules may be managed elsewhere
        ("IPPolicy", False),  # it holds no exclusive key
    ],
)
@pytest.mark.parametrize("in_cycle", [True, False])
def test_an_update_becomes_a_replacement_only_if_nothing_is_lost(kind: str, chosen: bool, in_cycle: bool) -> None:
    giver, taker = (decision(f"{kind}/{name}", Action.UPDATE) for name in ("giver", "taker"))
    graph = graph_of(giver, taker)
    needed, waiting = f"update {giver.address}", f"update {taker.address}"
    graph.setters[giver.address], graph.setters[taker.address] = [needed], [waiting]
    graph.add(Wait(waiting, needed, (kind, b"x")))
    found = replace_instead(graph, [needed, waiting] if in_cycle else [waiting])
    assert (found and (found.address, found.action, found.order, found.reason)) == (
        (giver.address, Action.REPLACE, Order.DELETE_FIRST, Reason.EXCHANGED) if chosen and in_cycle else None
    )
