"""A plan as one HTML file: what needs a person, searchable changes with diffs and their users, graph and calls.

Collects the values for the template `plan.html`; contains no markup.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from reconciler.model.access_entry import AccessEntry
from reconciler.model.change import Action, Risk
from reconciler.model.health import Health, HealthRow, State
from reconciler.model.plan import Plan, Request
from reconciler.model.problem import Problem, merge_repeated
from reconciler.rendering.html import diagram, environment
from reconciler.rendering.html.access_list import build_list
from reconciler.rendering.plan import access_drift, needs, overview, phrases
from reconciler.rendering.plan.approval_entries import render_entries
from reconciler.rendering.plan.excerpts import excerpts
from reconciler.rendering.plan.outline import (
    AccessRow,
    ApprovalRow,
    BaseRow,
    CallRow,
    ChangeRow,
    DiffLine,
    FieldRow,
    Outline,
    SharedAccessRow,
    Variant,
    build_outline,
)
from reconciler.rendering.plan.overview import EnvironmentRow
from reconciler.rendering.plan.phrases import Flavour, Resources, RiskPhrase
from reconciler.rendering.run_context import Link, RunContext
from reconciler.rendering.terminal_text import cut, sanitize
from reconciler.rendering.text_tools import count, count_omitted, format_time

_SIGNS = {"+": "added", "-": "removed", "!": "changed", "…": "gap"}
_LONGEST_SUMMARY = 160  # cells of the line that sums up a change
_LONGEST_SIDE = 60  # cells of a long value in it
_SUMMED_UP = 3  # fields

_NAMED = 10  # subjects of an approval
_MOST_PROBLEMS = 500  # of a page, errors first
_MOST_ACCESS = 500  # rows of a page, the gravest first


class Part(Struct, frozen=True):
    """A field of a change."""

    path: str
    notes: list[str]
    position: str
    lines: list[tuple[str, DiffLine]]  # with their CSS class


class CardVariant(Struct, frozen=True):
    """What a change has in some environments only."""

    environments: tuple[str, ...]
    risks: list[RiskPhrase]
    details: tuple[str, ...]
    parts: list[Part]


class Card(Struct, frozen=True):
    """A change."""

    number: int
    row: ChangeRow
    reason: str
    summary: str  # one line
    risks: list[RiskPhrase]
    details: tuple[str, ...]
    parts: list[Part]
    calls: list[CallRow]
    cause: str = ""
    health: str = ""  # of the object before the change; empty: healthy, or not known
    users: str = ""  # a sentence; empty: nothing uses it
    variants: list[CardVariant] = []

    @property
    def hue(self) -> str:
        return hue(self.row.action)

    @property
    def kind(self) -> str:
        return self.row.address.partition("/")[0]

    @property
    def name(self) -> str:
        return self.row.address.partition("/")[2]

    @property
    def file(self) -> str:
        return self.row.position.rpartition(":")[0] or "not in a file"

    @property
    def user_count(self) -> str:
        return phrases.count_users(self.row)

    @property
    def search_text(self) -> str:
        """The text that the search of the page matches, in lower case."""
        words = [self.row.address, self.row.action, self.row.id, self.row.former, self.row.position, self.reason]
        words += [*(risk.text for risk in self.risks), *self.details, self.cause, self.health, self.users]
        words += [*self.row.environments, *(text for variant in self.variants for text in variant.details)]
        for part in (*self.parts, *(part for variant in self.variants for part in variant.parts)):
            words += [part.path, *part.notes, *(line.text for _, line in part.lines)]
        words += [call.path for call in self.calls]
        return " ".join(words).lower()


class Group(Struct, frozen=True):
    """Changes with one cause; without a base there is one group, with no title."""

    title: str
    cards: list[Card]


class AccessItem(Struct, frozen=True):
    """The change of one entry point, or of several in the same way."""

    row: AccessRow
    level: str  # the CSS class of its badge
    verdict: str
    cause: str
    details: list[str]

    @property
    def environments(self) -> tuple[str, ...]:
        return self.row.environments if isinstance(self.row, SharedAccessRow) else ()


class Status(Struct, frozen=True):
    """`level` is the CSS class: blocked, waiting, ready or quiet."""

    level: str
    text: str
    details: list[str]


def render_page(
    plan: Plan,
    *,
    digest: str = "",
    budget: int = 0,
    resources: Resources | None = None,
    flavour: Flavour = Flavour.PLAN,
    context: RunContext | None = None,
    entries: Sequence[AccessEntry] | None = None,
    health: Sequence[HealthRow] = (),
) -> str:
    """The whole file.

    budget     requests per minute, 0 for none
    resources  how many resources are declared
    context    where the plan was created; adds environment, author and links
    entries    the ways into the account as the plan leaves it, or as drift finds it; None: they are not known
    health     of the objects of the stack, as far as the lists of the plan show it
    """
    rows = build_outline(plan)
    context = context or RunContext()
    listed = build_list(entries, plan.access, rows, flavour) if entries else None
    what = "Drift" if flavour is Flavour.DRIFT else "Plan"
    uncompared = list(_list_bases([(rows.base, ())] if rows.base is not None else []))
    values = _list_values(rows, _with_health(build_cards(rows, flavour), health), flavour, uncompared)
    if flavour is Flavour.DRIFT:
        values["headline"] = "Drift" if plan.has_drift else "No drift"
    return environment.render_template(
        "plan.html",
        scripts=("page.js", *(("access.js",) if listed else ())),
        title=f"{what} for stack {rows.stack}",
        what=f"{what} for stack",
        name=rows.stack,
        environment=context.environment or rows.environment,
        environments=(),
        about=list(_about(rows, context, plan.request)),
        footer=list(_foot([plan], context, [digest])),
        status=_status(plan, rows, flavour, resources, budget),
        entries=listed,
        entry_data=environment.encode_data(listed.data) if listed else "",
        approval_entries=render_entries(plan) if flavour is Flavour.PLAN else "",
        diagram=diagram.draw_diagram(plan),
        box_size=(diagram.WIDTH, diagram.HEIGHT),
        **values,
    )


class EnvironmentItem(Struct, frozen=True):
    """An environment of a page of several; `hue` is the CSS class of its state."""

    row: EnvironmentRow
    hue: str


_HUES: Mapping[overview.Status, str] = {
    overview.Status.NOT_PLANNED: "delete",
    overview.Status.BLOCKED: "delete",
    overview.Status.WAITING: "update",
    overview.Status.READY: "create",
    overview.Status.QUIET: "unchanged",
}
_LEVELS = {"delete": "blocked", "update": "waiting", "create": "ready", "unchanged": "quiet"}


def render_overview(
    plans: Sequence[Plan],
    *,
    unplanned: Sequence[str] = (),
    digests: Sequence[str] = (),
    context: RunContext | None = None,
) -> str:
    """Several plans as one file: a row for each environment, then what needs a person and each change once.

    unplanned  names of environments that could not be planned
    digests    of the plans, in their order
    """
    seen = overview.build_overview(plans, unplanned)
    context, rows = context or RunContext(), seen.rows
    items = [EnvironmentItem(row, _HUES[row.status]) for row in seen.environments]
    gravest = next(item for hue in _LEVELS for item in items if item.hue == hue)
    number = count(len(items), "environment")
    unknown = [*_list_unplanned(items), *_list_bases(seen.bases)]
    return environment.render_template(
        "plan.html",
        title=f"Plan for {number}",
        what="Plan for",
        name=number,
        environment="",
        environments=items,
        about=list(_about(rows, context, next((plan.request for plan in plans if plan.request), None))),
        footer=list(_foot(plans, context, digests)),
        status=Status(_LEVELS[gravest.hue], _sum_up_states(items, gravest), [phrases.forecast(rows.forecast, 0) + "."]),
        entries=None,
        entry_data="",
        approval_entries=render_entries(*plans),
        diagram=None,
        box_size=(0, 0),
        **_list_values(rows, build_cards(rows, Flavour.PLAN), Flavour.PLAN, unknown),
    )


def _sum_up_states(items: Sequence[EnvironmentItem], gravest: EnvironmentItem) -> str:
    """`Approval required`, or `Approval required (1 of 2)`"""
    state, number = str(gravest.row.status), sum(item.row.status is gravest.row.status for item in items)
    return f"{state[0].upper()}{state[1:]}" + (f" ({number} of {len(items)})" if number < len(items) else "")


def _list_unplanned(items: Iterable[EnvironmentItem]) -> list[needs.Need]:
    """A need for each environment of which nothing is known."""
    names = [item.row.name for item in items if item.row.status is overview.Status.NOT_PLANNED]
    details = ("What would change there is unknown; the log of the run says why.",)
    return [needs.Need(f"{_quote(name)} could not be planned.", details, is_severe=True) for name in names]


def _list_values(
    rows: Outline, cards: list[Card], flavour: Flavour, unknown: Sequence[needs.Need] = ()
) -> dict[str, Any]:
    """What the page shows of the rows, of one plan or of several. `unknown`: needs that no row shows."""
    is_plan = flavour is Flavour.PLAN
    problems = rows.urgent_problems
    wanted = [*unknown, *needs.list_needs(rows, _quote)] if is_plan else []
    stated = [need.access for need in wanted if need.access is not None]
    access = [row for row in rows.access if row not in stated]
    rules = phrases.group_rule_changes(row for row in rows.rule_changes if row.granted or not is_plan)
    return {
        "rows": rows,
        "is_plan": is_plan,
        "headline": needs.headline(wanted),
        "needs": wanted,
        "problems": problems[:_MOST_PROBLEMS],
        "more_problems": _count_more(len(problems) - _MOST_PROBLEMS),
        "access": [_access(rows, row, flavour) for row in access[:_MOST_ACCESS]],
        "more_access": max(len(access) - _MOST_ACCESS, 0),
        "rule_changes": [(phrases.describe_rule_change(row), row) for row in rules],
        "approved": [_approval(row) for row in rows.approvals if row.granted or row.is_optional] if is_plan else [],
        "at_terminal": [row for row in rows.missing_approvals if not row.subjects] if is_plan else [],
        "withdrawn": rows.base.withdrawn if rows.base else (),
        "unmanaged": phrases.describe_unmanaged(rows),
        "ignored": phrases.describe_ignored(rows),
        "additions": [_card(number, row, {}, flavour) for number, row in enumerate(rows.additions)],
        "additions_title": phrases.ADDITIONS.removesuffix(":"),
        "choices": phrases.CHOICES,
        "counts": [(str(action), hue(action), rows.counts[action]) for action in Action if rows.counts.get(action)],
        "cards": cards,
        "groups": _group_by_cause(rows, cards),
        "risky": list(_group_by_risks(rows, cards, wanted)),
        "numbers": {card.row.address: card.number for card in reversed(cards)},
    }


def build_cards(rows: Outline, flavour: Flavour, start: int = 0) -> list[Card]:
    """The changes as cards, numbered from `start`."""
    calls: Mapping[str, list[CallRow]] = defaultdict(list)
    if flavour is Flavour.PLAN:
        for call in rows.calls:
            calls[call.address].append(call)
    return [_card(number, row, calls, flavour) for number, row in enumerate(rows.changes, start)]


def _with_health(cards: Iterable[Card], rows: Iterable[HealthRow]) -> list[Card]:
    """The cards with the health of what changes, where that is not healthy."""
    states = (State.DEGRADED, State.PROGRESSING)
    ill = {row.address: _describe_health(row.health) for row in rows if row.health.state in states}
    return [replace(card, health=sanitize(ill.get(card.row.address, ""))) for card in cards] if ill else list(cards)


def _describe_health(health: Health) -> str:
    """`degraded: the certificate waits for DNS (zone owner: set shop.example.com CNAME …)`"""
    action = ": ".join(filter(None, (health.actor, health.advice)))
    return f"{health.state}: {health.reason}{f' ({action})' if action else ''}"


def hue(action: Action) -> str:
    """The CSS class of an action; adopt, forget and move share one."""
    return str(action) if action in phrases.USUAL else "other"


# --- header and status ------------------------------------------------------------------------------------------------


def _about(rows: Outline, context: RunContext, request: Request | None) -> Iterator[tuple[str, Link]]:
    """What the header says, label by label: what was planned, by whom and for which request."""
    asked = f"{sanitize(request.repository)}#{request.number}" if request is not None else ""
    known = (
        ("Request", context.review or Link(asked)),
        ("Commit", context.commit or Link(rows.commit[:12])),
        ("Base", Link(f"{rows.base.ref} ({rows.base.commit})" if rows.base else "")),
        ("Author", Link(context.author)),
        ("Account", Link(rows.account)),
        ("Targets", Link(" ".join(rows.targets))),
        ("Excluded", Link(" ".join(rows.excludes))),
    )
    yield from ((label, link) for label, link in known if link.text)


def _foot(plans: Sequence[Plan], context: RunContext, digests: Sequence[str]) -> Iterator[tuple[str, Link]]:
    """What identifies the page."""
    created = max((plan.created for plan in plans), default=0.0)
    known = (
        ("Created", Link(format_time(created) if created else "")),
        ("Run", context.run or Link("")),
        *(("Digest", Link(digest)) for digest in digests),
    )
    yield from ((label, link) for label, link in known if link.text)


def _quote(text: str) -> str:
    """The text as code, see `environment.format_prose`."""
    return f"`{text.replace('`', '')}`"


class ApprovalItem(Struct, frozen=True):
    """An approval that is granted, or that is not needed for the rest of the plan."""

    text: str
    granted: bool
    environments: tuple[str, ...]


def _approval(row: ApprovalRow) -> ApprovalItem:
    text = f"{phrases.name_subjects(row, _NAMED, _quote)}: {row.why}"
    return ApprovalItem(text, row.granted, row.environments)


def _status(plan: Plan, rows: Outline, flavour: Flavour, resources: Resources | None, budget: int) -> Status:
    is_plan = flavour is Flavour.PLAN
    details = [phrases.count_access(rows) if is_plan else access_drift.headline(rows)]
    if not (is_plan and plan.changes):  # else the page shows the totals as badges
        details.append(phrases.verdict(rows, flavour, resources))
    if not is_plan:
        is_drift = plan.has_drift
        level, text = ("waiting", "Drift") if is_drift else ("ready", "No drift")
        if plan.errors:
            level, text = "blocked", _count_errors(plan.errors)
        return Status(level, text, [detail for detail in details if detail])
    groups = phrases.list_groups(rows) if rows.is_attributed else []
    details += [phrases.summarize_group(group) for group in groups]
    if plan.changes:
        details.append(f"{phrases.forecast(rows.forecast, budget)}.")
    level, text = "ready", "Ready to apply"
    if plan.blocking_errors:
        level, text = "blocked", f"Blocked by {_count_errors(plan.blocking_errors)}"
    elif plan.missing_approvals:
        level, text = "waiting", "Approval required"
    elif plan.confined_errors:
        level, text = (
            "blocked",
            f"{_count_errors(plan.confined_errors)}; the rest can be applied",
        )
    elif plan.is_empty:
        level, text = "quiet", "No changes"
    elif groups and not (groups[0].changes or groups[0].additions):
        text = phrases.UNCHANGED.removesuffix(".")
        details.remove(phrases.UNCHANGED)
    return Status(level, text, [detail for detail in details if detail])


def _count_more(more: int) -> str:
    return count_omitted(more, "problem") if more > 0 else ""


def _count_errors(errors: Sequence[Problem]) -> str:
    return count(len(merge_repeated(errors)), "error")


def _list_bases(bases: Iterable[tuple[BaseRow, tuple[str, ...]]]) -> Iterator[needs.Need]:
    """A need for each base with which no change could be attributed, with its environments."""
    for base, names in bases:
        if text := phrases.describe_base(base):
            yield needs.Need(text, base.problems, environments=names)


def _access(rows: Outline, row: AccessRow, flavour: Flavour) -> AccessItem:
    level = "severe" if phrases.is_grave(row) else "mild"
    if flavour is Flavour.DRIFT:
        details = [access_drift.describe_states(rows, row), *access_drift.explain(row)]
        return AccessItem(row, level, access_drift.describe_verdict(row), "", details)
    verdict, cause = phrases.describe_verdict(row), phrases.describe_access_cause(row)
    return AccessItem(row, level, verdict, cause, [*phrases.explain_access(row)])


# --- changes ----------------------------------------------------------------------------------------------------------


def _group_by_cause(rows: Outline, cards: Sequence[Card]) -> list[Group]:
    if not rows.is_attributed:
        return [Group("", list(cards))]
    groups = [Group(title, [card for card in cards if card.cause == title]) for title in phrases.GROUPS.values()]
    return [group for group in groups if group.cards]


class RiskGroup(Struct, frozen=True):
    """The changes with the same risks. `cause`: what the reviewed commits have not caused; empty: all of it."""

    risks: list[RiskPhrase]
    actions: list[tuple[Action, list[Card]]]
    details: tuple[str, ...]
    cause: str = ""


def _group_by_risks(rows: Outline, cards: Sequence[Card], wanted: Sequence[needs.Need]) -> Iterator[RiskGroup]:
    """The risks that no need states."""
    card_of = {(card.row.address, card.row.id, card.row.action): card for card in cards}
    stated = {address for need in wanted if need.access is None for address in need.changes}
    left = [replace(row, risks=_without_severe(row)) if row.address in stated else row for row in rows.changes]
    for group in phrases.group_by_risks(left):
        actions = phrases.group_by_action(group).items()
        yield RiskGroup(
            phrases.weigh_other_risks(group[0]),
            [(action, [card_of[row.address, row.id, row.action] for row in same]) for action, same in actions],
            tuple(line for row in group for line in row.deliveries),
            phrases.describe_foreign({row.cause for row in group}),
        )


def _without_severe(row: ChangeRow) -> tuple[Risk, ...]:
    return tuple(risk for risk in row.risks if risk not in phrases.SEVERE)


def _card(number: int, row: ChangeRow, calls: Mapping[str, list[CallRow]], flavour: Flavour) -> Card:
    reason = phrases.reason(row, flavour)
    return Card(
        number=number,
        row=row,
        reason=reason,
        summary=cut(_sum_up(row, reason, flavour), _LONGEST_SUMMARY),
        risks=phrases.weigh_risks(row),
        details=phrases.details(row, flavour),
        parts=list(_parts(row, row.fields, flavour)),
        users=phrases.describe_users(row, _quote),
        variants=[_variant(row, variant, flavour) for variant in row.variants],
        calls=calls.get(row.address, []),
        cause=phrases.GROUPS[row.cause] if row.cause else "",
    )


def _sum_up(row: ChangeRow, reason: str, flavour: Flavour) -> str:
    """`min_version: "1.2" → "1.3", and 2 more fields`; the reason for a change without fields."""
    if not row.fields:
        return reason
    fields = [f"{field.path}: {_explain(row, field, flavour)}" for field in row.fields[:_SUMMED_UP]]
    left = len(row.fields) - len(fields)
    return ", ".join(fields) + (f", and {count(left, 'more field')}" if left else "")


def _explain(row: ChangeRow, field: FieldRow, flavour: Flavour) -> str:
    """The change of a field; of long values the parts that differ."""
    text = phrases.explain(row, field, flavour)
    if len(text) <= _LONGEST_SUMMARY or field.difference is not None or not (field.old and field.new):
        return text
    sides = (DiffLine("-", field.old.line), DiffLine("+", field.new.line))
    return " → ".join(excerpts(sides, _LONGEST_SIDE))


def _variant(row: ChangeRow, variant: Variant, flavour: Flavour) -> CardVariant:
    own = replace(row, risks=variant.risks, protected=False, deliveries=variant.deliveries, records=variant.records)
    details = phrases.details(own, flavour)
    parts = list(_parts(row, variant.fields, flavour))
    return CardVariant(variant.environments, phrases.weigh_risks(own), details, parts)


def _parts(row: ChangeRow, fields: Iterable[FieldRow], flavour: Flavour) -> Iterator[Part]:
    for field in fields:
        lines = [(_SIGNS.get(line.sign, "context"), line) for line in phrases.diff(field, flavour)]
        yield Part(field.path, phrases.notes(row, field, flavour), field.position, lines)
