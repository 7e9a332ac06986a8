"""The emulated platform in this process: the sandbox's own application, without a socket or a thread.

What `open_reader` and `open_platform` yield is the client of `reconciler.api` on another transport: limits, pages,
retries and errors are those of a run against the real platform, and every body is written as JSON and read again.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from reconciler.engine.ports import Clock, Random
from reconciler.kinds import read_only
from reconciler.sandbox.agent.api import AgentApp
from reconciler.sandbox.agent.process import Agent
from reconciler.sandbox.base import seeds
from reconciler.sandbox.base.database import Database
from reconciler.sandbox.base.variants import Variants
from reconciler.sandbox.operations.objects import Objects
from reconciler.sandbox.server.app import App, OnRequest
from reconciler.testing.emulator import Emulator, json_or_content
from reconciler.testing.transport import AppTransport, cut


class Sandbox(Emulator):
    """An emulated platform in memory. Two of them share nothing, and one event loop may hold many.

        with Sandbox(seed=[{"path": "/ip_policies", "body": {"description": "office"}}]) as sandbox:
            async with sandbox.open_platform() as platform:
                await platform.send("POST", "/edges/tls", {"hostports": ["a.example.com:443"]})
            assert len(sandbox.get("/edges/tls")["tls_edges"]) == 1

    `open_reader` and `open_platform` take the place of the functions of the same names in `reconciler.api.platform`.
    Requests of the sandbox's own methods (`get`, `post`, …) are answered at once: no fault, no latency and no entry in
    the log is theirs. Commands in other processes cannot reach it: see `SandboxProcess`.

    seed       objects to begin with: a seed file, or a list of what is in one
    latency    seconds that each request takes, slept by the clock
    clock      of latency, faults, request budget, and of the clients that are opened here; the machine's if None
    random     randomness of those clients
    on_request awaited with method and path when a request arrives, before it is served
    agent      whether an agent runs beside it, at `agent_url`
    host       of `base_url`, for projects that tell two accounts apart; no name of a public site
    """

    def __init__(
        self,
        *,
        seed: Path | Sequence[Mapping[str, Any]] = (),
        api_key: str = "sandbox",
        requests_per_minute: int | None = None,
        variants: Variants | None = None,
        latency: float = 0.0,
        clock: Clock | None = None,
        random: Random | None = None,
        on_request: OnRequest | None = None,
        agent: bool = False,
        host: str = "sandbox",
    ) -> None:
        self.base_url, self.api_key = f"https://{host}", api_key
        self._clock, self._random = clock, random
        self._database = Database(":memory:")
        objects = Objects(self._database, read_only.list_served())
        objects.variants = variants or Variants()
        if isinstance(seed, Path):
            seeds.load_seed(objects, seed)
        elif seed:
            seeds.load_items(objects, seed)
        self._app = App(
            objects,
            api_key=api_key,
            cut=cut,
            per_minute=requests_per_minute,
            latency=latency,
            clock=clock,
            on_request=on_request,
        )
        apps: dict[str, Any] = {host: self._app}
        if agent:
            self._app.agent = Agent(objects)
            self._app.agent.start()
            self.agent_url = f"https://{host}-agent"
            apps[f"{host}-agent"] = AgentApp(self._app.agent)
        self._transport = AppTransport(apps)
        self._direct = AppTransport({host: self._app.serve_unaffected})

    def close(self) -> None:
        """Forgets everything. Further requests fail."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, what: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, what: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()

    # --- requests of a test -------------------------------------------------------------------------------------------

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
    ) -> httpx.Response:
        request = httpx.Request(
            method,
            httpx.URL(self.base_url).join(path),
            headers=self.headers if headers is None else headers,
            **json_or_content(body, content),
        )
        return _finish(self._direct.handle_async_request(request))


def _finish(work: Coroutine[Any, Any, httpx.Response]) -> httpx.Response:
    """The result of a coroutine that never has to wait; so it needs no event loop of its own."""
    try:
        work.send(None)
    except StopIteration as done:
        response: httpx.Response = done.value
        response.read()
        return response
    work.close()
    raise AssertionError("a request of the sandbox's own methods had to wait")
