"""The survey of an import: which live objects become declarations, with which names, ids and references."""

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
from reconciler.planning import planner
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
from reconciler.planning.planner import PlanOptions
from tests.harness.builders import KINDS, at, declare, live, manifest, record, ref, snapshot

POLICY = live("IPPolicy", "ipp_1", {"description": "Office", "created_at": "2030-01-01T00:00:00Z"})
RULE = live("IPPolicyRule", "ipr_1", {"ip_policy": {"id": "ipp_1"}, "cidr": "10.0.0.0/8", "action": "allow"})


def propose(
    *live_objects: Live, declared: tuple[Declaration, ...] = (), seen: Snapshot | None = None, **how: Any
) -> Survey:
    return survey(manifest(*declared), seen or snapshot(*live_objects), KINDS, **how)


def only(survey: Survey) -> Imported:
    (one,) = survey.imported
    return one


def names(survey: Survey) -> list[str]:
    return [str(imported.address) for imported in survey.imported]


def test_ids_of_imported_objects_become_references() -> None:
    imported = propose(POLICY, RULE).imported
    assert [proposal.spec.get("ip_policy_id") for proposal in imported] == [None, ref("IPPolicy/office")]


def test_ids_of_declared_objects_become_references() -> None:
    declared = declare("IPPolicy/hq", {"description": "Office"}, id="ipp_1")
    assert only(propose(POLICY, RULE, declared=(declared,))).spec["ip_policy_id"] == ref("IPPolicy/hq")


def test_ids_of_unselected_objects_remain_ids() -> None:
    one = only(propose(POLICY, RULE, selects=lambda address, *_: address.kind == "IPPolicyRule"))
    assert (str(one.address), one.spec["ip_policy_id"]) == ("IPPolicyRule/office-10.0.0.0-8", "ipp_1")


def test_a_name_does_not_depend_on_the_selection() -> None:
    other = live("IPPolicy", "ipp_2", {"description": "Office", "created_at": "2030-01-02T00:00:00Z"})
    both = propose(other, POLICY)
    assert names(both) == ["IPPolicy/office", "IPPolicy/office-2"]
    assert names(propose(other, POLICY, selects=lambda address, *_: address.name == "office-2")) == [
        "IPPolicy/office-2"
    ]


def test_a_declared_object_is_skipped_and_its_name_is_reserved() -> None:
    other = live("IPPolicy", "ipp_2", {"description": "Office"})
    declared = declare("IPPolicy/office", {"description": "Office"}, id="ipp_2")
    assert names(propose(other, POLICY, declared=(declared,))) == ["IPPolicy/office-2"]


def test_an_object_excluded_by_the_environment_is_skipped_and_its_name_is_reserved() -> None:
    managed = live("IPPolicy", "ipp_1", {}, owner=record("IPPolicy/hq", {}))
    other = live("IPPolicy", "ipp_2", {"description": "HQ"})
    position = Position("environments/prod.yaml", 1, 1)
    seen = survey(replace(manifest(), left_out={Address("IPPolicy", "hq"): position}), snapshot(managed, other), KINDS)
    assert (names(seen), [(left_out.id, left_out.why, left_out.wrong) for left_out in seen.left_out]) == (
        ["IPPolicy/hq-2"],
        [("ipp_1", f"is declared as IPPolicy/hq, which this environment excludes ({position})", False)],
    )


def test_an_object_of_another_stack_is_skipped_with_a_note() -> None:
    foreign = live("IPPolicy", "ipp_1", {}, owner=record("IPPolicy/a", {}, stack="other"))
    assert [(left_out.id, left_out.why, left_out.wrong) for left_out in propose(foreign).left_out] == [
        ("ipp_1", "is managed by stack other as IPPolicy/a", False)
    ]


def test_an_object_is_offered_if_foreign_owner_records_are_dropped() -> None:
    foreign = live("IPPolicy", "ipp_1", {"metadata": "m"}, owner=record("IPPolicy/a", {}, stack="other"))
    one = only(propose(seen=drop_foreign_owners(manifest(), snapshot(foreign))))
    assert one.spec == {"metadata": "m"}


def test_an_undeclared_managed_object_is_offered_under_its_recorded_name() -> None:
    managed = live(
        "IPPolicy", "ipp_1", {"description": "Office"}, owner=record("IPPolicy/hq", {"description": "Office"})
    )
    one = only(propose(managed))
    assert (str(one.address), one.id) == ("IPPolicy/hq", None)


