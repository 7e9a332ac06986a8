"""The origin that requests may be sent to: scheme, host and port of the configured base URL.

Of an address that the platform returns only path and query are used. The request is built on the configured origin, so
that no malformed address can send the key elsewhere.
"""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import SplitResult, urlsplit

from msgspec import Struct

from reconciler.engine.ports import Refused

_PORTS = {"http": 80, "https": 443}
_PLAIN = re.compile(r"[!-~]+")  # printable ASCII without space: the characters of a valid address


class Origin(Struct, frozen=True):
    """The only origin that requests are sent to."""

    scheme: str
    host: str
    port: int
    prefix: str = ""  # path of the base URL, without a trailing slash

    @classmethod
    def parse(cls, base_url: str) -> Origin:
        """Parses a base URL; raises ValueError with what is wrong."""
        if not base_url.isascii():
            raise ValueError(
                "it contains characters other than ASCII: write a host name as xn--…, other characters as %…"
            )
        parts = _split(base_url)
        if parts is None or parts.scheme not in _PORTS or not parts.hostname:
            raise ValueError("it is not a URL: write https://host")
        if not _is_name(parts.hostname):
            raise ValueError(f"{parts.hostname[:80]} is not a valid host name")
        if parts.username is not None:
            raise ValueError("it must not contain a user name or password")
        if parts.query or parts.fragment:
            raise ValueError("it must not contain a query or fragment")
        if parts.scheme == "http" and not _is_loopback(parts.hostname):
            raise ValueError("plain http would send the key unencrypted: use https")
        return cls(parts.scheme, parts.hostname, parts.port or _PORTS[parts.scheme], parts.path.rstrip("/"))

    @property
    def is_loopback(self) -> bool:
        return _is_loopback(self.host)

    @property
    def bracketed_host(self) -> str:
        """The host, an IPv6 address in brackets."""
        return f"[{self.host}]" if ":" in self.host else self.host

    @property
    def authority(self) -> str:
        """The host, and the port unless it is that of the scheme."""
        port = "" if self.port == _PORTS[self.scheme] else f":{self.port}"
        return f"{self.bracketed_host}{port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}"

    def at(self, path: str) -> str:
        """The address of a path below the base URL; raises Refused if it is not a plain path."""
        if not path.startswith("/") or path.startswith("//") or not _PLAIN.fullmatch(path) or _has_dot_segments(path):
            raise Refused(f"{path!r} is not a path of the platform")
        return f"{self}{self.prefix}{path}"

    def follow(self, address: str) -> str:
        """The address of a next page, on this origin; raises Refused if it is on another one."""
        parts = _split(address)
        if parts is None or "\\" in address or _has_dot_segments(parts.path):
            raise Refused("the platform's next_page_uri is not a valid address; it was not followed")
        if not (parts.scheme or parts.netloc) and address.startswith("/"):
            return self._rebuild(parts)
        if not self._is_same(parts):
            raise Refused(
                f"the platform's next_page_uri leads to {_display_name(parts)}, not to {self}; it was not followed, "
                "and the key was not sent there"
            )
        return self._rebuild(parts)

    def _is_same(self, parts: SplitResult) -> bool:
        other = (parts.scheme, parts.hostname, parts.port or _PORTS.get(parts.scheme))
        return "@" not in parts.netloc and other == (self.scheme, self.host, self.port)

    def _rebuild(self, parts: SplitResult) -> str:
        return f"{self}{parts.path or '/'}" + (f"?{parts.query}" if parts.query else "")


def _split(address: str) -> SplitResult | None:
    if not _PLAIN.fullmatch(address):
        return None
    try:
        parts = urlsplit(address)
        _ = parts.port  # raises for a port that is not a number
    except ValueError:
        return None
    return parts


def _is_name(host: str) -> bool:
    """Whether a host name has valid lengths: for an invalid one the lookup would fail like a network that is down."""
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
        return host == "localhost"  # not NAME.localhost: many resolvers send it to the network
