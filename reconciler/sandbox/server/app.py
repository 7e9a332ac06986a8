"""The ASGI application of the sandbox: headers, bodies, queries, error responses, and the control API `/_sandbox`.

`objects` executes the operations. The control API needs no key and no version header: GET `requests?since=N` and DELETE
`requests` (the log), GET, POST and DELETE `faults`, PUT `budget` and `variants`, GET and PUT `provisioning` (of
certificates) and `clock`, POST and DELETE `objects` (store without validation, delete all), DELETE `/_sandbox` (reset),
GET `accounts`, GET `deliveries?destination=ed_…` (see `events`), POST `agent` (restart, with `authtoken` and `version`
if they are in the body), DELETE `agent` (disconnect), PUT `agent` (connect again), POST `agent/requests` (store
captured requests), `agents` (see `Sessions`), GET `openapi.json`. It rejects requests of web pages. `?account=NAME`
selects an account for requests, budget, objects and deliveries.
"""

from __future__ import annotations

import base64
import binascii
import re
import secrets
import traceback
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import partial
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive, Scope, Send

from reconciler.engine.ports import Clock
from reconciler.model import dialect
from reconciler.model.value import Json
from reconciler.sandbox.agent.exchanges import Exchange
from reconciler.sandbox.agent.process import Agent
from reconciler.sandbox.agent.sessions import Sessions, is_of_agents
from reconciler.sandbox.agent.tunnels import AgentError
from reconciler.sandbox.base import certificates
from reconciler.sandbox.base.database import Document
from reconciler.sandbox.base.ids import Ksuids
from reconciler.sandbox.base.provisioning import Provisioning
from reconciler.sandbox.base.seeds import RawObject
from reconciler.sandbox.base.variants import Variants
from reconciler.sandbox.operations.objects import Objects
from reconciler.sandbox.operations.routes import Act, Operation, Router, operations
from reconciler.sandbox.server import browsers
from reconciler.sandbox.server.clock import LoopClock
from reconciler.sandbox.server.conditions import ClockSetting, Conditions
from reconciler.sandbox.server.faults import Budgets, Fault, Faults, HiddenObjects, Limits, Log
from reconciler.sandbox.server.sending import Answer, Cut, FaultySender, send_answer
from reconciler.sandbox.wire import bodies, parsing, queries, refusal
from reconciler.sandbox.wire.openapi import document
from reconciler.sandbox.wire.parsing import Form
from reconciler.sandbox.wire.queries import Query
from reconciler.sandbox.wire.refusal import Refusal
from reconciler.sandbox.wire.request import ApiRequest
from reconciler.sandbox.wire.responses import View

CONTROL = "/_sandbox"
_LARGEST_BODY = 4 * 2**20
_HOST = re.compile(r"[A-Za-z0-9.\-]+(?::\d+)?|\[[0-9A-Fa-f:]+\](?::\d+)?")


OnRequest = Callable[[str, str], Awaitable[None]]
"""Awaited with method and path when a request of the API arrives, before anything else happens to it."""


class _AgentStart(BaseModel):
    """The body of POST `/_sandbox/agent`."""

    model_config = ConfigDict(extra="forbid", strict=True)

    authtoken: str | None = None
    version: Annotated[str, Field(min_length=1)] | None = None


