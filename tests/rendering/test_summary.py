"""A short document: the same facts as Markdown and as a page, in which no foreign text is markup."""

from __future__ import annotations

import re

from hypothesis import given, settings

from reconciler.rendering.html.summary_page import render_page
from reconciler.rendering.summary import Section, Summary, Tone, render_markdown
from tests.harness.tiers import examples
from tests.rendering.hostile import texts


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
