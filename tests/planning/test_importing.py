"""Which live objects are offered as declarations, under which names, and what their references become."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from reconciler.model.address import Address
from reconciler.model.manifest import Declaration
from reconciler.model.problem import Position
from reconciler.model.snapshot import Binding, Live, Snapshot
from reconciler.planning.importing.describe import Attachment
from reconciler.planning.importing.survey import Imported, Survey, drop_foreign_owners, find_objections, survey
from reconciler.planning.planner import PlanOptions, plan
from tests.planning.builders import KINDS, declare, live, manifest, record, ref, snapshot

POLICY = live("IPPolicy", "ipp_1", {"description": "Office", "created_at": "2030-01-01T00:00:00Z"})
RULE = live("IPPolicyRule", "ipr_1", {"ip_policy": {"id": "ipp_1"}, "cidr": "10.0.0.0/8", "action": "allow"})


def propose(*lives: Live, declared: tuple[Declaration, ...] = (), seen: Snapshot | None = None, **how: Any) -> Survey:
    return survey(manifest(*declared), seen or snapshot(*lives), KINDS, **how)


def only(survey: Survey) -> Imported:
    (one,) = survey.imported
    return one


def names(survey: Survey) -> list[str]:
    return [str(imported.address) for imported in survey.imported]


def test_ids_of_what_is_imported_become_references() -> None:
    imported = propose(POLICY, RULE).imported
    assert [each.spec.get("ip_policy_id") for each in imported] == [None, ref("IPPolicy/office")]


def test_ids_of_what_is_declared_become_references() -> None:
    declared = declare("IPPolicy/hq", {"description": "Office"}, id="ipp_1")
    assert only(propose(POLICY, RULE, declared=(declared,))).spec["ip_policy_id"] == ref("IPPolicy/hq")


def test_ids_of_what_is_not_chosen_stay_ids() -> None:
    one = only(propose(POLICY, RULE, selects=lambda address: address.kind == "IPPolicyRule"))
    assert (str(one.address), one.spec["ip_policy_id"]) == ("IPPolicyRule/office-10.0.0.0-8", "ipp_1")


def test_a_name_does_not_depend_on_what_is_chosen() -> None:
    twin = live("IPPolicy", "ipp_2", {"description": "Office", "created_at": "2030-01-02T00:00:00Z"})
    both = propose(twin, POLICY)
    assert names(both) == ["IPPolicy/office", "IPPolicy/office-2"]
    assert names(propose(twin, POLICY, selects=lambda address: address.name == "office-2")) == ["IPPolicy/office-2"]


def test_what_is_declared_is_left_out_and_keeps_its_name() -> None:
    twin = live("IPPolicy", "ipp_2", {"description": "Office"})
    declared = declare("IPPolicy/office", {"description": "Office"}, id="ipp_2")
    assert names(propose(twin, POLICY, declared=(declared,))) == ["IPPolicy/office-2"]


def test_what_the_environment_leaves_out_keeps_its_name_and_is_not_offered() -> None:
    ours = live("IPPolicy", "ipp_1", {}, owner=record("IPPolicy/hq", {}))
    twin = live("IPPolicy", "ipp_2", {"description": "HQ"})
    there = Position("environments/prod.yaml", 1, 1)
    seen = survey(replace(manifest(), left_out={Address("IPPolicy", "hq"): there}), snapshot(ours, twin), KINDS)
    assert (names(seen), [(left_out.id, left_out.why, left_out.wrong) for left_out in seen.left_out]) == (
        ["IPPolicy/hq-2"],
        [("ipp_1", f"is declared as IPPolicy/hq, which this environment excludes ({there})", False)],
    )


def test_what_another_stack_owns_is_left_out_with_a_note() -> None:
    theirs = live("IPPolicy", "ipp_1", {}, owner=record("IPPolicy/a", {}, stack="theirs"))
    assert [(left_out.id, left_out.why, left_out.wrong) for left_out in propose(theirs).left_out] == [
        ("ipp_1", "is managed by stack theirs as IPPolicy/a", False)
    ]


def test_as_if_others_had_forgotten_it_is_offered() -> None:
    theirs = live("IPPolicy", "ipp_1", {"metadata": "m"}, owner=record("IPPolicy/a", {}, stack="theirs"))
    one = only(propose(seen=drop_foreign_owners(manifest(), snapshot(theirs))))
    assert one.spec == {"metadata": "m"}


def test_what_is_ours_and_no_longer_declared_is_offered_by_the_name_it_had() -> None:
    ours = live("IPPolicy", "ipp_1", {"description": "Office"}, owner=record("IPPolicy/hq", {"description": "Office"}))
    one = only(propose(ours))
    assert (str(one.address), one.id) == ("IPPolicy/hq", None)


def test_what_was_protected_stays_protected() -> None:
    ours = live("IPPolicy", "ipp_1", {}, owner=record("IPPolicy/hq", {}, protect=True))
    assert only(propose(ours)).protect


def test_an_object_that_the_store_knows_is_offered_by_the_name_it_had() -> None:
    seen = snapshot(live("BotUser", "bot_1", {"name": "b"}), bindings={"BotUser/robot": Binding("bot_1")})
    assert names(propose(seen=seen)) == ["BotUser/robot"]


def test_copies_of_one_record_are_left_out() -> None:
    copies = [live("IPPolicy", f"ipp_{n}", {}, owner=record("IPPolicy/a", {})) for n in (1, 2)]
    assert [left_out.why for left_out in propose(*copies).left_out] == [
        "shares the owner record of IPPolicy/a with other objects"
    ] * 2


def test_an_id_is_said_only_where_nothing_else_tells_the_object() -> None:
    domain = live("ReservedDomain", "rd_1", {"domain": "a.example.com"})
    assert {imported.address.kind: imported.id for imported in propose(POLICY, domain).imported} == {
        "IPPolicy": "ipp_1",
        "ReservedDomain": None,
    }


def test_several_endpoints_of_one_address_are_told_by_their_ids() -> None:
    policy = '{"on_http_request": []}'
    pool = [
        live("CloudEndpoint", f"ep_{n}", {"url": "https://a.b", "traffic_policy": policy, "pooling_enabled": True})
        for n in (1, 2)
    ]
    assert [imported.id for imported in propose(*pool).imported] == ["ep_1", "ep_2"]


def test_what_the_platform_issues_by_itself_is_left_out() -> None:
    issued = live("TLSCertificate", "cert_1", {"certificate_pem": "PEM", "issued_at": "2030-01-01T00:00:00Z"})
    assert [left_out.why for left_out in propose(issued).left_out] == [
        "was created by the platform, which renews it automatically"
    ]


def test_a_list_that_was_cut_short_is_not_taken_for_the_whole() -> None:
    assert [
        (left_out.kind, left_out.wrong) for left_out in propose(seen=snapshot(POLICY, cut=["IPPolicy"])).left_out
    ] == [("IPPolicy", True)]


def test_a_user_that_is_seen_as_two_kinds_is_imported_once() -> None:
    user = [live("BotUser", "bot_1", {"name": "b"}), live("ServiceUser", "service_1", {"name": "b"})]
    assert names(propose(*user)) == ["BotUser/b"]


SUBSCRIPTION = live("EventSubscription", "esb_1", {"sources": [{"type": "vault_created.v0"}]})
SOURCE = live("EventSource", "vault_created.v0", {}, parent="esb_1")


def test_children_that_their_parent_declares_are_not_declared_again() -> None:
    assert only(propose(SUBSCRIPTION, SOURCE)).spec == {"sources": [{"type": "vault_created.v0"}]}


def test_children_below_a_declared_parent_that_leaves_them_out_are_declared_each() -> None:
    declared = declare("EventSubscription/audit", {}, id="esb_1")
    assert only(propose(SUBSCRIPTION, SOURCE, declared=(declared,))).spec == {
        "subscription_id": ref("EventSubscription/audit"),
        "type": "vault_created.v0",
    }


def test_a_child_that_its_parent_and_type_tell_apart_needs_no_id() -> None:
    declared = declare("EventSubscription/audit", {}, id="esb_1")
    assert only(propose(SUBSCRIPTION, SOURCE, declared=(declared,))).id is None


def test_an_address_that_the_platform_assigned_becomes_a_reference_where_it_is_listened_on() -> None:
    address = live("ReservedAddress", "ra_1", {"addr": "1.tcp.example.com:20001", "description": "db"})
    edge = live("TCPEdge", "edgtcp_1", {"hostports": ["1.TCP.example.com:20001", "2.tcp.example.com:1"]})
    _, imported = propose(address, edge).imported
    assert imported.spec["hostports"] == [ref("ReservedAddress/db", "addr"), "2.tcp.example.com:1"]
    described = live("IPPolicy", "ipp_1", {"description": "1.tcp.example.com:20001"})
    policy = next(each for each in propose(address, described).imported if each.address.kind == "IPPolicy")
    assert policy.spec == {"description": "1.tcp.example.com:20001"}, "a text that mentions no host stays a text"


def test_children_that_a_declared_parent_names_are_left_to_it() -> None:
    declared = declare("EventSubscription/audit", {"sources": [{"type": "vault_created.v0"}]}, id="esb_1")
    assert propose(SUBSCRIPTION, SOURCE, declared=(declared,)).imported == ()


def test_what_a_plan_would_change_is_objected_to_by_the_names_of_its_fields() -> None:
    (one,) = propose(POLICY).imported
    wrong = declare("IPPolicy/office", {"description": "another"}, id="ipp_1")
    made = plan(manifest(wrong), snapshot(POLICY), KINDS, PlanOptions(adopt=True))
    assert find_objections(made, [one]) == {("IPPolicy", "ipp_1"): "a plan would adopt it: description"}


def test_what_was_refused_is_left_out_and_its_id_stays_where_it_is_referred_to() -> None:
    survey = propose(POLICY, RULE, refused={("IPPolicy", "ipp_1"): "for a reason"})
    assert (only(survey).spec["ip_policy_id"], [left_out.why for left_out in survey.left_out]) == (
        "ipp_1",
        ["for a reason"],
    )
    assert only(survey).address == Address("IPPolicyRule", "office-10.0.0.0-8")


@pytest.mark.parametrize("key", ["", "<<", "a-${{ x }}"])
def test_a_traffic_policy_with_a_key_that_means_more_in_a_manifest_stays_a_text(key: str) -> None:
    policy = {"on_http_request": [{"actions": [{"type": "add-headers", "config": {"headers": {key: "v"}}}]}]}
    endpoint = live("CloudEndpoint", "ep_1", {"url": "https://a.b", "traffic_policy": json.dumps(policy)})
    (value,) = [value for value in only(propose(endpoint)).spec.values() if isinstance(value, Attachment)]
    assert value.document is None
    policy["on_http_request"][0]["actions"][0]["config"] = {"headers": {"plain": "v"}}
    endpoint = live("CloudEndpoint", "ep_1", {"url": "https://a.b", "traffic_policy": json.dumps(policy)})
    (value,) = [value for value in only(propose(endpoint)).spec.values() if isinstance(value, Attachment)]
    assert value.document == policy
