"""Health of credentials, SSH certificates and authorities, and of what sends events."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.health.facts import Facts
from reconciler.model import owner_record as owners
from reconciler.model.address import Address
from reconciler.model.health import Actor, Health, State
from reconciler.model.owner_record import Owner
from tests.health.accounts import NOW, build_facts, judge_first, moment

AGENT = Address("TunnelCredential", "agent")


def judge(kind: str, body: dict[str, Any], unread: tuple[str, ...] = (), **objects: list[dict[str, Any]]) -> Health:
    health = judge_first(build_facts({**objects, kind: [body]}, unread), kind)
    assert health is not None
    return health


def build_credential(id: str = "cr_1", *, days: float = 0, pending: bool = False) -> dict[str, Any]:
    """A credential of the stack that was created some days ago."""
    owner = Owner("shop", AGENT, f"intent-{id}", pending=pending)
    return {"id": id, "metadata": owners.write("", owner), "created_at": moment(days=-days), "owner_id": "usr_1"}


def rotation_facts(*credentials: dict[str, Any], undelivered: tuple[str, ...] = ()) -> Facts:
    """Facts about credentials that are rotated after 30 days."""
    snapshot = build_facts({"TunnelCredential": credentials}).snapshot
    return Facts(replace(snapshot, undelivered=frozenset(undelivered)), NOW.timestamp(), rotations={AGENT: 30 * 86400})


@pytest.mark.parametrize("kind", ["TunnelCredential", "APIKey", "SSHCredential"])
def test_a_credential_of_a_bot_that_is_not_active_is_refused(kind: str) -> None:
    credential = {"id": "x", "owner_id": "bot_1"}

    active = judge(kind, credential, BotUser=[{"id": "bot_1", "name": "berlin", "active": True}])
    inactive = judge(kind, credential, BotUser=[{"id": "bot_1", "name": "berlin", "active": False}])

    assert active.state is State.HEALTHY
    assert inactive.reason == "its owner berlin is not active, so it is refused"
    assert judge(kind, credential).reason == "its owner does not exist"
    assert judge(kind, credential, unread=("BotUser",)).state is State.UNKNOWN


def test_a_secret_that_was_not_delivered_is_lost() -> None:
    pending = judge_first(rotation_facts(build_credential(pending=True)), "TunnelCredential")
    undelivered = judge_first(rotation_facts(build_credential(), undelivered=("intent-cr_1",)), "TunnelCredential")

    assert pending is not None
    assert (pending.state, pending.actor) == (State.DEGRADED, Actor.YOU)
    assert undelivered == pending


def test_a_credential_is_degraded_a_day_after_its_rotation_was_due() -> None:
    found = [judge_first(rotation_facts(build_credential(days=age)), "TunnelCredential") for age in (10, 30.5, 32)]

    assert [health and health.state for health in found] == [State.HEALTHY, State.PROGRESSING, State.DEGRADED]
    assert found[0] is not None
    assert found[0].due == NOW.timestamp() + 20 * 86400


def test_the_predecessor_of_a_rotated_credential_is_not_overdue() -> None:
    facts = rotation_facts(build_credential("cr_1", days=60), build_credential("cr_2", days=1))

    assert judge_first(facts, "TunnelCredential") == Health(State.HEALTHY)


# --- SSH and authorities ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["SSHHostCertificate", "SSHUserCertificate"])
def test_an_ssh_certificate_needs_its_authority(kind: str) -> None:
    certificate = {"id": "x", "ssh_certificate_authority_id": "sshca_1", "valid_until": moment(days=90)}
    authority = [{"id": "sshca_1"}]

    assert judge(kind, certificate, SSHCertificateAuthority=authority).state is State.HEALTHY
    assert judge(kind, certificate).reason == "the authority that signed it does not exist"
    assert judge(kind, certificate, unread=("SSHCertificateAuthority",)).state is State.UNKNOWN
    soon = {**certificate, "valid_until": moment(days=9)}
    assert judge(kind, soon, SSHCertificateAuthority=authority).reason == "expires on 2026-06-10"


def test_an_ssh_certificate_for_a_day_is_degraded_in_its_last_third() -> None:
    def judge_at(hours: float) -> State:
        certificate = {"id": "x", "ssh_certificate_authority_id": "sshca_1",
                       "valid_after": moment(hours=-hours), "valid_until": moment(hours=24 - hours)}  # fmt: skip
        return judge("SSHUserCertificate", certificate, SSHCertificateAuthority=[{"id": "sshca_1"}]).state

    assert [judge_at(15), judge_at(17), judge_at(25)] == [State.HEALTHY, State.DEGRADED, State.DEGRADED]


def test_a_certificate_authority_expires() -> None:
    authority = {"id": "ca_1", "not_before": moment(days=-300), "not_after": moment(days=20)}

    assert judge("CertificateAuthority", authority) == Health(State.HEALTHY, due=NOW.timestamp() + 20 * 86400)
    assert judge("CertificateAuthority", {**authority, "not_after": moment(days=13)}).state is State.DEGRADED
    assert judge("CertificateAuthority", {**authority, "not_after": "soon"}).state is State.UNKNOWN


# --- events -----------------------------------------------------------------------------------------------------------


def test_a_destination_receives_events_only_from_a_subscription() -> None:
    destination = {"id": "ed_1"}
    subscription = {"id": "esb_1", "destinations": [{"id": "ed_1"}]}

    assert judge("EventDestination", destination, EventSubscription=[subscription]).state is State.HEALTHY
    assert judge("EventDestination", destination).reason == "no event subscription sends to it"
    assert judge("EventDestination", destination, unread=("EventSubscription",)).state is State.UNKNOWN


def test_a_subscription_needs_event_types_and_a_destination() -> None:
    destinations = [{"id": "ed_1"}]
    whole = {"id": "esb_1", "sources": [{"type": "ip_policy_created.v0"}], "destinations": [{"id": "ed_1"}]}
    source = {"type": "ip_policy_created.v0", "subscription_id": "esb_1"}

    assert judge("EventSubscription", whole, EventDestination=destinations).state is State.HEALTHY
    assert (
        judge("EventSubscription", {**whole, "sources": []}, EventDestination=destinations).reason
        == "it has no event types"
    )
    by_child = judge("EventSubscription", {**whole, "sources": []}, EventSource=[source], EventDestination=destinations)
    assert by_child.state is State.HEALTHY
    assert judge("EventSubscription", {**whole, "destinations": []}).reason == "it has no destination"
    assert judge("EventSubscription", whole).reason == "its destinations do not exist"
