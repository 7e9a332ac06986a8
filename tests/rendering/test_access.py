"""The section Access of a plan in each format: the entry points that change, an example of each, and their causes."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from reconciler.languages.yaml.reader import read
from reconciler.model.access_change import AccessChange, Verdict
from reconciler.model.access_entry import AccessEntry
from reconciler.model.address import Address
from reconciler.model.change import Action, Change, Reason, Risk
from reconciler.model.plan import Approval, ApprovalItem, Plan
from reconciler.model.value import Secret
from reconciler.rendering import inventory
from reconciler.rendering.html import access_list
from reconciler.rendering.html.plan_page import render_page
from reconciler.rendering.plan.approval_entries import render_entries
from reconciler.rendering.plan.ci_annotations import render_github, render_gitlab
from reconciler.rendering.plan.findings import Level, list_findings
from reconciler.rendering.plan.markdown import render_markdown
from reconciler.rendering.plan.outline import build_outline
from reconciler.rendering.plan.phrases import Flavour, count_access
from reconciler.rendering.plan.sarif import render_sarif
from reconciler.rendering.plan.text import render_text
from reconciler.rendering.wire.plan_json import read_plan, write_plan
from tests.harness.builders import at
from tests.rendering.plans import ACCESS, REVIEWED, list_ways_in

WIDENED, UNKNOWN = ACCESS[0], ACCESS[-2]
OWN = replace(REVIEWED, access=(WIDENED,), base=None)


def count_verdicts(*verdicts: Verdict) -> str:
    entries = (replace(WIDENED, verdict=verdict, entry_point=str(n)) for n, verdict in enumerate(verdicts))
    return count_access(build_outline(Plan("prod", access=tuple(entries))))


@pytest.mark.parametrize(
    ("verdicts", "text"),
    [
        ((), ""),
        ((Verdict.WIDENS, Verdict.WIDENS, Verdict.EXPOSES), "Access: 2 entry points widen, 1 exposed."),
        ((Verdict.WIDENS, Verdict.LOCKS_OUT), "Access: 1 entry point widens, 1 locked out."),
        ((Verdict.NARROWS, Verdict.CLOSES, Verdict.CLOSES), "Access: 1 entry point narrows, 2 closed."),
    ],
)
def test_the_summary_counts_the_entry_points_by_verdict(verdicts: tuple[Verdict, ...], text: str) -> None:
    assert count_verdicts(*verdicts) == text


def test_the_summary_counts_unknown_entry_points_and_those_of_other_commits_apart() -> None:
    own = replace(UNKNOWN, cause=WIDENED.cause)
    rows = build_outline(replace(REVIEWED, access=(*ACCESS, own)))
    assert count_access(rows) == "Access: 6 entry points widen, 1 unknown, 2 not by this branch."


def test_the_summary_begins_with_the_number_of_entry_points() -> None:
    summary = render_text(OWN).split("\n\n")[-1]
    assert summary.startswith("Access: 1 entry point widens.\n")


@pytest.mark.parametrize("page", [render_text(OWN), render_markdown(OWN), render_page(OWN)])
def test_a_row_has_the_entry_point_both_states_an_example_and_the_cause(page: str) -> None:
    is_page = page.startswith("<!doctype")  # which names what needs a person first
    section = page if is_page else page[page.index("Access") :]
    parts = [
        "https://pay.example.com",
        "will let in requests that are refused today" if is_page else "lets in requests that were refused",
        "203.0.113.0/24",
        "everyone",
        "GET https://pay.example.com/ from 192.0.2.1",
        "TLSEdge/payments",
    ]
    assert [part for part in parts if part not in section] == []


def test_an_uncertain_row_is_reported_as_unknown_with_what_it_depends_on() -> None:
    text = render_text(replace(REVIEWED, access=(UNKNOWN,), base=None), width=200)
    assert "https://*.example.com: unknown whether it lets in requests that were refused" in text
    assert "depends on: a wildcard serves all depths" in text


def test_entry_points_that_one_cause_changes_in_the_same_way_are_one_row() -> None:
    (row, *_) = build_outline(REVIEWED).access
    assert (row.entry_point, len(row.more)) == ("https://pay.example.com", 5)
    assert "and 2 more (--format json lists all of them)" in render_text(REVIEWED)
    for page, more in ((render_markdown(REVIEWED), 5), (render_page(REVIEWED), 3)):  # a page names three
        assert f"<summary>and {more} more" in page
        assert "https://za.pay.example.com" in page
    assert [entry["entry_point"] for entry in json.loads(write_plan(REVIEWED))["access"]] == [
        entry.entry_point for entry in ACCESS
    ]


def test_rows_of_other_commits_come_last_with_their_cause() -> None:
    text = render_text(REVIEWED, width=200)
    lines = [line.strip() for line in text.splitlines() if line.startswith("  ! http") or "may open is" in line]
    assert lines == [
        "! https://pay.example.com lets in requests that were refused",
        "! what TunnelCredential/rome may open is a new way in (pending before this branch)",
        "! https://*.example.com: unknown whether it lets in requests that were refused (drift)",
    ]


def test_the_risks_do_not_repeat_what_an_entry_point_shows() -> None:
    assert "**widens access**: update" not in render_markdown(OWN)
    assert "**widens access**: update `TLSEdge/payments`" in render_markdown(replace(OWN, access=()))
    ids = [(finding.id, finding.subject) for finding in list_findings(OWN)]
    assert ("widens-access", "https://pay.example.com") in ids
    assert ("widens-access", "TLSEdge/payments") not in ids


def test_a_risk_that_no_entry_point_explains_is_still_a_risk() -> None:
    changes = tuple(
        replace(change, risks=(Risk.WIDENS_ACCESS, Risk.DISABLES_AGENT))
        if change.address == at("TLSEdge/payments")
        else change
        for change in OWN.changes
    )
    assert "disables agents: update `TLSEdge/payments`" in render_markdown(replace(OWN, changes=changes))


def test_annotations_stand_at_the_line_of_the_resource_that_causes_the_change() -> None:
    findings = list_findings(OWN)
    (finding,) = (finding for finding in findings if finding.subject == "https://pay.example.com")
    assert (finding.file, finding.line) == ("manifests/payments.yaml", 12)
    for text in (
        render_sarif(findings, version="1", fallback="a.yaml"),
        render_gitlab(findings, fallback="a.yaml"),
        render_github(findings),
    ):
        assert "lets in requests that were refused" in text


SENTENCE = "Access was widened on the platform: https://pay.example.com"


@pytest.mark.parametrize(
    "page",
    [render(OWN, flavour=Flavour.DRIFT) for render in (render_text, render_markdown, render_page)],
    ids=["text", "markdown", "page"],
)
def test_drift_begins_with_the_opened_entry_point_and_an_example(page: str) -> None:
    text = re.sub(r"<[^>]*>|\*\*|`", " ", page[page.index("<main") :] if "<main" in page else page)
    text = " ".join(text.split()).replace(" :", ":").replace(" ,", ",")
    first = text.index("ccess was widened on the platform")
    assert text.index(str(OWN.changes[0].address)) > first
    for part in (
        "https://pay.example.com",
        "203.0.113.0/24",
        "→ everyone",
        "because of",
        "which was",
        "for example: GET",
    ):
        assert part in text[first:]
    assert "lets in requests that were refused" not in text


def test_each_cause_of_drift_is_added_deleted_or_changed() -> None:
    reasons = {Reason.ADDED: "was added", Reason.VANISHED: "was deleted", Reason.FIELDS: "was changed"}
    for reason, words in reasons.items():
        changes = (Change(Address("IPPolicyRule", "any"), Action.UPDATE, reason),)
        plan = Plan("prod", changes=changes, access=(replace(WIDENED, causes=("IPPolicyRule/any",)),))
        assert f"because of IPPolicyRule/any, which {words}\n" in render_text(plan, width=400, flavour=Flavour.DRIFT)


def test_drift_that_may_open_an_entry_point_is_unknown() -> None:
    text = render_text(replace(OWN, access=(UNKNOWN,)), width=400, flavour=Flavour.DRIFT)
    assert text.startswith("! It is unknown whether ")
    assert "depends on: " in text


def test_an_opened_entry_point_is_an_error_at_the_manifest_of_its_cause() -> None:
    first, *_ = list_findings(OWN, flavour=Flavour.DRIFT)
    assert (first.level, first.id, first.subject) == (Level.ERROR, "access-widened", WIDENED.entry_point)
    assert first.file
    assert first.text.startswith(SENTENCE)
    narrowed = replace(OWN, access=(replace(WIDENED, verdict=Verdict.NARROWS),))
    assert list_findings(narrowed, flavour=Flavour.DRIFT)[0].level is Level.WARNING


@pytest.mark.parametrize("width", [40, 80])
def test_the_section_fits_the_width(width: int) -> None:
    text = render_text(replace(REVIEWED, access=(replace(WIDENED, before="10.0.0.0/8 " * 30), UNKNOWN)), width=width)
    section = text[text.index("Access:") : text.index("Changes by")]
    assert max(map(len, section.splitlines())) <= width


def test_a_plan_file_contains_the_section() -> None:
    assert read_plan(write_plan(REVIEWED), refuse).access == ACCESS


def refuse(digest: str, source: str) -> Secret:
    raise AssertionError("this plan has no secrets")


def write_entry(subject: str) -> str:
    items = (ApprovalItem(subject, "", "abcd"),)
    return render_entries(Plan("s", approvals=(Approval("widens_access", "*", 1, "", items=items),)))


@pytest.mark.parametrize(
    "subject",
    [
        "https://shop.example.com/admin…",
        "https://*.example.com",
        "tcp://1.tcp.example.com:12345",
        "https://api.internal:8080 (internal)",
        "what TunnelCredential/ci may open",
        "the dashboard",
    ],
)
def test_an_entry_of_approvals_yaml_names_the_entry_point_as_it_is(subject: str) -> None:
    assert f"  - widens_access: {subject}\n    until:" in write_entry(subject)


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30))
def test_every_entry_point_can_be_read_back_from_its_entry(text: str) -> None:
    entry = write_entry(f"https://shop.example.com/{text}")
    (document,) = read(entry.encode(), "approvals.yaml").documents
    assert document.value["approvals"][0]["widens_access"] == f"https://shop.example.com/{text}"


def test_hostile_text_of_an_entry_point_does_not_leave_its_line() -> None:
    hostile = AccessChange("https://a/\n::error ::x\x1b[31m", Verdict.WIDENS, "a\nb", "c", "d\n", True, (), "")
    text = render_text(Plan("s", access=(hostile,)))
    assert "\x1b" not in text
    assert not any(line.lstrip().startswith("::error") for line in text.splitlines())


# --- the list of entry points in a page


def read_list(page: str) -> tuple[list[dict[str, Any]], list[str]]:
    """The rows of the list, with their texts, and its groups."""
    found = re.search(r'<script type="application/json" id="entry-data">(.*?)</script>', page)
    assert found is not None
    data = json.loads(found[1])
    texts = data["texts"]
    rows = []
    for name, group, who, public, resources, unknown, labels, *change in data["rows"]:
        numbers = {"resources": resources, "unknown": unknown, "labels": labels}
        row = {key: [texts[number] for number in found] for key, found in numbers.items()}
        verdict = texts[change[0][1]] if change else ""
        details = [texts[number] for number in change[0][2]] if change else []
        rows.append({**row, "name": name, "group": data["groups"][group], "who": texts[who], "public": public})
        rows[-1] |= {"verdict": verdict, "details": details}
    return rows, data["groups"]


def list_rows(plan: Plan, entries: list[AccessEntry], flavour: Flavour = Flavour.PLAN) -> dict[str, dict[str, Any]]:
    rows, _ = read_list(render_page(plan, entries=entries, flavour=flavour))
    return {row["name"]: row for row in rows}


def enter(name: str, admits: str, *, host: str = "pay.example.com", binding: str = "public") -> AccessEntry:
    return AccessEntry(name, "https", host, 443, "", True, binding, admits, False, (), ("TLSEdge/payments",))


def test_a_page_lists_every_way_in_and_marks_those_that_change() -> None:
    rows = list_rows(OWN, [enter("https://pay.example.com", "everyone"), enter("https://b.example.com", "no one")])
    pay, other = rows["https://pay.example.com"], rows["https://b.example.com"]
    assert pay["verdict"] == "lets in requests that were refused"
    assert "203.0.113.0/24 → everyone" in pay["details"]
    assert (pay["who"], pay["resources"]) == ("everyone", ["TLSEdge/payments"])
    assert (other["verdict"], other["details"], other["who"]) == ("", [], "no one")


def test_a_page_also_lists_a_way_in_that_ends_and_requests_that_another_route_serves() -> None:
    closed = replace(
        WIDENED, entry_point="https://old.example.com (internal)", verdict=Verdict.CLOSES, after="no way in"
    )
    moved = replace(WIDENED, entry_point="https://pay.example.com/admin…")
    plan = replace(OWN, access=(closed, moved))
    rows = [*list_rows(plan, [enter("https://pay.example.com/…", "everyone"), enter("https://z.example.com", "x")])]
    assert rows == [
        "https://pay.example.com/…",
        "https://pay.example.com/admin…",
        "https://z.example.com",
        "https://old.example.com",
    ]
    row = list_rows(plan, [enter("https://z.example.com", "x")])["https://old.example.com"]
    assert (row["group"], row["who"], row["verdict"]) == ("Internal", "no way in", "is no longer a way in")


def test_the_list_of_drift_reports_what_was_opened_on_the_platform() -> None:
    row = list_rows(OWN, [enter("https://pay.example.com", "everyone")], Flavour.DRIFT)["https://pay.example.com"]
    assert row["verdict"] == "Access was widened on the platform"
    assert row["details"][0].startswith("from 203.0.113.0/24 → everyone, because of TLSEdge/payments")


def test_a_page_without_the_account_has_no_list() -> None:
    for page in (render_page(OWN), render_page(OWN, entries=[])):
        assert "entry-data" not in page
        assert "entry-points" not in page


def test_the_list_of_thousands_of_ways_in_is_small_and_omits_no_public_one() -> None:
    entries = list_ways_in(4_000)
    page, plain = render_page(REVIEWED, entries=entries), render_page(REVIEWED)
    assert len(page) - len(plain) < 700_000
    rows, _ = read_list(page)
    assert len(rows) == 5_000
    assert "more entry points have no room here" in page
    assert sum(row["public"] for row in rows) == sum(
        entry.public and entry.binding != "credential" for entry in entries
    )
    assert sum(bool(row["verdict"]) for row in rows) == len(ACCESS)


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
def test_no_text_of_an_entry_point_ends_the_data_of_the_page(text: str) -> None:
    entry = replace(enter(f"https://{text}", text, host=text), unknown=(text,), stack=text)
    rows, _ = read_list(render_page(Plan("s"), entries=[entry, enter(f"</script>{text}", "<!--")]))
    assert len(rows) == 2


@pytest.mark.parametrize("most", range(9))
def test_a_page_lists_changes_before_public_entry_points_and_those_before_unknown_ones(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Public and unknown weighs as much as a change; of equal weight, the first ones stay."""
    monkeypatch.setattr(access_list, "_MOST", most)
    entries, changes = [], []
    for place in range(8):
        is_changed, is_public, is_unknown = bool(place & 4), bool(place & 2), bool(place & 1)
        entry = AccessEntry(f"https://{place}", "https", str(place), 443, "", False, "public", "everyone", is_public,
                            ("not read",) if is_unknown else ())  # fmt: skip
        entries.append(entry)
        changes += [replace(WIDENED, entry_point=entry.entry_point)] if is_changed else []
    listed = access_list.build_list(entries, changes, build_outline(Plan("prod")), Flavour.PLAN)
    listing = [7, 6, 5, 3, 4, 2, 1, 0][:most]
    assert [row[0] for row in listed.data["rows"]] == [f"https://{place}" for place in sorted(listing)]
    assert (listed.number, listed.more) == (most, 8 - most)
    assert (listed.changed, listed.public, listed.unknown) == tuple(
        sum(bool(place & bit) for place in listing) for bit in (4, 2, 1)
    )


