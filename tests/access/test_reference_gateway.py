"""The rows of the documentation on access that the reference gateway implements, each as a case with its answer."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from tests.access import objects as o
from tests.access.gateway.gateway import Gateway
from tests.access.gateway.messages import (
    Answer,
    BindRequest,
    Identity,
    Plane,
    PlaneRequest,
    Request,
    Signature,
    Token,
    expression_key,
)
from tests.access.gateway.open_rows import OPEN_ROWS

INSIDE, OUTSIDE = ("192.0.2.7", "198.51.100.1")
OFFICE: dict[str, Any] = {
    "IPPolicy": [o.ip_policy("ipp_office"), o.ip_policy("ipp_empty"), o.ip_policy("ipp_denies")],
    "IPPolicyRule": [o.ip_rule("ipp_office", "192.0.2.0/24"), o.ip_rule("ipp_denies", "192.0.2.8/29", "deny")],
}
DENY = o.rule(o.action("deny"))
HELLO = o.rule(o.action("custom-response", status_code=200, body="hello"))
HELLO_TEXT = o.on_request(HELLO)
RESTRICTS = o.rule(o.action("restrict-ips", enforce=True, allow=["192.0.2.0/24"]))
WRITTEN = "req.headers['x'][0] == 'y'"
WRITES = {"enabled": True, "add": {"x": "y"}, "remove": []}
WRITES_TEXT = json.dumps(WRITES, sort_keys=True)


class Case(NamedTuple):
    """A row of the documentation, an account and a request that show it, and the answer: outcome, status and code."""

    row: str
    account: o.Account
    request: Any
    answer: str
    rows: frozenset[str]
    """The open rows that the outcome rests on."""


def case(row: str, account: o.Account, request: Any, answer: str, *rows: str) -> Case:
    return Case(row, account, request, answer, frozenset(rows))


def get(url: str, **more: Any) -> Request:
    """A request to a URL of the scheme's default port, or of the port in the URL."""
    scheme, _, rest = url.partition("://")
    place, slash, path = rest.partition("/")
    host, _, port = place.partition(":")
    default = {"http": 80, "https": 443, "tls": 443}.get(scheme, 0)
    return replace(Request(scheme, host, int(port or default), slash + path or "/"), **more)


def site(*routes: o.Object, hosts: tuple[str, ...] = ("app.example.com",), edge: Any = None, **kinds: Any) -> o.Account:
    """One HTTPS edge `e` with routes, and an HTTP-response backend `b`."""
    edges, backends = [o.https_edge("e", *hosts, **(edge or {}))], [o.http_response("b")]
    return o.account(**{"HTTPSEdge": edges, "HTTPSEdgeRoute": routes, "HTTPResponseBackend": backends} | kinds)


def path(match: str = "/", match_type: str = "path_prefix", **modules: Any) -> o.Object:
    """A route of the edge `e` to the backend `b`."""
    return o.route("e", match, match_type, **{"backend": o.backend_module("b")} | modules)


def cloud(policy: str, url: str = "https://app.example.com", **kinds: Any) -> o.Account:
    return o.account(**{"CloudEndpoint": [o.cloud(url, policy)]} | kinds)


def behind(*actions: o.Object) -> o.Account:
    """A cloud endpoint with these actions, then a custom response, and the IP policies of the office."""
    return cloud(o.on_request(o.rule(*actions), HELLO), **OFFICE)


APP = get("https://app.example.com")
WILDCARD = o.cloud("https://*.example.com", o.on_request(HELLO))
CLOSED = o.cloud("https://app.example.com", o.on_request(DENY))
AGENT = o.agent_endpoint("agent", "https://app.example.com", o.on_request(DENY))

ROUTING = [
    case("an endpoint is found by scheme", cloud(HELLO_TEXT), get("http://app.example.com"), "refuse 404 3200"),
    case("an endpoint is found by port", cloud(HELLO_TEXT), replace(APP, port=444), "refuse 404 3200"),
    case("an endpoint is found by binding", cloud(HELLO_TEXT), replace(APP, binding="internal"), "refuse 404 3200"),
    case(
        "a host that nothing serves is answered with 404 and 3200",
        cloud(HELLO_TEXT),
        get("https://other.example.com"),
        "refuse 404 3200",
    ),
    case(
        "a Host in upper case is compared in lower case",
        cloud(HELLO_TEXT),
        get("https://APP.example.com", sni="APP.example.com"),
        "pass 200",
        "host-in-another-form",
    ),
    case(
        "a tls client without a server name is refused",
        o.account(),
        get("tls://a.example.com", sni=None),
        "refuse 3003",
    ),
    case(
        "the server name decides for tls",
        o.account(
            TLSEdge=[o.tls_edge("t", "a.example.com", backend=o.backend_module("b"))], StaticBackend=[o.static("b")]
        ),
        get("tls://other.example.com", sni="a.example.com"),
        "pass",
    ),
    case(
        "the Host decides for https with another server name",
        cloud(HELLO_TEXT),
        replace(APP, sni="other.example.com"),
        "pass 200",
        "server-name-differs",
    ),
    case("the exact host beats the wildcard", o.account(CloudEndpoint=[WILDCARD, CLOSED]), APP, "refuse 403"),
    case(
        "a wildcard serves every depth",
        o.account(CloudEndpoint=[WILDCARD]),
        get("https://a.b.c.example.com"),
        "pass 200",
    ),
    case(
        "a wildcard does not serve the host below which it is",
        o.account(CloudEndpoint=[WILDCARD]),
        get("https://example.com"),
        "refuse 404 3200",
        "wildcard-itself",
    ),
    case(
        "the wildcard with the longer suffix wins",
        o.account(CloudEndpoint=[WILDCARD, o.cloud("https://*.app.example.com", o.on_request(DENY))]),
        get("https://a.app.example.com"),
        "refuse 403",
        "several-wildcards",
    ),
    case(
        "an agent that is offline leaves its host to the wildcard",
        o.account(CloudEndpoint=[WILDCARD], AgentEndpoint=[AGENT]),
        APP,
        "pass 200",
    ),
    case(
        "a host of an agent without a wildcard above it is refused as the agent refuses",
        o.account(AgentEndpoint=[AGENT]),
        APP,
        "refuse 403",
    ),
    case(
        "a pool passes what one member passes",
        o.account(
            CloudEndpoint=[
                o.cloud("https://app.example.com", o.on_request(DENY), pooling_enabled=True, id="ep_1"),
                o.cloud("https://app.example.com", HELLO_TEXT, pooling_enabled=True, id="ep_2"),
            ]
        ),
        APP,
        "pass 200",
    ),
    case(
        "a pool of a cloud endpoint and an agent passes what the agent passes",
        o.account(
            CloudEndpoint=[CLOSED | {"pooling_enabled": True}],
            AgentEndpoint=[o.agent_endpoint("a", "https://app.example.com", pooling_enabled=True)],
        ),
        APP,
        "pass",
    ),
    case(
        "a pool is not joined by the wildcard",
        o.account(CloudEndpoint=[CLOSED | {"pooling_enabled": True}, WILDCARD]),
        APP,
        "refuse 403",
    ),
    case(
        "two endpoints of one URL without pooling are an error",
        o.account(CloudEndpoint=[CLOSED, o.cloud("https://app.example.com", HELLO_TEXT)]),
        APP,
        "refuse 6030",
    ),
    case(
        "an edge and a cloud endpoint on one host are an error",
        site(path(), CloudEndpoint=[CLOSED]),
        APP,
        "refuse 6027",
    ),
    case(
        "an edge and a tunnel on one host are an error",
        site(path(), AgentTunnel=[o.agent_tunnel("t", "https://app.example.com")]),
        APP,
        "refuse 6020",
    ),
    case(
        "a cloud endpoint and a tunnel on one host are an error",
        cloud(HELLO_TEXT, AgentTunnel=[o.agent_tunnel("t", "https://app.example.com")]),
        APP,
        "refuse 6026",
    ),
    case(
        "a hostport in two edges is an error",
        site(path(), HTTPSEdge=[o.https_edge("e", "app.example.com"), o.https_edge("f", "app.example.com")]),
        APP,
        "refuse 7122",
    ),
    case(
        "an edge on a host beats an endpoint on its wildcard",
        site(path(ip_restriction=o.ip_module("ipp_office")), CloudEndpoint=[WILDCARD], **OFFICE),
        APP,
        "refuse 403 3203",
        "wildcard-and-edge",
    ),
    case("an https edge redirects plain http", site(path()), get("http://app.example.com"), "refuse"),
    case(
        "an edge and an endpoint that both admit a request leave nothing open",
        site(path(), CloudEndpoint=[WILDCARD]),
        APP,
        "pass 200",
    ),
    case(
        "an edge whose wildcard takes over from an agent admits what either admits",
        site(
            path(),
            HTTPSEdge=[o.https_edge("e", "*.example.com")],
            AgentEndpoint=[o.agent_endpoint("a", "https://app.example.com", o.on_request(DENY))],
        ),
        APP,
        "pass 200",
    ),
    case(
        "http and https are two endpoints with two policies",
        o.account(CloudEndpoint=[CLOSED, o.cloud("http://app.example.com", HELLO_TEXT)]),
        get("http://app.example.com"),
        "pass 200",
    ),
    case(
        "all hostports of an edge share its routes",
        site(path(), hosts=("a.example.com", "b.example.com")),
        get("https://b.example.com"),
        "pass 200",
    ),
    case(
        "an ephemeral endpoint is an agent that reaches its upstream",
        cloud("", CloudEndpoint=[o.cloud("https://app.example.com", "", type="ephemeral")]),
        APP,
        "pass",
    ),
    case(
        "the endpoint that the platform lists for an edge is the edge",
        site(path(), CloudEndpoint=[o.cloud("https://app.example.com", "", type="edge")]),
        APP,
        "pass 200",
    ),
    case(
        "the endpoint that the platform lists for a declared tunnel is that tunnel",
        o.account(
            AgentTunnel=[o.agent_tunnel("t", "tcp://1.tcp.example.com:20000", "tcp")],
            CloudEndpoint=[o.cloud("tcp://1.tcp.example.com:20000", "", type="ephemeral")],
        ),
        get("tcp://1.tcp.example.com:20000"),
        "pass",
    ),
]

