"""The local API of the sandbox's agent on the wire, as the public agent has it: no key, small JSON, errors of its own.

GET `/api`, GET `/api/status`, GET and POST `/api/tunnels`, GET and DELETE `/api/tunnels/{name}`, and the captured
requests, of which there are none, at `/api/requests/http`.
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
            raise AgentError(100, 403, "forbidden", f"{foreign[0]} {foreign[1]!r} names another site")
        path = request.scope["raw_path"].decode("latin-1").rstrip("/")  # a name may have a slash in it
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
        raise AgentError(100, 404, "not found", f"there is no {request.method} {path}")


async def _body(request: Request) -> dict[str, Json]:
    raw = await request.body()
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" or len(raw) > _LARGEST:
        raise AgentError(101, 415, "unsupported content type", "send a small body of application/json")
    try:
        value = json.loads(raw)
        json.dumps(value, ensure_ascii=False).encode()  # an escaped half of a surrogate pair cannot be answered back
    except (ValueError, RecursionError) as error:
        raise AgentError(101, 400, "invalid request body", "it is not JSON") from error
    if not isinstance(value, dict):
        raise AgentError(101, 400, "invalid request body", "an object is wanted")
    return value