@pytest.mark.parametrize("number", [0, 1, 12, 13, 14])
def test_a_row_has_twelve_resources(number: int) -> None:
    names = tuple(f"IPPolicy/{place}" for place in range(number))
    entry = AccessEntry("https://a", "https", "a", 443, "", False, "public", "everyone", True, names, names)
    data = access_list.build_list([entry], [], build_outline(Plan("prod")), Flavour.PLAN).data
    more = [f"and {number - 12} more"] if number > 12 else []
    for place in (4, 5):
        assert [data["texts"][index] for index in data["rows"][0][place]] == [*names[:12], *more]


@pytest.mark.parametrize("length", [999, 1000, 1001])
def test_a_text_of_the_list_has_at_most_a_thousand_cells(length: int) -> None:
    entry = AccessEntry("https://a", "https", "a", 443, "", False, "public", "x" * length, True)
    texts = access_list.build_list([entry], [], build_outline(Plan("prod")), Flavour.PLAN).data["texts"]
    assert [len(text) for text in texts] == [min(length, 1000)]
    assert texts[0].endswith("…") is (length > 1000)


@pytest.mark.parametrize(
    ("name", "group"),
    [
        ("https://a.example", "public"),
        ("https://a.example (internal)", "internal"),
        ("tls://a.example:443 (kubernetes)", "kubernetes"),
        ("what TunnelCredential/rome may open", "credential"),
        ("the API", "account"),
    ],
)
def test_an_entry_point_that_only_a_change_names_is_in_its_group(name: str, group: str) -> None:
    changed = replace(WIDENED, entry_point=name)
    data = access_list.build_list([], [changed], build_outline(Plan("prod")), Flavour.PLAN).data
    (row,) = data["rows"]
    assert data["groups"][row[1]] == inventory.GROUPS[group]
    assert (data["texts"][row[2]], row[3]) == (
        changed.after,
        int(changed.public and group not in ("account", "credential")),
    )
