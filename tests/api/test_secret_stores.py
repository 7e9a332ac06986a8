"""Deliveries to Vault and to secrets of GitHub: proven first, exact afterwards, and without a secret in any error."""

from __future__ import annotations

import asyncio
import builtins
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.api import secret_store
from reconciler.api.github_secrets import PROBE, GitHubSecrets, github_place
from reconciler.api.vault import Vault, vault_place
from reconciler.engine.ports import Undeliverable
from reconciler.model.address import Address
from reconciler.model.manifest import Delivery
from reconciler.model.value import Secret
from reconciler.operations.sinks import RemoteSinks, find_existing, remote_place
from tests.harness.secret_stores import Answer, GitHubServer, VaultServer, serving

TOKEN = Secret("canary-token-4Hs8", "test")
TO_VAULT = Delivery(
    "to_vault", "secret/agents/berlin", settings={"mount": "secret", "path": "agents/berlin", "key": "token"}
)
DATA = "secret/data/agents/berlin"
TO_GITHUB = Delivery("to_github_secret", "acme/web", settings={"name": "AGENT"})
TO_PROD = Delivery("to_github_secret", "acme/web", settings={"name": "AGENT", "environment": "prod"})


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    async def pause(*_: Any) -> None:
        await asyncio.sleep(0)

    monkeypatch.setattr(secret_store.SecretStore, "pause", pause)


@pytest.fixture
def vault() -> Iterator[VaultServer]:
    server = VaultServer()
    with serving(server):
        yield server


@pytest.fixture
def github() -> Iterator[GitHubServer]:
    server = GitHubServer()
    with serving(server):
        yield server


# --- Vault ------------------------------------------------------------------------------------------------------------


async def test_vault_gets_the_token_as_one_key_of_its_secret(vault: VaultServer) -> None:
    vault.set("secret/agents/berlin", {"other": "stays", "number": 3})
    sink = Vault(vault.environ)
    await sink.check(TO_VAULT, overwrites=False)
    assert vault.writes() == ["POST /v1/sys/capabilities-self"]  # which reads
    await sink.deliver(TO_VAULT, TOKEN, overwrites=False)
    assert vault.value("secret/agents/berlin") == {"other": "stays", "number": 3, "token": "canary-token-4Hs8"}


@pytest.mark.parametrize("former", [[], [None], [{"token": "old"}, None]], ids=["new", "destroyed", "deleted"])
async def test_vault_gets_the_token_where_nothing_is(vault: VaultServer, former: list[Any]) -> None:
    for version in former:
        vault.set("secret/agents/berlin", version)
    sink = Vault(vault.environ)
    await sink.check(TO_VAULT, overwrites=False)
    await sink.deliver(TO_VAULT, TOKEN, overwrites=False)
    assert vault.value("secret/agents/berlin") == {"token": "canary-token-4Hs8"}


async def test_deliveries_to_one_secret_of_vault_lose_no_key(vault: VaultServer) -> None:
    sinks = [Vault(vault.environ), Vault(vault.environ)]  # of two runs
    keys = [f"key{number}" for number in range(8)]
    deliveries = [Delivery("to_vault", TO_VAULT.target, settings={**TO_VAULT.settings, "key": key}) for key in keys]
    await asyncio.gather(
        *(sinks[number % 2].deliver(each, TOKEN, overwrites=False) for number, each in enumerate(deliveries))
    )
    assert sorted(vault.value("secret/agents/berlin")) == keys


async def test_a_key_of_vault_is_overwritten_only_if_allowed(vault: VaultServer) -> None:
    vault.set("secret/agents/berlin", {"token": "of somebody else"})
    sink = Vault(vault.environ)
    for act in (sink.check(TO_VAULT, overwrites=False), sink.deliver(TO_VAULT, TOKEN, overwrites=False)):
        with pytest.raises(Undeliverable, match=r"exists and was not written by this project.*--allow overwrite"):
            await act
    assert await sink.exists(TO_VAULT)
    await sink.check(TO_VAULT, overwrites=True)
    await sink.deliver(TO_VAULT, TOKEN, overwrites=True)
    assert vault.versions["secret/agents/berlin"] == [{"token": "of somebody else"}, {"token": "canary-token-4Hs8"}]


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
async def test_the_check_of_vault_says_what_is_wrong(
    vault: VaultServer, change: dict[str, Any], delivery: Delivery, text: str
) -> None:
    environ = vault.environ
    for name, value in change.items():
        setattr(vault, name, value)
    with pytest.raises(Undeliverable, match=text) as caught:
        await Vault(environ).check(delivery, overwrites=False)
    assert environ["VAULT_TOKEN"] not in str(caught.value)
    assert vault.versions == {}


