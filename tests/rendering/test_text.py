"""Pages are compared whole with the files in `pages/`; `--rewrite` writes them."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from reconciler.model.address import Address
from reconciler.model.change import Action, Change, ChangedBy, FieldChange, Reason
from reconciler.model.plan import Approval, ApprovalItem, Call, Forecast, Plan, Verb
from reconciler.model.problem import Problem, Severity
from reconciler.rendering import terminal_text
from reconciler.rendering.html import plan_page
from reconciler.rendering.plan import phrases, text
from reconciler.rendering.plan.excerpts import excerpts
from reconciler.rendering.plan.markdown import render_markdown
from reconciler.rendering.plan.outline import DiffLine, build_outline
from reconciler.rendering.plan.overview_markdown import render_overview
from reconciler.rendering.plan.phrases import Flavour, Selected
from tests.harness.golden import compare_golden
from tests.harness.tiers import examples
from tests.rendering.crowded import CROWDED, list_access, list_problems
from tests.rendering.plans import BEHIND, INVALID_BASE, NOTHING_BY_BRANCH, PAYMENTS, REVIEWED, WHOLE, at, plans

PAGES = Path(__file__).parent / "pages"


def compare(name: str, page: str) -> None:
    compare_golden(PAGES / name, page)


@pytest.mark.parametrize("width", [40, 80, 120])
def test_a_plan_is_rendered_in_every_width(width: int) -> None:
    compare(f"plan-{width}.txt", text.render_text(WHOLE, width=width, budget=120))


def test_a_plan_is_rendered_in_color() -> None:
    compare("plan-80-coloured.txt", text.render_text(WHOLE, width=80, budget=120, color=True))


def test_drift_shows_for_each_field_what_changed_it() -> None:
    compare("drift-80.txt", text.render_text(WHOLE, width=80, flavour=Flavour.DRIFT))


def test_a_plan_with_a_base_is_in_three_groups() -> None:
    compare("review-80.txt", text.render_text(REVIEWED, width=80))


@pytest.mark.parametrize("flavour", Flavour)
def test_a_plan_with_rows_of_every_sort_is_rendered(flavour: Flavour) -> None:
    compare(f"crowded-{flavour.name.lower()}-70.txt", text.render_text(CROWDED, width=70, flavour=flavour, color=True))


@pytest.mark.parametrize(
    ("number", "rows"), [(100, ""), (101, "… and 1 more problem; "), (102, "… and 2 more problems; ")]
)
def test_a_hundred_problems_are_listed(number: int, rows: str) -> None:
    urgent = [problem for problem in list_problems(2 * number) if problem.severity is not Severity.NOTE]
    page = text.render_text(Plan("prod", problems=tuple(urgent[:number])), width=200)
    assert page.count("manifests/crowded.yaml") == 100
    assert [line.strip()[: len(rows)] for line in page.splitlines() if "more problem" in line] == [rows] * bool(rows)


@pytest.mark.parametrize(("number", "rows"), [(50, ""), (51, "… and 1 more row; "), (52, "… and 2 more rows; ")])
def test_fifty_rows_of_access_are_listed(number: int, rows: str) -> None:
    page = text.render_text(Plan("prod", access=list_access(number)), width=200)
    assert page.count("caused by") == 50
    assert [line.strip()[: len(rows)] for line in page.splitlines() if "more row" in line] == [rows] * bool(rows)


@pytest.mark.parametrize("width", range(44, 70))
def test_a_position_that_fits_is_beside_its_address(width: int) -> None:
    change = Change(PAYMENTS, Action.UPDATE, Reason.FIELDS, position=at(12))
    lines = text.render_text(Plan("prod", changes=(change,)), width=width).splitlines()
    address, position = f"  ~ {PAYMENTS}", "manifests/payments.yaml:12"
    fits = len(f"{address}  {position}") <= width
    assert lines[:2] == ([f"{address}  {position}", lines[1]] if fits else [address, f"      {position}"])


def test_a_branch_without_changes_is_reported_beside_drift() -> None:
    lines = text.render_text(NOTHING_BY_BRANCH, width=80).splitlines()
    assert lines[0] == "Drift: changed on the platform"
    assert lines[lines.index("No changes by this branch.") :] == [
        "No changes by this branch.",
        "Drift: 1 to update.",
        "Plan: 0 to create, 1 to update, 0 to replace, 0 to delete.",
        "3 API calls.",
    ]
    nothing = replace(NOTHING_BY_BRANCH, changes=(), approvals=())
    assert text.render_text(nothing, resources=2) == (
        "No changes by this branch.\nNo changes. 2 resources match the manifests.\n"
    )


def test_the_reason_for_missing_attribution_is_shown_first() -> None:
    begin = "This branch is behind origin/main by 2 commits: changes are not attributed; merge origin/main first.\n"
    assert text.render_text(BEHIND, width=120).startswith(begin)
    lines = text.render_text(INVALID_BASE, width=120).splitlines()
    assert lines[:2] == [
        "The base main (abc1234) cannot be planned: changes are not attributed.",
        "  ! manifests/payments.yaml:3:3: IPPolicy/a.name: unknown field",
    ]
    assert not any("Changes by this branch" in line for line in lines)


def test_an_empty_plan_shows_how_many_resources_match() -> None:
    assert text.render_text(Plan("prod"), resources=30) == "No changes. 30 resources match the manifests.\n"
    assert text.render_text(Plan("prod"), resources=0) == "No changes: this stack has no objects on the platform.\n"
    assert text.render_text(Plan("prod"), resources=1) == "No changes. 1 resource matches the manifests.\n"
    assert text.render_text(Plan("prod")) == "No changes. The platform matches the manifests.\n"


def test_a_limited_plan_shows_how_many_resources_are_selected() -> None:
    limited = Plan("prod", targets=("TLSEdge/*",))
    some, one, none = Selected(2, of=10), Selected(1, of=10), Selected(0, of=1)
    begin = "No changes in the selected resources"
    assert text.render_text(limited, resources=some) == f"{begin}: 2 of 10 resources match the manifests.\n"
    assert (
        text.render_text(limited, resources=Selected(0, of=0))
        == f"{begin}: this stack has no objects on the platform.\n"
    )
    assert text.render_text(limited, resources=one) == f"{begin}: 1 of 10 resources matches the manifests.\n"
    assert text.render_text(limited, resources=none) == f"{begin}: 0 of 1 resource match the manifests.\n"
    assert text.render_text(Plan("prod", excludes=("BotUser/*",))) == f"{begin}.\n"
    drift = text.render_text(limited, resources=some, flavour=Flavour.DRIFT)
    assert drift == "No drift in the selected resources: 2 of 10 resources match the manifests.\n"


def test_the_totals_of_a_limited_plan_are_about_the_selected_resources() -> None:
    limited = replace(WHOLE, targets=("*",))
    assert "\nPlan for the selected resources: " in text.render_text(limited, width=200)
    assert "\nPlan: " in text.render_text(WHOLE, width=200)
    assert " selected resources: " in text.render_text(limited, width=200, flavour=Flavour.DRIFT)


def test_no_drift_is_reported_as_such() -> None:
    page = text.render_text(Plan("prod"), resources=2, flavour=Flavour.DRIFT)
    assert page == "No drift. 2 resources match the manifests.\n"


def test_drift_with_problems_is_not_reported_as_no_drift() -> None:
    unknown = Plan(
        "prod", problems=(Problem("there is no IPPolicy ipp_1 on the platform", "correct the id", code="unknown-id"),)
    )
    assert "No drift" not in text.render_text(unknown, resources=2, flavour=Flavour.DRIFT)


@given(plans, st.integers(40, 120), st.sampled_from(Flavour))
@settings(max_examples=examples(60))
def test_every_line_fits_and_has_no_control_character(plan: Plan, width: int, flavour: Flavour) -> None:
    for line in text.render_text(plan, width=width, flavour=flavour).splitlines():
        assert terminal_text.sanitize(line) == line
        flags = line.lstrip().startswith("--allow")  # a flag is not wrapped, so that it can be copied
        assert flags or terminal_text.width(line) <= width


@given(plans)
@settings(max_examples=examples(30))
def test_no_secret_is_shown(plan: Plan) -> None:
    page = text.render_text(plan, width=120)
    assert "hunter2" not in page
    assert "correct horse" not in page


def page_of(*fields: FieldChange, width: int = 60) -> list[str]:
    plan = Plan("prod", changes=(Change(PAYMENTS, Action.UPDATE, Reason.FIELDS, fields=fields),))
    lines = text.render_text(plan, width=width).splitlines()
    return lines[2 : lines.index("", 2)]


def test_a_long_text_is_shown_from_where_it_differs() -> None:
    old, new = "x" * 200 + "old", "x" * 200 + "new"
    assert page_of(FieldChange("description", old, new)) == [
        "      ~ description:",
        '          - …xxxxxxxxxxxxxxxxold"',
        '          + …xxxxxxxxxxxxxxxxnew"',
    ]


def test_texts_that_differ_in_their_last_newline_are_shown_differently() -> None:
    assert page_of(FieldChange("value", "a: 1\nb: 2\n", "a: 1\nb: 2")) == [
        "      ~ value:",
        r'          - "a: 1\nb: 2\n"',
        r'          + "a: 1\nb: 2"',
    ]


def test_a_long_line_is_shown_from_where_it_differs_among_other_lines() -> None:
    long = "x" * 200
    old = f"first\n{long}old\nlast\n"
    new = f"first\none more\n{long}new\nlast\n"
    assert page_of(FieldChange("value", old, new)) == [
        "      ~ value:",
        "            first",
        "          - …xxxxxxxxxxxxxxxxold",
        "          + one more",
        "          + …xxxxxxxxxxxxxxxxnew",
        "            last",
    ]


def test_spaces_at_the_end_of_a_line_are_visible() -> None:
    assert page_of(FieldChange("value", "a\nb\n", "a  \nb\n")) == [
        "      ~ value:",
        "          - a",
        r"          + a\x20\x20",
        "            b",
    ]


pieces = st.sampled_from(["ab" * 40, "日" * 30, "c", "\u0301"])
long = st.builds("".join, st.lists(pieces, max_size=8))
short = st.lists(st.sampled_from("123"), max_size=2)


@given(long, long, short, short, st.integers(28, 100))
def test_truncated_lines_show_every_change(old: str, new: str, before: list[str], after: list[str], room: int) -> None:
    lines = [*(DiffLine("-", text) for text in [old, *before]), *(DiffLine("+", text) for text in [*after, new])]
    printed = list(excerpts(lines, room))
    assert all(terminal_text.width(text) <= room for text in printed)
    assert (printed[0] == printed[-1]) == (old == new)


@pytest.mark.parametrize(
    ("removed", "added"),
    [
        (["x" * 100 + "old", "x" * 150 + "old"], ["x" * 100 + "new", "x" * 150 + "new"]),
        (["x" * 200, "x" * 300], ["x" * 100]),
        ([], ["x" * 200, "x" * 300]),
    ],
)
def test_different_lines_of_one_repeated_character_are_shown_differently(removed: list[str], added: list[str]) -> None:
    lines = [*(DiffLine("-", text) for text in removed), *(DiffLine("+", text) for text in added)]
    printed = list(excerpts(lines, 28))
    assert len({*printed}) == len(lines)
    assert all(terminal_text.width(text) <= 28 for text in printed)


def test_a_long_value_that_is_removed_is_truncated() -> None:
    assert page_of(FieldChange("ca_pem", "\n".join(f"line {n}" for n in range(20)), None)) == [
        "      - ca_pem:",
        *(f"          - line {n}" for n in range(7)),
        "          … 13 more lines",
    ]


def test_a_field_that_changed_on_the_platform_is_marked() -> None:
    assert page_of(
        FieldChange("a", 1, 2, ChangedBy.GIT),
        FieldChange("b", 1, 2, ChangedBy.PLATFORM),
        FieldChange("c", 1, 2, ChangedBy.UNKNOWN),
    ) == ["      ~ a: 1 → 2", "      ~ b: 1 → 2  (changed on the platform)", "      ~ c: 1 → 2"]


@pytest.mark.parametrize(
    ("forecast", "budget", "words"),
    [
        (Forecast(1, 0), 0, "1 API call"),
        (Forecast(12, 0), 120, "12 API calls, within the budget of 120 requests per minute"),
        (Forecast(130, 60), 120, "130 API calls, about 60 s at 120 requests per minute"),
        (Forecast(1300, 600), 0, "1300 API calls, about 10 min"),
        (Forecast(90000, 36000), 0, "90000 API calls, about 10 h"),
    ],
)
def test_a_forecast_is_rounded(forecast: Forecast, budget: int, words: str) -> None:
    assert phrases.forecast(forecast, budget) == words


def test_totals_always_count_create_update_replace_and_delete() -> None:
    assert (
        phrases.totals(build_outline(replace(WHOLE, changes=())))
        == "Plan: 0 to create, 0 to update, 0 to replace, 0 to delete."
    )


@pytest.mark.parametrize("width", [80, 100, 200])
def test_no_id_is_broken(width: int) -> None:
    edge, route = (f"{prefix}_3MUtQv3cvfFReL29MP2ghgmcMnI" for prefix in ("edghts", "edghtsrt"))
    address = Address("HTTPSEdgeRoute", "a-very-long-name-of-a-route-of-a-shop.and-of-its-second-part")
    change = Change(
        address,
        Action.UPDATE,
        Reason.IMMUTABLE,
        route,
        (FieldChange("https_edge_id", "another edge", edge, forces_replacement=True),),
    )
    path = f"/edges/https/{edge}/routes/{route}/webhook_verification/and/some/more/{edge}"
    call = Call(f"update {address}", address, Verb.UPDATE, path)
    page = text.render_text(Plan("prod", changes=(change,), calls=(call,)), width=width)
    assert all(terminal_text.width(line) <= width for line in page.splitlines())
    assert (page.count(edge), page.count(route)) == (3, 2)


def test_a_position_is_beside_its_resource_at_any_width() -> None:
    for width in (80, 200):
        page = text.render_text(WHOLE, width=width)
        assert "  ~ TLSEdge/payments  manifests/payments.yaml:12\n" in page


@pytest.mark.parametrize("cells", [47, 48, 49])
@pytest.mark.parametrize("kind", ["text", "lines", "list", "dict"])
def test_a_nested_value_of_more_than_48_cells_is_below_its_key(kind: str, cells: int) -> None:
    """A text of one line stays on the line of its key."""
    inner = "a" * cells
    value = {"text": inner[2:], "lines": f"{inner[5:]}\nb", "list": [inner[4:]], "dict": {"k": inner[7:]}}[kind]
    change = Change(
        Address("IPPolicy", "a"), Action.UPDATE, Reason.FIELDS, "ipp_1", (FieldChange("f", None, {"key": value}),)
    )
    (field,) = build_outline(Plan("prod", changes=(change,))).changes[0].fields
    assert field.new is not None
    assert (field.new.lines[0] == "key:") is (cells > 48 and kind != "text")


EVERY = (*REVIEWED.changes, *REVIEWED.additions)


@pytest.mark.parametrize("place", range(len(EVERY)))
def test_a_change_without_a_cause_is_shown_in_every_format(place: int) -> None:
    """An edited plan file hides no change from its readers."""
    changes = [replace(change, cause=None) if number == place else change for number, change in enumerate(EVERY)]
    number = len(REVIEWED.changes)
    plan = replace(REVIEWED, changes=tuple(changes[:number]), additions=tuple(changes[number:]), approvals=())
    other = replace(REVIEWED, environment="test")
    for page in (
        text.render_text(plan, width=120),
        render_markdown(plan),
        plan_page.render_page(plan),
        render_overview([plan, other]),
        plan_page.render_overview([plan, other]),
    ):
        assert all(str(change.address) in page for change in changes)


@pytest.mark.parametrize("parts", [("changes",), ("additions",), ("changes", "additions"), ()])
def test_the_signs_of_drift_are_explained_beside_drift(parts: tuple[str, ...]) -> None:
    change = Change(PAYMENTS, Action.DELETE, Reason.ADDED, parent=PAYMENTS)
    page = text.render_text(Plan("prod", **dict.fromkeys(parts, (change,))), flavour=Flavour.DRIFT)  # type: ignore[arg-type]
    assert ("Differences: - on the platform, + in the manifests" in page) is bool(parts)


def test_calls_are_in_columns_where_they_fit() -> None:
    lines = []
    for number, width in product((1, 9, 10, 100), (40, 47, 48, 49, 50, 51)):
        calls = tuple(
            Call(f"{place}", PAYMENTS, Verb.UPDATE, f"/edges/{place}", needs=("1",) * (place > 1))
            for place in range(number)
        )
        page = text.render_text(Plan("prod", calls=calls), width=width).partition("\n\n")[0].splitlines()
        lines += [f"{number} in {width}:", *(page[1:] if number == 1 else [*page[1:3], "…", *page[-2:]])]
    compare("calls.txt", "".join(f"{line}\n" for line in lines))


def test_excerpts_begin_where_lines_differ() -> None:
    lines = []
    for same, after, room in product((0, 9, 15, 16, 17, 18, 30, 100), (0, 9, 60), (28, 29, 40)):
        both = [DiffLine(sign, f"{'p' * same}{word}{'s' * after}") for sign, word in (("-", "old"), ("+", "new"))]
        found = " | ".join(excerpts([*both, DiffLine(" ", "c" * (same + after))], room))
        lines += [f"{same} {after} in {room}: {found}"]
    for number in (26, 27, 28, 29, 30):
        equal_lines = [
            DiffLine("-", "x" * number),
            DiffLine("-", "x" * 40),
            DiffLine("+", "x" * 50),
            DiffLine("+", "x" * number),
        ]
        lines += [f"{number}: {' | '.join(excerpts(equal_lines, 28))}"]
    compare("excerpts.txt", re.sub(r"([a-z])\1{9,}", lambda run: f"{run[1]}×{len(run[0])}", "\n".join((*lines, ""))))


def test_accepted_values_show_what_they_open_and_the_approvals() -> None:
    item = ApprovalItem("TLSEdge/pay", "e_1", "d")
    approvals = (
        Approval("widens_access", "TLSEdge", 1, "widens access", items=(item, replace(item, subject="BotUser/x"))),
        Approval("widens_access", "*", 1, "widens access", items=(replace(item, subject="https://a"),)),
        Approval("delete", "BotUser", 1, "deletes", granted=True),
    )
    compare(
        "acceptance.txt", text.render_acceptance(Plan("prod", access=list_access(2), approvals=approvals), width=70)
    )
    assert text.render_acceptance(Plan("prod"), color=True) == ""


@pytest.mark.parametrize(("others", "pending"), [(0, 1), (0, 2), (1, 1), (2, 2), (1, 0)])
def test_pending_changes_have_one_title_after_what_was_added(others: int, pending: int) -> None:
    change = Change(PAYMENTS, Action.UPDATE, Reason.FIELDS)
    added = Change(PAYMENTS, Action.DELETE, Reason.ADDED, parent=PAYMENTS)
    changes = (*(replace(change, is_pending=True),) * pending, *(change,) * others)
    page = text.render_text(Plan("prod", changes=changes, additions=(added,)), flavour=Flavour.DRIFT)
    titles = re.findall("^(?:Added on|Unapplied Git|  ~ )", page, re.MULTILINE)
    assert titles == [*["  ~ "] * others, "Added on", *["Unapplied Git"] * (pending > 0), *["  ~ "] * pending]
