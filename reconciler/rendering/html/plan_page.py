"""A plan as one HTML file: totals, risks, dependency graph, searchable changes, and calls.

Collects the values for the template `plan.html`; contains no markup.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from reconciler.model.change import Action
from reconciler.model.plan import Plan
from reconciler.rendering.html import diagram, environment
from reconciler.rendering.plan import phrases
from reconciler.rendering.plan.outline import CallRow, ChangeRow, DiffLine, build_outline
from reconciler.rendering.plan.phrases import Flavour, Resources

_SIGNS = {"+": "added", "-": "removed", "!": "changed", "…": "gap"}


@dataclass(frozen=True, slots=True)
class Part:
    """A field of a change."""

    path: str
    notes: list[str]
    position: str
    lines: list[tuple[str, DiffLine]]  # with their CSS class


@dataclass(frozen=True, slots=True)
class Card:
    """A change."""

    number: int
    row: ChangeRow
    reason: str
    risks: list[str]
    deliveries: tuple[str, ...]
    parts: list[Part]
    calls: list[CallRow]

    @property
    def hue(self) -> str:
        return hue(self.row.action)

    @property
    def search_text(self) -> str:
        """The text that the search of the page matches, in lower case."""
        words = [self.row.address, self.row.action, self.row.id, self.row.former, self.row.position, self.reason]
        words += [*self.risks, *self.deliveries]
        for part in self.parts:
            words += [part.path, *part.notes, *(line.text for _, line in part.lines)]
        words += [call.path for call in self.calls]
        return " ".join(words).lower()


def render_page(
    plan: Plan,
    *,
    digest: str = "",
    budget: int = 0,
    resources: Resources | None = None,
    flavour: Flavour = Flavour.PLAN,
) -> str:
    """The whole file. `budget`: requests per minute, 0 for none. `resources`: how many are declared."""
    rows = build_outline(plan)
    calls: Mapping[str, list[CallRow]] = defaultdict(list)
    if flavour is Flavour.PLAN:
        for call in rows.calls:
            calls[call.address].append(call)
    cards = [_card(number, row, calls, flavour) for number, row in enumerate(rows.changes)]
    return environment.render_template(
        "plan.html",
        title=f"{'Drift' if flavour is Flavour.DRIFT else 'Plan'} for stack {rows.stack}",
        rows=rows,
        about=[
            (label, text)
            for label, text in (
                ("account", rows.account),
                ("commit", rows.commit[:12]),
                ("targets", " ".join(rows.targets)),
                ("excluded", " ".join(rows.excludes)),
                ("digest", digest),
            )
            if text
        ],
        is_plan=flavour is Flavour.PLAN,
        verdict=phrases.verdict(rows, flavour, resources),
        forecast=phrases.forecast(rows.forecast, budget) if rows.changes else "",
        unmanaged=phrases.describe_unmanaged(rows),
        ignored=phrases.describe_ignored(rows),
        additions=[_card(number, row, {}, flavour) for number, row in enumerate(rows.additions)],
        additions_title=phrases.ADDITIONS.removesuffix(":"),
        choices=phrases.CHOICES,
        counts=[(str(action), hue(action), rows.counts[action]) for action in Action if rows.counts.get(action)],
        cards=cards,
        risky=[cards[number] for number, row in phrases.sort_by_severity(rows.changes) if phrases.risks(row)],
        numbers={card.row.address: card.number for card in reversed(cards)},
        diagram=diagram.draw_diagram(plan),
        box_size=(diagram.WIDTH, diagram.HEIGHT),
    )


def hue(action: Action) -> str:
    """The CSS class of an action; adopt, forget and move share one."""
    return str(action) if action in phrases.USUAL else "other"


def _card(number: int, row: ChangeRow, calls: Mapping[str, list[CallRow]], flavour: Flavour) -> Card:
    return Card(
        number=number,
        row=row,
        reason=phrases.reason(row, flavour),
        risks=phrases.risks(row),
        deliveries=phrases.deliveries(row, flavour),
        parts=list(_parts(row, flavour)),
        calls=calls.get(row.address, []),
    )


def _parts(row: ChangeRow, flavour: Flavour) -> Iterator[Part]:
    for field in row.fields:
        lines = [(_SIGNS.get(line.sign, "context"), line) for line in phrases.diff(field, flavour)]
        yield Part(field.path, phrases.notes(row, field, flavour), field.position, lines)
