"""A parsed HTTP request, independent of the web framework."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class ApiRequest(Struct, frozen=True):
    """A request. `headers` have lower-case names and the first value of each; `server` is the address of the socket."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    server: tuple[str, int | None] | None
    body: bytes
    scheme: str