class App:
    """The ASGI application of one sandbox.

    cut         resets the connection of a request
    accounts    the name of each account besides the first, by its API key
    per_minute  the request budget of each account; None: unlimited
    latency     seconds added to each response
    clock       measures the request budget, and sleeps for latency and faults
    on_request  see `OnRequest`
    conditions  those that it starts in
    """

    def __init__(
        self,
        objects: Objects,
        *,
        api_key: str,
        cut: Cut,
        accounts: Mapping[str, str] | None = None,
        per_minute: int | None = None,
        latency: float = 0.0,
        clock: Clock | None = None,
        on_request: OnRequest | None = None,
        conditions: Conditions | None = None,
    ) -> None:
        self.objects = objects
        self._first = objects.variants
        self._conditions = conditions or Conditions()
        self.table = tuple(operations(objects.kinds))
        self.router = Router(self.table)
        self._clock = clock or LoopClock()
        self.log, self.faults, self._budgets = Log(), Faults(), Budgets(per_minute, self._clock)
        self._hidden = HiddenObjects(self._clock)
        self._accounts = dict(accounts or {})
        self._names = frozenset(self._accounts.values())
        self._api_key, self._latency, self._on_request = api_key, latency, on_request
        self._sender = FaultySender(cut, self._clock, self._build_fault_answer)
        self._ids = Ksuids()
        self._embedded: dict[str, list[str]] = {}  # the fields of a kind that list its children
        for kind in objects.kinds:
            if kind.parent is not None and kind.parent.embedded:
                self._embedded.setdefault(kind.parent.kind, []).append(kind.parent.embedded)
        self.agent: Agent | None = None
        self.sessions = Sessions(objects)
        self._restore_conditions()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        if is_of_agents(str(scope["path"])):
            with suppress(ClientDisconnect):
                await self.sessions(scope, receive, send)
            return
        request = Request(scope, receive)
        account = "" if _is_control(scope) else self._find_account(request.headers.get("authorization"))
        with suppress(ClientDisconnect), self._budgets.find(account).count_running():
            if _is_control(scope):
                await send_answer(send, *await self._answer_control(self._control(request)))
            else:
                await self._serve(request, send, account)

    async def serve_unaffected(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves a request without faults, latency and log entry, for the test that configured these."""
        if _is_control(scope):
            await self(scope, receive, send)
        else:
            asked = await _read_request(Request(scope, receive))
            account = self._find_account(asked.headers.get("authorization"))
            await send_answer(send, *self._run_operation(asked, account))

    async def _serve(self, request: Request, send: Send, account: str) -> None:
        path = str(request.scope["path"])
        arrived = self._clock.now()
        asked = await _read_request(request)
        if self._on_request is not None:
            await self._on_request(asked.method, path)
        fault = self.faults.find_fault(asked.method, path, account)
        late = self._latency + (fault.delay if fault else 0)
        if late:
            await self._clock.sleep(late - self._latency / 2)  # half of the latency before and half after the operation
        undone = fault is not None and not fault.takes_effect
        status, body, headers = (0, None, {}) if undone else self._run_operation(asked, account)
        if fault is not None and fault.hide and status == 201 and isinstance(body, dict) and "id" in body:
            self._hidden.hide(account, str(body["id"]), fault.hide)
        if self._latency:
            await self._clock.sleep(max(0.0, arrived + late - self._clock.now()))  # includes the time of the operation
        if fault is None:
            self._write_log(asked, account, status)
            await send_answer(send, status, body, headers)
        else:
            log = partial(self._write_log, asked, account)
            await self._sender.send(fault, request, log, send, (status, body, headers))

    def _write_log(self, asked: ApiRequest, account: str, status: int) -> None:
        self.log.write(asked.method, f"{asked.path}?{asked.query}" if asked.query else asked.path, status, account)

    def _run_operation(self, asked: ApiRequest, account: str) -> Answer:
        if browsers.is_preflight(asked.method, asked.headers):
            return 204, None, browsers.answer_preflight(asked.headers)
        status, body, headers = self._run_checked(asked, account)
        return status, body, {**headers, **browsers.allow_origin(asked.headers)}

    def _run_checked(self, asked: ApiRequest, account: str) -> Answer:
        try:
            with self.objects.database.in_account(account):
                status, body = self._operate(asked, account)
        except Refusal as refused:
            return self._error(refused)
        except Exception:  # noqa: BLE001 - a bug of the sandbox must be answered in the API's error format
            return self._internal_error()
        return status, body, {}

    async def _answer_control(self, answer: Awaitable[tuple[int, Json]]) -> tuple[int, Json, dict[str, str]]:
        try:
            status, body = await answer
        except Refusal as refused:
            return self._error(refused)
        except ClientDisconnect:
            raise
        except Exception:  # noqa: BLE001 - as above
            return self._internal_error()
        return status, body, {}

    def reset(self) -> None:
        """Restores the initial state: no objects, faults, log or changed settings. Ids do not repeat."""
        self.objects.database.clear()
        self._restore_conditions()
        self._hidden.clear()
        self.log.clear()
        self._budgets.clear()
        self.objects.variants = self._first
        if self.agent is not None:
            with suppress(AgentError):  # its files may name objects that were deleted
                self.agent.start("")
        self.sessions.close()

    def _restore_conditions(self) -> None:
        self.faults.all = [fault.model_copy(deep=True) for fault in self._conditions.faults]
        self.objects.provisioning = self._conditions.provisioning
        self._set_clock(self._conditions.clock)

    def _set_clock(self, setting: ClockSetting) -> None:
        """Moves the platform's clock. Rate limits, latency and ids keep the time of the machine."""
        self.objects.database.clock_offset = timedelta(seconds=setting.offset)

    def _describe_clock(self) -> Document:
        database = self.objects.database
        return {"now": certificates.stamp(database.now()), "offset": database.clock_offset.total_seconds()}

    # --- errors -------------------------------------------------------------------------------------------------------

    def _error(self, refused: Refusal) -> tuple[int, Json, dict[str, str]]:
        operation = f"op_{self._ids.new()}"
        code = {"error_code": f"ERR_NGROK_{refused.code}"} if refused.code is not None else {}
        details = {"operation_id": operation}
        body = {**code, "status_code": refused.status, "msg": refused.msg, "details": details}
        return refused.status, body, {**refused.headers, "Ngrok-Operation-Id": operation}

    def _internal_error(self) -> Answer:
        """The response to an unexpected exception, which is printed to standard error."""
        traceback.print_exc()
        return self._error(Refusal(None, 500, "Internal error of the sandbox; see its standard error."))

    def _build_fault_answer(self, fault: Fault) -> tuple[int, Json, dict[str, str]]:
        """The response of an injected fault."""
        status, body, headers = self._error(Refusal(None, fault.status, "Injected fault."))
        return status, body if fault.body is None else fault.body, {**headers, **fault.headers}

    # --- the management API -------------------------------------------------------------------------------------------

    def _operate(self, asked: ApiRequest, account: str) -> tuple[int, Json]:
        caller, budget = self._authenticate(asked, account), self._budgets.find(account)
        self._check_version(asked)
        budget.spend()
        found = self.router.match(asked.path)
        if found is None:
            raise refusal.NO_SUCH_PATH(path=asked.path)
        operation = found.by_method.get(asked.method)
        if operation is None:
            refused = refusal.METHOD_NOT_ALLOWED(method=asked.method)
            refused.headers["Allow"] = ", ".join(sorted(found.by_method))
            raise refused
        if operation.act is Act.CREATE:
            budget.create(operation.path)
        query = queries.read(asked.query, operation)
        body = dialect.NGROK.translate_response(
            operation.path, _read_body(asked, operation)
        )  # either spelling is understood
        view = self.objects.view(_base(asked))
        is_read = operation.act in (Act.LIST, Act.GET, Act.GET_MODULE)
        if is_read and any(self._hidden.is_hidden(account, id) for id in found.values):
            raise refusal.NOT_FOUND()
        if operation.act is Act.LIST:
            answer = self._without_hidden(operation, self._list(operation, found.values, view, query, asked), account)
        else:
            answer = self.objects.answer(operation, found.values, body, view, caller)
            if operation.act is Act.GET and isinstance(answer, dict):
                answer = self._hidden.without_hidden(account, answer, self._embedded.get(operation.kind.name, ()))
        # A request with the version header of the public service gets the public field names.
        is_public = dialect.NGROK.version[0].lower() in asked.headers
        return operation.status, dialect.NGROK.render_response(operation.path, answer) if is_public else answer

    def _without_hidden(self, operation: Operation, page: Document, account: str) -> Document:
        """The page of a list without the objects, and the children in their bodies, that are not visible yet."""
        kind, visible = operation.kind, self._hidden.without_hidden(account, page, (operation.kind.list_key,))
        below = self._embedded.get(kind.name, ())
        objects = [self._hidden.without_hidden(account, body, below) for body in visible[kind.list_key]]
        return {**visible, kind.list_key: objects}

    def _find_account(self, authorization: str | None) -> str:
        """The account of the key in the header; that of the first account, which is empty, if the key is unknown."""
        if not self._accounts:
            return ""
        try:
            key = _read_key(authorization)
        except Refusal:
            return ""
        return self._accounts.get(key) or self.objects.account_of(key)

    def _authenticate(self, asked: ApiRequest, account: str) -> str:
        """The owner of the API key of the request; empty for a key that the sandbox was started with."""
        key = _read_key(asked.headers.get("authorization"))
        if secrets.compare_digest(key.encode(), self._api_key.encode()) or key in self._accounts:
            return ""
        if account and account not in self._names:  # in the file of an earlier start, but no longer served
            raise refusal.WRONG_KEY()
        owner = self.objects.owner_of(key)
        if owner is None:
            raise refusal.WRONG_KEY()
        if not self.objects.world.is_active(owner):
            raise refusal.KEY_OF_INACTIVE(id=owner)
        return owner

    def _check_version(self, asked: ApiRequest) -> None:
        versions = [asked.headers[name] for name in ("service-version", "ngrok-version") if name in asked.headers]
        if not versions:
            raise refusal.NO_VERSION()
        for version in versions:
            if version.strip() != "2":
                raise refusal.BAD_VERSION(version=version)

    def _list(
        self, operation: Operation, values: tuple[str, ...], view: View, query: Query, asked: ApiRequest
    ) -> Document:
        kind, uri = operation.kind, view.base + asked.path.rstrip("/")
        if not queries.is_paged(operation):
            return {kind.list_key: self.objects.list_all(kind, values, view), "uri": uri}
        page, follows = self.objects.page(kind, values, query, view)
        next_page = f"{uri}?{query.next_query(follows)}" if follows else None
        return {kind.list_key: page, "uri": uri, "next_page_uri": next_page}

    # --- control API --------------------------------------------------------------------------------------------------

    def _account_query(self, request: Request) -> str | None:
        """The account that the query `account=NAME` selects; None without one. An empty name is the first account."""
        name = request.query_params.get("account")
        if name and name not in self._names:
            raise refusal.CONTROL(why=f"account: {name!r} does not exist")
        return name

    async def _control(self, request: Request) -> tuple[int, Json]:
        path = str(request.scope["path"])
        foreign = browsers.find_foreign(request.headers)
        if foreign is not None:
            raise refusal.FOREIGN_HOST(header=foreign[0], value=foreign[1])
        selected = self._account_query(request)
        database = self.objects.database
        match request.method, path.removeprefix(CONTROL).strip("/"):
            case "GET", "requests":
                since = request.query_params.get("since", "0")
                return 200, {"requests": self.log.since(int(since) if since.isdecimal() else 0, selected)}
            case "DELETE", "requests":
                self.log.clear()
            case "GET", "faults":
                return 200, {"faults": [fault.to_json() for fault in self.faults.all]}
            case "POST", "faults":
                self.faults.all += await _read_items(request, Fault)
            case "DELETE", "faults":
                self.faults.all.clear()
            case "PUT", "budget":
                self._budgets.set_limits(_validate(Limits, await _value(request)), selected)
            case "PUT", "variants":
                self.objects.variants = _validate(Variants, await _value(request))
            case "GET", "provisioning":
                return 200, self.objects.provisioning.model_dump()
            case "PUT", "provisioning":
                settings = _validate(Provisioning, await _value(request))
                try:
                    settings.check_available()
                except ValueError as error:
                    raise refusal.CONTROL(why=error) from error
                self.objects.provisioning = settings
            case "GET", "clock":
                return 200, self._describe_clock()
            case "PUT", "clock":
                self._set_clock(_validate(ClockSetting, await _value(request)))
                return 200, self._describe_clock()
            case "POST", "objects":
                items = await _read_items(request, RawObject)
                with database.in_account(selected or ""), database.transaction():
                    for item in items:
                        self.objects.insert_raw(item.collection, item.object)
            case "DELETE", "objects":
                database.clear()
            case "DELETE", "":
                self.reset()
            case "POST", "agent" if self.agent is not None:
                start = _validate(_AgentStart, await _value(request))
                with _refusals_of_agent():
                    self.agent.start(start.authtoken, start.version)
            case "PUT", "agent" if self.agent is not None:
                with _refusals_of_agent():
                    self.agent.reconnect()
            case "DELETE", "agent" if self.agent is not None:
                self.agent.disconnect()
            case "POST", "agent/requests" if self.agent is not None:
                for exchange in await _read_items(request, Exchange):
                    self.agent.captured.add(exchange)
            case "GET", "deliveries":
                with database.in_account(selected or ""):
                    found = self.objects.events.deliveries(request.query_params.get("destination", ""))
                return 200, {"deliveries": found}
            case "GET", "accounts":
                return 200, {"accounts": sorted(self._names)}
            case "GET", "openapi.json":
                return 200, document(self.table, _base(await _read_request(request)))
            case _:
                raise refusal.NO_SUCH_PATH(path=path)
        return 204, None


@contextmanager
def _refusals_of_agent() -> Iterator[None]:
    try:
        yield
    except AgentError as failed:
        raise refusal.CONTROL(why=" ".join(str(failed).split())) from failed


def _is_control(scope: Scope) -> bool:
    return scope["path"] == CONTROL or str(scope["path"]).startswith(f"{CONTROL}/")


def _read_key(authorization: str | None) -> str:
    """The API key in the header Authorization."""
    if not authorization:
        raise refusal.NO_KEY()
    scheme, _, key = authorization.partition(" ")
    if scheme.lower() == "basic":
        try:
            key = base64.b64decode(key, validate=True).decode().rpartition(":")[2]
        except (binascii.Error, ValueError) as error:
            raise refusal.BAD_AUTHORIZATION() from error
    elif scheme.lower() != "bearer" or not key.strip():
        raise refusal.BAD_AUTHORIZATION()
    return key.strip()


def _base(asked: ApiRequest) -> str:
    """The base address (scheme, host and port) that the client used."""
    host = asked.headers.get("host", "")
    if not _HOST.fullmatch(host):
        server = asked.server or ("localhost", None)
        name = f"[{server[0]}]" if ":" in server[0] else server[0]
        host = name if server[1] is None else f"{name}:{server[1]}"
    return f"{asked.scheme}://{host}"


async def _read_request(request: Request) -> ApiRequest:
    scope = request.scope
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(scope["headers"])}
    query = scope["query_string"].decode("latin-1")
    # The path is read from the scope, because `request.url` raises for a malformed Host header.
    path, body = str(scope["path"]), await _body(request)
    return ApiRequest(request.method, path, query, headers, scope.get("server"), body, scope["scheme"])