def test_a_protected_object_remains_protected() -> None:
    managed = live("IPPolicy", "ipp_1", {}, owner=record("IPPolicy/hq", {}, protect=True))
    assert only(propose(managed)).protect


def test_a_bound_object_is_offered_under_its_bound_name() -> None:
    seen = snapshot(live("BotUser", "bot_1", {"name": "b"}), bindings={"BotUser/robot": Binding("bot_1")})
    assert names(propose(seen=seen)) == ["BotUser/robot"]


def test_copies_of_one_owner_record_are_skipped() -> None:
    copies = [live("IPPolicy", f"ipp_{n}", {}, owner=record("IPPolicy/a", {})) for n in (1, 2)]
    assert [left_out.why for left_out in propose(*copies).left_out] == [
        "shares the owner record of IPPolicy/a with other objects"
    ] * 2


def test_an_id_is_written_only_if_nothing_else_identifies_the_object() -> None:
    domain = live("ReservedDomain", "rd_1", {"domain": "a.example.com"})
    assert {imported.address.kind: imported.id for imported in propose(POLICY, domain).imported} == {
        "IPPolicy": "ipp_1",
        "ReservedDomain": None,
    }


def test_endpoints_at_one_url_are_identified_by_their_ids() -> None:
    policy = '{"on_http_request": []}'
    pool = [
        live("CloudEndpoint", f"ep_{n}", {"url": "https://a.b", "traffic_policy": policy, "pooling_enabled": True})
        for n in (1, 2)
    ]
    assert [imported.id for imported in propose(*pool).imported] == ["ep_1", "ep_2"]


def test_a_certificate_issued_by_the_platform_is_skipped() -> None:
    issued = live("TLSCertificate", "cert_1", {"certificate_pem": "PEM", "issued_at": "2030-01-01T00:00:00Z"})
    assert [left_out.why for left_out in propose(issued).left_out] == [
        "was created by the platform, which renews it automatically"
    ]


def test_an_incomplete_list_is_reported_as_wrong() -> None:
    assert [
        (left_out.kind, left_out.wrong) for left_out in propose(seen=snapshot(POLICY, cut=["IPPolicy"])).left_out
    ] == [("IPPolicy", True)]


SUBSCRIPTION = live("EventSubscription", "esb_1", {"sources": [{"type": "vault_created.v0"}]})
SOURCE = live("EventSource", "vault_created.v0", {}, parent="esb_1")


def test_children_of_a_declared_parent_without_them_are_declared_each() -> None:
    declared = declare("EventSubscription/audit", {}, id="esb_1")
    assert only(propose(SUBSCRIPTION, SOURCE, declared=(declared,))).spec == {
        "subscription_id": ref("EventSubscription/audit"),
        "type": "vault_created.v0",
    }


def test_a_child_identified_by_its_parent_and_type_needs_no_id() -> None:
    declared = declare("EventSubscription/audit", {}, id="esb_1")
    assert only(propose(SUBSCRIPTION, SOURCE, declared=(declared,))).id is None


def test_an_assigned_address_becomes_a_reference_in_the_hostports_of_an_edge() -> None:
    address = live("ReservedAddress", "ra_1", {"addr": "1.tcp.example.com:20001", "description": "db"})
    edge = live("TCPEdge", "edgtcp_1", {"hostports": ["1.TCP.example.com:20001", "2.tcp.example.com:1"]})
    _, imported = propose(address, edge).imported
    assert imported.spec["hostports"] == [ref("ReservedAddress/db", "addr"), "2.tcp.example.com:1"]
    described = live("IPPolicy", "ipp_1", {"description": "1.tcp.example.com:20001"})
    policy = next(proposal for proposal in propose(address, described).imported if proposal.address.kind == "IPPolicy")
    assert policy.spec == {"description": "1.tcp.example.com:20001"}, "a text that mentions no host stays a text"


def test_an_objection_names_the_fields_that_a_plan_would_change() -> None:
    (one,) = propose(POLICY).imported
    wrong = declare("IPPolicy/office", {"description": "another"}, id="ipp_1")
    plan = planner.plan(manifest(wrong), snapshot(POLICY), KINDS, PlanOptions(adopt=True))
    assert find_objections(plan, [one]) == {("IPPolicy", "ipp_1"): "a plan would adopt it: description"}


