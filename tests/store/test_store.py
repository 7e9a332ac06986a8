"""What a store reads and writes, how durable a write is, and which files and URLs are refused."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import random
import signal
import sqlite3
import subprocess
import sys
import textwrap
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import event

from reconciler.engine.ports import Intent
from reconciler.model.address import Address
from reconciler.model.event import Ended, Outcome
from reconciler.model.plan import Call, Verb
from reconciler.model.snapshot import Binding, Place
from reconciler.store.account import AccountMembership
from reconciler.store.errors import Damaged, StoreError, Unavailable
from reconciler.store.reading import Progress, RecordedCall
from reconciler.store.store import open_store

BOT = Address("BotUser", "berlin")
TOKEN_FILE = Place("to_file", "secrets/agent.token")
INTENT = Intent("i1", BOT, "prod", "/bot_users", frozenset({"bot_2", "bot_1"}), {"name": "berlin"})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "state" / "prod.db"


async def fill(file: Path) -> None:
    async with open_store(str(file)) as store, store.journal("prod", command="apply") as journal:
        await journal.intend(INTENT)
        await journal.bind({BOT: Binding("bot_3", {"name": "abc"}, protect=True)})
        await journal.record_receipt("i0")


async def test_stored_rows_are_read_after_the_store_is_opened_again(file: Path) -> None:
    await fill(file)
    async with open_store(str(file)) as store:
        assert await store.find_open_intents("prod") == (INTENT,)
        assert await store.bindings("prod") == {BOT: Binding("bot_3", {"name": "abc"}, protect=True)}
        assert await store.receipts("prod") == frozenset({"i0"})


async def test_rows_of_stacks_are_separate(file: Path) -> None:
    await fill(file)
    async with open_store(str(file)) as store:
        assert (await store.find_open_intents("dev"), await store.bindings("dev"), await store.receipts("dev")) == (
            (),
            {},
            frozenset(),
        )


async def test_objects_bound_by_other_stacks_are_found_by_kind(file: Path) -> None:
    await fill(file)
    async with open_store(str(file)) as store, store.journal("dev", command="apply") as journal:
        await journal.bind({Address("BotUser", "paris"): Binding("bot_4"), Address("BotUserX", "rome"): Binding("b_5")})
        assert await store.find_bound_elsewhere("dev", ["BotUser", "Secret"]) == {("BotUser", "bot_3"): "prod"}
        assert await store.find_bound_elsewhere("prod", ["BotUser"]) == {("BotUser", "bot_4"): "dev"}
        assert await store.find_bound_elsewhere("dev", []) == {}


async def test_an_object_that_another_stack_replaces_is_bound_until_its_deletion(file: Path) -> None:
    """Otherwise this stack would treat it as unmanaged, and adopt it by its name."""
    async with open_store(str(file)) as store, store.journal("dev", command="apply") as journal:
        await journal.bind({Address("BotUser", "paris"): Binding("bot_4", replaces="bot_3")})
        assert await store.find_bound_elsewhere("prod", ["BotUser"]) == {
            ("BotUser", "bot_3"): "dev",
            ("BotUser", "bot_4"): "dev",
        }


async def test_delivered_and_overwritten_secrets_are_found(file: Path) -> None:
    agent, other = Address("TunnelCredential", "agent"), Address("TunnelCredential", "other")
    async with open_store(str(file)) as store, store.journal("prod", command="apply") as journal:
        for intent, address in (("i1", agent), ("i2", agent), ("i3", agent), ("i4", other), ("i5", BOT)):
            await journal.intend(Intent(intent, address, "prod", "/credentials"))
        for intent in ("i1", "i3", "i4"):
            await journal.record_receipt(intent)
        assert await store.find_undelivered("prod", ["TunnelCredential"]) == {"i2"}
        assert await store.find_undelivered("prod", []) == frozenset()
        assert await store.find_overwritten("prod") == {"i1": agent}
        assert await store.find_overwritten("dev") == {}


@pytest.mark.parametrize(
    ("later", "object_id", "place", "overwritten"),
    [
        ("received", "cr_2", TOKEN_FILE, True),
        ("concluded", "cr_2", TOKEN_FILE, True),
        ("concluded", None, TOKEN_FILE, False),  # the object was deleted again by its run
        ("open", None, TOKEN_FILE, False),  # no response was received
        ("concluded", "cr_2", None, False),  # its secret is not delivered anywhere
        ("earlier", "cr_2", TOKEN_FILE, False),
    ],
)
async def test_a_secret_may_have_been_overwritten_by_one_without_a_receipt(
    file: Path, later: str, object_id: str | None, place: Place | None, overwritten: bool
) -> None:
    agent = Address("TunnelCredential", "agent")
    first = Intent("i1", agent, "prod", "/credentials", place=TOKEN_FILE)
    second = Intent("i2", agent, "prod", "/credentials", place=place)
    times = iter(range(1000, 2000))
    async with (
        open_store(str(file), now=lambda: float(next(times))) as store,
        store.journal("prod", command="apply") as journal,
    ):
        for intent in (second, first) if later == "earlier" else (first, second):
            await journal.intend(intent)
            if intent is first:
                await journal.record_object("i1", "cr_1")
                await journal.record_receipt("i1")
                await journal.conclude("i1", "cr_1")
        if later in ("received", "earlier") and object_id is not None:
            await journal.record_object("i2", object_id)
            assert [(intent.id, intent.object) for intent in await store.find_open_intents("prod")] == [("i2", "cr_2")]
        if later == "concluded":
            await journal.conclude("i2", object_id)
        assert await store.find_overwritten("prod") == ({"i1": agent} if overwritten else {})
        assert await store.find_overwritten("dev") == {}


async def test_issued_secrets_are_found_with_their_place_and_delivery(file: Path) -> None:
    """Except those of creates that created no object or deliver nothing. A create that is not concluded may have
    delivered its secret."""
    place = Place("to_file", "secrets/agent.token", entry="TOKEN", host="here", checkout="there")
    objects = {"object": "cr_1", "object, delivered": "cr_2", "no object": None, "no object, delivered": None}
    async with open_store(str(file)) as store, store.journal("prod", command="apply") as journal:
        for id in (*objects, "open", "open, delivered"):
            await journal.intend(Intent(id, Address("TunnelCredential", "agent"), "prod", "/credentials", place=place))
        for id, object_id in objects.items():
            await journal.conclude(id, object_id)
            if id.endswith("delivered"):
                await journal.record_receipt(id)
        await journal.record_receipt("open, delivered")
        await journal.intend(Intent("other kind", Address("TunnelCredentialX", "a"), "prod", "/x"))
        await journal.intend(Intent("delivers nothing", Address("APIKey", "k"), "prod", "/api_keys"))
        async with store.journal("dev", command="apply") as other:
            await other.intend(Intent("other stack", Address("TunnelCredential", "agent"), "dev", "/credentials"))
        issued = await store.find_issued("prod", ["TunnelCredential", "APIKey"])
    arrived = {secret.intent: secret.arrived for secret in issued}
    assert arrived == {
        "object": False,
        "object, delivered": True,
        "no object, delivered": True,
        "open": False,
        "open, delivered": True,
    }
    assert {secret.place for secret in issued} == {place}


async def test_undelivered_secrets_and_open_intents_of_a_stack_are_listed_oldest_first(file: Path) -> None:
    agent = Address("TunnelCredential", "agent")
    times = iter(range(1000, 2000))
    async with open_store(str(file), now=lambda: float(next(times))) as store:
        for stack, ids in (("prod", ("z", "y", "x")), ("dev", ("w",))):
            async with store.journal(stack, command="apply") as journal:
                for id in ids:
                    await journal.intend(Intent(id, agent, stack, "/credentials"))
        assert [intent.id for intent in await store.find_open_intents("prod")] == ["z", "y", "x"]
        assert await store.find_undelivered("prod", ["TunnelCredential"]) == {"z", "y", "x"}


async def test_the_account_of_a_stack_is_the_one_stored_last(file: Path) -> None:
    async with open_store(str(file)) as store:
        for stack in ("prod", "dev"):
            async with store.journal(stack, command="apply") as journal:
                await journal.bind({})  # commits alone: the others share the next commit
                first, last = (AccountMembership(f"{stack} {number}", ("TLSEdge:e",)) for number in (1, 2))
                await asyncio.gather(journal.bind({}), journal.record_account(first), journal.record_account(last))
        assert await store.membership("prod") == AccountMembership("prod 2", ("TLSEdge:e",))
        assert await store.membership("test") is None


async def test_a_secret_that_is_delivered_again_counts_as_the_last(file: Path) -> None:
    agent = Address("TunnelCredential", "agent")
    async with open_store(str(file)) as store, store.journal("prod", command="apply") as journal:
        for id in ("i1", "i2"):
            await journal.intend(Intent(id, agent, "prod", "/credentials"))
            await journal.record_receipt(id)
        await asyncio.gather(journal.bind({}), journal.record_receipt("i1"), journal.record_receipt("i1"))
        assert await store.find_overwritten("prod") == {"i2": agent}


async def test_an_intent_concluded_during_other_creates_remains_concluded(file: Path) -> None:
    first, second = dataclasses.replace(INTENT, id="first"), dataclasses.replace(INTENT, id="second")
    async with open_store(str(file)) as store, store.journal("prod", command="apply") as journal:
        await journal.intend(first)
        await asyncio.gather(
            journal.bind({}),  # commits alone: the others share the next commit
            journal.conclude("first", None),
            journal.intend(second),
            journal.conclude("second", None),
        )
        assert await store.find_open_intents("prod") == ()


async def test_other_callers_still_wait_for_their_rows_if_one_is_cancelled(file: Path) -> None:
    async with open_store(str(file)) as store, store.journal("prod", command="apply") as journal:
        first = asyncio.ensure_future(journal.bind({}))
        cancelled = asyncio.ensure_future(journal.intend(INTENT))
        other = asyncio.ensure_future(journal.bind({BOT: Binding("bot_3")}))
        await asyncio.sleep(0)
        cancelled.cancel()
        await asyncio.wait_for(asyncio.gather(first, other), timeout=10)
        assert await store.bindings("prod") == {BOT: Binding("bot_3")}


async def test_the_order_of_deliveries_does_not_depend_on_the_clock(file: Path) -> None:
    """A clock that is ahead during one run does not put later deliveries before it."""
    agent = Address("TunnelCredential", "agent")
    for intent, clock in (("i1", 2000.0), ("i2", 1000.0), ("i3", 1001.0)):
        async with (
            open_store(str(file), now=lambda clock=clock: clock) as store,  # type: ignore[misc]
            store.journal("prod", command="apply") as journal,
        ):
            await journal.intend(Intent(intent, agent, "prod", "/credentials"))
            await journal.record_receipt(intent)
    async with open_store(str(file)) as store:
        assert await store.find_overwritten("prod") == {"i1": agent, "i2": agent}


async def test_the_last_recorded_secret_of_concurrent_deliveries_counts_as_the_last(file: Path) -> None:
    agent = Address("TunnelCredential", "agent")
    many = [f"i{9 - number}" for number in range(10)]
    async with open_store(str(file)) as store, store.journal("prod", command="apply") as journal:
        await asyncio.gather(*(journal.intend(Intent(id, agent, "prod", "/credentials")) for id in many))
        await asyncio.gather(*(journal.record_receipt(id) for id in many))
        assert await store.find_overwritten("prod") == dict.fromkeys(many[:-1], agent)


async def test_a_concluded_intent_is_not_open(file: Path) -> None:
    async with open_store(str(file)) as store, store.journal("prod", command="apply") as journal:
        await journal.intend(INTENT)
        await journal.conclude("i1", "bot_3")
        assert await store.find_open_intents("prod") == ()


async def test_progress_is_stored_for_each_plan_file(file: Path) -> None:
    """A create counts once its object is recorded, or its token delivered if it has one, whether or not its outcome was
    recorded."""
    names = ("created", "delivered", "undone", "open", "undelivered", "ended", "failed")
    created, delivered, undone, open_create, undelivered, ended, failed = (
        Address("TunnelCredential", name) for name in names
    )
    async with open_store(str(file)) as store, store.journal("prod", command="apply", plan="p1") as journal:
        for address in (created, undone, open_create):
            await journal.intend(Intent(f"of {address.name}", address, "prod", "/credentials"))
        for address in (delivered, undelivered):
            await journal.intend(Intent(f"of {address.name}", address, "prod", "/credentials", place=TOKEN_FILE))
            await journal.record_object(f"of {address.name}", "cr_2")
        await journal.conclude("of created", "cr_1")
        await journal.conclude("of undelivered", "cr_2")
        await journal.record_receipt("of delivered")
        await journal.conclude("of undone", None)
        for address, outcome in ((ended, Outcome.ALREADY), (failed, Outcome.FAILED)):
            await journal.record(Ended(Call(f"update {address}", address, Verb.UPDATE, "/x"), outcome, 1.0))
    async with open_store(str(file), now=lambda: 5.0) as store:
        assert await store.progress("p1") == Progress(
            frozenset({f"create {created}", f"create {delivered}", f"update {ended}"}), has_begun=True
        )
        assert await store.progress("p2") == Progress()
        async with store.journal("prod", command="apply", plan="p1") as journal:
            await journal.complete_plan()
            await journal.complete_plan()
        assert (await store.progress("p1")).complete == 5.0


async def test_a_binding_is_replaced_and_removed(file: Path) -> None:
    async with open_store(str(file)) as store, store.journal("prod", command="apply") as journal:
        await journal.bind({BOT: Binding("bot_3")})
        await journal.bind({BOT: Binding("bot_4", replaces="bot_3")})
        assert await store.bindings("prod") == {BOT: Binding("bot_4", replaces="bot_3")}
        await journal.bind({BOT: None})
        assert await store.bindings("prod") == {}


async def test_history_has_the_outcomes_of_calls_latest_first(file: Path) -> None:
    call = Call("create BotUser/berlin", BOT, Verb.CREATE, "/bot_users")
    async with open_store(str(file), now=lambda: 1000.0) as store:
        async with store.journal("prod", command="apply") as journal:
            await journal.record(Ended(call, Outcome.FAILED, 1.0, None, "no"))
            await journal.record(Ended(call, Outcome.DONE, 2.0, "bot_3"))
        past = await store.history("prod")
    assert [
        (recorded_call.outcome, recorded_call.object, recorded_call.why, recorded_call.command)
        for recorded_call in past
    ] == [
        ("succeeded", "bot_3", "", "apply"),
        ("failed", None, "no", "apply"),
    ]


async def test_history_is_ordered_by_run_and_call_and_can_be_limited(file: Path) -> None:
    clock = iter((100.0, 100.0, 101.0, 102.0, 103.0, 300.0, 300.0, 301.0, 302.0, 200.0, 200.0, 201.0, 202.0))
    async with open_store(str(file), now=lambda: next(clock)) as store:
        for command, calls in (("apply", 2), ("destroy", 1), ("drift", 1)):
            async with store.journal("prod", command=command) as journal:
                for number in range(calls):
                    call = Call(f"{command} {number}", BOT, Verb.UPDATE, "/bot_users")
                    await journal.record(Ended(call, Outcome.DONE, 1.0, f"bot_{number}", "why"))
        past = await store.history("prod")
        assert [(entry.call, entry.started) for entry in past] == [
            ("destroy 0", 300.0),
            ("drift 0", 200.0),
            ("apply 1", 100.0),
            ("apply 0", 100.0),
        ]
        assert await store.history("prod", limit=3) == past[:3]
        assert await store.history("prod", limit=0) == ()
        assert past[2] == RecordedCall(
            past[3].run, "apply", 100.0, "apply 1", str(BOT), "update", "succeeded", "bot_1", "why", 102.0
        )


@pytest.mark.parametrize("at_once", [True, False])
async def test_repeated_writes_count_once(file: Path, at_once: bool) -> None:
    """Whether or not both writes share a commit."""
    call = Call(f"update {BOT}", BOT, Verb.UPDATE, "/bot_users")
    async with open_store(str(file), now=lambda: 5.0) as store, store.journal("prod", command="a", plan="p") as journal:
        await journal.intend(INTENT)
        writes = [partial(journal.bind, {})]  # commits alone: all others share the next commit
        for _ in range(2):
            writes += [
                partial(journal.record, Ended(call, Outcome.DONE, 1.0, "bot_3")),
                partial(journal.complete_plan),
                partial(journal.conclude, INTENT.id, "bot_3"),
                partial(journal.record_receipt, INTENT.id),
                partial(journal.bind, {BOT: Binding("bot_3")}),
                partial(journal.record_account, AccountMembership("https://a")),
            ]
        if at_once:
            await asyncio.gather(*(write() for write in writes))
        else:
            for write in writes:
                await write()
        assert await store.progress("p") == Progress(frozenset({call.id, f"create {BOT}"}), 5.0, has_begun=True)
        assert await store.receipts("prod") == {INTENT.id}
        assert await store.bindings("prod") == {BOT: Binding("bot_3")}
        assert len(await store.history("prod")) == 2


async def test_a_run_without_a_plan_file_stores_no_progress(file: Path) -> None:
    async with open_store(str(file), "berlin") as store, store.journal("prod", command="apply") as journal:
        await journal.record(Ended(Call("update", BOT, Verb.UPDATE, "/x"), Outcome.DONE, 1.0))
        await journal.complete_plan()
        assert await store.progress("") == Progress()


async def test_the_lock_is_checked_by_one_query_and_only_if_not_confirmed_before(file: Path) -> None:
    commits: list[object] = []
    async with (
        open_store(str(file)) as store,
        store.lock("prod", on_loss=fail) as holder,
        store.journal("prod", command="a") as free,
        store.journal("prod", command="b", holder=holder) as held,
    ):
        event.listen(store._engine, "commit", commits.append)
        await free.check_lock()
        assert commits == []
        await held.check_lock()  # not yet confirmed
        assert len(commits) == 1
        await held.check_lock()
        assert len(commits) == 1


async def test_an_error_of_the_store_does_not_hide_that_of_the_run(file: Path) -> None:
    async def run() -> None:
        async with (
            open_store(str(file)) as store,
            store.lock("prod", on_loss=fail),
            store.journal("prod", command="apply"),
        ):
            with sqlite3.connect(file) as connection:
                connection.execute("DROP TABLE runs")
                connection.execute("DROP TABLE locks")
            connection.close()
            raise KeyError

    with pytest.raises(KeyError):
        await run()


def fail(failure: StoreError) -> None:
    raise AssertionError(failure)


async def test_concurrent_writes_share_commits(file: Path) -> None:
    async with open_store(str(file)) as store, store.journal("prod", command="apply") as journal:
        commits: list[object] = []
        event.listen(store._engine, "commit", commits.append)
        many = [Intent(f"i{n}", BOT, "prod", "/bot_users") for n in range(500)]
        await asyncio.gather(*(journal.intend(intent) for intent in many))
        assert len(await store.find_open_intents("prod")) == 500
    assert len(commits) < 10


@pytest.mark.parametrize("seed", range(8))
async def test_writes_that_share_a_commit_are_applied_in_order(file: Path, seed: int) -> None:
    """Random writes about two addresses and three intents, at the same moment and one after another."""
    states = []
    async with open_store(str(file)) as store:
        for at_once in (True, False):
            stack, chance = f"s{at_once}", random.Random(seed)
            async with store.journal(stack, command="apply") as journal:
                writes = [partial(journal.bind, {})]  # commits alone: all others share the next commit
                for number in range(3):
                    intent = dataclasses.replace(INTENT, id=f"{stack}{number}", stack=stack)
                    writes.append(partial(journal.intend, intent))
                    writes += [partial(journal.conclude, intent.id, None)] * chance.randint(0, 1)
                    for address in (BOT, Address("BotUser", "rome")):
                        bound = Binding(f"bot_{chance.randint(1, 99)}") if chance.random() < 0.6 else None
                        writes.append(partial(journal.bind, {address: bound}))
                if at_once:
                    await asyncio.gather(*(write() for write in writes))
                else:
                    for write in writes:
                        await write()
                open_intents = [intent.id.removeprefix(stack) for intent in await store.find_open_intents(stack)]
                states.append((sorted(open_intents), await store.bindings(stack)))
    assert states[0] == states[1]


async def test_a_write_is_stored_although_its_caller_is_cancelled(file: Path) -> None:
    async with open_store(str(file)) as store, store.journal("prod", command="apply") as journal:
        task = asyncio.ensure_future(journal.intend(INTENT))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await journal.flush()
        assert await store.find_open_intents("prod") == (INTENT,)


async def test_the_settings_of_the_file_protect_it_from_power_loss(file: Path) -> None:
    async with open_store(str(file)) as store:
        with store._engine.connect() as connection:
            assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
            assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2  # FULL


KILLED = textwrap.dedent(
    """
    import asyncio, os, signal, sys
    from reconciler.engine.ports import Intent
    from reconciler.model.address import Address
    from reconciler.store.reading import Progress
    from reconciler.store.store import open_store

    async def main():
        async with open_store(sys.argv[1]) as store, store.journal("prod", command="apply") as journal:
            for number in range(int(sys.argv[2])):
                await journal.intend(Intent(f"i{number}", Address("BotUser", "b"), "prod", "/bot_users"))
            os.kill(os.getpid(), signal.SIGKILL)

    asyncio.run(main())
    """
)


async def test_acknowledged_writes_survive_a_kill(file: Path) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED, str(file), "25"], check=False)  # noqa: ASYNC221 - waits for its end
    assert killed.returncode == -signal.SIGKILL
    async with open_store(str(file)) as store:
        assert len(await store.find_open_intents("prod")) == 25


class TestDamage:
    """A damaged file is refused with the remedy, and never treated as an empty one."""

    async def read_refusal(self, file: Path, kind: type[StoreError] = Damaged) -> str:
        with pytest.raises(kind) as failed:
            await self.read(file)
        return str(failed.value)

    async def read(self, file: Path) -> None:
        async with open_store(str(file)) as store:
            await store.bindings("prod")
            await store.find_open_intents("prod")
            await store.receipts("prod")

    async def test_an_empty_file_is_refused(self, file: Path) -> None:
        await fill(file)
        for path in file.parent.iterdir():
            os.truncate(path, 0)
        text = await self.read_refusal(file)
        assert text.startswith(f"{file} is damaged (it is empty); move it away, with its -wal and -shm files,")
        assert "nothing is created twice" in text
        assert "bot users" in text

    @pytest.mark.parametrize("size", [1, 50, 100, 512, 4096, 5000, 8192])
    async def test_a_truncated_file_is_refused(self, file: Path, size: int) -> None:
        await fill(file)
        checkpoint(file)
        os.truncate(file, size)
        await self.read_refusal(file)

    async def test_a_text_file_is_refused(self, file: Path) -> None:
        file.parent.mkdir()
        file.write_text("not a database\n" * 1000)
        assert "file is not a database" in await self.read_refusal(file)

    async def test_a_flipped_bit_in_a_binding_is_refused(self, file: Path) -> None:
        await fill(file)
        checkpoint(file)
        content = file.read_bytes()
        assert content.count(b"bot_3") == 1
        file.write_bytes(content.replace(b"bot_3", b"bot_2"))
        assert "does not match its seal" in await self.read_refusal(file)

    @pytest.mark.parametrize("seed", range(20))
    async def test_a_flipped_bit_anywhere_is_refused_or_has_no_effect(self, file: Path, seed: int) -> None:
        await fill(file)
        checkpoint(file)
        content = bytearray(file.read_bytes())
        place = (seed * 7919 * 31) % len(content)
        content[place] ^= 1 << (seed % 8)
        file.write_bytes(content)
        try:
            async with open_store(str(file)) as store:
                bindings = await store.bindings("prod")
                intents = await store.find_open_intents("prod")
        except StoreError:
            return
        assert bindings == {BOT: Binding("bot_3", {"name": "abc"}, protect=True)}
        assert intents == (INTENT,)

    @pytest.mark.parametrize(
        "change",
        [
            "UPDATE bindings SET replaces = 'bot_9'",
            "UPDATE bindings SET protect = 0",
            "UPDATE receipts SET intent = 'i1'",
            "UPDATE intents SET before = '[]'",
            "UPDATE intents SET place = '{}'",
            "UPDATE accounts SET account = 'another'",
            "UPDATE plan_calls SET call = ''",
        ],
    )
    async def test_a_changed_row_on_which_plans_depend_is_refused(self, file: Path, change: str) -> None:
        await fill(file)
        async with open_store(str(file)) as store, store.journal("prod", command="apply", plan="p") as journal:
            await journal.intend(dataclasses.replace(INTENT, id="i2", place=Place("to_file", "x")))
            await journal.record_account(AccountMembership("this"))
        with sqlite3.connect(file) as connection:
            connection.execute(change)
        connection.close()
        async with open_store(str(file)) as store:
            reads = (
                store.bindings("prod"),
                store.receipts("prod"),
                store.find_open_intents("prod"),
                store.find_issued("prod", ["BotUser"]),
                store.membership("prod"),
                store.progress("p"),
            )
            answers = await asyncio.gather(*reads, return_exceptions=True)
        damaged = [isinstance(answer, Damaged) for answer in answers]
        assert (
            damaged
            == {
                "bindings": [True, False, False, False, False, False],
                "receipts": [False, True, False, False, False, False],
                "intents": [False, False, True, True, False, False],
                "accounts": [False, False, False, False, True, False],
                "plan_calls": [False, False, False, False, False, True],
            }[change.split()[1]]
        )

    async def test_a_log_without_its_database_is_refused(self, file: Path) -> None:
        await fill(file)
        Path(f"{file}-wal").write_bytes(b"x")
        file.unlink()
        assert "its database file is missing" in await self.read_refusal(file)

    async def test_a_database_of_another_program_is_refused(self, file: Path) -> None:
        file.parent.mkdir()
        with sqlite3.connect(file) as connection:
            connection.execute("CREATE TABLE other (x)")
        connection.close()
        await self.read_refusal(file, StoreError)

    async def test_a_store_of_a_newer_version_is_refused(self, file: Path) -> None:
        await fill(file)
        with sqlite3.connect(file) as connection:
            connection.execute("UPDATE store SET version = 99")
        connection.close()
        assert "its schema version is 99" in await self.read_refusal(file, Unavailable)


async def test_a_deleted_store_is_created_again(file: Path) -> None:
    await fill(file)
    for path in list(file.parent.iterdir()):
        path.unlink()
    async with open_store(str(file)) as store:
        assert await store.bindings("prod") == {}


async def test_a_path_below_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file")
    with pytest.raises(Unavailable, match="RECONCILER_STORE"):
        async with open_store(str(tmp_path / "state" / "prod.db")):
            pass


async def test_a_full_disk_fails_the_waiting_write(file: Path) -> None:
    async with open_store(str(file)) as store, store.journal("prod", command="apply") as journal:

        def fill_disk(connection: sqlite3.Connection, *_: object) -> None:
            connection.execute("PRAGMA max_page_count = 1")

        store._engine.dispose()
        event.listen(store._engine, "connect", fill_disk)
        with pytest.raises(Unavailable, match="full"):
            await journal.intend(Intent("big", BOT, "prod", "/x" * 100_000))
        store._engine.dispose()
        event.remove(store._engine, "connect", fill_disk)


@pytest.mark.parametrize(
    ("where", "why"),
    [
        ("sqlite://", "it would be lost at the end of the run"),
        ("sqlite:///:memory:", "it would be lost at the end of the run"),
        ("not a url://", "use a postgresql:// URL or the path of a file"),
        ("http://h/x", "use a postgresql:// URL or the path of a file"),
        ("mysql://u:canary@h/x", "use a postgresql:// URL or the path of a file"),
        ("postgresql+psycopg2://u:canary@h/x", "use a postgresql:// URL or the path of a file"),
        ("postgresql://u:canary@h:notaport/x", "the port in its URL is not a number"),
        (
            "postgresql://u:canary@h1:1,h2:2/x",
            r"several servers as postgresql://user@/database\?host=a:5432&host=b:5432",
        ),
        ("postgresql://u:canary/x", "the port in its URL is not a number"),
        ("postgresql://u:can@ary-pw@127.0.0.1:1/x", "more than one @\\); write an @ of the user or password as %40"),
        ("postgresql://u:can/ary@ary-pw@127.0.0.1:1/x", "more than one @"),
    ],
)
async def test_an_unsupported_url_is_refused_without_its_password(where: str, why: str) -> None:
    with pytest.raises(Unavailable, match=why) as refused:
        async with open_store(where):
            pass
    assert "ary" not in str(refused.value)


@pytest.mark.parametrize(
    ("where", "name"),
    [
        ("postgresql://u:canary-pw@127.0.0.1:1/x", "postgresql://u:***@127.0.0.1:1/x"),
        ("postgresql://127.0.0.1:1/x?user=u&password=canary-pw", "postgresql://127.0.0.1:1/x"),
        ("postgresql://u@127.0.0.1:1/x?sslpassword=canary-pw&passfile=canary-file", "postgresql://u@127.0.0.1:1/x"),
        ("postgresql://u:can%40ary-pw@127.0.0.1:1/x", "postgresql://u:***@127.0.0.1:1/x"),
        ("postgres://u@127.0.0.1:1/x", "postgresql://u@127.0.0.1:1/x"),
        ("PostgreSQL://u@127.0.0.1:1/x", "postgresql://u@127.0.0.1:1/x"),
        ("postgresql://u@/x?host=127.0.0.1:1&host=127.0.0.1:2", "postgresql://u@/x"),
    ],
)
async def test_a_server_is_named_by_its_url_without_passwords(where: str, name: str) -> None:
    with pytest.raises(Unavailable) as refused:
        async with open_store(where):
            pass
    assert str(refused.value).startswith(f"{name} cannot be used (")
    assert "ary-" not in str(refused.value)


@pytest.mark.parametrize(
    "name", ["feature%2Flogin", "what?", "a?mode=ro", "100%", "#1", "file:x", "a b&c=d", ":memory:"]
)
async def test_a_path_may_have_special_characters(tmp_path: Path, name: str) -> None:
    file = tmp_path / name / f"{name}.db"
    await fill(file)
    async with open_store(str(file)) as store:
        assert await store.receipts("prod") == {"i0"}
    assert sorted(tmp_path.rglob("*")) == [file.parent, file]


async def test_a_missing_driver_is_reported_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(Unavailable, match="; install reconciler with the extra postgres, or set RECONCILER_STORE"):
        async with open_store("postgresql://user:canary@host/x"):
            pass


@pytest.mark.parametrize("name", ["prod.db", "a@b@c.db"])
async def test_a_sqlite_url_is_a_path(tmp_path: Path, name: str) -> None:
    async with open_store(f"sqlite:///{tmp_path / name}"):
        assert (tmp_path / name).exists()


async def test_stores_opened_at_the_same_time_create_one_file(file: Path) -> None:
    async def one(stack: str) -> None:
        async with open_store(str(file)) as store, store.journal(stack, command="apply") as journal:
            await journal.record_receipt(stack)

    await asyncio.gather(*(one(f"s{n}") for n in range(8)))
    async with open_store(str(file)) as store:
        assert [len(await store.receipts(f"s{n}")) for n in range(8)] == [1] * 8
    assert [path.name for path in file.parent.iterdir() if path.name.startswith(".")] == []


def test_errors_are_imported_without_a_database_library() -> None:
    code = "import sys, reconciler.store.errors; print('sqlalchemy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def checkpoint(file: Path) -> None:
    """Moves the content of the log to the database file."""
    connection = sqlite3.connect(file)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
