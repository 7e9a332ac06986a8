"""The settings of a tunnel, in version 2 of the agent's configuration and in its older API: types and rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from reconciler.sandbox.agent.endpoints import parse_policy, parse_url
from reconciler.sandbox.agent.tunnels import settings_error, start_error

_TEXT, _TEXTS, _FLAG, _NUMBER = (str,), (list,), (bool,), (int, float)
_Types = Mapping[str, "tuple[type, ...] | _Types"]  # of each key; a map of its own for an object
_TYPES: _Types = {
    **dict.fromkeys(("name", "proto", "url", "domain", "hostname", "subdomain", "remote_addr"), _TEXT),
    **dict.fromkeys(("description", "metadata", "host_header", "crt", "key", "mutual_tls_cas", "terminate_at"), _TEXT),
    **dict.fromkeys(("inspect", "compression", "websocket_tcp_converter"), _FLAG),
    **dict.fromkeys(("labels", "schemes"), _TEXTS),
    "addr": (str, int),
    "bind_tls": (str, bool),
    "basic_auth": (list, str),
    "proxy_proto": (str, int),
    "circuit_breaker": _NUMBER,
    "traffic_policy": (dict, str),
    "ip_restriction": dict.fromkeys(("allow_cidrs", "deny_cidrs"), _TEXTS),
    "oauth": {"provider": _TEXT, **dict.fromkeys(("allow_domains", "allow_emails", "scopes"), _TEXTS)},
    "oidc": {**dict.fromkeys(("issuer_url", "client_id", "client_secret"), _TEXT), "scopes": _TEXTS},
    "request_header": dict.fromkeys(("add", "remove"), _TEXTS),
    "response_header": dict.fromkeys(("add", "remove"), _TEXTS),
    "user_agent_filter": dict.fromkeys(("allow", "deny"), _TEXTS),
    "verify_webhook": dict.fromkeys(("provider", "secret"), _TEXT),
}
_PROTOCOLS = ("http", "tcp", "tls")
_BOTH = ("https", "http")


class Settings(Struct, frozen=True):
    """The settings of a tunnel: with a protocol, or with labels by which backends select it.

    `schemes` are those of a tunnel with the protocol http, https first.
    """

    name: str
    proto: str
    addr: str
    labels: Mapping[str, str]
    schemes: tuple[str, ...]
    traffic_policy: str
    metadata: str
    description: str


def parse_settings(settings: Mapping[str, Any]) -> Settings:
    """Raises AgentError for settings that are not valid."""
    _check_types(settings, _TYPES)
    labels, proto = _parse_labels(settings.get("labels") or ()), settings.get("proto") or ""
    for key in ("name", "addr") if labels else ("name", "proto", "addr"):
        if not settings.get(key):
            raise settings_error(f"{key} is required")
    if labels and proto:
        raise settings_error("a tunnel has either proto or labels")
    if proto and proto not in _PROTOCOLS:
        raise settings_error(f"invalid protocol name {proto!r}")
    _check_rules(proto, settings)
    return Settings(
        name=settings["name"],
        proto=proto,
        addr=str(settings["addr"]),
        labels=labels,
        schemes=_parse_schemes(settings) if proto == "http" else (),
        traffic_policy=parse_policy(settings.get("traffic_policy") or ""),
        metadata=settings.get("metadata") or "",
        description=settings.get("description") or "",
    )


def _check_types(settings: Mapping[str, Any], types: _Types, above: str = "") -> None:
    for key, value in settings.items():
        wanted = types.get(key)
        if wanted is None:
            raise settings_error(f"field {above}{key} not found")
        if value is None:
            continue
        if isinstance(wanted, Mapping):
            if not isinstance(value, dict):
                raise settings_error(f"field {above}{key} has the wrong type")
            _check_types(value, wanted, f"{above}{key}.")
        elif not isinstance(value, wanted) or isinstance(value, bool) > (bool in wanted):
            raise settings_error(f"field {above}{key} has the wrong type")
        elif isinstance(value, list) and not all(isinstance(item, str) for item in value):
            raise settings_error(f"field {above}{key} must be a list of texts")


def _parse_labels(labels: Any) -> dict[str, str]:
    """The labels of a list of `name=value`."""
    pairs = [label.partition("=") for label in labels]
    if not all(name and equals for name, equals, _ in pairs):
        raise settings_error("labels must be a list of name=value")
    return {name: value for name, _, value in pairs}


def _parse_schemes(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """The schemes, which older settings name with `bind_tls`."""
    older = {"True": ("https",), "true": ("https",), "False": ("http",), "false": ("http",), "both": _BOTH}
    schemes = settings.get("schemes") or older.get(str(settings.get("bind_tls"))) or ("https",)
    if not set(schemes) <= set(_BOTH):
        raise settings_error("schemes must be http, https or both")
    return tuple(scheme for scheme in _BOTH if scheme in schemes)


def _check_rules(proto: str, settings: Mapping[str, Any]) -> None:
    if bool(settings.get("crt")) is not bool(settings.get("key")):
        raise settings_error("crt and key must be set together")
    if proto == "tls" and settings.get("mutual_tls_cas") and not settings.get("crt"):
        raise settings_error("mutual_tls_cas requires crt and key")
    if (place := settings.get("terminate_at")) and place not in ("edge", "agent", "upstream"):
        raise start_error(224, f"terminate_at must be edge, agent or upstream, not {place!r}.")
    if str(settings.get("proxy_proto") or "") not in ("", "1", "2"):
        raise settings_error("proxy_proto must be 1 or 2")
    if (oidc := settings.get("oidc")) is not None:
        for key, code in (("client_id", 385), ("client_secret", 386)):
            if not oidc.get(key):
                raise start_error(code, f"oidc.{key} is required.")
    users = settings.get("basic_auth") or ()
    for user in (users,) if isinstance(users, str) else users:
        name, _, password = user.partition(":")
        if len(password) < 8 or len(name) > 128:
            raise settings_error("basic_auth: user:password, with 128 characters at most and 8 at least")
    _check_url(proto, settings)


def _check_url(proto: str, settings: Mapping[str, Any]) -> None:
    """Checks that a `url` has the protocol of the tunnel."""
    if url := settings.get("url"):
        scheme = parse_url(url).scheme
        if (proto or "http") != ("http" if scheme == "https" else scheme):
            raise settings_error(f"url {url!r} has another protocol than the tunnel, {proto}")
