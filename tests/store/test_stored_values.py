"""Outcomes and kinds under the names that earlier versions stored."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from reconciler.model.address import Address
from reconciler.model.event import Ended, Outcome
from reconciler.model.plan import Call, Verb
from reconciler.model.snapshot import Binding
from reconciler.store.store import open_store

EDGE = Address("TLSEdge", "shop")


async def test_outcomes_under_names_of_earlier_versions_are_counted_under_the_present_ones(tmp_path: Path) -> None:
    file = tmp_path / "prod.db"
    async with open_store(str(file)) as store:
        async with store.journal("prod", command="apply") as journal:
            for number, outcome in enumerate((Outcome.DONE, Outcome.DONE, Outcome.DONE, Outcome.SKIPPED)):
                await journal.record(Ended(Call(f"create {number}", EDGE, Verb.CREATE, "/edges/tls"), outcome, 1.0))
        connection = sqlite3.connect(file)
        connection.execute("UPDATE outcomes SET outcome = 'done' WHERE place = 2")
        connection.execute("UPDATE outcomes SET outcome = 'not tried' WHERE place = 4")
        connection.commit()
        connection.close()
        (run,) = await store.drift_history.list_runs("prod")
        assert run.calls == {Outcome.DONE: 3, Outcome.SKIPPED: 1}
        assert [call.outcome for call in await store.history("prod")] == ["skipped", *["succeeded"] * 3]


async def test_a_binding_of_a_service_user_is_read_as_that_of_a_bot_user(tmp_path: Path) -> None:
    former, present = Address.parse("ServiceUser/ci"), Address.parse("BotUser/ci")
    async with open_store(str(tmp_path / "prod.db")) as store, store.journal("prod", command="apply") as journal:
        await journal.bind({former: Binding("service_1", {"name": "d"}, protect=True)})
        assert await store.bindings("prod") == {present: Binding("bot_1", protect=True)}
        assert await store.find_bound_elsewhere("test", ["BotUser"]) == {("BotUser", "bot_1"): "prod"}
        await journal.bind({present: Binding("bot_1", {"name": "e"}, adopted=True)})
        assert await store.bindings("prod") == {present: Binding("bot_1", {"name": "e"}, adopted=True)}
        await journal.bind({former: Binding("service_1")})
        await journal.bind({present: None})
        assert await store.bindings("prod") == {}
