"""What live objects are called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler import kinds
from reconciler.model.address import NAME
from reconciler.planning.importing import naming
from tests.planning.builders import live

NAMES = {("IPPolicy", "ipp_1"): "office", ("HTTPSEdge", "edghts_1"): "shop"}


def choose_name(
    kind: str, body: Mapping[str, Any], gone: set[str] | None = None, id: str = "x_7Qp3Zt", parent: str | None = None
) -> str:
    return naming.choose_name(
        kinds.get(kind), live(kind, id, body, parent=parent), lambda *key: NAMES.get(key), gone or set()
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
def test_a_name_is_what_people_would_say(kind: str, body: Mapping[str, Any], name: str) -> None:
    assert choose_name(kind, body) == name


def test_a_child_is_named_after_its_parent() -> None:
    assert (
        choose_name("HTTPSEdgeRoute", {"match": "/hooks/", "match_type": "exact_path"}, parent="edghts_1")
        == "shop-hooks"
    )


def test_a_name_that_is_gone_gets_a_number() -> None:
    assert choose_name("IPPolicy", {"description": "Office"}, {"office", "office-2"}) == "office-3"


def test_a_long_description_is_cut_between_words() -> None:
    assert choose_name("IPPolicy", {"description": "word " * 40}) == "-".join(["word"] * 12)


@given(st.text(), st.text())
def test_any_text_makes_a_name(description: str, metadata: str) -> None:
    assert NAME.fullmatch(choose_name("IPPolicy", {"description": description, "metadata": metadata}))
