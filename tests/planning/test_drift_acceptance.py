"""Which drift may be written into a manifest, on plans without a project on disk."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.planning.drift_acceptance import find_offers
from tests.planning.builders import (
    KINDS,
    body_of,
    declare,
    live,
    make_plan,
    manifest,
    plan_on,
    secret,
    settle,
    snapshot,
)

ROLE = {"role": {"role_arn": "arn:1"}}


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("stream", {"auth": {"creds": {"cloud_access_key_id": "id"}}, "stream_arn": "arn:2"}),
        ("stream", {"auth": ROLE, "stream_arn": "arn:2"}),
        ("ingestion", {"tenant_id": "t", "client_id": "c", "logs_ingestion_uri": "https://x.example.com"}),
    ],
)
def test_an_object_with_a_secret_inside_is_declined_whole(member: str, value: dict[str, Any]) -> None:
    """The response omits the secret: without it the manifest would not be valid, or would unset it."""
    declared = declare("EventDestination/d", {"target": {"metrics": {"api_key": secret("hush-hush")}}})
    world = settle(declared)
    body_of(world, "EventDestination")["target"] = {member: value}
    plan = plan_on(world, declared)
    offers, declined = find_offers(plan, manifest(declared), world.snapshot(), KINDS, both=True)
    assert not [offer for offer in offers if offer.path[:2] == ("target", member)]
    assert [each.why for each in declined if each.subject == f"EventDestination/d.target.{member}"] == [
        "it is secret or write-only, and cannot be written to a manifest"
    ]


def test_what_differs_in_an_object_that_will_be_adopted_is_offered() -> None:
    there = live("TLSEdge", "edgtls_1", {"description": "by hand"})
    declared = declare("TLSEdge/e", {"description": "in Git"}, id="edgtls_1")
    seen = snapshot(there)
    plan = make_plan(declared, seen=seen)
    offers, declined = find_offers(plan, manifest(declared), seen, KINDS, both=True)
    assert [(offer.path, offer.value) for offer in offers] == [(("description",), "by hand")]
    assert declined == []


def test_what_will_be_created_has_no_drift_to_accept() -> None:
    declared = declare("TLSEdge/e", {"description": "in Git"})
    assert find_offers(make_plan(declared), manifest(declared), snapshot(), KINDS, both=True) == ([], [])
