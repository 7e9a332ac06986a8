"""The proxy for an origin, from the environment: HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY.

Hosts on this machine need no proxy. A proxy's URL may contain a password, so no message quotes it.
"""

from __future__ import annotations

from base64 import b64encode
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx

from reconciler.api.origin import Origin
from reconciler.engine.ports import Refused


def proxy_of(origin: Origin) -> httpx.Proxy | None:
    """The proxy for an origin, or None; raises Refused if its URL is invalid."""
    if origin.is_loopback or any(proxy_bypass(host) for host in (origin.host, f"{origin.host}:{origin.port}")):
        return None
    named = getproxies()
    address = named.get(origin.scheme) or named.get("all")
    return _parse_proxy(address if "://" in address else f"http://{address}") if address else None


def _parse_proxy(address: str) -> httpx.Proxy:
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
    place = f"[{host}]" if ":" in host else host
    url = f"{parts.scheme}://{place}" + (f":{port}" if port else "")
    try:
        return httpx.Proxy(url, headers=_login(user, password) if user or password else None)
    except (httpx.InvalidURL, ValueError):
        raise _unusable_proxy() from None


def _login(user: str, password: str) -> dict[str, str]:
    """The header with the credentials; aiohttp's own parameter allows only Latin-1."""
    return {"Proxy-Authorization": f"Basic {b64encode(f'{user}:{password}'.encode()).decode()}"}


def _unusable_proxy() -> Refused:
    return Refused(
        "HTTPS_PROXY or ALL_PROXY is not a valid proxy URL; write http://user:password@host:port, with special "
        "characters encoded as %40, %2F and so on, or add the platform's host to NO_PROXY"
    )
