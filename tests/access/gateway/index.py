"""An account by what a request needs of it: who serves a host, routes of an edge, rules of an IP policy, backends."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from tests.access.gateway.addresses import Rule, admits, parse_network
from tests.access.gateway.policies import CONNECT, REQUEST, compile_policy
from tests.access.gateway.servers import Account, Key, Server, find_servers
from tests.access.gateway.state import Gate, State, refuse


class Index:
    """One account, with networks that are parsed once."""

    def __init__(self, account: Account) -> None:
        self.account = account
        self.servers: dict[Key, list[Server]] = defaultdict(list)
        for server in find_servers(account):
            self.servers[server.binding, server.scheme, server.port, server.host].append(server)
        self.routes: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
        for route in account.get("HTTPSEdgeRoute", ()):
            self.routes[route["edge_id"]].append(route)
        self.rules: dict[str, list[Rule]] = {policy["id"]: [] for policy in account.get("IPPolicy", ())}
        for rule in account.get("IPPolicyRule", ()):
            network = Rule(parse_network(rule["cidr"]), rule["action"] == "allow")
            self.rules.setdefault(rule["ip_policy"]["id"], []).append(network)
        self.restrictions = {
            found["type"]: found for found in account.get("IPRestriction", ()) if found.get("enforced")
        }
        backends = (found for kind in account if kind.endswith("Backend") for found in account[kind])
        self.backends = {backend["id"]: backend for backend in backends}
        self.groups = {backend["id"] for backend in account.get("TunnelGroupBackend", ())}
        self.authorities = {found["ca_pem"].strip(): found["id"] for found in account.get("CertificateAuthority", ())}

    def restrict(self, policies: Iterable[Mapping[str, Any]], source: str, state: State) -> Gate:
        """The decision of IP policies on an address."""
        return self.restrict_by([policy["id"] for policy in policies], [], source, state)

    def restrict_by(self, policies: list[str], rules: list[Rule], source: str, state: State) -> Gate:
        """The decision of IP policies by their ids, together with further rules, on an address."""
        if not policies and not rules:
            state = state.touch("no-address-list")
        if any(policy not in self.rules for policy in policies):
            return state.doubts("deleted-ip-policy", "an IP policy of the gate does not exist")
        if admits([*rules, *(rule for policy in policies for rule in self.rules[policy])], source):
            return state
        return refuse(state.touch("form-of-refusal"), "the address is not allowed", 403, "3203")


def list_expressions(account: Account) -> frozenset[str]:
    """The keys of all expressions in the traffic policies of an account."""
    return frozenset(
        key
        for text, rewrites in _policy_texts(account)
        for key in compile_policy(text, (CONNECT, REQUEST)).expressions(rewrites)
    )


def _policy_texts(account: Account) -> Iterable[tuple[str, tuple[str, ...]]]:
    """Each traffic policy, once more behind the module of its route that writes headers."""
    for objects in account.values():
        for found in objects:
            policy = found.get("traffic_policy")
            if text := policy.get("value") if isinstance(policy, Mapping) else policy:
                yield text, ()
                if headers := list_header_rewrites(found):
                    yield text, headers


def list_header_rewrites(route: Mapping[str, Any]) -> tuple[str, ...]:
    """The module of a route that writes headers, as one of the actions that rewrite a request."""
    module = find_module(route, "request_headers")
    return () if module is None else (json.dumps(module, sort_keys=True),)


def find_module(holder: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    """A module that is set and not disabled."""
    module: Mapping[str, Any] | None = holder.get(name)
    return module if module is not None and module.get("enabled") is not False else None
