"""DNS records as files of zones: octoDNS and dnspython read back what was written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import dns.rdatatype
import dns.zone
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from octodns.manager import Manager
from octodns.provider.yaml import YamlProvider
from octodns.zone import Zone as OctoZone
from octodns_bind import ZoneFileSource

from reconciler.health.zones import place_records
from reconciler.model.dns import DNSFinding, DNSRecords, Misplaced, Need, Zone
from reconciler.model.health import Actor, Health, Record, State
from reconciler.rendering import dns as rendering
from tests.harness.golden import compare_golden

ALIAS = Record("shop.example.com", "CNAME", "abc.cname.platform.example", "ReservedDomain/shop", "traffic")
RECORDS = (
    ALIAS,
    Record("*.apps.example.com", "CNAME", "wild.cname.platform.example", "ReservedDomain/apps", "traffic"),
    Record("_acme-challenge.apps.example.com", "CNAME", "c.platform.example", "ReservedDomain/apps", "certificate"),
    *(
        Record("agents.example.com", "NS", f"ns-{number}.agent.platform.example", "AgentIngress/agents", "agents")
        for number in (1, 2, 3, 4)
    ),
    Record("app9.example.com", "CNAME", "nine.cname.platform.example", "ReservedDomain/rd_9", "traffic"),
    Record("app10.example.com", "CNAME", "ten.cname.platform.example", "ReservedDomain/rd_10", "traffic"),
    Record("on.example.com", "CNAME", "on.cname.platform.example", "ReservedDomain/on", "traffic"),
    Record("1e3.example.com", "CNAME", "e.cname.platform.example", "ReservedDomain/e", "traffic"),
)  # fmt: skip


def test_records_in_no_zone_count_as_wrong() -> None:
    records = replace(place_records([ALIAS], ["example.com"]), misplaced=(cast("Misplaced", None),))
    states = [State.HEALTHY, *[State.DEGRADED] * 2, State.PROGRESSING, State.UNKNOWN]
    findings = [DNSFinding(cast("Need", None), Health(state)) for state in states]
    sums = rendering._describe_sums(findings, records, is_complete=True)
    assert sums == "DNS: 1 set, 1 waiting for the platform, 3 wrong, 1 unknown."


def place(*records: Record, zone: str = "example.com") -> Zone:
    placed = place_records(records, [zone])
    assert not placed.misplaced
    return placed.zones[0]


Loaded = dict[tuple[str, str], set[str]]


def values_of(zone: Zone) -> Loaded:
    """The values by name and type, in full and with the final dot."""
    found: Loaded = {}
    for record in zone.records:
        found.setdefault((f"{record.owner}.", record.type), set()).add(f"{record.value}.")
    return found


def read_bind(text: str, zone: Zone) -> Loaded:
    """The zone as dnspython reads it: every name and every record."""
    parsed = dns.zone.from_text(text, f"{zone.name}.", relativize=False, check_origin=False)
    found: Loaded = {}
    for name, _, item in parsed.iterate_rdatas():
        found.setdefault((str(name), dns.rdatatype.to_text(item.rdtype)), set()).add(item.to_text())
    return found


def read_octodns(zone: OctoZone) -> Loaded:
    return {
        (record.fqdn, record._type): set(record.values) if hasattr(record, "values") else {record.value}
        for record in zone.records
    }


def load_with_octodns(folder: Path, zone: Zone) -> Loaded:
    found = OctoZone(f"{zone.name}.", [])
    YamlProvider("file", str(folder), escaped_semicolons=False).populate(found)
    return read_octodns(found)


def test_octodns_loads_its_file_as_it_is(tmp_path: Path) -> None:
    zone = place(*RECORDS)
    (tmp_path / rendering.file_name(zone, "octodns")).write_text(rendering.render_zone(zone, "octodns"))
    assert load_with_octodns(tmp_path, zone) == values_of(zone)
    assert len(values_of(zone)["agents.example.com.", "NS"]) == 4


@pytest.mark.filterwarnings("ignore:.* is DEPRECATED:DeprecationWarning")  # octodns-bind calls octoDNS so
def test_dnspython_and_octodns_load_the_zone_file(tmp_path: Path) -> None:
    zone = place(*RECORDS)
    text = rendering.render_zone(zone, "bind")
    assert read_bind(text, zone) == values_of(zone)
    (tmp_path / rendering.file_name(zone, "bind")).write_text(text)
    found = OctoZone("example.com.", [])
    ZoneFileSource("file", str(tmp_path), file_extension=".zone", check_origin=False).populate(found)
    assert read_octodns(found) == values_of(zone)


def test_the_zone_file_can_be_included_under_another_origin() -> None:
    """Names are complete, and the file changes neither the origin nor the time to live of what follows."""
    zone = place(*RECORDS)
    text = f"$ORIGIN other.example.\n$TTL 60\n{rendering.render_zone(zone, 'bind')}"
    parsed = dns.zone.from_text(f"{text}last 60 IN A 192.0.2.1\n", ".", relativize=False, check_origin=False)
    assert "last.other.example." in {str(name) for name in parsed.nodes}
    assert {f"{owner}" for owner, _ in values_of(zone)} < {str(name) for name in parsed.nodes}
    assert not any(line.startswith("$") for line in rendering.render_zone(zone, "bind").splitlines())


def test_octodns_merges_the_file_with_the_owners_own_records(tmp_path: Path) -> None:
    """As docs/dns.md configures it: two sources for one zone. Nothing of the owner's own records is deleted."""
    zone, own = place(*RECORDS), tmp_path / "config"
    for folder in (own, tmp_path / "dns", tmp_path / "target"):
        folder.mkdir()
    (own / "example.com.yaml").write_text("mail:\n  type: A\n  value: 192.0.2.25\n")
    (tmp_path / "dns" / "example.com.yaml").write_text(rendering.render_zone(zone, "octodns"))
    provider = "octodns.provider.yaml.YamlProvider"
    (tmp_path / "octodns.yaml").write_text(
        f"providers:\n"
        f"  config: {{class: {provider}, escaped_semicolons: false, directory: {own}}}\n"
        f"  tunnels: {{class: {provider}, escaped_semicolons: false, directory: {tmp_path / 'dns'}}}\n"
        f"  target: {{class: {provider}, escaped_semicolons: false, directory: {tmp_path / 'target'}}}\n"
        f"zones:\n  example.com.: {{sources: [config, tunnels], targets: [target]}}\n"
    )
    Manager(str(tmp_path / "octodns.yaml")).sync(dry_run=False, force=True)
    loaded = load_with_octodns(tmp_path / "target", zone)
    assert loaded == values_of(zone) | {("mail.example.com.", "A"): {"192.0.2.25"}}


