"""Which proxy stands between us and an origin, as the environment says: HTTPS_PROXY, ALL_PROXY, NO_PROXY.

What is on this machine is spoken to directly. The proxy's address may hold a password, and appears in no message.
"""

from __future__ import annotations

from base64 import b64encode
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx

from reconciler.api.origin import Origin
from reconciler.engine.ports import Refused


def proxy_of(origin: Origin) -> httpx.Proxy | None:
    """None where there is none; Refused if it is one that cannot be used."""
    if origin.is_loopback or any(proxy_bypass(each) for each in (origin.host, f"{origin.host}:{origin.port}")):
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
    # A path is what is left of a password that holds a slash.
    if parts.scheme not in ("http", "https") or not host or parts.path.strip("/") or parts.query or parts.fragment:
        raise _unusable_proxy()
    if ":" in user:  # basic authentication has no way to say it
        raise _unusable_proxy()
    place = f"[{host}]" if ":" in host else host
    url = f"{parts.scheme}://{place}" + (f":{port}" if port else "")
    try:
        return httpx.Proxy(url, headers=_login(user, password) if user or password else None)
    except (httpx.InvalidURL, ValueError):
        raise _unusable_proxy() from None


def _login(user: str, password: str) -> dict[str, str]:
    """As a header: aiohttp's own way takes Latin-1 only."""
    return {"Proxy-Authorization": f"Basic {b64encode(f'{user}:{password}'.encode()).decode()}"}


def _unusable_proxy() -> Refused:
    return Refused(
        "HTTPS_PROXY or ALL_PROXY names a proxy that cannot be used; write it like http://user:password@host:port, "
        "with %40, %2F and the like for characters that mean something there, or name the platform in NO_PROXY"
    )
