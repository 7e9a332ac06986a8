"""The emulated platform in this process: the application of the sandbox, without a socket or a thread.

`open_reader` and `open_platform` yield the client of `reconciler.api` on another transport: limits, paging, retries and
errors are those of the real client, and every body is encoded as JSON and decoded again.
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
from reconciler.sandbox.server.accounts import Accounts, read_accounts
from reconciler.sandbox.server.app import App, OnRequest
from reconciler.testing.emulator import Emulator, OtherAccounts, json_or_content
from reconciler.testing.transport import AppTransport, cut


class Sandbox(Emulator):
    """An emulated platform in memory. Instances share nothing; several may be used in one event loop.

        with Sandbox(seed=[{"path": "/ip_policies", "body": {"description": "office"}}]) as sandbox:
            async with sandbox.open_platform() as platform:
                await platform.send("POST", "/edges/tls", {"hostports": ["a.example.com:443"]})
            assert len(sandbox.get("/edges/tls")["tls_edges"]) == 1

    `open_reader` and `open_platform` replace the functions of the same names in `reconciler.api.platform`. Requests of
    its own methods (`get`, `post`, …) have no faults, no latency and no entry in the log. Other processes cannot use
    it: see `SandboxProcess`.

    seed        initial objects of the first account: path of a seed file, or a list of its items
    accounts    more accounts: a number, a file, or the API key of each by its name; see `self.accounts`
    variants    undocumented behavior of the platform to emulate
    latency     seconds that each request takes, by `clock`
    clock       for latency, faults, request budget, and the clients that it opens; None: that of the machine
    random      random numbers for these clients
    on_request  awaited with method and path when a request arrives, before it is served
    agent       whether an agent runs too, at `agent_url`
    host        host name of `base_url`, for projects with two accounts; not a public host name
    """

    def __init__(
        self,
        *,
        seed: Path | Sequence[Mapping[str, Any]] = (),
        api_key: str = "sandbox",
        accounts: Accounts = 0,
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
        by_key = read_accounts(accounts, api_key)
        self._database = Database(":memory:")
        objects = Objects(self._database, read_only.list_served())
        objects.variants = variants or Variants()
        try:
            if isinstance(seed, Path):
                seeds.load_seed(objects, seed)
            elif seed:
                seeds.load_items(objects, seed)
        except BaseException:
            self._database.close()
            raise
        self._app = App(
            objects,
            api_key=api_key,
            accounts=by_key,
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
            apps[f"{host}-agent"] = AgentApp(self._app.agent, self._app.faults, cut)
        self._transport = AppTransport(apps)
        self.accounts = OtherAccounts(self, by_key)
        self._direct = AppTransport({host: self._app.serve_unaffected})

    def close(self) -> None:
        """Deletes all data; further requests fail."""
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
    """The result of a coroutine that never waits, and so needs no event loop."""
    try:
        work.send(None)
    except StopIteration as done:
        response: httpx.Response = done.value
        response.read()
        return response
    work.close()
    raise AssertionError("a request of the sandbox's own methods had to wait")
