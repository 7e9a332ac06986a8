"""Differences between a declaration and its object, field by field, and what changed each field."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.model.canonical import digests
from reconciler.model.change import Action, ChangedBy, FieldChange
from reconciler.model.snapshot import Binding
from reconciler.model.value import Hidden
from reconciler.planning.planner import PlanOptions
from reconciler.rendering.wire.plan_json import write_plan
from tests.harness.builders import (
    LENIENT,
    actions,
    build_account,
    change_of,
    declare,
    fields,
    live,
    make_plan,
    plan_on,
    record,
    ref,
    requests,
    secret,
    snapshot,
)
from tests.harness.tiers import examples

Spec = dict[str, Any]


def find_changes(kind: str, was: Spec, now: Spec, declared: Spec, **lifecycle: Any) -> dict[str, FieldChange]:
    """The differences if `was` was applied, `now` is live, and `declared` is in Git."""
    live_object = live(kind, "id-1", now, owner=record(f"{kind}/a", was))
    return fields(make_plan(declare(f"{kind}/a", declared, **lifecycle), seen=snapshot(live_object), options=LENIENT))


# --- what changed it --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("was", "now", "declared", "cause"),
    [
        ("x", "x", "y", ChangedBy.GIT),
        ("x", "y", "x", ChangedBy.PLATFORM),
        ("x", "y", "z", ChangedBy.BOTH),
        ("", "", "y", ChangedBy.GIT),
        ("", "y", "", ChangedBy.PLATFORM),
        ("x", "x", "", ChangedBy.GIT),
        ("x", "", "x", ChangedBy.PLATFORM),
        ("x", "", "y", ChangedBy.BOTH),
    ],
)
def test_the_owner_record_shows_what_changed_a_text(was: str, now: str, declared: str, cause: ChangedBy) -> None:
    changes = find_changes("TLSEdge", {"description": was}, {"description": now}, {"description": declared})
    assert {path: (field.old, field.new, field.changed_by) for path, field in changes.items()} == {
        "description": (now or "", declared, cause)
    }


def test_the_cause_of_a_change_without_an_owner_record_is_unknown() -> None:
    plan = make_plan(
        declare("TLSEdge/a", {"description": "x"}, id="id-1"), seen=snapshot(live("TLSEdge", "id-1", {})),
    )  # fmt: skip
    assert fields(plan)["description"].changed_by is ChangedBy.UNKNOWN


BACKEND = {"backend": {"backend_id": "b"}}
LIVE_BACKEND = {"backend": {"enabled": True, "backend": {"id": "b"}}}


def test_a_module_removed_by_hand_was_changed_on_the_platform() -> None:
    changes = find_changes("TLSEdge", BACKEND, {}, BACKEND)
    assert {field.changed_by for field in changes.values()} == {ChangedBy.PLATFORM}


def test_a_module_added_by_hand_was_changed_on_the_platform() -> None:
    changes = find_changes("TLSEdge", {}, LIVE_BACKEND, {})
    assert [(path, field.changed_by) for path, field in changes.items()] == [("backend", ChangedBy.PLATFORM)]


def test_a_module_removed_from_git_was_changed_in_git() -> None:
    changes = find_changes("TLSEdge", BACKEND, LIVE_BACKEND, {})
    assert [(path, field.changed_by) for path, field in changes.items()] == [("backend", ChangedBy.GIT)]


def test_a_module_added_in_git_was_changed_in_git() -> None:
    changes = find_changes("TLSEdge", {}, {}, BACKEND)
    assert {field.changed_by for field in changes.values()} == {ChangedBy.GIT}


def test_only_the_leaf_of_a_module_that_was_changed_by_hand_is_listed() -> None:
    now = {"backend": {"enabled": False, "backend": {"id": "b"}}}
    changes = find_changes("TLSEdge", BACKEND, now, BACKEND)
    assert [(path, field.old, field.new, field.changed_by) for path, field in changes.items()] == [
        ("backend.enabled", False, True, ChangedBy.PLATFORM)
    ]


def test_a_missing_module_of_defaults_was_changed_on_the_platform() -> None:
    changes = find_changes("TLSEdge", {"tls_termination": {}}, {}, {"tls_termination": {}})
    assert {field.changed_by for field in changes.values()} == {ChangedBy.PLATFORM}


def test_a_module_with_server_defaults_that_is_removed_from_git_was_changed_in_git() -> None:
    now = {"tls_termination": {"enabled": True, "terminate_at": "edge", "min_version": "1.2"}}
    changes = find_changes("TLSEdge", {"tls_termination": {}}, now, {})
    assert [(path, field.changed_by) for path, field in changes.items()] == [("tls_termination", ChangedBy.GIT)]


def test_a_declaration_of_a_server_default_is_a_change_in_git() -> None:
    now = {"tls_termination": {"enabled": True, "terminate_at": "edge", "min_version": "1.2"}}
    changes = find_changes("TLSEdge", {"tls_termination": {}}, now, {"tls_termination": {"min_version": "1.3"}})
    assert [(path, field.changed_by) for path, field in changes.items()] == [
        ("tls_termination.min_version", ChangedBy.GIT)
    ]


def test_a_declaration_of_default_bindings_is_a_change_in_git() -> None:
    was = {"url": "https://a.x", "traffic_policy": "on_http_request: [{actions: [{type: deny}]}]"}
    changes = find_changes("CloudEndpoint", was, {**was, "bindings": ["public"]}, {**was, "bindings": ["internal"]})
    assert [(path, field.changed_by) for path, field in changes.items()] == [("bindings", ChangedBy.GIT)]


@pytest.mark.parametrize(
    ("was", "now", "cause"),
    [
        (404, 404, ChangedBy.GIT),
        (404, 500, ChangedBy.BOTH),
        (200, 500, ChangedBy.PLATFORM),
    ],
)
def test_an_undeclared_field_is_reverted_to_its_documented_default(was: int, now: int, cause: ChangedBy) -> None:
    found = find_changes("HTTPResponseBackend", {"status_code": was}, {"status_code": now}, {})
    changes = [(path, field.old, field.new, field.changed_by) for path, field in found.items()]
    assert changes == [("status_code", now, 200, cause)]


@pytest.mark.parametrize("body", [{"status_code": 200}, {"status_code": None}, {}])
def test_an_undeclared_field_with_its_documented_default_or_no_value_is_unchanged(body: Spec) -> None:
    backend = live("HTTPResponseBackend", "b", body, owner=record("HTTPResponseBackend/a", {"status_code": 404}))
    assert all(
        not change.fields for change in make_plan(declare("HTTPResponseBackend/a"), seen=snapshot(backend)).changes
    )


def test_a_reference_to_a_replaced_object_follows_it() -> None:
    first = [declare("CertificateAuthority/a", {"ca_pem": "OLD"}), _edge()]
    world = build_account(*first)
    plan = plan_on(world, declare("CertificateAuthority/a", {"ca_pem": "NEW"}), _edge())
    assert [field.changed_by for field in change_of(plan, "TLSEdge/e").fields] == [ChangedBy.FOLLOWS]


def _edge() -> Any:
    return declare("TLSEdge/e", {"mutual_tls": {"certificate_authority_ids": [ref("CertificateAuthority/a")]}})


def test_a_reference_to_another_new_object_is_a_change_in_git() -> None:
    world = build_account(declare("CertificateAuthority/a", {"ca_pem": "OLD"}), _edge())
    plan = plan_on(
        world,
        declare("CertificateAuthority/a", {"ca_pem": "OLD"}),
        declare("CertificateAuthority/b", {"ca_pem": "NEW"}),
        declare("TLSEdge/e", {"mutual_tls": {"certificate_authority_ids": [ref("CertificateAuthority/b")]}}),
    )
    assert [field.changed_by for field in change_of(plan, "TLSEdge/e").fields] == [ChangedBy.GIT]


@pytest.mark.parametrize(
    ("was", "declared", "places"),
    [
        ([{"code": 403}], [{"code": 404}], [("[0].actions[0].config.code", 403, 404)]),
        (
            [{"code": 403}, {"code": 403}],
            [{"code": 500}, {"code": 404}],
            [("[0].actions[0].config.code", 403, 500), ("[1].actions[0].config.code", 403, 404)],
        ),
        ([{"code": 403}], [{"code": 403, "text": "no"}], [("[0].actions[0].config.text", None, "no")]),
        ([{"code": 403, "text": "no"}], [{"code": 403}], [("[0].actions[0].config.text", "no", None)]),
        ([{"code": 403, "again": [1]}], [{"code": 403}], [("[0].actions[0].config.again", [1], None)]),
    ],
)
def test_a_document_is_compared_place_by_place(
    was: list[Spec], declared: list[Spec], places: list[tuple[str, Any, Any]]
) -> None:
    def policy_of(configs: list[Spec]) -> Spec:
        rules = [{"actions": [{"type": "deny", "config": config}]} for config in configs]
        return {"url": "https://a.x", "traffic_policy": {"on_http_request": rules}}

    changes = find_changes("CloudEndpoint", policy_of(was), policy_of(was), policy_of(declared))
    assert [(path, field.old, field.new) for path, field in changes.items()] == [
        (f"traffic_policy.on_http_request{place}", old, new) for place, old, new in places
    ]


def test_a_document_with_an_unresolved_reference_is_listed_as_a_whole() -> None:
    def policy_of(domain: Any) -> Spec:
        rule = {"actions": [{"type": "forward-internal", "config": {"url": domain}}]}
        return {"url": "https://a.x", "traffic_policy": {"on_http_request": [rule]}}

    plan = make_plan(
        declare("CloudEndpoint/a", policy_of(ref("ReservedDomain/new", "domain"))),
        declare("ReservedDomain/new", {"domain": "b.x"}),
        seen=snapshot(live("CloudEndpoint", "ep_1", policy_of("https://b.x"), owner=record("CloudEndpoint/a", {}))),
    )
    (changes,) = [list(change.fields) for change in plan.changes if change.address.kind == "CloudEndpoint"]
    assert [field.path for field in changes] == ["traffic_policy"]


def test_a_required_value_missing_in_a_response_is_sent_unless_it_is_immutable() -> None:
    bots = snapshot(live("BotUser", "bot_1", {}), bindings={"BotUser/b": Binding("bot_1")})
    assert requests(make_plan(declare("BotUser/b", {"name": "b"}), seen=bots)) == ["PATCH /bot_users/bot_1"]
    domains = snapshot(live("ReservedDomain", "rd_1", {}, owner=record("ReservedDomain/d", {"domain": "a.x"})))
    assert make_plan(declare("ReservedDomain/d", {"domain": "a.x"}), seen=domains).changes == ()


# --- secrets ----------------------------------------------------------------------------------------------------------

KEY_ONE, KEY_TWO = secret("metrics-key-one"), secret("metrics-key-two")


def metrics(key: Any, service: str = "edge") -> Spec:
    return {"target": {"metrics": {"api_key": key, "service": service}}}


LIVE_METRICS = {"target": {"metrics": {"api_key": "", "service": "edge", "tags": "", "site": ""}, "logs": None}}


def test_an_unchanged_write_only_secret_is_no_difference() -> None:
    destination = live("EventDestination", "ed_1", LIVE_METRICS, owner=record("EventDestination/a", metrics(KEY_ONE)))
    assert make_plan(declare("EventDestination/a", metrics(KEY_ONE)), seen=snapshot(destination)).changes == ()


def test_a_write_only_secret_changed_in_git_is_sent() -> None:
    changes = find_changes("EventDestination", metrics(KEY_ONE), LIVE_METRICS, metrics(KEY_TWO))
    assert [(path, field.old, field.changed_by) for path, field in changes.items()] == [
        ("target.metrics.api_key", None, ChangedBy.GIT)
    ]
    assert isinstance(changes["target.metrics.api_key"].new, Hidden)


def test_a_changed_secret_is_listed_after_other_changes() -> None:
    changes = find_changes("EventDestination", metrics(KEY_ONE), LIVE_METRICS, metrics(KEY_TWO, "other"))
    assert list(changes) == ["target.metrics.service", "target.metrics.api_key"]


def test_a_change_of_the_target_member_lists_its_secret_and_forces_replacement() -> None:
    declared = {"target": {"stream": {"stream_arn": "arn", "auth": {"creds": {
        "cloud_access_key_id": "id", "cloud_secret_access_key": KEY_TWO}}}}}  # fmt: skip
    changes = find_changes("EventDestination", metrics(KEY_ONE), LIVE_METRICS, declared)
    assert "target.stream.auth.creds.cloud_secret_access_key" in changes
    assert all(field.forces_replacement for field in changes.values())


def test_a_target_member_added_on_the_platform_is_the_only_difference() -> None:
    now = {"target": {"metrics": {"service": "edge"}, "logs": {"log_group_arn": "arn:1"}}}
    changes = find_changes("EventDestination", metrics(KEY_ONE), now, metrics(KEY_ONE))
    assert [(path, field.new) for path, field in changes.items()] == [("target.logs", None)]


def test_a_new_private_key_replaces_the_certificate() -> None:
    was = {"certificate_pem": "C", "private_key_pem": KEY_ONE}
    changes = find_changes("TLSCertificate", was, {"certificate_pem": "C"}, {**was, "private_key_pem": KEY_TWO})
    assert [(path, field.forces_replacement) for path, field in changes.items()] == [("private_key_pem", True)]


def test_the_private_key_of_an_adopted_certificate_counts_as_the_declared_one() -> None:
    plan = make_plan(
        declare("TLSCertificate/a", {"certificate_pem": "C", "private_key_pem": KEY_ONE}, id="cert_1"),
        seen=snapshot(live("TLSCertificate", "cert_1", {"certificate_pem": "C"})),
    )
    assert actions(plan) == {"TLSCertificate/a": "adopt"}


def test_a_readable_secret_is_compared_and_hidden_on_both_sides() -> None:
    was = {"edge_id": "e", "match": "/", "match_type": "exact_path",
           "webhook_verification": {"provider": "github", "secret": KEY_ONE}}  # fmt: skip
    now = {**was, "webhook_verification": {"provider": "github", "secret": "webhook-by-hand"}}
    route = live("HTTPSEdgeRoute", "r", now, owner=record("HTTPSEdgeRoute/a", was), parent="e")
    plan = make_plan(declare("HTTPSEdgeRoute/a", was), seen=snapshot(route))
    (change,) = fields(plan).values()
    assert (change.path, change.changed_by) == ("webhook_verification.secret", ChangedBy.PLATFORM)
    assert isinstance(change.old, Hidden)
    assert isinstance(change.new, Hidden)
    assert change.old != change.new


@pytest.mark.parametrize("options", [PlanOptions(), LENIENT])
def test_no_secret_is_in_a_plan(options: PlanOptions) -> None:
    key = secret("canary-7f3a9")
    route = {"edge_id": "e", "match": "/", "match_type": "exact_path",
             "saml": {"idp_metadata": key}, "webhook_verification": {"provider": "github", "secret": key}}  # fmt: skip
    live_route = {**route, "saml": {"idp_metadata": "canary-live-1"},
             "webhook_verification": {"provider": "github", "secret": "canary-live-2"}}  # fmt: skip
    plan = make_plan(
        declare("HTTPSEdgeRoute/a", route),
        declare("HTTPSEdgeRoute/b", {**route, "match": "/b", "saml": None}),
        declare("EventDestination/a", metrics(key)),
        declare("TLSCertificate/a", {"certificate_pem": "C", "private_key_pem": key}),
        seen=snapshot(
            live("HTTPSEdgeRoute", "r", live_route, owner=record("HTTPSEdgeRoute/a", route), parent="e"),
            live("HTTPSEdgeRoute", "r_2", {**live_route, "match": "/c"}, owner=record("HTTPSEdgeRoute/c"), parent="e"),
            live("EventDestination", "ed_1", LIVE_METRICS, owner=record("EventDestination/a", metrics(KEY_ONE))),
        ),
        options=options,
    )
    assert len(plan.changes) == 5
    assert "canary" not in write_plan(plan) + repr(plan)


# --- what forces a replacement ----------------------------------------------------------------------------------------


def test_another_port_of_an_endpoint_is_updated_in_place_and_another_scheme_is_not() -> None:
    was = {"url": "https://a.x", "traffic_policy": "on_http_request: [{actions: [{type: deny}]}]"}
    port = find_changes("CloudEndpoint", was, was, {**was, "url": "https://a.x:8443"})
    scheme = find_changes("CloudEndpoint", was, was, {**was, "url": "http://a.x"})
    assert (port["url"].forces_replacement, scheme["url"].forces_replacement) == (False, True)


regions = st.sampled_from([{}, *({"region": region} for region in ("au", "eu", "ap", "us", "jp", "in", "sa"))])


@settings(max_examples=examples(60))
@given(was=regions, declared=regions, response=regions | st.sampled_from([{"region": ""}, {"region": None}]))
def test_the_region_of_a_domain_is_neither_drift_nor_a_reason_to_replace_it(
    was: Spec, declared: Spec, response: Spec
) -> None:
    """Whatever was applied, is declared and is returned: domains are served in all regions."""
    # An earlier version recorded the region as it records any field.
    owner = record("ReservedDomain/a", {"domain": "a.x"})
    older = owner._replace(applied={**owner.applied, **digests(was, owner.intent)})
    for known in (owner, older):
        domain = live("ReservedDomain", "rd_1", {"domain": "a.x", **response}, owner=known)
        plan = make_plan(declare("ReservedDomain/a", {"domain": "a.x", **declared}), seen=snapshot(domain))
        assert (plan.changes, plan.calls, plan.errors) == ((), (), ())
    unmanaged = live("ReservedDomain", "rd_1", {"domain": "a.x", **response})
    adopting = make_plan(
        declare("ReservedDomain/a", {"domain": "a.x", **declared}, adopt=True), seen=snapshot(unmanaged)
    )
    assert requests(adopting) == ["PATCH /reserved_domains/rd_1"]
    assert set(adopting.calls[0].body or ()) <= {"metadata"}


def test_the_region_of_a_new_domain_is_shown_and_sent() -> None:
    plan = make_plan(declare("ReservedDomain/a", {"domain": "a.x", "region": "eu"}))
    assert fields(plan)["region"].new == "eu"
    assert plan.calls[0].body == {"domain": "a.x", "region": "eu"}


def test_an_unreadable_field_that_is_no_longer_declared_is_removed() -> None:
    was = {"endpoint_configuration_id": "ec_1"}
    reserved_address = live("ReservedAddress", "ra_1", {"region": "us"}, owner=record("ReservedAddress/a", was))
    plan = make_plan(declare("ReservedAddress/a"), seen=snapshot(reserved_address))
    # The owner record is updated last: without the digest, the next plan could not detect the field.
    assert requests(plan) == ["DELETE /reserved_addrs/ra_1/endpoint_configuration", "PATCH /reserved_addrs/ra_1"]


@pytest.mark.parametrize(
    ("was", "response", "declared", "calls", "cause"),
    [
        ("ec_1", {"id": "ec_2", "uri": ""}, "ec_1", ["PATCH /reserved_addrs/ra_1"], ChangedBy.PLATFORM),
        ("ec_1", None, "ec_1", ["PATCH /reserved_addrs/ra_1"], ChangedBy.PLATFORM),
        ("ec_1", {"id": "ec_1", "uri": ""}, "ec_2", ["PATCH /reserved_addrs/ra_1"], ChangedBy.GIT),
        ("ec_1", {"id": "ec_1", "uri": ""}, "ec_1", [], None),
        (
            None,
            {"id": "ec_2", "uri": ""},
            None,
            ["DELETE /reserved_addrs/ra_1/endpoint_configuration"],
            ChangedBy.PLATFORM,
        ),
        (None, None, None, [], None),
    ],
)
def test_an_input_only_field_is_compared_where_a_response_shows_it(
    was: str | None, response: Any, declared: str | None, calls: list[str], cause: ChangedBy | None
) -> None:
    def of(value: str | None) -> Spec:
        return {"endpoint_configuration_id": value} if value else {}

    body = {"region": "us", "endpoint_configuration": response}
    address = live("ReservedAddress", "ra_1", body, owner=record("ReservedAddress/a", of(was)))
    plan = make_plan(declare("ReservedAddress/a", of(declared)), seen=snapshot(address))
    assert requests(plan) == calls
    if cause is not None:
        change = fields(plan)["endpoint_configuration_id"]
        assert (change.changed_by, change.old) == (cause, response["id"] if response else None)


def test_a_create_lists_each_value_that_differs_from_its_default() -> None:
    plan = make_plan(declare("TLSEdge/a", {"description": "x", "backend": {"backend_id": "b", "enabled": True}}))
    assert {path: field.new for path, field in fields(plan).items()} == {"description": "x", "backend.backend_id": "b"}
    assert change_of(plan, "TLSEdge/a").action is Action.CREATE


@pytest.mark.parametrize(
    ("tls", "listed"), [({}, {}), ({"enabled": False}, {}), ({"enabled": True}, {"tls.enabled": True})]
)
def test_a_create_lists_only_non_default_fields_of_a_nested_object(tls: Spec, listed: Spec) -> None:
    plan = make_plan(declare("StaticBackend/a", {"address": "a.example.com:80", "tls": tls}))
    assert {path: field.new for path, field in fields(plan).items()} == {"address": "a.example.com:80", **listed}


def test_a_create_lists_the_values_of_a_module_of_defaults() -> None:
    plan = make_plan(declare("TLSEdge/a", {"tls_termination": {}}))
    listed = {path: field.new for path, field in fields(plan).items() if path.startswith("tls_termination")}
    assert listed == {"tls_termination.enabled": True, "tls_termination.terminate_at": "edge"}


def test_the_order_of_an_acl_is_no_difference() -> None:
    one = {"acl": ["bind:a.example.com", "bind:b.example.com"]}
    other = {"acl": ["bind:b.example.com", "bind:a.example.com"]}
    seen = snapshot(live("TunnelCredential", "cr_1", other, owner=record("TunnelCredential/a", one)))
    assert make_plan(declare("TunnelCredential/a", one), seen=seen).changes == ()