@pytest.mark.parametrize("form", ["bind", "octodns"])
def test_a_zone_without_records_is_a_file_that_loads(tmp_path: Path, form: str) -> None:
    zone = Zone("example.com")
    text = rendering.render_zone(zone, form)
    if form == "bind":
        assert read_bind(text, zone) == {}
    else:
        (tmp_path / "example.com.yaml").write_text(text)
        assert load_with_octodns(tmp_path, zone) == {}


label = st.from_regex(r"\A[a-z0-9_]([a-z0-9_-]{0,6}[a-z0-9_])?\Z")
records = st.lists(
    st.builds(
        Record,
        st.lists(label, min_size=1, max_size=3).map(lambda labels: ".".join([*labels, "example.com"])),
        st.just("CNAME"),
        st.lists(label, min_size=2, max_size=3).map(".".join),
        st.text(max_size=20),
        st.sampled_from(["traffic", "certificate"]),
    ),
    max_size=8,
    unique_by=lambda record: record.owner,
)


@given(records)
@settings(deadline=None)
def test_any_names_and_any_resources_are_read_back_by_both_programs(
    tmp_path_factory: pytest.TempPathFactory, found: list[Record]
) -> None:
    """Whatever a resource is called: its name is in a comment of both files."""
    zone, folder = place(*found), tmp_path_factory.mktemp("octodns")
    (folder / "example.com.yaml").write_text(rendering.render_zone(zone, "octodns"), encoding="ascii")
    assert load_with_octodns(folder, zone) == values_of(zone)
    assert read_bind(rendering.render_zone(zone, "bind"), zone) == values_of(zone)


