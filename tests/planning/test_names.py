"""Names for the ids in changes, and the fields that a deletion shows."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.model.change import Action
from reconciler.rendering.plan.outline import build_outline
from tests.harness.builders import change_of, declare, live, make_plan, record, snapshot

RULE = {"ip_policy": {"id": "ipp_1"}, "cidr": "10.0.0.0/8", "action": "deny"}


def restrict(*ids: str) -> dict[str, Any]:
    return {"ip_restriction": {"enabled": True, "ip_policies": [{"id": id} for id in ids]}}


def test_ids_on_both_sides_have_names() -> None:
    plan = make_plan(
        declare("TLSEdge/e", {"ip_restriction": {"ip_policy_ids": ["ipp_1", "ipp_5"]}}),
        declare("IPPolicy/office"),
        seen=snapshot(
            live("TLSEdge", "edgtls_1", restrict("ipp_1", "ipp_2", "ipp_3", "ipp_4"), owner=record("TLSEdge/e", {})),
            live("IPPolicy", "ipp_1", owner=record("IPPolicy/office", {})),
            live("IPPolicy", "ipp_2", owner=record("IPPolicy/old", {})),
            live("IPPolicy", "ipp_3", owner=record("IPPolicy/x", {}, stack="web")),
            live("IPPolicy", "ipp_4", {"description": "By hand"}),
            live("IPPolicy", "ipp_5"),
            live("IPPolicy", "ipp_6", owner=record("IPPolicy/unrelated", {}, stack="web")),
        ),
    )
    assert plan.names == {
        "ipp_1": "IPPolicy/office",
        "ipp_2": "IPPolicy/old",
        "ipp_3": "IPPolicy/x of stack web",
        "ipp_4": 'IPPolicy "By hand"',
    }
    (edge,) = (row for row in build_outline(plan).changes if row.address == "TLSEdge/e")
    lines = [line for field in edge.fields for value in (field.old, field.new) if value for line in value.lines]
    assert "IPPolicy/office (ipp_1)" in lines
    assert "IPPolicy/x of stack web (ipp_3)" in lines
    assert '"ipp_5"' in lines


def test_a_plan_without_changes_has_no_names() -> None:
    office = live("IPPolicy", "ipp_1", owner=record("IPPolicy/office", {}))
    assert make_plan(declare("IPPolicy/office"), seen=snapshot(office)).names == {}


@pytest.mark.parametrize(
    ("address", "id", "body", "identity"),
    [
        ("ReservedDomain/a", "rd_1", {"domain": "a.example.com"}, {"domain": "a.example.com"}),
        ("ReservedAddress/a", "ra_1", {"addr": "1.tcp.example.com:20001"}, {"addr": "1.tcp.example.com:20001"}),
        ("TLSEdge/a", "edgtls_1", {"hostports": ["a.example.com:443"]}, {"hostports": ["a.example.com:443"]}),
        ("CloudEndpoint/a", "ep_1", {"url": "https://a.example.com"}, {"url": "https://a.example.com"}),
        (
            "TunnelCredential/a",
            "cr_1",
            {"acl": ["bind:a.example.com"], "description": "CI", "token": None},
            {"acl": ["bind:a.example.com"], "description": "CI"},
        ),
        ("IPPolicyRule/a", "ipr_1", RULE, {"ip_policy_id": "ipp_1", "cidr": "10.0.0.0/8", "action": "deny"}),
        ("CertificateAuthority/a", "ca_1", {"ca_pem": "-----BEGIN\nabc\n-----END\n"}, {}),
        ("Vault/a", "vault_1", {"name": "pay"}, {"name": "pay"}),
    ],
)
def test_a_deletion_shows_the_identity_of_its_object(
    address: str, id: str, body: dict[str, Any], identity: dict[str, Any]
) -> None:
    kind = address.partition("/")[0]
    plan = make_plan(seen=snapshot(live(kind, id, body, owner=record(address, {}))))
    change = change_of(plan, address)
    assert (change.action, change.identity, change.fields) == (Action.DELETE, identity, ())
    (row,) = build_outline(plan).changes
    assert [field.path for field in row.fields] == [*identity]


def test_a_bot_user_has_the_name_of_its_declaration_for_either_of_its_ids() -> None:
    plan = make_plan(
        declare("BotUser/ci", {"name": "ci"}),
        declare("APIKey/k", {"owner_id": "service_1"}),
        seen=snapshot(live("BotUser", "bot_1", {"name": "ci", "active": True})),
    )
    assert plan.names == {"bot_1": "BotUser/ci"}


def test_an_object_without_an_identifying_text_has_no_name() -> None:
    """Its labels are a map, and its id is random."""
    backend = live("TunnelGroupBackend", "bkdtg_1", {"labels": {"app": "web"}})
    edge = declare("TLSEdge/e", {"backend": {"backend_id": "bkdtg_1"}})
    assert make_plan(edge, seen=snapshot(backend)).names == {}
    described = live("TunnelGroupBackend", "bkdtg_1", {"labels": {"app": "web"}, "description": "web"})
    assert make_plan(edge, seen=snapshot(described)).names == {"bkdtg_1": 'TunnelGroupBackend "web"'}


@pytest.mark.parametrize(("length", "is_named"), [(100, True), (101, False)])
def test_a_name_is_not_longer_than_a_hundred_characters(length: int, is_named: bool) -> None:
    policy = live("IPPolicy", "ipp_1", {"description": "x" * length})
    edge = declare("TLSEdge/e", {"ip_restriction": {"ip_policy_ids": ["ipp_1"]}})
    assert bool(make_plan(edge, seen=snapshot(policy)).names) is is_named
