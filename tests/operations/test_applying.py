"""What an apply refuses, asks, leaves and says at its end, on the emulated platform in process."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from reconciler import Runtime, Selection, Status
from reconciler.api.clock import MachineClock
from reconciler.model import owner_record as owners
from reconciler.model.address import Address
from reconciler.model.event import Ended, Outcome
from reconciler.model.owner_record import Owner
from reconciler.model.plan import Plan
from reconciler.operations.applying import plan_files
from reconciler.operations.history import read_past
from reconciler.operations.opening.source import ProjectSource
from reconciler.operations.opening.stores import store_location
from reconciler.operations.project_openers import open_with_plan
from reconciler.operations.reporting import CallsBegan, CallsEnded, Note, OperationEvent, ReadRetried
from reconciler.operations.results import PlanResult
from reconciler.operations.workspace import Workspace
from reconciler.store.errors import StoreError
from reconciler.store.journal import StoreJournal
from reconciler.testing import Sandbox
from tests.harness.workspaces import domain, open_on, policy, write_project


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
async def test_a_partly_stale_plan_is_applied_without_its_stale_part_only_on_request(
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


async def test_a_completely_stale_plan_is_not_applied_partially(sandbox: Sandbox, root: Path) -> None:
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
async def test_a_plan_is_stale_after_a_change_before_the_confirmation(
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


async def test_a_plan_without_changes_needs_no_confirmation(sandbox: Sandbox, root: Path) -> None:
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


async def test_a_stop_by_the_caller_ends_the_run(sandbox: Sandbox, tmp_path: Path) -> None:
    stop = asyncio.Event()

    def stop_soon(event: OperationEvent) -> None:
        if isinstance(event, Ended):
            stop.set()

    result = await open_on(sandbox, one_at_a_time(tmp_path)).apply(stop=stop, on_event=stop_soon)
    assert result.status is Status.INTERRUPTED
    assert [ended.outcome for ended in result.outcomes].count(Outcome.SKIPPED) >= 6
    assert len(descriptions(sandbox)) == 8 - [ended.outcome for ended in result.outcomes].count(Outcome.SKIPPED)


async def test_a_failing_store_ends_the_run(sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object) -> None:
        raise StoreError("the disk is full")

    monkeypatch.setattr(StoreJournal, "record", fail)
    result = await open_on(sandbox, one_at_a_time(tmp_path)).apply()
    assert (result.status, result.failure) == (Status.PARTIAL, "the disk is full")
    assert [ended.outcome for ended in result.outcomes].count(Outcome.SKIPPED) >= 6


async def test_the_first_failure_of_the_store_is_reported(
    sandbox: Sandbox, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Results of calls are recorded at the same time, so that more than one of them may fail."""
    both, raised = asyncio.Barrier(2), list[str]()

    async def fail(*_: object) -> None:
        await both.wait()
        raised.append(f"failure {len(raised)}")
        raise StoreError(raised[-1])

    monkeypatch.setattr(StoreJournal, "record", fail)
    result = await open_on(sandbox, root).apply()
    assert (raised, result.failure) == (["failure 0", "failure 1"], "failure 0")


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
async def test_an_apply_that_cannot_be_verified_is_reported(
    sandbox: Sandbox, root: Path, code: int, status: Status
) -> None:
    sandbox.fault("GET /ip_policies", nth=2, times=9, then="status", status=code)
    result = await open_on(sandbox, root).apply()
    assert (result.status, "applied, but not verified" in result.unverified) == (status, True)
    assert len(result.outcomes) == 2


async def test_a_change_by_hand_during_an_apply_is_reported_at_its_end(sandbox: Sandbox, root: Path) -> None:
    def change(event: OperationEvent) -> None:
        if isinstance(event, Ended) and event.call.id == "create IPPolicy/a":
            sandbox.patch(f"/ip_policies/{event.id}", {"description": "by hand"})

    result = await open_on(sandbox, root).apply(on_event=change)
    assert (result.status, [str(change.address) for change in result.remaining]) == (Status.FAILED, ["IPPolicy/a"])


