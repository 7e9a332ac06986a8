"""A sandbox as a process of its own, and a plain HTTP client beside the one under test."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

KEY = "sandbox"
HEADERS = {"Authorization": f"Bearer {KEY}", "Service-Version": "2"}


class Sandbox:
    """Runs from construction to `stop`; `restart` keeps port, database and options, `kill` does not say goodbye."""

    def __init__(
        self,
        *,
        db: Path | str = ":memory:",
        api_key: str = KEY,
        seed: Path | None = None,
        requests_per_minute: int | None = None,
        latency_ms: int = 0,
        port: int = 0,
        agent: bool = False,
        agent_config: Path | None = None,
    ) -> None:
        self.api_key = api_key
        self.agent_url = ""
        self._words = ["--db", str(db), "--api-key", api_key, "--latency", str(latency_ms)]
        if seed is not None:
            self._words += ["--seed", str(seed)]
        if requests_per_minute is not None:
            self._words += ["--requests-per-minute", str(requests_per_minute)]
        if agent_config is not None:
            self._words += ["--agent-config", str(agent_config)]
        self._has_agent = agent or agent_config is not None
        self._start(port)

    def _start(self, port: int) -> None:
        command = [sys.executable, "-m", "reconciler.sandbox", "--port", str(port), *self._words]
        if self._has_agent:
            command += ["--agent-port", self.agent_url.rpartition(":")[2] or "0"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.base_url = self.process.stdout.readline().strip()
        assert self.base_url, "the sandbox did not start"
        if self._has_agent:
            self.agent_url = self.process.stdout.readline().strip().removeprefix("agent ")
        headers = {"Authorization": f"Bearer {self.api_key}", "Service-Version": "2"}
        self.client = httpx.Client(base_url=self.base_url, headers=headers, timeout=30, trust_env=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, what: BaseException | None, where: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> int:
        """Its exit status after SIGTERM."""
        self.process.terminate()
        return self._reap()

    def interrupt(self) -> int:
        """Its exit status after Ctrl-C."""
        self.process.send_signal(signal.SIGINT)
        return self._reap()

    def kill(self) -> None:
        self.process.kill()
        self._reap()

    def restart(self) -> None:
        """Up again at the same address after `stop` or `kill`."""
        self._start(int(self.base_url.rpartition(":")[2]))

    def _reap(self) -> int:
        status = self.process.wait(30)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.client.close()
        return status

    # --- the API --------------------------------------------------------------------------------------------------

    def request(self, method: str, path: str, body: Any = None) -> httpx.Response:
        return self.client.request(method, path, **({} if body is None else {"json": body}))

    def get(self, path: str) -> Any:
        """The decoded answer, which must be a success; so with all of the following."""
        return _good(self.request("GET", path))

    def post(self, path: str, body: Any) -> Any:
        return _good(self.request("POST", path, body))

    def patch(self, path: str, body: Any) -> Any:
        return _good(self.request("PATCH", path, body))

    def put(self, path: str, body: Any) -> Any:
        return _good(self.request("PUT", path, body))

    def delete(self, path: str) -> None:
        _good(self.request("DELETE", path))

    def refusal(self, method: str, path: str, body: Any = None) -> tuple[int, str]:
        """Status and error code (empty: none) of a request that must fail."""
        answer = self.request(method, path, body)
        assert answer.status_code >= 400, answer.text
        return answer.status_code, answer.json().get("error_code", "").removeprefix("ERR_NGROK_")

    # --- what only a sandbox has ----------------------------------------------------------------------------------

    def log(self, since: int = 0) -> list[dict[str, Any]]:
        """What was asked, in order: method, path with query, status (0: cut), sequence."""
        return list(self.get(f"/_sandbox/requests?since={since}")["requests"])

    def calls(self) -> list[str]:
        """`"POST /credentials"`, … of the log: the requests that were meant to change something."""
        return [f"{each['method']} {each['path']}" for each in self.log() if each["method"] != "GET"]

    def forget_log(self) -> None:
        self.delete("/_sandbox/requests")

    def fault(self, on: str, **fault: Any) -> None:
        """As `sandbox.fault("POST /credentials", nth=2, then="commit-then-cut")`."""
        _good(self.request("POST", "/_sandbox/faults", {"on": on, **fault}))

    def plant(self, collection: str, *objects: dict[str, Any]) -> None:
        """Put objects there as they are, such as ephemeral endpoints."""
        items = [{"collection": collection, "object": each} for each in objects]
        _good(self.request("POST", "/_sandbox/objects", items))

    def reset(self) -> None:
        """As new: no objects, no faults, no log."""
        self.delete("/_sandbox")


def _good(answer: httpx.Response) -> Any:
    assert answer.is_success, f"{answer.request.method} {answer.request.url}: {answer.status_code} {answer.text}"
    return answer.json() if answer.content else None
