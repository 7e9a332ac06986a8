"""The exact requests of one decision: the smallest safe number of calls."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.model.manifest import Declaration
from reconciler.model.plan import Verb
from reconciler.model.snapshot import Binding
from reconciler.model.value import Template
from tests.harness.builders import (
    INTENT,
    LENIENT,
    build_account,
    call_of,
    declare,
    live,
    make_plan,
    plan_on,
    record,
    ref,
    requests,
    secret,
    snapshot,
)

BACK = {"backend": {"backend_id": "b"}}
LIVE_BACK = {"backend": {"backend": {"id": "b"}}}
MTLS = {"certificate_authority_ids": ["ca_1"]}
LIVE_MTLS = {"enabled": True, "certificate_authorities": [{"id": "ca_1"}]}


def list_requests(
    kind: str, was: dict[str, Any], now: dict[str, Any], declared: dict[str, Any]
) -> list[tuple[str, Any]]:
    """Method and path below the object, with the body, for each call."""
    live_object = live(kind, "id-1", now, owner=record(f"{kind}/a", was))
    plan = make_plan(declare(f"{kind}/a", declared), seen=snapshot(live_object))
    assert plan.errors == ()
    return [(f"{call.method} {str(call.path).rpartition('id-1')[2]}".strip(), call.body) for call in plan.calls]


def test_a_create_sends_all_modules() -> None:
    plan = make_plan(declare("TLSEdge/a", {"description": "x", "mutual_tls": MTLS, "backend": {"backend_id": "b"}}))
    assert [(call.method, call.path, call.body) for call in plan.calls] == [
        ("POST", "/edges/tls", {"description": "x", "mutual_tls": MTLS, "backend": {"backend_id": "b"}})
    ]


def test_a_cloud_endpoint_is_created_with_its_type() -> None:
    plan = make_plan(declare("CloudEndpoint/a", {"url": "https://a.x", "traffic_policy": "p"}))
    assert (plan.calls[0].body or {})["type"] == "cloud"


def test_a_route_is_created_after_its_new_edge() -> None:
    plan = make_plan(
        declare("HTTPSEdge/e"),
        declare("HTTPSEdgeRoute/r", {"edge_id": ref("HTTPSEdge/e"), "match": "/", "match_type": "exact_path"}),
    )
    create = call_of(plan, "create HTTPSEdgeRoute/r")
    assert create.path == Template(("/edges/https/", ref("HTTPSEdge/e"), "/routes"))
    assert (create.body or {}).keys() == {"match", "match_type"}
    assert create.needs == ("create HTTPSEdge/e",)


def test_a_field_that_only_an_update_accepts_is_sent_after_the_create() -> None:
    plan = make_plan(declare("ReservedDomain/d", {"domain": "a.x", "http_endpoint_configuration_id": "ec_1"}))
    assert [(call.method, call.body, call.needs) for call in plan.calls] == [
        ("POST", {"domain": "a.x"}, ()),
        ("PATCH", {"http_endpoint_configuration_id": "ec_1"}, ("create ReservedDomain/d",)),
    ]


def test_an_owner_record_does_not_contain_fields_that_are_not_sent_yet() -> None:
    plan = make_plan(declare("ReservedAddress/a", {"region": "eu", "endpoint_configuration_id": "ec_1"}))
    assert [sorted(call.owner.applied) for call in plan.calls if call.owner] == [
        ["region"],
        ["endpoint_configuration_id", "region"],
    ]


def test_an_id_is_one_segment_of_a_path_with_any_characters() -> None:
    edge = live("TLSEdge", "a/../b", owner=record("TLSEdge/a", {}))
    assert requests(make_plan(declare("TLSEdge/a", {"description": "x"}), seen=snapshot(edge))) == [
        "PATCH /edges/tls/a%2F..%2Fb"
    ]


def test_the_id_of_a_parent_is_one_segment_too() -> None:
    route = live("HTTPSEdgeRoute", "r1", {"match": "/x"}, owner=record("HTTPSEdgeRoute/r", {}), parent="a/../b")
    assert requests(make_plan(seen=snapshot(route), options=LENIENT)) == ["DELETE /edges/https/a%2F..%2Fb/routes/r1"]


@pytest.mark.parametrize("changed_in_git", [True, False])
def test_metadata_is_sent_with_the_owner_record_for_any_cause_of_its_change(changed_in_git: bool) -> None:
    was = {"metadata": "before" if changed_in_git else "declared"}
    edge = live("TLSEdge", "e", {"metadata": "other"}, owner=record("TLSEdge/a", was))
    (call,) = make_plan(declare("TLSEdge/a", {"metadata": "declared"}), seen=snapshot(edge)).calls
    assert call.owner is not None
    assert (call.owner.text, call.owner.intent, call.body) == ("declared", INTENT, {})


SOURCE = {"subscription_id": "esb_1", "type": "b.v0"}
PLAIN = {"description": "x"}


@pytest.mark.parametrize(
    ("declared", "live_objects", "intent", "text", "replaces"),
    [
        (declare("TLSEdge/a", {"metadata": "declared"}), [], None, "declared", None),
        (declare("TLSEdge/a", PLAIN), [("TLSEdge", {}, {})], "i1", "", None),
        (declare("TLSEdge/a", PLAIN), [("TLSEdge", {}, {"replaces": "id-0"})], "i1", "", "id-0"),
        (declare("TLSEdge/b", moved=["TLSEdge/a"]), [("TLSEdge", {}, {"replaces": "id-0"})], "i1", "", "id-0"),
        (declare("TLSEdge/a", PLAIN, id="id-1"), [("TLSEdge", {}, None)], None, "", None),
        (declare("TLSEdge/a", PLAIN), [("TLSEdge", {"metadata": "other"}, {})], "i1", "", None),
        (
            declare("TLSEdge/a", {**PLAIN, "metadata": "declared"}, ignore=["metadata"]),
            [("TLSEdge", {"metadata": "other"}, {})],
            "i1",
            "other",
            None,
        ),
        (
            declare("SSHCredential/a", {"public_key": "ssh-ed25519 NEW", "metadata": "declared"}),
            [("SSHCredential", {"public_key": "ssh-ed25519 OLD"}, {"replaces": "id-0"})],
            None,
            "declared",
            "id-1",
        ),
        (
            declare("SSHCredential/a", {"public_key": "ssh-ed25519 NEW"}, ignore=["metadata"]),
            [("SSHCredential", {"public_key": "ssh-ed25519 OLD", "metadata": "other"}, {})],
            None,
            "other",
            "id-1",
        ),
    ],
    ids=[
        "create",
        "update",
        "update of a replacement that is not finished",
        "move of a replacement that is not finished",
        "adopt",
        "update that empties the metadata",
        "update that ignores the metadata",
        "replace",
        "replace that ignores the metadata",
    ],
)
def test_the_owner_record_contains_the_address_intent_metadata_and_replaced_id(
    declared: Declaration, live_objects: list[Any], intent: str | None, text: str, replaces: str | None
) -> None:
    where = f"{declared.address.kind}/a"
    lives = [
        live(kind, "id-1", body, owner=None if flags is None else record(where, body, intent="i1", **flags))
        for kind, body, flags in live_objects
    ]
    first = make_plan(declared, seen=snapshot(*lives), options=LENIENT).calls[0]
    owner = first.owner
    assert owner is not None
    assert (owner.address, owner.intent, owner.text, owner.replaces) == (declared.address, intent, text, replaces)


@pytest.mark.parametrize("protect", [True, False])
def test_the_owner_record_protects_what_the_manifest_protects(protect: bool) -> None:
    edge = live("TLSEdge", "e", owner=record("TLSEdge/a", {}, protect=not protect))
    (call,) = make_plan(declare("TLSEdge/a", protect=protect), seen=snapshot(edge)).calls
    assert call.owner is not None
    assert call.owner.protect is protect


def test_a_source_is_recorded_with_the_locator_of_its_predecessor() -> None:
    """The type of a source does not identify its subscription."""
    live_objects = [
        live("EventSubscription", "esb_1", owner=record("EventSubscription/s", {})),
        live("EventSource", "a.v0", parent="esb_1"),
    ]
    seen = snapshot(*live_objects, bindings={"EventSource/x": Binding("esb_1/a.v0")})
    plan = make_plan(declare("EventSubscription/s"), declare("EventSource/x", SOURCE), seen=seen, options=LENIENT)
    owner = call_of(plan, "create EventSource/x").owner
    assert owner is not None
    assert owner.replaces == "esb_1/a.v0"


def test_a_token_is_pending_until_the_call_after_its_create() -> None:
    plan = make_plan(declare("APIKey/k"), declare("IPPolicy/p"))
    drafts = {call.id: (call.owner and call.owner.pending, set(call.deliver)) for call in plan.calls}
    assert drafts == {
        "create APIKey/k": (True, {"token"}),
        "complete APIKey/k": (False, set()),
        "create IPPolicy/p": (False, set()),
    }
    assert call_of(plan, "complete APIKey/k").needs == ("create APIKey/k",)


def key(number: int) -> Declaration:
    return declare("SSHCredential/a", {"public_key": f"ssh-ed25519 KEY{number}"})


def rule(action: str) -> Declaration:
    return declare("IPPolicyRule/r", {"ip_policy_id": ref("IPPolicy/p"), "cidr": "10.0.0.0/8", "action": action})


@pytest.mark.parametrize(
    ("before", "after", "unbinds"),
    [(key(1), [key(2)], False), (rule("allow"), [rule("deny")], True), (key(1), [], True)],
    ids=["after the create", "before the create", "without a create"],
)
def test_a_delete_removes_the_binding_unless_a_successor_is_bound(
    before: Declaration, after: list[Declaration], unbinds: bool
) -> None:
    policy = declare("IPPolicy/p")
    world = build_account(policy, before)
    (delete,) = [call for call in plan_on(world, policy, *after).calls if call.verb is Verb.DELETE]
    assert delete.unbinds is unbinds


def test_the_delete_of_a_superseded_object_does_not_remove_the_binding() -> None:
    old = live("TLSEdge", "e1", owner=record("TLSEdge/a", {}, intent="i1"))
    new = live("TLSEdge", "e2", owner=record("TLSEdge/a", {}, intent="i2", replaces="e1"))
    plan = make_plan(declare("TLSEdge/a"), seen=snapshot(old, new), options=LENIENT)
    assert [(call.id, call.target, call.unbinds) for call in plan.calls] == [("delete TLSEdge/a e1", "e1", False)]


# --- modules ----------------------------------------------------------------------------------------------------------


def test_several_fields_and_modules_are_sent_in_one_patch() -> None:
    calls = list_requests("TLSEdge", {}, {}, {"description": "x", "mutual_tls": MTLS, "backend": {"backend_id": "b"}})
    assert calls == [("PATCH", {"description": "x", "mutual_tls": MTLS, "backend": {"backend_id": "b"}})]


def test_a_module_removed_on_the_platform_is_put_and_two_are_patched() -> None:
    declared = {"mutual_tls": MTLS, "backend": {"backend_id": "b"}}
    live_modules = {"mutual_tls": LIVE_MTLS, "backend": {"backend": {"id": "b"}}}
    for name, value in declared.items():
        rest = {other: body for other, body in live_modules.items() if other != name}
        assert list_requests("TLSEdge", declared, rest, declared) == [(f"PUT /{name}", value)]
    assert list_requests("TLSEdge", declared, {}, declared) == [("PATCH", declared)]
    assert list_requests("TLSEdge", {**declared, **PLAIN}, live_modules, {**declared, **PLAIN}) == [("PATCH", PLAIN)]


def test_a_new_module_is_patched_together_with_the_owner_record() -> None:
    assert list_requests("TLSEdge", {}, {}, {"mutual_tls": MTLS}) == [("PATCH", {"mutual_tls": MTLS})]


def test_a_removed_module_is_deleted_on_its_path() -> None:
    calls = list_requests("TLSEdge", {"mutual_tls": MTLS}, {"mutual_tls": LIVE_MTLS}, {})
    assert [call for call, _ in calls] == ["PATCH", "DELETE /mutual_tls"]


def test_a_module_added_on_the_platform_is_deleted_by_one_call() -> None:
    assert list_requests("TLSEdge", {}, {"mutual_tls": LIVE_MTLS}, {}) == [("DELETE /mutual_tls", None)]


def test_a_backend_is_detached_before_its_protection_is_removed() -> None:
    live_modules = {"backend": {"backend": {"id": "b"}}, "ip_restriction": {"ip_policies": [{"id": "p"}]}}
    calls = list_requests("TLSEdge", {}, live_modules, {})
    assert [call for call, _ in calls] == ["DELETE /backend", "DELETE /ip_restriction"]


UPSTREAM = {"tls_termination": {"terminate_at": "upstream"}}


def test_modules_that_upstream_termination_forbids_are_deleted_before_it_is_set() -> None:
    calls = list_requests("TLSEdge", {"mutual_tls": MTLS}, {"mutual_tls": LIVE_MTLS}, UPSTREAM)
    assert [call for call, _ in calls] == ["DELETE /mutual_tls", "PATCH"]


def test_upstream_termination_is_deleted_before_modules_that_it_forbids_are_set() -> None:
    calls = list_requests("TLSEdge", UPSTREAM, UPSTREAM, {"mutual_tls": MTLS})
    assert [call for call, _ in calls] == ["DELETE /tls_termination", "PATCH"]


def test_a_change_from_upstream_to_edge_with_mutual_tls_is_one_patch() -> None:
    calls = list_requests(
        "TLSEdge", UPSTREAM, UPSTREAM, {"tls_termination": {"terminate_at": "edge"}, "mutual_tls": MTLS}
    )
    assert calls == [("PATCH", {"tls_termination": {"terminate_at": "edge"}, "mutual_tls": MTLS})]


def test_upstream_termination_is_sent_without_a_version() -> None:
    live_modules = {"tls_termination": {"terminate_at": "edge", "min_version": "1.3"}}
    assert list_requests("TLSEdge", {"tls_termination": {"min_version": "1.3"}}, live_modules, UPSTREAM) == [
        ("PATCH", UPSTREAM)
    ]


def test_an_update_of_termination_retains_the_version_chosen_by_the_platform() -> None:
    live_modules = {"tls_termination": {"enabled": True, "terminate_at": "edge", "min_version": "1.3"}}
    declared = {"tls_termination": {"enabled": False}}
    ((request, body),) = list_requests("TLSEdge", {"tls_termination": {}}, live_modules, declared)
    assert (request, body["tls_termination"]["min_version"]) == ("PATCH", "1.3")


@pytest.mark.parametrize(
    ("was", "now", "declared", "calls"),
    [
        (
            {"mutual_tls": MTLS},
            {"mutual_tls": LIVE_MTLS},
            {"tls_termination": {"min_version": "1.3"}},
            "PATCH, mutual_tls",
        ),
        ({**UPSTREAM, **BACK}, {**UPSTREAM, **LIVE_BACK}, {**UPSTREAM, **PLAIN}, "PATCH, backend"),
        (
            {"tls_termination": {"min_version": "1.3"}},
            {"tls_termination": {"terminate_at": "edge", "min_version": "1.3"}},
            PLAIN,
            "PATCH, tls_termination",
        ),
        ({}, {**UPSTREAM, **LIVE_BACK}, {}, "backend, tls_termination"),
    ],
    ids=["not upstream", "upstream remains", "was not upstream", "nothing is set"],
)
def test_modules_that_upstream_termination_allows_are_deleted_last(
    was: dict[str, Any], now: dict[str, Any], declared: dict[str, Any], calls: str
) -> None:
    assert ", ".join(call.removeprefix("DELETE /") for call, _ in list_requests("TLSEdge", was, now, declared)) == calls


def test_a_field_that_responses_omit_is_removed_before_the_owner_record_is_updated() -> None:
    was = {"region": "us", "endpoint_configuration_id": "ec_1"}
    calls = list_requests("ReservedAddress", was, {"region": "us"}, {"region": "us", **PLAIN})
    assert [call.partition(" ")[0] for call, _ in calls] == ["DELETE", "PATCH"]


# --- certificates of a domain -----------------------------------------------------------------------------------------

DOMAIN = {"domain": "a.x"}
MANAGED = {"certificate_management_policy": {"authority": "letsencrypt"}}
UPLOADED = {"certificate_id": "cert_1"}


def test_an_uploaded_certificate_is_set_after_the_policy_is_deleted() -> None:
    now = {**DOMAIN, **MANAGED, "certificate": {"id": "cert_auto"}}
    calls = list_requests("ReservedDomain", {**DOMAIN, **MANAGED}, now, {**DOMAIN, **UPLOADED})
    assert calls == [("DELETE /certificate_management_policy", None), ("PATCH", UPLOADED)]


def test_a_policy_replaces_an_uploaded_certificate_in_one_patch() -> None:
    now = {**DOMAIN, "certificate": {"id": "cert_1"}, "certificate_management_policy": None}
    calls = list_requests("ReservedDomain", {**DOMAIN, **UPLOADED}, now, {**DOMAIN, **MANAGED})
    assert calls == [("PATCH", MANAGED)]


def test_a_policy_without_a_successor_is_deleted_last() -> None:
    now = {**DOMAIN, **MANAGED}
    calls = list_requests("ReservedDomain", now, now, {**DOMAIN, "http_endpoint_configuration_id": "ec_1"})
    assert [call for call, _ in calls] == ["PATCH", "DELETE /certificate_management_policy"]


def test_an_uploaded_certificate_is_detached_by_delete() -> None:
    now = {**DOMAIN, "certificate": {"id": "cert_1"}}
    calls = list_requests("ReservedDomain", {**DOMAIN, **UPLOADED}, now, DOMAIN)
    assert [call for call, _ in calls] == ["PATCH", "DELETE /certificate"]


def test_an_uploaded_certificate_is_replaced_by_a_patch() -> None:
    now = {**DOMAIN, "certificate": {"id": "cert_1"}}
    calls = list_requests("ReservedDomain", {**DOMAIN, **UPLOADED}, now, {**DOMAIN, "certificate_id": "cert_2"})
    assert calls == [("PATCH", {"certificate_id": "cert_2"})]


# --- routes of other owners -------------------------------------------------------------------------------------------

SAML = {"saml": {"idp_metadata": secret("<xml/>")}}
LIVE_SAML = {"saml": {"idp_metadata": "<xml/>"}}
HOOK = {"webhook_verification": {"provider": "github", "secret": secret("s3")}}
LIVE_HOOK = {"webhook_verification": {"provider": "github", "secret": "s3"}}


def update_modules(now: dict[str, Any], declared: dict[str, Any]) -> list[str]:
    route = live("HTTPSEdgeRoute", "r1", {"match": "/x", "match_type": "exact_path", **now}, parent="e1")
    plan = make_plan(declare("HTTPSEdgeRoute/a", {"edge_id": "e1", **declared}, id="r1"), seen=snapshot(route))
    assert plan.errors == ()
    return [request.replace("/edges/https/e1/routes/r1/", "") for request in requests(plan)]


def test_protection_is_put_before_the_backend() -> None:
    assert update_modules({}, {**BACK, **SAML, **HOOK}) == ["PUT saml", "PUT webhook_verification", "PUT backend"]


OIDC = {"oidc": {"issuer": "https://login.example.com", "client_id": "c", "client_secret": secret("s3")}}


def test_a_login_is_changed_while_the_backend_is_detached() -> None:
    assert update_modules({**LIVE_SAML, **LIVE_BACK}, {**OIDC, **BACK}) == [
        "DELETE backend",
        "DELETE saml",
        "PUT oidc",
        "PUT backend",
    ]


@pytest.mark.parametrize("backend", [{}, LIVE_BACK], ids=["never attached", "detached for good"])
def test_an_undeclared_backend_is_not_attached_after_a_change_of_the_login(backend: dict[str, Any]) -> None:
    assert update_modules({**LIVE_SAML, **backend}, OIDC) == [
        *(["DELETE backend"] if backend else []),
        "DELETE saml",
        "PUT oidc",
    ]


ON_ROUTE = {"edge_id": "e1", "match": "/x", "match_type": "exact_path"}


def update_managed_route(
    was: dict[str, Any], now: dict[str, Any], declared: dict[str, Any]
) -> list[tuple[str, list[str]]]:
    """The calls on a managed route: method and module, and the names of the fields that each sends."""
    body = {"match": "/x", "match_type": "exact_path", **now}
    route = live("HTTPSEdgeRoute", "r1", body, owner=record("HTTPSEdgeRoute/a", {**ON_ROUTE, **was}), parent="e1")
    plan = make_plan(declare("HTTPSEdgeRoute/a", {**ON_ROUTE, **declared}), seen=snapshot(route))
    assert plan.errors == ()
    return [
        (f"{call.method} {str(call.path).rpartition('/r1')[2]}".strip(), sorted(call.body or {})) for call in plan.calls
    ]


@pytest.mark.parametrize("backend", [BACK, {}], ids=["unchanged", "removed"])
def test_the_login_of_a_managed_route_is_changed_while_its_backend_is_detached(backend: dict[str, Any]) -> None:
    calls = update_managed_route({**SAML, **BACK}, {**LIVE_SAML, **LIVE_BACK}, {**OIDC, **backend})
    assert calls == [("DELETE /backend", []), ("DELETE /saml", []), ("PATCH", [*backend, "oidc"])]


def test_an_unchanged_backend_is_not_sent_without_a_change_of_the_login() -> None:
    was, now = {**SAML, **BACK}, {**LIVE_SAML, **LIVE_BACK}
    assert update_managed_route(was, now, {**SAML, **BACK, **PLAIN}) == [("PATCH", ["description"])]
    assert update_managed_route(BACK, LIVE_BACK, {**BACK, **SAML}) == [("PATCH", ["saml"])]


def test_the_login_of_a_managed_route_is_changed_without_a_backend() -> None:
    assert update_managed_route(SAML, LIVE_SAML, OIDC) == [("DELETE /saml", []), ("PATCH", ["oidc"])]
    calls = update_managed_route({**SAML, **HOOK}, {**LIVE_SAML, **LIVE_HOOK}, OIDC)
    assert calls == [("DELETE /saml", []), ("PATCH", ["oidc"]), ("DELETE /webhook_verification", [])]


def test_an_undeclared_value_of_a_module_is_reverted_to_its_documented_default() -> None:
    """Immutable fields precede it in the spec."""
    was = {"circuit_breaker": {"error_threshold_percentage": 0.5, "tripped_duration": 20}}
    declared = {"circuit_breaker": {"error_threshold_percentage": 0.5}}
    (call,) = update_managed_route(was, was, declared)
    assert call == ("PATCH", ["circuit_breaker"])


def test_the_backend_is_deleted_before_its_protection() -> None:
    assert update_modules({**LIVE_SAML, **LIVE_BACK, **LIVE_HOOK}, {}) == [
        "DELETE backend",
        "DELETE webhook_verification",
        "DELETE saml",
    ]


def test_a_new_login_is_put_before_the_old_one_is_deleted() -> None:
    assert update_modules({**LIVE_SAML, **LIVE_BACK}, {**HOOK, **BACK}) == ["PUT webhook_verification", "DELETE saml"]


def test_each_call_on_a_route_waits_for_its_predecessor() -> None:
    route = live("HTTPSEdgeRoute", "r1", parent="e1")
    plan = make_plan(declare("HTTPSEdgeRoute/a", {"edge_id": "e1", **BACK, **SAML}, id="r1"), seen=snapshot(route))
    assert [call.needs for call in plan.calls] == [(), ("put module saml of HTTPSEdgeRoute/a",)]


def test_a_route_with_managed_modules_retains_all_other_fields() -> None:
    assert update_modules({"description": "other", "metadata": "other", **LIVE_BACK}, BACK) == []


def test_a_route_with_managed_modules_has_no_owner_record() -> None:
    route = live("HTTPSEdgeRoute", "r1", {"match": "/x"}, parent="e1")
    plan = make_plan(declare("HTTPSEdgeRoute/a", {"edge_id": "e1", **BACK}, id="r1"), seen=snapshot(route))
    assert [call.owner for call in plan.calls] == [None]


def test_a_route_named_by_id_with_its_match_is_managed_as_a_whole() -> None:
    route = live("HTTPSEdgeRoute", "r1", {"match": "/x", "match_type": "exact_path"}, parent="e1")
    spec = {"edge_id": "e1", "match": "/x", "match_type": "exact_path", **BACK}
    plan = make_plan(declare("HTTPSEdgeRoute/a", spec, id="r1"), seen=snapshot(route))
    assert requests(plan) == ["PATCH /edges/https/e1/routes/r1"]
    assert plan.calls[0].owner is not None


@pytest.mark.parametrize("stack", ["laws", "other"])
def test_modules_of_a_route_are_managed_unless_another_stack_manages_the_route(stack: str) -> None:
    route = live("HTTPSEdgeRoute", "r1", owner=record("HTTPSEdgeRoute/x", {}, stack="other"), parent="e1")
    seen = snapshot(route if stack == "other" else live("HTTPSEdgeRoute", "r1", parent="e1"))
    plan = make_plan(declare("HTTPSEdgeRoute/a", {"edge_id": "e1", **BACK}, id="r1"), seen=seen)
    assert len(plan.errors) == (1 if stack == "other" else 0)
