"""Requests on the borders of two states of an account: where the answer of one state may end."""

from __future__ import annotations

import json
import marshal
from collections.abc import Iterable, Iterator
from functools import lru_cache
from random import Random
from typing import Any

from hypothesis import strategies as st

from tests.access import objects as o
from tests.access.accounts import seeds
from tests.access.gateway.addresses import parse_network
from tests.access.gateway.gateway import Gateway
from tests.access.gateway.messages import (
    BindRequest,
    Identity,
    Plane,
    PlaneRequest,
    Request,
    Signature,
    Token,
)
from tests.access.gateway.servers import Key

OUTSIDE = ("198.51.99.1", "2001:db9::1")
BROWSER = ("user-agent", "browser")
PREFLIGHT = (BROWSER, ("origin", "https://other.example.net"), ("access-control-request-method", "PUT"))
METHODS = (
    ("GET", (BROWSER,)),
    ("GET", (BROWSER,)),
    ("POST", (BROWSER,)),
    ("OPTIONS", (BROWSER,)),
    ("OPTIONS", PREFLIGHT),
)
UNKNOWN: tuple[Key, list[str]] = (("public", "https", 443, "unknown.example.net"), ["/"])
PLANES: tuple[Plane, ...] = ("api", "dashboard", "agent", "endpoints")


class Borders:
    """The values on the borders of two states, by the parts of a request. `draw` combines them, and prefers places and
    networks that differ between the states.

    The user agent is always that of a browser: a client chooses it, so that filters of it are no gates.
    """

    def __init__(self, before: o.Account, after: o.Account) -> None:
        self.states = (Gateway(before), Gateway(after))
        accounts = (before, after)
        keys = dict.fromkeys(key for state in self.states for key in state.index.servers)
        self.served = [(key, border_paths(self.states, key)) for key in keys]
        self.changed = [place for place in self.served if _differs(self.states, place[0])]
        networks = [{*_networks(account)} for account in accounts]
        sources = _border_sources(networks[0] | networks[1])
        self.sources = [*OUTSIDE, *sources, *_map(sources)]
        self.changed_sources = _border_sources(networks[0] ^ networks[1])
        self.certificates = [None, *_ids(accounts, _AUTHORITIES)]
        settings = [value for account in accounts for value in every_setting(account)]
        self.identities = [None, *dict.fromkeys(user for value in settings for user in border_identities(value))]
        self.signatures = [None, *dict.fromkeys([Signature("github", "s"), *_signatures(settings)])]
        self.basics = [None, *dict.fromkeys(pair for value in settings for pair in value.get("credentials", ()))]
        self.tokens = [None, *dict.fromkeys(token for value in settings for token in border_tokens(value))]
        self.expressions = sorted({key for state in self.states for key in state.expressions()})
        self.credentials = [*_ids(accounts, _CREDENTIALS), "cr_gone"]
        self.rules = [*dict.fromkeys(rule for account in accounts for rule in border_rules(account))]

    def draw(self, r: Random) -> Request:
        places = self.changed if self.changed and r.random() < 0.5 else self.served
        (binding, scheme, port, host), paths = r.choice(places or [UNKNOWN])
        sources = self.changed_sources if self.changed_sources and r.random() < 0.5 else self.sources
        token = r.choice(self.tokens)
        method, headers = r.choice(METHODS)
        return Request(
            scheme,
            draw_host(r, host),
            port,
            r.choice(paths),
            method,
            r.choice(sources),
            certificate=r.choice(self.certificates),
            identity=r.choice(self.identities),
            webhook_signed_by=r.choice(self.signatures),
            basic=r.choice(self.basics),
            tokens=(token,) if token else (),
            headers=headers,
            binding=binding,
            assignments={key: r.random() < 0.5 for key in self.expressions},
        )

    def draw_bind(self, r: Random) -> BindRequest:
        scheme, host, port = r.choice(self.rules)
        return BindRequest(r.choice(self.credentials), scheme, host, port)

    def draw_plane(self, r: Random) -> PlaneRequest:
        return PlaneRequest(r.choice(PLANES), r.choice(self.changed_sources or self.sources))


def draw_host(r: Random, host: str) -> str:
    """A host that a name serves, mostly; else one a label below or above."""
    is_wildcard, name = host.startswith("*."), host.removeprefix("*.")
    if r.random() < 0.8:
        return f"x.{name}" if is_wildcard else name
    above = name if is_wildcard else name.partition(".")[2] or name
    return r.choice((f"y.x.{name}", f"x.{name}", above))


def _differs(states: Iterable[Gateway], key: Key) -> bool:
    """Whether other objects or routes serve a place in another state."""
    servers = [state.index.servers.get(key, []) for state in states]
    served = [
        [(server.object, state.index.routes.get(server.id)) for server in found]
        for state, found in zip(states, servers, strict=True)
    ]
    return any(found != served[0] for found in served)


def border_paths(states: Iterable[Gateway], key: Key) -> list[str]:
    """Each path of a route of the edges that serve a place, below it, with a letter more, and with one less."""
    routes = [
        route
        for state in states
        for server in state.index.servers.get(key, [])
        for route in state.index.routes.get(server.id, [])
    ]
    matches = dict.fromkeys(route["match"] for route in routes)
    near = [path for match in matches for path in (match, f"{match.rstrip('/')}/x", f"{match}x", match[:-1] or "/")]
    return [*dict.fromkeys([*near, "/"])]


def _networks(account: o.Account) -> Iterator[str]:
    """Each network in the rules of IP policies and in traffic policies, with its policy and decision as text."""
    for rule in account.get("IPPolicyRule", ()):
        yield f"{rule['cidr']} {rule['ip_policy']['id']} {rule['action']}"
    for value in every_setting(account):
        yield from (f"{cidr} {name}" for name in ("allow", "deny") for cidr in value.get(name) or () if "/" in cidr)


