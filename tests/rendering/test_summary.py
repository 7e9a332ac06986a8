"""A short document: the same facts as Markdown and as a page, in which no foreign text is markup."""

from __future__ import annotations

import json
import re
from pathlib import Path

from hypothesis import given, settings

from reconciler.model.access_test import AccessResult, AccessStatus, Expected
from reconciler.model.event import Ended, Outcome
from reconciler.model.problem import Position, Problem, Severity
from reconciler.rendering.html.summary_page import render_page
from reconciler.rendering.summary import (
    Section,
    Summary,
    Tone,
    list_problems,
    render_markdown,
    summarize_access,
    summarize_apply,
    summarize_validation,
)
from tests.harness.golden import compare_golden
from tests.harness.tiers import examples
from tests.rendering.hostile import texts
from tests.rendering.html_outline import outline
from tests.rendering.plans import WHOLE, list_ways_in


def build(text: str) -> Summary:
    return Summary(text, text, Tone.BAD, (text,), (Section("Problems", ("where", "what"), ((text, text),)),))


def test_a_summary_is_a_headline_with_tables() -> None:
    summary = Summary(
        "Apply to stack prod",
        "blocked",
        Tone.BAD,
        ("approval required",),
        (Section("Changes", ("resource", "action"), (("IPPolicy/a", "create"),)), Section("Problems", ("where",), ())),
    )
    assert render_markdown(summary) == (
        "## Apply to stack prod\n\n**blocked**\n\n- approval required\n\n"
        "### Changes\n\n| resource | action |\n| --- | --- |\n| `IPPolicy/a` | create |\n"
    )
    page = render_page(summary)
    assert all(text in page for text in ("Apply to stack prod", "waiting", "IPPolicy/a"))
    assert "Problems" not in page  # a table without rows


@given(texts)
@settings(max_examples=examples(20))
def test_foreign_text_is_never_markup(text: str) -> None:
    title, _, headline, _, line, *_, row = render_markdown(build(text)).rstrip("\n").split("\n")
    for part in (title.removeprefix("## "), headline.removeprefix("**").removesuffix("**"), line.removeprefix("- ")):
        unescaped = re.sub(r"\\.", "", part)
        assert not re.search(r"[`*_\[\]<>|#!&~]|@(?!\u200b)", unescaped), part
    assert re.sub(r"\\.", "", re.sub(r"\\\|", "", row)).endswith(" |")
    page = render_page(build(text))
    assert not re.search(r"<(script>alert|img|/details)", page)


PLACE = Position("manifests/shop.yaml", 3, 5)
PROBLEMS = (
    Problem("it is wrong", "mend it", "IPPolicy/a.cidr", PLACE, code="invalid-value"),
    Problem("it is odd", "", "", PLACE, Severity.WARNING, code="unknown-field"),
    Problem("it is missing", "add it", "IPPolicy/b", severity=Severity.NOTE, code="missing-field"),
    Problem("nothing is known", code="unreadable-file"),
)
TESTS = tuple(
    AccessResult(f"GET {status}", status, Expected.DENY, Expected.ALLOW, f"everyone {status}", PLACE)
    for status in AccessStatus
)


def test_results_of_every_operation_are_summarized_as_reviewed() -> None:
    outcomes = [
        Ended(call, outcome, 1.0, why=f"why {outcome}") for call, outcome in zip(WHOLE.calls, Outcome, strict=False)
    ]
    summaries = [
        summarize_apply(WHOLE, "partial", ("a reason",), outcomes, PROBLEMS, is_good=False),
        summarize_apply(WHOLE, "applied", (), outcomes[:2], (), is_good=True),
        summarize_validation("prod", PROBLEMS, TESTS, resources=1, files=2),
        summarize_validation(None, PROBLEMS[1:], TESTS[:1], resources=2, files=1),
        summarize_access(list_ways_in(1), {}),
        summarize_access([], {"IPPolicy": "refused"}),
    ]
    assert len(outcomes) == len(Outcome)
    tones = [summary.tone for summary in summaries]
    assert tones == [Tone.BAD, Tone.GOOD, Tone.BAD, Tone.BAD, Tone.OPEN, Tone.BAD]
    pages = [*map(render_markdown, summaries), *(outline(render_page(summary)) for summary in summaries[:2])]
    pages.append(json.dumps(list_problems(PROBLEMS), indent=1))
    compare_golden(Path(__file__).parent / "pages" / "summaries.txt", "\n----\n".join(pages) + "\n")
