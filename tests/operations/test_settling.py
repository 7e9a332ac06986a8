"""Objects that the platform does not show for some seconds after it created them, in lists and by id."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler import Selection, Status, Workspace
from reconciler.model.address import Address
from reconciler.model.change import Reason
from reconciler.operations.opening.stores import store_location
from reconciler.operations.reporting import Note, OperationEvent
from reconciler.store.store import open_store
from reconciler.testing import Sandbox
from tests.harness.workspaces import bot, open_on, policy, write_project

HIDDEN = 8.0  # seconds; within `limits.settle_seconds`, 10 by default
CREDENTIAL = {
    "kind": "TunnelCredential",
    "name": "agent",
    "spec": {"description": "agent"},
    "deliver": {"token": {"to_file": "secrets/agent"}},
}
RULE = {
    "kind": "IPPolicyRule",
    "name": "office",
    "spec": {"ip_policy_id": {"ref": "IPPolicy/office"}, "cidr": "192.0.2.0/24", "action": "allow"},
}


class SkippingClock:
    """The machine's time plus what was slept. Nobody waits."""

    def __init__(self) -> None:
        self.skipped = 0.0

    def now(self) -> float:
        return time.monotonic() + self.skipped

    async def sleep(self, seconds: float) -> None:
        self.skipped += seconds
        await asyncio.sleep(0)


@pytest.fixture
def clock() -> SkippingClock:
    return SkippingClock()


@pytest.fixture
def sandbox(clock: SkippingClock) -> Iterator[Sandbox]:
    with Sandbox(clock=clock) as sandbox:
        yield sandbox


def open_project(sandbox: Sandbox, tmp_path: Path, clock: SkippingClock, *documents: Any) -> Workspace:
    return open_on(sandbox, write_project(tmp_path, *documents, settle=10), clock=clock)


def hide(sandbox: Sandbox, *paths: str, seconds: float = HIDDEN) -> None:
    for path in paths:
        sandbox.fault(f"POST {path}", hide=seconds, times=0)


def posts(sandbox: Sandbox) -> list[str]:
    return [call for call in sandbox.calls() if call.startswith("POST")]


async def test_a_new_credential_that_is_not_visible_yet_is_waited_for(
    sandbox: Sandbox, tmp_path: Path, clock: SkippingClock
) -> None:
    hide(sandbox, "/credentials")
    events = list[OperationEvent]()
    workspace = open_project(sandbox, tmp_path, clock, CREDENTIAL)
    result = await workspace.apply(on_event=events.append)
    assert (result.status, result.remaining) == (Status.APPLIED, ())
    assert HIDDEN - 1 < clock.skipped < 10
    assert posts(sandbox) == ["POST /credentials"]
    notes = [event.text for event in events if isinstance(event, Note)]
    assert sum("the platform does not show TunnelCredential cr_" in note for note in notes) == 1


@pytest.mark.parametrize("verb", ["apply", "plan", "drift"])
async def test_a_second_run_does_not_take_a_new_credential_for_a_deleted_one(
    sandbox: Sandbox, tmp_path: Path, clock: SkippingClock, verb: str
) -> None:
    """The first run ends before it verifies: the platform cannot be read any more."""
    hide(sandbox, "/credentials")
    workspace = open_project(sandbox, tmp_path, clock, CREDENTIAL)
    sandbox.fault("GET /credentials", then="status", nth=2, times=100, status=500)
    assert (await workspace.apply()).status is Status.FAILED
    token = (tmp_path / "secrets/agent").read_text()
    sandbox.delete("/_sandbox/faults")
    clock.skipped = 0.0
    hide_again = HiddenForLonger(sandbox)
    with hide_again:
        if verb == "apply":
            assert (await workspace.apply()).status is Status.UNCHANGED
        elif verb == "plan":
            assert (await workspace.plan()).plan.changes == ()
        else:
            assert (await workspace.drift()).plan.changes == ()
    assert (tmp_path / "secrets/agent").read_text() == token
    assert posts(sandbox) == ["POST /credentials"]