def _border_sources(networks: Iterable[str]) -> list[str]:
    """The first and last address of each network, and their neighbors."""
    cidrs = sorted({network.partition(" ")[0] for network in networks})
    return [*dict.fromkeys(address for cidr in cidrs for address in border_addresses(cidr))]


def _map(sources: list[str]) -> list[str]:
    """Some of the IPv4 addresses as IPv4-mapped addresses."""
    return [f"::ffff:{source}" for source in sources[::3] if "." in source]


@lru_cache(4096)
def border_addresses(cidr: str) -> tuple[str, ...]:
    network = parse_network(cidr)
    first, last, most = int(network[0]), int(network[-1]), 2**network.max_prefixlen
    kind = type(network[0])
    return tuple(str(kind(number)) for number in (first - 1, first, last, last + 1) if 0 <= number < most)


def border_identities(settings: o.Object) -> Iterator[Identity]:
    """Users at the border of a login: in each list and in none, with a domain that only looks alike."""
    application = settings.get("client_id") or ""
    for provider, lists in (settings.get("provider") or {}).items() if _is_object(settings.get("provider")) else ():
        if lists is None:
            continue
        own = lists.get("client_id") or ""
        emails = ["other@example.info", *lists["email_addresses"]]
        emails += [f"user@{start}{domain}" for domain in lists["email_domains"] for start in ("", "sub.", "evil-")]
        yield from (Identity(provider, email=email, application=own) for email in emails)
        yield from (Identity(provider, teams=frozenset({team}), application=own) for team in lists.get("teams") or ())
        for name in lists.get("organizations") or ():
            yield Identity(provider, organizations=frozenset({name}), application=own)
    if isinstance(settings.get("provider"), str) and "secret" not in settings:
        yield Identity(settings["provider"], email="other@example.info", application=application)
    if issuer := settings.get("issuer_url") or (isinstance(settings.get("issuer"), str) and settings["issuer"]):
        yield Identity(issuer, "oidc", application=application)
    if "idp_metadata" in settings:
        yield Identity(settings["idp_metadata"], "saml")
        for group in settings.get("authorized_groups") or ():
            yield Identity(settings["idp_metadata"], "saml", groups=frozenset({group}))


def border_tokens(settings: o.Object) -> Iterator[Token]:
    """Tokens that the action jwt-validation admits, and those with another audience and issuer."""
    if "jws" not in settings:
        return
    audiences = [allowed["value"] for allowed in (settings.get("audience") or {}).get("allow_list") or ()]
    for name in (token["name"] for token in settings["http"]["tokens"]):
        for keys in settings["jws"]["keys"]["sources"]["additional_jkus"]:
            for issuer in [*(allowed["value"] for allowed in settings["issuer"]["allow_list"]), "https://evil/"]:
                yield from (
                    Token(name, issuer, audience, keys, algorithm)
                    for audience in (*audiences, "other")
                    for algorithm in settings["jws"]["allowed_algorithms"]
                )


def border_rules(account: o.Account) -> Iterator[tuple[str, str, int]]:
    """Scheme, host and port of each rule of a credential, of names below and above it, and of what is served."""
    yield from (("https", "other.example.net", 0), ("https", "", 0), ("tcp", "", 0))
    for kind in _CREDENTIALS:
        for found in account.get(kind, ()):
            for rule in (rule.removeprefix("bind:") for rule in found["acl"] if "=" not in rule and rule != "*"):
                host, _, port = rule.partition(":")
                if port:
                    yield from (("tcp", host, int(port)), ("tcp", host, int(port) + 1))
                    continue
                name = host.removeprefix("*.")
                yield from (("https", found_host, 0) for found_host in (name, f"x.{name}", f"*.{name}"))


_AUTHORITIES = ("CertificateAuthority",)
_CREDENTIALS = ("TunnelCredential", "SSHCredential")


def _ids(accounts: Iterable[o.Account], kinds: Iterable[str]) -> list[str]:
    found = (found["id"] for account in accounts for kind in kinds for found in account.get(kind, ()))
    return [*dict.fromkeys(found)]


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _signatures(settings: Iterable[o.Object]) -> Iterator[Signature]:
    for value in settings:
        if "secret" in value and isinstance(value.get("provider"), str):
            yield Signature(value["provider"].lower(), value["secret"])


def every_setting(account: o.Account) -> Iterator[o.Object]:
    """Each map in the modules and traffic policies of an account."""
    for kind in ("HTTPSEdgeRoute", "TLSEdge", "TCPEdge", "CloudEndpoint", "AgentEndpoint"):
        for found in account.get(kind, ()):
            yield from _settings_of(marshal.dumps(found))


@lru_cache(4096)
def _settings_of(body: bytes) -> tuple[o.Object, ...]:
    """The settings of an object in a form that is fast to compare: two states have most objects in common."""
    return tuple(_maps(marshal.loads(body)))  # noqa: S302 - written by our caller


def _maps(value: Any) -> Iterator[o.Object]:
    if isinstance(value, dict):
        yield value
        for name, inner in value.items():
            is_policy = name in ("value", "traffic_policy") and isinstance(inner, str) and inner.startswith("{")
            yield from _maps(json.loads(inner) if is_policy else inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _maps(inner)


def border_requests(before: o.Account, after: o.Account) -> st.SearchStrategy[Request]:
    """Requests on the borders of both states."""
    borders = Borders(before, after)
    return seeds().map(borders.draw)
