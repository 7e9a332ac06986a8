"""Secrets that a plan cannot read: assumed to be as last applied, or unknown."""

from __future__ import annotations

import json
from typing import Any

from msgspec.structs import replace

from reconciler.model.address import Address
from reconciler.model.canonical import digest_sources
from reconciler.model.manifest import Declaration, Manifest
from reconciler.model.plan import Plan
from reconciler.model.problem import Position
from reconciler.model.value import Hidden, Secret, UnreadSecret, Value
from reconciler.planning.planner import plan
from tests.harness.world import RandomAccount
from tests.laws.test_laws import EVERYTHING, KINDS, apply_manifest

SECRET, ENDPOINT = Address("EventDestination", "metrics"), Address("CloudEndpoint", "shop")


def declare(address: Address, spec: dict[str, Value]) -> Manifest:
    return Manifest("laws", {address: Declaration(address, spec, Position("m.yaml", 1, 1))})


def destination(key: Value, site: str = "eu") -> Manifest:
    return declare(SECRET, {"target": {"metrics": {"api_key": key, "site": site}}})


def endpoint(*logins: Value, status: int = 403) -> Manifest:
    login = {"type": "basic-auth", "config": {"credentials": list(logins)}}
    deny = {"type": "deny", "config": {"status_code": status}}
    policy = {"on_http_request": [{"actions": [login, deny]}]}
    return declare(ENDPOINT, {"url": "https://shop.internal", "traffic_policy": policy})


def plan_unread(manifest: Manifest, world: RandomAccount, base: Manifest | None = None) -> Plan:
    kinds = {kind.name: kind for kind in KINDS}
    former = base.declarations.items() if base is not None else ()
    sources = {address: digest_sources(kinds[address.kind], found.spec) for address, found in former}
    options = replace(EVERYTHING, assumes_secrets=True, unread=frozenset({"env:A", "env:B"}), base_sources=sources)
    return plan(manifest, world.snapshot(), KINDS, options)


def forget_sources(world: RandomAccount) -> None:
    """Makes the owner records those of an earlier version."""
    for body in world.objects.values():
        record: dict[str, Any] = json.loads(body["metadata"])
        del record["reconciler"]["sources"]
        body["metadata"] = json.dumps(record)


def test_the_reference_of_the_last_apply_decides_whether_a_secret_is_assumed() -> None:
    world = apply_manifest(destination(Secret("x", "env:A")))
    same, other = (plan_unread(destination(UnreadSecret(source)), world) for source in ("env:A", "env:B"))
    assert [secret.path for secret in same.assumed] == ["target.metrics.api_key"]
    assert (same.changes, [problem.code for problem in same.problems]) == ((), ["secrets-assumed"])
    assert [field.new for field in other.changes[0].fields] == [Hidden("", "env:B")]
    assert other.assumed == ()


def test_references_of_the_base_count_where_the_owner_record_has_none() -> None:
    base = destination(Secret("x", "env:A"))
    world = apply_manifest(base)
    forget_sources(world)
    assert plan_unread(destination(UnreadSecret("env:A")), world, base).changes == ()
    assert plan_unread(destination(UnreadSecret("env:B")), world, base).changes != ()
    assert plan_unread(destination(UnreadSecret("env:B")), world).assumed != ()


def test_a_reference_in_place_of_a_secret_in_the_manifest_is_another_reference() -> None:
    base = destination(Secret("x", "manifest:EventDestination/metrics.target"))
    world = apply_manifest(base)
    assert plan_unread(destination(UnreadSecret("env:A")), world, base).assumed == ()


def test_an_object_that_was_never_applied_has_no_secret_to_assume() -> None:
    world = RandomAccount(KINDS)
    (change,) = plan_unread(destination(UnreadSecret("env:A")), world).changes
    assert Hidden("", "env:A") in [field.new for field in change.fields]


def test_a_document_is_compared_around_the_secrets_inside() -> None:
    world = apply_manifest(endpoint(Secret("a:one", "env:A"), Secret("b:two", "env:B")))
    logins = UnreadSecret("env:A"), UnreadSecret("env:B")
    assert plan_unread(endpoint(*logins), world).changes == ()
    edited = plan_unread(endpoint(*logins, status=404), world)
    assert [field.path.rpartition(".")[2] for field in edited.changes[0].fields] == ["status_code"]
    assert [secret.source for secret in edited.assumed] == ["env:A", "env:B"]
    exchanged = plan_unread(endpoint(*reversed(logins)), world)
    assert exchanged.assumed == ()
    assert exchanged.changes != ()


def test_a_secret_is_unknown_if_the_document_around_it_changed_on_the_platform() -> None:
    world = apply_manifest(endpoint(Secret("a:one", "env:A")))
    (body,) = world.objects.values()
    body["traffic_policy"] = body["traffic_policy"].replace("403", "404")
    drifted = plan_unread(endpoint(UnreadSecret("env:A")), world)
    assert drifted.assumed == ()
    assert drifted.changes != ()
