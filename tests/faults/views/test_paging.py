"""Two hundred and fifty objects come in three pages, and somebody creates and deletes while we turn them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from reconciler.api.client import Client, LastCheck
from reconciler.model import owner_record as owners
from reconciler.model.owner_record import Owner
from reconciler.model.snapshot import Binding
from reconciler.model.value import Json
from reconciler.testing import Sandbox
from tests.faults.between import Between
from tests.faults.matrix.world import Stack, ids

BACKENDS = "/backends/http_response"
COUNT = 250


class EditedPages(Between):
    """Something happens to the collection before each page but the first; an answer may be touched up."""

    def __init__(self, client: Client, happens: Callable[[int], None], edit: Callable[[int, Any], Json]) -> None:
        super().__init__(client)
        self._happens, self._edit = happens, edit
        self.pages = 0

    async def exchange(
        self,
        method: str,
        address: str,
        body: Mapping[str, Json] | None = None,
        last_check: LastCheck | None = None,
    ) -> Json:
        if method != "GET" or BACKENDS not in address or f"{BACKENDS}/" in address:
            return await self._to.exchange(method, address, body, last_check)
        self.pages += 1
        if self.pages > 1:
            self._happens(self.pages)
        return self._edit(self.pages, await self._to.exchange(method, address, body, last_check))


@pytest.fixture(scope="module")
def platform() -> Iterator[Sandbox]:
    with Sandbox() as running:
        yield running


@pytest.fixture
def stack(platform: Sandbox, tmp_path: Path) -> Stack:
    """All of them declared, and there."""
    platform.reset()
    stack = Stack(platform, tmp_path, kinds=("HTTPResponseBackend",))
    for number in range(COUNT):
        text = f"b{number:03}"
        address = stack.declare(f"HTTPResponseBackend/{text}", {"description": text, "status_code": 200})
        record = owners.write("", Owner(stack.name, address, f"intent-{text}"))
        created = platform.post(BACKENDS, {"description": text, "metadata": record, "status_code": 200})
        stack.journal.bindings[address] = Binding(created["id"])
    platform.forget_log()
    return stack


def _old(number: int, **more: Any) -> dict[str, Any]:
    born = f"2026-01-01T00:{number // 60:02}:{number % 60:02}Z"
    return {"id": f"bkdhr_{number:027}", "created_at": born, "status_code": 200, "body": "", "headers": None, **more}


def all_of(stack: Stack) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    path: str | None = BACKENDS
    while path:
        page = stack.sandbox.get(path)
        found += page["backends"]
        path = page["next_page_uri"]
    return found


def as_it_is(_page: int, answer: Any) -> Json:
    return answer


def do_nothing(_page: int) -> None:
    pass


async def test_objects_created_by_others_during_paging_change_no_plan(stack: Stack) -> None:
    def create(page: int) -> None:
        for number in range(30):
            stack.sandbox.post(BACKENDS, {"description": f"theirs {page}.{number}", "status_code": 200})

    stack.wrap = lambda client: EditedPages(client, create, as_it_is)
    assert (await stack.run()).plan.is_empty
    assert await stack.converges() == []
    assert len(all_of(stack)) == COUNT + 60


async def test_only_objects_deleted_during_paging_are_created_again(stack: Stack) -> None:
    newest_first = [body["id"] for body in all_of(stack)]
    # Seen already, the very object the next page goes on after, and not seen yet.
    gone = {2: [newest_first[3], newest_first[99]], 3: [newest_first[199], newest_first[240]]}

    def delete(page: int) -> None:
        for id in gone[page]:
            stack.sandbox.delete(f"{BACKENDS}/{id}")

    stack.wrap = lambda client: EditedPages(client, delete, as_it_is)
    assert (await stack.run()).is_good
    await stack.converges()
    live = all_of(stack)
    assert len({body["description"] for body in live}) == len(live) == COUNT
    assert set(newest_first) - ids(live) == {id for ids_of_page in gone.values() for id in ids_of_page}


async def test_an_object_on_two_pages_counts_once(stack: Stack) -> None:
    last: list[Any] = []

    def double(page: int, answer: Any) -> Json:
        backends = [*last, *answer["backends"]]
        last[:] = answer["backends"][-1:]
        return {**answer, "backends": backends}

    stack.wrap = lambda client: EditedPages(client, do_nothing, double)
    assert (await stack.run()).plan.is_empty


async def test_an_object_that_moves_between_pages_is_neither_created_again_nor_deleted(stack: Stack) -> None:
    def skip(page: int, answer: Any) -> Json:
        return {**answer, "backends": answer["backends"][1:] if page > 1 else answer["backends"]}

    stack.wrap = lambda client: EditedPages(client, do_nothing, skip)
    assert (await stack.run()).plan.is_empty
    assert stack.sandbox.calls() == []


async def test_no_change_is_planned_if_a_page_fails(stack: Stack) -> None:
    stack.sandbox.fault(f"GET {BACKENDS}", then="status", nth=2, times=0)
    stack.declared.popitem()
    run = await stack.run()
    assert run.plan.calls == ()
    assert "objects is incomplete" in str(run.plan.problems[0])
    await stack.converges()
    assert len(all_of(stack)) == COUNT - 1


async def test_a_search_after_a_lost_create_reads_only_the_necessary_pages(platform: Sandbox, tmp_path: Path) -> None:
    platform.reset()
    stack = Stack(platform, tmp_path, kinds=("HTTPResponseBackend",))
    platform.plant(BACKENDS, *(_old(number, description=f"theirs {number}") for number in range(COUNT)))
    stack.declare("HTTPResponseBackend/ours", {"description": "ours", "status_code": 200})
    platform.fault(f"POST {BACKENDS}", then="commit-then-cut")
    platform.forget_log()
    assert (await stack.run()).is_good
    lists = [entry for entry in platform.log() if entry["method"] == "GET"]
    assert len(lists) == 3 + 1
    assert await stack.converges() == []