@pytest.mark.parametrize("planned_before", [False, True])
@pytest.mark.parametrize("stolen", ["a", "b"])
async def test_an_object_deleted_after_the_calls_is_an_error_if_the_run_concerns_it(
    sandbox: Sandbox, tmp_path: Path, stolen: str, planned_before: bool
) -> None:
    root = write_project(tmp_path / "project", domain("b"))
    await open_on(sandbox, root).apply()
    write_project(root, domain("a"), domain("b"))

    def steal(event: OperationEvent) -> None:
        for found in sandbox.get("/reserved_domains")["reserved_domains"] if isinstance(event, CallsEnded) else ():
            if found["domain"] == f"{stolen}.example.com":
                owner = Owner("theirs", Address("ReservedDomain", stolen), "intent-of-theirs")
                sandbox.patch(f"/reserved_domains/{found['id']}", {"metadata": owners.write("", owner)})

    workspace = open_on(sandbox, root)
    result = await workspace.apply(await workspace.plan() if planned_before else None, on_event=steal)
    is_concerned = stolen == "a" or not planned_before
    status = Status.FAILED if stolen == "a" else Status.PARTIAL  # the run did not touch b
    assert result.status is (status if is_concerned else Status.APPLIED)
    assert result.exit_code == (1 if is_concerned else 0)
    assert [problem.subject for problem in result.problems] == ([f"ReservedDomain/{stolen}"] if is_concerned else [])
    assert result.remaining == ()


async def test_a_requested_replacement_is_executed_once(sandbox: Sandbox, root: Path) -> None:
    await open_on(sandbox, root).apply()
    before = descriptions(sandbox)
    workspace = open_on(sandbox, root).select(Selection(replace=("IPPolicy/a",)))
    result = await workspace.apply()
    assert (result.status, result.remaining) == (Status.APPLIED, ())
    assert len(descriptions(sandbox).keys() & before.keys()) == 1


