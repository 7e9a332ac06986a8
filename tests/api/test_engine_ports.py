"""The engine with its real ports: HTTP, store and sinks together, against a sandbox process over sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from reconciler import kinds
from reconciler.api.client import Account
from reconciler.api.clock import MachineClock, MachineRandom
from reconciler.api.platform import HTTPPlatform, open_platform, open_reader
from reconciler.engine.apply import apply
from reconciler.engine.observe import observe
from reconciler.engine.ports import Refused
from reconciler.engine.retry import RetryPolicy
from reconciler.model.address import Address
from reconciler.model.event import Ended, Outcome
from reconciler.model.manifest import Delivery
from reconciler.model.plan import OwnerDraft, Plan
from reconciler.model.value import Ref, Secret, Template
from reconciler.project.secrets.sinks import ProjectSinks
from reconciler.store.journal import StoreJournal
from reconciler.store.store import Store, open_store
from tests.harness.engine import VirtualClock, create, delete, update
from tests.harness.platform import KEY, Sandbox, SandboxProcess

pytestmark = pytest.mark.usefixtures("over_socket")

QUICK = RetryPolicy(base=0.001)
BACKEND = Address("HTTPResponseBackend", "hello")
AGENT = Address("TunnelCredential", "agent")


def account(sandbox: Sandbox, **more: Any) -> Account:
    return Account(sandbox.base_url, Secret(KEY, "test"), **more)


@pytest.fixture
async def platform(sandbox: Sandbox) -> AsyncIterator[HTTPPlatform]:
    async with open_platform(account(sandbox)) as opened_platform:
        yield opened_platform


class Run:
    """One apply with real ports."""

    def __init__(self, platform: HTTPPlatform, root: Path, store: Store, journal: StoreJournal) -> None:
        self.platform, self.root, self.store, self.journal = platform, root, store, journal

    async def outcomes(self, *calls: Any) -> dict[str, tuple[Outcome, str]]:
        events = apply(
            Plan("prod", calls=calls),
            kinds=kinds.every(),
            platform=self.platform,
            journal=self.journal,
            clock=MachineClock(),
            random=MachineRandom(),
            sinks=ProjectSinks(self.root),
            stop=asyncio.Event(),
            retries=QUICK,
        )
        return {event.call.id: (event.outcome, event.why) async for event in events if isinstance(event, Ended)}


@pytest.fixture
async def run(platform: HTTPPlatform, tmp_path: Path) -> AsyncIterator[Run]:
    async with open_store(str(tmp_path / "prod.db")) as store, store.journal("prod", command="apply") as journal:
        yield Run(platform, tmp_path, store, journal)


def credential() -> tuple[Any, ...]:
    return (
        create(str(AGENT), "/credentials", pending=True, deliver={"token": Delivery("to_file", "agent.token")}),
        update(
            str(AGENT),
            Template(("/credentials/", Ref(AGENT))),
            {},
            owner=OwnerDraft(AGENT),
            needs=(f"create {AGENT}",),
        ),
    )


async def test_objects_are_created_in_order_of_references_and_deleted(sandbox: Sandbox, run: Run) -> None:
    edge = create(
        "TLSEdge/payments", "/edges/tls", {"backend": {"backend_id": Ref(BACKEND)}}, needs=(f"create {BACKEND}",)
    )
    ends = await run.outcomes(create(str(BACKEND), "/backends/http_response", {"body": "hi", "status_code": 200}), edge)
    assert {outcome for outcome, _ in ends.values()} == {Outcome.DONE}, ends
    (live,) = sandbox.get("/edges/tls")["tls_edges"]
    ends = await run.outcomes(delete("TLSEdge/payments", f"/edges/tls/{live['id']}", live["id"]))
    assert {outcome for outcome, _ in ends.values()} == {Outcome.DONE}, ends
    assert sandbox.get("/edges/tls")["tls_edges"] == []
    assert await run.store.find_open_intents("prod") == ()


async def test_a_refresh_sends_one_request_for_each_collection_and_page(
    sandbox: Sandbox, platform: HTTPPlatform
) -> None:
    for number in range(105):
        sandbox.post("/backends/http_response", {"description": str(number), "status_code": 200})
    sandbox.forget_log()
    snapshot = await observe(platform, kinds.every())
    whys = {name: listing.why for name, listing in snapshot.listings.items() if not listing.complete}
    assert whys == {}
    assert len(snapshot.of("HTTPResponseBackend").objects) == 105
    collections = {kind.path for kind in kinds.every() if kind.parent is None}
    assert len(sandbox.log()) == len(collections) + 1


@pytest.mark.parametrize("then", ["cut", "commit-then-cut", "status", "commit-then-status"])
async def test_an_object_is_created_once_although_the_response_was_lost(sandbox: Sandbox, run: Run, then: str) -> None:
    sandbox.fault("POST /edges/tls", then=then, times=2)
    ends = await run.outcomes(create("TLSEdge/payments", "/edges/tls"))
    assert ends["create TLSEdge/payments"][0] in (Outcome.DONE, Outcome.ALREADY), ends
    assert len(sandbox.get("/edges/tls")["tls_edges"]) == 1
    assert await run.store.find_open_intents("prod") == ()


@pytest.mark.parametrize("then", ["cut", "commit-then-cut", "commit-then-status"])
async def test_a_credential_remains_only_if_its_token_was_delivered(sandbox: Sandbox, run: Run, then: str) -> None:
    sandbox.fault("POST /credentials", then=then)
    ends = await run.outcomes(*credential())
    assert {outcome for outcome, _ in ends.values()} == {Outcome.DONE}, ends
    (live,) = sandbox.get("/credentials")["credentials"]
    token = (run.root / "agent.token").read_text()
    assert token.startswith(live["id"].removeprefix("cr_"))
    assert len(await run.store.receipts("prod")) == 1


async def test_a_bot_user_found_after_a_lost_response_is_bound(sandbox: Sandbox, run: Run) -> None:
    sandbox.fault("POST /bot_users", then="commit-then-cut")
    ends = await run.outcomes(create("BotUser/berlin", "/bot_users", {"name": "berlin"}))
    assert ends["create BotUser/berlin"][0] is Outcome.ALREADY, ends
    (live,) = sandbox.get("/bot_users")["bot_users"]
    assert (await run.store.bindings("prod"))[Address("BotUser", "berlin")].id == live["id"]


async def test_a_wrong_key_is_reported_as_missing_permission(sandbox: Sandbox) -> None:
    async with open_reader(Account(sandbox.base_url, Secret("wrong", "test"))) as reader:
        with pytest.raises(Refused) as failed:
            await observe(reader, kinds.every())
    assert failed.value.is_permission


async def test_the_header_of_the_profile_ngrok_is_accepted(sandbox: Sandbox) -> None:
    async with open_reader(account(sandbox, profile="ngrok", requests_per_minute=0)) as reader:
        assert [page async for page in reader.pages("/bot_users", "bot_users")] == [[]]


async def test_a_platform_that_accepts_fewer_requests_at_once_soon_refuses_none(
    start_sandbox: Callable[..., SandboxProcess],
) -> None:
    platform = start_sandbox(latency_ms=100)
    platform.put("/_sandbox/budget", {"at_once": 6})
    lists = {(kind.path, kind.list_key) for kind in kinds.every() if kind.parent is None}
    clock = VirtualClock()
    async with open_reader(Account(platform.base_url, Secret(KEY, "test")), clock=clock) as reader:
        snapshot = await observe(reader, kinds.every(), concurrency=32)
    assert {name: listing.why for name, listing in snapshot.listings.items() if not listing.complete} == {}
    refused = [entry for entry in platform.log() if entry["status"] == 429]
    assert 0 < len(refused) < 2 * (len(lists) - 6)  # the platform may still count requests that it has answered
