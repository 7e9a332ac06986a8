"""Requests as they are sent, and the failure of each kind of bad response, over real sockets."""

from __future__ import annotations

import asyncio
import gzip
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from reconciler.api.budget import Ledger
from reconciler.api.client import Account, open_client
from reconciler.api.platform import open_platform, open_reader
from reconciler.engine.ownership import SendTime
from reconciler.engine.ports import Conflict, Failure, Gone, Lost, NotSent, Refused, Transient
from reconciler.engine.retry import READS
from reconciler.model.value import Json, Secret
from tests.api.wire import CUT, KEY, RESET, Wire, answer, wire
from tests.harness.engine import SeededChance, VirtualClock

METHODS = ["POST", "PATCH", "PUT", "DELETE"]


async def send_and_fail(method: str, *answers: Any, **more: Any) -> Failure:
    """The failure of one attempt; for a GET, that of the last retry."""
    async with wire(*answers) as server, open_platform(server.account(**more), clock=VirtualClock()) as platform:
        with pytest.raises(Failure) as failed:
            await (platform.get("/x") if method == "GET" else platform.send(method, "/x", {"a": 1}))
    assert KEY not in str(failed.value)
    return failed.value


async def test_a_request_has_key_version_user_agent_and_a_json_body() -> None:
    async with wire(answer({"id": "x"}, 201)) as server, open_platform(server.account()) as platform:
        assert await platform.send("POST", "/edges/tls", {"description": "ü"}) == {"id": "x"}
    (request,) = server.requests
    assert (request.method, request.target, request.body) == ("POST", "/edges/tls", '{"description":"ü"}'.encode())
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["service-version"] == "2"
    assert "ngrok-version" not in request.headers
    assert request.headers["content-type"] == "application/json"
    assert request.headers["user-agent"].startswith("reconciler/")


async def test_the_profile_ngrok_has_another_version_header() -> None:
    async with (
        wire(answer({})) as server,
        open_platform(server.account(profile="ngrok", requests_per_minute=0)) as platform,
    ):
        await platform.get("/x")
    assert server.requests[0].headers["ngrok-version"] == "2"
    assert "service-version" not in server.requests[0].headers


async def test_a_request_without_a_body_has_no_content_type() -> None:
    async with wire(answer(None, 204)) as server, open_platform(server.account()) as platform:
        assert await platform.send("DELETE", "/edges/tls/x") is None
    assert "content-type" not in server.requests[0].headers
    assert server.requests[0].body == b""


async def test_connections_are_reused() -> None:
    async with wire(answer({})) as server, open_reader(server.account()) as reader:
        for _ in range(3):
            await reader.get("/x")
    assert [request.connection for request in server.requests] == [1, 1, 1]


async def test_the_path_of_the_base_url_is_used() -> None:
    async with wire(answer({})) as server:
        account = Account(f"{server.base_url}/api/", Secret(KEY, "test"))
        async with open_reader(account) as reader:
            await reader.get("/edges/tls")
    assert server.requests[0].target == "/api/edges/tls"


STATUSES: list[tuple[int, type[Failure], type[Failure], type[Failure]]] = [  # status, GET, POST, PATCH
    (400, Refused, Refused, Refused),
    (401, Refused, Refused, Refused),
    (403, Refused, Refused, Refused),
    (404, Gone, Gone, Gone),
    (408, Transient, Lost, Transient),
    (409, Conflict, Conflict, Conflict),
    (410, Gone, Gone, Gone),
    (422, Refused, Refused, Refused),
    (425, Transient, Transient, Transient),
    (429, Transient, Transient, Transient),
    (500, Transient, Lost, Transient),
    (501, Refused, Refused, Refused),
    (502, Transient, Lost, Transient),
    (503, Transient, Lost, Transient),
    (504, Transient, Lost, Transient),
]


@pytest.mark.parametrize(("status", "get", "post", "patch"), STATUSES, ids=[str(row[0]) for row in STATUSES])
async def test_each_status_is_mapped_to_a_failure_by_method(status: int, get: Any, post: Any, patch: Any) -> None:
    body = answer({"error_code": "ERR_NGROK_9", "msg": "no", "status_code": status, "details": {}}, status)
    for method, kind in {"GET": get, "POST": post, "PATCH": patch, "PUT": patch, "DELETE": patch}.items():
        failure = await send_and_fail(method, body)
        assert (method, type(failure), failure.status, failure.code) == (method, kind, status, "ERR_NGROK_9")


