"""A run over a fleet as Markdown for a pull request: totals, failures, waves, and each shape with its diff collapsed.

All text from Git or the platform is in code spans, as in `rendering.plan.markdown`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from urllib.parse import quote

from reconciler.model.health import State
from reconciler.rendering.fleet import phrases
from reconciler.rendering.fleet.reasons import ReasonRow
from reconciler.rendering.fleet.rollup import RollUp, ShapeRow
from reconciler.rendering.fleet.waits import WaveRow, WaveState
from reconciler.rendering.plan import markdown
from reconciler.rendering.plan import phrases as plan_phrases
from reconciler.rendering.plan.markdown import code
from reconciler.rendering.terminal_text import ELLIPSIS, cut, sanitize
from reconciler.rendering.text_tools import count

LIMIT = markdown.LIMIT
_SHAPES = 30
_REASONS = 20
_OPENINGS = 20
_ILL = 20
_SIGNS = {State.DEGRADED: "❌ ", State.UNKNOWN: "❔ "}
_LONGEST = 300  # characters of a reason
_LONGEST_NAME = 200  # cells of an entry point, or of who gets through
_LEAST = 500  # characters of a shape's diff; with less room it is left out


def render_markdown(rollup: RollUp, *, limit: int = LIMIT) -> str:
    """The page, in at most `limit` characters."""
    page = _Page(rollup)
    head, tail = _join(page.head()), _join(page.tail())
    shapes = page.shapes(limit - len(head) - len(tail))
    return (head + shapes + tail).rstrip("\n") + "\n"


def marker(rollup: RollUp) -> str:
    """The hidden line that identifies the comment of a fleet and command."""
    name = quote(sanitize(rollup.fleet), safe="").replace("-", "%2D")
    return f"<!-- reconciler fleet={name} verb={rollup.run.verb} -->"


class _Page:
    def __init__(self, rollup: RollUp) -> None:
        self.rollup = rollup
        self.has_projects = len({task.project for task in rollup.tasks}) > 1

    def head(self) -> Iterator[str]:
        rollup = self.rollup
        yield marker(rollup)
        yield f"## {phrases.TITLES[rollup.run.verb]} {code(sanitize(rollup.fleet))}"
        yield ""
        totals = phrases.describe_members(rollup), phrases.describe_changes(rollup), phrases.describe_health(rollup)
        yield f"**{' '.join(filter(None, totals))}**"
        yield ""
        yield " · ".join(f"{label}: {code(text)}" for label, text in phrases.describe_run(rollup))
        yield ""
        if silent := phrases.describe_silent(rollup):
            yield f"⚠️ {code(cut(silent, _LONGEST))}"
            yield ""
        if rollup.run.reason and (end := phrases.describe_end(rollup)):
            yield f"❌ {code(cut(end, _LONGEST))}"
            yield ""
        elif rollup.wait is not None:
            yield f"⏸️ Waiting: {code(cut(sanitize(rollup.wait.text), _LONGEST))}"
            yield ""
        yield from self.reasons()
        yield from self.waves()
        yield from self.openings()
        yield from self.ill()
        yield from self.table()

    def reasons(self) -> Iterator[str]:
        rows = self.rollup.reasons
        if not rows:
            return
        yield "### Failures and omissions"
        yield ""
        yield from (_reason(row) for row in rows[:_REASONS])
        if len(rows) > _REASONS:
            yield f"- {ELLIPSIS} {count(len(rows) - _REASONS, 'more reason')}"
        yield ""

    def waves(self) -> Iterator[str]:
        rows = self.rollup.waves
        if not phrases.has_waves(self.rollup):
            return
        yield "| wave | state | members | |"
        yield "| --- | --- | ---: | --- |"
        yield from (_wave(row) for row in rows)
        yield ""

    def openings(self) -> Iterator[str]:
        rows = self.rollup.access
        if not rows:
            return
        yield f"### {plan_phrases.ACCESS}"
        yield ""
        for row in rows[:_OPENINGS]:
            mark = "⚠️ " if plan_phrases.is_grave(row.access) else ""
            members = f"**{count(row.members, 'member')}** ({_members(row.first, row.members)})"
            yield f"- {mark}{members}: {phrases.describe_opening(self.rollup, row, _short_code)}"
            yield from (f"  - {text}" for text in phrases.explain_opening(self.rollup, row, _short_code))
        if len(rows) > _OPENINGS:
            yield f"- {ELLIPSIS} {count(len(rows) - _OPENINGS, 'more row')}"
        yield ""

    def ill(self) -> Iterator[str]:
        rows = self.rollup.health.rows if self.rollup.health is not None else ()
        if not rows:
            return
        yield "### Health"
        yield ""
        for ill in rows[:_ILL]:
            project = f", project {code(cut(sanitize(ill.project), 60))}" if self.has_projects else ""
            members = f"**{count(ill.members, 'member')}**{project} ({_members(ill.first, ill.members)})"
            yield f"- {_SIGNS.get(ill.row.health.state, '')}{members}: {code(cut(phrases.describe_ill(ill), _LONGEST))}"
            yield from (f"  - {code(detail)}" for detail in phrases.explain_ill(ill))
        if len(rows) > _ILL:
            yield f"- {ELLIPSIS} {count(len(rows) - _ILL, 'more row')}"
        yield ""

    def table(self) -> Iterator[str]:
        rows = self.rollup.shapes
        if not rows:
            return
        project = "project | " * self.has_projects
        yield f"| shape | {project}members | changes | risks | approval |"
        yield "| --- | " + "--- | " * self.has_projects + "---: | --- | --- | --- |"
        yield from (self.row(row) for row in rows[:_SHAPES])
        if len(rows) > _SHAPES:
            yield f"| {ELLIPSIS} {count(len(rows) - _SHAPES, 'more shape')} |" + " |" * (4 + self.has_projects)
        yield ""

    def row(self, row: ShapeRow) -> str:
        cells = [
            code(row.digest),
            *([code(cut(sanitize(row.project), 60)).replace("|", "\\|")] if self.has_projects else []),
            str(row.members),
            phrases.describe_actions(row.actions),
            ", ".join(f"**{risk.text}**" if risk.is_severe else risk.text for risk, _ in phrases.weigh_risks(row)),
            _approval(row),
        ]
        return f"| {' | '.join(cells)} |"

    def shapes(self, room: int) -> str:
        """Each shape with the diff of its exemplar, as far as there is room."""
        parts: list[str] = []
        rows = [row for row in self.rollup.shapes[:_SHAPES] if row.digest in self.rollup.plans]
        for number, row in enumerate(rows):
            head, foot = _join(self.summary(row)), "\n</details>\n\n"
            left = (room - sum(map(len, parts))) // (len(rows) - number) if number else room // 2
            if len(rows) == 1:
                left = room
            share = left - len(head) - len(foot)
            if share < _LEAST:
                left_out = count(len(rows) - number, "more shape" if number else "shape")
                parts.append(f"Diffs of {left_out} omitted.\n\n")
                break
            plan = self.rollup.plans[row.digest]
            body = markdown.render_changes(plan, flavour=phrases.flavour(self.rollup), limit=share)
            parts.append(head + body.rstrip("\n") + "\n" + foot)
        return "".join(parts)

    def summary(self, row: ShapeRow) -> Iterator[str]:
        members = count(row.members, "member")
        yield "<details>"
        yield f"<summary>Shape <code>{row.digest}</code>: {members}</summary>"
        yield ""
        yield f"Values of {code(cut(sanitize(row.exemplar), 100))}. Members: {_members(row.first, row.members)}"
        yield ""
        yield from (f"- ✋ {code(cut(sanitize(need.why), _LONGEST))}" for need in row.needs)
        if row.needs:
            yield ""

    def tail(self) -> Iterator[str]:
        for purpose, command in phrases.next_commands(self.rollup):
            yield f"{purpose}: {code(sanitize(command))}"
            yield ""


def _approval(row: ShapeRow) -> str:
    text = phrases.describe_approval(row)
    if text == "approved":
        return "✅ approved"
    return f"✋ **required:** {code(phrases.approval_flag(row))}" if text else ""


def _reason(row: ReasonRow) -> str:
    members = count(row.members, "member")
    text = code(cut(row.text, _LONGEST)) if row.text else "no reason was recorded"
    return f"- **{row.state}**, {members} ({_members(row.first, row.members)}): {text}"


def _short_code(text: str) -> str:
    return code(cut(text, _LONGEST_NAME))


def _members(first: Iterable[str], total: int) -> str:
    names = [code(cut(sanitize(name), 100)) for name in first]
    return ", ".join(names) + (f", {ELLIPSIS}" if total > len(names) else "")


def _wave(row: WaveRow) -> str:
    name = code(cut(sanitize(row.name), 60)).replace("|", "\\|")
    approval = (
        "approved" if row.approved else "needs approval" if row.approve and row.state is WaveState.WAITING else ""
    )
    detail = ", ".join(filter(None, (phrases.describe_states(row.states), approval)))
    return f"| {name} | {row.state} | {row.members} | {detail} |"


def _join(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
