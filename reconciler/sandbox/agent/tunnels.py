"""Addresses, permissions and JSON forms of the emulated agent's tunnels. `process` opens and closes them,
`tunnel_settings` reads their settings, `endpoints` has the form of endpoints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from msgspec import Struct

from reconciler.sandbox.base import derive, vocabulary
from reconciler.sandbox.base.database import Document

_QUIET = {"count": 0, "rate1": 0, "rate5": 0, "rate15": 0, "p50": 0, "p90": 0, "p95": 0, "p99": 0}
METRICS: Document = {"conns": {**_QUIET, "gauge": 0}, "http": _QUIET}


class AgentError(Exception):
    """An error response of the agent: its error number, the HTTP status, the message and the details."""

    def __init__(self, number: int, status: int, msg: str, why: str) -> None:
        super().__init__(why)
        self.number = number
        self.status = status
        self.msg = msg


def settings_error(why: str) -> AgentError:
    return AgentError(102, 400, "invalid tunnel configuration", why)


def start_error(code: int, why: str) -> AgentError:
    return AgentError(103, 502, "failed to start tunnel", f"{why}\n\nERR_NGROK_{code}\n")


def not_connected() -> AgentError:
    # Clients compare this text, and then try again.
    why = "a successful ngrok tunnel session has not yet been established"
    return AgentError(104, 503, "the agent is not ready to start tunnels", why)


class Place(Struct, frozen=True):
    """The public address of a tunnel or endpoint; empty for a tunnel with labels, which has none."""

    scheme: str
    host: str
    port: int

    @property
    def hostport(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        if not self.scheme:
            return ""
        has_default_port = derive.DEFAULT_PORTS.get(self.scheme) == self.port
        return f"{self.scheme}://{self.host if has_default_port else self.hostport}"


class Opened(Struct, frozen=True):
    """A tunnel or endpoint at its public address, as the management API describes it."""

    name: str
    place: Place
    upstream: str
    upstream_proto: str = "http1"
    metadata: str = ""
    description: str = ""
    bindings: tuple[str, ...] = ("public",)
    pooling_enabled: bool = False
    traffic_policy: str = ""
    labels: Mapping[str, str] = {}


def names_place(settings: Mapping[str, Any]) -> bool:
    """Whether the settings name the public address."""
    return any(settings.get(key) for key in ("url", "domain", "hostname", "subdomain", "remote_addr"))


def upstream(proto: str, addr: str) -> str:
    """The upstream address in the agent's form: `http://localhost:8080`, `localhost:22` or `tls://localhost:443`."""
    where = addr if ":" in addr or not addr.isdecimal() else f"localhost:{addr}"
    return where if "://" in where or proto == "tcp" else f"{proto}://{where}"


def inspects(proto: str, settings: Mapping[str, Any], *, tls: bool = False) -> bool:
    """Whether the agent records requests: of http tunnels unless they say no. `tls`: of tls tunnels, too."""
    records = proto == "http" or (proto == "tls" and tls)
    return records and settings.get("inspect") is not False


def allows_labels(acl: Sequence[str], labels: Mapping[str, str]) -> bool:
    """Whether a credential with these ACL rules may start a tunnel with these labels."""
    bound = {rule.removeprefix("bind:") for rule in acl}
    return not acl or "*" in acl or bound >= {f"{name}={value}" for name, value in labels.items()}


def allows(acl: Sequence[str], place: Place, *, is_named: bool) -> bool:
    """Whether a credential with these ACL rules may bind the address. No rules, or the rule `*`, allow everything.

    `is_named`: the request names the address, so that it is not a random one.
    """
    if not acl or "*" in acl:
        return True
    bound = [rule.removeprefix("bind:") for rule in acl if "=" not in rule]
    return is_named and any(_covers(rule, place) for rule in bound)


def _covers(rule: str, place: Place) -> bool:
    """Whether a bind rule covers the address: by host, by host and port, or by a wildcard."""
    rule = vocabulary.hostport(rule) if ":" in rule else vocabulary.host(rule)
    if rule.startswith("*."):
        return place.host.endswith(rule[1:]) and place.host != rule[2:]
    return rule in (place.host, place.hostport)


# --- JSON forms of what runs ------------------------------------------------------------------------------------------


def describe_endpoint(opened: Opened, moment: str) -> Document:
    """The endpoint in the management API, without its references."""
    place = opened.place
    return {
        "created_at": moment,
        "updated_at": moment,
        "region": "us",
        "type": "ephemeral",
        "name": opened.name,
        "url": place.url,
        "public_url": place.url,
        "proto": place.scheme,
        "scheme": place.scheme,
        "host": place.host,
        "port": place.port,
        "hostport": place.hostport,
        "bindings": list(opened.bindings),
        "metadata": opened.metadata,
        "description": opened.description,
        "pooling_enabled": opened.pooling_enabled,
        "traffic_policy": opened.traffic_policy,
        "upstream_url": opened.upstream,
        "upstream_proto": opened.upstream_proto if place.scheme in ("http", "https") else "",
    }


def describe_tunnel(opened: Opened, moment: str) -> Document:
    """The tunnel in the management API, without its references."""
    place = opened.place
    return {
        "public_url": place.url,
        "started_at": moment,
        "proto": place.scheme,
        "region": "us",
        "metadata": opened.metadata,
        "labels": dict(opened.labels),
        "backends": [],
        "forwards_to": opened.upstream,
    }


def build_status(name: str, place: Place, upstream: str, *, inspect: bool) -> Document:
    """The tunnel in the agent's API."""
    return {
        "name": name,
        "uri": f"/api/tunnels/{quote(name, safe='')}",
        "public_url": place.url,
        "proto": place.scheme,
        "config": {"addr": upstream, "inspect": inspect},
        "metrics": METRICS,
    }
