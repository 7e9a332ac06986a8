"""Deliveries to Vault: checked first, exact afterwards, and no secret in any error."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from reconciler.api.vault import Vault, vault_place
from reconciler.engine.ports import Undeliverable
from reconciler.model.manifest import Delivery
from tests.api.deliveries import DATA, TO_VAULT, TOKEN
from tests.harness.secret_stores import Answer, VaultServer, run_server

pytestmark = pytest.mark.usefixtures("no_waiting")


async def test_a_token_is_written_as_one_key_of_a_vault_secret(vault: VaultServer) -> None:
    vault.set("secret/agents/berlin", {"other": "unchanged", "number": 3})
    sink = Vault(vault.environ)
    await sink.check(TO_VAULT, overwrites=False)
    assert vault.writes() == ["POST /v1/sys/capabilities-self"]  # a request that reads
    await sink.deliver(TO_VAULT, TOKEN, overwrites=False)
    assert vault.value("secret/agents/berlin") == {"other": "unchanged", "number": 3, "token": "canary-token-4Hs8"}


@pytest.mark.parametrize("former", [[], [None], [{"token": "old"}, None]], ids=["new", "destroyed", "deleted"])
async def test_a_new_secret_of_vault_is_created(vault: VaultServer, former: list[Any]) -> None:
    for version in former:
        vault.set("secret/agents/berlin", version)
    sink = Vault(vault.environ)
    await sink.check(TO_VAULT, overwrites=False)
    await sink.deliver(TO_VAULT, TOKEN, overwrites=False)
    assert vault.value("secret/agents/berlin") == {"token": "canary-token-4Hs8"}


async def test_concurrent_deliveries_to_one_secret_of_vault_lose_no_key(vault: VaultServer) -> None:
    sinks = [Vault(vault.environ), Vault(vault.environ)]  # those of two runs
    keys = [f"key{number}" for number in range(8)]
    deliveries = [Delivery("to_vault", TO_VAULT.target, settings={**TO_VAULT.settings, "key": key}) for key in keys]
    await asyncio.gather(
        *(sinks[number % 2].deliver(delivery, TOKEN, overwrites=False) for number, delivery in enumerate(deliveries))
    )
    assert sorted(vault.value("secret/agents/berlin")) == keys


async def test_an_existing_key_of_vault_is_overwritten_only_if_approved(vault: VaultServer) -> None:
    vault.set("secret/agents/berlin", {"token": "of another user"})
    sink = Vault(vault.environ)
    for act in (sink.check(TO_VAULT, overwrites=False), sink.deliver(TO_VAULT, TOKEN, overwrites=False)):
        with pytest.raises(Undeliverable, match=r"exists and was not written by this project.*--allow overwrite"):
            await act
    assert await sink.exists(TO_VAULT)
    await sink.check(TO_VAULT, overwrites=True)
    await sink.deliver(TO_VAULT, TOKEN, overwrites=True)
    assert vault.versions["secret/agents/berlin"] == [{"token": "of another user"}, {"token": "canary-token-4Hs8"}]


@pytest.mark.parametrize(
    ("change", "delivery", "text"),
    [
        ({"sealed": True}, TO_VAULT, "returned status 503; run it again later"),
        ({"faults": [("GET", DATA, 307)]}, TO_VAULT, "is a standby node; set VAULT_ADDR to the active node"),
        ({"token": "another"}, TO_VAULT, "has no engine at secret/, or the token has no access to it|denies access"),
        ({"mounts": {}}, TO_VAULT, "has no engine at secret/"),
        ({"mounts": {"secret": "1"}}, TO_VAULT, "has no KV engine of version 2 at secret/"),
        ({"policy": {"default": []}}, TO_VAULT, f"denies access to {DATA}"),
        ({"policy": {"default": [], DATA: ["read"]}}, TO_VAULT, "its policy must allow `create`"),
        ({"policy": {"default": [], DATA: ["read", "update"]}}, TO_VAULT, "its policy must allow `create`"),
        ({"policy": {DATA: ["read", "create"]}}, TO_VAULT, "allow `update` on sys/capabilities-self"),
        ({"namespace": "team"}, TO_VAULT, "VAULT_NAMESPACE or the policy"),
    ],
)
async def test_the_check_of_vault_reports_each_problem(
    vault: VaultServer, change: dict[str, Any], delivery: Delivery, text: str
) -> None:
    environ = vault.environ
    for name, value in change.items():
        setattr(vault, name, value)
    with pytest.raises(Undeliverable, match=text) as caught:
        await Vault(environ).check(delivery, overwrites=False)
    assert environ["VAULT_TOKEN"] not in str(caught.value)
    assert vault.versions == {}


async def test_a_new_secret_of_vault_in_a_namespace_needs_only_create_and_read(vault: VaultServer) -> None:
    vault.policy, vault.namespace = {"default": [], DATA: ["create", "read"]}, "team"
    sink = Vault({**vault.environ, "VAULT_NAMESPACE": "team"})
    await sink.check(TO_VAULT, overwrites=False)
    await sink.deliver(TO_VAULT, TOKEN, overwrites=False)
    assert vault.value("secret/agents/berlin") == {"token": "canary-token-4Hs8"}


@pytest.mark.parametrize("fault", [503, 429, "drop", "refuse"])
async def test_a_write_to_vault_is_retried_after_faults_and_has_one_effect(vault: VaultServer, fault: Any) -> None:
    vault.faults = [("GET", DATA, 503), ("POST", DATA, fault), ("POST", DATA, fault)]
    await Vault(vault.environ).deliver(TO_VAULT, TOKEN, overwrites=False)
    assert vault.versions["secret/agents/berlin"] == [{"token": "canary-token-4Hs8"}]


async def test_a_delivery_fails_if_vault_remains_unavailable(vault: VaultServer) -> None:
    vault.faults = [("POST", DATA, 503)] * 8
    with pytest.raises(Undeliverable, match="returned status 503"):
        await Vault(vault.environ).deliver(TO_VAULT, TOKEN, overwrites=False)
    assert vault.versions == {}


async def test_a_write_to_vault_with_a_lost_response_is_found(vault: VaultServer) -> None:
    vault.faults = [("POST", DATA, 503)] * 3 + [("POST", DATA, "drop")]
    await Vault(vault.environ).deliver(TO_VAULT, TOKEN, overwrites=False)
    assert vault.versions["secret/agents/berlin"] == [{"token": "canary-token-4Hs8"}]


@pytest.mark.parametrize(
    ("environ", "text"),
    [
        ({}, "VAULT_ADDR is not set"),
        ({"VAULT_ADDR": "https://vault.example.com"}, "neither VAULT_TOKEN nor VAULT_TOKEN_FILE is set"),
        ({"VAULT_ADDR": "http://vault.example.com", "VAULT_TOKEN": "x"}, "VAULT_ADDR: plain http"),
        ({"VAULT_ADDR": "https://vault.example.com", "VAULT_TOKEN": "a\nb"}, "VAULT_TOKEN is empty or contains"),
        (
            {"VAULT_ADDR": "https://vault.example.com", "VAULT_TOKEN_FILE": "/nowhere"},
            "VAULT_TOKEN_FILE cannot be read",
        ),
    ],
)
def test_missing_or_invalid_settings_of_vault_are_refused(environ: dict[str, str], text: str) -> None:
    with pytest.raises(Undeliverable, match=text):
        Vault(environ)


async def test_the_token_of_vault_can_be_in_a_file(vault: VaultServer, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(f"{vault.token}\n", encoding="utf-8")
    await Vault({"VAULT_ADDR": vault.url, "VAULT_TOKEN_FILE": str(tmp_path / "token")}).check(
        TO_VAULT, overwrites=False
    )


# --- unexpected responses ---------------------------------------------------------------------------------------------


@dataclass
class OddVault(VaultServer):
    """Answers a request that starts with a key of `odd` with its value."""

    odd: dict[str, Answer] = field(default_factory=dict)

    def answer(self, method: str, path: str, headers: Any, body: Any) -> Answer:
        found = next((response for start, response in self.odd.items() if f"{method} {path}".startswith(start)), None)
        return found or super().answer(method, path, headers, body)


MOUNTS = "GET /v1/sys/internal/ui/mounts/secret"
KV = {"path": "secret/", "type": "kv", "options": {"version": "2"}}


@pytest.mark.parametrize(
    ("request_", "response", "text"),
    [
        (MOUNTS, (200, {"data": {**KV, "type": "pki"}}), "has no KV engine of version 2 at secret/"),
        (MOUNTS, (200, {"data": {**KV, "path": "sec/"}}), "has no KV engine of version 2 at secret/"),
        (MOUNTS, (200, {"data": {**KV, "options": None}}), "has no KV engine of version 2 at secret/"),
        (MOUNTS, (200, {"data": {**KV, "options": {}}}), "has no KV engine of version 2 at secret/"),
        (MOUNTS, (200, {"data": ["x"]}), "has no KV engine of version 2 at secret/"),
        (MOUNTS, (301, {}), "returned status 301 for secret/data/agents/berlin"),
        (MOUNTS, (400, {}), "returned status 400 for secret/data/agents/berlin"),
        (f"GET /v1/{DATA}", (200, {"data": {"data": {}, "metadata": {}}}), "returned no version of the secret"),
        (f"GET /v1/{DATA}", (200, {"data": {"data": {}, "metadata": {"version": "1"}}}), "returned no version"),
        (f"GET /v1/{DATA}", (404, {"data": {"metadata": {}}}), "returned no version of the secret"),
        (f"GET /v1/{DATA}", (400, {}), "returned status 400 for secret/data/agents/berlin"),
        (f"GET /v1/{DATA}", (404, {"errors": ["no handler for route x"]}), "has no engine at secret/; correct `mount`"),
        (f"GET /v1/{DATA}", (404, ["x"]), "is not a JSON object"),
        ("POST /v1/sys/capabilities-self", (400, {}), "returned status 400 for secret/data/agents/berlin"),
        ("POST /v1/sys/capabilities-self", (200, {"data": {DATA: "root"}}), "its policy must allow `create`"),
        ("POST /v1/sys/capabilities-self", (200, {"data": {}}), "its policy must allow `create`"),
    ],
)
async def test_an_unexpected_response_of_vault_fails_the_check(request_: str, response: Answer, text: str) -> None:
    server = OddVault(odd={request_: response})
    with run_server(server), pytest.raises(Undeliverable) as caught:
        await Vault(server.environ).check(TO_VAULT, overwrites=False)
    assert text in str(caught.value)


async def test_the_check_of_vault_requires_the_rights_that_the_delivery_needs() -> None:
    """A new secret is created; an existing one, deleted or not, is updated."""
    for former, needed in (([], "create"), ([{"a": 1}], "update"), ([None], "update")):
        server = OddVault(policy={"default": [], DATA: ["read", needed]})
        for version in former:
            server.set("secret/agents/berlin", version)
        with run_server(server):
            await Vault(server.environ).check(TO_VAULT, overwrites=False)
            await Vault(server.environ).deliver(TO_VAULT, TOKEN, overwrites=False)
        assert server.value("secret/agents/berlin")["token"] == "canary-token-4Hs8"


@pytest.mark.parametrize(
    ("status", "body", "text", "writes"),
    [
        (400, {"errors": ["check-and-set parameter did not match"]}, "other writers keep changing secret/agents", 8),
        (400, {"errors": ["invalid"]}, "returned status 400 for secret/data/agents/berlin", 1),
        (403, {"errors": ["check-and-set"]}, "denies access to secret/data/agents/berlin", 1),
        (503, {}, "returned status 503", 4),
    ],
)
async def test_a_rejected_write_to_vault_is_retried_only_after_conflicts_and_outages(
    status: int, body: Any, text: str, writes: int
) -> None:
    server = OddVault(odd={f"POST /v1/{DATA}": (status, body)})
    with run_server(server), pytest.raises(Undeliverable) as caught:
        await Vault(server.environ).deliver(TO_VAULT, TOKEN, overwrites=False)
    assert text in str(caught.value)
    assert [method for method, _ in server.log].count("POST") == writes


async def test_an_equal_value_is_not_written_to_vault_again(vault: VaultServer) -> None:
    vault.set("secret/agents/berlin", {"token": TOKEN.reveal()})
    await Vault(vault.environ).deliver(TO_VAULT, TOKEN, overwrites=False)
    assert vault.writes() == []


def test_a_place_at_vault_includes_the_namespace() -> None:
    environ = {"VAULT_ADDR": " https://vault.example.com/ ", "VAULT_NAMESPACE": " /team/ "}
    assert vault_place(TO_VAULT, environ).path == "https://vault.example.com/v1/team/secret/agents/berlin"
    with pytest.raises(Undeliverable, match="VAULT_NAMESPACE contains characters that no namespace has"):
        Vault({"VAULT_ADDR": "https://vault.example.com", "VAULT_TOKEN": "x", "VAULT_NAMESPACE": "te\nam"})


async def test_a_key_of_vault_is_read_as_text_or_is_none_if_missing(vault: VaultServer) -> None:
    sink = Vault(vault.environ)
    assert await sink.read_key("secret", "agents/berlin", "token") is None
    vault.set("secret/agents/berlin", {"token": "hush", "number": 7, "empty": "", "null": None})
    found = {name: await sink.read_key("secret", "agents/berlin", name) for name in ("token", "number", "empty")}
    assert {name: secret and secret.reveal() for name, secret in found.items()} == {
        "token": "hush",
        "number": "7",
        "empty": "",
    }
    assert await sink.read_key("secret", "agents/berlin", "null") is None
    assert await sink.read_key("secret", "agents/berlin", "other") is None
    with pytest.raises(Undeliverable, match=r"has no engine at kv/; correct `mount`|denies access to kv/data/x"):
        await sink.read_key("kv", "x", "token")
