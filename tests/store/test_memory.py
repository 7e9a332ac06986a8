"""A store that lives as long as the run."""

from __future__ import annotations

import asyncio

import pytest

from reconciler.engine.ports import Intent
from reconciler.model.address import Address
from reconciler.model.snapshot import Binding
from reconciler.store.account import AccountMembership
from reconciler.store.errors import MEMORY, StoreError, Unavailable
from reconciler.store.store import open_store

BOT = Address("BotUser", "b")


def fail(failure: StoreError) -> None:
    raise AssertionError(failure)


async def test_it_does_all_that_a_file_does() -> None:
    async with (
        open_store(MEMORY) as store,
        store.lock("prod", on_loss=fail) as holder,
        store.journal("prod", command="apply", holder=holder) as journal,
    ):
        await asyncio.gather(*(journal.intend(Intent(f"i{n}", BOT, "prod", "/bot_users")) for n in range(50)))
        await journal.bind({BOT: Binding("bot_1")})
        await journal.record_account(AccountMembership("https://a", ("BotUser:bot_1",)))
        assert len(await store.find_open_intents("prod")) == 50
        assert await store.bindings("prod") == {BOT: Binding("bot_1")}
        assert await store.membership("prod") == AccountMembership("https://a", ("BotUser:bot_1",))


async def test_the_next_one_knows_nothing_of_it() -> None:
    async with open_store(MEMORY) as store, store.journal("prod", command="apply") as journal:
        await journal.bind({BOT: Binding("bot_1")})
    async with open_store(MEMORY) as store:
        assert await store.bindings("prod") == {}


async def test_sqlites_own_spelling_is_refused_with_ours() -> None:
    with pytest.raises(Unavailable, match="use memory: if that is intended"):
        async with open_store("sqlite:///:memory:"):
            pass
