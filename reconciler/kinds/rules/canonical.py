"""Canonical forms: two values mean the same to the platform exactly when these agree. Pure, and total on plain JSON.

What cannot be understood is its own canonical form: validation, not comparison, tells the user about it.
"""

from __future__ import annotations

import ipaddress
import re
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from reconciler.kinds.rules import traffic_policy as policies
from reconciler.languages import traffic_catalog
from reconciler.model.value import Json

_END = re.compile(r"[\s.]+$")
_PATH_END = re.compile(r"[\s/]+$")
_DEFAULT_PORT = {"http": 80, "https": 443, "tls": 443}


def host(value: Json) -> Json:
    """Host names are case-insensitive and may end in the root's dot."""
    return _END.sub("", value.lower()).lstrip() if isinstance(value, str) else value


def hostport(value: Json) -> Json:
    if not isinstance(value, str):
        return value
    name, colon, port = value.strip().rpartition(":")
    return f"{host(name)}:{port}" if colon else host(value)


def url(value: Json) -> Json:
    """Scheme and host in lower case, no default port, no trailing slash."""
    if not isinstance(value, str):
        return value
    try:
        parts = urlsplit(value.strip())
        name, port = parts.hostname, parts.port
    except ValueError:
        return value
    if not parts.scheme or not name:
        return value
    scheme = parts.scheme.lower()
    shown = "" if port is None or port == _DEFAULT_PORT.get(scheme) else f":{port}"
    name = f"[{name}]" if ":" in name else host(name)
    return f"{scheme}://{name}{shown}{_PATH_END.sub('', parts.path)}"


def hostport_of_url(value: Json) -> str | None:
    """The host and port at which what has this url is reached."""
    told = url(value)
    scheme, _, place = told.partition("://") if isinstance(told, str) else ("", "", "")
    place = place.partition("/")[0]
    port = _DEFAULT_PORT.get(scheme)
    if not place or (port is None and ":" not in place):
        return None
    return place if re.search(r":\d+$", place) else f"{place}:{port}"


def tunnel_host(value: Json) -> Json:
    """The host of a tunnel, and its port if it has one of its own: agents tell it as a url."""
    told = url(value) if isinstance(value, str) and "://" in value else value
    return hostport(told.partition("://")[2] or told) if isinstance(told, str) else told


def tunnel_proto(value: Json) -> Json:
    """A tunnel that speaks http is called by the scheme of its url once it runs."""
    return "http" if value == "https" else value


def upstream(value: Json) -> Json:
    """A port is one of this machine's; http need not be said, nor its port."""
    if not isinstance(value, str) or "://" in value.removeprefix("http://"):
        return value
    where = _PATH_END.sub("", value.strip().lower().removeprefix("http://"))
    if where.isdigit():
        return f"localhost:{where}"
    return where if ":" in where else f"{where}:80"


def scheme(value: Json) -> Json:
    return value.partition(":")[0].strip().lower() if isinstance(value, str) else value


def member(value: Json) -> Json:
    """The names of the members that are set."""
    return sorted(key for key, item in value.items() if item is not None) if isinstance(value, dict) else value


def pem(value: Json) -> Json:
    """White space around lines of PEM means nothing."""
    return "\n".join(filter(None, map(str.strip, value.splitlines()))) if isinstance(value, str) else value


def ssh_key(value: Json) -> Json:
    """Of an authorized-keys line the type and the key count, not the comment; a PEM counts as a PEM."""
    if not isinstance(value, str):
        return value
    if "-----BEGIN" in value:
        return pem(value)
    return " ".join(value.split()[:2])


def instant(value: Json) -> Json:
    """The same moment in UTC, to the second."""
    if not isinstance(value, str):
        return value
    try:
        moment = datetime.fromisoformat(value.upper())
        if moment.tzinfo is None:
            return value
        return moment.astimezone(UTC).replace(microsecond=0, tzinfo=None).isoformat() + "Z"
    except (ValueError, OverflowError):
        return value


_IPV4 = re.compile(r"([0-9]{1,3})\.([0-9]{1,3})\.([0-9]{1,3})\.([0-9]{1,3})/([0-9]{1,2})")


def is_plain_network(text: str) -> bool:
    """Whether it is an IPv4 network spelled as `ipaddress` would. Most are, and asking that takes ten times as long."""
    found = _IPV4.fullmatch(text)
    if found is None:
        return False
    first, second, third, fourth, length = map(int, found.groups())
    if max(first, second, third, fourth) > 255 or length > 32:
        return False
    host = (first << 24 | second << 16 | third << 8 | fourth) & (0xFFFFFFFF >> length)
    return not host and text == f"{first}.{second}.{third}.{fourth}/{length}"


def cidr(value: Json) -> Json:
    if isinstance(value, str) and is_plain_network(value):
        return value
    try:
        return str(ipaddress.ip_network(value.strip(), strict=False)) if isinstance(value, str) else value
    except ValueError:
        return value.strip().lower()


def acl(value: Json) -> Json:
    """`*` permits everything, as no list at all does."""
    if not isinstance(value, list):
        return value
    return [] if "*" in value else value


def word(value: Json) -> Json:
    """A word in which upper and lower case mean the same."""
    return value.lower() if isinstance(value, str) else value


def number(value: Json) -> Json:
    """1 and 1.0 are one number."""
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def user(value: Json) -> Json:
    """A bot user is a service user as well, under an id that differs in its prefix."""
    return f"bot_{value.removeprefix('service_')}" if isinstance(value, str) and value.startswith("service_") else value


def resolves_to(value: Json) -> Json:
    """Everywhere is where a domain resolves to if nothing is said."""
    return [] if value == [{"value": "global"}] else value


def headers(value: Json) -> Json:
    """Names of headers are case-insensitive."""
    return {str(name).lower(): item for name, item in value.items()} if isinstance(value, dict) else value


def policy(value: Json) -> Json:
    """A traffic policy is compared as the document it spells, not as text."""
    parsed = policies.parse(value) if isinstance(value, str) else value
    return _without_defaults(parsed) if isinstance(parsed, dict) else value


def _without_defaults(document: dict[str, Any]) -> dict[str, Any]:
    """Empty phases and empty lists of expressions say nothing."""
    phases: dict[str, Any] = {}
    for phase, rules in document.items():
        if isinstance(rules, list):
            rules = [
                {key: item for key, item in rule.items() if (key, item) not in (("expressions", []), ("name", ""))}
                if isinstance(rule, dict)
                else rule
                for rule in rules
            ]
        if phase not in traffic_catalog.PHASES or rules not in (None, []):
            phases[phase] = rules
    return phases
