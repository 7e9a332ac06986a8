"""Detects requests of web pages (DNS rebinding, cross-site requests) from their Host and Origin headers.

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
