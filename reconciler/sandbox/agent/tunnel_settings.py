"""The settings of a tunnel, in version 2 of the agent's configuration and in its older API: types and rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from reconciler.kinds.types.agent_files import ConfiguredTunnel, check_certificate_files
from reconciler.model.fields.field import fields_of
from reconciler.sandbox.agent.endpoints import parse_policy, parse_url
from reconciler.sandbox.agent.settings import check, to_text
from reconciler.sandbox.agent.tunnels import settings_error, start_error

_FIELDS = fields_of(ConfiguredTunnel)
_PROTOCOLS = ("http", "tcp", "tls")
_BOTH = ("https", "http")


class Settings(Struct, frozen=True):
    """The settings of a tunnel: with a protocol, or with labels by which backends select it.

    `schemes` are those of a tunnel with the protocol http, https first. `given` are all settings, numbers as text where
    a setting is text.
    """

    name: str
    proto: str
    addr: str
    labels: Mapping[str, str]
    schemes: tuple[str, ...]
    traffic_policy: str
    metadata: str
    description: str
    given: Mapping[str, Any]


def parse_settings(settings: Mapping[str, Any]) -> Settings:
    """Raises AgentError for settings that are not valid."""
    settings = _check_types(settings)
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
        given=settings,
    )


def _check_types(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings, with `basic_auth` as a list and the old `bind_tls` as it is."""
    older = {"bind_tls": settings["bind_tls"]} if isinstance(settings.get("bind_tls"), str | bool) else {}
    known = {key: value for key, value in settings.items() if key not in older}
    if isinstance(known.get("basic_auth"), str):
        known["basic_auth"] = [known["basic_auth"]]
    for path, text in check(_FIELDS, known, "config.Tunnel"):
        raise settings_error(f"{'.'.join(map(str, path))}: {text}")
    return {**to_text(_FIELDS, known), **older}


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
    for finding in check_certificate_files(settings):
        raise settings_error(f"{finding.path[0]} {finding.text}")
    if (place := settings.get("terminate_at")) and place not in ("edge", "agent", "upstream"):
        raise start_error(224, f"terminate_at must be edge, agent or upstream, not {place!r}.")
    if str(settings.get("proxy_proto") or "") not in ("", "1", "2"):
        raise settings_error("proxy_proto must be 1 or 2")
    if (oidc := settings.get("oidc")) is not None:
        for key, code in (("client_id", 385), ("client_secret", 386)):
            if not oidc.get(key):
                raise start_error(code, f"oidc.{key} is required.")
    for user in settings.get("basic_auth") or ():
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
