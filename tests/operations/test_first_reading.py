"""What an apply does first about creates of earlier runs whose end nobody stored."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler import Status, Workspace
from reconciler.api.clock import MachineClock
from reconciler.engine.ports import Intent
from reconciler.model.address import Address
from reconciler.operations.opening.stores import store_location
from reconciler.operations.reporting import Note, OperationEvent
from reconciler.store.store import open_store
from reconciler.testing import Sandbox
from tests.harness.workspaces import bot, open_on, policy, write_project

SETTLE = 60.0
POLICY, BOT = Address("IPPolicy", "late"), Address("BotUser", "ci")


class NotingClock(MachineClock):
    """Sleeps no time, and notes how long it was asked to."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


def open_workspace(sandbox: Sandbox, tmp_path: Path, *documents: object, clock: NotingClock) -> Workspace:
    settings = f"limits: {{settle_seconds: {SETTLE:.0f}}}\n"
    root = write_project(tmp_path, *documents, settings="")  # type: ignore[arg-type]
    (root / "reconciler.yaml").write_text(f"version: 1\nstack: prod\n{settings}")
    return open_on(sandbox, root, clock=clock)


async def leave_open(workspace: Workspace, *creates: tuple[Intent, float]) -> None:
    """Stores intents as a run would have that died so many seconds ago."""
    for intent, ago in creates:
        opened = time.time() - ago
        async with (
            open_store(store_location(workspace.config), now=lambda opened=opened: opened) as store,  # type: ignore[misc]
            store.journal("prod", command="apply") as journal,
        ):
            await journal.intend(intent)


def intent(id: str, address: Address = POLICY) -> Intent:
    return Intent(id, address, "prod", "/ip_policies")


@pytest.mark.parametrize(
    ("ages", "waits"),
    [
        ([1000.0], None),  # its request has ended long ago
        ([2.0], SETTLE - 2),
        ([1000.0, 2.0], SETTLE - 2),  # the latest counts
        ([2.0, 1000.0], SETTLE - 2),
        ([-1000.0], SETTLE),  # stored by a clock that was ahead
        ([], None),
    ],
    ids=str,
)
async def test_an_apply_waits_for_the_latest_create_that_may_still_take_effect(
    sandbox: Sandbox, tmp_path: Path, ages: list[float], waits: float | None
) -> None:
    clock, events = NotingClock(), list[OperationEvent]()
    workspace = open_workspace(sandbox, tmp_path, policy("a"), clock=clock)
    await leave_open(workspace, *((intent(f"intent-{number:09}"), age) for number, age in enumerate(ages)))
    assert (await workspace.apply(on_event=events.append)).status is Status.APPLIED
    assert clock.slept == ([] if waits is None else [pytest.approx(waits, abs=30)])
    notes = [event.text for event in events if isinstance(event, Note)]
    assert ["may still take effect" in note for note in notes] == [True] * len(clock.slept)


class CreatingClock(NotingClock):
    """During its first sleep, a request of an earlier run takes effect."""

    def __init__(self, sandbox: Sandbox, name: str) -> None:
        super().__init__()
        self._sandbox = sandbox
        self._name = name

    async def sleep(self, seconds: float) -> None:
        if not self.slept:
            self._sandbox.post("/bot_users", {"name": self._name})
        await super().sleep(seconds)


async def test_an_object_that_appears_during_the_wait_is_managed_and_not_created_again(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    """Without a record only the intent tells whose it is: nobody has to adopt it."""
    workspace = open_workspace(sandbox, tmp_path, bot("ci"), clock=CreatingClock(sandbox, "ci"))
    left = Intent("intent-of-the-bot", BOT, "prod", "/bot_users", identity={"name": "ci"})
    await leave_open(workspace, (left, 1.0))
    result = await workspace.apply()
    assert (result.status, [call.call.id for call in result.outcomes]) == (Status.UNCHANGED, [])
    assert [found["name"] for found in sandbox.get("/bot_users")["bot_users"]] == ["ci"]
    async with open_store(store_location(workspace.config)) as store:
        assert await store.find_open_intents("prod") == ()
        assert list(await store.bindings("prod")) == [BOT]


async def test_an_object_that_appears_during_a_long_refresh_is_found_by_a_second_one(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    """The list of bots was read before the create took effect, and the reading ended after its time was over."""
    workspace = open_workspace(sandbox, tmp_path, bot("ci"), policy("a"), clock=NotingClock())
    left = Intent("intent-of-the-bot", BOT, "prod", "/bot_users", identity={"name": "ci"})
    await leave_open(workspace, (left, SETTLE - 1.5))
    sandbox.fault("GET /ip_policies", delay=3.0)
    workspace = open_workspace(sandbox, tmp_path, bot("ci"), policy("a"), clock=NotingClock())

    async def take_effect() -> None:
        await asyncio.sleep(2.0)
        sandbox.post("/bot_users", {"name": "ci"})

    late = asyncio.ensure_future(take_effect())
    assert (await workspace.apply()).status is Status.APPLIED
    await late
    assert [found["name"] for found in sandbox.get("/bot_users")["bot_users"]] == ["ci"]
