"""Requests to a secret store: retries, pauses, tokens and errors; and the choice of the store of a delivery."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.api import secret_store
from reconciler.api.github_secrets import GitHubSecrets, github_place
from reconciler.api.vault import Vault, vault_place
from reconciler.engine.ports import Undeliverable
from reconciler.model.address import Address
from reconciler.model.value import Secret
from reconciler.operations.sinks import RemoteSinks, find_existing, remote_place
from tests.api.deliveries import TO_GITHUB, TO_PROD, TO_VAULT, TOKEN
from tests.harness.secret_stores import GitHubServer, VaultServer

pytestmark = pytest.mark.usefixtures("no_waiting")


async def test_an_interrupt_ends_the_retries(vault: VaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    stop = asyncio.Event()
    stop.set()
    vault.sealed = True
    with pytest.raises(Undeliverable, match="the run was interrupted"):
        await Vault(vault.environ, stop).deliver(TO_VAULT, TOKEN, overwrites=False)
    assert len(vault.log) == 1


@pytest.mark.parametrize(
    ("fault", "waits"),
    [
        (503, [(0.5, 1), (1, 2), (2, 4)]),
        ("drop", [(0.5, 1), (1, 2), (2, 4)]),
        ((429, {"retry-after": "30"}), [(30, 30), (30, 30), (30, 30)]),
        ((503, {"retry-after": "0"}), [(0.5, 1), (1, 2), (2, 4)]),
        ((503, {"retry-after": "soon"}), [(0.5, 1), (1, 2), (2, 4)]),
        ((429, {"retry-after": "31"}), []),
        ((403, {"x-ratelimit-remaining": "0"}), []),
        ((403, {"x-ratelimit-remaining": "1"}), None),
        ((403, {"retry-after": "2"}), [(2, 2), (2, 2), (2, 4)]),
        (501, None),
        (404, None),
    ],
)
async def test_each_pause_is_longer_and_at_least_the_requested_one(
    github: GitHubServer, monkeypatch: pytest.MonkeyPatch, fault: Any, waits: list[tuple[float, float]] | None
) -> None:
    """None: a response that a retry would not change."""
    paused: list[float] = []

    async def pause(_: Any, seconds: float, why: str) -> None:
        paused.append(seconds)

    monkeypatch.setattr(secret_store.SecretStore, "pause", pause)
    github.faults = [("GET", "", fault)] * 4
    store = GitHubSecrets(github.environ)
    if waits is None:
        assert (await store.send("GET", "/x")).status == (fault[0] if isinstance(fault, tuple) else fault)
        assert len(github.log) == 1
        return
    with pytest.raises(secret_store.Unavailable, match="; run it again later") as caught:
        await store.send("GET", "/x")
    assert len(paused) == len(waits) == len(github.log) - 1
    assert all(least <= seconds <= most for seconds, (least, most) in zip(paused, waits, strict=True))
    assert ("and asks to wait 31 s" in str(caught.value)) is (not waits)


@pytest.mark.parametrize("text", ["", " ", "a b", "a\nb", "tök", "a\x7f"])
def test_a_token_that_is_invalid_in_a_header_is_refused(text: str) -> None:
    with pytest.raises(Undeliverable, match="TOKEN_VARIABLE is empty or contains characters that no token has"):
        secret_store.read_token(text, "TOKEN_VARIABLE")


def test_a_line_break_after_a_token_or_an_address_is_ignored() -> None:
    assert secret_store.read_token(" token\n", "TOKEN_VARIABLE").reveal() == "token"
    assert (
        str(secret_store.read_origin(" https://vault.example.com\n", "TOKEN_VARIABLE")) == "https://vault.example.com"
    )
    with pytest.raises(Undeliverable, match="TOKEN_VARIABLE: it is not a URL"):
        secret_store.read_origin("vault.example.com", "TOKEN_VARIABLE")


@pytest.mark.parametrize("stops", [False, True])
async def test_a_pause_ends_after_its_time_or_with_the_run(
    vault: VaultServer, monkeypatch: pytest.MonkeyPatch, stops: bool
) -> None:
    monkeypatch.undo()
    stop = asyncio.Event()
    store = Vault(vault.environ, stop)
    if not stops:
        await store.pause(0.001, "unavailable")
        await Vault(vault.environ).pause(0.001, "unavailable")
        return
    asyncio.get_running_loop().call_soon(stop.set)
    with pytest.raises(secret_store.Unavailable, match="unavailable, and the run was interrupted"):
        await asyncio.wait_for(store.pause(60, "unavailable"), 5)


async def test_a_response_that_is_no_json_object_is_refused(github: GitHubServer) -> None:
    response = await GitHubSecrets(github.environ).send("GET", "/absent")
    store = GitHubSecrets(github.environ)
    for content in (b"[]", b"<html>", b""):
        with pytest.raises(secret_store.Unavailable, match="is not a JSON object"):
            store.read_json(replace(response, content=content))
    assert store.read_json(replace(response, content=b'{"a": 1}')) == {"a": 1}


async def test_a_plan_checks_once_whether_a_secret_exists(vault: VaultServer, github: GitHubServer) -> None:
    vault.faults, github.faults = [("GET", "", 503)], [("GET", "", 503)]
    for store, delivery in ((Vault(vault.environ), TO_VAULT), (GitHubSecrets(github.environ), TO_GITHUB)):
        with pytest.raises(secret_store.Unavailable):
            await store.exists(delivery)
    assert (len(vault.log), len(github.log)) == (1, 1)


def test_a_place_depends_on_the_server_and_not_on_the_machine() -> None:
    first, other = {"VAULT_ADDR": "https://a.example.com/"}, {"VAULT_ADDR": "https://b.example.com"}
    place = vault_place(TO_VAULT, first)
    assert (place.path, place.entry) == ("https://a.example.com/v1/secret/agents/berlin", "token")
    assert (place.host, place.checkout) == ("", "")
    assert not place.is_same(vault_place(TO_VAULT, other))
    assert not place.is_same(vault_place(TO_VAULT, {**first, "VAULT_NAMESPACE": "team"}))
    assert github_place(TO_GITHUB, {}).path == "https://api.github.com/repos/acme/web/actions/secrets"
    assert not github_place(TO_GITHUB, {}).is_same(github_place(TO_PROD, {}))


async def test_a_plan_checks_an_unavailable_store_once_for_each_connection(vault: VaultServer) -> None:
    vault.set("secret/agents/berlin", {"token": "x"})
    addresses = [Address("TunnelCredential", f"a{number}") for number in range(40)]
    deliveries = dict.fromkeys(addresses, TO_VAULT)
    assert await find_existing(deliveries, vault.environ) == frozenset(addresses)
    assert await find_existing(deliveries, {}) == frozenset()
    vault.log.clear()
    vault.sealed = True
    assert await find_existing(deliveries, vault.environ) == frozenset()
    assert len(vault.log) <= 8


async def test_a_delivery_is_sent_to_its_store_and_overwrites_only_if_approved(
    vault: VaultServer, github: GitHubServer
) -> None:
    sinks = RemoteSinks({**vault.environ, **github.environ})
    for delivery in (TO_VAULT, TO_GITHUB):
        assert not await sinks.exists(delivery)
        await sinks.check(delivery)
        await sinks.deliver(delivery, TOKEN)
        assert await sinks.exists(delivery)
        with pytest.raises(Undeliverable):
            await sinks.check(delivery)
        await sinks.check(delivery, overwrites=True)
        await sinks.deliver(delivery, Secret("another-token-4Hs8", "test"), overwrites=True)
    assert vault.value("secret/agents/berlin") == {"token": "another-token-4Hs8"}
    assert github.secrets == {("", "AGENT"): "another-token-4Hs8"}
    with pytest.raises(Undeliverable):
        await sinks.deliver(TO_VAULT, Secret("third-token-4Hs8", "test"))
    environ = {"VAULT_ADDR": "https://vault.example.com"}
    assert sinks.place(TO_VAULT) == vault_place(TO_VAULT, vault.environ)
    assert remote_place(TO_VAULT, environ) == vault_place(TO_VAULT, environ)
    assert remote_place(TO_GITHUB, environ) == github_place(TO_GITHUB, environ)


async def test_a_plan_finds_the_targets_that_exist(vault: VaultServer, github: GitHubServer) -> None:
    vault.set("secret/agents/berlin", {"token": "x"})
    other = replace(TO_VAULT, settings={**TO_VAULT.settings, "key": "other"})
    existing, free, denied = (Address("TunnelCredential", name) for name in ("existing", "free", "denied"))
    deliveries = {free: other, denied: TO_GITHUB, existing: TO_VAULT}
    assert await find_existing(deliveries, {**vault.environ, "GITHUB_TOKEN": "wrong"}) == {existing}
    github.secrets["", "AGENT"] = "x"
    assert await find_existing(deliveries, {**vault.environ, **github.environ}) == {existing, denied}
