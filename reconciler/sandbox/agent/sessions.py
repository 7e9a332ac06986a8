"""Sessions of agents in processes of their own, seen from the sandbox: a session lasts as long as its connection.

POST `/_sandbox/agents` connects an agent. The response is `Message`s, a line of JSON each, and ends with the agent.
`/_sandbox/agents/ID/api/…` is the API of the agent with this id. `program` is the other side.
"""

from __future__ import annotations

import asyncio
import secrets
from typing import Final

import msgspec
from msgspec import Struct
from pydantic import BaseModel, ConfigDict
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from reconciler.sandbox.agent.api import AgentApp, check_own, describe_error, read_body
from reconciler.sandbox.agent.process import Agent, Definition
from reconciler.sandbox.agent.tunnels import AgentError, settings_error
from reconciler.sandbox.base.database import Document, Stored
from reconciler.sandbox.operations.objects import Objects
from reconciler.sandbox.server.sending import send_answer
from reconciler.sandbox.wire import parsing

PATH: Final = "/_sandbox/agents"


def is_of_agents(path: str) -> bool:
    """Whether `Sessions` serves the path."""
    return path == PATH or path.startswith(f"{PATH}/")


class Connecting(BaseModel):
    """The body with which an agent connects: its credential, and what it opens."""

    model_config = ConfigDict(extra="forbid")

    authtoken: str | None = None
    version: str = ""
    metadata: str = ""
    definitions: list[Definition] = []


class Message(Struct, frozen=True, omit_defaults=True):
    """What the sandbox sends to a connected agent: at its start, after each change, and at the end.

    id           of the agent
    definitions  what it has open, so that it can open the same when it connects again
    refused      what could not be opened, and why
    command      `stop` or `restart`: the command of the management API that ended the connection
    """

    id: str
    definitions: list[Definition]
    refused: str = ""
    command: str = ""


class _ConnectedAgent(Agent):
    """An agent whose process receives each change, and executes the commands of the management API."""

    def __init__(self, objects: Objects) -> None:
        super().__init__(objects, id=secrets.token_hex(8))
        self.messages: asyncio.Queue[Message] = asyncio.Queue()

    def announce(self, *, refused: str = "", command: str = "") -> None:
        self.messages.put_nowait(Message(self.id, self.list_definitions(), refused, command))

    def run_command(self, session: Stored, command: str) -> bool:
        if not self.has_session(session):
            return False
        if command in ("stop", "restart"):
            self.announce(command=command)
        return True


class Sessions:
    """The sessions of connected agents, by the id of the agent."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._agents: dict[str, _ConnectedAgent] = {}

    def close(self) -> None:
        """Ends all connections. The agents connect again when they find a sandbox at the same address."""
        for agent in self._agents.values():
            agent.announce(command="disconnect")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves the paths below `PATH`."""
        request = Request(scope, receive)
        identity, _, rest = str(scope["path"]).removeprefix(PATH).strip("/").partition("/")
        agent = self._agents.get(identity)
        if agent is not None and rest:
            await self._serve_api(agent, scope, receive, send)
            return
        try:
            if request.method != "POST" or identity:
                raise AgentError(100, 404, "not found", f"{request.method} {scope['path']}: no such agent is connected")
            check_own(request)
            await self._connect(await read_body(request), request, send)
        except AgentError as failed:
            await send_answer(send, failed.status, describe_error(failed), {})

    async def _serve_api(self, agent: _ConnectedAgent, scope: Scope, receive: Receive, send: Send) -> None:
        below = f"{PATH}/{agent.id}"
        raw = bytes(scope["raw_path"]).removeprefix(below.encode())
        before = agent.list_definitions()
        await AgentApp(agent)({**scope, "path": str(scope["path"]).removeprefix(below), "raw_path": raw}, receive, send)
        if agent.list_definitions() != before:
            agent.announce()

    async def _connect(self, body: Document, request: Request, send: Send) -> None:
        try:
            connecting = parsing.validate(Connecting, body)
        except ValueError as error:
            raise settings_error(str(error)) from error
        agent = _ConnectedAgent(self._objects)
        try:
            refused = ""
            try:
                agent.start_as(connecting.authtoken, connecting.version, connecting.metadata, connecting.definitions)
            except AgentError as failed:
                if not agent.is_ready:
                    raise
                refused = str(failed).strip()
            agent.announce(refused=refused)
            self._agents[agent.id] = agent
            await self._send_messages(agent, request, send)
        finally:
            self._agents.pop(agent.id, None)
            agent.end()

    async def _send_messages(self, agent: _ConnectedAgent, request: Request, send: Send) -> None:
        """Sends until the process of the agent ends, its connection breaks, or a command ends it."""
        headers = [(b"content-type", b"application/x-ndjson")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        lost = asyncio.ensure_future(_wait_until_lost(request.receive))
        try:
            while not lost.done():
                following = asyncio.ensure_future(agent.messages.get())
                await asyncio.wait((lost, following), return_when=asyncio.FIRST_COMPLETED)
                if not following.done():
                    following.cancel()
                    return
                message = following.result()
                line = msgspec.json.encode(message) + b"\n"
                await send({"type": "http.response.body", "body": line, "more_body": not message.command})
                if message.command:
                    return
        finally:
            lost.cancel()


async def _wait_until_lost(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
