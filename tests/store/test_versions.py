"""A store that an earlier version wrote, as it was dumped then: all that is in it is read, and new rows go beside."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from reconciler.engine.ports import Intent
from reconciler.model.address import Address
from reconciler.model.snapshot import Binding, IssuedSecret, Place
from reconciler.store.account import AccountMembership
from reconciler.store.errors import Damaged
from reconciler.store.store import open_store

DUMP = Path(__file__).parent / "fixtures/version-3.sql"
APPLICATION = 0x7263_6E63  # in the header of our files, which a dump leaves out
SECRETIVE = ("TunnelCredential", "APIKey")
AGENT, KEY, HALF = (Address.parse(each) for each in ("TunnelCredential/agent", "APIKey/ci", "TunnelCredential/half"))
PLACE = Place("to_file", "secrets/agent.token", "", "laptop", "a")


@pytest.fixture
def written(tmp_path: Path) -> Path:
    file = tmp_path / "prod.db"
    connection = sqlite3.connect(file)
    connection.executescript(DUMP.read_text(encoding="utf-8"))
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.commit()
    connection.close()
    return file


async def test_a_store_of_version_3_is_read_whole(written: Path) -> None:
    async with open_store(str(written)) as store:
        assert await store.receipts("prod") == {"i1", "i2"}
        assert await store.find_undelivered("prod", SECRETIVE) == {"i3", "i4"}
        assert await store.find_issued("prod", SECRETIVE) == (
            IssuedSecret("i1", AGENT, None, True),
            IssuedSecret("i2", KEY, None, True),
            IssuedSecret("i3", HALF, None, False),
        )
        assert [intent.id for intent in await store.find_open_intents("prod")] == ["i3"]
        assert await store.bindings("prod") == {
            Address.parse("IPPolicyRule/r"): Binding("ippr_1", {"cidr": "d"}, True, None)
        }
        assert await store.membership("prod") == AccountMembership("https://api.example.com", ("BotUser:bot_1",))
        assert [recorded_call.call for recorded_call in await store.history("prod")] == [
            "create TunnelCredential/agent"
        ]


async def test_new_creates_say_where_their_secret_goes_beside_those_that_do_not(written: Path) -> None:
    async with open_store(str(written)) as store:
        async with store.journal("prod", command="apply") as journal:
            await journal.intend(Intent("i5", AGENT, "prod", "/credentials", place=PLACE))
            await journal.record_receipt("i5")
        assert IssuedSecret("i5", AGENT, PLACE, True) in await store.find_issued("prod", SECRETIVE)
        assert IssuedSecret("i1", AGENT, None, True) in await store.find_issued("prod", SECRETIVE)
        (intent,) = (intent for intent in await store.find_open_intents("prod") if intent.id == "i5")
        assert intent.place == PLACE
        assert dict(await store.find_overwritten("prod")) == {"i1": AGENT}


async def test_a_place_that_was_changed_in_the_store_is_damage(written: Path) -> None:
    async with open_store(str(written)) as store:
        async with store.journal("prod", command="apply") as journal:
            await journal.intend(Intent("i5", AGENT, "prod", "/credentials", place=PLACE))
        connection = sqlite3.connect(written)
        connection.execute("UPDATE intents SET place = replace(place, 'agent', 'other') WHERE id = 'i5'")
        connection.commit()
        connection.close()
        with pytest.raises(Damaged):
            await store.find_issued("prod", SECRETIVE)
