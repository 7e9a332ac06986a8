"""Server defaults: retained by an update beside them, reverted when their declaration is removed."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler import kinds
from reconciler.model.change import ChangedBy
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Binding
from reconciler.model.value import Value
from reconciler.planning.comparing.canonical_fields import UNREAD
from reconciler.planning.comparing.server_defaults import find_reverted_defaults, keep_live_defaults, server_defaults
from tests.harness.builders import LENIENT, declare, fields, live, make_plan, record, requests, snapshot

SERVER_DEFAULTS = {"enabled": True, "terminate_at": "edge", "min_version": "1.3"}


def plan_change(
    kind: str, was: dict[str, Any], now: dict[str, Any], declared: dict[str, Any], **lifecycle: Any
) -> Plan:
    live_object = live(kind, "id-1", now, owner=record(f"{kind}/a", was))
    return make_plan(declare(f"{kind}/a", declared, **lifecycle), seen=snapshot(live_object))


def test_a_server_default_is_retained_by_an_update_of_its_module() -> None:
    plan = plan_change(
        "TLSEdge",
        {"tls_termination": {}},
        {"tls_termination": SERVER_DEFAULTS},
        {"tls_termination": {"enabled": False}},
    )
    assert list(fields(plan)) == ["tls_termination.enabled"]
    assert plan.calls[0].body == {"tls_termination": {"enabled": False, "min_version": "1.3"}}
    assert plan.calls[0].owner is not None
    assert "tls_termination.min_version" not in plan.calls[0].owner.applied


def test_a_server_default_that_the_new_value_excludes_is_not_retained() -> None:
    upstream = {"tls_termination": {"terminate_at": "upstream"}}
    plan = plan_change("TLSEdge", {"tls_termination": {}}, {"tls_termination": SERVER_DEFAULTS}, upstream)
    assert plan.calls[0].body == upstream


def test_an_undeclared_field_of_a_module_is_reverted_to_the_server_default_once() -> None:
    was = {"tls_termination": {"min_version": "1.3"}}
    plan = plan_change(
        "TLSEdge", was, {"tls_termination": SERVER_DEFAULTS}, {"tls_termination": {"terminate_at": "edge"}}
    )
    (field,) = fields(plan).values()
    assert (field.path, field.old, field.new, field.changed_by) == (
        "tls_termination.min_version",
        "1.3",
        None,
        ChangedBy.GIT,
    )
    assert plan.calls[0].body == {"tls_termination": {"terminate_at": "edge"}}
    assert plan.calls[0].owner is not None
    assert "tls_termination.min_version" not in plan.calls[0].owner.applied


@pytest.mark.parametrize(
    ("kind", "was", "default"),
    [
        ("HTTPResponseBackend", {"status_code": 503}, {"status_code": 200}),
        ("CloudEndpoint", {"bindings": ["kubernetes"]}, {"bindings": ["public"]}),
    ],
)
def test_an_undeclared_field_is_reverted_to_its_documented_default(
    kind: str, was: dict[str, Any], default: dict[str, Any]
) -> None:
    rest = {"url": "https://a.x", "traffic_policy": "p"} if kind == "CloudEndpoint" else {}
    plan = plan_change(kind, {**rest, **was}, {**rest, **was}, rest)
    assert [(call.method, call.body) for call in plan.calls] == [("PATCH", default)]
    assert plan_change(kind, {**rest, **was}, {**rest, **default}, rest).changes == ()


@pytest.mark.parametrize(
    ("url", "was", "sent"),
    [
        ("https://a.internal", ["internal"], []),
        ("HTTPS://A.Internal:8443", ["internal"], []),
        ("https://a.internal", ["public"], [{"bindings": ["internal"]}]),
        ("https://a.x", ["internal"], [{"bindings": ["public"]}]),
    ],
)
def test_the_default_of_bindings_depends_on_the_host(url: str, was: list[str], sent: list[dict[str, Any]]) -> None:
    rest = {"url": url, "traffic_policy": "p"}
    body = {**rest, "bindings": was}
    assert [call.body for call in plan_change("CloudEndpoint", body, body, rest).calls] == sent


def test_a_reverted_field_shows_what_changed_it() -> None:
    both = plan_change("HTTPResponseBackend", {"status_code": 503}, {"status_code": 404}, {})
    assert [field.changed_by for field in fields(both).values()] == [ChangedBy.BOTH]
    platform = plan_change("HTTPResponseBackend", {"status_code": 200}, {"status_code": 404}, {})
    assert [field.changed_by for field in fields(platform).values()] == [ChangedBy.PLATFORM]


def test_a_field_that_was_never_declared_is_unchanged() -> None:
    assert plan_change("HTTPResponseBackend", {}, {"status_code": 404}, {}).changes == ()
    assert (
        plan_change(
            "TLSEdge", {"tls_termination": {}}, {"tls_termination": SERVER_DEFAULTS}, {"tls_termination": {}}
        ).changes
        == ()
    )


def test_an_ignored_field_is_not_reverted() -> None:
    ignored = plan_change(
        "HTTPResponseBackend", {"status_code": 503}, {"status_code": 503}, {}, ignore=("status_code",)
    )
    assert ignored.changes == ()
    was = {"tls_termination": {"min_version": "1.3"}}
    inside = {"ignore": ("tls_termination.min_version",)}
    assert (
        plan_change("TLSEdge", was, {"tls_termination": SERVER_DEFAULTS}, {"tls_termination": {}}, **inside).changes
        == ()
    )


def test_a_server_default_is_removed_with_its_module() -> None:
    plan = plan_change("TLSEdge", {"tls_termination": {"min_version": "1.3"}}, {"tls_termination": SERVER_DEFAULTS}, {})
    assert requests(plan) == ["PATCH /edges/tls/id-1", "DELETE /edges/tls/id-1/tls_termination"]


def test_an_immutable_field_is_not_reverted() -> None:
    assert [default.path for default in server_defaults(kinds.get("ReservedDomain"))] == []
    assert [default.path for default in server_defaults(kinds.get("SSHCertificateAuthority"))] == []
    reserved_address = live(
        "ReservedAddress", "ra_1", {"region": "eu"}, owner=record("ReservedAddress/a", {"region": "eu"})
    )
    assert make_plan(declare("ReservedAddress/a"), seen=snapshot(reserved_address)).changes == ()


def test_an_undeclared_module_is_deleted_with_its_declared_fields() -> None:
    plan = plan_change("TLSEdge", {"tls_termination": {"min_version": "1.3"}}, {"tls_termination": SERVER_DEFAULTS}, {})
    assert list(fields(plan)) == ["tls_termination"]
    assert requests(plan) == ["PATCH /edges/tls/id-1", "DELETE /edges/tls/id-1/tls_termination"]


# --- functions --------------------------------------------------------------------------------------------------------

EDGE = kinds.get("TLSEdge")
MIN = "tls_termination.min_version"


@pytest.mark.parametrize(
    ("spec", "applied", "ignored", "reverted"),
    [
        ({"tls_termination": {}}, [MIN], [], [MIN]),
        ({"tls_termination": {"min_version": None}}, [MIN], [], [MIN]),
        ({"tls_termination": {"min_version": "1.2"}}, [MIN], [], []),
        ({"tls_termination": {}}, ["tls_termination"], [], []),
        ({"tls_termination": {}}, [], [], []),
        ({}, [MIN], [], []),
        ({"tls_termination": None}, [MIN], [], []),
        ({"tls_termination": {}}, [MIN], [MIN], []),
        ({"tls_termination": {}}, [MIN], ["tls_termination"], []),
        ({"tls_termination": {}}, [MIN], ["tls"], [MIN]),
    ],
)
def test_a_field_is_reverted_if_only_its_declaration_is_removed(
    spec: dict[str, Value], applied: list[str], ignored: list[str], reverted: list[str]
) -> None:
    found = list(find_reverted_defaults(EDGE, spec, dict.fromkeys(applied, "digest"), ignored))
    assert [default.path for default in found] == reverted
    assert {default.top.name for default in found} <= {"tls_termination"}


def test_a_live_default_is_sent_with_a_declared_value_unless_it_is_reverted() -> None:
    def keep(value: Value, live_module: Any, *reverted: str) -> Value:
        return keep_live_defaults(EDGE.by_name["tls_termination"], value, live_module, reverted)

    live_module = {"enabled": True, "min_version": "1.3"}
    assert keep({"enabled": False}, live_module) == {"enabled": False, "min_version": "1.3"}
    assert keep({"min_version": "1.2"}, live_module) == {"min_version": "1.2"}
    assert keep({"enabled": False}, live_module, MIN) == {"enabled": False}
    assert keep({"enabled": False}, live_module, "min_version") == {"enabled": False, "min_version": "1.3"}
    for empty in (None, {"min_version": None}, {"min_version": UNREAD}, {}):
        assert keep({"enabled": False}, empty) == {"enabled": False}
    assert keep(None, live_module) is None
    assert keep_live_defaults(EDGE.by_name["description"], "x", "y", ()) == "x"


# --- parts of the items of a list -------------------------------------------------------------------------------------

TYPES = ("http_request_complete.v0", "tcp_connection_closed.v0", "ip_policy_created.v0")


def test_parts_of_a_list_that_this_version_does_not_know_survive_an_update() -> None:
    response = {
        "domain": "a.x",
        "resolves_to": [{"value": "eu", "weight": 3, "uri": "x"}, {"value": "us", "weight": None}],
    }
    domain = live("ReservedDomain", "rd_1", response, owner=record("ReservedDomain/a", {"domain": "a.x"}))
    declared = {"domain": "a.x", "resolves_to": [{"value": value} for value in ("eu", "us", "ap")]}
    plan = make_plan(declare("ReservedDomain/a", declared), seen=snapshot(domain))
    body: Any = plan.calls[0].body
    assert body["resolves_to"] == [{"value": "eu", "weight": 3}, {"value": "us"}, {"value": "ap"}]


def test_the_undeclared_filter_of_a_replaced_source_is_sent_again() -> None:
    response = {"type": TYPES[0], "fields": ["conn.client_ip"], "filter": "true"}
    source = live("EventSource", TYPES[0], response, parent="esb_1")
    declared = {"subscription_id": "esb_1", "type": TYPES[0], "fields": ["http.request.method"]}
    bindings = {"EventSource/a": Binding(source.locator)}
    plan = make_plan(declare("EventSource/a", declared), seen=snapshot(source, bindings=bindings), options=LENIENT)
    bodies = [call.body for call in plan.calls if call.body is not None]
    assert bodies == [{"type": TYPES[0], "fields": ["http.request.method"], "filter": "true"}]
    empty = make_plan(
        declare("EventSource/a", {**declared, "fields": response["fields"], "filter": ""}),
        seen=snapshot(live("EventSource", TYPES[0], {**response, "filter": None}, parent="esb_1"), bindings=bindings),
    )
    assert empty.changes == ()
