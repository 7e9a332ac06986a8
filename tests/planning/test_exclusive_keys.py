"""Exclusive keys: which objects cannot exist together."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler import kinds
from reconciler.model.canonical import canonical_spec
from reconciler.planning.deciding.exclusive_keys import CONFLICTS, find_exclusive_keys, find_holders
from reconciler.planning.matching.index import LiveIndex
from tests.harness.builders import KINDS, live, manifest, ref, snapshot

Object = tuple[str, dict[str, Any]]


def edge(kind: str, *hostports: Any) -> Object:
    return kind, {"hostports": list(hostports)}


def endpoint(url: str, *, pooled: bool = False) -> Object:
    return "CloudEndpoint", {"url": url, "traffic_policy": "p", "pooling_enabled": pooled}


def rule(policy: Any, cidr: str, action: str = "allow") -> Object:
    return "IPPolicyRule", {"ip_policy_id": policy, "cidr": cidr, "action": action}


def route(edge_id: str, match: str, **modules: Any) -> Object:
    return "HTTPSEdgeRoute", {"edge_id": edge_id, "match_type": "exact_path", "match": match, **modules}


OAUTH: dict[str, Any] = {"oauth": {"provider": {"github": {}}}}
OIDC = {"oidc": {"issuer": "https://i.x", "client_id": "c", "client_secret": "s"}}
SAML = {"saml": {"idp_metadata": "<xml/>"}}
TLS, HTTPS, TCP = (edge(kind, "a.x:443") for kind in ("TLSEdge", "HTTPSEdge", "TCPEdge"))


def exclude_each_other(one: Object, other: Object) -> bool:
    """Whether an exclusive key of one object conflicts with a key of the other."""
    (kind, spec), (other_kind, other_spec) = ((kinds.get(name), spec) for name, spec in (one, other))
    form, other_form = canonical_spec(kind, spec), canonical_spec(other_kind, other_spec)
    return any(
        not set(keys_of(kind, form)).isdisjoint(conflicting(other_kind, other_form))
        for keys_of, conflicting_keys in CONFLICTS.items()
        for conflicting in conflicting_keys
    )


@pytest.mark.parametrize(
    ("one", "other", "exclusive"),
    [
        # Only one edge of any kind has a hostport.
        (TLS, TLS, True),
        (TLS, HTTPS, True),
        (HTTPS, TCP, True),
        (TLS, edge("TLSEdge", "a.x:8443"), False),
        (TLS, edge("TLSEdge", "b.x:443"), False),
        (TLS, edge("TLSEdge", "b.x:443", "A.x:443"), True),
        (TLS, edge("TLSEdge"), False),
        (edge("TLSEdge"), edge("TLSEdge"), False),
        # Two references that are not resolved may lead to different hostports.
        (edge("TCPEdge", ref("ReservedAddress/a", "addr")), edge("TCPEdge", ref("ReservedAddress/a", "addr")), False),
        (edge("TCPEdge", "a.x:1", ref("ReservedAddress/a", "addr")), edge("TCPEdge", "a.x:1"), True),
        # An endpoint excludes edges, except a TLS edge beside an https url.
        (endpoint("https://a.x"), HTTPS, True),
        (endpoint("https://a.x"), TCP, True),
        (endpoint("https://a.x"), TLS, False),
        (endpoint("tls://a.x:443"), TLS, True),
        (endpoint("tcp://a.x:443"), HTTPS, True),
        (endpoint("https://a.x:8443"), HTTPS, False),
        (endpoint("https://a.x", pooled=True), HTTPS, True),
        (endpoint("https://a.x", pooled=True), TLS, False),
        (endpoint("tls://a.x:443", pooled=True), TLS, True),
        # Endpoints share a url only if both set pooling_enabled.
        (endpoint("https://a.x"), endpoint("https://a.x"), True),
        (endpoint("https://a.x"), endpoint("https://A.x:443"), True),
        (endpoint("https://a.x"), endpoint("https://b.x"), False),
        (endpoint("https://a.x", pooled=True), endpoint("https://a.x"), True),
        (endpoint("https://a.x", pooled=True), endpoint("https://a.x", pooled=True), False),
        # Natural keys.
        (rule("p", "10.0.0.0/8"), rule("p", "10.0.0.0/8", "deny"), True),
        (rule("p", "10.0.0.0/8"), rule("p", "10.0.0.0/9"), False),
        (rule("p", "10.0.0.0/8"), rule("q", "10.0.0.0/8"), False),
        (rule(ref("IPPolicy/p"), "10.0.0.0/8"), rule(ref("IPPolicy/p"), "10.0.0.0/8"), False),
        (("IPPolicy", {"description": "a"}), ("IPPolicy", {"description": "a"}), False),
        (("BotUser", {"name": "a"}), ("BotUser", {"name": "a"}), True),
        (("BotUser", {"name": "a"}), ("BotUser", {"name": "b"}), False),
        (("Vault", {"name": "a"}), ("BotUser", {"name": "a"}), False),
        (("Vault", {}), ("Vault", {}), False),
        # One route of an edge authenticates its users.
        (route("e", "/a", **OAUTH), route("e", "/b", **OIDC), True),
        (route("e", "/a", **OAUTH), route("e", "/b", **SAML), True),
        (route("e", "/a", **OAUTH), route("f", "/a", **OAUTH), False),
        (route("e", "/a", **OAUTH), route("e", "/b"), False),
        (route("e", "/a"), route("e", "/b"), False),
        (route("e", "/a"), route("e", "/a"), True),
    ],
)
def test_objects_with_conflicting_keys_exclude_each_other(one: Object, other: Object, exclusive: bool) -> None:
    assert exclude_each_other(one, other) is exclusive
    assert exclude_each_other(other, one) is exclusive


def test_an_empty_form_has_no_keys() -> None:
    for kind in KINDS:
        for keys_of in CONFLICTS:
            assert list(keys_of(kind, {})) == []


def test_the_holders_of_a_key_are_all_live_objects_with_it() -> None:
    live_objects = [live("TLSEdge", f"e{number}", {"hostports": ["a.x:443", f"{number}.x:443"]}) for number in (2, 1)]
    index = LiveIndex.of(manifest(), snapshot(*live_objects, live("HTTPSEdge", "h", {"hostports": ["a.x:443"]})), KINDS)
    holders = find_holders(index, find_exclusive_keys)
    assert sorted(holders.values()) == [
        [("HTTPSEdge", "h"), ("TLSEdge", "e1"), ("TLSEdge", "e2")],
        [("TLSEdge", "e1")],
        [("TLSEdge", "e2")],
    ]
