"""The engine's ports `Reader` and `Platform` over HTTP: paging, retries of reads, translation by the dialect.

Reads are retried here. A write is one attempt: the engine decides about its retries.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext

from msgspec import Struct

from reconciler.api import agent, client
from reconciler.api.agent import Agent, is_agent_path
from reconciler.api.client import Account, Client
from reconciler.api.clock import MachineClock, MachineRandom
from reconciler.api.errors import Unreachable
from reconciler.api.transport import Transport
from reconciler.engine import retry
from reconciler.engine.ports import Check, Clock, Failure, Random, Refused, Transient, add_fields, complete_body
from reconciler.model.value import Json

# Limits of one list, beyond which it is considered endless. A page has at most 100 objects.
MAX_PAGES = 5_000
MAX_OBJECTS = 500_000

OnWait = Callable[[float], None]
OnRetry = Callable[[float, str], None]
"""Called before a read is retried, with the seconds until then and the reason."""


class ReadOnlyClient:
    """Reads the account. It has no method that writes."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        random: Random,
        retries: retry.RetryPolicy = retry.READS,
        on_retry: OnRetry | None = None,
        agent: Agent | None = None,
    ) -> None:
        self._client = client
        self._agent = agent
        self._on_retry = on_retry or (lambda seconds, why: None)
        self._clock = clock
        self._random = random
        self._retries = retries

    def agent(self, path: str) -> Agent | None:
        """The agent, if the path belongs to its API: then the request is not sent to the platform."""
        return self._agent if self._agent is not None and is_agent_path(path) else None

    async def get(self, path: str) -> Json:
        if (agent := self.agent(path)) is not None:
            return await agent.get(path)
        return self._client.profile.translate_response(path, await self._get(self._client.address_of(path)))

    async def pages(self, path: str, key: str) -> AsyncIterator[Sequence[Mapping[str, Json]]]:
        if (agent := self.agent(path)) is not None:
            yield await agent.list(path, key)
            return
        observer = self._client.observer
        with observer.watch_list(path.partition("?")[0]) if observer is not None else nullcontext():
            async for page in self._pages(path, key):
                yield page

    async def _pages(self, path: str, key: str) -> AsyncIterator[Sequence[Mapping[str, Json]]]:
        address: str | None = self._client.address_of(path)
        seen: set[str] = set()
        ids: set[str] = set()
        while address is not None:
            if address in seen:
                raise Refused(f"a page of {path} links to an earlier page; the list is not complete")
            seen.add(address)
            objects, following = _parse_page(
                self._client.profile.translate_response(path, await self._get(address)), path, key
            )
            fresh = {str(item.get("id", item.get("type", place))) for place, item in enumerate(objects)} - ids
            if following is not None and not fresh:
                raise Refused(f"a page of {path} has no new objects but links to a next page; the list is not complete")
            ids |= fresh
            if following is not None and (len(seen) >= MAX_PAGES or len(ids) >= MAX_OBJECTS):
                read = f"{len(seen):,} pages and {len(ids):,} objects"
                raise Refused(f"{path} has a next page after {read}; the list is not complete")
            yield objects
            address = None if following is None else self._client.origin.follow(following)

    async def _get(self, address: str) -> Json:
        attempt = 1
        while True:
            try:
                return await self._client.exchange("GET", address)
            except Transient as failure:
                seconds = retry.wait_seconds(attempt, failure, self._random.fraction(), self._retry_policy(failure))
                if seconds is None:
                    raise
                self._on_retry(seconds, str(failure))
            await self._clock.sleep(seconds)
            attempt += 1

    def _retry_policy(self, failure: Failure) -> retry.RetryPolicy:
        is_first = isinstance(failure, Unreachable) and not self._client.has_been_answered
        return retry.FIRST_CONTACT if is_first else self._retries


class HTTPPlatform(ReadOnlyClient):
    """Reads and changes the account."""

    async def send(
        self, method: str, path: str, body: Mapping[str, Json] | None = None, *, check: Check | None = None
    ) -> Json:
        if (agent := self.agent(path)) is not None:
            await self._client.may_write()
            return await agent.send(method, path, await complete_body(check, body, agent.get))
        profile, address = self._client.profile, self._client.address_of(path)
        if check is not None:
            last_check = _LastCheck(self._client, check, path, body)
            return profile.translate_response(path, await self._client.exchange(method, address, last_check=last_check))
        translated = None if body is None else profile.translate_request(path, body)
        return profile.translate_response(path, await self._client.exchange(method, address, translated))


class _LastCheck(Struct, frozen=True):
    """The engine's check of a request, with paths and bodies translated by the dialect."""

    client: Client
    check: Check
    path: str
    body: Mapping[str, Json] | None

    async def prepare(self) -> None:
        await self.check.prepare()

    def is_due(self) -> bool:
        return self.check.is_due()

    async def complete(self, read: Callable[[str], Awaitable[Json]]) -> Mapping[str, Json] | None:
        async def read_path(path: str) -> Json:
            return self.client.profile.translate_response(path, await read(self.client.address_of(path)))

        body = add_fields(self.body, await self.check.confirm(lambda: read_path(self.check.path)))
        return None if body is None else self.client.profile.translate_request(self.path, body)


def _parse_page(body: Json, path: str, key: str) -> tuple[list[Mapping[str, Json]], str | None]:
    """The objects of a page, and the address of the next page or None; raises Refused if it is not a page."""
    objects = body.get(key) if isinstance(body, dict) else None
    if not isinstance(objects, list) or not all(isinstance(item, dict) for item in objects):
        raise Refused(f"the response to GET {path} is not a list of {key}; check platform.base_url")
    following = body.get("next_page_uri")
    if following is not None and not isinstance(following, str):
        raise Refused(f"the next_page_uri of {path} is not a string; the list is not complete")
    return objects, following or None


@asynccontextmanager
async def open_reader(
    account: Account,
    *,
    clock: Clock | None = None,
    random: Random | None = None,
    on_wait: OnWait | None = None,
    on_retry: OnRetry | None = None,
    transport: Transport | None = None,
) -> AsyncIterator[ReadOnlyClient]:
    """A client that reads an account and cannot change it.

    on_wait    called with the seconds for which requests wait for the budget
    on_retry   called before a read is retried
    transport  where requests are sent instead of the network

    Raises ValueError for an invalid base URL, and Refused for an unusable proxy or certificate.
    """
    clock = clock or MachineClock()
    opening = client.open_client(account, clock, read_only=True, on_wait=on_wait, transport=transport)
    async with opening as opened, agent.open_agent(account.agent, read_only=True, transport=transport) as local:
        yield ReadOnlyClient(opened, clock, random or MachineRandom(), on_retry=on_retry, agent=local)


@asynccontextmanager
async def open_platform(
    account: Account,
    *,
    clock: Clock | None = None,
    random: Random | None = None,
    on_wait: OnWait | None = None,
    on_retry: OnRetry | None = None,
    before_write: Callable[[], Awaitable[None]] | None = None,
    transport: Transport | None = None,
) -> AsyncIterator[HTTPPlatform]:
    """A client that reads and changes an account. Parameters and errors as in `open_reader`.

    before_write  awaited right before each request that changes anything; raises if it must not be sent
    """
    clock = clock or MachineClock()
    opening = client.open_client(
        account, clock, read_only=False, on_wait=on_wait, before_write=before_write, transport=transport
    )
    async with opening as opened, agent.open_agent(account.agent, read_only=False, transport=transport) as local:
        yield HTTPPlatform(opened, clock, random or MachineRandom(), on_retry=on_retry, agent=local)
