"""A real yaml-language-server, spoken to as an editor does: JSON-RPC over its standard streams."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, Self

SETTINGS = {"yaml": {"validate": True, "completion": True, "hover": True, "schemaStore": {"enable": False}}}
PATIENCE = 60.0  # seconds for one answer


def program() -> list[str] | None:
    """How it is started; None where RECONCILER_YAML_SERVER does not name its folder of node modules."""
    folder, node = os.environ.get("RECONCILER_YAML_SERVER"), shutil.which("node")
    if not folder or node is None:
        return None
    return [node, str(Path(folder) / "node_modules/yaml-language-server/bin/yaml-language-server"), "--stdio"]


class Server:
    """One server, for one folder."""

    def __init__(self, command: list[str], root: Path) -> None:
        self._root = root
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._number = 0
        self._ask("initialize", {"processId": os.getpid(), "rootUri": root.as_uri(), "capabilities": _CAPABILITIES})
        self._tell("initialized", {})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.communicate()

    def diagnostics(self, name: str) -> list[str]:
        """What it says about a file: `line:column: message`, counted from 1."""
        uri = self._open(name)
        while True:
            message = self._next()
            if message.get("method") == "textDocument/publishDiagnostics" and message["params"]["uri"] == uri:
                return [_line(diagnostic) for diagnostic in message["params"]["diagnostics"]]

    def completions(self, name: str, line: int, column: int) -> set[str]:
        place = {"line": line - 1, "character": column - 1}
        answer = self._ask("textDocument/completion", {"textDocument": {"uri": self._open(name)}, "position": place})
        return {item["label"] for item in answer["items"]}

    def hover(self, name: str, line: int, column: int) -> str:
        place = {"line": line - 1, "character": column - 1}
        answer = self._ask("textDocument/hover", {"textDocument": {"uri": self._open(name)}, "position": place})
        return str(answer["contents"]["value"]) if answer else ""

    def _open(self, name: str) -> str:
        file = self._root / name
        text = file.read_text(encoding="utf-8")
        document = {"uri": file.as_uri(), "languageId": "yaml", "version": 1, "text": text}
        self._tell("textDocument/didOpen", {"textDocument": document})
        return file.as_uri()

    def _ask(self, method: str, parameters: dict[str, Any]) -> Any:
        self._number += 1
        self._send({"id": self._number, "method": method, "params": parameters})
        while True:
            message = self._next()
            if message.get("id") == self._number and "method" not in message:
                assert "error" not in message, message
                return message["result"]

    def _tell(self, method: str, parameters: dict[str, Any]) -> None:
        self._send({"method": method, "params": parameters})

    def _next(self) -> dict[str, Any]:
        """The next message, after answering what the server asked of its editor."""
        assert self._process.stdout is not None
        length = 0
        while header := self._process.stdout.readline().strip():
            name, _, value = header.decode().partition(":")
            length = int(value) if name.lower() == "content-length" else length
        assert length, "the language server ended"
        message: dict[str, Any] = json.loads(self._process.stdout.read(length))
        if "method" in message and "id" in message:
            self._send({"id": message["id"], "result": _answer(message)})
        return message

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self._process.stdin.flush()


_CAPABILITIES = {
    "workspace": {"configuration": True, "didChangeConfiguration": {"dynamicRegistration": False}},
    "textDocument": {"publishDiagnostics": {}, "completion": {}, "hover": {"contentFormat": ["markdown"]}},
}


def _answer(asked: dict[str, Any]) -> Any:
    if asked["method"] == "workspace/configuration":
        return [SETTINGS.get(item.get("section", ""), {}) for item in asked["params"]["items"]]
    return None


def _line(diagnostic: dict[str, Any]) -> str:
    start = diagnostic["range"]["start"]
    return f"{start['line'] + 1}:{start['character'] + 1}: {diagnostic['message']}"
