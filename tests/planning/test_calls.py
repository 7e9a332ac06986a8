"""The exact requests of one decision: the fewest that are safe."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.model.manifest import Declaration
from reconciler.model.plan import Verb
from reconciler.model.snapshot import Binding
from reconciler.model.value import Template
from tests.planning.builders import (
    INTENT,
    LENIENT,
    call_of,
    declare,
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

BACK = {"backend": {"backend_id": "b"}}
LIVE_BACK = {"backend": {"backend": {"id": "b"}}}
MTLS = {"certificate_authority_ids": ["ca_1"]}
LIVE_MTLS = {"enabled": True, "certificate_authorities": [{"id": "ca_1"}]}


def list_requests(
    kind: str, was: dict[str, Any], now: dict[str, Any], declared: dict[str, Any]
) -> list[tuple[str, Any]]:
    """Method and path below the object, with the body, for each call."""
    there = live(kind, "id-1", now, owner=record(f"{kind}/a", was))
    made = make_plan(declare(f"{kind}/a", declared), seen=snapshot(there))
    assert made.errors == ()
    return [(f"{call.method} {str(call.path).rpartition('id-1')[2]}".strip(), call.body) for call in made.calls]


def test_a_create_carries_all_its_modules() -> None:
    made = make_plan(declare("TLSEdge/a", {"description": "x", "mutual_tls": MTLS, "backend": {"backend_id": "b"}}))
    assert [(call.method, call.path, call.body) for call in made.calls] == [
        ("POST", "/edges/tls", {"description": "x", "mutual_tls": MTLS, "backend": {"backend_id": "b"}})
    ]


def test_a_cloud_endpoint_is_created_with_its_type() -> None:
    made = make_plan(declare("CloudEndpoint/a", {"url": "https://a.x", "traffic_policy": "p"}))
    assert (made.calls[0].body or {})["type"] == "cloud"


def test_a_route_is_created_below_an_edge_that_is_not_there_yet() -> None:
    made = make_plan(
        declare("HTTPSEdge/e"),
        declare("HTTPSEdgeRoute/r", {"edge_id": ref("HTTPSEdge/e"), "match": "/", "match_type": "exact_path"}),
    )
    create = call_of(made, "create HTTPSEdgeRoute/r")
    assert create.path == Template(("/edges/https/", ref("HTTPSEdge/e"), "/routes"))
    assert (create.body or {}).keys() == {"match", "match_type"}
    assert create.needs == ("create HTTPSEdge/e",)


def test_what_only_an_update_accepts_follows_the_create() -> None:
    made = make_plan(declare("ReservedDomain/d", {"domain": "a.x", "http_endpoint_configuration_id": "ec_1"}))
    assert [(call.method, call.body, call.needs) for call in made.calls] == [
        ("POST", {"domain": "a.x"}, ()),
        ("PATCH", {"http_endpoint_configuration_id": "ec_1"}, ("create ReservedDomain/d",)),
    ]


def test_a_record_does_not_claim_what_was_not_sent_yet() -> None:
    made = make_plan(declare("ReservedAddress/a", {"region": "eu", "endpoint_configuration_id": "ec_1"}))
    assert [sorted(call.owner.applied) for call in made.calls if call.owner] == [
        ["region"],
        ["endpoint_configuration_id", "region"],
    ]


def test_ids_are_one_segment_of_a_path_whatever_they_hold() -> None:
    there = live("TLSEdge", "a/../b", owner=record("TLSEdge/a", {}))
    assert requests(make_plan(declare("TLSEdge/a", {"description": "x"}), seen=snapshot(there))) == [
        "PATCH /edges/tls/a%2F..%2Fb"
    ]


def test_the_id_of_a_parent_is_one_segment_too() -> None:
    there = live("HTTPSEdgeRoute", "r1", {"match": "/x"}, owner=record("HTTPSEdgeRoute/r", {}), parent="a/../b")
    assert requests(make_plan(seen=snapshot(there), options=LENIENT)) == ["DELETE /edges/https/a%2F..%2Fb/routes/r1"]


@pytest.mark.parametrize("moved_in_git", [True, False])
def test_metadata_is_sent_with_the_owner_record_whoever_changed_it(moved_in_git: bool) -> None:
    was = {"metadata": "before" if moved_in_git else "ours"}
    there = live("TLSEdge", "e", {"metadata": "theirs"}, owner=record("TLSEdge/a", was))
    (call,) = make_plan(declare("TLSEdge/a", {"metadata": "ours"}), seen=snapshot(there)).calls
    assert call.owner is not None
    assert (call.owner.text, call.owner.intent, call.body) == ("ours", INTENT, {})


SOURCE = {"subscription_id": "esb_1", "type": "b.v0"}
PLAIN = {"description": "x"}


@pytest.mark.parametrize(
    ("declared", "there", "intent", "text", "replaces"),
    [
        (declare("TLSEdge/a", {"metadata": "ours"}), [], None, "ours", None),
        (declare("TLSEdge/a", PLAIN), [("TLSEdge", {}, {})], "i1", "", None),
        (declare("TLSEdge/a", PLAIN), [("TLSEdge", {}, {"replaces": "id-0"})], "i1", "", "id-0"),
        (declare("TLSEdge/b", moved=["TLSEdge/a"]), [("TLSEdge", {}, {"replaces": "id-0"})], "i1", "", "id-0"),
        (declare("TLSEdge/a", PLAIN, id="id-1"), [("TLSEdge", {}, None)], None, "", None),
        (declare("TLSEdge/a", PLAIN), [("TLSEdge", {"metadata": "theirs"}, {})], "i1", "", None),
        (
            declare("TLSEdge/a", {**PLAIN, "metadata": "ours"}, ignore=["metadata"]),
            [("TLSEdge", {"metadata": "theirs"}, {})],
            "i1",
            "theirs",
            None,
        ),
        (
            declare("SSHCredential/a", {"public_key": "ssh-ed25519 NEW", "metadata": "ours"}),
            [("SSHCredential", {"public_key": "ssh-ed25519 OLD"}, {"replaces": "id-0"})],
            None,
            "ours",
            "id-1",
        ),
        (
            declare("SSHCredential/a", {"public_key": "ssh-ed25519 NEW"}, ignore=["metadata"]),
            [("SSHCredential", {"public_key": "ssh-ed25519 OLD", "metadata": "theirs"}, {})],
            None,
            "theirs",
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
def test_the_owner_record_says_whose_the_object_is_and_what_it_replaces(
    declared: Declaration, there: list[Any], intent: str | None, text: str, replaces: str | None
) -> None:
    where = f"{declared.address.kind}/a"
    lives = [
        live(kind, "id-1", body, owner=None if flags is None else record(where, body, intent="i1", **flags))
        for kind, body, flags in there
    ]
    first = make_plan(declared, seen=snapshot(*lives), options=LENIENT).calls[0]
    owner = first.owner
    assert owner is not None
    assert (owner.address, owner.intent, owner.text, owner.replaces) == (declared.address, intent, text, replaces)


@pytest.mark.parametrize("protect", [True, False])
def test_the_owner_record_protects_what_the_manifest_protects(protect: bool) -> None:
    there = live("TLSEdge", "e", owner=record("TLSEdge/a", {}, protect=not protect))
    (call,) = make_plan(declare("TLSEdge/a", protect=protect), seen=snapshot(there)).calls
    assert call.owner is not None
    assert call.owner.protect is protect


def test_a_source_is_recorded_with_the_place_of_the_one_that_it_replaces() -> None:
    """Its type alone does not say below which subscription it stands."""
    there = [
        live("EventSubscription", "esb_1", owner=record("EventSubscription/s", {})),
        live("EventSource", "a.v0", parent="esb_1"),
    ]
    seen = snapshot(*there, bindings={"EventSource/x": Binding("esb_1/a.v0")})
    made = make_plan(declare("EventSubscription/s"), declare("EventSource/x", SOURCE), seen=seen, options=LENIENT)
    owner = call_of(made, "create EventSource/x").owner
    assert owner is not None
    assert owner.replaces == "esb_1/a.v0"


def test_a_token_is_pending_until_the_call_after_its_create() -> None:
    made = make_plan(declare("APIKey/k"), declare("IPPolicy/p"))
    drafts = {call.id: (call.owner and call.owner.pending, set(call.deliver)) for call in made.calls}
    assert drafts == {
        "create APIKey/k": (True, {"token"}),
        "complete APIKey/k": (False, set()),
        "create IPPolicy/p": (False, set()),
    }
    assert call_of(made, "complete APIKey/k").needs == ("create APIKey/k",)


def key(number: int) -> Declaration:
    return declare("SSHCredential/a", {"public_key": f"ssh-ed25519 KEY{number}"})


def flipped(action: str) -> Declaration:
    return declare("IPPolicyRule/r", {"ip_policy_id": ref("IPPolicy/p"), "cidr": "10.0.0.0/8", "action": action})


@pytest.mark.parametrize(
    ("before", "after", "unbinds"),
    [(key(1), [key(2)], False), (flipped("allow"), [flipped("deny")], True), (key(1), [], True)],
    ids=["after the create", "before the create", "without a create"],
)
def test_a_delete_ends_the_binding_unless_another_object_has_it_by_then(
    before: Declaration, after: list[Declaration], unbinds: bool
) -> None:
    policy = declare("IPPolicy/p")
    world = settle(policy, before)
    (delete,) = [call for call in plan_on(world, policy, *after).calls if call.verb is Verb.DELETE]
    assert delete.unbinds is unbinds


def test_the_delete_of_what_was_replaced_earlier_ends_no_binding() -> None:
    old = live("TLSEdge", "e1", owner=record("TLSEdge/a", {}, intent="i1"))
    new = live("TLSEdge", "e2", owner=record("TLSEdge/a", {}, intent="i2", replaces="e1"))
    made = make_plan(declare("TLSEdge/a"), seen=snapshot(old, new), options=LENIENT)
    assert [(call.id, call.target, call.unbinds) for call in made.calls] == [("delete TLSEdge/a e1", "e1", False)]


# --- modules ----------------------------------------------------------------------------------------------------------


def test_several_fields_and_modules_go_in_one_patch() -> None:
    calls = list_requests("TLSEdge", {}, {}, {"description": "x", "mutual_tls": MTLS, "backend": {"backend_id": "b"}})
    assert calls == [("PATCH", {"description": "x", "mutual_tls": MTLS, "backend": {"backend_id": "b"}})]


def test_a_module_that_somebody_removed_is_put_alone_and_two_are_patched() -> None:
    declared = {"mutual_tls": MTLS, "backend": {"backend_id": "b"}}
    shown = {"mutual_tls": LIVE_MTLS, "backend": {"backend": {"id": "b"}}}
    for name, value in declared.items():
        rest = {other: each for other, each in shown.items() if other != name}
        assert list_requests("TLSEdge", declared, rest, declared) == [(f"PUT /{name}", value)]
    assert list_requests("TLSEdge", declared, {}, declared) == [("PATCH", declared)]
    assert list_requests("TLSEdge", {**declared, **PLAIN}, shown, {**declared, **PLAIN}) == [("PATCH", PLAIN)]


def test_a_module_is_patched_beside_the_record_that_names_it_for_the_first_time() -> None:
    assert list_requests("TLSEdge", {}, {}, {"mutual_tls": MTLS}) == [("PATCH", {"mutual_tls": MTLS})]


def test_a_removed_module_is_deleted_on_its_path() -> None:
    calls = list_requests("TLSEdge", {"mutual_tls": MTLS}, {"mutual_tls": LIVE_MTLS}, {})
    assert [call for call, _ in calls] == ["PATCH", "DELETE /mutual_tls"]


def test_a_module_that_somebody_added_is_deleted_and_nothing_else_is_sent() -> None:
    assert list_requests("TLSEdge", {}, {"mutual_tls": LIVE_MTLS}, {}) == [("DELETE /mutual_tls", None)]


def test_a_backend_is_detached_before_what_protects_it_is_removed() -> None:
    shown = {"backend": {"backend": {"id": "b"}}, "ip_restriction": {"ip_policies": [{"id": "p"}]}}
    calls = list_requests("TLSEdge", {}, shown, {})
    assert [call for call, _ in calls] == ["DELETE /backend", "DELETE /ip_restriction"]


UPSTREAM = {"tls_termination": {"terminate_at": "upstream"}}


def test_what_upstream_termination_forbids_goes_before_it_is_set() -> None:
    calls = list_requests("TLSEdge", {"mutual_tls": MTLS}, {"mutual_tls": LIVE_MTLS}, UPSTREAM)
    assert [call for call, _ in calls] == ["DELETE /mutual_tls", "PATCH"]


def test_upstream_termination_goes_before_what_it_forbids_is_set() -> None:
    calls = list_requests("TLSEdge", UPSTREAM, UPSTREAM, {"mutual_tls": MTLS})
    assert [call for call, _ in calls] == ["DELETE /tls_termination", "PATCH"]


def test_from_upstream_to_edge_with_mutual_tls_is_one_patch() -> None:
    calls = list_requests(
        "TLSEdge", UPSTREAM, UPSTREAM, {"tls_termination": {"terminate_at": "edge"}, "mutual_tls": MTLS}
    )
    assert calls == [("PATCH", {"tls_termination": {"terminate_at": "edge"}, "mutual_tls": MTLS})]


def test_upstream_termination_is_sent_without_the_version_it_must_not_have() -> None:
    shown = {"tls_termination": {"terminate_at": "edge", "min_version": "1.3"}}
    assert list_requests("TLSEdge", {"tls_termination": {"min_version": "1.3"}}, shown, UPSTREAM) == [
        ("PATCH", UPSTREAM)
    ]


def test_termination_keeps_the_version_that_the_platform_chose_unless_it_excludes_one() -> None:
    shown = {"tls_termination": {"enabled": True, "terminate_at": "edge", "min_version": "1.3"}}
    declared = {"tls_termination": {"enabled": False}}
    ((request, body),) = list_requests("TLSEdge", {"tls_termination": {}}, shown, declared)
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
    ids=["not upstream", "upstream stays", "was not upstream", "nothing is set"],
)
def test_what_upstream_termination_does_not_forbid_is_removed_last(
    was: dict[str, Any], now: dict[str, Any], declared: dict[str, Any], calls: str
) -> None:
    assert ", ".join(call.removeprefix("DELETE /") for call, _ in list_requests("TLSEdge", was, now, declared)) == calls


def test_what_responses_never_show_is_removed_before_the_record_stops_naming_it() -> None:
    was = {"region": "us", "endpoint_configuration_id": "ec_1"}
    calls = list_requests("ReservedAddress", was, {"region": "us"}, {"region": "us", **PLAIN})
    assert [call.partition(" ")[0] for call, _ in calls] == ["DELETE", "PATCH"]


# --- certificates of a domain -----------------------------------------------------------------------------------------

DOMAIN = {"domain": "a.x"}
MANAGED = {"certificate_management_policy": {"authority": "letsencrypt"}}
UPLOADED = {"certificate_id": "cert_1"}


def test_an_uploaded_certificate_comes_after_the_policy_is_gone() -> None:
    now = {**DOMAIN, **MANAGED, "certificate": {"id": "cert_auto"}}
    calls = list_requests("ReservedDomain", {**DOMAIN, **MANAGED}, now, {**DOMAIN, **UPLOADED})
    assert calls == [("DELETE /certificate_management_policy", None), ("PATCH", UPLOADED)]


def test_a_policy_takes_the_place_of_an_uploaded_certificate_in_one_patch_without_it() -> None:
    now = {**DOMAIN, "certificate": {"id": "cert_1"}, "certificate_management_policy": None}
    calls = list_requests("ReservedDomain", {**DOMAIN, **UPLOADED}, now, {**DOMAIN, **MANAGED})
    assert calls == [("PATCH", MANAGED)]


def test_a_policy_is_removed_last_where_nothing_takes_its_place() -> None:
    now = {**DOMAIN, **MANAGED}
    calls = list_requests("ReservedDomain", now, now, {**DOMAIN, "http_endpoint_configuration_id": "ec_1"})
    assert [call for call, _ in calls] == ["PATCH", "DELETE /certificate_management_policy"]


def test_an_uploaded_certificate_is_detached_by_delete() -> None:
    now = {**DOMAIN, "certificate": {"id": "cert_1"}}
    calls = list_requests("ReservedDomain", {**DOMAIN, **UPLOADED}, now, DOMAIN)
    assert [call for call, _ in calls] == ["PATCH", "DELETE /certificate"]


def test_another_uploaded_certificate_is_patched() -> None:
    now = {**DOMAIN, "certificate": {"id": "cert_1"}}
    calls = list_requests("ReservedDomain", {**DOMAIN, **UPLOADED}, now, {**DOMAIN, "certificate_id": "cert_2"})
    assert calls == [("PATCH", {"certificate_id": "cert_2"})]


# --- routes of somebody else's ----------------------------------------------------------------------------------------

SAML = {"saml": {"idp_metadata": secret("<xml/>")}}
LIVE_SAML = {"saml": {"idp_metadata": "<xml/>"}}
HOOK = {"webhook_verification": {"provider": "github", "secret": secret("s3")}}
LIVE_HOOK = {"webhook_verification": {"provider": "github", "secret": "s3"}}


def on_route(now: dict[str, Any], declared: dict[str, Any]) -> list[str]:
    there = live("HTTPSEdgeRoute", "r1", {"match": "/x", "match_type": "exact_path", **now}, parent="e1")
    made = make_plan(declare("HTTPSEdgeRoute/a", {"edge_id": "e1", **declared}, id="r1"), seen=snapshot(there))
    assert made.errors == ()
    return [request.replace("/edges/https/e1/routes/r1/", "") for request in requests(made)]


def test_protection_is_put_before_the_backend() -> None:
    assert on_route({}, {**BACK, **SAML, **HOOK}) == ["PUT saml", "PUT webhook_verification", "PUT backend"]


OIDC = {"oidc": {"issuer": "https://login.example.com", "client_id": "c", "client_secret": secret("s3")}}


def test_a_login_is_exchanged_while_the_backend_is_detached() -> None:
    assert on_route({**LIVE_SAML, **LIVE_BACK}, {**OIDC, **BACK}) == [
        "DELETE backend",
        "DELETE saml",
        "PUT oidc",
        "PUT backend",
    ]


@pytest.mark.parametrize("backend", [{}, LIVE_BACK], ids=["never attached", "detached for good"])
def test_a_backend_that_is_not_declared_is_not_attached_after_an_exchange_of_logins(backend: dict[str, Any]) -> None:
    assert on_route({**LIVE_SAML, **backend}, OIDC) == [
        *(["DELETE backend"] if backend else []),
        "DELETE saml",
        "PUT oidc",
    ]


ON_ROUTE = {"edge_id": "e1", "match": "/x", "match_type": "exact_path"}


def on_own_route(was: dict[str, Any], now: dict[str, Any], declared: dict[str, Any]) -> list[tuple[str, list[str]]]:
    """The calls on a route of ours: method and module, and the names of the fields that each sends."""
    shown = {"match": "/x", "match_type": "exact_path", **now}
    there = live("HTTPSEdgeRoute", "r1", shown, owner=record("HTTPSEdgeRoute/a", {**ON_ROUTE, **was}), parent="e1")
    made = make_plan(declare("HTTPSEdgeRoute/a", {**ON_ROUTE, **declared}), seen=snapshot(there))
    assert made.errors == ()
    return [
        (f"{call.method} {str(call.path).rpartition('/r1')[2]}".strip(), sorted(call.body or {})) for call in made.calls
    ]


@pytest.mark.parametrize("backend", [BACK, {}], ids=["kept", "removed"])
def test_a_login_of_our_route_is_exchanged_while_its_backend_is_detached(backend: dict[str, Any]) -> None:
    calls = on_own_route({**SAML, **BACK}, {**LIVE_SAML, **LIVE_BACK}, {**OIDC, **backend})
    assert calls == [("DELETE /backend", []), ("DELETE /saml", []), ("PATCH", [*backend, "oidc"])]


def test_a_backend_that_does_not_change_is_not_sent_without_an_exchange_of_logins() -> None:
    was, now = {**SAML, **BACK}, {**LIVE_SAML, **LIVE_BACK}
    assert on_own_route(was, now, {**SAML, **BACK, **PLAIN}) == [("PATCH", ["description"])]
    assert on_own_route(BACK, LIVE_BACK, {**BACK, **SAML}) == [("PATCH", ["saml"])]


def test_a_login_of_our_route_is_exchanged_without_a_backend_and_beside_what_else_is_removed() -> None:
    assert on_own_route(SAML, LIVE_SAML, OIDC) == [("DELETE /saml", []), ("PATCH", ["oidc"])]
    calls = on_own_route({**SAML, **HOOK}, {**LIVE_SAML, **LIVE_HOOK}, OIDC)
    assert calls == [("DELETE /saml", []), ("PATCH", ["oidc"]), ("DELETE /webhook_verification", [])]


def test_a_value_of_a_part_that_is_declared_no_more_is_reverted_to_its_documented_default() -> None:
    """Fields that cannot be changed come before it in the spec."""
    was = {"circuit_breaker": {"error_threshold_percentage": 0.5, "tripped_duration": 20}}
    declared = {"circuit_breaker": {"error_threshold_percentage": 0.5}}
    (call,) = on_own_route(was, was, declared)
    assert call == ("PATCH", ["circuit_breaker"])


def test_the_backend_is_removed_before_protection() -> None:
    assert on_route({**LIVE_SAML, **LIVE_BACK, **LIVE_HOOK}, {}) == [
        "DELETE backend",
        "DELETE webhook_verification",
        "DELETE saml",
    ]


def test_one_login_is_put_before_the_other_is_removed() -> None:
    assert on_route({**LIVE_SAML, **LIVE_BACK}, {**HOOK, **BACK}) == ["PUT webhook_verification", "DELETE saml"]


def test_each_call_on_a_route_waits_for_the_one_before() -> None:
    there = live("HTTPSEdgeRoute", "r1", parent="e1")
    made = make_plan(declare("HTTPSEdgeRoute/a", {"edge_id": "e1", **BACK, **SAML}, id="r1"), seen=snapshot(there))
    assert [call.needs for call in made.calls] == [(), ("put module saml of HTTPSEdgeRoute/a",)]


def test_a_route_of_which_only_modules_are_managed_keeps_everything_else() -> None:
    assert on_route({"description": "theirs", "metadata": "theirs", **LIVE_BACK}, BACK) == []


def test_a_route_of_which_only_modules_are_managed_gets_no_record_and_so_is_never_deleted() -> None:
    there = live("HTTPSEdgeRoute", "r1", {"match": "/x"}, parent="e1")
    made = make_plan(declare("HTTPSEdgeRoute/a", {"edge_id": "e1", **BACK}, id="r1"), seen=snapshot(there))
    assert [call.owner for call in made.calls] == [None]


def test_a_route_named_by_id_with_its_match_is_managed_whole() -> None:
    there = live("HTTPSEdgeRoute", "r1", {"match": "/x", "match_type": "exact_path"}, parent="e1")
    spec = {"edge_id": "e1", "match": "/x", "match_type": "exact_path", **BACK}
    made = make_plan(declare("HTTPSEdgeRoute/a", spec, id="r1"), seen=snapshot(there))
    assert requests(made) == ["PATCH /edges/https/e1/routes/r1"]
    assert made.calls[0].owner is not None


@pytest.mark.parametrize("stack", ["laws", "theirs"])
def test_modules_of_a_route_are_managed_unless_another_stack_has_it(stack: str) -> None:
    there = live("HTTPSEdgeRoute", "r1", owner=record("HTTPSEdgeRoute/x", {}, stack="theirs"), parent="e1")
    seen = snapshot(there if stack == "theirs" else live("HTTPSEdgeRoute", "r1", parent="e1"))
    made = make_plan(declare("HTTPSEdgeRoute/a", {"edge_id": "e1", **BACK}, id="r1"), seen=seen)
    assert len(made.errors) == (1 if stack == "theirs" else 0)
