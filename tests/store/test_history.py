"""Drift checks and runs of a stack, as the store records and lists them."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from reconciler.model.access_change import Verdict
from reconciler.model.address import Address
from reconciler.model.change import Action, ChangedBy, Reason
from reconciler.model.event import Ended, Outcome
from reconciler.model.health import Actor, Health, HealthRow, State
from reconciler.model.history import CheckedHealth, DriftCheck, DriftedResource, Opening, Run
from reconciler.model.plan import Call, Verb
from reconciler.store.errors import Damaged
from reconciler.store.store import open_store

EDGE = Address("TLSEdge", "shop")
DRIFT_CHECK = DriftCheck(
    100.0,
    12,
    "abc",
    (DriftedResource(EDGE, Action.UPDATE, Reason.FIELDS, ChangedBy.PLATFORM, ("description", "a.b")),),
    complete=False,
    openings=(
        Opening("https://a.example.com", Verdict.EXPOSES, "no one", "everyone"),
        Opening("https://b.example.com", Verdict.WIDENS, "203.0.113.0/24", "everyone", is_certain=False),
    ),
    health=CheckedHealth(
        40,
        (
            HealthRow("", "crt_1", Health(State.HEALTHY, due=9e9)),
            HealthRow(str(EDGE), "edgtls_1", Health(State.DEGRADED, "waits", "act", Actor.YOU, 1.5, 2.5)),
        ),
    ),
)


async def test_drift_checks_are_listed_oldest_first(tmp_path: Path) -> None:
    later = DriftCheck(200.0, 13)
    async with open_store(str(tmp_path / "prod.db")) as store:
        for drift_check in (later, DRIFT_CHECK):
            await store.drift_history.record("prod", drift_check)
        await store.drift_history.record("dev", DriftCheck(150.0, 1))
        assert await store.drift_history.list_drift_checks("prod") == (DRIFT_CHECK, later)
        assert await store.drift_history.list_drift_checks("prod", since=150.0) == (later,)
        assert await store.drift_history.list_drift_checks("prod", since=200.0) == (later,)
        assert await store.drift_history.list_drift_checks("prod", since=200.1) == ()


async def test_the_last_checks_that_judged_health_are_listed_oldest_first(tmp_path: Path) -> None:
    async with open_store(str(tmp_path / "prod.db")) as store:
        history = store.drift_history
        assert await history.list_judged("prod", 1) == ()
        healthy = DriftCheck(200.0, 13, health=CheckedHealth(3))
        for check in (healthy, DRIFT_CHECK, DriftCheck(300.0, 13)):
            await history.record("prod", check)
        assert await history.list_judged("prod", 1) == (healthy,)
        assert await history.list_judged("prod", 2) == (DRIFT_CHECK, healthy)
        assert await history.list_judged("dev", 2) == ()


async def test_drift_checks_within_one_second_are_listed_apart_resources_by_address(tmp_path: Path) -> None:
    names = ("z", "a", "m")
    resources = [replace(DRIFT_CHECK.moved[0], address=Address("TLSEdge", name)) for name in names]
    checks = [replace(DRIFT_CHECK, at=100.0 + number / 10, moved=tuple(resources[number:])) for number in range(3)]
    async with open_store(str(tmp_path / "prod.db")) as store:
        for check in checks:
            await store.drift_history.record("prod", check)
        listed = await store.drift_history.list_drift_checks("prod", since=100.1)
    assert [[resource.address.name for resource in check.moved] for check in listed] == [["a", "m"], ["m"]]


async def test_runs_of_a_stack_since_a_time_are_listed_oldest_first(tmp_path: Path) -> None:
    moment = 0.0
    async with open_store(str(tmp_path / "prod.db"), now=lambda: moment) as store:
        for moment, stack, commit in (
            (100.0, "prod", ""),
            (300.0, "prod", "c"),
            (200.0, "dev", ""),
            (250.0, "prod", "b"),
        ):
            async with store.journal(stack, command=f"apply at {moment:.0f}", commit=commit) as journal:
                await journal.record(Ended(Call("create", EDGE, Verb.CREATE, "/edges/tls"), Outcome.DONE, 1.0))
        listed = {since: await store.drift_history.list_runs("prod", since) for since in (0.0, 250.0, 250.1)}
    assert {since: [run.started for run in runs] for since, runs in listed.items()} == {
        0.0: [100.0, 250.0, 300.0],
        250.0: [250.0, 300.0],
        250.1: [300.0],
    }
    assert [(run.commit, run.calls) for run in listed[250.0]] == [("b", {Outcome.DONE: 1}), ("c", {Outcome.DONE: 1})]


async def test_a_run_that_an_exception_ended_is_stored_as_aborted(tmp_path: Path) -> None:
    async with open_store(str(tmp_path / "prod.db")) as store:

        async def abort() -> None:
            async with store.journal("prod", command="apply") as journal:
                journal.outcome = "applied"
                raise KeyError

        with pytest.raises(KeyError):
            await abort()
        (run,) = await store.drift_history.list_runs("prod")
    assert run.outcome == "aborted"


async def test_runs_are_listed_with_the_number_of_calls_of_each_outcome(tmp_path: Path) -> None:
    times = iter(range(1000, 2000))
    async with open_store(str(tmp_path / "prod.db"), now=lambda: float(next(times))) as store:
        async with store.journal("prod", command="apply") as journal:
            for number, outcome in enumerate((Outcome.DONE, Outcome.DONE, Outcome.FAILED)):
                await journal.record(Ended(Call(f"create {number}", EDGE, Verb.CREATE, "/edges/tls"), outcome, 1.0))
        (run,) = await store.drift_history.list_runs("prod")
    assert run == Run("apply", run.started, run.ended, "", {Outcome.DONE: 2, Outcome.FAILED: 1})
    assert run.ended is not None
    assert run.ended > run.started


async def test_a_run_is_stored_with_the_status_of_its_result(tmp_path: Path) -> None:
    async with open_store(str(tmp_path / "prod.db")) as store:
        async with store.journal("prod", command="apply") as journal:
            journal.outcome = "blocked"
        (run,) = await store.drift_history.list_runs("prod")
    assert (run.outcome, run.commit, run.actor) == ("blocked", "", "")


async def test_a_run_is_stored_with_its_commit_and_actor(tmp_path: Path) -> None:
    async with open_store(str(tmp_path / "prod.db")) as store:
        async with store.journal("prod", command="apply", commit="0123456789abcdef", actor="mara"):
            pass
        (run,) = await store.drift_history.list_runs("prod")
    assert (run.commit, run.actor) == ("0123456789abcdef", "mara")


async def test_a_run_is_listed_while_it_is_running(tmp_path: Path) -> None:
    async with open_store(str(tmp_path / "prod.db"), now=lambda: 1000.0) as store:
        async with store.journal("prod", command="apply", actor="mara"):
            assert await store.drift_history.list_runs("prod") == (Run("apply", 1000.0, None, "", {}, "", "mara"),)
        assert await store.drift_history.list_runs("prod") == (Run("apply", 1000.0, 1000.0, "", {}, "", "mara"),)


async def test_runs_and_checks_of_other_stacks_are_not_listed(tmp_path: Path) -> None:
    async with open_store(str(tmp_path / "prod.db"), now=lambda: 1000.0) as store:
        for stack in ("dev", "prod", "test"):
            await store.drift_history.record(stack, replace(DRIFT_CHECK, commit=stack))
            async with store.journal(stack, command=stack, commit=stack) as journal:
                await journal.record(Ended(Call("create", EDGE, Verb.CREATE, "/edges/tls"), Outcome.DONE, 1.0))
        for stack in ("dev", "prod", "test"):
            assert await store.drift_history.list_drift_checks(stack) == (replace(DRIFT_CHECK, commit=stack),)
            (run,) = await store.drift_history.list_runs(stack)
            assert (run.command, run.commit, run.calls) == (stack, stack, {Outcome.DONE: 1})


@pytest.mark.parametrize(
    ("table", "column", "code", "codes"),
    [
        ("outcomes", "outcome", "done", "Outcome"),
        ("drifts", "reason", "fields differ", "Reason"),
        ("drifts", "mover", "not known", "ChangedBy"),
        ("openings", "verdict", "gapes", "Verdict"),
        ("health", "state", "ill", "State"),
        ("health", "actor", "me", "Actor"),
    ],
)
async def test_an_unknown_code_is_reported_as_damage(
    tmp_path: Path, table: str, column: str, code: str, codes: str
) -> None:
    file = tmp_path / "prod.db"
    drifted = DriftedResource(EDGE, Action.UPDATE, Reason.FIELDS, ChangedBy.PLATFORM)
    async with open_store(str(file)) as store:
        async with store.journal("prod", command="apply") as journal:
            await journal.record(Ended(Call("create", EDGE, Verb.CREATE, "/edges/tls"), Outcome.DONE, 1.0))
        await store.drift_history.record("prod", replace(DRIFT_CHECK, moved=(drifted,)))
        with closing(sqlite3.connect(file)) as connection:
            connection.execute(f"UPDATE {table} SET {column} = ?", (code,))  # noqa: S608
            connection.commit()
        history = store.drift_history
        reads = (history.list_runs, history.find_applied) if table == "outcomes" else (history.list_drift_checks,)
        for read in reads:
            with pytest.raises(Damaged, match=f"'{code}' is not a valid {codes}"):
                await read("prod", 0.0)
