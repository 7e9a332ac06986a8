"""Cycles of calls: which resource is deleted before it is created again, without an irreversible loss."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from reconciler.model.change import Action, Order, Reason
from reconciler.model.problem import Position
from reconciler.planning.comparing.compare import Difference
from reconciler.planning.deciding.decision import Decision
from reconciler.planning.matching.index import LiveIndex
from reconciler.planning.ordering.call_graph import CallGraph, Wait
from reconciler.planning.ordering.creates import keep_predecessors
from reconciler.planning.ordering.cycle_breaking import delete_first, replace_instead
from reconciler.planning.ordering.sequence import sequence
from reconciler.planning.ordering.sequenced import Sequenced
from tests.harness.builders import (
    KINDS,
    apply_to,
    at,
    build_account,
    declare,
    live,
    manifest,
    plan_on,
    record,
    snapshot,
)
from tests.harness.tiers import examples


def decision(address: str, action: Action, order: Order | None = None, **more: Any) -> Decision:
    declaration = declare(address)
    kind = next(kind for kind in KINDS if kind.name == declaration.address.kind)
    live_object = live(kind.name, f"id-{declaration.address.name}", owner=record(address, {}))
    want = dict.fromkeys(kind.identity, "x")
    return Decision(
        declaration.address, kind, action, live=live_object, declaration=declaration, order=order, want=want, **more
    )


def graph_of(*decisions: Decision) -> CallGraph:
    live_objects = [decision.live for decision in decisions if decision.live is not None]
    return CallGraph.of(decisions, {}, LiveIndex.of(manifest(), snapshot(*live_objects), KINDS))


def calls_of(graph: CallGraph, *decisions: Decision) -> list[str]:
    return [call.id for call in graph.calls.values() if call.address in {decision.address for decision in decisions}]


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
        (DOMAIN, [FORCED], [DOMAIN], False),  # a replacement outside the cycle does not count
        (TOKEN, [FORCED], [TOKEN], False),
        (KEY, [FORCED], [FORCED], False),
        (replacement("SSHCredential/a", keeps_predecessor=True), [], [], False),
    ],
    ids=lambda value: str(value.address) if isinstance(value, Decision) else None,
)
def test_an_irreversible_resource_is_deleted_first_only_if_its_cycle_requires_a_delete(
    one: Decision, others: Collection[Decision], in_cycle: Collection[Decision], chosen: bool
) -> None:
    graph = graph_of(one, *others)
    expected = replace(one, order=Order.DELETE_FIRST) if chosen else None
    assert delete_first(graph, calls_of(graph, *in_cycle)) == expected


@pytest.mark.parametrize("part", [0, 1], ids=["only its create", "only its delete"])
def test_a_replacement_with_one_call_in_the_cycle_does_not_break_it(part: int) -> None:
    graph = graph_of(KEY)
    assert delete_first(graph, [calls_of(graph, KEY)[part]]) is None


def test_two_domains_that_swap_names_are_unchanged() -> None:
    def domains(first: str, second: str) -> list[Any]:
        return [declare("ReservedDomain/1", {"domain": first}), declare("ReservedDomain/2", {"domain": second})]

    plan = plan_on(build_account(*domains("a.x", "b.x")), *domains("b.x", "a.x"))
    assert (plan.calls, [problem.code for problem in plan.errors]) == ((), ["circular-calls"])


@pytest.mark.parametrize(
    ("kind", "chosen"),
    [
        ("IPPolicyRule", True),
        ("Vault", True),
        ("ReservedDomain", False),  # another account could acquire the name
        ("TunnelCredential", False),  # the token cannot be recovered
        ("BotUser", False),  # only the store records its owner
        ("HTTPSEdgeRoute", False),  # its modules may be managed elsewhere
        ("IPPolicy", False),  # it has no exclusive key
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


def exchange(**more: Any) -> tuple[CallGraph, list[str]]:
    """Two rules that exchange their networks, with changes to the decision about the first, and the cycle."""
    giver, taker = (decision(f"IPPolicyRule/{name}", Action.UPDATE) for name in ("giver", "taker"))
    graph = graph_of(replace(giver, **more), taker)
    cycle = [f"update {decision_.address}" for decision_ in (giver, taker)]
    for decision_, call in zip((giver, taker), cycle, strict=True):
        graph.setters[decision_.address] = [call]
    return graph, cycle


HANDOVER = ("IPPolicyRule", b"x")


@pytest.mark.parametrize(
    ("more", "chosen"),
    [
        ({}, True),
        ({"live_protected": True}, False),
        ({"declaration": None}, False),
        ({"declaration": declare("IPPolicyRule/giver", replace=False)}, False),
        ({"declaration": declare("IPPolicyRule/giver", ignore=["description"])}, False),
        ({"action": Action.MOVE}, False),
    ],
    ids=["plain", "protected", "not declared", "not to be replaced", "with ignored fields", "moved"],
)
def test_an_update_does_not_become_a_replacement_against_its_lifecycle(more: dict[str, Any], chosen: bool) -> None:
    graph, cycle = exchange(**more)
    graph.add(Wait(cycle[1], cycle[0], HANDOVER))
    graph.add(Wait(cycle[0], cycle[1]))
    found = replace_instead(graph, cycle)
    assert (found is not None) is chosen
    assert found is None or (found.moves_record, found.address) == (True, graph.decisions[0].address)


def test_an_update_without_a_handover_does_not_become_a_replacement() -> None:
    graph, cycle = exchange()
    graph.add(Wait(cycle[1], cycle[0]))
    graph.add(Wait(cycle[0], cycle[1]))
    assert replace_instead(graph, cycle) is None


def test_an_update_of_a_referenced_object_does_not_become_a_replacement() -> None:
    graph, cycle = exchange()
    graph.add(Wait(cycle[1], cycle[0], HANDOVER))
    replaced = graph.decisions[1].address
    referring = replace(graph, dependencies={replaced: (graph.decisions[0].address,)})
    assert replace_instead(referring, cycle) is None


def test_a_cycle_is_reported_with_the_resource_to_delete_first_and_its_user() -> None:
    unrelated = decision("IPPolicyRule/unrelated", Action.DELETE, Order.DELETE_FIRST)  # in no cycle
    where = Position("policies.yaml", 3, 5)
    policy = replacement("IPPolicy/whole", Order.DELETE_FIRST)
    policy = replace(policy, declaration=replace(declare("IPPolicy/whole"), position=where))
    users = []
    for name in ("two", "one"):
        user = decision(f"TLSEdge/{name}", Action.UPDATE)
        body = {"ip_restriction": {"ip_policies": [{"id": "id-whole"}]}}
        edge = live("TLSEdge", f"id-{name}", body, owner=record(f"TLSEdge/{name}", {}))
        drops = Difference(user.kind.by_name["ip_restriction"], ())
        users.append(replace(user, live=edge, differences=(drops,), moves_record=True, want={"ip_restriction": None}))
    decisions = [unrelated, policy, *users]
    needs = {user.address: (policy.address,) for user in users}
    found = sequence(decisions, needs, graph_of(*decisions).index)
    assert isinstance(found, Sequenced)
    assert found.calls == ()
    (problem,) = found.problems
    assert (problem.subject, problem.position, problem.code) == ("IPPolicy/whole", where, "circular-calls")
    named = next(name for name in ("TLSEdge/one", "TLSEdge/two") if name in problem.text)
    assert problem.text.startswith(f"it must be deleted before it is created again, but {named} cannot be without it: ")
    assert problem.remedy.startswith(f"remove {named} from the manifests, apply, ")


# --- released items ---------------------------------------------------------------------------------------------------


def edges(*hosts: list[str]) -> list[Any]:
    return [declare(f"TLSEdge/{n}", {"hostports": [f"{host}:443" for host in items]}) for n, items in enumerate(hosts)]


DOMAINS = [declare(f"ReservedDomain/{name}", {"domain": f"{name}.x"}) for name in "abcd"]


def test_a_release_removes_only_requested_values_and_only_their_receivers_wait() -> None:
    world = build_account(*DOMAINS, *edges(["a.x", "b.x", "c.x"], ["d.x"], []))
    plan = plan_on(world, *DOMAINS, *edges(["d.x", "c.x"], ["a.x"], ["b.x"]))
    sent = {call.id: ((call.body or {}).get("hostports"), set(call.needs)) for call in plan.calls}
    release = "release hostports of TLSEdge/0"
    assert sent == {
        release: (["c.x:443"], set()),
        "update TLSEdge/1": (["a.x:443"], {release}),
        "update TLSEdge/2": (["b.x:443"], {release}),
        "update TLSEdge/0": (["d.x:443", "c.x:443"], {release, "update TLSEdge/1"}),
    }


def test_two_swaps_are_released_independently() -> None:
    world = build_account(*DOMAINS, *edges(["a.x"], ["b.x"], ["c.x"], ["d.x"]))
    plan = plan_on(world, *DOMAINS, *edges(["b.x"], ["a.x"], ["d.x"], ["c.x"]))
    needs = {call.id: set(call.needs) for call in plan.calls}
    releases = [f"release hostports of TLSEdge/{n}" for n in (0, 2)]
    assert [call for call in needs if call.startswith("release")] == releases
    assert (needs["update TLSEdge/1"], needs["update TLSEdge/3"]) == ({releases[0]}, {releases[1]})
    apply_to(world, *DOMAINS, *edges(["b.x"], ["a.x"], ["d.x"], ["c.x"]))


# --- predecessors -----------------------------------------------------------------------------------------------------

CALLS = st.sampled_from(["update TLSEdge/a", "delete TLSEdge/a old", "update IPPolicy/b", "update IPPolicy/c"])


@settings(max_examples=examples(50))
@given(st.sets(st.tuples(CALLS, CALLS)))
def test_a_predecessor_remains_until_its_successor_is_complete_unless_that_waits_for_it(
    waits: set[tuple[str, str]],
) -> None:
    new = live("TLSEdge", "new", owner=record("TLSEdge/a", {}, replaces="old"))
    old = live("TLSEdge", "old", owner=record("TLSEdge/a", {}))
    kinds = {kind.name: kind for kind in KINDS}
    deleted, updated = Action.DELETE, Action.UPDATE
    decisions = [
        Decision(at("TLSEdge/a"), kinds["TLSEdge"], updated, live=new, declaration=declare("TLSEdge/a")),
        Decision(at("TLSEdge/a"), kinds["TLSEdge"], deleted, live=old, address_reused=True),
    ]
    graph = graph_of(*decisions)
    graph.setters[at("TLSEdge/a")] = ["update TLSEdge/a"]
    for call, need in waits:
        graph.add(Wait(call, need))
    reached = {(call, need) for call, need in waits if call != need}
    for _ in range(3):
        reached |= {(one, third) for one, two in reached for other, third in reached if two == other}
    added = set(keep_predecessors(graph))
    waits_for_end = ("update TLSEdge/a", "delete TLSEdge/a old") in reached
    assert added == (set() if waits_for_end else {Wait("delete TLSEdge/a old", "update TLSEdge/a")})
