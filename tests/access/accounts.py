"""Random accounts that are valid on the platform, random edits of them, and requests on the borders of two states.

An account is built from a blueprint: a value for each slot, such as a route or the rules of an IP policy. An edit draws
some slots again; `build` takes what the platform accepts (unique hostports, one login per edge), so that each state of
an edit is valid. Everything is drawn from a `random.Random`, so that a seed names an account: `random_pair(Random(7))`.
With `exact`, there are no expressions, and nothing that the documentation leaves open.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final

from hypothesis import strategies as st

from tests.access import objects as o
from tests.access.gateway.servers import split_url

Spec = Any
Blueprint = dict[str, Spec]

EDGE_HOSTS: Final = ("app.example.com", "*.example.com", "a.app.example.com", "b.example.com")
ENDPOINT_HOSTS: Final = ("shop.example.org", "*.example.org", "a.shop.example.org")
ANY_HOSTS: Final = (*EDGE_HOSTS, *ENDPOINT_HOSTS, "example.org", "*.app.example.com")
ADDRESSES: Final = ("1.tcp.example.com:20000", "2.tcp.example.com:20001")
INTERNAL: Final = ("https://api.internal", "https://*.internal", "https://b.internal", "tcp://db.internal:5432")
PATHS: Final = ("/", "/a", "/a/", "/admin", "/admins", "/admin/x")
V4: Final = (
    *("192.0.2.0/24", "192.0.2.0/25", "192.0.2.128/25", "192.0.2.64/26", "192.0.2.0/23", "203.0.113.7/32"),
    *("198.51.100.0/24", "0.0.0.0/0", "0.0.0.0/1", "128.0.0.0/1"),
)
MAPPED: Final = ("::ffff:0:0/96", "::ffff:c000:200/120")
NETWORKS: Final = (*V4, "::/0", "2001:db8::/32", "2001:db8:1::/48", "2001:db8::1/128")
EXPRESSIONS: Final = ("req.method == 'POST'", "'x-team' in req.headers", "conn.geo.country_code == 'DE'")
IP_POLICIES: Final = ("ipp_0", "ipp_1", "ipp_2")
AUTHORITIES: Final = ("ca_0", "ca_1")
ISSUER: Final = "https://login.example.com"
METADATA: Final = (
    '<EntityDescriptor xmlns="urn:oasis:names:tc:SAML:2.0:metadata" entityID="https://idp.example.net">'
    '<IDPSSODescriptor protocolSupportEnumeration="urn:oasis:names:tc:SAML:2.0:protocol"/></EntityDescriptor>'
)
TERMINATING: Final = frozenset({"deny", "custom-response", "close-connection", "forward-internal", "redirect"})
LOGINS: Final = frozenset({"oauth", "openid-connect", "basic-auth", "jwt-validation"})

# --- modules and policies ---------------------------------------------------------------------------------------------


def list_networks(exact: bool) -> Sequence[str]:
    return NETWORKS if exact else (*NETWORKS, *MAPPED)


def flip(r: Random, chance: float) -> bool:
    return r.random() < chance


def some(r: Random, options: Sequence[str], least: int = 0, most: int = 2) -> list[str]:
    return r.sample(options, r.randint(least, min(most, len(options))))


def draw_ip_module(r: Random, exact: bool) -> Spec:
    return o.ip_module(*some(r, IP_POLICIES, 1), enabled=not flip(r, 0.1)) if flip(r, 0.4) else None


def draw_mutual_tls(r: Random, exact: bool) -> Spec:
    return o.mutual_tls(*some(r, AUTHORITIES, 1), enabled=not flip(r, 0.1)) if flip(r, 0.25) else None


def draw_oauth(r: Random, exact: bool, settings: dict[str, Any]) -> Spec:
    lists: list[tuple[str, dict[str, list[str]]]] = [
        ("google", {}),
        ("google", {"email_addresses": ["ada@example.com", "eve@example.net"][: r.randint(1, 2)]}),
        ("google", {"email_domains": ["example.com", "example.net"][: r.randint(1, 2)]}),
        ("github", {}),
        ("github", {"teams": ["acme/ops", "acme/dev"][: r.randint(1, 2)]}),
        ("github", {"organizations": ["acme"]}),
    ]
    if not exact:
        lists += [
            ("google", {"email_addresses": ["ada@example.com"], "email_domains": ["example.net"]}),
            ("github", {"teams": ["acme/ops"], "organizations": ["acme"]}),
            ("github", {"teams": ["acme/ops"], "email_domains": ["example.com"]}),
        ]
    provider, narrow = r.choice(lists)
    return o.oauth_module(provider, module=settings, **narrow)


def draw_login(r: Random, exact: bool) -> dict[str, Spec]:
    """At most one login module, by its name."""
    if not flip(r, 0.35):
        return {}
    settings = {"options_passthrough": flip(r, 0.25), "enabled": not flip(r, 0.1)}
    match r.randrange(4):
        case 0:
            return {"oidc": o.oidc_module(ISSUER, **settings)}
        case 1:
            return {"saml": o.saml_module(METADATA, *some(r, ("staff", "root")), **settings)}
        case _:
            return {"oauth": draw_oauth(r, exact, settings)}


def draw_restrict_ips(r: Random, exact: bool) -> o.Object:
    config: dict[str, Any] = {"enforce": not flip(r, 0.1), "allow": some(r, list_networks(exact), 1, 3)}
    if flip(r, 0.3):
        config["deny"] = some(r, list_networks(exact), 1)
    if flip(r, 0.2):
        config["ip_policies"] = some(r, IP_POLICIES, 1)
    return o.action("restrict-ips", **config)


def draw_terminate_tls(r: Random, exact: bool) -> o.Object:
    config: dict[str, Any] = {"mutual_tls_certificate_authorities": some(r, AUTHORITIES, 1)}
    if not exact and flip(r, 0.3):
        config["mutual_tls_verification_strategy"] = r.choice(("request", "require-any", "require-and-verify"))
    return o.action("terminate-tls", **config)


def draw_jwt(r: Random) -> o.Object:
    return o.action(
        "jwt-validation",
        issuer={"allow_list": [{"value": value} for value in some(r, ("https://idp/", "https://other/"), 1)]},
        audience={"allow_list": [{"value": "shop"}]} if flip(r, 0.5) else None,
        http={"tokens": [{"type": "jwt", "method": "header", "name": "authorization", "prefix": "Bearer "}]},
        jws={"allowed_algorithms": ["RS256"], "keys": {"sources": {"additional_jkus": ["https://idp/jwks"]}}},
    )


def draw_forward(r: Random, exact: bool, scheme: str) -> o.Object:
    targets = {"tcp": ["tcp://db.internal:5432"]}.get(scheme, ["https://api.internal", "https://b.internal"])
    if not exact and flip(r, 0.05):
        targets = ["https://${req.host}.internal"]
    return o.action("forward-internal", url=r.choice(targets), on_error="continue" if flip(r, 0.2) else "halt")


def may_forward(exact: bool, scheme: str) -> bool:
    """Whether there are internal endpoints of the same scheme: from http to https is an open question."""
    return not (exact and scheme == "http")


def draw_request_action(r: Random, exact: bool, scheme: str, place: str) -> o.Object:
    """An action of on_http_request. `place`: "route" answers nothing itself if `exact`, "internal" tests no address."""
    is_quiet = exact and place == "route"
    choices: list[Callable[[], o.Object]] = [
        lambda: o.action("deny", status_code=403),
        lambda: o.action("log", metadata={"a": "b"}),
        lambda: o.action("rate-limit", name="all", algorithm="sliding_window", capacity=5, rate="60s", bucket_key=[]),
        lambda: o.action("verify-webhook", provider="github", secret="s", enforce=not flip(r, 0.2)),
        lambda: o.action("basic-auth", credentials=some(r, ("a:password", "b:password"), 1), enforce=not flip(r, 0.2)),
        lambda: draw_jwt(r),
        lambda: o.action("oauth", provider=r.choice(("google", "github"))),
        lambda: o.action("openid-connect", issuer_url=ISSUER, client_id="app", client_secret="s"),
    ]
    if not exact:  # a webhook may be signed by what its URL or its headers contain
        choices.append(lambda: o.action("add-headers", headers={"x-team": "a"}))
        choices.append(lambda: o.action("url-rewrite", **{"from": "/a", "to": "/b"}))
    if not (exact and place == "internal"):
        choices += [lambda: draw_restrict_ips(r, exact)] * 3
    if not is_quiet:
        choices.append(lambda: o.action("custom-response", status_code=200, body="hello"))
        choices += [lambda: draw_forward(r, exact, scheme)] * (2 if may_forward(exact, scheme) else 0)
        choices += [] if exact else [lambda: o.action("redirect", to="https://new.example.net")]
    return r.choice(choices)()


def draw_end(r: Random, exact: bool, scheme: str) -> o.Object:
    ends = [o.action("custom-response", status_code=200, body="hello")] * 2 + [o.action("deny")]
    return r.choice([*ends, *([draw_forward(r, exact, scheme)] if may_forward(exact, scheme) else [])])


def trim(rules: list[o.Object]) -> list[o.Object]:
    """Rules without a second login, and without those behind a rule that always ends the request."""
    found: list[o.Object] = []
    for rule in rules:
        (action,) = rule["actions"]
        if action["type"] in LOGINS and any(other["actions"][0]["type"] in LOGINS for other in found):
            continue
        found.append(rule)
        is_optional = action["config"].get("on_error") == "continue"
        if action["type"] in TERMINATING and not rule["expressions"] and not is_optional:
            break
    return found


def draw_when(r: Random, exact: bool) -> list[str]:
    return [] if exact or flip(r, 0.5) else some(r, EXPRESSIONS, 1)


def draw_request_rules(r: Random, exact: bool, scheme: str, place: str) -> list[o.Object]:
    actions = [draw_request_action(r, exact, scheme, place) for _ in range(r.choice((0, 1, 1, 2, 3)))]
    return [o.rule(action, when=draw_when(r, exact)) for action in actions]


def draw_connect_rules(r: Random, exact: bool, scheme: str, place: str = "endpoint") -> list[o.Object]:
    choices: list[Callable[[], o.Object]] = []
    choices += [] if exact and place == "internal" else [lambda: draw_restrict_ips(r, exact)]
    choices += [lambda: draw_terminate_tls(r, exact)] if scheme in ("https", "tls") else []
    choices += [lambda: draw_forward(r, exact, scheme)] if scheme == "tcp" and not (exact and place == "edge") else []
    choices += [lambda: o.action("deny")]
    return [o.rule(r.choice(choices)(), when=draw_when(r, exact)) for _ in range(r.choice((0, 0, 1, 2)))]


def draw_policy(r: Random, exact: bool, scheme: str, place: str) -> str:
    """The policy of an endpoint. One of a cloud endpoint always ends the request."""
    phases: dict[str, list[o.Object]] = {}
    is_http = scheme in ("http", "https")
    if not (is_http and place == "internal"):
        phases["on_tcp_connect"] = trim(draw_connect_rules(r, exact, scheme, place))
    if is_http:
        rules = draw_request_rules(r, exact, scheme, place)
        phases["on_http_request"] = trim([*rules, o.rule(draw_end(r, exact, scheme))])
    elif scheme == "tcp":
        end = draw_forward(r, exact, scheme) if place != "internal" else o.action("deny")
        phases["on_tcp_connect"] = trim([*phases.get("on_tcp_connect", []), o.rule(end)])
    return o.policy_text(**{phase: rules for phase, rules in phases.items() if rules})


def draw_agent_policy(r: Random, exact: bool, scheme: str, place: str) -> str:
    """The policy of an agent's endpoint, which may fall through to the upstream."""
    if scheme not in ("http", "https"):
        return o.on_connect(*trim(draw_connect_rules(r, exact, scheme, place)))
    phases = {"on_http_request": trim(draw_request_rules(r, exact, scheme, place))}
    if place != "internal" and flip(r, 0.3):
        phases["on_tcp_connect"] = trim(draw_connect_rules(r, exact, scheme, place))
    return o.policy_text(**{phase: rules for phase, rules in phases.items() if rules})


# --- slots ------------------------------------------------------------------------------------------------------------


def draw_ip_policy(r: Random, exact: bool) -> Spec:
    return {cidr: "deny" if flip(r, 0.25) else "allow" for cidr in some(r, list_networks(exact), 0, 3)}


def draw_restriction(r: Random, exact: bool) -> Spec:
    if flip(r, 0.5):
        return None
    return {"policies": some(r, IP_POLICIES, 1), "enforced": flip(r, 0.6)}


def draw_failover(r: Random, exact: bool) -> Spec:
    return {"children": some(r, ("bkdtg_0", "bkdhr_0", "bkdsc_0"), 1)}


def draw_weighted(r: Random, exact: bool) -> Spec:
    children = some(r, ("bkdtg_0", "bkdhr_0", "bkdsc_0"), 1)
    return {"weights": {child: r.randint(1 if exact else 0, 2) for child in children}}


def draw_backend(r: Random, exact: bool) -> Spec:
    if flip(r, 0.1):
        return None
    identity = r.choice(("bkdtg_0", "bkdhr_0", "bkdsc_0", "bkdfo_0", "bkdwd_0", *(() if exact else ("bkdtg_1",))))
    return o.backend_module(identity, enabled=not flip(r, 0.05))


def draw_edge(r: Random, exact: bool) -> Spec:
    hosts = some(r, EDGE_HOSTS if exact or flip(r, 0.6) else ANY_HOSTS, 1, 3)
    return {"hosts": hosts, "mutual_tls": draw_mutual_tls(r, exact)}


