"""Runs the sandbox as a process: one listening socket, one database, until SIGINT or SIGTERM."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import struct
import sys
import threading
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import TextIO

import uvicorn
from starlette.types import Scope
from uvicorn.protocols.http.h11_impl import H11Protocol

from reconciler import kinds
from reconciler.sandbox.app import App
from reconciler.sandbox.database import Database
from reconciler.sandbox.objects import Objects
from reconciler.sandbox.seeds import plant

DEFAULT_KEY = "sandbox"
_CONNECTIONS: dict[tuple[str, int], asyncio.Transport] = {}


class _Severable(H11Protocol):
    """A connection that a fault can reset: found again by the client's address."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        # asyncio does this itself only for sockets that were made with an explicit protocol number, and ours was not:
        # without it an answer waits 40 ms for the client's acknowledgement of its head.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.client is not None:
            _CONNECTIONS[self.client] = transport

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self.client is not None:
            _CONNECTIONS.pop(self.client, None)


def _cut(scope: Scope) -> None:
    transport = _CONNECTIONS.get(tuple(scope["client"]))
    if transport is not None:
        # Lingering for no time makes the kernel send a reset instead of an orderly end.
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Signals end the server, and with it `serve`, instead of being raised again afterwards."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)


def serve(
    host: str = "127.0.0.1",
    port: int = 0,
    db: str = ":memory:",
    api_key: str = DEFAULT_KEY,
    seed: Sequence[Path] = (),
    out: TextIO | None = None,
    *,
    requests_per_minute: int | None = None,
    latency: float = 0.0,
) -> None:
    """Serve until SIGINT or SIGTERM; the first line written to `out` is the base URL.

    `port` 0 picks a free one; `db` is a file or `:memory:`; `latency` is seconds added to each answer. OSError: the
    address is taken; ValueError: a seed cannot be planted; sqlite3.Error: the file is no database.
    """
    database = Database(db)
    try:
        objects = Objects(database, kinds.every())
        for path in seed:
            plant(objects, path)
        app = App(objects, api_key=api_key, cut=_cut, per_minute=requests_per_minute, latency=latency)
        with _listening(host, port) as listener:
            url = _url(listener)
            print(url, file=out or sys.stdout, flush=True)
            config = uvicorn.Config(
                app,
                http=_Severable,
                lifespan="off",
                log_level="warning",
                access_log=False,
                server_header=False,
                proxy_headers=False,
                ws="none",
                timeout_graceful_shutdown=2,
            )
            asyncio.run(_Server(config).serve([listener]))
    finally:
        database.close()


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=512)


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
