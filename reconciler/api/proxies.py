"""The proxy for an origin, from the environment: HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY.

Hosts on this machine need no proxy. A proxy's URL may contain a password, so no message quotes it.
"""

from __future__ import annotations

import os
import sys
from base64 import b64encode
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from reconciler.api.origin import Origin
from reconciler.engine.ports import Refused


class Proxy(Struct, frozen=True):
    """A proxy: where it is, and the headers that it needs."""

    origin: Origin
    headers: Mapping[str, str]


def proxy_of(origin: Origin) -> Proxy | None:
    """The proxy for an origin, or None; raises Refused if its URL is invalid."""
    if origin.is_loopback or not _may_have_proxies():
        return None
    from urllib.request import getproxies, proxy_bypass  # 8 ms

    if any(proxy_bypass(host) for host in (origin.host, f"{origin.host}:{origin.port}")):
        return None
    named = getproxies()
    address = named.get(origin.scheme) or named.get("all")
    return _parse_proxy(address if "://" in address else f"http://{address}") if address else None


def _may_have_proxies() -> bool:
    """Whether there may be a proxy: where only the environment tells, whether a variable does."""
    return sys.platform in ("darwin", "win32") or any(name.lower().endswith("_proxy") for name in os.environ)


def _parse_proxy(address: str) -> Proxy:
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port
        user, password = unquote(parts.username or ""), unquote(parts.password or "")
    except ValueError:
        raise _unusable_proxy() from None
    # There is a path if the password contains a slash that is not encoded.
    if parts.scheme not in ("http", "https") or not host or parts.path.strip("/") or parts.query or parts.fragment:
        raise _unusable_proxy()
    if ":" in user or any(map(str.isspace, host)):  # basic authentication does not allow the colon
        raise _unusable_proxy()
    port = port or (443 if parts.scheme == "https" else 80)
    return Proxy(Origin(parts.scheme, host, port), _login(user, password) if user or password else {})


def _login(user: str, password: str) -> dict[str, str]:
    """The header with the credentials."""
    return {"Proxy-Authorization": f"Basic {b64encode(f'{user}:{password}'.encode()).decode()}"}


def _unusable_proxy() -> Refused:
    return Refused(
        "HTTPS_PROXY or ALL_PROXY is not a valid proxy URL; write http://user:password@host:port, with special "
        "characters encoded as %40, %2F and so on, or add the platform's host to NO_PROXY"
    )
