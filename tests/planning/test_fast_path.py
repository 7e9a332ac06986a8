"""The fast check for resources in sync: it recognizes what was applied and never accepts a change.

A law in tests/laws/test_laws.py compares it with the full comparison.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from msgspec.structs import replace

from reconciler.model.manifest import Declaration, Ensure, Manifest, Rotation
from reconciler.model.snapshot import Live, Snapshot
from reconciler.planning.comparing.name_references import resolve_names
from reconciler.planning.deciding.decision import Decision
from reconciler.planning.deciding.fast_path import is_up_to_date
from reconciler.planning.deciding.references import References
from reconciler.planning.matching.assignments import Assignments
from reconciler.planning.matching.index import LiveIndex
from tests.harness.builders import KINDS, at, declare, live, manifest, plan_on, record, ref, snapshot
from tests.harness.tiers import examples
from tests.harness.world import RandomAccount
from tests.laws.manifests import manifests


def find_up_to_date(declared: Manifest, seen: Snapshot) -> Mapping[str, Live | None]:
    """The result for each declaration of a kind with owner records, while all others are in sync."""
    by_name = {kind.name: kind for kind in KINDS}
    resolved = resolve_names(declared.declarations, by_name)
    declared = replace(declared, declarations={**declared.declarations, **resolved})
    index = LiveIndex.of(declared, seen, KINDS)
    assignments, decided = Assignments(index), dict[Any, Decision]()
    for address, declaration in declared.declarations.items():
        kind = by_name[address.kind]
        found = index.find_recorded(kind, address)
        if found:
            decided[address] = Decision(address, kind, live=found[0], declaration=declaration)
    references = References(decided, seen)
    return {
        str(address): is_up_to_date(
            assignments, by_name[address.kind], declaration, references.resolve, references.follows
        )
        for address, declaration in declared.declarations.items()
        if by_name[address.kind].keeps_owner
    }


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(manifests())
def test_applied_resources_are_accepted(applied: Manifest) -> None:
    world = RandomAccount(KINDS)
    world.carry_out(plan_on(world, *applied.declarations.values()))
    found = find_up_to_date(applied, world.snapshot())
    assert [address for address, seen in found.items() if seen is None] == []


WAS = {"description": "office", "hostports": ["a.example.com:443"]}
EDGE = live("TLSEdge", "e", WAS, owner=record("TLSEdge/e", WAS))
DECLARED = declare("TLSEdge/e", WAS)
TOKEN = {"description": "agent"}


def is_accepted(declaration: Declaration, *live_objects: Live, **seen: Any) -> bool:
    """Whether the fast check finds the first of the live objects in sync."""
    (found,) = find_up_to_date(manifest(declaration), replace(snapshot(*live_objects), **seen)).values()
    assert found in (None, live_objects[0])
    return found is not None


def test_the_object_of_the_tables_below_is_accepted() -> None:
    assert is_accepted(DECLARED, EDGE)


@pytest.mark.parametrize(
    "declaration",
    [
        replace(DECLARED, ensure=Ensure.ABSENT),
        replace(DECLARED, ensure=Ensure.FORGOTTEN),
        replace(DECLARED, id="e"),
        replace(DECLARED, moved=(at("TLSEdge/old"),)),
        replace(DECLARED, address=at("TLSEdge/other")),
        declare("TLSEdge/e", WAS, protect=True),
        declare("TLSEdge/e", WAS, ignore=("description",)),
        declare("TLSEdge/e", {**WAS, "description": "Office"}),
        declare("TLSEdge/e", {**WAS, "hostports": []}),
        declare("TLSEdge/e", {"hostports": WAS["hostports"]}),
        declare("TLSEdge/e", {**WAS, "description": ref("IPPolicy/p")}),
        declare("TLSEdge/e", {**WAS, "backend": {"backend_id": "b"}}),
        declare("TLSEdge/e", {**WAS, "metadata": "text"}),
    ],
)
def test_a_changed_declaration_requires_the_full_comparison(declaration: Declaration) -> None:
    assert not is_accepted(declaration, EDGE)


@pytest.mark.parametrize(
    "live_object",
    [
        live("TLSEdge", "e", {**WAS, "description": "Office"}, owner=EDGE.owner),
        live("TLSEdge", "e", {**WAS, "description": None}, owner=EDGE.owner),
        live("TLSEdge", "e", {**WAS, "hostports": ["a.example.com:8443"]}, owner=EDGE.owner),
        live("TLSEdge", "e", {**WAS, "metadata": "by hand"}, owner=EDGE.owner),
        live("TLSEdge", "e", {**WAS, "mutual_tls": {"certificate_authorities": [{"id": "ca_1"}]}}, owner=EDGE.owner),
        live("TLSEdge", "e", WAS, owner=record("TLSEdge/e", WAS, pending=True)),
        live("TLSEdge", "e", WAS, owner=record("TLSEdge/e", WAS, protect=True)),
        live("TLSEdge", "e", WAS, owner=record("TLSEdge/e", WAS, stack="other")),
        live("TLSEdge", "e", WAS, owner=record("TLSEdge/other", WAS)),
        live("TLSEdge", "e", WAS),
    ],
)
def test_a_changed_object_requires_the_full_comparison(live_object: Live) -> None:
    assert not is_accepted(DECLARED, live_object)


ATTACHED = {"domain": "a.x", "certificate": {"id": "cert_1"}}


@pytest.mark.parametrize(
    ("was", "declared"),
    [
        ({"domain": "a.x"}, {"domain": "a.x"}),
        ({"domain": "a.x"}, {"domain": "a.x", "certificate_id": ""}),
        ({"domain": "a.x", "certificate_id": "cert_2"}, {"domain": "a.x", "certificate_id": "cert_2"}),
    ],
)
def test_a_value_that_responses_show_elsewhere_requires_the_full_comparison(
    was: dict[str, Any], declared: dict[str, Any]
) -> None:
    domain = live("ReservedDomain", "rd_1", ATTACHED, owner=record("ReservedDomain/d", was))
    assert not is_accepted(declare("ReservedDomain/d", declared), domain)
    assert is_accepted(declare("ReservedDomain/d", {"domain": "a.x", "certificate_id": "cert_1"}), domain)


def test_an_object_that_shares_its_owner_record_requires_the_full_comparison() -> None:
    assert not is_accepted(DECLARED, EDGE, live("TLSEdge", "e2", WAS, owner=EDGE.owner))
    successor = live("TLSEdge", "e2", WAS, owner=record("TLSEdge/e", WAS, intent="i2", replaces="e"))
    assert not is_accepted(DECLARED, successor, EDGE)


def test_an_object_of_an_incomplete_list_requires_the_full_comparison() -> None:
    assert not is_accepted(DECLARED, EDGE, listings=snapshot(EDGE, cut=["TLSEdge"]).listings)
    assert is_accepted(DECLARED, EDGE, listings=snapshot(EDGE, cut=["TCPEdge"]).listings)


def test_a_credential_that_may_need_a_new_secret_requires_the_full_comparison() -> None:
    credential = live("TunnelCredential", "cr_1", TOKEN, owner=record("TunnelCredential/c", TOKEN, intent="i1"))
    declared = declare("TunnelCredential/c", TOKEN)
    assert is_accepted(declared, credential)
    assert is_accepted(declared, credential, overwritten={"i2": declared.address})
    assert not is_accepted(declared, credential, overwritten={"i1": declared.address})
    assert not is_accepted(replace(declared, rotate=Rotation(after=1, overlap=0)), credential)


def test_an_object_of_another_declaration_is_not_accepted_for_a_second_one() -> None:
    """Only an object without an owner record that is listed as two kinds can match two declarations."""
    index = LiveIndex.of(manifest(DECLARED), snapshot(EDGE), KINDS)
    assignments, references = Assignments(index), References({}, snapshot(EDGE))
    assignments.assign(EDGE, at("TLSEdge/other"))
    kind = index.kinds["TLSEdge"]
    assert is_up_to_date(assignments, kind, DECLARED, references.resolve, references.follows) is None


@pytest.mark.parametrize(
    ("kind", "declared", "body"),
    [
        ("TLSEdge", {"description": ""}, {"description": None}),
        ("TLSEdge", {}, {"description": "", "hostports": [], "backend": None, "mutual_tls": None}),
        (
            "TLSEdge",
            {"hostports": ["A.example.com:443", "b.example.com:443"]},
            {"hostports": ["b.example.com:443", "a.example.com:443"]},
        ),
        ("TLSEdge", {"backend": {"backend_id": "b"}}, {"backend": {"enabled": True, "backend": {"id": "b"}}}),
        (
            "TLSEdge",
            {"ip_restriction": {"ip_policy_ids": ["p", "q"]}},
            {"ip_restriction": {"enabled": True, "ip_policies": [{"id": "q"}, {"id": "p"}]}},
        ),
        (
            "TLSEdge",
            {"tls_termination": {}},
            {"tls_termination": {"enabled": True, "terminate_at": "edge", "min_version": "1.2"}},
        ),
        ("TunnelGroupBackend", {"labels": {"a": "b"}}, {"labels": {"a": "b"}}),
        ("HTTPResponseBackend", {"status_code": 404, "body": "no"}, {"status_code": 404, "body": "no", "headers": {}}),
        (
            "IPPolicyRule",
            {"ip_policy_id": "p", "cidr": "10.0.0.0/8", "action": "allow"},
            {"ip_policy": {"id": "p"}, "cidr": "10.0.0.0/8", "action": "allow"},
        ),
        ("ReservedDomain", {"domain": "A.x"}, {"domain": "a.x", "region": "us"}),
    ],
)
def test_another_notation_of_the_same_values_is_accepted(
    kind: str, declared: dict[str, Any], body: dict[str, Any]
) -> None:
    live_object = live(kind, "id-1", body, owner=record(f"{kind}/a", declared))
    assert is_accepted(declare(f"{kind}/a", declared), live_object)


@pytest.mark.parametrize(("size", "is_same"), [(2048, True), (4096, False)])
def test_a_write_only_value_is_accepted_by_the_owner_record(size: int, is_same: bool) -> None:
    declared, was = ({"private_key_type": "rsa", "key_size": given} for given in (2048, size))
    owner = record("SSHCertificateAuthority/a", was)
    authority = live("SSHCertificateAuthority", "sshca_1", {"key_type": "rsa"}, owner=owner)
    assert is_accepted(declare("SSHCertificateAuthority/a", declared), authority) is is_same
