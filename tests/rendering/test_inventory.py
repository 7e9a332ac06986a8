"""The inventory of access on a narrow terminal, and with text that a platform may have made up."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from reconciler.access.questions import Outcome
from reconciler.access.tracing import Explanation, Step
from reconciler.model.access_entry import AccessEntry
from reconciler.rendering import terminal_text
from reconciler.rendering.inventory import (
    render_explanation,
    render_explanation_json,
    render_json,
    render_markdown,
    render_text,
    summarize,
)
from reconciler.rendering.summary import render_markdown as render_summary
from reconciler.rendering.summary import summarize_access
from tests.harness.golden import compare_golden
from tests.rendering.plans import list_ways_in

HOSTILE = "a\x1b[31m|`<b>\u202e::error::##[error]\n"


def entry(host: str, resource: str, admits: str = "everyone") -> AccessEntry:
    url = f"https://{host}"
    return AccessEntry(url, "https", host, 443, "", True, "public", admits, True, ("not read: IPPolicy",), (resource,))


@pytest.mark.parametrize("width", [60, 80, 100])
def test_lines_fit_the_terminal(width: int) -> None:
    entries = [entry("shop.example.com", f"CloudEndpoint/{'x' * 50}", " · ".join(["203.0.113.0/24"] * 9))]
    lines = render_text(entries, width).splitlines()
    assert len(lines) > 6
    assert max(map(terminal_text.width, lines)) <= width


def test_hostile_text_has_no_effect() -> None:
    entries = [entry(HOSTILE, HOSTILE, HOSTILE)]
    for text in (render_text(entries, 100), render_json(entries, {})):
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert "##[error]" not in text
    rows = [line for line in render_markdown(entries).splitlines() if line.startswith("| `")]
    assert len(rows) == 1
    assert len(re.findall(r"(?<!\\)\|", rows[0])) == 4
    assert "\x1b" not in rows[0]


PUBLIC = entry("shop.example.com", "CloudEndpoint/shop")
CERTAIN = replace(PUBLIC, unknown=())
INTERNAL = replace(CERTAIN, binding="internal", public=False)


@pytest.mark.parametrize(
    ("entries", "text"),
    [
        ([], "0 ways in, 0 of them public."),
        ([CERTAIN], "1 way in, 1 of them public."),
        ([CERTAIN, INTERNAL], "2 ways in, 1 of them public."),
        ([PUBLIC, CERTAIN], "2 ways in, 2 of them public, 1 in part unknown."),
        ([CERTAIN, replace(PUBLIC, binding="account")], "1 way in, 1 of them public."),
        ([CERTAIN, replace(PUBLIC, binding="credential")], "1 way in, 1 of them public."),
    ],
)
def test_only_places_that_clients_connect_to_are_counted(entries: list[AccessEntry], text: str) -> None:
    assert summarize(entries) == text
    assert render_text(entries, 100).endswith(f"{text}\n")
    assert text in render_markdown(entries)


def test_ways_in_have_the_expected_lines() -> None:
    entries = list_ways_in(6)
    summaries = [render_summary(summarize_access(entries, names)) for names in ({}, {"TLSEdge": "refused"})]
    texts = (render_text(entries, 50), render_text(entries, 100), render_markdown(entries), *summaries)
    compare_golden(Path(__file__).parent / "pages" / "inventory.txt", "\n----\n".join(texts))


def test_every_sort_of_way_in_is_listed_with_its_labels() -> None:
    entries = [
        replace(CERTAIN, origin="unmanaged", public=False, resources=()),
        replace(PUBLIC, stack="web", origin="ephemeral", unknown=("one fact", "another|fact")),
        replace(INTERNAL, entry_point="https://shop.internal (internal)"),
        replace(INTERNAL, entry_point="http://a.b (kubernetes)", binding="kubernetes", public=True),
        replace(CERTAIN, entry_point="the API", binding="account", resources=("IPRestriction/api", "IPPolicy/office")),
        replace(CERTAIN, entry_point="what BotUser/ci may open", binding="credential", public=False),
    ]
    texts = (render_text(entries, 40), render_markdown(entries), render_json(entries, {"TLSEdge": "refused ##[x]"}))
    compare_golden(Path(__file__).parent / "pages" / "ways-in.txt", "\n----\n".join(texts))


STEPS = (
    Step("HTTPSEdge serves shop.example.com", ("HTTPSEdge/shop", "HTTPSEdgeRoute/shop-admin")),
    Step(f"the source is one of {', '.join(['203.0.113.0/24'] * 5)}", ("IPPolicy/office",), True),
    Step("the caller is signed in at google ##[x]", (), False),
)


@pytest.mark.parametrize("outcome", Outcome)
def test_the_steps_of_a_request_are_explained(outcome: Outcome) -> None:
    depends = (f"the expression {'x' * 60}", "a fact") if outcome is Outcome.UNKNOWN else ()
    explanation = Explanation(outcome, STEPS[:-1] if outcome is Outcome.PASS else STEPS, depends)
    positions = {"HTTPSEdge/shop": "manifests/shop.yaml:1:1", "IPPolicy/office": ""}
    texts = (
        *(render_explanation(explanation, positions, width) for width in (20, 50, 100)),
        render_explanation_json(explanation),
    )
    compare_golden(Path(__file__).parent / "pages" / f"request-{outcome}.txt", "----\n".join(texts))
