"""The life of an object of each kind that has health: it works, something breaks it, and it works again.

The objects are those of a sandbox process with an agent; the health is what the product says of its lists.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from reconciler import kinds
from reconciler.engine.observe import observe
from reconciler.health.facts import Facts
from reconciler.kinds import read_only
from reconciler.model.health import State, read_instant
from reconciler.model.snapshot import Live
from tests.harness.platform import SandboxProcess, open_client
from tests.harness.tiers import first_of_each
from tests.kinds import pems
from tests.sandbox.account import Account

ALL = (*kinds.list_planned(), *read_only.KINDS)
LABELS = {"app": "shop"}
ANSWER = {"on_http_request": [{"actions": [{"type": "custom-response", "config": {"status_code": 200}}]}]}
FORWARD = {"on_http_request": [{"actions": [{"type": "forward-internal", "config": {"url": "https://shop.internal"}}]}]}


@pytest.fixture(scope="module")
def _process() -> Iterator[SandboxProcess]:
    with SandboxProcess(agent=True) as running:
        yield running


@pytest.fixture
def sandbox(_process: SandboxProcess) -> SandboxProcess:
    _process.reset()
    return _process


@dataclass(frozen=True)
class Life:
    """How an object of a kind lives.

    cause  what breaks it
    live   yields the object's locator when it works, is broken, and works again
    """

    kind: str
    cause: str
    live: Callable[[Account], Iterator[str]]


# --- certificates -----------------------------------------------------------------------------------------------------


def obtain_and_renew(collection: str) -> Callable[[Account], Iterator[str]]:
    """A name whose certificate the platform obtains, and whose renewal fails for DNS."""

    def live(account: Account) -> Iterator[str]:
        sandbox = account.sandbox
        id = account.id(collection, certificate_management_policy={})
        path = f"{collection}/{id}"
        [sandbox.get(path) for _ in range(2)]
        yield id
        sandbox.provision({"host": "*", "error_code": "DNS_ERROR"})
        sandbox.move_clock(days=61)
        [sandbox.get(path) for _ in range(2)]
        yield id
        sandbox.provision()
        [sandbox.get(path) for _ in range(2)]
        yield id

    return live


def move_before(account: Account, end: str, days: float) -> None:
    moment = read_instant(end)
    assert moment is not None
    account.sandbox.move_clock(seconds=moment - time.time() - days * 86_400)


def upload_and_renew(collection: str, *, is_authority: bool) -> Callable[[Account], Iterator[str]]:
    """A certificate that is about to expire and then expired, and the one that is uploaded instead."""

    def upload(account: Account, until: int) -> dict[str, Any]:
        pem = pems.certificate("life", ca=is_authority, until=until)
        body = (
            {"ca_pem": pem} if is_authority else {"certificate_pem": pem, "private_key_pem": pems.private_key("life")}
        )
        return account.make(collection, **body)

    def live(account: Account) -> Iterator[str]:
        first = upload(account, 2040)
        yield first["id"]
        move_before(account, first["not_after"], days=13)
        yield first["id"]
        move_before(account, first["not_after"], days=-1)
        yield first["id"]
        yield upload(account, 2050)["id"]

    return live


def sign_and_renew(collection: str) -> Callable[[Account], Iterator[str]]:
    """A certificate for SSH, and the one that is issued when it expires."""

    def issue(account: Account, days: float) -> dict[str, Any]:
        now = read_instant(account.sandbox.get("/_sandbox/clock")["now"])
        assert now is not None
        until = datetime.fromtimestamp(now, UTC) + timedelta(days=days)
        return account.make(collection, valid_until=until.strftime("%Y-%m-%dT%H:%M:%SZ"))

    def live(account: Account) -> Iterator[str]:
        first = issue(account, 90)
        yield first["id"]
        move_before(account, first["valid_until"], days=13)
        yield first["id"]
        move_before(account, first["valid_until"], days=-1)
        yield first["id"]
        yield issue(account, 90)["id"]

    return live


# --- credentials ------------------------------------------------------------------------------------------------------


def disable_owner(collection: str) -> Callable[[Account], Iterator[str]]:
    """A credential whose owner is disabled for a while."""

    def live(account: Account) -> Iterator[str]:
        bot = account.id("/bot_users")
        id = account.id(collection, owner_id=bot)
        yield id
        account.sandbox.patch(f"/bot_users/{bot}", {"active": False})
        yield id
        account.sandbox.patch(f"/bot_users/{bot}", {"active": True})
        yield id

    return live


# --- what agents serve ------------------------------------------------------------------------------------------------


def start(account: Account, path: str, **settings: Any) -> str:
    """Opens a tunnel or an endpoint of the agent, and returns its name."""
    with open_client(account.sandbox.agent_url) as agent:
        answer = agent.post(f"/api/{path}", json={"name": "shop", **settings})
    assert answer.status_code in (200, 201), answer.text
    return "shop"


def tunnel_group(account: Account) -> str:
    """A backend with a tunnel that has its labels."""
    start(account, "tunnels", addr="8080", labels=[f"{key}={text}" for key, text in LABELS.items()])
    return account.id("/backends/tunnel_group", labels=LABELS)


def leave_and_return(account: Account, id: str) -> Iterator[str]:
    """The agent is away for two hours."""
    yield id
    account.sandbox.delete("/_sandbox/agent")
    account.sandbox.move_clock(seconds=7200)
    yield id
    account.sandbox.put("/_sandbox/agent", {})
    yield id


def put_behind_agent(make: Callable[[Account, str], str]) -> Callable[[Account], Iterator[str]]:
    """An object that serves what `make` gets: the id of a backend."""
    return lambda account: leave_and_return(account, make(account, tunnel_group(account)))


def make_edge(collection: str) -> Callable[[Account, str], str]:
    return lambda account, backend: account.id(collection, backend={"backend_id": backend})


def make_route(account: Account, backend: str) -> tuple[str, str]:
    edge = account.id("/edges/https")
    return edge, account.id(f"/edges/https/{edge}/routes", backend={"backend_id": backend})


def open_at_agent(path: str, **settings: Any) -> Callable[[Account], Iterator[str]]:
    """A tunnel or an endpoint of an agent."""

    def live(account: Account) -> Iterator[str]:
        account.sandbox.post("/reserved_domains", {"domain": "shop.example.com"})
        name = start(account, path, **settings)
        yield from leave_and_return(account, name)

    return live


def forward_to_internal(account: Account) -> Iterator[str]:
    """An endpoint whose policy forwards to an internal endpoint that is deleted, and created again."""
    internal = {"type": "cloud", "url": "https://shop.internal", "traffic_policy": json.dumps(ANSWER)}
    target = account.sandbox.post("/endpoints", internal)["id"]
    id = account.id("/endpoints", traffic_policy=json.dumps(FORWARD))
    yield id
    account.sandbox.delete(f"/endpoints/{target}")
    account.sandbox.move_clock(seconds=7200)
    yield id
    account.sandbox.post("/endpoints", internal)
    yield id


def operate(account: Account) -> Iterator[str]:
    """An operator, whose session has a credential of its owner."""
    owner = account.make("/kubernetes_operators")
    credential = account.sandbox.post("/credentials", {})
    account.sandbox.post("/_sandbox/agent", {"authtoken": credential["token"]})
    yield from leave_and_return(account, owner["id"])


# --- events -----------------------------------------------------------------------------------------------------------


def destination(account: Account) -> Iterator[str]:
    subscription = account.make("/event_subscriptions", sources=[{"type": "ip_policy_created.v0"}])
    id = subscription["destinations"][0]["id"]
    yield id
    account.sandbox.delete(f"/event_subscriptions/{subscription['id']}")
    yield id
    account.make("/event_subscriptions", sources=[{"type": "ip_policy_created.v0"}], destination_ids=[id])
    yield id


def subscription(account: Account) -> Iterator[str]:
    id = account.id("/event_subscriptions", sources=[{"type": "ip_policy_created.v0"}])
    yield id
    account.sandbox.delete(f"/event_subscriptions/{id}/sources/ip_policy_created.v0")
    yield id
    account.sandbox.post(f"/event_subscriptions/{id}/sources", {"type": "ip_policy_created.v0"})
    yield id


LIVES = (
    Life("ReservedDomain", "DNS", obtain_and_renew("/reserved_domains")),
    Life("AgentIngress", "DNS", obtain_and_renew("/agent_ingresses")),
    Life("TLSCertificate", "time", upload_and_renew("/tls_certificates", is_authority=False)),
    Life("CertificateAuthority", "time", upload_and_renew("/certificate_authorities", is_authority=True)),
    Life("SSHHostCertificate", "time", sign_and_renew("/ssh_host_certificates")),
    Life("SSHUserCertificate", "time", sign_and_renew("/ssh_user_certificates")),
    Life("TunnelCredential", "owner", disable_owner("/credentials")),
    Life("SSHCredential", "owner", disable_owner("/ssh_credentials")),
    Life("APIKey", "owner", disable_owner("/api_keys")),
    Life("HTTPSEdge", "agent", put_behind_agent(lambda account, backend: make_route(account, backend)[0])),
    Life("HTTPSEdgeRoute", "agent", put_behind_agent(lambda account, backend: make_route(account, backend)[1])),
    Life("TLSEdge", "agent", put_behind_agent(make_edge("/edges/tls"))),
    Life("TCPEdge", "agent", put_behind_agent(make_edge("/edges/tcp"))),
    Life("CloudEndpoint", "endpoint", forward_to_internal),
    Life("TunnelGroupBackend", "agent", put_behind_agent(lambda _, backend: backend)),
    Life(
        "FailoverBackend", "agent", put_behind_agent(lambda a, backend: a.id("/backends/failover", backends=[backend]))
    ),
    Life(
        "WeightedBackend",
        "agent",
        put_behind_agent(lambda a, backend: a.id("/backends/weighted", backends={backend: 1})),
    ),
    Life("AgentTunnel", "agent", open_at_agent("tunnels", proto="http", addr="8080", domain="shop.example.com")),
    Life(
        "AgentEndpoint", "agent", open_at_agent("endpoints", url="https://shop.example.com", upstream={"url": "8080"})
    ),
    Life("KubernetesOperator", "agent", operate),
    Life("EventDestination", "subscription", destination),
    Life("EventSubscription", "sources", subscription),
)


def test_every_kind_with_health_has_a_life() -> None:
    assert sorted(life.kind for life in LIVES) == sorted(kind.name for kind in ALL if kind.health is not None)


@pytest.mark.parametrize("life", first_of_each(LIVES, lambda life: life.cause), ids=lambda life: life.kind)
async def test_an_object_is_healthy_then_degraded_then_healthy_again(sandbox: SandboxProcess, life: Life) -> None:
    states = []
    known: Live | None = None
    for id in life.live(Account(sandbox)):
        facts = await read_facts(sandbox)
        # An agent lists nothing while it is away: what it listed before is judged, as by an apply that waits.
        known = next((live for live in facts.list_objects(life.kind) if live.id == id), known)
        assert known is not None
        assert known.id == id
        health = facts.judge(known)
        assert health is not None
        assert health.state is State.HEALTHY or (health.reason and health.advice)
        states.append(health.state)
    assert (states[0], {*states[1:-1]}, states[-1]) == (State.HEALTHY, {State.DEGRADED}, State.HEALTHY)


async def read_facts(sandbox: SandboxProcess) -> Facts:
    """All lists of the account, by the clock of the platform."""
    async with sandbox.open_reader() as reader:
        snapshot = await observe(reader, ALL)
    now = read_instant(sandbox.get("/_sandbox/clock")["now"])
    assert now is not None
    return Facts(snapshot, now)
