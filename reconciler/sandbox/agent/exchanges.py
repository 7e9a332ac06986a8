"""The requests that the emulated agent has captured. No traffic reaches it: `/_sandbox/agent/requests` stores them.

In memory, newest first, and gone when the agent ends.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from reconciler.model.value import Json
from reconciler.sandbox.agent.tunnels import AgentError
from reconciler.sandbox.base.database import Document

PATH = "/api/requests/http"
_KEPT = 500
_PHRASES = {status.value: status.phrase for status in HTTPStatus}


class Exchange(BaseModel):
    """A request that reached an endpoint or tunnel, and the response of its upstream: None while there is none."""

    model_config = ConfigDict(extra="forbid", strict=True)

    tunnel_name: str
    method: str = "GET"
    uri: str = "/"
    headers: dict[str, list[str]] = Field(default_factory=dict)
    body: str = ""
    status_code: int | None = 200
    response_body: str = ""
    remote_addr: str = "192.0.2.1"


class CapturedRequests:
    """The captured requests of one agent."""

    def __init__(self) -> None:
        self._found: list[Document] = []

    def add(self, exchange: Exchange) -> None:
        self._insert(
            {
                "tunnel_name": exchange.tunnel_name,
                "remote_addr": exchange.remote_addr,
                "request": _describe_request(exchange),
                "response": _describe_response(exchange) if exchange.status_code is not None else None,
            }
        )

    def list(self, *, limit: str | None = None, tunnel_name: str | None = None) -> list[Json]:
        """The requests, at most `limit` and of one endpoint or tunnel if these are given."""
        if limit is not None and not limit.isdecimal():
            raise AgentError(102, 400, "invalid request", f"limit must be a number, not {limit!r}")
        named = [found for found in self._found if tunnel_name in (None, "", found["tunnel_name"])]
        return [*named[: None if limit is None else int(limit)]]

    def find(self, identity: str) -> Document:
        found = next((found for found in self._found if found["id"] == identity), None)
        if found is None:
            raise AgentError(100, 404, "request not found", f"there is no captured request {identity!r}")
        return found

    def replay(self, body: Mapping[str, Any]) -> None:
        """Captures a request again, with the same response. Other keys of the body than `id` and `tunnel_name` are
        ignored, since a known client sends `tunnelName`."""
        found = self.find(str(body.get("id") or ""))
        name = body.get("tunnel_name")
        if name is not None and not isinstance(name, str):
            raise AgentError(102, 400, "invalid request", "tunnel_name must be a text")
        self._insert({**found, "tunnel_name": name or found["tunnel_name"]})

    def clear(self) -> None:
        self._found.clear()

    def _insert(self, found: Document) -> None:
        identity = secrets.token_hex(8)
        start = datetime.now(UTC).isoformat()
        new = {"uri": f"{PATH}/{identity}", "id": identity, "start": start, "duration": 1_000_000}
        self._found.insert(0, {**found, **new})
        del self._found[_KEPT:]


def _describe_request(exchange: Exchange) -> Document:
    head = f"{exchange.method} {exchange.uri} HTTP/1.1"
    return {
        "method": exchange.method,
        "proto": "HTTP/1.1",
        "headers": exchange.headers,
        "uri": exchange.uri,
        "raw": _encode_raw(head, exchange.headers, exchange.body),
    }


def _describe_response(exchange: Exchange) -> Document:
    code = exchange.status_code or 0
    status = f"{code} {_PHRASES.get(code, '')}".rstrip()
    return {
        "status": status,
        "status_code": code,
        "proto": "HTTP/1.1",
        "headers": {},
        "raw": _encode_raw(f"HTTP/1.1 {status}", {}, exchange.response_body),
    }


def _encode_raw(head: str, headers: Mapping[str, list[str]], body: str) -> str:
    lines = [head, *(f"{name}: {value}" for name, values in headers.items() for value in values), "", body]
    return base64.b64encode("\r\n".join(lines).encode()).decode()
