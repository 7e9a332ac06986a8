"""The clients of the management API: their calls, and the programs that run them."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

HERE = Path(__file__).parent
Client = Literal["typescript", "java"]
CLIENTS: tuple[Client, ...] = ("typescript", "java")
Send = Callable[[Mapping[str, Any]], Any]


@dataclass(frozen=True)
class Call:
    """A method of a client, and the request that it sends."""

    client: Client
    method: str
    path: str
    name: str

    def __str__(self) -> str:
        return f"{self.client} {self.name}"


def load_calls() -> list[Call]:
    lines = (HERE / "calls.txt").read_text(encoding="utf-8").splitlines()[1:]
    calls = []
    for method, path, *names in (line.split() for line in lines):
        calls += [Call(client, method, path, name) for client, name in zip(CLIENTS, names, strict=True) if name != "-"]
    return calls


def install_folder() -> Path:
    """Where `make test-clients` installed the clients."""
    folder = os.environ.get("RECONCILER_CLIENTS")
    assert folder, "RECONCILER_CLIENTS names no folder of clients; run make test-clients"
    return Path(folder)


def build_command(client: Client) -> list[str]:
    """The program that runs the calls of a client."""
    if client == "typescript":
        return ["node", str(HERE / "node/api.mjs"), f"{install_folder()}/node/"]
    return ["java", "-cp", f"{install_folder()}/java/*", str(HERE / "java/Driver.java")]


class Driver:
    """A program that reads a call per line, and answers with a line. A context manager."""

    def __init__(self, client: Client) -> None:
        self._process = subprocess.Popen(
            build_command(client), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=30)

    def ask(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """The answer: `result`, or `error` with the text of the exception."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(asked), file=self._process.stdin, flush=True)
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer
