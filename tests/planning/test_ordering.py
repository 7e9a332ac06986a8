"""Which call waits for which. An account in memory refuses calls that come too early or too late."""

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
from tests.harness.builders import (
    LENIENT,
    apply_to,
    at,
    body_of,
    build_account,
    call_of,
    declare,
    errors,
    id_of,
    index_of,
    live,
    make_plan,
    plan_on,
    record,
    ref,
    requests,
    secret,
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
    parent, more = {"ip_policy_id": ref("IPPolicy/office"), "action": "allow"}, lifecycle or {}
    declared = (declare(f"IPPolicyRule/{name}", {**parent, "cidr": cidr}, **more) for name, cidr in cidrs.items())
    return [declare("IPPolicy/office"), *declared]


def needs_of(plan: Plan, call: str) -> set[str]:
    return next(set(candidate.needs) for candidate in plan.calls if candidate.id == call)


def key(name: str, number: int, **more: Any) -> Declaration:
    return declare(f"SSHCredential/{name}", {"public_key": KEYS[number]}, **more)


# --- references -------------------------------------------------------------------------------------------------------


def test_a_referenced_object_is_created_before_its_referrer_and_deleted_after_it() -> None:
    policy = declare("IPPolicy/p")
    world = build_account(policy, declare("TLSEdge/a", {"ip_restriction": {"ip_policy_ids": [ref("IPPolicy/p")]}}))
    assert world.log == ["create IPPolicy/p", "create TLSEdge/a"]
    apply_to(world)
    assert [entry.split(" ")[1] for entry in world.log] == ["TLSEdge/a", "IPPolicy/p"]


def test_a_replaced_authority_is_detached_from_an_edge_before_it_is_deleted() -> None:
    edge = declare("TLSEdge/e", {"mutual_tls": {"certificate_authority_ids": [ref("CertificateAuthority/a")]}})
    world = build_account(declare("CertificateAuthority/a", {"ca_pem": "OLD"}), edge)
    old = id_of(world, "CertificateAuthority")
    apply_to(world, declare("CertificateAuthority/a", {"ca_pem": "NEW"}), edge)
    assert world.log == ["create CertificateAuthority/a", "update TLSEdge/e", f"delete CertificateAuthority/a {old}"]


def test_a_reserved_address_is_created_before_the_edge_that_uses_it() -> None:
    world = build_account(
        declare("ReservedAddress/ssh"), declare("TCPEdge/ssh", {"hostports": [ref("ReservedAddress/ssh", "addr")]})
    )
    assert body_of(world, "TCPEdge")["hostports"] == [body_of(world, "ReservedAddress")["addr"]]


def test_an_edge_is_deleted_before_its_domain() -> None:
    world = build_account(domain("a.x"), edge("e", "a.x"))
    apply_to(world)
    assert [entry.split(" ")[1] for entry in world.log] == ["TLSEdge/e", "ReservedDomain/a"]


def test_an_edge_is_detached_from_a_domain_before_the_domain_is_deleted() -> None:
    world = build_account(domain("a.x"), domain("b.x"), edge("e", "a.x", "b.x"))
    apply_to(world, domain("b.x"), edge("e", "b.x"))
    assert world.log[0] == "update TLSEdge/e"


def test_an_updated_edge_that_retains_a_host_name_is_reported_as_a_user_of_the_domain() -> None:
    world = build_account(domain("a.x"), domain("b.x"), edge("e", "a.x", "b.x"))
    plan = plan_on(world, domain("b.x"), edge("e", "a.x"))
    assert [(problem.subject, problem.code, str(problem.severity)) for problem in plan.problems] == [
        ("ReservedDomain/a", "still-in-use", "warning")
    ]
    forced = plan_on(world, domain("a.x"), domain("b.x"), edge("e", "a.x"), options=replace_options("ReservedDomain/a"))
    assert [(problem.code, str(problem.severity)) for problem in forced.problems] == [("still-in-use", "error")]


def test_an_absent_edge_is_deleted_before_its_absent_domain() -> None:
    world = build_account(domain("a.x"), edge("e", "a.x"))
    apply_to(world, *(replace(declaration, ensure=Ensure.ABSENT) for declaration in (domain("a.x"), edge("e", "a.x"))))
    assert [entry.split(" ")[1] for entry in world.log] == ["TLSEdge/e", "ReservedDomain/a"]


def test_an_edge_is_detached_from_an_absent_domain_before_the_domain_is_deleted() -> None:
    world = build_account(domain("a.x"), domain("b.x"), edge("e", "a.x", "b.x"))
    apply_to(world, replace(domain("a.x"), ensure=Ensure.ABSENT), domain("b.x"), edge("e", "b.x"))
    assert world.log[0] == "update TLSEdge/e"


def test_independent_deletes_come_last_and_in_reverse_order() -> None:
    world = build_account(*(declare(f"IPPolicy/{name}") for name in "abcd"))
    plan = plan_on(world, *(declare(f"IPPolicy/{name}", {"description": "new"}) for name in "bez"))
    assert [call.id.partition(" ipp_")[0] for call in plan.calls] == [
        "update IPPolicy/b",
        "create IPPolicy/e",
        "create IPPolicy/z",
        "delete IPPolicy/d",
        "delete IPPolicy/c",
        "delete IPPolicy/a",
    ]
    assert {call.needs for call in plan.calls} == {()}


def edge_with_policies(id: str, *policies: str, owner: Owner | None = None) -> Any:
    return live("TLSEdge", id, {"ip_restriction": {"ip_policies": [{"id": id} for id in policies]}}, owner=owner)


def test_a_delete_waits_for_each_managed_referrer_even_if_an_unmanaged_one_remains() -> None:
    policies = [live("IPPolicy", f"ipp_{n}", owner=record(f"IPPolicy/{n}", {})) for n in (1, 2)]
    unmanaged, managed = (
        edge_with_policies("e_1", "ipp_9", "ipp_2"),
        edge_with_policies("e_2", "ipp_1", "ipp_2", owner=record("TLSEdge/e", {})),
    )
    rule = live("IPPolicyRule", "ipr_1", {"ip_policy": {"id": "ipp_1"}}, owner=record("IPPolicyRule/r", {}))
    plan = make_plan(seen=snapshot(*policies, unmanaged, managed, rule), options=LENIENT)
    edge = "delete TLSEdge/e e_2"
    assert needs_of(plan, "delete IPPolicy/1 ipp_1") == {edge, "delete IPPolicyRule/r ipr_1"}
    assert needs_of(plan, "delete IPPolicy/2 ipp_2") == {edge}
    assert needs_of(plan, edge) == set()


def test_parts_are_deleted_before_their_parent() -> None:
    edge = live("HTTPSEdge", "e_1", owner=record("HTTPSEdge/e", {}))
    route = live("HTTPSEdgeRoute", "r_1", {"match": "/x"}, owner=record("HTTPSEdgeRoute/r", {}), parent="e_1")
    plan = make_plan(seen=snapshot(edge, route), options=LENIENT)
    assert needs_of(plan, "delete HTTPSEdge/e e_1") == {"delete HTTPSEdgeRoute/r e_1/r_1"}


def test_a_delete_of_a_vault_does_not_report_its_secrets_as_deleted() -> None:
    vault = live("Vault", "v_1", {"name": "v"}, owner=record("Vault/v", {}))
    plan = make_plan(
        seen=snapshot(vault, live("Secret", "s_1", {"name": "s", "vault": {"id": "v_1"}})), options=LENIENT
    )
    assert [str(problem) for problem in plan.problems] == [
        "warning: Vault/v: v_1 is still used by Secret s_1 (not managed by this stack); the platform will refuse to "
        "delete it; remove the reference from Secret s_1 first"
    ]


def test_an_unchanged_reference_is_no_problem_of_a_change() -> None:
    policy, edge = live("IPPolicy", "ipp_1", owner=record("IPPolicy/p", {})), {"ip_policy_ids": [ref("IPPolicy/p")]}
    plan = make_plan(declare("IPPolicy/p"), declare("TLSEdge/e", {"ip_restriction": edge}), seen=snapshot(policy))
    assert (len(plan.calls), plan.problems) == (1, ())


ROUTE = {"match": "/", "match_type": "exact_path"}


def warnings(plan: Plan) -> list[str]:
    return [str(problem) for problem in plan.problems]


def test_a_delete_of_a_parent_reports_the_managed_parts_that_it_deletes() -> None:
    edge, route = declare("HTTPSEdge/e"), declare("HTTPSEdgeRoute/r", {"edge_id": ref("HTTPSEdge/e"), **ROUTE})
    world = build_account(edge, route)
    plan = plan_on(world, options=replace(LENIENT, targets=("HTTPSEdge/e",)))
    assert requests(plan) == [f"DELETE /edges/https/{id_of(world, 'HTTPSEdge')}"]
    assert warnings(plan) == ["warning: HTTPSEdge/e: also deletes HTTPSEdgeRoute/r, which is part of it"]


@pytest.mark.parametrize(
    ("declared", "options", "why"),
    [
        (True, replace(LENIENT, targets=("HTTPSEdge/e",)), "is declared"),
        (False, replace(LENIENT, excludes=("HTTPSEdgeRoute/*",)), "is excluded"),
    ],
)
def test_a_declared_or_excluded_part_prevents_the_delete_of_its_parent(
    declared: bool, options: PlanOptions, why: str
) -> None:
    edge, route = declare("HTTPSEdge/e"), declare("HTTPSEdgeRoute/r", {"edge_id": ref("HTTPSEdge/e"), **ROUTE})
    world = build_account(edge, route)
    id = id_of(world, "HTTPSEdge")
    rest = [declare("HTTPSEdgeRoute/r", {"edge_id": id, **ROUTE})] if declared else []
    problems = [(error.subject, error.text) for error in plan_on(world, *rest, options=options).errors]
    assert problems == [("HTTPSEdgeRoute/r", f"{why}, but would be deleted with HTTPSEdge/e, which it is part of")]


def test_an_excluded_source_and_a_forgotten_route_prevent_the_delete_of_their_parent() -> None:
    subscription = declare("EventSubscription/s", {"destination_ids": [], "description": "x"})
    source = declare("EventSource/x", {"subscription_id": ref("EventSubscription/s"), "type": "ip_policy_created.v0"})
    world = build_account(subscription, source)
    plan = plan_on(world, options=replace(LENIENT, excludes=("EventSource/*",)))
    assert [error.subject for error in plan.errors] == ["EventSource/x"]
    edge, route = declare("HTTPSEdge/e"), declare("HTTPSEdgeRoute/r", {"edge_id": ref("HTTPSEdge/e"), **ROUTE})
    world = build_account(edge, route)
    forgotten = replace(route, spec={"edge_id": id_of(world, "HTTPSEdge"), **ROUTE}, ensure=Ensure.FORGOTTEN)
    assert [error.subject for error in plan_on(world, forgotten).errors] == ["HTTPSEdgeRoute/r"]


def test_a_policy_used_by_an_unmanaged_restriction_is_deleted_before_its_rules() -> None:
    world = build_account(*rules(home="1.1.1.1/32"))
    restriction_of_account = live(
        "IPRestriction", "ipx_1", {"type": "api", "ip_policies": [{"id": id_of(world, "IPPolicy")}]}
    )
    seen = snapshot(*(live_object for kind in world.kinds for live_object in world.live(kind)), restriction_of_account)
    plan = make_plan(seen=seen, options=LENIENT)
    assert [call.id.rpartition(" ")[0] for call in plan.calls] == ["delete IPPolicy/office", "delete IPPolicyRule/home"]
    assert plan.calls[1].needs == (plan.calls[0].id,)


EDGES = {"TLSEdge": "edges/tls", "TCPEdge": "edges/tcp"}


@pytest.mark.parametrize("kind", EDGES)
def test_an_edge_switches_policies_after_new_rules_and_before_old_rules_are_deleted(kind: str) -> None:
    edge = declare(f"{kind}/e", {"ip_restriction": {"ip_policy_ids": [ref("IPPolicy/office")]}})
    world = build_account(*rules(home="1.1.1.1/32"), edge)
    new = [
        declare("IPPolicy/new"),
        declare("IPPolicyRule/new", {"ip_policy_id": ref("IPPolicy/new"), "action": "deny", "cidr": "2.2.2.2/32"}),
        declare(f"{kind}/e", {"ip_restriction": {"ip_policy_ids": [ref("IPPolicy/new")]}}),
    ]
    plan = plan_on(world, *new)
    switch = next(call for call in plan.calls if call.address.kind == kind)
    old_delete = next(call for call in plan.calls if call.id.startswith("delete IPPolicyRule/home"))
    assert "create IPPolicyRule/new" in switch.needs
    assert switch.id in old_delete.needs


def test_a_delete_of_a_policy_reports_the_rules_that_it_deletes() -> None:
    world = build_account(*rules(home="1.1.1.1/32", work="2.2.2.2/32"))
    plan = plan_on(world, options=replace(LENIENT, targets=("IPPolicy/*",)))
    assert warnings(plan) == [
        "warning: IPPolicy/office: also deletes IPPolicyRule/home, which is part of it",
        "warning: IPPolicy/office: also deletes IPPolicyRule/work, which is part of it",
    ]


@pytest.mark.parametrize(
    ("owner", "owner_text"),
    [
        (None, "HTTPSEdgeRoute rt_1 (not managed by this stack)"),
        (record("HTTPSEdgeRoute/x", {}, stack="other"), "HTTPSEdgeRoute rt_1 (managed by stack 'other')"),
    ],
)
def test_a_delete_of_a_parent_reports_the_owner_of_each_part(owner: Owner | None, owner_text: str) -> None:
    edge = live("HTTPSEdge", "e_1", owner=record("HTTPSEdge/e", {}))
    route = live("HTTPSEdgeRoute", "rt_1", {"edge_id": "e_1"}, owner=owner, parent="e_1")
    plan = make_plan(seen=snapshot(edge, route), options=LENIENT)
    assert warnings(plan) == [f"warning: HTTPSEdge/e: also deletes {owner_text}, which is part of it"]


def test_a_part_that_the_same_plan_deletes_is_not_reported() -> None:
    world = build_account(declare("HTTPSEdge/e"), declare("HTTPSEdgeRoute/r", {"edge_id": ref("HTTPSEdge/e"), **ROUTE}))
    assert warnings(plan_on(world)) == []


@pytest.mark.parametrize("declared", [{}, {"description": "Audit"}])
def test_undeclared_sources_require_approval_to_be_deleted_with_their_subscription(declared: dict[str, Any]) -> None:
    subscription = live("EventSubscription", "esb_1", declared, owner=record("EventSubscription/s", declared))
    source = live("EventSource", "ip_policy_created.v0", parent="esb_1")
    plan = make_plan(seen=snapshot(subscription, source), options=replace(LENIENT, allow={}, destroy=True))
    assert warnings(plan) == [
        "warning: EventSubscription/s: "
        "also deletes EventSource ip_policy_created.v0 (not managed by this stack), which is part of it"
    ]
    assert [(approval.flag, approval.granted) for approval in plan.approvals] == [
        ("--allow delete:EventSource=1", False)
    ]


# As the first version wrote it, in which the sources were a field of the subscription.
RECORD_WITH_SOURCES = record("EventSubscription/s", {})._replace(applied={"sources": "x"})


def test_sources_declared_by_their_subscription_are_deleted_without_a_warning() -> None:
    sources = {"sources": [{"type": "ip_policy_created.v0"}]}
    subscription = live("EventSubscription", "esb_1", sources, owner=RECORD_WITH_SOURCES)
    source = live("EventSource", "ip_policy_created.v0", parent="esb_1")
    plan = make_plan(seen=snapshot(subscription, source), options=replace(LENIENT, allow={}, destroy=True))
    assert (warnings(plan), plan.approvals) == ([], ())


def test_a_bound_source_is_reported_even_if_the_subscription_declared_it() -> None:
    sources = {"sources": [{"type": "ip_policy_created.v0"}]}
    subscription = live("EventSubscription", "esb_1", sources, owner=RECORD_WITH_SOURCES)
    source = live("EventSource", "ip_policy_created.v0", parent="esb_1")
    seen = snapshot(subscription, source, bindings={"EventSource/x": Binding("esb_1/ip_policy_created.v0")})
    plan = make_plan(seen=seen, options=replace(LENIENT, targets=("EventSubscription/s",)))
    assert warnings(plan) == ["warning: EventSubscription/s: also deletes EventSource/x, which is part of it"]


def test_a_source_bound_by_another_stack_is_reported_even_if_it_is_declared() -> None:
    sources = {"sources": [{"type": "ip_policy_created.v0"}]}
    subscription = live("EventSubscription", "esb_1", sources, owner=RECORD_WITH_SOURCES)
    source = live("EventSource", "ip_policy_created.v0", parent="esb_1")
    seen = replace(snapshot(subscription, source), elsewhere={source.key: "other"})
    plan = make_plan(seen=seen, options=replace(LENIENT, allow={}, destroy=True))
    assert warnings(plan) == [
        "warning: EventSubscription/s: "
        "also deletes EventSource ip_policy_created.v0 (managed by stack 'other'), which is part of it"
    ]
    assert [(approval.flag, approval.granted) for approval in plan.approvals] == [
        ("--allow delete:EventSource=1", False)
    ]


def test_an_object_that_uses_a_policy_twice_is_reported_once() -> None:
    policy = live("IPPolicy", "ipp_1", owner=record("IPPolicy/p", {}))
    twice = {"ip_restriction": {"ip_policies": [{"id": "ipp_1"}, {"id": "ipp_1"}]}}
    plan = make_plan(seen=snapshot(policy, live("TLSEdge", "edgtls_9", twice)), options=LENIENT)
    assert len(warnings(plan)) == 1


def test_a_managed_user_of_a_deleted_object_is_named_by_its_address() -> None:
    policy = live("IPPolicy", "ipp_1", owner=record("IPPolicy/p", {}))
    restriction = {"ip_restriction": {"ip_policies": [{"id": "ipp_1"}]}}
    managed = live("TLSEdge", "edgtls_9", restriction, owner=record("TLSEdge/e", {}))
    plan = make_plan(seen=snapshot(policy, managed), options=replace(LENIENT, targets=("IPPolicy/p",)))
    assert warnings(plan) == [
        "warning: IPPolicy/p: ipp_1 is still used by TLSEdge/e; the platform will refuse to delete it;"
        " remove the reference from TLSEdge/e first"
    ]


def test_an_unmanaged_user_of_a_deleted_object_is_named_by_its_id() -> None:
    policy = live("IPPolicy", "ipp_1", owner=record("IPPolicy/p", {}))
    unmanaged = live("TLSEdge", "edgtls_9", {"ip_restriction": {"ip_policies": [{"id": "ipp_1"}]}})
    plan = make_plan(seen=snapshot(policy, unmanaged), options=LENIENT)
    assert [problem.text for problem in plan.problems] == [
        "ipp_1 is still used by TLSEdge edgtls_9 (not managed by this stack); the platform will refuse to delete it"
    ]


def test_an_updated_edge_that_retains_a_deleted_policy_is_reported_as_its_user() -> None:
    policy = live("IPPolicy", "ipp_1", owner=record("IPPolicy/p", {}))
    was = {"ip_restriction": {"ip_policy_ids": ["ipp_1"]}}
    live_edge = live(
        "TLSEdge", "e", {"ip_restriction": {"ip_policies": [{"id": "ipp_1"}]}}, owner=record("TLSEdge/e", was)
    )
    plan = make_plan(
        declare("TLSEdge/e", {"ip_restriction": {"ip_policy_ids": ["ipp_1", "ipp_2"]}}),
        seen=snapshot(policy, live("IPPolicy", "ipp_2"), live_edge),
        options=LENIENT,
    )
    assert [(problem.code, str(problem.severity)) for problem in plan.problems] == [("still-in-use", "warning")]
    assert "--replace" not in plan.problems[0].remedy, "a delete needs no replacement of what refers to it"


def test_an_unchanged_referrer_of_an_unplannable_resource_has_no_problem() -> None:
    def declarations(pem: str, description: str) -> list[Declaration]:
        trusted = {"mutual_tls": {"certificate_authority_ids": [ref("CertificateAuthority/a")]}}
        authority = declare("CertificateAuthority/a", {"ca_pem": pem}, replace=False)
        return [authority, declare("TLSEdge/e", {**trusted, "description": description})]

    world = build_account(*declarations("OLD", "one"))
    assert [problem.subject for problem in plan_on(world, *declarations("NEW", "one")).problems] == [
        "CertificateAuthority/a"
    ]
    beside = plan_on(world, *declarations("NEW", "one"), declare("IPPolicy/new"))
    assert [problem.subject for problem in beside.problems] == ["CertificateAuthority/a"]
    problems = plan_on(world, *declarations("NEW", "two")).problems
    assert {problem.subject for problem in problems} == {"CertificateAuthority/a", "TLSEdge/e"}


def test_problems_have_one_order_for_any_order_of_the_lists() -> None:
    policies = [live("IPPolicy", f"ipp_{n}", owner=record(f"IPPolicy/{n}", {})) for n in range(3)]
    users = [
        live("TLSEdge", f"e{n}", {"ip_restriction": {"ip_policies": [{"id": f"ipp_{n}"} for n in range(3)]}})
        for n in range(3)
    ]
    one = make_plan(seen=snapshot(*policies, *users), options=LENIENT)
    two = make_plan(seen=snapshot(*reversed(users), *reversed(policies)), options=LENIENT)
    assert len(one.problems) == 9
    assert one == two


# --- exclusive keys ---------------------------------------------------------------------------------------------------


def test_a_hostport_is_released_before_another_edge_is_updated_with_it() -> None:
    domains = [domain("a.x"), domain("b.x")]
    world = build_account(*domains, edge("z", "a.x", "b.x"), edge("a"))
    apply_to(world, *domains, edge("z", "b.x"), edge("a", "a.x"))
    assert world.log == ["update TLSEdge/z", "update TLSEdge/a"]


def test_a_hostport_is_released_before_a_new_edge_is_created_with_it() -> None:
    world = build_account(domain("a.x"), edge("z", "a.x"))
    apply_to(world, domain("a.x"), edge("z"), edge("a", "a.x"))
    assert world.log == ["update TLSEdge/z", "create TLSEdge/a"]


def test_a_hostport_of_a_deleted_edge_is_free_for_an_edge_of_another_kind() -> None:
    world = build_account(domain("a.x"), edge("z", "a.x"))
    apply_to(world, domain("a.x"), declare("HTTPSEdge/a", {"hostports": ["a.x:443"]}))
    assert [entry.split(" ")[0] for entry in world.log] == ["delete", "create"]


def cloud(url: str) -> Declaration:
    return declare("CloudEndpoint/c", {"url": url, "traffic_policy": "p"})


def test_an_https_endpoint_and_a_tls_edge_can_share_a_host() -> None:
    world = build_account(domain("a.x"), cloud("https://a.x"), edge("a", "a.x"))
    assert requests(plan_on(world, domain("a.x"), cloud("https://a.x"), edge("a", "a.x"))) == []


@pytest.mark.parametrize(
    ("kind", "url"),
    [("HTTPSEdge", "https://a.x"), ("TLSEdge", "tls://a.x"), ("HTTPSEdge", "tls://a.x"), ("TLSEdge", "http://a.x:443")],
)
def test_no_other_endpoint_and_edge_can_share_a_host(kind: str, url: str) -> None:
    declared_edge = declare(f"{kind}/a", {"hostports": ["a.x:443"]})
    for first, second in ((declared_edge, cloud(url)), (cloud(url), declared_edge)):
        world = build_account(domain("a.x"), first)
        (problem,) = errors(plan_on(world, domain("a.x"), first, second))
        assert "a.x:443 already" in problem


def test_hostports_that_move_along_a_chain_of_edges_are_released_first() -> None:
    domains = [domain(f"{name}.x") for name in "abc"]
    world = build_account(*domains, edge("1", "a.x"), edge("2", "b.x"), edge("3", "c.x"))
    apply_to(world, *domains, edge("1"), edge("2", "a.x"), edge("3", "b.x"))
    assert world.log == ["update TLSEdge/1", "update TLSEdge/2", "update TLSEdge/3"]


def test_two_edges_that_swap_hostports_release_one_first() -> None:
    domains = [domain("a.x"), domain("b.x")]
    world = build_account(*domains, edge("1", "a.x"), edge("2", "b.x"))
    plan = plan_on(world, *domains, edge("1", "b.x"), edge("2", "a.x"))
    assert [(call.id, dict(call.body or {})) for call in plan.calls] == [
        ("release hostports of TLSEdge/1", {"hostports": []}),
        ("update TLSEdge/2", {"hostports": ["a.x:443"]}),
        ("update TLSEdge/1", {"hostports": ["b.x:443"]}),
    ]


def test_an_edge_releases_only_the_hostports_that_others_need() -> None:
    domains = [domain("a.x"), domain("b.x"), domain("c.x")]
    world = build_account(*domains, edge("1", "a.x", "c.x"), edge("2", "b.x"))
    apply_to(world, *domains, edge("1", "b.x", "c.x"), edge("2", "a.x"))
    assert world.log[0] == "release hostports of TLSEdge/1"


def test_edges_that_rotate_hostports_in_a_cycle_are_all_updated() -> None:
    domains = [domain("a.x"), domain("b.x"), domain("c.x")]
    world = build_account(*domains, edge("1", "a.x"), edge("2", "b.x"), edge("3", "c.x"))
    apply_to(world, *domains, edge("1", "b.x"), edge("2", "c.x"), edge("3", "a.x"))


def test_one_of_two_rules_that_swap_networks_is_replaced() -> None:
    world = build_account(*rules(a="10.0.0.0/8", b="11.0.0.0/8"))
    old = id_of(world, "IPPolicyRule")
    apply_to(world, *rules(a="11.0.0.0/8", b="10.0.0.0/8"))
    assert world.log == [f"delete IPPolicyRule/a {old}", "update IPPolicyRule/b", "create IPPolicyRule/a"]


def test_rules_that_must_not_be_replaced_cannot_swap_networks() -> None:
    world = build_account(*rules(a="10.0.0.0/8", b="11.0.0.0/8"))
    plan = plan_on(world, *rules(a="11.0.0.0/8", b="10.0.0.0/8", lifecycle={"replace": False}))
    (problem,) = plan.errors
    assert plan.calls == ()
    assert (
        problem.remedy == "apply the change in two steps: first release the values, then set them on the other objects"
    )


def test_a_protected_rule_is_not_deleted_to_break_a_cycle() -> None:
    both = {"protect": True}
    world = build_account(*rules(a="10.0.0.0/8", b="11.0.0.0/8", lifecycle=both))
    refused = plan_on(world, *rules(a="11.0.0.0/8", b="10.0.0.0/8"))
    assert [problem.code for problem in refused.errors] == ["circular-calls"]
    assert refused.calls == ()


@pytest.mark.parametrize("secrets", [0, 1])
def test_vaults_that_swap_names_are_not_deleted_if_they_contain_secrets(secrets: int) -> None:
    def vaults(first: str, second: str) -> list[Declaration]:
        pair = [declare("Vault/1", {"name": first}), declare("Vault/2", {"name": second})]
        inside = [
            declare(f"Secret/{n}", {"vault_id": ref(f"Vault/{n}"), "name": "k", "value": secret("v")}) for n in (1, 2)
        ]
        return [*pair, *inside[: 2 * secrets]]

    plan = plan_on(build_account(*vaults("a", "b")), *vaults("b", "a"))
    assert bool(plan.errors) is bool(secrets)
    assert bool([call for call in plan.calls if call.verb is Verb.DELETE]) is not bool(secrets)


def test_a_rule_with_ignored_fields_is_not_deleted_to_break_a_cycle() -> None:
    ignoring = {"ignore": ["description"]}
    world = build_account(*rules(a="10.0.0.0/8", b="11.0.0.0/8", lifecycle=ignoring))
    plan = plan_on(world, *rules(a="11.0.0.0/8", b="10.0.0.0/8", lifecycle=ignoring))
    assert ([problem.code for problem in plan.errors], plan.calls) == (["circular-calls"], ())


def test_an_update_retains_the_id_of_the_replaced_object_in_the_owner_record() -> None:
    """Until the replaced object is deleted, only the owner record shows that it was replaced."""
    old = live("TLSEdge", "edgtls_1", owner=record("TLSEdge/a", {}, intent="i1"))
    new = live("TLSEdge", "edgtls_2", owner=record("TLSEdge/a", {}, intent="i2", replaces="edgtls_1"))
    plan = make_plan(declare("TLSEdge/a", {"description": "new"}), seen=snapshot(old, new), options=LENIENT)
    owner = call_of(plan, "update TLSEdge/a").owner
    assert owner is not None
    assert owner.replaces == "edgtls_1"


# --- parts of a parent ------------------------------------------------------------------------------------------------


def restriction(name: str, policy: str) -> Declaration:
    return declare(f"IPRestriction/{name}", {"type": "dashboard", "ip_policy_ids": [ref(f"IPPolicy/{policy}")]})


def test_a_restriction_is_created_after_the_rules_of_its_policy_and_deleted_before_them() -> None:
    whole = [*rules(a="10.0.0.0/8"), restriction("r", "office")]
    plan = make_plan(*whole)
    assert needs_of(plan, "create IPRestriction/r") >= {"create IPPolicyRule/a"}
    world = build_account(*whole)
    destroy_plan = plan_on(world)
    (rule,) = [call.id for call in destroy_plan.calls if call.address.kind == "IPPolicyRule"]
    assert any(need.startswith("delete IPRestriction/r") for need in needs_of(destroy_plan, rule))


@pytest.mark.parametrize("ensure", [Ensure.ABSENT, Ensure.PRESENT])
def test_an_absent_restriction_does_not_prevent_the_delete_of_the_rules_of_its_policy(ensure: Ensure) -> None:
    world = build_account(*rules(a="10.0.0.0/8"), restriction("r", "office"))
    plan = plan_on(world, declare("IPPolicy/office"), replace(restriction("r", "office"), ensure=ensure))
    assert len(plan.errors) == (0 if ensure is Ensure.ABSENT else 1)


def test_a_new_rule_of_a_used_policy_is_created_before_its_last_rule_is_deleted() -> None:
    world = build_account(*rules(a="10.0.0.0/8"), restriction("r", "office"))
    plan = plan_on(world, *rules(b="11.0.0.0/8"), restriction("r", "office"))
    (delete,) = [call.id for call in plan.calls if call.id.startswith("delete")]
    assert needs_of(plan, delete) >= {"create IPPolicyRule/b"}


def deny_rule(name: str, cidr: str) -> Declaration:
    return declare(f"IPPolicyRule/{name}", {"ip_policy_id": ref("IPPolicy/office"), "action": "deny", "cidr": cidr})


A, B = "10.0.0.0/8", "11.0.0.0/8"


def test_rules_that_are_all_replaced_do_not_empty_their_policy() -> None:
    world = build_account(*rules(a=A, b=B), restriction("r", "office"))
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
@pytest.mark.parametrize("is_restricted", [True, False], ids=["restricted", "to be restricted"])
def test_a_policy_that_would_lose_its_last_rule_is_a_problem(after: list[Declaration], is_restricted: bool) -> None:
    edge_with_policies = restriction("r", "office")
    world = build_account(*rules(a=A), *([edge_with_policies] if is_restricted else []))
    plan = plan_on(world, declare("IPPolicy/office"), *after, edge_with_policies)
    if not is_restricted and after and after[0].spec["action"] == "deny":
        assert plan.errors == ()  # the restriction is created after the new rule
        return
    (problem,) = plan.errors
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
def test_only_enforced_restrictions_require_a_rule(spec: dict[str, Any], blocked: bool) -> None:
    edge_with_policies = declare("IPRestriction/r", {**spec, "ip_policy_ids": [ref("IPPolicy/office")]})
    world = build_account(*rules(a=A), edge_with_policies)
    plan = plan_on(world, declare("IPPolicy/office"), deny_rule("a", A), edge_with_policies)
    assert bool(plan.errors) is blocked


@pytest.mark.parametrize("id", ["a reference", "an id"])
def test_the_last_rule_of_a_policy_is_deleted_if_restrictions_use_another_policy(id: str) -> None:
    other = [
        declare("IPPolicy/other"),
        declare("IPPolicyRule/o", {"ip_policy_id": ref("IPPolicy/other"), "action": "allow", "cidr": B}),
    ]
    live_objects = [*rules(a=A), *other]
    world = build_account(*live_objects, restriction("r", "other")) if id == "an id" else build_account(*live_objects)
    plan = plan_on(world, declare("IPPolicy/office"), *other, restriction("r", "other"))
    assert plan.errors == ()
    assert [call.address for call in plan.calls if call.verb is Verb.DELETE] == [at("IPPolicyRule/a")]


def test_an_edge_does_not_prevent_the_delete_of_the_last_rule_of_its_policy() -> None:
    edge = declare("TLSEdge/e", {"ip_restriction": {"ip_policy_ids": [ref("IPPolicy/office")]}})
    plan = plan_on(build_account(*rules(a=A), edge), declare("IPPolicy/office"), edge)
    assert (plan.problems, [str(call.address) for call in plan.calls]) == ((), ["IPPolicyRule/a"])


def test_replaced_rules_wait_for_a_rule_that_can_be_created_at_once() -> None:
    world = build_account(*rules(a=A, b=B), restriction("r", "office"))
    flips = [deny_rule("a", A), deny_rule("b", B)]
    free = declare("IPPolicyRule/c", {"ip_policy_id": ref("IPPolicy/office"), "action": "allow", "cidr": "12.0.0.0/8"})
    plan = plan_on(world, declare("IPPolicy/office"), *flips, free, restriction("r", "office"))
    deletes = [call for call in plan.calls if call.verb is Verb.DELETE]
    assert [set(call.needs) for call in deletes] == [{"create IPPolicyRule/c"}] * 2


def test_replaced_rules_wait_for_nothing_while_an_unmanaged_rule_remains() -> None:
    world = build_account(*rules(a=A, b=B), restriction("r", "office"))
    rule = {"ip_policy_id": id_of(world, "IPPolicy"), "cidr": "12.0.0.0/8", "action": "allow"}
    world.put(world.by_name["IPPolicyRule"], rule)
    plan = plan_on(world, declare("IPPolicy/office"), deny_rule("a", A), deny_rule("b", B), restriction("r", "office"))
    assert [set(call.needs) for call in plan.calls if call.verb is Verb.DELETE] == [set(), set()]


def test_a_route_is_deleted_without_waiting_for_a_new_route() -> None:
    edge = live("HTTPSEdge", "e_1", owner=record("HTTPSEdge/e", {}))
    spec = {"edge_id": "e_1", "match": "/declared", "match_type": "exact_path"}
    routes = [
        live("HTTPSEdgeRoute", name, {**spec, "match": f"/{name}"}, owner=route_record(name), parent="e_1")
        for name in ("old", "declared")
    ]
    plan = make_plan(
        declare("HTTPSEdge/e"),
        declare("HTTPSEdgeRoute/declared", spec),
        declare("HTTPSEdgeRoute/new", {**spec, "match": "/new"}),
        seen=snapshot(edge, *routes),
        options=LENIENT,
    )
    assert {call.id: call.needs for call in plan.calls} == {
        "create HTTPSEdgeRoute/new": (),
        "delete HTTPSEdgeRoute/old e_1/old": (),
    }


def route_record(name: str) -> Owner:
    spec = {"edge_id": "e_1", "match": f"/{name}", "match_type": "exact_path"}
    return record(f"HTTPSEdgeRoute/{name}", spec)


RULE = live("IPPolicyRule", "ipr_1", {"ip_policy": {"id": "ipp_1"}, "cidr": A}, owner=record("IPPolicyRule/r", {}))
UNMANAGED_RESTRICTION = live(
    "IPRestriction", "ipx_1", {"type": "dashboard", "enforced": True, "ip_policies": [{"id": "ipp_1"}]}
)


def test_the_last_rule_of_an_unmanaged_policy_is_reported_by_ids() -> None:
    plan = make_plan(seen=snapshot(live("IPPolicy", "ipp_1"), RULE, UNMANAGED_RESTRICTION), options=LENIENT)
    assert [(problem.subject, problem.text, problem.remedy) for problem in plan.errors] == [
        (
            "IPPolicyRule/r",
            "IPPolicy ipp_1 would be left without any IPPolicyRule for a moment, but IPRestriction ipx_1 requires one",
            "declare another IPPolicyRule of IPPolicy ipp_1 until this is applied, "
            "or remove IPPolicy ipp_1 from IPRestriction ipx_1 first",
        )
    ]


def test_a_deleted_policy_is_not_reported_as_losing_its_last_rule() -> None:
    policy = live("IPPolicy", "ipp_1", owner=record("IPPolicy/p", {}))
    plan = make_plan(seen=snapshot(policy, RULE, UNMANAGED_RESTRICTION), options=LENIENT)
    assert [problem.code for problem in plan.problems] == ["still-in-use"]


def test_a_last_rule_is_reported_where_it_is_declared() -> None:
    world = build_account(*rules(a=A), restriction("r", "office"))
    where = Position("rules.yaml", 7, 3)
    flipped = replace(deny_rule("a", A), position=where)
    for rule, position in (([flipped], where), ([], None)):
        (problem,) = plan_on(world, declare("IPPolicy/office"), *rule, restriction("r", "office")).errors
        assert (problem.subject, problem.position) == ("IPPolicyRule/a", position)


@pytest.mark.parametrize("id", ["a reference", "an id"])
def test_the_last_rule_is_replaced_beside_a_new_rule(id: str) -> None:
    world = build_account(*rules(a=A), restriction("r", "office"))
    policy = id_of(world, "IPPolicy") if id == "an id" else ref("IPPolicy/office")
    beside = declare("IPPolicyRule/b", {"ip_policy_id": policy, "action": "allow", "cidr": B})
    apply_to(world, declare("IPPolicy/office"), deny_rule("a", A), beside, restriction("r", "office"))
    apply_to(world, declare("IPPolicy/office"), deny_rule("a", A), restriction("r", "office"))


def test_an_unmanaged_rule_remains_while_the_last_managed_rule_is_replaced() -> None:
    world = build_account(*rules(a=A), restriction("r", "office"))
    rule = {"ip_policy_id": id_of(world, "IPPolicy"), "cidr": B, "action": "allow"}
    world.put(world.by_name["IPPolicyRule"], rule)
    apply_to(world, declare("IPPolicy/office"), deny_rule("a", A), restriction("r", "office"))


@pytest.mark.parametrize(
    ("owner", "holder", "remedy"),
    [
        (
            None,
            "TLSEdge edgtls_9",
            "adopt it (`reconciler adopt TLSEdge/a --id edgtls_9`), or remove it from TLSEdge edgtls_9",
        ),
        (
            record("TLSEdge/x", {}, stack="other"),
            "TLSEdge edgtls_9 of stack other",
            "remove it from TLSEdge edgtls_9 of stack other",
        ),
    ],
)
def test_the_holder_of_a_required_hostport_is_reported_with_a_remedy(
    owner: Owner | None, holder: str, remedy: str
) -> None:
    live_edge = live("TLSEdge", "edgtls_9", {"hostports": ["a.x:443"]}, owner=owner)
    problems = make_plan(edge("a", "a.x"), seen=snapshot(live_edge)).errors
    assert [(problem.text.partition(" has ")[0], problem.remedy) for problem in problems] == [(holder, remedy)]


def test_a_holder_of_another_kind_is_not_offered_for_adoption() -> None:
    live_edge = live("TLSEdge", "edgtls_9", {"hostports": ["a.x:443"]})
    problems = make_plan(web("a", "a.x"), seen=snapshot(live_edge)).errors
    assert [problem.remedy for problem in problems] == ["remove it from TLSEdge edgtls_9"]


def test_a_hostport_of_an_unmanaged_edge_is_a_problem_that_names_the_edge() -> None:
    plan = make_plan(edge("a", "a.x"), seen=snapshot(live("TLSEdge", "edgtls_9", {"hostports": ["A.x.:443"]})))
    assert errors(plan) == ["TLSEdge edgtls_9 has a.x:443 already, and the platform allows it on one object at a time"]


def test_a_hostport_that_two_edges_declare_is_a_problem() -> None:
    plan = make_plan(edge("a", "a.x"), edge("b", "a.x"))
    assert errors(plan) == ["TLSEdge/a takes a.x:443 already, and the platform allows it on one object at a time"]


def bot(address: str, name: str) -> Declaration:
    return declare(f"BotUser/{address}", {"name": name})


def test_a_name_is_released_before_another_bot_is_updated_with_it() -> None:
    world = build_account(bot("a", "x"), bot("b", "y"))
    apply_to(world, bot("a", "y"), bot("b", "z"))
    assert world.log == ["update BotUser/b", "update BotUser/a"]


def test_a_new_bot_is_created_after_its_name_is_released_for_any_order_of_addresses() -> None:
    for new, old in (("a", "b"), ("b", "a")):
        world = build_account(bot(old, "x"))
        apply_to(world, bot(old, "y"), bot(new, "x"))
        assert world.log == [f"update BotUser/{old}", f"create BotUser/{new}"]


def test_two_bots_that_swap_names_are_a_problem() -> None:
    world = build_account(bot("a", "x"), bot("b", "y"))
    plan = plan_on(world, bot("a", "y"), bot("b", "x"))
    assert (plan.calls, len(plan.errors)) == ((), 1)


@pytest.mark.parametrize(
    "first", [declare("IPPolicy/a"), declare("ReservedDomain/0", {"domain": "z.x"}, ensure=Ensure.ABSENT)]
)
def test_a_domain_is_created_before_an_edge_that_uses_its_host_for_any_other_declaration(first: Declaration) -> None:
    plan = make_plan(first, domain("a.x"), edge("e", "a.x"))
    assert needs_of(plan, "create TLSEdge/e") == {"create ReservedDomain/a"}


def test_a_name_of_an_unmanaged_bot_is_a_problem() -> None:
    world = build_account(bot("a", "x"))
    world.put(world.by_name["BotUser"], {"name": "y", "active": True})
    (problem,) = plan_on(world, bot("a", "y")).errors
    assert problem.text.endswith(" has y already, and the platform allows it on one object at a time")
    assert problem.remedy.startswith("remove it from BotUser ")


def test_a_rule_with_a_new_action_is_deleted_before_it_is_created_again() -> None:
    def rule(action: str) -> Declaration:
        return declare("IPPolicyRule/r", {"ip_policy_id": ref("IPPolicy/p"), "cidr": "10.0.0.0/8", "action": action})

    world = build_account(declare("IPPolicy/p"), rule("allow"))
    apply_to(world, declare("IPPolicy/p"), rule("deny"))
    assert [entry.split(" ")[0] for entry in world.log] == ["delete", "create"]


def test_a_key_of_an_absent_credential_is_free_for_a_new_declaration() -> None:
    world = build_account(key("old", 0))
    apply_to(world, key("old", 0, ensure=Ensure.ABSENT), key("new", 0))
    assert [entry.split(" ")[0] for entry in world.log] == ["delete", "create"]


def test_a_key_of_a_replaced_credential_is_free_for_a_new_one() -> None:
    world = build_account(key("b", 0))
    apply_to(world, key("b", 1), key("a", 0))
    assert [entry.split(" ")[:2] for entry in world.log] == [
        ["create", "SSHCredential/b"],
        ["delete", "SSHCredential/b"],
        ["create", "SSHCredential/a"],
    ]


def test_two_credentials_swap_keys_after_one_is_deleted() -> None:
    world = build_account(key("a", 0), key("b", 1))
    apply_to(world, key("a", 1), key("b", 0))


# --- interrupted replacements -----------------------------------------------------------------------------------------


def interrupt_after(world: Any, plan: Plan, after: str) -> None:
    """Executes a plan up to a call, as an interrupted run does."""
    world.carry_out(replace(plan, calls=plan.calls[: index_of(plan, after) + 1], bindings={}))


def test_a_replacement_interrupted_after_the_create_is_completed() -> None:
    edge = declare("TLSEdge/e", {"mutual_tls": {"certificate_authority_ids": [ref("CertificateAuthority/a")]}})
    world = build_account(declare("CertificateAuthority/a", {"ca_pem": "OLD"}), edge)
    new = [declare("CertificateAuthority/a", {"ca_pem": "NEW"}), edge]
    interrupt_after(world, plan_on(world, *new), "create CertificateAuthority/a")
    apply_to(world, *new)
    assert [body["ca_pem"] for (kind, _), body in world.objects.items() if kind == "CertificateAuthority"] == ["NEW"]
    assert world.log[-1].startswith("delete CertificateAuthority/a")


def test_a_replacement_interrupted_and_changed_again_is_completed() -> None:
    edge = declare("TLSEdge/e", {"mutual_tls": {"certificate_authority_ids": [ref("CertificateAuthority/a")]}})
    world = build_account(declare("CertificateAuthority/a", {"ca_pem": "ONE"}), edge)
    for pem in ("TWO", "THREE"):
        plan = plan_on(world, declare("CertificateAuthority/a", {"ca_pem": pem}), edge)
        interrupt_after(world, plan, "create CertificateAuthority/a")
    assert len([kind for kind, _ in world.objects if kind == "CertificateAuthority"]) == 3
    apply_to(world, declare("CertificateAuthority/a", {"ca_pem": "THREE"}), edge)
    assert body_of(world, "CertificateAuthority")["ca_pem"] == "THREE"
    assert len([kind for kind, _ in world.objects if kind == "CertificateAuthority"]) == 1


def test_a_replacement_interrupted_and_reverted_in_git_is_completed() -> None:
    world = build_account(key("a", 0))
    interrupt_after(world, plan_on(world, key("a", 1)), "create SSHCredential/a")
    apply_to(world, key("a", 0))
    assert [body["public_key"] for body in world.objects.values()] == [KEYS[0]]


def test_a_replacement_interrupted_and_moved_is_completed() -> None:
    world = build_account(key("a", 0))
    interrupt_after(world, plan_on(world, key("a", 1)), "create SSHCredential/a")
    apply_to(world, key("z", 1, moved=["SSHCredential/a"]))
    assert [body["public_key"] for body in world.objects.values()] == [KEYS[1]]


def test_a_replacement_interrupted_under_a_new_name_is_completed() -> None:
    world = build_account(key("a", 0))
    new = key("z", 1, moved=["SSHCredential/a"])
    interrupt_after(world, plan_on(world, new), "create SSHCredential/z")
    plan = plan_on(world, new)
    assert [(str(change.address), str(change.action), str(change.former)) for change in plan.changes] == [
        ("SSHCredential/z", "delete", "SSHCredential/a")
    ]
    apply_to(world, new)
    assert [body["public_key"] for body in world.objects.values()] == [KEYS[1]]


def test_a_replacement_under_a_new_name_that_is_reverted_in_git_retains_the_first_object() -> None:
    world = build_account(key("a", 0))
    first = id_of(world, "SSHCredential")
    interrupt_after(world, plan_on(world, key("z", 1, moved=["SSHCredential/a"])), "create SSHCredential/z")
    apply_to(world, key("z", 0, moved=["SSHCredential/a"]))
    assert [body["id"] for body in world.objects.values()] == [first]


@pytest.mark.parametrize(
    "declared",
    [key("a", 0), key("y", 0, moved=["SSHCredential/a"])],
    ids=["under the former name", "under a third name"],
)
def test_a_replacement_under_a_new_name_that_is_undeclared_retains_the_first_object(
    declared: Declaration,
) -> None:
    world = build_account(key("a", 0))
    first = id_of(world, "SSHCredential")
    interrupt_after(world, plan_on(world, key("z", 1, moved=["SSHCredential/a"])), "create SSHCredential/z")
    apply_to(world, declared)
    assert [body["id"] for body in world.objects.values()] == [first]


def test_an_interrupted_replacement_waits_for_the_keys_of_its_old_object() -> None:
    def three(a: str, b: str, action: str) -> list[Declaration]:
        parent = {"ip_policy_id": ref("IPPolicy/office")}
        return [
            declare("IPPolicy/office"),
            declare("IPPolicyRule/a", {**parent, "cidr": a, "action": action}),
            declare("IPPolicyRule/b", {**parent, "cidr": b, "action": "allow"}),
        ]

    world = build_account(*three("10.0.0.0/8", "12.0.0.0/8", "allow"))
    old = id_of(world, "IPPolicyRule")
    interrupt_after(world, plan_on(world, *three("11.0.0.0/8", "12.0.0.0/8", "deny")), "create IPPolicyRule/a")
    # The new rule receives the network parent b, and b that parent the old rule: the old rule must be deleted first.
    apply_to(world, *three("12.0.0.0/8", "10.0.0.0/8", "deny"))
    assert world.log == [f"delete IPPolicyRule/a {old}", "update IPPolicyRule/b", "update IPPolicyRule/a"]


def test_the_old_object_of_an_interrupted_replacement_is_deleted_after_the_update() -> None:
    old = live("TLSEdge", "edgtls_1", owner=record("TLSEdge/a", {}, intent="i1"))
    new = live("TLSEdge", "edgtls_2", owner=record("TLSEdge/a", {}, intent="i2", replaces="edgtls_1"))
    plan = make_plan(declare("TLSEdge/a", {"description": "x"}), seen=snapshot(old, new), options=LENIENT)
    assert needs_of(plan, "delete TLSEdge/a edgtls_1") == {"update TLSEdge/a"}


def test_a_bound_predecessor_is_deleted_before_a_third_object_is_created() -> None:
    """A binding stores one predecessor; owner records are on the objects themselves."""
    sources = [live("EventSource", f"{name}.v0", parent="esb_1") for name in "ab"]
    subscription = live("EventSubscription", "esb_1", owner=record("EventSubscription/s", {}))
    bound = {"EventSource/x": Binding("esb_1/b.v0", replaces="esb_1/a.v0")}
    plan = make_plan(
        declare("EventSubscription/s"),
        declare("EventSource/x", {"subscription_id": ref("EventSubscription/s"), "type": "c.v0"}),
        seen=snapshot(subscription, *sources, bindings=bound),
        options=LENIENT,
    )
    assert needs_of(plan, "create EventSource/x") == {"delete EventSource/x esb_1/a.v0"}
    assert needs_of(plan, "delete EventSource/x esb_1/b.v0") == {"create EventSource/x"}
    settled = make_plan(
        declare("EventSubscription/s"),
        declare("EventSource/x", {"subscription_id": ref("EventSubscription/s"), "type": "b.v0"}),
        seen=snapshot(subscription, *sources, bindings=bound),
        options=LENIENT,
    )
    assert [call.id for call in settled.calls] == ["delete EventSource/x esb_1/a.v0"]
    keys = [live("SSHCredential", f"k{n}", {"public_key": KEYS[n]}, owner=key_record(n)) for n in (0, 1)]
    plan = make_plan(key("a", 2), seen=snapshot(*keys), options=LENIENT)
    assert needs_of(plan, "create SSHCredential/a") == set()
    assert needs_of(plan, "delete SSHCredential/a k0") == {"create SSHCredential/a"}


def key_record(number: int) -> Owner:
    replaced = {"replaces": "k0"} if number else {}
    return record("SSHCredential/a", {"public_key": KEYS[number]}, intent=f"i{number}", **replaced)


# --- circular references ----------------------------------------------------------------------------------------------


def test_declarations_that_refer_to_each_other_are_a_problem_that_names_the_cycle() -> None:
    one = declare("FailoverBackend/a", {"backends": [ref("FailoverBackend/b")]})
    two = declare("FailoverBackend/b", {"backends": [ref("FailoverBackend/a")]})
    plan = make_plan(one, two)
    assert errors(plan) == ["circular reference: FailoverBackend/a → FailoverBackend/b → FailoverBackend/a"]


@pytest.mark.parametrize("is_reversed", [False, True])
def test_a_circular_reference_is_the_same_for_any_order_of_the_manifest(is_reversed: bool) -> None:
    names = "abcde"
    row = [
        declare(f"FailoverBackend/{name}", {"backends": [ref(f"FailoverBackend/{name}") for name in names]})
        for name in names
    ]
    plan = make_plan(*(reversed(row) if is_reversed else row))
    assert errors(plan) == [
        "circular reference: FailoverBackend/a → FailoverBackend/b → FailoverBackend/a",
        "circular reference: FailoverBackend/c → FailoverBackend/d → FailoverBackend/c",
        "its change is skipped, since it refers to FailoverBackend/a, which cannot be planned",
    ]


def test_independent_calls_do_not_wait() -> None:
    plan = make_plan(declare("IPPolicy/a"), declare("IPPolicy/b"))
    assert [call.needs for call in plan.calls] == [(), ()]
    assert requests(plan) == ["POST /ip_policies", "POST /ip_policies"]


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
def test_a_host_is_released_before_an_edge_or_an_endpoint_receives_it(
    before: list[Declaration], after: list[Declaration]
) -> None:
    apply_to(build_account(*HOSTS, *before), *HOSTS, *after)


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
    ids=["before it", "after it", "the last remains", "the first remains", "one moves", "another pool"],
)
def test_an_endpoint_joins_and_leaves_a_pool_without_sharing_a_url_unpooled(
    before: list[Declaration], after: list[Declaration]
) -> None:
    apply_to(build_account(*HOSTS, *before), *HOSTS, *after)