async def test_create_and_read_are_enough_for_a_new_secret_of_vault_in_a_namespace(vault: VaultServer) -> None:
    vault.policy, vault.namespace = {"default": [], DATA: ["create", "read"]}, "team"
    sink = Vault({**vault.environ, "VAULT_NAMESPACE": "team"})
    await sink.check(TO_VAULT, overwrites=False)
    await sink.deliver(TO_VAULT, TOKEN, overwrites=False)
    assert vault.value("secret/agents/berlin") == {"token": "canary-token-4Hs8"}


@pytest.mark.parametrize("fault", [503, 429, "drop", "refuse"])
async def test_a_write_to_vault_survives_faults_and_is_made_once(vault: VaultServer, fault: Any) -> None:
    vault.faults = [("GET", DATA, 503), ("POST", DATA, fault), ("POST", DATA, fault)]
    await Vault(vault.environ).deliver(TO_VAULT, TOKEN, overwrites=False)
    assert vault.versions["secret/agents/berlin"] == [{"token": "canary-token-4Hs8"}]


async def test_a_vault_that_stays_away_ends_the_delivery(vault: VaultServer) -> None:
    vault.faults = [("POST", DATA, 503)] * 8
    with pytest.raises(Undeliverable, match="returned status 503"):
        await Vault(vault.environ).deliver(TO_VAULT, TOKEN, overwrites=False)
    assert vault.versions == {}


async def test_a_write_to_vault_that_took_effect_last_is_found(vault: VaultServer) -> None:
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
def test_an_environment_without_vault_is_refused(environ: dict[str, str], text: str) -> None:
    with pytest.raises(Undeliverable, match=text):
        Vault(environ)


