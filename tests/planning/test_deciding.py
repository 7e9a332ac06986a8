"""What has to happen to one resource, given its object."""

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
from tests.laws.world import RandomAccount
from tests.planning.builders import (
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

RULE = {"ip_policy_id": "ipp_1", "cidr": "10.0.0.0/8", "action": "allow"}
LIVE_RULE = {"ip_policy": {"id": "ipp_1"}, "cidr": "10.0.0.0/8", "action": "allow"}


def test_what_is_as_declared_needs_nothing() -> None:
    there = live("TLSEdge", "e", {"description": "x"}, owner=record("TLSEdge/a", {"description": "x"}))
    assert make_plan(declare("TLSEdge/a", {"description": "x"}), seen=snapshot(there)).is_empty


def test_a_bot_that_vanished_is_made_again_and_said_to_have_vanished() -> None:
    made = make_plan(declare("BotUser/b", {"name": "b"}), seen=snapshot(bindings={"BotUser/b": Binding("bot_1")}))
    assert (change_of(made, "BotUser/b").action, change_of(made, "BotUser/b").reason) == (
        Action.CREATE,
        Reason.VANISHED,
    )


@pytest.mark.parametrize("edge", ["e_1", ref("HTTPSEdge/e", "id")])
def test_a_create_shows_the_object_that_it_is_part_of(edge: Any) -> None:
    route = {"edge_id": edge, "match": "/", "match_type": "path_prefix"}
    made = make_plan(declare("HTTPSEdge/e", {}), declare("HTTPSEdgeRoute/r", route))
    fields = [(field.path, field.new) for field in change_of(made, "HTTPSEdgeRoute/r").fields]
    assert fields == [("edge_id", edge), ("match_type", "path_prefix"), ("match", "/")]


@pytest.mark.parametrize(("destroy", "why"), [(True, Reason.DESTROYED), (False, Reason.REMOVED)])
def test_what_goes_is_told_why(destroy: bool, why: Reason) -> None:
    there = live("TLSEdge", "e", {}, owner=record("TLSEdge/a", {}))
    made = make_plan(seen=snapshot(there), options=replace(LENIENT, destroy=destroy))
    assert [change.reason for change in made.changes] == [why]


# --- replacement ------------------------------------------------------------------------------------------------------


def test_a_replacement_with_the_same_unique_key_deletes_first() -> None:
    there = live("IPPolicyRule", "ipr_1", LIVE_RULE, owner=record("IPPolicyRule/r", RULE))
    made = make_plan(declare("IPPolicyRule/r", {**RULE, "action": "deny"}), seen=snapshot(there))
    assert change_of(made, "IPPolicyRule/r").order is Order.DELETE_FIRST
    assert requests(made) == ["DELETE /ip_policy_rules/ipr_1", "POST /ip_policy_rules"]


def test_a_replacement_with_another_unique_key_creates_first() -> None:
    there = live("IPPolicyRule", "ipr_1", LIVE_RULE, owner=record("IPPolicyRule/r", RULE))
    made = make_plan(declare("IPPolicyRule/r", {**RULE, "action": "deny", "cidr": "11.0.0.0/8"}), seen=snapshot(there))
    assert change_of(made, "IPPolicyRule/r").order is Order.CREATE_FIRST
    assert requests(made) == ["POST /ip_policy_rules", "DELETE /ip_policy_rules/ipr_1"]


def test_a_unique_key_that_is_ignored_is_still_the_same_key() -> None:
    there = live("IPPolicyRule", "ipr_1", LIVE_RULE, owner=record("IPPolicyRule/r", RULE))
    made = make_plan(declare("IPPolicyRule/r", {**RULE, "action": "deny"}, ignore=("cidr",)), seen=snapshot(there))
    assert change_of(made, "IPPolicyRule/r").order is Order.DELETE_FIRST


def test_an_edge_that_is_made_anew_lets_go_of_its_hostports_first() -> None:
    spec = {"hostports": ["a.example.com:443"]}
    there = live("TLSEdge", "e", spec, owner=record("TLSEdge/a", spec))
    asked = replace(LENIENT, to_replace=frozenset({at("TLSEdge/a")}))
    made = make_plan(declare("TLSEdge/a", spec), seen=snapshot(there), options=asked)
    assert (change_of(made, "TLSEdge/a").order, change_of(made, "TLSEdge/a").reason) == (
        Order.DELETE_FIRST,
        Reason.REQUESTED,
    )
    assert requests(made) == ["DELETE /edges/tls/e", "POST /edges/tls"]


def test_what_is_not_ours_is_not_replaced_on_request() -> None:
    there = live("TLSEdge", "edgtls_1", {"description": "x"})
    asked = replace(LENIENT, adopt=True, to_replace=frozenset({at("TLSEdge/a")}))
    made = make_plan(declare("TLSEdge/a", {"description": "x"}, id="edgtls_1"), seen=snapshot(there), options=asked)
    assert (made.changes, made.calls) == ((), ())
    assert errors(made) == ["edgtls_1 is not managed by any stack and cannot be replaced"]


def test_a_replacement_that_is_forbidden_is_also_forbidden_on_request() -> None:
    there = live("TLSEdge", "e", {}, owner=record("TLSEdge/a", {}))
    asked = replace(LENIENT, to_replace=frozenset({at("TLSEdge/a")}))
    made = make_plan(declare("TLSEdge/a", {}, replace=False), seen=snapshot(there), options=asked)
    assert errors(made) == [
        "replacement requested with --replace, and `lifecycle.replace: false` forbids a replacement"
    ]


def test_the_new_object_of_a_replacement_names_the_old_one() -> None:
    there = live("CertificateAuthority", "ca_1", {"ca_pem": "OLD"}, owner=record("CertificateAuthority/a"))
    made = make_plan(declare("CertificateAuthority/a", {"ca_pem": "NEW"}), seen=snapshot(there))
    assert made.calls[0].owner is not None
    assert (made.calls[0].owner.replaces, made.calls[0].owner.intent) == ("ca_1", None)


def test_a_replacement_that_is_forbidden_is_a_problem_and_no_call() -> None:
    there = live("CertificateAuthority", "ca_1", {"ca_pem": "OLD"}, owner=record("CertificateAuthority/a"))
    made = make_plan(declare("CertificateAuthority/a", {"ca_pem": "NEW"}, replace=False), seen=snapshot(there))
    assert (made.changes, made.calls) == ((), ())
    assert errors(made) == ["ca_pem cannot be updated in place, and `lifecycle.replace: false` forbids a replacement"]


def test_only_the_field_that_forces_it_is_named_when_a_replacement_is_forbidden() -> None:
    there = live("CertificateAuthority", "ca_1", {"ca_pem": "OLD"}, owner=record("CertificateAuthority/a", {}))
    made = make_plan(
        declare("CertificateAuthority/a", {"ca_pem": "NEW", "description": "x"}, replace=False), seen=snapshot(there)
    )
    assert errors(made)[0].startswith("ca_pem cannot be updated in place")


def test_a_credential_whose_bot_was_made_anew_is_replaced_and_its_token_delivered_again() -> None:
    was = {"owner_id": "bot_gone"}
    there = live("TunnelCredential", "cr_1", was, owner=record("TunnelCredential/c", was))
    made = make_plan(declare("TunnelCredential/c", {"owner_id": "bot_2"}), seen=snapshot(there))
    change = change_of(made, "TunnelCredential/c")
    assert (change.order, change.risks) == (Order.CREATE_FIRST, (Risk.ISSUES_CREDENTIAL, Risk.DISABLES_AGENT))


# --- one-time secrets -------------------------------------------------------------------------------------------------


def test_a_credential_without_a_place_for_its_token_is_not_created() -> None:
    made = make_plan(declare("TunnelCredential/c", deliver=False))
    assert (made.calls, errors(made)) == ((), ["its token can be read only once, and `deliver` names no target for it"])


def test_a_credential_without_a_place_for_its_token_is_kept_as_it_is() -> None:
    there = live("TunnelCredential", "cr_1", owner=record("TunnelCredential/c", {}))
    assert make_plan(declare("TunnelCredential/c", deliver=False), seen=snapshot(there)).is_empty


def test_a_credential_is_made_pending_and_completed_after_delivery() -> None:
    made = make_plan(declare("TunnelCredential/c"))
    assert [(call.verb.value, call.owner and call.owner.pending) for call in made.calls] == [
        ("create", True),
        ("update", False),
    ]


def test_a_pending_credential_without_a_receipt_is_replaced() -> None:
    there = live("TunnelCredential", "cr_1", owner=record("TunnelCredential/c", {}, pending=True))
    made = make_plan(declare("TunnelCredential/c"), seen=snapshot(there))
    change = change_of(made, "TunnelCredential/c")
    assert (change.action, change.reason, change.order) == (
        Action.REPLACE,
        Reason.UNDELIVERED,
        Order.CREATE_FIRST,
    )
    assert [call.id for call in made.calls] == [
        "create TunnelCredential/c",
        "complete TunnelCredential/c",
        "delete TunnelCredential/c cr_1",
    ]


def test_a_pending_credential_with_a_receipt_only_has_its_record_written() -> None:
    there = live("TunnelCredential", "cr_1", owner=record("TunnelCredential/c", {}, pending=True, intent="i"))
    made = make_plan(declare("TunnelCredential/c"), seen=snapshot(there, receipts=["i"]))
    change = change_of(made, "TunnelCredential/c")
    assert (change.action, change.reason, requests(made)) == (
        Action.UPDATE,
        Reason.RECORD,
        ["PATCH /credentials/cr_1"],
    )
    assert made.calls[0].owner is not None
    assert (made.calls[0].owner.pending, made.calls[0].owner.intent) == (False, "i")


def test_a_pending_credential_that_is_no_longer_declared_is_deleted() -> None:
    there = live("TunnelCredential", "cr_1", owner=record("TunnelCredential/c", {}, pending=True))
    assert requests(make_plan(seen=snapshot(there), options=LENIENT)) == ["DELETE /credentials/cr_1"]


def test_the_credential_that_still_works_outlives_the_ones_whose_token_never_arrived() -> None:
    works = live("TunnelCredential", "cr_1", owner=record("TunnelCredential/c", {}))
    pending = live(
        "TunnelCredential", "cr_2", owner=record("TunnelCredential/c", {}, intent="i2", pending=True, replaces="cr_1")
    )
    made = make_plan(declare("TunnelCredential/c"), seen=snapshot(works, pending))
    ids = [call.id for call in made.calls]
    assert ids[:2] == ["create TunnelCredential/c", "complete TunnelCredential/c"]
    assert sorted(ids[2:]) == ["delete TunnelCredential/c cr_1", "delete TunnelCredential/c cr_2"]
    assert all("complete TunnelCredential/c" in call.needs for call in made.calls[2:])


def test_a_pending_credential_that_may_not_be_replaced_says_why_it_has_to_be() -> None:
    there = live("TunnelCredential", "cr_1", owner=record("TunnelCredential/c", {}, pending=True))
    made = make_plan(declare("TunnelCredential/c", replace=False), seen=snapshot(there))
    assert errors(made) == [
        "its one-time secret was not delivered, and `lifecycle.replace: false` forbids a replacement"
    ]


# --- the record -------------------------------------------------------------------------------------------------------


def test_a_change_of_one_module_in_git_is_recorded_with_it() -> None:
    was, want = {"backend": {"backend_id": "b"}}, {"backend": {"backend_id": "c"}}
    there = live("TLSEdge", "e", {"backend": {"backend": {"id": "b"}}}, owner=record("TLSEdge/a", was))
    made = make_plan(declare("TLSEdge/a", want), seen=snapshot(there))
    assert requests(made) == ["PATCH /edges/tls/e"]
    assert made.calls[0].owner is not None
    assert made.calls[0].owner.applied == {"backend.backend_id": "c"}


def test_a_module_that_was_moved_by_hand_is_put_back_alone_for_the_record_is_right() -> None:
    was = {"backend": {"backend_id": "b"}}
    there = live("TLSEdge", "e", {"backend": {"backend": {"id": "z"}}}, owner=record("TLSEdge/a", was))
    made = make_plan(declare("TLSEdge/a", was), seen=snapshot(there))
    assert ([call.owner for call in made.calls], requests(made)) == ([None], ["PUT /edges/tls/e/backend"])


@pytest.mark.parametrize("protect", [True, False])
def test_protection_that_changes_in_git_is_written_to_the_object(protect: bool) -> None:
    there = live("TLSEdge", "e", owner=record("TLSEdge/a", {}, protect=not protect))
    made = make_plan(declare("TLSEdge/a", protect=protect), seen=snapshot(there))
    assert change_of(made, "TLSEdge/a").reason is Reason.RECORD
    assert made.calls[0].owner is not None
    assert made.calls[0].owner.protect is protect


def test_protection_of_a_bot_is_remembered_by_the_store_and_then_rests() -> None:
    bot = live("BotUser", "bot_1", {"name": "b", "active": True})
    declared = declare("BotUser/b", {"name": "b"}, protect=True)
    made = make_plan(declared, seen=snapshot(bot, bindings={"BotUser/b": Binding("bot_1")}))
    (binding,) = made.bindings.values()
    assert binding is not None
    assert binding.protect
    assert make_plan(declared, seen=snapshot(bot, bindings={"BotUser/b": binding})).is_empty


def test_what_a_binding_says_was_replaced_is_deleted_if_it_is_still_there() -> None:
    subscription = live("EventSubscription", "esb_1", {"sources": []}, owner=record("EventSubscription/s", {}))
    old, new = (live("EventSource", f"ip_policy_{word}.v0", parent="esb_1") for word in ("created", "updated"))
    declared = declare("EventSource/a", {"subscription_id": ref("EventSubscription/s"), "type": new.id})
    bound = {"EventSource/a": Binding(new.locator, replaces=old.locator)}
    made = make_plan(declare("EventSubscription/s"), declared, seen=snapshot(subscription, old, new, bindings=bound))
    assert [(call.verb, call.target, call.unbinds) for call in made.calls] == [(Verb.DELETE, old.id, False)]


def test_a_binding_says_what_was_applied_only_once_it_was_applied() -> None:
    bot = live("BotUser", "bot_1", {"name": "before", "active": True})
    made = make_plan(
        declare("BotUser/b", {"name": "after"}), seen=snapshot(bot, bindings={"BotUser/b": Binding("bot_1")})
    )
    assert ([call.id for call in made.calls], made.bindings) == (["update BotUser/b"], {})


def test_the_binding_of_a_declared_object_that_vanished_stays_until_it_exists_again() -> None:
    """Without the binding it would be a new one, and nobody would be told that the object vanished."""
    made = make_plan(declare("BotUser/b", {"name": "b"}), seen=snapshot(bindings={"BotUser/b": Binding("bot_1")}))
    assert (change_of(made, "BotUser/b").reason, made.bindings) == (Reason.VANISHED, {})


def test_a_credential_without_a_target_for_its_secret_is_not_replaced() -> None:
    there = live("TunnelCredential", "cr_1", owner=record("TunnelCredential/c", {}))
    requested = PlanOptions(to_replace=frozenset({at("TunnelCredential/c")}))
    made = make_plan(declare("TunnelCredential/c", deliver=False), seen=snapshot(there), options=requested)
    assert (made.calls, [problem.code for problem in made.errors]) == ((), ["one-time-secret-undelivered"])


@pytest.mark.parametrize("is_there", [True, False])
def test_a_binding_forgets_what_was_replaced_once_that_is_gone(is_there: bool) -> None:
    """Another object may get the same type, and would be deleted in its place."""
    subscription = live("EventSubscription", "esb_1", {"sources": []}, owner=record("EventSubscription/s", {}))
    old, new = (live("EventSource", f"ip_policy_{word}.v0", parent="esb_1") for word in ("created", "updated"))
    declared = declare("EventSource/a", {"subscription_id": ref("EventSubscription/s"), "type": new.id})
    seen = snapshot(
        subscription,
        new,
        *([old] if is_there else []),
        bindings={"EventSource/a": Binding(new.locator, replaces=old.locator)},
    )
    binding = make_plan(declare("EventSubscription/s"), declared, seen=seen).bindings[at("EventSource/a")]
    assert binding is not None
    assert (binding.id, binding.replaces) == (new.locator, old.locator if is_there else None)


def test_a_source_that_returns_to_its_former_subscription_remembers_the_one_to_delete() -> None:
    """A delete may be refused: the next plan finds the other source by the binding alone."""
    subscriptions = [live("EventSubscription", f"esb_{n}", owner=record(f"EventSubscription/s{n}", {})) for n in (1, 2)]
    first, second = (live("EventSource", "a.v0", {"type": "a.v0"}, parent=f"esb_{n}") for n in (1, 2))
    declared = [
        *(declare(f"EventSubscription/s{n}") for n in (1, 2)),
        declare("EventSource/a", {"subscription_id": ref("EventSubscription/s1"), "type": "a.v0"}),
    ]
    bindings: dict[str, Binding] = {"EventSource/a": Binding(second.locator, replaces=first.locator)}
    for _ in range(2):
        seen = snapshot(*subscriptions, first, second, bindings=bindings)
        made = make_plan(*declared, seen=seen, options=LENIENT)
        assert [call.path for call in made.calls] == ["/event_subscriptions/esb_2/sources/a.v0"]
        bindings |= {str(address): binding for address, binding in made.bindings.items() if binding is not None}
        bound = bindings["EventSource/a"]
        assert (bound.id, bound.replaces) == (first.locator, second.locator)
        assert made.unmanaged == ()


def test_a_binding_does_not_call_replaced_what_another_declaration_has() -> None:
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
    made = make_plan(
        declare("EventSubscription/s"), *declared, seen=snapshot(subscription, *sources, bindings=bindings)
    )
    assert made.calls == ()
    assert {binding.replaces for binding in made.bindings.values() if binding is not None} == {None}


def test_what_is_forgotten_is_no_longer_an_orphan() -> None:
    there = live("TLSEdge", "e", owner=record("TLSEdge/a", {}))
    made = make_plan(declare("TLSEdge/a", ensure=Ensure.FORGOTTEN), seen=snapshot(there))
    assert actions(made) == {"TLSEdge/a": "forget"}


# --- lists cut short --------------------------------------------------------------------------------------------------


def test_of_a_list_cut_short_nothing_is_created() -> None:
    made = make_plan(declare("TLSEdge/a"), seen=snapshot(cut=["TLSEdge"]))
    assert (made.calls, errors(made)) == ((), ["the list of TLSEdge objects is incomplete: cut"])


def test_of_a_list_cut_short_nothing_is_known_to_be_up_to_date() -> None:
    there = live("TLSEdge", "e", owner=record("TLSEdge/a", {}))
    made = make_plan(declare("TLSEdge/a"), seen=snapshot(there, cut=["TLSEdge"]))
    assert (made.calls, errors(made)) == ((), ["the list of TLSEdge objects is incomplete: cut"])


def test_an_unreadable_list_is_one_problem_for_all_resources_of_the_kind() -> None:
    declared = [declare(f"TLSEdge/a{number}") for number in range(230)]
    made = make_plan(*declared, seen=snapshot(cut=["TLSEdge"]))
    (problem,) = made.problems
    assert problem.text == "the list of TLSEdge objects is incomplete: cut (230 resources)"
    assert (problem.subject, problem.values) == ("TLSEdge", {"resources": 230})
    assert problem.position == declared[0].position
    both = make_plan(*declared, declare("IPPolicy/p"), seen=snapshot(cut=["TLSEdge", "IPPolicy"]))
    assert sorted(problem.subject for problem in both.problems) == ["IPPolicy/p", "TLSEdge"]


def test_an_unreadable_list_is_one_warning_for_all_objects_that_are_no_longer_declared() -> None:
    there = [live("TLSEdge", f"e{number}", owner=record(f"TLSEdge/a{number}", {})) for number in range(230)]
    made = make_plan(seen=snapshot(*there, cut=["TLSEdge"]), options=PlanOptions(destroy=True))
    (problem,) = made.problems
    assert problem.text == "230 objects are no longer declared, but the list of TLSEdge objects is incomplete"


def test_of_a_list_cut_short_nothing_is_changed() -> None:
    there = live("TLSEdge", "e", owner=record("TLSEdge/a", {}))
    assert make_plan(declare("TLSEdge/a", {"description": "x"}), seen=snapshot(there, cut=["TLSEdge"])).calls == ()


def test_of_a_list_cut_short_nothing_is_deleted_and_the_plan_says_so() -> None:
    there = live("TLSEdge", "e", owner=record("TLSEdge/a", {}))
    made = make_plan(seen=snapshot(there, cut=["TLSEdge"]), options=PlanOptions(destroy=True))
    assert (made.calls, [problem.text for problem in made.problems]) == (
        (),
        ["e is no longer declared, but the list of TLSEdge objects is incomplete"],
    )


def test_of_a_list_cut_short_a_tombstone_deletes_nothing() -> None:
    there = live("TLSEdge", "e", owner=record("TLSEdge/a", {}))
    made = make_plan(declare("TLSEdge/a", id="e", ensure=Ensure.ABSENT), seen=snapshot(there, cut=["TLSEdge"]))
    assert (made.calls, len(made.errors)) == ((), 1)


def test_of_a_list_cut_short_what_is_named_by_id_is_changed_in_place() -> None:
    there = live("TLSEdge", "e", owner=record("TLSEdge/a", {}))
    made = make_plan(declare("TLSEdge/a", {"description": "x"}, id="e"), seen=snapshot(there, cut=["TLSEdge"]))
    assert requests(made) == ["PATCH /edges/tls/e"]


def test_of_a_list_cut_short_what_is_named_by_id_is_not_replaced() -> None:
    there = live("CertificateAuthority", "ca_1", {"ca_pem": "OLD"}, owner=record("CertificateAuthority/a"))
    made = make_plan(
        declare("CertificateAuthority/a", {"ca_pem": "NEW"}, id="ca_1"),
        seen=snapshot(there, cut=["CertificateAuthority"]),
    )
    assert (made.calls, len(made.errors)) == ((), 1)


def test_a_kind_that_was_not_listed_at_all_is_not_taken_for_empty() -> None:
    seen = snapshot()
    listings = {name: listing for name, listing in seen.listings.items() if name != "TLSEdge"}
    made = make_plan(declare("TLSEdge/a"), seen=type(seen)(listings))
    assert (made.calls, errors(made)) == ((), ["the list of TLSEdge objects is incomplete: it was not listed"])


# --- records that somebody wrote over ---------------------------------------------------------------------------------


def test_an_object_whose_record_was_written_over_is_known_by_its_binding_and_marked_again() -> None:
    there = live("TLSEdge", "edgtls_1", {"metadata": "by hand"})
    bound = {"TLSEdge/a": Binding("edgtls_1")}
    made = make_plan(declare("TLSEdge/a", {"metadata": "by hand"}), seen=snapshot(there, bindings=bound))
    assert [(change.action, change.reason, change.id) for change in made.changes] == [
        (Action.UPDATE, Reason.RECORD, "edgtls_1")
    ]
    assert [(call.verb, call.owner is not None) for call in made.calls] == [(Verb.UPDATE, True)]


def test_a_credential_whose_record_was_removed_is_marked_again_and_keeps_its_token() -> None:
    there = live("TunnelCredential", "cr_1", {"description": "x"})
    seen = snapshot(there, bindings={"TunnelCredential/c": Binding("cr_1")})
    made = make_plan(declare("TunnelCredential/c", {"description": "x"}), seen=seen)
    assert [(change.action, change.reason) for change in made.changes] == [(Action.UPDATE, Reason.RECORD)]


def test_without_a_declaration_an_object_without_a_record_is_nobodys() -> None:
    made = make_plan(seen=snapshot(live("TLSEdge", "edgtls_1"), bindings={"TLSEdge/a": Binding("edgtls_1")}))
    assert made.changes == ()


# --- authentication modules are exchanged -----------------------------------------------------------------------------


OIDC = {"issuer": "https://i.x", "client_id": "c", "client_secret": secret("s")}
ROUTE = {"edge_id": "e_1", "match": "/", "match_type": "path_prefix"}


def exchange_modules(**lifecycle: Any) -> Plan:
    """The plan of a route that lets people in by GitHub from now on, instead of by OpenID."""
    before = {**ROUTE, "oidc": OIDC, "backend": {"backend_id": "bkdhr_1"}}
    shown = {"edge": {"id": "e_1"}, "match": "/", "match_type": "path_prefix", "oidc": {**OIDC, "client_secret": "s"}}
    shown |= {"backend": {"backend": {"id": "bkdhr_1"}}}
    there = live("HTTPSEdgeRoute", "rt_1", shown, parent="e_1", owner=record("HTTPSEdgeRoute/r", before))
    spec = {**ROUTE, "oauth": {"provider": {"github": {}}}}
    spec |= {} if lifecycle else {"backend": {"backend_id": "bkdhr_1"}}
    return make_plan(declare("HTTPSEdgeRoute/r", spec, **lifecycle), seen=snapshot(there), options=LENIENT)


def test_what_nothing_passes_meanwhile_is_told() -> None:
    assert Risk.INTERRUPTS_TRAFFIC in change_of(exchange_modules(), "HTTPSEdgeRoute/r").risks


def test_a_backend_that_is_left_to_others_is_not_taken_away_for_it() -> None:
    made = exchange_modules(ignore=("backend",))
    assert made.calls == ()
    assert errors(made) == [
        "backend must be removed while the authentication module is exchanged, and no manifest declares its value"
    ]


def test_metadata_that_others_fill_leaves_no_room_for_our_record() -> None:
    there = live("IPPolicy", "ipp_1", {"description": "x", "metadata": "é" * 2000}, owner=record("IPPolicy/p", {}))
    made = make_plan(declare("IPPolicy/p", {"description": "y"}, ignore=("metadata",)), seen=snapshot(there))
    assert made.calls == ()
    assert [error.rpartition(":")[0] for error in errors(made)] == [
        "the metadata of ipp_1 leaves no room for the owner record"
    ]


def test_metadata_that_leaves_just_enough_room_is_taken() -> None:
    declared = declare("IPPolicy/p", {"description": "y"}, ignore=("metadata",))

    def fill_metadata(length: int) -> RandomAccount:
        """A platform with our object, of whose text there is so much."""
        world, said = RandomAccount(KINDS), {"description": "x"}
        owner = record("IPPolicy/p", said, intent="0123456789abcdef")
        there = live("IPPolicy", "ipp_1", {**said, "metadata": "m" * length}, owner=owner)
        world.objects["IPPolicy", "ipp_1"] = {"id": "ipp_1", **there.body}
        return world

    fits = next(length for length in range(4096, 3000, -1) if not errors(plan_on(fill_metadata(length), declared)))
    world = fill_metadata(fits)
    world.carry_out(plan_on(world, declared))
    assert len(world.objects["IPPolicy", "ipp_1"]["metadata"].encode()) == 4096


@pytest.mark.parametrize("is_replaced", [False, True])
def test_metadata_that_leaves_just_enough_room_for_the_record_of_a_credential_is_taken(is_replaced: bool) -> None:
    """The record of a new one says for a while that its token is pending, and which one it replaces."""
    declared = declare("TunnelCredential/c", {"description": "y"}, ignore=("metadata",))
    options = PlanOptions(to_replace=frozenset([declared.address] if is_replaced else []))

    def plan_beside(length: int) -> Plan:
        there = {"description": "x", "metadata": "m" * length}
        owner = record("TunnelCredential/c", {"description": "x"}, intent="0123456789abcdef")
        return make_plan(declared, seen=snapshot(live("TunnelCredential", "cr_1", there, owner=owner)), options=options)

    made = next(made for length in range(4050, 3000, -1) if not (made := plan_beside(length)).errors)
    drafts = [call.owner for call in made.calls if call.owner is not None]
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


def test_an_exchange_of_logins_interrupts_nothing_where_nothing_is_attached() -> None:
    before = {**ROUTE, "oidc": OIDC}
    shown = {"edge": {"id": "e_1"}, "match": "/", "match_type": "path_prefix", "oidc": {**OIDC, "client_secret": "s"}}
    there = live("HTTPSEdgeRoute", "rt_1", shown, parent="e_1", owner=record("HTTPSEdgeRoute/r", before))
    made = make_plan(
        declare("HTTPSEdgeRoute/r", {**ROUTE, "oauth": {"provider": {"github": {}}}}), seen=snapshot(there)
    )
    assert Risk.INTERRUPTS_TRAFFIC not in change_of(made, "HTTPSEdgeRoute/r").risks


@pytest.mark.parametrize("protect", [True, False])
def test_a_replacement_needs_approval_only_of_what_is_protected(protect: bool) -> None:
    there = live("TLSEdge", "e", {}, owner=record("TLSEdge/a", {}, protect=protect))
    asked = PlanOptions(to_replace=frozenset({at("TLSEdge/a")}))
    made = make_plan(declare("TLSEdge/a"), seen=snapshot(there), options=asked)
    assert [approval.flag for approval in made.approvals] == ["--allow delete-protected:TLSEdge=1"] * protect
    assert change_of(made, "TLSEdge/a").protected is protect


def test_long_metadata_that_the_manifest_replaces_leaves_room_enough() -> None:
    there = live("IPPolicy", "ipp_1", {"metadata": "m" * 4096})
    declared = declare("IPPolicy/p", {"metadata": "short"}, id="ipp_1")
    assert actions(make_plan(declared, seen=snapshot(there))) == {"IPPolicy/p": "adopt"}
    assert errors(make_plan(declare("IPPolicy/p", id="ipp_1", ignore=("metadata",)), seen=snapshot(there))) != []


def test_protection_of_a_bot_that_changes_in_git_is_a_change_of_its_own() -> None:
    bot = live("BotUser", "bot_1", {"name": "b", "active": True})
    for was, now in ((True, False), (False, True), (True, True), (False, False)):
        bound = snapshot(bot, bindings={"BotUser/b": Binding("bot_1", protect=was)})
        made = make_plan(declare("BotUser/b", {"name": "b"}, protect=now), seen=bound)
        assert [change.reason for change in made.changes] == ([Reason.RECORD] if was is not now else [])


@pytest.mark.parametrize("bound_as", ["BotUser/b", "BotUser/former"])
@pytest.mark.parametrize(
    ("was", "shown", "cause"),
    [
        ("was", "was", ChangedBy.GIT),
        ("now", "by hand", ChangedBy.PLATFORM),
        ("was", "by hand", ChangedBy.BOTH),
        (None, "by hand", ChangedBy.BOTH),
    ],
)
def test_the_binding_of_a_bot_tells_what_changed_it(bound_as: str, was: str, shown: str, cause: ChangedBy) -> None:
    """Under its present address or a former one."""
    bot = live("BotUser", "bot_1", {"name": shown, "active": True})
    binding = Binding("bot_1", digests({"name": was}, bound_as))
    declared = declare("BotUser/b", {"name": "now"}, moved=[] if bound_as == "BotUser/b" else [bound_as])
    made = make_plan(declared, seen=snapshot(bot, bindings={bound_as: binding}))
    assert [(field.path, field.changed_by) for field in change_of(made, "BotUser/b").fields] == [("name", cause)]


def test_a_secret_that_is_named_by_id_and_refers_to_its_vault_by_name_is_managed_whole() -> None:
    """Only of kinds with modules that are attached to objects of others, the modules alone may be managed."""
    there = live("Secret", "secret_1", {"name": "s", "vault": {"id": "vault_1", "name": "v"}})
    spec = {"vault_name": "another", "name": "s", "value": secret("x"), "description": "new"}
    made = make_plan(declare("Secret/s", spec, id="secret_1"), seen=snapshot(there))
    assert made.calls == ()
    assert [problem.code for problem in made.errors] == ["not-owned"]
