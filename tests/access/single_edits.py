"""Small accounts with one way in, and edits of a single gate of it: each way in × gate × direction.

`every_edit()` lists them for the table that people read. `random_edit(r)` combines a way in with two gates at random,
and edits one of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Any, Final, NamedTuple

from tests.access import objects as o

Value = Any
Parts = Mapping[str, Value]
"""What a way in has, by the place of it: a module, the actions of a phase, the restriction of the account."""


class Edit(NamedTuple):
    """One edit of one gate. `name`: way in, gate, direction."""

    name: tuple[str, str, str]
    before: o.Account
    after: o.Account


class Gate(NamedTuple):
    """The edits of a gate at a place: by direction, its value before and after. None: the gate is absent."""

    place: str
    edits: Mapping[str, tuple[Value, Value]]
    is_exact: bool = True

    @property
    def values(self) -> list[Value]:
        return [None, *(value for pair in self.edits.values() for value in pair if value is not None)]


def edits(wide: Value, narrow: Value = None, other: Value = None, off: Value = None, **more: Any) -> dict[str, Any]:
    """The directions in which a gate can change. `more`: further directions, each with both values."""
    found = {"add": (None, wide), "remove": (wide, None)}
    if narrow is not None:
        found |= {"tighten": (wide, narrow), "loosen": (narrow, wide)}
    if other is not None:
        found["replace"] = (wide, other)
    if off is not None:
        found |= {"disable": (wide, off), "enable": (off, wide)}
    return found | {name.replace("_", " "): pair for name, pair in more.items()}


# --- gates ------------------------------------------------------------------------------------------------------------

NETWORKS: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    "office": (("203.0.113.0/24", "allow"),),
    "offices": (("203.0.113.0/24", "allow"), ("198.51.100.0/24", "allow")),
    "home": (("192.0.2.128/25", "allow"),),
    "gap": (("203.0.113.7/32", "allow"), ("203.0.113.9/32", "allow")),
    "filled": (("203.0.113.7/32", "allow"), ("203.0.113.8/32", "allow"), ("203.0.113.9/32", "allow")),
    "others": (("0.0.0.0/0", "allow"), ("203.0.113.0/24", "deny")),
    "ipv6": (("2001:db8::/32", "allow"),),
    "denies": (("203.0.113.0/25", "deny"),),
    "halves": (("203.0.113.0/25", "allow"), ("203.0.113.128/25", "allow")),
    "empty": (),
}
"""The rules of each IP policy."""


def network_edits(make: Callable[..., Value], off: Value) -> dict[str, Any]:
    """`make` restricts addresses to those of the IP policies with these names."""
    return edits(
        make("offices"),
        make("office"),
        make("home"),
        off,
        split=(make("office"), make("halves")),
        allow_the_address_between=(make("gap"), make("filled")),
        deny_the_address_between=(make("filled"), make("gap")),
        deny_a_half=(make("office"), make("office", "denies")),
        allow_all_but_some=(make("office"), make("others")),
        add_IPv6=(make("office"), make("office", "ipv6")),
        delete_every_rule=(make("office"), make("empty")),
    )


def restrict(*names: str, enforce: bool = True) -> o.Object:
    return o.action("restrict-ips", enforce=enforce, ip_policies=[f"ipp_{name}" for name in names])


def admit_policies(*names: str, **more: Any) -> o.Object:
    return o.ip_module(*(f"ipp_{name}" for name in names), **more)


_NO_SETTINGS: Final[Mapping[str, Any]] = {}


def certify(*authorities: str, **config: Any) -> o.Object:
    return o.action("terminate-tls", mutual_tls_certificate_authorities=[*authorities], **config)


def sign_in(provider: str = "google", module: Mapping[str, Any] = _NO_SETTINGS, **lists: Any) -> o.Object:
    return o.oauth_module(provider, module=module, **lists)


METADATA: Final = (
    '<EntityDescriptor xmlns="urn:oasis:names:tc:SAML:2.0:metadata" entityID="https://{}.example.net">'
    '<IDPSSODescriptor protocolSupportEnumeration="urn:oasis:names:tc:SAML:2.0:protocol"/></EntityDescriptor>'
)


def saml(*groups: str, idp: str = "idp", **more: Any) -> o.Object:
    return o.saml_module(METADATA.format(idp), *groups, **more)


def jwt(issuers: str = "https://idp/", audiences: str = "", **more: Any) -> o.Object:
    algorithms, keys = more.get("algorithms", ["RS256"]), more.get("keys", "https://idp/jwks")
    return o.action(
        "jwt-validation",
        issuer={"allow_list": [{"value": value} for value in issuers.split()]},
        **({"audience": {"allow_list": [{"value": value} for value in audiences.split()]}} if audiences else {}),
        http={"tokens": [{"type": "jwt", "method": "header", "name": "authorization", "prefix": "Bearer "}]},
        jws={"allowed_algorithms": algorithms, "keys": {"sources": {"additional_jkus": [keys]}}},
    )


def password(*credentials: str, **more: Any) -> o.Object:
    return o.action("basic-auth", credentials=[*credentials], **more)


def webhook(provider: str = "github", secret: str = "s", **more: Any) -> o.Object:
    return o.action("verify-webhook", provider=provider, secret=secret, **more)


def oidc(issuer: str = "https://one.example.net", **more: Any) -> o.Object:
    return o.oidc_module(issuer, **more)


def openid(issuer: str = "https://one.example.net", **more: Any) -> o.Object:
    return o.action("openid-connect", issuer_url=issuer, client_id="app", client_secret="s", **more)


def oauth(provider: str = "google", **more: Any) -> o.Object:
    return o.action("oauth", provider=provider, **more)


PASSES_OPTIONS: Final[dict[str, Any]] = {"options_passthrough": True}
OFF: Final[dict[str, Any]] = {"enabled": False}

MODULES: Final[Mapping[str, Gate]] = {
    "IP restriction": Gate("ip_restriction", network_edits(admit_policies, admit_policies("offices", **OFF))),
    "mutual TLS": Gate(
        "mutual_tls",
        edits(
            o.mutual_tls("ca_0", "ca_1"),
            o.mutual_tls("ca_0"),
            o.mutual_tls("ca_2"),
            o.mutual_tls("ca_0", "ca_1", **OFF),
        ),
    ),
    "OAuth domains": Gate(
        "oauth",
        edits(
            sign_in(email_domains=["example.com", "example.net"]),
            sign_in(email_domains=["example.com"]),
            sign_in("github", email_domains=["example.com", "example.net"]),
            sign_in(module=OFF, email_domains=["example.com", "example.net"]),
            empty_the_list=(sign_in(email_domains=["example.com"]), sign_in()),
            replace_a_domain=(sign_in(email_domains=["example.com"]), sign_in(email_domains=["example.net"])),
            pass_OPTIONS=(
                sign_in(email_domains=["example.com"]),
                sign_in(module=PASSES_OPTIONS, email_domains=["example.com"]),
            ),
        ),
    ),
    "OAuth addresses": Gate(
        "oauth",
        edits(
            sign_in(email_addresses=["ada@example.com", "eve@example.net"]),
            sign_in(email_addresses=["ada@example.com"]),
            sign_in("gitlab", email_addresses=["ada@example.com"]),
            empty_the_list=(sign_in(email_addresses=["ada@example.com"]), sign_in()),
            admit_the_domain=(sign_in(email_addresses=["ada@example.com"]), sign_in(email_domains=["example.com"])),
        ),
    ),
    "OAuth teams": Gate(
        "oauth",
        edits(
            sign_in("github", teams=["acme/ops", "acme/dev"]),
            sign_in("github", teams=["acme/ops"]),
            sign_in("github", teams=["acme/web"]),
            empty_the_list=(sign_in("github", teams=["acme/ops"]), sign_in("github")),
            admit_the_organization=(
                sign_in("github", teams=["acme/ops"]),
                sign_in("github", organizations=["acme"]),
            ),
        ),
    ),
    "OAuth, several lists": Gate(
        "oauth",
        edits(
            sign_in(email_addresses=["ada@example.com"], email_domains=["example.net"]),
            add_a_list=(
                sign_in(email_addresses=["ada@example.com"]),
                sign_in(email_addresses=["ada@example.com"], email_domains=["example.net"]),
            ),
            remove_a_list=(
                sign_in(email_addresses=["ada@example.com"], email_domains=["example.net"]),
                sign_in(email_addresses=["ada@example.com"]),
            ),
        ),
        is_exact=False,
    ),
    "OpenID Connect": Gate(
        "oidc",
        edits(
            oidc(),
            other=oidc("https://two.example.net"),
            off=oidc(**OFF),
            pass_OPTIONS=(oidc(), oidc(**PASSES_OPTIONS)),
        ),
    ),
    "SAML": Gate(
        "saml",
        edits(
            saml("staff", "root"),
            saml("staff"),
            saml("staff", "root", idp="other"),
            saml("staff", "root", **OFF),
            empty_the_list=(saml("staff"), saml()),
            replace_a_group=(saml("staff"), saml("root")),
            pass_OPTIONS=(saml("staff"), saml("staff", **PASSES_OPTIONS)),
        ),
    ),
    "webhook verification": Gate(
        "webhook_verification",
        edits(
            o.webhook_module("github"),
            other=o.webhook_module("gitlab"),
            off=o.webhook_module("github", **OFF),
            replace_the_secret=(o.webhook_module("github"), o.webhook_module("github", "t")),
        ),
    ),
    "user agent filter": Gate("user_agent_filter", edits({"enabled": True, "allow": [], "deny": ["bot"]})),
}
"""Gates that are modules, by name."""

AT_CONNECTION: Final[Mapping[str, Gate]] = {
    "restrict-ips at the connection": Gate("connect", network_edits(restrict, restrict("offices", enforce=False))),
    "deny at the connection": Gate("connect", edits(o.action("deny"))),
    "close-connection": Gate("connect", edits(o.action("close-connection"))),
}

AT_HANDSHAKE: Final[Mapping[str, Gate]] = {
    "terminate-tls": Gate(
        "connect",
        edits(certify("ca_0", "ca_1"), certify("ca_0"), certify("ca_2"), o.action("terminate-tls", min_version="1.3")),
    ),
    "terminate-tls, strategy": Gate(
        "connect",
        edits(
            certify("ca_0", mutual_tls_verification_strategy="require-and-verify"),
            off=certify("ca_0", mutual_tls_verification_strategy="request"),
            require_any=(certify("ca_0"), certify("ca_0", mutual_tls_verification_strategy="require-any")),
        ),
        is_exact=False,
    ),
}

AT_REQUEST: Final[Mapping[str, Gate]] = {
    "restrict-ips": Gate("request", network_edits(restrict, restrict("offices", enforce=False))),
    "oauth": Gate(
        "request",
        edits(
            oauth(), other=oauth("github"), use_an_own_application=(oauth(), oauth(client_id="a", client_secret="s"))
        ),
    ),
    "oauth, preflights": Gate(
        "request", edits(oauth(allow_cors_preflight=True), loosen=(oauth(), oauth(allow_cors_preflight=True))), False
    ),
    "openid-connect": Gate("request", edits(openid(), other=openid("https://two.example.net"))),
    "verify-webhook": Gate(
        "request",
        edits(
            webhook(),
            other=webhook("gitlab"),
            off=webhook(enforce=False),
            replace_the_secret=(webhook(), webhook(secret="t")),
        ),
    ),
    "jwt-validation": Gate(
        "request",
        edits(
            jwt("https://idp/ https://other/", "shop web"),
            jwt("https://idp/", "shop web"),
            jwt("https://third/", "shop web"),
            require_an_audience=(jwt(), jwt(audiences="shop")),
            accept_any_audience=(jwt(audiences="shop"), jwt()),
            accept_another_audience=(jwt(audiences="shop"), jwt(audiences="shop web")),
            accept_another_algorithm=(jwt(), jwt(algorithms=["RS256", "ES256"])),
            replace_the_keys=(jwt(), jwt(keys="https://other/jwks")),
        ),
    ),
    "basic-auth": Gate(
        "request",
        edits(
            password("a:password", "b:password"),
            password("a:password"),
            password("c:password"),
            password("a:password", "b:password", enforce=False),
            replace_the_password=(password("a:password"), password("a:other-password")),
        ),
    ),
    "deny": Gate("request", edits(o.action("deny", status_code=403))),
    # whether a policy answers before the modules of its route is not documented
    "answer": Gate("request", edits(o.action("custom-response", status_code=200, body="a")), is_exact=False),
    "redirect": Gate("request", edits(o.action("redirect", to="https://new.example.net")), False),
    "rate-limit": Gate(
        "request",
        edits(o.action("rate-limit", name="a", algorithm="sliding_window", capacity=5, rate="60s", bucket_key=[])),
    ),
}

FORWARDS: Final[Mapping[str, Gate]] = {
    "forward-internal": Gate(
        "request",
        edits(
            o.action("forward-internal", url="https://open.internal"),
            o.action("forward-internal", url="https://gated.internal"),
            off=o.action("forward-internal", url="https://gone.internal"),
            continue_if_offline=(
                o.action("forward-internal", url="https://gone.internal"),
                o.action("forward-internal", url="https://gone.internal", on_error="continue"),
            ),
            continue_if_an_agent_is_offline=(
                o.action("forward-internal", url="https://agent.internal"),
                o.action("forward-internal", url="https://agent.internal", on_error="continue"),
            ),
        ),
    ),
}

RESTRICTION: Final = Gate(
    "endpoints",
    network_edits(
        lambda *names: o.restriction("endpoints", *(f"ipp_{name}" for name in names)),
        o.restriction("endpoints", "ipp_offices", enforced=False),
    ),
)
TERMINATION: Final = Gate(
    "tls_termination",
    {
        "terminate upstream": (
            {"enabled": True, "terminate_at": "edge", "min_version": "1.2"},
            {"enabled": True, "terminate_at": "upstream", "min_version": None},
        ),
        "terminate at the edge": (
            {"enabled": True, "terminate_at": "upstream", "min_version": None},
            {"enabled": True, "terminate_at": "edge", "min_version": "1.2"},
        ),
    },
)
NONE: Final = "none"  # in the place of a module that is there by default
BACKEND: Final = Gate(
    "backend",
    {
        "add": (NONE, o.backend_module("bkdsc_0")),
        "remove": (o.backend_module("bkdsc_0"), NONE),
        "replace": (o.backend_module("bkdsc_0"), o.backend_module("bkdtg_0")),
        "disable": (o.backend_module("bkdsc_0"), o.backend_module("bkdsc_0", **OFF)),
        "enable": (o.backend_module("bkdsc_0", **OFF), o.backend_module("bkdsc_0")),
    },
)
POOL: Final = Gate(
    "pool",
    {
        "add a member with the same gate": (None, restrict("office")),
        "add a member with another gate": (None, restrict("home")),
        "add a member that denies": (None, o.action("deny")),
        "add an open member": (None, o.action("log", metadata={"a": "b"})),
        "remove a member with another gate": (restrict("home"), None),
        "remove an open member": (o.action("log", metadata={"a": "b"}), None),
    },
)
PLANE: Final = Gate(
    "plane",
    network_edits(
        lambda *names: {"policies": [f"ipp_{name}" for name in names], "enforced": True},
        {"policies": ["ipp_offices"], "enforced": False},
    ),
)
LIST: Final = Gate(
    "acl",
    edits(
        ["bind:*.example.com"],
        ["bind:app.example.com"],
        ["bind:*.example.net"],
        allow_all_with_a_star=(["bind:app.example.com"], ["*"]),
        allow_all_binds=(["bind:app.example.com"], ["bind:*"]),
        restrict_a_star=(["*"], ["bind:app.example.com"]),
        replace_the_empty_list_by_a_star=([], ["*"]),
        replace_a_star_by_all_binds=(["*"], ["bind:*"]),
        add_a_host=(["bind:app.example.com"], ["bind:app.example.com", "bind:b.example.com"]),
        add_a_host_below_a_wildcard=(["bind:*.example.com"], ["bind:*.example.com", "bind:b.example.com"]),
    ),
)
OPEN_LIST: Final = Gate(
    "acl",
    {
        "add an address": (["bind:app.example.com"], ["bind:app.example.com", "bind:1.tcp.example.com:20000"]),
        "add the address of a host": (
            ["bind:1.tcp.example.com"],
            ["bind:1.tcp.example.com", "bind:1.tcp.example.com:20000"],
        ),
        "add labels": (["bind:app.example.com"], ["bind:app.example.com", "bind:service=*"]),
    },
    is_exact=False,
)


# --- ways in ----------------------------------------------------------------------------------------------------------


class Way(NamedTuple):
    """A way in: what builds its account, and its gates by name."""

    build: Callable[[Parts], o.Account]
    gates: Mapping[str, Gate]


_NAMES: Final = re.compile(r"\w+")
_OWN: Final = frozenset({"e", "t", "c", "a", "ep_0", "cr_0"})  # ids and names of what is the way in
HOST, ADDRESS = "app.example.com", "1.tcp.example.com:20000"


def make_account(parts: Parts, **kinds: Any) -> o.Account:
    """An account with the IP policies, authorities and backends that gates refer to, and with the objects `kinds`."""
    if parts.get("endpoints"):
        kinds["IPRestriction"] = [parts["endpoints"]]
    if parts.get("is_absent"):
        kinds = {
            kind: [body for body in bodies if not _OWN & {*map(str, body.values())}] for kind, bodies in kinds.items()
        }
    mentioned = {name for name in _NAMES.findall(repr(kinds)) if name.startswith("ipp_")}
    networks = {name: rules for name, rules in NETWORKS.items() if f"ipp_{name}" in mentioned}
    shared: dict[str, Any] = {
        "IPPolicy": [o.ip_policy(f"ipp_{name}") for name in networks],
        "IPPolicyRule": [o.ip_rule(f"ipp_{name}", *rule) for name, rules in networks.items() for rule in rules],
        "CertificateAuthority": [*map(o.authority, ("ca_0", "ca_1", "ca_2"))],
        "StaticBackend": [o.static("bkdsc_0")],
        "TunnelGroupBackend": [o.tunnel_group("bkdtg_0", online=True, service="a")],
    }
    return o.account(**shared, **kinds)


def _modules(parts: Parts, *names: str) -> dict[str, Any]:
    found = {"backend": o.backend_module("bkdsc_0")} | {name: parts[name] for name in names if parts.get(name)}
    return {name: value for name, value in found.items() if value != NONE}


def _policy(parts: Parts, *end: o.Object) -> str:
    """The traffic policy of an endpoint: its gates, and what ends the request."""
    phases: dict[str, list[o.Object]] = {
        f"on_{name}": [o.rule(action) for action in parts[place]]
        for name, place in (("tcp_connect", "connect"), ("http_request", "request"))
        if parts.get(place)
    }
    phase = "on_http_request" if end and end[0]["type"] == "custom-response" else "on_tcp_connect"
    phases.setdefault(phase, []).extend(map(o.rule, end))
    return o.policy_text(**{name: rules for name, rules in phases.items() if rules})


def build_https_edge(parts: Parts) -> o.Account:
    names = "ip_restriction", "oauth", "oidc", "saml", "webhook_verification", "user_agent_filter", "backend"
    policy: Parts = {"traffic_policy": o.policy_module(_policy(parts))} if parts.get("request") else {}
    edge = o.https_edge("e", HOST, mutual_tls=parts.get("mutual_tls"))
    return make_account(
        parts, HTTPSEdge=[edge], HTTPSEdgeRoute=[o.route("e", "/", **_modules(parts, *names), **policy)]
    )


def build_tls_edge(parts: Parts) -> o.Account:
    names = "ip_restriction", "mutual_tls", "backend"
    termination = parts.get("tls_termination") or {"enabled": True, "terminate_at": "edge", "min_version": "1.2"}
    policy: Parts = {"traffic_policy": o.policy_module(_policy(parts))} if parts.get("connect") else {}
    edge = o.tls_edge("t", HOST, tls_termination=termination, **_modules(parts, *names), **policy)
    return make_account(parts, TLSEdge=[edge])


def build_tcp_edge(parts: Parts) -> o.Account:
    policy: Parts = {"traffic_policy": o.policy_module(_policy(parts))} if parts.get("connect") else {}
    edge = o.tcp_edge("c", ADDRESS, **_modules(parts, "ip_restriction", "backend"), **policy)
    return make_account(parts, TCPEdge=[edge])


ANSWER: Final = o.action("custom-response", status_code=200, body="hello")


def build_cloud(url: str, **more: Any) -> Callable[[Parts], o.Account]:
    """A cloud endpoint that answers or forwards, in a pool if there is another member."""

    def build(parts: Parts) -> o.Account:
        scheme = url.partition("://")[0]
        target = f"{scheme}://db.internal{':5432' if scheme == 'tcp' else ''}"
        end = ANSWER if scheme in ("http", "https") else o.action("forward-internal", url=target)
        endpoints = [o.cloud(url, _policy(parts, end), id="ep_0", **more)]
        if "pool" in parts:
            endpoints[0]["pooling_enabled"] = True
        if member := parts.get("pool"):
            policy = o.on_request(o.rule(member), o.rule(ANSWER))
            endpoints.append(o.cloud(url, policy, id="ep_1", pooling_enabled=True))
        gated = o.on_request(o.rule(password("t:password")), o.rule(ANSWER))
        clouds = [
            o.cloud("https://open.internal", o.on_request(o.rule(ANSWER)), id="ep_2"),
            o.cloud("https://gated.internal", gated, id="ep_3"),
        ]
        agents = [
            o.agent_endpoint("agent", "https://agent.internal", o.on_request(o.rule(o.action("deny")))),
            o.agent_endpoint("db", target),
        ]
        return make_account(parts, CloudEndpoint=[*endpoints, *clouds], AgentEndpoint=agents)

    return build


def build_agent(url: str, **more: Any) -> Callable[[Parts], o.Account]:
    def build(parts: Parts) -> o.Account:
        has_policy = parts.get("connect") or parts.get("request")
        return make_account(
            parts, AgentEndpoint=[o.agent_endpoint("a", url, _policy(parts) if has_policy else "", **more)]
        )

    return build


def build_tunnel(url: str) -> Callable[[Parts], o.Account]:
    def build(parts: Parts) -> o.Account:
        return make_account(parts, AgentTunnel=[o.agent_tunnel("t", url, url.partition("://")[0])])

    return build


def build_plane(plane: str) -> Callable[[Parts], o.Account]:
    def build(parts: Parts) -> o.Account:
        found = parts.get("plane")
        rules = [o.restriction(plane, *found["policies"], enforced=found["enforced"])] if found else []
        return make_account(parts, IPRestriction=rules)

    return build


def build_credential(parts: Parts) -> o.Account:
    return make_account(parts, TunnelCredential=[o.credential("cr_0", *(parts.get("acl") or ()))])


HTTP: Final = {**AT_CONNECTION, **AT_REQUEST}
HTTPS: Final = {**AT_CONNECTION, **AT_HANDSHAKE, **AT_REQUEST}
ACCOUNT: Final = {"restriction of endpoints": RESTRICTION}

WAYS: Final[Mapping[str, Way]] = {
    "HTTPS edge": Way(build_https_edge, {**MODULES, **AT_REQUEST, "backend": BACKEND, **ACCOUNT}),
    "TLS edge": Way(
        build_tls_edge,
        {
            **{name: MODULES[name] for name in ("IP restriction", "mutual TLS")},
            **AT_CONNECTION,
            "TLS termination": TERMINATION,
            "backend": BACKEND,
            **ACCOUNT,
        },
    ),
    "TCP edge": Way(
        build_tcp_edge, {"IP restriction": MODULES["IP restriction"], **AT_CONNECTION, "backend": BACKEND, **ACCOUNT}
    ),
    "cloud endpoint": Way(build_cloud(f"https://{HOST}"), {**HTTPS, **FORWARDS, "pool": POOL, **ACCOUNT}),
    "cloud endpoint of http": Way(build_cloud(f"http://{HOST}"), {**HTTP, **ACCOUNT}),
    "cloud endpoint of tls": Way(build_cloud(f"tls://{HOST}"), {**AT_CONNECTION, **AT_HANDSHAKE, **ACCOUNT}),
    "cloud endpoint of tcp": Way(build_cloud(f"tcp://{ADDRESS}"), {**AT_CONNECTION, **ACCOUNT}),
    "internal cloud endpoint": Way(build_cloud("https://app.internal"), {**AT_REQUEST, **ACCOUNT}),
    "Kubernetes cloud endpoint": Way(build_cloud("http://shop.default", bindings=["kubernetes"]), {**HTTP, **ACCOUNT}),
    "agent endpoint": Way(build_agent(f"https://{HOST}"), {**HTTPS, **ACCOUNT}),
    "agent endpoint of tls": Way(build_agent(f"tls://{HOST}"), {**AT_CONNECTION, **AT_HANDSHAKE, **ACCOUNT}),
    "agent endpoint of tcp": Way(build_agent(f"tcp://{ADDRESS}"), {**AT_CONNECTION, **ACCOUNT}),
    "internal agent endpoint": Way(build_agent("https://app.internal"), {**AT_REQUEST, **ACCOUNT}),
    "agent tunnel": Way(build_tunnel(f"https://{HOST}"), ACCOUNT),
    "agent tunnel of http": Way(build_tunnel(f"http://{HOST}"), ACCOUNT),
    "agent tunnel of tcp": Way(build_tunnel(f"tcp://{ADDRESS}"), ACCOUNT),
    "management API": Way(build_plane("api"), {"IP restriction": PLANE}),
    "dashboard": Way(build_plane("dashboard"), {"IP restriction": PLANE}),
    "sessions of agents": Way(build_plane("agent"), {"IP restriction": PLANE}),
    "credential": Way(build_credential, {"allow list": LIST, "allow list, addresses and labels": OPEN_LIST}),
}
"""Every way in by name."""


def every_edit() -> Iterator[Edit]:
    """Each way in × gate × direction that exists, and each way in that is added and removed."""
    for name, way in WAYS.items():
        if name not in PLANES:
            without, with_ = way.build({"is_absent": True}), way.build({})
            yield Edit((name, "way in", "add"), without, with_)
            yield Edit((name, "way in", "remove"), with_, without)
        for gate_name, gate in way.gates.items():
            for direction, (before, after) in gate.edits.items():
                states = (way.build(place_gates({gate.place: value})) for value in (before, after))
                yield Edit((name, gate_name, direction), *states)


PLANES: Final = frozenset({"management API", "dashboard", "sessions of agents"})
_PHASES: Final = frozenset({"connect", "request"})
_NO_PARTS: Final[Parts] = {}


def place_gates(values: Parts, others: Parts = _NO_PARTS) -> Parts:
    """The parts of a way in with these gates; those of `others` come first in a phase."""
    parts = {place: [value] if place in _PHASES and value else value for place, value in values.items()}
    for place, value in others.items():
        if place in _PHASES and value:
            parts[place] = [value, *(parts.get(place) or ())]
        elif value and place not in parts:
            parts[place] = value
    if "pool" in values:  # the other member of a pool has a gate
        parts["request"] = [restrict("office"), *(parts.get("request") or ())]
    return parts


def random_edit(r: Random, *, exact: bool = False) -> tuple[o.Account, o.Account]:
    """An account with one way in and one or two gates, before and after an edit of one gate."""
    names = [name for name in WAYS if not (exact and name.startswith("Kubernetes"))]
    way = WAYS[r.choice(names)]
    gates = [gate for gate in way.gates.values() if gate.is_exact or not exact]
    gate, second = r.choice(gates), r.choice(gates)
    before, after = (
        r.choice([*gate.edits.values()]) if r.random() < 0.6 else (r.choice(gate.values), r.choice(gate.values))
    )
    others = {second.place: r.choice(second.values)} if second.place != gate.place or second is not gate else {}
    if r.random() < 0.4 or _excludes(gate, second):
        others = {}
    return way.build(place_gates({gate.place: before}, others)), way.build(place_gates({gate.place: after}, others))


_EXCLUSIVE: Final = frozenset({"oauth", "oidc", "saml"})


def _excludes(gate: Gate, second: Gate) -> bool:
    """Whether two gates cannot be together: of one place that has one value, or two logins."""
    places = {gate.place, second.place}
    return gate is second or places <= _EXCLUSIVE or (gate.place == second.place and gate.place not in _PHASES)
