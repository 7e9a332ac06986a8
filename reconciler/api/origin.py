"""The one place the key may go to: scheme, host and port of the configured base address.

An address that the platform hands out is only ever read for its path and query; the request is built on our own origin,
so that no trick of spelling can lead it elsewhere.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from reconciler.engine.ports import Refused

_PORTS = {"http": 80, "https": 443}
_PLAIN = re.compile(r"[!-~]+")  # printable ASCII without the blank: all that a proper address is made of


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a platform is: requests go there and nowhere else."""

    scheme: str
    host: str
    port: int
    prefix: str = ""  # path of the base address, without a slash at its end

    @classmethod
    def parse(cls, base_url: str) -> Origin:
        """ValueError says what is wrong with the address."""
        if not base_url.isascii():
            raise ValueError("it holds characters beyond ASCII: write a host's name as xn--…, and others as %…")
        parts = _split(base_url)
        if parts is None or parts.scheme not in _PORTS or not parts.hostname:
            raise ValueError("it is not the address of a server: write https://host")
        if not _is_name(parts.hostname):
            raise ValueError(f"{parts.hostname[:80]} is no name of a host")
        if parts.username is not None or parts.password is not None:
            raise ValueError("it must not hold a user name or password")
        if parts.query or parts.fragment:
            raise ValueError("it must end with its path: no '?' or '#'")
        if parts.scheme == "http" and not _is_loopback(parts.hostname):
            raise ValueError("plain http would send the key readable to everybody on the way: use https")
        return cls(parts.scheme, parts.hostname, parts.port or _PORTS[parts.scheme], parts.path.rstrip("/"))

    @property
    def is_loopback(self) -> bool:
        return _is_loopback(self.host)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == _PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}"

    def at(self, path: str) -> str:
        """The address of a path below the base address; raises Refused for what is not a path."""
        if not path.startswith("/") or path.startswith("//") or not _PLAIN.fullmatch(path) or _has_dot_segments(path):
            raise Refused(f"{path!r} is not a path of the platform")
        return f"{self}{self.prefix}{path}"

    def follow(self, address: str) -> str:
        """The address of a next page, on our own origin; raises Refused if it leads elsewhere."""
        parts = _split(address)
        if parts is None or "\\" in address or _has_dot_segments(parts.path):
            raise Refused("the platform's next_page_uri is not an address; it was not followed")
        if not (parts.scheme or parts.netloc) and address.startswith("/"):
            return self._rebuild(parts)
        if not self._is_same(parts):
            raise Refused(
                f"the platform's next_page_uri leads to {_display_name(parts)}, not to {self}; it was not followed, "
                "and the key was not sent there"
            )
        return self._rebuild(parts)

    def _is_same(self, parts: SplitResult) -> bool:
        there = (parts.scheme, parts.hostname, parts.port or _PORTS.get(parts.scheme))
        return "@" not in parts.netloc and there == (self.scheme, self.host, self.port)

    def _rebuild(self, parts: SplitResult) -> str:
        return f"{self}{parts.path or '/'}" + (f"?{parts.query}" if parts.query else "")


def _split(address: str) -> SplitResult | None:
    if not _PLAIN.fullmatch(address):
        return None
    try:
        parts = urlsplit(address)
        _ = parts.port  # raises for a port that is no number
    except ValueError:
        return None
    return parts


def _is_name(host: str) -> bool:
    """Whether it can be looked up: what cannot be would pass for a network that is down."""
    labels = host.removesuffix(".").split(".")
    return len(host) <= 253 and all(0 < len(label) <= 63 for label in labels)


def _has_dot_segments(path: str) -> bool:
    return "\\" in path or any(
        segment in (".", "..") for segment in re.split(r"[/?#]", path.lower().replace("%2e", "."))
    )


def _display_name(parts: SplitResult) -> str:
    return f"{parts.scheme}://{parts.hostname or ''}" + (f":{parts.port}" if parts.port else "")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"  # not evil.localhost: many resolvers ask the network for it
