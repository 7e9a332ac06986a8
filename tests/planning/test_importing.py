"""Which live objects are offered as declarations, under which names, and what their references become."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.model.address import Address
from reconciler.model.change import Action, Change, ChangedBy, FieldChange, Reason
from reconciler.model.manifest import Declaration
from reconciler.model.plan import Plan
from reconciler.model.problem import Position, Problem
from reconciler.model.snapshot import NOT_OFFERED, Binding, Listing, Live, Snapshot
from reconciler.model.value import Template
from reconciler.planning.importing.describe import Attachment
from reconciler.planning.importing.survey import (
    Imported,
    LeftOut,
    Survey,
    drop_foreign_owners,
    find_objections,
    find_rejected,
    find_transient_objects,
    find_unencodable,
    survey,
)
from reconciler.planning.planner import PlanOptions, plan
from tests.planning.builders import KINDS, at, declare, live, manifest, record, ref, snapshot

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
    one = only(propose(POLICY, RULE, selects=lambda address, *_: address.kind == "IPPolicyRule"))
    assert (str(one.address), one.spec["ip_policy_id"]) == ("IPPolicyRule/office-10.0.0.0-8", "ipp_1")


def test_a_name_does_not_depend_on_what_is_chosen() -> None:
    twin = live("IPPolicy", "ipp_2", {"description": "Office", "created_at": "2030-01-02T00:00:00Z"})
    both = propose(twin, POLICY)
    assert names(both) == ["IPPolicy/office", "IPPolicy/office-2"]
    assert names(propose(twin, POLICY, selects=lambda address, *_: address.name == "office-2")) == ["IPPolicy/office-2"]


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


# --- whose, and which -------------------------------------------------------------------------------------------------


def test_only_the_owner_records_of_other_stacks_are_dropped_and_the_users_text_stays() -> None:
    theirs = live("IPPolicy", "ipp_1", {"metadata": "text"}, owner=record("IPPolicy/x", {}, stack="theirs"))
    ours = live("IPPolicy", "ipp_2", {}, owner=record("IPPolicy/y", {}))
    nobodys = live("IPPolicy", "ipp_3", {"metadata": "text"})
    dropped = drop_foreign_owners(manifest(), snapshot(theirs, ours, nobodys)).of("IPPolicy").objects
    assert [(each.id, each.owner and each.owner.stack, each.metadata) for each in dropped] == [
        ("ipp_1", None, "text"),
        ("ipp_2", "laws", ""),
        ("ipp_3", None, "text"),
    ]


@pytest.mark.parametrize("stack", ["a stack", "the stack"])
def test_what_any_other_stack_owns_is_left_out(stack: str) -> None:
    theirs = live("IPPolicy", "ipp_1", {}, owner=record("IPPolicy/x", {}, stack=stack))
    assert propose(theirs).left_out == (LeftOut("IPPolicy", "ipp_1", f"is managed by stack {stack} as IPPolicy/x"),)


def test_what_was_replaced_is_left_out_and_nothing_beside_it() -> None:
    old = live("TLSEdge", "e_1", owner=record("TLSEdge/e", {}, intent="i1"))
    new = live("TLSEdge", "e_2", owner=record("TLSEdge/e", {}, intent="i2", replaces="e_1"))
    found = propose(old, new, live("TLSEdge", "e_3", {"description": "other"}))
    assert names(found) == ["TLSEdge/e", "TLSEdge/other"]
    assert found.left_out == (LeftOut("TLSEdge", "e_1", "will be deleted: another object replaces it"),)


def test_a_certificate_that_was_uploaded_is_proposed() -> None:
    uploaded = live("TLSCertificate", "cert_1", {"certificate_pem": "PEM", "description": "own"})
    assert names(propose(uploaded)) == ["TLSCertificate/own"]


@pytest.mark.parametrize(
    ("objects", "why", "wrong"),
    [((), NOT_OFFERED, False), ((), "broken off", True), ((POLICY,), NOT_OFFERED, True)],
    ids=["no longer offered", "not read", "no longer offered half-way"],
)
def test_a_list_that_is_not_complete_is_an_error_unless_the_platform_has_retired_it(
    objects: tuple[Live, ...], why: str, wrong: bool
) -> None:
    seen = snapshot()
    listing = Listing(objects, complete=False, why=why)
    found = propose(seen=replace(seen, listings={**seen.listings, "IPPolicy": listing}))
    assert found.imported == ()
    assert found.left_out == (LeftOut("IPPolicy", "", f"the list is incomplete: {why}", wrong=wrong),)


def test_kinds_that_were_not_listed_are_passed_over() -> None:
    found = propose(seen=Snapshot({"IPPolicy": Listing((POLICY,))}))
    assert (names(found), found.left_out) == (["IPPolicy/office"], ())


def test_the_oldest_of_several_gets_the_name_without_a_number() -> None:
    twins = [live("IPPolicy", id, {"description": "x", "created_at": made}) for id, made in _MADE.items()]
    for order in (twins, twins[::-1]):
        found = propose(*order)
        assert {str(each.address): each.live.id for each in found.imported} == {
            "IPPolicy/x": "ipp_3",  # no date is before any
            "IPPolicy/x-2": "ipp_2",
            "IPPolicy/x-3": "ipp_1",
        }


_MADE = {"ipp_1": "2030-01-03T00:00:00Z", "ipp_2": "2030-01-02T00:00:00Z", "ipp_3": None}


def test_what_was_refused_is_told_as_an_error() -> None:
    found = propose(POLICY, refused={("IPPolicy", "ipp_1"): "for a reason"})
    assert found.left_out == (LeftOut("IPPolicy", "ipp_1", "for a reason", wrong=True),)


def test_what_a_plan_would_change_of_a_proposal_is_an_objection_though_no_field_differs() -> None:
    proposal = only(propose(POLICY))
    change = Change(proposal.address, Action.ADOPT, Reason.UNOWNED, POLICY.id)
    field = FieldChange("description", "", "x", ChangedBy.UNKNOWN)

    def find(change: Change) -> list[str]:
        return list(find_objections(Plan("laws", changes=(change,)), [proposal]).values())

    assert find(change) == []
    assert find(replace(change, action=Action.UPDATE)) == ["a plan would update it"]
    assert find(replace(change, action=Action.REPLACE)) == ["a plan would replace it"]
    (objection,) = find(replace(change, fields=(field,)))
    assert objection.startswith("a plan would adopt it")
    assert find(replace(change, action=Action.UPDATE, address=at("IPPolicy/other"))) == []


@pytest.mark.parametrize("owner", ["bot_1", "service_1"])
def test_a_user_is_referred_to_whichever_of_its_ids_is_shown(owner: str) -> None:
    credential = live("TunnelCredential", "cr_1", {"owner_id": owner, "description": "c"})
    assert propose(live("BotUser", "bot_1", {"name": "b"}), credential).imported[1].spec["owner_id"] == ref("BotUser/b")


# --- names and protection ---------------------------------------------------------------------------------------------


def test_an_object_is_named_after_what_is_declared_already() -> None:
    declared = declare("IPPolicy/hq", {"description": "Office"}, id="ipp_1")
    assert names(propose(POLICY, RULE, declared=(declared,))) == ["IPPolicyRule/hq-10.0.0.0-8"]


def test_names_of_former_addresses_of_other_objects_and_of_bindings_are_not_given_again() -> None:
    declared = declare("IPPolicy/new", moved=["IPPolicy/office"])
    assert names(propose(POLICY, declared=(declared,))) == ["IPPolicy/office-2"]
    gone = snapshot(POLICY, bindings={"IPPolicy/office": Binding("ipp_9")})
    assert names(propose(seen=gone)) == ["IPPolicy/office-2"]


def test_a_binding_names_no_object_that_another_stack_recorded_or_that_is_declared() -> None:
    bots = [live("BotUser", f"bot_{n}", {"name": f"b{n}"}) for n in (1, 2)]
    seen = snapshot(*bots, bindings={"BotUser/x": Binding("bot_1"), "BotUser/y": Binding("bot_1")})
    assert names(propose(seen=seen)) == ["BotUser/b2", "BotUser/x"]
    (other,) = propose(seen=seen, declared=(declare("BotUser/x", {"name": "b1"}),)).imported
    assert str(other.address) == "BotUser/b2"


def test_only_what_is_ours_stays_protected() -> None:
    ours = live("IPPolicy", "ipp_1", owner=record("IPPolicy/a", {}))
    theirs = live("IPPolicy", "ipp_2", {"description": "b"}, owner=record("IPPolicy/b", {}, stack="x", protect=True))
    seen = drop_foreign_owners(manifest(), snapshot(ours, theirs))
    assert [(str(each.address), each.protect, each.id) for each in propose(seen=seen).imported] == [
        ("IPPolicy/a", False, None),
        ("IPPolicy/b", False, "ipp_2"),
    ]
    bound = snapshot(live("BotUser", "bot_1", {"name": "b"}), bindings={"BotUser/b": Binding("bot_1", protect=True)})
    assert only(propose(seen=bound)).protect


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("tcp://1.tcp.example.com:20001", Template(("tcp://", ref("ReservedAddress/db", "addr")))),
        ("tcp://2.tcp.example.com:20001", "tcp://2.tcp.example.com:20001"),
        ("https://a.example.com", "https://a.example.com"),
    ],
)
def test_an_url_refers_to_an_assigned_address_and_keeps_the_name_of_a_domain(url: str, expected: object) -> None:
    there = [
        live("ReservedAddress", "ra_1", {"addr": "1.tcp.example.com:20001", "description": "db"}),
        live("ReservedDomain", "rd_1", {"domain": "a.example.com"}),
        live("CloudEndpoint", "ep_1", {"url": url, "traffic_policy": "p"}),
    ]
    endpoint = next(each for each in propose(*there).imported if each.address.kind == "CloudEndpoint")
    assert endpoint.spec["url"] == expected


def test_an_address_that_is_not_proposed_is_not_referred_to() -> None:
    address = live("ReservedAddress", "ra_1", {"addr": "1.tcp.example.com:20001"})
    edge = live("TCPEdge", "edgtcp_1", {"hostports": ["1.tcp.example.com:20001"]})
    one = only(propose(address, edge, selects=lambda address, *_: address.kind == "TCPEdge"))
    assert one.spec["hostports"] == ["1.tcp.example.com:20001"]


def test_an_id_is_written_unless_the_key_is_unique_and_finds_one_object() -> None:
    pem = {"ca_pem": "PEM"}
    there = [
        live("SSHCredential", "sshcr_1", {"public_key": "ssh-ed25519 AAAA", "description": "a"}),
        live("SSHCredential", "sshcr_2", {"public_key": "ssh-ed25519 BBBB", "description": "b"}),
        live("SSHCredential", "sshcr_3", {"public_key": "ssh-ed25519 BBBB", "description": "c"}),
        live("CertificateAuthority", "ca_1", {**pem, "description": "d"}),
        live("TunnelCredential", "cr_1", {"description": "e"}),
    ]
    assert {each.address.name: each.id for each in propose(*there).imported} == {
        "a": None,
        "b": "sshcr_2",
        "c": "sshcr_3",
        "d": "ca_1",
        "e": "cr_1",
    }


# --- children ---------------------------------------------------------------------------------------------------------


def test_a_parent_with_a_declared_child_is_proposed_without_children_and_the_others_on_their_own() -> None:
    other = live("EventSource", "b.v0", {}, parent="esb_1")
    declared = declare("EventSource/x", {"subscription_id": "esb_1", "type": "vault_created.v0"})
    seen = snapshot(SUBSCRIPTION, SOURCE, other, bindings={"EventSource/x": Binding("esb_1/vault_created.v0")})
    source, parent = propose(seen=seen, declared=(declared,)).imported
    assert (source.live.id, "sources" in parent.spec) == ("b.v0", False)
    assert parent.address.kind == "EventSubscription"


def test_routes_are_declared_beside_their_edge() -> None:
    edge = live("HTTPSEdge", "e_1", {"hostports": ["a.example.com:443"]})
    route = live("HTTPSEdgeRoute", "r_1", {"match": "/x", "match_type": "exact_path"}, parent="e_1")
    found = propose(edge, route)
    assert names(found) == ["HTTPSEdge/a.example.com", "HTTPSEdgeRoute/a.example.com-x"]
    assert found.imported[1].spec["edge_id"] == ref("HTTPSEdge/a.example.com")


def test_a_source_is_declared_on_its_own_if_its_subscription_is_not_chosen() -> None:
    one = only(propose(SUBSCRIPTION, SOURCE, selects=lambda address, *_: address.kind == "EventSource"))
    assert one.spec == {"subscription_id": "esb_1", "type": "vault_created.v0"}


# --- what cannot be written or planned --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "encodable"),
    [
        ({"description": "plain"}, True),
        ({"description": "a\ud800"}, False),
        ({"a": {"b": ["x", "a\udfff"]}}, False),
        ({"a": {"\ud900": 1}}, False),
        ({"a": Attachment("\ud800", "pem")}, False),
        ({"a": Attachment("x", "pem"), "b": 1, "c": None}, True),
    ],
    ids=repr,
)
def test_what_no_file_can_hold_is_found_in_any_part(spec: dict[str, Any], encodable: bool) -> None:
    proposals = [Imported(Address("IPPolicy", "fine"), RULE, {}), Imported(Address("IPPolicy", "p"), POLICY, spec)]
    assert find_unencodable(proposals) == (
        {} if encodable else {("IPPolicy", "ipp_1"): "contains an unpaired surrogate, which no text file can hold"}
    )


def test_a_proposal_is_rejected_for_its_first_problem_and_told_where_it_is() -> None:
    proposals = [
        Imported(Address("IPPolicy", "v1.2"), POLICY, {}),
        Imported(Address("IPPolicyRule", "r"), RULE, {}),
    ]
    subjects = ["", "IPPolicy/v1", "IPPolicyRule/r.cidr.first", "IPPolicyRule/r", "IPPolicy/v1.2", "IPPolicy/v1.2.x"]
    problems = [Problem(f"problem {n}", "", subject, code="any") for n, subject in enumerate(subjects)]
    assert find_rejected(problems, proposals) == {
        ("IPPolicyRule", "ipr_1"): "cidr.first: problem 2",
        ("IPPolicy", "ipp_1"): "problem 4",
    }


def test_a_plan_that_does_anything_but_adopt_is_an_objection() -> None:
    one = only(propose(POLICY))
    same = declare("IPPolicy/office", {"description": "Office"}, id="ipp_1")
    other = declare("IPPolicy/new", {"description": "new"})
    adopted = plan(manifest(same, other), snapshot(POLICY), KINDS, PlanOptions(adopt=True))
    assert (len(adopted.changes), find_objections(adopted, [one])) == (2, {})
    created = plan(
        manifest(declare("IPPolicy/office", {"description": "Office"})), snapshot(POLICY), KINDS, PlanOptions()
    )
    assert find_objections(created, [one]) == {("IPPolicy", "ipp_1"): "a plan would create it: description"}
    (change,) = created.changes
    assert find_objections(replace(created, changes=(replace(change, fields=()),)), [one]) == {
        ("IPPolicy", "ipp_1"): "a plan would create it"
    }
    wrong = plan(manifest(declare("IPPolicy/office", {}, id="ipp_9")), snapshot(POLICY), KINDS, PlanOptions())
    assert list(find_objections(wrong, [one]).values()) == ["a plan would create it"]


def test_objects_of_running_agents_are_left_out_with_the_reason() -> None:
    def shown(kind: str, id: str, body: dict[str, Any]) -> tuple[str, Listing]:
        return kind, Listing((Live(kind, id, {"id": id, **body}),))

    endpoints = Listing(
        tuple(
            Live("Endpoint", f"ep_{n}", {"id": f"ep_{n}", "type": type_})
            for n, type_ in enumerate(["cloud", "ephemeral", "agent"])
        )
    )
    listings = dict([shown("Tunnel", "tn_1", {}), shown("TunnelSession", "ts_1", {})])
    found = find_transient_objects(Snapshot({"Endpoint": endpoints, **listings}))
    tunnel = "it exists only while the tunnel of an agent is open"
    assert found == [
        LeftOut("Endpoint", "ep_1", tunnel),
        LeftOut("Endpoint", "ep_2", tunnel),
        LeftOut("Tunnel", "tn_1", "it exists only while an agent keeps it open"),
        LeftOut("TunnelSession", "ts_1", "it is the connection of a running agent"),
    ]
