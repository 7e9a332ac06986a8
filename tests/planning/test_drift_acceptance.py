"""Drift that can be written into a manifest, on plans without a project on disk."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.model.change import Reason
from reconciler.model.snapshot import Binding
from reconciler.model.value import OMITTED
from reconciler.planning.drift_acceptance import Declined, Offer, find_offers
from tests.harness.builders import (
    KINDS,
    LENIENT,
    at,
    body_of,
    build_account,
    declare,
    live,
    make_plan,
    manifest,
    plan_on,
    record,
    secret,
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
def test_an_object_that_contains_a_secret_is_declined_as_a_whole(member: str, value: dict[str, Any]) -> None:
    """The response omits the secret: without it the manifest would not be valid, or would unset it."""
    declared = declare("EventDestination/d", {"target": {"metrics": {"api_key": secret("hush-hush")}}})
    world = build_account(declared)
    body_of(world, "EventDestination")["target"] = {member: value}
    plan = plan_on(world, declared)
    offers, declined = find_offers(plan, manifest(declared), world.snapshot(), KINDS, both=True)
    assert not [offer for offer in offers if offer.path[:2] == ("target", member)]
    assert [refusal.why for refusal in declined if refusal.subject == f"EventDestination/d.target.{member}"] == [
        "it is secret or write-only, and cannot be written to a manifest"
    ]


def test_drift_of_an_object_that_will_be_adopted_is_offered() -> None:
    edge = live("TLSEdge", "edgtls_1", {"description": "by hand"})
    declared = declare("TLSEdge/e", {"description": "in Git"}, id="edgtls_1")
    seen = snapshot(edge)
    plan = make_plan(declared, seen=seen)
    offers, declined = find_offers(plan, manifest(declared), seen, KINDS, both=True)
    assert [(offer.path, offer.value) for offer in offers] == [(("description",), "by hand")]
    assert declined == []


def test_a_resource_that_will_be_created_has_no_drift_to_accept() -> None:
    declared = declare("TLSEdge/e", {"description": "in Git"})
    assert find_offers(make_plan(declared), manifest(declared), snapshot(), KINDS, both=True) == ([], [])


# --- offers -----------------------------------------------------------------------------------------------------------

AUTHORITY = declare("CertificateAuthority/c", {"ca_pem": "PEM"})
LIVE_AUTHORITY = live(
    "CertificateAuthority", "ca_c", {"ca_pem": "PEM"}, owner=record("CertificateAuthority/c", {"ca_pem": "PEM"})
)
WAS = {"description": "was"}
BY_HAND = {"description": "by hand"}
POLICY = {"traffic_policy": {"value": '{"on_tcp_connect": [{"actions": [{"type": "deny"}]}]}'}}


def trust(*ids: object, **more: object) -> dict[str, Any]:
    return {"mutual_tls": {"certificate_authority_ids": list(ids), **more}}


def live_trust(*ids: str) -> dict[str, Any]:
    return {"mutual_tls": {"enabled": True, "certificate_authorities": [{"id": id} for id in ids]}}


def live_policy(text: str) -> dict[str, Any]:
    return {"traffic_policy": {"enabled": True, "value": text}}


def accept(
    was: dict[str, Any] | None,
    now: dict[str, Any],
    declared: dict[str, Any],
    *,
    both: bool = False,
    kind: str = "TLSEdge",
) -> tuple[list[Offer], list[Declined]]:
    """The offers for one object: `was` was applied (None: nothing), and `now` is live."""
    live_object = live(kind, "id-1", now, owner=None if was is None else record(f"{kind}/e", was))
    manifests = [declare(f"{kind}/e", declared, id="id-1" if was is None else None), AUTHORITY]
    seen = snapshot(live_object, LIVE_AUTHORITY)
    plan = make_plan(*manifests, seen=seen, options=LENIENT)
    return find_offers(plan, manifest(*manifests), seen, KINDS, both=both)


REFERENCE = {"ref": "CertificateAuthority/c"}


@pytest.mark.parametrize(
    ("was", "now", "declared", "path", "value"),
    [
        (WAS, BY_HAND, WAS, "description", "by hand"),
        (WAS, {"description": ""}, WAS, "description", OMITTED),
        (WAS, {"description": "${{ x }}"}, WAS, "description", "$${{ x }}"),
        ({"hostports": ["a.x:443"]}, {"hostports": ["b.x:443"]}, {"hostports": ["a.x:443"]}, "hostports", ["b.x:443"]),
        (trust("ca_9"), live_trust("ca_c"), trust("ca_9"), "mutual_tls.certificate_authority_ids", [REFERENCE]),
        (
            trust("ca_9"),
            live_trust("ca_9", "ca_c"),
            trust("ca_9"),
            "mutual_tls.certificate_authority_ids",
            ["ca_9", REFERENCE],
        ),
        ({}, live_trust("ca_c"), {}, "mutual_tls", {"certificate_authority_ids": [REFERENCE]}),
        (trust("ca_9", enabled=False), live_trust("ca_9"), trust("ca_9", enabled=False), "mutual_tls.enabled", OMITTED),
        (trust("ca_9"), {"mutual_tls": None}, trust("ca_9"), "mutual_tls", OMITTED),
        ({}, {"tls_termination": {"min_version": "1.3"}}, {}, "tls_termination", {"min_version": "1.3"}),
        (
            POLICY,
            live_policy('{"on_tcp_connect": [{"name": "${{ x }}"}]}'),
            POLICY,
            "traffic_policy.value",
            {"on_tcp_connect": [{"name": "$${{ x }}"}]},
        ),
        (POLICY, live_policy('{"${{ x }}": 1}'), POLICY, "traffic_policy.value", '{"${{ x }}": 1}'),
    ],
)
def test_a_live_value_is_offered_as_a_manifest_would_write_it(
    was: dict[str, Any], now: dict[str, Any], declared: dict[str, Any], path: str, value: object
) -> None:
    offers, declined = accept(was, now, declared)
    assert declined == []
    assert [(str(offer), ".".join(offer.path), offer.value) for offer in offers] == [(f"TLSEdge/e.{path}", path, value)]


def test_an_offer_contains_the_pairs_of_its_list_and_the_text_of_its_document() -> None:
    (hostports,), _ = accept({"hostports": ["a.x:443"]}, {"hostports": ["b.x:443"]}, {"hostports": ["a.x:443"]})
    assert (hostports.pairs, hostports.key, hostports.text) == ({}, None, None)
    text = '{"on_tcp_connect":[]}'
    (policy,), _ = accept(POLICY, live_policy(text), POLICY)
    assert (policy.pairs, policy.text) == (None, text)
    (backends,), _ = accept(
        {"backends": ["ca_9", "ca_8"]},
        {"backends": ["ca_8", "ca_9"]},
        {"backends": ["ca_9", "ca_8"]},
        kind="FailoverBackend",
    )
    assert (backends.value, backends.pairs) == (["ca_8", "ca_9"], None)


def test_an_offer_pairs_the_items_of_a_list_by_their_key() -> None:
    was = {"backends": [{"backend_id": "ca_9", "weight": 1}, {"backend_id": "ca_c", "weight": 2}]}
    (offer,), _ = accept(was, {"backends": {"ca_c": 3, "ca_9": 1}}, was, kind="WeightedBackend")
    assert offer.value == [{"backend_id": "ca_c", "weight": 3}, {"backend_id": "ca_9", "weight": 1}]
    assert (offer.pairs, offer.key) == ({0: 1, 1: 0}, "backend_id")
    trusted = trust("ca_9", "ca_c")  # written by id, although one of them is declared
    (offer,), _ = accept(trusted, live_trust("ca_c"), trusted)
    assert (offer.value, offer.pairs, offer.key) == ([REFERENCE], {1: 0}, None)


@pytest.mark.parametrize(("now", "unknown"), [(("ca_9", 7), None), (("ca_8", 5), "ca_8")])
def test_a_plain_id_can_remain_with_another_weight(now: tuple[str, int], unknown: str | None) -> None:
    def weight_spec(id: str, weight: int) -> dict[str, Any]:
        return {"backends": [{"backend_id": id, "weight": weight}]}

    was, body = weight_spec("ca_9", 5), {"backends": {now[0]: now[1]}}
    offers, declined = accept(was, body, was, kind="WeightedBackend")
    if unknown is None:
        assert ([(offer.path, offer.value) for offer in offers], declined) == (
            [(("backends",), weight_spec(*now)["backends"])],
            [],
        )
    else:
        assert (offers, [refusal.why for refusal in declined]) == ([], [describe_undeclared(unknown)])


GIT_TOO = "Git changed it too; --both takes the platform's value"
UNKNOWN = "what changed it is unknown; --both takes the platform's value"


def describe_undeclared(id: str) -> str:
    return f"it refers to {id}, which is not declared; import {id} first"


@pytest.mark.parametrize(
    ("was", "now", "declared", "path", "why"),
    [
        (WAS, BY_HAND, {"description": "in Git"}, "description", GIT_TOO),
        (None, BY_HAND, WAS, "description", UNKNOWN),
        ({}, live_trust("ca_1"), {}, "mutual_tls", describe_undeclared("ca_1")),
        (
            trust("ca_9"),
            live_trust("ca_8"),
            trust("ca_9"),
            "mutual_tls.certificate_authority_ids",
            describe_undeclared("ca_8"),
        ),
        (
            trust("ca_9"),
            live_trust("ca_9", "ca_1"),
            trust("ca_9"),
            "mutual_tls.certificate_authority_ids",
            describe_undeclared("ca_1"),
        ),
    ],
)
def test_drift_that_is_not_offered_is_declined_with_the_reason(
    was: dict[str, Any] | None, now: dict[str, Any], declared: dict[str, Any], path: str, why: str
) -> None:
    assert accept(was, now, declared) == ([], [Declined(f"TLSEdge/e.{path}", why)])


@pytest.mark.parametrize("was", [WAS, None], ids=["Git changed it too", "unknown"])
def test_the_option_both_offers_the_value_of_the_platform_for_any_cause(was: dict[str, Any] | None) -> None:
    offers, declined = accept(was, BY_HAND, {"description": "in Git"}, both=True)
    assert ([(offer.path, offer.value) for offer in offers], declined) == ([(("description",), "by hand")], [])


def test_a_change_only_in_git_is_neither_offered_nor_declined() -> None:
    assert accept(WAS, WAS, {"description": "in Git"}, both=True) == ([], [])


def test_a_write_only_value_is_declined_even_if_it_is_no_secret() -> None:
    declared = {"region": "eu", "endpoint_configuration_id": "ec_1"}
    offers, declined = accept(None, {"region": "eu"}, declared, both=True, kind="ReservedAddress")
    why = "it is secret or write-only, and cannot be written to a manifest"
    assert (offers, declined) == ([], [Declined("ReservedAddress/e.endpoint_configuration_id", why)])


def test_an_input_only_value_is_offered_where_a_response_shows_it() -> None:
    response = {"region": "us", "endpoint_configuration": {"id": "ec_2", "uri": ""}}
    was = {"endpoint_configuration_id": "ec_1"}
    offers, declined = accept(was, response, was, kind="ReservedAddress")
    assert ([(offer.path, offer.value) for offer in offers], declined) == (
        [(("endpoint_configuration_id",), "ec_2")],
        [],
    )


def test_a_secret_changed_on_the_platform_is_declined() -> None:
    spec = {"edge_id": "e1", "match": "/", "match_type": "exact_path"}
    hook = {"webhook_verification": {"provider": "github", "secret": secret("in Git")}}
    body = {**spec, "webhook_verification": {"provider": "github", "secret": "by hand"}}
    declared = declare("HTTPSEdgeRoute/r", {**spec, **hook})
    seen = snapshot(live("HTTPSEdgeRoute", "r1", body, owner=record("HTTPSEdgeRoute/r", {**spec, **hook}), parent="e1"))
    offers, declined = find_offers(make_plan(declared, seen=seen), manifest(declared), seen, KINDS)
    assert offers == []
    assert [(refusal.subject, refusal.why) for refusal in declined] == [
        (
            "HTTPSEdgeRoute/r.webhook_verification.secret",
            "it is secret or write-only, and cannot be written to a manifest",
        )
    ]


# --- selection --------------------------------------------------------------------------------------------------------


def test_only_selected_resources_and_their_additions_are_considered() -> None:
    rule = live("IPPolicyRule", "ipr_9", {"ip_policy": {"id": "ipp_1"}, "cidr": "0.0.0.0/0", "action": "allow"})
    policy = live("IPPolicy", "ipp_1", BY_HAND, owner=record("IPPolicy/p", WAS))
    edge = live("TLSEdge", "e_1", BY_HAND, owner=record("TLSEdge/e", WAS))
    declared = [declare("IPPolicy/p", WAS), declare("TLSEdge/e", WAS)]
    seen = snapshot(policy, rule, edge)
    plan = make_plan(*declared, seen=seen)

    def consider(*kinds: str) -> tuple[list[str], list[str]]:
        offers, declined = find_offers(
            plan, manifest(*declared), seen, KINDS, selects=lambda address: address.kind in kinds
        )
        return [str(offer.address) for offer in offers], [refusal.subject for refusal in declined]

    assert consider("IPPolicy", "TLSEdge") == (["IPPolicy/p", "TLSEdge/e"], ["IPPolicyRule/ipr_9"])
    assert consider("IPPolicy") == (["IPPolicy/p"], ["IPPolicyRule/ipr_9"])
    assert consider("IPPolicyRule") == ([], ["IPPolicyRule/ipr_9"])
    assert consider("TLSEdge") == (["TLSEdge/e"], [])


def test_a_deleted_object_is_declined_and_a_new_resource_is_not() -> None:
    declared = [declare("BotUser/b", {"name": "b"}), declare("BotUser/new", {"name": "new"})]
    seen = snapshot(bindings={"BotUser/b": Binding("bot_1")}, remembered=True)
    plan = make_plan(*declared, seen=seen)
    assert {str(change.address): change.reason for change in plan.changes} == {
        "BotUser/b": Reason.VANISHED,
        "BotUser/new": Reason.DECLARED,
    }
    why = "it was deleted on the platform; remove its manifest, or apply to create it again"
    assert find_offers(plan, manifest(*declared), seen, KINDS) == ([], [Declined("BotUser/b", why)])


def test_an_undeclared_object_is_not_offered() -> None:
    seen = snapshot(live("TLSEdge", "e_1", BY_HAND, owner=record("TLSEdge/e", WAS)))
    assert find_offers(make_plan(seen=seen, options=LENIENT), manifest(), seen, KINDS, both=True) == ([], [])


def test_the_successor_of_a_replaced_object_is_offered() -> None:
    """The replaced object will be deleted."""
    old = live("TLSEdge", "e_1", {"description": "old"}, owner=record("TLSEdge/e", WAS, intent="i1"))
    new = live("TLSEdge", "e_2", BY_HAND, owner=record("TLSEdge/e", WAS, intent="intent-0", replaces="e_1"))
    declared, seen = declare("TLSEdge/e", WAS), snapshot(old, new)
    plan = make_plan(declared, seen=seen)
    assert find_offers(plan, manifest(declared), seen, KINDS) == (
        [Offer(at("TLSEdge/e"), ("description",), "by hand")],
        [],
    )