def test_a_replaced_endpoint_that_leaves_a_pool_is_deleted_first() -> None:
    world = build_account(*HOSTS, *pool("a"))
    plan = plan_on(world, *HOSTS, endpoint("a", "a.x"), options=replace_options("CloudEndpoint/a"))
    assert plan.errors == ()
    world.carry_out(plan)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([], [endpoint("z", "a.x"), *pool("a")]),
        ([], [*pool("z"), endpoint("a", "a.x")]),
        ([endpoint("z", "a.x")], [endpoint("z", "a.x"), *pool("a")]),
        (pool("a", "z"), [*pool("a"), endpoint("z", "a.x")]),
    ],
)
def test_a_pooled_and_an_unpooled_endpoint_at_one_url_are_a_problem(
    before: list[Declaration], after: list[Declaration]
) -> None:
    (problem,) = plan_on(build_account(*HOSTS, *before), *HOSTS, *after).errors
    assert "https://a.x already" in problem.text
    assert problem.text.endswith("on one object at a time, or on several that all set pooling_enabled")
    assert problem.remedy.endswith(", or set pooling_enabled in both")


def test_an_endpoint_with_ignored_pooling_remains_in_its_pool() -> None:
    live_objects = [*pool("a", "z")]
    world = build_account(*HOSTS, *live_objects)
    declared = declare(
        "CloudEndpoint/a",
        {"url": "https://a.x", "traffic_policy": "{}", "description": "new"},
        ignore=("pooling_enabled",),
    )
    apply_to(world, *HOSTS, declared, live_objects[1])


