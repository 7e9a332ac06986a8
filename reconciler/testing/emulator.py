"""The interface of an emulated platform in tests: requests for assertions, faults, the log of requests."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from reconciler.api import platform
from reconciler.api.client import Account
from reconciler.api.platform import HTTPPlatform, OnRetry, OnWait, ReadOnlyClient
from reconciler.engine.ports import Clock, Random, Stop
from reconciler.model.value import Secret
from reconciler.operations.runtime import Runtime
from reconciler.project.settings.config import Config
from reconciler.testing.sinks import MemorySinks

if TYPE_CHECKING:
    import httpx

    from reconciler.testing.transport import AppTransport

CONTROL = "/_sandbox"


class Emulator(ABC):
    """An emulated platform.

    `get`, `post` and the like send requests with its API key, and raise AssertionError for an error response.
    """

    base_url: str
    api_key: str
    account_name = ""  # of the account of `api_key`; empty for the first account
    accounts: Mapping[str, Emulator] = {}
    """The accounts besides the first, by name: the same platform, used with the API key of that account."""
    agent_url: str = ""  # address of the agent's local API; empty without an agent
    _transport: AppTransport | None = None  # None: the network
    _clock: Clock | None = None
    _random: Random | None = None

    @abstractmethod
    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
    ) -> httpx.Response:
        """Sends a request; returns the response, whatever its status.

        body     sent as JSON
        headers  instead of `self.headers`
        content  sent instead of `body`, unchanged
        """

    @property
    def headers(self) -> dict[str, str]:
        """The headers of every request to the API."""
        return {"Authorization": f"Bearer {self.api_key}", "Service-Version": "2"}

    @property
    def environ(self) -> dict[str, str]:
        """Environment variables with which a project's commands use this platform."""
        return {"RECONCILER_BASE_URL": self.base_url, "RECONCILER_API_KEY": self.api_key}

    def runtime(self, **settings: Any) -> Runtime:
        """The runtime of a rehearsal: this platform, a store in memory, and only the variables of `environ`.

        settings  fields of Runtime; `environ` is added to that of the emulator
        """
        environ = {**self.environ, **settings.pop("environ", {})}
        return Runtime(**{"platform": self, "store": "memory:", **settings, "environ": environ})

    @property
    def deliveries(self) -> Mapping[str, str]:
        """The one-time secrets that were delivered, by target; see `MemorySinks`."""
        return self._sinks.deliveries

    def open_sinks(self, _config: Config, _stop: Stop) -> MemorySinks:
        """Where a run on this platform delivers one-time secrets, unless the runtime has sinks of its own: memory."""
        return self._sinks

    @cached_property
    def _sinks(self) -> MemorySinks:
        return MemorySinks()

    @property
    def transport(self) -> AppTransport | None:
        """What the requests of a client go through, `reconciler.api.client.open_client` or one of httpx; None: the
        network."""
        return self._transport

    def account(self, **settings: Any) -> Account:
        """The account for `reconciler.api`, without a request budget unless `settings` (fields of Account) set one."""
        account = Account(
            self.base_url, Secret(self.api_key, "sandbox"), requests_per_minute=0, agent=self.agent_url or None
        )
        return replace(account, **settings)

    # --- the engine's ports -------------------------------------------------------------------------------------------

    def open_reader(
        self,
        account: Account | None = None,
        *,
        clock: Clock | None = None,
        random: Random | None = None,
        on_wait: OnWait | None = None,
        on_retry: OnRetry | None = None,
    ) -> AbstractAsyncContextManager[ReadOnlyClient]:
        """As `reconciler.api.platform.open_reader`, for this platform. The account defaults to `self.account()`."""
        return platform.open_reader(
            self._own(account),
            clock=clock or self._clock,
            random=random or self._random,
            on_wait=on_wait,
            on_retry=on_retry,
            transport=self._transport,
        )

    def open_platform(
        self,
        account: Account | None = None,
        *,
        clock: Clock | None = None,
        random: Random | None = None,
        on_wait: OnWait | None = None,
        on_retry: OnRetry | None = None,
        before_write: Callable[[], Awaitable[None]] | None = None,
    ) -> AbstractAsyncContextManager[HTTPPlatform]:
        """As `reconciler.api.platform.open_platform`, for this platform. The account defaults to `self.account()`."""
        return platform.open_platform(
            self._own(account),
            clock=clock or self._clock,
            random=random or self._random,
            on_wait=on_wait,
            on_retry=on_retry,
            before_write=before_write,
            transport=self._transport,
        )

    def _own(self, account: Account | None) -> Account:
        """The account, in process without the shared counter of requests: no other process uses this platform."""
        account = account or self.account()
        return account if self._transport is None else replace(account, ledger=None)

    # --- the API ------------------------------------------------------------------------------------------------------

    def get(self, path: str) -> Any:
        """The decoded body of the response, None if it is empty; also of the following methods."""
        return _content(self.request("GET", path))

    def post(self, path: str, body: Any) -> Any:
        return _content(self.request("POST", path, body))

    def patch(self, path: str, body: Any) -> Any:
        return _content(self.request("PATCH", path, body))

    def put(self, path: str, body: Any) -> Any:
        return _content(self.request("PUT", path, body))

    def delete(self, path: str) -> None:
        _content(self.request("DELETE", path))

    def collection(self, path: str, key: str) -> list[dict[str, Any]]:
        """All objects of a collection, read page by page, newest first. `key`: the field of the list."""
        found: list[dict[str, Any]] = []
        following: str | None = path
        while following:
            page = self.get(following)
            found += page[key]
            following = page["next_page_uri"]
        return found

    def refusal(self, method: str, path: str, body: Any = None) -> tuple[int, str]:
        """Sends a request that must fail; returns status and error code (`446`; empty if there is none)."""
        response = self.request(method, path, body)
        if response.status_code < 400:
            raise AssertionError(f"{method} {path} succeeded: {response.text}")
        return response.status_code, str(response.json().get("error_code", "")).removeprefix("ERR_NGROK_")

    # --- what only an emulator can do ---------------------------------------------------------------------------------

    def log(self, since: int = 0) -> list[dict[str, Any]]:
        """The requests to the API, in order: `method`, `path` with query, `status` (0: no response), `sequence`.

        Requests of other accounts than the first also have `account`. For an item of `accounts`: its requests only.
        """
        return [*self.get(f"{CONTROL}/requests?since={since}{self._select('&')}")["requests"]]

    def calls(self) -> list[str]:
        """The requests of the log other than GET, such as `"POST /credentials"`."""
        return [f"{entry['method']} {entry['path']}" for entry in self.log() if entry["method"] != "GET"]

    def forget_log(self) -> None:
        self.delete(f"{CONTROL}/requests")

    def fault(self, on: str, **fault: Any) -> None:
        """Injects a fault: `sandbox.fault("POST /credentials", nth=2, then="commit-then-cut")`; see `Fault`.

        The fault affects all accounts; for an item of `accounts`, requests of this account only.
        """
        account = {"account": self.account_name} if self.account_name else {}
        self.post(f"{CONTROL}/faults", {"on": on, **account, **fault})

    def provision(self, *faults: dict[str, Any], **settings: Any) -> None:
        """Changes how certificates are obtained: `sandbox.provision({"host": "*", "error_code": "DNS_ERROR"})`.

        Without arguments all records are set and nothing fails; see `/_sandbox/provisioning`.
        """
        self.put(f"{CONTROL}/provisioning", {"faults": [*faults], **settings})

    def move_clock(self, *, days: float = 0.0, seconds: float = 0.0) -> None:
        """Sets the platform's clock this far ahead of that of the machine, back to it without arguments."""
        self.put(f"{CONTROL}/clock", {"offset": days * 86_400 + seconds})

    def plant(self, collection: str, *objects: dict[str, Any]) -> None:
        """Adds objects without validation, such as ephemeral endpoints, which no client can create."""
        self.post(
            f"{CONTROL}/objects{self._select('?')}", [{"collection": collection, "object": item} for item in objects]
        )

    def reset(self) -> None:
        """Deletes all objects, faults and the log of all accounts, including the seed."""
        self.delete(CONTROL)

    def _select(self, separator: str) -> str:
        """The part of a query that selects the account; empty for the first account."""
        return f"{separator}account={self.account_name}" if self.account_name else ""


