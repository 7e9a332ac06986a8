"""The canonical form of both sides: differences of notation are no differences."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reconciler import kinds
from reconciler.model.fields.field import Field
from reconciler.model.kind import Kind
from reconciler.model.snapshot import Live
from reconciler.model.value import JsonTemplate, Secret, Template, Value, substitute
from reconciler.planning.comparing.canonical_fields import (
    UNREAD,
    LiveFields,
    agrees,
    body_value,
    canonical_live,
    natural_key,
)
from reconciler.rendering.wire import codec
from tests.harness.builders import (
    KINDS,
    build_account,
    declare,
    fields,
    live,
    make_plan,
    record,
    ref,
    secret,
    snapshot,
)

POLICY = {"on_http_request": [{"actions": [{"type": "deny", "config": {"status_code": 403}}]}]}
AS_YAML = "on_http_request:\n  - actions:\n      - type: deny\n        config:\n          status_code: 403\n"
AS_JSON = '{"on_http_request":[{"name":"","expressions":[],"actions":[{"type":"deny","config":{"status_code":403}}]}]}'
INLINE = next(kind for kind in KINDS if kind.name == "CloudEndpoint").by_name["traffic_policy"]


def is_in_sync(kind: str, declared: dict[str, Any], body: dict[str, Any]) -> bool:
    """Whether a live object with this body is in sync with the declaration."""
    live_object = live(kind, "id-1", body, owner=record(f"{kind}/a", declared))
    plan = make_plan(declare(f"{kind}/a", declared), seen=snapshot(live_object))
    return (plan.changes, plan.calls, plan.problems) == ((), (), ())


@pytest.mark.parametrize(
    ("kind", "declared", "body"),
    [
        ("ReservedDomain", {"domain": "App.Example.com."}, {"domain": "app.example.com"}),
        ("TLSEdge", {"hostports": ["A.example.com:443"]}, {"hostports": ["a.example.com.:443"]}),
        ("TLSEdge", {"hostports": ["b.x:443", "a.x:443"]}, {"hostports": ["a.x:443", "b.x:443"]}),
        ("TLSEdge", {"hostports": ["a.x:443", "a.x:443"]}, {"hostports": ["a.x:443"]}),
        ("TLSEdge", {"hostports": ["a.x:443"]}, {"hostports": ["A.x:443", "a.x:443"]}),
        ("TLSEdge", {}, {"hostports": None, "description": None, "metadata": None, "backend": None}),
        ("TLSEdge", {"description": "", "hostports": []}, {}),
        ("TLSEdge", {"description": None}, {"description": ""}),
        ("IPPolicyRule", {"ip_policy_id": "p", "cidr": "2001:DB8::/32", "action": "allow"},
         {"ip_policy": {"id": "p"}, "cidr": "2001:db8::/32", "action": "allow"}),
        ("CertificateAuthority", {"ca_pem": "BEGIN\nabc\nEND\n"}, {"ca_pem": " BEGIN \r\nabc\r\n\r\nEND"}),
        ("SSHCredential", {"public_key": "ssh-ed25519 AAAA me@home"}, {"public_key": "ssh-ed25519  AAAA\n"}),
        ("TunnelCredential", {"acl": ["*"]}, {"acl": []}),
        ("TunnelCredential", {}, {"acl": None}),
        ("TunnelCredential", {"acl": ["bind:b.x", "bind:a.x"]}, {"acl": ["bind:a.x", "bind:b.x"]}),
        ("SSHCredential", {"public_key": "ssh-ed25519 AAAA", "acl": ["bind:b.x", "bind:team=*"]},
         {"public_key": "ssh-ed25519 AAAA", "acl": ["bind:team=*", "bind:b.x"]}),
        ("HTTPResponseBackend", {"headers": {"X-A": "1"}}, {"headers": {"x-a": "1"}}),
        ("HTTPResponseBackend", {"headers": {}}, {"headers": None}),
        ("CloudEndpoint", {"url": "HTTPS://App.example.com:443/", "traffic_policy": AS_YAML},
         {"url": "https://app.example.com", "traffic_policy": AS_JSON}),
        ("CloudEndpoint", {"url": "https://a.x", "traffic_policy": POLICY},
         {"url": "https://a.x", "traffic_policy": AS_YAML, "bindings": ["public"]}),
        ("CloudEndpoint", {"url": "https://a.x", "traffic_policy": AS_JSON, "bindings": ["internal", "public"]},
         {"url": "https://a.x", "traffic_policy": AS_JSON, "bindings": ["public", "internal"]}),
        ("TLSEdge", {"traffic_policy": {"value": POLICY}}, {"traffic_policy": {"enabled": True, "value": AS_YAML}}),
        ("TLSEdge", {"backend": {"backend_id": "b"}}, {"backend": {"backend": {"id": "b", "uri": "u"}}}),
        ("TLSEdge", {"backend": {"backend_id": "b"}}, {"backend": {"enabled": None, "backend": {"id": "b"}}}),
        ("TLSEdge", {"ip_restriction": {"ip_policy_ids": ["p"]}}, {"ip_restriction": {"ip_policies": {"id": "p"}}}),
        ("TLSEdge", {"ip_restriction": {"ip_policy_ids": ["q", "p"]}},
         {"ip_restriction": {"ip_policies": [{"id": "p"}, {"id": "q"}]}}),
        ("TLSEdge", {"tls_termination": {"terminate_at": "edge"}},
         {"tls_termination": {"enabled": True, "terminate_at": "edge", "min_version": "1.2"}}),
        ("ReservedDomain", {"domain": "a.x", "region": "eu"}, {"domain": "a.x", "region": ""}),
        ("ReservedDomain", {"domain": "a.x", "certificate_management_policy": {}},
         {"domain": "a.x", "certificate": {"id": "cert_auto"},
          "certificate_management_policy": {"authority": "letsencrypt", "private_key_type": "ecdsa"}}),
        ("SSHHostCertificate",
         {"ssh_certificate_authority_id": "s", "public_key": "ssh-rsa A", "valid_after": "2030-01-01T01:00:00+01:00"},
         {"ssh_certificate_authority_id": "s", "public_key": "ssh-rsa A", "valid_after": "2030-01-01T00:00:00Z"}),
        ("ReservedDomain", {"domain": "a.x", "resolves_to": [{"value": "us"}, {"value": "eu"}]},
         {"domain": "a.x", "resolves_to": [{"value": "eu", "uri": "u"}, {"value": "us", "uri": "u"}]}),
        ("EventSubscription", {}, {"sources": [{"type": "a.v0"}], "destinations": None}),
        ("BotUser", {"name": "b", "active": None}, {"name": "b", "active": True}),
    ],
)  # fmt: skip
def test_these_values_are_equal(kind: str, declared: dict[str, Any], body: dict[str, Any]) -> None:
    if kind == "BotUser":
        plan = make_plan(declare("BotUser/a", declared, adopt=True), seen=snapshot(live(kind, "bot_1", body)))
        assert plan.changes == ()
    else:
        assert is_in_sync(kind, declared, body)


@pytest.mark.parametrize(
    ("kind", "declared", "body"),
    [
        ("FailoverBackend", {"backends": ["b", "a"]}, {"backends": ["a", "b"]}),
        ("FailoverBackend", {"backends": ["a", "a"]}, {"backends": ["a"]}),
        ("TLSEdge", {"backend": {"backend_id": "b", "enabled": False}}, {"backend": {"backend": {"id": "b"}}}),
        ("CloudEndpoint", {"url": "https://a.x:8443", "traffic_policy": POLICY},
         {"url": "https://a.x", "traffic_policy": AS_JSON}),
        ("TunnelGroupBackend", {"labels": {"App": "a"}}, {"labels": {"app": "a"}}),
        ("TLSEdge", {"traffic_policy": {"value": {"on_http_request": [{"name": 1}]}}},
         {"traffic_policy": {"value": '{"on_http_request": [{"name": true}]}'}}),
        ("TLSEdge", {"backend": {"backend_id": "b"}}, {"backend": "b"}),
        ("TLSEdge", {}, {"hostports": "a.x:443"}),
    ],
)  # fmt: skip
def test_these_values_differ(kind: str, declared: dict[str, Any], body: dict[str, Any]) -> None:
    assert not is_in_sync(kind, declared, body)


def test_unknown_fields_are_never_drift() -> None:
    assert is_in_sync("TLSEdge", {}, {"policy": {"x": 1}, "brand_new": ["y"]})


def test_a_certificate_issued_by_policy_is_not_removed() -> None:
    declared = {"domain": "a.x", "certificate_management_policy": {"authority": "letsencrypt"}}
    body = {**declared, "certificate": {"id": "cert_2"}}
    assert is_in_sync("ReservedDomain", declared, body)


@pytest.mark.parametrize("missing", [{}, {"ca_pem": None}])
def test_a_response_without_a_required_immutable_value_causes_no_replacement(missing: dict[str, Any]) -> None:
    assert is_in_sync("CertificateAuthority", {"ca_pem": "P"}, missing)


def test_a_response_without_its_target_causes_no_replacement_of_a_destination() -> None:
    assert is_in_sync("EventDestination", {"target": {"metrics": {"api_key": "k"}}}, {"format": "json"})


def test_an_inline_policy_is_sent_as_text() -> None:
    plan = make_plan(declare("CloudEndpoint/a", {"url": "https://a.x", "traffic_policy": POLICY}))
    assert (plan.calls[0].body or {})["traffic_policy"] == (
        '{"on_http_request": [{"actions": [{"type": "deny", "config": {"status_code": 403}}]}]}'
    )


def test_a_policy_written_as_text_is_sent_unchanged() -> None:
    plan = make_plan(declare("CloudEndpoint/a", {"url": "https://a.x", "traffic_policy": AS_YAML}))
    assert (plan.calls[0].body or {})["traffic_policy"] == AS_YAML


def test_a_reference_in_an_inline_policy_is_resolved_in_its_place() -> None:
    edge = ref("TLSEdge/a")
    text = Template(("x-", edge))
    assert body_value(INLINE, {"a": [edge, text], "b": 1}) == JsonTemplate(('{"a": [', edge, ", ", text, '], "b": 1}'))


_PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(_PLAIN, _PLAIN, st.text())
@example('x", "evil": "y', True, '"\\\x00\u2028')
@example(False, [], "\\u0000")
def test_an_inline_policy_is_the_same_text_whenever_its_references_are_resolved(
    one: object, two: object, text: str
) -> None:
    first, second = ref("TLSEdge/a"), ref("TLSEdge/b.x")
    document = {"b": [first, Template((text, first, text, second)), [], {}], text: {"x": second}, "a": [text, one]}
    answers = {first: one, second: two}
    known_before_planning = body_value(INLINE, substitute(document, answers.__getitem__))
    half = body_value(INLINE, substitute(document, lambda reference: one if reference == first else reference))
    for waiting in (body_value(INLINE, document), half):
        assert isinstance(waiting, JsonTemplate)
        assert substitute(waiting, answers.__getitem__) == known_before_planning
        filed = codec.decode_value(json.loads(json.dumps(codec.encode_value(waiting, "s"))), Secret)
        assert substitute(filed, answers.__getitem__) == known_before_planning
    assert json.loads(known_before_planning) == substitute(document, answers.__getitem__)


def test_nulls_inside_a_module_are_not_sent() -> None:
    plan = make_plan(declare("TLSEdge/a", {"tls_termination": {"terminate_at": "upstream", "min_version": None}}))
    assert (plan.calls[0].body or {})["tls_termination"] == {"terminate_at": "upstream"}


def test_headers_that_differ_only_in_case_are_in_sync_after_an_apply() -> None:
    world = build_account(declare("HTTPResponseBackend/a", {"body": "x", "headers": {"Content-Type": "text/plain"}}))
    assert world.objects


def test_a_changed_header_is_listed_by_its_name() -> None:
    was = {"headers": {"X-A": "1", "X-B": "2"}}
    backend = live("HTTPResponseBackend", "bkdhr_1", was, owner=record("HTTPResponseBackend/a", was))
    plan = make_plan(declare("HTTPResponseBackend/a", {"headers": {"X-A": "1", "X-B": "3"}}), seen=snapshot(backend))
    assert [(field.path, field.old, field.new) for field in fields(plan).values()] == [("headers.x-b", "2", "3")]


def test_a_declared_server_default_is_enforced() -> None:
    was = {"tls_termination": {"min_version": "1.3"}}
    edge = live("TLSEdge", "e", {"tls_termination": {"min_version": "1.2"}}, owner=record("TLSEdge/a", was))
    assert list(fields(make_plan(declare("TLSEdge/a", was), seen=snapshot(edge)))) == ["tls_termination.min_version"]


def test_undeclared_sources_are_unchanged() -> None:
    subscription = live(
        "EventSubscription", "esb_1", {"sources": [{"type": "a.v0"}]}, owner=record("EventSubscription/a", {})
    )
    assert make_plan(declare("EventSubscription/a"), seen=snapshot(subscription)).changes == ()


def test_a_text_removed_from_git_is_cleared() -> None:
    was = {"description": "x"}
    edge = live("TLSEdge", "e", was, owner=record("TLSEdge/a", was))
    assert (make_plan(declare("TLSEdge/a"), seen=snapshot(edge)).calls[0].body or {})["description"] == ""


def test_a_list_removed_from_git_is_emptied() -> None:
    was = {"acl": ["bind:a.example.com"]}
    credential = live("TunnelCredential", "cr_1", was, owner=record("TunnelCredential/a", was))
    assert (make_plan(declare("TunnelCredential/a"), seen=snapshot(credential)).calls[0].body or {})["acl"] == []


def test_a_plan_is_the_same_for_any_order_of_declarations() -> None:
    one, two = declare("IPPolicy/a", {"description": "x"}), declare("IPPolicy/b")
    assert make_plan(one, two) == make_plan(two, one)


EDGE = kinds.get("TLSEdge")
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
def test_a_live_value_agrees_if_its_readable_parts_are_equal(where: Field, want: Value, have: Any, equal: bool) -> None:
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
def test_a_natural_key_requires_each_of_its_parts(form: dict[str, Value], has_key: bool) -> None:
    assert (natural_key(RULE, form) is not None) is has_key
    assert natural_key(EDGE, form) is None


def test_a_natural_key_consists_of_its_parts_in_order() -> None:
    def key(policy: Value, cidr: Value) -> Any:
        return natural_key(RULE, {"ip_policy_id": policy, "cidr": cidr, "action": "allow"})

    assert key("p", "c") == key("p", "c") == key(secret("p"), "c")
    assert key("p", "c") != key("c", "p")
    assert key("p", "c") != key("p", "d")
    assert key("p", 1) != key("p", "1")


def test_a_response_without_an_immutable_or_write_only_value_leaves_it_unread() -> None:
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
    ],
)
def test_a_request_contains_no_nulls_and_documents_as_text(where: Field, value: Value, sent: Value) -> None:
    assert body_value(where, value) == sent


@pytest.mark.parametrize("kind", kinds.every(), ids=lambda kind: kind.name)
def test_fields_that_are_read_one_by_one_are_those_of_the_whole_object(kind: Kind) -> None:
    names = {name for field in kind.fields for name in (field.name, field.read_as.path if field.read_as else "")}
    values: list[Any] = [None, "", "a", [], {}, {"enabled": True}, False, 0]
    for value in values:
        seen = live(kind.name, "id_1", {name.partition(".")[0].removesuffix("[]"): value for name in names})
        whole = canonical_live(kind, seen)
        one_by_one = LiveFields(kind, seen, {"public_url": "https://a"})
        assert one_by_one.get("public_url") == "https://a"
        assert one_by_one.get("another field") is None
        assert [*one_by_one] == [*whole, "public_url"]
        assert len(one_by_one) == len(whole) + 1
        expected = {name: None if value is UNREAD else value for name, value in whole.items()}
        assert {**one_by_one} == {**expected, "public_url": "https://a"}


@pytest.mark.parametrize("kind", kinds.every(), ids=lambda kind: kind.name)
def test_a_field_that_a_response_does_not_have_reads_as_null(kind: Kind) -> None:
    nulls = {field.name: None for field in kind.fields if field.read_as is None}
    assert canonical_live(kind, Live(kind.name, "id_1", {})) == canonical_live(kind, Live(kind.name, "id_1", nulls))