async def test_the_token_of_vault_can_be_in_a_file(vault: VaultServer, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(f"{vault.token}\n", encoding="utf-8")
    await Vault({"VAULT_ADDR": vault.url, "VAULT_TOKEN_FILE": str(tmp_path / "token")}).check(
        TO_VAULT, overwrites=False
    )


# --- GitHub -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("delivery", "environment"), [(TO_GITHUB, ""), (TO_PROD, "prod")])
async def test_github_can_open_what_it_is_sent(github: GitHubServer, delivery: Delivery, environment: str) -> None:
    sink = GitHubSecrets(github.environ)
    await sink.check(delivery, overwrites=False)
    assert github.secrets == {}  # the secret that the check wrote is deleted
    assert [write.rpartition("/")[2] for write in github.writes()] == [PROBE, PROBE]
    await sink.deliver(delivery, TOKEN, overwrites=False)
    await sink.check(delivery, overwrites=True)  # proven already
    assert github.secrets == {(environment, "AGENT"): "canary-token-4Hs8"}
    assert len(github.writes()) == 3


async def test_a_secret_of_github_is_overwritten_only_if_allowed(github: GitHubServer) -> None:
    github.secrets["", "AGENT"] = "of somebody else"
    sink = GitHubSecrets(github.environ)
    for act in (sink.check(TO_GITHUB, overwrites=False), sink.deliver(TO_GITHUB, TOKEN, overwrites=False)):
        with pytest.raises(Undeliverable, match="exists and was not written by this project"):
            await act
    assert (await sink.exists(TO_GITHUB), await sink.exists(TO_PROD)) == (True, False)
    await sink.check(TO_GITHUB, overwrites=True)
    await sink.deliver(TO_GITHUB, TOKEN, overwrites=True)
    assert github.secrets == {("", "AGENT"): "canary-token-4Hs8"}


@pytest.mark.parametrize(
    ("change", "delivery", "text"),
    [
        ({"rights": "read"}, TO_GITHUB, "may not write secrets of acme/web: it needs the permission `secrets: write`"),
        ({"rights": "read"}, TO_PROD, "the permission `environments: write`"),
        ({"rights": "none"}, TO_GITHUB, "does not have acme/web, or the token in GITHUB_TOKEN has no access"),
        ({"keys": {}}, TO_PROD, "does not have the environment prod of acme/web"),
        ({"faults": [("GET", "", 301)]}, TO_GITHUB, "the GitHub repository acme/web was renamed"),
        ({"token": "another"}, TO_GITHUB, "does not accept the token in GITHUB_TOKEN"),
        ({"faults": [("PUT", "", (403, {"retry-after": "3600"}))]}, TO_GITHUB, "asks to wait 3600 s"),
        ({"faults": [("GET", "", 503)] * 4}, TO_GITHUB, "returned status 503"),
    ],
)
async def test_the_check_of_github_says_what_is_wrong(
    github: GitHubServer, change: dict[str, Any], delivery: Delivery, text: str
) -> None:
    environ = github.environ
    for name, value in change.items():
        setattr(github, name, value)
    with pytest.raises(Undeliverable) as caught:
        await GitHubSecrets(environ).check(delivery, overwrites=False)
    assert text in str(caught.value)
    assert environ["GITHUB_TOKEN"] not in str(caught.value)
    assert github.secrets == {}


@pytest.mark.parametrize("fault", [503, "drop", "refuse", (403, {"retry-after": "1"})])
async def test_a_write_to_github_survives_faults(github: GitHubServer, fault: Any) -> None:
    github.faults = [("GET", "public-key", 502), ("PUT", "AGENT", fault)]
    await GitHubSecrets(github.environ).deliver(TO_GITHUB, TOKEN, overwrites=False)
    assert github.secrets == {("", "AGENT"): "canary-token-4Hs8"}


async def test_without_pynacl_nothing_is_sent_to_github(github: GitHubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    imported = builtins.__import__

    def without(name: str, *more: Any, **named: Any) -> Any:
        if name.startswith("nacl"):
            raise ImportError(name)
        return imported(name, *more, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(Undeliverable, match=r"install the extra `reconciler\[github\]`"):
        await GitHubSecrets(github.environ).check(TO_GITHUB, overwrites=False)
    assert github.log == []


def test_github_without_a_token_is_refused() -> None:
    with pytest.raises(Undeliverable, match="GITHUB_TOKEN is not set"):
        GitHubSecrets({})


# --- answers that no server of theirs gives ---------------------------------------------------------------------------


@dataclass
class OddVault(VaultServer):
    """Answers requests whose path contains a key of `odd` with its value."""

    odd: dict[str, Answer] = field(default_factory=dict)

    def answer(self, method: str, path: str, headers: Any, body: Any) -> Answer:
        found = next((told for part, told in self.odd.items() if f"{method} {path}".startswith(part)), None)
        return found or super().answer(method, path, headers, body)


MOUNTS = "GET /v1/sys/internal/ui/mounts/secret"
KV = {"path": "secret/", "type": "kv", "options": {"version": "2"}}


@pytest.mark.parametrize(
    ("request_", "told", "text"),
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
async def test_a_vault_that_answers_oddly_is_not_delivered_to(request_: str, told: Answer, text: str) -> None:
    server = OddVault(odd={request_: told})
    with serving(server), pytest.raises(Undeliverable) as caught:
        await Vault(server.environ).check(TO_VAULT, overwrites=False)
    assert text in str(caught.value)


async def test_the_check_of_vault_asks_for_what_the_delivery_needs() -> None:
    """A new secret is created; an existing one, deleted or not, is updated."""
    for former, needed in (([], "create"), ([{"a": 1}], "update"), ([None], "update")):
        server = OddVault(policy={"default": [], DATA: ["read", needed]})
        for version in former:
            server.set("secret/agents/berlin", version)
        with serving(server):
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
async def test_a_write_that_vault_rejects_is_repeated_only_for_other_writers_and_failures(
    status: int, body: Any, text: str, writes: int
) -> None:
    server = OddVault(odd={f"POST /v1/{DATA}": (status, body)})
    with serving(server), pytest.raises(Undeliverable) as caught:
        await Vault(server.environ).deliver(TO_VAULT, TOKEN, overwrites=False)
    assert text in str(caught.value)
    assert [method for method, _ in server.log].count("POST") == writes


async def test_a_value_that_vault_has_already_is_not_written_again(vault: VaultServer) -> None:
    vault.set("secret/agents/berlin", {"token": TOKEN.reveal()})
    await Vault(vault.environ).deliver(TO_VAULT, TOKEN, overwrites=False)
    assert vault.writes() == []


@dataclass
class OddGitHub(GitHubServer):
    odd: dict[str, Answer] = field(default_factory=dict)

    def answer(self, method: str, path: str, headers: Any, body: Any) -> Answer:
        found = next((told for part, told in self.odd.items() if f"{method} {path}".startswith(part)), None)
        return found or super().answer(method, path, headers, body)


OF_WEB = "/repos/acme/web/actions/secrets"


@pytest.mark.parametrize(
    ("request_", "told", "text"),
    [
        (f"GET {OF_WEB}/public-key", (200, {"key": "x"}), "returned a public key that cannot be used"),
        (f"GET {OF_WEB}/public-key", (200, {"key": "AAAA"}), "returned a public key that cannot be used"),
        (f"GET {OF_WEB}/public-key", (200, {}), "returned a public key that cannot be used"),
        (f"GET {OF_WEB}/public-key", (200, ["x"]), "is not a JSON object"),
        (f"GET {OF_WEB}/public-key", (418, {}), "returned status 418 for the secrets of acme/web"),
        (f"PUT {OF_WEB}/{PROBE}", (422, {}), "returned status 422 for the secrets of acme/web"),
        (f"DELETE {OF_WEB}/{PROBE}", (418, {}), "returned status 418 for the secrets of acme/web"),
        (f"GET {OF_WEB}/AGENT", (418, {}), "returned status 418 for the secrets of acme/web"),
        (f"GET {OF_WEB}/AGENT", (307, {}), "the GitHub repository acme/web was renamed"),
        (f"GET {OF_WEB}/AGENT", (308, {}), "the GitHub repository acme/web was renamed"),
    ],
)
async def test_a_github_that_answers_oddly_is_not_delivered_to(request_: str, told: Answer, text: str) -> None:
    server = OddGitHub(odd={request_: told})
    with serving(server), pytest.raises(Undeliverable) as caught:
        await GitHubSecrets(server.environ).check(TO_GITHUB, overwrites=False)
    assert text in str(caught.value)


async def test_a_probe_that_another_run_deleted_proves_as_much() -> None:
    server = OddGitHub(odd={f"DELETE {OF_WEB}/{PROBE}": (404, {})})
    with serving(server):
        sink = GitHubSecrets(server.environ)
        await sink.check(TO_GITHUB, overwrites=False)
        await sink.check(TO_GITHUB, overwrites=False)
        await sink.check(TO_PROD, overwrites=False)
    assert [write.split()[0] for write in server.writes()] == ["PUT", "DELETE"] * 2


@pytest.mark.parametrize(
    ("environ", "path"),
    [
        ({}, "https://api.github.com/repos/acme/web/actions/secrets"),
        (
            {"GITHUB_API_URL": " https://Git.example/api/v3/ "},
            "https://git.example/api/v3/repos/acme/web/actions/secrets",
        ),
    ],
)
def test_a_place_at_github_is_the_same_in_any_spelling(environ: dict[str, str], path: str) -> None:
    spelled = Delivery("to_github_secret", "Acme/Web", settings={"name": "agent"})
    assert github_place(spelled, environ).is_same(github_place(TO_GITHUB, environ))
    assert (github_place(spelled, environ).path, github_place(spelled, environ).entry) == (path, "AGENT")
    prod = Delivery("to_github_secret", "acme/web", settings={"name": "AGENT", "environment": "a/b c"})
    assert github_place(prod, {}).path.endswith("/repos/acme/web/environments/a%2fb%20c/secrets")


def test_a_place_at_vault_has_its_namespace() -> None:
    environ = {"VAULT_ADDR": " https://vault.example.com/ ", "VAULT_NAMESPACE": " /team/ "}
    assert vault_place(TO_VAULT, environ).path == "https://vault.example.com/v1/team/secret/agents/berlin"
    with pytest.raises(Undeliverable, match="VAULT_NAMESPACE contains characters that no namespace has"):
        Vault({"VAULT_ADDR": "https://vault.example.com", "VAULT_TOKEN": "x", "VAULT_NAMESPACE": "te\nam"})


# --- both -------------------------------------------------------------------------------------------------------------


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
async def test_each_pause_is_longer_and_at_least_as_long_as_the_server_asks(
    github: GitHubServer, monkeypatch: pytest.MonkeyPatch, fault: Any, waits: list[tuple[float, float]] | None
) -> None:
    """None: an answer that another attempt would not change."""
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
def test_a_token_that_no_header_can_carry_is_refused(text: str) -> None:
    with pytest.raises(Undeliverable, match="THERE is empty or contains characters that no token has"):
        secret_store.read_token(text, "THERE")


def test_a_token_and_an_address_may_end_with_a_line_break() -> None:
    assert secret_store.read_token(" token\n", "THERE").reveal() == "token"
    assert str(secret_store.read_origin(" https://vault.example.com\n", "THERE")) == "https://vault.example.com"
    with pytest.raises(Undeliverable, match="THERE: it is not a URL"):
        secret_store.read_origin("vault.example.com", "THERE")


@pytest.mark.parametrize("stops", [False, True])
async def test_a_pause_ends_with_its_time_or_the_run(
    vault: VaultServer, monkeypatch: pytest.MonkeyPatch, stops: bool
) -> None:
    monkeypatch.undo()
    stop = asyncio.Event()
    store = Vault(vault.environ, stop)
    if not stops:
        await store.pause(0.001, "away")
        await Vault(vault.environ).pause(0.001, "away")
        return
    asyncio.get_running_loop().call_soon(stop.set)
    with pytest.raises(secret_store.Unavailable, match="away, and the run was interrupted"):
        await asyncio.wait_for(store.pause(60, "away"), 5)


async def test_what_is_not_an_object_of_json_is_an_unusable_answer(github: GitHubServer) -> None:
    response = await GitHubSecrets(github.environ).send("GET", "/absent")
    store = GitHubSecrets(github.environ)
    for content in (b"[]", b"<html>", b""):
        with pytest.raises(secret_store.Unavailable, match="is not a JSON object"):
            store.read_json(replace(response, content=content))
    assert store.read_json(replace(response, content=b'{"a": 1}')) == {"a": 1}


async def test_a_key_of_vault_is_read_as_text_and_is_none_if_it_is_not_there(vault: VaultServer) -> None:
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


async def test_a_plan_asks_a_store_once_whether_a_secret_exists(vault: VaultServer, github: GitHubServer) -> None:
    vault.faults, github.faults = [("GET", "", 503)], [("GET", "", 503)]
    for store, delivery in ((Vault(vault.environ), TO_VAULT), (GitHubSecrets(github.environ), TO_GITHUB)):
        with pytest.raises(secret_store.Unavailable):
            await store.exists(delivery)
    assert (len(vault.log), len(github.log)) == (1, 1)


def test_a_place_is_the_same_from_every_machine_and_another_at_another_server() -> None:
    first, other = {"VAULT_ADDR": "https://a.example.com/"}, {"VAULT_ADDR": "https://b.example.com"}
    place = vault_place(TO_VAULT, first)
    assert (place.path, place.entry) == ("https://a.example.com/v1/secret/agents/berlin", "token")
    assert (place.host, place.checkout) == ("", "")
    assert not place.is_same(vault_place(TO_VAULT, other))
    assert not place.is_same(vault_place(TO_VAULT, {**first, "VAULT_NAMESPACE": "team"}))
    assert github_place(TO_GITHUB, {}).path == "https://api.github.com/repos/acme/web/actions/secrets"
    assert not github_place(TO_GITHUB, {}).is_same(github_place(TO_PROD, {}))


async def test_a_plan_asks_a_store_that_is_away_only_once_for_each_connection(vault: VaultServer) -> None:
    vault.set("secret/agents/berlin", {"token": "x"})
    addresses = [Address("TunnelCredential", f"a{number}") for number in range(40)]
    deliveries = dict.fromkeys(addresses, TO_VAULT)
    assert await find_existing(deliveries, vault.environ) == frozenset(addresses)
    assert await find_existing(deliveries, {}) == frozenset()
    vault.log.clear()
    vault.sealed = True
    assert await find_existing(deliveries, vault.environ) == frozenset()
    assert len(vault.log) <= 8


async def test_a_delivery_goes_to_the_store_that_it_names_and_overwrites_only_if_told(
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


async def test_a_plan_tells_the_targets_that_exist_from_those_that_do_not(
    vault: VaultServer, github: GitHubServer
) -> None:
    vault.set("secret/agents/berlin", {"token": "x"})
    other = replace(TO_VAULT, settings={**TO_VAULT.settings, "key": "other"})
    there, free, denied = (Address("TunnelCredential", name) for name in ("there", "free", "denied"))
    deliveries = {free: other, denied: TO_GITHUB, there: TO_VAULT}
    assert await find_existing(deliveries, {**vault.environ, "GITHUB_TOKEN": "wrong"}) == {there}
    github.secrets["", "AGENT"] = "x"
    assert await find_existing(deliveries, {**vault.environ, **github.environ}) == {there, denied}
