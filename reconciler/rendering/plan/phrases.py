"""Sentences and phrases about a plan that all formats share: totals, reasons, causes of drift, duration.

No layout: no width, color or markup. All text is sanitized, since rows of an outline are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from reconciler.model.access_change import Verdict
from reconciler.model.change import Action, Cause, ChangedBy, Reason, Risk
from reconciler.model.plan import Forecast
from reconciler.rendering.plan.outline import (
    SENSITIVE,
    SENSITIVE_CHANGED,
    UNSET,
    AccessRow,
    ApprovalRow,
    BaseRow,
    ChangeRow,
    DiffLine,
    FieldRow,
    Outline,
    RuleRow,
)
from reconciler.rendering.text_tools import count, format_seconds

if TYPE_CHECKING:
    from reconciler.rendering.plan.differences import Difference


class Flavour(StrEnum):
    PLAN = "plan"  # what will be changed
    DRIFT = "drift"  # what changed, and what changed it


USUAL = (Action.CREATE, Action.UPDATE, Action.REPLACE, Action.DELETE)  # counted even if there are none


def forecast(estimate: Forecast, budget: int) -> str:
    """`130 API calls, about 60 s at 120 requests per minute`. `budget`: requests per minute, 0 for none."""
    calls = count(estimate.calls, "API call")
    if estimate.estimated_seconds > 0:
        return f"{calls}, about {format_seconds(estimate.estimated_seconds)}" + (
            f" at {budget} requests per minute" if budget else ""
        )
    return f"{calls}, within the budget of {budget} requests per minute" if budget else calls


class Selected(Struct, frozen=True):
    """The number of resources that a plan was limited to, `of` all declared ones."""

    resources: int
    of: int


Resources = int | Selected
"""How many resources are declared; for a limited plan, how many of them are selected."""


def totals(rows: Outline) -> str:
    """`Plan: 3 to create, 1 to update, 0 to replace, 2 to delete.`"""
    actions = [action for action in Action if action in USUAL or rows.counts.get(action)]
    plan = "Plan for the selected resources" if _is_limited(rows) else "Plan"
    return f"{plan}: " + ", ".join(f"{rows.counts.get(action, 0)} to {action}" for action in actions) + "."


def describe_match(resources: Resources | None) -> str:
    """`3 resources match the manifests.`"""
    if resources is None:
        return "The platform matches the manifests."
    if isinstance(resources, Selected):
        number, counted = resources.resources, f"{resources.resources} of {count(resources.of, 'resource')}"
    else:
        number, counted = resources, count(resources, "resource")
    return f"{counted} {'matches' if number == 1 else 'match'} the manifests."


def _describe_empty(what: str, rows: Outline, resources: Resources | None) -> str:
    """`No changes. 3 resources match the manifests.`"""
    declared = resources.of if isinstance(resources, Selected) else resources
    where = " in the selected resources" * _is_limited(rows)
    if declared == 0:  # as for `destroy`, which declares nothing; objects that the key may not read are not counted
        return f"No {what}{where}: this stack has no objects on the platform."
    if not where:
        return f"No {what}. {describe_match(resources)}"
    return f"No {what}{where}" + (f": {describe_match(resources)}" if resources is not None else ".")


def _is_limited(rows: Outline) -> bool:
    return bool(rows.targets or rows.excludes)


def drift_totals(rows: Outline, resources: Resources | None) -> str:
    """`Drift: 2 resources changed on the platform. 1 access test fails. 1 resource has unapplied Git changes.`"""
    pending, failed = sum(row.is_pending for row in rows.changes), len(rows.failed_tests)
    tests = f" {count(failed, 'access test')} {'fails' if failed == 1 else 'fail'}." if failed else ""
    later = f" {count(pending, 'resource')} {'has' if pending == 1 else 'have'} unapplied Git changes." * bool(pending)
    limited = _is_limited(rows)
    sides = [find_cause(row) for row in rows.changes if not row.is_pending]
    named = [(sides.count(side), SIDES[side]) for side in SIDES]
    named.insert(1, (len(rows.additions), "added on the platform"))
    parts = [(number, words) for number, words in named if number]
    if not parts and failed:
        return f"Drift:{tests}{later}"
    if not parts:
        where = " in the selected resources" * limited
        return f"No drift{where}.{later}" if pending else _describe_empty("drift", rows, resources)
    counted = count(sum(number for number, _ in parts), "selected resource" if limited else "resource")
    listed = f" {parts[0][1]}" if len(parts) == 1 else ": " + ", ".join(f"{number} {words}" for number, words in parts)
    return f"Drift: {counted}{listed}.{tests}{later}"


SIDES: Mapping[ChangedBy, str] = {
    ChangedBy.PLATFORM: "changed on the platform",
    ChangedBy.GIT: "changed in Git",
    ChangedBy.BOTH: "changed in Git and on the platform",
    ChangedBy.FOLLOWS: "affected by a replaced resource",
    ChangedBy.UNKNOWN: "with an unknown cause",
}


def find_cause(row: ChangeRow) -> ChangedBy:
    """What changed the resource as a whole."""
    if row.is_pending:
        return ChangedBy.GIT
    if row.reason in (Reason.VANISHED, Reason.ADDED):
        return ChangedBy.PLATFORM
    if row.reason is Reason.REMOVED:
        return ChangedBy.BOTH
    causes = {field.changed_by for field in row.fields} - {ChangedBy.UNKNOWN, ChangedBy.FOLLOWS}
    if causes <= {ChangedBy.GIT}:  # but the row is not pending: nothing proves that Git did it
        return ChangedBy.UNKNOWN
    return causes.pop() if len(causes) == 1 else ChangedBy.BOTH


def verdict(rows: Outline, flavour: Flavour, resources: Resources | None = None) -> str:
    """The plan or drift in one sentence; empty if there are only problems."""
    if rows.errors and not rows.changes:
        return ""
    if flavour is Flavour.DRIFT:
        return drift_totals(rows, resources)
    return totals(rows) if rows.changes else _describe_empty("changes", rows, resources)


# --- a plan that was compared with a base

THIS_BRANCH = "Changes by this branch"
UNCHANGED = "No changes by this branch."
GROUPS: Mapping[Cause, str] = {
    Cause.THIS_CHANGE: THIS_BRANCH,
    Cause.PENDING: "Pending before it: in Git, not applied yet",
    Cause.DRIFT: "Drift: changed on the platform",
}
_FOREIGN = {
    Cause.THIS_CHANGE: "by this branch",
    Cause.PENDING: "pending before this branch",
    Cause.DRIFT: "drift",
}  # of a field in a change of another cause


def describe_foreign(causes: Collection[Cause | None]) -> str:
    """`pending before this branch`; empty if the reviewed commits cause some of it, or nothing was compared."""
    return (
        ""
        if {None, Cause.THIS_CHANGE}.intersection(causes)
        else ", ".join(sorted(_FOREIGN[cause] for cause in causes if cause))
    )


class Group(Struct, frozen=True):
    """The changes of one cause."""

    cause: Cause
    changes: tuple[ChangeRow, ...]
    additions: tuple[ChangeRow, ...]


def list_groups(rows: Outline) -> list[Group]:
    """The changes by cause: of this branch first, even if there are none, then pending ones and drift."""
    groups = [
        Group(
            cause,
            tuple(row for row in rows.changes if row.cause is cause),
            tuple(row for row in rows.additions if row.cause is cause),
        )
        for cause in GROUPS
    ]
    return [group for group in groups if group.cause is Cause.THIS_CHANGE or group.changes or group.additions]


_SUBJECTS = 3  # of equal changes of rules that are named


def group_rule_changes(rows: Iterable[RuleRow]) -> list[RuleRow]:
    """The changes of rules, equal ones of several resources as one: defaults may loosen a rule of thousands."""
    groups: dict[tuple[str, ...], list[RuleRow]] = {}
    for row in rows:
        groups.setdefault((row.risk, row.rule, row.values, str(row.granted), *row.environments), []).append(row)
    return [_join_rule_changes(group) for group in groups.values()]


def _join_rule_changes(group: list[RuleRow]) -> RuleRow:
    more = len(group) - _SUBJECTS
    subjects = ", ".join(row.subject for row in group[:_SUBJECTS]) + (f" and {more} more" if more > 0 else "")
    return replace(group[0], subject=subjects)


def describe_rule_change(row: RuleRow, quote: Callable[[str], str] = str) -> str:
    """`This branch loosens a rule: guards.require_approval: ["widens_access"] → []`; approved ones say so."""
    approved = " (approved)" if row.granted else ""
    return f"This branch {row.risk.text}: {quote(f'{row.subject}: {row.values}')}{approved}"


def describe_group(group: Group, base: BaseRow, quote: Callable[[str], str] = str) -> str:
    """`Changes by this branch (since main, abc1234)`"""
    since = f" (since {quote(base.ref)}, {quote(base.commit)})" if group.cause is Cause.THIS_CHANGE else ""
    return f"{GROUPS[group.cause]}{since}"


def count_group(group: Group) -> str:
    """`1 to create, 2 to delete`; what was added on the platform is counted separately."""
    counts = [(action, sum(row.action is action for row in group.changes)) for action in Action]
    parts = [f"{number} to {action}" for action, number in counts if number]
    return ", ".join([*parts, *([f"{len(group.additions)} added on the platform"] if group.additions else [])])


def summarize_group(group: Group) -> str:
    """`Changes by this branch: 1 to create.`"""
    if not (group.changes or group.additions):
        return UNCHANGED
    name = {Cause.PENDING: "Pending before it", Cause.DRIFT: "Drift"}.get(group.cause, THIS_BRANCH)
    return f"{name}: {count_group(group)}."


def describe_withdrawn(row: ChangeRow, quote: Callable[[str], str] = str) -> str:
    """`No longer planned: update IPPolicy/office`"""
    return f"No longer planned: {row.action} {quote(row.address)}"


def describe_base(base: BaseRow, quote: Callable[[str], str] = str) -> str:
    """Why the changes are not attributed; empty if they are."""
    if base.behind:
        commits = count(base.behind, "commit")
        ref = quote(base.ref)
        return f"This branch is behind {ref} by {commits}: changes are not attributed; merge {ref} first."
    if base.problems:
        return f"The base {quote(base.ref)} ({quote(base.commit)}) cannot be planned: changes are not attributed."
    return ""


def describe_unmanaged(rows: Outline) -> str:
    """`Not managed: 2 BotUser (list them with `drift --unmanaged`).`; empty if there are none."""
    listed = ", ".join(f"{number} {kind}" for kind, number in rows.unmanaged.items())
    return f"Not managed: {listed} ({LISTS})." if listed else ""


def describe_ignored(rows: Outline) -> str:
    """`2 known differences ignored, until 2026-12-31.`; empty if there are none."""
    if not rows.ignored:
        return ""
    first, *more = rows.ignored_until or ("",)
    until = f", {'the first ' if more else ''}until {first}" if first else ""
    return f"{count(rows.ignored, 'known difference')} ignored{until}."


LISTS = "list them with `drift --unmanaged`"
PROTECTED = "protected (lifecycle.protect)"
ADDITIONS = "Added on the platform, not declared:"
PENDING = "Unapplied Git changes:"
CHOICES = (
    "Additions are not changed without approval. To manage one, run `reconciler import`; to remove one, delete it on "
    "the platform, or set `lifecycle.unmanaged_children: delete` on its parent and approve its deletion."
)


def sort_pending_last(rows: Iterable[ChangeRow], flavour: Flavour) -> list[ChangeRow]:
    """For drift: pending Git changes last. For a plan: the same order."""
    return sorted(rows, key=lambda row: flavour is Flavour.DRIFT and row.is_pending)


def sort_by_severity(rows: Iterable[ChangeRow]) -> list[ChangeRow]:
    """Changes by their most severe risk, and deletions first among equals; changes without a risk last."""
    order = list(Risk)

    def severity(row: ChangeRow) -> tuple[int, bool]:
        risk = min((order.index(risk) for risk in row.risks), default=len(order) + (not row.protected))
        return risk, row.action is not Action.DELETE

    return sorted(rows, key=severity)


def sort_deletions_first(rows: Iterable[ChangeRow]) -> list[ChangeRow]:
    """Changes in the order in which a list that may be cut shows them: deletions, then by severity."""
    return sorted(sort_by_severity(rows), key=lambda row: row.action is not Action.DELETE)


def group_by_risks(rows: Iterable[ChangeRow]) -> list[list[ChangeRow]]:
    """Changes that have risks, as `sort_by_severity` orders them, those with equal risks together.

    The risks that changes of entry points show do not count.
    A change that delivers a secret stands alone, since its commands have to be read.
    """
    groups: dict[object, list[ChangeRow]] = {}
    for row in sort_by_severity(row for row in rows if row.other_risks or row.protected):
        is_alone = row.deliveries or any(variant.deliveries for variant in row.variants)
        groups.setdefault(row.address if is_alone else (row.other_risks, row.protected), []).append(row)
    return list(groups.values())


def spread_risks(rows: Iterable[ChangeRow]) -> Iterator[ChangeRow]:
    """The changes, and those with other risks in some environments once more for these."""
    for row in rows:
        yield row
        for variant in row.variants:
            if variant.risks:
                risks = {"risks": variant.risks, "access_risks": variant.access_risks, "protected": False}
                yield replace(row, environments=variant.environments, deliveries=(), variants=(), **risks)


def without_approved_risks(rows: Iterable[ChangeRow], approvals: Iterable[ApprovalRow]) -> Iterator[ChangeRow]:
    """The changes without the risks that an approval of the same change states. What delivers a secret keeps them."""
    stated: dict[tuple[str, str], tuple[str, ...]] = {
        (approval.why, subject.name): subject.environments for approval in approvals for subject in approval.subjects
    }
    for row in rows:
        known = (stated.get((risk.text, row.address)) for risk in row.risks)
        pairs = zip(row.risks, known, strict=True)
        left = [risk for risk, places in pairs if places is None or not _covers(places, row.environments)]
        has_deliveries = row.deliveries or any(variant.deliveries for variant in row.variants)
        yield row if has_deliveries else replace(row, risks=tuple(left))


def _covers(environments: Collection[str], others: Collection[str]) -> bool:
    """Whether environments contain others; none are all."""
    return not environments or (bool(others) and set(others) <= set(environments))


def label(environments: Collection[str], quote: Callable[[str], str] = str) -> str:
    """` (staging, prod)`; empty for all environments."""
    return f" ({', '.join(map(quote, environments))})" if environments else ""


def group_by_action(rows: Iterable[ChangeRow]) -> dict[Action, list[ChangeRow]]:
    """The changes of each action, in the order of their first change."""
    groups: dict[Action, list[ChangeRow]] = {}
    for row in rows:
        groups.setdefault(row.action, []).append(row)
    return groups


SEVERE = frozenset(
    {Risk.WIDENS_ACCESS, Risk.LOCKS_OUT, Risk.IRREVERSIBLE, Risk.LEAVES_DNS_RECORD, Risk.INTERRUPTS_TRAFFIC}
)  # shown in bold or red


class RiskPhrase(Struct, frozen=True):
    text: str
    is_severe: bool

    @property
    def name(self) -> str:
        """The text without its explanation: `irreversible`."""
        return self.text.partition(":")[0].partition(" (")[0]


def weigh_risks(row: ChangeRow) -> list[RiskPhrase]:
    """What a reviewer must see, a phrase each, the most severe first."""
    return _weigh(row, row.risks)


def weigh_other_risks(row: ChangeRow) -> list[RiskPhrase]:
    """The same without the risks that changes of entry points show."""
    return _weigh(row, row.other_risks)


def _weigh(row: ChangeRow, risks: Collection[Risk]) -> list[RiskPhrase]:
    phrases = [RiskPhrase(risk.text, risk in SEVERE) for risk in Risk if risk in risks]
    return [*phrases, *([RiskPhrase(PROTECTED, False)] if row.protected else [])]


# --- access

ACCESS = "Access"
_COUNTED: Mapping[Verdict, tuple[str, str]] = {
    Verdict.WIDENS: ("widens", "widen"),
    Verdict.EXPOSES: ("exposed", "exposed"),
    Verdict.LOCKS_OUT: ("locked out", "locked out"),
    Verdict.NARROWS: ("narrows", "narrow"),
    Verdict.CLOSES: ("closed", "closed"),
}
_FEW_CAUSES = 3
FEW_ENTRY_POINTS = 3


def count_access(rows: Outline) -> str:
    """`Access: 2 entry points widen, 1 exposed, 1 unknown.`; empty if no entry point changes.

    After a comparison with a base, what this branch does not cause is counted last.
    """
    own = [row for row in rows.access if row.cause in (None, Cause.THIS_CHANGE)]
    counts = [
        (sum(1 + len(row.more) for row in own if row.is_certain and row.verdict is verdict), words)
        for verdict, words in _COUNTED.items()
    ]
    counts.append((sum(1 + len(row.more) for row in own if not row.is_certain), ("unknown", "unknown")))
    counts.append(
        (sum(1 + len(row.more) for row in rows.access if row not in own), ("not by this branch", "not by this branch"))
    )
    parts = [(number, one if number == 1 else many) for number, (one, many) in counts if number]
    if not parts:
        return ""
    (number, word), *others = parts
    listed = [f"{count(number, 'entry point')} {word}", *(f"{number} {word}" for number, word in others)]
    return f"{ACCESS}: {', '.join(listed)}."


def describe_access(row: AccessRow, quote: Callable[[str], str] = str, emphasize: Callable[[str], str] = str) -> str:
    """`https://shop.example.com/admin… lets in requests that were refused`"""
    text, cause = describe_verdict(row), describe_access_cause(row)
    return f"{quote(row.entry_point)}{'' if row.is_certain else ':'} {emphasize(text)}{cause and f' ({cause})'}"


def describe_verdict(row: AccessRow) -> str:
    """`lets in requests that were refused`"""
    return row.verdict.text if row.is_certain else f"unknown whether it {row.verdict.text}"


def describe_access_cause(row: AccessRow) -> str:
    """`pending before this branch`; empty if the reviewed commits cause it."""
    return "" if row.cause in (None, Cause.THIS_CHANGE) else _FOREIGN[row.cause]


def explain_access(row: AccessRow, quote: Callable[[str], str] = str, *, with_states: bool = True) -> Iterator[str]:
    """Who gets through before and after, an example, what is not known, and the resources that cause the change."""
    if with_states:
        yield f"{quote(row.before)} → {quote(row.after)}" if row.before != row.after else quote(row.before)
    if row.witness:
        yield f"for example: {quote(row.witness.replace('`', ''))}"
    if row.depends_on:
        yield f"depends on: {quote('; '.join(row.depends_on))}"
    if row.causes:
        more = len(row.causes) - _FEW_CAUSES
        listed = ", ".join(map(quote, row.causes[:_FEW_CAUSES]))
        yield f"caused by {listed}" + (f" and {more} more" if more > 0 else "")


def is_grave(row: AccessRow) -> bool:
    """Whether the change is shown in bold or red."""
    return row.verdict.risk in SEVERE


def reason(row: ChangeRow, flavour: Flavour, quote: Callable[[str], str] = str) -> str:
    """`will be updated in place`; of drift, what differs. `quote` is applied to addresses and paths."""
    return _drift_reason(row, quote) if flavour is Flavour.DRIFT else _plan_reason(row, quote)


_PENDING = {
    Reason.DECLARED: "added in Git, not applied yet",
    Reason.REMOVED: "removed from Git, not applied yet",
    Reason.FIELDS: "changed in Git, not applied yet",
    Reason.IMMUTABLE: "changed in Git, not applied yet",
}
_DRIFT = {
    Reason.DECLARED: "declared, does not exist on the platform; not known whether it was ever created",
    Reason.VANISHED: "deleted on the platform",
    Reason.REMOVED: "removed from Git, and changed on the platform",
    Reason.FIELDS: "differs from the manifest",
    Reason.IMMUTABLE: "differs from the manifest",
}
_VERBS = {
    Action.CREATE: "will be created",
    Action.UPDATE: "will be updated in place",
    Action.REPLACE: "must be replaced",
    Action.DELETE: "will be deleted",
    Action.ADOPT: "will be adopted",
    Action.FORGET: "will no longer be managed; the object is kept",
    Action.MOVE: "will be moved to this address; the object is kept",
}
_EVIDENT = (Reason.DECLARED, Reason.FIELDS, Reason.RENAMED)  # the verb says it all


def _drift_reason(row: ChangeRow, quote: Callable[[str], str]) -> str:
    if row.reason is Reason.ADDED and row.parent:
        return _addition(row, quote)
    return (_PENDING if row.is_pending else _DRIFT).get(row.reason, row.reason.text)


def _plan_reason(row: ChangeRow, quote: Callable[[str], str]) -> str:
    if row.reason is Reason.ADDED and row.parent:
        return _addition(row, quote)
    order = f" ({row.order.text})" if row.order else ""
    match row.reason:
        case Reason.DESTROYED:
            return "will be destroyed (`destroy`)"
        case Reason.REQUESTED:
            return f"{row.reason.text}{order}"
        case Reason.IMMUTABLE if paths := [field.path for field in row.fields if field.forces_replacement]:
            return f"must be replaced: {_join_paths(list(map(quote, paths)))} cannot be updated in place{order}"
        case Reason.RECORD if row.action is Action.UPDATE:
            return "the owner record will be updated"
        case reason if reason in _EVIDENT:
            return f"{_VERBS[row.action]}{order}"
    return f"{_VERBS[row.action]}: {row.reason.text}{order}"


def _addition(row: ChangeRow, quote: Callable[[str], str]) -> str:
    return f"added to {quote(row.parent)} on the platform, not declared"


def _join_paths(paths: list[str]) -> str:
    return ", ".join(paths[:3]) + (f" and {count(len(paths) - 3, 'more field')}" if len(paths) > 3 else "")


def name_subjects(row: ApprovalRow, most: int, quote: Callable[[str], str] = str) -> str:
    """`ReservedDomain/a, ReservedDomain/b (prod) and 3 more`; of a guard over the whole plan `12 to delete`."""
    if not row.subjects:
        return row.what
    if row.subjects[0].name == "*":
        return f"{row.count:,} to {row.what}{label(row.environments, quote)}"
    if not most:
        return count(len(row.subjects), "change")
    names = ", ".join(quote(subject.name) + label(subject.environments, quote) for subject in row.subjects[:most])
    return names + (f" and {len(row.subjects) - most:,} more" if len(row.subjects) > most else "")


IN_GIT = "add its entries, which `plan --fail-on approvals` prints, to `approvals.yaml`"
NOT_IN_GIT = "cannot be approved in `approvals.yaml`; apply it at a terminal"


def approval(row: ApprovalRow) -> str:
    """`Approval required: pass --allow delete:ReservedDomain=1`"""
    if row.granted:
        return f"Approved: {row.flag}"
    return f"{approval_label(row)}: pass {row.flag}"


def rank_approval(row: ApprovalRow) -> str:
    """`required`, and whether it is for a change that is not of the reviewed commits."""
    rank = "optional" if row.is_optional else "required"
    return f"{rank} for a pending change, not of this branch" if row.is_pending else rank


def approval_label(row: ApprovalRow) -> str:
    """`Approval required`, and whether it is for a change that is not of the reviewed commits."""
    label = "Optional approval" if row.is_optional else "Approval required"
    return f"{label} for a pending change, not of this branch" if row.is_pending else label


def deliveries(row: ChangeRow, flavour: Flavour) -> tuple[str, ...]:
    """Where one-time secrets will be delivered, and which commands will run; nothing for drift."""
    return row.deliveries if flavour is Flavour.PLAN else ()


def details(row: ChangeRow, flavour: Flavour) -> tuple[str, ...]:
    """The deliveries, then the DNS records that the change needs or leaves behind."""
    return (*deliveries(row, flavour), *row.records) if flavour is Flavour.PLAN else ()


_COUNTED_USERS = 1_000
_NAMED_USERS = 8


def count_users(row: ChangeRow) -> str:
    """`3`, or `more than 1,000`"""
    return f"more than {_COUNTED_USERS:,}" if row.user_count > _COUNTED_USERS else f"{row.user_count:,}"


def describe_users(row: ChangeRow, quote: Callable[[str], str] = str) -> str:
    """`Used by 3 resources: HTTPSEdgeRoute/shop-admin, HTTPSEdge/shop, …`; empty if nothing uses it."""
    if not row.user_count:
        return ""
    noun = "resource" if row.user_count == 1 else "resources"
    named = ", ".join(map(quote, row.users[:_NAMED_USERS]))
    return f"Used by {count_users(row)} {noun}: {named}{', …' if row.user_count > _NAMED_USERS else '.'}"


def notes(change: ChangeRow, row: FieldRow, flavour: Flavour) -> list[str]:
    """What changed a field, and whether it forces a replacement."""
    is_whole = change.action in (Action.CREATE, Action.DELETE)  # the object changed, not its fields
    has_cause = not is_whole and (row.changed_by in (ChangedBy.PLATFORM, ChangedBy.BOTH) or flavour is Flavour.DRIFT)
    is_foreign = not is_whole and row.cause is not None and row.cause is not change.cause
    if is_foreign and row.cause is Cause.DRIFT:
        cause = [f"drift: {row.changed_by.text}"]
    else:
        cause = [_FOREIGN[row.cause]] if is_foreign and row.cause is not None else []
        cause += [row.changed_by.text] if has_cause else []
    return [
        *cause,
        *(["forces replacement"] if row.forces_replacement else []),
    ]


def values(row: FieldRow, flavour: Flavour) -> str:
    """`"1.2" → "1.3"`, on one line, and of lists what differs: `- "a", + "b" (3 unchanged)`.

    The value alone where there is one: a sign or `explain` says which side has it.
    """
    if row.old and row.new:
        if is_sensitive(row):
            return SENSITIVE_CHANGED
        return _both_sides(row, flavour) if row.difference is None else _describe_difference(row.difference, flavour)
    value = row.old or row.new
    return value.line if value else ""


def explain(change: ChangeRow, row: FieldRow, flavour: Flavour) -> str:
    """As `values`, for lines without a sign: `"1.2" → (not set)`.

    The fields of an object that is created, deleted or added as a whole are on one side anyway.
    """
    is_whole = change.action in (Action.CREATE, Action.DELETE) or bool(change.parent)
    return values(row, flavour) if is_whole or (row.old and row.new) else _both_sides(row, flavour)


def _both_sides(row: FieldRow, flavour: Flavour) -> str:
    old, new = (value.line if value else UNSET for value in (row.old, row.new))
    return f"{old} on the platform, {new} in Git" if flavour is Flavour.DRIFT else f"{old} → {new}"


def _describe_difference(difference: Difference, flavour: Flavour) -> str:
    """`- "a", + "b" (3 unchanged)`; of drift `"a" only on the platform, "b" only in Git (3 in both)`."""
    is_drift = flavour is Flavour.DRIFT
    if is_drift:
        sides = ((difference.removed, "only on the platform"), (difference.added, "only in Git"))
        parts = [f"{', '.join(texts)} {where}" for texts, where in sides if texts]
    else:
        parts = [*(f"- {text}" for text in difference.removed), *(f"+ {text}" for text in difference.added)]
    same = f" ({difference.same} {'in both' if is_drift else 'unchanged'})" if difference.same else ""
    return ", ".join(parts) + same


def diff(row: FieldRow, flavour: Flavour) -> tuple[DiffLine, ...]:
    """A field's values as lines: both in full if each is one line, otherwise a diff with context."""
    if row.is_kept:
        return tuple(DiffLine(" ", line) for value in (row.old, row.new) if value for line in value.lines)
    both = [(sign, value) for sign, value in (("-", row.old), ("+", row.new)) if value]
    if is_sensitive(row):
        return (DiffLine("!", values(row, flavour)),)
    if is_short(row):
        return tuple(DiffLine(sign, value.line) for sign, value in both)
    return row.diff or tuple(DiffLine(sign, value.line) for sign, value in both)


def is_sensitive(row: FieldRow) -> bool:
    """Whether both values are sensitive as a whole."""
    return row.old is not None and row.new is not None and row.old.line == row.new.line == SENSITIVE


def is_short(row: FieldRow) -> bool:
    """Whether each value is one line."""
    return not any(value and len(value.lines) > 1 for value in (row.old, row.new))