async def test_duplicate_credentials_require_a_decision_and_other_changes_are_applied(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    credential = {"kind": "TunnelCredential", "name": "c", "spec": {}, "deliver": {"token": {"to_file": "secrets/c"}}}
    root = write_project(tmp_path / "project", credential, policy("a"))
    for letter in "ab":
        owner = Owner("prod", Address("TunnelCredential", "c"), f"intent-{letter}")
        sandbox.plant("credentials", {"id": f"cr_{letter * 27}", "acl": [], "metadata": owners.write("", owner)})
    first = await open_on(sandbox, root).apply()
    assert (first.status, [problem.code for problem in first.problems]) == (
        Status.PARTIAL,
        ["credential-created-twice"],
    )
    assert list(descriptions(sandbox).values()) == ["a"]
    again = await open_on(sandbox, root).apply()
    assert (again.status, again.plan.is_empty, again.exit_code) == (Status.PARTIAL, True, 1)


# --- what a caller is told --------------------------------------------------------------------------------------------


def notes(events: list[OperationEvent]) -> list[tuple[str, bool]]:
    return [(event.text, event.is_detail) for event in events if isinstance(event, Note)]


@pytest.mark.parametrize(("failing", "calls"), [(3, "2 calls"), (2, "1 call")])
async def test_calls_that_are_not_repeated_are_reported(
    sandbox: Sandbox, tmp_path: Path, failing: int, calls: str
) -> None:
    root = one_at_a_time(tmp_path)
    planned = await open_on(sandbox, root).plan()
    sandbox.fault("POST /ip_policies", nth=failing, times=9, then="status", status=422)
    assert (await open_on(sandbox, root).apply(planned)).status is Status.PARTIAL
    events: list[OperationEvent] = []
    await open_on(sandbox, root).apply(planned, on_event=events.append)
    assert notes(events) == [(f"note: {calls} of the plan succeeded in an earlier run and will not be repeated", True)]


async def test_a_store_in_memory_reports_that_it_has_no_earlier_runs(sandbox: Sandbox, root: Path) -> None:
    events: list[OperationEvent] = []
    workspace = open_on(sandbox, root, store="memory:")
    assert (await workspace.apply(on_event=events.append)).status is Status.APPLIED
    assert notes(events) == []
    planned = await workspace.plan()
    await workspace.apply(planned, on_event=events.append)
    note = "note: the store is in memory, so only the account shows whether the plan was applied before"
    assert notes(events) == [(note, True)]


async def test_stale_changes_are_reported_before_the_rest_of_the_plan_is_applied(sandbox: Sandbox, root: Path) -> None:
    await open_on(sandbox, root).apply()
    write_project(root, policy("a", "new a"), policy("b", "new b"))
    planned = await open_on(sandbox, root).plan()
    change_by_hand(sandbox, "a")
    events: list[OperationEvent] = []
    result = await open_on(sandbox, root).apply(planned, partial=True, on_event=events.append)
    line = 'IPPolicy/a.description: was "a", is now "by hand"'
    skipped = "skipped: update IPPolicy/a: it changed since the plan was created"
    assert ((line, False) in notes(events), result.reasons) == (True, (line, skipped))
    assert [(skipped.call.id, skipped.why) for skipped in result.skipped] == [
        ("update IPPolicy/a", "it changed since the plan was created")
    ]
    change_by_hand(sandbox, "by hand", "a")  # so that the rest of the plan holds again
    rest = await open_on(sandbox, root).apply(planned)
    assert (rest.status, sorted(descriptions(sandbox).values())) == (Status.APPLIED, ["new a", "new b"])


def change_by_hand(sandbox: Sandbox, was: str, now: str = "by hand") -> None:
    (id,) = [id for id, text in descriptions(sandbox).items() if text == was]
    sandbox.patch(f"/ip_policies/{id}", {"description": now})


async def test_changes_before_the_confirmation_are_reported_with_a_summary(sandbox: Sandbox, root: Path) -> None:
    await open_on(sandbox, root).apply()
    write_project(root, policy("a", "new"), policy("b"))
    clock = MovedClock()

    async def think(_: Plan) -> bool:
        clock.time += 61.0
        change_by_hand(sandbox, "a")
        return True

    result = await open_on(sandbox, root, clock=clock).apply(approve=think)
    assert result.reasons == (
        'IPPolicy/a.description: was "a", is now "by hand"',
        "the platform changed before the plan was approved; plan again",
    )


async def test_a_confirmation_within_a_minute_needs_no_second_refresh(sandbox: Sandbox, root: Path) -> None:
    clock = MovedClock()

    async def think(_: Plan) -> bool:
        clock.time += 60.0
        return True

    sandbox.forget_log()
    assert (await open_on(sandbox, root, clock=clock).apply(approve=think)).status is Status.APPLIED
    before = [entry["method"] for entry in sandbox.log()].index("POST")
    assert sum("GET /ip_policies" in f"{entry['method']} {entry['path']}" for entry in sandbox.log()[:before]) == 1


async def test_retries_of_reads_are_reported(sandbox: Sandbox, root: Path) -> None:
    sandbox.fault("GET /ip_policies", then="status", status=503)
    events: list[OperationEvent] = []
    clock = QuickClock()
    with Sandbox(clock=clock) as quick:
        quick.fault("GET /ip_policies", then="status", status=503)
        await open_on(quick, root, clock=clock).apply(on_event=events.append)
    (retried,) = [event for event in events if isinstance(event, ReadRetried)]
    assert retried.seconds > 0
    assert "503" in retried.why


class QuickClock(MachineClock):
    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)


