"""Each fault of the table, met by each operation over real sockets, ends as it says, and one clean run mends it."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from reconciler.api import client as http
from reconciler.api.client import Account
from reconciler.engine.ports import Refused
from reconciler.model.event import Ended, Outcome
from reconciler.model.value import Secret
from tests.faults.matrix.table import FAULTS, SILENT, Cell, cells
from tests.faults.matrix.world import IMPATIENT, PATIENT, Astray, Run, SkippingClock, Stack
from tests.harness.platform import KEY, Sandbox
from tests.harness.tiers import first_of_each

WORDS = {"provider": "github", "secret": "s3cr3t-of-the-hook"}
NOWHERE = "nowhere.invalid"


@dataclass(frozen=True)
class Scene:
    """What is there before, what is to be done, and the request that meets the trouble."""

    on: str  # as the sandbox's faults name requests
    part: str  # of the address, for a request that is led astray
    collection: str
    key: str


SCENES = {
    "list": Scene("GET /ip_policies", "/ip_policies", "/ip_policies", "ip_policies"),
    "get": Scene("GET /edges/https/*/webhook_verification", "/webhook_verification", "/edges/https", "https_edges"),
    "create": Scene("POST /ip_policies", "/ip_policies", "/ip_policies", "ip_policies"),
    "create named": Scene("POST /bot_users", "/bot_users", "/bot_users", "bot_users"),
    "create secret": Scene("POST /credentials", "/credentials", "/credentials", "credentials"),
    "patch": Scene("PATCH /ip_policies/*", "/ip_policies", "/ip_policies", "ip_policies"),
    "put": Scene("PUT /edges/tls/*/ip_restriction", "/ip_restriction", "/edges/tls", "tls_edges"),
    "delete": Scene("DELETE /ip_policies/*", "/ip_policies", "/ip_policies", "ip_policies"),
}


async def prepare(stack: Stack, operation: str) -> None:
    """Declares what takes exactly one request of the operation to be so."""
    match operation:
        case "list":
            stack.kinds = ("IPPolicy",)
            former = stack.declare("IPPolicy/former", {"description": "former"})
            await stack.run()
            stack.remove(former)
            stack.declare("IPPolicy/office", {"description": "Office"})
        case "get":
            stack.kinds = ("HTTPSEdgeRoute",)
            edge = stack.sandbox.post("/edges/https", {})["id"]
            route = stack.sandbox.post(f"/edges/https/{edge}/routes", {"match_type": "exact_path", "match": "/"})["id"]
            live = f"/edges/https/{edge}/routes/{route}/webhook_verification"
            stack.sandbox.put(live, {"provider": "gitlab", "secret": "another"})
            hidden: dict[str, Any] = {"https_edges": [], "uri": "", "next_page_uri": None}
            stack.sandbox.fault("GET /edges/https", then="status", status=200, body=hidden, times=0)
            spec = {"edge_id": edge, "webhook_verification": {**WORDS, "secret": Secret(WORDS["secret"], "test")}}
            stack.declare("HTTPSEdgeRoute/hook", spec, id=route)
        case "create":
            stack.kinds = ("IPPolicy",)
            stack.declare("IPPolicy/office", {"description": "Office"})
        case "create named":
            stack.kinds = ("BotUser",)
            stack.declare("BotUser/berlin", {"name": "berlin"})
        case "create secret":
            stack.kinds = ("TunnelCredential",)
            stack.secret("TunnelCredential/agent")
        case "patch":
            stack.kinds = ("IPPolicy",)
            stack.declare("IPPolicy/office", {"description": "Office"})
            await stack.run()
            stack.declare("IPPolicy/office", {"description": "Office and home"})
        case "put":
            stack.kinds = ("TLSEdge",)
            policy, other = (stack.sandbox.post("/ip_policies", {})["id"] for _ in range(2))
            stack.declare("TLSEdge/pay", {"ip_restriction": {"ip_policy_ids": [policy]}})
            await stack.run()
            (edge,) = stack.sandbox.get("/edges/tls")["tls_edges"]
            stack.sandbox.put(f"/edges/tls/{edge['id']}/ip_restriction", {"ip_policy_ids": [other]})
        case "delete":
            stack.kinds = ("IPPolicy",)
            former = stack.declare("IPPolicy/former", {"description": "former"})
            await stack.run()
            stack.remove(former)


@asynccontextmanager
async def trouble(cell: Cell, stack: Stack, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    scene, fault = SCENES[cell.operation], FAULTS[cell.fault]
    times = 0 if cell.lasting else 1
    if isinstance(fault, dict):
        stack.sandbox.fault(scene.on, times=times, **fault)
        yield
        return
    with socket.create_server(("127.0.0.1", 0)) as server:
        closed = server.getsockname()[1]
    address = f"http://127.0.0.1:{closed}" if fault == "refused" else f"https://{NOWHERE}"
    _nobody_by_that_name(monkeypatch)
    account = Account(address, Secret(KEY, "test"), timeout=PATIENT, requests_per_minute=0)
    async with http.open_client(account, stack.clock, read_only=False) as other:
        stack.wrap = lambda client: Astray(client, other, scene.on.partition(" ")[0], scene.part, times)
        yield


def _nobody_by_that_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the resolver says of such a name where there is a network."""
    real = socket.getaddrinfo

    def resolve(host: Any, *rest: Any, **more: Any) -> Any:
        if host == NOWHERE:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return real(host, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)


