"""The HTTP server of the emulated agent's local API: no key, JSON bodies of up to 1 MiB, the agent's error format.

GET `/api` and `/api/status`; GET and POST `/api/endpoints` and, the older API, `/api/tunnels`; GET and DELETE of one by
its name, and PUT of an endpoint; GET, POST (replay) and DELETE `/api/requests/http`, GET of one captured request.
"""

from __future__ import annotations

import json
from urllib.parse import unquote

from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive, Scope, Send

from reconciler.model.value import Json
from reconciler.sandbox.agent import exchanges
from reconciler.sandbox.agent.process import ENDPOINTS, TUNNELS, Agent
from reconciler.sandbox.agent.tunnels import AgentError
from reconciler.sandbox.server.browsers import find_foreign
from reconciler.sandbox.server.clock import LoopClock
from reconciler.sandbox.server.faults import Fault, Faults
from reconciler.sandbox.server.sending import Answer, Cut, FaultySender, send_answer

_ENDPOINTS, _TUNNELS = "/api/endpoints", "/api/tunnels"
_LARGEST = 2**20  # bytes of a body


class AgentApp:
    """One ASGI application.

    faults  those for the agent's API affect its requests; None: there are none
    cut     resets the connection of a request
    """

    def __init__(self, agent: Agent, faults: Faults | None = None, cut: Cut | None = None) -> None:
        self._agent, self._faults = agent, faults or Faults()
        self._clock = LoopClock()
        self._sender = FaultySender(cut or (lambda _: None), self._clock, _build_fault_answer)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        fault = self._faults.find_fault(request.method, str(scope["path"]), agent=True)
        if fault is not None and fault.delay:
            await self._clock.sleep(fault.delay)
        try:
            is_undone = fault is not None and not fault.takes_effect
            status, body = (0, None) if is_undone else await self._answer_or_refuse(request)
        except ClientDisconnect:
            return
        if fault is None:
            await send_answer(send, status, body, {})
        else:
            await self._sender.send(fault, request, lambda _: None, send, (status, body, {}))

    async def _answer_or_refuse(self, request: Request) -> tuple[int, Json]:
        try:
            return await self._answer(request)
        except AgentError as failed:
            return failed.status, describe_error(failed)

    async def _answer(self, request: Request) -> tuple[int, Json]:
        check_own(request)
        agent = self._agent
        path = request.scope["raw_path"].decode("latin-1").rstrip("/")  # not decoded: names may contain a slash
        match request.method, path:
            case "GET", "/api":
                uris = {"endpoints_uri": _ENDPOINTS, "tunnels_uri": _TUNNELS, "requests_uri": exchanges.PATH}
                return 200, {"uri": "/api", **uris}
            case "GET", "/api/status":
                return 200, agent.describe()
            case "GET", "/api/endpoints":
                return 200, {"endpoints": agent.list_running(ENDPOINTS)}
            case "POST", "/api/endpoints":
                return 201, agent.open_endpoint(await read_body(request))
            case "GET", "/api/tunnels":
                return 200, {"tunnels": agent.list_tunnels(), "uri": _TUNNELS}
            case "POST", "/api/tunnels":
                return 201, agent.open(await read_body(request))
        for collection, of in ((ENDPOINTS, _ENDPOINTS), (TUNNELS, _TUNNELS)):
            name = path.removeprefix(f"{of}/") if path.startswith(f"{of}/") else ""
            if name and "/" not in name:
                return await self._answer_one(request, collection, unquote(name), path)
        if path == exchanges.PATH or path.startswith(f"{exchanges.PATH}/"):
            return await self._answer_captured(request, path)
        raise _not_supported(request.method, path)

    async def _answer_one(self, request: Request, collection: str, name: str, path: str) -> tuple[int, Json]:
        """The response of an operation on one endpoint or tunnel."""
        match request.method, collection:
            case "GET", _:
                return 200, self._agent.find(collection, name)
            case "DELETE", _:
                self._agent.close(collection, name)
                return 204, None
            case "PUT", "AgentEndpoint":
                answer, is_new = self._agent.put_endpoint(name, await read_body(request))
                return 201 if is_new else 200, answer
        raise _not_supported(request.method, path)

    async def _answer_captured(self, request: Request, path: str) -> tuple[int, Json]:
        """The response of an operation on captured requests."""
        requests, identity, query = self._agent.captured, path.removeprefix(exchanges.PATH)[1:], request.query_params
        match request.method, identity:
            case "GET", "":
                found = requests.list(limit=query.get("limit"), tunnel_name=query.get("tunnel_name"))
                return 200, {"uri": exchanges.PATH, "requests": found}
            case "POST", "":
                requests.replay(await read_body(request))
                return 204, None
            case "DELETE", "":
                requests.clear()
                return 204, None
            case "GET", _:
                return 200, requests.find(unquote(identity))
        raise _not_supported(request.method, path)


def check_own(request: Request) -> None:
    """Raises AgentError for a request of a web page."""
    foreign = find_foreign(request.headers)
    if foreign is not None:
        raise AgentError(100, 403, "forbidden", f"the header {foreign[0]} names another site: {foreign[1]!r}")


def describe_error(failed: AgentError) -> Json:
    """The body of the response."""
    details = {"err": str(failed)}
    return {"error_code": failed.number, "status_code": failed.status, "msg": failed.msg, "details": details}


def _build_fault_answer(fault: Fault) -> Answer:
    """The response of an injected fault."""
    body = describe_error(AgentError(100, fault.status, "injected fault", "Injected fault."))
    return fault.status, body if fault.body is None else fault.body, dict(fault.headers)


def _not_supported(method: str, path: str) -> AgentError:
    return AgentError(100, 404, "not found", f"{method} {path} is not supported")


async def read_body(request: Request) -> dict[str, Json]:
    """The body, which is a JSON object. Raises AgentError for any other."""
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
