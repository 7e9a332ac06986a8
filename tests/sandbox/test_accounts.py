"""Several accounts in one sandbox: keys, objects, budgets, names that all accounts share."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from reconciler import Runtime, Status, Workspace
from reconciler.cli.main import main
from reconciler.cli.terminal import exit_codes
from reconciler.sandbox.server.accounts import read_accounts
from reconciler.testing import Emulator, Sandbox
from tests.harness.platform import SandboxProcess
from tests.sandbox.account import BODIES, Account

FIRST, SECOND = "sandbox-0001", "sandbox-0002"


@pytest.fixture
def platform() -> Iterator[Sandbox]:
    with Sandbox(accounts=2) as running:
        yield running


@pytest.fixture
def pair(platform: Sandbox) -> tuple[Emulator, Emulator]:
    return platform.accounts[FIRST], platform.accounts[SECOND]


# --- keys -------------------------------------------------------------------------------------------------------------


def test_accounts_are_numbered_and_their_keys_are_their_names(platform: Sandbox) -> None:
    assert list(platform.accounts) == [FIRST, SECOND]
    assert platform.get("/_sandbox/accounts") == {"accounts": [FIRST, SECOND]}
    assert platform.accounts[FIRST].environ == {
        "RECONCILER_BASE_URL": platform.base_url,
        "RECONCILER_API_KEY": FIRST,
    }


def test_a_created_key_works_in_its_account_until_it_is_deleted(pair: tuple[Emulator, Emulator]) -> None:
    one, two = pair
    made = one.post("/api_keys", {})
    one.post("/ip_policies", {"description": "office"})
    headers = {"Authorization": f"Bearer {made['token']}", "Service-Version": "2"}
    found = two.request("GET", "/ip_policies", headers=headers).json()["ip_policies"]
    assert [policy["description"] for policy in found] == ["office"]
    one.delete(f"/api_keys/{made['id']}")
    assert two.request("GET", "/ip_policies", headers=headers).status_code == 403


def test_an_unknown_key_is_refused_by_each_account(platform: Sandbox) -> None:
    headers = {"Authorization": "Bearer sandbox-0003", "Service-Version": "2"}
    assert platform.request("GET", "/ip_policies", headers=headers).status_code == 403


def test_a_created_key_of_an_account_that_is_no_longer_served_is_refused(tmp_path: Path) -> None:
    database = tmp_path / "platform.db"
    with SandboxProcess(db=database, accounts=2) as running:
        token = running.accounts[SECOND].post("/api_keys", {})["token"]
    headers = {"Authorization": f"Bearer {token}", "Service-Version": "2"}
    for accounts, status in ((1, 403), (0, 403), (2, 200)):
        with SandboxProcess(db=database, accounts=accounts) as running:
            assert running.request("GET", "/api_keys", headers=headers).status_code == status


# --- objects ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("collection", sorted(body for body in BODIES if "{" not in body))
def test_objects_of_another_account_do_not_exist(pair: tuple[Emulator, Emulator], collection: str) -> None:
    one, two = pair
    made = Account(one).make(collection)
    path = f"{collection}/{made['id']}"
    assert (
        one.request("GET", collection).json() != two.request("GET", collection).json() or collection == "/abuse_reports"
    )
    for method, body in (("GET", None), ("PATCH", {}), ("DELETE", None)):
        answers = [emulator.request(method, path, body) for emulator in (two, one)]
        if answers[1].status_code != 405:
            assert answers[0].status_code == 404, answers[0].text


@pytest.mark.parametrize(
    ("collection", "body", "code"),
    [
        (
            "/ip_policy_rules",
            lambda a: {"ip_policy_id": a.id("/ip_policies"), "cidr": "10.0.0.0/8", "action": "deny"},
            "1414",
        ),
        ("/ip_restrictions", lambda a: {"type": "api", "ip_policy_ids": [a.id("/ip_policies")]}, "1801"),
        ("/backends/failover", lambda a: {"backends": [a.id("/backends/tunnel_group")]}, "6501"),
        ("/edges/tls", lambda a: {"hostports": [f"{a.domain()}:443"]}, "7117"),
        ("/edges/tcp", lambda a: {"hostports": [a.make("/reserved_addrs")["addr"]]}, "7113"),
        ("/credentials", lambda a: {"owner_id": a.id("/bot_users")}, ""),
        ("/credentials", lambda a: {"owner_id": a.make("/credentials")["owner_id"]}, ""),
    ],
)
def test_a_reference_to_an_object_of_another_account_is_refused(
    pair: tuple[Emulator, Emulator], collection: str, body: object, code: str
) -> None:
    one, two = pair
    assert callable(body)
    theirs = body(Account(one))
    assert two.refusal("POST", collection, theirs)[1] == code
    one.post(collection, theirs)


def test_a_page_after_an_id_of_another_account_is_as_after_a_deleted_one(pair: tuple[Emulator, Emulator]) -> None:
    one, two = pair
    older = two.post("/ip_policies", {"description": "a"})
    theirs = one.post("/ip_policies", {"description": "b"})
    two.post("/ip_policies", {"description": "c"})
    page = two.get(f"/ip_policies?before_id={theirs['id']}")["ip_policies"]
    assert [policy["id"] for policy in page] == [older["id"]]


def test_events_are_delivered_to_the_destinations_of_the_account(platform: Sandbox) -> None:
    one, two = platform.accounts[FIRST], platform.accounts[SECOND]
    destination = Account(one).make("/event_destinations")["id"]
    one.post(
        "/event_subscriptions",
        {"description": "all", "destination_ids": [destination], "sources": [{"type": "ip_policy_created.v0"}]},
    )
    for emulator, name in ((two, "theirs"), (one, "ours")):
        emulator.post("/ip_policies", {"description": name})
    deliveries = one.get(f"/_sandbox/deliveries?destination={destination}&account={FIRST}")["deliveries"]
    assert [delivery["event"]["object"]["description"] for delivery in deliveries] == ["ours"]


def test_objects_without_validation_are_stored_in_the_account(pair: tuple[Emulator, Emulator]) -> None:
    one, two = pair
    one.plant("endpoints", {"type": "ephemeral", "url": "https://a.sandbox.test"})
    assert (len(one.get("/endpoints")["endpoints"]), two.get("/endpoints")["endpoints"]) == (1, [])


# --- rules that need a second account ---------------------------------------------------------------------------------


def test_a_domain_is_reserved_once_on_the_platform(pair: tuple[Emulator, Emulator]) -> None:
    one, two = pair
    made = one.post("/reserved_domains", {"domain": "a.example.com"})
    assert one.refusal("POST", "/reserved_domains", {"domain": "A.example.com"}) == (400, "413")
    assert two.refusal("POST", "/reserved_domains", {"domain": "A.example.com"}) == (400, "414")
    one.delete(f"/reserved_domains/{made['id']}")
    two.post("/reserved_domains", {"domain": "a.example.com"})
    assert one.refusal("POST", "/reserved_domains", {"domain": "a.example.com"}) == (400, "414")


def test_a_public_key_is_registered_once_on_the_platform(pair: tuple[Emulator, Emulator]) -> None:
    one, two = pair
    body = BODIES["/ssh_credentials"](Account(one))
    one.post("/ssh_credentials", body)
    assert one.refusal("POST", "/ssh_credentials", body) == (400, "609")
    assert two.refusal("POST", "/ssh_credentials", body) == (400, "610")


def test_the_domain_of_an_agent_ingress_is_unique_on_the_platform(pair: tuple[Emulator, Emulator]) -> None:
    one, two = pair
    one.post("/agent_ingresses", {"domain": "agents.example.com"})
    assert two.refusal("POST", "/agent_ingresses", {"domain": "agents.example.com"}) == (400, "6706")


def test_reserved_addresses_differ_between_accounts(pair: tuple[Emulator, Emulator]) -> None:
    assert len({emulator.post("/reserved_addrs", {"region": "us"})["addr"] for emulator in pair for _ in range(2)}) == 4


@pytest.mark.parametrize("collection", ["/bot_users", "/vaults", "/ip_restrictions"])
def test_names_are_unique_in_one_account_only(pair: tuple[Emulator, Emulator], collection: str) -> None:
    for emulator in pair:
        body = BODIES[collection](Account(emulator))
        emulator.post(collection, body)
        assert emulator.refusal("POST", collection, body)[0] == 400


def test_only_the_administrator_of_the_account_sets_owners_and_manages_bots(pair: tuple[Emulator, Emulator]) -> None:
    one, two = pair
    bots = [emulator.post("/bot_users", {"name": "pipeline"})["id"] for emulator in pair]
    token = two.post("/api_keys", {"owner_id": bots[1]})["token"]
    two.api_key = token
    administrator = one.post("/credentials", {})["owner_id"]
    assert two.post("/credentials", {})["owner_id"] == bots[1]
    for owner in (bots[0], administrator):
        assert two.refusal("POST", "/credentials", {"owner_id": owner}) == (400, "630")
    assert two.refusal("POST", "/bot_users", {"name": "another"}) == (400, "4111")
    assert two.refusal("DELETE", f"/bot_users/{bots[0]}")[0] == 404
    one.post("/bot_users", {"name": "another"})


# --- budgets, faults, the log -----------------------------------------------------------------------------------------


def test_each_account_has_a_budget_of_its_own() -> None:
    with Sandbox(accounts=2, requests_per_minute=2) as platform:
        one, two = platform.accounts[FIRST], platform.accounts[SECOND]
        key = one.post("/api_keys", {})["token"]
        headers = {"Authorization": f"Bearer {key}", "Service-Version": "2"}
        assert one.request("GET", "/bot_users", headers=headers).status_code == 200
        assert one.request("GET", "/bot_users").status_code == 429
        assert two.request("GET", "/bot_users").status_code == platform.request("GET", "/bot_users").status_code == 200
        platform.put(f"/_sandbox/budget?account={FIRST}", {"limit": 1})
        assert [one.request("GET", "/bot_users").status_code for _ in range(2)] == [200, 429]
        assert two.request("GET", "/bot_users").status_code == 200
        platform.put("/_sandbox/budget", {})
        assert [emulator.request("GET", "/bot_users").status_code for emulator in (one, two)] == [200, 200]


async def test_concurrent_requests_count_in_their_account() -> None:
    arrived = asyncio.Event()

    async def hold(method: str, path: str) -> None:
        if path == "/bot_users":
            arrived.set()
            await asyncio.Event().wait()

    with Sandbox(accounts=2, on_request=hold) as platform:
        one, two = platform.accounts[FIRST], platform.accounts[SECOND]
        platform.put("/_sandbox/budget", {"at_once": 1})
        async with httpx.AsyncClient(transport=platform.transport, base_url=platform.base_url) as client:
            first = asyncio.ensure_future(client.get("/bot_users", headers=one.headers))
            await arrived.wait()
            answers = [await client.get("/ip_policies", headers=emulator.headers) for emulator in (one, two)]
            first.cancel()
    assert [answer.status_code for answer in answers] == [429, 200]


async def test_faults_and_the_log_have_the_account(platform: Sandbox) -> None:
    one, two = platform.accounts[FIRST], platform.accounts[SECOND]
    two.fault("GET /bot_users", then="status", status=404)
    statuses = []
    for emulator in (platform, one, two):
        async with emulator.open_reader() as reader:
            try:
                await reader.get("/bot_users")
            except Exception as error:  # noqa: BLE001 - which one is of no interest here
                statuses.append(type(error).__name__)
            else:
                statuses.append("served")
    assert statuses[:2] == ["served", "served"] != statuses[1:]
    assert [(request.get("account"), request["status"]) for request in platform.log()] == [
        (None, 200),
        (FIRST, 200),
        (SECOND, 404),
    ]
    assert [request["status"] for request in two.log()] == [404]


def test_a_control_request_for_an_unknown_account_is_refused(platform: Sandbox) -> None:
    assert platform.refusal("GET", "/_sandbox/requests?account=nobody") == (400, "")


def test_a_reset_empties_all_accounts(platform: Sandbox, pair: tuple[Emulator, Emulator]) -> None:
    pair[0].post("/reserved_domains", {"domain": "a.example.com"})
    platform.reset()
    assert pair[0].get("/reserved_domains")["reserved_domains"] == []
    pair[1].post("/reserved_domains", {"domain": "a.example.com"})


# --- projects ---------------------------------------------------------------------------------------------------------

MANIFEST = """\
kind: IPPolicy
name: office
spec: {description: Head office}
---
kind: ReservedDomain
name: api
spec: {domain: api.example.com}
"""


async def test_one_project_is_applied_to_several_accounts_and_a_shared_domain_to_one(
    tmp_path: Path, platform: Sandbox, pair: tuple[Emulator, Emulator]
) -> None:
    results = []
    for account in pair:
        root = tmp_path / account.account_name
        (root / "manifests").mkdir(parents=True)
        (root / "reconciler.yaml").write_text("stack: shop\n")
        (root / "manifests" / "all.yaml").write_text(MANIFEST)
        runtime = Runtime(environ=account.environ, platform=account, store="memory:")
        results.append(await Workspace.open(root, runtime=runtime).apply())
    assert [result.status for result in results] == [Status.APPLIED, Status.PARTIAL]
    for account, domains in zip(pair, (1, 0), strict=True):
        assert len(account.get("/ip_policies")["ip_policies"]) == 1
        assert len(account.get("/reserved_domains")["reserved_domains"]) == domains
    assert [(request["path"], request["status"]) for request in pair[1].log() if request["method"] == "POST"] == [
        ("/ip_policies", 201),
        ("/reserved_domains", 400),
    ]
    assert platform.get("/ip_policies")["ip_policies"] == []


# --- lists of accounts ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        '[{"name": "berlin", "key": "k1", "labels": {"region": "eu"}}, {"name": "tokyo", "key": "k2"}]',
        "name,region,key\nberlin,eu,k1\ntokyo,jp,k2\n",
    ],
)
def test_accounts_are_read_from_a_file(tmp_path: Path, text: str) -> None:
    file = tmp_path / "accounts"
    file.write_text(text)
    assert read_accounts(file, "sandbox") == {"k1": "berlin", "k2": "tokyo"}
    with SandboxProcess(accounts=file) as running:
        running.accounts["berlin"].post("/bot_users", {"name": "a"})
        assert running.accounts["tokyo"].get("/bot_users")["bot_users"] == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('[{"name": "a"}]', "account 1: key: field required"),
        ('[{"name": "a", "key": 5}]', "account 1: key: input should be a valid string"),
        ("[5]", "account 1: it must be an object"),
        ("{}", "must be a JSON list or a CSV table with the columns name and key"),
        ("name,token\na,b\n", "account 1: key: field required"),
        ("name,key\na,b\na,c\n", "account 'a': the name is used twice"),
        ("name,key\na,b\nc,b\n", "account 'c': another account has the same key"),
        ("name,key\na,sandbox\n", "account 'a': another account has the same key"),
        ("name,key\na/b,c\n", "account 'a/b': a name has up to 100 letters"),
        ("name,key\na,\n", "account 'a': the key is empty"),
    ],
)
def test_an_invalid_list_of_accounts_ends_the_command_with_the_reason(
    tmp_path: Path, text: str, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "accounts"
    file.write_text(text)
    assert main(["sandbox", "--accounts", str(file)]) == exit_codes.ERROR
    assert f"error: {file}: {why}" in " ".join(capsys.readouterr().err.split())


# --- without more accounts --------------------------------------------------------------------------------------------


def test_without_other_accounts_faults_and_log_do_not_name_accounts(sandbox: Sandbox) -> None:
    sandbox.fault("GET /bot_users", times=0)
    assert "account" not in sandbox.get("/_sandbox/faults")["faults"][0]
    assert sandbox.get("/_sandbox/accounts") == {"accounts": []}
    assert not sandbox.accounts
