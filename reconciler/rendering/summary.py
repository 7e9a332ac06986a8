"""The result of an operation as a short document: a headline and tables, as Markdown.

`html.summary_page` renders the same as a page.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct

from reconciler.model.access_entry import AccessEntry
from reconciler.model.access_test import AccessResult, AccessStatus
from reconciler.model.event import Ended, Outcome
from reconciler.model.plan import Plan
from reconciler.model.problem import Problem
from reconciler.model.value import Json
from reconciler.rendering.inventory import is_place
from reconciler.rendering.plan.markdown import code
from reconciler.rendering.terminal_text import sanitize
from reconciler.rendering.text_tools import count


class Tone(StrEnum):
    """Whether a result needs a person."""

    GOOD = "ready"
    OPEN = "quiet"
    BAD = "waiting"


class Section(Struct, frozen=True):
    """A table. Each row has a cell for each column; the cells of the first column are names."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Summary(Struct, frozen=True):
    """
    title     what the result is of
    headline  how it ended, in a few words
    lines     one sentence each
    sections  those without rows are not shown
    """

    title: str
    headline: str
    tone: Tone
    lines: tuple[str, ...] = ()
    sections: tuple[Section, ...] = ()


def render_markdown(summary: Summary) -> str:
    lines = [f"## {_plain(summary.title)}", "", f"**{_plain(summary.headline)}**", ""]
    if summary.lines:
        lines += [*(f"- {_plain(line)}" for line in summary.lines), ""]
    for section in summary.sections:
        if section.rows:
            lines += [f"### {_plain(section.title)}", "", _row(section.columns), _row(["---"] * len(section.columns))]
            lines += [_row([code(sanitize(row[0])).replace("|", "\\|"), *map(_plain, row[1:])]) for row in section.rows]
            lines.append("")
    return "\n".join(lines)


def _row(cells: list[str] | tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"


def _plain(text: str) -> str:
    """Text without markup: nothing in it links, mentions, or ends the cell of a table."""
    escaped = "".join(f"\\{character}" if character in _MARKUP else character for character in sanitize(text))
    return " ".join(escaped.replace("@", "@\u200b").split())


_MARKUP = frozenset("\\`*_[]<>|#!&~")


# --- what is summarized -----------------------------------------------------------------------------------------------


def summarize_apply(
    plan: Plan,
    status: str,
    reasons: tuple[str, ...],
    outcomes: Sequence[Ended],
    problems: Iterable[Problem],
    *,
    is_good: bool,
) -> Summary:
    """An apply: how it ended and why, the changes, and the calls that did not succeed."""
    failed = [ended for ended in outcomes if ended.outcome not in (Outcome.DONE, Outcome.ALREADY)]
    succeeded = f"{len(outcomes) - len(failed)} of {count(len(plan.calls), 'call')} succeeded."
    changes = tuple((str(change.address), str(change.action), change.reason.text) for change in plan.changes)
    calls = tuple((ended.call.id, str(ended.outcome), ended.why) for ended in failed)
    return Summary(
        f"Apply to stack {plan.stack}",
        status,
        Tone.GOOD if is_good else Tone.BAD,
        (succeeded, *reasons),
        (
            Section("Changes", ("resource", "action", "reason"), changes),
            Section("Calls that did not succeed", ("call", "outcome", "why"), calls),
            _tabulate_problems(problems),
        ),
    )


def summarize_validation(
    environment: str | None,
    problems: Sequence[Problem],
    tests: Iterable[AccessResult],
    *,
    resources: int,
    files: int,
) -> Summary:
    """The problems of the manifests in one environment, or without one."""
    errors = sum(problem.is_error for problem in problems)
    failed = tuple((test.test, test.decides) for test in tests if test.status is AccessStatus.FAILED)
    return Summary(
        f"Validation of environment {environment}" if environment else "Validation",
        f"invalid: {count(errors, 'error')}" if errors else "valid",
        Tone.BAD if errors else Tone.GOOD,
        (f"{count(resources, 'resource')} in {count(files, 'file')}.",),
        (_tabulate_problems(problems), Section("Failed access tests", ("test", "who gets through"), failed)),
    )


def summarize_access(entries: Sequence[AccessEntry], incomplete: Mapping[str, str]) -> Summary:
    """Every way into an account."""
    public = sum(entry.public and is_place(entry) for entry in entries)
    rows = tuple((entry.entry_point, entry.admits, ", ".join(entry.resources)) for entry in entries)
    return Summary(
        "Access",
        f"{count(len(entries), 'entry point')}, {public} public",
        Tone.BAD if incomplete else Tone.OPEN,
        tuple(f"The list of {name} is incomplete: {why}" for name, why in incomplete.items()),
        (Section("Entry points", ("entry point", "who gets through", "decided by"), rows),),
    )


def _tabulate_problems(problems: Iterable[Problem]) -> Section:
    rows = (
        (
            str(problem.position or problem.subject),
            str(problem.severity),
            f"{problem.subject}: {problem.text}" if problem.subject and problem.position else problem.text,
            problem.remedy,
        )
        for problem in problems
    )
    return Section("Problems", ("where", "severity", "problem", "what to do"), tuple(rows))


def list_problems(problems: Iterable[Problem]) -> list[Json]:
    """Problems for JSON, in the names of `--log-format json`."""
    return [
        {
            "severity": str(problem.severity),
            "code": problem.code,
            "subject": problem.subject,
            "problem": problem.text,
            "remedy": problem.remedy,
            **(
                {"file": problem.position.file, "line": problem.position.line, "column": problem.position.column}
                if problem.position is not None
                else {}
            ),
        }
        for problem in problems
    ]