@pytest.mark.parametrize("code", [446, 511, 18016, 18017, 381, 7122])
async def test_a_400_of_an_object_still_in_use_is_transient(code: int) -> None:
    failure = await send_and_fail("DELETE", answer({"error_code": f"ERR_NGROK_{code}", "msg": "in use"}, 400))
    assert isinstance(failure, Transient)


@pytest.mark.parametrize("status", [401, 403])
async def test_a_wrong_key_is_reported_as_missing_permission(status: int) -> None:
    failure = await send_and_fail("GET", answer({"msg": f"The key {KEY} is not known"}, status))
    assert isinstance(failure, Refused)
    assert failure.is_permission
    assert "(key) is not known" in str(failure)


async def test_a_message_of_the_platform_is_printed_without_control_sequences() -> None:
    message = "bad\x1b]0;title\x07 \x1b[31mred\x1b[0m\r\nline\u202e \x9b31m" + "x" * 1000
    failure = await send_and_fail("POST", answer({"msg": message, "details": {"operation_id": "op_1"}}, 400))
    text = str(failure)
    assert text.startswith("bad red line 31mxxx")
    assert text.endswith("… (status 400, op_1)")
    assert len(text) < 600
    assert text.isprintable()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "broken",
    [
        CUT,
        RESET,
        answer({"id": "x" * 100})[:-20] + CUT,
        b"HTTP/1.1 200 OK\r\nContent-Le" + CUT,
        b"nonsense\r\n\r\n" + CUT,
    ],
    ids=["closed", "reset", "truncated body", "truncated head", "not HTTP"],
)
async def test_the_outcome_of_a_change_without_a_complete_response_is_unknown(method: str, broken: bytes) -> None:
    async with wire(answer({}), broken) as server, open_platform(server.account()) as platform:
        await platform.get("/x")  # over a connection that was used before, and over a new one below
        with pytest.raises(Lost):
            await platform.send(method, "/x", {})
    assert isinstance(await send_and_fail(method, broken), Lost)


@pytest.mark.parametrize("method", METHODS)
async def test_one_exchange_is_one_request_even_if_its_connection_breaks(method: str) -> None:
    """Many HTTP clients repeat a PUT or DELETE on a connection that was used before."""
    answers = (answer({}), CUT, answer({"id": "x"}))
    async with wire(*answers) as server, open_platform(server.account()) as platform:
        await platform.get("/x")
        with pytest.raises(Lost):
            await platform.send(method, "/x", {})
        assert [request.method for request in server.requests] == ["GET", method]


@dataclass
class FiveSeconds:
    """A check whose last reading is valid for five seconds."""

    clock: VirtualClock
    path: str = "/object"
    read_at: float = 0.0
    confirmed_at: float = -1.0
    refusal: Failure | None = None
    prepared: int = 0

    async def prepare(self) -> None:
        self.prepared += 1

    def is_due(self) -> bool:
        return self.clock.now() - self.read_at > 5

    async def confirm(self, read: Callable[[], Awaitable[Json]]) -> Mapping[str, Json]:
        if self.is_due():
            self.read_at = self.clock.now()
            await read()
        self.confirmed_at = self.clock.now()
        if self.refusal is not None:
            raise self.refusal
        return {"kept": 1}


@pytest.mark.parametrize("used", [3, 2])
async def test_a_check_runs_after_the_wait_for_the_budget_and_right_before_the_request(used: int) -> None:
    clock = VirtualClock()
    check = FiveSeconds(clock, read_at=-10 if used == 2 else 0)  # expired from the start, or only after the wait
    async with (
        wire(answer({})) as server,
        open_platform(server.account(requests_per_minute=3), clock=clock) as platform,
    ):
        for _ in range(used):
            await platform.get("/x")
        await platform.send("PATCH", "/object", {"a": 1}, check=check)
    assert [request.method for request in server.requests[used:]] == ["GET", "PATCH"]
    assert server.requests[-1].body == b'{"kept":1,"a":1}'
    assert check.read_at == check.confirmed_at == clock.now() == 60
    assert check.prepared == used - 1, "a check that expired during the wait waits again, for two requests"


