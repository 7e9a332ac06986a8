"""Who uses what a plan changes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reconciler import kinds
from reconciler.model.address import Address
from reconciler.model.manifest import Declaration
from reconciler.model.plan import Users
from reconciler.planning.users import NAMED, find_users
from tests.harness.builders import build_account, declare, plan_on, ref

KINDS = {kind.name: kind for kind in kinds.declarable()}
POLICY, RULE, ROUTE, EDGE, DOMAIN = (
    Address(*name.split("/"))
    for name in ("IPPolicy/office", "IPPolicyRule/vpn", "HTTPSEdgeRoute/admin", "HTTPSEdge/shop", "ReservedDomain/shop")
)
NEEDS = {POLICY: (), RULE: (POLICY,), DOMAIN: (), EDGE: (DOMAIN,), ROUTE: (EDGE, POLICY)}


def test_a_rule_is_used_by_its_policy_and_by_what_refers_to_the_policy() -> None:
    found = find_users(NEEDS, KINDS, [RULE])
    assert found[RULE].nearest == (POLICY, ROUTE, EDGE)
    assert found[RULE].number == 3


def test_a_resource_that_nothing_refers_to_has_no_users() -> None:
    assert find_users(NEEDS, KINDS, [EDGE]) == {}


def test_a_parent_is_not_used_by_its_children() -> None:
    found = find_users(NEEDS, KINDS, [POLICY])
    assert found[POLICY].nearest == (ROUTE, EDGE)


def test_only_the_nearest_users_are_named_and_all_are_counted() -> None:
    edges = [Address("TLSEdge", f"shop-{number:04}") for number in range(3000)]
    for number in (NAMED + 5, 1000, 3000):
        users = find_users({POLICY: (), **dict.fromkeys(edges[:number], (POLICY,))}, KINDS, [POLICY])[POLICY]
        assert users.nearest == tuple(edges[:NAMED])
        assert users.number == min(number, 1001)


@given(st.dictionaries(st.integers(0, 7), st.sets(st.integers(0, 7), max_size=3), min_size=1))
def test_a_user_reaches_the_resource_by_references_also_in_a_circle(graph: dict[int, set[int]]) -> None:
    def name(number: int) -> Address:
        return Address("TLSEdge", str(number))

    needs = {name(number): tuple(map(name, others)) for number, others in graph.items()}
    found = find_users(needs, KINDS, needs)
    for start in needs:
        reached, todo = set[Address](), list(needs[start])
        while todo:
            here = todo.pop()
            if here not in reached:
                reached.add(here)
                todo += needs.get(here, ())
        assert {used for used in needs if used in found and start in found[used].nearest} == reached & set(needs) - {
            start
        }


def test_a_plan_names_the_users_of_what_it_updates_and_of_nothing_that_it_creates() -> None:
    def allow(cidr: str) -> Declaration:
        return declare(str(RULE), {"ip_policy_id": ref(str(POLICY)), "cidr": cidr, "action": "allow"})

    policy = declare(str(POLICY), {"description": "Office"})
    edge = declare("TLSEdge/shop", {"ip_restriction": {"ip_policy_ids": [ref(str(POLICY))]}})
    world = build_account(policy, allow("203.0.113.0/25"), edge)
    assert plan_on(world, policy, allow("203.0.113.0/25"), edge, declare("IPPolicy/new")).users == {}
    users = plan_on(world, policy, allow("203.0.113.0/24"), edge).users
    assert users == {RULE: Users((POLICY, Address("TLSEdge", "shop")), 2)}