ADMIN = [path("/", id="open"), path("/admin", id="admin", ip_restriction=o.ip_module("ipp_office"))]
ADMIN_SITE = site(*ADMIN, **OFFICE)
EXACT_SITE = site(ADMIN[0], ADMIN[1] | {"match_type": "exact_path"}, **OFFICE)

ROUTES: list[Case] = [
    case("exact_path is the equal path", EXACT_SITE, get("https://app.example.com/admin"), "refuse 403 3203"),
    case("exact_path does not match a slash more", EXACT_SITE, get("https://app.example.com/admin/"), "pass 200"),
    case(
        "path_prefix matches without a segment boundary",
        ADMIN_SITE,
        get("https://app.example.com/administrator"),
        "refuse 403 3203",
    ),
    case("path_prefix matches what is below", ADMIN_SITE, get("https://app.example.com/admin/x"), "refuse 403 3203"),
    case(
        "path_prefix with a slash does not match the path without it",
        site(path("/", id="open"), path("/admin/", ip_restriction=o.ip_module("ipp_office")), **OFFICE),
        get("https://app.example.com/admin"),
        "pass 200",
    ),
    case(
        "the longest prefix wins",
        site(*ADMIN, path("/admin/x", id="x"), **OFFICE),
        get("https://app.example.com/admin/x/y"),
        "pass 200",
    ),
    case(
        "an exact path beats the prefix of equal length",
        site(*ADMIN, path("/admin", "exact_path", id="x"), **OFFICE),
        get("https://app.example.com/admin"),
        "pass 200",
    ),
    case(
        "the query is not compared",
        ADMIN_SITE,
        get("https://app.example.com/admin?x=/"),
        "refuse 403 3203",
        "path-in-another-form",
    ),
    case(
        "escapes are not decoded",
        ADMIN_SITE,
        get("https://app.example.com/%61dmin"),
        "pass 200",
        "path-in-another-form",
    ),
    case(
        "dot segments are not removed",
        ADMIN_SITE,
        get("https://app.example.com/x/../admin"),
        "pass 200",
        "path-in-another-form",
    ),
    case(
        "doubled slashes are not merged",
        ADMIN_SITE,
        get("https://app.example.com//admin"),
        "pass 200",
        "path-in-another-form",
    ),
    case(
        "the case of a path counts",
        ADMIN_SITE,
        get("https://app.example.com/Admin"),
        "pass 200",
        "path-in-another-form",
    ),
    case("a path without a route is answered with 404", site(path("/a")), APP, "refuse 404"),
    case("a route without a backend is not reachable", site(path(backend=None)), APP, "refuse 503 724"),
    case(
        "a route with a disabled backend is not reachable",
        site(path(backend=o.backend_module("b", enabled=False))),
        APP,
        "refuse 503 724",
    ),
    case(
        "a backend that does not exist is not reachable",
        site(path(backend=o.backend_module("gone"))),
        APP,
        "refuse 503 724",
    ),
    case(
        "a route without a backend still answers by its policy",
        site(path(backend=None, traffic_policy=o.policy_module(HELLO_TEXT))),
        APP,
        "pass 200",
    ),
    case(
        "a static backend is reached", site(path(), HTTPResponseBackend=[], StaticBackend=[o.static("b")]), APP, "pass"
    ),
    case(
        "a tunnel group with tunnels is reached",
        site(path(), HTTPResponseBackend=[], TunnelGroupBackend=[o.tunnel_group("b", online=True, service="a")]),
        APP,
        "pass",
    ),
    case(
        "a tunnel group without tunnels is reached as soon as an agent has the labels",
        site(path(), HTTPResponseBackend=[], TunnelGroupBackend=[o.tunnel_group("b", service="a")]),
        APP,
        "pass",
    ),
    case(
        "a tunnel group without labels matches every tunnel",
        site(path(), HTTPResponseBackend=[], TunnelGroupBackend=[o.tunnel_group("b", online=True)]),
        APP,
        "pass",
        "empty-selector",
    ),
    case(
        "a failover backend reaches any child",
        site(path(backend=o.backend_module("f")), FailoverBackend=[o.failover("f", "gone", "b")]),
        APP,
        "pass 200",
    ),
    case(
        "a failover backend without children is not reachable",
        site(path(backend=o.backend_module("f")), FailoverBackend=[o.failover("f")]),
        APP,
        "refuse 503 724",
    ),
    case(
        "a failover backend in a circle ends",
        site(path(backend=o.backend_module("f")), FailoverBackend=[o.failover("f", "f")]),
        APP,
        "refuse 503 724",
    ),
    case(
        "a weighted backend reaches any child",
        site(path(backend=o.backend_module("w")), WeightedBackend=[o.traffic_split("w", gone=1, b=1)]),
        APP,
        "pass 200",
    ),
    case(
        "a backend of weight 0 gets nothing",
        site(path(backend=o.backend_module("w")), WeightedBackend=[o.traffic_split("w", gone=1, b=0)]),
        APP,
        "refuse 503 724",
        "weight-0",
    ),
]

API = o.cloud("https://api.internal", HELLO_TEXT)
FORWARD = o.action("forward-internal", url="https://api.internal")
OPTIONAL = o.action("forward-internal", url="https://api.internal", on_error="continue")
NARROW = o.on_request(RESTRICTS, HELLO)


def forwards(*targets: o.Object, first: o.Object = FORWARD, scheme: str = "https", **kinds: Any) -> o.Account:
    """A cloud endpoint that forwards to internal endpoints."""
    entry = o.cloud(f"{scheme}://app.example.com", o.on_request(o.rule(first), HELLO if first == OPTIONAL else DENY))
    return o.account(**{"CloudEndpoint": [entry, *targets]} | kinds)


