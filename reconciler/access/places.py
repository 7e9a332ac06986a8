"""Where requests arrive: hosts with wildcards and paths, cut into regions that are served in one way.

A region is named by what is declared, in either of two states: a host is `shop.example.com`, or `*.example.com` for all
hosts below that no longer name covers. A path region is one path, or all paths below it that no longer path covers.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator

from msgspec import Struct


class Door(Struct, frozen=True, order=True, cache_hash=True):
    """What a client connects to, without the host: the scheme, the port and where it can be reached from."""

    scheme: str
    port: int
    binding: str = "public"


class Region(Struct, frozen=True, order=True, cache_hash=True):
    """A set of requests that one entry point serves.

    host   a host, or a wildcard: all hosts below it that no other pattern covers
    depth  of a wildcard: 1 for hosts one label below, 2 for all deeper ones
    path   the path, or the beginning of the paths; empty for other schemes than https
    below  the paths that begin with `path` and are longer; False: `path` itself
    """

    door: Door
    host: str
    depth: int = 0
    path: str = ""
    below: bool = False

    @property
    def origin(self) -> str:
        """The URL without a path, as people write it."""
        standard = {"http": 80, "https": 443, "tls": 443}.get(self.door.scheme)
        port = "" if self.door.port in (standard, 0) else f":{self.door.port}"
        return f"{self.door.scheme}://{self.host}{port}"

    def __str__(self) -> str:
        """The entry point for people: `https://shop.example.com/admin…`."""
        if self.door.binding == "account":
            return self.host
        if self.door.binding == "credential":
            return f"what {self.host} may open"
        path = "" if (self.path, self.below) == ("", True) else self.path
        text = f"{self.origin}{path}{'…' if self.below and path else ''}"
        return text if self.door.binding == "public" else f"{text} ({self.door.binding})"

    def example_host(self) -> str:
        """A host of the region."""
        if not self.depth:
            return self.host
        labels = ("any",) if self.depth == 1 else ("deep", "any")
        return ".".join((*labels, self.host.removeprefix("*.")))

    def example_path(self, mentioned: Iterable[str]) -> str:
        """A path of the region: one that no longer mentioned path covers."""
        if not self.below:
            return self.path
        longer = [text for text in mentioned if text.startswith(self.path) and len(text) > len(self.path)]
        for tail in _tails(self.path):
            path = self.path + tail
            if not any(path.startswith(text) for text in longer):
                return path
        raise AssertionError("unreachable: more tails than mentioned paths")


def _tails(path: str) -> Iterator[str]:
    yield from (("x", "/x") if path.endswith("/") else ("/x", "x"))
    number = 0
    while True:
        yield f"{'' if path.endswith('/') else '/'}x{number}" if path else f"/x{number}"
        number += 1


def find_patterns(host: str, patterns: Container[str]) -> list[str]:
    """The patterns that cover a host, the most specific first."""
    found = [host] if host in patterns else []
    rest = host
    while (dot := rest.find(".")) >= 0:
        rest = rest[dot + 1 :]
        if (pattern := f"*.{rest}") in patterns:
            found.append(pattern)
    return found


def depth_below(host: str, pattern: str) -> int:
    """How many labels a host has below a wildcard; 0 for the wildcard itself or an exact name."""
    if not pattern.startswith("*.") or host == pattern:
        return 0
    return host.removesuffix(pattern[1:]).count(".") + 1


def cut_hosts(patterns: Iterable[str]) -> Iterator[tuple[str, int]]:
    """The regions of hosts that a set of patterns defines: a pattern, and the depth below a wildcard."""
    for pattern in sorted(set(patterns)):
        if pattern.startswith("*."):
            yield from ((pattern, 1), (pattern, 2))
        else:
            yield pattern, 0


def cut_paths(paths: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """The regions of paths: each mentioned path and what is below it, and what is below none of them."""
    mentioned = set(paths)
    if not mentioned:
        yield "", True
        return
    for path in sorted({"", *mentioned}):
        if path:
            yield path, False
        if path or "/" not in mentioned:
            yield path, True
