"""Lists: their order, their pages, and the address of the next page."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from tests.harness.platform import HEADERS, Sandbox


def _make(sandbox: Sandbox, count: int) -> list[str]:
    """Ids, newest first."""
    return [sandbox.post("/bot_users", {"name": f"bot {number}"})["id"] for number in range(count)][::-1]


def _follow(sandbox: Sandbox, path: str) -> list[list[str]]:
    """The ids of each page."""
    pages, following = [], path
    while following:
        page = sandbox.get(following)
        pages.append([user["id"] for user in page["bot_users"]])
        following = page["next_page_uri"]
    return pages


def test_a_list_is_newest_first(sandbox: Sandbox) -> None:
    made = _make(sandbox, 5)
    assert _follow(sandbox, "/bot_users") == [made]


def test_pages_are_followed_to_the_end(sandbox: Sandbox) -> None:
    made = _make(sandbox, 5)
    assert _follow(sandbox, "/bot_users?limit=2") == [made[:2], made[2:4], made[4:]]


@pytest.mark.parametrize(("count", "sizes"), [(0, [0]), (100, [100]), (101, [100, 1])])
def test_a_page_has_a_hundred_objects_and_the_address_of_the_next(
    sandbox: Sandbox, count: int, sizes: list[int]
) -> None:
    _make(sandbox, count)
    assert [len(page) for page in _follow(sandbox, "/bot_users")] == sizes


@pytest.mark.usefixtures("over_socket")
def test_the_next_page_has_the_host_of_the_request(sandbox: Sandbox) -> None:
    made = _make(sandbox, 2)
    host = f"localhost:{urlsplit(sandbox.base_url).port}"
    page = sandbox.request("GET", "/bot_users?limit=1", headers={**HEADERS, "Host": host}).json()
    assert page["next_page_uri"] == f"http://{host}/bot_users?before_id={made[0]}&limit=1"
    assert page["bot_users"][0]["uri"] == f"http://{host}/bot_users/{made[0]}"


def test_a_page_after_a_deleted_object_continues_with_the_next(sandbox: Sandbox) -> None:
    made = _make(sandbox, 4)
    page = sandbox.get("/bot_users?limit=2")
    sandbox.delete(f"/bot_users/{made[1]}")
    assert [user["id"] for user in sandbox.get(page["next_page_uri"])["bot_users"]] == made[2:]


def test_a_later_page_has_no_object_created_since_the_first(sandbox: Sandbox) -> None:
    made = _make(sandbox, 3)
    page = sandbox.get("/bot_users?limit=2")
    sandbox.post("/bot_users", {"name": "late"})
    assert [user["id"] for user in sandbox.get(page["next_page_uri"])["bot_users"]] == made[2:]