INTERNAL = [
    case("an internal endpoint is reached by forward-internal", forwards(API), APP, "pass 200"),
    case(
        "an internal endpoint is not reached from outside",
        o.account(CloudEndpoint=[API]),
        get("https://api.internal"),
        "refuse 404 3200",
    ),
    case(
        "an internal wildcard is reached by forward-internal",
        forwards(o.cloud("https://*.internal", HELLO_TEXT)),
        APP,
        "pass 200",
    ),
    case(
        "the policy of the target runs too",
        forwards(o.cloud("https://api.internal", o.on_request(DENY))),
        APP,
        "refuse 403",
    ),
    case(
        "the target tests the address of the client",
        forwards(o.cloud("https://api.internal", NARROW)),
        APP,
        "refuse 403 3203",
        "address-behind-forward",
    ),
    case(
        "forwarding to another scheme leaves nothing open if the target is offline",
        forwards(scheme="http"),
        get("http://app.example.com"),
        "refuse 3200",
    ),
    case(
        "the address that a target tests leaves nothing open if the target refuses everyone",
        forwards(o.cloud("https://api.internal", o.on_request(RESTRICTS, DENY))),
        APP,
        "refuse 403",
    ),
    case(
        "on_tcp_connect of an internal http endpoint never runs",
        forwards(o.cloud("https://api.internal", o.policy_text(on_tcp_connect=[DENY], on_http_request=[HELLO]))),
        APP,
        "pass 200",
    ),
    case("a target that is offline ends the request", forwards(), APP, "refuse 3200"),
    case("on_error continue falls through if the target is offline", forwards(first=OPTIONAL), APP, "pass 200"),
    case(
        "on_error continue does not fall through if the target refuses",
        forwards(o.cloud("https://api.internal", o.on_request(DENY)), first=OPTIONAL),
        APP,
        "refuse 403",
    ),
    case(
        "on_error continue falls through if an agent is the target and offline",
        forwards(AgentEndpoint=[o.agent_endpoint("a", "https://api.internal", o.on_request(DENY))], first=OPTIONAL),
        APP,
        "pass 200",
    ),
    case(
        "a computed target is unknown",
        forwards(API, first=o.action("forward-internal", url="https://${req.host}.internal")),
        APP,
        "unknown",
        "dynamic-target",
    ),
    case(
        "a target of the other http scheme is reached",
        forwards(
            o.cloud("http://api.internal:8080", HELLO_TEXT),
            first=o.action("forward-internal", url="http://api.internal:8080"),
        ),
        APP,
        "pass 200",
        "forward-across-schemes",
    ),
    case(
        "a target of another protocol is refused",
        forwards(
            o.cloud("tcp://api.internal:22", HELLO_TEXT),
            first=o.action("forward-internal", url="tcp://api.internal:22"),
        ),
        APP,
        "refuse",
    ),
    case(
        "a circle of forwards ends",
        forwards(o.cloud("https://api.internal", o.on_request(o.rule(FORWARD)))),
        APP,
        "refuse 3603",
    ),
    case(
        "a chain of four forwards rests on an open row",
        forwards(
            *(
                o.cloud(
                    f"https://{here}.internal",
                    o.on_request(o.rule(o.action("forward-internal", url=f"https://{target}.internal"))),
                )
                for here, target in (("api", "b"), ("b", "c"), ("c", "d"))
            ),
            o.cloud("https://d.internal", HELLO_TEXT),
        ),
        APP,
        "pass 200",
        "forward-chain",
    ),
    case(
        "traffic of a Kubernetes binding reaches its endpoint",
        o.account(CloudEndpoint=[o.cloud("http://api.shop", HELLO_TEXT, bindings=["kubernetes"])]),
        get("http://api.shop", binding="kubernetes"),
        "pass 200",
    ),
    case(
        "an endpoint without bindings is public",
        o.account(AgentEndpoint=[o.agent_endpoint("a", "https://app.example.com", bindings=None)]),
        APP,
        "pass",
    ),
    case(
        "an agent's endpoint below .internal without bindings is internal",
        forwards(AgentEndpoint=[o.agent_endpoint("a", "https://api.internal", bindings=None)]),
        APP,
        "pass",
    ),
]

GATED: dict[str, Any] = {"IPRestriction": [o.restriction("endpoints", "ipp_office")], **OFFICE}
PARTNERS = [o.authority("ca_1"), o.authority("ca_2")]
EDGE_TLS: dict[str, Any] = {"tls_termination": {"enabled": True, "terminate_at": "edge"}}
UPSTREAM_TLS: dict[str, Any] = {"tls_termination": {"enabled": True, "terminate_at": "upstream"}}


def tls(**modules: Any) -> o.Account:
    edge = o.tls_edge("t", "a.example.com", **{"backend": o.backend_module("b")} | modules)
    return o.account(TLSEdge=[edge], StaticBackend=[o.static("b")], **OFFICE)


def tcp(**modules: Any) -> o.Account:
    edge = o.tcp_edge("t", "1.tcp.example.com:20000", **{"backend": o.backend_module("b")} | modules)
    return o.account(TCPEdge=[edge], StaticBackend=[o.static("b")], **OFFICE)


TLS_CLIENT, TCP_CLIENT = (get("tls://a.example.com"), get("tcp://1.tcp.example.com:20000"))