@pytest.mark.parametrize("remaining", ["p", "q"])
def test_an_edge_cannot_use_the_host_of_a_remaining_pool_member(remaining: str) -> None:
    pool = {name: endpoint(name, "a.x", pooling_enabled=True) for name in ("p", "q")}
    world = build_account(*HOSTS, *pool.values())
    assert len(plan_on(world, *HOSTS, pool[remaining], web("e", "a.x")).errors) == 1


@pytest.mark.parametrize("declared", [[], [web("e", "a.x")], [endpoint("p", "a.x")]])
def test_an_edge_and_an_endpoint_at_one_host_are_a_problem(declared: list[Declaration]) -> None:
    world = build_account(*HOSTS, *declared)
    plan = plan_on(world, *HOSTS, web("e", "a.x"), endpoint("p", "a.x"))
    assert len(plan.errors) == 1
    assert plan.errors[0].text.endswith("a.x:443 already, and the platform allows it on one object at a time")
    assert not plan.errors[0].remedy.endswith("in both")


# --- replacements that delete first -----------------------------------------------------------------------------------


def replace_options(*addresses: str) -> PlanOptions:
    return replace(LENIENT, to_replace=frozenset(map(at, addresses)))


def test_a_dependent_credential_is_deleted_before_its_replaced_bot() -> None:
    bot, credential = declare("BotUser/ci", {"name": "ci"}), {"owner_id": ref("BotUser/ci"), "description": "ci"}
    declared = [bot, declare("TunnelCredential/ci", credential)]
    world = build_account(*declared)
    plan = plan_on(world, *declared, options=replace_options("BotUser/ci"))
    assert errors(plan) == []
    assert [call.id.rpartition(" ")[0] if call.verb is Verb.DELETE else call.id for call in plan.calls] == [
        "delete TunnelCredential/ci",
        "delete BotUser/ci",
        "create BotUser/ci",
        "create TunnelCredential/ci",
        "complete TunnelCredential/ci",
    ]
    world.carry_out(plan)
    assert plan_on(world, *declared).is_empty