@pytest.mark.parametrize(
    "name",
    [
        "x\n$INCLUDE /etc/passwd",
        "x\r\n@ IN A 192.0.2.66",
        "x\x85evil: {type: A}",
        "x\u2028evil:\n  type: A",
        "x\x00",
        "é",
    ],
)
def test_the_name_of_a_resource_cannot_leave_its_comment(name: str) -> None:
    zone = place(Record("shop.example.com", "CNAME", "a.example", name, "traffic"))
    for form in ("bind", "octodns"):
        text = rendering.render_zone(zone, form)
        assert text.isascii()
        assert text.count("\n") == len(text.splitlines())
    assert read_bind(rendering.render_zone(zone, "bind"), zone) == values_of(zone)


def test_a_record_that_two_resources_need_is_written_once() -> None:
    other = Record(ALIAS.owner, ALIAS.type, ALIAS.value, "ReservedDomain/rd_1", "traffic")
    zone = place(ALIAS, other)
    assert rendering.render_zone(zone, "bind").splitlines()[1:] == [
        "shop.example.com. 300 IN CNAME abc.cname.platform.example. "
        "; ReservedDomain/rd_1, ReservedDomain/shop (traffic)"
    ]
    assert rendering.render_zone(zone, "octodns").count("type: CNAME") == 1
    (row,) = json.loads(rendering.render_zone(zone, "json"))["records"]
    assert row["needed_by"] == ["ReservedDomain/rd_1", "ReservedDomain/shop"]


@pytest.mark.parametrize("form", rendering.SUFFIXES)
def test_the_order_of_the_records_does_not_matter(form: str) -> None:
    first, second = (rendering.render_zone(place(*found), form) for found in (RECORDS, reversed(RECORDS)))
    assert first == second


def test_text_and_json_also_have_what_is_in_no_zone_and_what_cannot_be_set() -> None:
    apex = Record("example.com", "CNAME", "abc.cname.platform.example", "ReservedDomain/apex", "traffic")
    other = Record("shop.example.org", "CNAME", "o.cname.platform.example", "ReservedDomain/other", "traffic")
    records = place_records([ALIAS, apex, other], ["example.com"])
    assert rendering.render_records(records, "text") == (
        "example.com\n"
        "  shop.example.com  CNAME  abc.cname.platform.example  ReservedDomain/shop (traffic)\n"
        "\n"
        "In no zone of reconciler.yaml:\n"
        "  shop.example.org  CNAME  o.cname.platform.example  ReservedDomain/other (traffic)\n"
        "\n"
        "Cannot be set:\n"
        "  ReservedDomain/apex: example.com is the apex of its zone, which has other records and cannot have a CNAME; "
        "reserve a name below it, such as www.example.com, and redirect example.com to it\n"
    )
    listed = json.loads(rendering.render_records(records, "json"))
    assert [row["name"] for row in listed["unzoned"]] == ["shop.example.org"]
    assert listed["misplaced"][0]["needed_by"] == ["ReservedDomain/apex"]
    assert rendering.render_records(DNSRecords(), "text") == ""


# --- every format as a whole

ORGANIZATION = Zone(
    "example.org",
    (
        Record("example.org", "NS", "ns-1.platform.example", "AgentIngress/b", "agents"),
        Record("example.org", "NS", "ns-2.platform.example", "AgentIngress/a", "agents"),
        Record("a.example.org", "CNAME", "x.example", "ReservedDomain/é##[x]", "traffic"),
        Record("a.example.org", "CNAME", "x.example", "ReservedDomain/a", "certificate"),
        Record("b.example.org", "NS", "y.example", "AgentIngress/a", "agents"),
    ),
)
MISPLACED = (
    Misplaced(Record("example.com", "CNAME", "y.example", "ReservedDomain/apex", "traffic"), "why it", "what to do"),
    Misplaced(Record("b..com", "CNAME", "z.example", "ReservedDomain/bad\n", "traffic"), "no name", "rename it"),
)
ALL = DNSRecords(
    (place(*RECORDS), ORGANIZATION, Zone("empty.example")),
    (ALIAS, replace(ALIAS, needed_by="ReservedDomain/also"), RECORDS[1]),
    MISPLACED,
)