ORDER = [
    case(
        "the account restriction `endpoints` guards public endpoints",
        cloud(HELLO_TEXT, **GATED),
        APP,
        "refuse 403 3205",
    ),
    case(
        "the account restriction `endpoints` admits its addresses",
        cloud(HELLO_TEXT, **GATED),
        replace(APP, source=INSIDE),
        "pass 200",
    ),
    case(
        "the account restriction and the module must both admit",
        site(
            path(ip_restriction=o.ip_module("ipp_other")),
            IPRestriction=GATED["IPRestriction"],
            IPPolicy=[*OFFICE["IPPolicy"], o.ip_policy("ipp_other")],
            IPPolicyRule=[*OFFICE["IPPolicyRule"], o.ip_rule("ipp_other", "198.51.100.0/24")],
        ),
        APP,
        "refuse 403 3205",
    ),
    case(
        "a restriction that is not enforced is no gate",
        cloud(HELLO_TEXT, **OFFICE, IPRestriction=[o.restriction("endpoints", "ipp_office", enforced=False)]),
        APP,
        "pass 200",
    ),
    case(
        "the account restriction is no gate for internal traffic",
        o.account(CloudEndpoint=[API], **GATED),
        get("https://api.internal", binding="internal"),
        "pass 200",
    ),
    case(
        "whether the account restriction is a gate for traffic from Kubernetes is open",
        o.account(CloudEndpoint=[o.cloud("http://api.shop", HELLO_TEXT, bindings=["kubernetes"])], **GATED),
        get("http://api.shop", binding="kubernetes"),
        "pass 200",
        "internal-and-account",
    ),
    case(
        "mutual TLS of an edge comes before the route",
        site(path("/a"), edge={"mutual_tls": o.mutual_tls("ca_1")}),
        APP,
        "refuse bad_certificate",
    ),
    case(
        "mutual TLS admits a certificate of any listed authority",
        site(path(), edge={"mutual_tls": o.mutual_tls("ca_1", "ca_2")}),
        replace(APP, certificate="ca_2"),
        "pass 200",
    ),
    case(
        "mutual TLS refuses a certificate of another authority",
        site(path(), edge={"mutual_tls": o.mutual_tls("ca_1")}),
        replace(APP, certificate="ca_2"),
        "refuse bad_certificate",
    ),
    case(
        "mutual TLS that is disabled is no gate",
        site(path(), edge={"mutual_tls": o.mutual_tls("ca_1", enabled=False)}),
        APP,
        "pass 200",
    ),
    case(
        "mutual TLS without authorities admits no certificate",
        site(path(), edge={"mutual_tls": o.mutual_tls()}),
        APP,
        "refuse bad_certificate",
        "no-authorities",
    ),
    case(
        "a TLS edge that terminates TLS tests certificates",
        tls(mutual_tls=o.mutual_tls("ca_1"), **EDGE_TLS),
        TLS_CLIENT,
        "refuse bad_certificate",
    ),
    case(
        "a TLS edge terminates TLS by default",
        tls(traffic_policy=o.policy_module(o.on_connect(DENY))),
        TLS_CLIENT,
        "refuse",
        "edge-termination",
    ),
    case(
        "a TLS edge with mutual TLS terminates TLS",
        tls(mutual_tls=o.mutual_tls("ca_1")),
        TLS_CLIENT,
        "refuse bad_certificate",
    ),
    case(
        "a TLS edge with termination upstream tests no certificates",
        tls(mutual_tls=o.mutual_tls("ca_1"), **UPSTREAM_TLS),
        TLS_CLIENT,
        "pass",
    ),
    case(
        "a TLS edge with termination upstream tests addresses",
        tls(ip_restriction=o.ip_module("ipp_office"), **UPSTREAM_TLS),
        TLS_CLIENT,
        "refuse 3203",
    ),
    case(
        "a TCP edge tests addresses, and closes the connection",
        tcp(ip_restriction=o.ip_module("ipp_office")),
        TCP_CLIENT,
        "refuse 3203",
    ),
    case("a TCP edge reaches its backend", tcp(), TCP_CLIENT, "pass"),
    case(
        "a TCP edge runs on_tcp_connect",
        tcp(traffic_policy=o.policy_module(o.on_connect(DENY))),
        TCP_CLIENT,
        "refuse",
    ),
    case(
        "an HTTPS edge does not run on_tcp_connect",
        site(path(traffic_policy=o.policy_module(o.on_connect(DENY)))),
        APP,
        "pass 200",
    ),
    case(
        "on_tcp_connect comes before on_http_request",
        cloud(o.policy_text(on_http_request=[HELLO], on_tcp_connect=[DENY])),
        APP,
        "refuse",
    ),
    case("a terminating action ends the policy", cloud(o.on_request(HELLO, DENY)), APP, "pass 200"),
    case(
        "restrict-ips in on_http_response comes after the upstream",
        o.account(
            AgentEndpoint=[
                o.agent_endpoint(
                    "a",
                    "https://app.example.com",
                    o.policy_text(on_http_response=[o.rule(o.action("restrict-ips", allow=["192.0.2.0/24"]))]),
                )
            ]
        ),
        APP,
        "pass",
        "restrict-ips-in-response",
    ),
    case(
        "a login comes before the policy of the route",
        site(path(oauth=o.oauth_module("google"), traffic_policy=o.policy_module(HELLO_TEXT))),
        APP,
        "refuse 302",
        "module-order",
    ),
    case(
        "a policy that refuses is the same before a login",
        site(path(oauth=o.oauth_module("google"), traffic_policy=o.policy_module(o.on_request(DENY)))),
        APP,
        "refuse 302",
    ),
    case(
        "headers of a module and expressions of a policy rest on an open row",
        site(
            path(
                request_headers=WRITES,
                traffic_policy=o.policy_module(o.on_request(o.rule(o.action("deny"), when=[WRITTEN]))),
            )
        ),
        replace(APP, assignments={WRITTEN: False, expression_key(WRITTEN, (WRITES_TEXT,)): True}),
        "pass 200",
        "module-order",
    ),
    case(
        "headers of a module do not matter if the outcome is the same with them",
        site(
            path(
                request_headers=WRITES,
                traffic_policy=o.policy_module(o.on_request(o.rule(o.action("deny"), when=[WRITTEN]))),
            )
        ),
        replace(APP, assignments={WRITTEN: False, expression_key(WRITTEN, (WRITES_TEXT,)): False}),
        "pass 200",
    ),
    case(
        "a module that is disabled is not applied",
        site(path(oauth=o.oauth_module("google", module={"enabled": False}))),
        APP,
        "pass 200",
    ),
    case(
        "options_passthrough opens OPTIONS",
        site(path(oauth=o.oauth_module("google", module={"options_passthrough": True}))),
        replace(APP, method="OPTIONS"),
        "pass 200",
    ),
    case(
        "options_passthrough opens no other method",
        site(path(oauth=o.oauth_module("google", module={"options_passthrough": True}))),
        APP,
        "refuse 302",
    ),
    case(
        "options_passthrough leaves the other gates closed",
        site(
            path(
                ip_restriction=o.ip_module("ipp_office"),
                oauth=o.oauth_module("google", module={"options_passthrough": True}),
            ),
            **OFFICE,
        ),
        replace(APP, method="OPTIONS"),
        "refuse 403 3203",
    ),
    case(
        "OPTIONS without options_passthrough requires a login",
        site(path(oauth=o.oauth_module("google"))),
        replace(APP, method="OPTIONS"),
        "refuse 302",
    ),
    case(
        "a login of one route is none of another",
        site(path(id="r"), path("/x", oauth=o.oauth_module("google"))),
        APP,
        "pass 200",
    ),
    case(
        "paths of logins never reach the upstream",
        site(path(oauth=o.oauth_module("google"))),
        get("https://app.example.com/oauth2/x", identity=Identity("google")),
        "refuse 302",
        "reserved-paths",
    ),
    case(
        "paths of logins reach the upstream without a login",
        site(path()),
        get("https://app.example.com/oauth2/x"),
        "pass 200",
    ),
    case(
        "a user agent that is denied is refused",
        site(path(user_agent_filter={"enabled": True, "deny": ["bot"]})),
        replace(APP, headers=(("User-Agent", "bot/1"),)),
        "refuse 403 3211",
    ),
    case(
        "a user agent that is allowed and denied is admitted",
        site(path(user_agent_filter={"enabled": True, "allow": ["^bot"], "deny": ["bot"]})),
        replace(APP, headers=(("User-Agent", "bot/1"),)),
        "pass 200",
    ),
    case(
        "a list that only allows user agents blocks no other",
        site(path(user_agent_filter={"enabled": True, "allow": ["^bot"]})),
        APP,
        "pass 200",
    ),
    case(
        "a filter refuses a missing user agent",
        site(path(user_agent_filter={"enabled": True, "allow": ["^bot"]})),
        replace(APP, headers=()),
        "refuse 403 3211",
    ),
    case(
        "a filter that allows the empty user agent admits a missing one",
        site(path(user_agent_filter={"enabled": True, "allow": ["^$"]})),
        replace(APP, headers=()),
        "pass 200",
    ),
    *(
        case(f"the module {name} is no gate", site(path() | {name: {"enabled": True}}), APP, "pass 200")
        for name in ("circuit_breaker", "compression", "request_headers", "response_headers", "websocket_tcp_converter")
    ),
]


def restrict(*policies: str, rules: tuple[o.Object, ...] = (), **more: Any) -> o.Account:
    """A route with the module ip_restriction."""
    kinds = OFFICE | {"IPPolicyRule": [*OFFICE["IPPolicyRule"], *rules]}
    return site(path(ip_restriction=o.ip_module(*policies, **more)), **kinds)


