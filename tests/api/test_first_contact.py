"""An address where nobody is: told soon, but not before it has been tried again; later on there is more patience."""

from __future__ import annotations

import pytest

from reconciler import kinds
from reconciler.api.client import Account
from reconciler.api.errors import Unreachable
from reconciler.api.platform import open_reader
from reconciler.engine.observe import observe
from reconciler.engine.retry import FIRST_CONTACT, READS
from reconciler.model.value import Secret
from tests.api.wire import KEY, answer, wire
from tests.harness.engine import SeededChance, VirtualClock


async def closed() -> str:
    """The address of a port that was open a moment ago."""
    async with wire(answer({})) as there:
        return there.base_url


async def test_nobody_there_is_told_within_a_second_or_so() -> None:
    clock, told = VirtualClock(), list[str]()
    account = Account(await closed(), Secret(KEY, "test"))
    opening = open_reader(account, clock=clock, random=SeededChance(), on_retry=lambda _seconds, why: told.append(why))
    async with opening as reader:
        snapshot = await observe(reader, kinds.every())
    whys = {listing.why for listing in snapshot.listings.values()}
    assert whys == set(told) == {f"cannot reach {account.base_url}: connection refused"}
    assert clock.now() < 2


async def test_whoever_answered_once_is_given_more_time() -> None:
    clock = VirtualClock()
    async with wire(answer({"ip_policies": []})) as there:
        opening = open_reader(there.account(), clock=clock, random=SeededChance())
        reader = await opening.__aenter__()
        await reader.get("/ip_policies")
    with pytest.raises(Unreachable):
        await reader.get("/ip_policies")
    await opening.__aexit__(None, None, None)
    assert len(clock.slept) == READS.attempts - 1 > FIRST_CONTACT.attempts - 1
