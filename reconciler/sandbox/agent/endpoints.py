"""Definitions, URLs and JSON form of the emulated agent's endpoints. `process` opens, updates and closes them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlsplit

from msgspec import Struct, to_builtins

from reconciler.sandbox.agent.tunnels import METRICS, Opened, Place, settings_error, start_error, upstream
from reconciler.sandbox.base import derive, vocabulary
from reconciler.sandbox.base.database import Document

_ANSWERED = frozenset({"uri", "metrics"})  # a client may send an answer back: the agent ignores these keys
_TYPES: dict[str, tuple[type, ...]] = {
    "name": (str,),
    "url": (str,),
    "upstream": (dict,),
    "bindings": (list,),
    "pooling_enabled": (bool,),
    "inspect": (bool,),
    "traffic_policy": (str, dict),
    "description": (str,),
    "metadata": (str,),
    "agent_tls_termination": (dict,),
}
_UPSTREAM_TYPES: dict[str, tuple[type, ...]] = {"url": (str, int), "protocol": (str,), "proxy_protocol": (str, int)}
_SCHEMES = ("http", "https", "tcp", "tls")


class Url(Struct, frozen=True):
    """The URL of a definition. Without a host, the platform assigns one."""

    scheme: str
    host: str = ""
    port: int = 0


class Definition(Struct, frozen=True):
    """The definition of an endpoint, complete and in normal form."""

    name: str
    url: Url
    upstream: str
    protocol: str
    proxy_protocol: str
    bindings: tuple[str, ...]
    pooling_enabled: bool | None
    inspect: bool | None
    traffic_policy: str
    description: str
    metadata: str

    @property
    def is_named(self) -> bool:
        """Whether the definition names the public address."""
        return bool(self.url.host)

    def open_at(self, place: Place) -> Opened:
        return Opened(
            self.name,
            place,
            self.upstream,
            upstream_proto=self.protocol,
            metadata=self.metadata,
            description=self.description,
            bindings=self.bindings,
            pooling_enabled=self.pooling_enabled is True,
            traffic_policy=self.traffic_policy,
        )

    def to_json(self) -> Document:
        """A body that has this definition, as `parse_definition` reads it."""
        url = self.url
        where = {"url": self.upstream, "protocol": self.protocol, "proxy_protocol": self.proxy_protocol}
        host = f"{url.host}:{url.port}" if url.host else ""
        plain = ("name", "pooling_enabled", "inspect", "traffic_policy", "description", "metadata")
        return {
            **{key: to_builtins(getattr(self, key)) for key in plain},
            "bindings": list(self.bindings),
            "upstream": where,
            "url": f"{url.scheme}://{host}",
        }


def parse_definition(body: Mapping[str, Any]) -> Definition:
    """The definition in a body. Raises AgentError for an invalid one."""
    settings = _check_keys({key: value for key, value in body.items() if key not in _ANSWERED}, _TYPES, "")
    name, where = settings.get("name"), settings.get("upstream")
    if not name:
        raise settings_error("name is required")
    where = _check_keys(where or {}, _UPSTREAM_TYPES, "upstream.")
    if where.get("url") in (None, ""):
        raise settings_error("upstream.url is required")
    protocol, proxy = where.get("protocol") or "http1", str(where.get("proxy_protocol") or "")
    if protocol not in ("http1", "http2"):
        raise settings_error(f"upstream.protocol must be http1 or http2, not {protocol!r}")
    if proxy not in ("", "1", "2"):
        raise settings_error(f"upstream.proxy_protocol must be 1 or 2, not {proxy!r}")
    url = parse_url(settings.get("url") or "")
    return Definition(
        name=name,
        url=url,
        upstream=_parse_upstream(url.scheme, str(where["url"])),
        protocol=protocol,
        proxy_protocol=proxy,
        bindings=_parse_bindings(url, settings.get("bindings") or ()),
        pooling_enabled=settings.get("pooling_enabled"),
        inspect=settings.get("inspect"),
        traffic_policy=parse_policy(settings.get("traffic_policy") or ""),
        description=settings.get("description") or "",
        metadata=settings.get("metadata") or "",
    )


def _check_keys(settings: Mapping[str, Any], types: Mapping[str, tuple[type, ...]], above: str) -> Mapping[str, Any]:
    for key, value in settings.items():
        if key not in types:
            raise settings_error(f"field {above}{key} not found")
        if value is not None and (not isinstance(value, types[key]) or isinstance(value, bool) > (bool in types[key])):
            raise settings_error(f"field {above}{key} has the wrong type")
    return settings


def parse_url(text: str) -> Url:
    """A full URL, a host, a scheme with or without `://`, or nothing, which is a random https URL."""
    scheme, separator, rest = text.strip().partition("://")
    if not separator:
        scheme, rest = _infer_scheme(rest or text.strip()), text.strip()
    scheme = scheme.lower()
    if scheme not in _SCHEMES:
        raise start_error(332, f"{scheme!r} is not a protocol of endpoints. Protocols: {', '.join(_SCHEMES)}.")
    if not rest:
        return Url(scheme)
    if rest.rstrip("/") != rest and "/" not in rest.rstrip("/"):
        raise start_error(9038, f"The URL must not end with a slash: {text!r}.")
    if any(mark in rest for mark in "/@?#"):
        raise start_error(9037, f"The URL must not have a user, path or query: {text!r}.")
    parts = urlsplit(f"//{rest}")
    try:
        host, port = vocabulary.host(parts.hostname or ""), parts.port
    except ValueError:
        host, port = vocabulary.host(rest.rpartition(":")[0]), 0
    if port is None:
        port = derive.DEFAULT_PORTS.get(scheme, 0)
    if not 0 < port < 65536:
        raise start_error(9030, f"The port must be a number from 1 to 65535: {text!r}.")
    if not vocabulary.is_hostport(f"{host.removeprefix('*.')}:{port}"):
        raise settings_error(f"{text!r} is not a URL")
    return Url(scheme, host, port)


def _infer_scheme(text: str) -> str:
    """The scheme of a URL without one: by the port, which only tcp must have."""
    port = text.rpartition(":")[2] if ":" in text else ""
    return {"": "https", "443": "https", "80": "http"}.get(port, "tcp")


def _parse_upstream(scheme: str, text: str) -> str:
    proto = "http" if scheme in ("http", "https") else scheme
    given, separator, rest = text.strip().partition("://")
    if separator and given == "tcp" and proto == "http":
        raise settings_error("specifies a URL with an unsupported scheme: tcp")
    if separator and not rest:
        ports = {"https": "443", "tls": "443"}
        text = f"{given}://localhost:{ports.get(given, '80')}"
    return upstream(proto, text.strip())


def _parse_bindings(url: Url, bindings: Sequence[Any]) -> tuple[str, ...]:
    """The binding, inferred from the host unless it is given."""
    is_internal = url.host.endswith(".internal")
    if not bindings:
        return ("internal",) if is_internal else ("public",)
    if len(bindings) > 1 or bindings[0] not in vocabulary.BINDINGS:
        raise settings_error(f"bindings must be one of {', '.join(vocabulary.BINDINGS)}")
    if (bindings[0] == "internal") is not is_internal:
        raise start_error(9029, f"The binding internal is for hosts below .internal, and for these only: {url.host!r}.")
    if bindings[0] == "kubernetes" and url.scheme == "https":
        raise start_error(9041, "The binding kubernetes is for the protocols http, tls and tcp.")
    if bindings[0] == "kubernetes" and url.host.count(".") != 1:
        raise start_error(9039, f"The host of the binding kubernetes is service.namespace, not {url.host!r}.")
    return (str(bindings[0]),)


def parse_policy(policy: str | Mapping[str, Any]) -> str:
    """The text of a traffic policy. Raises AgentError for an invalid one."""
    text = policy if isinstance(policy, str) else json.dumps(policy)
    wrong = vocabulary.wrong_policy(text) if text.strip() else None
    if wrong is not None:
        raise start_error(2201, f"The traffic policy is invalid: {wrong}.")
    return text


def check_unchanged(parsed: Definition, place: Place, bindings: Sequence[str], *, pooling: bool) -> None:
    """Raises AgentError if a definition would change what an endpoint keeps as long as it runs.

    A URL without a host is unchanged if its scheme is.
    """
    url = parsed.url
    is_same = (url.scheme, url.host or place.host, url.port or place.port) == (place.scheme, place.host, place.port)
    if not is_same:
        raise settings_error("url cannot be changed while the endpoint runs")
    if parsed.bindings != tuple(bindings):
        raise settings_error("bindings cannot be changed while the endpoint runs")
    if (parsed.pooling_enabled is True) is not pooling:
        raise settings_error("pooling_enabled cannot be changed while the endpoint runs")


def build_status(parsed: Definition, place: Place, *, tls_inspected: bool) -> Document:
    """The endpoint in the agent's API."""
    records = place.scheme in ("http", "https") or (place.scheme == "tls" and tls_inspected)
    where: Document = {"url": parsed.upstream, "protocol": parsed.protocol}
    if parsed.proxy_protocol:
        where["proxy_protocol"] = parsed.proxy_protocol
    return {
        "name": parsed.name,
        "uri": f"/api/endpoints/{quote(parsed.name, safe='')}",
        "url": place.url,
        "upstream": where,
        "bindings": list(parsed.bindings),
        "pooling_enabled": parsed.pooling_enabled is True,
        "inspect": records and parsed.inspect is not False,
        "traffic_policy": parsed.traffic_policy,
        "description": parsed.description,
        "metadata": parsed.metadata,
        "metrics": METRICS,
    }


def shorten(status: Document) -> Document:
    """The endpoint as the examples of the agent's documentation show it."""
    hidden = ("bindings", "description", "metadata", *([] if status["traffic_policy"] else ["traffic_policy"]))
    where = {"url": status["upstream"]["url"], "protocol": "https"}
    return {key: value for key, value in status.items() if key not in hidden} | {"upstream": where}