ADDRESSES: list[Case] = [
    case("an address that a rule allows is admitted", restrict("ipp_office"), replace(APP, source=INSIDE), "pass 200"),
    case("an address that no rule allows is refused", restrict("ipp_office"), APP, "refuse 403 3203"),
    case(
        "the last address of a network is inside",
        restrict("ipp_office"),
        replace(APP, source="192.0.2.255"),
        "pass 200",
    ),
    case(
        "the address behind a network is outside",
        restrict("ipp_office"),
        replace(APP, source="192.0.3.0"),
        "refuse 403 3203",
    ),
    case(
        "any deny wins, also of another policy",
        restrict("ipp_office", "ipp_denies"),
        replace(APP, source="192.0.2.9"),
        "refuse 403 3203",
    ),
    case(
        "a narrower allow does not beat a wider deny",
        restrict("ipp_office", rules=(o.ip_rule("ipp_office", "192.0.0.0/16", "deny"),)),
        replace(APP, source=INSIDE),
        "refuse 403 3203",
    ),
    case(
        "a policy without rules admits no address",
        restrict("ipp_empty"),
        replace(APP, source=INSIDE),
        "refuse 403 3203",
    ),
    case("only denies admit no address", restrict("ipp_denies"), APP, "refuse 403 3203"),
    case(
        "a policy without rules beside another changes nothing",
        restrict("ipp_office", "ipp_empty"),
        replace(APP, source=INSIDE),
        "pass 200",
    ),
    case("a module that is disabled admits every address", restrict("ipp_empty", enabled=False), APP, "pass 200"),
    case("a module without policies admits no address", restrict(), APP, "refuse 403 3203", "no-address-list"),
    case(
        "a network of IPv4 admits no client of IPv6",
        restrict("ipp_office", rules=(o.ip_rule("ipp_office", "0.0.0.0/0"),)),
        replace(APP, source="2001:db8::1"),
        "refuse 403 3203",
    ),
    case(
        "a network of IPv6 admits its clients",
        restrict("ipp_office", rules=(o.ip_rule("ipp_office", "2001:db8::/32"),)),
        replace(APP, source="2001:db8::1"),
        "pass 200",
    ),
    case(
        "an IPv4-mapped address is an IPv6 address",
        restrict("ipp_office"),
        replace(APP, source="::ffff:192.0.2.7"),
        "refuse 403 3203",
        "mapped-address",
    ),
    case(
        "an IPv4-mapped address leaves nothing open if its IPv4 address is refused too",
        restrict("ipp_office"),
        replace(APP, source="::ffff:198.51.99.1"),
        "refuse 403 3203",
    ),
    case(
        "X-Forwarded-For is never read",
        restrict("ipp_office"),
        replace(APP, headers=(("X-Forwarded-For", INSIDE), ("User-Agent", "x"))),
        "refuse 403 3203",
    ),
    case(
        "a reference to a deleted policy is unknown",
        restrict("ipp_gone"),
        replace(APP, source=INSIDE),
        "unknown",
        "deleted-ip-policy",
    ),
    case(
        "a reference to a deleted policy is refused if another gate refuses",
        site(path(ip_restriction=o.ip_module("ipp_gone"), oauth=o.oauth_module("google"))),
        APP,
        "refuse 302",
        "deleted-ip-policy",
    ),
    case("restrict-ips admits what it allows", cloud(NARROW), replace(APP, source=INSIDE), "pass 200"),
    case("restrict-ips refuses what it does not allow", cloud(NARROW), APP, "refuse 403 3203"),
    case(
        "restrict-ips with only denies admits no address",
        behind(o.action("restrict-ips", deny=["192.0.2.0/24"])),
        APP,
        "refuse 403 3203",
    ),
    case(
        "restrict-ips joins its lists and IP policies",
        behind(o.action("restrict-ips", allow=["198.51.100.0/24"], ip_policies=["ipp_denies"])),
        replace(APP, source="192.0.2.9"),
        "refuse 403 3203",
    ),
    case(
        "restrict-ips without lists admits no address",
        behind(o.action("restrict-ips", enforce=True)),
        APP,
        "refuse 403 3203",
        "no-address-list",
    ),
    case(
        "restrict-ips that is not enforced is no gate",
        behind(o.action("restrict-ips", enforce=False, allow=["192.0.2.0/24"])),
        APP,
        "pass 200",
    ),
    case(
        "restrict-ips with computed networks is unknown",
        behind(o.action("restrict-ips", allow=["${vars.net}"])),
        APP,
        "unknown",
        "interpolated-setting",
    ),
]

ADA = Identity("google", email="ada@example.com")
BOB = Identity("google", email="bob@other.org")
OCTO = Identity("github", email="o@example.com", teams=frozenset({"ops"}), organizations=frozenset({"acme"}))
SSO, LOGGED_IN = ("<EntityDescriptor/>", Identity("<EntityDescriptor/>", "saml", groups=frozenset({"staff"})))
OIDC_USER = Identity("https://login.example.com", "oidc", application="app")


def oauth(provider: str = "google", **lists: Any) -> o.Account:
    return site(path(oauth=o.oauth_module(provider, **lists)))


def as_(identity: Identity | None, **more: Any) -> Request:
    return replace(APP, identity=identity, **more)


