"""The report on a stack's history. `test_browser` tests its behavior."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.model.access_change import Verdict
from reconciler.model.address import Address
from reconciler.model.change import Action, ChangedBy, Reason
from reconciler.model.event import Outcome
from reconciler.model.health import Health, HealthRow, State
from reconciler.model.history import CheckedHealth, DriftCheck, DriftedResource, Opening, Past, Run
from reconciler.rendering.html import chart, report_page
from reconciler.rendering.html.report_page import list_drift_periods
from reconciler.rendering.text_tools import count_more
from tests.harness.golden import compare_golden
from tests.harness.tiers import examples
from tests.rendering import hostile
from tests.rendering.html_outline import outline
from tests.rendering.plans import CONTEXT
from tests.rendering.test_html import Tags

DAY = 86400.0
A, B = Address("TLSEdge", "a"), Address("IPPolicy", "b")


def platform_change(address: Address, *fields: str) -> DriftedResource:
    return DriftedResource(address, Action.UPDATE, Reason.FIELDS, ChangedBy.PLATFORM, fields)


def git_change(address: Address) -> DriftedResource:
    return DriftedResource(address, Action.UPDATE, Reason.FIELDS, ChangedBy.GIT, ("description",))


def drift_check(day: int, *found: DriftedResource) -> DriftCheck:
    return DriftCheck(day * DAY, 10, "abc", found)


histories = st.lists(st.sets(st.sampled_from([A, B, Address("BotUser", "c")])), max_size=12).map(
    lambda days: tuple(
        drift_check(day, *(platform_change(address) for address in sorted(found))) for day, found in enumerate(days)
    )
)


@given(histories)
def test_periods_cover_exactly_the_checks_at_which_a_resource_differed(checks: tuple[DriftCheck, ...]) -> None:
    found = list_drift_periods(checks)
    for check in checks:
        covering = sorted(period.resource.address for period in found if period.since <= check.at <= period.last)
        assert covering == sorted(resource.address for resource in check.moved)


@given(histories)
def test_drift_periods_that_last_are_first_with_the_longest_at_the_top(checks: tuple[DriftCheck, ...]) -> None:
    found = list_drift_periods(checks)
    assert [drift_period.is_over for drift_period in found] == sorted(drift_period.is_over for drift_period in found)
    lasting = [drift_period.since for drift_period in found if not drift_period.is_over]
    assert lasting == sorted(lasting)


def test_a_check_without_drift_ends_a_drift_period() -> None:
    found = list_drift_periods(
        [
            drift_check(1, platform_change(A, "x")),
            drift_check(2),
            drift_check(3, platform_change(A, "y")),
            drift_check(4, platform_change(A, "z")),
        ]
    )
    assert [
        (drift_period.since, drift_period.last, drift_period.is_over, sorted(drift_period.fields))
        for drift_period in found
    ] == [
        (3 * DAY, 4 * DAY, False, ["y", "z"]),
        (1 * DAY, 1 * DAY, True, ["x"]),
    ]


def page(
    checks: tuple[DriftCheck, ...] = (), runs: tuple[Run, ...] = (), applied: Mapping[Address, float] | None = None
) -> str:
    return report_page.render_page("prod", Past(checks, runs, applied or {}), now=10 * DAY, days=90)


def test_the_last_drift_check_is_summarized_in_a_sentence() -> None:
    assert (
        "Last check, 1970-01-05 00:00 UTC: 1 resource differed, the longest since 1970-01-03 00:00 UTC; 10 declared"
        in page((drift_check(2, platform_change(A)), drift_check(4, platform_change(A))))
    )
    assert "no drift in 10 declared resources" in page((drift_check(2, platform_change(A)), drift_check(4)))
    assert "No drift check was recorded; run <code>reconciler drift --record</code>." in page()


def test_a_run_without_an_end_is_shown_as_terminated() -> None:
    written = page(runs=(Run("apply", DAY, None, "", {Outcome.DONE: 3}), Run("apply", DAY, 2 * DAY, "applied")))
    assert written.count(">terminated</span>") == 1


def test_the_current_state_is_the_first_heading() -> None:
    for checks, applied, state in (
        ((), (), "Not checked"),
        (
            (drift_check(2, platform_change(A)), drift_check(4, platform_change(A), platform_change(B))),
            (),
            "2 resources drifted",
        ),
        ((drift_check(2, platform_change(A), git_change(B)),), (), "1 resource drifted, 1 with unapplied Git changes"),
        ((drift_check(2, git_change(A), git_change(B)),), (), "2 resources with unapplied Git changes"),
        (
            (drift_check(2, platform_change(A)), drift_check(3), drift_check(4)),
            (),
            "In sync since 1970-01-04 00:00 UTC",
        ),
        (
            (drift_check(2, platform_change(A)), drift_check(3, git_change(B))),
            (B,),
            "In sync since 1970-01-04 00:00 UTC",
        ),
        ((drift_check(2, platform_change(A), platform_change(B)),), (A,), "1 resource drifted"),
        ((drift_check(2, platform_change(A), platform_change(B)),), (A, B), "Repaired since the last drift check"),
        ((drift_check(2, platform_change(A), git_change(B)),), (A,), "1 resource with unapplied Git changes"),
    ):
        first = re.findall("<h2[^>]*>(.*?)</h2>", page(checks, applied=dict.fromkeys(applied, 9 * DAY)))[0]
        assert re.sub("<[^>]*>", "", first) == state


def tiles(page: str) -> dict[str, str]:
    found = re.findall('<div class="tile"><dt>(.*?)</dt><dd>(.*?)</dd>', page)
    return {label: re.sub("<span>(.*?)</span>", r" (\1)", value) for label, value in found}


def test_time_to_repair_is_until_the_first_check_without_the_difference() -> None:
    checks = (
        drift_check(1, platform_change(A), platform_change(B)),
        drift_check(2, platform_change(A)),
        drift_check(5),
    )
    assert tiles(page(checks))["Time to repair"] == "2 days (median of 2, longest 4 days)"
    assert tiles(page((drift_check(1, platform_change(A)), drift_check(2))))["Time to repair"] == "1 day (1 repair)"
    assert tiles(page((drift_check(1, platform_change(A)),)))["Time to repair"] == "– (no drift was repaired)"
    assert tiles(page(checks))["Last drift check"] == "5 days ago (3 checks)"


def test_unapplied_git_changes_are_neither_drift_nor_repaired() -> None:
    written = page((drift_check(1, git_change(A)), drift_check(2), drift_check(3, git_change(A), platform_change(B))))
    assert tiles(written)["Time to repair"] == "– (no drift was repaired)"
    assert "1 resource differed, the longest since 1970-01-04 00:00 UTC" in written
    assert "1970-01-02 00:00 UTC: no drift" in written
    assert ">changed in Git<" not in written
    (kinds,) = re.findall('<h2 id="h-kinds">.*?</section>', written, re.DOTALL)
    assert re.findall("<td><b>(.*?)</b>", kinds) == ["IPPolicy"]
    rows = re.findall('<tr id="l(.)".*?data-head="drifted">(.)<.*?data-head="unapplied Git changes">(.)<', written)
    assert rows == [("2", "1", "1"), ("1", "0", "0"), ("0", "0", "1")]


def test_an_apply_after_the_last_check_ends_the_drift_of_what_it_changed() -> None:
    checks = (
        drift_check(1, platform_change(A), platform_change(B)),
        drift_check(2, platform_change(A), platform_change(B)),
    )
    written = page(checks, applied={A: 4 * DAY, Address("BotUser", "c"): 4 * DAY})
    assert "2 resources differed, 1 of them repaired by applies since then, the longest since 1970-01-02" in written
    assert tiles(written)["Time to repair"] == "3 days (1 repair)"
    assert "applies repaired all of them since then" in page(checks, applied={A: 4 * DAY, B: 4 * DAY})


@pytest.mark.parametrize("number", [1, 2, 5])
def test_few_bars_are_on_the_right_of_the_chart(number: int) -> None:
    drawn = chart.draw_chart([chart.Bar(f"1970-01-0{place + 1}", "", {"a": 1}, place) for place in range(number)])
    assert drawn.width - drawn.slots[-1].x < 300
    assert drawn.slots[0].is_labelled


def test_the_duration_of_past_drift_ends_with_its_repair() -> None:
    written = page((drift_check(1, platform_change(A)),), applied={A: 4 * DAY})
    assert written.count("3 days<") == 3
    assert "less than a second" not in written


@pytest.mark.parametrize("number", [1, 5, 24, 120])
def test_each_date_is_labeled_once_on_the_axis(number: int) -> None:
    bars = [chart.Bar(f"1970-01-{place * 3 // number + 1:02}", "", {"a": 1}, place) for place in range(number)]
    slots = [slot for slot in chart.draw_chart(bars).slots if slot.is_labelled]
    labels = [slot.bar.label for slot in slots]
    assert len(labels) == len(set(labels)) > 0
    assert all(later.x - slot.x >= 70 for slot, later in pairwise(slots))


def test_runs_are_counted_by_outcome() -> None:
    ended = ("applied", "applied", "blocked", "stale", "failed", "interrupted", "partial", "aborted")
    runs = [Run("apply", day * DAY, day * DAY + 1, outcome) for day, outcome in enumerate(ended)]
    runs.append(Run("destroy", 9 * DAY, 9 * DAY + 1, "partial", {Outcome.DONE: 2, Outcome.FAILED: 1}))
    written = page(runs=tuple(runs))
    (listed,) = re.findall('<ul class="totals runs">(.*?)</ul>', written, re.DOTALL)
    assert re.findall("<b>(.*?)</b> (.*?)</li>", listed) == [
        ("2", "applied"),
        ("2", "partial"),
        ("1", "aborted"),
        ("1", "blocked"),
        ("1", "failed"),
        ("1", "interrupted"),
        ("1", "stale"),
    ]
    assert tiles(written)["Last run"] == "partial (destroy, 1970-01-10 00:00 UTC)"


def test_a_run_has_its_commit_and_actor() -> None:
    run = Run("apply", DAY, DAY + 1, "applied", commit="0123456789abcdef", actor="mara")
    assert "<td><code>0123456789ab</code></td><td>mara</td>" in page(runs=(run,))


def test_the_header_has_environment_and_run() -> None:
    written = report_page.render_page("prod", Past((drift_check(2),)), now=10 * DAY, days=90, context=CONTEXT)
    assert '<span class="word">environment </span>production' in written
    assert 'href="https://github.com/octo/infra/actions/runs/99"' in written
    assert "<dt>Last checked commit</dt><dd>abc</dd>" in written


def read_rows(section: str) -> list[str]:
    """The text of each row of a table, without its head."""
    rows = re.findall("<tr>(.*?)</tr>", section, re.DOTALL)
    return [" ".join(re.sub("<[^>]*>", " ", row).split()) for row in rows[1:]]


def test_each_way_in_that_drift_opened_is_shown_with_how_long_it_stood() -> None:
    wide = Opening("https://ledger.example.com", Verdict.WIDENS, "203.0.113.0/24", "everyone")
    new = Opening("tls://new.example.com", Verdict.EXPOSES, "no one", "everyone", is_certain=False)
    checks = tuple(
        DriftCheck(day * DAY, 10, openings=openings)
        for day, openings in ((1, (wide,)), (2, (wide,)), (4, ()), (6, (new,)))
    )
    (section,) = re.findall('<section[^>]*"h-openings".*?</section>', page(checks), re.DOTALL)
    rows = [
        re.sub(r"\s+", " ", re.sub("<[^>]*>", " ", row)).strip()
        for row in re.findall("<tr>(.*?)</tr>", section, re.DOTALL)
    ]
    assert rows[1:] == [
        "tls://new.example.com 1970-01-07 00:00 UTC still open 4 days no one → everyone (unknown whether it is a new "
        "way in)",
        "https://ledger.example.com 1970-01-02 00:00 UTC 1970-01-05 00:00 UTC 3 days 203.0.113.0/24 → everyone (lets "
        "in requests that were refused)",
    ]
    assert "h-openings" not in page((DriftCheck(DAY, 10),))


def health_check(day: int, *rows: HealthRow) -> DriftCheck:
    return DriftCheck(day * DAY, 10, health=CheckedHealth(7, rows))


def test_health_is_shown_over_time_with_the_dates_that_are_due_in_30_days() -> None:
    waits = Health(State.DEGRADED, "the certificate waits for DNS", "set a CNAME", due=8 * DAY)
    soon = HealthRow("TLSCertificate/shop", "cert_1", Health(State.HEALTHY, "it expires", due=39 * DAY))
    later = HealthRow("TLSCertificate/late", "cert_2", Health(State.HEALTHY, due=41 * DAY))
    shop = HealthRow("ReservedDomain/shop", "rd_1", waits)
    ended = HealthRow("", "rd_2", Health(State.PROGRESSING, "it is obtained"))
    written = page((health_check(2, shop, ended), health_check(5, shop, soon, later), DriftCheck(6 * DAY, 10)))
    (health,) = re.findall('<section[^>]*"h-health".*?</section>', written, re.DOTALL)
    assert read_rows(health) == [
        "ReservedDomain/shop degraded 1970-01-03 00:00 UTC still not healthy 8 days the certificate waits for DNS. set "
        "a CNAME",
        "rd_2 progressing 1970-01-03 00:00 UTC 1970-01-06 00:00 UTC 3 days it is obtained",
    ]
    (due,) = re.findall('<section[^>]*"h-due".*?</section>', written, re.DOTALL)
    assert read_rows(due) == [
        "ReservedDomain/shop 1970-01-09 00:00 UTC 2 days ago degraded the certificate waits for DNS",
        "TLSCertificate/shop 1970-02-09 00:00 UTC in 29 days healthy it expires",
    ]
    assert tiles(written)["Health"] == "1 degraded (7 objects, 1970-01-06 00:00 UTC)"
    assert not re.search("h-health|h-due|Health", page((DriftCheck(DAY, 10),)).partition("<main")[2])


@given(hostile.texts)
@settings(max_examples=examples(20))
def test_foreign_text_changes_no_structure(text: str) -> None:
    def render(content: str) -> Tags:
        ill = Health(State.DEGRADED, content, content, due=DAY)
        checks = (
            DriftCheck(
                DAY,
                1,
                content,
                (platform_change(A, content, f"x.{content}"),),
                openings=(Opening(content, Verdict.WIDENS, content, content),),
                health=CheckedHealth(1, (HealthRow(content, content, ill),)),
            ),
            DriftCheck(2 * DAY, 1, content),
        )
        return Tags(
            report_page.render_page(
                content,
                Past(checks, (Run(f"x{content}", DAY, 2 * DAY, f"x{content}", commit=content, actor=content),)),
                now=3 * DAY,
                days=1,
            )
        )

    assert render(f"x{text}").structure == render(f"x{hostile.harmless(text)}").structure


@given(st.lists(st.dictionaries(st.sampled_from("ab"), st.integers(0, 5000)), max_size=30))
def test_bars_are_stacked_within_the_chart(counts: list[dict[str, int]]) -> None:
    drawn = chart.draw_chart([chart.Bar("", "", count, 0) for count in counts])
    for slot, parts in zip(drawn.slots, counts, strict=True):
        assert drawn.left <= slot.x <= slot.x + slot.width <= drawn.width
        assert len(slot.pieces) == sum(count > 0 for count in parts.values())
        bottom = float(drawn.base)
        for piece in slot.pieces:
            assert abs(piece.y + piece.height - bottom) < 1e-6
            bottom = piece.y
        assert bottom >= -1e-6


def test_the_chart_of_many_drift_checks_shows_the_last_of_each_day() -> None:
    hourly = tuple(DriftCheck(day * DAY + hour * 3600, day) for day in range(1, 31) for hour in range(24))
    assert page(hourly).count('class="slot"') == 30


@pytest.mark.parametrize(
    ("number", "heading"), [(1, "1 drift check"), (100, "100 drift checks"), (151, "151 drift checks, the latest 100")]
)
def test_all_drift_checks_are_counted_and_the_latest_are_listed(number: int, heading: str) -> None:
    assert f">{heading}</h2>" in page(tuple(drift_check(day) for day in range(number)))


def test_a_drift_period_that_lasts_is_measured_until_now_in_every_table() -> None:
    assert page((drift_check(9, platform_change(A)),)).count("1 day<") == 2


# --- numbers


def checks_of(*days: str) -> list[DriftCheck]:
    """A check for each day, with drift of the resources that it names."""
    names = {"a": platform_change(A, "name"), "b": platform_change(B, "name")}
    return [drift_check(day, *(names[name] for name in found)) for day, found in enumerate(days, 1)]


@pytest.mark.parametrize(
    ("days", "tile"),
    [
        (("a",), ("–", "no drift was repaired")),
        (("a", ""), ("1 day", "1 repair")),
        (("a", "", "b", "b", "b", ""), ("2 days", "median of 2, longest 3 days")),
        (("ab", "b", "b", "a", ""), ("1 day", "median of 3, longest 3 days")),
    ],
)
def test_the_time_to_repair_is_the_median_of_the_repairs(days: Sequence[str], tile: tuple[str, str]) -> None:
    checks = checks_of(*days)
    tiles = report_page._tiles(checks, list_drift_periods(checks), (), 9 * DAY)
    (found,) = (found for found in tiles if found.label == "Time to repair")
    assert (found.value, found.detail) == tile


@pytest.mark.parametrize(
    ("days", "text"), [((), ""), ((0.5,), ""), ((1.5,), " 1 run since then."), ((0.5, 1.5, 2), " 2 runs since then.")]
)
def test_only_runs_after_the_last_check_are_counted_as_later(days: Sequence[float], text: str) -> None:
    runs = [Run("apply", day * DAY) for day in days]
    assert report_page._verdict(Past(tuple(checks_of("")), tuple(runs)), []) == (
        f"Last check, 1970-01-02 00:00 UTC: no drift in 10 declared resources.{text}"
    )


def test_kinds_are_compared_with_the_one_that_has_the_most_periods() -> None:
    periods = list_drift_periods(checks_of("a", "", "ab", "", "a", "b"))
    rows = report_page._kinds(periods, 9 * DAY)
    assert [(row.kind, row.current, row.periods, row.share) for row in rows] == [
        ("IPPolicy", 1, 2, 67),
        ("TLSEdge", 0, 3, 100),
    ]


@pytest.mark.parametrize(
    ("number", "top"),
    [
        (0, 2),
        (1, 2),
        (2, 2),
        (3, 4),
        (4, 4),
        (10, 10),
        (11, 12),
        (12, 12),
        (13, 16),
        (16, 16),
        (17, 20),
        (100, 100),
        (101, 120),
    ],
)
def test_the_highest_bar_is_at_or_below_a_round_number(number: int, top: int) -> None:
    bars = [chart.Bar("day", "", {"create": number}, 0)]
    assert [mark for _, mark in chart.draw_chart(bars).lines] == [0, top // 2, top]


SHOP = HealthRow("ReservedDomain/shop", "rd_1", Health(State.DEGRADED, "the certificate waits for DNS", "set a CNAME"))
CHECKS = (
    drift_check(1, *(platform_change(Address("BotUser", f"b-{place}"), "name") for place in range(8))),
    DriftCheck(
        2 * DAY,
        10,
        "abc",
        (
            platform_change(A, "x", "y"),
            git_change(B),
            DriftedResource(Address("BotUser", "c"), Action.UPDATE, Reason.FIELDS, ChangedBy.BOTH),
        ),
        complete=False,
        openings=(Opening("https://a.example.com", Verdict.WIDENS, "10.0.0.0/8", "everyone"),),
        health=CheckedHealth(4, (SHOP, HealthRow("", "rd_2", Health(State.UNKNOWN, "not read")))),
    ),
    DriftCheck(
        4 * DAY,
        11,
        "abd",
        (platform_change(A, "z"), DriftedResource(B, Action.UPDATE, Reason.FIELDS, ChangedBy.UNKNOWN)),
        openings=(Opening("tcp://b.example.com:1", Verdict.EXPOSES, "nobody", "everyone", is_certain=False),),
        health=CheckedHealth(
            5,
            (
                SHOP,
                HealthRow("TLSCertificate/a", "c_1", Health(State.HEALTHY, due=12 * DAY)),
                HealthRow("TLSCertificate/b", "c_2", Health(State.PROGRESSING, "is obtained", due=60 * DAY)),
            ),
        ),
    ),
)
RUNS = (
    Run("apply", DAY, DAY + 70, "applied", {Outcome.DONE: 3, Outcome.ALREADY: 1}, "abc", "kim"),
    Run("apply", 2 * DAY, 2 * DAY + 1, "partial", {Outcome.DONE: 1, Outcome.FAILED: 2, Outcome.SKIPPED: 3}),
    Run("destroy", 3 * DAY, None, "", {Outcome.UNKNOWN: 1}),
    Run("apply", 4 * DAY, 4 * DAY, "unchanged"),
    Run("apply", 5 * DAY, 5 * DAY, "of a later version"),
)


@pytest.mark.parametrize("name", ["whole", "empty"])
def test_a_report_has_the_expected_elements(name: str) -> None:
    past = Past(CHECKS, RUNS, {A: 5 * DAY}) if name == "whole" else Past()
    written = report_page.render_page("prod", past, now=10 * DAY, days=90, context=CONTEXT)
    compare_golden(Path(__file__).parent / "pages" / f"page-report-{name}.txt", outline(written))


@pytest.mark.parametrize("number", [100, 101, 102])
def test_each_table_has_the_number_of_rows_that_it_omits(number: int) -> None:
    opened = [Opening(f"tcp://h{place}:1", Verdict.WIDENS, "10.0.0.0/8", "everyone") for place in range(number)]
    ill = [HealthRow(f"BotUser/b{place}", "b", Health(State.DEGRADED, "odd", due=9 * DAY)) for place in range(number)]
    check = DriftCheck(DAY, number, openings=tuple(opened), health=CheckedHealth(number, tuple(ill)))
    written = page((check,))
    for heading in ("h-openings", "h-health", "h-due"):
        (section,) = re.findall(f'<section[^>]*"{heading}".*?</section>', written, re.DOTALL)
        assert len(read_rows(section)) == 100
        assert re.findall("… and (.*?)<", section) == ([count_more(number - 100, "row")] if number > 100 else [])


@pytest.mark.parametrize("number", [99, 100, 101, 120, 121])
def test_a_report_has_the_latest_hundred_rows_of_each_table(number: int) -> None:
    checks = tuple(drift_check(day, platform_change(Address("BotUser", f"b-{day}"))) for day in range(number))
    runs = tuple(Run("apply", day * DAY, day * DAY + 1, "applied", {Outcome.DONE: 1}) for day in range(number))
    written = outline(report_page.render_page("prod", Past(checks, runs), now=200 * DAY, days=200))
    title = f"| {number} drift checks{', the latest 100' if number > 100 else ''}\n"
    assert title in written
    assert [written.count(f" tr id='{table}") for table in ("l", "r")] == [min(number, 100)] * 2
    left_out = [len(rows) - 100 for rows in (checks[1:], runs) if len(rows) > 100]  # the drift of the last check lasts
    assert re.findall(r"\| … and (.*)\n", written) == [count_more(number, "row") for number in left_out]
    assert written.count("rect class='bar") == 2 * min(number, 120) + 1


@pytest.mark.parametrize("highest", [0, 1, 2, 3, 6, 9, 12, 13, 16, 17, 20, 21, 160, 161])
def test_a_chart_has_the_expected_geometry(highest: int) -> None:
    tops = [2, 2, 2, 4, 6, 10, 12, 16, 16, 20, 20, 40, 160, 200]
    top = dict(zip([0, 1, 2, 3, 6, 9, 12, 13, 16, 17, 20, 21, 160, 161], tops, strict=True))[highest]
    drawn = chart.draw_chart([chart.Bar("a", "", {"x": highest, "y": 0}, 1), chart.Bar("b", "", {}, 2)])
    assert [mark for _, mark in drawn.lines] == [0, top // 2, top]
    assert [height for height, _ in drawn.lines] == [176, 93, 10]
    first, second = drawn.slots
    high = highest / top * 166
    pieces = [(piece.hue, round(piece.y, 6), round(piece.height, 6)) for piece in first.pieces]
    assert pieces == [("x", round(176 - high, 6), round(high, 6))] * bool(highest)
    assert (first.x, first.width, second.x, second.width, second.pieces) == (998, 44, 1118, 44, ())


@pytest.mark.parametrize(
    ("number", "width", "first", "labelled"),
    [
        (1, 44, 1118, [0]),
        (9, 44, 158, [0, 2, 4, 6, 8]),
        (12, 44, 70.17, [0, 2, 4, 6, 8, 10]),
        (13, 44, 66.46, [0, 2, 4, 6, 8, 10]),  # there is no room for the last date
        (14, 44, 63.29, [0, 2, 4, 6, 8, 10, 12]),
        (33, 28.02, 47.5, [0, 5, 10, 15, 20, 25, 30]),
        (119, 7.77, 44.97, [0, 16, 32, 48, 64, 80, 96]),
    ],
)
def test_bars_have_labels_where_these_fit(number: int, width: float, first: float, labelled: list[int]) -> None:
    slots = chart.draw_chart([chart.Bar(f"{place}", "", {"x": 1}, place) for place in range(number)]).slots
    assert [place for place, slot in enumerate(slots) if slot.is_labelled] == labelled
    assert (round(slots[0].width, 2), round(slots[0].x, 2)) == (width, first)
    assert slots[-1].x + slots[-1].width < 1200


@pytest.mark.parametrize(("number", "labelled"), [(11, [0, 10]), (12, [0, 11]), (13, [0])])
def test_the_last_date_has_a_label_if_it_fits(number: int, labelled: list[int]) -> None:
    """Of twelve bars, by a fifth of a pixel."""
    bars = [chart.Bar("a" if place < number - 1 else "b", "", {"x": 1}, place) for place in range(number)]
    assert [place for place, slot in enumerate(chart.draw_chart(bars).slots) if slot.is_labelled] == labelled


def test_a_commit_is_shown_with_twelve_digits() -> None:
    commit = "0123456789abcdef0123"
    checks, runs = (DriftCheck(DAY, 10, commit),), (Run("apply", DAY, commit=commit),)
    assert re.findall("0123[0-9a-f]*", page(checks, runs)) == [commit[:12]] * 3


def test_bars_are_labeled_with_the_date_and_described_with_the_time() -> None:
    bars = (
        report_page._drift_bar(3, drift_check(1, platform_change(A))),
        report_page._run_bar(3, Run("apply", DAY + 60, calls={Outcome.DONE: 2, Outcome.UNKNOWN: 1, Outcome.FAILED: 4})),
        report_page._run_bar(4, Run("apply", DAY)),
    )
    assert [(bar.label, bar.description, bar.link) for bar in bars] == [
        ("1970-01-02", "1970-01-02 00:00 UTC: 1 changed on the platform", 3),
        ("1970-01-02", "1970-01-02 00:01 UTC apply: 2 succeeded, 1 unknown, 4 failed", 3),
        ("1970-01-02", "1970-01-02 00:00 UTC apply: no calls", 4),
    ]
    assert bars[0].parts == {"update": 1, "delete": 0, "unchanged": 0}
    assert bars[1].parts == {"create": 2, "other": 0, "update": 0, "delete": 5}


def test_kinds_are_ordered_by_current_drift_then_by_periods_then_by_name() -> None:
    a, b, c, d = (Address(kind, "x") for kind in ("BotUser", "IPPolicy", "TLSEdge", "WeightedBackend"))
    checks = [
        drift_check(1, *map(platform_change, (a, b, c))),
        drift_check(2),
        drift_check(3, *map(platform_change, (b, c))),
    ]
    checks += [drift_check(4), drift_check(5, platform_change(c), platform_change(d))]
    rows = report_page._kinds(list_drift_periods(checks), 6 * DAY)
    assert [(row.kind, row.current, row.periods, row.longest, row.share) for row in rows] == [
        ("TLSEdge", 1, 3, "1 day", 100),
        ("WeightedBackend", 1, 1, "1 day", 33),
        ("IPPolicy", 0, 2, "1 day", 67),
        ("BotUser", 0, 1, "1 day", 33),
    ]
