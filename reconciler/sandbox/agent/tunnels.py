"""Settings, addresses, permissions and JSON forms of the emulated agent's tunnels. `process` opens and closes them,
`endpoints` has the form of endpoints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from msgspec import Struct

from reconciler.sandbox.base import derive, vocabulary
from reconciler.sandbox.base.database import Document

_KEYS = frozenset(
    """
    name proto addr domain hostname subdomain remote_addr inspect metadata schemes bind_tls host_header basic_auth
    """.split()  # noqa: SIM905 - a paragraph is easier to read
)
_QUIET = {"count": 0, "rate1": 0, "rate5": 0, "rate15": 0, "p50": 0, "p90": 0, "p95": 0, "p99": 0}
METRICS: Document = {"conns": {**_QUIET, "gauge": 0}, "http": _QUIET}
_TYPES: dict[str, tuple[type, ...]] = {
    "inspect": (bool,),
    "addr": (str, int),
    "schemes": (list,),
    "basic_auth": (list, str),
    "bind_tls": (str, bool),
}


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


class Place(Struct, frozen=True):
    """The public address of a tunnel or endpoint."""

    scheme: str
    host: str
    port: int

    @property
    def hostport(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
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


def parse_settings(settings: Mapping[str, Any]) -> tuple[str, str, str]:
    """The name, protocol and upstream address in the settings of a tunnel. Raises AgentError for invalid settings."""
    for key, value in settings.items():
        if key not in _KEYS:
            raise settings_error(f"field {key} not found")
        types = _TYPES.get(key, (str,))
        if value is not None and (not isinstance(value, types) or (isinstance(value, bool) and bool not in types)):
            raise settings_error(f"field {key} has the wrong type")
    for key in ("name", "proto", "addr"):
        if not settings.get(key):
            raise settings_error(f"{key} is required")
    if settings["proto"] not in ("http", "tcp", "tls"):
        raise settings_error(f"unknown proto {settings['proto']!r}")
    return str(settings["name"]), str(settings["proto"]), str(settings["addr"])


def names_place(settings: Mapping[str, Any]) -> bool:
    """Whether the settings name the public address."""
    return any(settings.get(key) for key in ("domain", "hostname", "subdomain", "remote_addr"))


def upstream(proto: str, addr: str) -> str:
    """The upstream address in the agent's form: `http://localhost:8080`, `localhost:22` or `tls://localhost:443`."""
    where = addr if ":" in addr or not addr.isdecimal() else f"localhost:{addr}"
    return where if "://" in where or proto == "tcp" else f"{proto}://{where}"


def inspects(proto: str, settings: Mapping[str, Any], *, tls: bool = False) -> bool:
    """Whether the agent records requests: of http tunnels unless they say no. `tls`: of tls tunnels, too."""
    records = proto == "http" or (proto == "tls" and tls)
    return records and settings.get("inspect") is not False


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
        "labels": {},
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
