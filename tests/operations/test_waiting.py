"""`apply` with `wait`: what is read until everything that it changed is healthy, and how the wait ends."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import anyio
import pytest

from reconciler import Status
from reconciler.health.waiting import HOLDS
from reconciler.model.event import HealthChanged
from reconciler.model.health import Actor, Health, HealthRow, State, Wait
from reconciler.model.snapshot import Listing, Live, Snapshot
from reconciler.operations.applying.waiting import Reading, choose_reading
from reconciler.operations.reporting import OperationEvent, WaitBegan
from reconciler.operations.results import ApplyResult
from reconciler.testing import Sandbox
from tests.harness.workspaces import Document, open_on, policy, write_project

DAY = 86_400.0


class MovedClock:
    """Time passes only in sleep, for the apply and for the platform. `at` has what happens at which second."""

    def __init__(self, sandbox: Sandbox, at: dict[float, Callable[[], object]]) -> None:
        self.sandbox, self.at, self.seconds = sandbox, at, 0.0
        self.start = time.time()

    def now(self) -> float:
        return self.seconds

    def wall(self) -> float:
        return self.start + self.seconds

    async def sleep(self, seconds: float) -> None:
        self.seconds += seconds
        self.sandbox.move_clock(seconds=self.seconds)
        for moment in [moment for moment in self.at if moment <= self.seconds]:
            self.at.pop(moment)()
        await asyncio.sleep(0)


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(agent=True) as sandbox:
        yield sandbox


def domain_with_policy(name: str) -> Document:
    """A domain with a certificate that the platform obtains."""
    spec = {"domain": f"{name}.example.com", "certificate_management_policy": {"authority": "letsencrypt"}}
    return {"kind": "ReservedDomain", "name": name, "spec": spec}


class Waiting:
    """Applies projects on a sandbox, with a clock that both share."""

    def __init__(self, sandbox: Sandbox, root: Path) -> None:
        self.sandbox, self.root = sandbox, root
        self.events: list[OperationEvent] = []
        self.seconds = 0.0  # that the last apply waited
        self.reads: list[str] = []  # requests of its wait

    async def apply(
        self,
        *documents: Document,
        wait: float | None = 600,
        at: dict[float, Callable[[], object]] | None = None,
        stop: asyncio.Event | None = None,
        settings: str = "",
    ) -> ApplyResult:
        write_project(self.root, *documents, settings=settings)
        clock = MovedClock(self.sandbox, dict(at or {}))
        workspace = open_on(self.sandbox, self.root, clock=clock, now=clock.wall)
        self.events, began = [], [0, 0.0]

        def note(event: OperationEvent) -> None:
            self.events.append(event)
            if isinstance(event, WaitBegan):
                began[:] = [len(self.sandbox.log()), clock.seconds]

        result = await workspace.apply(wait=wait, on_event=note, stop=stop)
        self.seconds = clock.seconds - began[1]
        self.reads = [f"{entry['method']} {entry['path']}" for entry in self.sandbox.log()[int(began[0]) :]]
        return result

    @property
    def changes(self) -> list[tuple[str, Wait]]:
        return [(event.row.address, event.wait) for event in self.events if isinstance(event, HealthChanged)]


@pytest.fixture
def waiting(sandbox: Sandbox, tmp_path: Path) -> Waiting:
    return Waiting(sandbox, tmp_path / "project")


def waits(result: ApplyResult) -> dict[str, Wait]:
    assert result.health is not None
    return {row.address: wait for row, wait in result.health.rows}


def row_of(result: ApplyResult, address: str) -> HealthRow:
    assert result.health is not None
    return next(row for row, _ in result.health.rows if row.address == address)


async def test_an_apply_waits_until_the_certificate_is_issued(waiting: Waiting) -> None:
    waiting.sandbox.provision({"host": "*", "delay": 90})
    result = await waiting.apply(domain_with_policy("shop"), policy("office"))
    assert (result.status, result.exit_code) == (Status.APPLIED, 0)
    assert waits(result) == {"ReservedDomain/shop": Wait.READY}  # a policy has no health
    assert 90 <= waiting.seconds < 90 + 31
    first, *_, last = waiting.changes
    assert (first, last) == (("ReservedDomain/shop", Wait.WAITING), ("ReservedDomain/shop", Wait.READY))


async def test_without_wait_nothing_is_read_after_the_apply(waiting: Waiting) -> None:
    waiting.sandbox.provision({"host": "*", "delay": 90})
    result = await waiting.apply(domain_with_policy("shop"), wait=None)
    assert (result.health, result.exit_code) == (None, 0)
    assert not [event for event in waiting.events if isinstance(event, WaitBegan | HealthChanged)]


async def test_only_objects_that_are_not_ready_are_read(waiting: Waiting) -> None:
    await waiting.apply(*(domain_with_policy(f"old-{number}") for number in range(5)))
    waiting.sandbox.provision({"host": "slow.*", "delay": 100})
    waiting.sandbox.forget_log()
    result = await waiting.apply(
        *(domain_with_policy(f"old-{number}") for number in range(5)), domain_with_policy("slow")
    )
    [domain] = [row.id for row, _ in result.health.rows] if result.health else []
    assert set(waiting.reads) == {f"GET /reserved_domains/{domain}"}
    assert len(waiting.reads) < 20


async def test_a_missing_record_ends_the_wait_after_30_seconds_with_exit_code_7(waiting: Waiting) -> None:
    waiting.sandbox.provision({"host": "*", "error_code": "DNS_ERROR"}, retry_after=DAY)
    result = await waiting.apply(domain_with_policy("shop"), policy("office"))
    assert (result.status, result.exit_code) == (Status.APPLIED, 7)
    assert waits(result) == {"ReservedDomain/shop": Wait.FAILED}
    assert HOLDS <= waiting.seconds < 2 * HOLDS + 31
    row = row_of(result, "ReservedDomain/shop")
    [domain] = waiting.sandbox.get("/reserved_domains")["reserved_domains"]
    assert f"shop.example.com CNAME {domain['cname_target']}" in row.health.advice
    assert row.health.actor is Actor.ZONE_OWNER


async def test_a_record_that_is_set_during_the_wait_ends_it_well(waiting: Waiting) -> None:
    waiting.sandbox.provision({"host": "*", "error_code": "DNS_ERROR", "retry_after": 60})
    result = await waiting.apply(domain_with_policy("shop"), at={100.0: waiting.sandbox.provision})
    assert (result.exit_code, waits(result)) == (0, {"ReservedDomain/shop": Wait.READY})
    assert waiting.seconds >= 100


async def test_a_wait_ends_at_its_timeout(waiting: Waiting) -> None:
    waiting.sandbox.provision({"host": "*", "delay": DAY})
    result = await waiting.apply(domain_with_policy("shop"), wait=45)
    assert (result.exit_code, waits(result)) == (7, {"ReservedDomain/shop": Wait.FAILED})
    assert waiting.seconds == pytest.approx(45)


async def test_a_healthy_object_is_reported_although_another_fails(waiting: Waiting) -> None:
    waiting.sandbox.provision({"host": "bad.*", "error_code": "DNS_ERROR", "retry_after": DAY}, {"host": "*"})
    result = await waiting.apply(domain_with_policy("bad"), domain_with_policy("good"))
    assert waits(result) == {"ReservedDomain/bad": Wait.FAILED, "ReservedDomain/good": Wait.READY}
    assert result.exit_code == 7


async def test_another_failure_wins_over_exit_code_7(waiting: Waiting) -> None:
    waiting.sandbox.provision({"host": "*", "error_code": "DNS_ERROR"}, retry_after=DAY)
    waiting.sandbox.fault("POST /ip_policies", then="status", status=400, times=0)
    result = await waiting.apply(domain_with_policy("shop"), policy("office"))
    assert (result.status, result.exit_code) == (Status.PARTIAL, 5)
    assert waits(result) == {"ReservedDomain/shop": Wait.FAILED}


async def test_a_failed_apply_is_not_waited_for(waiting: Waiting) -> None:
    waiting.sandbox.fault("POST /*", then="status", status=400, times=0)
    result = await waiting.apply(domain_with_policy("shop"))
    assert (result.status, result.exit_code, result.health) == (Status.FAILED, 1, None)


async def test_a_stopped_wait_leaves_the_apply_as_it_is_and_exits_with_130(waiting: Waiting) -> None:
    stop = asyncio.Event()
    waiting.sandbox.provision({"host": "*", "delay": DAY})
    result = await waiting.apply(domain_with_policy("shop"), stop=stop, at={20.0: stop.set})
    assert (result.status, result.exit_code) == (Status.APPLIED, 130)
    assert waits(result) == {"ReservedDomain/shop": Wait.WAITING}
    assert waiting.seconds < 60
    again = await waiting.apply(domain_with_policy("shop"), wait=None)
    assert again.status is Status.UNCHANGED


async def test_an_error_while_waiting_is_read_again(waiting: Waiting) -> None:
    waiting.sandbox.provision({"host": "*", "delay": 60})

    def break_reads() -> None:
        waiting.sandbox.fault("GET /reserved_domains/*", then="status", status=400, times=2)

    result = await waiting.apply(domain_with_policy("shop"), at={1.0: break_reads})
    assert (result.exit_code, waits(result)) == (0, {"ReservedDomain/shop": Wait.READY})


async def test_backends_are_unknown_and_not_waited_for_if_the_key_may_not_read_tunnels(waiting: Waiting) -> None:
    waiting.sandbox.fault("GET /tunnels*", then="status", status=403, times=0)
    backend = {"kind": "TunnelGroupBackend", "name": "shop", "spec": {"labels": {"app": "shop"}}}
    with anyio.fail_after(20):
        result = await waiting.apply(backend)
    assert (result.exit_code, waits(result)) == (0, {"TunnelGroupBackend/shop": Wait.REPORTED})
    assert row_of(result, "TunnelGroupBackend/shop").health.state is State.UNKNOWN


async def test_an_object_that_is_deleted_during_the_wait_is_unknown_and_not_waited_for(waiting: Waiting) -> None:
    waiting.sandbox.provision({"host": "*", "delay": DAY})

    def delete() -> None:
        [domain] = waiting.sandbox.get("/reserved_domains")["reserved_domains"]
        waiting.sandbox.delete(f"/reserved_domains/{domain['id']}")

    result = await waiting.apply(domain_with_policy("shop"), at={20.0: delete})
    assert (result.exit_code, waits(result)) == (0, {"ReservedDomain/shop": Wait.REPORTED})
    assert row_of(result, "ReservedDomain/shop").health.state is State.UNKNOWN


# --- single objects or lists ------------------------------------------------------------------------------------------


def account(domains: int, **others: int) -> Snapshot:
    counts: dict[str, int] = {"ReservedDomain": domains, **others}
    return Snapshot(
        {kind: Listing(tuple(Live(kind, f"{kind}{n}", {}) for n in range(count))) for kind, count in counts.items()}
    )


def rows(kind: str, count: int, actor: Actor = Actor.PLATFORM) -> list[tuple[tuple[str, str], HealthRow]]:
    health = Health(State.PROGRESSING, actor=actor)
    return [((kind, f"{kind}{n}"), HealthRow("", f"{kind}{n}", health)) for n in range(count)]


@pytest.mark.parametrize(
    ("existing", "waiting_for", "lists", "requests"),
    [(1, 1, (), 1), (99, 2, ("ReservedDomain",), 1), (250, 3, (), 3), (250, 4, ("ReservedDomain",), 3)],
)
def test_a_list_is_read_if_it_is_fewer_requests_than_the_objects(
    existing: int, waiting_for: int, lists: tuple[str, ...], requests: int
) -> None:
    reading = choose_reading(account(existing), rows("ReservedDomain", waiting_for))
    assert (reading.lists, reading.requests) == (lists, requests)
    assert len(reading.objects) == (0 if lists else waiting_for)


def test_the_list_of_tunnels_shows_whether_an_agent_is_connected() -> None:
    reading = choose_reading(account(1, HTTPSEdge=1, Tunnel=130), rows("HTTPSEdge", 1, Actor.AGENT))
    assert reading == Reading((), ("Tunnel",), 2)