def draw_route(r: Random, exact: bool) -> Spec:
    if flip(r, 0.25):
        return None
    webhook = o.webhook_module("github", enabled=not flip(r, 0.1)) if flip(r, 0.1) else None
    agents = {"enabled": True, "allow": [], "deny": ["bot"]} if flip(r, 0.1) else None
    headers = {"enabled": True, "add": {"x-team": "a"}, "remove": []} if not exact and flip(r, 0.05) else None
    policy = None
    if flip(r, 0.3):
        rules = trim(draw_request_rules(r, exact, "https", "route"))
        policy = o.policy_module(o.on_request(*rules), enabled=not flip(r, 0.1))
    return {
        "match": r.choice(PATHS),
        "match_type": "exact_path" if flip(r, 0.3) else "path_prefix",
        "backend": draw_backend(r, exact),
        "ip_restriction": draw_ip_module(r, exact),
        "webhook_verification": webhook,
        "user_agent_filter": agents,
        "request_headers": headers,
        "traffic_policy": policy,
        "login": draw_login(r, exact),
    }


def draw_tls_edge(r: Random, exact: bool) -> Spec:
    is_upstream, is_default = flip(r, 0.25), not exact and flip(r, 0.2)
    terminate_at, version = ("upstream", None) if is_upstream else ("edge", "1.2")
    termination = {"enabled": True, "terminate_at": terminate_at, "min_version": version}
    policy = o.policy_module(o.on_connect(*trim(draw_connect_rules(r, exact, "tls")))) if flip(r, 0.3) else None
    return {
        "hosts": some(r, EDGE_HOSTS if exact else ANY_HOSTS, 1, 2),
        "backend": draw_backend(r, exact),
        "ip_restriction": draw_ip_module(r, exact),
        "mutual_tls": draw_mutual_tls(r, exact),
        "tls_termination": None if is_default else termination,
        "traffic_policy": policy,
    }


