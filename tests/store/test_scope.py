"""Stacks of the same name in one store: each scope behaves like a separate store."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from reconciler.engine.ports import Intent
from reconciler.model.access_change import Verdict
from reconciler.model.address import Address
from reconciler.model.change import Action, ChangedBy, Reason
from reconciler.model.event import Ended, Outcome
from reconciler.model.health import Health, HealthRow, State
from reconciler.model.history import CheckedHealth, DriftCheck, DriftedResource, Opening
from reconciler.model.plan import Call, Verb
from reconciler.model.snapshot import Binding, Place
from reconciler.operations.opening.source import ProjectSource
from reconciler.operations.runtime import Runtime
from reconciler.store.account import AccountMembership
from reconciler.store.database import SERVER_NAMES
from reconciler.store.errors import Locked, LockLost, StoreError
from reconciler.store.reading import StoreReader, open_reader
from reconciler.store.scope import Scope
from reconciler.store.store import Store, open_store
from tests.harness.tiers import is_quick
from tests.store.stores import STORES, new_store

SCOPES = ("", "berlin", "Berlin", "berlin/shop", "berlin/shop/x", "berlin0", "berl", "b%", "b_rlin", "bérlin")
STACKS = ("prod", "Prod")
KINDS = ("BotUser", "TunnelCredential")
IDS = [f"cr_{number}" for number in range(1_000)]
BOT, AGENT = Address("BotUser", "berlin"), Address("TunnelCredential", "agent")
PLAN = "the digest of a plan file that several members apply"

Write = Callable[[Store, str, str], Coroutine[Any, Any, None]]


async def bind(store: Store, stack: str, unique: str) -> None:
    async with store.journal(stack, command="apply") as journal:
        await journal.bind({BOT: Binding(f"bot_{unique}", {"name": unique}, protect=True)})


async def unbind(store: Store, stack: str, unique: str) -> None:
    async with store.journal(stack, command="apply") as journal:
        await journal.bind({BOT: None})


async def record_account(store: Store, stack: str, unique: str) -> None:
    async with store.journal(stack, command="apply") as journal:
        await journal.record_account(AccountMembership("https://a", (f"BotUser:bot_{unique}",)))


async def deliver(store: Store, stack: str, unique: str) -> None:
    async with store.journal(stack, command="apply", plan=PLAN) as journal:
        intent = Intent(unique, AGENT, stack, "/credentials", place=Place("to_file", "a.token", "", "laptop", "a"))
        await journal.intend(intent)
        await journal.conclude(unique, f"cr_{unique}")
        await journal.record_receipt(unique)
        await journal.record(Ended(Call("create agent", AGENT, Verb.CREATE, "/credentials"), Outcome.DONE, 1.0, unique))


async def stop_after_intent(store: Store, stack: str, unique: str) -> None:
    async with store.journal(stack, command="apply", commit="c0ffee", actor="mara") as journal:
        await journal.intend(Intent(unique, AGENT, stack, "/credentials", frozenset({"cr_0"}), {"name": "agent"}))


async def complete_plan(store: Store, stack: str, unique: str) -> None:
    async with store.journal(stack, command="apply", plan=PLAN) as journal:
        await journal.complete_plan()


async def check_drift(store: Store, stack: str, unique: str) -> None:
    moved = DriftedResource(BOT, Action.UPDATE, Reason.FIELDS, ChangedBy.PLATFORM, (unique,))
    opening = Opening(f"https://{unique}.example.com", Verdict.WIDENS, "no one", "everyone")
    health = CheckedHealth(1, (HealthRow(str(BOT), unique, Health(State.DEGRADED)),))
    check = DriftCheck(100.0 + int(unique), 12, "abc", (moved,), openings=(opening,), health=health)
    await store.drift_history.record(stack, check)


async def run_with_lock(store: Store, stack: str, unique: str) -> None:
    async with store.lock(stack, on_loss=fail) as holder, store.journal(stack, command="x", holder=holder) as journal:
        await journal.check_lock()
        await journal.bind({Address("BotUser", "paris"): Binding(f"bot_{unique}")})


WRITES: tuple[Write, ...] = (
    bind,
    unbind,
    record_account,
    deliver,
    stop_after_intent,
    complete_plan,
    check_drift,
    run_with_lock,
)


def fail(failure: StoreError) -> None:
    raise AssertionError(failure)


async def read_all(store: StoreReader, stack: str) -> dict[str, object]:
    """The results of every method that reads, without ids of runs."""
    history = store.drift_history
    return {
        "bindings": await store.bindings(stack),
        "find_bound_elsewhere": await store.find_bound_elsewhere(stack, KINDS),
        "receipts": await store.receipts(stack),
        "find_undelivered": await store.find_undelivered(stack, KINDS),
        "find_issued": set(await store.find_issued(stack, KINDS)),
        "find_overwritten": await store.find_overwritten(stack),
        "find_open_intents": {intent.id: intent for intent in await store.find_open_intents(stack)},
        "find_made_objects": {(created.address, created.id) for created in await store.find_made_objects(stack, 1e9)},
        "find_own_objects": await store.find_own_objects(stack, IDS),
        "membership": await store.membership(stack),
        "progress": await store.progress(PLAN),
        "history": sorted((replace(call, run="") for call in await store.history(stack)), key=str),
        "drift_history": (
            sorted(await history.list_drift_checks(stack), key=str),
            await history.list_judged(stack, 5),
            sorted((replace(run, started=0, ended=0) for run in await history.list_runs(stack)), key=str),
        ),
    }


async def test_every_method_of_a_store_is_covered(tmp_path: Path) -> None:
    async with open_store(str(tmp_path / "prod.db")) as store:
        covered = {*await read_all(store, "prod"), "lock", "journal"}
    assert covered == {name for name in (*vars(Store), *vars(StoreReader)) if not name.startswith("_")}


@dataclass
class Clock:
    """A clock that advances with each reading."""

    time: float = 1000.0

    def __call__(self) -> float:
        self.time += 1
        return self.time


WRITTEN = st.lists(
    st.tuples(st.sampled_from(SCOPES), st.sampled_from(STACKS), st.sampled_from(WRITES)), min_size=1, max_size=6
)


async def check_scopes(where: str, folder: Path, written: list[tuple[str, str, Write]]) -> list[dict[str, object]]:
    """Writes to the scopes of one store, and to a separate store for each scope: both read the same.

    Returns what the scopes read.
    """
    async with AsyncExitStack() as stack_of_stores:
        shared, own, clock, own_clock = dict[str, Store](), dict[str, Store](), Clock(), Clock()
        for place, scope in enumerate(sorted({scope for scope, *_ in written} | {"", "berlin"})):
            shared[scope] = await stack_of_stores.enter_async_context(open_store(where, scope, now=clock))
            separate = open_store(str(folder / f"{place}.db"), now=own_clock)
            own[scope] = await stack_of_stores.enter_async_context(separate)
        for number, (scope, stack, write) in enumerate(written):
            clock.time = own_clock.time = 1000.0 * number
            await write(shared[scope], stack, str(number))
            await write(own[scope], stack, str(number))
        views = []
        for scope, store in shared.items():
            for stack in STACKS:
                views.append(await read_all(store, stack))
                assert views[-1] == await read_all(own[scope], stack)
                if "://" not in where and (scope, stack) == written[-1][:2]:
                    async with open_reader(where, scope, now=clock) as reader:
                        assert views[-1] == await read_all(reader, stack), "a plan reads the same as an apply"
    return views


@settings(max_examples=5 if is_quick() else 30, deadline=None)
@given(WRITTEN)
def test_a_scope_behaves_like_a_separate_store(
    tmp_path_factory: pytest.TempPathFactory, written: list[tuple[str, str, Write]]
) -> None:
    folder = tmp_path_factory.mktemp("scopes")
    asyncio.run(check_scopes(str(folder / "shared.db"), folder, written))
    shutil.rmtree(folder)


@pytest.mark.postgres
@settings(max_examples=10, deadline=None)
@given(WRITTEN)
def test_a_scope_behaves_like_a_separate_store_on_a_server(
    tmp_path_factory: pytest.TempPathFactory, written: list[tuple[str, str, Write]]
) -> None:
    folder = tmp_path_factory.mktemp("scopes")
    asyncio.run(check_scopes(new_store("server", folder), folder, written))


@pytest.mark.parametrize("form", STORES)
async def test_rows_of_members_with_the_same_stack_are_separate(form: str, tmp_path: Path) -> None:
    writes = (*WRITES, deliver, bind)
    written = [(scope, stack, write) for write in writes for scope in ("berlin", "paris") for stack in STACKS]
    views = await check_scopes(new_store(form, tmp_path), tmp_path, written)
    assert [view for view in views if all(view.values())] == [view for view in views if view["bindings"]]
    assert len({str(view) for view in views}) == 1 + 2 * len(STACKS)  # the scope without a name has another view


async def test_a_stack_has_one_lock_for_each_scope(tmp_path: Path) -> None:
    where = str(tmp_path / "prod.db")
    async with (
        open_store(where, "berlin") as berlin,
        open_store(where, "paris") as paris,
        berlin.lock("prod", on_loss=fail) as holder,
        paris.lock("prod", on_loss=fail),
        berlin.journal("prod", command="apply", holder=holder) as journal,
    ):
        with pytest.raises(Locked, match=r"^stack prod is being applied"):
            async with berlin.lock("prod", on_loss=fail):
                pass
        with berlin._engine.begin() as connection:
            connection.exec_driver_sql("DELETE FROM locks WHERE stack = 'berlin/prod'")
        with pytest.raises(LockLost, match="the lock of stack prod expired"):
            await journal.check_lock()


async def test_runs_of_two_scopes_can_start_at_the_same_moment(tmp_path: Path) -> None:
    where = str(tmp_path / "prod.db")
    for scope in ("berlin", "paris"):
        async with open_store(where, scope, now=lambda: 1000.0) as store:
            await check_drift(store, "prod", "1")
            async with store.journal("prod", command="apply"):
                pass


async def test_without_a_scope_rows_are_keyed_by_the_stack(tmp_path: Path) -> None:
    async with open_store(str(tmp_path / "prod.db")) as store:
        for number, write in enumerate(WRITES):
            await write(store, "prod", str(number))
        with store._engine.connect() as connection:
            for table in ("bindings", "receipts", "intents", "accounts", "runs", "looks"):
                keys = connection.exec_driver_sql(f"SELECT DISTINCT stack FROM {table}").all()  # noqa: S608
                assert keys == [("prod",)]
            assert connection.exec_driver_sql("SELECT DISTINCT plan FROM plan_calls").all() == [(PLAN,)]


def test_operations_use_the_scope_of_their_runtime(tmp_path: Path) -> None:
    (tmp_path / "reconciler.yaml").write_text("version: 1\nstack: prod\n")
    runtime = Runtime(environ={}, store="postgresql://a/b", store_scope="berlin")
    settings = ProjectSource(tmp_path, runtime=runtime).read_settings()
    assert (settings.store, settings.store_scope) == ("postgresql://a/b", "berlin")


def test_keys_of_a_scope_are_compared_by_their_bytes_on_a_server() -> None:
    """A server orders texts by language, in which "berlin/prod" may be before "berlin 2"."""
    condition = Scope("berlin").contains("stack")
    text = condition.text.format_map(SERVER_NAMES)
    assert text.startswith("stack ~>=~ :scope AND stack ~<~ :after_scope AND ")
    assert condition.values == {"scope": "berlin/", "after_scope": "berlin0"}
