"""A proxy between a command and a sandbox that kills the command in the middle of a request or of its answer."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from typing import BinaryIO

PHASES = ("mid-request", "after effect before response", "mid-response")


class Proxy:
    """Passes everything on, until the `nth` request that is no GET reaches its `phase`: then it calls `kill`."""

    def __init__(self, upstream: str, phase: str, nth: int, kill: Callable[[], None]) -> None:
        host, _, port = upstream.removeprefix("http://").partition(":")
        self._upstream = (host, int(port))
        self._phase, self._nth, self._kill = phase, nth, kill
        self._count = 0
        self._turn = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.struck: str | None = None
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._accepting.join()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        upstream = socket.create_connection(self._upstream)
        with (
            contextlib.suppress(OSError),
            client,
            upstream,
            client.makefile("rb") as asks,
            upstream.makefile("rb") as says,
        ):
            while message := _message(asks):
                if self._strikes(message):
                    self._strike(message, client, upstream, says)
                    return
                upstream.sendall(message)
                client.sendall(_message(says))

    def _strikes(self, message: bytes) -> bool:
        if message.startswith(b"GET "):
            return False
        with self._turn:
            self._count += 1
            return self._count == self._nth

    def _strike(self, message: bytes, client: socket.socket, upstream: socket.socket, says: BinaryIO) -> None:
        """Go as far as the phase, and kill there."""
        if self._phase == PHASES[0]:
            upstream.sendall(message[: -len(message) // 4])
        else:
            upstream.sendall(message)
            answer = _message(says)
            if self._phase == PHASES[2]:
                client.sendall(answer[: len(answer) // 2])
        self.struck = message.split(b" HTTP/", 1)[0].decode()
        self._kill()


def _message(stream: BinaryIO) -> bytes:
    """One request or answer, whole; empty at the end of the stream."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        line = stream.readline()
        if not line:
            return b""
        head += line
    length = 0
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        assert name.lower() != b"transfer-encoding", "the sandbox says how long its answers are"
        length = int(value) if name.lower() == b"content-length" else length
    return head + stream.read(length)
