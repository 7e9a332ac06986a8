"""The decision about one resource: nothing, create, update, replace, delete, or a problem."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.model import owner_record
from reconciler.model.canonical import digests
from reconciler.model.change import Action, ChangedBy, Order, Reason, Risk
from reconciler.model.manifest import Ensure
from reconciler.model.plan import Plan, Verb
from reconciler.model.snapshot import Binding
from reconciler.planning.planner import PlanOptions
from tests.harness.builders import (
    KINDS,
    LENIENT,
    actions,
    at,
    change_of,
    declare,
    errors,
    live,
    make_plan,
    plan_on,
    record,
    ref,
    requests,
    secret,
    snapshot,
)
from tests.harness.world import RandomAccount

RULE = {"ip_policy_id": "ipp_1", "cidr": "10.0.0.0/8", "action": "allow"}
LIVE_RULE = {"ip_policy": {"id": "ipp_1"}, "cidr": "10.0.0.0/8", "action": "allow"}


def test_an_object_that_equals_its_declaration_is_in_sync() -> None:
    edge = live("TLSEdge", "e", {"description": "x"}, owner=record("TLSEdge/a", {"description": "x"}))
    assert make_plan(declare("TLSEdge/a", {"description": "x"}), seen=snapshot(edge)).is_empty


def test_a_vanished_bot_is_created_again_with_the_reason_vanished() -> None:
    plan = make_plan(declare("BotUser/b", {"name": "b"}), seen=snapshot(bindings={"BotUser/b": Binding("bot_1")}))
    assert (change_of(plan, "BotUser/b").action, change_of(plan, "BotUser/b").reason) == (
        Action.CREATE,
        Reason.VANISHED,
    )


@pytest.mark.parametrize("edge", ["e_1", ref("HTTPSEdge/e", "id")])
def test_a_create_shows_the_parent_of_the_object(edge: Any) -> None:
    route = {"edge_id": edge, "match": "/", "match_type": "path_prefix"}
    plan = make_plan(declare("HTTPSEdge/e", {}), declare("HTTPSEdgeRoute/r", route))
    fields = [(field.path, field.new) for field in change_of(plan, "HTTPSEdgeRoute/r").fields]
    assert fields == [("edge_id", edge), ("match_type", "path_prefix"), ("match", "/")]


@pytest.mark.parametrize(("destroy", "why"), [(True, Reason.DESTROYED), (False, Reason.REMOVED)])
def test_a_deletion_has_its_reason(destroy: bool, why: Reason) -> None:
    edge = live("TLSEdge", "e", {}, owner=record("TLSEdge/a", {}))
    plan = make_plan(seen=snapshot(edge), options=replace(LENIENT, destroy=destroy))
    assert [change.reason for change in plan.changes] == [why]


# --- replacement ------------------------------------------------------------------------------------------------------


def test_a_replacement_with_the_same_unique_key_deletes_first() -> None:
    rule = live("IPPolicyRule", "ipr_1", LIVE_RULE, owner=record("IPPolicyRule/r", RULE))
    plan = make_plan(declare("IPPolicyRule/r", {**RULE, "action": "deny"}), seen=snapshot(rule))
    assert change_of(plan, "IPPolicyRule/r").order is Order.DELETE_FIRST
    assert requests(plan) == ["DELETE /ip_policy_rules/ipr_1", "POST /ip_policy_rules"]


def test_a_replacement_with_another_unique_key_creates_first() -> None:
    rule = live("IPPolicyRule", "ipr_1", LIVE_RULE, owner=record("IPPolicyRule/r", RULE))
    plan = make_plan(declare("IPPolicyRule/r", {**RULE, "action": "deny", "cidr": "11.0.0.0/8"}), seen=snapshot(rule))
    assert change_of(plan, "IPPolicyRule/r").order is Order.CREATE_FIRST
    assert requests(plan) == ["POST /ip_policy_rules", "DELETE /ip_policy_rules/ipr_1"]


def test_a_unique_key_that_is_ignored_is_still_the_same_key() -> None:
    rule = live("IPPolicyRule", "ipr_1", LIVE_RULE, owner=record("IPPolicyRule/r", RULE))
    plan = make_plan(declare("IPPolicyRule/r", {**RULE, "action": "deny"}, ignore=("cidr",)), seen=snapshot(rule))
    assert change_of(plan, "IPPolicyRule/r").order is Order.DELETE_FIRST


def test_a_replaced_edge_is_deleted_first_to_release_its_hostports() -> None:
    spec = {"hostports": ["a.example.com:443"]}
    edge = live("TLSEdge", "e", spec, owner=record("TLSEdge/a", spec))
    requested = replace(LENIENT, to_replace=frozenset({at("TLSEdge/a")}))
    plan = make_plan(declare("TLSEdge/a", spec), seen=snapshot(edge), options=requested)
    assert (change_of(plan, "TLSEdge/a").order, change_of(plan, "TLSEdge/a").reason) == (
        Order.DELETE_FIRST,
        Reason.REQUESTED,
    )
    assert requests(plan) == ["DELETE /edges/tls/e", "POST /edges/tls"]


def test_an_unmanaged_object_is_not_replaced_on_request() -> None:
    edge = live("TLSEdge", "edgtls_1", {"description": "x"})
    requested = replace(LENIENT, adopt=True, to_replace=frozenset({at("TLSEdge/a")}))
    plan = make_plan(declare("TLSEdge/a", {"description": "x"}, id="edgtls_1"), seen=snapshot(edge), options=requested)
    assert (plan.changes, plan.calls) == ((), ())
    assert errors(plan) == ["edgtls_1 is not managed by any stack and cannot be replaced"]


def test_a_forbidden_replacement_is_also_forbidden_on_request() -> None:
    edge = live("TLSEdge", "e", {}, owner=record("TLSEdge/a", {}))
    requested = replace(LENIENT, to_replace=frozenset({at("TLSEdge/a")}))
    plan = make_plan(declare("TLSEdge/a", {}, replace=False), seen=snapshot(edge), options=requested)
    assert errors(plan) == [
        "replacement requested with --replace, and `lifecycle.replace: false` forbids a replacement"
    ]


def test_a_replacement_records_the_id_of_the_old_object() -> None:
    authority = live("CertificateAuthority", "ca_1", {"ca_pem": "OLD"}, owner=record("CertificateAuthority/a"))
    plan = make_plan(declare("CertificateAuthority/a", {"ca_pem": "NEW"}), seen=snapshot(authority))
    assert plan.calls[0].owner is not None
    assert (plan.calls[0].owner.replaces, plan.calls[0].owner.intent) == ("ca_1", None)


def test_a_forbidden_replacement_is_a_problem_without_a_call() -> None:
    authority = live("CertificateAuthority", "ca_1", {"ca_pem": "OLD"}, owner=record("CertificateAuthority/a"))
    plan = make_plan(declare("CertificateAuthority/a", {"ca_pem": "NEW"}, replace=False), seen=snapshot(authority))
    assert (plan.changes, plan.calls) == ((), ())
    assert errors(plan) == ["ca_pem cannot be updated in place, and `lifecycle.replace: false` forbids a replacement"]


def test_a_forbidden_replacement_names_only_the_field_that_requires_it() -> None:
    authority = live("CertificateAuthority", "ca_1", {"ca_pem": "OLD"}, owner=record("CertificateAuthority/a", {}))
    plan = make_plan(
        declare("CertificateAuthority/a", {"ca_pem": "NEW", "description": "x"}, replace=False),
        seen=snapshot(authority),
    )
    assert errors(plan)[0].startswith("ca_pem cannot be updated in place")


def test_a_credential_of_a_recreated_bot_is_replaced_and_its_token_is_delivered_again() -> None:
    was = {"owner_id": "bot_1"}
    credential = live("TunnelCredential", "cr_1", was, owner=record("TunnelCredential/c", was))
    plan = make_plan(declare("TunnelCredential/c", {"owner_id": "bot_2"}), seen=snapshot(credential))
    change = change_of(plan, "TunnelCredential/c")
    assert (change.order, change.risks) == (Order.CREATE_FIRST, (Risk.ISSUES_CREDENTIAL, Risk.DISABLES_AGENT))


# --- one-time secrets -------------------------------------------------------------------------------------------------


def test_a_credential_without_a_delivery_target_is_not_created() -> None:
    plan = make_plan(declare("TunnelCredential/c", deliver=False))
    assert (plan.calls, errors(plan)) == ((), ["its token can be read only once, and `deliver` names no target for it"])


def test_an_existing_credential_without_a_delivery_target_is_in_sync() -> None:
    credential = live("TunnelCredential", "cr_1", owner=record("TunnelCredential/c", {}))
    assert make_plan(declare("TunnelCredential/c", deliver=False), seen=snapshot(credential)).is_empty


def test_a_credential_is_created_as_pending_and_completed_after_the_delivery() -> None:
    plan = make_plan(declare("TunnelCredential/c"))
    assert [(call.verb.value, call.owner and call.owner.pending) for call in plan.calls] == [
        ("create", True),
        ("update", False),
    ]


def test_a_pending_credential_without_a_receipt_is_replaced() -> None:
    credential = live("TunnelCredential", "cr_1", owner=record("TunnelCredential/c", {}, pending=True))
    plan = make_plan(declare("TunnelCredential/c"), seen=snapshot(credential))
    change = change_of(plan, "TunnelCredential/c")
    assert (change.action, change.reason, change.order) == (
        Action.REPLACE,
        Reason.UNDELIVERED,
        Order.CREATE_FIRST,
    )
    assert [call.id for call in plan.calls] == [
        "create TunnelCredential/c",
        "complete TunnelCredential/c",
        "delete TunnelCredential/c cr_1",
    ]


def test_a_pending_credential_with_a_receipt_is_updated_with_its_owner_record() -> None:
    credential = live("TunnelCredential", "cr_1", owner=record("TunnelCredential/c", {}, pending=True, intent="i"))
    plan = make_plan(declare("TunnelCredential/c"), seen=snapshot(credential, receipts=["i"]))
    change = change_of(plan, "TunnelCredential/c")
    assert (change.action, change.reason, requests(plan)) == (
        Action.UPDATE,
        Reason.RECORD,
        ["PATCH /credentials/cr_1"],
    )
    assert plan.calls[0].owner is not None
    assert (plan.calls[0].owner.pending, plan.calls[0].owner.intent) == (False, "i")


def test_a_pending_credential_that_is_no_longer_declared_is_deleted() -> None:
    credential = live("TunnelCredential", "cr_1", owner=record("TunnelCredential/c", {}, pending=True))
    assert requests(make_plan(seen=snapshot(credential), options=LENIENT)) == ["DELETE /credentials/cr_1"]


def test_a_working_credential_is_deleted_after_its_successor_is_delivered() -> None:
    works = live("TunnelCredential", "cr_1", owner=record("TunnelCredential/c", {}))
    pending = live(
        "TunnelCredential", "cr_2", owner=record("TunnelCredential/c", {}, intent="i2", pending=True, replaces="cr_1")
    )
    plan = make_plan(declare("TunnelCredential/c"), seen=snapshot(works, pending))
    ids = [call.id for call in plan.calls]
    assert ids[:2] == ["create TunnelCredential/c", "complete TunnelCredential/c"]
    assert sorted(ids[2:]) == ["delete TunnelCredential/c cr_1", "delete TunnelCredential/c cr_2"]
    assert all("complete TunnelCredential/c" in call.needs for call in plan.calls[2:])


def test_a_pending_credential_that_must_not_be_replaced_is_a_problem_with_the_reason() -> None:
    credential = live("TunnelCredential", "cr_1", owner=record("TunnelCredential/c", {}, pending=True))
    plan = make_plan(declare("TunnelCredential/c", replace=False), seen=snapshot(credential))
    assert errors(plan) == [
        "its one-time secret was not delivered, and `lifecycle.replace: false` forbids a replacement"
    ]


# --- owner records ----------------------------------------------------------------------------------------------------


def test_a_module_changed_in_git_is_updated_with_the_owner_record() -> None:
    was, want = {"backend": {"backend_id": "b"}}, {"backend": {"backend_id": "c"}}
    edge = live("TLSEdge", "e", {"backend": {"backend": {"id": "b"}}}, owner=record("TLSEdge/a", was))
    plan = make_plan(declare("TLSEdge/a", want), seen=snapshot(edge))
    assert requests(plan) == ["PATCH /edges/tls/e"]
    assert plan.calls[0].owner is not None
    assert plan.calls[0].owner.applied == {"backend.backend_id": "c"}


def test_a_module_changed_on_the_platform_is_updated_without_the_owner_record() -> None:
    was = {"backend": {"backend_id": "b"}}
    edge = live("TLSEdge", "e", {"backend": {"backend": {"id": "z"}}}, owner=record("TLSEdge/a", was))
    plan = make_plan(declare("TLSEdge/a", was), seen=snapshot(edge))
    assert ([call.owner for call in plan.calls], requests(plan)) == ([None], ["PUT /edges/tls/e/backend"])


@pytest.mark.parametrize("protect", [True, False])
def test_protection_changed_in_git_is_written_to_the_owner_record(protect: bool) -> None:
    edge = live("TLSEdge", "e", owner=record("TLSEdge/a", {}, protect=not protect))
    plan = make_plan(declare("TLSEdge/a", protect=protect), seen=snapshot(edge))
    assert change_of(plan, "TLSEdge/a").reason is Reason.RECORD
    assert plan.calls[0].owner is not None
    assert plan.calls[0].owner.protect is protect


def test_protection_of_a_bot_is_stored_in_its_binding() -> None:
    bot = live("BotUser", "bot_1", {"name": "b", "active": True})
    declared = declare("BotUser/b", {"name": "b"}, protect=True)
    plan = make_plan(declared, seen=snapshot(bot, bindings={"BotUser/b": Binding("bot_1")}))
    (binding,) = plan.bindings.values()
    assert binding is not None
    assert binding.protect
    assert make_plan(declared, seen=snapshot(bot, bindings={"BotUser/b": binding})).is_empty


def test_a_replaced_object_in_a_binding_is_deleted_if_it_still_exists() -> None:
    subscription = live("EventSubscription", "esb_1", {"sources": []}, owner=record("EventSubscription/s", {}))
    old, new = (live("EventSource", f"ip_policy_{word}.v0", parent="esb_1") for word in ("created", "updated"))
    declared = declare("EventSource/a", {"subscription_id": ref("EventSubscription/s"), "type": new.id})
    bound = {"EventSource/a": Binding(new.locator, replaces=old.locator)}
    plan = make_plan(declare("EventSubscription/s"), declared, seen=snapshot(subscription, old, new, bindings=bound))
    assert [(call.verb, call.target, call.unbinds) for call in plan.calls] == [(Verb.DELETE, old.id, False)]


def test_a_binding_is_updated_only_after_the_apply() -> None:
    bot = live("BotUser", "bot_1", {"name": "before", "active": True})
    plan = make_plan(
        declare("BotUser/b", {"name": "after"}), seen=snapshot(bot, bindings={"BotUser/b": Binding("bot_1")})
    )
    assert ([call.id for call in plan.calls], plan.bindings) == (["update BotUser/b"], {})


def test_the_binding_of_a_vanished_object_remains_until_the_object_exists_again() -> None:
    """Without the binding the object would count as new, and the plan would not report that it vanished."""
    plan = make_plan(declare("BotUser/b", {"name": "b"}), seen=snapshot(bindings={"BotUser/b": Binding("bot_1")}))
    assert (change_of(plan, "BotUser/b").reason, plan.bindings) == (Reason.VANISHED, {})


def test_a_credential_without_a_delivery_target_is_not_replaced() -> None:
    credential = live("TunnelCredential", "cr_1", owner=record("TunnelCredential/c", {}))
    requested = PlanOptions(to_replace=frozenset({at("TunnelCredential/c")}))
    plan = make_plan(declare("TunnelCredential/c", deliver=False), seen=snapshot(credential), options=requested)
    assert (plan.calls, [problem.code for problem in plan.errors]) == ((), ["one-time-secret-undelivered"])


@pytest.mark.parametrize("exists", [True, False])
def test_a_binding_forgets_a_replaced_object_that_no_longer_exists(exists: bool) -> None:
    """Another object may have the same type later and would be deleted instead."""
    subscription = live("EventSubscription", "esb_1", {"sources": []}, owner=record("EventSubscription/s", {}))
    old, new = (live("EventSource", f"ip_policy_{word}.v0", parent="esb_1") for word in ("created", "updated"))
    declared = declare("EventSource/a", {"subscription_id": ref("EventSubscription/s"), "type": new.id})
    seen = snapshot(
        subscription,
        new,
        *([old] if exists else []),
        bindings={"EventSource/a": Binding(new.locator, replaces=old.locator)},
    )
    binding = make_plan(declare("EventSubscription/s"), declared, seen=seen).bindings[at("EventSource/a")]
    assert binding is not None
    assert (binding.id, binding.replaces) == (new.locator, old.locator if exists else None)


def test_a_source_that_returns_to_its_former_subscription_stores_the_source_to_delete() -> None:
    """A delete may be refused: only the binding shows the next plan the other source."""
    subscriptions = [live("EventSubscription", f"esb_{n}", owner=record(f"EventSubscription/s{n}", {})) for n in (1, 2)]
    first, second = (live("EventSource", "a.v0", {"type": "a.v0"}, parent=f"esb_{n}") for n in (1, 2))
    declared = [
        *(declare(f"EventSubscription/s{n}") for n in (1, 2)),
        declare("EventSource/a", {"subscription_id": ref("EventSubscription/s1"), "type": "a.v0"}),
    ]
    bindings: dict[str, Binding] = {"EventSource/a": Binding(second.locator, replaces=first.locator)}
    for _ in range(2):
        seen = snapshot(*subscriptions, first, second, bindings=bindings)
        plan = make_plan(*declared, seen=seen, options=LENIENT)
        assert [call.path for call in plan.calls] == ["/event_subscriptions/esb_2/sources/a.v0"]
        bindings |= {str(address): binding for address, binding in plan.bindings.items() if binding is not None}
        bound = bindings["EventSource/a"]
        assert (bound.id, bound.replaces) == (first.locator, second.locator)
        assert plan.unmanaged == ()


def test_a_binding_does_not_record_an_object_of_another_declaration_as_replaced() -> None:
    subscription = live("EventSubscription", "esb_1", owner=record("EventSubscription/s", {}))
    sources = [live("EventSource", f"{type}.v0", {"type": f"{type}.v0"}, parent="esb_1") for type in ("a", "b")]
    declared = [
        declare(f"EventSource/{name}", {"subscription_id": ref("EventSubscription/s"), "type": f"{name}.v0"})
        for name in ("a", "b")
    ]
    bindings = {
        "EventSource/a": Binding(sources[0].locator, replaces=sources[1].locator),
        "EventSource/b": Binding(sources[1].locator),
    }
    plan = make_plan(
        declare("EventSubscription/s"), *declared, seen=snapshot(subscription, *sources, bindings=bindings)
    )
    assert plan.calls == ()
    assert {binding.replaces for binding in plan.bindings.values() if binding is not None} == {None}


def test_a_forgotten_object_is_no_orphan() -> None:
    edge = live("TLSEdge", "e", owner=record("TLSEdge/a", {}))
    plan = make_plan(declare("TLSEdge/a", ensure=Ensure.FORGOTTEN), seen=snapshot(edge))
    assert actions(plan) == {"TLSEdge/a": "forget"}


# --- incomplete lists -------------------------------------------------------------------------------------------------


def test_an_incomplete_list_prevents_a_create() -> None:
    plan = make_plan(declare("TLSEdge/a"), seen=snapshot(cut=["TLSEdge"]))
    assert (plan.calls, errors(plan)) == ((), ["the list of TLSEdge objects is incomplete: cut"])


def test_an_incomplete_list_prevents_a_result_of_in_sync() -> None:
    edge = live("TLSEdge", "e", owner=record("TLSEdge/a", {}))
    plan = make_plan(declare("TLSEdge/a"), seen=snapshot(edge, cut=["TLSEdge"]))
    assert (plan.calls, errors(plan)) == ((), ["the list of TLSEdge objects is incomplete: cut"])


def test_an_incomplete_list_is_one_problem_for_all_resources_of_the_kind() -> None:
    declared = [declare(f"TLSEdge/a{number}") for number in range(230)]
    plan = make_plan(*declared, seen=snapshot(cut=["TLSEdge"]))
    (problem,) = plan.problems
    assert problem.text == "the list of TLSEdge objects is incomplete: cut (230 resources)"
    assert (problem.subject, problem.values) == ("TLSEdge", {"resources": 230})
    assert problem.position == declared[0].position
    both = make_plan(*declared, declare("IPPolicy/p"), seen=snapshot(cut=["TLSEdge", "IPPolicy"]))
    assert sorted(problem.subject for problem in both.problems) == ["IPPolicy/p", "TLSEdge"]


def test_an_incomplete_list_is_one_warning_for_all_undeclared_objects() -> None:
    edges = [live("TLSEdge", f"e{number}", owner=record(f"TLSEdge/a{number}", {})) for number in range(230)]
    plan = make_plan(seen=snapshot(*edges, cut=["TLSEdge"]), options=PlanOptions(destroy=True))
    (problem,) = plan.problems
    assert problem.text == "230 objects are no longer declared, but the list of TLSEdge objects is incomplete"


def test_an_incomplete_list_prevents_an_update() -> None:
    edge = live("TLSEdge", "e", owner=record("TLSEdge/a", {}))
    assert make_plan(declare("TLSEdge/a", {"description": "x"}), seen=snapshot(edge, cut=["TLSEdge"])).calls == ()


def test_an_incomplete_list_prevents_a_delete_with_a_warning() -> None:
    edge = live("TLSEdge", "e", owner=record("TLSEdge/a", {}))
    plan = make_plan(seen=snapshot(edge, cut=["TLSEdge"]), options=PlanOptions(destroy=True))
    assert (plan.calls, [problem.text for problem in plan.problems]) == (
        (),
        ["e is no longer declared, but the list of TLSEdge objects is incomplete"],
    )


def test_an_incomplete_list_prevents_the_delete_of_an_absent_resource() -> None:
    edge = live("TLSEdge", "e", owner=record("TLSEdge/a", {}))
    plan = make_plan(declare("TLSEdge/a", id="e", ensure=Ensure.ABSENT), seen=snapshot(edge, cut=["TLSEdge"]))
    assert (plan.calls, len(plan.errors)) == ((), 1)


def test_a_resource_named_by_id_is_updated_in_place_despite_an_incomplete_list() -> None:
    edge = live("TLSEdge", "e", owner=record("TLSEdge/a", {}))
    plan = make_plan(declare("TLSEdge/a", {"description": "x"}, id="e"), seen=snapshot(edge, cut=["TLSEdge"]))
    assert requests(plan) == ["PATCH /edges/tls/e"]


def test_an_incomplete_list_prevents_the_replacement_of_a_resource_named_by_id() -> None:
    authority = live("CertificateAuthority", "ca_1", {"ca_pem": "OLD"}, owner=record("CertificateAuthority/a"))
    plan = make_plan(
        declare("CertificateAuthority/a", {"ca_pem": "NEW"}, id="ca_1"),
        seen=snapshot(authority, cut=["CertificateAuthority"]),
    )
    assert (plan.calls, len(plan.errors)) == ((), 1)


def test_a_kind_that_was_not_listed_does_not_count_as_empty() -> None:
    seen = snapshot()
    listings = {name: listing for name, listing in seen.listings.items() if name != "TLSEdge"}
    plan = make_plan(declare("TLSEdge/a"), seen=type(seen)(listings))
    assert (plan.calls, errors(plan)) == ((), ["the list of TLSEdge objects is incomplete: it was not listed"])


# --- overwritten owner records ----------------------------------------------------------------------------------------


def test_an_object_with_an_overwritten_owner_record_is_matched_by_its_binding() -> None:
    edge = live("TLSEdge", "edgtls_1", {"metadata": "by hand"})
    bound = {"TLSEdge/a": Binding("edgtls_1")}
    plan = make_plan(declare("TLSEdge/a", {"metadata": "by hand"}), seen=snapshot(edge, bindings=bound))
    assert [(change.action, change.reason, change.id) for change in plan.changes] == [
        (Action.UPDATE, Reason.RECORD, "edgtls_1")
    ]
    assert [(call.verb, call.owner is not None) for call in plan.calls] == [(Verb.UPDATE, True)]


def test_a_credential_with_a_removed_owner_record_is_updated_and_not_replaced() -> None:
    credential = live("TunnelCredential", "cr_1", {"description": "x"})
    seen = snapshot(credential, bindings={"TunnelCredential/c": Binding("cr_1")})
    plan = make_plan(declare("TunnelCredential/c", {"description": "x"}), seen=seen)
    assert [(change.action, change.reason) for change in plan.changes] == [(Action.UPDATE, Reason.RECORD)]


def test_an_undeclared_object_without_an_owner_record_is_unmanaged() -> None:
    plan = make_plan(seen=snapshot(live("TLSEdge", "edgtls_1"), bindings={"TLSEdge/a": Binding("edgtls_1")}))
    assert plan.changes == ()


# --- changes of the authentication module -----------------------------------------------------------------------------


OIDC = {"issuer": "https://i.x", "client_id": "c", "client_secret": secret("s")}
ROUTE = {"edge_id": "e_1", "match": "/", "match_type": "path_prefix"}


def exchange_modules(**lifecycle: Any) -> Plan:
    """The plan of a route that changes from OpenID to GitHub."""
    before = {**ROUTE, "oidc": OIDC, "backend": {"backend_id": "bkdhr_1"}}
    body = {"edge": {"id": "e_1"}, "match": "/", "match_type": "path_prefix", "oidc": {**OIDC, "client_secret": "s"}}
    body |= {"backend": {"backend": {"id": "bkdhr_1"}}}
    route = live("HTTPSEdgeRoute", "rt_1", body, parent="e_1", owner=record("HTTPSEdgeRoute/r", before))
    spec = {**ROUTE, "oauth": {"provider": {"github": {}}}}
    spec |= {} if lifecycle else {"backend": {"backend_id": "bkdhr_1"}}
    return make_plan(declare("HTTPSEdgeRoute/r", spec, **lifecycle), seen=snapshot(route), options=LENIENT)


def test_a_change_of_the_authentication_module_has_the_risk_of_interrupted_traffic() -> None:
    assert Risk.INTERRUPTS_TRAFFIC in change_of(exchange_modules(), "HTTPSEdgeRoute/r").risks


def test_an_ignored_backend_is_not_detached_for_a_change_of_the_authentication_module() -> None:
    plan = exchange_modules(ignore=("backend",))
    assert plan.calls == ()
    assert errors(plan) == [
        "backend must be removed while the authentication module is exchanged, and no manifest declares its value"
    ]


def test_ignored_metadata_without_room_for_the_owner_record_is_a_problem() -> None:
    policy = live("IPPolicy", "ipp_1", {"description": "x", "metadata": "é" * 2000}, owner=record("IPPolicy/p", {}))
    plan = make_plan(declare("IPPolicy/p", {"description": "y"}, ignore=("metadata",)), seen=snapshot(policy))
    assert plan.calls == ()
    assert [error.rpartition(":")[0] for error in errors(plan)] == [
        "the metadata of ipp_1 leaves no room for the owner record"
    ]


def test_metadata_with_just_enough_room_for_the_owner_record_is_accepted() -> None:
    declared = declare("IPPolicy/p", {"description": "y"}, ignore=("metadata",))

    def fill_metadata(length: int) -> RandomAccount:
        """An account with the policy and user metadata of this length."""
        world, spec = RandomAccount(KINDS), {"description": "x"}
        owner = record("IPPolicy/p", spec, intent="0123456789abcdef")
        policy = live("IPPolicy", "ipp_1", {**spec, "metadata": "m" * length}, owner=owner)
        world.objects["IPPolicy", "ipp_1"] = {"id": "ipp_1", **policy.body}
        return world

    fits = next(length for length in range(4096, 3000, -1) if not errors(plan_on(fill_metadata(length), declared)))
    world = fill_metadata(fits)
    world.carry_out(plan_on(world, declared))
    assert len(world.objects["IPPolicy", "ipp_1"]["metadata"].encode()) == 4096


@pytest.mark.parametrize("is_replaced", [False, True])
def test_metadata_with_just_enough_room_for_a_pending_owner_record_is_accepted(is_replaced: bool) -> None:
    """The owner record of a new credential is longer until its token is delivered and its predecessor deleted."""
    declared = declare("TunnelCredential/c", {"description": "y"}, ignore=("metadata",))
    options = PlanOptions(to_replace=frozenset([declared.address] if is_replaced else []))

    def plan_beside(length: int) -> Plan:
        body = {"description": "x", "metadata": "m" * length}
        owner = record("TunnelCredential/c", {"description": "x"}, intent="0123456789abcdef")
        return make_plan(declared, seen=snapshot(live("TunnelCredential", "cr_1", body, owner=owner)), options=options)

    plan = next(plan for length in range(4050, 3000, -1) if not (plan := plan_beside(length)).errors)
    drafts = [call.owner for call in plan.calls if call.owner is not None]
    records = (
        (
            draft.text,
            record(str(draft.address), intent="0123456789abcdef", pending=draft.pending, replaces=draft.replaces),
        )
        for draft in drafts
    )
    sizes = [
        len(owner_record.write(str(text), owner._replace(applied={"description": "0123456789"})).encode())
        for text, owner in records
    ]
    assert max(sizes) == 4096


def test_a_change_of_the_authentication_module_without_a_backend_interrupts_nothing() -> None:
    before = {**ROUTE, "oidc": OIDC}
    body = {"edge": {"id": "e_1"}, "match": "/", "match_type": "path_prefix", "oidc": {**OIDC, "client_secret": "s"}}
    route = live("HTTPSEdgeRoute", "rt_1", body, parent="e_1", owner=record("HTTPSEdgeRoute/r", before))
    plan = make_plan(
        declare("HTTPSEdgeRoute/r", {**ROUTE, "oauth": {"provider": {"github": {}}}}), seen=snapshot(route)
    )
    assert Risk.INTERRUPTS_TRAFFIC not in change_of(plan, "HTTPSEdgeRoute/r").risks


@pytest.mark.parametrize("protect", [True, False])
def test_a_replacement_requires_approval_only_of_a_protected_object(protect: bool) -> None:
    edge = live("TLSEdge", "e", {}, owner=record("TLSEdge/a", {}, protect=protect))
    requested = PlanOptions(to_replace=frozenset({at("TLSEdge/a")}))
    plan = make_plan(declare("TLSEdge/a"), seen=snapshot(edge), options=requested)
    assert [approval.flag for approval in plan.approvals] == ["--allow delete-protected:TLSEdge=1"] * protect
    assert change_of(plan, "TLSEdge/a").protected is protect


def test_long_metadata_that_the_manifest_replaces_leaves_room_for_the_owner_record() -> None:
    policy = live("IPPolicy", "ipp_1", {"metadata": "m" * 4096})
    declared = declare("IPPolicy/p", {"metadata": "short"}, id="ipp_1")
    assert actions(make_plan(declared, seen=snapshot(policy))) == {"IPPolicy/p": "adopt"}
    assert errors(make_plan(declare("IPPolicy/p", id="ipp_1", ignore=("metadata",)), seen=snapshot(policy))) != []


def test_protection_of_a_bot_changed_in_git_is_an_update_of_its_record() -> None:
    bot = live("BotUser", "bot_1", {"name": "b", "active": True})
    for was, now in ((True, False), (False, True), (True, True), (False, False)):
        bound = snapshot(bot, bindings={"BotUser/b": Binding("bot_1", protect=was)})
        plan = make_plan(declare("BotUser/b", {"name": "b"}, protect=now), seen=bound)
        assert [change.reason for change in plan.changes] == ([Reason.RECORD] if was is not now else [])


@pytest.mark.parametrize("bound_as", ["BotUser/b", "BotUser/former"])
@pytest.mark.parametrize(
    ("was", "live_name", "cause"),
    [
        ("was", "was", ChangedBy.GIT),
        ("now", "by hand", ChangedBy.PLATFORM),
        ("was", "by hand", ChangedBy.BOTH),
        (None, "by hand", ChangedBy.BOTH),
    ],
)
def test_the_binding_of_a_bot_shows_what_changed_a_field(
    bound_as: str, was: str, live_name: str, cause: ChangedBy
) -> None:
    """Under its present address or a former one."""
    bot = live("BotUser", "bot_1", {"name": live_name, "active": True})
    binding = Binding("bot_1", digests({"name": was}, bound_as))
    declared = declare("BotUser/b", {"name": "now"}, moved=[] if bound_as == "BotUser/b" else [bound_as])
    plan = make_plan(declared, seen=snapshot(bot, bindings={bound_as: binding}))
    assert [(field.path, field.changed_by) for field in change_of(plan, "BotUser/b").fields] == [("name", cause)]


def test_a_secret_named_by_id_that_refers_to_its_vault_by_name_is_managed_as_a_whole() -> None:
    """Managing the modules alone is possible only for kinds with modules."""
    live_secret = live("Secret", "secret_1", {"name": "s", "vault": {"id": "vault_1", "name": "v"}})
    spec = {"vault_name": "another", "name": "s", "value": secret("x"), "description": "new"}
    plan = make_plan(declare("Secret/s", spec, id="secret_1"), seen=snapshot(live_secret))
    assert plan.calls == ()
    assert [problem.code for problem in plan.errors] == ["not-owned"]
