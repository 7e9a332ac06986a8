"""`show` renders plan files: one in each format, several together on one page."""

from __future__ import annotations

from typing import NoReturn

import pytest

from reconciler.rendering.wire import plan_json
from tests.harness.project import Shell
from tests.rendering.shop import PRODUCTION, STAGING


@pytest.fixture
def planned(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """A project with the plan files of two environments."""
    monkeypatch.delenv("RECONCILER_PLAN_KEY", raising=False)
    shell.write("staging.json", plan_json.write_plan(STAGING))
    shell.write("production.json", plan_json.write_plan(PRODUCTION))
    return shell


def test_the_plans_of_all_environments_are_one_page(planned: Shell) -> None:
    result = planned("show", "staging.json", "production.json", "--format", "html=plan.html")
    assert result.code == 0, result.err
    page = (planned.root / "plan.html").read_text(encoding="utf-8")
    assert '<h1><span class="faint">Plan for</span> 2 environments</h1>' in page
    assert page.count('<b class="address"><span class="kind">HTTPSEdgeRoute/</span>shop-admin</b>') == 1


def test_the_plans_of_all_environments_are_one_text_for_a_comment(planned: Shell) -> None:
    result = planned("show", "staging.json", "production.json", "--format", "markdown")
    assert result.code == 0, result.err
    assert "| `production` |" in result.out
    assert result.out.count("<summary><code>~</code> <code>HTTPSEdgeRoute/shop-admin</code>") == 1


def test_an_environment_that_could_not_be_planned_is_part_of_the_page_and_the_text(planned: Shell) -> None:
    formats = ("--format", "html=plan.html", "--format", "markdown")
    text = planned("show", "staging.json", "--failed", "production", *formats)
    assert text.code == 0, text.err
    assert "| `production` | ❔ **not planned**; see the log | unknown |" in text.out
    page = (planned.root / "plan.html").read_text(encoding="utf-8")
    assert "<code>production</code> could not be planned." in page
    alone = planned("show", "--failed", "staging", "--failed", "production", *formats)
    assert alone.code == 0, alone.err
    assert alone.out.startswith("## No environment could be planned\n")
    assert planned("show").err == "error: missing argument FILE, or option --failed ENV\n"


@pytest.mark.parametrize("form", ["text", "json", "sarif"])
def test_a_format_of_one_plan_refuses_several(planned: Shell, form: str) -> None:
    result = planned("show", "staging.json", "production.json", "--format", form)
    assert (result.code, result.err) == (
        64,
        f"error: {form} shows one plan file; pass --format markdown or html for several\n",
    )


def test_no_format_replaces_one_of_the_plan_files(planned: Shell) -> None:
    result = planned("show", "staging.json", "production.json", "--format", "html=production.json")
    assert result.code == 64
    assert plan_json.read_plan((planned.root / "production.json").read_text(encoding="utf-8"), no_secret) == PRODUCTION


def no_secret(source: str, digest: str) -> NoReturn:
    raise AssertionError(source, digest)