def test_a_refused_object_is_skipped_and_references_to_it_remain_ids() -> None:
    survey = propose(POLICY, RULE, refused={("IPPolicy", "ipp_1"): "for a reason"})
    assert (only(survey).spec["ip_policy_id"], [left_out.why for left_out in survey.left_out]) == (
        "ipp_1",
        ["for a reason"],
    )
    assert only(survey).address == Address("IPPolicyRule", "office-10.0.0.0-8")


@pytest.mark.parametrize("key", ["", "<<", "a-${{ x }}"])
def test_a_traffic_policy_with_a_key_that_is_special_in_a_manifest_remains_text(key: str) -> None:
    policy = {"on_http_request": [{"actions": [{"type": "add-headers", "config": {"headers": {key: "v"}}}]}]}
    endpoint = live("CloudEndpoint", "ep_1", {"url": "https://a.b", "traffic_policy": json.dumps(policy)})
    (value,) = [value for value in only(propose(endpoint)).spec.values() if isinstance(value, Attachment)]
    assert value.document is None
    policy["on_http_request"][0]["actions"][0]["config"] = {"headers": {"plain": "v"}}
    endpoint = live("CloudEndpoint", "ep_1", {"url": "https://a.b", "traffic_policy": json.dumps(policy)})
    (value,) = [value for value in only(propose(endpoint)).spec.values() if isinstance(value, Attachment)]
    assert value.document == policy


# --- owners and selection ---------------------------------------------------------------------------------------------


def test_only_owner_records_of_other_stacks_are_dropped_and_the_user_metadata_remains() -> None:
    foreign = live("IPPolicy", "ipp_1", {"metadata": "text"}, owner=record("IPPolicy/x", {}, stack="other"))
    managed = live("IPPolicy", "ipp_2", {}, owner=record("IPPolicy/y", {}))
    unmanaged = live("IPPolicy", "ipp_3", {"metadata": "text"})
    dropped = drop_foreign_owners(manifest(), snapshot(foreign, managed, unmanaged)).of("IPPolicy").objects
    assert [(policy.id, policy.owner and policy.owner.stack, policy.metadata) for policy in dropped] == [
        ("ipp_1", None, "text"),
        ("ipp_2", "laws", ""),
        ("ipp_3", None, "text"),
    ]


@pytest.mark.parametrize("stack", ["a stack", "the stack"])
def test_an_object_of_a_stack_with_any_name_is_skipped(stack: str) -> None:
    foreign = live("IPPolicy", "ipp_1", {}, owner=record("IPPolicy/x", {}, stack=stack))
    assert propose(foreign).left_out == (LeftOut("IPPolicy", "ipp_1", f"is managed by stack {stack} as IPPolicy/x"),)


def test_a_replaced_object_is_skipped_and_other_objects_are_offered() -> None:
    old = live("TLSEdge", "e_1", owner=record("TLSEdge/e", {}, intent="i1"))
    new = live("TLSEdge", "e_2", owner=record("TLSEdge/e", {}, intent="i2", replaces="e_1"))
    found = propose(old, new, live("TLSEdge", "e_3", {"description": "other"}))
    assert names(found) == ["TLSEdge/e", "TLSEdge/other"]
    assert found.left_out == (LeftOut("TLSEdge", "e_1", "will be deleted: another object replaces it"),)


def test_an_uploaded_certificate_is_proposed() -> None:
    uploaded = live("TLSCertificate", "cert_1", {"certificate_pem": "PEM", "description": "own"})
    assert names(propose(uploaded)) == ["TLSCertificate/own"]


@pytest.mark.parametrize(
    ("objects", "why", "wrong"),
    [((), NOT_OFFERED, False), ((), "broken off", True), ((POLICY,), NOT_OFFERED, True)],
    ids=["no longer offered", "not read", "no longer offered half-way"],
)
def test_an_incomplete_list_is_an_error_unless_the_platform_retired_it(
    objects: tuple[Live, ...], why: str, wrong: bool
) -> None:
    seen = snapshot()
    listing = Listing(objects, complete=False, why=why)
    found = propose(seen=replace(seen, listings={**seen.listings, "IPPolicy": listing}))
    assert found.imported == ()
    assert found.left_out == (LeftOut("IPPolicy", "", f"the list is incomplete: {why}", wrong=wrong),)