IDENTITY: list[Case] = [
    case(
        "a login redirects who is not signed in, whatever the method", oauth(), as_(None, method="POST"), "refuse 302"
    ),
    case("OAuth without lists admits any account of the provider", oauth(), as_(BOB), "pass 200"),
    case("OAuth admits no account of another provider", oauth("github"), as_(BOB), "refuse 302"),
    case("OAuth admits a listed e-mail address", oauth(email_addresses=["ada@example.com"]), as_(ADA), "pass 200"),
    case(
        "OAuth refuses an unlisted e-mail address",
        oauth(email_addresses=["ada@example.com"]),
        as_(BOB),
        "refuse 403 3105",
    ),
    case("OAuth admits a listed e-mail domain", oauth(email_domains=["example.com"]), as_(ADA), "pass 200"),
    case(
        "an e-mail domain is exact",
        oauth(email_domains=["example.com"]),
        as_(Identity("google", email="a@sub.example.com")),
        "refuse 403 3105",
        "email-domain-suffix",
    ),
    case(
        "an e-mail domain is no suffix",
        oauth(email_domains=["example.com"]),
        as_(Identity("google", email="a@evil-example.com")),
        "refuse 403 3105",
        "email-domain-suffix",
    ),
    case(
        "either e-mail list suffices",
        oauth(email_addresses=["bob@other.org"], email_domains=["example.com"]),
        as_(ADA),
        "pass 200",
        "both-email-lists",
    ),
    case(
        "both e-mail lists refuse others",
        oauth(email_addresses=["eve@other.org"], email_domains=["example.com"]),
        as_(BOB),
        "refuse 403 3105",
    ),
    case("any listed team suffices", oauth("github", teams=["dev", "ops"]), as_(OCTO), "pass 200"),
    case("any listed organization suffices", oauth("github", organizations=["acme"]), as_(OCTO), "pass 200"),
    case("a member of no listed team is refused", oauth("github", teams=["dev"]), as_(OCTO), "refuse 403 3105"),
    case(
        "teams or organizations suffice",
        oauth("github", teams=["dev"], organizations=["acme"]),
        as_(OCTO),
        "pass 200",
        "teams-and-organizations",
    ),
    case(
        "memberships and e-mails must both admit",
        oauth("github", teams=["dev"], email_domains=["example.com"]),
        as_(OCTO),
        "refuse 403 3105",
        "memberships-and-emails",
    ),
    case(
        "more than 200 memberships are compared",
        oauth("github", teams=["t250"]),
        as_(Identity("github", teams=frozenset(f"t{number}" for number in range(300)))),
        "pass 200",
        "many-memberships",
    ),
    case(
        "OIDC admits every user of the issuer",
        site(path(oidc=o.oidc_module("https://login.example.com"))),
        as_(OIDC_USER),
        "pass 200",
    ),
    case(
        "OIDC admits no user of another issuer",
        site(path(oidc=o.oidc_module("https://other.example.com"))),
        as_(OIDC_USER),
        "refuse 302",
    ),
    case("SAML without groups admits every user", site(path(saml=o.saml_module(SSO))), as_(LOGGED_IN), "pass 200"),
    case(
        "SAML admits a member of any listed group",
        site(path(saml=o.saml_module(SSO, "staff", "root"))),
        as_(LOGGED_IN),
        "pass 200",
    ),
    case("SAML refuses others", site(path(saml=o.saml_module(SSO, "root"))), as_(LOGGED_IN), "refuse 403 3105"),
    case(
        "the action oauth admits any account of the provider",
        behind(o.action("oauth", provider="google")),
        as_(BOB),
        "pass 200",
    ),
    case(
        "the action oauth redirects who is not signed in",
        behind(o.action("oauth", provider="google")),
        APP,
        "refuse 302",
    ),
    case(
        "the action openid-connect admits every user of the issuer",
        behind(o.action("openid-connect", issuer_url="https://login.example.com", client_id="app")),
        as_(OIDC_USER),
        "pass 200",
    ),
    case(
        "a session belongs to the client id of the login",
        behind(o.action("openid-connect", issuer_url="https://login.example.com", client_id="another")),
        as_(OIDC_USER),
        "refuse 302",
    ),
    case(
        "the action openid-connect redirects others",
        behind(o.action("openid-connect", issuer_url="https://login.example.com")),
        as_(BOB),
        "refuse 302",
    ),
    case(
        "a later rule narrows a login",
        cloud(
            o.on_request(o.rule(o.action("oauth", provider="google")), o.rule(o.action("deny"), when=["other"]), HELLO)
        ),
        as_(BOB, assignments={"other": True}),
        "refuse 403",
    ),
    case(
        "a login in a rule with expressions is a login only where they are true",
        cloud(o.on_request(o.rule(o.action("oauth", provider="google"), when=["admin"]), HELLO)),
        replace(APP, assignments={"admin": False}),
        "pass 200",
    ),
    case(
        "allow_cors_preflight opens preflights",
        behind(o.action("oauth", provider="google", allow_cors_preflight=True)),
        replace(APP, method="OPTIONS", headers=(("Origin", "https://x"), ("Access-Control-Request-Method", "PUT"))),
        "pass 200",
    ),
    case(
        "allow_cors_preflight does not open OPTIONS without CORS headers",
        behind(o.action("oauth", provider="google", allow_cors_preflight=True)),
        replace(APP, method="OPTIONS"),
        "refuse 302",
        "preflight",
    ),
    case(
        "paths of the login of a policy never reach the upstream",
        behind(o.action("oauth", provider="google")),
        get("https://app.example.com/ngrok/login", identity=BOB),
        "refuse 302",
        "reserved-paths",
    ),
    case(
        "the webhook module admits what the provider signed",
        site(path(webhook_verification=o.webhook_module("GitHub"))),
        replace(APP, webhook_signed_by=Signature("github", "s")),
        "pass 200",
    ),
    case(
        "the webhook module refuses any method that is not signed",
        site(path(webhook_verification=o.webhook_module("github"))),
        APP,
        "refuse 403 3204",
    ),
    case(
        "the webhook module refuses a signature with another secret",
        site(path(webhook_verification=o.webhook_module("github"))),
        replace(APP, webhook_signed_by=Signature("github", "t")),
        "refuse 403 3204",
    ),
    case(
        "the action verify-webhook refuses what is not signed",
        behind(o.action("verify-webhook", provider="github", secret="s")),
        APP,
        "refuse 403 3204",
    ),
    case(
        "the action verify-webhook that is not enforced is no gate",
        behind(o.action("verify-webhook", provider="github", secret="s", enforce=False)),
        APP,
        "pass 200",
    ),
    case(
        "basic-auth admits any listed pair",
        behind(o.action("basic-auth", credentials=["a:passwords", "b:passwords"])),
        replace(APP, basic="b:passwords"),
        "pass 200",
    ),
    case(
        "basic-auth refuses others",
        behind(o.action("basic-auth", credentials=["a:passwords"])),
        replace(APP, basic="a:wrong"),
        "refuse 401",
    ),
    case(
        "basic-auth that is not enforced is no gate",
        behind(o.action("basic-auth", credentials=["a:passwords"], enforce=False)),
        APP,
        "pass 200",
    ),
    case(
        "basic-auth with computed credentials is unknown",
        behind(o.action("basic-auth", credentials=["a:${secrets.get('v', 's')}"])),
        APP,
        "unknown",
        "interpolated-setting",
    ),
]


def jwt(**more: Any) -> o.Object:
    config = {
        "issuer": {"allow_list": [{"value": "https://idp/"}]},
        "http": {"tokens": [{"type": "jwt", "method": "header", "name": "Authorization", "prefix": "Bearer "}]},
        "jws": {"allowed_algorithms": ["RS256"], "keys": {"sources": {"additional_jkus": ["https://idp/jwks"]}}},
    }
    return o.action("jwt-validation", **config | more)


TOKEN = Token("authorization", "https://idp/", "shop", "https://idp/jwks")
AUDIENCE = {"allow_list": [{"value": "shop"}]}
TWO = {"tokens": [{"type": "jwt", "method": "header", "name": name} for name in ("Authorization", "X-Second")]}


def with_token(**more: Any) -> Request:
    return replace(APP, tokens=(TOKEN._replace(**more),))


def terminate(*authorities: str, then: o.Object = HELLO, **more: Any) -> o.Account:
    config = {"mutual_tls_certificate_authorities": [*authorities]} | more
    rules = {"on_tcp_connect": [o.rule(o.action("terminate-tls", **config))], "on_http_request": [then]}
    return cloud(o.policy_text(**rules), CertificateAuthority=PARTNERS)


