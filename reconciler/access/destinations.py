"""Reads the destination of a request: a URL, or a part of the account."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from reconciler.access.account import PARTS, split_url
from reconciler.access.places import Door, Region
from reconciler.model.suggestions import closest

SCHEMES: Final = ("https", "http", "tls", "tcp")
BINDINGS: Final = ("public", "internal", "kubernetes")


def read_destination(text: str, binding: str = "public") -> Region:
    """`https://shop.example.com:8443/admin` at a binding, or `api`, `dashboard`, `agent`.

    Raises ValueError with what is wrong and what to do, separated by `; `.
    """
    if text in PARTS:
        return Region(Door(text, 0, "account"), PARTS[text])
    scheme, colon, _ = text.partition("://")
    if not colon:
        near = closest(text, PARTS)
        remedy = f"did you mean {near}?" if near else "write a URL, or one of api, dashboard, agent"
        raise ValueError(f"is no URL; {remedy}")
    if scheme not in SCHEMES:
        near = closest(scheme, SCHEMES)
        remedy = f"did you mean {near}?" if near else f"use one of {', '.join(SCHEMES)}"
        raise ValueError(f"has an unknown scheme; {remedy}")
    return _read_url(text, scheme, binding)


def _read_url(text: str, scheme: str, binding: str) -> Region:
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise ValueError("is no valid URL; write it as https://shop.example.com:8443/admin") from None
    if not parts.hostname or "@" in parts.netloc or not text.isprintable() or " " in text:
        raise ValueError("names no host; write it as https://shop.example.com/admin")
    if parts.query or parts.fragment or "?" in text or "#" in text:
        raise ValueError("has a query or a fragment; leave it out: only host and path are compared")
    if "*" in parts.netloc:
        raise ValueError("names many hosts; write one of them, as in https://any.example.com")
    if scheme == "tcp" and port is None:
        raise ValueError("has no port; write it as tcp://db.example.com:5432")
    if scheme in ("tls", "tcp") and parts.path not in ("", "/"):
        raise ValueError(f"has a path, which {scheme} has not; remove the path")
    ((door, host),) = split_url(text, (binding,))
    return Region(door, host, (parts.path or "/") if scheme in ("http", "https") else "")
