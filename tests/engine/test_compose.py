"""What a call of the plan becomes when it is carried out."""

from __future__ import annotations

import pytest

from reconciler import kinds
from reconciler.engine import requests
from reconciler.model.address import Address
from reconciler.model.plan import Call, Observed, Plan, Verb


@pytest.mark.parametrize(("kind", "before"), [("BotUser", frozenset({"old"})), ("AgentTunnel", frozenset())])
def test_what_was_there_before_a_create_tells_nothing_where_a_name_is_the_id(kind: str, before: frozenset[str]) -> None:
    """A tunnel that is started anew bears the name of the one that was ended for it."""
    address = Address(kind, "x")
    plan = Plan("prod", observed={address: Observed("old", {})})
    call = Call(f"create {address}", address, Verb.CREATE, kinds.get(kind).path)
    made = requests.make_intent("i", call, {"name": "old"}, kinds.get(kind), plan, kinds.get(kind).path)
    assert made.before == before
    assert made.identity == {"name": "old"}
