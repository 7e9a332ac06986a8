"""The guards of a fleet."""

from __future__ import annotations

import pytest

from reconciler.fleet.guards import find_excess
from reconciler.model.fleet import Amount, Fleet, FleetGuards, KeyMethod, KeySource, Member, TaskRecord, TaskState

MEMBERS = {name: Member(name) for name in ("a", "b", "c", "d")}


def fleet(guards: FleetGuards) -> Fleet:
    return Fleet("shops", MEMBERS, {}, KeySource(KeyMethod.ENV, "KEY"), guards=guards)


def plan(
    member: str, *, state: TaskState = TaskState.SUCCEEDED, shape: str = "s", project: str = "p", **counts: int
) -> TaskRecord:
    changes = {"BotUser/x": "1"} if counts else {}
    return TaskRecord("r", member, project, state=state, counts=counts, changes=changes, shape=shape)


PLANS = [
    plan("a", delete=1),
    plan("a", project="q", replace=1),
    plan("b", update=5),
    plan("c"),
    plan("d", delete=7, shape="not approved"),
    plan("c", delete=7, state=TaskState.FAILED, project="q"),
]


@pytest.mark.parametrize(
    ("guards", "allowed", "flags"),
    [
        (FleetGuards(), {}, []),
        (FleetGuards(max_changed=Amount(2), max_deletes=2), {}, []),
        (FleetGuards(max_changed=Amount(50, is_percent=True)), {}, []),
        (FleetGuards(max_changed=Amount(49, is_percent=True)), {}, ["--allow members=2"]),
        (FleetGuards(max_changed=Amount(1), max_deletes=1), {}, ["--allow members=2", "--allow deletes=2"]),
        (FleetGuards(max_changed=Amount(1), max_deletes=1), {"members": 1, "deletes": 2}, ["--allow members=2"]),
        (FleetGuards(max_changed=Amount(0), max_deletes=0), {"members": 2, "deletes": 1}, ["--allow deletes=2"]),
        (FleetGuards(max_changed=Amount(0), max_deletes=0), {"members": 2, "deletes": 2}, []),
    ],
)
def test_an_apply_above_a_guard_needs_approval(guards: FleetGuards, allowed: dict[str, int], flags: list[str]) -> None:
    found = list(find_excess(fleet(guards), PLANS, {"s"}, allowed))
    assert [excess.flag for excess in found] == flags
    assert all("guards.max_" in str(excess) for excess in found)


@pytest.mark.parametrize(("number", "members", "objects"), [(1, "1 member", "1 object"), (2, "2 members", "2 objects")])
def test_an_excess_names_what_would_change_and_the_limit(number: int, members: str, objects: str) -> None:
    guards = FleetGuards(max_changed=Amount(10, is_percent=True), max_deletes=0)
    plans = [plan(name, delete=1) for name in ("a", "b")[:number]]
    texts = [str(excess) for excess in find_excess(fleet(guards), plans, {"s"}, {})]
    assert texts == [
        f"{members} would change, and guards.max_changed allows 10%",
        f"{objects} would be deleted, and guards.max_deletes allows 0",
    ]
