"""How a declaration and its object differ, field by field, and who moved each field."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.model.change import Action, ChangedBy, FieldChange
from reconciler.model.snapshot import Binding
from reconciler.model.value import Hidden
from reconciler.planning.planner import PlanOptions
from reconciler.rendering.wire.plan_json import write_plan
from tests.planning.builders import (
    LENIENT,
    actions,
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
    settle,
    snapshot,
)

Shown = dict[str, Any]


def find_changes(kind: str, was: Shown, now: Shown, declared: Shown, **lifecycle: Any) -> dict[str, FieldChange]:
    """What differs when `was` was applied, `now` is live, and `declared` is in Git."""
    there = live(kind, "id-1", now, owner=record(f"{kind}/a", was))
    return fields(make_plan(declare(f"{kind}/a", declared, **lifecycle), seen=snapshot(there), options=LENIENT))


# --- what changed it --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("was", "now", "declared", "mover"),
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
def test_the_record_tells_who_moved_a_text(was: str, now: str, declared: str, mover: ChangedBy) -> None:
    told = find_changes("TLSEdge", {"description": was}, {"description": now}, {"description": declared})
    assert {path: (each.old, each.new, each.changed_by) for path, each in told.items()} == {
        "description": (now or "", declared, mover)
    }


def test_without_a_record_nobody_knows_who_moved_it() -> None:
    made = make_plan(
        declare("TLSEdge/a", {"description": "x"}, id="id-1"), seen=snapshot(live("TLSEdge", "id-1", {})),
    )  # fmt: skip
    assert fields(made)["description"].changed_by is ChangedBy.UNKNOWN


BACKEND = {"backend": {"backend_id": "b"}}
SHOWN_BACKEND = {"backend": {"enabled": True, "backend": {"id": "b"}}}


def test_a_module_removed_by_hand_was_moved_on_the_platform() -> None:
    told = find_changes("TLSEdge", BACKEND, {}, BACKEND)
    assert {field_change.changed_by for field_change in told.values()} == {ChangedBy.PLATFORM}


def test_a_module_added_by_hand_was_moved_on_the_platform() -> None:
    told = find_changes("TLSEdge", {}, SHOWN_BACKEND, {})
    assert [(path, each.changed_by) for path, each in told.items()] == [("backend", ChangedBy.PLATFORM)]


def test_a_module_removed_from_git_was_moved_in_git() -> None:
    told = find_changes("TLSEdge", BACKEND, SHOWN_BACKEND, {})
    assert [(path, each.changed_by) for path, each in told.items()] == [("backend", ChangedBy.GIT)]


def test_a_module_added_in_git_was_moved_in_git() -> None:
    told = find_changes("TLSEdge", {}, {}, BACKEND)
    assert {field_change.changed_by for field_change in told.values()} == {ChangedBy.GIT}


def test_one_leaf_of_a_module_moved_by_hand_is_the_only_one_told() -> None:
    now = {"backend": {"enabled": False, "backend": {"id": "b"}}}
    told = find_changes("TLSEdge", BACKEND, now, BACKEND)
    assert [(path, each.old, each.new, each.changed_by) for path, each in told.items()] == [
        ("backend.enabled", False, True, ChangedBy.PLATFORM)
    ]


def test_a_module_of_defaults_only_is_told_as_a_whole() -> None:
    told = find_changes("TLSEdge", {"tls_termination": {}}, {}, {"tls_termination": {}})
    assert {field_change.changed_by for field_change in told.values()} == {ChangedBy.PLATFORM}


def test_a_module_removed_from_git_is_not_blamed_on_the_platform_for_what_the_platform_filled_in() -> None:
    now = {"tls_termination": {"enabled": True, "terminate_at": "edge", "min_version": "1.2"}}
    told = find_changes("TLSEdge", {"tls_termination": {}}, now, {})
    assert [(path, each.changed_by) for path, each in told.items()] == [("tls_termination", ChangedBy.GIT)]


def test_declaring_what_the_platform_had_filled_in_is_a_change_in_git() -> None:
    now = {"tls_termination": {"enabled": True, "terminate_at": "edge", "min_version": "1.2"}}
    told = find_changes("TLSEdge", {"tls_termination": {}}, now, {"tls_termination": {"min_version": "1.3"}})
    assert [(path, each.changed_by) for path, each in told.items()] == [("tls_termination.min_version", ChangedBy.GIT)]


def test_declaring_bindings_that_the_platform_had_filled_in_is_a_change_in_git() -> None:
    was = {"url": "https://a.x", "traffic_policy": "on_http_request: [{actions: [{type: deny}]}]"}
    told = find_changes("CloudEndpoint", was, {**was, "bindings": ["public"]}, {**was, "bindings": ["internal"]})
    assert [(path, each.changed_by) for path, each in told.items()] == [("bindings", ChangedBy.GIT)]


@pytest.mark.parametrize(
    ("was", "now", "cause"),
    [
        (404, 404, ChangedBy.GIT),
        (404, 500, ChangedBy.BOTH),
        (200, 500, ChangedBy.PLATFORM),
    ],
)
def test_what_is_declared_no_more_goes_back_to_its_documented_default(was: int, now: int, cause: ChangedBy) -> None:
    found = find_changes("HTTPResponseBackend", {"status_code": was}, {"status_code": now}, {})
    told = [(path, each.old, each.new, each.changed_by) for path, each in found.items()]
    assert told == [("status_code", now, 200, cause)]


@pytest.mark.parametrize("shown", [{"status_code": 200}, {"status_code": None}, {}])
def test_what_is_declared_no_more_and_has_its_documented_default_or_no_value_is_left_alone(shown: Shown) -> None:
    there = live("HTTPResponseBackend", "b", shown, owner=record("HTTPResponseBackend/a", {"status_code": 404}))
    assert all(
        not change.fields for change in make_plan(declare("HTTPResponseBackend/a"), seen=snapshot(there)).changes
    )


def test_a_reference_to_what_is_made_anew_follows_it() -> None:
    first = [declare("CertificateAuthority/a", {"ca_pem": "OLD"}), _edge()]
    world = settle(*first)
    made = plan_on(world, declare("CertificateAuthority/a", {"ca_pem": "NEW"}), _edge())
    assert [field.changed_by for field in change_of(made, "TLSEdge/e").fields] == [ChangedBy.FOLLOWS]


def _edge() -> Any:
    return declare("TLSEdge/e", {"mutual_tls": {"certificate_authority_ids": [ref("CertificateAuthority/a")]}})


def test_a_reference_to_another_new_object_is_a_change_in_git() -> None:
    world = settle(declare("CertificateAuthority/a", {"ca_pem": "OLD"}), _edge())
    made = plan_on(
        world,
        declare("CertificateAuthority/a", {"ca_pem": "OLD"}),
        declare("CertificateAuthority/b", {"ca_pem": "NEW"}),
        declare("TLSEdge/e", {"mutual_tls": {"certificate_authority_ids": [ref("CertificateAuthority/b")]}}),
    )
    assert [field.changed_by for field in change_of(made, "TLSEdge/e").fields] == [ChangedBy.GIT]


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
def test_a_document_is_told_place_by_place(
    was: list[Shown], declared: list[Shown], places: list[tuple[str, Any, Any]]
) -> None:
    def of(configs: list[Shown]) -> Shown:
        rules = [{"actions": [{"type": "deny", "config": config}]} for config in configs]
        return {"url": "https://a.x", "traffic_policy": {"on_http_request": rules}}

    told = find_changes("CloudEndpoint", of(was), of(was), of(declared))
    assert [(path, each.old, each.new) for path, each in told.items()] == [
        (f"traffic_policy.on_http_request{place}", old, new) for place, old, new in places
    ]


def test_a_document_with_a_reference_that_is_not_resolved_is_told_as_a_whole() -> None:
    def of(domain: Any) -> Shown:
        rule = {"actions": [{"type": "forward-internal", "config": {"url": domain}}]}
        return {"url": "https://a.x", "traffic_policy": {"on_http_request": [rule]}}

    made = make_plan(
        declare("CloudEndpoint/a", of(ref("ReservedDomain/new", "domain"))),
        declare("ReservedDomain/new", {"domain": "b.x"}),
        seen=snapshot(live("CloudEndpoint", "ep_1", of("https://b.x"), owner=record("CloudEndpoint/a", {}))),
    )
    (told,) = [list(change.fields) for change in made.changes if change.address.kind == "CloudEndpoint"]
    assert [field.path for field in told] == ["traffic_policy"]


def test_a_required_value_that_a_response_lacks_is_sent_unless_only_a_new_object_could_have_it() -> None:
    bots = snapshot(live("BotUser", "bot_1", {}), bindings={"BotUser/b": Binding("bot_1")})
    assert requests(make_plan(declare("BotUser/b", {"name": "b"}), seen=bots)) == ["PATCH /bot_users/bot_1"]
    domains = snapshot(live("ReservedDomain", "rd_1", {}, owner=record("ReservedDomain/d", {"domain": "a.x"})))
    assert make_plan(declare("ReservedDomain/d", {"domain": "a.x"}), seen=domains).changes == ()


# --- secrets ----------------------------------------------------------------------------------------------------------

KEY_ONE, KEY_TWO = secret("metrics-key-one"), secret("metrics-key-two")


def metrics(key: Any, service: str = "edge") -> Shown:
    return {"target": {"metrics": {"api_key": key, "service": service}}}


SHOWN_METRICS = {"target": {"metrics": {"api_key": "", "service": "edge", "tags": "", "site": ""}, "logs": None}}


def test_a_secret_that_is_never_read_back_and_did_not_change_is_no_difference() -> None:
    there = live("EventDestination", "ed_1", SHOWN_METRICS, owner=record("EventDestination/a", metrics(KEY_ONE)))
    assert make_plan(declare("EventDestination/a", metrics(KEY_ONE)), seen=snapshot(there)).changes == ()


def test_a_secret_that_is_never_read_back_and_changed_in_git_is_sent() -> None:
    told = find_changes("EventDestination", metrics(KEY_ONE), SHOWN_METRICS, metrics(KEY_TWO))
    assert [(path, each.old, each.changed_by) for path, each in told.items()] == [
        ("target.metrics.api_key", None, ChangedBy.GIT)
    ]
    assert isinstance(told["target.metrics.api_key"].new, Hidden)


def test_a_changed_secret_is_told_beside_what_else_changed() -> None:
    told = find_changes("EventDestination", metrics(KEY_ONE), SHOWN_METRICS, metrics(KEY_TWO, "other"))
    assert list(told) == ["target.metrics.service", "target.metrics.api_key"]


def test_another_target_member_is_told_with_its_secret_and_replaces() -> None:
    declared = {"target": {"stream": {"stream_arn": "arn", "auth": {"creds": {
        "cloud_access_key_id": "id", "cloud_secret_access_key": KEY_TWO}}}}}  # fmt: skip
    told = find_changes("EventDestination", metrics(KEY_ONE), SHOWN_METRICS, declared)
    assert "target.stream.auth.creds.cloud_secret_access_key" in told
    assert all(field_change.forces_replacement for field_change in told.values())


def test_of_a_target_only_the_member_that_somebody_added_is_told() -> None:
    shown = {"target": {"metrics": {"service": "edge"}, "logs": {"log_group_arn": "arn:1"}}}
    told = find_changes("EventDestination", metrics(KEY_ONE), shown, metrics(KEY_ONE))
    assert [(path, each.new) for path, each in told.items()] == [("target.logs", None)]


def test_a_new_private_key_replaces_the_certificate() -> None:
    was = {"certificate_pem": "C", "private_key_pem": KEY_ONE}
    told = find_changes("TLSCertificate", was, {"certificate_pem": "C"}, {**was, "private_key_pem": KEY_TWO})
    assert [(path, each.forces_replacement) for path, each in told.items()] == [("private_key_pem", True)]


def test_the_private_key_of_an_adopted_certificate_is_taken_to_be_the_declared_one() -> None:
    made = make_plan(
        declare("TLSCertificate/a", {"certificate_pem": "C", "private_key_pem": KEY_ONE}, id="cert_1"),
        seen=snapshot(live("TLSCertificate", "cert_1", {"certificate_pem": "C"})),
    )
    assert actions(made) == {"TLSCertificate/a": "adopt"}


def test_a_readable_secret_is_compared_and_hidden_on_both_sides() -> None:
    was = {"edge_id": "e", "match": "/", "match_type": "exact_path",
           "webhook_verification": {"provider": "github", "secret": KEY_ONE}}  # fmt: skip
    now = {**was, "webhook_verification": {"provider": "github", "secret": "webhook-by-hand"}}
    there = live("HTTPSEdgeRoute", "r", now, owner=record("HTTPSEdgeRoute/a", was), parent="e")
    made = make_plan(declare("HTTPSEdgeRoute/a", was), seen=snapshot(there))
    (change,) = fields(made).values()
    assert (change.path, change.changed_by) == ("webhook_verification.secret", ChangedBy.PLATFORM)
    assert isinstance(change.old, Hidden)
    assert isinstance(change.new, Hidden)
    assert change.old != change.new


@pytest.mark.parametrize("options", [PlanOptions(), LENIENT])
def test_no_secret_is_in_a_plan(options: PlanOptions) -> None:
    key = secret("canary-7f3a9")
    route = {"edge_id": "e", "match": "/", "match_type": "exact_path",
             "saml": {"idp_metadata": key}, "webhook_verification": {"provider": "github", "secret": key}}  # fmt: skip
    shown = {**route, "saml": {"idp_metadata": "canary-live-1"},
             "webhook_verification": {"provider": "github", "secret": "canary-live-2"}}  # fmt: skip
    made = make_plan(
        declare("HTTPSEdgeRoute/a", route),
        declare("HTTPSEdgeRoute/b", {**route, "match": "/b", "saml": None}),
        declare("EventDestination/a", metrics(key)),
        declare("TLSCertificate/a", {"certificate_pem": "C", "private_key_pem": key}),
        seen=snapshot(
            live("HTTPSEdgeRoute", "r", shown, owner=record("HTTPSEdgeRoute/a", route), parent="e"),
            live("HTTPSEdgeRoute", "gone", {**shown, "match": "/c"}, owner=record("HTTPSEdgeRoute/c"), parent="e"),
            live("EventDestination", "ed_1", SHOWN_METRICS, owner=record("EventDestination/a", metrics(KEY_ONE))),
        ),
        options=options,
    )
    assert len(made.changes) == 5
    assert "canary" not in write_plan(made) + repr(made)


# --- what forces a replacement ----------------------------------------------------------------------------------------


def test_another_port_of_an_endpoint_is_changed_in_place_and_another_scheme_is_not() -> None:
    was = {"url": "https://a.x", "traffic_policy": "on_http_request: [{actions: [{type: deny}]}]"}
    port = find_changes("CloudEndpoint", was, was, {**was, "url": "https://a.x:8443"})
    scheme = find_changes("CloudEndpoint", was, was, {**was, "url": "http://a.x"})
    assert (port["url"].forces_replacement, scheme["url"].forces_replacement) == (False, True)


def test_no_longer_declaring_the_region_of_a_domain_does_not_give_the_domain_up() -> None:
    was = {"domain": "a.x", "region": "eu"}
    there = live("ReservedDomain", "rd_1", {"domain": "a.x", "region": ""}, owner=record("ReservedDomain/a", was))
    assert make_plan(declare("ReservedDomain/a", {"domain": "a.x"}), seen=snapshot(there)).changes == ()


def test_another_region_of_a_domain_replaces_it() -> None:
    was = {"domain": "a.x", "region": "eu"}
    told = find_changes("ReservedDomain", was, {"domain": "a.x", "region": ""}, {"domain": "a.x", "region": "us"})
    assert told["region"].forces_replacement


def test_an_unreadable_field_that_is_no_longer_declared_is_removed() -> None:
    was = {"endpoint_configuration_id": "ec_1"}
    there = live("ReservedAddress", "ra_1", {"region": "us"}, owner=record("ReservedAddress/a", was))
    made = make_plan(declare("ReservedAddress/a"), seen=snapshot(there))
    # The record goes last: once it says nothing of the field, nobody could tell that it is still there.
    assert requests(made) == ["DELETE /reserved_addrs/ra_1/endpoint_configuration", "PATCH /reserved_addrs/ra_1"]


def test_a_create_tells_every_value_that_is_not_the_default() -> None:
    made = make_plan(declare("TLSEdge/a", {"description": "x", "backend": {"backend_id": "b", "enabled": True}}))
    assert {path: each.new for path, each in fields(made).items()} == {"description": "x", "backend.backend_id": "b"}
    assert change_of(made, "TLSEdge/a").action is Action.CREATE


@pytest.mark.parametrize(
    ("tls", "told"), [({}, {}), ({"enabled": False}, {}), ({"enabled": True}, {"tls.enabled": True})]
)
def test_of_an_object_that_is_there_anyway_only_what_is_not_the_default_is_told(tls: Shown, told: Shown) -> None:
    made = make_plan(declare("StaticBackend/a", {"address": "a.example.com:80", "tls": tls}))
    assert {path: each.new for path, each in fields(made).items()} == {"address": "a.example.com:80", **told}


def test_an_object_of_nothing_but_defaults_is_told_as_it_may_be_written() -> None:
    made = make_plan(declare("TLSEdge/a", {"tls_termination": {}}))
    assert fields(made)["tls_termination"].new == {}
