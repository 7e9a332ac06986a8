"""Which call waits for which. A platform in memory refuses what comes too early or too late."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.model.manifest import Declaration, Ensure
from reconciler.model.owner_record import Owner
from reconciler.model.plan import Plan, Verb
from reconciler.model.problem import Position
from reconciler.model.snapshot import Binding
from reconciler.planning.deciding.options import PlanOptions
from tests.planning.builders import (
    LENIENT,
    apply_to,
    at,
    body_of,
    call_of,
    declare,
    errors,
    id_of,
    live,
    make_plan,
    place,
    plan_on,
    record,
    ref,
    requests,
    secret,
    settle,
    snapshot,
)

KEYS = ["ssh-ed25519 AAAA", "ssh-ed25519 BBBB", "ssh-ed25519 CCCC"]


def edge(name: str, *hosts: str) -> Declaration:
    return declare(f"TLSEdge/{name}", {"hostports": [f"{host}:443" for host in hosts]})


def web(name: str, host: str) -> Declaration:
    return declare(f"HTTPSEdge/{name}", {"hostports": [f"{host}:443"]})


def domain(host: str) -> Declaration:
    return declare(f"ReservedDomain/{host.partition('.')[0]}", {"domain": host})


def rules(lifecycle: dict[str, Any] | None = None, **cidrs: str) -> list[Declaration]:
    """A policy with these rules."""
    of, more = {"ip_policy_id": ref("IPPolicy/office"), "action": "allow"}, lifecycle or {}
    made = (declare(f"IPPolicyRule/{name}", {**of, "cidr": cidr}, **more) for name, cidr in cidrs.items())
    return [declare("IPPolicy/office"), *made]


def needs_of(plan: Plan, call: str) -> set[str]:
    return next(set(each.needs) for each in plan.calls if each.id == call)


def key(name: str, number: int, **more: Any) -> Declaration:
    return declare(f"SSHCredential/{name}", {"public_key": KEYS[number]}, **more)


# --- references -------------------------------------------------------------------------------------------------------


def test_what_is_referred_to_is_made_first_and_goes_last() -> None:
    policy = declare("IPPolicy/p")
    world = settle(policy, declare("TLSEdge/a", {"ip_restriction": {"ip_policy_ids": [ref("IPPolicy/p")]}}))
    assert world.log == ["create IPPolicy/p", "create TLSEdge/a"]
    apply_to(world)
    assert [entry.split(" ")[1] for entry in world.log] == ["TLSEdge/a", "IPPolicy/p"]


def test_a_replaced_authority_is_let_go_of_before_it_is_deleted() -> None:
    edge = declare("TLSEdge/e", {"mutual_tls": {"certificate_authority_ids": [ref("CertificateAuthority/a")]}})
    world = settle(declare("CertificateAuthority/a", {"ca_pem": "OLD"}), edge)
    old = id_of(world, "CertificateAuthority")
    apply_to(world, declare("CertificateAuthority/a", {"ca_pem": "NEW"}), edge)
    assert world.log == ["create CertificateAuthority/a", "update TLSEdge/e", f"delete CertificateAuthority/a {old}"]


def test_an_address_is_known_to_an_edge_after_it_was_made() -> None:
    world = settle(
        declare("ReservedAddress/ssh"), declare("TCPEdge/ssh", {"hostports": [ref("ReservedAddress/ssh", "addr")]})
    )
    assert body_of(world, "TCPEdge")["hostports"] == [body_of(world, "ReservedAddress")["addr"]]


def test_an_edge_goes_before_the_domain_it_names() -> None:
    world = settle(domain("a.x"), edge("e", "a.x"))
    apply_to(world)
    assert [entry.split(" ")[1] for entry in world.log] == ["TLSEdge/e", "ReservedDomain/a"]


def test_an_edge_lets_go_of_a_domain_before_the_domain_goes() -> None:
    world = settle(domain("a.x"), domain("b.x"), edge("e", "a.x", "b.x"))
    apply_to(world, domain("b.x"), edge("e", "b.x"))
    assert world.log[0] == "update TLSEdge/e"


def test_an_edge_that_changes_and_keeps_the_host_name_is_said_to_use_the_domain() -> None:
    world = settle(domain("a.x"), domain("b.x"), edge("e", "a.x", "b.x"))
    made = plan_on(world, domain("b.x"), edge("e", "a.x"))
    assert [(problem.subject, problem.code, str(problem.severity)) for problem in made.problems] == [
        ("ReservedDomain/a", "still-in-use", "warning")
    ]
    forced = plan_on(world, domain("a.x"), domain("b.x"), edge("e", "a.x"), options=replace_options("ReservedDomain/a"))
    assert [(problem.code, str(problem.severity)) for problem in forced.problems] == [("still-in-use", "error")]


def test_an_edge_goes_before_the_domain_it_names_where_both_are_declared_absent() -> None:
    world = settle(domain("a.x"), edge("e", "a.x"))
    apply_to(world, *(replace(declaration, ensure=Ensure.ABSENT) for declaration in (domain("a.x"), edge("e", "a.x"))))
    assert [entry.split(" ")[1] for entry in world.log] == ["TLSEdge/e", "ReservedDomain/a"]


def test_an_edge_lets_go_of_a_domain_before_its_tombstone_is_carried_out() -> None:
    world = settle(domain("a.x"), domain("b.x"), edge("e", "a.x", "b.x"))
    apply_to(world, replace(domain("a.x"), ensure=Ensure.ABSENT), domain("b.x"), edge("e", "b.x"))
    assert world.log[0] == "update TLSEdge/e"


def test_of_calls_that_wait_for_nothing_deletes_come_last_and_in_the_reverse_order() -> None:
    world = settle(*(declare(f"IPPolicy/{name}") for name in "abcd"))
    made = plan_on(world, *(declare(f"IPPolicy/{name}", {"description": "new"}) for name in "bez"))
    assert [call.id.partition(" ipp_")[0] for call in made.calls] == [
        "update IPPolicy/b",
        "create IPPolicy/e",
        "create IPPolicy/z",
        "delete IPPolicy/d",
        "delete IPPolicy/c",
        "delete IPPolicy/a",
    ]
    assert {call.needs for call in made.calls} == {()}


def restricted(id: str, *policies: str, owner: Owner | None = None) -> Any:
    return live("TLSEdge", id, {"ip_restriction": {"ip_policies": [{"id": id} for id in policies]}}, owner=owner)


def test_what_is_deleted_waits_for_each_of_its_referrers_also_where_another_one_stays() -> None:
    policies = [live("IPPolicy", f"ipp_{n}", owner=record(f"IPPolicy/{n}", {})) for n in (1, 2)]
    theirs, ours = (
        restricted("e_1", "ipp_9", "ipp_2"),
        restricted("e_2", "ipp_1", "ipp_2", owner=record("TLSEdge/e", {})),
    )
    rule = live("IPPolicyRule", "ipr_1", {"ip_policy": {"id": "ipp_1"}}, owner=record("IPPolicyRule/r", {}))
    made = make_plan(seen=snapshot(*policies, theirs, ours, rule), options=LENIENT)
    edge = "delete TLSEdge/e e_2"
    assert needs_of(made, "delete IPPolicy/1 ipp_1") == {edge, "delete IPPolicyRule/r ipr_1"}
    assert needs_of(made, "delete IPPolicy/2 ipp_2") == {edge}
    assert needs_of(made, edge) == set()


def test_parts_are_deleted_before_their_whole() -> None:
    edge = live("HTTPSEdge", "e_1", owner=record("HTTPSEdge/e", {}))
    route = live("HTTPSEdgeRoute", "r_1", {"match": "/x"}, owner=record("HTTPSEdgeRoute/r", {}), parent="e_1")
    made = make_plan(seen=snapshot(edge, route), options=LENIENT)
    assert needs_of(made, "delete HTTPSEdge/e e_1") == {"delete HTTPSEdgeRoute/r e_1/r_1"}


def test_a_vault_is_not_said_to_take_secrets_with_it() -> None:
    vault = live("Vault", "v_1", {"name": "v"}, owner=record("Vault/v", {}))
    made = make_plan(
        seen=snapshot(vault, live("Secret", "s_1", {"name": "s", "vault": {"id": "v_1"}})), options=LENIENT
    )
    assert [str(problem) for problem in made.problems] == [
        "warning: Vault/v: v_1 is still used by Secret s_1 (not managed by this stack); the platform will refuse to "
        "delete it; remove the reference from Secret s_1 first"
    ]


def test_a_change_is_not_said_to_need_what_stays_as_it_is() -> None:
    policy, edge = live("IPPolicy", "ipp_1", owner=record("IPPolicy/p", {})), {"ip_policy_ids": [ref("IPPolicy/p")]}
    made = make_plan(declare("IPPolicy/p"), declare("TLSEdge/e", {"ip_restriction": edge}), seen=snapshot(policy))
    assert (len(made.calls), made.problems) == (1, ())


ROUTE = {"match": "/", "match_type": "exact_path"}


def warnings(made: Plan) -> list[str]:
    return [str(problem) for problem in made.problems]


def test_a_whole_says_which_of_our_parts_it_takes_with_it() -> None:
    edge, route = declare("HTTPSEdge/e"), declare("HTTPSEdgeRoute/r", {"edge_id": ref("HTTPSEdge/e"), **ROUTE})
    world = settle(edge, route)
    made = plan_on(world, options=replace(LENIENT, targets=("HTTPSEdge/e",)))
    assert requests(made) == [f"DELETE /edges/https/{id_of(world, 'HTTPSEdge')}"]
    assert warnings(made) == ["warning: HTTPSEdge/e: also deletes HTTPSEdgeRoute/r, which is part of it"]


@pytest.mark.parametrize(
    ("declared", "options", "why"),
    [
        (True, replace(LENIENT, targets=("HTTPSEdge/e",)), "is declared"),
        (False, replace(LENIENT, excludes=("HTTPSEdgeRoute/*",)), "is excluded"),
    ],
)
def test_what_is_to_stay_does_not_go_with_its_whole(declared: bool, options: PlanOptions, why: str) -> None:
    edge, route = declare("HTTPSEdge/e"), declare("HTTPSEdgeRoute/r", {"edge_id": ref("HTTPSEdge/e"), **ROUTE})
    world = settle(edge, route)
    id = id_of(world, "HTTPSEdge")
    rest = [declare("HTTPSEdgeRoute/r", {"edge_id": id, **ROUTE})] if declared else []
    told = [(error.subject, error.text) for error in plan_on(world, *rest, options=options).errors]
    assert told == [("HTTPSEdgeRoute/r", f"{why}, but would be deleted with HTTPSEdge/e, which it is part of")]


def test_parts_without_a_record_and_parts_to_be_forgotten_do_not_go_either() -> None:
    subscription = declare("EventSubscription/s", {"destination_ids": [], "description": "x"})
    source = declare("EventSource/x", {"subscription_id": ref("EventSubscription/s"), "type": "ip_policy_created.v0"})
    world = settle(subscription, source)
    made = plan_on(world, options=replace(LENIENT, excludes=("EventSource/*",)))
    assert [error.subject for error in made.errors] == ["EventSource/x"]
    edge, route = declare("HTTPSEdge/e"), declare("HTTPSEdgeRoute/r", {"edge_id": ref("HTTPSEdge/e"), **ROUTE})
    world = settle(edge, route)
    forgotten = replace(route, spec={"edge_id": id_of(world, "HTTPSEdge"), **ROUTE}, ensure=Ensure.FORGOTTEN)
    assert [error.subject for error in plan_on(world, forgotten).errors] == ["HTTPSEdgeRoute/r"]


def test_a_whole_that_others_stay_on_is_not_left_without_its_parts() -> None:
    world = settle(*rules(home="1.1.1.1/32"))
    theirs = live("IPRestriction", "ipx_1", {"type": "api", "ip_policies": [{"id": id_of(world, "IPPolicy")}]})
    seen = snapshot(*(each for kind in world.kinds for each in world.live(kind)), theirs)
    made = make_plan(seen=seen, options=LENIENT)
    assert [call.id.rpartition(" ")[0] for call in made.calls] == ["delete IPPolicy/office", "delete IPPolicyRule/home"]
    assert made.calls[1].needs == (made.calls[0].id,)


EDGES = {"TLSEdge": "edges/tls", "TCPEdge": "edges/tcp"}


@pytest.mark.parametrize("kind", EDGES)
def test_an_edge_turns_to_a_policy_when_its_rules_are_there_and_leaves_before_they_go(kind: str) -> None:
    edge = declare(f"{kind}/e", {"ip_restriction": {"ip_policy_ids": [ref("IPPolicy/office")]}})
    world = settle(*rules(home="1.1.1.1/32"), edge)
    new = [
        declare("IPPolicy/new"),
        declare("IPPolicyRule/new", {"ip_policy_id": ref("IPPolicy/new"), "action": "deny", "cidr": "2.2.2.2/32"}),
        declare(f"{kind}/e", {"ip_restriction": {"ip_policy_ids": [ref("IPPolicy/new")]}}),
    ]
    made = plan_on(world, *new)
    turning = next(call for call in made.calls if call.address.kind == kind)
    leaving = next(call for call in made.calls if call.id.startswith("delete IPPolicyRule/home"))
    assert "create IPPolicyRule/new" in turning.needs
    assert turning.id in leaving.needs


def test_rules_go_with_their_policy() -> None:
    world = settle(*rules(home="1.1.1.1/32", work="2.2.2.2/32"))
    made = plan_on(world, options=replace(LENIENT, targets=("IPPolicy/*",)))
    assert warnings(made) == [
        "warning: IPPolicy/office: also deletes IPPolicyRule/home, which is part of it",
        "warning: IPPolicy/office: also deletes IPPolicyRule/work, which is part of it",
    ]


@pytest.mark.parametrize(
    ("owner", "whose"),
    [
        (None, "HTTPSEdgeRoute rt_1 (not managed by this stack)"),
        (record("HTTPSEdgeRoute/x", {}, stack="theirs"), "HTTPSEdgeRoute rt_1 (managed by stack 'theirs')"),
    ],
)
def test_a_whole_says_whose_parts_it_takes_with_it(owner: Owner | None, whose: str) -> None:
    edge = live("HTTPSEdge", "e_1", owner=record("HTTPSEdge/e", {}))
    route = live("HTTPSEdgeRoute", "rt_1", {"edge_id": "e_1"}, owner=owner, parent="e_1")
    made = make_plan(seen=snapshot(edge, route), options=LENIENT)
    assert warnings(made) == [f"warning: HTTPSEdge/e: also deletes {whose}, which is part of it"]


def test_a_part_that_goes_in_the_same_plan_needs_no_word() -> None:
    world = settle(declare("HTTPSEdge/e"), declare("HTTPSEdgeRoute/r", {"edge_id": ref("HTTPSEdge/e"), **ROUTE}))
    assert warnings(plan_on(world)) == []


@pytest.mark.parametrize("declared", [{}, {"description": "Audit"}])
def test_sources_that_nobody_declared_need_approval_to_go_with_their_subscription(declared: dict[str, Any]) -> None:
    subscription = live("EventSubscription", "esb_1", declared, owner=record("EventSubscription/s", declared))
    source = live("EventSource", "ip_policy_created.v0", parent="esb_1")
    made = make_plan(seen=snapshot(subscription, source), options=replace(LENIENT, allow={}, destroy=True))
    assert warnings(made) == [
        "warning: EventSubscription/s: "
        "also deletes EventSource ip_policy_created.v0 (not managed by this stack), which is part of it"
    ]
    assert [(approval.flag, approval.granted) for approval in made.approvals] == [
        ("--allow delete:EventSource=1", False)
    ]


def test_sources_that_their_subscription_declared_go_with_it_unsaid() -> None:
    sources = {"sources": [{"type": "ip_policy_created.v0"}]}
    subscription = live("EventSubscription", "esb_1", sources, owner=record("EventSubscription/s", sources))
    source = live("EventSource", "ip_policy_created.v0", parent="esb_1")
    made = make_plan(seen=snapshot(subscription, source), options=replace(LENIENT, allow={}, destroy=True))
    assert (warnings(made), made.approvals) == ([], ())


def test_a_source_of_its_own_address_is_told_although_the_subscription_declared_it() -> None:
    sources = {"sources": [{"type": "ip_policy_created.v0"}]}
    subscription = live("EventSubscription", "esb_1", sources, owner=record("EventSubscription/s", sources))
    source = live("EventSource", "ip_policy_created.v0", parent="esb_1")
    seen = snapshot(subscription, source, bindings={"EventSource/x": Binding("esb_1/ip_policy_created.v0")})
    made = make_plan(seen=seen, options=replace(LENIENT, targets=("EventSubscription/s",)))
    assert warnings(made) == ["warning: EventSubscription/s: also deletes EventSource/x, which is part of it"]


def test_a_source_that_another_stack_bound_is_told_although_the_subscription_declared_it() -> None:
    sources = {"sources": [{"type": "ip_policy_created.v0"}]}
    subscription = live("EventSubscription", "esb_1", sources, owner=record("EventSubscription/s", sources))
    source = live("EventSource", "ip_policy_created.v0", parent="esb_1")
    seen = replace(snapshot(subscription, source), elsewhere={source.key: "theirs"})
    made = make_plan(seen=seen, options=replace(LENIENT, allow={}, destroy=True))
    assert warnings(made) == [
        "warning: EventSubscription/s: "
        "also deletes EventSource ip_policy_created.v0 (managed by stack 'theirs'), which is part of it"
    ]
    assert [(approval.flag, approval.granted) for approval in made.approvals] == [
        ("--allow delete:EventSource=1", False)
    ]


def test_what_uses_another_twice_is_told_once() -> None:
    policy = live("IPPolicy", "ipp_1", owner=record("IPPolicy/p", {}))
    twice = {"ip_restriction": {"ip_policies": [{"id": "ipp_1"}, {"id": "ipp_1"}]}}
    made = make_plan(seen=snapshot(policy, live("TLSEdge", "edgtls_9", twice)), options=LENIENT)
    assert len(warnings(made)) == 1


def test_what_of_ours_still_uses_another_is_named_by_its_address() -> None:
    policy = live("IPPolicy", "ipp_1", owner=record("IPPolicy/p", {}))
    restriction = {"ip_restriction": {"ip_policies": [{"id": "ipp_1"}]}}
    ours = live("TLSEdge", "edgtls_9", restriction, owner=record("TLSEdge/e", {}))
    made = make_plan(seen=snapshot(policy, ours), options=replace(LENIENT, targets=("IPPolicy/p",)))
    assert warnings(made) == [
        "warning: IPPolicy/p: ipp_1 is still used by TLSEdge/e; the platform will refuse to delete it;"
        " remove the reference from TLSEdge/e first"
    ]


def test_what_somebody_else_still_uses_is_said_with_its_user() -> None:
    policy = live("IPPolicy", "ipp_1", owner=record("IPPolicy/p", {}))
    theirs = live("TLSEdge", "edgtls_9", {"ip_restriction": {"ip_policies": [{"id": "ipp_1"}]}})
    made = make_plan(seen=snapshot(policy, theirs), options=LENIENT)
    assert [problem.text for problem in made.problems] == [
        "ipp_1 is still used by TLSEdge edgtls_9 (not managed by this stack); the platform will refuse to delete it"
    ]


def test_a_change_that_keeps_using_what_goes_is_said_to_use_it() -> None:
    policy = live("IPPolicy", "ipp_1", owner=record("IPPolicy/p", {}))
    was = {"ip_restriction": {"ip_policy_ids": ["ipp_1"]}}
    there = live("TLSEdge", "e", {"ip_restriction": {"ip_policies": [{"id": "ipp_1"}]}}, owner=record("TLSEdge/e", was))
    made = make_plan(
        declare("TLSEdge/e", {"ip_restriction": {"ip_policy_ids": ["ipp_1", "ipp_2"]}}),
        seen=snapshot(policy, live("IPPolicy", "ipp_2"), there),
        options=LENIENT,
    )
    assert [(problem.code, str(problem.severity)) for problem in made.problems] == [("still-in-use", "warning")]
    assert "--replace" not in made.problems[0].remedy, "a delete needs no replacement of what refers to it"


def test_what_stays_as_it_is_is_not_said_to_need_what_cannot_be_planned() -> None:
    def declared(pem: str, description: str) -> list[Declaration]:
        trusted = {"mutual_tls": {"certificate_authority_ids": [ref("CertificateAuthority/a")]}}
        authority = declare("CertificateAuthority/a", {"ca_pem": pem}, replace=False)
        return [authority, declare("TLSEdge/e", {**trusted, "description": description})]

    world = settle(*declared("OLD", "one"))
    assert [problem.subject for problem in plan_on(world, *declared("NEW", "one")).problems] == [
        "CertificateAuthority/a"
    ]
    beside = plan_on(world, *declared("NEW", "one"), declare("IPPolicy/new"))
    assert [problem.subject for problem in beside.problems] == ["CertificateAuthority/a"]
    problems = plan_on(world, *declared("NEW", "two")).problems
    assert {problem.subject for problem in problems} == {"CertificateAuthority/a", "TLSEdge/e"}


def test_problems_come_in_one_order_whatever_the_order_of_the_lists() -> None:
    policies = [live("IPPolicy", f"ipp_{n}", owner=record(f"IPPolicy/{n}", {})) for n in range(3)]
    users = [
        live("TLSEdge", f"e{n}", {"ip_restriction": {"ip_policies": [{"id": f"ipp_{n}"} for n in range(3)]}})
        for n in range(3)
    ]
    one = make_plan(seen=snapshot(*policies, *users), options=LENIENT)
    two = make_plan(seen=snapshot(*reversed(users), *reversed(policies)), options=LENIENT)
    assert len(one.problems) == 9
    assert one == two


# --- what one object holds at a time ----------------------------------------------------------------------------------


def test_a_hostport_is_let_go_before_another_edge_takes_it() -> None:
    domains = [domain("a.x"), domain("b.x")]
    world = settle(*domains, edge("z", "a.x", "b.x"), edge("a"))
    apply_to(world, *domains, edge("z", "b.x"), edge("a", "a.x"))
    assert world.log == ["update TLSEdge/z", "update TLSEdge/a"]


def test_a_hostport_is_let_go_before_a_new_edge_takes_it() -> None:
    world = settle(domain("a.x"), edge("z", "a.x"))
    apply_to(world, domain("a.x"), edge("z"), edge("a", "a.x"))
    assert world.log == ["update TLSEdge/z", "create TLSEdge/a"]


def test_a_hostport_passes_from_a_deleted_edge_to_one_of_another_kind() -> None:
    world = settle(domain("a.x"), edge("z", "a.x"))
    apply_to(world, domain("a.x"), declare("HTTPSEdge/a", {"hostports": ["a.x:443"]}))
    assert [entry.split(" ")[0] for entry in world.log] == ["delete", "create"]


def cloud(url: str) -> Declaration:
    return declare("CloudEndpoint/c", {"url": url, "traffic_policy": "p"})


def test_an_https_endpoint_may_stand_beside_a_tls_edge() -> None:
    world = settle(domain("a.x"), cloud("https://a.x"), edge("a", "a.x"))
    assert requests(plan_on(world, domain("a.x"), cloud("https://a.x"), edge("a", "a.x"))) == []


@pytest.mark.parametrize(
    ("kind", "url"),
    [("HTTPSEdge", "https://a.x"), ("TLSEdge", "tls://a.x"), ("HTTPSEdge", "tls://a.x"), ("TLSEdge", "http://a.x:443")],
)
def test_no_other_endpoint_stands_where_an_edge_does(kind: str, url: str) -> None:
    there = declare(f"{kind}/a", {"hostports": ["a.x:443"]})
    for first, second in ((there, cloud(url)), (cloud(url), there)):
        world = settle(domain("a.x"), first)
        (problem,) = errors(plan_on(world, domain("a.x"), first, second))
        assert "a.x:443 already" in problem


def test_hostports_handed_on_along_a_row_move_from_its_end() -> None:
    domains = [domain(f"{name}.x") for name in "abc"]
    world = settle(*domains, edge("1", "a.x"), edge("2", "b.x"), edge("3", "c.x"))
    apply_to(world, *domains, edge("1"), edge("2", "a.x"), edge("3", "b.x"))
    assert world.log == ["update TLSEdge/1", "update TLSEdge/2", "update TLSEdge/3"]


def test_two_edges_that_swap_hostports_let_go_of_one_first() -> None:
    domains = [domain("a.x"), domain("b.x")]
    world = settle(*domains, edge("1", "a.x"), edge("2", "b.x"))
    made = plan_on(world, *domains, edge("1", "b.x"), edge("2", "a.x"))
    assert [(call.id, dict(call.body or {})) for call in made.calls] == [
        ("release hostports of TLSEdge/1", {"hostports": []}),
        ("update TLSEdge/2", {"hostports": ["a.x:443"]}),
        ("update TLSEdge/1", {"hostports": ["b.x:443"]}),
    ]


def test_an_edge_lets_go_of_what_others_take_and_of_nothing_else() -> None:
    domains = [domain("a.x"), domain("b.x"), domain("c.x")]
    world = settle(*domains, edge("1", "a.x", "c.x"), edge("2", "b.x"))
    apply_to(world, *domains, edge("1", "b.x", "c.x"), edge("2", "a.x"))
    assert world.log[0] == "release hostports of TLSEdge/1"


def test_edges_that_trade_hostports_in_a_round_all_get_theirs() -> None:
    domains = [domain("a.x"), domain("b.x"), domain("c.x")]
    world = settle(*domains, edge("1", "a.x"), edge("2", "b.x"), edge("3", "c.x"))
    apply_to(world, *domains, edge("1", "b.x"), edge("2", "c.x"), edge("3", "a.x"))


def test_two_rules_that_swap_networks_make_one_of_them_anew() -> None:
    world = settle(*rules(a="10.0.0.0/8", b="11.0.0.0/8"))
    old = id_of(world, "IPPolicyRule")
    apply_to(world, *rules(a="11.0.0.0/8", b="10.0.0.0/8"))
    assert world.log == [f"delete IPPolicyRule/a {old}", "update IPPolicyRule/b", "create IPPolicyRule/a"]


def test_what_may_not_be_made_anew_swaps_nothing() -> None:
    world = settle(*rules(a="10.0.0.0/8", b="11.0.0.0/8"))
    made = plan_on(world, *rules(a="11.0.0.0/8", b="10.0.0.0/8", lifecycle={"replace": False}))
    (problem,) = made.errors
    assert made.calls == ()
    assert (
        problem.remedy == "apply the change in two steps: first release the values, then set them on the other objects"
    )


def test_a_protected_rule_is_not_deleted_to_break_a_cycle() -> None:
    both = {"protect": True}
    world = settle(*rules(a="10.0.0.0/8", b="11.0.0.0/8", lifecycle=both))
    refused = plan_on(world, *rules(a="11.0.0.0/8", b="10.0.0.0/8"))
    assert [problem.code for problem in refused.errors] == ["circular-calls"]
    assert refused.calls == ()


@pytest.mark.parametrize("secrets", [0, 1])
def test_vaults_that_swap_names_are_not_deleted_with_what_is_in_them(secrets: int) -> None:
    def vaults(first: str, second: str) -> list[Declaration]:
        pair = [declare("Vault/1", {"name": first}), declare("Vault/2", {"name": second})]
        inside = [
            declare(f"Secret/{n}", {"vault_id": ref(f"Vault/{n}"), "name": "k", "value": secret("v")}) for n in (1, 2)
        ]
        return [*pair, *inside[: 2 * secrets]]

    made = plan_on(settle(*vaults("a", "b")), *vaults("b", "a"))
    assert bool(made.errors) is bool(secrets)
    assert bool([call for call in made.calls if call.verb is Verb.DELETE]) is not bool(secrets)


def test_a_rule_with_ignored_fields_is_not_deleted_to_break_a_cycle() -> None:
    ignoring = {"ignore": ["description"]}
    world = settle(*rules(a="10.0.0.0/8", b="11.0.0.0/8", lifecycle=ignoring))
    made = plan_on(world, *rules(a="11.0.0.0/8", b="10.0.0.0/8", lifecycle=ignoring))
    assert ([problem.code for problem in made.errors], made.calls) == (["circular-calls"], ())


def test_an_update_keeps_the_record_of_what_its_object_replaces() -> None:
    """Until the replaced object is deleted, nothing else says that it is one."""
    old = live("TLSEdge", "edgtls_1", owner=record("TLSEdge/a", {}, intent="i1"))
    new = live("TLSEdge", "edgtls_2", owner=record("TLSEdge/a", {}, intent="i2", replaces="edgtls_1"))
    made = make_plan(declare("TLSEdge/a", {"description": "new"}), seen=snapshot(old, new), options=LENIENT)
    owner = call_of(made, "update TLSEdge/a").owner
    assert owner is not None
    assert owner.replaces == "edgtls_1"


# --- parts of a whole -------------------------------------------------------------------------------------------------


def restriction(name: str, policy: str) -> Declaration:
    return declare(f"IPRestriction/{name}", {"type": "dashboard", "ip_policy_ids": [ref(f"IPPolicy/{policy}")]})


def test_a_restriction_comes_after_the_rules_of_its_policy_and_leaves_before_them() -> None:
    whole = [*rules(a="10.0.0.0/8"), restriction("r", "office")]
    made = make_plan(*whole)
    assert needs_of(made, "create IPRestriction/r") >= {"create IPPolicyRule/a"}
    world = settle(*whole)
    gone = plan_on(world)
    (rule,) = [call.id for call in gone.calls if call.address.kind == "IPPolicyRule"]
    assert any(need.startswith("delete IPRestriction/r") for need in needs_of(gone, rule))


@pytest.mark.parametrize("ensure", [Ensure.ABSENT, Ensure.PRESENT])
def test_a_restriction_that_is_declared_absent_does_not_keep_the_rules_of_its_policy(ensure: Ensure) -> None:
    world = settle(*rules(a="10.0.0.0/8"), restriction("r", "office"))
    made = plan_on(world, declare("IPPolicy/office"), replace(restriction("r", "office"), ensure=ensure))
    assert len(made.errors) == (0 if ensure is Ensure.ABSENT else 1)


def test_a_policy_in_use_gets_a_new_rule_before_its_last_old_one_goes() -> None:
    world = settle(*rules(a="10.0.0.0/8"), restriction("r", "office"))
    made = plan_on(world, *rules(b="11.0.0.0/8"), restriction("r", "office"))
    (delete,) = [call.id for call in made.calls if call.id.startswith("delete")]
    assert needs_of(made, delete) >= {"create IPPolicyRule/b"}


def deny_rule(name: str, cidr: str) -> Declaration:
    return declare(f"IPPolicyRule/{name}", {"ip_policy_id": ref("IPPolicy/office"), "action": "deny", "cidr": cidr})


A, B = "10.0.0.0/8", "11.0.0.0/8"


def test_of_rules_that_all_flip_one_is_there_again_before_the_others_go() -> None:
    world = settle(*rules(a=A, b=B), restriction("r", "office"))
    apply_to(world, declare("IPPolicy/office"), deny_rule("a", A), deny_rule("b", B), restriction("r", "office"))


@pytest.mark.parametrize(
    "after",
    [
        [deny_rule("a", A)],
        [],
        [declare("IPPolicyRule/a", {"ip_policy_id": "ipp_elsewhere", "action": "allow", "cidr": A})],
    ],
    ids=["flipped", "removed", "moved to another policy"],
)
@pytest.mark.parametrize("there", [True, False], ids=["restricted", "to be restricted"])
def test_a_policy_that_would_be_left_without_rules_is_told_of(after: list[Declaration], there: bool) -> None:
    restricted = restriction("r", "office")
    world = settle(*rules(a=A), *([restricted] if there else []))
    made = plan_on(world, declare("IPPolicy/office"), *after, restricted)
    if not there and after and after[0].spec["action"] == "deny":
        assert made.errors == ()  # the restriction comes once the rule is there again
        return
    (problem,) = made.errors
    assert "IPPolicy/office would be left without any IPPolicyRule" in problem.text
    assert problem.text.endswith("but IPRestriction/r requires one")
    assert problem.remedy.startswith("declare another IPPolicyRule of IPPolicy/office")


@pytest.mark.parametrize(
    ("spec", "blocked"),
    [
        ({"type": "dashboard"}, True),
        ({"type": "api", "enforced": True}, True),
        ({"type": "api"}, False),
        ({"type": "endpoints", "enforced": True}, False),
    ],
    ids=str,
)
def test_some_restrictions_cannot_do_without_rules(spec: dict[str, Any], blocked: bool) -> None:
    restricted = declare("IPRestriction/r", {**spec, "ip_policy_ids": [ref("IPPolicy/office")]})
    world = settle(*rules(a=A), restricted)
    made = plan_on(world, declare("IPPolicy/office"), deny_rule("a", A), restricted)
    assert bool(made.errors) is blocked


@pytest.mark.parametrize("id", ["a reference", "an id"])
def test_the_last_rule_of_a_policy_goes_if_restrictions_are_about_another_policy(id: str) -> None:
    other = [
        declare("IPPolicy/other"),
        declare("IPPolicyRule/o", {"ip_policy_id": ref("IPPolicy/other"), "action": "allow", "cidr": B}),
    ]
    there = [*rules(a=A), *other]
    world = settle(*there, restriction("r", "other")) if id == "an id" else settle(*there)
    made = plan_on(world, declare("IPPolicy/office"), *other, restriction("r", "other"))
    assert made.errors == ()
    assert [call.address for call in made.calls if call.verb is Verb.DELETE] == [at("IPPolicyRule/a")]


def test_a_referrer_that_can_do_without_rules_does_not_keep_the_last_one() -> None:
    edge = declare("TLSEdge/e", {"ip_restriction": {"ip_policy_ids": [ref("IPPolicy/office")]}})
    made = plan_on(settle(*rules(a=A), edge), declare("IPPolicy/office"), edge)
    assert (made.problems, [str(call.address) for call in made.calls]) == ((), ["IPPolicyRule/a"])


def test_rules_that_flip_wait_for_one_that_can_be_made_at_once() -> None:
    world = settle(*rules(a=A, b=B), restriction("r", "office"))
    flips = [deny_rule("a", A), deny_rule("b", B)]
    free = declare("IPPolicyRule/c", {"ip_policy_id": ref("IPPolicy/office"), "action": "allow", "cidr": "12.0.0.0/8"})
    made = plan_on(world, declare("IPPolicy/office"), *flips, free, restriction("r", "office"))
    deletes = [call for call in made.calls if call.verb is Verb.DELETE]
    assert [set(call.needs) for call in deletes] == [{"create IPPolicyRule/c"}] * 2


def test_rules_that_flip_wait_for_none_while_another_one_stays() -> None:
    world = settle(*rules(a=A, b=B), restriction("r", "office"))
    rule = {"ip_policy_id": id_of(world, "IPPolicy"), "cidr": "12.0.0.0/8", "action": "allow"}
    world.put(world.by_name["IPPolicyRule"], rule)
    made = plan_on(world, declare("IPPolicy/office"), deny_rule("a", A), deny_rule("b", B), restriction("r", "office"))
    assert [set(call.needs) for call in made.calls if call.verb is Verb.DELETE] == [set(), set()]


def test_routes_are_no_rules_and_go_whatever_is_made_beside_them() -> None:
    edge = live("HTTPSEdge", "e_1", owner=record("HTTPSEdge/e", {}))
    spec = {"edge_id": "e_1", "match": "/stays", "match_type": "exact_path"}
    routes = [
        live("HTTPSEdgeRoute", name, {**spec, "match": f"/{name}"}, owner=route_record(name), parent="e_1")
        for name in ("goes", "stays")
    ]
    made = make_plan(
        declare("HTTPSEdge/e"),
        declare("HTTPSEdgeRoute/stays", spec),
        declare("HTTPSEdgeRoute/new", {**spec, "match": "/new"}),
        seen=snapshot(edge, *routes),
        options=LENIENT,
    )
    assert {call.id: call.needs for call in made.calls} == {
        "create HTTPSEdgeRoute/new": (),
        "delete HTTPSEdgeRoute/goes e_1/goes": (),
    }


def route_record(name: str) -> Owner:
    spec = {"edge_id": "e_1", "match": f"/{name}", "match_type": "exact_path"}
    return record(f"HTTPSEdgeRoute/{name}", spec)


RULE = live("IPPolicyRule", "ipr_1", {"ip_policy": {"id": "ipp_1"}, "cidr": A}, owner=record("IPPolicyRule/r", {}))
THEIRS = live("IPRestriction", "ipx_1", {"type": "dashboard", "enforced": True, "ip_policies": [{"id": "ipp_1"}]})


def test_the_last_rule_of_a_policy_that_nobody_here_owns_is_told_by_ids() -> None:
    made = make_plan(seen=snapshot(live("IPPolicy", "ipp_1"), RULE, THEIRS), options=LENIENT)
    assert [(problem.subject, problem.text, problem.remedy) for problem in made.errors] == [
        (
            "IPPolicyRule/r",
            "IPPolicy ipp_1 would be left without any IPPolicyRule for a moment, but IPRestriction ipx_1 requires one",
            "declare another IPPolicyRule of IPPolicy ipp_1 until this is applied, "
            "or remove IPPolicy ipp_1 from IPRestriction ipx_1 first",
        )
    ]


def test_a_policy_that_goes_itself_is_not_said_to_be_left_without_rules() -> None:
    policy = live("IPPolicy", "ipp_1", owner=record("IPPolicy/p", {}))
    made = make_plan(seen=snapshot(policy, RULE, THEIRS), options=LENIENT)
    assert [problem.code for problem in made.problems] == ["still-in-use"]


def test_a_last_rule_is_told_of_where_it_is_declared() -> None:
    world = settle(*rules(a=A), restriction("r", "office"))
    where = Position("rules.yaml", 7, 3)
    flipped = replace(deny_rule("a", A), position=where)
    for rule, position in (([flipped], where), ([], None)):
        (problem,) = plan_on(world, declare("IPPolicy/office"), *rule, restriction("r", "office")).errors
        assert (problem.subject, problem.position) == ("IPPolicyRule/a", position)


@pytest.mark.parametrize("id", ["a reference", "an id"])
def test_the_last_rule_flips_beside_another_one(id: str) -> None:
    world = settle(*rules(a=A), restriction("r", "office"))
    policy = id_of(world, "IPPolicy") if id == "an id" else ref("IPPolicy/office")
    beside = declare("IPPolicyRule/b", {"ip_policy_id": policy, "action": "allow", "cidr": B})
    apply_to(world, declare("IPPolicy/office"), deny_rule("a", A), beside, restriction("r", "office"))
    apply_to(world, declare("IPPolicy/office"), deny_rule("a", A), restriction("r", "office"))


def test_a_rule_that_is_not_ours_stays_and_the_last_of_ours_may_flip() -> None:
    world = settle(*rules(a=A), restriction("r", "office"))
    rule = {"ip_policy_id": id_of(world, "IPPolicy"), "cidr": B, "action": "allow"}
    world.put(world.by_name["IPPolicyRule"], rule)
    apply_to(world, declare("IPPolicy/office"), deny_rule("a", A), restriction("r", "office"))


@pytest.mark.parametrize(
    ("owner", "whose", "remedy"),
    [
        (
            None,
            "TLSEdge edgtls_9",
            "adopt it (`reconciler adopt TLSEdge/a --id edgtls_9`), or remove it from TLSEdge edgtls_9",
        ),
        (
            record("TLSEdge/x", {}, stack="theirs"),
            "TLSEdge edgtls_9 of stack theirs",
            "remove it from TLSEdge edgtls_9 of stack theirs",
        ),
    ],
)
def test_whoever_holds_what_is_wanted_is_told_with_what_to_do(owner: Owner | None, whose: str, remedy: str) -> None:
    there = live("TLSEdge", "edgtls_9", {"hostports": ["a.x:443"]}, owner=owner)
    told = make_plan(edge("a", "a.x"), seen=snapshot(there)).errors
    assert [(problem.text.partition(" has ")[0], problem.remedy) for problem in told] == [(whose, remedy)]


def test_an_object_of_another_kind_that_holds_what_is_wanted_is_not_offered_for_adoption() -> None:
    there = live("TLSEdge", "edgtls_9", {"hostports": ["a.x:443"]})
    told = make_plan(web("a", "a.x"), seen=snapshot(there)).errors
    assert [problem.remedy for problem in told] == ["remove it from TLSEdge edgtls_9"]


def test_a_hostport_that_an_edge_of_nobody_holds_is_a_problem_that_names_the_edge() -> None:
    made = make_plan(edge("a", "a.x"), seen=snapshot(live("TLSEdge", "edgtls_9", {"hostports": ["A.x.:443"]})))
    assert errors(made) == ["TLSEdge edgtls_9 has a.x:443 already, and the platform allows it on one object at a time"]


def test_a_hostport_that_two_edges_declare_is_a_problem() -> None:
    made = make_plan(edge("a", "a.x"), edge("b", "a.x"))
    assert errors(made) == ["TLSEdge/a takes a.x:443 already, and the platform allows it on one object at a time"]


def bot(address: str, name: str) -> Declaration:
    return declare(f"BotUser/{address}", {"name": name})


def test_a_name_is_let_go_before_another_bot_takes_it() -> None:
    world = settle(bot("a", "x"), bot("b", "y"))
    apply_to(world, bot("a", "y"), bot("b", "z"))
    assert world.log == ["update BotUser/b", "update BotUser/a"]


def test_a_new_bot_takes_the_name_that_another_gives_up_whatever_the_addresses_are() -> None:
    for new, old in (("a", "b"), ("b", "a")):
        world = settle(bot(old, "x"))
        apply_to(world, bot(old, "y"), bot(new, "x"))
        assert world.log == [f"update BotUser/{old}", f"create BotUser/{new}"]


def test_two_bots_that_swap_names_are_a_problem() -> None:
    world = settle(bot("a", "x"), bot("b", "y"))
    made = plan_on(world, bot("a", "y"), bot("b", "x"))
    assert (made.calls, len(made.errors)) == ((), 1)


@pytest.mark.parametrize(
    "first", [declare("IPPolicy/a"), declare("ReservedDomain/0", {"domain": "z.x"}, ensure=Ensure.ABSENT)]
)
def test_a_domain_is_made_before_what_names_its_host_whatever_is_declared_before_it(first: Declaration) -> None:
    made = make_plan(first, domain("a.x"), edge("e", "a.x"))
    assert needs_of(made, "create TLSEdge/e") == {"create ReservedDomain/a"}


def test_a_name_that_a_bot_of_nobody_has_is_a_problem() -> None:
    world = settle(bot("a", "x"))
    world.put(world.by_name["BotUser"], {"name": "y", "active": True})
    (problem,) = plan_on(world, bot("a", "y")).errors
    assert problem.text.endswith(" has y already, and the platform allows it on one object at a time")
    assert problem.remedy.startswith("remove it from BotUser ")


def test_a_flipped_rule_goes_before_it_comes_anew() -> None:
    def rule(action: str) -> Declaration:
        return declare("IPPolicyRule/r", {"ip_policy_id": ref("IPPolicy/p"), "cidr": "10.0.0.0/8", "action": action})

    world = settle(declare("IPPolicy/p"), rule("allow"))
    apply_to(world, declare("IPPolicy/p"), rule("deny"))
    assert [entry.split(" ")[0] for entry in world.log] == ["delete", "create"]


def test_a_key_passes_from_a_tombstone_to_a_new_declaration() -> None:
    world = settle(key("old", 0))
    apply_to(world, key("old", 0, ensure=Ensure.ABSENT), key("new", 0))
    assert [entry.split(" ")[0] for entry in world.log] == ["delete", "create"]


def test_a_key_passes_from_a_replaced_credential_to_a_new_one() -> None:
    world = settle(key("b", 0))
    apply_to(world, key("b", 1), key("a", 0))
    assert [entry.split(" ")[:2] for entry in world.log] == [
        ["create", "SSHCredential/b"],
        ["delete", "SSHCredential/b"],
        ["create", "SSHCredential/a"],
    ]


def test_two_credentials_swap_keys_one_of_them_letting_go_first() -> None:
    world = settle(key("a", 0), key("b", 1))
    apply_to(world, key("a", 1), key("b", 0))


# --- interrupted replacements -----------------------------------------------------------------------------------------


def interrupt_after(world: Any, made: Plan, after: str) -> None:
    """Carry a plan out up to a call and no further."""
    world.carry_out(replace(made, calls=made.calls[: place(made, after) + 1], bindings={}))


def test_a_replacement_that_was_interrupted_after_the_create_is_finished() -> None:
    edge = declare("TLSEdge/e", {"mutual_tls": {"certificate_authority_ids": [ref("CertificateAuthority/a")]}})
    world = settle(declare("CertificateAuthority/a", {"ca_pem": "OLD"}), edge)
    new = [declare("CertificateAuthority/a", {"ca_pem": "NEW"}), edge]
    interrupt_after(world, plan_on(world, *new), "create CertificateAuthority/a")
    apply_to(world, *new)
    assert [body["ca_pem"] for (kind, _), body in world.objects.items() if kind == "CertificateAuthority"] == ["NEW"]
    assert world.log[-1].startswith("delete CertificateAuthority/a")


def test_a_replacement_that_was_interrupted_and_then_changed_again_is_finished() -> None:
    edge = declare("TLSEdge/e", {"mutual_tls": {"certificate_authority_ids": [ref("CertificateAuthority/a")]}})
    world = settle(declare("CertificateAuthority/a", {"ca_pem": "ONE"}), edge)
    for pem in ("TWO", "THREE"):
        made = plan_on(world, declare("CertificateAuthority/a", {"ca_pem": pem}), edge)
        interrupt_after(world, made, "create CertificateAuthority/a")
    assert len([kind for kind, _ in world.objects if kind == "CertificateAuthority"]) == 3
    apply_to(world, declare("CertificateAuthority/a", {"ca_pem": "THREE"}), edge)
    assert body_of(world, "CertificateAuthority")["ca_pem"] == "THREE"
    assert len([kind for kind, _ in world.objects if kind == "CertificateAuthority"]) == 1


def test_a_replacement_that_was_interrupted_and_then_taken_back_in_git_is_finished() -> None:
    world = settle(key("a", 0))
    interrupt_after(world, plan_on(world, key("a", 1)), "create SSHCredential/a")
    apply_to(world, key("a", 0))
    assert [body["public_key"] for body in world.objects.values()] == [KEYS[0]]


def test_a_replacement_that_was_interrupted_and_then_moved_is_finished() -> None:
    world = settle(key("a", 0))
    interrupt_after(world, plan_on(world, key("a", 1)), "create SSHCredential/a")
    apply_to(world, key("z", 1, moved=["SSHCredential/a"]))
    assert [body["public_key"] for body in world.objects.values()] == [KEYS[1]]


def test_a_replacement_with_a_new_name_that_was_interrupted_is_finished() -> None:
    world = settle(key("a", 0))
    new = key("z", 1, moved=["SSHCredential/a"])
    interrupt_after(world, plan_on(world, new), "create SSHCredential/z")
    made = plan_on(world, new)
    assert [(str(change.address), str(change.action), str(change.former)) for change in made.changes] == [
        ("SSHCredential/z", "delete", "SSHCredential/a")
    ]
    apply_to(world, new)
    assert [body["public_key"] for body in world.objects.values()] == [KEYS[1]]


def test_a_replacement_with_a_new_name_that_is_taken_back_in_git_keeps_the_first() -> None:
    world = settle(key("a", 0))
    first = id_of(world, "SSHCredential")
    interrupt_after(world, plan_on(world, key("z", 1, moved=["SSHCredential/a"])), "create SSHCredential/z")
    apply_to(world, key("z", 0, moved=["SSHCredential/a"]))
    assert [body["id"] for body in world.objects.values()] == [first]


@pytest.mark.parametrize(
    "declared",
    [key("a", 0), key("y", 0, moved=["SSHCredential/a"])],
    ids=["under the old name", "under a third"],
)
def test_a_replacement_with_a_new_name_that_git_knows_no_more_of_leaves_the_first_where_it_was(
    declared: Declaration,
) -> None:
    world = settle(key("a", 0))
    first = id_of(world, "SSHCredential")
    interrupt_after(world, plan_on(world, key("z", 1, moved=["SSHCredential/a"])), "create SSHCredential/z")
    apply_to(world, declared)
    assert [body["id"] for body in world.objects.values()] == [first]


def test_a_replacement_that_was_interrupted_waits_for_what_waits_for_its_old_object() -> None:
    def three(a: str, b: str, action: str) -> list[Declaration]:
        of = {"ip_policy_id": ref("IPPolicy/office")}
        return [
            declare("IPPolicy/office"),
            declare("IPPolicyRule/a", {**of, "cidr": a, "action": action}),
            declare("IPPolicyRule/b", {**of, "cidr": b, "action": "allow"}),
        ]

    world = settle(*three("10.0.0.0/8", "12.0.0.0/8", "allow"))
    old = id_of(world, "IPPolicyRule")
    interrupt_after(world, plan_on(world, *three("11.0.0.0/8", "12.0.0.0/8", "deny")), "create IPPolicyRule/a")
    # The new rule takes the network that b gives up for that of the old rule: the old rule must go first.
    apply_to(world, *three("12.0.0.0/8", "10.0.0.0/8", "deny"))
    assert world.log == [f"delete IPPolicyRule/a {old}", "update IPPolicyRule/b", "update IPPolicyRule/a"]


def test_the_old_object_of_an_interrupted_replacement_goes_after_the_update_of_the_new_one() -> None:
    old = live("TLSEdge", "edgtls_1", owner=record("TLSEdge/a", {}, intent="i1"))
    new = live("TLSEdge", "edgtls_2", owner=record("TLSEdge/a", {}, intent="i2", replaces="edgtls_1"))
    made = make_plan(declare("TLSEdge/a", {"description": "x"}), seen=snapshot(old, new), options=LENIENT)
    assert needs_of(made, "delete TLSEdge/a edgtls_1") == {"update TLSEdge/a"}


def test_the_old_object_goes_before_a_third_is_made_only_if_the_store_alone_knows_it() -> None:
    """A binding has room for one predecessor; owner records are on the objects themselves."""
    sources = [live("EventSource", f"{name}.v0", parent="esb_1") for name in "ab"]
    subscription = live("EventSubscription", "esb_1", owner=record("EventSubscription/s", {}))
    bound = {"EventSource/x": Binding("esb_1/b.v0", replaces="esb_1/a.v0")}
    made = make_plan(
        declare("EventSubscription/s"),
        declare("EventSource/x", {"subscription_id": ref("EventSubscription/s"), "type": "c.v0"}),
        seen=snapshot(subscription, *sources, bindings=bound),
        options=LENIENT,
    )
    assert needs_of(made, "create EventSource/x") == {"delete EventSource/x esb_1/a.v0"}
    assert needs_of(made, "delete EventSource/x esb_1/b.v0") == {"create EventSource/x"}
    settled = make_plan(
        declare("EventSubscription/s"),
        declare("EventSource/x", {"subscription_id": ref("EventSubscription/s"), "type": "b.v0"}),
        seen=snapshot(subscription, *sources, bindings=bound),
        options=LENIENT,
    )
    assert [call.id for call in settled.calls] == ["delete EventSource/x esb_1/a.v0"]
    keys = [live("SSHCredential", f"k{n}", {"public_key": KEYS[n]}, owner=key_record(n)) for n in (0, 1)]
    made = make_plan(key("a", 2), seen=snapshot(*keys), options=LENIENT)
    assert needs_of(made, "create SSHCredential/a") == set()
    assert needs_of(made, "delete SSHCredential/a k0") == {"create SSHCredential/a"}


def key_record(number: int) -> Owner:
    replaced = {"replaces": "k0"} if number else {}
    return record("SSHCredential/a", {"public_key": KEYS[number]}, intent=f"i{number}", **replaced)


# --- rings ------------------------------------------------------------------------------------------------------------


def test_declarations_that_refer_to_each_other_are_a_problem_that_names_the_ring() -> None:
    one = declare("FailoverBackend/a", {"backends": [ref("FailoverBackend/b")]})
    two = declare("FailoverBackend/b", {"backends": [ref("FailoverBackend/a")]})
    made = make_plan(one, two)
    assert errors(made) == ["circular reference: FailoverBackend/a → FailoverBackend/b → FailoverBackend/a"]


@pytest.mark.parametrize("turned", [False, True])
def test_the_ring_is_told_the_same_whatever_the_order_of_the_manifest(turned: bool) -> None:
    names = "abcde"
    row = [
        declare(f"FailoverBackend/{name}", {"backends": [ref(f"FailoverBackend/{name}") for name in names]})
        for name in names
    ]
    made = make_plan(*(reversed(row) if turned else row))
    assert errors(made) == [
        "circular reference: FailoverBackend/a → FailoverBackend/b → FailoverBackend/a",
        "circular reference: FailoverBackend/c → FailoverBackend/d → FailoverBackend/c",
        "its change is skipped, since it refers to FailoverBackend/a, which cannot be planned",
    ]


def test_a_plan_says_nothing_of_order_where_there_is_none() -> None:
    made = make_plan(declare("IPPolicy/a"), declare("IPPolicy/b"))
    assert [call.needs for call in made.calls] == [(), ()]
    assert requests(made) == ["POST /ip_policies", "POST /ip_policies"]


# --- edges and endpoints ----------------------------------------------------------------------------------------------


def endpoint(name: str, host: str, **more: Any) -> Declaration:
    return declare(f"CloudEndpoint/{name}", {"url": f"https://{host}", "traffic_policy": "{}", **more})


HOSTS = [domain("a.x"), domain("b.x")]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([web("e", "a.x")], [endpoint("p", "a.x")]),
        ([endpoint("p", "a.x")], [web("e", "a.x")]),
        ([web("e", "a.x"), endpoint("p", "b.x")], [web("e", "b.x"), endpoint("p", "a.x")]),
        (
            [endpoint("p", "a.x", pooling_enabled=True), endpoint("q", "a.x", pooling_enabled=True)],
            [web("e", "a.x"), endpoint("q", "b.x", pooling_enabled=True)],
        ),
    ],
    ids=["to an endpoint", "to an edge", "exchanged", "from a pool"],
)
def test_a_host_is_let_go_by_an_edge_or_an_endpoint_before_the_other_takes_it(
    before: list[Declaration], after: list[Declaration]
) -> None:
    apply_to(settle(*HOSTS, *before), *HOSTS, *after)


def pool(*names: str) -> list[Declaration]:
    return [endpoint(name, "a.x", pooling_enabled=True) for name in names]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([endpoint("z", "a.x")], pool("a", "z")),
        ([endpoint("a", "a.x")], pool("a", "z")),
        (pool("a", "z"), [endpoint("z", "a.x")]),
        (pool("a", "z"), [endpoint("a", "a.x")]),
        (pool("a", "z"), [endpoint("a", "b.x"), endpoint("z", "a.x")]),
        ([endpoint("z", "a.x")], [endpoint("z", "b.x"), *pool("a", "b")]),
    ],
    ids=["before it", "after it", "one stays", "the other stays", "one moves away", "another pool"],
)
def test_endpoints_share_a_url_only_with_those_that_share_it_too(
    before: list[Declaration], after: list[Declaration]
) -> None:
    apply_to(settle(*HOSTS, *before), *HOSTS, *after)


def test_what_leaves_a_pool_and_is_made_anew_goes_first() -> None:
    world = settle(*HOSTS, *pool("a"))
    made = plan_on(world, *HOSTS, endpoint("a", "a.x"), options=replace_options("CloudEndpoint/a"))
    assert made.errors == ()
    world.carry_out(made)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([], [endpoint("z", "a.x"), *pool("a")]),
        ([], [*pool("z"), endpoint("a", "a.x")]),
        ([endpoint("z", "a.x")], [endpoint("z", "a.x"), *pool("a")]),
        (pool("a", "z"), [*pool("a"), endpoint("z", "a.x")]),
    ],
)
def test_one_that_shares_its_url_and_one_that_does_not_are_told_of(
    before: list[Declaration], after: list[Declaration]
) -> None:
    (problem,) = plan_on(settle(*HOSTS, *before), *HOSTS, *after).errors
    assert "https://a.x already" in problem.text
    assert problem.text.endswith("on one object at a time, or on several that all set pooling_enabled")
    assert problem.remedy.endswith(", or set pooling_enabled in both")


def test_a_pool_that_is_left_to_others_stays_one() -> None:
    there = [*pool("a", "z")]
    world = settle(*HOSTS, *there)
    left = declare(
        "CloudEndpoint/a",
        {"url": "https://a.x", "traffic_policy": "{}", "description": "new"},
        ignore=("pooling_enabled",),
    )
    apply_to(world, *HOSTS, left, there[1])


@pytest.mark.parametrize("stays", ["p", "q"])
def test_an_edge_does_not_come_to_where_one_of_a_pool_stays(stays: str) -> None:
    pool = {name: endpoint(name, "a.x", pooling_enabled=True) for name in ("p", "q")}
    world = settle(*HOSTS, *pool.values())
    assert len(plan_on(world, *HOSTS, pool[stays], web("e", "a.x")).errors) == 1


@pytest.mark.parametrize("there", [[], [web("e", "a.x")], [endpoint("p", "a.x")]])
def test_an_edge_and_an_endpoint_at_one_host_are_a_problem(there: list[Declaration]) -> None:
    world = settle(*HOSTS, *there)
    made = plan_on(world, *HOSTS, web("e", "a.x"), endpoint("p", "a.x"))
    assert len(made.errors) == 1
    assert made.errors[0].text.endswith("a.x:443 already, and the platform allows it on one object at a time")
    assert not made.errors[0].remedy.endswith("in both")


# --- replacements that have to make room ------------------------------------------------------------------------------


def replace_options(*addresses: str) -> PlanOptions:
    return replace(LENIENT, to_replace=frozenset(map(at, addresses)))


def test_what_cannot_do_without_what_goes_first_goes_before_it() -> None:
    bot, credential = declare("BotUser/ci", {"name": "ci"}), {"owner_id": ref("BotUser/ci"), "description": "ci"}
    declared = [bot, declare("TunnelCredential/ci", credential)]
    world = settle(*declared)
    made = plan_on(world, *declared, options=replace_options("BotUser/ci"))
    assert errors(made) == []
    assert [call.id.rpartition(" ")[0] if call.verb is Verb.DELETE else call.id for call in made.calls] == [
        "delete TunnelCredential/ci",
        "delete BotUser/ci",
        "create BotUser/ci",
        "create TunnelCredential/ci",
        "complete TunnelCredential/ci",
    ]
    world.carry_out(made)
    assert plan_on(world, *declared).is_empty


def test_two_that_are_made_anew_trade_their_keys() -> None:
    of = {"ip_policy_id": ref("IPPolicy/office")}
    cidrs, actions = ("10.0.0.0/8", "11.0.0.0/8"), ("allow", "deny")

    def both(first: int, second: int) -> list[Declaration]:
        spec = [{**of, "cidr": cidrs[each], "action": actions[each]} for each in (first, second)]
        return [declare("IPPolicy/office"), declare("IPPolicyRule/a", spec[0]), declare("IPPolicyRule/b", spec[1])]

    world = settle(*both(0, 1))
    apply_to(world, *both(1, 0))


def test_what_stays_on_what_goes_first_is_a_problem_and_not_a_failure_half_way() -> None:
    declared = [domain("a.example.com"), edge("e", "a.example.com")]
    world = settle(*declared)
    made = plan_on(world, *declared, options=replace_options("ReservedDomain/a"))
    assert [(error.subject, error.remedy) for error in made.errors] == [
        ("ReservedDomain/a", "remove the reference from TLSEdge/e first, or replace it too: --replace TLSEdge/e")
    ]
    world.carry_out(plan_on(world, *declared, options=replace_options("ReservedDomain/a", "TLSEdge/e")))
    assert plan_on(world, *declared).is_empty
