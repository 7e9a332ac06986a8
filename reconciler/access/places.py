"""Where requests arrive: hosts with wildcards and paths, cut into regions that are served in one way.

A region is named by what is declared, in either of two states: a host is `shop.example.com`, or `*.example.com` for all
hosts below that no longer name covers. A path region is one path, or all paths below it that no longer path covers.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Set

from msgspec import Struct


class Door(Struct, frozen=True, order=True, cache_hash=True):
    """What a client connects to, without the host: the scheme, the port and where it can be reached from."""

    scheme: str
    port: int
    binding: str = "public"


class Region(Struct, frozen=True, order=True, cache_hash=True):
    """A set of requests that one entry point serves.

    host   a host, or a wildcard: all hosts below it that no other pattern covers
    path   the path, or the beginning of the paths; empty for other schemes than https
    below  the paths that begin with `path` and are longer; False: `path` itself
    """

    door: Door
    host: str
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

    def example_host(self, declared: Container[str] = ()) -> str:
        """A host of the region: below a wildcard, one that is not declared."""
        if not self.host.startswith("*."):
            return self.host
        labels = ("any", *(f"any{number}" for number in range(1, 1000)))
        return next(host for label in labels if (host := f"{label}{self.host[1:]}") not in declared)

    def example_path(self, mentioned: Container[str]) -> str:
        """A path of the region: one that no longer mentioned path covers."""
        if not self.below:
            return self.path
        for tail in _tails(self.path):
            path = self.path + tail
            longer = [path[:length] for length in range(len(self.path) + 1, len(path) + 1)]
            if not any(text in mentioned or text.lower() in mentioned for text in longer):
                return path
        raise AssertionError("unreachable: more tails than mentioned paths")


def fold_case(paths: Set[str]) -> Set[str]:
    """The paths, and each in lower case: an example path equals none of them, whether or not case counts."""
    return paths | {path.lower() for path in paths}


def _tails(path: str) -> Iterator[str]:
    yield from (("x", "/x") if path.endswith("/") else ("/x", "x"))
    number = 0
    while True:
        yield f"{'' if path.endswith('/') else '/'}x{number}" if path else f"/x{number}"
        number += 1


def find_patterns(host: str, patterns: Container[str]) -> list[str]:
    """The patterns that cover a host, the most specific first; of a wildcard, those that cover all hosts below it."""
    found = [host] if host in patterns else []
    rest = host.removeprefix("*.")
    while (dot := rest.find(".")) >= 0:
        rest = rest[dot + 1 :]
        if (pattern := f"*.{rest}") in patterns:
            found.append(pattern)
    return found


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