def draw_tcp_edge(r: Random, exact: bool) -> Spec:
    rules = draw_connect_rules(r, exact, "tcp", "edge")
    policy = o.policy_module(o.on_connect(*trim(rules))) if flip(r, 0.3) else None
    location = {"hostports": some(r, ADDRESSES, 1), "backend": draw_backend(r, exact)}
    return location | {"ip_restriction": draw_ip_module(r, exact), "traffic_policy": policy}


def draw_url(r: Random, exact: bool) -> str:
    hosts = ENDPOINT_HOSTS if exact or flip(r, 0.6) else ANY_HOSTS
    scheme = r.choice(("https", "https", "https", "http", "tls", "tcp"))
    return f"tcp://{r.choice(ADDRESSES)}" if scheme == "tcp" else f"{scheme}://{r.choice(hosts)}"


def draw_endpoint(r: Random, exact: bool, *, is_cloud: bool, url: str) -> Spec:
    scheme, host, _ = split_url(url)
    place = "internal" if host.endswith(".internal") else "endpoint"
    draw = draw_policy if is_cloud else draw_agent_policy
    return {"url": url, "policy": draw(r, exact, scheme, place), "pooling_enabled": flip(r, 0.5)}


def draw_public_cloud(r: Random, exact: bool) -> Spec:
    return draw_endpoint(r, exact, is_cloud=True, url=draw_url(r, exact)) if flip(r, 0.7) else None