POLICY: list[Case] = [
    case("jwt-validation admits a valid token", behind(jwt(audience=AUDIENCE)), with_token(), "pass 200"),
    case("jwt-validation refuses a request without a token", behind(jwt()), APP, "refuse 401 3401"),
    case(
        "jwt-validation compares the issuer exactly", behind(jwt()), with_token(issuer="https://idp"), "refuse 401 3401"
    ),
    case("jwt-validation without audiences admits each audience", behind(jwt()), with_token(audience="x"), "pass 200"),
    case(
        "jwt-validation refuses an unlisted audience",
        behind(jwt(audience=AUDIENCE)),
        with_token(audience="x"),
        "refuse 401 3401",
    ),
    case(
        "jwt-validation refuses an unlisted algorithm", behind(jwt()), with_token(algorithm="none"), "refuse 401 3401"
    ),
    case(
        "jwt-validation refuses a key of another set",
        behind(jwt()),
        with_token(keys="https://evil/jwks"),
        "refuse 401 3401",
    ),
    case("jwt-validation requires all listed tokens", behind(jwt(http=TWO)), with_token(), "refuse 401 3401"),
    case(
        "jwt-validation with a computed issuer is unknown",
        behind(jwt(issuer={"allow_list": [{"value": "${vars.i}"}]})),
        with_token(),
        "unknown",
        "interpolated-setting",
    ),
    case(
        "terminate-tls admits a certificate of a listed authority",
        terminate("ca_1"),
        replace(APP, certificate="ca_1"),
        "pass 200",
    ),
    case(
        "terminate-tls admits a certificate of an authority that it lists as PEM",
        terminate("PEM of ca_1\n"),
        replace(APP, certificate="ca_1"),
        "pass 200",
    ),
    case("terminate-tls refuses a client without a certificate", terminate("ca_1"), APP, "refuse bad_certificate"),
    case("terminate-tls without authorities is no gate", terminate(), APP, "pass 200", "no-authorities"),
    case(
        "terminate-tls that only requests certificates is no gate",
        terminate("ca_1", mutual_tls_verification_strategy="request"),
        APP,
        "pass 200",
    ),
    case(
        "terminate-tls with require-any leaves nothing open if a later action refuses",
        terminate("ca_1", then=DENY, mutual_tls_verification_strategy="require-any"),
        APP,
        "refuse 403",
    ),
    case(
        "whether terminate-tls with require-any is a gate is open",
        terminate("ca_1", mutual_tls_verification_strategy="require-any"),
        APP,
        "pass 200",
        "unverified-strategy",
    ),
    case(
        "deny refuses with its status",
        cloud(o.on_request(o.rule(o.action("deny", status_code=404)))),
        APP,
        "refuse 404",
    ),
    case("close-connection refuses", cloud(o.on_request(o.rule(o.action("close-connection")))), APP, "refuse"),
    case(
        "custom-response answers",
        cloud(o.on_request(o.rule(o.action("custom-response", status_code=204)))),
        APP,
        "pass 204",
    ),
    case(
        "redirect answers",
        cloud(o.on_request(o.rule(o.action("redirect", to="https://new.example.com", status_code=301)), HELLO)),
        APP,
        "pass 301",
    ),
    case(
        "redirect rests on an open row if a later action refuses",
        cloud(o.on_request(o.rule(o.action("redirect", to="https://new.example.com")), DENY)),
        APP,
        "pass 302",
        "redirect-ends",
    ),
    case(
        "redirect of a pattern that does not match continues",
        cloud(o.on_request(o.rule(o.action("redirect", **{"from": "/old(.*)", "to": "/new$1"})), DENY)),
        APP,
        "refuse 403",
    ),
    case(
        "redirect of a pattern that matches answers",
        cloud(o.on_request(o.rule(o.action("redirect", **{"from": "/old(.*)", "to": "/new$1"})), HELLO)),
        get("https://app.example.com/old/x"),
        "pass 302",
    ),
    case(
        "a cloud endpoint whose policy falls through refuses",
        cloud(o.on_request(o.rule(o.action("log", metadata={})))),
        APP,
        "refuse 6029",
    ),
    case(
        "an agent's endpoint whose policy falls through reaches the upstream",
        o.account(
            AgentEndpoint=[
                o.agent_endpoint("a", "https://app.example.com", o.on_request(o.rule(o.action("log", metadata={}))))
            ]
        ),
        APP,
        "pass",
    ),
    case(
        "an agent's endpoint of tls runs on_tcp_connect",
        o.account(AgentEndpoint=[o.agent_endpoint("a", "tls://app.example.com", o.on_connect(DENY))]),
        get("tls://app.example.com"),
        "refuse",
    ),
    case(
        "an agent that terminates TLS may require certificates",
        o.account(
            AgentEndpoint=[
                o.agent_endpoint("a", "tls://app.example.com", agent_tls_termination={"server_certificate": "c"})
            ]
        ),
        get("tls://app.example.com"),
        "unknown",
    ),
    case(
        "all expressions of a rule must be true",
        cloud(o.on_request(o.rule(o.action("deny"), when=["a", "b"]), HELLO)),
        replace(APP, assignments={"a": True, "b": False}),
        "pass 200",
    ),
    case(
        "a rule whose expressions are true runs",
        cloud(o.on_request(o.rule(o.action("deny"), when=["a", "b"]), HELLO)),
        replace(APP, assignments={"a": True, "b": True}),
        "refuse 403",
    ),
    case(
        "an expression without a value is unknown",
        cloud(o.on_request(o.rule(o.action("deny"), when=["a"]), HELLO)),
        APP,
        "unknown",
    ),
    case(
        "an expression that fails refuses the request",
        cloud(o.on_request(o.rule(o.action("log"), when=["a"]), HELLO)),
        replace(APP, assignments={"a": None}),
        "refuse",
        "expression-error",
    ),
    case("an unreadable policy is unknown", cloud("on_http_request: 7"), APP, "unknown"),
    case("a policy with an unknown phase is unknown", cloud(o.policy_text(outbound=[DENY])), APP, "unknown"),
    case("an action that is not documented is unknown", behind(o.action("ai-gateway")), APP, "unknown"),
    case("a policy in YAML is read", cloud("on_http_request:\n- actions:\n  - type: deny\n"), APP, "refuse 403"),
    case(
        "http-request with on_error halt succeeds",
        behind(o.action("http-request", url="https://x.internal", on_error="halt")),
        APP,
        "pass 200",
        "halt-of-http-request",
    ),
    *(
        case(f"the action {name} is no gate", behind(o.action(name, enforce=True)), APP, "pass 200")
        for name in (
            *("add-headers", "remove-headers", "url-rewrite", "set-vars", "log", "rate-limit", "circuit-breaker"),
            *("owasp-crs-request", "http-request", "request-body-find-replace", "compress-response"),
            *("response-body-find-replace", "sse-find-replace", "owasp-crs-response"),
        )
    ),
]

CREDENTIALS = o.account(
    TunnelCredential=[
        o.credential("cr_all"),
        o.credential("cr_star", "*", "bind:a.example.com"),
        o.credential("cr_bind_star", "bind:*"),
        o.credential("cr_host", "bind:app.example.com"),
        o.credential("cr_wildcard", "bind:*.example.com"),
        o.credential("cr_internal", "bind:*.internal"),
        o.credential("cr_address", "bind:1.tcp.example.com:20000"),
        o.credential("cr_labels", "bind:service=*", "bind:*=blue"),
        o.credential("cr_bot", owner="bot_1"),
    ],
    SSHCredential=[o.credential("sshcr_host", "bind:app.example.com")],
    BotUser=[{"id": "bot_1", "active": False}],
    ReservedDomain=[o.domain("app.example.com"), o.domain("*.apps.example.com"), o.domain("edge.example.com")],
    ReservedAddress=[o.address("1.tcp.example.com:20000")],
    HTTPSEdge=[o.https_edge("e", "edge.example.com")],
)


def bind(credential: str, host: str = "app.example.com", **more: Any) -> BindRequest:
    return replace(BindRequest(credential, host=host), **more)


TCP_BIND: dict[str, Any] = {"scheme": "tcp", "port": 20000}
BINDS: list[Case] = [
    case("a credential without rules binds anything", CREDENTIALS, bind("cr_all", "any.example.org"), "pass"),
    case("the rule * permits everything", CREDENTIALS, bind("cr_star", "any.example.org"), "pass"),
    case("the rule bind:* permits everything", CREDENTIALS, bind("cr_bind_star", "any.example.org"), "pass"),
    case("bind:host permits that host", CREDENTIALS, bind("cr_host"), "pass"),
    case("bind:host permits no host below it", CREDENTIALS, bind("cr_host", "a.app.example.com"), "refuse 316"),
    case("bind:*.x permits every depth below x", CREDENTIALS, bind("cr_wildcard", "a.b.example.com"), "pass"),
    case("bind:*.x permits the wildcard itself", CREDENTIALS, bind("cr_wildcard", "*.example.com"), "pass"),
    case("bind:*.x does not permit x", CREDENTIALS, bind("cr_wildcard", "example.com"), "refuse 316"),
    case("bind:*.x permits no other suffix", CREDENTIALS, bind("cr_wildcard", "evilexample.com"), "refuse 316"),
    case("bind:*.internal permits internal names", CREDENTIALS, bind("cr_internal", "api.internal"), "pass"),
    case("a random name requires a credential without restrictions", CREDENTIALS, bind("cr_host", ""), "refuse 316"),
    case(
        "an address is permitted as host and port",
        CREDENTIALS,
        bind("cr_address", "1.tcp.example.com", **TCP_BIND),
        "pass",
    ),
    case(
        "another port is not permitted",
        CREDENTIALS,
        bind("cr_address", "1.tcp.example.com", scheme="tcp", port=1),
        "refuse 308",
    ),
    case(
        "bind:host permits its tcp address",
        CREDENTIALS,
        bind("cr_wildcard", "1.tcp.example.com", **TCP_BIND),
        "pass",
        "bind-host-of-address",
    ),
    case(
        "a random address requires a credential without restrictions",
        CREDENTIALS,
        bind("cr_address", "", scheme="tcp"),
        "refuse 356",
    ),
    case(
        "labels match a key or a value",
        CREDENTIALS,
        bind("cr_labels", "", labels=(("service", "shop"), ("color", "blue"))),
        "pass",
        "bind-labels",
    ),
    case(
        "each label must match",
        CREDENTIALS,
        bind("cr_labels", "", labels=(("service", "shop"), ("color", "red"))),
        "refuse 399",
        "bind-labels",
    ),
    case(
        "rules for hosts permit no labels",
        CREDENTIALS,
        bind("cr_host", "", labels=(("service", "shop"),)),
        "refuse 399",
        "bind-labels",
    ),
    case("an SSH credential has the same rules", CREDENTIALS, bind("sshcr_host", "other.example.com"), "refuse 316"),
    case("a credential that does not exist binds nothing", CREDENTIALS, bind("cr_gone"), "refuse 107"),
    case("a credential of an inactive bot binds nothing", CREDENTIALS, bind("cr_bot"), "refuse 636"),
]