class Watching:
    """An observer that keeps the plans."""

    def __init__(self) -> None:
        self.plans: list[Plan] = []

    def on_plan(self, plan: Plan) -> None:
        self.plans.append(plan)

    def watch_request(self, method: str, path: str) -> AbstractContextManager[Any]:
        return nullcontext(self)

    def watch_list(self, path: str) -> AbstractContextManager[None]:
        return nullcontext()

    def on_wait(self, seconds: float) -> None: ...

    def on_response(self, status: int) -> None: ...

    def on_failure(self, failure: Exception) -> None: ...


async def test_an_observer_gets_the_plan_of_a_file_too(sandbox: Sandbox, root: Path) -> None:
    watching = Watching()
    workspace = open_on(sandbox, root, observer=watching)
    planned = await workspace.plan()
    assert [len(plan.changes) for plan in watching.plans] == [2]
    watching.plans.clear()
    await open_on(sandbox, root, observer=watching).apply(planned)
    assert watching.plans[0].changes == planned.plan.changes


# --- what is read and when --------------------------------------------------------------------------------------------


def lists(sandbox: Sandbox) -> list[str]:
    """The collections that were read, and `write` for each change, in order."""
    calls = [(entry["method"], entry["path"].partition("?")[0]) for entry in sandbox.log()]
    return [path if method == "GET" else "write" for method, path in calls]


async def test_only_the_kinds_of_a_plan_file_are_read(sandbox: Sandbox, root: Path) -> None:
    planned = await open_on(sandbox, root).plan()
    sandbox.forget_log()
    await open_on(sandbox, root).apply(planned)
    read = lists(sandbox)
    assert read[: read.index("write")] == ["/ip_policies"]
    assert {"/ip_policies", "/bot_users"} <= {*read[read.index("write") :]}  # the result is verified with all of it


async def test_after_a_new_plan_only_the_changed_kinds_are_read_again(sandbox: Sandbox, tmp_path: Path) -> None:
    edge = {"kind": "HTTPSEdge", "name": "e", "spec": {"hostports": ["a.example.com:443"]}}
    root = write_project(tmp_path / "project", domain("a"), edge)
    await open_on(sandbox, root).apply()
    read = lists(sandbox)
    last = len(read) - 1 - read[::-1].index("write")
    assert "/bot_users" in read[:last]
    (made,) = sandbox.get("/edges/https")["https_edges"]
    assert set(read[last + 1 :]) - {f"/edges/https/{made['id']}/routes"} == {
        "/edges/https",
        "/reserved_domains",
    }


async def test_changes_by_others_are_not_an_error_of_a_plan_file(sandbox: Sandbox, root: Path) -> None:
    await open_on(sandbox, root).apply()
    write_project(root, policy("a", "new"), policy("b"))
    planned = await open_on(sandbox, root).plan()
    change_by_hand(sandbox, "b")
    result = await open_on(sandbox, root).apply(planned)
    assert (result.status, result.remaining) == (Status.APPLIED, ())
    write_project(root, policy("a", "newer"), policy("b"))
    again = await open_on(sandbox, root).plan(selection=Selection(targets=("IPPolicy/a",)))

    def change(event: OperationEvent) -> None:
        if isinstance(event, CallsEnded):
            change_by_hand(sandbox, "newer", "again by hand")

    result = await open_on(sandbox, root).apply(again, on_event=change)
    assert (result.status, [str(change.address) for change in result.remaining]) == (Status.FAILED, ["IPPolicy/a"])


async def test_a_plan_file_without_calls_may_be_applied_again(sandbox: Sandbox, root: Path) -> None:
    await open_on(sandbox, root).apply()
    planned = await open_on(sandbox, root).plan()
    assert [(await open_on(sandbox, root).apply(planned)).status for _ in range(2)] == [Status.UNCHANGED] * 2


