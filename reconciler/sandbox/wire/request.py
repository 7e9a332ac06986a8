"""A request as operations see it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(slots=True)
class ApiRequest:
    """`headers` have lower-case names, and of those sent twice the first; `server` is who the request came to."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    server: tuple[str, int | None] | None
    body: bytes
    scheme: str
