from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from reconciler.cli.main import main

MANIFESTS = """\
kind: IPPolicy
name: office
spec:
  description: Office
---
kind: TLSEdge
name: payments
spec:
  hostports: ["pay.example.com:443"]
  ip_restriction:
    ip_policy_ids:
      - ref: IPPolicy/office
---
kind: ReservedDomain
name: pay
spec:
  domain: pay.example.com
"""


@dataclass(frozen=True)
class Said:
    """What a command answered with, wrote and said."""

    code: int
    out: str
    err: str


@dataclass
class Shell:
    """Runs commands in this process, from within a project's folder."""

    root: Path
    capsys: pytest.CaptureFixture[str]

    def __call__(self, *words: str) -> Said:
        self.capsys.readouterr()
        code = main(words)
        said = self.capsys.readouterr()
        return Said(code, said.out, said.err)

    def write(self, name: str, text: str) -> None:
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    monkeypatch.chdir(tmp_path)
    for name in (
        "RECONCILER_BASE_URL",
        "RECONCILER_API_KEY",
        "RECONCILER_PROJECT",
        "RECONCILER_STORE",
        "RECONCILER_ENV",
        "NO_COLOR",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "100")
    made = Shell(tmp_path, capsys)
    made.write("reconciler.yaml", "version: 1\nstack: prod\n")
    made.write("manifests/payments.yaml", MANIFESTS)
    return made


@dataclass(frozen=True)
class Sandbox:
    """A real sandbox process."""

    url: str

    def send(self, method: str, path: str, body: Any = None) -> Any:
        request = urllib.request.Request(  # noqa: S310 - our own loopback address
            self.url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={
                "Authorization": "Bearer sandbox",
                "Service-Version": "2",
                **({} if body is None else {"Content-Type": "application/json"}),
            },
        )
        with urllib.request.urlopen(request) as response:  # noqa: S310 - as above
            text = response.read()
        return json.loads(text) if text else None


@pytest.fixture(scope="session")
def server() -> Iterator[Sandbox]:
    with subprocess.Popen(
        [sys.executable, "-m", "reconciler", "sandbox", "--port", "0"], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield Sandbox(process.stdout.readline().strip())
        process.terminate()


@pytest.fixture
def sandbox(server: Sandbox, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Sandbox:
    """The process, emptied, as the platform of the shell's project."""
    server.send("DELETE", "/_sandbox")
    monkeypatch.setenv("RECONCILER_BASE_URL", server.url)
    monkeypatch.setenv("RECONCILER_API_KEY", "sandbox")
    return server
