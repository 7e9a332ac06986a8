"""Lists: their order, their pages, and the way from one to the next."""

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
def test_a_page_holds_a_hundred_and_says_whether_more_follow(sandbox: Sandbox, count: int, sizes: list[int]) -> None:
    _make(sandbox, count)
    assert [len(page) for page in _follow(sandbox, "/bot_users")] == sizes


@pytest.mark.usefixtures("over_socket")
def test_the_next_page_is_at_the_address_by_which_the_client_came(sandbox: Sandbox) -> None:
    made = _make(sandbox, 2)
    host = f"localhost:{urlsplit(sandbox.base_url).port}"
    page = sandbox.request("GET", "/bot_users?limit=1", headers={**HEADERS, "Host": host}).json()
    assert page["next_page_uri"] == f"http://{host}/bot_users?before_id={made[0]}&limit=1"
    assert page["bot_users"][0]["uri"] == f"http://{host}/bot_users/{made[0]}"


def test_a_page_goes_on_after_an_object_that_is_gone(sandbox: Sandbox) -> None:
    made = _make(sandbox, 4)
    page = sandbox.get("/bot_users?limit=2")
    sandbox.delete(f"/bot_users/{made[1]}")
    assert [user["id"] for user in sandbox.get(page["next_page_uri"])["bot_users"]] == made[2:]


def test_a_page_shows_nothing_that_was_made_since(sandbox: Sandbox) -> None:
    made = _make(sandbox, 3)
    page = sandbox.get("/bot_users?limit=2")
    sandbox.post("/bot_users", {"name": "late"})
    assert [user["id"] for user in sandbox.get(page["next_page_uri"])["bot_users"]] == made[2:]
