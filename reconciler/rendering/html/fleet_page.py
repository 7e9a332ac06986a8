"""A run over a fleet as one HTML file: status, reasons, waves, shapes with the diff of one member each, and members.

The members are compact JSON in the page, of which a script draws the rows that are looked at. Collects the values for
the template `fleet.html`; contains no markup.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup
from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.model.fleet import RunState, RunVerb, TaskState
from reconciler.model.health import State
from reconciler.rendering.fleet import phrases
from reconciler.rendering.fleet.health import IllRow
from reconciler.rendering.fleet.openings import OpeningRow
from reconciler.rendering.fleet.reasons import ReasonRow
from reconciler.rendering.fleet.rollup import RollUp, ShapeRow
from reconciler.rendering.html import environment
from reconciler.rendering.html.plan_page import Status, build_cards
from reconciler.rendering.plan import phrases as plan_phrases
from reconciler.rendering.plan.outline import build_outline
from reconciler.rendering.plan.phrases import RiskPhrase
from reconciler.rendering.run_context import Link, RunContext
from reconciler.rendering.terminal_text import cut, sanitize
from reconciler.rendering.text_tools import count

_ROOM = 400_000  # characters of all diffs; shapes without room for theirs are listed without it
_SHAPES = 300
_REASONS = 50
_OPENINGS = 100
_ILL = 100
_FEW = 5  # shapes that a row lists
_CHOICES = 50  # values of a label that can be chosen; others can be searched
_LONGEST = 400  # cells of a reason
_TEXTS = 250_000  # characters of distinct reasons, and of distinct labels; those without room are left out
_PARTS = 400_000  # characters of names and numbers in the reasons of all members; further ones are shown as `…`
_LEFT_OUT = "`reconciler fleet report --format json` has the reason"


class ShapeCard(Struct, frozen=True):
    """A shape. `body`: the changes of its exemplar; empty: there is no room for them."""

    number: int
    row: ShapeRow
    project: str
    members: str
    exemplar: str
    changes: str
    risks: list[RiskPhrase]
    needs: list[str]
    approval: str
    flag: str
    command: str
    body: Markup


class ReasonCard(Struct, frozen=True):
    """A reason. `number`: its index in the data of members."""

    number: int
    state: TaskState
    text: str
    members: int
    first: tuple[str, ...]


def render_page(rollup: RollUp, *, context: RunContext | None = None) -> str:
    """The whole file. `context`: where the page was created; adds links."""
    data = _Data()
    shapes = _shape_cards(rollup)
    for shape in shapes:
        data.shapes.find(shape.row.digest)
    reasons = [_reason_card(row, data) for row in rollup.reasons[:_REASONS]]
    ill = rollup.health.rows if rollup.health is not None else ()
    more_shapes = len(rollup.shapes) - len(shapes)
    more_reasons = len(rollup.reasons) - len(reasons)
    return environment.render_template(
        "fleet.html",
        scripts=("page.js", "fleet.js"),
        title=f"{phrases.TITLES[rollup.run.verb]} {sanitize(rollup.fleet)}",
        what=phrases.TITLES[rollup.run.verb],
        fleet=sanitize(rollup.fleet),
        about=_about(rollup, context or RunContext()),
        status=_status(rollup),
        states=rollup.states,
        commands=[(purpose, sanitize(command)) for purpose, command in phrases.next_commands(rollup)],
        access=[_describe_entry_point(rollup, row) for row in rollup.access[:_OPENINGS]],
        more_access=max(len(rollup.access) - _OPENINGS, 0),
        ill=[_describe_ill(rollup, row) for row in ill[:_ILL]],
        more_ill=max(len(ill) - _ILL, 0),
        numbers={shape.row.digest: shape.number for shape in shapes},
        reasons=reasons,
        more_reasons=f"{count(more_reasons, 'more reason')}, of members below" if more_reasons else "",
        waves=[_wave(wave) for wave in rollup.waves] if phrases.has_waves(rollup) else [],
        shapes=shapes,
        more_shapes=f"{count(more_shapes, 'more shape')}, of members" if more_shapes else "",
        member_count=rollup.members,
        data=environment.encode_data(data.collect(rollup)),
    )


def _about(rollup: RollUp, context: RunContext) -> list[tuple[str, Link]]:
    links = {"Commit": context.commit}
    about = [(label, links.get(label) or Link(text)) for label, text in phrases.describe_run(rollup)]
    about += [(label, link) for label, link in (("Review", context.review), ("Pipeline", context.run)) if link]
    return about


def _status(rollup: RollUp) -> Status:
    states, run = rollup.states, rollup.run
    level, text = "ready", {RunVerb.PLAN: "Planned", RunVerb.APPLY: "Applied", RunVerb.DRIFT: "No drift"}[run.verb]
    if run.state is RunState.FAILED:
        level, text = "blocked", "Stopped"
    elif failed := sum(states.get(state, 0) for state in ("failed", "blocked", "stale")):
        level, text = "blocked", f"{count(failed, 'member')} did not succeed"
    elif rollup.wait is not None:
        level, text = "waiting", "Waiting"
    elif rollup.ended_members < rollup.members:
        level, text = "waiting", "Not finished"
    elif run.verb is RunVerb.DRIFT and rollup.drifted:
        level, text = "waiting", "Drift"
    elif rollup.health is not None and rollup.health.is_degraded:
        level, text = "blocked", "Degraded"
    elif run.verb is RunVerb.PLAN and rollup.shapes_to_approve:
        level, text = "waiting", "Approval required"
    elif run.verb is not RunVerb.DRIFT and not rollup.changed:
        level, text = "quiet", "No changes"
    lines = [phrases.describe_members(rollup), phrases.describe_changes(rollup), phrases.describe_health(rollup)]
    lines += [phrases.describe_silent(rollup), phrases.describe_end(rollup)]
    return Status(level, text, [line for line in lines if line])


def _describe_entry_point(rollup: RollUp, row: OpeningRow) -> dict[str, Any]:
    *details, _ = phrases.explain_opening(rollup, row)
    return {
        "level": "severe" if plan_phrases.is_grave(row.access) else "mild",
        "members": phrases.list_first(row.first, row.members),
        "number": row.members,
        "text": phrases.describe_opening(rollup, row),
        "details": details,
        "exemplar": sanitize(row.exemplar),
        "shapes": row.shapes[:_FEW],
        "more": max(len(row.shapes) - _FEW, 0),
    }


def _describe_ill(rollup: RollUp, ill: IllRow) -> dict[str, Any]:
    has_projects = len({task.project for task in rollup.tasks}) > 1
    return {
        "level": "severe" if ill.row.health.state is State.DEGRADED else "mild",
        "members": phrases.list_first(ill.first, ill.members),
        "number": ill.members,
        "project": sanitize(ill.project) if has_projects else "",
        "text": phrases.describe_ill(ill),
        "details": list(phrases.explain_ill(ill)),
    }


def _wave(wave: Any) -> dict[str, Any]:
    return {
        "name": sanitize(wave.name),
        "state": str(wave.state),
        "members": wave.members,
        "states": wave.states,
        "approve": wave.approve,
        "approved": wave.approved,
    }


def _reason_card(row: ReasonRow, data: _Data) -> ReasonCard:
    first = tuple(map(sanitize, row.first))
    return ReasonCard(
        data.reasons.find(cut(row.pattern, _LONGEST)), row.state, cut(row.text, _LONGEST), row.members, first
    )


def _shape_cards(rollup: RollUp) -> list[ShapeCard]:
    has_projects = len({task.project for task in rollup.tasks}) > 1
    cards, room, start = [], _ROOM, 0
    for number, row in enumerate(rollup.shapes[:_SHAPES]):
        body, length = _render_body(rollup, row, start, room)
        room -= len(body)
        start += length
        cards.append(
            ShapeCard(
                number=number,
                row=row,
                project=sanitize(row.project) if has_projects else "",
                members=phrases.list_first(row.first, row.members),
                exemplar=sanitize(row.exemplar),
                changes=phrases.describe_actions(row.actions),
                risks=[risk for risk, _ in phrases.weigh_risks(row)],
                needs=[sanitize(need.why) for need in row.needs],
                approval=phrases.describe_approval(row),
                flag=phrases.approval_flag(row),
                command=f"reconciler fleet report {sanitize(rollup.run.id)} --shape {row.digest}",
                body=body,
            )
        )
    return cards


def _render_body(rollup: RollUp, row: ShapeRow, start: int, room: int) -> tuple[Markup, int]:
    """The changes of a shape's exemplar, and their number; empty if there is no room."""
    plan = rollup.plans.get(row.digest)
    if plan is None or room <= 0:
        return Markup(), 0
    flavour = phrases.flavour(rollup)
    rows = build_outline(plan)
    cards = build_cards(rows, flavour, start)
    additions = build_cards(replace(rows, changes=rows.additions), flavour, start + len(cards))
    is_plan = flavour is plan_phrases.Flavour.PLAN
    body = environment.render_fragment("shape.html", cards=cards, additions=additions, is_plan=is_plan)
    return (body, len(cards) + len(additions)) if len(body) <= room else (Markup(), 0)


