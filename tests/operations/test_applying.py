"""What an apply refuses, asks, leaves and says at its end, on the emulated platform in process."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler import Selection, Status
from reconciler.api.clock import MachineClock
from reconciler.model.event import Ended, Outcome
from reconciler.model.plan import Plan
from reconciler.operations.opening.stores import store_location
from reconciler.operations.reporting import OperationEvent
from reconciler.store.errors import StoreError
from reconciler.store.journal import StoreJournal
from reconciler.testing import Sandbox
from tests.operations.projects import domain, open_on, policy, write_project


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_project(tmp_path / "project", policy("a"), policy("b"))


def descriptions(sandbox: Sandbox) -> dict[str, str]:
    """By id, of all policies."""
    return {found["id"]: found["description"] for found in sandbox.get("/ip_policies")["ip_policies"]}


def changes_sent(sandbox: Sandbox) -> list[str]:
    return [call for call in sandbox.calls() if not call.startswith("GET")]


# --- a plan that was made before --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("allowed", "status"), [(0, Status.BLOCKED), (1, Status.BLOCKED), (2, Status.APPLIED)])
async def test_a_plan_is_applied_once_as_many_deletions_are_approved_as_it_has(
    sandbox: Sandbox, tmp_path: Path, allowed: int, status: Status
) -> None:
    root = write_project(tmp_path / "project", domain("a"), domain("b"), policy("c"))
    await open_on(sandbox, root).apply()
    write_project(root, policy("c"))
    planned = await open_on(sandbox, root).plan()
    workspace = open_on(sandbox, root).select(allow={("delete", "ReservedDomain"): allowed})
    assert (await workspace.apply(planned)).status is status
    left = 0 if status is Status.APPLIED else 2
    assert len(sandbox.get("/reserved_domains")["reserved_domains"]) == left


async def test_a_plan_is_applied_once(sandbox: Sandbox, root: Path) -> None:
    planned = await open_on(sandbox, root).plan()
    assert (await open_on(sandbox, root).apply(planned)).status is Status.APPLIED
    for id in descriptions(sandbox):
        sandbox.delete(f"/ip_policies/{id}")
    again = await open_on(sandbox, root).apply(planned)
    assert (again.status, descriptions(sandbox)) == (Status.STALE, {})
    assert "was applied already" in again.reasons[0]


async def test_a_plan_that_was_applied_in_part_is_finished_and_then_counts_as_applied(
    sandbox: Sandbox, root: Path
) -> None:
    planned = await open_on(sandbox, root).plan()
    sandbox.fault("POST /ip_policies", nth=2, then="status", status=422)
    assert (await open_on(sandbox, root).apply(planned)).status is Status.PARTIAL
    (made,) = descriptions(sandbox)
    sandbox.forget_log()
    result = await open_on(sandbox, root).apply(planned)
    assert (result.status, [ended.outcome for ended in result.outcomes]) == (Status.APPLIED, [Outcome.DONE])
    assert sorted(descriptions(sandbox).values()) == ["a", "b"]
    assert made in descriptions(sandbox)
    assert (await open_on(sandbox, root).apply(planned)).status is Status.STALE


@pytest.mark.parametrize("partial", [False, True])
async def test_of_a_plan_that_is_stale_in_part_the_rest_is_applied_only_if_asked_for(
    sandbox: Sandbox, root: Path, partial: bool
) -> None:
    await open_on(sandbox, root).apply()
    write_project(root, policy("a", "new a"), policy("b", "new b"))
    planned = await open_on(sandbox, root).plan()
    by_hand = next(id for id, text in descriptions(sandbox).items() if text == "a")
    sandbox.patch(f"/ip_policies/{by_hand}", {"description": "by hand"})
    result = await open_on(sandbox, root).apply(planned, partial=partial)
    assert result.status is (Status.PARTIAL if partial else Status.STALE)
    assert set(descriptions(sandbox).values()) == {"by hand", "new b" if partial else "b"}
    assert "IPPolicy/a" in result.reasons[0]


async def test_of_a_plan_of_which_everything_is_stale_no_part_is_applied(sandbox: Sandbox, root: Path) -> None:
    await open_on(sandbox, root).apply()
    write_project(root, policy("a", "new"), policy("b"))
    planned = await open_on(sandbox, root).plan()
    by_hand = next(id for id, text in descriptions(sandbox).items() if text == "a")
    sandbox.patch(f"/ip_policies/{by_hand}", {"description": "by hand"})
    assert (await open_on(sandbox, root).apply(planned, partial=True)).status is Status.STALE


# --- approval ---------------------------------------------------------------------------------------------------------


class MovedClock(MachineClock):
    """Stands still until it is moved."""

    time = 0.0

    def now(self) -> float:
        return self.time


@pytest.mark.parametrize("planned_before", [False, True])
@pytest.mark.parametrize(
    ("seconds", "name", "status"),
    [(61.0, "a", Status.STALE), (61.0, "b", Status.APPLIED), (61.0, "", Status.APPLIED), (59.0, "", Status.APPLIED)],
)
async def test_what_changes_while_a_person_thinks_makes_the_plan_stale(
    sandbox: Sandbox, root: Path, seconds: float, name: str, status: Status, planned_before: bool
) -> None:
    await open_on(sandbox, root).apply()
    write_project(root, policy("a", "new"), policy("b"))
    clock = MovedClock()
    workspace = open_on(sandbox, root, clock=clock)
    workspace = workspace.select(Selection(targets=("IPPolicy/a",)))

    async def think(_: Plan) -> bool:
        clock.time += seconds
        for id in [id for id, text in descriptions(sandbox).items() if text == name]:
            sandbox.patch(f"/ip_policies/{id}", {"description": "by hand"})
        return True

    result = await workspace.apply(await workspace.plan() if planned_before else None, approve=think)
    assert result.status is status
    assert ("new" in descriptions(sandbox).values()) is (status is Status.APPLIED)


async def test_nobody_is_asked_about_a_plan_without_changes(sandbox: Sandbox, root: Path) -> None:
    async def ask(_: Plan) -> bool:
        raise AssertionError

    await open_on(sandbox, root).apply()
    assert (await open_on(sandbox, root).apply(approve=ask)).status is Status.UNCHANGED


async def test_an_account_without_any_object_of_the_last_apply_needs_approval(tmp_path: Path) -> None:
    root = write_project(tmp_path / "project", *(policy(name) for name in "abc"))
    with Sandbox() as right, Sandbox() as wrong:
        await open_on(right, root).apply()
        for _ in range(2):  # the refused apply does not make the other account the right one
            refused = await open_on(wrong, root).apply()
            assert ([approval.what for approval in refused.plan.missing_approvals], refused.status) == (
                ["account"],
                Status.BLOCKED,
            )
        assert changes_sent(wrong) == []
        write_project(root)  # nobody approves the account of a plan without changes
        assert (await open_on(wrong, root).apply()).status is Status.UNCHANGED
        write_project(root, policy("a"))
        assert (await open_on(wrong, root).apply()).status is Status.BLOCKED
        allowing = open_on(wrong, root).select(allow={("account", "*"): 1})
        assert (await allowing.apply()).status is Status.APPLIED


# --- the end ----------------------------------------------------------------------------------------------------------


def one_at_a_time(tmp_path: Path) -> Path:
    root = write_project(tmp_path / "project", *(policy(f"p{number}") for number in range(8)))
    (root / "reconciler.yaml").write_text(
        "version: 1\nstack: prod\nlimits: {requests_per_minute: 100000, concurrency: 1}\n"
    )
    return root


async def test_a_stop_of_the_caller_alone_ends_the_run(sandbox: Sandbox, tmp_path: Path) -> None:
    stop = asyncio.Event()

    def stop_soon(event: OperationEvent) -> None:
        if isinstance(event, Ended):
            stop.set()

    result = await open_on(sandbox, one_at_a_time(tmp_path)).apply(stop=stop, on_event=stop_soon)
    assert result.status is Status.INTERRUPTED
    assert [ended.outcome for ended in result.outcomes].count(Outcome.SKIPPED) >= 6
    assert len(descriptions(sandbox)) == 8 - [ended.outcome for ended in result.outcomes].count(Outcome.SKIPPED)


async def test_a_store_that_fails_alone_ends_the_run(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> None:
        raise StoreError("the disk is full")

    monkeypatch.setattr(StoreJournal, "record", fail)
    result = await open_on(sandbox, one_at_a_time(tmp_path)).apply()
    assert (result.status, result.failure) == (Status.PARTIAL, "the disk is full")
    assert [ended.outcome for ended in result.outcomes].count(Outcome.SKIPPED) >= 6


async def test_a_run_that_lost_its_lock_sends_no_further_change(sandbox: Sandbox, tmp_path: Path) -> None:
    root = one_at_a_time(tmp_path)

    def take_lock(event: OperationEvent) -> None:
        if isinstance(event, Ended) and event.outcome is Outcome.DONE:
            with sqlite3.connect(store_location(open_on(sandbox, root).config)) as connection:
                connection.execute("UPDATE locks SET holder = 'another run'")
            connection.close()

    result = await open_on(sandbox, root).apply(on_event=take_lock)
    assert "another run acquired it" in result.failure
    assert len(descriptions(sandbox)) <= 2


@pytest.mark.parametrize(
    ("statuses", "status"),
    [
        ((403, 403), Status.UNAUTHORIZED),
        ((403, 422), Status.FAILED),
        ((422, 422), Status.FAILED),
        ((403, 0), Status.PARTIAL),
    ],
)
async def test_a_run_is_unauthorized_if_nothing_but_the_key_was_refused(
    sandbox: Sandbox, root: Path, statuses: tuple[int, int], status: Status
) -> None:
    for number, code in enumerate(statuses, 1):
        if code:
            sandbox.fault("POST /ip_policies", nth=number, then="status", status=code)
    assert (await open_on(sandbox, root).apply()).status is status


@pytest.mark.parametrize(
    ("code", "status"), [(403, Status.UNAUTHORIZED), (401, Status.UNAUTHORIZED), (400, Status.FAILED)]
)
async def test_an_apply_that_cannot_be_verified_says_so(
    sandbox: Sandbox, root: Path, code: int, status: Status
) -> None:
    sandbox.fault("GET /ip_policies", nth=2, times=9, then="status", status=code)
    result = await open_on(sandbox, root).apply()
    assert (result.status, "applied, but not verified" in result.unverified) == (status, True)
    assert len(result.outcomes) == 2


async def test_what_is_changed_by_hand_during_an_apply_is_reported_at_its_end(sandbox: Sandbox, root: Path) -> None:
    def change(event: OperationEvent) -> None:
        if isinstance(event, Ended) and event.call.id == "create IPPolicy/a":
            sandbox.patch(f"/ip_policies/{event.id}", {"description": "by hand"})

    result = await open_on(sandbox, root).apply(on_event=change)
    assert (result.status, [str(change.address) for change in result.remaining]) == (Status.FAILED, ["IPPolicy/a"])


async def test_a_replacement_that_was_requested_is_made_once(sandbox: Sandbox, root: Path) -> None:
    await open_on(sandbox, root).apply()
    before = descriptions(sandbox)
    workspace = open_on(sandbox, root).select(Selection(replace=("IPPolicy/a",)))
    result = await workspace.apply()
    assert (result.status, result.remaining) == (Status.APPLIED, ())
    assert len(descriptions(sandbox).keys() & before.keys()) == 1