@pytest.mark.parametrize("form", rendering.SUFFIXES)
def test_records_of_every_sort_are_written_as_reviewed(form: str) -> None:
    texts = [rendering.render_records(ALL, form), *(rendering.file_name(zone, form) for zone in ALL.zones)]
    if form == "text":
        texts += [rendering.render_file(zone, form) for zone in ALL.zones]
        texts += [*rendering.list_misplaced(ALL), *rendering.list_unzoned(ALL)]
    else:
        assert [rendering.render_file(zone, form) for zone in ALL.zones] == [
            rendering.render_zone(zone, form) for zone in ALL.zones
        ]
    compare_golden(Path(__file__).parent / "pages" / "dns" / f"{form}.txt", "\n----\n".join(texts) + "\n")


@pytest.mark.parametrize("form", rendering.SUFFIXES)
def test_only_files_that_were_written_for_the_zone_are_recognized(form: str) -> None:
    for zone in ALL.zones:
        text = rendering.render_file(zone, form)
        found = [rendering.wrote_file(text, name, form) for name in (zone.name, "other.example")]
        assert found == [True, False]
        assert not rendering.wrote_file(f" {text[:40]}", zone.name, form)
        others = [other for other in rendering.SUFFIXES if other != form]
        recognized = [other for other in others if rendering.wrote_file(text, zone.name, other)]
        assert recognized == [other for other in others if {form, other} == {"text", "octodns"}]


WRITTEN = {"zone": "a.example", "records": [dict.fromkeys(("name", "type", "value", "ttl", "needed_by", "purpose"))]}


@pytest.mark.parametrize(
    ("content", "is_ours"),
    [
        (WRITTEN, True),
        ({**WRITTEN, "records": []}, True),
        ({**WRITTEN, "records": {}}, False),
        ({**WRITTEN, "records": [[]]}, False),
        ({**WRITTEN, "records": [{"name": ""}]}, False),
        ({**WRITTEN, "records": [*WRITTEN["records"], {}]}, False),
        ({**WRITTEN, "zone": "b.example"}, False),
        ({**WRITTEN, "more": 1}, False),
        ({"zone": "a.example"}, False),
        ([], False),
        ("zone", False),
    ],
)
def test_a_json_file_is_recognized_by_its_keys(content: object, is_ours: bool) -> None:
    assert rendering.wrote_file(json.dumps(content), "a.example", "json") is is_ours


@pytest.mark.parametrize("content", ["", "{", "[" * 100_000])
def test_a_file_that_is_no_json_is_not_recognized(content: str) -> None:
    assert not rendering.wrote_file(content, "a.example", "json")


def make_finding(
    owner: str, state: State, reason: str = "", advice: str = "", actor: Actor = Actor.NOBODY
) -> DNSFinding:
    need = Need(owner, "CNAME", ("a.example", "b.example"), (f"ReservedDomain/{owner}", "TLSEdge/é"))
    return DNSFinding(need, Health(state, reason, advice, actor, retries_at=1.5 if reason else None))


def test_findings_of_every_sort_are_written_as_reviewed() -> None:
    findings = [
        make_finding("good.example", State.HEALTHY, "it is set", "nothing"),
        make_finding("bad.example", State.DEGRADED, "it is not set", "set it", Actor.ZONE_OWNER),
        make_finding("slow.example", State.PROGRESSING, "the certificate waits", "wait", Actor.PLATFORM),
        make_finding("lost.example", State.UNKNOWN, "no server answers\x1b[2J"),
        make_finding("bad.example", State.DEGRADED, "it is wrong"),
    ]
    unread = {"ReservedDomain": "403 ##[x]", "AgentIngress": "timeout"}
    cases = [
        (findings, ALL, {}),
        (findings[:1], DNSRecords(), unread),
        ([], DNSRecords(), unread),
        ([], DNSRecords(), {}),
    ]
    texts = [rendering.render_findings(*case) for case in cases]
    texts += [rendering.render_findings_json(findings[:2], replace(ALL, zones=()), unread)]
    compare_golden(Path(__file__).parent / "pages" / "dns" / "findings.txt", "----\n".join(texts))
