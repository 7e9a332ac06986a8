"""`sandbox`: its address, its options and its errors."""

from __future__ import annotations

import socket
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from reconciler.cli.main import main


def test_a_sandbox_prints_its_address_first_and_exits_0_on_a_signal() -> None:
    command = [sys.executable, "-m", "reconciler", "sandbox", "--api-key", "mine"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        headers = {"Authorization": "Bearer mine", "Service-Version": "2"}
        assert httpx.get(f"{address}/bot_users", headers=headers, trust_env=False).json()["bot_users"] == []
        process.terminate()
    assert process.returncode == 0


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