OPENS: list[Case] = [
    case("a reserved host is opened", CREDENTIALS, bind("cr_all"), "pass"),
    case("a host below a reserved wildcard is opened", CREDENTIALS, bind("cr_all", "a.b.apps.example.com"), "pass"),
    case("a wildcard must be reserved exactly", CREDENTIALS, bind("cr_all", "*.b.apps.example.com"), "refuse 321"),
    case("the reserved wildcard is opened", CREDENTIALS, bind("cr_all", "*.apps.example.com"), "pass"),
    case("a host that is not reserved is not opened", CREDENTIALS, bind("cr_all", "any.example.org"), "refuse 320"),
    case("a host of an edge is not opened", CREDENTIALS, bind("cr_all", "edge.example.com"), "refuse 381"),
    case("an internal name needs no reservation", CREDENTIALS, bind("cr_all", "api.internal"), "pass"),
    case("a reserved address is opened", CREDENTIALS, bind("cr_all", "1.tcp.example.com", **TCP_BIND), "pass"),
    case(
        "an address that is not reserved is not opened",
        CREDENTIALS,
        bind("cr_all", "2.tcp.example.com", **TCP_BIND),
        "refuse 320",
    ),
    case("a credential that may not bind the host does not open it", CREDENTIALS, bind("cr_address"), "refuse 316"),
]

PLANE_CODES: dict[Plane, str] = {"api": "220", "dashboard": "1212", "agent": "115", "endpoints": "3205"}
PLANES: list[Case] = [
    case(
        f"an enforced restriction `{plane}` refuses other addresses",
        o.account(IPRestriction=[o.restriction(plane, "ipp_office")], **OFFICE),
        PlaneRequest(plane, OUTSIDE),
        f"refuse 403 {code}",
    )
    for plane, code in PLANE_CODES.items()
] + [
    case(
        "an enforced restriction admits its addresses",
        o.account(IPRestriction=[o.restriction("api", "ipp_office")], **OFFICE),
        PlaneRequest("api", INSIDE),
        "pass",
    ),
    case(
        "a restriction that only warns admits every address",
        o.account(IPRestriction=[o.restriction("api", "ipp_office", enforced=False)], **OFFICE),
        PlaneRequest("api", OUTSIDE),
        "pass",
    ),
    case(
        "a plane without a restriction admits every address",
        o.account(IPRestriction=[o.restriction("api", "ipp_office")], **OFFICE),
        PlaneRequest("agent", OUTSIDE),
        "pass",
    ),
    case(
        "a restriction with a deleted policy is unknown",
        o.account(IPRestriction=[o.restriction("api", "ipp_gone")]),
        PlaneRequest("api", OUTSIDE),
        "unknown",
        "deleted-ip-policy",
    ),
    case(
        "a restriction whose rules only deny admits no address",
        o.account(IPRestriction=[o.restriction("api", "ipp_denies")], **OFFICE),
        PlaneRequest("api", OUTSIDE),
        "refuse 403 220",
    ),
]

CASES = [*ROUTING, *ROUTES, *INTERNAL, *ORDER, *ADDRESSES, *IDENTITY, *POLICY, *BINDS, *PLANES]


def summary(answer: Answer) -> str:
    return " ".join(str(part) for part in (answer.outcome, answer.status, answer.code) if part)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.row)
def test_the_gateway_answers_as_documented(case: Case) -> None:
    answer = Gateway(case.account).answer(case.request)
    assert (summary(answer), answer.open_outcome) == (case.answer, case.rows), answer.reason


@pytest.mark.parametrize("case", OPENS, ids=lambda case: case.row)
def test_a_name_is_opened_if_it_is_reserved_and_the_credential_may_bind_it(case: Case) -> None:
    answer = Gateway(case.account).may_open(case.request)
    assert (summary(answer), answer.open_outcome) == (case.answer, case.rows), answer.reason


def test_each_case_has_its_own_name() -> None:
    names = [case.row for case in (*CASES, *OPENS)]
    assert len(set(names)) == len(names)


def test_each_open_row_is_touched_by_a_case() -> None:
    answers = [Gateway(case.account).answer(case.request) for case in CASES]
    assert frozenset[str]().union(*(answer.open_rows for answer in answers)) == OPEN_ROWS.keys()


def test_an_open_row_of_the_form_only_is_no_pass() -> None:
    answers = [Gateway(case.account).answer(case.request) for case in CASES]
    assert "pass" not in {answer.outcome for answer in answers if answer.open_rows and not answer.open_outcome}


SPLIT = [o.ip_rule("ipp_office", "192.0.2.0/25"), o.ip_rule("ipp_office", "192.0.2.128/25")]
DENIES = [o.ip_rule("ipp_office", "192.0.2.0/24", "deny")]


def admin(*routes: o.Object, rules: list[o.Object] | None = None) -> o.Account:
    """The open route `/` and others, with the IP policy of the office."""
    return site(ADMIN[0], *routes, **OFFICE | ({"IPPolicyRule": rules} if rules else {}))


EDITS = [
    (
        "a path that a route no longer matches is served by the shorter route",
        [ADMIN[1] | {"match": "/admins"}],
        None,
        "pass",
    ),
    ("the path of a deleted route is served by the shorter route", [], None, "pass"),
    ("a longer route without the restriction opens its path", [ADMIN[1], path("/admin/x", id="x")], None, "pass"),
    (
        "a route that is exact leaves what is below to the shorter route",
        [ADMIN[1] | {"match_type": "exact_path"}],
        None,
        "pass",
    ),
    ("a network split into halves admits the same addresses", [ADMIN[1]], SPLIT, "refuse"),
    ("a policy that only denies admits no address", [ADMIN[1]], DENIES, "refuse"),
]


@pytest.mark.parametrize(("routes", "rules", "outcome"), [edit[1:] for edit in EDITS], ids=[edit[0] for edit in EDITS])
def test_an_edit_changes_who_is_admitted(routes: list[o.Object], rules: list[o.Object] | None, outcome: str) -> None:
    below = get("https://app.example.com/admin/x")
    before, after = Gateway(ADMIN_SITE), Gateway(admin(*routes, rules=rules))
    assert before.answer(below).outcome == "refuse"
    assert after.answer(below).outcome == outcome
    assert before.answer(replace(below, source=INSIDE)).outcome == "pass"
    assert after.answer(replace(below, source=INSIDE)).outcome == ("refuse" if rules is DENIES else "pass")


def test_an_expression_behind_a_rewrite_may_have_another_value() -> None:
    rewrite = o.action("url-rewrite", **{"from": "/a", "to": "/b"})
    rules = [o.rule(o.action("deny"), when=["x"]), o.rule(rewrite), o.rule(o.action("deny"), when=["x"]), HELLO]
    gateway = Gateway(cloud(o.on_request(*rules)))
    (behind_rewrite,) = gateway.expressions() - {"x"}
    values = {"x": False, behind_rewrite: True}
    assert behind_rewrite.startswith(expression_key("x", ("",)))
    assert gateway.answer(replace(APP, assignments=values)).outcome == "refuse"
    assert gateway.answer(replace(APP, assignments={"x": False})).outcome == "pass"


def test_all_outcomes_of_a_pool_are_returned() -> None:
    pool = [o.cloud("https://app.example.com", text, pooling_enabled=True, id=text) for text in (HELLO_TEXT, NARROW)]
    answers = Gateway(o.account(CloudEndpoint=pool)).answers(APP)
    assert [answer.outcome for answer in answers] == ["pass", "refuse"]
    assert [answer.served_by for answer in answers] == [HELLO_TEXT, NARROW]


def test_answers_are_the_same_each_time() -> None:
    assert all(
        Gateway(case.account).answer(case.request) == Gateway(case.account).answer(case.request) for case in CASES
    )