async def test_a_plan_file_counts_as_applied_once_all_calls_succeeded(
    sandbox: Sandbox, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run died before it could store that the plan is complete: no date is known."""

    async def die(_: StoreJournal) -> None:
        raise KeyboardInterrupt

    planned = await open_on(sandbox, root).plan()
    with monkeypatch.context() as patch:
        patch.setattr(StoreJournal, "complete_plan", die)
        with pytest.raises(KeyboardInterrupt):
            await open_on(sandbox, root).apply(planned)
    again = await open_on(sandbox, root).apply(planned)
    assert (again.status, again.reasons) == (Status.STALE, ("the plan was applied already; plan again",))
    assert again.plan == planned.plan


# --- deaths around a delivery -----------------------------------------------------------------------------------------


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    """A project whose run waits for nothing that an earlier one may have sent: `settle_seconds` is 0."""
    credential = {"kind": "TunnelCredential", "name": "c", "spec": {}, "deliver": {"token": {"to_file": "secrets/c"}}}
    return write_project(tmp_path / "agent", credential, policy("a"))


def credentials(sandbox: Sandbox) -> list[str]:
    return [found["id"] for found in sandbox.get("/credentials")["credentials"]]


async def die_before_the_receipt(
    monkeypatch: pytest.MonkeyPatch, workspace: Workspace, planned: PlanResult | None = None
) -> None:
    """Applies; once the token is delivered nothing more is stored."""

    async def die(*_: object) -> None:
        raise StoreError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(StoreJournal, "record_receipt", die)
        assert (await workspace.apply(planned)).failure == "the disk is full"


@pytest.mark.parametrize("refuses", [False, True], ids=["the next run", "the run after a failed one"])
async def test_a_token_that_a_killed_run_overwrote_is_replaced_after_its_credential_was_deleted(
    sandbox: Sandbox, agent: Path, monkeypatch: pytest.MonkeyPatch, refuses: bool
) -> None:
    await open_on(sandbox, agent).apply()
    (first,) = credentials(sandbox)
    await die_before_the_receipt(
        monkeypatch, open_on(sandbox, agent).select(Selection(replace=("TunnelCredential/c",)))
    )
    (second,) = {*credentials(sandbox)} - {first}
    sandbox.delete(f"/credentials/{second}")
    if refuses:
        sandbox.fault("POST /credentials", then="status", status=422)
        assert (await open_on(sandbox, agent).apply()).status is Status.FAILED
    result = await open_on(sandbox, agent).apply()
    assert result.status is Status.APPLIED
    (left,) = credentials(sandbox)
    assert left not in (first, second)
    assert left.removeprefix("cr_") in (agent / "secrets" / "c").read_text()
    assert (await open_on(sandbox, agent).plan()).plan.is_empty


async def test_a_plan_file_does_not_complete_a_credential_with_an_undelivered_token(
    sandbox: Sandbox, agent: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although another run has settled since then what the dead run left open."""
    planned = await open_on(sandbox, agent).plan()
    await die_before_the_receipt(monkeypatch, open_on(sandbox, agent), planned)
    (undelivered,) = credentials(sandbox)
    (agent / "secrets" / "c").unlink()
    await open_on(sandbox, agent).select(Selection(targets=("IPPolicy/a",))).apply()
    assert (await open_on(sandbox, agent).apply(planned)).status is Status.STALE
    assert (await open_on(sandbox, agent).apply()).status is Status.APPLIED
    (left,) = credentials(sandbox)
    assert left != undelivered
    assert left.removeprefix("cr_") in (agent / "secrets" / "c").read_text()


# --- ends of a run ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_applied", [True, False])
async def test_a_run_that_is_stopped_before_it_began_sends_nothing(
    sandbox: Sandbox, root: Path, is_applied: bool
) -> None:
    if is_applied:
        await open_on(sandbox, root).apply()
    sandbox.forget_log()
    stop = asyncio.Event()
    stop.set()
    result = await open_on(sandbox, root).apply(stop=stop)
    assert (result.status, changes_sent(sandbox)) == (Status.UNCHANGED if is_applied else Status.INTERRUPTED, [])


async def test_a_run_without_its_lock_sends_nothing_and_is_not_unauthorized(sandbox: Sandbox, root: Path) -> None:
    def take_lock(event: OperationEvent) -> None:
        if isinstance(event, CallsBegan):
            with sqlite3.connect(store_location(open_on(sandbox, root).config)) as connection:
                connection.execute("UPDATE locks SET holder = 'another run'")
            connection.close()

    result = await open_on(sandbox, root).apply(on_event=take_lock)
    assert (result.status, changes_sent(sandbox), result.is_complete) == (Status.FAILED, [], False)
    assert "another run acquired it" in result.failure


async def test_the_history_has_the_command_the_commit_and_the_plan_of_each_run(sandbox: Sandbox, root: Path) -> None:
    workspace = open_on(sandbox, root, commit="here")
    planned = await workspace.plan()
    planned = replace(planned, plan=replace(planned.plan, commit="of the plan"))
    await workspace.apply(planned)
    await open_on(sandbox, root, commit="here").apply()
    await open_on(sandbox, root, commit="here").destroy()
    runs = (await read_past(workspace.config, 0.0)).runs
    assert [(run.command, run.commit, run.outcome) for run in runs] == [
        ("apply", "of the plan", "applied"),
        ("apply", "here", "unchanged"),
        ("destroy", "here", "applied"),
    ]
    assert [sum(run.calls.values()) for run in runs] == [2, 0, 2]


# --- policies of the project ------------------------------------------------------------------------------------------


def forbid(root: Path, *rules: dict[str, str]) -> None:
    (root / "policies").mkdir(exist_ok=True)
    (root / "policies" / "rules.yaml").write_text("---\n".join(f"{json.dumps(rule)}\n" for rule in rules))


NO_CHANGES = {"policy": "no-changes", "message": "no", "check": "size(plan.changes) == 0"}
NAMED = {"policy": "named", "message": "no", "check": "resource.spec.description != 'x'"}


async def test_a_policy_violation_blocks_the_apply_beside_an_error_of_one_resource(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    root = write_project(tmp_path / "project", policy("a"), domain("b"))
    forbid(root, NO_CHANGES)
    assert (await open_on(sandbox, root).apply()).status is Status.BLOCKED
    theirs = write_project(tmp_path / "theirs", domain("b"))
    (theirs / "reconciler.yaml").write_text("version: 1\nstack: theirs\n")
    await open_on(sandbox, theirs).apply()
    sandbox.forget_log()
    both = await open_on(sandbox, root).apply()
    assert (both.status, len(both.problems), changes_sent(sandbox)) == (Status.BLOCKED, 1, [])


@pytest.mark.parametrize("is_changed", [False, True])
async def test_a_policy_for_resources_is_not_evaluated_with_other_manifests(
    sandbox: Sandbox, root: Path, is_changed: bool
) -> None:
    """Its result of the plan stands; if the policy changed since, nobody knows."""
    forbid(root, NAMED)
    file = root / "plan.json"
    plan_files.write_plan(file, (await open_on(sandbox, root).plan()).plan, {})
    write_project(root, policy("a"), policy("b"), policy("c", "x"))
    if is_changed:
        forbid(root, {**NAMED, "check": "resource.spec.description != 'y'"})
    source = ProjectSource(root, runtime=Runtime(environ=sandbox.environ, platform=sandbox))
    opened, planned = open_with_plan(source, file)
    workspace = Workspace.of(opened)
    result = await workspace.apply(planned)
    assert result.status is (Status.BLOCKED if is_changed else Status.APPLIED)
    assert [problem.text for problem in result.problems] == (
        [
            "the policy named cannot be evaluated again for IPPolicy/a and 1 more: "
            "the manifests changed after the plan was created"
        ]
        if is_changed
        else []
    )