async def outcome(stack: Stack, cell: Cell) -> tuple[str, str]:
    """The letter of the table, and what the user was told."""
    assert isinstance(stack.clock, SkippingClock)
    before = len(stack.clock.slept)
    try:
        run = await stack.run()
    except Refused as failure:
        return "F", str(failure)
    waited = len(stack.clock.slept) > before
    if run.plan.errors:
        return "U", str(run.plan.errors[0])
    listing = run.snapshot.of(stack.kinds[0])
    if not listing.complete:
        return "U", listing.why
    ((ended, *rest), why) = _ends(run)
    if not all(event.outcome in (Outcome.DONE, Outcome.ALREADY) for event in (ended, *rest)):
        assert ended.outcome is Outcome.FAILED
        return "F", why
    if ended.outcome is Outcome.ALREADY:
        still_there = bool(stack.sandbox.get(SCENES[cell.operation].collection)[SCENES[cell.operation].key])
        return ("L" if cell.operation != "delete" else "B" if still_there else "G"), why
    if cell.operation == "create secret" and any("DELETE" in call for call in stack.sandbox.calls()):
        return "A", why
    if cell.operation == "get" and listing.objects[0].body["webhook_verification"] is None:
        return "N", why
    return ("R" if waited else "D"), why


def _ends(run: Run) -> tuple[list[Ended], str]:
    ended = list(run.end_events.values())
    return ended, "; ".join(event.why for event in ended if event.why)


def no_double(stack: Stack, operation: str) -> None:
    """What is declared is there once, with its secret where it has one, and what is not declared is gone."""
    scene = SCENES[operation]
    live = stack.sandbox.get(scene.collection)[scene.key]
    if operation == "delete":
        assert live == []
        return
    assert len(live) == 1
    if operation == "create secret":
        token = (stack.root / "agent.token").read_text()
        assert token.startswith(live[0]["id"].removeprefix("cr_"))


def _column(cell: Cell) -> tuple[str, bool, str]:
    return cell.operation, cell.lasting, cell.outcome


CELLS = first_of_each(cells(), lambda cell: cell.turn, _column)


@pytest.mark.parametrize("cell", CELLS, ids=str)
async def test_each_fault_ends_as_in_the_table(
    cell: Cell, sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = Stack(sandbox, tmp_path)
    await prepare(stack, cell.operation)
    stack.account = {"timeout": IMPATIENT if cell.fault in SILENT else PATIENT}
    sandbox.forget_log()
    async with trouble(cell, stack, monkeypatch):
        letter, why = await outcome(stack, cell)
    assert (letter, why) == (cell.outcome, why)
    if letter in "FU":
        assert why
        assert KEY not in why
    if letter == "U":
        assert sandbox.calls() == []
    stack.account = {}
    mending = await stack.converges()
    if letter not in "FUB":
        assert mending == []
    no_double(stack, cell.operation)