def test_kinds_that_were_not_listed_are_skipped() -> None:
    found = propose(seen=Snapshot({"IPPolicy": Listing((POLICY,))}))
    assert (names(found), found.left_out) == (["IPPolicy/office"], ())


def test_the_oldest_of_several_objects_has_the_name_without_a_number() -> None:
    policies = [live("IPPolicy", id, {"description": "x", "created_at": created}) for id, created in CREATED.items()]
    for order in (policies, policies[::-1]):
        found = propose(*order)
        assert {str(proposal.address): proposal.live.id for proposal in found.imported} == {
            "IPPolicy/x": "ipp_3",  # an object without a date counts as the oldest
            "IPPolicy/x-2": "ipp_2",
            "IPPolicy/x-3": "ipp_1",
        }


CREATED = {"ipp_1": "2030-01-03T00:00:00Z", "ipp_2": "2030-01-02T00:00:00Z", "ipp_3": None}


def test_a_refused_object_is_reported_as_an_error() -> None:
    found = propose(POLICY, refused={("IPPolicy", "ipp_1"): "for a reason"})
    assert found.left_out == (LeftOut("IPPolicy", "ipp_1", "for a reason", wrong=True),)


def test_a_changing_action_is_an_objection_even_without_differing_fields() -> None:
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
def test_a_user_is_referenced_by_either_of_its_ids(owner: str) -> None:
    credential = live("TunnelCredential", "cr_1", {"owner_id": owner, "description": "c"})
    assert propose(live("BotUser", "bot_1", {"name": "b"}), credential).imported[1].spec["owner_id"] == ref("BotUser/b")


# --- names and protection ---------------------------------------------------------------------------------------------


def test_an_object_is_named_after_its_declared_parent() -> None:
    declared = declare("IPPolicy/hq", {"description": "Office"}, id="ipp_1")
    assert names(propose(POLICY, RULE, declared=(declared,))) == ["IPPolicyRule/hq-10.0.0.0-8"]


def test_names_of_former_addresses_and_bindings_are_not_reused() -> None:
    declared = declare("IPPolicy/new", moved=["IPPolicy/office"])
    assert names(propose(POLICY, declared=(declared,))) == ["IPPolicy/office-2"]
    seen = snapshot(POLICY, bindings={"IPPolicy/office": Binding("ipp_9")})
    assert names(propose(seen=seen)) == ["IPPolicy/office-2"]


def test_a_binding_does_not_name_an_object_that_is_bound_or_declared_elsewhere() -> None:
    bots = [live("BotUser", f"bot_{n}", {"name": f"b{n}"}) for n in (1, 2)]
    seen = snapshot(*bots, bindings={"BotUser/x": Binding("bot_1"), "BotUser/y": Binding("bot_1")})
    assert names(propose(seen=seen)) == ["BotUser/b2", "BotUser/x"]
    (other,) = propose(seen=seen, declared=(declare("BotUser/x", {"name": "b1"}),)).imported
    assert str(other.address) == "BotUser/b2"


