"""Fleet runs with a row of every sort, in every format as a whole; and each limit of a list at its edge."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.model import exit_codes
from reconciler.model.fleet import RunState
from reconciler.rendering import terminal_text
from reconciler.rendering.fleet import junit, markdown, report_json, text
from reconciler.rendering.fleet.reasons import Pattern
from reconciler.rendering.fleet.rollup import Need, RollUp
from reconciler.rendering.fleet.waits import Wait, WaitKind
from reconciler.rendering.html import fleet_page
from tests.rendering.busy_fleets import APPLYING, DRIFTED, EMPTY, PLANNED, RUNS, SHARED, build
from tests.rendering.html_outline import outline
from tests.rendering.plans import CONTEXT
from tests.rendering.test_text import compare


def report_of(seen: RollUp) -> str:
    """The report without its plans, with a row of a list on each line."""
    written = json.loads(report_json.render_json(seen))
    del written["plans"]
    lines = []
    for name, value in written.items():
        if isinstance(value, list) and value:
            lines += [f"{name}:", *(f"  {json.dumps(row, ensure_ascii=False)}" for row in value)]
        else:
            lines.append(f"{name}: {json.dumps(value, ensure_ascii=False)}")
    return "".join(f"{line}\n" for line in lines)


def show_colors(seen: RollUp) -> str:
    """The text of a terminal, and that of `fleet status --health` below it; a color is `«1;31»`."""
    page = text.render_text(seen, color=True) + "\n=====\n\n" + text.render_status(seen, color=True, health=True)
    return re.sub("\x1b\\[([0-9;]*)m", lambda found: "»" if found[1] == "0" else f"«{found[1]}:", page)


FORMATS: dict[str, Callable[[RollUp], str]] = {
    "txt": show_colors,
    "md": markdown.render_markdown,
    "xml": junit.render_junit,
    "report": report_of,
    "page": lambda seen: outline(fleet_page.render_page(seen)),
}


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("form", FORMATS)
def test_a_run_with_every_sort_of_row_is_rendered_as_reviewed(name: str, form: str) -> None:
    compare(f"busy-fleet/{name}.{form}", FORMATS[form](build(name)))


@pytest.mark.parametrize("name", RUNS)
def test_no_line_is_longer_than_the_terminal(name: str) -> None:
    for width in range(40, 100):
        page = text.render_text(RUNS[name], width=width) + text.render_status(RUNS[name], width=width, health=True)
        assert max(map(terminal_text.width, page.splitlines())) <= width


@pytest.mark.parametrize("limit", [3000, 4000, 5000, 9000])
def test_the_diffs_of_shapes_share_the_room_of_a_comment(limit: int) -> None:
    page = markdown.render_markdown(SHARED, limit=limit)
    assert len(page) <= limit
    compare(f"busy-fleet/shared-{limit}.md", page)


def test_a_comment_counts_the_diffs_without_room() -> None:
    pages = [(limit, markdown.render_markdown(SHARED, limit=limit)) for limit in range(1_000, 6_000, 250)]
    lines = [
        f"{limit}: {len(page)} {''.join(line for line in page.splitlines() if line.startswith('Diffs of'))}"
        for limit, page in pages
    ]
    compare("busy-fleet/limits.txt", "".join(f"{line}\n" for line in lines))


def test_a_run_that_judges_no_health_is_not_known_to_be_healthy() -> None:
    assert EMPTY.health_exit_code == exit_codes.CHANGES


# --- limits

SHAPE, REASON = PLANNED.shapes[0], PLANNED.reasons[0]
OPENING, ILL = PLANNED.access[0], DRIFTED.health.rows[0] if DRIFTED.health else None
LIMITS: dict[Callable[[RollUp], str], tuple[str, int, int, int, int]] = {
    text.render_text: ("; --format json has all", 20, 20, 20, 20),
    markdown.render_markdown: ("", 30, 20, 20, 20),
    fleet_page.render_page: (", of members|; --format json lists", 300, 50, 100, 100),
}
"""What follows the number of rows that are left out; how many shapes, reasons, openings and ill objects are shown."""


def with_rows(shapes: int, reasons: int, openings: int, ills: int) -> RollUp:
    """A run with this many rows of each sort."""
    health = DRIFTED.health
    assert health is not None
    assert ILL is not None
    rows = tuple(replace(SHAPE, digest=f"{place:012x}") for place in range(shapes))
    return replace(
        PLANNED,
        shapes=rows,
        reasons=tuple(replace(REASON, text=f"reason-{place}.", pattern=f"{place}") for place in range(reasons)),
        access=(replace(OPENING, exemplar="opening", shapes=(f"{0:012x}",)),) * openings,
        health=replace(health, rows=(replace(ILL, exemplar="ill-one"),) * ills),
        plans={},
    )


@pytest.mark.parametrize("render", LIMITS, ids=lambda render: render.__name__)
@pytest.mark.parametrize("more", [0, 1, 2])
def test_a_list_is_cut_at_its_limit_and_what_is_left_out_is_counted(render: Callable[[RollUp], str], more: int) -> None:
    after, shapes, reasons, openings, ills = LIMITS[render]
    page = render(with_rows(shapes + more, reasons + more, openings + more, ills + more))
    assert f"{shapes - 1:012x}" in page
    assert f"{shapes:012x}" not in page
    assert f"reason-{reasons - 1}." in page
    assert f"reason-{reasons}." not in page
    assert (page.count("ill-one"), len(re.findall("values of.{1,20}opening", page))) == (ills, openings)
    found = sorted(re.findall(rf"(\d+ more (?:shape|reason|row)s?)(?:{after})", page))
    plural = "s" if more > 1 else ""
    assert found == sorted(f"{more} more {noun}{plural}" for noun in ("shape", "reason", "row", "row") if more)


DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)


def data_of(seen: RollUp) -> dict[str, Any]:
    (data,) = DATA.findall(fleet_page.render_page(seen))
    content: dict[str, Any] = json.loads(data)
    return content


def only(seen: RollUp, number: int, **fields: Any) -> RollUp:
    """The run with this many tasks, each with these fields."""
    tasks = tuple(replace(seen.tasks[0], member=f"m{place}", **fields) for place in range(number))
    return replace(seen, tasks=tasks, patterns=(Pattern(""),) * number, labels={})


@pytest.mark.parametrize("excess", [0, 1])
def test_texts_without_room_are_left_out_of_a_page(excess: int) -> None:
    seen = only(PLANNED, 2)
    parts = (Pattern("…", ("x" * (399_997 + excess),)), Pattern(""))
    assert data_of(replace(seen, patterns=parts))["rows"][0][6] == (0 if excess else [parts[0].parts[0]])
    labels = {"m0": {"n": "x" * (249_991 + excess)}, "m1": {}}
    assert len(data_of(replace(seen, labels=labels))["labels"]) == (1 if excess else 2)
    first, second = seen.tasks
    tasks = (replace(first, project="x" * (249_999 + excess)), replace(second, project="y"))
    assert [row[1] for row in data_of(replace(seen, tasks=tasks))["rows"]] == [0, -1 if excess else 1]


def test_a_text_takes_room_once() -> None:
    seen = only(PLANNED, 4, project="x" * 100_000)
    assert [row[1] for row in data_of(seen)["rows"]] == [0] * 4
    assert [row[1] for row in data_of(only(PLANNED, 2, project=""))["rows"]] == [-1] * 2


@pytest.mark.parametrize("number", [50, 51])
def test_a_label_with_many_values_can_only_be_searched(number: int) -> None:
    seen = replace(only(PLANNED, number), labels={f"m{place}": {"n": f"{place}"} for place in range(number)})
    assert len(data_of(seen)["choices"]) == (50 if number == 50 else 0)


def test_a_long_reason_is_cut() -> None:
    """At the number of cells of each format."""
    reasons = [replace(REASON, text="x" * number, pattern="y" * number) for number in (300, 301, 400, 401)]
    seen = replace(PLANNED, reasons=tuple(reasons), shapes=(), access=(), plans={})
    page, comment = fleet_page.render_page(seen), markdown.render_markdown(seen)
    assert sorted(map(len, re.findall("x+…?", comment))) == [300] * 4
    assert sorted(map(len, re.findall("x{50,}…?", page))) == [300, 301, 400, 400]
    assert sorted(map(len, re.findall("y{50,}", page))) == [300, 301, 399, 400]
    assert (comment.count("x…"), page.count("x…")) == (3, 1)


# --- the verdict of a page

OPEN = replace(PLANNED.run, state=RunState.OPEN, ended=None)


@pytest.mark.parametrize(
    ("seen", "level", "words"),
    [
        (replace(PLANNED, run=replace(OPEN, state=RunState.FAILED)), "blocked", "Stopped"),
        (PLANNED, "blocked", "2 members did not succeed"),
        (replace(PLANNED, states={"stale": 1}), "blocked", "1 member did not succeed"),
        (replace(PLANNED, states={}, wait=Wait(WaitKind.PAUSE, "it waits")), "waiting", "Waiting"),
        (replace(PLANNED, states={"waiting": 7}), "waiting", "Not finished"),
        (replace(PLANNED, states={"succeeded": 7}), "waiting", "Approval required"),
        (replace(PLANNED, states={"succeeded": 7}, shapes=()), "ready", "Planned"),
        (replace(PLANNED, states={"succeeded": 7}, shapes=(), changed=0), "quiet", "No changes"),
        (replace(APPLYING, states={"succeeded": 9}), "ready", "Applied"),
        (replace(APPLYING, states={"succeeded": 9}, changed=0), "quiet", "No changes"),
        (replace(DRIFTED, states={"succeeded": 8}), "waiting", "Drift"),
        (replace(DRIFTED, states={"succeeded": 8}, drifted=0), "blocked", "Degraded"),
        (replace(DRIFTED, states={"succeeded": 8}, drifted=0, health=None), "ready", "No drift"),
        (replace(PLANNED, states={"succeeded": 7}, drifted=1, shapes=()), "ready", "Planned"),
    ],
)
def test_a_page_has_the_verdict_that_matters_most(seen: RollUp, level: str, words: str) -> None:
    (found,) = re.findall(r'<p class="verdict (\w+)"><span .*?></span>(.*?)</p>', fleet_page.render_page(seen))
    assert found == (level, words)


def test_an_empty_reason_has_no_color() -> None:
    page = text.render_text(replace(PLANNED, shapes=(replace(SHAPE, needs=(Need("--allow x", ""),)),)), color=True)
    assert "\x1b[2m\x1b[0m" not in page
    assert page.count("Approval required: pass") == 1


@pytest.mark.parametrize("run", [PLANNED, DRIFTED])
def test_the_diff_of_a_shape_is_left_out_if_it_has_no_room(run: RollUp) -> None:
    row = next(row for row in run.shapes if row.digest in run.plans)
    body, number = fleet_page._render_body(run, row, 3, 400_000)
    assert number == len(run.plans[row.digest].changes) + len(run.plans[row.digest].additions)
    assert fleet_page._render_body(run, row, 3, len(body)) == (body, number)
    for room in (len(body) - 1, 1, 0, -1):
        assert fleet_page._render_body(run, row, 3, room) == ("", 0)
    assert fleet_page._render_body(replace(run, plans={}), row, 3, 400_000) == ("", 0)


def test_no_two_elements_of_a_page_have_one_id() -> None:
    """Each shape has the changes of its own exemplar, numbered on."""
    row = next(row for row in PLANNED.shapes if row.digest in PLANNED.plans)
    digests = [f"{place:012x}" for place in range(3)]
    plans = dict.fromkeys(digests, PLANNED.plans[row.digest])
    page = fleet_page.render_page(
        replace(PLANNED, shapes=tuple(replace(row, digest=digest) for digest in digests), plans=plans)
    )
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids)) > 20


def test_a_page_lists_several_waves_and_one_that_needs_approval() -> None:
    wave = next(wave for wave in APPLYING.waves if not wave.approve)
    lists = {"several": (wave, wave), "one": (wave,), "none": (), "approved": (replace(wave, approve=True),)}
    found = [
        name for name, waves in lists.items() if "h-waves" in fleet_page.render_page(replace(APPLYING, waves=waves))
    ]
    assert found == ["several", "approved"]


def test_a_page_links_to_the_review_and_the_run() -> None:
    page = fleet_page.render_page(PLANNED, context=CONTEXT)
    assert CONTEXT.review is not None
    assert all(f'href="{link.url}"' in page for link in (CONTEXT.review, CONTEXT.run) if link is not None)


@pytest.mark.parametrize(("number", "listed", "more"), [(0, 0, 0), (4, 4, 0), (5, 5, 0), (6, 5, 1), (13, 5, 8)])
def test_a_row_lists_five_shapes(number: int, listed: int, more: int) -> None:
    row = replace(OPENING, shapes=tuple(f"{place:012x}" for place in range(number)))
    found = fleet_page._describe_entry_point(PLANNED, row)
    assert (len(found["shapes"]), found["more"]) == (listed, more)
