"""A plan with thousands of problems: every output has their number, and the JSON has all of them."""

from __future__ import annotations

import json

from msgspec.structs import replace

from reconciler.model.plan import Base, Plan
from reconciler.model.problem import Position, Problem, Severity
from reconciler.rendering.html import plan_page
from reconciler.rendering.plan import ci_annotations, findings, markdown, sarif, text
from reconciler.rendering.wire import plan_json

WRONG = tuple(
    Problem(f"wrong {number}", "correct it", f"TLSEdge/a{number}", Position("a.yaml", number + 1, 1), code="wrong-type")
    for number in range(3000)
)
NOTES = tuple(replace(problem, severity=Severity.WARNING) for problem in WRONG[:200])
PLAN = Plan("prod", problems=(*NOTES, *WRONG))
"""Warnings first, in the order in which they are found."""


def test_the_text_shows_errors_first_and_counts_the_rest() -> None:
    output = text.render_text(PLAN, width=100)
    assert output.count("wrong ") == 100
    assert "… and 3,100 more problems; --format json lists all of them" in output
    assert "warning" not in output.split("more problems")[0]


def test_workflow_commands_are_limited_and_counted() -> None:
    lines = ci_annotations.render_github(findings.list_findings(PLAN)).splitlines()
    assert len(lines) == 201
    assert lines[-1] == "… and 3,000 more findings; --format json lists all of them"
    assert all(line.startswith("::error ") for line in lines[:200])


def test_a_comment_is_truncated_and_the_json_is_complete() -> None:
    assert len(markdown.render_markdown(PLAN)) < markdown.LIMIT
    assert len(json.loads(plan_json.write_plan(PLAN))["problems"]) == 3200


def test_ten_problems_of_the_base_are_listed() -> None:
    base = Base("main", "c0ffee", problems=WRONG)
    output = text.render_text(Plan("prod", base=base), width=100)
    assert (output.count("wrong "), "… and 2,990 more problems" in output) == (10, True)


def test_code_scanning_and_code_quality_reports_are_limited_and_counted() -> None:
    again = (replace(problem, text=f"{problem.text} again") for problem in WRONG[:2200])
    found = findings.list_findings(Plan("prod", problems=(*WRONG, *again)))
    results = json.loads(sarif.render_sarif(found, version="", fallback="a.yaml"))["runs"][0]["results"]
    report = json.loads(ci_annotations.render_gitlab(found, fallback="a.yaml"))
    assert (len(found), len(results), len(report)) == (5200, 5001, 5001)
    last = "… and 200 more findings; --format json lists all of them"
    assert (results[-1]["message"]["text"], results[-1]["level"], report[-1]["description"]) == (last, "note", last)


def test_a_page_is_limited_and_counted() -> None:
    page = plan_page.render_page(PLAN)
    assert page.count("correct it") == 500
    assert "… and 2,700 more problems; --format json lists all of them" in page
