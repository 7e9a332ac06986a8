"""A plan as one HTML file: totals, what it risks, the dependency picture, each change to search, and the calls.

Gathers what the template shows; the template says how. Nothing here is markup.
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
    lines: list[tuple[str, DiffLine]]  # with the name of their colour


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
    def searched(self) -> str:
        """Everything somebody may look for, in small letters."""
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
    """The whole file. `budget`: requests a minute, 0 for none. `resources`: how many are declared."""
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
            (word, said)
            for word, said in (
                ("on", rows.account),
                ("commit", rows.commit[:12]),
                ("only", " ".join(rows.targets)),
                ("without", " ".join(rows.excludes)),
                ("digest", digest),
            )
            if said
        ],
        is_plan=flavour is Flavour.PLAN,
        verdict=phrases.verdict(rows, flavour, resources),
        forecast=phrases.forecast(rows.forecast, budget) if rows.changes else "",
        unmanaged=phrases.unmanaged(rows),
        ignored=phrases.ignored(rows),
        additions=[_card(number, row, {}, flavour) for number, row in enumerate(rows.additions)],
        additions_title=phrases.ADDITIONS.removesuffix(":"),
        choices=phrases.CHOICES,
        counts=[(str(action), hue(action), rows.counts[action]) for action in Action if rows.counts.get(action)],
        cards=cards,
        grave=[cards[number] for number, row in phrases.gravest(rows.changes) if row.risks or row.protected],
        numbers={card.row.address: card.number for card in reversed(cards)},
        picture=diagram.draw_diagram(plan),
        box_size=(diagram.WIDTH, diagram.HEIGHT),
    )


def hue(action: Action) -> str:
    """The name of its colour; the actions that only change whose an object is share one."""
    return str(action) if action in phrases.USUAL else "other"


def _card(number: int, row: ChangeRow, calls: Mapping[str, list[CallRow]], flavour: Flavour) -> Card:
    return Card(
        number=number,
        row=row,
        reason=phrases.reason(row, flavour) + (f", {phrases.ORDERS[row.order]}" if row.order else ""),
        risks=[*map(str, row.risks), *(["protected"] if row.protected else [])],
        deliveries=phrases.deliveries(row, flavour),
        parts=list(_parts(row, flavour)),
        calls=calls.get(row.address, []),
    )


def _parts(row: ChangeRow, flavour: Flavour) -> Iterator[Part]:
    for field in row.fields:
        lines = [(_SIGNS.get(line.sign, "kept"), line) for line in phrases.diff(field, flavour)]
        yield Part(field.path, phrases.notes(row, field, flavour), field.position, lines)
