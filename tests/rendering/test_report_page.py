"""The report on a stack's history. How it behaves is tested in `test_browser`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.model.address import Address
from reconciler.model.change import Action, ChangedBy, Reason
from reconciler.model.event import Outcome
from reconciler.model.history import DriftCheck, DriftedResource, Past, Run
from reconciler.rendering.html import chart, report_page
from reconciler.rendering.html.report_page import list_drift_periods
from tests.harness.tiers import examples
from tests.rendering import hostile
from tests.rendering.plans import CONTEXT
from tests.rendering.test_html import Tags

DAY = 86400.0
A, B = Address("TLSEdge", "a"), Address("IPPolicy", "b")


def moved(address: Address, *fields: str) -> DriftedResource:
    return DriftedResource(address, Action.UPDATE, Reason.FIELDS, ChangedBy.PLATFORM, fields)


def edited(address: Address) -> DriftedResource:
    return DriftedResource(address, Action.UPDATE, Reason.FIELDS, ChangedBy.GIT, ("description",))


def look(day: int, *found: DriftedResource) -> DriftCheck:
    return DriftCheck(day * DAY, 10, "abc", found)


histories = st.lists(st.sets(st.sampled_from([A, B, Address("BotUser", "c")])), max_size=12).map(
    lambda days: tuple(look(day, *(moved(each) for each in sorted(found))) for day, found in enumerate(days))
)


@given(histories)
def test_periods_cover_exactly_the_checks_at_which_a_resource_differed(looks: tuple[DriftCheck, ...]) -> None:
    found = list_drift_periods(looks)
    for look in looks:
        covering = sorted(period.resource.address for period in found if period.since <= look.at <= period.last)
        assert covering == sorted(moved.address for moved in look.moved)


@given(histories)
def test_what_lasts_comes_first_and_the_longest_first_of_all(looks: tuple[DriftCheck, ...]) -> None:
    found = list_drift_periods(looks)
    assert [drift_period.is_over for drift_period in found] == sorted(drift_period.is_over for drift_period in found)
    lasting = [drift_period.since for drift_period in found if not drift_period.is_over]
    assert lasting == sorted(lasting)


def test_a_gap_begins_a_new_period() -> None:
    found = list_drift_periods([look(1, moved(A, "x")), look(2), look(3, moved(A, "y")), look(4, moved(A, "z"))])
    assert [
        (drift_period.since, drift_period.last, drift_period.is_over, sorted(drift_period.fields))
        for drift_period in found
    ] == [
        (3 * DAY, 4 * DAY, False, ["y", "z"]),
        (1 * DAY, 1 * DAY, True, ["x"]),
    ]


def page(
    looks: tuple[DriftCheck, ...] = (), runs: tuple[Run, ...] = (), applied: Mapping[Address, float] | None = None
) -> str:
    return report_page.render_page("prod", Past(looks, runs, applied or {}), now=10 * DAY, days=90)


def test_the_last_look_is_put_into_a_sentence() -> None:
    assert (
        "Last check, 1970-01-05 00:00Z: 1 resource differed, the longest since 1970-01-03 00:00Z; 10 declared"
        in page((look(2, moved(A)), look(4, moved(A))))
    )
    assert "no drift in 10 declared resources" in page((look(2, moved(A)), look(4)))
    assert "No drift check was recorded; run <code>reconciler drift --record</code>." in page()


def test_a_run_that_died_says_so() -> None:
    written = page(runs=(Run("apply", DAY, None, "", {Outcome.DONE: 3}), Run("apply", DAY, 2 * DAY, "ended")))
    assert written.count(">terminated</span>") == 1


def test_the_state_now_comes_first() -> None:
    for looks, applied, state in (
        ((), (), "Not checked"),
        ((look(2, moved(A)), look(4, moved(A), moved(B))), (), "2 resources drifted"),
        ((look(2, moved(A), edited(B)),), (), "1 resource drifted, 1 with unapplied Git changes"),
        ((look(2, edited(A), edited(B)),), (), "2 resources with unapplied Git changes"),
        ((look(2, moved(A)), look(3), look(4)), (), "In sync since 1970-01-04 00:00Z"),
        ((look(2, moved(A)), look(3, edited(B))), (B,), "In sync since 1970-01-04 00:00Z"),
        ((look(2, moved(A), moved(B)),), (A,), "1 resource drifted"),
        ((look(2, moved(A), moved(B)),), (A, B), "Repaired since the last drift check"),
        ((look(2, moved(A), edited(B)),), (A,), "1 resource with unapplied Git changes"),
    ):
        first = re.findall("<h2[^>]*>(.*?)</h2>", page(looks, applied=dict.fromkeys(applied, 9 * DAY)))[0]
        assert re.sub("<[^>]*>", "", first) == state


def tiles(page: str) -> dict[str, str]:
    found = re.findall('<div class="tile"><dt>(.*?)</dt><dd>(.*?)</dd>', page)
    return {label: re.sub("<span>(.*?)</span>", r" (\1)", value) for label, value in found}


def test_time_to_repair_is_until_the_first_check_without_the_difference() -> None:
    looks = (look(1, moved(A), moved(B)), look(2, moved(A)), look(5))
    assert tiles(page(looks))["Time to repair"] == "2 days (median of 2, longest 4 days)"
    assert tiles(page((look(1, moved(A)), look(2))))["Time to repair"] == "1 day (1 repair)"
    assert tiles(page((look(1, moved(A)),)))["Time to repair"] == "– (no drift was repaired)"
    assert tiles(page(looks))["Last drift check"] == "5 days ago (3 checks)"


def test_unapplied_git_changes_are_neither_drift_nor_repaired() -> None:
    written = page((look(1, edited(A)), look(2), look(3, edited(A), moved(B))))
    assert tiles(written)["Time to repair"] == "– (no drift was repaired)"
    assert "1 resource differed, the longest since 1970-01-04 00:00Z" in written
    assert "1970-01-02 00:00Z: no drift" in written
    assert ">changed in Git<" not in written
    (kinds,) = re.findall('<h2 id="h-kinds">.*?</section>', written, re.DOTALL)
    assert re.findall("<td><b>(.*?)</b>", kinds) == ["IPPolicy"]
    rows = re.findall('<tr id="l(.)".*?data-head="drifted">(.)<.*?data-head="unapplied Git changes">(.)<', written)
    assert rows == [("2", "1", "1"), ("1", "0", "0"), ("0", "0", "1")]


def test_an_apply_after_the_last_check_ends_the_drift_of_what_it_changed() -> None:
    looks = (look(1, moved(A), moved(B)), look(2, moved(A), moved(B)))
    written = page(looks, applied={A: 4 * DAY, Address("BotUser", "c"): 4 * DAY})
    assert "2 resources differed, 1 of them repaired by applies since then, the longest since 1970-01-02" in written
    assert tiles(written)["Time to repair"] == "3 days (1 repair)"
    assert "applies repaired all of them since then" in page(looks, applied={A: 4 * DAY, B: 4 * DAY})


@pytest.mark.parametrize("number", [1, 2, 5])
def test_few_bars_stand_on_the_right_where_a_narrow_screen_begins(number: int) -> None:
    drawn = chart.draw_chart([chart.Bar(f"1970-01-0{each + 1}", "", {"a": 1}, each) for each in range(number)])
    assert drawn.width - drawn.slots[-1].x < 300
    assert drawn.slots[0].is_labelled


def test_past_drift_lasted_until_it_was_repaired() -> None:
    written = page((look(1, moved(A)),), applied={A: 4 * DAY})
    assert written.count("3 days<") == 3
    assert "less than a second" not in written


@pytest.mark.parametrize("number", [1, 5, 24, 120])
def test_a_date_stands_once_on_an_axis(number: int) -> None:
    bars = [chart.Bar(f"1970-01-{each * 3 // number + 1:02}", "", {"a": 1}, each) for each in range(number)]
    slots = [slot for slot in chart.draw_chart(bars).slots if slot.is_labelled]
    labels = [slot.bar.label for slot in slots]
    assert len(labels) == len(set(labels)) > 0
    assert all(later.x - slot.x >= 70 for slot, later in pairwise(slots))


def test_runs_are_counted_by_outcome() -> None:
    ended = ("applied", "applied", "blocked", "stale", "failed", "interrupted", "partial", "aborted")
    runs = [Run("apply", day * DAY, day * DAY + 1, outcome) for day, outcome in enumerate(ended)]
    runs.append(Run("destroy", 9 * DAY, 9 * DAY + 1, "ended", {Outcome.DONE: 2, Outcome.FAILED: 1}))
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
    assert tiles(written)["Last run"] == "partial (destroy, 1970-01-10 00:00Z)"


def test_a_run_has_its_commit_and_actor() -> None:
    run = Run("apply", DAY, DAY + 1, "applied", commit="0123456789abcdef", actor="mara")
    assert "<td><code>0123456789ab</code></td><td>mara</td>" in page(runs=(run,))


def test_the_header_has_environment_and_run() -> None:
    written = report_page.render_page("prod", Past((look(2),)), now=10 * DAY, days=90, context=CONTEXT)
    assert "environment production" in written
    assert 'href="https://github.com/octo/infra/actions/runs/99"' in written
    assert "<dt>Last checked commit</dt><dd>abc</dd>" in written


@given(hostile.texts)
@settings(max_examples=examples(20))
def test_foreign_text_changes_no_structure(text: str) -> None:
    def written(said: str) -> Tags:
        looks = (DriftCheck(DAY, 1, said, (moved(A, said, f"x.{said}"),)), DriftCheck(2 * DAY, 1, said))
        return Tags(
            report_page.render_page(
                said,
                Past(looks, (Run(f"x{said}", DAY, 2 * DAY, f"x{said}", commit=said, actor=said),)),
                now=3 * DAY,
                days=1,
            )
        )

    assert written(f"x{text}").structure == written(f"x{hostile.harmless(text)}").structure


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


def test_of_very_many_looks_each_day_has_its_last() -> None:
    hourly = tuple(DriftCheck(day * DAY + hour * 3600, day) for day in range(1, 31) for hour in range(24))
    assert page(hourly).count('class="slot"') == 30


@pytest.mark.parametrize(
    ("number", "told"), [(1, "1 drift check"), (100, "100 drift checks"), (151, "151 drift checks, the latest 100")]
)
def test_the_looks_are_counted_though_not_all_are_listed(number: int, told: str) -> None:
    assert f">{told}</h2>" in page(tuple(look(day) for day in range(number)))


def test_what_still_differs_lasts_until_now_in_every_table() -> None:
    assert page((look(9, moved(A)),)).count("1 day<") == 2
