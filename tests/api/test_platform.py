"""Lists page by page: complete, ended at a limit, and no key sent to another origin; and retries of reads."""

from __future__ import annotations

import asyncio
import itertools
import random
from typing import Any

import pytest

from reconciler import kinds
from reconciler.api import platform
from reconciler.api.client import Account
from reconciler.api.errors import Unreachable
from reconciler.api.platform import ReadOnlyClient, open_reader
from reconciler.engine.observe import observe
from reconciler.engine.ports import Failure, Gone, Refused
from reconciler.engine.retry import FIRST_CONTACT, READS
from reconciler.model.value import Secret
from tests.api.wire import KEY, Wire, answer, wire
from tests.harness.engine import SeededChance, VirtualClock


def page(*ids: str, following: Any = None) -> bytes:
    return answer({"bot_users": [{"id": id} for id in ids], "uri": "", "next_page_uri": following})


def page_with_next(*ids: str, to: str = "/bot_users?before_id=x&limit=2") -> Any:
    return lambda server: page(*ids, following=f"{server.base_url}{to}")


async def list_ids(server: Wire) -> list[str]:
    async with open_reader(server.account(), clock=VirtualClock()) as reader:
        return [str(user["id"]) async for page in reader.pages("/bot_users", "bot_users") for user in page]


async def list_and_fail(*answers: Any) -> Failure:
    async with wire(*answers) as server:
        with pytest.raises(Failure) as failed:
            await list_ids(server)
    return failed.value


async def test_pages_are_followed_to_the_end_by_their_next_page() -> None:
    async with wire(page_with_next("bot_3", "bot_2"), page("bot_1")) as server:
        assert await list_ids(server) == ["bot_3", "bot_2", "bot_1"]
    assert [request.target for request in server.requests] == ["/bot_users", "/bot_users?before_id=x&limit=2"]


async def test_a_next_page_may_be_a_path() -> None:
    async with wire(page("bot_2", following="/bot_users?before_id=bot_2"), page("bot_1")) as server:
        assert await list_ids(server) == ["bot_2", "bot_1"]


async def test_a_list_without_a_next_page_key_is_complete() -> None:
    async with wire(answer({"bot_users": [{"id": "bot_1"}], "uri": ""})) as server:
        assert await list_ids(server) == ["bot_1"]


async def test_an_empty_next_page_ends_the_list() -> None:
    async with wire(page("bot_1", following="")) as server:
        assert await list_ids(server) == ["bot_1"]


async def test_objects_are_identified_by_id_type_or_position() -> None:
    def sources(*objects: Any, following: str | None = None) -> bytes:
        return answer({"sources": list(objects), "next_page_uri": following})

    pages = (
        sources({"type": "a.v0"}, following="/x?2"),
        sources({"type": "b.v0", "id": 7}, following="/x?3"),
        sources({}, {}, following="/x?4"),
        sources({}, {}, {}, following="/x?5"),
        sources({}, {}, {}, following="/x?6"),
    )
    read: list[int] = []

    async def read_all(reader: ReadOnlyClient) -> None:
        async for objects in reader.pages("/x", "sources"):
            read.append(len(objects))  # noqa: PERF401 - a comprehension would lose the pages before the exception

    async with wire(*pages) as server, open_reader(server.account(), clock=VirtualClock()) as reader:
        with pytest.raises(Refused, match="a page of /x has no new objects but links to a next page"):
            await read_all(reader)
    assert (read, len(server.requests)) == ([1, 1, 2, 3], 5)


async def test_an_empty_list_is_one_page() -> None:
    async with wire(page()) as server:
        assert await list_ids(server) == []
    assert len(server.requests) == 1


async def test_a_page_in_the_middle_is_retried() -> None:
    async with wire(page_with_next("bot_2"), answer({}, 502), answer({}, 503), page("bot_1")) as server:
        assert await list_ids(server) == ["bot_2", "bot_1"]


async def test_pages_in_a_circle_are_refused() -> None:
    failure = await list_and_fail(
        page_with_next("bot_2", to="/bot_users?before_id=a"), page_with_next("bot_1", to="/bot_users")
    )
    assert isinstance(failure, Refused)
    assert "links to an earlier page" in str(failure)


async def test_pages_without_new_objects_are_refused() -> None:
    count = iter(range(1000))

    def endless(server: Wire) -> bytes:
        return page("bot_1", following=f"{server.base_url}/bot_users?before_id={next(count)}")

    assert "has no new objects" in str(await list_and_fail(endless))


@pytest.mark.parametrize(("bound", "size"), [("MAX_PAGES", 1), ("MAX_OBJECTS", 20)])
async def test_a_list_that_never_ends_is_incomplete_at_its_limit(
    bound: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for limit in ("MAX_PAGES", "MAX_OBJECTS"):
        monkeypatch.setattr(platform, limit, 40 if limit == bound else 80)
    count = itertools.count()

    def endless(server: Wire) -> bytes:
        number = next(count)
        ids = [f"bot_{number}_{index}" for index in range(size)]
        return page(*ids, following=f"{server.base_url}/bot_users?before_id={number}")

    async with wire(endless) as server, open_reader(server.account(), clock=VirtualClock()) as reader:
        snapshot = await asyncio.wait_for(observe(reader, [kinds.get("BotUser")]), 20)
    assert len(server.requests) == 40 / size
    listing = snapshot.of("BotUser")
    assert not listing.complete
    assert f"/bot_users has a next page after {40 // size} pages and 40 objects" in listing.why


async def test_a_list_that_ends_at_its_limit_is_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "MAX_PAGES", 2)
    async with wire(page_with_next("bot_2"), page("bot_1")) as server:
        assert await list_ids(server) == ["bot_2", "bot_1"]


