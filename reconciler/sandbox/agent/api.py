"""The HTTP server of the emulated agent's local API: no key, JSON bodies of up to 1 MiB, the agent's error format.

GET `/api`, GET `/api/status`, GET and POST `/api/tunnels`, GET and DELETE `/api/tunnels/{name}`, and GET and DELETE
`/api/requests/http`, whose list is always empty.
"""

from __future__ import annotations

import json
from urllib.parse import unquote

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from reconciler.model.value import Json
from reconciler.sandbox.agent.process import Agent
from reconciler.sandbox.agent.tunnels import AgentError
from reconciler.sandbox.server.browsers import find_foreign

_TUNNELS, _REQUESTS = "/api/tunnels", "/api/requests/http"
_LARGEST = 2**20  # bytes of a body


class AgentApp:
    """One ASGI application."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        try:
            status, body = await self._answer(request)
        except AgentError as failed:
            details = {"err": str(failed)}
            status = failed.status
            body = {"error_code": failed.number, "status_code": status, "msg": failed.msg, "details": details}
        except ClientDisconnect:
            return
        response = Response(status_code=status) if body is None else JSONResponse(body, status)
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> tuple[int, Json]:
        foreign = find_foreign(request.headers)
        if foreign is not None:
            raise AgentError(100, 403, "forbidden", f"the header {foreign[0]} names another site: {foreign[1]!r}")
        path = request.scope["raw_path"].decode("latin-1").rstrip("/")  # not decoded: names may contain a slash
        match request.method, path:
            case "GET", "/api":
                return 200, {"uri": "/api", "tunnels_uri": _TUNNELS, "requests_uri": _REQUESTS}
            case "GET", "/api/status":
                return 200, {"status": "online" if self._agent.is_ready else "connecting", "uri": "/api/status"}
            case "GET", "/api/tunnels":
                return 200, {"tunnels": self._agent.list_tunnels(), "uri": _TUNNELS}
            case "POST", "/api/tunnels":
                return 201, self._agent.open(await _body(request))
            case "GET", "/api/requests/http":
                return 200, {"uri": _REQUESTS, "requests": []}
            case "DELETE", "/api/requests/http":
                return 204, None
        name = unquote(path.removeprefix(f"{_TUNNELS}/")) if path.startswith(f"{_TUNNELS}/") else ""
        if name and request.method == "GET":
            return 200, self._agent.find(name).body["shown"]
        if name and request.method == "DELETE":
            self._agent.close(name)
            return 204, None
        raise AgentError(100, 404, "not found", f"{request.method} {path} is not supported")


async def _body(request: Request) -> dict[str, Json]:
    raw = await request.body()
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" or len(raw) > _LARGEST:
        raise AgentError(101, 415, "unsupported content type", f"send application/json of at most {_LARGEST} bytes")
    try:
        value = json.loads(raw)
        json.dumps(
            value, ensure_ascii=False
        ).encode()  # fails for an unpaired surrogate, which no response could contain
    except (ValueError, RecursionError) as error:
        raise AgentError(101, 400, "invalid request body", "the body is not valid JSON") from error
    if not isinstance(value, dict):
        raise AgentError(101, 400, "invalid request body", "the body must be an object")
    return value
