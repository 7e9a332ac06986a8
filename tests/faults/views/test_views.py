"""What a list shows may be old, may go back in time, and may have gaps; and the account changes while we work on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from reconciler.api.client import Client, LastCheck
from reconciler.api.clock import MachineClock
from reconciler.model import owner_record as owners
from reconciler.model.address import Address
from reconciler.model.event import Outcome
from reconciler.model.owner_record import Owner
from reconciler.model.value import Json
from tests.faults.between import Between
from tests.faults.matrix.world import Stack, ids
from tests.harness.platform import Sandbox

POLICIES = "/ip_policies"
OFFICE = Address("IPPolicy", "office")


@dataclass
class View:
    """What lists answer: as it was so many writes ago, and without these ids."""

    behind: int = 0
    hidden: set[str] = field(default_factory=set)
    versions: list[dict[str, Json]] = field(default_factory=list)

    def wrap(self, client: Client) -> Client:
        return Liar(client, self)


class Liar(Between):
    """Passes everything on; lists of policies and bots are answered as the view says."""

    def __init__(self, client: Client, view: View) -> None:
        super().__init__(client)
        self._view = view

    async def exchange(
        self,
        method: str,
        address: str,
        body: Mapping[str, Json] | None = None,
        last_check: LastCheck | None = None,
    ) -> Json:
        if not self._view.versions:
            await self._remember()
        path = address.removeprefix(str(self.origin))
        if method == "GET" and path in LISTS:
            answer: Any = self._view.versions[max(0, len(self._view.versions) - 1 - self._view.behind)][path]
            key = path[1:]
            return {**answer, key: [body for body in answer[key] if body["id"] not in self._view.hidden]}
        try:
            return await self._to.exchange(method, address, body, last_check)
        finally:
            if method != "GET":
                await self._remember()

    async def _remember(self) -> None:
        self._view.versions.append({path: await self._to.exchange("GET", f"{self.origin}{path}") for path in LISTS})


LISTS = (POLICIES, "/bot_users")


@pytest.fixture
def stack(sandbox: Sandbox, tmp_path: Path) -> Stack:
    stack = Stack(sandbox, tmp_path, kinds=("IPPolicy", "BotUser"))
    stack.declare(str(OFFICE), {"description": "Office"})
    return stack


def policies(stack: Stack) -> list[dict[str, Any]]:
    return list(stack.sandbox.get(POLICIES)["ip_policies"])


# --- stale, back in time, with gaps -----------------------------------------------------------------------------------


@pytest.mark.parametrize("behind", [1, 2, 5])
async def test_a_new_object_that_a_stale_list_lacks_is_not_created_again(stack: Stack, behind: int) -> None:
    view = View()
    stack.wrap = view.wrap
    stack.declare("IPPolicy/home", {"description": "Home"})
    stack.declare("BotUser/berlin", {"name": "berlin"})
    assert (await stack.run()).is_good
    stack.sandbox.forget_log()
    view.behind = behind
    run = await stack.run()
    assert run.is_good
    assert [call for call in stack.sandbox.calls() if call.startswith("POST")] == []
    assert len(policies(stack)) == 2
    assert await stack.converges() == []


async def test_an_object_that_one_list_lacks_is_not_deleted(stack: Stack) -> None:
    await stack.run()
    stack.wrap = View(hidden=ids(policies(stack))).wrap
    stack.sandbox.forget_log()
    assert (await stack.run()).plan.is_empty
    assert stack.sandbox.calls() == []


async def test_a_deleted_object_is_created_again(stack: Stack) -> None:
    await stack.run()
    (gone,) = policies(stack)
    stack.sandbox.delete(f"{POLICIES}/{gone['id']}")
    assert (await stack.run()).is_good
    (anew,) = policies(stack)
    assert anew["id"] != gone["id"]


@pytest.mark.parametrize("path", ["/ip_policies", "/bot_users", "/credentials", "*"])
async def test_a_new_object_that_is_invisible_at_first_is_not_created_again(
    sandbox: Sandbox, tmp_path: Path, path: str
) -> None:
    """Neither a list nor a GET shows a new object for some time."""
    stack = Stack(sandbox, tmp_path, kinds=("IPPolicy", "BotUser", "TunnelCredential"), clock=MachineClock(), settle=5)
    stack.declare(str(OFFICE), {"description": "Office"})
    stack.declare("BotUser/berlin", {"name": "berlin"})
    stack.secret("TunnelCredential/agent")
    sandbox.fault(f"POST {path}", hide=1.0, times=0)
    assert (await stack.run()).is_good
    token = (tmp_path / "agent.token").read_text()
    for _ in range(2):
        assert (await stack.run()).plan.is_empty
    assert (tmp_path / "agent.token").read_text() == token
    assert len([call for call in sandbox.calls() if call.startswith("POST")]) == 3
    assert await stack.converges() == []


async def test_a_lost_create_is_not_duplicated_by_a_stale_list(stack: Stack) -> None:
    stack.wrap = View(behind=1).wrap
    stack.sandbox.fault(f"POST {POLICIES}", then="commit-then-cut")
    assert (await stack.run()).is_good
    assert len(policies(stack)) == 1
    assert await stack.converges() == []


async def test_a_delete_of_an_object_that_only_a_stale_list_shows_succeeds(stack: Stack) -> None:
    view = View()
    stack.wrap = view.wrap
    await stack.run()
    stack.remove(OFFICE)
    await stack.run()
    view.behind = 1
    run = await stack.run()
    assert [ended.outcome for ended in run.end_events.values()] == [Outcome.ALREADY]
    assert await stack.converges() == []


async def test_drift_that_a_stale_list_lacked_is_updated_by_the_next_run(stack: Stack) -> None:
    view = View()
    stack.wrap = view.wrap
    await stack.run()
    (live,) = policies(stack)
    await stack.run()  # another look, so that there is an older one
    stack.sandbox.patch(f"{POLICIES}/{live['id']}", {"description": "by hand"})
    assert (await stack.run()).plan.is_empty  # the view was taken before the edit
    view.versions.clear()
    assert not (await stack.run()).plan.is_empty
    assert policies(stack)[0]["description"] == "Office"


async def test_a_list_that_becomes_stale_again_changes_nothing_permanently(stack: Stack) -> None:
    view = View()
    stack.wrap = view.wrap
    await stack.run()
    for number, behind in enumerate((0, 2, 0, 1, 3)):
        stack.declare(str(OFFICE), {"description": f"Office {number}"})
        view.behind = behind
        assert (await stack.run()).is_good
    assert len(policies(stack)) == 1
    await stack.converges()
    assert policies(stack)[0]["description"] == "Office 4"


# --- between list and apply -------------------------------------------------------------------------------------------


async def test_an_update_of_an_object_deleted_during_the_apply_fails_and_the_next_run_creates_it(stack: Stack) -> None:
    await stack.run()
    (live,) = policies(stack)
    stack.declare(str(OFFICE), {"description": "Office and home"})
    run = await stack.run(lambda: stack.sandbox.delete(f"{POLICIES}/{live['id']}"))
    (ended,) = run.end_events.values()
    assert (ended.outcome, "was deleted after the plan was created" in ended.why) == (Outcome.FAILED, True)
    await stack.converges()
    assert [policy["description"] for policy in policies(stack)] == ["Office and home"]


async def test_a_delete_of_an_object_deleted_during_the_apply_succeeds(stack: Stack) -> None:
    await stack.run()
    (live,) = policies(stack)
    stack.remove(OFFICE)
    run = await stack.run(lambda: stack.sandbox.delete(f"{POLICIES}/{live['id']}"))
    assert [ended.outcome for ended in run.end_events.values()] == [Outcome.ALREADY]
    assert await stack.converges() == []


async def test_a_change_during_the_apply_is_drift_in_the_next_run(sandbox: Sandbox, tmp_path: Path) -> None:
    stack = Stack(sandbox, tmp_path, kinds=("TLSEdge",))
    stack.declare("TLSEdge/pay", {"description": "one"})
    await stack.run()
    (live,) = sandbox.get("/edges/tls")["tls_edges"]
    stack.declare("TLSEdge/pay", {"description": "two"})
    other = sandbox.post(POLICIES, {})["id"]
    module = {"ip_policy_ids": [other]}
    assert (await stack.run(lambda: sandbox.put(f"/edges/tls/{live['id']}/ip_restriction", module))).is_good
    again = await stack.plan_again()
    assert [field.path for change in again.changes for field in change.fields] == ["ip_restriction"]
    await stack.converges()
    assert sandbox.get(f"/edges/tls/{live['id']}")["ip_restriction"] is None


async def test_an_object_of_the_same_name_created_during_the_apply_is_not_duplicated(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    stack = Stack(sandbox, tmp_path, kinds=("ReservedDomain",))
    stack.declare("ReservedDomain/pay", {"domain": "pay.example.com"})
    run = await stack.run(lambda: sandbox.post("/reserved_domains", {"domain": "pay.example.com"}))
    assert [ended.outcome for ended in run.end_events.values()] == [Outcome.FAILED]
    assert len(sandbox.get("/reserved_domains")["reserved_domains"]) == 1
    again = await stack.plan_again()  # it is somebody's: that it is ours may only be said by the user
    assert [consent.what for consent in again.missing_approvals] == ["adopt"]


def take_over(stack: Stack, live: Mapping[str, Any]) -> None:
    """Another stack adopts the object."""
    record = Owner("other", Address("IPPolicy", "theirs"), "intent-of-others")
    stack.sandbox.patch(f"{POLICIES}/{live['id']}", {"metadata": owners.write("", record)})


@pytest.mark.parametrize("count", [1, 5])  # asked for by id, and by list
async def test_an_object_that_another_stack_owns_during_the_apply_is_not_deleted(stack: Stack, count: int) -> None:
    for number in range(1, count):
        stack.declare(f"IPPolicy/p{number}", {"description": str(number)})
    await stack.run()
    live = next(policy for policy in policies(stack) if policy["description"] == "Office")
    stack.declared.clear()
    run = await stack.run(lambda: take_over(stack, live))
    ended = run.end_events[f"delete {OFFICE} {live['id']}"]
    assert ended.outcome is Outcome.FAILED
    assert "is now IPPolicy/theirs of stack other" in ended.why
    assert ids(policies(stack)) == {live["id"]}
    assert await stack.converges() == []
    assert ids(policies(stack)) == {live["id"]}


async def test_an_object_that_another_stack_owns_during_the_apply_is_not_updated(stack: Stack) -> None:
    await stack.run()
    (live,) = policies(stack)
    stack.declare(str(OFFICE), {"description": "Office and home"})
    run = await stack.run(lambda: take_over(stack, live))
    assert [ended.outcome for ended in run.end_events.values()] == [Outcome.FAILED]
    (still,) = policies(stack)
    assert still["description"] == "Office"
    assert "intent-of-others" in still["metadata"]


async def test_an_object_that_became_unmanaged_during_the_apply_is_not_deleted(stack: Stack) -> None:
    await stack.run()
    (live,) = policies(stack)
    stack.remove(OFFICE)
    run = await stack.run(lambda: stack.sandbox.patch(f"{POLICIES}/{live['id']}", {"metadata": ""}))
    (ended,) = run.end_events.values()
    assert (ended.outcome, "its owner record was removed" in ended.why) == (Outcome.FAILED, True)
    assert ids(policies(stack)) == {live["id"]}
