"""The zone that each DNS record belongs to, and records that no zone can contain."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.health.zones import place_records
from reconciler.model.dns import DNSRecords, clean_name, is_below
from reconciler.model.health import Record

TARGET = "abc.cname.platform.example"


def alias(owner: str, value: str = TARGET, by: str = "ReservedDomain/shop") -> Record:
    return Record(owner, "CNAME", value, by, "traffic")


def delegation(owner: str, value: str = "ns-1.platform.example", by: str = "AgentIngress/agents") -> Record:
    return Record(owner, "NS", value, by, "agents")


def zone_of(record: Record, *zones: str) -> str | None:
    placed = place_records([record], zones)
    assert not placed.misplaced
    return next((zone.name for zone in placed.zones if zone.records), None)


@pytest.mark.parametrize(
    ("owner", "zones", "zone"),
    [
        ("shop.example.com", ["example.com"], "example.com"),
        ("a.b.example.com", ["example.com", "b.example.com"], "b.example.com"),
        ("a.c.example.com", ["b.example.com", "example.com"], "example.com"),
        ("*.b.example.com", ["example.com", "b.example.com"], "b.example.com"),
        ("_acme-challenge.b.example.com", ["example.com", "b.example.com"], "b.example.com"),
        ("shop.badexample.com", ["example.com"], None),
        ("shop.example.org", ["example.com"], None),
        ("shop.example.com", [], None),
        ("xn--bcher-kva.example.com", ["Example.COM."], "example.com"),
    ],
)
def test_a_record_is_in_the_longest_zone_that_its_name_ends_with(
    owner: str, zones: list[str], zone: str | None
) -> None:
    assert zone_of(alias(owner), *zones) == zone


def test_a_delegation_is_in_the_zone_above_its_name() -> None:
    zones = ("example.com", "agents.example.com")
    assert zone_of(delegation("agents.example.com"), *zones) == "example.com"
    assert zone_of(delegation("eu.agents.example.com"), *zones) == "agents.example.com"
    assert zone_of(delegation("example.com"), "example.com") is None


def test_zones_without_records_are_listed() -> None:
    placed = place_records([alias("shop.example.com")], ["example.org", "example.com"])
    assert [(zone.name, len(zone.records)) for zone in placed.zones] == [("example.com", 1), ("example.org", 0)]
    assert placed.records == (alias("shop.example.com"),)


def test_names_and_targets_are_lower_case_and_without_a_final_dot() -> None:
    placed = place_records([alias("Shop.Example.COM.", "Abc.CNAME.platform.example.")], ["example.com"])
    assert placed.zones[0].records == (alias("shop.example.com"),)


def test_a_record_that_two_resources_need_names_both() -> None:
    both = [alias("shop.example.com", by=f"ReservedDomain/{name}") for name in ("two", "one")]
    placed = place_records([*both, both[0]], ["example.com"])
    assert [record.needed_by for record in placed.zones[0].records] == ["ReservedDomain/one", "ReservedDomain/two"]


def why(*records: Record, zones: tuple[str, ...] = ("example.com",)) -> list[str]:
    placed = place_records(records, zones)
    assert {item.record for item in placed.misplaced} == set(records)
    assert not placed.records
    return [f"{item.why}; {item.remedy}" for item in placed.misplaced]


def test_a_cname_at_the_apex_of_a_zone_is_refused_with_a_remedy() -> None:
    assert why(alias("example.com")) == [
        "example.com is the apex of its zone, which has other records and cannot have a CNAME; reserve a name below "
        "it, such as www.example.com, and redirect example.com to it"
    ]


def test_a_cname_beside_a_delegation_of_the_same_name_is_refused() -> None:
    reasons = why(
        alias("agents.example.com"), delegation("agents.example.com"), delegation("agents.example.com", "ns-2.x")
    )
    assert set(reasons) == {
        "agents.example.com cannot have a CNAME beside other records, and AgentIngress/agents, ReservedDomain/shop "
        "need different records; delete all of these resources but one"
    }


def test_two_targets_for_one_name_are_refused() -> None:
    first, second = alias("shop.example.com", "a.x.example", "A/a"), alias("shop.example.com", "b.x.example", "B/b")
    assert "A/a, B/b need different records" in why(first, second)[0]


def test_a_name_below_a_delegated_domain_is_refused() -> None:
    placed = place_records([delegation("agents.example.com"), alias("x.agents.example.com")], ["example.com"])
    (item,) = placed.misplaced
    assert item.record.owner == "x.agents.example.com"
    assert item.why.startswith("x.agents.example.com is below agents.example.com, which AgentIngress/agents delegates")
    assert [record.owner for record in placed.records] == ["agents.example.com"]


HOSTILE = [
    "shop.example.com\n$INCLUDE /etc/passwd",
    "shop.example.com. 60 IN A 192.0.2.1 ;.example.com",
    'sh"op.example.com',
    "sh'op.example.com",
    "sh\\.op.example.com",
    "$ORIGIN.example.com",
    "@.example.com",
    "shop..example.com",
    ".example.com",
    "a.*.example.com",
    "*.*.example.com",
    "bücher.example.com",
    "shop\x00.example.com",
    "(shop.example.com",
    "\uff53hop.example.com",
    f"{'a' * 64}.example.com",
    f"{'a.' * 130}example.com",
    "",
    ".",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_text_that_is_no_name_is_refused_as_an_owner_and_as_a_target(text: str) -> None:
    assert clean_name(text) is None
    assert "is not a domain name that a zone can contain" in why(alias(text))[0]
    assert "is not a domain name that a zone can contain" in why(alias("shop.example.com", text))[0]


def test_a_wildcard_is_no_target() -> None:
    assert "'*.x.example'" in why(alias("shop.example.com", "*.x.example"))[0]


labels = st.sampled_from(["a", "b", "*", "_acme-challenge", "xn--a-0ga", "A"])
names = st.lists(labels, min_size=1, max_size=4).map(lambda parts: ".".join([*parts, "example.com"]))
zone_names = st.lists(st.sampled_from(["example.com", "a.example.com", "b.a.example.com", "example.org"]), unique=True)
records = st.builds(alias, names, st.sampled_from([TARGET, "b.cname.platform.example"])) | st.builds(delegation, names)


@given(st.lists(records, max_size=6), zone_names)
def test_each_record_is_placed_once_or_refused_and_no_name_has_a_cname_beside_others(
    found: list[Record], zones: list[str]
) -> None:
    placed = place_records(found, zones)
    assert placed == place_records(reversed(found), reversed(zones))
    every = [*placed.records, *(item.record for item in placed.misplaced)]
    assert len(every) == len(set(every))
    assert {record.needed_by for record in every} == {record.needed_by for record in found}
    _check_loadable(placed)


def _check_loadable(placed: DNSRecords) -> None:
    for zone in placed.zones:
        for record in zone.records:
            assert is_below(record.owner, zone.name) or (record.owner == zone.name and record.type != "NS")
            assert not (record.type == "CNAME" and record.owner == zone.name)
            longer = [other.name for other in placed.zones if is_below(record.owner, other.name)]
            assert max(longer, key=len, default=zone.name) == zone.name
    at: dict[str, set[tuple[str, str]]] = {}
    for record in placed.records:
        at.setdefault(record.owner, set()).add((record.type, record.value if record.type == "CNAME" else ""))
    assert all(len(kinds) == 1 for kinds in at.values())
