"""Known drift: `drift --ignore`, and `drift.ignore` of the project file."""

from __future__ import annotations

import pytest

from tests.harness.platform import Sandbox
from tests.harness.project import Project, policies

ENTRY = """
drift:
  ignore:
    - match: IPPolicy/a.description
      until: {until}
      reason: somebody is trying something
"""


@pytest.fixture
def drifted(on_sandbox: Project, sandbox: Sandbox) -> Project:
    on_sandbox.declare(*policies("a", "b"))
    assert on_sandbox("apply", "-y", "-q").code == 0
    (found,) = (policy for policy in sandbox.get("/ip_policies")["ip_policies"] if policy["description"] == "a")
    sandbox.patch(f"/ip_policies/{found['id']}", {"description": "by hand"})
    return on_sandbox


def entry(project: Project, until: str) -> None:
    file = project.root / "reconciler.yaml"
    settings = file.read_text(encoding="utf-8").partition("\ndrift:")[0]
    file.write_text(settings + ENTRY.format(until=until), encoding="utf-8")


def test_drift_is_ignored_for_one_run(drifted: Project) -> None:
    assert drifted("drift").code == 2
    result = drifted("drift", "--ignore", "IPPolicy/*.description", "--format", "text", "--format", "markdown=drift.md")
    assert (result.code, result.out, result.err) == (
        0,
        "No drift. 2 resources match the manifests.\n1 known difference ignored.\n",
        "",
    )
    assert "1 known difference ignored." in (drifted.root / "drift.md").read_text(encoding="utf-8")
    result = drifted("drift", "--ignore", "IPPolicy/b")
    assert (result.code, "known drift 'IPPolicy/b' matches no difference; correct --ignore" in result.out) == (2, True)


def test_drift_is_ignored_until_a_date(drifted: Project) -> None:
    entry(drifted, "2999-12-31")
    result = drifted("drift")
    assert (result.code, "1 known difference ignored, until 2999-12-31.\n" in result.out) == (0, True)
    assert "by hand" in drifted("plan").out
    entry(drifted, "2020-01-31")
    result = drifted("drift")
    assert result.code == 2
    assert "warning: known drift 'IPPolicy/a.description' expired on 2020-01-31" in result.out
    assert "reconciler.yaml:" in result.out


@pytest.mark.parametrize(
    ("until", "reason", "match", "message"),
    [
        ("soon", "x", "IPPolicy/a", "'soon' is not a date; write it like 2026-12-31"),
        ("2026-W01-1", "x", "IPPolicy/a", "is not a date"),
        ("2026-02-30", "x", "IPPolicy/a", "is not a date"),
        ("2026-12-31", "' '", "IPPolicy/a", "is empty; say why the difference is expected"),
        ("2026-12-31", "x", "IPPolicy", "'IPPolicy' is not a pattern; write Kind/name"),
    ],
)
def test_an_entry_without_a_date_reason_or_valid_match_is_an_error(
    on_sandbox: Project, until: str, reason: str, match: str, message: str
) -> None:
    entry(on_sandbox, until)
    file = on_sandbox.root / "reconciler.yaml"
    text = file.read_text(encoding="utf-8").replace("somebody is trying something", reason)
    file.write_text(text.replace("match: IPPolicy/a.description", f"match: {match}"), encoding="utf-8")
    result = on_sandbox("drift")
    assert (result.code, message in result.err) == (1, True), result.err


def test_an_entry_needs_match_until_and_reason(on_sandbox: Project) -> None:
    file = on_sandbox.root / "reconciler.yaml"
    file.write_text(file.read_text(encoding="utf-8") + "\ndrift: {ignore: [{match: IPPolicy/a}]}\n", encoding="utf-8")
    result = on_sandbox("drift")
    assert result.code == 1
    assert result.err.count("required") + result.err.count("is missing") >= 2