class NeverFresh(FiveSeconds):
    """A check that expires in each wait, however short."""

    fresh: bool = False

    async def prepare(self) -> None:
        await super().prepare()
        self.fresh = True

    def is_due(self) -> bool:
        was_fresh, self.fresh = self.fresh, False
        return not was_fresh


async def test_a_check_that_expires_in_each_wait_runs_in_the_third_attempt_at_the_latest() -> None:
    clock = VirtualClock()
    check = NeverFresh(clock)
    async with (
        wire(answer({})) as server,
        open_platform(server.account(requests_per_minute=2), clock=clock) as platform,
    ):
        await asyncio.wait_for(platform.send("PATCH", "/object", {"a": 1}, check=check), 5)
        await platform.get("/x")
    assert (check.prepared, [request.method for request in server.requests]) == (3, ["GET", "PATCH", "GET"])
    assert clock.now() == 60


async def test_a_recent_check_sends_no_request() -> None:
    clock = VirtualClock()
    check = FiveSeconds(clock)
    async with wire(answer({})) as server, open_platform(server.account(), clock=clock) as platform:
        await platform.send("DELETE", "/object", check=check)
    assert check.prepared == 1
    assert [(request.method, request.body) for request in server.requests] == [("DELETE", b'{"kept":1}')]


async def test_a_request_that_its_check_refuses_is_not_sent_and_not_counted() -> None:
    clock = VirtualClock()
    check = FiveSeconds(clock, read_at=-10, refusal=Refused("of another stack"))
    async with (
        wire(answer({})) as server,
        open_platform(server.account(requests_per_minute=2), clock=clock) as platform,
    ):
        with pytest.raises(Refused, match="another stack"):
            await platform.send("PATCH", "/object", {"a": 1}, check=check)
        await platform.get("/x")
    assert [request.method for request in server.requests] == ["GET", "GET"]
    assert clock.now() == 0


async def test_a_create_uses_one_request_of_the_budget() -> None:
    """No object is read before it."""
    clock = VirtualClock()
    async with (
        wire(answer({})) as server,
        open_platform(server.account(requests_per_minute=2), clock=clock) as platform,
    ):
        clock.time = 5.0
        checks = [SendTime(clock), SendTime(clock)]
        for check in checks:
            await platform.send("POST", "/x", {"a": 1}, check=check)
    assert [(request.method, request.body) for request in server.requests] == [("POST", b'{"a":1}')] * 2
    assert (clock.now(), [check.sent_at for check in checks]) == (5, [5, 5])


async def test_the_lock_is_checked_after_the_object_is_read() -> None:
    order: list[str] = []
    clock = VirtualClock()

    async def before_write() -> None:
        order.append(f"lock after {len(server.requests)} requests")

    async with (
        wire(answer({})) as server,
        open_platform(server.account(), clock=clock, before_write=before_write) as platform,
    ):
        await platform.send("PATCH", "/object", {}, check=FiveSeconds(clock, read_at=-10))
    assert order[-1] == "lock after 1 requests"
    assert len(server.requests) == 2


@pytest.mark.parametrize("broken", [CUT, RESET, answer({"id": "x" * 100})[:-20] + CUT])
async def test_a_read_without_a_complete_response_is_retried(broken: bytes) -> None:
    answers = (broken, broken, answer({"id": "x"}))
    async with wire(*answers) as server, open_reader(server.account(), clock=VirtualClock()) as reader:
        assert await reader.get("/x") == {"id": "x"}
    assert isinstance(await send_and_fail("GET", broken), Transient)


@pytest.mark.parametrize("method", ["GET", *METHODS])
async def test_a_refused_connection_has_sent_nothing(method: str) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    account = Account(f"http://127.0.0.1:{port}", Secret(KEY, "test"))
    async with open_platform(account, clock=VirtualClock()) as platform:
        with pytest.raises(Transient, match=f"cannot reach http://127.0.0.1:{port}"):
            await (platform.get("/x") if method == "GET" else platform.send(method, "/x", {}))