def draw_public_agent(r: Random, exact: bool) -> Spec:
    return draw_endpoint(r, exact, is_cloud=False, url=draw_url(r, exact)) if flip(r, 0.5) else None


def draw_internal_cloud(r: Random, exact: bool) -> Spec:
    return draw_endpoint(r, exact, is_cloud=True, url=r.choice(INTERNAL)) if flip(r, 0.7) else None


def draw_internal_agent(r: Random, exact: bool) -> Spec:
    return draw_endpoint(r, exact, is_cloud=False, url=r.choice(INTERNAL)) if flip(r, 0.5) else None


def draw_kubernetes(r: Random, exact: bool) -> Spec:
    if exact:  # whether a restriction of endpoints applies to it is not documented
        return None
    return draw_endpoint(r, exact, is_cloud=True, url="http://shop.default") if flip(r, 0.2) else None


def draw_tunnel(r: Random, exact: bool) -> Spec:
    return {"url": draw_url(r, exact)} if flip(r, 0.2) else None


def draw_credential(r: Random, exact: bool) -> Spec:
    rules = ("bind:*.example.com", "bind:app.example.com", "bind:*.internal", "*")
    others = ("bind:1.tcp.example.com:20000", "bind:service=*", "bind:example.org")
    return {"acl": some(r, rules if exact else (*rules, *others), 0, 2)}


Draw = Callable[[Random, bool], Spec]
ROUTES: Final = ("e0", "e0", "e0", "e0", "e1", "e1")
SLOTS: Final[dict[str, Draw]] = {
    **dict.fromkeys(IP_POLICIES, draw_ip_policy),
    **dict.fromkeys(("api", "dashboard", "agent", "endpoints"), draw_restriction),
    "bkdfo_0": draw_failover,
    "bkdwd_0": draw_weighted,
    "e0": draw_edge,
    "e1": draw_edge,
    **{f"{edge}/{number}": draw_route for number, edge in enumerate(ROUTES)},
    "t0": draw_tls_edge,
    "c0": draw_tcp_edge,
    **dict.fromkeys(("ep_0", "ep_1", "ep_2"), draw_public_cloud),
    **dict.fromkeys(("agent 0", "agent 1"), draw_public_agent),
    **dict.fromkeys(("ep_i0", "ep_i1"), draw_internal_cloud),
    "agent i0": draw_internal_agent,
    "ep_k0": draw_kubernetes,
    "tunnel 0": draw_tunnel,
    **dict.fromkeys(("cr_0", "cr_1"), draw_credential),
}
"""How each slot of a blueprint is drawn. None is an object that is not in the account."""

PRESENT: Final = frozenset({*IP_POLICIES, "bkdfo_0", "bkdwd_0"})
"""Slots of objects to which others refer: never deleted."""


def draw_blueprint(r: Random, exact: bool = False) -> Blueprint:
    return {slot: draw(r, exact) for slot, draw in SLOTS.items()}


def edit(r: Random, blueprint: Blueprint, exact: bool = False) -> Blueprint:
    """Changes, deletes or adds one to three objects; a change is often one of a single field."""
    edited = dict(blueprint)
    for slot in r.sample([*SLOTS], r.choice((1, 1, 1, 2, 3))):
        old, new = edited[slot], SLOTS[slot](r, exact)
        if slot not in PRESENT and flip(r, 0.15):
            new = None
        elif old and new and flip(r, 0.6):
            new = change_one(r, slot, old, new)
        edited[slot] = new
    return edited


