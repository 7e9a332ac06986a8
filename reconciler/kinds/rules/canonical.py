"""Canonical forms of field values: two values are the same to the platform if and only if their forms are equal.

The functions are pure and accept any plain JSON. A value of the wrong type or syntax is its own canonical form;
validation reports it.
"""

from __future__ import annotations

import ipaddress
import re
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from reconciler.kinds.rules import traffic_policy as policies
from reconciler.languages import traffic_catalog
from reconciler.model.dialect import to_specification_id
from reconciler.model.numerals import SpelledFloat, SpelledInteger, in_json
from reconciler.model.value import Json

_END = re.compile(r"[\s.]+$")
_PATH_END = re.compile(r"[\s/]+$")
_DEFAULT_PORT = {"http": 80, "https": 443, "tls": 443}
_UPSTREAM_PORT = {"": 80, "http": 80, "tls": 443, "tcp": 80}  # the schemes that agents add to an upstream address


def host(value: Json) -> Json:
    """A hostname in lower case, without a trailing dot."""
    return _END.sub("", value.lower()).lstrip() if isinstance(value, str) else value


def hostport(value: Json) -> Json:
    """A `host:port` with the host in canonical form."""
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
    suffix = "" if port is None or port == _DEFAULT_PORT.get(scheme) else f":{port}"
    name = f"[{name}]" if ":" in name else host(name)
    return f"{scheme}://{name}{suffix}{_PATH_END.sub('', parts.path)}"


def hostport_of_url(value: Json) -> str | None:
    """The `host:port` of an endpoint URL, with the default port of its scheme; None if there is no port."""
    text = url(value)
    scheme, _, netloc = text.partition("://") if isinstance(text, str) else ("", "", "")
    netloc = netloc.partition("/")[0]
    port = _DEFAULT_PORT.get(scheme)
    if not netloc or (port is None and ":" not in netloc):
        return None
    return netloc if re.search(r":\d+$", netloc) else f"{netloc}:{port}"


def agent_url(value: Json) -> Json:
    """The URL of an agent's endpoint, with its scheme. A scheme alone, as `tcp://`, is without a host."""
    if not isinstance(value, str) or not value.strip():
        return value
    scheme, rest = split_agent_url(value.strip())
    return url(f"{scheme}://{rest}") if rest else f"{scheme}://"


def split_agent_url(text: str) -> tuple[str, str]:
    """The scheme of a URL, which one without a scheme has by its port, and the rest."""
    scheme, separator, rest = text.partition("://")
    if separator:
        return scheme.lower(), rest
    name, colon, port = text.rpartition(":")
    if not colon:
        return "https", text
    return {"443": "https", "80": "http"}.get(port, "tcp"), text if name else ""


def scheme_alone(value: Json) -> Json:
    """A URL without its host: `tcp://`."""
    start, separator, _ = value.partition("://") if isinstance(value, str) else ("", "", "")
    return f"{start}://" if separator else value


def tunnel_host(value: Json) -> Json:
    """The host of a tunnel, with its port unless it is the default; agents return it as a URL."""
    text = url(value) if isinstance(value, str) and "://" in value else value
    return hostport(text.partition("://")[2] or text) if isinstance(text, str) else text


def tunnel_proto(value: Json) -> Json:
    """`http` for `https`: an agent returns a running http tunnel with the scheme of its URL."""
    return "http" if value == "https" else value


def upstream(value: Json) -> Json:
    """An upstream address of an agent as `host:port`: a port or a scheme alone is on localhost; http has the port 80.

    Agents return `http://localhost:80` for an http tunnel to port 80, `localhost:80` for a tcp tunnel, and
    `tls://localhost:80` for a tls tunnel. Other URLs keep their scheme.
    """
    if not isinstance(value, str):
        return value
    where = value.strip()
    scheme, separator, rest = where.partition("://")
    if not separator:
        scheme, rest = "", where
    if scheme.lower() not in ("", *_UPSTREAM_PORT):
        return url(where if rest else f"{where}localhost")
    rest = _PATH_END.sub("", rest.lower()) or "localhost"
    if rest.isdigit():
        return f"localhost:{rest}"
    return rest if ":" in rest.rpartition("]")[2] else f"{rest}:{_UPSTREAM_PORT[scheme.lower()]}"


def scheme(value: Json) -> Json:
    """The scheme of a URL, in lower case."""
    return value.partition(":")[0].strip().lower() if isinstance(value, str) else value


def member(value: Json) -> Json:
    """The names of the members of an object that are set."""
    return sorted(key for key, item in value.items() if item is not None) if isinstance(value, dict) else value


def pem(value: Json) -> Json:
    """PEM text without white space around its lines."""
    return "\n".join(filter(None, map(str.strip, value.splitlines()))) if isinstance(value, str) else value


def ssh_key(value: Json) -> Json:
    """The type and key of an authorized_keys line, without the comment; PEM text as `pem` returns it."""
    if not isinstance(value, str):
        return value
    if "-----BEGIN" in value:
        return pem(value)
    return " ".join(value.split()[:2])


def instant(value: Json) -> Json:
    """A timestamp in UTC, to the second."""
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
    """Whether a text is an IPv4 network in canonical form. Ten times faster than `ipaddress`, and most networks are."""
    match = _IPV4.fullmatch(text)
    if match is None:
        return False
    first, second, third, fourth, length = map(int, match.groups())
    if max(first, second, third, fourth) > 255 or length > 32:
        return False
    host = (first << 24 | second << 16 | third << 8 | fourth) & (0xFFFFFFFF >> length)
    return not host and text == f"{first}.{second}.{third}.{fourth}/{length}"


def cidr(value: Json) -> Json:
    """A network in CIDR notation, as `ipaddress` writes it."""
    if isinstance(value, str) and is_plain_network(value):
        return value
    try:
        return str(ipaddress.ip_network(value.strip(), strict=False)) if isinstance(value, str) else value
    except ValueError:
        return value.strip().lower()


def acl(value: Json) -> Json:
    """ACL rules; a list with the rule `*` has no restrictions, like an empty list."""
    if not isinstance(value, list):
        return value
    return [] if "*" in value else value


def word(value: Json) -> Json:
    """A case-insensitive word, in lower case."""
    return value.lower() if isinstance(value, str) else value


def number(value: Json) -> Json:
    """A number as a float: 1 and 1.0 are equal."""
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def user(value: Json) -> Json:
    """The id of a user, of a bot user in the spelling of the specification."""
    return to_specification_id(value, "bot_") if isinstance(value, str) else value


def resolves_to(value: Json) -> Json:
    """The locations that a domain resolves to; `global` alone is the same as none."""
    return [] if value == [{"value": "global"}] else value


def headers(value: Json) -> Json:
    """Headers with their names in lower case."""
    return {str(name).lower(): item for name, item in value.items()} if isinstance(value, dict) else value


def policy(value: Json) -> Json:
    """A traffic policy as a document, without empty phases, expressions and names.

    Its numbers have the spelling of the text, or the one that JSON will have: an inline document is sent as JSON.
    """
    parsed = policies.parse(value) if isinstance(value, str) else _spell_as_sent(value)
    return _without_defaults(parsed) if isinstance(parsed, dict) else value


def _spell_as_sent(value: Any) -> Any:
    match value:
        case SpelledFloat() | SpelledInteger():
            return in_json(value)
        case dict():
            return {key: _spell_as_sent(item) for key, item in value.items()}
        case list():
            return [_spell_as_sent(item) for item in value]
    return value


def _without_defaults(document: dict[str, Any]) -> dict[str, Any]:
    """The document without empty phases, empty lists of expressions and empty names."""
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