def test_only_managed_objects_remain_protected() -> None:
    managed = live("IPPolicy", "ipp_1", owner=record("IPPolicy/a", {}))
    foreign = live("IPPolicy", "ipp_2", {"description": "b"}, owner=record("IPPolicy/b", {}, stack="x", protect=True))
    seen = drop_foreign_owners(manifest(), snapshot(managed, foreign))
    assert [(str(proposal.address), proposal.protect, proposal.id) for proposal in propose(seen=seen).imported] == [
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
def test_a_url_refers_to_an_assigned_address_but_not_to_a_reserved_domain(url: str, expected: object) -> None:
    live_objects = [
        live("ReservedAddress", "ra_1", {"addr": "1.tcp.example.com:20001", "description": "db"}),
        live("ReservedDomain", "rd_1", {"domain": "a.example.com"}),
        live("CloudEndpoint", "ep_1", {"url": url, "traffic_policy": "p"}),
    ]
    endpoint = next(
        proposal for proposal in propose(*live_objects).imported if proposal.address.kind == "CloudEndpoint"
    )
    assert endpoint.spec["url"] == expected


def test_an_unselected_address_is_not_referenced() -> None:
    address = live("ReservedAddress", "ra_1", {"addr": "1.tcp.example.com:20001"})
    edge = live("TCPEdge", "edgtcp_1", {"hostports": ["1.tcp.example.com:20001"]})
    one = only(propose(address, edge, selects=lambda address, *_: address.kind == "TCPEdge"))
    assert one.spec["hostports"] == ["1.tcp.example.com:20001"]


def test_an_id_is_written_unless_a_unique_key_identifies_one_object() -> None:
    pem = {"ca_pem": "PEM"}
    live_objects = [
        live("SSHCredential", "sshcr_1", {"public_key": "ssh-ed25519 AAAA", "description": "a"}),
        live("SSHCredential", "sshcr_2", {"public_key": "ssh-ed25519 BBBB", "description": "b"}),
        live("SSHCredential", "sshcr_3", {"public_key": "ssh-ed25519 BBBB", "description": "c"}),
        live("CertificateAuthority", "ca_1", {**pem, "description": "d"}),
        live("TunnelCredential", "cr_1", {"description": "e"}),
    ]
    assert {proposal.address.name: proposal.id for proposal in propose(*live_objects).imported} == {
        "a": None,
        "b": "sshcr_2",
        "c": "sshcr_3",
        "d": "ca_1",
        "e": "cr_1",
    }


# --- children ---------------------------------------------------------------------------------------------------------


def test_a_parent_of_a_declared_child_is_proposed_without_its_children() -> None:
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


def test_a_source_is_declared_by_itself_if_its_subscription_is_not_selected() -> None:
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
def test_a_value_that_no_file_can_contain_is_found_in_any_part(spec: dict[str, Any], encodable: bool) -> None:
    proposals = [Imported(Address("IPPolicy", "fine"), RULE, {}), Imported(Address("IPPolicy", "p"), POLICY, spec)]
    assert find_unencodable(proposals) == (
        {} if encodable else {("IPPolicy", "ipp_1"): "contains an unpaired surrogate, which no text file can hold"}
    )


def test_a_proposal_is_rejected_with_its_first_problem_and_the_path() -> None:
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


def test_a_plan_that_does_not_adopt_a_proposal_is_an_objection() -> None:
    one = only(propose(POLICY))
    same = declare("IPPolicy/office", {"description": "Office"}, id="ipp_1")
    other = declare("IPPolicy/new", {"description": "new"})
    adopted = planner.plan(manifest(same, other), snapshot(POLICY), KINDS, PlanOptions(adopt=True))
    assert (len(adopted.changes), find_objections(adopted, [one])) == (2, {})
    created = planner.plan(
        manifest(declare("IPPolicy/office", {"description": "Office"})), snapshot(POLICY), KINDS, PlanOptions()
    )
    assert find_objections(created, [one]) == {("IPPolicy", "ipp_1"): "a plan would create it: description"}
    (change,) = created.changes
    assert find_objections(replace(created, changes=(replace(change, fields=()),)), [one]) == {
        ("IPPolicy", "ipp_1"): "a plan would create it"
    }
    wrong = planner.plan(manifest(declare("IPPolicy/office", {}, id="ipp_9")), snapshot(POLICY), KINDS, PlanOptions())
    assert list(find_objections(wrong, [one]).values()) == ["a plan would create it"]


def test_objects_of_running_agents_are_skipped_with_the_reason() -> None:
    def listing_of(kind: str, id: str, body: dict[str, Any]) -> tuple[str, Listing]:
        return kind, Listing((Live(kind, id, {"id": id, **body}),))

    endpoints = Listing(
        tuple(
            Live("Endpoint", f"ep_{n}", {"id": f"ep_{n}", "type": type_})
            for n, type_ in enumerate(["cloud", "ephemeral", "agent"])
        )
    )
    listings = dict([listing_of("Tunnel", "tn_1", {}), listing_of("TunnelSession", "ts_1", {})])
    found = find_transient_objects(Snapshot({"Endpoint": endpoints, **listings}))
    tunnel = "it exists only while the tunnel of an agent is open"
    assert found == [
        LeftOut("Endpoint", "ep_1", tunnel),
        LeftOut("Endpoint", "ep_2", tunnel),
        LeftOut("Tunnel", "tn_1", "it exists only while an agent keeps it open"),
        LeftOut("TunnelSession", "ts_1", "it is the connection of a running agent"),
    ]
