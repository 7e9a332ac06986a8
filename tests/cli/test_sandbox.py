"""`sandbox`: its address, its options and its errors."""

from __future__ import annotations

import errno
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from unittest.mock import Mock, call

import httpx
import pytest

from reconciler.cli.main import main
from reconciler.sandbox.agent import program
from reconciler.sandbox.agent.tunnels import AgentError
from reconciler.sandbox.base.variants import Variants
from reconciler.sandbox.server import process


def test_a_sandbox_prints_its_address_first_and_exits_0_on_a_signal() -> None:
    command = [sys.executable, "-m", "reconciler", "sandbox", "--api-key", "mine"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        address = running.stdout.readline().strip()
        headers = {"Authorization": "Bearer mine", "Service-Version": "2"}
        assert httpx.get(f"{address}/bot_users", headers=headers, trust_env=False).json()["bot_users"] == []
        running.terminate()
    assert running.returncode == 0


def test_a_port_in_use_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["sandbox", "--port", str(port)]) == 1
    assert (
        capsys.readouterr().err == f"error: port {port} is already in use; choose another port, or 0 for a free one\n"
    )


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--agent-config", "agent.yml"], "--agent-config requires --agent"),
        (["--agent-port", "4040"], "--agent-port requires --agent"),
        (["--latency", "nan"], "invalid value for '--latency': is not a number"),
        (["--latency", "inf"], "invalid value for '--latency': inf is not in the range 0<=x<=3600000"),
        (["--host", ""], "invalid value for '--host': is empty"),
        (["--api-key", " "], "invalid value for '--api-key': is empty"),
    ],
)
def test_contradictory_options_of_a_sandbox_are_usage_errors(
    capsys: pytest.CaptureFixture[str], words: list[str], why: str
) -> None:
    assert main(["sandbox", *words]) == 64
    assert capsys.readouterr().err.startswith(f"error: {why}\n")


def test_a_database_of_another_program_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "other.db"
    with closing(sqlite3.connect(file)) as other, other:
        other.execute("CREATE TABLE mine (a)")
    assert main(["sandbox", "--db", str(file)]) == 1
    assert capsys.readouterr().err == f"error: {file}: not a database of the sandbox; use another file\n"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--faults", "faults.json"], "faults.json: provisioning.retry_after: input should be a valid number"),
        (
            ["--nameserver", "ns1.example.net"],
            "nameserver: value error, it must be an IP address and a port, such as 127.0.0.1:5353",
        ),
    ],
)
def test_invalid_faults_of_a_sandbox_are_reported(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: list[str], why: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("faults.json").write_text('{"provisioning": {"retry_after": "soon"}}')
    assert main(["sandbox", *words]) == 1
    assert capsys.readouterr().err == f"error: {why}\n"


DEFAULTS = {
    "accounts": "0",
    "requests_per_minute": None,
    "latency": 0.0,
    "agent_port": None,
    "agent_configs": (),
    "faults": None,
    "nameserver": None,
    "variants": Variants(),
}
FILES = ("a.json", "b.json", "agent.yml")
WHOLE = [
    *(
        "--host",
        "127.0.0.9",
        "--port",
        "81",
        "--db",
        "s.db",
        "--api-key",
        "mine",
        "--seed",
        "a.json",
        "--seed",
        "b.json",
    ),
    *("--accounts", "3", "--requests-per-minute", "60", "--latency", "250", "--patch-empties", "--faults", "a.json"),
    *("--nameserver", "127.0.0.1:53", "--sparse", "--agent", "--agent-port", "82", "--agent-config", "agent.yml"),
]


@pytest.mark.parametrize(
    ("words", "given", "more"),
    [
        ([], ("127.0.0.1", 0, ":memory:", "sandbox", ()), {}),
        (["--agent"], ("127.0.0.1", 0, ":memory:", "sandbox", ()), {"agent_port": 4040}),
        (
            WHOLE,
            ("127.0.0.9", 81, "s.db", "mine", (Path("a.json"), Path("b.json"))),
            {
                "accounts": "3",
                "requests_per_minute": 60,
                "latency": 0.25,
                "agent_port": 82,
                "agent_configs": (Path("agent.yml"),),
                "faults": Path("a.json"),
                "nameserver": "127.0.0.1:53",
                "variants": Variants(patch_empties=True, sparse=True),
            },
        ),
    ],
    ids=["defaults", "agent", "all"],
)
def test_every_option_of_a_sandbox_reaches_it(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    words: list[str],
    given: tuple[object, ...],
    more: dict[str, object],
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in FILES:
        Path(name).touch()
    serve = Mock()
    monkeypatch.setattr(process, "serve", serve)
    assert main(["sandbox", *words]) == 0
    assert serve.mock_calls == [call(*given, **{**DEFAULTS, **more})]


IN_USE = OSError(errno.EADDRINUSE, "Address already in use")
REMEDY = "is already in use; choose another port, or 0 for a free one"
ENDS: list[tuple[list[str], Exception | None, str]] = [
    (["--port", "81"], None, ""),
    (["--port", "81"], IN_USE, f"error: port 81 {REMEDY}\n"),
    (["--port", "81", "--agent"], IN_USE, f"error: port 81 or the agent's port 4040 {REMEDY}\n"),
    (["--port", "81"], OSError(errno.EACCES, "Permission denied"), "error: permission denied\n"),
    (["--db", "s.db"], ValueError("s.db is odd"), "error: s.db is odd\n"),
    (["--db", "s.db"], sqlite3.OperationalError("is full"), "error: s.db: is full\n"),
    (["agent", "--server", "http://a"], None, ""),
    (["agent", "--server", "http://a", "--port", "82"], IN_USE, f"error: port 82 {REMEDY}\n"),
    (["agent", "--server", "http://a"], OSError(errno.EACCES, "Permission denied"), "error: permission denied\n"),
    (["agent", "--server", "http://a"], AgentError(1, 404, "no such tunnel", "it is gone"), "error: it is gone\n"),
]


@pytest.mark.parametrize(("words", "error", "text"), ENDS)
def test_the_end_of_a_sandbox_or_its_agent_is_an_exit_code_and_a_line(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    error: Exception | None,
    text: str,
) -> None:
    serve, serve_agent = Mock(side_effect=error), Mock(side_effect=error)
    monkeypatch.setattr(process, "serve", serve)
    monkeypatch.setattr(program, "serve_agent", serve_agent)
    assert main(["sandbox", *words]) == (1 if text else 0)
    assert capsys.readouterr() == ("", text)
    port = 82 if "82" in words else 4040
    assert serve_agent.mock_calls == ([call("http://a", (), port, "")] if words[0] == "agent" else [])
    assert serve.called is (words[0] != "agent")