class HiddenForLonger:
    """Hides all credentials for some reads more, however much time was skipped before."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    def __enter__(self) -> None:
        empty: dict[str, Any] = {"credentials": [], "uri": "", "next_page_uri": None}
        self._sandbox.fault("GET /credentials", then="status", status=200, body=empty)
        gone = {"status_code": 404, "msg": "Resource not found", "details": {}}
        self._sandbox.fault("GET /credentials/*", then="status", status=404, body=gone, times=3)

    def __exit__(self, *_: object) -> None:
        seen = [fault["seen"] for fault in self._sandbox.get("/_sandbox/faults")["faults"]]
        assert seen[0] >= 1
        assert seen[1] >= 4  # read by id until it was visible


async def test_an_object_that_stays_away_is_deleted_on_the_platform(
    sandbox: Sandbox, tmp_path: Path, clock: SkippingClock
) -> None:
    workspace = open_project(sandbox, tmp_path, clock, policy("office"))
    assert (await workspace.apply()).status is Status.APPLIED
    (made,) = sandbox.get("/ip_policies")["ip_policies"]
    sandbox.delete(f"/ip_policies/{made['id']}")
    (change,) = (await workspace.plan()).plan.changes
    assert change.reason is Reason.VANISHED
    assert 9 < clock.skipped <= 10


async def test_no_wait_with_settle_seconds_0(sandbox: Sandbox, tmp_path: Path, clock: SkippingClock) -> None:
    workspace = open_on(sandbox, write_project(tmp_path, policy("office"), settle=0), clock=clock)
    assert (await workspace.apply()).status is Status.APPLIED
    (made,) = sandbox.get("/ip_policies")["ip_policies"]
    sandbox.delete(f"/ip_policies/{made['id']}")
    (change,) = (await workspace.plan()).plan.changes
    assert (change.reason, clock.skipped) == (Reason.VANISHED, 0)


async def test_what_this_stack_deleted_is_not_waited_for(
    sandbox: Sandbox, tmp_path: Path, clock: SkippingClock
) -> None:
    assert (await open_project(sandbox, tmp_path, clock, policy("a"), policy("b")).apply()).status is Status.APPLIED
    assert (await open_project(sandbox, tmp_path, clock, policy("a")).apply()).status is Status.APPLIED
    assert clock.skipped == 0


async def test_a_replaced_credential_that_is_not_visible_yet_is_not_replaced_again(
    sandbox: Sandbox, tmp_path: Path, clock: SkippingClock
) -> None:
    workspace = open_project(sandbox, tmp_path, clock, CREDENTIAL)
    assert (await workspace.apply()).status is Status.APPLIED
    hide(sandbox, "/credentials")
    again = workspace.select(Selection(replace=("TunnelCredential/agent",)))
    assert (await again.apply()).status is Status.APPLIED
    assert (await workspace.plan()).plan.changes == ()
    assert len(posts(sandbox)) == 2


async def test_children_of_a_parent_that_is_not_visible_yet_are_created_once(
    sandbox: Sandbox, tmp_path: Path, clock: SkippingClock
) -> None:
    hide(sandbox, "/ip_policies", "/ip_policy_rules")
    workspace = open_project(sandbox, tmp_path, clock, policy("office"), RULE)
    assert (await workspace.apply()).status is Status.APPLIED
    assert (await workspace.plan()).plan.changes == ()
    assert posts(sandbox) == ["POST /ip_policies", "POST /ip_policy_rules"]


async def test_the_binding_of_a_new_object_outlives_its_declaration(
    sandbox: Sandbox, tmp_path: Path, clock: SkippingClock
) -> None:
    """A bot has no owner record: with its binding it would be lost for good."""
    hide(sandbox, "/bot_users")
    sandbox.fault("GET /bot_users", then="status", nth=2, times=100, status=500)
    workspace = open_project(sandbox, tmp_path, clock, bot("ci"), policy("a"))
    assert (await workspace.apply()).status is Status.FAILED  # applied, but not verified
    sandbox.delete("/_sandbox/faults")
    without = open_project(sandbox, tmp_path, clock, policy("a"))
    plan = (await without.plan()).plan
    assert [str(change.address) for change in plan.changes] == ["BotUser/ci"]
    async with open_store(store_location(workspace.config)) as store:
        assert Address("BotUser", "ci") in await store.bindings("prod")


async def test_an_update_of_a_new_object_waits_until_the_platform_finds_it(
    sandbox: Sandbox, tmp_path: Path, clock: SkippingClock
) -> None:
    """The platform answers a create below a new parent, and each GET before an update, with 404 at first."""
    gone = {"status_code": 404, "msg": "Resource not found", "details": {}}
    sandbox.fault("POST /edges/https/*/routes", then="status", status=404, body=gone, times=3)
    edge = {"kind": "HTTPSEdge", "name": "shop", "spec": {"hostports": ["shop.example.com:443"]}}
    domain = {"kind": "ReservedDomain", "name": "shop", "spec": {"domain": "shop.example.com"}}
    route = {
        "kind": "HTTPSEdgeRoute",
        "name": "all",
        "spec": {"edge_id": {"ref": "HTTPSEdge/shop"}, "match": "/", "match_type": "path_prefix"},
    }
    workspace = open_project(sandbox, tmp_path, clock, domain, edge, route)
    result = await workspace.apply()
    assert result.status is Status.APPLIED, result
    (made,) = sandbox.get("/edges/https")["https_edges"]
    assert len(made["routes"]) == 1
