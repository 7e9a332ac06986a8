"""A law: each operation gives the same status, body and error in process and over a socket."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from reconciler.api.platform import HTTPPlatform
from reconciler.engine.ports import Failure
from reconciler.testing import Emulator, Sandbox, SandboxProcess
from tests.harness.tiers import first_of_each
from tests.sandbox.account import Account
from tests.sandbox.table import ROWS, Row, prepare

pytestmark = pytest.mark.usefixtures("over_socket")

# Parts that differ between runs: ids, tokens, keys, times, addresses.
_RANDOM = re.compile(
    r"https?://(sandbox|127\.0\.0\.1:\d+)|ssh-ed25519 \S+|[0-9A-Za-z+/=]{40,}|[0-9A-Za-z]{27}(_[0-9A-Za-z]{21})?|"
    r"\d{4}-\d\d-\d\dT[\d:]+Z|[0-9a-f.]+(?=\.(cname|agent)\.sandbox)|-----BEGIN [^-]+-----[^-]+-----END [^-]+-----"
)


def mask(value: Any) -> Any:
    match value:
        case bytes():
            return mask(value.decode())
        case str():
            return _RANDOM.sub("…", value)
        case dict():
            return {mask(key): mask(item) for key, item in value.items()}
        case list() | tuple():
            return [mask(item) for item in value]
    return value


async def both(sandbox: SandboxProcess, see: Callable[[Emulator, HTTPPlatform], Awaitable[Any]]) -> tuple[Any, Any]:
    async with sandbox.open_platform() as over_socket, Sandbox() as own, own.open_platform() as in_process:
        return mask(await see(own, in_process)), mask(await see(sandbox, over_socket))


async def outcome(platform: HTTPPlatform, method: str, path: str, body: Any, list_key: str = "") -> Any:
    """The result or the error of the engine's port."""
    try:
        if list_key:
            return [page async for page in platform.pages(path, list_key)]
        return await (platform.get(path) if method == "GET" else platform.send(method, path, body))
    except Failure as failure:
        retry_after = getattr(failure, "retry_after", None)
        return type(failure).__name__, str(failure), failure.code, failure.status, retry_after


def _shape(row: Row) -> tuple[str, int, bool]:
    return row.method, row.path.count("/"), bool(row.list_key)


@pytest.mark.parametrize("row", first_of_each(ROWS, _shape), ids=lambda row: f"{row.method} {row.path}")
async def test_an_operation_succeeds_with_the_same_response_both_ways(sandbox: SandboxProcess, row: Row) -> None:
    async def see(emulator: Emulator, platform: HTTPPlatform) -> Any:
        path, body = prepare(Account(emulator), row)
        by_port = await outcome(platform, row.method, path, body, row.list_key)
        if row.method != "GET":
            emulator.reset()
            path, body = prepare(Account(emulator), row)
        plain = emulator.request(row.method, path, body)
        headers = {name: value for name, value in plain.headers.items() if name not in ("date", "content-length")}
        return by_port, plain.status_code, headers, plain.json() if plain.content else None

    in_process, over_socket = await both(sandbox, see)
    assert in_process == over_socket
    assert in_process[1] == row.status


async def test_operations_fail_with_the_same_error_both_ways(sandbox: SandboxProcess) -> None:
    async def see(emulator: Emulator, platform: HTTPPlatform) -> Any:
        results = {}
        for row in ROWS:
            path, body = re.sub(r"{\w+}", "nobody", row.path), {"nonsense": [1]} if row.method != "GET" else None
            results[f"{row.method} {row.path}"] = [
                await outcome(platform, row.method, path, body),
                await outcome(platform, row.method, f"{path}?limit=none", None),
                emulator.request(row.method, path, body).content,
            ]
        return results

    in_process, over_socket = await both(sandbox, see)
    assert in_process == over_socket


@pytest.mark.parametrize("method", ["GET", "POST", "PATCH", "DELETE"])
@pytest.mark.parametrize(
    "fault",
    [
        {"then": "cut"},
        {"then": "commit-then-cut"},
        {"then": "status", "status": 503, "headers": {"Retry-After": "0"}},
        {"then": "commit-then-status", "status": 500},
        {"then": "status", "status": 302, "headers": {"Location": "https://elsewhere.example.com/"}},
        {"then": "status", "status": 404, "body": "<html>"},
        {"then": "answer", "delay": 0.01, "pace": 0.001},
    ],
    ids=lambda fault: "-".join(map(str, [fault["then"], fault.get("status", "")])),
)
async def test_a_fault_has_the_same_effect_both_ways(
    sandbox: SandboxProcess, method: str, fault: dict[str, Any]
) -> None:
    async def see(emulator: Emulator, platform: HTTPPlatform) -> Any:
        identity = emulator.post("/bot_users", {"name": "a"})["id"]
        emulator.forget_log()
        emulator.fault(f"{method} /bot_users*", **fault)
        path = "/bot_users" if method == "POST" else f"/bot_users/{identity}"
        seen = await outcome(platform, method, path, {"name": "b"} if method in ("POST", "PATCH") else None)
        log = [(call["method"], call["path"], call["status"]) for call in emulator.log()]
        return seen, log, emulator.collection("/bot_users", "bot_users")

    in_process, over_socket = await both(sandbox, see)
    assert in_process == over_socket


@pytest.mark.parametrize("then", ["hang", "commit-then-hang", "commit-then-truncate"])
@pytest.mark.parametrize("method", ["POST", "DELETE"])
async def test_a_missing_response_is_lost_both_ways(sandbox: SandboxProcess, method: str, then: str) -> None:
    async def see(emulator: Emulator, platform: HTTPPlatform) -> Any:
        identity = emulator.post("/bot_users", {"name": "a"})["id"]
        emulator.fault(f"{method} /bot_users*", then=then)
        path = "/bot_users" if method == "POST" else f"/bot_users/{identity}"
        async with emulator.open_platform(emulator.account(timeout=0.2)) as impatient:
            kind, _, *rest = await outcome(impatient, method, path, {"name": "b"} if method == "POST" else None)
        return kind, rest, emulator.collection("/bot_users", "bot_users")

    in_process, over_socket = await both(sandbox, see)
    assert in_process == over_socket
    assert in_process[0] == "Lost"


async def test_many_sandboxes_in_one_loop_are_independent() -> None:
    async def live(number: int) -> list[str]:
        async with Sandbox(latency=0.002) as sandbox, sandbox.open_platform() as platform:
            for user in range(number):
                await platform.send("POST", "/bot_users", {"name": f"{number}-{user}"})
            return [user["name"] for user in sandbox.collection("/bot_users", "bot_users")]

    for number, names in enumerate(await asyncio.gather(*map(live, range(20)))):
        assert sorted(names) == sorted(f"{number}-{user}" for user in range(number))
