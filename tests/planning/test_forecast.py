"""The forecast: the requests of an apply, and its duration under the rate limit of the account."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from reconciler import kinds
from reconciler.model.plan import Call, Forecast, Verb
from reconciler.model.snapshot import Listing, Live, Snapshot
from reconciler.planning.forecast import forecast
from tests.harness.builders import at

POLICY, BOT, RULE = kinds.get("IPPolicy"), kinds.get("BotUser"), kinds.get("IPPolicyRule")
EDGE, ROUTE = kinds.get("HTTPSEdge"), kinds.get("HTTPSEdgeRoute")


def account(sizes: Mapping[str, int]) -> Snapshot:
    return Snapshot({kind: Listing((Live(kind, "x", {}),) * size) for kind, size in sizes.items()})


def call(kind: str, number: int, verb: Verb) -> Call:
    target = None if verb is Verb.CREATE else f"id-{number}"
    return Call(f"{verb} {number}", at(f"{kind}/n{number}"), verb, "/path", target)


def calls(kind: str, count: int, verb: Verb = Verb.CREATE) -> list[Call]:
    return [call(kind, number, verb) for number in range(count)]


def find_minutes(planned_calls: list[Call], sizes: Mapping[str, int], per_minute: int, *known: str) -> float:
    """The minutes of the forecast for an account; the kinds `known` are planned."""
    catalogue = {name: kinds.get(name) for name in known or sizes}
    found = forecast(planned_calls, account(sizes), catalogue, per_minute)
    assert found.calls == len(planned_calls)
    return found.estimated_seconds / 60


def count_requests(planned_calls: list[Call], sizes: Mapping[str, int], *known: str) -> int:
    """The number of requests of a plan: the lowest limit without a wait."""
    return next(limit for limit in range(1, 2000) if not find_minutes(planned_calls, sizes, limit, *known))


@pytest.mark.parametrize(
    ("objects", "pages"), [(0, 1), (1, 1), (99, 1), (100, 1), (101, 2), (200, 2), (201, 3), (1000, 10)]
)
def test_a_list_needs_one_request_for_each_hundred_objects_and_at_least_one(objects: int, pages: int) -> None:
    assert count_requests(calls("IPPolicy", 1), {"IPPolicy": objects}) == pages + 1


def test_each_kind_is_listed_except_children_listed_below_their_parents() -> None:
    sizes = {"IPPolicy": 150, "BotUser": 3, "HTTPSEdge": 3, "HTTPSEdgeRoute": 500}
    assert count_requests(calls("IPPolicy", 1), sizes) == (2 + 1 + 1) + 1


def test_lists_of_unplanned_kinds_are_no_requests_of_the_plan() -> None:
    assert count_requests(calls("IPPolicy", 1), {"IPPolicy": 1, "BotUser": 500}, "IPPolicy") == 2


@pytest.mark.parametrize("verb", [Verb.UPDATE, Verb.DELETE, Verb.PUT, Verb.REMOVE])
def test_an_owner_record_is_read_again_before_each_call_on_its_object(verb: Verb) -> None:
    assert count_requests(calls("IPPolicy", 1, verb), {"IPPolicy": 1}) == 1 + 1 + 1


def test_objects_without_owner_records_are_not_read_again() -> None:
    assert count_requests(calls("BotUser", 5, Verb.UPDATE), {"BotUser": 5}) == 1 + 5


@pytest.mark.parametrize(
    ("updates", "objects", "checks"),
    [
        (1, 50, 1),  # one list is as fast
        (7, 50, 1),
        (2, 150, 2),
        (3, 150, 2),  # a list of two pages
        (4, 250, 3),
        (4, 300, 4),  # the last page may be full, so another page is read
    ],
)
def test_owner_records_are_read_one_by_one_or_by_a_list(updates: int, objects: int, checks: int) -> None:
    pages = -(-objects // 100)
    assert count_requests(calls("IPPolicy", updates, Verb.UPDATE), {"IPPolicy": objects}) == pages + checks + updates


def test_owner_records_of_each_kind_are_read_by_a_separate_list() -> None:
    sizes = {"IPPolicy": 9, "HTTPSEdge": 9}
    planned_calls = [*calls("IPPolicy", 5, Verb.UPDATE), *calls("HTTPSEdge", 5, Verb.DELETE), *calls("BotUser", 5)]
    assert count_requests(planned_calls, sizes, "IPPolicy", "HTTPSEdge", "BotUser") == 2 + 2 + 15


@pytest.mark.parametrize(
    ("per_minute", "updates", "minutes"),
    [
        # Each minute has room for one list and the updates that it allows.
        (10, 9, 1),  # 1 list + 1 check + 9 updates
        (10, 10, 1),  # the next minute needs another list: 1 + 2 + 10
        (10, 17, 1),  # 1 + 2 + 17
        (10, 18, 2),  # 1 + 2 + 18
        (10, 19, 2),  # 1 + 3 + 19
        (2, 3, 3),  # 1 + 3 + 3
        (1, 3, 6),  # no room for a list beside an update: one by one, 1 + 3 + 3
    ],
)
def test_lists_of_owner_records_are_valid_for_a_minute(per_minute: int, updates: int, minutes: int) -> None:
    assert find_minutes(calls("IPPolicy", updates, Verb.UPDATE), {"IPPolicy": 90}, per_minute) == minutes


def test_updates_that_fit_one_list_need_no_second_list() -> None:
    planned_calls = [*calls("IPPolicy", 9, Verb.UPDATE), *calls("IPPolicy", 9)]
    assert find_minutes(planned_calls, {"IPPolicy": 90}, 10) == 1  # 1 list + 1 check + 18 calls


def test_kinds_of_one_collection_are_listed_together() -> None:
    catalogue = {"IPPolicy": POLICY, "Other": POLICY}
    assert forecast(calls("IPPolicy", 1), account({"IPPolicy": 60, "Other": 60}), catalogue, 3).estimated_seconds == 0
    assert forecast(calls("IPPolicy", 1), account({"IPPolicy": 60, "Other": 60}), catalogue, 2).estimated_seconds == 60


@pytest.mark.parametrize(("creates", "minutes"), [(1, 0), (4, 0), (5, 1), (9, 1), (10, 2), (14, 2), (15, 3)])
def test_each_full_minute_of_requests_adds_a_wait(creates: int, minutes: int) -> None:
    assert find_minutes(calls("IPPolicy", creates), {"IPPolicy": 1}, 5) == minutes


@pytest.mark.parametrize(("creates", "per_minute"), [(0, 1), (5, 0), (0, 0)])
def test_a_forecast_without_calls_or_a_limit_does_not_wait(creates: int, per_minute: int) -> None:
    catalogue = {kind.name: kind for kind in (POLICY, BOT, RULE, EDGE, ROUTE)}
    sizes = dict.fromkeys(catalogue, 500)
    planned_calls = calls("IPPolicy", creates)
    assert forecast(planned_calls, account(sizes), catalogue, per_minute) == Forecast(creates, 0.0)
