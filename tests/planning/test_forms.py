"""The parts of a comparison: equality, natural keys, ignored parts, choices of the platform, and values of requests."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from reconciler import kinds
from reconciler.model.fields.field import Field
from reconciler.model.value import Hidden, JsonTemplate, Secret, Template, Value, digest
from reconciler.planning.comparing.canonical_fields import UNREAD, agrees, body_value, canonical_live, natural_key
from reconciler.planning.comparing.ignore import find_undeclared_secrets, overlay_live, prune
from reconciler.planning.comparing.leaf_differences import value_at
from reconciler.planning.comparing.plan_fields import hide_secrets, list_created_fields, show_fields
from reconciler.planning.comparing.server_defaults import find_reverted_defaults, keep_live_defaults
from tests.planning.builders import at, declare, live, ref, secret

EDGE, DESTINATION, ENDPOINT = (kinds.get(name) for name in ("TLSEdge", "EventDestination", "CloudEndpoint"))
RULE = kinds.get("IPPolicyRule")


def field(name: str, kind: str = "TLSEdge") -> Field:
    return kinds.get(kind).by_name[name]


# --- equality ---------------------------------------------------------------------------------------------------------

MODULE: Value = {"enabled": True, "ip_policy_ids": ["p"]}


@pytest.mark.parametrize(
    ("where", "want", "have", "equal"),
    [
        (field("description"), "x", "x", True),
        (field("description"), "x", "y", False),
        (field("description"), "x", UNREAD, True),
        (field("ip_restriction"), MODULE, dict(MODULE), True),
        (field("ip_restriction"), MODULE, {"enabled": False, "ip_policy_ids": ["p"]}, False),
        (field("ip_restriction"), MODULE, {"enabled": True}, False),
        (field("ip_restriction"), {"enabled": True}, MODULE, True),  # not declared: not compared
        (field("ip_restriction"), MODULE, None, False),
        (field("ip_restriction"), None, MODULE, False),
        (field("ip_restriction"), None, None, True),
        # A document in which true is not 1.
        (field("traffic_policy", "CloudEndpoint"), {"a": True}, {"a": True}, True),
        (field("traffic_policy", "CloudEndpoint"), {"a": True}, {"a": 1}, False),
        (field("traffic_policy", "CloudEndpoint"), {"a": 1}, {"a": 1.0}, False),
        (field("traffic_policy", "CloudEndpoint"), {"a": "x"}, {"a": "y"}, False),
        (field("traffic_policy", "CloudEndpoint"), "text", "text", True),
        (field("traffic_policy", "CloudEndpoint"), {"a": ref("IPPolicy/p")}, {"a": ref("IPPolicy/p")}, True),
        # A key that no response shows is no difference.
        (
            field("target", "EventDestination"),
            {"metrics": {"api_key": secret("a"), "service": "s"}},
            {"metrics": {"service": "s"}},
            True,
        ),
    ],
)
def test_a_live_value_agrees_as_far_as_responses_show_it(where: Field, want: Value, have: Any, equal: bool) -> None:
    assert agrees(where, want, have) is equal


@pytest.mark.parametrize(
    ("form", "has_key"),
    [
        ({"ip_policy_id": "p", "cidr": "10.0.0.0/8"}, True),
        ({"ip_policy_id": "p"}, False),
        ({"ip_policy_id": "p", "cidr": None}, False),
        ({"ip_policy_id": "p", "cidr": UNREAD}, False),
        ({"ip_policy_id": ref("IPPolicy/p"), "cidr": "10.0.0.0/8"}, False),
        ({"ip_policy_id": Template(("x", ref("IPPolicy/p"))), "cidr": "10.0.0.0/8"}, False),
        ({}, False),
    ],
)
def test_a_natural_key_needs_each_of_its_parts(form: dict[str, Value], has_key: bool) -> None:
    assert (natural_key(RULE, form) is not None) is has_key
    assert natural_key(EDGE, form) is None


def test_a_natural_key_is_that_of_equal_parts_in_their_order() -> None:
    def key(policy: Value, cidr: Value) -> Any:
        return natural_key(RULE, {"ip_policy_id": policy, "cidr": cidr, "action": "allow"})

    assert key("p", "c") == key("p", "c") == key(secret("p"), "c")
    assert key("p", "c") != key("c", "p")
    assert key("p", "c") != key("p", "d")
    assert key("p", 1) != key("p", "1")


def test_a_response_without_a_lasting_value_or_with_an_input_says_nothing_of_it() -> None:
    form = canonical_live(kinds.get("ReservedDomain"), live("ReservedDomain", "rd_1", {"region": "eu"}))
    assert (form["domain"], form["region"]) == (UNREAD, UNREAD)
    form = canonical_live(kinds.get("ReservedDomain"), live("ReservedDomain", "rd_1", {"domain": "A.x"}))
    assert (form["domain"], form["description"], form["resolves_to"]) == ("a.x", "", [])
    route = canonical_live(kinds.get("HTTPSEdgeRoute"), live("HTTPSEdgeRoute", "rt_1", {}, parent="e_1"))
    assert (route["edge_id"], route["match"], route["metadata"]) == ("e_1", None, "")


# --- values of requests -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "value", "sent"),
    [
        (field("description"), "x", "x"),
        (field("ip_restriction"), {"enabled": None, "ip_policy_ids": ["p"]}, {"ip_policy_ids": ["p"]}),
        (field("ip_restriction"), {}, {}),
        (field("traffic_policy"), {"enabled": None, "value": {"a": [1, "b"]}}, {"value": '{"a": [1, "b"]}'}),
        (field("traffic_policy", "CloudEndpoint"), "text", "text"),
        (field("traffic_policy", "CloudEndpoint"), {}, "{}"),
        (field("traffic_policy", "CloudEndpoint"), [], "[]"),
        (field("traffic_policy", "CloudEndpoint"), {"a": {}, "b": [], "c": None}, '{"a": {}, "b": [], "c": null}'),
        (field("traffic_policy", "CloudEndpoint"), ref("IPPolicy/p"), ref("IPPolicy/p")),
        (
            field("traffic_policy", "CloudEndpoint"),
            {"a": ref("IPPolicy/p"), "b": [Template(("x", ref("IPPolicy/q"))), 1]},
            JsonTemplate(('{"a": ', ref("IPPolicy/p"), ', "b": [', Template(("x", ref("IPPolicy/q"))), ", 1]}")),
        ),
        (field("sources", "EventSubscription"), [{"type": "a", "filter": None}], [{"type": "a"}]),
    ],
)
def test_a_request_has_no_nulls_and_documents_as_text(where: Field, value: Value, sent: Value) -> None:
    assert body_value(where, value) == sent


# --- ignored parts ----------------------------------------------------------------------------------------------------

LOGS = {"logs": {"log_group_arn": "arn", "auth": {"creds": {"cloud_access_key_id": "id"}}}}
LIVE_LOGS = {"logs": {"log_group_arn": "live", "auth": {"creds": {"cloud_access_key_id": "live"}}}}


@pytest.mark.parametrize(
    ("path", "spec", "have", "merged"),
    [
        ("target.logs.log_group_arn", LOGS, LIVE_LOGS, {"logs": {**LOGS["logs"], "log_group_arn": "live"}}),
        (
            "target.logs.log_group_arn",
            LOGS,
            {"logs": {"log_group_arn": None}},
            {"logs": {"auth": LOGS["logs"]["auth"]}},
        ),
        ("target.logs.log_group_arn", LOGS, {"logs": None}, LOGS),
        ("target.logs.log_group_arn", {"logs": None}, LIVE_LOGS, {"logs": None}),
        ("target.logs.log_group_arn", {"logs": {}}, LIVE_LOGS, {"logs": {"log_group_arn": "live"}}),
        ("target.logs", LOGS, LIVE_LOGS, LIVE_LOGS),
        # Ignored as a whole: it is not sent at all.
        ("target", LOGS, LIVE_LOGS, LOGS),
        # Responses do not show it: the declared value is the only one to send.
        (
            "target.metrics.api_key",
            {"metrics": {"api_key": "x"}},
            {"metrics": {"api_key": "live"}},
            {"metrics": {"api_key": "x"}},
        ),
        ("description.inner", LOGS, LIVE_LOGS, LOGS),
    ],
)
def test_an_ignored_part_has_its_live_value(path: str, spec: Any, have: Any, merged: Any) -> None:
    before = {"target": spec, "description": "declared"}
    after = overlay_live(DESTINATION, before, {"target": have, "description": "live"}, [path])
    assert after == {"target": merged, "description": "declared"}
    assert before == {"target": spec, "description": "declared"}
    assert overlay_live(DESTINATION, before, {"target": None}, [path]) == before


@pytest.mark.parametrize(
    ("paths", "left"),
    [
        ([], {"target": {"metrics": {"api_key": "x", "service": "s"}}, "description": "d"}),
        (["description"], {"target": {"metrics": {"api_key": "x", "service": "s"}}}),
        (["target"], {"description": "d"}),
        (["target.metrics.api_key"], {"target": {"metrics": {"service": "s"}}, "description": "d"}),
        (["target.metrics.api_key", "description"], {"target": {"metrics": {"service": "s"}}}),
        # Compared, since it has its live value by now.
        (["target.metrics.service"], {"target": {"metrics": {"api_key": "x", "service": "s"}}, "description": "d"}),
        (["missing"], {"target": {"metrics": {"api_key": "x", "service": "s"}}, "description": "d"}),
    ],
)
def test_what_is_ignored_is_not_compared(paths: list[str], left: dict[str, Value]) -> None:
    want: dict[str, Value] = {"target": {"metrics": {"api_key": "x", "service": "s"}}, "description": "d"}
    assert prune(DESTINATION, want, paths) == left
    assert prune(DESTINATION, {"description": "d"}, ["target.metrics.api_key"]) == {"description": "d"}


@pytest.mark.parametrize(
    ("metrics", "paths", "missing"),
    [
        ({"service": "s"}, ["target.metrics.api_key"], ["target.metrics.api_key"]),
        ({"api_key": None}, ["target.metrics.api_key"], ["target.metrics.api_key"]),
        ({"api_key": ""}, ["target.metrics.api_key"], ["target.metrics.api_key"]),
        ({"api_key": secret("x")}, ["target.metrics.api_key"], []),
        ({}, ["target.metrics.service"], []),
        ({}, [], []),
        (None, ["target.metrics.api_key"], []),
        ({}, ["target.metrics.missing", "target.metrics.api_key"], ["target.metrics.api_key"]),
    ],
)
def test_an_ignored_secret_is_missing_if_what_encloses_it_is_declared(
    metrics: Any, paths: list[str], missing: list[str]
) -> None:
    assert find_undeclared_secrets(DESTINATION, {"target": {"metrics": metrics}}, paths) == missing
    assert find_undeclared_secrets(DESTINATION, {}, paths) == []


def test_an_ignored_secret_of_the_object_itself_is_missing_if_it_is_not_declared() -> None:
    kind = kinds.get("Secret")
    assert find_undeclared_secrets(kind, {"name": "s"}, ["value", "name"]) == ["value"]
    assert find_undeclared_secrets(kind, {"value": secret("x")}, ["value"]) == []


# --- choices of the platform ------------------------------------------------------------------------------------------


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
        return keep_live_defaults(field("tls_termination"), value, there, reverted)

    there = {"enabled": True, "min_version": "1.3"}
    assert keep({"enabled": False}, there) == {"enabled": False, "min_version": "1.3"}
    assert keep({"min_version": "1.2"}, there) == {"min_version": "1.2"}
    assert keep({"enabled": False}, there, MIN) == {"enabled": False}
    assert keep({"enabled": False}, there, "min_version") == {"enabled": False, "min_version": "1.3"}
    for nothing in (None, {"min_version": None}, {"min_version": UNREAD}, {}):
        assert keep({"enabled": False}, nothing) == {"enabled": False}
    assert keep(None, there) is None
    assert keep_live_defaults(field("description"), "x", "y", ()) == "x"


# --- what plans carry -------------------------------------------------------------------------------------------------


def test_a_secret_in_a_plan_is_a_digest_for_its_place() -> None:
    here = at("Secret/s")
    hidden = hide_secrets(secret("x"), here, "value")
    assert hidden == Hidden(digest(secret("x"), "Secret/s:value"))
    assert hidden != hide_secrets(secret("x"), at("Secret/t"), "value")
    assert hidden != hide_secrets(secret("x"), here, "other")
    assert hidden != hide_secrets(secret("y"), here, "value")
    inside = hide_secrets({"a": [secret("x"), "plain"], "b": {"c": secret("x")}}, here, "top")
    assert inside == {
        "a": [hide_secrets(secret("x"), here, "top.a"), "plain"],
        "b": {"c": hide_secrets(secret("x"), here, "top.b.c")},
    }
    plain: Value = {"a": [1, None], "b": ref("IPPolicy/p")}
    assert hide_secrets(plain, here, "top") is plain
    assert hide_secrets(UNREAD, here, "top") is None


def test_fields_of_an_object_are_shown_without_what_was_not_read() -> None:
    form: Any = {"value": UNREAD, "name": "s", "token": Secret("x", "live")}
    shown = show_fields(kinds.get("Secret"), form, at("Secret/s"))
    assert shown == {"name": "s", "token": hide_secrets(secret("x"), at("Secret/s"), "token")}


def test_the_fields_of_a_create_have_their_places_in_the_manifest() -> None:
    declared = declare("TLSEdge/e", {"description": "x"})
    place = replace(declared.position, line=7)
    declared = replace(declared, positions={("spec", "description"): place})
    (change,) = list_created_fields(EDGE, {"description": "x", "metadata": ""}, declared)
    assert (change.path, change.old, change.new, change.position) == ("description", None, "x", place)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("top", {"a": {"b": 1}}),
        ("top.a", {"b": 1}),
        ("top.a.b", 1),
        ("top.a.b.c", None),
        ("top.x", None),
        ("top.x.y", None),
    ],
)
def test_a_path_begins_with_the_name_of_the_field_itself(path: str, value: Value) -> None:
    assert value_at(path, {"a": {"b": 1}}) == value
    assert value_at(path, "text") == ("text" if path == "top" else None)
