"""An agent in a process of its own: connects to a sandbox, serves the agent's API, and connects again after a loss.

`sessions` is the other side, where the endpoints and tunnels of the agent are opened. They end with this process.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Final, TextIO

import httpx
import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive, Scope, Send

from reconciler.model.value import Json
from reconciler.sandbox.agent import config_files
from reconciler.sandbox.agent.api import check_own, describe_error
from reconciler.sandbox.agent.process import VERSION, describe_agent, list_definitions
from reconciler.sandbox.agent.sessions import PATH, Connecting, Message
from reconciler.sandbox.agent.tunnels import AgentError, not_connected
from reconciler.sandbox.server.process import Server, build_config, format_url, open_listener
from reconciler.sandbox.server.sending import send_answer

_PAUSE: Final = 0.5  # seconds between attempts to connect


def serve_agent(
    server: str, configs: Sequence[Path] = (), port: int = 0, version: str = "", out: TextIO | None = None
) -> None:
    """Runs an agent of the sandbox at this address until SIGINT, SIGTERM, or the command `stop` for its session.

    Prints `agent` and the address of its API as soon as it is online. Raises AgentError for an invalid file and if the
    sandbox refuses the agent, OSError if the port is in use. `port` 0 picks a free port.
    """
    with open_listener("127.0.0.1", port) as listener:
        program = AgentProgram(server, configs, version)

        def announce() -> None:
            print(f"agent {format_url(listener)}", file=out or sys.stdout, flush=True)

        async def run() -> None:
            api = Server(build_config(program))
            serving = asyncio.ensure_future(api.serve([listener]))
            connected = asyncio.ensure_future(program.stay_connected(announce))
            await asyncio.wait((serving, connected), return_when=asyncio.FIRST_COMPLETED)
            api.should_exit = True
            connected.cancel()
            await asyncio.wait((serving, connected))
            if not connected.cancelled():
                connected.result()

        asyncio.run(run())


class AgentProgram:
    """The agent. An ASGI application, which is the agent's API.

    server   address of the sandbox
    configs  its configuration files, read when it starts
    version  of its program; empty: the default
    """

    def __init__(self, server: str, configs: Sequence[Path], version: str = "") -> None:
        self._client = httpx.AsyncClient(base_url=server, timeout=httpx.Timeout(30, read=None), trust_env=False)
        self._server, self._configs, self._version = server, configs, version or VERSION
        self._id = ""  # while it is connected
        self._connecting = self._read_files()

    def _read_files(self) -> Connecting:
        """What to connect with. Raises AgentError for an invalid file."""
        configured = config_files.read(self._configs)
        return Connecting(
            authtoken=str(configured.options.get("authtoken") or "") or None,
            version=self._version,
            metadata=str(configured.options.get("metadata") or ""),
            definitions=list_definitions(configured),
        )

    # --- the connection -----------------------------------------------------------------------------------------------

    async def stay_connected(self, announce: Callable[[], None]) -> None:
        """Connects, and again after each loss, until the management API stops the agent.

        `announce` is called when it is online for the first time. Raises AgentError if the sandbox refuses the agent.
        """
        is_reported = False
        while True:
            try:
                async for message in self._connect():
                    if message.command == "stop":
                        return
                    if message.command == "restart":
                        self._connecting = self._read_files()
                    elif not message.command:
                        self._receive(message)
                        announce()
                        announce = _do_nothing
            except httpx.HTTPError as error:
                if not is_reported and announce is not _do_nothing:
                    sys.stderr.write(f"agent: no connection to {self._server} yet: {type(error).__name__}\n")
                    is_reported = True
            self._id = ""
            await asyncio.sleep(_PAUSE)

    async def _connect(self) -> AsyncIterator[Message]:
        """Yields what the sandbox sends, as long as the connection lasts."""
        async with self._client.stream("POST", PATH, json=self._connecting.model_dump()) as response:
            if response.status_code != httpx.codes.OK:
                refused = msgspec.json.decode(await response.aread())
                why = refused["details"]["err"].strip()
                raise AgentError(refused["error_code"], response.status_code, refused["msg"], why)
            async for line in response.aiter_lines():
                yield msgspec.json.decode(line, type=Message)

    def _receive(self, message: Message) -> None:
        if message.refused:
            sys.stderr.write(f"agent: {message.refused}\n")
        self._connecting = self._connecting.model_copy(update={"definitions": message.definitions})
        self._id = message.id

    # --- the agent's API ----------------------------------------------------------------------------------------------

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        try:
            status, body = await self._answer(request)
        except AgentError as failed:
            status, body = failed.status, describe_error(failed)
        except ClientDisconnect:
            return
        await send_answer(send, status, body, {})

    async def _answer(self, request: Request) -> tuple[int, Json]:
        """Passes a request to the sandbox, which has the state of the agent."""
        check_own(request)
        path = request.scope["raw_path"].decode("latin-1")
        if not self._id:
            if (request.method, path) == ("GET", "/api/status"):
                return 200, describe_agent(self._version, is_online=False)
            raise not_connected()
        query = request.scope["query_string"].decode("latin-1")
        type = request.headers.get("content-type", "")
        try:
            answer = await self._client.request(
                request.method,
                f"{PATH}/{self._id}{path}" + (f"?{query}" if query else ""),
                content=await request.body(),
                headers={"Content-Type": type} if type else {},
            )
        except httpx.HTTPError as error:
            raise not_connected() from error
        return answer.status_code, answer.json() if answer.content else None


def _do_nothing() -> None:
    """The announcement after the first."""
