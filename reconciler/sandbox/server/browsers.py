"""Requests of web pages: detects them (DNS rebinding, cross-site requests), and answers the CORS preflight of the API.

Paths without a key accept programs only. Programs use an IP address, `localhost` or a name without a dot, as
containers do. None of these can be the name of a public site.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from urllib.parse import urlsplit

_LOCAL = re.compile(r"[\w-]+|[\w.-]+\.localhost", re.ASCII)


def find_foreign(headers: Mapping[str, str]) -> tuple[str, str] | None:
    """The header that names another site, and its value; None if there is none. `headers` have lower-case names."""
    host = headers.get("host")
    if host is not None and not _is_local(host):
        return "Host", host
    origin = headers.get("origin")
    if origin is not None and origin.lower() not in (f"http://{host}".lower(), f"https://{host}".lower()):
        return "Origin", origin
    return None


def is_preflight(method: str, headers: Mapping[str, str]) -> bool:
    """Whether a browser asks whether a page may send a request. Such a request carries no key."""
    return method == "OPTIONS" and "origin" in headers and "access-control-request-method" in headers


def answer_preflight(headers: Mapping[str, str]) -> dict[str, str]:
    """Allows the request: a page needs an API key to do anything."""
    return {
        **allow_origin(headers),
        "Access-Control-Allow-Methods": "GET, POST, PATCH, PUT, DELETE",
        "Access-Control-Allow-Headers": headers.get("access-control-request-headers", "authorization, content-type"),
        "Access-Control-Max-Age": "600",
    }


def allow_origin(headers: Mapping[str, str]) -> dict[str, str]:
    """The header with which a browser shows the response to the page that sent the request."""
    return {"Access-Control-Allow-Origin": "*"} if "origin" in headers else {}


def _is_local(host: str) -> bool:
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return _LOCAL.fullmatch(name.rstrip(".")) is not None
    return True