@pytest.mark.parametrize(
    "body",
    [[], {}, {"bot_users": None}, {"bot_users": {}}, {"bot_users": ["x"]}, {"tls_edges": []}, "x", None, 7],
)
async def test_a_response_that_is_no_page_is_refused(body: Any) -> None:
    assert "is not a list of bot_users" in str(await list_and_fail(answer(body)))


async def test_a_next_page_that_is_no_string_is_refused() -> None:
    assert "is not a string" in str(await list_and_fail(page("bot_1", following=7)))


async def test_a_missing_collection_is_reported() -> None:
    assert isinstance(await list_and_fail(answer({"msg": "no"}, 404)), Gone)


FOREIGN = [
    "http://127.0.0.1:{other}/bot_users",
    "//127.0.0.1:{other}/bot_users",
    "https://127.0.0.1:{port}/bot_users",
    "http://localhost:{other}/bot_users",
    "http://127.0.0.1:{port}@127.0.0.1:{other}/bot_users",
    "http://127.0.0.1:{other}\\@127.0.0.1:{port}/bot_users",
    "http://127.0.0.1:{port}\\.evil.example/",
    "\\\\127.0.0.1:{other}/bot_users",
    "/\\127.0.0.1:{other}/bot_users",
    "http:///127.0.0.1:{other}/bot_users",
    "http:127.0.0.1:{other}/bot_users",
    " http://127.0.0.1:{other}/",
    "http://127.0.0.1:{other}\t/",
    "http://127.0.0.1:{other}/\r\nX-Leak: 1",
    "bot_users?before_id=x",
    "http://127.0.0.1:{port}/../x",
    "http://127.0.0.1:{port}/%2e%2E/x",
    "http://127.0.0.1:99999/",
    "http://127.0.0.1:{port}x/",
    "http://[::1/",
    "ftp://127.0.0.1:{port}/",
    "file:///etc/passwd",
    "javascript:alert(1)",
    "http://\uff11\uff12\uff17.0.0.1:{other}/",
]


@pytest.mark.parametrize("address", FOREIGN)
async def test_the_key_is_not_sent_to_a_next_page_of_another_origin(address: str) -> None:
    async with wire(page()) as other:
        failure = await list_and_fail(
            lambda server: page(
                "bot_1", following=address.replace("{port}", str(server.port)).replace("{other}", str(other.port))
            )
        )
        assert isinstance(failure, Refused)
        assert "not followed" in str(failure)
    assert other.requests == []


async def test_no_spelling_of_a_next_page_sends_the_key_to_another_server() -> None:
    chance = random.Random(20)
    async with wire(page()) as other:
        pieces = [f"127.0.0.1:{other.port}", "localhost", "@", "//", "/", "\\", ":", "?", "#", "http:", "https:", "%2f"]

        def page_with_odd_next(server: Wire) -> bytes:
            own = [f"127.0.0.1:{server.port}", f"http://127.0.0.1:{server.port}"]
            return page("bot_1", following="".join(chance.choices(pieces + own, k=chance.randint(1, 6))))

        async with wire(page_with_odd_next) as server, open_reader(server.account(), clock=VirtualClock()) as reader:
            for _ in range(500):
                try:
                    async for _page in reader.pages("/bot_users", "bot_users"):
                        pass
                except Failure:
                    pass
    assert other.requests == []


# --- retries of reads -------------------------------------------------------------------------------------------------


async def close_server() -> str:
    """The address of a server that was closed."""
    async with wire(answer({})) as server:
        return server.base_url


async def test_an_unreachable_platform_is_reported_within_two_seconds() -> None:
    clock, retries = VirtualClock(), list[str]()
    account = Account(await close_server(), Secret(KEY, "test"))
    opening = open_reader(
        account, clock=clock, random=SeededChance(), on_retry=lambda _seconds, why: retries.append(why)
    )
    async with opening as reader:
        snapshot = await observe(reader, kinds.every())
    whys = {listing.why for listing in snapshot.listings.values()}
    assert whys == set(retries) == {f"cannot reach {account.base_url}: connection refused"}
    assert clock.now() < 2


async def test_a_platform_that_responded_once_is_retried_longer() -> None:
    clock = VirtualClock()
    async with wire(answer({"ip_policies": []})) as server:
        opening = open_reader(server.account(), clock=clock, random=SeededChance())
        reader = await opening.__aenter__()
        await reader.get("/ip_policies")
    with pytest.raises(Unreachable):
        await reader.get("/ip_policies")
    await opening.__aexit__(None, None, None)
    assert len(clock.slept) == READS.attempts - 1 > FIRST_CONTACT.attempts - 1
