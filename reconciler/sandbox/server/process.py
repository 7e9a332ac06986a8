"""Runs the sandbox as a process: one listening socket, one database, until SIGINT or SIGTERM."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import struct
import sys
import threading
from collections.abc import Callable, Generator, Sequence
from functools import partial
from pathlib import Path
from typing import TextIO

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from reconciler.kinds import read_only
from reconciler.sandbox.agent.api import AgentApp
from reconciler.sandbox.agent.process import Agent, forget_earlier
from reconciler.sandbox.agent.tunnels import AgentError
from reconciler.sandbox.base.database import Database
from reconciler.sandbox.base.seeds import load_seed
from reconciler.sandbox.base.variants import Variants
from reconciler.sandbox.operations.objects import Objects
from reconciler.sandbox.server.accounts import Accounts, read_accounts
from reconciler.sandbox.server.app import App
from reconciler.sandbox.server.conditions import read_conditions

DEFAULT_KEY = "sandbox"
_PATIENCE = 2  # seconds for running requests at the end of the process
_CONNECTIONS: dict[tuple[str, int], asyncio.Transport] = {}


class _Severable(HttpToolsProtocol):
    """An HTTP connection that a fault can reset; registered by the client's address."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        # asyncio sets this only for sockets with an explicit protocol number. Without it, a response waits 40 ms for
        # the client's acknowledgement of its head.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.client is not None:
            _CONNECTIONS[self.client] = transport

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self.client is not None:
            _CONNECTIONS.pop(self.client, None)


def _reset_connection(scope: Scope) -> None:
    transport = _CONNECTIONS.get(tuple(scope["client"]))
    if transport is not None:
        # A linger time of 0 makes the kernel send a reset instead of closing the connection in order.
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()


class Server(uvicorn.Server):
    """The server of a process, which a signal ends.

    on_end    called then, before running requests are awaited
    on_start  called when a signal would end it
    """

    def __init__(
        self,
        config: uvicorn.Config,
        on_end: Callable[[], None] = lambda: None,
        on_start: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(config)
        self._on_end, self._on_start = on_end, on_start

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Ends the server on a signal, without raising the signal again afterwards."""
        if threading.current_thread() is not threading.main_thread():
            self._on_start()
            yield
            return
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            self._on_start()
            yield
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Aborts the requests that are not answered within `_PATIENCE` seconds because of a fault or latency."""
        self._on_end()
        ending = asyncio.ensure_future(self._abort_connections())
        await super().shutdown(sockets)
        ending.cancel()

    async def _abort_connections(self) -> None:
        await asyncio.sleep(_PATIENCE)
        for transport in list(_CONNECTIONS.values()):
            transport.abort()
        for task in self.server_state.tasks:
            task.cancel()


class _SecondServer(uvicorn.Server):
    """A second server of the same process, which leaves the signals to the first."""

    def __init__(self, config: uvicorn.Config, listener: socket.socket) -> None:
        super().__init__(config)
        self.listener = listener

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


def serve(
    host: str = "127.0.0.1",
    port: int = 0,
    db: str = ":memory:",
    api_key: str = DEFAULT_KEY,
    seed: Sequence[Path] = (),
    out: TextIO | None = None,
    *,
    accounts: Accounts = 0,
    requests_per_minute: int | None = None,
    latency: float = 0.0,
    agent_port: int | None = None,
    agent_configs: Sequence[Path] = (),
    variants: Variants | None = None,
    faults: Path | None = None,
    nameserver: str | None = None,
) -> None:
    """Serves until SIGINT or SIGTERM. Prints the base URL as the first line of `out`.

    With an agent (`agent_port`), the second line is `agent` and the address of its API, which is on the loopback
    interface like that of the real agent.

    `port` 0 picks a free port; `db` is a file or `:memory:`; `latency` is in seconds, added to each response. Raises
    OSError if the address is in use, ValueError for an invalid file of accounts, seeds or faults, sqlite3.Error if the
    file is not a database. `faults` is a file of conditions to start in; `nameserver` replaces the name server in it.
    """
    by_key = read_accounts(accounts, api_key)
    conditions = read_conditions(faults, nameserver)
    database = Database(db)
    try:
        objects = Objects(database, read_only.list_served())
        objects.variants = variants or Variants()
        for path in seed:
            load_seed(objects, path)
        forget_earlier(objects)
        agent = Agent(objects, agent_configs)
        app = App(
            objects,
            api_key=api_key,
            accounts=by_key,
            cut=_reset_connection,
            per_minute=requests_per_minute,
            latency=latency,
            conditions=conditions,
        )
        with contextlib.ExitStack() as listening:
            listener = listening.enter_context(open_listener(host, port))
            lines = [format_url(listener)]
            agent_server = None
            if agent_port is not None:
                second = listening.enter_context(open_listener("127.0.0.1", agent_port))
                lines.append(f"agent {format_url(second)}")
                agent_server = _SecondServer(build_config(AgentApp(agent, app.faults, _reset_connection)), second)
                app.agent = agent
                _start(agent)
            announce = partial(print, "\n".join(lines), file=out or sys.stdout, flush=True)
            server = Server(build_config(_ignore_cancellation(app)), app.sessions.close, announce)
            asyncio.run(_serve(server, listener, agent_server))
    finally:
        database.close()


def _start(agent: Agent) -> None:
    """Starts the agent. After an error it is reachable, and reports that it is not ready."""
    try:
        agent.start()
    except AgentError as failed:
        sys.stderr.write(f"agent: {str(failed).strip()}\n")


async def _serve(server: Server, listener: socket.socket, agent_server: _SecondServer | None) -> None:
    """Runs both servers until a signal ends the first."""
    task = None if agent_server is None else asyncio.ensure_future(agent_server.serve([agent_server.listener]))
    await server.serve([listener])
    if agent_server is not None and task is not None:
        agent_server.should_exit = True
        await task


def _ignore_cancellation(app: App) -> ASGIApp:
    """Wraps the application so that requests that the end of the process interrupts are not logged as errors."""

    async def run(scope: Scope, receive: Receive, send: Send) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await app(scope, receive, send)

    return run


def build_config(app: ASGIApp) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=_Severable,
        lifespan="off",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        timeout_graceful_shutdown=2 * _PATIENCE,
    )


def open_listener(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=512)


def format_url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