def test_two_replaced_rules_swap_their_keys() -> None:
    parent = {"ip_policy_id": ref("IPPolicy/office")}
    cidrs, actions = ("10.0.0.0/8", "11.0.0.0/8"), ("allow", "deny")

    def both(first: int, second: int) -> list[Declaration]:
        spec = [{**parent, "cidr": cidrs[index], "action": actions[index]} for index in (first, second)]
        return [declare("IPPolicy/office"), declare("IPPolicyRule/a", spec[0]), declare("IPPolicyRule/b", spec[1])]

    world = build_account(*both(0, 1))
    apply_to(world, *both(1, 0))


def test_a_referrer_of_a_replaced_domain_is_a_problem_before_the_apply() -> None:
    declared = [domain("a.example.com"), edge("e", "a.example.com")]
    world = build_account(*declared)
    plan = plan_on(world, *declared, options=replace_options("ReservedDomain/a"))
    assert [(error.subject, error.remedy) for error in plan.errors] == [
        ("ReservedDomain/a", "remove the reference from TLSEdge/e first, or replace it too: --replace TLSEdge/e")
    ]
    world.carry_out(plan_on(world, *declared, options=replace_options("ReservedDomain/a", "TLSEdge/e")))
    assert plan_on(world, *declared).is_empty
