"""A run over a fleet as text for a terminal. Lines fit the width."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reconciler.model.change import Action
from reconciler.model.fleet import RunVerb, TaskState
from reconciler.model.health import State
from reconciler.rendering import terminal_text
from reconciler.rendering.fleet import phrases
from reconciler.rendering.fleet.reasons import ReasonRow
from reconciler.rendering.fleet.rollup import RollUp, ShapeRow
from reconciler.rendering.fleet.waits import WaveRow, WaveState
from reconciler.rendering.health_text import SIGNS
from reconciler.rendering.plan import phrases as plan_phrases
from reconciler.rendering.plan.outline import ChangeRow, build_outline
from reconciler.rendering.plan.text import NARROWEST, Paint
from reconciler.rendering.terminal_text import sanitize
from reconciler.rendering.text_tools import count

_SHAPES = 20  # shown; JSON has all
_REASONS = 20
_OPENINGS = 20
_ILL = 20
_CHANGES = 12  # of one exemplar
_FIELDS = 3  # of one change
_STATES = {
    TaskState.FAILED: Paint.ALARM,
    TaskState.BLOCKED: Paint.ALARM,
    TaskState.STALE: Paint.CHANGED,
    TaskState.SKIPPED: Paint.FAINT,
}
_HEALTH = {State.DEGRADED: Paint.ALARM, State.UNKNOWN: Paint.CHANGED}
_WAVES = {WaveState.FAILED: Paint.ALARM, WaveState.SUCCEEDED: Paint.ADDED, WaveState.RUNNING: Paint.CHANGED}


def render_text(rollup: RollUp, *, width: int = 80, color: bool = False, with_commands: bool = True) -> str:
    """The whole text. `with_commands`: what a person can do next."""
    page = _Page(rollup, max(width, NARROWEST), color, with_commands)
    sections = [list(section) for section in page.sections()]
    return "\n".join("".join(f"{line}\n" for line in section) for section in sections if section)


def render_status(rollup: RollUp, *, width: int = 80, color: bool = False, health: bool = False) -> str:
    """The text without shapes: how far the run is, and what it waits for. `health`: also what is not healthy."""
    page = _Page(rollup, max(width, NARROWEST), color, with_commands=True)
    sections = [list(section) for section in page.status_sections(health=health)]
    return "\n".join("".join(f"{line}\n" for line in section) for section in sections if section)


class _Page:
    def __init__(self, rollup: RollUp, width: int, color: bool, with_commands: bool) -> None:
        self.rollup = rollup
        self.width = width
        self.color = color
        self.with_commands = with_commands
        self.flavour = phrases.flavour(rollup)

    def sections(self) -> Iterator[Iterator[str]]:
        head, *rest = self.status_sections()
        yield head
        yield self.openings()
        yield self.ill()
        yield from map(self.shape, self.rollup.shapes[:_SHAPES])
        yield self.more(len(self.rollup.shapes) - _SHAPES, "shape")
        yield from rest

    def status_sections(self, *, health: bool = False) -> Iterator[Iterator[str]]:
        yield self.head()
        if health:
            yield self.ill()
        yield from map(self.reason, self.rollup.reasons[:_REASONS])
        yield self.more(len(self.rollup.reasons) - _REASONS, "reason")
        yield self.waves()
        yield self.summary()
        yield self.commands()

    def paint(self, paint: Paint | None, line: str) -> str:
        return f"\x1b[{paint}m{line}\x1b[0m" if self.color and line and paint else line

    def block(self, line: str, indent: int, paint: Paint | None = None, first: str = "") -> Iterator[str]:
        """A paragraph, wrapped and indented; `first` stands in the indent of its first line."""
        lead = f"{first:<{indent}}" if first else " " * indent
        for number, part in enumerate(terminal_text.wrap(line, max(self.width - indent, 16))):
            yield (lead if number == 0 else " " * indent) + self.paint(paint, part)

    def more(self, number: int, noun: str) -> Iterator[str]:
        if number > 0:
            yield from self.block(f"{count(number, f'more {noun}')}; --format json has all", 0)

    # --- sections

    def head(self) -> Iterator[str]:
        run = self.rollup.run
        yield from self.block(f"{phrases.TITLES[run.verb]} {sanitize(self.rollup.fleet)}", 0, Paint.STRONG)
        facts = (f"{label.lower()} {text}" for label, text in phrases.describe_run(self.rollup))
        yield from self.block(", ".join(facts), 0, Paint.FAINT)

    def openings(self) -> Iterator[str]:
        rows = self.rollup.access
        if rows:
            yield self.paint(Paint.STRONG, f"{plan_phrases.ACCESS}:")
        for row in rows[:_OPENINGS]:
            paint = Paint.ALARM if plan_phrases.is_grave(row.access) else Paint.CHANGED
            members = f"{count(row.members, 'member')} ({phrases.list_first(row.first, row.members)})"
            yield from self.block(f"{members}: {phrases.describe_opening(self.rollup, row)}", 4, paint, "  ! ")
            for detail in phrases.explain_opening(self.rollup, row):
                yield from self.block(detail, 6)
        if len(rows) > _OPENINGS:
            yield from self.more(len(rows) - _OPENINGS, "row")

    def ill(self) -> Iterator[str]:
        rows = self.rollup.health.rows if self.rollup.health is not None else ()
        if rows:
            yield self.paint(Paint.STRONG, "Health:")
        for ill in rows[:_ILL]:
            state = ill.row.health.state
            project = f", project {sanitize(ill.project)}" if self.has_projects else ""
            members = f"{count(ill.members, 'member')}{project} ({phrases.list_first(ill.first, ill.members)})"
            line, paint = f"{members}: {phrases.describe_ill(ill)}", _HEALTH.get(state)
            yield from self.block(line, 4, paint, f"  {SIGNS[state]} ")
            for detail in phrases.explain_ill(ill):
                yield from self.block(detail, 6)
        if len(rows) > _ILL:
            yield from self.more(len(rows) - _ILL, "row")

    def shape(self, row: ShapeRow) -> Iterator[str]:
        members = count(row.members, "member")
        project = f", project {sanitize(row.project)}" if self.has_projects else ""
        first = phrases.list_first(row.first, row.members)
        yield from self.block(f"Shape {row.digest}: {members}{project} ({first})", 0, Paint.STRONG)
        plan = self.rollup.plans.get(row.digest)
        rows = build_outline(plan) if plan is not None else None
        if rows is not None and self.flavour is plan_phrases.Flavour.DRIFT:
            yield from self.block(plan_phrases.verdict(rows, self.flavour), 2)
        else:
            yield from self.block(f"{phrases.describe_actions(row.actions)} in each member.", 2)
        if self.rollup.run.verb is RunVerb.APPLY:
            yield from self.block(f"{phrases.describe_states(row.states)}.", 2)
        for risk, number in phrases.weigh_risks(row):
            paint = Paint.ALARM if risk.is_severe else Paint.CHANGED
            yield from self.block(f"{risk.text} ({count(number, 'change')})", 4, paint, "  ! ")
        yield from self.approvals(row)
        if rows is None or self.rollup.run.verb is RunVerb.APPLY:
            return  # people reviewed the plan
        yield from self.changes(rows.changes)
        if rows.additions:
            yield from self.block(plan_phrases.ADDITIONS, 4)
            yield from self.changes(rows.additions)
        yield from self.block(f"These are the values of {sanitize(row.exemplar)}. For the whole plan:", 2, Paint.FAINT)
        command = f"reconciler fleet report {self.rollup.run.id} --shape {row.digest}"
        yield from self.block(command, 4, Paint.FAINT)

    @property
    def has_projects(self) -> bool:
        return len({task.project for task in self.rollup.tasks}) > 1

    def approvals(self, row: ShapeRow) -> Iterator[str]:
        match phrases.describe_approval(row):
            case "approved":
                yield from self.block(f"Approved: {phrases.approval_flag(row)}", 2, Paint.FAINT)
            case "":
                return
            case _:
                yield from self.block(f"Approval required: pass {phrases.approval_flag(row)}", 2, Paint.ALARM)
        for need in row.needs:
            yield from self.block(sanitize(need.why), 4, Paint.FAINT)

    def changes(self, rows: Sequence[ChangeRow]) -> Iterator[str]:
        number = max(_CHANGES, sum(row.action is Action.DELETE for row in rows))
        for row in plan_phrases.sort_deletions_first(rows)[:number]:
            yield from self.change(row)
        if len(rows) > number:
            left = count(len(rows) - number, "more change")
            yield from self.block(f"{terminal_text.ELLIPSIS} {left}", 4)

    def change(self, row: ChangeRow) -> Iterator[str]:
        lead = f"    {row.symbol:>3} "
        room = self.width - terminal_text.width(lead)
        fields = [f"{field.path}: {plan_phrases.explain(row, field, self.flavour)}" for field in row.fields[:_FIELDS]]
        if len(row.fields) > _FIELDS:
            fields.append(f"{terminal_text.ELLIPSIS} {len(row.fields) - _FIELDS} more")
        yield lead + self.paint(Paint.STRONG, terminal_text.cut(row.address, room))
        for text in fields:
            yield " " * 10 + terminal_text.cut(text, self.width - 10)

    def reason(self, row: ReasonRow) -> Iterator[str]:
        members = count(row.members, "member")
        first = phrases.list_first(row.first, row.members)
        yield from self.block(f"{str(row.state).capitalize()}: {members} ({first})", 0, _STATES.get(row.state))
        yield from self.block(row.text or "no reason was recorded", 2)

    def waves(self) -> Iterator[str]:
        rows = self.rollup.waves
        if not phrases.has_waves(self.rollup):
            return
        yield self.paint(Paint.STRONG, "Waves:")
        names = [terminal_text.cut(sanitize(row.name), min(24, self.width // 3)) for row in rows]
        column = max(map(terminal_text.width, names))
        for row, name in zip(rows, names, strict=True):
            gap = " " * (column - terminal_text.width(name))
            line = f"{row.state:<9}  {_describe_wave(row)}"
            yield from self.block(line, column + 4, _WAVES.get(row.state), f"  {name}{gap}")

    def summary(self) -> Iterator[str]:
        yield from self.block(phrases.describe_members(self.rollup), 0, Paint.STRONG)
        if changes := phrases.describe_changes(self.rollup):
            yield from self.block(changes, 0, Paint.STRONG)
        if health := phrases.describe_health(self.rollup):
            yield from self.block(health, 0, Paint.STRONG)
        if silent := phrases.describe_silent(self.rollup):
            yield from self.block(f"{silent}.", 0, Paint.ALARM)
        if end := phrases.describe_end(self.rollup):
            yield from self.block(f"{end}.".replace("..", "."), 0, Paint.CHANGED)

    def commands(self) -> Iterator[str]:
        for purpose, command in phrases.next_commands(self.rollup) if self.with_commands else ():
            yield from self.block(f"{purpose}:", 0)
            yield from self.block(sanitize(command), 2)


def _describe_wave(row: WaveRow) -> str:
    """`795 members: 790 succeeded, 5 failed`"""
    is_waiting = row.state is WaveState.WAITING
    states = f": {phrases.describe_states(row.states)}" if not is_waiting or len(row.states) > 1 else ""
    approval = " (approved)" if row.approved else " (needs approval)" if row.approve and is_waiting else ""
    return f"{count(row.members, 'member')}{states}{approval}"