async def _body(request: Request) -> bytes:
    """The body of the request. A body over the limit is cut off after the limit."""
    body = b""
    async for part in request.stream():
        if len(body) <= _LARGEST_BODY:
            body += part
    return body


def _read_body(asked: ApiRequest, operation: Operation) -> Document:
    raw = asked.body
    if not raw.strip():
        if operation.act is Act.CREATE:
            raise refusal.TRUNCATED_BODY()
        return {}
    if operation.act not in (Act.CREATE, Act.UPDATE, Act.PUT_MODULE, Act.COMMAND):
        raise refusal.UNEXPECTED_BODY(method=asked.method)
    if len(raw) > _LARGEST_BODY:
        raise refusal.TOO_LARGE()
    _check_type(asked.headers.get("content-type"))
    return bodies.parse(raw)


def _check_type(content_type: str | None) -> None:
    if content_type is None:
        raise refusal.NO_TYPE()
    if content_type.partition(";")[0].strip().lower() != "application/json":
        raise refusal.UNSUPPORTED_TYPE(type=content_type)


async def _value(request: Request) -> Any:
    _check_type(request.headers.get("content-type"))
    return bodies.read(await request.body())


async def _read_items(request: Request, form: type[Form]) -> list[Form]:
    """The items of the body, which is a list or a single item."""
    body = await _value(request)
    return [_validate(form, item) for item in (body if isinstance(body, list) else [body])]


def _validate(form: type[Form], value: Any) -> Form:
    try:
        return parsing.validate(form, value)
    except ValueError as error:
        raise refusal.CONTROL(why=error) from error
