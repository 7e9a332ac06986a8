"""Servers that behave as Vault's KV engine and GitHub's secrets do, on a loopback port, with a value for each test."""

from __future__ import annotations

import base64
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

from nacl.public import PrivateKey, SealedBox

Answer = tuple[int, Any]  # status and body; None: no body
DENIED: Answer = (403, {"errors": ["1 error occurred:\n\t* permission denied\n\n"]})


@dataclass
class SecretStoreServer:
    """`faults` are used up in order, each by the next request that matches: `(method, part of path, fault)`. A fault is
    a status, `drop` (the response is lost), `refuse` (the request is lost) or a response header with its status."""

    faults: list[tuple[str, str, Any]] = field(default_factory=list)
    log: list[tuple[str, str]] = field(default_factory=list)
    url: str = ""
    turn: threading.Lock = field(default_factory=threading.Lock)

    def fault(self, method: str, path: str) -> Any:
        for fault in self.faults:
            if fault[0] == method and fault[1] in path:
                self.faults.remove(fault)
                return fault[2]
        return None

    def answer(self, method: str, path: str, headers: Any, body: Any) -> Answer:
        raise NotImplementedError

    def writes(self) -> list[str]:
        return [f"{method} {path}" for method, path in self.log if method != "GET"]


@contextmanager
def run_server(server: SecretStoreServer) -> Iterator[None]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_one(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            content = self.rfile.read(size)
            body = json.loads(content) if content else None
            with server.turn:
                server.log.append((self.command, self.path))
                fault = server.fault(self.command, self.path)
                if fault == "refuse":
                    self.close_connection = True
                    return
                headers = {}
                if isinstance(fault, tuple):
                    fault, headers = fault
                a_fault: Answer = (fault, {"errors": ["a fault"], "message": "a fault"})
                is_answered = not isinstance(fault, int)
                status, answer = (
                    server.answer(self.command, unquote(self.path), self.headers, body) if is_answered else a_fault
                )
            if fault == "drop":
                self.close_connection = True
                return
            text = b"" if answer is None else json.dumps(answer).encode()
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_PUT = do_POST = do_DELETE = handle_one

        def log_message(self, *_: Any) -> None:
            pass

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.url = f"http://127.0.0.1:{listening.server_port}"
    thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield
    finally:
        listening.shutdown()
        thread.join()
        listening.server_close()


@dataclass
class VaultServer(SecretStoreServer):
    """KV engines by mount: `secret` of version 2, `old` of version 1. `policy`: capabilities by path; root without."""

    token: str = "hvs.canary-vault-token-7Qk2"
    namespace: str = ""
    sealed: bool = False
    policy: dict[str, list[str]] | None = None
    versions: dict[str, list[dict[str, Any] | None]] = field(default_factory=dict)  # None: a deleted version
    mounts: dict[str, str] = field(default_factory=lambda: {"secret": "2", "old": "1"})

    @property
    def environ(self) -> dict[str, str]:
        return {"VAULT_ADDR": self.url, "VAULT_TOKEN": self.token}

    def value(self, path: str) -> Any:
        """The data of the current version of a secret."""
        return (self.versions.get(path) or [None])[-1]

    def set(self, path: str, data: dict[str, Any] | None) -> None:
        self.versions.setdefault(path, []).append(data)

    def capabilities(self, path: str) -> list[str]:
        return ["root"] if self.policy is None else self.policy.get(path, ["deny"])

    def answer(self, method: str, path: str, headers: Any, body: Any) -> Answer:
        if self.sealed:
            return 503, {"errors": ["Vault is sealed"]}
        if headers.get("X-Vault-Token") != self.token or headers.get("X-Vault-Namespace", "") != self.namespace:
            return DENIED
        path = path.removeprefix("/v1/")
        if path == "sys/capabilities-self":
            if self.policy is not None and "default" not in self.policy:
                return DENIED
            found = {path: self.capabilities(path) for path in body["paths"]}
            return 200, {**found, "data": found}
        if path.startswith("sys/internal/ui/mounts/"):
            mount = path.removeprefix("sys/internal/ui/mounts/")
            if mount not in self.mounts:
                return 403, {"errors": [f'preflight capability check returned 403, grant access to path "{mount}/"']}
            data = {"path": f"{mount}/", "type": "kv", "options": {"version": self.mounts[mount]}}
            return 200, {"data": data}
        mount, _, rest = path.partition("/data/")
        if self.mounts.get(mount) != "2":
            return 404, {"errors": [f'no handler for route "{path}". route entry not found.']}
        return self._kv(method, path, f"{mount}/{rest}", body)

    def _kv(self, method: str, path: str, name: str, body: Any) -> Answer:
        versions = self.versions.get(name, [])
        needed = "read" if method == "GET" else "update" if versions else "create"
        if not {"root", needed} & set(self.capabilities(path)):
            return DENIED
        metadata = {"version": len(versions), "destroyed": False, "deletion_time": "" if self.value(name) else "2026"}
        if method == "GET":
            if not versions:
                return 404, {"errors": []}
            return (200 if versions[-1] is not None else 404), {"data": {"data": versions[-1], "metadata": metadata}}
        if body.get("options", {}).get("cas") != len(versions):
            return 400, {"errors": ["check-and-set parameter did not match the current version"]}
        self.set(name, body["data"])
        return 200, {"data": {"version": len(versions) + 1, "destroyed": False}}


@dataclass
class GitHubServer(SecretStoreServer):
    """The repository `acme/web` and its environment `prod`. `rights`: read, write or none."""

    token: str = "github_pat_CanaryGitHubToken7Qk2"
    rights: str = "write"
    keys: dict[str, PrivateKey] = field(
        default_factory=lambda: {"": PrivateKey.generate(), "prod": PrivateKey.generate()}
    )
    secrets: dict[tuple[str, str], str] = field(default_factory=dict)  # (environment, NAME) → decrypted value

    @property
    def environ(self) -> dict[str, str]:
        return {"GITHUB_API_URL": self.url, "GITHUB_TOKEN": self.token}

    def answer(self, method: str, path: str, headers: Any, body: Any) -> Answer:
        if headers.get("Authorization") != f"Bearer {self.token}":
            return 401, {"message": "Bad credentials"}
        found = re.fullmatch(r"/repos/acme/web/(actions|environments/(?P<of>[^/]+))/secrets/(?P<name>[^/]+)", path)
        environment = (found["of"] or "") if found else ""
        if found is None or environment not in self.keys or self.rights == "none":
            return 404, {"message": "Not Found"}
        key, name = self.keys[environment], found["name"].upper()
        key_id = base64.b16encode(bytes(key.public_key)[:8]).decode()
        if method == "GET" and name == "PUBLIC-KEY":
            return 200, {"key_id": key_id, "key": base64.b64encode(bytes(key.public_key)).decode()}
        if method == "GET":
            exists = (environment, name) in self.secrets
            return (200, {"name": name, "created_at": "2026"}) if exists else (404, {"message": "Not Found"})
        if self.rights != "write":
            return 403, {"message": "Resource not accessible by integration"}
        if method == "DELETE":
            return (
                (404, {"message": "Not Found"}) if self.secrets.pop((environment, name), None) is None else (204, None)
            )
        if body["key_id"] != key_id:
            return 422, {"message": "Validation Failed"}
        value = SealedBox(key).decrypt(base64.b64decode(body["encrypted_value"], validate=True)).decode()
        is_new = (environment, name) not in self.secrets
        self.secrets[environment, name] = value
        return (201, {}) if is_new else (204, None)
