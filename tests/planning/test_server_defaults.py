"""What the platform chooses where nothing is declared: kept beside a change, given back when its line goes."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler import kinds
from reconciler.model.change import ChangedBy
from reconciler.model.plan import Plan
from reconciler.model.value import Value
from reconciler.planning.comparing.canonical_fields import UNREAD
from reconciler.planning.comparing.server_defaults import find_reverted_defaults, keep_live_defaults, server_defaults
from tests.planning.builders import declare, fields, live, make_plan, record, requests, snapshot

PICKED = {"enabled": True, "terminate_at": "edge", "min_version": "1.3"}


def after(kind: str, was: dict[str, Any], now: dict[str, Any], declared: dict[str, Any], **lifecycle: Any) -> Plan:
    live_object = live(kind, "id-1", now, owner=record(f"{kind}/a", was))
    return make_plan(declare(f"{kind}/a", declared, **lifecycle), seen=snapshot(live_object))


def test_a_choice_stays_when_something_beside_it_changes() -> None:
    plan = after(
        "TLSEdge",
        {"tls_termination": {}},
        {"tls_termination": PICKED},
        {"tls_termination": {"enabled": False}},
    )
    assert list(fields(plan)) == ["tls_termination.enabled"]
    assert plan.calls[0].body == {"tls_termination": {"enabled": False, "min_version": "1.3"}}
    assert plan.calls[0].owner is not None
    assert "tls_termination.min_version" not in plan.calls[0].owner.applied


def test_a_choice_that_the_new_value_excludes_does_not_stay() -> None:
    upstream = {"tls_termination": {"terminate_at": "upstream"}}
    plan = after("TLSEdge", {"tls_termination": {}}, {"tls_termination": PICKED}, upstream)
    assert plan.calls[0].body == upstream


def test_a_line_that_goes_gives_a_module_s_choice_back_once() -> None:
    was = {"tls_termination": {"min_version": "1.3"}}
    plan = after("TLSEdge", was, {"tls_termination": PICKED}, {"tls_termination": {"terminate_at": "edge"}})
    (told,) = fields(plan).values()
    assert (told.path, told.old, told.new, told.changed_by) == (
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
def test_a_line_that_goes_means_the_documented_default(kind: str, was: dict[str, Any], default: dict[str, Any]) -> None:
    rest = {"url": "https://a.x", "traffic_policy": "p"} if kind == "CloudEndpoint" else {}
    plan = after(kind, {**rest, **was}, {**rest, **was}, rest)
    assert [(call.method, call.body) for call in plan.calls] == [("PATCH", default)]
    assert after(kind, {**rest, **was}, {**rest, **default}, rest).changes == ()


@pytest.mark.parametrize(
    ("url", "was", "sent"),
    [
        ("https://a.internal", ["internal"], []),
        ("HTTPS://A.Internal:8443", ["internal"], []),
        ("https://a.internal", ["public"], [{"bindings": ["internal"]}]),
        ("https://a.x", ["internal"], [{"bindings": ["public"]}]),
    ],
)
def test_the_default_of_a_binding_follows_from_the_host(url: str, was: list[str], sent: list[dict[str, Any]]) -> None:
    rest = {"url": url, "traffic_policy": "p"}
    shown = {**rest, "bindings": was}
    assert [call.body for call in after("CloudEndpoint", shown, shown, rest).calls] == sent


def test_who_moved_what_is_given_back_is_told() -> None:
    both = after("HTTPResponseBackend", {"status_code": 503}, {"status_code": 404}, {})
    assert [field.changed_by for field in fields(both).values()] == [ChangedBy.BOTH]
    theirs = after("HTTPResponseBackend", {"status_code": 200}, {"status_code": 404}, {})
    assert [field.changed_by for field in fields(theirs).values()] == [ChangedBy.PLATFORM]


def test_what_was_never_declared_is_left_alone() -> None:
    assert after("HTTPResponseBackend", {}, {"status_code": 404}, {}).changes == ()
    assert after("TLSEdge", {"tls_termination": {}}, {"tls_termination": PICKED}, {"tls_termination": {}}).changes == ()


def test_what_is_ignored_is_not_given_back() -> None:
    ignored = after("HTTPResponseBackend", {"status_code": 503}, {"status_code": 503}, {}, ignore=("status_code",))
    assert ignored.changes == ()
    was = {"tls_termination": {"min_version": "1.3"}}
    inside = {"ignore": ("tls_termination.min_version",)}
    assert after("TLSEdge", was, {"tls_termination": PICKED}, {"tls_termination": {}}, **inside).changes == ()


def test_a_choice_goes_with_the_whole_that_it_is_a_part_of() -> None:
    plan = after("TLSEdge", {"tls_termination": {"min_version": "1.3"}}, {"tls_termination": PICKED}, {})
    assert requests(plan) == ["PATCH /edges/tls/id-1", "DELETE /edges/tls/id-1/tls_termination"]


def test_nothing_that_cannot_change_in_place_is_given_back() -> None:
    assert [default.path for default in server_defaults(kinds.get("ReservedDomain"))] == []
    assert [default.path for default in server_defaults(kinds.get("SSHCertificateAuthority"))] == []
    reserved_address = live(
        "ReservedAddress", "ra_1", {"region": "eu"}, owner=record("ReservedAddress/a", {"region": "eu"})
    )
    assert make_plan(declare("ReservedAddress/a"), seen=snapshot(reserved_address)).changes == ()


def test_a_module_that_goes_takes_its_declared_choices_along() -> None:
    plan = after("TLSEdge", {"tls_termination": {"min_version": "1.3"}}, {"tls_termination": PICKED}, {})
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
def test_a_choice_is_given_back_if_its_line_alone_goes(
    spec: dict[str, Value], applied: list[str], ignored: list[str], reverted: list[str]
) -> None:
    found = list(find_reverted_defaults(EDGE, spec, dict.fromkeys(applied, "digest"), ignored))
    assert [choice.path for choice in found] == reverted
    assert {choice.top.name for choice in found} <= {"tls_termination"}


def test_a_choice_beside_a_declared_value_is_sent_with_it_unless_it_is_given_back() -> None:
    def keep(value: Value, there: Any, *reverted: str) -> Value:
        return keep_live_defaults(EDGE.by_name["tls_termination"], value, there, reverted)

    there = {"enabled": True, "min_version": "1.3"}
    assert keep({"enabled": False}, there) == {"enabled": False, "min_version": "1.3"}
    assert keep({"min_version": "1.2"}, there) == {"min_version": "1.2"}
    assert keep({"enabled": False}, there, MIN) == {"enabled": False}
    assert keep({"enabled": False}, there, "min_version") == {"enabled": False, "min_version": "1.3"}
    for nothing in (None, {"min_version": None}, {"min_version": UNREAD}, {}):
        assert keep({"enabled": False}, nothing) == {"enabled": False}
    assert keep(None, there) is None
    assert keep_live_defaults(EDGE.by_name["description"], "x", "y", ()) == "x"
