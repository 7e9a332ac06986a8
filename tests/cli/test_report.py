"""`report`: the HTML page on recorded drift checks and applies."""

from __future__ import annotations

import time

import pytest

from tests.harness.platform import Sandbox
from tests.harness.project import Output, Shell


def edit(sandbox: Sandbox) -> None:
    """Changes the office as a user of the dashboard does."""
    policy = sandbox.get("/ip_policies")["ip_policies"][0]["id"]
    sandbox.patch(f"/ip_policies/{policy}", {"description": "edited"})


def test_recorded_drift_and_applies_are_in_the_report(shell: Shell, sandbox: Sandbox) -> None:
    shell("apply", "-y")
    assert shell("drift", "--record", "--quiet").code == 0
    edit(sandbox)
    assert shell("drift", "--record").code == 2
    assert shell("report", "--out", "report.html") == Output(0, "", "Wrote report.html.\n")
    page = (shell.root / "report.html").read_text(encoding="utf-8")
    assert ": 1 resource differed, the longest since" in page
    assert "fields differ: <code>description</code>" in page
    assert 'aria-label="API calls by run"' in page
    assert "edited" not in page  # no value is recorded


def test_an_empty_report_names_the_command_that_records_drift(shell: Shell) -> None:
    result = shell("report")
    assert result.code == 0
    assert "No drift check was recorded; run <code>reconciler drift --record</code>." in result.out
    assert not (shell.root / "state").exists()


@pytest.mark.parametrize(("words", "is_shown"), [((), False), (("--days", "365"), True), (("--days", "99"), False)])
def test_a_report_covers_the_last_days(
    shell: Shell, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], is_shown: bool
) -> None:
    shell("apply", "-y")
    later = time.time() + 100 * 86_400
    monkeypatch.setattr("time.time", lambda: later)
    page = shell("report", *words).out
    assert ('aria-label="API calls by run"' in page) == is_shown
    assert f"{words[1] if words else 90} days" in page
