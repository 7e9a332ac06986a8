"""Findings as annotations of GitHub (workflow commands) and GitLab (a code quality report).

The runner executes workflow commands, so all text in them is escaped as its documentation asks.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from reconciler.rendering.plan.findings import Finding, Level, limit_findings
from reconciler.rendering.plan.sarif import fingerprint
from reconciler.rendering.text_tools import count_omitted

_MOST_COMMANDS = 200  # most severe first; GitHub does not show more, but prints each to the log
_MOST_ENTRIES = 5000  # of a code quality report
_LONGEST = 1000  # characters: GitHub cuts a message at 4 KB
_COMMANDS = {Level.ERROR: "error", Level.WARNING: "warning", Level.NOTE: "notice"}
_SEVERITIES = {Level.ERROR: "critical", Level.WARNING: "major", Level.NOTE: "info"}


def render_github(findings: Sequence[Finding]) -> str:
    """Workflow commands, one per line. GitHub shows the first ten of each level and step."""
    more = len(findings) - _MOST_COMMANDS
    text = "".join(f"{_command(finding)}\n" for finding in findings[:_MOST_COMMANDS])
    return text + (f"{count_omitted(more, 'finding')}\n" if more > 0 else "")


def render_gitlab(findings: Sequence[Finding], *, fallback: str) -> str:
    """A code quality report. `fallback`: the file for subjects that no manifest mentions."""
    report = [
        {
            "description": _cut(f"{finding.subject}: {finding.message}" if finding.subject else finding.message),
            "check_name": finding.id,
            "fingerprint": fingerprint(finding),
            "severity": _SEVERITIES[finding.level],
            "location": {"path": finding.file or fallback, "lines": {"begin": finding.line}},
        }
        for finding in limit_findings(findings, _MOST_ENTRIES)
    ]
    return json.dumps(report, indent=2).replace("##", "#\\u0023") + "\n"


def _command(finding: Finding) -> str:
    place = {"file": finding.file, "line": finding.line, "col": finding.column} if finding.file else {}
    code = f" [{finding.code}]" if finding.code else ""
    properties = {**place, "title": f"{finding.subject or finding.rule.text}{code}"}
    parameters = ",".join(f"{name}={_property(str(value))}" for name, value in properties.items())
    return f"::{_COMMANDS[finding.level]} {parameters}::{_message(_cut(finding.message))}"


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
