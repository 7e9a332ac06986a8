"""A plan with thousands of problems: every output has their number, and the JSON has all of them."""

from __future__ import annotations

import json

from msgspec.structs import replace

from reconciler.model.plan import Base, Plan
from reconciler.model.problem import Position, Problem, Severity
from reconciler.rendering.plan import ci_annotations, findings, markdown, text
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
    assert lines[-1] == "… and 3,000 more findings; --format sarif lists all of them"
    assert all(line.startswith("::error ") for line in lines[:200])


def test_a_comment_is_truncated_and_the_json_is_complete() -> None:
    assert len(markdown.render_markdown(PLAN)) < markdown.LIMIT
    assert len(json.loads(plan_json.write_plan(PLAN))["problems"]) == 3200


def test_ten_problems_of_the_base_are_listed() -> None:
    base = Base("main", "c0ffee", problems=WRONG)
    output = text.render_text(Plan("prod", base=base), width=100)
    assert (output.count("wrong "), "… and 2,990 more problems" in output) == (10, True)