async def test_an_address_is_not_redacted_although_a_secret_resembles_it() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}"
    alike = tuple(Secret(text, "test") for text in (address[:-1], f"{address}9", address))
    async with open_platform(Account(address, Secret(KEY, "test"), secrets=alike), clock=VirtualClock()) as platform:
        with pytest.raises(Transient, match=f"cannot reach {address}: "):
            await platform.get("/x")


async def test_an_unresolvable_name_has_sent_nothing() -> None:
    account = Account("https://nowhere.invalid:9", Secret(KEY, "test"))
    async with open_platform(account, clock=VirtualClock()) as platform:
        with pytest.raises(Transient, match="cannot reach"):
            await platform.send("POST", "/x", {})


def never_respond(server: Wire) -> None:
    return None


@pytest.mark.parametrize(("method", "kind"), [("GET", Transient), ("POST", Lost), ("PATCH", Lost)])
async def test_a_request_without_a_response_in_time_fails(method: str, kind: type[Failure]) -> None:
    failure = await send_and_fail(method, never_respond, timeout=0.05)
    assert (type(failure), "within 0.05 s" in str(failure)) == (kind, True)


async def test_a_slow_body_is_ended_by_the_timeout() -> None:
    endless = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\nContent-Type: application/json\r\n\r\n{"
    assert isinstance(await send_and_fail("POST", endless, timeout=0.05), Lost)


async def test_html_instead_of_json_is_reported() -> None:
    page = answer(b"<html>Welcome</html>", content_type="text/html; charset=utf-8")
    failure = await send_and_fail("GET", page)
    assert isinstance(failure, Refused)
    assert "returned text/html, not JSON (status 200)" in str(failure)
    assert isinstance(await send_and_fail("POST", page), Lost)


async def test_an_html_error_page_has_its_status() -> None:
    failure = await send_and_fail("GET", answer(b"<html>Bad gateway</html>", 502, "text/html"))
    assert (type(failure), failure.status) == (Transient, 502)


@pytest.mark.parametrize("content", [b'{"id": ', b"[" * 100_000, b"\xff\xfe"])
async def test_a_response_of_invalid_json_is_a_failure(content: bytes) -> None:
    assert isinstance(await send_and_fail("GET", answer(content)), Transient)
    assert isinstance(await send_and_fail("POST", answer(content)), Lost)


async def test_a_response_that_is_too_large_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reconciler.api.client.LARGEST", 1000)
    assert isinstance(await send_and_fail("GET", answer({"x": "y" * 2000})), Refused)
    assert isinstance(await send_and_fail("POST", answer({"x": "y" * 2000})), Lost)


async def test_a_gzip_response_is_decompressed() -> None:
    packed = answer(gzip.compress(b'{"id":"x"}'), Content_Encoding="gzip")
    async with wire(packed) as server, open_platform(server.account()) as platform:
        assert await platform.get("/x") == {"id": "x"}
        assert await platform.send("POST", "/x", {}) == {"id": "x"}


async def test_requests_of_one_client_do_not_mix() -> None:
    """Data that requests share is not changed by one of them."""
    async with wire(answer({})) as server, open_platform(server.account()) as platform:
        await platform.send("POST", "/a", {"n": 1})
        await platform.get("/a?limit=1")
        await platform.send("PATCH", "/b", {"n": 2})
        await platform.send("DELETE", "/a")
    assert [(request.method, request.target, request.body) for request in server.requests] == [
        ("POST", "/a", b'{"n":1}'),
        ("GET", "/a?limit=1", b""),
        ("PATCH", "/b", b'{"n":2}'),
        ("DELETE", "/a", b""),
    ]
    assert ["content-type" in request.headers for request in server.requests] == [True, False, True, False]
    assert all(request.headers["authorization"] == f"Bearer {KEY}" for request in server.requests)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_not_followed_and_its_host_is_named(status: int) -> None:
    async with wire(answer({})) as elsewhere:
        # A create may have been executed: a redirect may lead to the created object.
        for method, expected in (("GET", Refused), ("PATCH", Refused), ("POST", Lost)):
            failure = await send_and_fail(method, answer(None, status, Location=f"{elsewhere.base_url}/x"))
            assert isinstance(failure, expected)
            assert f"redirects to 127.0.0.1:{elsewhere.port}; the redirect was not followed" in str(failure)
    assert elsewhere.requests == []


@pytest.mark.parametrize("location", ["https://ops:hunter22@sso.example.com/x", "//ops:hunter22@sso.example.com\\x"])
async def test_user_and_password_of_a_redirect_are_not_printed(location: str) -> None:
    failure = await send_and_fail("GET", answer(None, 302, Location=location))
    assert "redirects to sso.example.com;" in str(failure)
    assert "hunter22" not in str(failure)


async def test_a_key_in_the_host_of_a_redirect_is_not_printed() -> None:
    failure = await send_and_fail(
        "GET", answer(None, 302, Location=f"https://{KEY}.example.com/x")
    )  # asserts the absence
    assert ".example.com; the redirect was not followed" in str(failure)


@pytest.mark.parametrize("header", ["7", "7.0"])
async def test_retry_after_of_the_platform_is_read(header: str) -> None:
    failure = await send_and_fail("POST", answer({"msg": "slow down"}, 429, Retry_After=header))
    assert isinstance(failure, Transient)
    assert failure.retry_after == 7


async def test_no_request_is_sent_before_the_retry_after_of_a_429() -> None:
    clock = VirtualClock()
    answers = (answer({}, 429, Retry_After="7"), answer({}))
    async with (
        wire(*answers) as server,
        open_platform(server.account(), clock=clock, random=SeededChance()) as platform,
    ):
        with pytest.raises(Transient):
            await platform.send("POST", "/x", {})
        await platform.send("POST", "/x", {})
    assert clock.now() == 7


async def test_a_read_only_client_sends_no_changes() -> None:
    async with wire(answer({})) as server, open_reader(server.account()) as reader:
        assert not hasattr(reader, "send")
        for method in METHODS:
            with pytest.raises(Refused, match="this client must not send"):
                await reader._client.exchange(method, f"{server.base_url}/x", {})
    assert server.requests == []


@pytest.mark.parametrize(
    "address",
    ["{server}0/x", "{server}.example/x", "{server}@127.0.0.1:9/x", "{server}", "/x", "http://127.0.0.1:9/x", ""],
)
async def test_a_client_sends_nothing_to_an_address_that_only_starts_with_its_origin(address: str) -> None:
    async with wire(answer({})) as server, open_client(server.account(), VirtualClock(), read_only=False) as client:
        assert await client.exchange("GET", f"{server.base_url}/x") == {}
        with pytest.raises(Refused, match="this client must not send GET"):
            await client.exchange("GET", address.replace("{server}", server.base_url))
        with pytest.raises(Refused, match="this client must not send OPTIONS"):
            await client.exchange("OPTIONS", f"{server.base_url}/x")
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("location", "host"),
    [
        ("/elsewhere", "another path"),
        ("", "another path"),
        ("https://user:pass@word@host.example/x", "host.example"),
        ("https://host.example\\@evil.example/x", "host.example"),
        ("https://host.example:8443?x=//y", "host.example:8443?x="),
        (f"https://{'a' * 120}.example/", "a" * 100),
    ],
)
async def test_only_the_host_of_a_redirect_is_printed(location: str, host: str) -> None:
    failure = await send_and_fail("GET", answer(None, 302, Location=location))
    assert f" redirects to {host}; the redirect was not followed" in str(failure)
    assert (type(failure), failure.status) == (Refused, 302)


