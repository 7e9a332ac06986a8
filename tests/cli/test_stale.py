"""What of a plan file still holds, where an address has more names or objects than one."""

from __future__ import annotations

import pytest

from reconciler.cli import stale
from reconciler.model.snapshot import Binding
from tests.planning.builders import LENIENT, at, declare, live, planned, record, snapshot


@pytest.mark.parametrize("description", ["", "changed as well"])
def test_what_was_renamed_as_it_was_replaced_is_still_ours_to_delete(description: str) -> None:
    was = {"domain": "a.example.com"}
    now = {"domain": "b.example.com"}
    old = live("ReservedDomain", "rd_old", was, owner=record("ReservedDomain/b", was, intent="i0"))
    new = live("ReservedDomain", "rd_new", now, owner=record("ReservedDomain/a", now, intent="i1", replaces="rd_old"))
    seen = snapshot(old, new)
    declared = declare("ReservedDomain/a", {**now, "description": description}, moved=["ReservedDomain/b"])
    plan = planned(declared, seen=seen, policy=LENIENT)
    assert "rd_old" in [change.id for change in plan.changes]
    assert stale.moved(plan, seen) == {}


def test_what_is_not_renamed_after_all_keeps_the_name_it_is_remembered_by() -> None:
    bot = live("BotUser", "bot_1", {"name": "nightly"})
    seen = snapshot(bot, bindings={"BotUser/old": Binding("bot_1", {})})
    plan = planned(declare("BotUser/new", {"name": "nightly"}, moved=["BotUser/old"]), seen=seen)
    assert plan.bindings.keys() == {at("BotUser/new"), at("BotUser/old")}
    rest, _ = stale.without(plan, {at("BotUser/new")})
    assert (rest.changes, rest.bindings) == ((), {})