def change_one(r: Random, slot: str, old: Spec, new: Spec) -> Spec:
    """The old value with one part of the new one: a field, or a rule of an IP policy that is changed or deleted."""
    if slot in IP_POLICIES:
        cidr = r.choice([*old, *new])
        rules = {name: action for name, action in old.items() if name != cidr}
        return rules if flip(r, 0.5) else rules | {cidr: "deny" if old.get(cidr) == "allow" else "allow"}
    if "url" in old and old["url"].partition("://")[0] != new["url"].partition("://")[0]:
        return new
    name = r.choice([*old])
    return old | {name: new[name]}


# --- accounts ---------------------------------------------------------------------------------------------------------


class _Builder:
    """The objects of an account, and the hostports that they use."""

    def __init__(self, blueprint: Blueprint) -> None:
        self.blueprint = blueprint
        self.held: set[tuple[str, int]] = set()
        self.kinds: dict[str, list[o.Object]] = {}

    def add(self, kind: str, *found: o.Object) -> None:
        self.kinds.setdefault(kind, []).extend(found)

    def hold(self, places: Sequence[tuple[str, int]]) -> list[str]:
        """The hostports that nothing else uses, which are used from now on."""
        free = [place for place in dict.fromkeys(places) if place not in self.held]
        self.held |= {*free, *((host, 80) for host, port in free if port == 443)}
        return [f"{host}:{port}" for host, port in free]

    def build(self) -> o.Account:
        self.add_shared()
        self.add_edges()
        self.add_endpoints()
        return o.account(**self.kinds)

    def add_shared(self) -> None:
        spec = self.blueprint
        for policy in IP_POLICIES:
            self.add("IPPolicy", o.ip_policy(policy))
            self.add("IPPolicyRule", *(o.ip_rule(policy, cidr, what) for cidr, what in (spec[policy] or {}).items()))
        for plane in ("api", "dashboard", "agent", "endpoints"):
            if found := spec[plane]:
                self.add("IPRestriction", o.restriction(plane, *found["policies"], enforced=found["enforced"]))
        self.add("CertificateAuthority", *map(o.authority, AUTHORITIES))
        self.add("TunnelGroupBackend", o.tunnel_group("bkdtg_0", service="a"), o.tunnel_group("bkdtg_1"))
        self.add("HTTPResponseBackend", o.http_response("bkdhr_0"))
        self.add("StaticBackend", o.static("bkdsc_0"))
        self.add("FailoverBackend", o.failover("bkdfo_0", *spec["bkdfo_0"]["children"]))
        self.add("WeightedBackend", o.traffic_split("bkdwd_0", **spec["bkdwd_0"]["weights"]))
        self.add("ReservedDomain", *map(o.domain, ANY_HOSTS))
        self.add("ReservedAddress", *map(o.address, ADDRESSES))
        for identity in ("cr_0", "cr_1"):
            if found := spec[identity]:
                self.add("TunnelCredential", o.credential(identity, *found["acl"]))

    def add_edges(self) -> None:
        for edge in ("e0", "e1"):
            if found := self.blueprint[edge]:
                hostports = self.hold([(host, 443) for host in found["hosts"]])
                self.add("HTTPSEdge", o.https_edge(edge, mutual_tls=found["mutual_tls"]) | {"hostports": hostports})
                self.add_routes(edge)
        if found := self.blueprint["t0"]:
            modules = {name: value for name, value in found.items() if name != "hosts"}
            if (found["tls_termination"] or {}).get("terminate_at") == "upstream":
                modules |= {"mutual_tls": None, "traffic_policy": None}
            hostports = self.hold([(host, 443) for host in found["hosts"]])
            self.add("TLSEdge", o.tls_edge("t0", **modules) | {"hostports": hostports})
        if found := self.blueprint["c0"]:
            hostports = self.hold(
                [(host, int(port)) for host, _, port in (h.partition(":") for h in found["hostports"])]
            )
            self.add("TCPEdge", o.tcp_edge("c0") | found | {"hostports": hostports})

    def add_routes(self, edge: str) -> None:
        """Routes with different paths, of which one has a login."""
        paths: set[str] = set()
        has_login = False
        for slot in (slot for slot in SLOTS if slot.startswith(f"{edge}/")):
            found = self.blueprint[slot]
            if not found or found["match"] in paths:
                continue
            paths.add(found["match"])
            login = {} if has_login else found["login"]
            has_login = has_login or bool(login)
            modules = {name: value for name, value in found.items() if name not in ("match", "match_type", "login")}
            self.add("HTTPSEdgeRoute", o.route(edge, found["match"], found["match_type"], id=slot, **modules, **login))

    def add_endpoints(self) -> None:
        """Endpoints of URLs that no edge holds: a pool if all of them allow that, else the first one."""
        by_place: dict[tuple[str, int], list[tuple[str, Spec]]] = {}
        for slot, found in self.blueprint.items():
            if found and "url" in found:
                _, host, port = split_url(found["url"])
                by_place.setdefault((host, port), []).append((slot, found))
        for place, claims in by_place.items():
            if place in self.held:
                continue
            (slot, first), *others = claims
            pool = [(slot, first)]
            if first.get("pooling_enabled"):
                same = [(name, claim) for name, claim in others if claim["url"] == first["url"]]
                pool += [(name, claim) for name, claim in same if claim.get("pooling_enabled")]
            for name, claim in pool:
                self.add_endpoint(name, claim)

    def add_endpoint(self, slot: str, found: Spec) -> None:
        url = found["url"]
        if slot.startswith("tunnel"):
            self.add("AgentTunnel", o.agent_tunnel(slot, url, url.partition("://")[0]))
        elif slot.startswith("agent"):
            pools = {"pooling_enabled": found["pooling_enabled"]}
            self.add("AgentEndpoint", o.agent_endpoint(slot, url, found["policy"], **pools))
        else:
            more = {"pooling_enabled": found["pooling_enabled"], "id": slot}
            if slot == "ep_k0":
                more["bindings"] = ["kubernetes"]
            self.add("CloudEndpoint", o.cloud(url, found["policy"], **more))


