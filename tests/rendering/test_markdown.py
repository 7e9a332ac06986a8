"""Markdown for a review: compared with golden files, limited in size, and with foreign text escaped."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import cycle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token
from msgspec.structs import replace

from reconciler.model.address import Address
from reconciler.model.change import Action, Cause, Change, FieldChange, Reason, Risk
from reconciler.model.plan import Approval, ApprovalItem, Base, Call, Plan, Verb
from reconciler.model.problem import Problem, Severity
from reconciler.rendering.plan.markdown import (
    LIMIT,
    Cover,
    Page,
    marker,
    name_stack,
    read_markers,
    render_changes,
    render_markdown,
)
from reconciler.rendering.plan.outline import build_outline
from reconciler.rendering.plan.phrases import Flavour, Selected
from reconciler.rendering.text_tools import count
from tests.harness.tiers import examples
from tests.rendering import hostile
from tests.rendering.crowded import CROWDED
from tests.rendering.plans import BEHIND, INVALID_BASE, NOTHING_BY_BRANCH, REVIEWED, WHOLE, plans
from tests.rendering.test_text import compare
from tests.security.test_orders import orders_in

COVER = Cover("blake2b:0123abcd", budget=120)
PARSER = MarkdownIt("commonmark").enable("table")


def tokens(page: str) -> list[Token]:
    """Every token, including those within lines."""
    return [child for token in PARSER.parse(page) for child in (token, *(token.children or ()))]


def structure(page: str) -> list[tuple[str, str]]:
    """The types and tags of all tokens, without their text."""
    return [(token.type, token.tag) for token in tokens(page)]


def test_a_plan_is_a_table_then_risks_then_changes_calls_and_forecast() -> None:
    compare("plan.md", render_markdown(WHOLE, COVER))


def test_drift_has_neither_calls_nor_approvals() -> None:
    compare("drift.md", render_markdown(WHOLE, COVER, flavour=Flavour.DRIFT))


def test_a_review_begins_with_the_changes_of_the_branch() -> None:
    compare("review.md", render_markdown(REVIEWED, COVER))


@pytest.mark.parametrize("flavour", Flavour)
def test_a_plan_with_rows_of_every_sort_is_rendered(flavour: Flavour) -> None:
    compare(f"crowded-{flavour.name.lower()}.md", render_markdown(CROWDED, COVER, flavour=flavour))


@pytest.mark.parametrize("limit", [3_500, 5_000])
def test_a_plan_is_shortened_to_a_limit(limit: int) -> None:
    page = render_markdown(CROWDED, COVER, limit=limit)
    assert len(page) <= limit
    compare(f"crowded-{limit}.md", page)


def test_less_room_leaves_out_more() -> None:
    """What is left out at each limit: rows of lists, fields, changes and calls."""
    lines = []
    for limit in (500, 2_000, 2_500, 3_000, *range(4_000, 20_000, 1_000)):
        page = render_markdown(CROWDED, COVER, limit=limit)
        left_out = [line for line in page.splitlines() if "… " in line or "fit a comment" in line]
        lines += [f"limit {limit:,}: {len(page):,} characters", *(f"  {line[:150]}" for line in left_out)]
    compare("crowded-limits.txt", "\n".join((*lines, "")))


@pytest.mark.parametrize("number", [0, 1, 2, 39, 40, 41, 42])
def test_forty_kinds_are_in_the_table_and_several_have_a_row_of_all(number: int) -> None:
    kinds = [f"Kind{place:02}" for place in range(number)]
    changes = [Change(Address(kind, "a"), Action.UPDATE, Reason.FIELDS) for kind in kinds]
    table = [line for line in render_markdown(Plan("prod", changes=tuple(changes))).splitlines() if line[:2] == "| "]
    assert table[2:] == [
        *(f"| `{kind}` | 1 |" for kind in kinds[:40]),
        *([f"| … {count(number - 40, 'more kind')} | |"] if number > 40 else []),
        *([f"| **all** | **{number}** |"] if number > 1 else []),
    ]


@pytest.mark.parametrize("others", [0, 1, 2])
@pytest.mark.parametrize("deletions", [0, 1, 2])
def test_omitted_changes_are_counted_by_what_they_are(deletions: int, others: int) -> None:
    changes = [*([Action.DELETE] * deletions), *([Action.UPDATE] * others)]
    named = [Change(Address("TLSEdge", "n" * 250), action, Reason.FIELDS) for action in changes]
    note = re.findall(r"fit a comment:\*\* (.*)\. For", render_markdown(Plan("prod", changes=tuple(named)), limit=700))
    expected = [
        *([f"**{count(deletions, 'deletion')} omitted**"] if deletions else []),
        *([f"{count(others, 'other change' if deletions else 'change')} omitted"] if others else []),
    ]
    assert note == ([", ".join(expected)] if expected else [])


def test_a_branch_without_changes_is_reported_beside_drift() -> None:
    lines = render_markdown(NOTHING_BY_BRANCH, COVER).splitlines()
    assert lines[4:7] == [
        "**No changes by this branch.** Compared with `main` (`abc1234`).",
        "",
        "- Drift: 1 to update.",
    ]
    assert "### Changes by this branch" not in lines


@pytest.mark.parametrize(
    ("plan", "lines"),
    [
        (
            BEHIND,
            [
                "⚠️ **This branch is behind `origin/main` by 2 commits: changes are not attributed; "
                "merge `origin/main` first.**"
            ],
        ),
        (
            INVALID_BASE,
            [
                "⚠️ **The base `main` (`abc1234`) cannot be planned: changes are not attributed.**",
                "",
                "- ❌ `manifests/payments.yaml:3:3: IPPolicy/a.name: unknown field`",
            ],
        ),
    ],
)
def test_the_reason_for_missing_attribution_is_shown_first(plan: Plan, lines: list[str]) -> None:
    page = render_markdown(plan, COVER)
    assert page.splitlines()[4 : 4 + len(lines)] == lines
    assert "<summary><b>Drift" not in page


def with_base(plan: Plan, text: str, causes: Sequence[Cause] = tuple(Cause)) -> Plan:
    """The plan as compared with a base, with these causes in turn."""
    changes = [replace(change, cause=cause) for change, cause in zip(plan.changes, cycle(causes), strict=False)]
    return replace(plan, changes=tuple(changes), base=Base(text, text, withdrawn=plan.changes))


@given(hostile.texts)
@settings(max_examples=examples(30))
def test_foreign_text_changes_no_structure_of_a_review(text: str) -> None:
    for causes in (tuple(Cause), (Cause.DRIFT,)):
        pair = [with_base(hostile.plan(content), f"x{content}", causes) for content in (text, hostile.harmless(text))]
        bad, good = (render_markdown(plan, COVER) for plan in pair)
        assert structure(bad) == structure(good)
    behind = [render_markdown(replace(hostile.plan(content), base=Base(f"x{content}", f"x{content}", behind=1)), COVER)
              for content in (text, hostile.harmless(text))]  # fmt: skip
    assert structure(behind[0]) == structure(behind[1])


@given(hostile.many, st.integers(1, 3))
@settings(max_examples=examples(30))
def test_a_review_of_any_plan_fits_its_limit(plan: Plan, number: int) -> None:
    compared = with_base(plan, "main", tuple(Cause)[-number:])
    assert len(render_markdown(compared, COVER, limit=12_000)) <= 12_000


def test_the_changes_of_the_branch_have_room_before_the_others() -> None:
    plan = large(2500)
    changes = tuple(replace(change, cause=Cause.DRIFT) for change in plan.changes[:-1])
    page = render_markdown(
        replace(plan, changes=(*changes, replace(plan.changes[-1], cause=Cause.THIS_CHANGE)), base=Base("main", "abc")),
        COVER,
    )
    assert len(page) <= LIMIT
    assert page.index("TLSEdge/shop-0</code> delete") < page.index("<summary><b>Drift")
    assert "changes omitted" in page


def test_no_changes_are_one_sentence() -> None:
    assert render_markdown(Plan("prod"), Cover(resources=3)).splitlines()[1:] == [
        "## Plan for stack `prod`",
        "",
        "**No changes. 3 resources match the manifests.**",
    ]


@given(hostile.texts)
@settings(max_examples=examples(60))
def test_foreign_text_changes_no_structure(text: str) -> None:
    bad, good = (render_markdown(hostile.plan(content), COVER) for content in (text, hostile.harmless(text)))
    assert structure(bad) == structure(good)


@given(hostile.texts)
@settings(max_examples=examples(60))
def test_foreign_text_is_in_code_and_comments_only(text: str) -> None:
    page = render_markdown(hostile.plan(f"evil{text}"), COVER)
    outside = [token for token in tokens(page) if token.type not in ("code_inline", "fence", "inline")]
    for token in outside:
        spans = token.content.split("<code>")
        assert "evil" not in "".join([spans[0], *(span.partition("</code>")[2] for span in spans[1:])])
        assert "<script" not in token.content
        assert "<img" not in token.content


@given(hostile.texts)
@settings(max_examples=examples(30))
def test_markdown_contains_no_workflow_command(text: str) -> None:
    assert orders_in(render_markdown(hostile.plan(text), COVER)) == []


@given(hostile.many)
@settings(max_examples=examples(30))
def test_markdown_of_any_plan_fits_its_limit(plan: Plan) -> None:
    assert len(render_markdown(plan, COVER, limit=12_000)) <= 12_000


@given(plans)
@settings(max_examples=examples(30))
def test_no_secret_is_shown(plan: Plan) -> None:
    page = render_markdown(plan)
    assert "hunter2" not in page
    assert "correct horse" not in page


@pytest.mark.parametrize("lines", ["", "one\ntwo\n"], ids=["alone", "among others"])
def test_long_values_are_shown_from_where_they_differ(lines: str) -> None:
    old, new = (f"{lines}{'x' * 1000}{end}" for end in ("old", "new"))
    fields = (FieldChange("traffic_policy.value", old, new),)
    change = Change(Address("TLSEdge", "shop"), Action.UPDATE, Reason.FIELDS, fields=fields)
    printed = [line for line in render_markdown(Plan("prod", changes=(change,))).splitlines() if "xxx" in line]
    assert len(printed) == 2
    assert [line.strip('"')[-3:] for line in printed] == ["old", "new"]


def test_a_field_without_any_value_is_accepted() -> None:
    change = Change(Address("TLSEdge", "shop"), Action.UPDATE, Reason.FIELDS, fields=(FieldChange("a", None, None),))
    assert "TLSEdge/shop" in render_markdown(Plan("prod", changes=(change,)))


def large(number: int) -> Plan:
    addresses = [Address("TLSEdge", f"shop-{place}") for place in range(number)]
    policy = "\n".join(f"line {number}: {'x' * 80}" for number in range(30))
    return Plan(
        "prod",
        changes=(
            *(
                Change(
                    address, Action.UPDATE, Reason.FIELDS, fields=(FieldChange("traffic_policy.value", None, policy),)
                )
                for address in addresses[1:]
            ),
            Change(addresses[0], Action.DELETE, Reason.REMOVED, risks=(Risk.IRREVERSIBLE,)),
        ),
        calls=tuple(
            Call(f"update {address}", address, Verb.UPDATE, f"/edges/tls/{address.name}") for address in addresses
        ),
    )


def test_a_large_plan_omits_details_and_reports_how_many() -> None:
    page = render_markdown(large(100), COVER)
    assert len(page) <= LIMIT
    assert " changes without fields. For the full plan: `reconciler show FILE`" in page
    assert all(f"TLSEdge/shop-{number}`" in page or f"TLSEdge/shop-{number}<" in page for number in range(100))
    assert page.index("irreversible") < page.index("<details>") < page.index("TLSEdge/shop-0</code> delete")


def test_deletions_are_listed_first_and_never_omitted_for_other_changes() -> None:
    gone = [Address("AgentTunnel", f"live-{number}") for number in range(40)]
    changed = [
        Change(Address("TLSEdge", f"shop-{number}"), Action.UPDATE, Reason.FIELDS, risks=(Risk.WIDENS_ACCESS,))
        for number in range(3000)
    ]
    deleted = [Change(address, Action.DELETE, Reason.REMOVED) for address in gone]
    for causes in (None, Cause.THIS_CHANGE, Cause.DRIFT):
        changes = (*changed, *(replace(change, cause=causes) for change in deleted))
        plan = Plan("prod", changes=changes)
        if causes is not None:
            first = tuple(replace(change, cause=Cause.THIS_CHANGE) for change in changed)
            plan = replace(plan, changes=(*first, *changes[3000:]), base=Base("main", "abc"))
        page = render_markdown(plan, COVER)
        assert len(page) <= LIMIT
        assert "changes omitted" in page
        assert "deletions omitted" not in page
        assert all(f"`{address}`" in page for address in gone)
    page = render_markdown(Plan("prod", changes=(*changed[:5], *deleted)), COVER)
    assert page.index("<code>AgentTunnel/live-39</code> delete") < page.index("<code>TLSEdge/shop-0</code> update")


def test_omitted_deletions_are_counted_separately() -> None:
    gone = tuple(Change(Address("TLSEdge", f"x-{number}"), Action.DELETE, Reason.REMOVED) for number in range(4000))
    page = render_markdown(Plan("prod", changes=(*gone, *large(3).changes[:2])), COVER)
    assert re.search(r"\*\*\d+ deletions omitted\*\*, 2 other changes omitted", page)
    assert len(page) <= LIMIT


def test_equal_risks_are_one_line() -> None:
    def change(name: str, action: Action) -> Change:
        return Change(Address("TLSEdge", name), action, Reason.FIELDS, risks=(Risk.INTERRUPTS_TRAFFIC,))

    changes = (change("a", Action.UPDATE), change("b", Action.DELETE), change("c", Action.UPDATE))
    lines = render_markdown(Plan("prod", changes=changes)).splitlines()
    assert "- **interrupts live traffic**: delete `TLSEdge/b`; update `TLSEdge/a`, `TLSEdge/c`" in lines
    many = tuple(change(f"x{number}", Action.UPDATE) for number in range(50))
    page = render_markdown(Plan("prod", changes=many))
    assert "`TLSEdge/x29` and 20 more\n" in page


def test_notes_come_last() -> None:
    note = Problem("this plan has no such change", severity=Severity.NOTE, code="unused-approval")
    page = render_markdown(replace(WHOLE, problems=(note,)), COVER)
    assert page.endswith("\n- `note: this plan has no such change`\n")
    assert "### Problems" not in page


def test_a_huge_plan_omits_names_but_not_risks() -> None:
    page = render_markdown(large(2500), COVER)
    assert len(page) <= LIMIT
    assert "changes omitted" in page
    assert "calls omitted" in page
    assert "**irreversible: cannot be recovered after deletion**: delete `TLSEdge/shop-0`" in page


def test_the_digest_is_in_a_comment_at_the_top() -> None:
    assert render_markdown(WHOLE, COVER).splitlines()[:2] == [
        marker("prod", ""),
        "<!-- reconciler digest=blake2b:0123abcd -->",
    ]


@pytest.mark.parametrize("stack", ["a-->b", "--", "a b", "x" * 1000, "ü\n"])
def test_a_marker_is_one_html_comment_for_any_stack(stack: str) -> None:
    (token,) = PARSER.parse(marker(stack, stack))
    assert token.type == "html_block"
    assert marker(stack, stack).count("-->") == marker(stack, stack).count("--") / 2 == 1
    assert len(marker(stack, stack)) < 400


def test_each_stack_of_each_account_has_a_different_marker() -> None:
    stacks = ("a", "b", "A", "a ", "x" * 1000, "x" * 1001)
    accounts = ("https://api.example.com", "https://api.example.com (acme)")
    assert len({marker(stack, account) for stack in stacks for account in accounts}) == 12


def test_the_summary_of_a_partial_plan_is_about_the_selected_resources() -> None:
    page = render_markdown(Plan("prod", targets=("TLSEdge/*",)), replace(COVER, resources=Selected(2, of=10)))
    assert "**No changes in the selected resources: 2 of 10 resources match the manifests.**" in page


def test_a_partial_plan_names_its_targets_and_excludes() -> None:
    page = render_markdown(
        replace(WHOLE, targets=("TLSEdge/*",), excludes=("BotUser/*",), account="https://x", commit="abc")
    )
    assert "Account: `https://x` · Commit: `abc` · Targets: `TLSEdge/*` · Excluded: `BotUser/*`" in page


@pytest.mark.parametrize(
    ("few", "many", "form"),
    [(5, 0, "plain"), (4, 1, "folded"), (47, 2, "folded"), (46, 3, "named"), (0, 0, "none")],
)
def test_many_entries_of_approvals_are_folded_and_more_are_named(few: int, many: int, form: str) -> None:
    """A line more than 16, and more than 150: an entry has three lines, and one more with an id."""
    items = [ApprovalItem(f"BotUser/b{place}", "bot_1" if place >= few else "", "") for place in range(few + many)]
    approvals = (Approval("delete", "BotUser", few + many, "", items=tuple(items)),) * bool(items)
    page = render_markdown(Plan("prod", approvals=approvals))
    assert ("\nTo approve, add to `approvals.yaml` in a reviewed commit:\n" in page) is (form == "plain")
    folded = "\n<details><summary>To approve, add to <code>approvals.yaml</code> in a reviewed commit:</summary>\n"
    assert (folded in page) is (form == "folded")
    assert ("\nFor the entries of `approvals.yaml`: `reconciler plan --fail-on approvals`.\n" in page) is (
        form == "named"
    )


def list_places(number: int, action: Action) -> tuple[Change, ...]:
    fields = (FieldChange("description", "a", "b", cause=Cause.THIS_CHANGE),)
    return tuple(
        Change(Address("TLSEdge", f"{action}-{place}"), action, Reason.FIELDS, fields=fields) for place in range(number)
    )


def test_each_part_uses_the_room_that_it_has() -> None:
    """Changes, additions and calls for each room: how long the part is, and what it leaves out."""

    def list_lines() -> Iterator[str]:
        for deletions, updates in ((0, 0), (1, 0), (0, 1), (1, 1), (2, 1), (1, 3)):
            changes = (*list_places(deletions, Action.DELETE), *list_places(updates, Action.UPDATE))
            page = Page(build_outline(Plan("prod", changes=changes)), Cover(), Flavour.PLAN)
            yield f"{deletions} deletions, {updates} updates"
            yield f"  reserved: {[page.reserve(page.rows.changes, room) for room in (0, 3, 20, 40, 70, 90, 200, 400)]}"
            before = ""
            for room in (*range(80), *range(80, 620, 9)):
                text, collapsed, omitted = page.fit_changes(page.rows.changes, room)
                found = f"{len(text)}, {collapsed} collapsed, {len(omitted)} omitted"
                if found != before:
                    yield f"  room for {room}: {found}"
                before = found
        for number in (1, 9, 10, 11, 100):
            calls = tuple(
                Call(
                    f"{place}", Address("TLSEdge", f"e{place}"), Verb.UPDATE, f"/e/{place}", needs=("0",) * (place > 0)
                )
                for place in range(number)
            )
            page = Page(build_outline(Plan("prod", calls=calls)), Cover(), Flavour.PLAN)
            for room in (0, 100, 117, 118, 119, 150, 200, 300, 500, 900, 9_000):
                text, omitted_calls = page.fit_calls(room)
                yield f"{number} calls, room for {room}: {len(text)}, {omitted_calls} omitted"
        drifted = (*list_places(2, Action.DELETE), *list_places(40, Action.UPDATE))
        added = tuple(replace(change, parent=Address("TLSEdge", "x")) for change in list_places(40, Action.DELETE))
        plan = Plan("prod", changes=drifted, additions=added)
        for limit in (0, 600, 900, 1_200, 1_500, 3_000, 5_000, 9_000, 20_000):
            page_of_changes = render_changes(plan, limit=limit)
            assert len(page_of_changes) <= limit or limit < 600
            yield f"limit {limit}: {len(page_of_changes)} {page_of_changes.splitlines()[-1][:100]}"
        causes = (Cause.DRIFT, Cause.THIS_CHANGE, Cause.PENDING)
        mixed = tuple(replace(change, cause=causes[place % 3]) for place, change in enumerate(drifted))
        of_branch = Page(build_outline(Plan("prod", changes=mixed, base=Base("main", "c0ffee"))), Cover(), Flavour.PLAN)
        for room in (0, 300, 500, 700, 1_000, 1_300, 1_600, 2_000, 3_000, 6_000, 9_000):
            text, collapsed, omitted = of_branch.changes(room)
            yield f"groups, room for {room}: {len(text)}, {collapsed} collapsed, {len(omitted)} omitted"

    compare("rooms.txt", "".join(f"{line}\n" for line in list_lines()))


def test_the_room_of_a_sentence_about_omissions_is_reserved() -> None:
    plan = Plan("prod", changes=list_places(2, Action.UPDATE))
    whole = render_changes(plan)
    assert render_changes(plan, limit=len(whole) + 71) == whole
    assert render_changes(plan, limit=len(whole) + 70).endswith("\n1 change without fields.\n")


@pytest.mark.parametrize(("number", "found"), [(0, 0), (1, 1), (49, 49), (50, 50), (51, 50), (52, 50)])
def test_the_first_fifty_stacks_of_a_comment_are_read(number: int, found: int) -> None:
    markers = [marker(f"stack-{place}", "https://a") for place in range(number)]
    read = read_markers("\n".join((*markers, *markers[:1], "text", marker("later", ""))))
    assert read == markers[:found]
    assert [name_stack(line) for line in read] == [f"stack-{place}" for place in range(found)]
    assert name_stack("no marker") == ""
