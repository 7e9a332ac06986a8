"""Names of live objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler import kinds
from reconciler.model.address import NAME
from reconciler.planning.importing import naming
from tests.harness.builders import live

NAMES = {("IPPolicy", "ipp_1"): "office", ("HTTPSEdge", "edghts_1"): "shop"}


def choose_name(
    kind: str,
    body: Mapping[str, Any],
    reserved: set[str] | None = None,
    id: str = "x_7Qp3Zt",
    parent: str | None = None,
) -> str:
    return naming.choose_name(
        kinds.get(kind), live(kind, id, body, parent=parent), lambda *key: NAMES.get(key), reserved or set()
    )


@pytest.mark.parametrize(
    ("kind", "body", "name"),
    [
        ("ReservedDomain", {"domain": "shop.example.com", "description": "The shop"}, "shop.example.com"),
        ("ReservedDomain", {"domain": "*.apps.example.com"}, "wildcard.apps.example.com"),
        ("BotUser", {"name": "Berlin Robot"}, "berlin-robot"),
        ("TunnelCredential", {"description": "Agent of the Berlin site"}, "agent-of-the-berlin-site"),
        ("TunnelCredential", {"description": "Büro Köln\nsecond line"}, "buro-koln"),
        ("IPPolicy", {"metadata": '{"name": "Office"}'}, "office"),
        ("TLSEdge", {"hostports": ["pay.example.com:443", "b.example.com:443"]}, "pay.example.com"),
        ("TCPEdge", {"hostports": ["1.tcp.example.com:2000"]}, "1.tcp.example.com-2000"),
        ("CloudEndpoint", {"url": "https://app.example.com"}, "app.example.com"),
        ("IPPolicyRule", {"ip_policy": {"id": "ipp_1"}, "cidr": "10.0.0.0/8"}, "office-10.0.0.0-8"),
        ("CertificateAuthority", {"subject_common_name": "Partners"}, "partners"),
        ("SSHCredential", {"public_key": "ssh-ed25519 AAAA anna@laptop"}, "anna-laptop"),
        ("TunnelGroupBackend", {"labels": {"app": "shop"}}, "shop"),
        ("EventDestination", {"description": "東京"}, "event-destination-7qp3zt"),
    ],
)
def test_a_name_is_derived_from_the_fields_of_the_kind(kind: str, body: Mapping[str, Any], name: str) -> None:
    assert choose_name(kind, body) == name


@pytest.mark.parametrize(
    ("kind", "body", "name"),
    [
        ("IPPolicy", {"description": "a *.b"}, "a-.b"),
        ("IPPolicy", {"description": " *.b "}, "wildcard.b"),
        ("IPPolicy", {"description": "-._", "metadata": '{"name": "Office"}'}, "office"),
        ("IPPolicy", {"metadata": '{"name": 7}'}, "ip-policy-7qp3zt"),
        ("IPPolicy", {"metadata": "{no JSON"}, "ip-policy-7qp3zt"),
        ("IPPolicy", {"metadata": '{"a":' * 100_000}, "ip-policy-7qp3zt"),
        ("BotUser", {"name": 7}, "bot-user-7qp3zt"),
        ("TCPEdge", {"hostports": ["a.example.com:8443"]}, "a.example.com-8443"),
        ("TCPEdge", {"hostports": ["a.example.com:80"]}, "a.example.com-80"),
        ("TCPEdge", {"hostports": ["443"]}, "443"),
        ("ReservedAddress", {"addr": "1.tcp.example.com:2"}, "1.tcp.example.com-2"),
        ("SSHCredential", {"public_key": "ssh-ed25519 BEGIN anna@laptop"}, "ssh-credential-7qp3zt"),
        ("SSHCredential", {"public_key": "ssh-ed25519 AAAA"}, "ssh-credential-7qp3zt"),
        ("IPPolicyRule", {"ip_policy": {"id": "ipp_9"}, "cidr": "10.0.0.0/8"}, "10.0.0.0-8"),
        ("Secret", {"name": "token", "vault": {"id": "v"}}, "token"),
    ],
)
def test_odd_values_are_skipped(kind: str, body: Mapping[str, Any], name: str) -> None:
    assert choose_name(kind, body) == name


def test_an_id_without_letters_becomes_a_name() -> None:
    assert choose_name("IPPolicy", {}, id="東京東京東京") == "ip-policy-x"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("a" * 60, "a" * 60),
        ("a" * 61, "a" * 60),
        ("a" * 58 + " bcd", "a" * 58),
        ("a" * 60 + " b", "a" * 60),
        ("aa " + "b" * 57 + " c", "aa-" + "b" * 57),
        ("aa " + "b" * 57 + "c", "aa"),
    ],
)
def test_a_name_has_at_most_sixty_characters_and_ends_with_a_word(text: str, name: str) -> None:
    assert naming.slugify(text) == name


def test_a_child_is_named_after_its_parent() -> None:
    assert (
        choose_name("HTTPSEdgeRoute", {"match": "/hooks/", "match_type": "exact_path"}, parent="edghts_1")
        == "shop-hooks"
    )


def test_the_name_of_a_child_that_can_be_inline_begins_with_that_of_its_parent() -> None:
    rule = {"ip_policy": {"id": "ipp_1"}, "cidr": "10.0.0.0/8", "description": "The LAN"}
    assert choose_name("IPPolicyRule", rule) == "office-the-lan"
    assert choose_name("IPPolicyRule", {**rule, "description": "office-lan"}) == "office-lan"
    assert choose_name("IPPolicyRule", {**rule, "description": "l" * 60}) == f"office-{'l' * 60}"
    assert choose_name("IPPolicyRule", {**rule, "ip_policy": {"id": "ipp_9"}}) == "the-lan"


def test_a_reserved_name_is_followed_by_a_number() -> None:
    assert choose_name("IPPolicy", {"description": "Office"}, {"office", "office-2"}) == "office-3"


def test_a_long_description_is_cut_between_words() -> None:
    assert choose_name("IPPolicy", {"description": "word " * 40}) == "-".join(["word"] * 12)


@given(st.text(), st.text())
def test_any_text_becomes_a_valid_name(description: str, metadata: str) -> None:
    assert NAME.fullmatch(choose_name("IPPolicy", {"description": description, "metadata": metadata}))