def build(blueprint: Blueprint) -> o.Account:
    """The account of a blueprint, without what the platform would refuse."""
    return _Builder(blueprint).build()


def random_account(r: Random, exact: bool = False) -> o.Account:
    return build(draw_blueprint(r, exact))


def random_blueprints(r: Random, exact: bool = False) -> tuple[Blueprint, Blueprint]:
    blueprint = draw_blueprint(r, exact)
    return blueprint, edit(r, blueprint, exact)


def random_pair(r: Random, exact: bool = False) -> tuple[o.Account, o.Account]:
    """An account before and after an edit."""
    before, after = random_blueprints(r, exact)
    return build(before), build(after)


def simplify(
    before: Blueprint, after: Blueprint, fails: Callable[[o.Account, o.Account], bool]
) -> tuple[o.Account, o.Account]:
    """The accounts of two blueprints for which `fails` is true, without the objects that have no part in it."""
    for slot in SLOTS:
        nothing: Spec = {} if slot in IP_POLICIES else None
        for simpler in (nothing, before[slot]):
            if slot in PRESENT - {*IP_POLICIES} and simpler is None:
                continue
            first, second = before | {slot: simpler}, after | {slot: simpler}
            if (first, second) != (before, after) and fails(build(first), build(second)):
                before, after = first, second
                break
    return build(before), build(after)


def seeds() -> st.SearchStrategy[Random]:
    """Sources of chance by their seed: fast, and shrunk by `simplify` instead of by hypothesis."""
    return st.integers(0, 2**32 - 1).map(Random)


def accounts(exact: bool = False) -> st.SearchStrategy[o.Account]:
    return seeds().map(lambda r: random_account(r, exact))


def edits(exact: bool = False) -> st.SearchStrategy[tuple[o.Account, o.Account]]:
    """Accounts before and after an edit."""
    return seeds().map(lambda r: random_pair(r, exact))