@pytest.mark.parametrize(("status", "redirects"), [(300, True), (399, True), (400, False), (299, False)])
async def test_every_status_from_300_to_399_is_a_redirect(status: int, redirects: bool) -> None:
    async with wire(answer({}, status)) as server, open_platform(server.account(), clock=VirtualClock()) as platform:
        try:
            text = str(await platform.get("/x"))
        except Refused as failure:
            text = str(failure)
    assert ("redirects to another path" in text) is redirects


@pytest.mark.parametrize("content", [b"", b" \r\n"])
async def test_an_empty_response_is_none(content: bytes) -> None:
    async with wire(answer(content)) as server, open_platform(server.account()) as platform:
        assert await platform.send("DELETE", "/x") is None


@pytest.mark.parametrize(
    ("kind", "name", "failure"),
    [
        ("", "content of an unknown type", Refused),
        ("text/plain; charset=utf-8", "text/plain", Refused),
        (f"text/{KEY}", "text/(key)", Refused),
        ("application/json", "application/json", Transient),
        ("application/problem+json; x=y", "application/problem+json", Transient),
    ],
)
async def test_a_response_that_is_not_json_is_named_by_its_type(kind: str, name: str, failure: type[Failure]) -> None:
    """Invalid content of the type JSON may be a truncated response, and is retried."""
    found = await send_and_fail("GET", answer(b"<html>", content_type=kind))
    assert type(found) is failure
    assert f"returned {name}, not JSON (status 200)" in str(found)
    assert ("check platform.base_url" in str(found)) is (failure is Refused)


