"""Servers and programs that never answer: each client ends after its own timeout, and names no secret."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from reconciler.api import agent, code_hosts, notifications, secret_store
from reconciler.api.code_hosts import GitHub, GitHubIssues, GitLab, GitLabIssues
from reconciler.api.notifications import Webhook
from reconciler.api.reviews import GitHubReviews, GitLabReviews
from reconciler.api.vault import Vault
from reconciler.fleet import checkouts, sources
from reconciler.fleet.checkouts import fetch_checkout
from reconciler.model.value import Secret
from reconciler.operations.errors import UnusableSource

TOKEN = "canary" + "OfAHangingServer"
SHORT = 0.15  # seconds, in place of each timeout
ENOUGH = 5.0  # seconds, for a slow machine
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n"


@pytest.fixture(params=["silent", "trickling"])
def address(request: pytest.FixtureRequest) -> Iterator[str]:
    """A server that accepts connections and sends nothing, or a byte from time to time."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        opened: list[socket.socket] = []

        def trickle(connection: socket.socket) -> None:
            with suppress(OSError):
                connection.sendall(HEAD)
                while True:
                    time.sleep(SHORT / 3)
                    connection.sendall(b" ")

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    opened.append(connection)
                    if request.param == "trickling":
                        threading.Thread(target=trickle, args=(connection,), daemon=True).start()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        for connection in opened:
            connection.close()
        server.shutdown(socket.SHUT_RDWR)
    thread.join(1)


def read_key(address: str) -> object:
    return asyncio.run(Vault({"VAULT_ADDR": address, "VAULT_TOKEN": TOKEN}).read_key("secret", "a", "value"))


def list_tunnels(address: str) -> object:
    async def read() -> object:
        async with agent.open_agent(address, read_only=True) as reader:
            assert reader is not None
            return await reader.list("/api/tunnels", "tunnels")

    return asyncio.run(read())


KEY = Secret(TOKEN, "env:TOKEN")
CLIENTS: dict[str, Callable[[str], object]] = {
    "webhook": lambda at: Webhook(f"{at}/{TOKEN}").post("{}", 0.0),
    "GitHub review": lambda at: GitHub(at, KEY, "o/i", 1).find_comment(lambda _: True),
    "GitLab review": lambda at: GitLab(at, KEY, "1", 1).find_comment(lambda _: True),
    "GitHub issues": lambda at: GitHubIssues(at, KEY, "o/i").find_issue("marker"),
    "GitLab issues": lambda at: GitLabIssues(at, KEY, "1").find_issue("marker"),
    "GitHub requests": lambda at: list(GitHubReviews(at, KEY, "o/i").find_merged("c0ffee")),
    "GitLab requests": lambda at: list(GitLabReviews(at, KEY, "1").find_merged("c0ffee")),
    "Vault": read_key,
    "agent": list_tunnels,
}


@pytest.fixture
def _short_timeouts(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (agent, code_hosts, notifications, secret_store):
        monkeypatch.setattr(module, "_TIMEOUT", SHORT)

    async def pause(_store: object, _seconds: float, _why: str) -> None:
        pass

    monkeypatch.setattr(secret_store.SecretStore, "pause", pause)


@pytest.mark.usefixtures("_short_timeouts")
@pytest.mark.parametrize("client", CLIENTS)
def test_a_server_that_does_not_answer_ends_the_request(
    request: pytest.FixtureRequest, address: str, client: str
) -> None:
    if client == "webhook" and "trickling" in request.node.name:
        CLIENTS[client](address)  # the status is the answer, and no body is read
        return
    began = time.monotonic()
    with pytest.raises(Exception, match=f"within {SHORT} s") as failure:
        CLIENTS[client](address)
    assert time.monotonic() - began < ENOUGH
    assert TOKEN not in str(failure.value)


# --- git


@pytest.fixture
def hanging_git(tmp_path: Path) -> dict[str, str]:
    """An environment whose `git` sleeps, in a folder that is a repository."""
    program = tmp_path / "bin/git"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho $$ >> {tmp_path}/started\nexec sleep 60\n")
    program.chmod(0o755)
    for name in ("objects", "refs"):
        (tmp_path / ".git" / name).mkdir(parents=True)
    (tmp_path / ".git/HEAD").write_text("ref: refs/heads/main\n")
    return {"PATH": f"{program.parent}:/usr/bin:/bin", "HOME": str(tmp_path)}


def find_source(folder: Path, environ: dict[str, str]) -> object:
    return sources.find_repository(folder / "fleet.yaml", "", environ)


def fetch(folder: Path, environ: dict[str, str]) -> object:
    return fetch_checkout("https://git.example.com/a.git", "c" * 40, folder / "cache", environ)


@pytest.mark.parametrize(("module", "use"), [(sources, find_source), (checkouts, fetch)])
def test_a_git_that_hangs_is_killed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    hanging_git: dict[str, str],
    module: object,
    use: Callable[[Path, dict[str, str]], object],
) -> None:
    monkeypatch.setattr(module, "_TIMEOUT", SHORT)
    began = time.monotonic()
    with pytest.raises(UnusableSource, match=f"within {SHORT} seconds"):
        use(tmp_path, hanging_git)
    assert time.monotonic() - began < ENOUGH
    for process in (tmp_path / "started").read_text().split():
        assert not Path(f"/proc/{process}").exists()
