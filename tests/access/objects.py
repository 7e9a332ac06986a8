"""Builders of live objects in the JSON form of the platform's lists, and of accounts from them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

Object = dict[str, Any]
Account = dict[str, list[Object]]

ROUTE_MODULES = (
    *("backend", "ip_restriction", "saml", "oidc", "oauth", "webhook_verification", "user_agent_filter"),
    *("circuit_breaker", "request_headers", "response_headers", "compression", "websocket_tcp_converter"),
    "traffic_policy",
)


def account(**kinds: Sequence[Object]) -> Account:
    """An account of these objects by kind, with each route also embedded in its edge."""
    edges = [edge | {"routes": []} for edge in kinds.get("HTTPSEdge", ())]
    for edge in edges:
        edge["routes"] = [found for found in kinds.get("HTTPSEdgeRoute", ()) if found["edge_id"] == edge["id"]]
    return {kind: list(objects) for kind, objects in kinds.items()} | ({"HTTPSEdge": edges} if edges else {})


def refs(*ids: str) -> list[Object]:
    return [{"id": identity, "uri": f"https://api.example.com/{identity}"} for identity in ids]


def policy_text(**phases: Sequence[Mapping[str, Any]]) -> str:
    return json.dumps(phases)


def action(name: str, /, **config: Any) -> Object:
    return {"type": name, "config": config}


def rule(*actions: Object, when: Sequence[str] = ()) -> Object:
    """A rule of a traffic policy; `when` are its expressions."""
    return {"expressions": list(when), "actions": list(actions)}


def on_request(*rules: Object) -> str:
    return policy_text(on_http_request=rules)


def on_connect(*rules: Object) -> str:
    return policy_text(on_tcp_connect=rules)


# --- modules ----------------------------------------------------------------------------------------------------------


def backend_module(identity: str, **more: Any) -> Object:
    return {"enabled": True, "backend": refs(identity)[0]} | more


def ip_module(*policies: str, **more: Any) -> Object:
    return {"enabled": True, "ip_policies": refs(*policies)} | more


def mutual_tls(*authorities: str, **more: Any) -> Object:
    return {"enabled": True, "certificate_authorities": refs(*authorities)} | more


def policy_module(value: str, **more: Any) -> Object:
    return {"enabled": True, "value": value} | more


def webhook_module(provider: str, secret: str = "s", **more: Any) -> Object:
    return {"enabled": True, "provider": provider, "secret": secret} | more


def oauth_module(provider: str, *, module: Mapping[str, Any] = {}, **lists: Sequence[str]) -> Object:
    """`lists`: email_addresses, email_domains, teams, organizations; `module`: other fields of the module."""
    empty = {"client_id": "", "client_secret": "", "scopes": [], "email_addresses": [], "email_domains": []}
    names = ("github", "facebook", "microsoft", "google", "linkedin", "gitlab", "twitch", "amazon")
    providers: Object = dict.fromkeys(names)
    providers[provider] = empty | ({"teams": [], "organizations": []} if provider == "github" else {}) | lists
    return {"enabled": True, "options_passthrough": False, "provider": providers} | dict(module)


def oidc_module(issuer: str, **more: Any) -> Object:
    login = {"enabled": True, "options_passthrough": False}
    return login | {"issuer": issuer, "client_id": "app", "client_secret": "s", "scopes": []} | more


def saml_module(metadata: str, *groups: str, **more: Any) -> Object:
    login = {"enabled": True, "options_passthrough": False}
    return login | {"idp_metadata": metadata, "authorized_groups": list(groups)} | more


# --- objects ----------------------------------------------------------------------------------------------------------


def https_edge(identity: str, *hosts: str, **modules: Any) -> Object:
    hostports = [f"{host}:443" for host in hosts]
    return {"id": identity, "hostports": hostports, "mutual_tls": None, "tls_termination": None} | modules


def route(edge: str, match: str, match_type: str = "path_prefix", **modules: Any) -> Object:
    identity = modules.pop("id", f"edghtsrt_{edge}_{match}")
    location = {"id": identity, "edge_id": edge, "match_type": match_type, "match": match}
    return location | dict.fromkeys(ROUTE_MODULES) | modules


def tls_edge(identity: str, *hosts: str, **modules: Any) -> Object:
    empty = dict.fromkeys(("backend", "ip_restriction", "mutual_tls", "tls_termination", "traffic_policy"))
    return {"id": identity, "hostports": [f"{host}:443" for host in hosts]} | empty | modules


def tcp_edge(identity: str, *hostports: str, **modules: Any) -> Object:
    empty = dict.fromkeys(("backend", "ip_restriction", "traffic_policy"))
    return {"id": identity, "hostports": list(hostports)} | empty | modules


def cloud(url: str, policy: str, **more: Any) -> Object:
    binding = "internal" if ".internal" in url else "public"
    fields = {"id": f"ep_{url}", "type": "cloud", "url": url, "traffic_policy": policy, "bindings": [binding]}
    return fields | {"pooling_enabled": False} | more


def agent_endpoint(name: str, url: str, policy: str = "", **more: Any) -> Object:
    binding = "internal" if ".internal" in url else "public"
    fields = {"name": name, "url": url, "traffic_policy": policy, "bindings": [binding], "pooling_enabled": False}
    return fields | {"upstream": {"url": "http://localhost:8080"}} | more


def agent_tunnel(name: str, public_url: str, proto: str = "https") -> Object:
    return {"name": name, "public_url": public_url, "proto": proto, "config": {"addr": "http://localhost:8080"}}


def ip_policy(identity: str) -> Object:
    return {"id": identity, "description": ""}


def ip_rule(policy: str, cidr: str, decision: str = "allow", **more: Any) -> Object:
    fields = {"id": f"ipr_{policy}_{cidr}", "ip_policy": refs(policy)[0], "cidr": cidr, "action": decision}
    return fields | more


def restriction(plane: str, *policies: str, enforced: bool = True) -> Object:
    return {"id": f"ipx_{plane}", "type": plane, "enforced": enforced, "ip_policies": refs(*policies)}


def tunnel_group(identity: str, *, online: bool = False, **labels: str) -> Object:
    return {"id": identity, "labels": labels, "tunnels": refs("tn_1") if online else []}


def http_response(identity: str, status: int = 200) -> Object:
    return {"id": identity, "status_code": status, "headers": None, "body": "hello"}


def static(identity: str, address: str = "origin.example.com:443") -> Object:
    return {"id": identity, "address": address, "tls": {"enabled": True}}


def failover(identity: str, *children: str) -> Object:
    return {"id": identity, "backends": list(children)}


def traffic_split(identity: str, **weights: int) -> Object:
    return {"id": identity, "backends": weights}


def credential(identity: str, *acl: str, owner: str | None = None) -> Object:
    return {"id": identity, "acl": list(acl), "owner_id": owner, "token": None}


def authority(identity: str, pem: str = "") -> Object:
    return {"id": identity, "ca_pem": pem or f"PEM of {identity}", "subject_common_name": identity}


def domain(name: str) -> Object:
    return {"id": f"rd_{name}", "domain": name}


def address(addr: str) -> Object:
    return {"id": f"ra_{addr}", "addr": addr, "region": "us"}
