"""A run over a fleet at the terminal: its workers, interrupts, progress, and what an error says of how to go on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.cli.fleets import applying, progress, running
from reconciler.cli.fleets.options import FleetOptions
from reconciler.cli.terminal import output, signals
from reconciler.fleet import dask_cluster
from reconciler.fleet.local_pool import LocalPool
from reconciler.fleet.runs import lease_of
from reconciler.fleet.worker_process import run_task_here
from reconciler.model.fleet import Member, Run, RunVerb, Selector
from reconciler.operations.errors import ChangedWaves
from reconciler.operations.runtime import Runtime
from reconciler.store.errors import Locked, Unavailable

RUN = Run("run-1", "shops", RunVerb.APPLY, "", "fleet.yaml", "c", 0.0)
FIRST = "interrupted: waiting for running calls to finish, starting no others; interrupt again to exit now"


def test_a_first_interrupt_waits_for_calls_and_a_second_one_cancels(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    handlers: list[Callable[[], None]] = []
    restored: list[str] = []
    stopped: list[str] = []
    monkeypatch.setattr(signals, "set_handler", handlers.append)
    monkeypatch.setattr(signals, "exit_on_signal", lambda: restored.append("default"))

    async def work() -> None:
        interrupts = running._Interrupts("run-1", on_stop=lambda: stopped.append("pool"))
        interrupts.catch_signals()
        (interrupt,) = handlers
        assert (interrupts.is_interrupted, interrupts.stop.is_set()) == (False, False)
        interrupt()
        assert (interrupts.is_interrupted, interrupts.stop.is_set(), stopped, restored) == (True, True, ["pool"], [])
        assert capsys.readouterr().err == f"{FIRST}\n"
        await asyncio.sleep(0)
        interrupt()
        assert (stopped, restored) == (["pool"], ["default"])
        assert capsys.readouterr().err == "to continue: reconciler fleet resume run-1\n"
        with pytest.raises(asyncio.CancelledError):
            await asyncio.sleep(5)

    asyncio.run(work())


@pytest.mark.parametrize(
    ("error", "is_interrupted", "line"),
    [
        (Unavailable("state/fleet.db", "gone"), False, "to continue: reconciler fleet resume run-1"),
        (Unavailable("state/fleet.db", "gone"), True, "to continue: reconciler fleet resume run-1"),
        (Locked("run run-1", "applied", "a", 7, "now", 9.0), False, "to see it: reconciler fleet status run-1"),
        (KeyboardInterrupt(), False, "to continue: reconciler fleet resume run-1"),
        (KeyboardInterrupt(), True, ""),
        (ChangedWaves("waves changed"), False, ""),
    ],
    ids=["error", "error after an interrupt", "locked", "interrupt", "second interrupt", "waves"],
)
def test_an_error_names_the_run_and_how_to_go_on_once(
    capsys: pytest.CaptureFixture[str], error: BaseException, is_interrupted: bool, line: str
) -> None:
    async def work() -> None:
        interrupts = running._Interrupts("run-1", is_interrupted=is_interrupted)
        with pytest.raises(type(error)), running._say_how_to_continue(RUN, interrupts):
            raise error

    asyncio.run(work())
    assert capsys.readouterr().err == (f"The run run-1 has not ended; {line}\n" if line else "")


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ({"scheduler": "tls://a:1"}, ("cluster", run_task_here, "tls://a:1", {})),
        ({"scheduler": "tls://a:1", "workers": 2}, ("cluster", run_task_here, "tls://a:1", {})),
        ({"workers": 2}, ("local", run_task_here, 2, {"environ": {"RECONCILER_STORE": str(Path("s.db").resolve())}})),
        ({}, ("here", 7)),
    ],
    ids=["scheduler", "both", "workers", "neither"],
)
def test_the_options_select_the_workers(
    monkeypatch: pytest.MonkeyPatch, chosen: dict[str, Any], expected: tuple[object, ...]
) -> None:
    def opens(name: str) -> Any:
        @asynccontextmanager
        async def open_pool(*given: object, **more: object) -> AsyncIterator[object]:
            yield (name, *given, more)

        return open_pool

    monkeypatch.setattr(dask_cluster, "open_cluster_pool", opens("cluster"))
    monkeypatch.setattr(dask_cluster, "open_local_pool", opens("local"))
    runtime = Runtime(environ={})
    fleet = SimpleNamespace(members_at_once=7)
    session: Any = SimpleNamespace(
        options=FleetOptions(**chosen), fleet=fleet, runtime=runtime, store="s.db", commit="c"
    )

    records: Any = object()

    async def work() -> object:
        interrupts = running._Interrupts("run-1")
        before = interrupts.on_stop
        async with running._open_pool(session, records, interrupts) as pool:
            if not isinstance(pool, LocalPool):
                assert interrupts.on_stop is before
                return pool
            context = pool._context
            assert interrupts.on_stop == context.stop
            assert (context.records, context.store, context.commit, context.runtime) == (records, "s.db", "c", runtime)
            return "here", pool._at_once

    assert asyncio.run(work()) == expected


@pytest.mark.parametrize("store", ["postgresql://host/db", "state/fleet.db"])
def test_workers_have_the_store_of_the_command_wherever_they_run(
    store: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert running._absolute(store) == (store if "://" in store else str(tmp_path / store))


@pytest.mark.parametrize(
    ("quiet", "is_json", "has_color", "expected"),
    [
        (False, False, False, "lines"),
        (False, False, True, "bar"),
        (False, True, True, "lines"),
        (True, False, True, ""),
    ],
)
def test_progress_is_a_bar_where_lines_can_be_erased(
    monkeypatch: pytest.MonkeyPatch, quiet: bool, is_json: bool, has_color: bool, expected: str
) -> None:
    monkeypatch.setattr(output, "is_json_log", lambda: is_json)
    monkeypatch.setattr(output, "supports_color", lambda *_: has_color)
    verbs = []
    for verb in RunVerb:
        with progress.report_progress(FleetOptions(quiet=quiet), replace(RUN, verb=verb)) as report:
            is_lines = isinstance(report, progress.LineReporter)
            is_bar = getattr(report, "__qualname__", "").startswith("show_bar")
            verbs.append("lines" if is_lines else "bar" if is_bar else "")
    assert verbs == [expected] * len(RunVerb)


@pytest.mark.parametrize("plan", ["", "plan-1"])
def test_a_plan_is_held_while_it_is_applied(plan: str) -> None:
    held: list[str] = []

    @asynccontextmanager
    async def lock(name: str, *, on_loss: Callable[[object], None], doing: str) -> AsyncIterator[None]:
        on_loss("a lost lease is found by the run itself")
        held.append(f"{name} {doing}")
        yield
        held.append("released")

    async def work() -> None:
        records: Any = SimpleNamespace(lock=lock)
        async with running.hold_plan(records, plan):
            held.append("inside")

    asyncio.run(work())
    assert held == ([f"{lease_of(plan)} applied", "inside", "released"] if plan else ["inside"])


@pytest.mark.parametrize(
    ("member", "selector", "is_selected"),
    [
        ("acme", {}, True),
        ("acme", {"tier": ("gold",)}, True),
        ("acme", {"tier": ("silver",)}, False),
        ("gone", {}, False),
    ],
)
def test_a_plan_is_applied_to_selected_members_that_the_fleet_still_has(
    member: str, selector: Selector, is_selected: bool
) -> None:
    members = {"acme": Member("acme", {"tier": "gold"})}
    session: Any = SimpleNamespace(fleet=SimpleNamespace(members=members), options=FleetOptions(selector=selector))
    assert applying._is_selected(session, member) is is_selected
