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
from reconciler.model.event import Outcome
from reconciler.model.plan import Plan
from reconciler.operations.opening.stores import store_location
from reconciler.operations.reporting import Note, OperationEvent
from reconciler.store.store import open_store
from reconciler.testing import Sandbox
from tests.harness.workspaces import bot, domain, open_on, policy, write_project

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


SHOP_DOMAIN = {"kind": "ReservedDomain", "name": "shop", "spec": {"domain": "shop.example.com"}}
SHOP_EDGE = {"kind": "HTTPSEdge", "name": "shop", "spec": {"hostports": ["shop.example.com:443"]}}
SHOP_ROUTE = {
    "kind": "HTTPSEdgeRoute",
    "name": "all",
    "spec": {"edge_id": {"ref": "HTTPSEdge/shop"}, "match": "/", "match_type": "path_prefix"},
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


@pytest.mark.parametrize("document", [policy("office"), bot("ci")], ids=["policy", "bot"])
async def test_a_delete_waits_until_the_platform_finds_an_object_of_an_earlier_run(
    sandbox: Sandbox, tmp_path: Path, clock: SkippingClock, document: dict[str, Any]
) -> None:
    """A list shows the object, and requests by its id answer 404. A delete that counted as done would leave the object
    on the platform, without a binding."""
    assert (await open_project(sandbox, tmp_path, clock, document, domain("a")).apply()).status is Status.APPLIED
    collection = "bot_users" if document["kind"] == "BotUser" else "ip_policies"
    not_found = NotFound(sandbox, f"DELETE /{collection}/*")
    workspace = open_project(sandbox, tmp_path, clock, domain("a"))
    result = await workspace.select(allow={("delete", "BotUser"): 1}).apply()
    assert (result.status, [ended.outcome for ended in result.outcomes]) == (Status.APPLIED, [Outcome.DONE])
    assert not_found.is_over()
    assert sandbox.get(f"/{collection}")[collection] == []
    assert 0 < clock.skipped <= 20


async def test_an_update_waits_until_the_platform_finds_an_object_of_an_earlier_run(
    sandbox: Sandbox, tmp_path: Path, clock: SkippingClock
) -> None:
    assert (await open_project(sandbox, tmp_path, clock, policy("office")).apply()).status is Status.APPLIED
    not_found = NotFound(sandbox, "PATCH /ip_policies/*")
    result = await open_project(sandbox, tmp_path, clock, policy("office", "changed")).apply()
    assert (result.status, [ended.outcome for ended in result.outcomes]) == (Status.APPLIED, [Outcome.DONE])
    assert not_found.is_over()
    assert [made["description"] for made in sandbox.get("/ip_policies")["ip_policies"]] == ["changed"]


async def test_the_ownership_check_waits_until_the_platform_finds_an_object_of_an_earlier_run(
    sandbox: Sandbox, tmp_path: Path, clock: SkippingClock
) -> None:
    """The list shows the object, and the GET before the update answers 404."""
    assert (await open_project(sandbox, tmp_path, clock, policy("office")).apply()).status is Status.APPLIED
    not_found = NotFound(sandbox, "GET /ip_policies/*")
    assert (await open_project(sandbox, tmp_path, clock, policy("office", "changed")).apply()).status is Status.APPLIED
    assert not_found.is_over()


async def test_a_create_waits_until_the_platform_finds_the_parent_of_an_earlier_run(
    sandbox: Sandbox, tmp_path: Path, clock: SkippingClock
) -> None:
    workspace = open_project(sandbox, tmp_path, clock, SHOP_DOMAIN, SHOP_EDGE)
    assert (await workspace.apply()).status is Status.APPLIED
    not_found = NotFound(sandbox, "POST /edges/https/*/routes")
    workspace = open_project(sandbox, tmp_path, clock, SHOP_DOMAIN, SHOP_EDGE, SHOP_ROUTE)
    assert (await workspace.apply()).status is Status.APPLIED
    assert not_found.is_over()
    (made,) = sandbox.get("/edges/https")["https_edges"]
    assert len(made["routes"]) == 1


async def test_a_deleted_object_of_an_earlier_run_is_waited_for_no_longer_than_settle_seconds(
    sandbox: Sandbox, tmp_path: Path, clock: SkippingClock
) -> None:
    """Another client deletes the object after the plan listed it."""
    assert (
        await open_project(sandbox, tmp_path, clock, policy("office"), domain("a")).apply()
    ).status is Status.APPLIED
    (made,) = sandbox.get("/ip_policies")["ip_policies"]

    async def delete_by_hand(_: Plan) -> bool:
        sandbox.delete(f"/ip_policies/{made['id']}")
        return True

    result = await open_project(sandbox, tmp_path, clock, domain("a")).apply(approve=delete_by_hand)
    assert (result.status, [ended.outcome for ended in result.outcomes]) == (Status.APPLIED, [Outcome.ALREADY])
    assert clock.skipped > 9


async def test_an_object_of_an_earlier_run_is_not_waited_for_after_settle_seconds(
    sandbox: Sandbox, tmp_path: Path, clock: SkippingClock
) -> None:
    assert (await open_project(sandbox, tmp_path, clock, policy("office")).apply()).status is Status.APPLIED
    await asyncio.sleep(0.02)
    NotFound(sandbox, "PATCH /ip_policies/*", times=1)
    project = write_project(tmp_path, policy("office", "changed"), settle=0.01)
    assert ((await open_on(sandbox, project, clock=clock).apply()).status, clock.skipped) == (Status.FAILED, 0)


async def test_a_plan_file_is_not_stale_while_the_platform_does_not_show_a_new_object(
    sandbox: Sandbox, tmp_path: Path, clock: SkippingClock
) -> None:
    """The plan lists the object; a replica that lags behind answers the apply."""
    assert (await open_project(sandbox, tmp_path, clock, policy("office")).apply()).status is Status.APPLIED
    workspace = open_project(sandbox, tmp_path, clock, policy("office", "changed"))
    planned = await workspace.plan()
    empty: dict[str, Any] = {"ip_policies": [], "uri": "", "next_page_uri": None}
    sandbox.fault("GET /ip_policies", then="status", status=200, body=empty)
    not_found = NotFound(sandbox, "GET /ip_policies/*")
    assert (await workspace.apply(planned)).status is Status.APPLIED
    assert not_found.is_over()
    assert [made["description"] for made in sandbox.get("/ip_policies")["ip_policies"]] == ["changed"]


class NotFound:
    """Answers requests with 404 a few times, as a platform whose replicas lag behind."""

    def __init__(self, sandbox: Sandbox, requests: str, times: int = 3) -> None:
        self._sandbox, self._requests, self._times = sandbox, requests, times
        body = {"status_code": 404, "msg": "Resource not found", "details": {}}
        sandbox.fault(requests, then="status", status=404, body=body, times=times)

    def is_over(self) -> bool:
        return all(fault["seen"] > self._times for fault in self._faults())

    def _faults(self) -> list[dict[str, Any]]:
        faults = self._sandbox.get("/_sandbox/faults")["faults"]
        return [fault for fault in faults if fault.get("on", self._requests) == self._requests]


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


async def test_an_object_still_missing_after_the_settle_time_counts_as_deleted(
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


async def test_a_refresh_does_not_wait_for_objects_that_the_stack_deleted(
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
    NotFound(sandbox, "POST /edges/https/*/routes")
    workspace = open_project(sandbox, tmp_path, clock, SHOP_DOMAIN, SHOP_EDGE, SHOP_ROUTE)
    result = await workspace.apply()
    assert result.status is Status.APPLIED, result
    (made,) = sandbox.get("/edges/https")["https_edges"]
    assert len(made["routes"]) == 1