# --- the data of the members ------------------------------------------------------------------------------------------


class _Texts:
    """Distinct texts, each with its index."""

    def __init__(self, room: int = _TEXTS, left_out: str = "") -> None:
        self._numbers: dict[str, int] = {}
        self._room = room  # characters
        self._left_out = left_out

    def find(self, text: str) -> int:
        """The index of a text, or of the text for those that were left out; -1 for an empty one."""
        if text and text not in self._numbers:
            if self._room < len(text):
                text = self._left_out
            self._room -= len(text)
        return self._numbers.setdefault(text, len(self._numbers)) if text else -1

    @property
    def texts(self) -> list[str]:
        return list(self._numbers)


class _Data(Struct, frozen=True):
    """Columns of distinct texts, and a short row for each task."""

    states: list[str] = field(default_factory=lambda: [str(state) for state in TaskState])
    shapes: _Texts = field(default_factory=lambda: _Texts(left_out="…"))
    waves: _Texts = field(default_factory=_Texts)
    projects: _Texts = field(default_factory=_Texts)
    reasons: _Texts = field(default_factory=lambda: _Texts(left_out=_LEFT_OUT))
    actions: _Texts = field(default_factory=_Texts)

    def collect(self, rollup: RollUp) -> dict[str, Any]:
        """The data. A row is: member, project, wave, state, shape, reason, its varying parts, labels, changes, seconds,
        requests; texts by index."""
        labels: dict[tuple[tuple[str, str], ...], int] = {}
        rows, parts_room, labels_room = [], _PARTS, _TEXTS
        for task, pattern in zip(rollup.tasks, rollup.patterns, strict=True):
            own = tuple((sanitize(name), sanitize(value)) for name, value in rollup.labels.get(task.member, {}).items())
            if (
                own not in labels
                and (labels_room := labels_room - sum(len(f"{name}{text}") + 8 for name, text in own)) < 0
            ):
                own = ()
            parts_room -= sum(len(part) + 3 for part in pattern.parts)
            rows.append(
                [
                    sanitize(task.member),
                    self.projects.find(sanitize(task.project)),
                    self.waves.find(sanitize(task.wave)),
                    self.states.index(str(task.state)),
                    self.shapes.find(task.shape),
                    self.reasons.find(cut(pattern.text, _LONGEST)),
                    list(pattern.parts) if pattern.parts and parts_room >= 0 else 0,
                    labels.setdefault(own, len(labels)),
                    self.actions.find(phrases.describe_actions(task.actions)),
                    round(task.seconds, 1),
                    task.requests,
                ]
            )
        return {
            "states": self.states,
            "shapes": self.shapes.texts,
            "waves": self.waves.texts,
            "projects": self.projects.texts,
            "reasons": self.reasons.texts,
            "actions": self.actions.texts,
            "labels": [list(map(list, own)) for own in labels],
            "choices": _choices(list(labels)),
            "rows": rows,
        }


def _choices(labels: Sequence[tuple[tuple[str, str], ...]]) -> list[str]:
    """The labels that can be chosen, as `region=eu`."""
    values: Mapping[str, set[str]] = {}
    for own in labels:
        for name, value in own:
            values = {**values, name: {*values.get(name, ()), value}}
    chosen = {name: found for name, found in values.items() if len(found) <= _CHOICES}
    return [f"{name}={value}" for name in sorted(chosen) for value in sorted(chosen[name])]
