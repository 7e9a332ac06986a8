"""Several plans as one Markdown comment: a table of the environments, then each change once with its environments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from reconciler.model.plan import Plan
from reconciler.rendering.plan import phrases
from reconciler.rendering.plan.markdown import (
    LIMIT,
    Cover,
    Page,
    code,
    cut,
    describe_unmanaged,
    list_entry_lines,
    quote_label,
    quote_name,
)
from reconciler.rendering.plan.outline import Outline
from reconciler.rendering.plan.overview import EnvironmentRow, Overview, Status, build_overview
from reconciler.rendering.plan.phrases import Flavour
from reconciler.rendering.text_tools import count

_MOST_ROWS = 50  # of the table
_SIGNS = {
    Status.NOT_PLANNED: "❔ ",
    Status.BLOCKED: "❌ ",
    Status.WAITING: "✋ ",
    Status.READY: "✅ ",
    Status.QUIET: "",
}


def render_overview(plans: Sequence[Plan], unplanned: Sequence[str] = (), *, limit: int = LIMIT) -> str:
    """The plans together, in at most `limit` characters. `unplanned`: environments that could not be planned."""
    return _OverviewPage(build_overview(plans, unplanned), list_entry_lines(*plans)).text(limit)


class _OverviewPage(Page):
    """The page of several plans: what is said of one plan at the top is a row of the table."""

    def __init__(self, overview: Overview, entries: Sequence[str]) -> None:
        super().__init__(overview.rows, Cover(), Flavour.PLAN, entries)
        self.is_attributed = overview.rows.is_attributed
        self.overview = overview

    def head(self) -> Iterator[str]:
        yield f"## {self.title()}"
        yield ""
        yield from self.table()
        yield from self.rule_changes()
        yield from self.base()
        yield from self.scope()
        if self.rows.base is not None and self.rows.base.withdrawn:
            yield from self.withdrawn(self.rows.base.withdrawn)
        yield from self.problems()
        yield from self.approvals()
        yield from self.access()
        yield from self.risks()
        yield from self.additions([row for row in self.rows.additions if self.is_of_branch(row)])

    def title(self) -> str:
        """`Plan for 2 of 3 environments`"""
        rows = self.overview.environments
        planned = sum(row.rows is not None for row in rows)
        if not planned:
            return "No environment could be planned"
        of = "" if planned == len(rows) else f"{planned} of "
        return f"Plan for {of}{count(len(rows), 'environment')}"

    def table(self) -> Iterator[str]:
        """A row for each environment, the first ones of very many."""
        rows = self.overview.environments
        yield "| environment | status | changes | access | approvals | drift |"
        yield "| --- | --- | --- | --- | --- | --- |"
        for row in rows[:_MOST_ROWS]:
            yield _show_environment(row)
        if len(rows) > _MOST_ROWS:
            yield f"| … {count(len(rows) - _MOST_ROWS, 'more environment')} | | | | | |"
        yield ""

    def base(self) -> Iterator[str]:
        """Why the changes of some environments are not attributed."""
        for base, environments in self.overview.bases:
            for line in self.describe_base(base):
                yield line + quote_label(environments) if line.startswith("⚠️") else line

    def scope(self) -> Iterator[str]:
        """What the plans have in common, and what only some of them are limited to."""
        rows, base = self.rows, self.rows.base
        facts = [
            f"Compared with {code(cut(base.ref, 100))} ({code(base.commit)})" if base is not None else "",
            f"Account: {code(cut(rows.account, 200))}" if rows.account else "",
            f"Commit: {code(rows.commit[:12])}" if rows.commit else "",
            *self.distinct(lambda rows: cut(" ".join(rows.targets), 300), "Targets"),
            *self.distinct(lambda rows: cut(" ".join(rows.excludes), 300), "Excluded"),
        ]
        if lines := [fact for fact in facts if fact]:
            yield " · ".join(lines)
            yield ""
        environments = self.overview.environments
        if rows.changes and all(row.rows is not None for row in environments):
            number = "both" if len(environments) == 2 else f"all {len(environments)}"
            yield f"Lines that name no environment apply to {number}."
            yield ""

    def distinct(self, text_of: Callable[[Outline], str], title: str = "") -> Iterator[str]:
        """Each different text of the plans with its environments; texts with a title are code."""
        found: dict[str, list[str]] = {}
        for row in self.overview.environments:
            if row.rows is not None and (text := text_of(row.rows)):
                found.setdefault(text, []).append(row.name)
        for text, names in found.items():
            of = quote_label(names) if len(names) < len(self.overview.environments) else ""
            yield (f"{title}: {code(text)}" if title else text) + of

    def totals(self) -> Iterator[str]:
        if self.rows.forecast.calls:
            yield f"{phrases.forecast(self.rows.forecast, 0)}."
            yield ""
        unmanaged = list(self.distinct(describe_unmanaged))
        yield from self.first((f"- {text}" for text in unmanaged), len(unmanaged), "note") if unmanaged else ()


def _show_environment(row: EnvironmentRow) -> str:
    cells = (row.changes, row.access, row.approvals, row.drift)
    state = row.state if row.status in (Status.QUIET, Status.READY) else f"**{row.state}**"
    state += "; see the log" * (row.status is Status.NOT_PLANNED)
    return f"| {quote_name(row.name).replace('|', chr(92) + '|')} | {_SIGNS[row.status]}{state} | {' | '.join(cells)} |"
