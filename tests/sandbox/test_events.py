"""Deliveries of events: one for each change of each kind that has events, and without secrets."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler import kinds
from reconciler.sandbox.base.database import Database
from reconciler.sandbox.base.vocabulary import EVENT_TYPES
from reconciler.sandbox.operations.events import KEPT, SUBJECTS, Events
from reconciler.sandbox.operations.objects import Objects
from reconciler.sandbox.operations.routes import Router, operations
from tests.harness.platform import Sandbox, SandboxProcess
from tests.kinds import pems
from tests.sandbox.account import Account

COLLECTIONS = {
    "api_key": "/api_keys",
    "certificate_authority": "/certificate_authorities",
    "domain": "/reserved_domains",
    "event_destination": "/event_destinations",
    "event_subscription": "/event_subscriptions",
    "ip_policy": "/ip_policies",
    "ip_policy_rule": "/ip_policy_rules",
    "ip_restriction": "/ip_restrictions",
    "secret": "/vault_secrets",
    "ssh_certificate_authority": "/ssh_certificate_authorities",
    "ssh_host_certificate": "/ssh_host_certificates",
    "ssh_public_key": "/ssh_credentials",
    "ssh_user_certificate": "/ssh_user_certificates",
    "tcp_address": "/reserved_addrs",
    "tls_certificate": "/tls_certificates",
    "tunnel_credential": "/credentials",
    "vault": "/vaults",
}
OF_NO_OBJECT = {"agent_session_start.v0", "agent_session_stop.v0"}
OF_TRAFFIC = {"http_request_complete.v0", "tcp_connection_closed.v0"}  # the sandbox has none
METRICS = {"metrics": {"api_key": "canary-metrics-key", "service": "edge"}}


def types_of(*subjects: str) -> list[dict[str, str]]:
    return [{"type": f"{subject}_{how}.v0"} for subject in subjects for how in ("created", "updated", "deleted")]


def create_destination(sandbox: Sandbox, sources: list[dict[str, str]]) -> str:
    """Creates a destination with a subscription to these event types. Returns its id."""
    destination = sandbox.post("/event_destinations", {"format": "json", "target": METRICS})["id"]
    sandbox.post("/event_subscriptions", {"sources": sources, "destination_ids": [destination]})
    return str(destination)


def list_events(sandbox: Sandbox, destination: str) -> list[dict[str, Any]]:
    return [
        delivery["event"] for delivery in sandbox.get(f"/_sandbox/deliveries?destination={destination}")["deliveries"]
    ]


def list_event_types(sandbox: Sandbox, destination: str, identity: str) -> list[str]:
    return [
        delivery["event_type"] for delivery in list_events(sandbox, destination) if delivery["object"]["id"] == identity
    ]


def test_each_event_type_is_of_a_kind_an_agent_or_traffic() -> None:
    of_objects = {source["type"] for source in types_of(*COLLECTIONS)}
    assert of_objects | OF_NO_OBJECT | OF_TRAFFIC == EVENT_TYPES
    assert set(SUBJECTS.values()) == set(COLLECTIONS)


@pytest.mark.parametrize("subject", COLLECTIONS)
def test_each_change_of_an_object_is_an_event_with_the_object(sandbox: Sandbox, subject: str) -> None:
    collection, account = COLLECTIONS[subject], Account(sandbox)
    destination = create_destination(sandbox, types_of(subject))
    identity = account.id(collection)
    created = sandbox.get(f"{collection}/{identity}")
    updated = sandbox.patch(f"{collection}/{identity}", {"description": "changed"})
    sandbox.delete(f"{collection}/{identity}")
    events = [event for event in list_events(sandbox, destination) if event["object"]["id"] == identity]
    assert [event["event_type"] for event in events] == [source["type"] for source in types_of(subject)]
    assert [event["object"] for event in events] == [created, updated, updated]


def test_an_event_is_delivered_to_each_destination_of_its_subscriptions(sandbox: Sandbox) -> None:
    first, second = (
        create_destination(sandbox, types_of("ip_policy")),
        create_destination(sandbox, types_of("ip_policy", "vault")),
    )
    neither = create_destination(sandbox, types_of("vault"))
    policy = Account(sandbox).id("/ip_policies")
    assert (
        list_event_types(sandbox, first, policy)
        == list_event_types(sandbox, second, policy)
        == ["ip_policy_created.v0"]
    )
    assert list_events(sandbox, neither) == []


def test_a_refused_request_is_no_event(sandbox: Sandbox) -> None:
    destination = create_destination(sandbox, types_of("domain"))
    domain = sandbox.post("/reserved_domains", {"domain": "app.example.com"})
    sandbox.refusal("POST", "/reserved_domains", {"domain": "app.example.com"})
    sandbox.refusal("PATCH", f"/reserved_domains/{domain['id']}", {"description": "x" * 300})
    assert list_event_types(sandbox, destination, domain["id"]) == ["domain_created.v0"]
    assert len(list_events(sandbox, destination)) == 1


def test_an_update_that_changes_nothing_is_no_event(sandbox: Sandbox) -> None:
    destination = create_destination(sandbox, types_of("ip_policy"))
    policy = sandbox.post("/ip_policies", {"description": "office"})
    sandbox.patch(f"/ip_policies/{policy['id']}", {"description": "office"})
    assert list_event_types(sandbox, destination, policy["id"]) == ["ip_policy_created.v0"]


def test_deletions_of_children_are_events_too(sandbox: Sandbox) -> None:
    destination = create_destination(sandbox, types_of("ip_policy_rule"))
    rule = Account(sandbox).make("/ip_policy_rules")
    sandbox.delete(f"/ip_policies/{rule['ip_policy']['id']}")
    assert list_event_types(sandbox, destination, rule["id"]) == [
        "ip_policy_rule_created.v0",
        "ip_policy_rule_deleted.v0",
    ]


def test_an_added_or_removed_source_updates_its_subscription(sandbox: Sandbox) -> None:
    destination = create_destination(sandbox, types_of("event_subscription"))
    subscription = sandbox.post("/event_subscriptions", {})["id"]
    sandbox.post(f"/event_subscriptions/{subscription}/sources", {"type": "vault_created.v0"})
    sandbox.delete(f"/event_subscriptions/{subscription}/sources/vault_created.v0")
    events = [event for event in list_events(sandbox, destination) if event["object"]["id"] == subscription]
    assert [event["event_type"].split("_")[-1] for event in events] == ["created.v0", "updated.v0", "updated.v0"]
    assert [len(event["object"]["sources"]) for event in events] == [0, 1, 0]


def test_the_event_of_a_deleted_subscription_has_its_sources(sandbox: Sandbox) -> None:
    destination = create_destination(sandbox, types_of("event_subscription"))
    subscription = sandbox.post("/event_subscriptions", {"sources": types_of("vault")})["id"]
    sandbox.delete(f"/event_subscriptions/{subscription}")
    assert len(list_events(sandbox, destination)[-1]["object"]["sources"]) == 3


def test_a_certificate_that_the_platform_obtains_is_an_event(sandbox: Sandbox) -> None:
    destination = create_destination(sandbox, types_of("tls_certificate", "domain"))
    policy = {"authority": "letsencrypt", "private_key_type": "ecdsa"}
    body = {"domain": "app.example.com", "certificate_management_policy": policy}
    domain = sandbox.post("/reserved_domains", body)["id"]
    for _ in range(2):
        sandbox.get(f"/reserved_domains/{domain}")
    types = [event["event_type"] for event in list_events(sandbox, destination)]
    assert sorted(types) == ["domain_created.v0", *["domain_updated.v0"] * 2, "tls_certificate_created.v0"]


def test_a_destination_is_verified_with_a_test_event_on_request(sandbox: Sandbox) -> None:
    body = {"format": "json", "target": METRICS, "verify_with_test_event": True}
    made = sandbox.post("/event_destinations", body)
    assert "verify_with_test_event" not in made
    (event,) = list_events(sandbox, made["id"])
    assert event["object"] == {}


def test_a_destination_that_a_subscription_names_is_not_deleted(sandbox: Sandbox) -> None:
    destination = create_destination(sandbox, types_of("vault"))
    assert sandbox.refusal("DELETE", f"/event_destinations/{destination}") == (400, "5112")


def test_deliveries_of_a_deleted_destination_are_deleted(sandbox: Sandbox) -> None:
    body = {"format": "json", "target": METRICS, "verify_with_test_event": True}
    destination = sandbox.post("/event_destinations", body)["id"]
    sandbox.delete(f"/event_destinations/{destination}")
    assert list_events(sandbox, destination) == []


def test_no_event_holds_a_secret(sandbox: Sandbox) -> None:
    destination = create_destination(sandbox, types_of(*COLLECTIONS))
    account = Account(sandbox)
    secrets = ["canary-metrics-key", "canary-vault-value", pems.private_key("leaf").splitlines()[1]]
    secrets += [account.make(collection)["token"] for collection in ("/credentials", "/api_keys")]
    for target in TARGETS.values():
        made = sandbox.post("/event_destinations", {"format": "json", "target": target})
        sandbox.patch(f"/event_destinations/{made['id']}", {"target": target, "description": "changed"})
    account.make("/tls_certificates")
    account.make("/vault_secrets", value="canary-vault-value")
    delivered = json.dumps(list_events(sandbox, destination))
    assert len(list_events(sandbox, destination)) > 10
    assert [secret for secret in [*secrets, "canary-cloud", "canary-client"] if secret in delivered] == []


@pytest.mark.parametrize("member", ["delivery", "stream", "logs", "metrics", "ingestion"])
def test_each_target_receives_events_with_each_way_to_sign_in(sandbox: Sandbox, member: str) -> None:
    for name, target in TARGETS.items():
        if name.partition(" ")[0] == member:
            made = sandbox.post(
                "/event_destinations", {"format": "json", "target": target, "verify_with_test_event": True}
            )
            assert {key for key, value in made["target"].items() if value is not None} == {member}
            assert len(list_events(sandbox, made["id"])) == 1


def test_deliveries_survive_a_restart(start_sandbox: Callable[..., SandboxProcess], tmp_path: Path) -> None:
    sandbox = start_sandbox(db=tmp_path / "sandbox.sqlite")
    destination = create_destination(sandbox, types_of("ip_policy"))
    Account(sandbox).make("/ip_policies")
    before = list_events(sandbox, destination)
    sandbox.kill()
    sandbox.restart()
    assert list_events(sandbox, destination) == before
    assert len(before) == 1


def test_only_the_latest_deliveries_of_a_destination_are_stored(database: Database) -> None:
    events = Events(database)
    with database.transaction():
        for _ in range(KEPT + 5):
            events.verify("ed_busy")
        events.verify("ed_quiet")
    kept = [delivery["id"] for delivery in events.deliveries("ed_busy")]
    assert len(kept) == KEPT
    assert kept == sorted(kept)
    assert len(events.deliveries("ed_quiet")) == 1


@pytest.fixture
def database() -> Iterator[Database]:
    opened = Database(":memory:")
    yield opened
    opened.close()


ROLE = {"role": {"role_arn": "arn:aws:iam::1:role/events"}}
CREDS = {"creds": {"cloud_access_key_id": "AKIA", "cloud_secret_access_key": "canary-cloud"}}
_ARNS = {"delivery": "delivery_stream_arn", "stream": "stream_arn", "logs": "log_group_arn"}
TARGETS: dict[str, dict[str, Any]] = {
    **{
        f"{member} by {way}": {member: {"auth": auth, key: f"arn:aws:x:eu-1:1:{member}"}}
        for member, key in _ARNS.items()
        for way, auth in (("role", ROLE), ("keys", CREDS))
    },
    "metrics": METRICS,
    "ingestion": {
        "ingestion": {
            "tenant_id": "tenant",
            "client_id": "client",
            "client_secret": "canary-client",
            "logs_ingestion_uri": "https://logs.example.com",
            "data_collection_rule_id": "dcr",
            "data_collection_stream_name": "events",
        }
    },
}


def test_each_object_of_a_transaction_has_one_event() -> None:
    objects = Objects(Database(":memory:"), kinds.every())
    router, view = Router(operations(objects.kinds)), objects.view("")

    def post(path: str, body: dict[str, Any]) -> Any:
        found = router.match(path)
        assert found is not None
        return objects.answer(found.by_method["POST"], found.values, body, view)

    destination = post("/event_destinations", {"format": "json", "target": METRICS})["id"]
    sources = {"sources": types_of("ip_policy"), "destination_ids": [destination]}
    post("/event_subscriptions", sources)
    with objects.database.transaction():
        made = [post("/ip_policies", {"description": name})["id"] for name in ("a", "b", "c")]
    events = [delivery["event"] for delivery in Events(objects.database).deliveries(destination)]
    created = [event["object"]["id"] for event in events if event["event_type"] == "ip_policy_created.v0"]
    objects.database.close()
    assert created == made
