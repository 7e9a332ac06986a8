"""The emulated platform and its agents as processes with sockets, for tests that start other processes."""

from __future__ import annotations

import signal
import ssl
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from reconciler.sandbox.server.accounts import read_accounts
from reconciler.testing.emulator import Emulator, OtherAccounts, json_or_content


class SandboxProcess(Emulator):
    """`python -m reconciler.sandbox`, started by the constructor and ended by `stop`; also a context manager.

    db            path of its database, or `:memory:`
    seed          path of a seed file
    accounts      more accounts: a number, or a JSON or CSV file; see `self.accounts`
    latency_ms    minimum duration of each response, in milliseconds
    port          0: any free port
    agent         whether an agent runs too, at `agent_url`
    agent_config  configuration file of the agent
    faults        file of conditions to start in
    nameserver    `ADDRESS:PORT` that must have the DNS records of certificates
    """

    def __init__(
        self,
        *,
        db: Path | str = ":memory:",
        api_key: str = "sandbox",
        seed: Path | None = None,
        accounts: int | Path = 0,
        requests_per_minute: int | None = None,
        latency_ms: int = 0,
        port: int = 0,
        agent: bool = False,
        agent_config: Path | None = None,
        faults: Path | None = None,
        nameserver: str | None = None,
    ) -> None:
        self.api_key = api_key
        self._options = ["--db", str(db), "--api-key", api_key, "--latency", str(latency_ms)]
        if seed is not None:
            self._options += ["--seed", str(seed)]
        if accounts:
            self._options += ["--accounts", str(accounts)]
        self._keys = read_accounts(accounts, api_key)
        if requests_per_minute is not None:
            self._options += ["--requests-per-minute", str(requests_per_minute)]
        if faults is not None:
            self._options += ["--faults", str(faults)]
        if nameserver is not None:
            self._options += ["--nameserver", nameserver]
        if agent_config is not None:
            self._options += ["--agent-config", str(agent_config)]
        self._has_agent = agent or agent_config is not None
        self._start(port)

    def _start(self, port: int) -> None:
        words = ["--port", str(port), *self._options]
        if self._has_agent:
            words += ["--agent-port", self.agent_url.rpartition(":")[2] or "0"]
        self.process = self._spawn(words)
        assert self.process.stdout is not None
        self.base_url = self.process.stdout.readline().strip()
        if not self.base_url:
            self._reap()
            raise RuntimeError("the sandbox did not start; see its standard error")
        if self._has_agent:
            self.agent_url = self.process.stdout.readline().strip().removeprefix("agent ")
        self.accounts = OtherAccounts(self, self._keys)
        # Plain http needs no certificates, and reading those of the machine takes 15 ms.
        no_certificates = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._client = httpx.Client(base_url=self.base_url, timeout=30, trust_env=False, verify=no_certificates)

    def _spawn(self, words: list[str]) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "reconciler.sandbox", *words]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, what: BaseException | None, where: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> int:
        """Ends the process with SIGTERM, if it still runs; returns its exit status."""
        self.process.terminate()
        return self._reap()

    def interrupt(self) -> int:
        """Ends the process with SIGINT, as Ctrl-C does; returns its exit status."""
        self.process.send_signal(signal.SIGINT)
        return self._reap()

    def kill(self) -> None:
        """Ends the process with SIGKILL."""
        self.process.kill()
        self._reap()

    def restart(self) -> None:
        """Starts the process again after `stop` or `kill`, with the same port, database and options."""
        self._start(int(self.base_url.rpartition(":")[2]))

    def _reap(self) -> int:
        status = self.process.wait(30)
        assert self.process.stdout is not None
        self.process.stdout.close()
        if self.base_url:
            self._client.close()
        return status

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
    ) -> httpx.Response:
        return self._client.request(
            method, path, headers=self.headers if headers is None else headers, **json_or_content(body, content)
        )


class AgentProcess:
    """`reconciler sandbox agent`, started by the constructor and ended by `stop`; also a context manager.

    The constructor returns when the agent is online. What it has open ends with it. `url` is the address of its API.

    server   address of the sandbox
    config   its configuration file
    version  of the agent, which its session shows
    """

    def __init__(self, server: str, *, config: Path | None = None, version: str = "") -> None:
        self._options = ["--server", server, "--agent-version", version]
        if config is not None:
            self._options += ["--config", str(config)]
        self._start(0)

    def _start(self, port: int) -> None:
        command = [sys.executable, "-m", "reconciler.sandbox", "agent", "--port", str(port), *self._options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip().removeprefix("agent ")
        if not self.url:
            self.wait()
            raise RuntimeError("the agent did not start; see its standard error")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, what: BaseException | None, where: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> int:
        """Ends the process with SIGTERM, if it still runs; returns its exit status."""
        self.process.terminate()
        return self.wait()

    def kill(self) -> None:
        """Ends the process with SIGKILL."""
        self.process.kill()
        self.wait()

    def restart(self) -> None:
        """Starts the process again after `stop` or `kill`, with the same port and options."""
        self._start(int(self.url.rpartition(":")[2]))

    def wait(self) -> int:
        """Waits until the process has ended; returns its exit status."""
        status = self.process.wait(30)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return status