async def test_key_and_secrets_are_redacted_everywhere_in_an_error() -> None:
    body = {
        "msg": f"{KEY} hush-hush",
        "error_code": "hush-hush",
        "details": {"operation_id": f"op-{KEY}", "other": [KEY]},
    }
    failure = await send_and_fail("POST", answer(body, 400), secrets=(Secret("hush-hush", "test"),))
    assert str(failure) == "(key) (secret) (status 400, (secret), op-(key))"
    long = await send_and_fail("POST", answer({"msg": "x" * 19_990 + KEY}, 400))
    assert str(long).startswith("xxx")


async def test_only_a_429_delays_other_requests() -> None:
    clock = VirtualClock()
    answers = (answer({}, 503, Retry_After="7"), answer({}, 429, Retry_After="0"), answer({}, 429), answer({}))
    async with wire(*answers) as server, open_platform(server.account(), clock=clock) as platform:
        for _ in range(3):
            with pytest.raises(Failure):
                await platform.send("PATCH", "/x", {})
        await platform.send("PATCH", "/x", {})
    assert clock.now() == 0


async def test_the_lock_is_checked_before_each_change_and_not_before_reads() -> None:
    checks = 0

    async def before_write() -> None:
        nonlocal checks
        checks += 1
        if checks == 2:
            raise OSError("the lock was lost")

    account = {"agent": "http://127.0.0.1:9"}
    async with (
        wire(answer({})) as server,
        open_platform(server.account(**account), before_write=before_write) as platform,
    ):
        await platform.get("/x")
        assert checks == 0
        await platform.send("PATCH", "/x", {})
        assert checks == 1
        for path in ("/x", "/api/tunnels"):
            with pytest.raises(NotSent) as held:
                await platform.send("DELETE", path)
            assert str(held.value.__cause__) == "the lock was lost"
            checks = 1
    assert [request.method for request in server.requests] == ["GET", "PATCH"]


async def test_a_retried_read_is_reported_with_its_wait_and_reason() -> None:
    retries: list[tuple[float, str]] = []
    clock = VirtualClock()
    async with (
        wire(answer({"msg": "away"}, 503), answer({"msg": "away"}, 503, Retry_After="7"), answer({})) as server,
        open_reader(server.account(), clock=clock, on_retry=lambda *retry: retries.append(retry)) as reader,
    ):
        await reader.get("/x")
    assert [why for _, why in retries] == ["away (status 503)"] * 2
    assert [seconds for seconds, _ in retries] == clock.slept
    assert 7 <= retries[1][0] <= 7.5


async def test_a_read_is_retried_as_often_as_its_policy_allows() -> None:
    async with wire(answer({}, 503)) as server, open_reader(server.account(), clock=VirtualClock()) as reader:
        with pytest.raises(Transient):
            await reader.get("/x")
    assert len(server.requests) == READS.attempts


async def test_the_last_response_is_in_the_ledger_when_the_client_is_closed(tmp_path: Path) -> None:
    clock, file = VirtualClock(), tmp_path / "requests.db"
    account = {"ledger": file, "requests_per_minute": 1}
    async with wire(answer({})) as server, open_reader(server.account(**account), clock=clock) as reader:
        await reader.get("/x")
    with closing(Ledger(file)) as ledger:
        assert ledger.enter(lambda: 1.0, 1, 60.0) == (None, 59.0)


async def test_a_cancelled_request_remains_cancelled() -> None:
    async with wire(never_respond) as server, open_platform(server.account()) as platform:
        task = asyncio.ensure_future(platform.send("POST", "/x", {}))
        while not server.requests:  # noqa: ASYNC110 - the server of the test has no event to wait for
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