class OtherAccount(Emulator):
    """An account of an emulated platform besides the first; see `Emulator.accounts`."""

    def __init__(self, platform: Emulator, name: str, api_key: str) -> None:
        self.base_url, self.api_key, self.account_name = platform.base_url, api_key, name
        self._platform = platform
        self._transport, self._clock, self._random = platform._transport, platform._clock, platform._random

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
    ) -> httpx.Response:
        headers = self.headers if headers is None else headers
        return self._platform.request(method, path, body, headers=headers, content=content)


class OtherAccounts(Mapping[str, Emulator]):
    """The accounts of an emulated platform by name; `keys` has the name of each by its API key."""

    def __init__(self, platform: Emulator, keys: Mapping[str, str]) -> None:
        self._platform = platform
        self._keys = {name: key for key, name in keys.items()}

    def __getitem__(self, name: str) -> Emulator:
        return OtherAccount(self._platform, name, self._keys[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)


def json_or_content(body: Any, content: bytes | None) -> dict[str, Any]:
    """The body of a request, as parameters of httpx."""
    return {"content": content} if body is None else {"json": body}


def _content(response: httpx.Response) -> Any:
    if not response.is_success:
        request = f"{response.request.method} {response.request.url}"
        raise AssertionError(f"{request}: {response.status_code} {response.text}")
    return response.json() if response.content else None
