"""The local API of an agent: the engine's ports for the kinds that live there, beside those of the platform.

No key is ever sent to it. Nothing is connected until something is asked: most projects have no tunnels of agents.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cache
from http import HTTPStatus
from typing import TYPE_CHECKING

from reconciler import __version__, kinds
from reconciler.api import answers, client, errors
from reconciler.api.origin import Origin
from reconciler.engine.ports import Failure, Gone, Refused, Transient
from reconciler.model.kind import Home
from reconciler.model.value import Json

if TYPE_CHECKING:
    import httpx

_TIMEOUT = 10.0  # seconds; it is on this machine, and opening a tunnel takes it one exchange with the platform
_TOO_LONG = 8 * 2**20  # bytes; a thousand tunnels are half of one MiB
_NOT_YET = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)  # no session yet: surely not done


class Agent:
    """One agent, as the engine's platform. One that is `reading` can send nothing but GET."""

    def __init__(self, base_url: str, connections: AsyncExitStack, *, reading: bool) -> None:
        """ValueError if the address will not do."""
        self._origin = Origin.parse(base_url)
        self._connections = connections
        self._opening = asyncio.Lock()
        self._http: httpx.AsyncClient | None = None
        self._methods = {"GET"} if reading else {"GET", "POST", "DELETE"}

    async def get(self, path: str) -> Json:
        return await self._exchange("GET", path, None)

    async def list(self, path: str, key: str) -> Sequence[Mapping[str, Json]]:
        """The whole of a collection: an agent has no pages."""
        try:
            body = await self.get(path)
        except Gone as gone:
            raise Refused(f"{gone}; is {self._origin} the address of an agent?") from None
        objects = body.get(key) if isinstance(body, Mapping) else None
        if not isinstance(objects, list) or not all(isinstance(each, Mapping) for each in objects):
            raise Refused(f"{self._origin} did not answer with a list of {key}; is it the address of an agent?")
        return objects

    async def send(self, method: str, path: str, body: Mapping[str, Json] | None = None) -> Json:
        return await self._exchange(method, path, body)

    async def _exchange(self, method: str, path: str, body: Mapping[str, Json] | None) -> Json:
        if method not in self._methods:
            raise Refused(f"{method} {path} is not for this client to send")
        address = self._origin.at(path)
        http = await self._client()
        content = None if body is None else json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        request = http.build_request(
            method, address, content=content, headers={"Content-Type": "application/json"} if content else {}
        )
        try:
            async with asyncio.timeout(_TIMEOUT):
                response = await http.send(request, stream=True)
                try:
                    read = await _content(method, response, self._origin)
                finally:
                    await response.aclose()
        except TimeoutError:
            text = f"no answer from the agent at {self._origin} within {_TIMEOUT:g} s"
            raise errors.unanswered(method, text, sent=True) from None
        except Failure:
            raise
        except Exception as failure:  # noqa: BLE001 - two libraries' worth of network errors, and some unwrapped
            broken = client.network(failure)
            verb = "the connection broke off to the agent at" if broken.sent else "cannot reach the agent at"
            text = f"{verb} {self._origin}: {broken.why}"
            raise Refused(text) if broken.lasting else errors.unanswered(method, text, sent=broken.sent) from None
        return self._meaning(method, response.status_code, read)

    def _meaning(self, method: str, status: int, content: bytes) -> Json:
        body, is_json = answers.decoded(content)
        if not 200 <= status < 300:
            raise failure(method, status, body, self._origin)
        if content.strip() and not is_json:
            text = f"{self._origin} answered with what is not JSON; is it the address of an agent?"
            raise Refused(text) if method == "GET" else errors.unanswered(method, text, sent=True)
        return body if content.strip() else None

    async def _client(self) -> httpx.AsyncClient:
        async with self._opening:
            if self._http is None:
                self._http = await self._connections.enter_async_context(_opened(self._origin))
            return self._http


def is_agents(path: str) -> bool:
    """Whether a path is one of the agent's API. No path of the platform begins like one."""
    return any(path == each or path.startswith(f"{each}/") for each in _collections())


@cache
def _collections() -> tuple[str, ...]:
    return tuple(kind.path for kind in kinds.planned() if kind.home is Home.AGENT)


def failure(method: str, status: int, body: Json, origin: Origin) -> Failure:
    """What an answer other than 2xx means. The agent quotes the platform in `details.err`, error code and all."""
    said = body if isinstance(body, Mapping) else {}
    details = said.get("details")
    why = details.get("err") if isinstance(details, Mapping) else None
    words = [errors.harmless(each) for each in (said.get("msg"), why) if isinstance(each, str) and each.strip()]
    found = re.search(r"ERR_[A-Z]+_\d+", why) if isinstance(why, str) else None
    code = found[0] if found else ""
    text = f"{': '.join(words) or 'no reason given'} (the agent at {origin}, status {status})"
    if status == HTTPStatus.NOT_FOUND:
        return Gone(text, code=code, status=status)
    if status in _NOT_YET:
        return Transient(text, code=code, status=status)
    if status >= 500 and not code:  # with a code of the platform it is certain that nothing was started
        return errors.unanswered(method, text, sent=True)
    # Without its status: a refusal of the agent's says nothing about our key.
    return Refused(text, code=code)


async def _content(method: str, response: httpx.Response, origin: Origin) -> bytes:
    content = bytearray()
    async for chunk in response.aiter_bytes():
        content += chunk
        if len(content) > _TOO_LONG:
            text = f"the agent at {origin} answered with more than {_TOO_LONG // 2**20} MB"
            raise Refused(text) if method == "GET" else errors.unanswered(method, text, sent=True)
    return bytes(content)


@asynccontextmanager
async def _opened(origin: Origin) -> AsyncIterator[httpx.AsyncClient]:
    import httpx

    from reconciler.api.transport import HTTP, OneRequest

    limits = httpx.Limits(max_connections=8, keepalive_expiry=client.IDLE)
    async with HTTP(
        transport=OneRequest(origin, limits),
        headers={"User-Agent": f"reconciler/{__version__}", "Accept": "application/json"},
        follow_redirects=False,
        timeout=httpx.Timeout(_TIMEOUT, connect=5.0),
    ) as http:
        yield http


@asynccontextmanager
async def opened(base_url: str | None, *, reading: bool) -> AsyncIterator[Agent | None]:
    """An agent, if there is one to be had. ValueError if the address will not do."""
    if base_url is None:
        yield None
        return
    async with AsyncExitStack() as connections:
        yield Agent(base_url, connections, reading=reading)
