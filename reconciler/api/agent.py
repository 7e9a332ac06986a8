"""A client of an agent's local API, for the kinds whose objects the agent holds. It never sends the API key."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cache
from http import HTTPStatus

from reconciler import __version__, kinds
from reconciler.api import answers, errors, inflating
from reconciler.api.exchange import Connection, NoResponse, Response, open_connection
from reconciler.api.origin import Origin
from reconciler.api.transport import Transport
from reconciler.engine.ports import Failure, Gone, Refused, Transient
from reconciler.model.kind import Home
from reconciler.model.value import Json

_TIMEOUT = 10.0  # seconds; the agent is local, and opening a tunnel takes it one request to the platform
_CONNECTING = 5.0  # seconds until there is a connection
_CONNECTIONS = 8
LARGEST = 8 * 2**20  # bytes; a thousand tunnels take half a MiB
_NOT_YET = (
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.SERVICE_UNAVAILABLE,
)  # the agent has no session yet: nothing was done


class Agent:
    """One agent, with the methods of the engine's platform. With `read_only` it sends nothing but GET."""

    def __init__(self, origin: Origin, connection: Connection, *, read_only: bool) -> None:
        self._origin = origin
        self._connection = connection
        self._methods = {"GET"} if read_only else {"GET", "POST", "PUT", "DELETE"}

    async def get(self, path: str) -> Json:
        return await self._exchange("GET", path, None)

    async def list(self, path: str, key: str) -> Sequence[Mapping[str, Json]]:
        """A whole collection: an agent's lists have no pages."""
        try:
            body = await self.get(path)
        except Gone as gone:
            raise Refused(f"{gone}; check that {self._origin} is the address of an agent") from None
        objects = body.get(key) if isinstance(body, Mapping) else None
        if not isinstance(objects, list) or not all(isinstance(item, Mapping) for item in objects):
            raise Refused(f"{self._origin} did not return a list of {key}; check that it is the address of an agent")
        return objects

    async def send(self, method: str, path: str, body: Mapping[str, Json] | None = None) -> Json:
        return await self._exchange(method, path, body)

    async def _exchange(self, method: str, path: str, body: Mapping[str, Json] | None) -> Json:
        if method not in self._methods:
            raise Refused(f"this client must not send {method} {path}")
        headers = _headers(with_body=body is not None)
        content = b"" if body is None else answers.encode(body)
        try:
            response = await self._connection.send(method, self._origin.at(path), headers, content, largest=LARGEST)
        except NoResponse as failure:
            raise failure.as_failure(method) from None
        return self._decode(method, response)

    def _decode(self, method: str, response: Response) -> Json:
        content = response.content
        body, is_json = answers.decode(content)
        if not response.is_success:
            raise failure_of(method, response.status, body, self._origin)
        if content.strip() and not is_json:
            text = f"the response of {self._origin} is not JSON; check that it is the address of an agent"
            raise Refused(text) if method == "GET" else errors.failure_without_answer(method, text, sent=True)
        return body if content.strip() else None


def is_agent_path(path: str) -> bool:
    """Whether a path belongs to the agent's API. No path of the platform begins like one."""
    return any(path == collection or path.startswith(f"{collection}/") for collection in _collections())


@cache
def _collections() -> tuple[str, ...]:
    return tuple(kind.path for kind in kinds.list_planned() if kind.home is Home.AGENT)


def failure_of(method: str, status: int, body: Json, origin: Origin) -> Failure:
    """The Failure for a status other than 2xx. In `details.err` the agent quotes the platform's error with its code."""
    error = body if isinstance(body, Mapping) else {}
    details = error.get("details")
    why = details.get("err") if isinstance(details, Mapping) else None
    texts = [errors.sanitize(text) for text in (error.get("msg"), why) if isinstance(text, str) and text.strip()]
    found = re.search(r"ERR_[A-Z]+_\d+", why) if isinstance(why, str) else None
    code = found[0] if found else ""
    text = f"{': '.join(texts) or 'no reason given'} (the agent at {origin}, status {status})"
    if status == HTTPStatus.NOT_FOUND:
        return Gone(text, code=code, status=status)
    if status in _NOT_YET:
        return Transient(text, code=code, status=status)
    if status >= 500 and not code:  # with an error code of the platform, nothing was started
        return errors.failure_without_answer(method, text, sent=True)
    # Without its status: 401 and 403 of the agent are not about the API key.
    return Refused(text, code=code)


@cache
def _headers(*, with_body: bool) -> Mapping[str, str]:
    headers = {
        "User-Agent": f"reconciler/{__version__}",
        "Accept": "application/json",
        "Accept-Encoding": inflating.ACCEPTED,
    }
    return headers | {"Content-Type": "application/json"} if with_body else headers


@asynccontextmanager
async def open_agent(
    base_url: str | None, *, read_only: bool, transport: Transport | None = None
) -> AsyncIterator[Agent | None]:
    """A client of the agent at an address, None without an address. Raises ValueError for an invalid address.

    transport  where requests are sent instead of the network
    """
    if base_url is None:
        yield None
        return
    origin = Origin.parse(base_url)
    opening = open_connection(
        origin,
        seconds=_TIMEOUT,
        connecting=_CONNECTING,
        connections=_CONNECTIONS,
        peer=f"the agent at {origin}",
        transport=transport,
    )
    async with opening as connection:
        yield Agent(origin, connection, read_only=read_only)
