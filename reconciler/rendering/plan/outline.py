"""A plan as rows that all formats print. Hides secrets and sanitizes all text from Git and the platform.

Rows are complete; each format shortens them as it needs.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from reconciler.model.access_change import AccessChange, Verdict
from reconciler.model.change import Action, Cause, Change, ChangedBy, FieldChange, Order, Reason, Risk
from reconciler.model.health import HealthRow
from reconciler.model.plan import Approval, Base, Call, Forecast, Plan
from reconciler.model.problem import Problem, Severity, merge_repeated
from reconciler.model.rule_change import RuleRisk
from reconciler.model.value import Hidden, Ref, Secret, Template, Value
from reconciler.rendering.terminal_text import sanitize
from reconciler.rendering.text_tools import count_more

if TYPE_CHECKING:
    from reconciler.rendering.plan.differences import Difference

SENSITIVE = "(sensitive)"
SENSITIVE_CHANGED = "(sensitive value changed)"
UNSET = "(not set)"

_OBJECT_ID = re.compile(r"[a-z0-9]+_[A-Za-z0-9]{20,}")  # not an id that is a natural key
_CONTEXT = 2  # lines around a change
_MOST_OF_BASE = 10  # problems of the base commit
_SHORT_COMMIT = 7  # characters
_SHORT = 48  # cells of a nested value that is written on the line of its key


class DisplayValue(Struct, frozen=True):
    """A sanitized value without secrets, on one line and on several lines.

    is_decoded   the lines say what a PEM text contains: they are sentences, to be wrapped and not cut
    """

    line: str
    lines: tuple[str, ...]
    is_decoded: bool = False


class DiffLine(Struct, frozen=True):
    """`+` added, `-` removed, ` ` context, `…` omitted lines."""

    sign: str
    text: str


class FieldRow(Struct, frozen=True):
    path: str
    old: DisplayValue | None  # None: not set
    new: DisplayValue | None
    diff: tuple[DiffLine, ...]
    changed_by: ChangedBy
    forces_replacement: bool
    position: str  # `file:line`, or empty
    cause: Cause | None = None  # None: the plan was not compared with a base
    is_kept: bool = False  # of an addition: nothing will happen to the value
    difference: Difference | None = None  # of two lists or two objects that have something in common


class Named(Struct, frozen=True):
    """A name, and the environments that it is from; empty: all of them."""

    name: str
    environments: tuple[str, ...] = ()


class Variant(Struct, frozen=True):
    """What a change has in some environments only, beside what it has in all of its environments."""

    environments: tuple[str, ...]
    fields: tuple[FieldRow, ...] = ()
    deliveries: tuple[str, ...] = ()
    records: tuple[str, ...] = ()
    risks: tuple[Risk, ...] = ()
    access_risks: tuple[Risk, ...] = ()  # as of a change


class ChangeRow(Struct, frozen=True):
    """A change. Of several plans: once, with the environments that it is for.

    environments  empty: of the only plan, or of all plans
    variants      what differs between environments
    """

    address: str
    action: Action
    symbol: str
    reason: Reason
    order: Order | None
    id: str
    former: str
    risks: tuple[Risk, ...]
    protected: bool
    position: str
    fields: tuple[FieldRow, ...]
    deliveries: tuple[str, ...] = ()  # targets of one-time secrets, and commands that will run
    records: tuple[str, ...] = ()  # of DNS, that the change needs or leaves behind
    parent: str = ""  # of an addition
    is_pending: bool = False
    cause: Cause | None = None  # as of a field
    access_risks: tuple[Risk, ...] = ()  # those of `risks` that changes of entry points show
    environments: tuple[str, ...] = ()
    variants: tuple[Variant, ...] = ()
    users: tuple[str, ...] = ()  # the nearest resources that use it
    user_count: int = 0  # of all of them

    @property
    def other_risks(self) -> tuple[Risk, ...]:
        """The risks that only the change itself shows."""
        return tuple(risk for risk in self.risks if risk not in self.access_risks)


class AccessRow(Struct, frozen=True):
    """The entry points that change in the same way, by the same resources. The first of them has the example.

    more     the other ones
    causes   the addresses of the resources
    others   as of `AccessChange`
    """

    entry_point: str
    verdict: Verdict
    before: str
    after: str
    witness: str
    is_certain: bool
    depends_on: tuple[str, ...]
    causes: tuple[str, ...]
    cause: Cause | None
    more: tuple[str, ...] = ()


class SharedAccessRow(AccessRow, frozen=True):
    """The same of several plans.

    places        all entry points, with their environments
    other_causes  the resources that cause it in some environments only
    """

    places: tuple[Named, ...] = ()
    other_causes: tuple[Named, ...] = ()
    environments: tuple[str, ...] = ()


class BaseRow(Struct, frozen=True):
    """The commit that the plan was compared with. `behind` and `problems` as in `Base`."""

    ref: str
    commit: str  # shortened
    behind: int
    problems: tuple[str, ...]
    withdrawn: tuple[ChangeRow, ...]

    @property
    def is_comparable(self) -> bool:
        """Whether the changes are attributed."""
        return not self.behind and not self.problems


class CallRow(Struct, frozen=True):
    number: int
    method: str
    path: str
    address: str
    needs: tuple[int, ...]  # numbers of the calls that it waits for


class ApprovalRow(Struct, frozen=True):
    """A required approval.

    flag      grants it in a terminal
    what      the rule, and how many changes it is about
    subjects  what `approvals.yaml` names; empty: it cannot be approved there
    is_of_access  the subjects are entry points
    """

    flag: str
    why: str
    granted: bool
    is_optional: bool = False
    is_pending: bool = False
    what: str = ""
    count: int = 0
    subjects: tuple[Named, ...] = ()
    is_of_access: bool = False
    environments: tuple[str, ...] = ()


class RuleRow(Struct, frozen=True):
    """A rule that the branch loosens, or a place that it changes, compared with its base."""

    risk: RuleRisk
    rule: str
    subject: str
    values: str  # before and after, on one line
    position: str
    granted: bool  # approved
    environments: tuple[str, ...] = ()


class ProblemRow(Struct, frozen=True):
    """`is_note`: information that asks for nothing; formats show it last."""

    text: str
    is_error: bool
    is_note: bool = False
    environments: tuple[str, ...] = ()


class Outline(Struct, frozen=True):
    """The rows of a plan, or of several together (`overview`)."""

    stack: str
    rule_changes: tuple[RuleRow, ...]
    changes: tuple[ChangeRow, ...]
    calls: tuple[CallRow, ...]
    problems: tuple[ProblemRow, ...]
    approvals: tuple[ApprovalRow, ...]
    counts: Mapping[Action, int]
    additions: tuple[ChangeRow, ...]
    unmanaged: Mapping[str, int]  # live objects per kind that no stack manages
    forecast: Forecast
    account: str = ""
    commit: str = ""
    targets: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()
    ignored: int = 0  # differences that are known drift
    ignored_until: tuple[str, ...] = ()  # the last days on which they are ignored, in order
    base: BaseRow | None = None
    environment: str = ""
    access: tuple[AccessRow, ...] = ()  # those of the reviewed commits first, the gravest first
    failed_tests: tuple[str, ...] = ()  # access tests, each with what was found in its place
    health: tuple[HealthRow, ...] | None = None  # None: it was not judged

    @property
    def is_attributed(self) -> bool:
        """Whether each change and addition has a cause."""
        return self.base is not None and self.base.is_comparable

    @property
    def errors(self) -> tuple[ProblemRow, ...]:
        return tuple(row for row in self.problems if row.is_error)

    @property
    def urgent_problems(self) -> tuple[ProblemRow, ...]:
        """Errors before warnings, without notes."""
        return tuple(sorted((row for row in self.problems if not row.is_note), key=lambda row: not row.is_error))

    @property
    def notes(self) -> tuple[ProblemRow, ...]:
        return tuple(row for row in self.problems if row.is_note)

    @property
    def missing_approvals(self) -> tuple[ApprovalRow, ...]:
        return tuple(row for row in self.approvals if not (row.granted or row.is_optional))


RowT = TypeVar("RowT", ChangeRow, AccessRow)


def build_outline(plan: Plan, *, has_ids: bool = True) -> Outline:
    """The rows of a plan, in its order. `has_ids`: whether ids stand beside the names of objects in values."""
    words = _Words(plan, has_ids=has_ids)
    numbers = {call.id: number for number, call in enumerate(plan.calls, start=1)}
    rows = Outline(
        stack=sanitize(plan.stack),
        rule_changes=tuple(_list_rule_changes(plan, words)),
        changes=_changes(plan, words),
        calls=tuple(_call(call, numbers) for call in plan.calls),
        problems=tuple(map(_problem, merge_repeated(plan.problems))),
        approvals=tuple(_approval(approval) for approval in plan.approvals),
        counts=Counter(change.action for change in plan.changes),
        additions=tuple(_addition(change, words) for change in plan.additions),
        unmanaged=dict(sorted(Counter(sanitize(kind) for kind, _ in plan.unmanaged).items())),
        forecast=plan.forecast,
        account=sanitize(plan.account),
        commit=sanitize(plan.commit),
        targets=tuple(sanitize(target) for target in plan.targets),
        excludes=tuple(sanitize(exclude) for exclude in plan.excludes),
        ignored=len(plan.ignored),
        ignored_until=tuple(
            sorted(
                {sanitize(ignored_difference.until) for ignored_difference in plan.ignored if ignored_difference.until}
            )
        ),
        base=_base(plan.base, words) if plan.base is not None else None,
        environment=sanitize(plan.environment),
        access=tuple(_list_access(plan)),
        failed_tests=tuple(
            sanitize(f"{result.test}: expected {result.expect}, found {result.outcome}: {result.decides}")
            for result in plan.failed_tests
        ),
        health=None if plan.health is None else tuple(map(_sanitize_health, plan.health)),
    )
    return attribute(rows) if rows.is_attributed else rows


def attribute(rows: Outline) -> Outline:
    """The rows with a cause. What has none counts as changed by the branch, which is shown first: everything in a plan
    that was not compared with a base, and a part in a plan file that was edited."""

    def fill(row: RowT) -> RowT:
        return row if rows.is_attributed and row.cause is not None else replace(row, cause=Cause.THIS_CHANGE)

    return replace(
        rows,
        changes=tuple(map(fill, rows.changes)),
        additions=tuple(map(fill, rows.additions)),
        access=tuple(map(fill, rows.access)),
    )


def _sanitize_health(row: HealthRow) -> HealthRow:
    health = replace(row.health, reason=sanitize(row.health.reason), advice=sanitize(row.health.advice))
    return HealthRow(sanitize(row.address), sanitize(row.id), health)


def _list_access(plan: Plan) -> Iterator[AccessRow]:
    """The entry points that change; those that one cause changes in the same way as one row."""
    groups: dict[object, list[AccessChange]] = {}
    for entry in plan.access:
        same = entry.verdict, entry.before, entry.after, entry.is_certain, entry.depends_on, entry.causes, entry.cause
        groups.setdefault(same, []).append(entry)
    order = [*Cause, None]
    for first, *more in sorted(groups.values(), key=lambda group: order.index(group[0].cause)):
        yield show_entry(first, more)


def show_entry(entry: AccessChange, more: Sequence[AccessChange] = ()) -> AccessRow:
    """The row of an entry point, and of others that change in the same way."""
    return AccessRow(
        sanitize(entry.entry_point),
        entry.verdict,
        sanitize(entry.before),
        sanitize(entry.after),
        sanitize(entry.witness),
        entry.is_certain,
        tuple(map(sanitize, entry.depends_on)),
        tuple(map(sanitize, entry.causes)),
        entry.cause,
        tuple(sanitize(other.entry_point) for other in more),
    )


def _explain_risks(plan: Plan) -> dict[str, set[Risk]]:
    """By address: the risks that changes of entry points show."""
    found: dict[str, set[Risk]] = {}
    for entry in plan.access:
        if (risk := entry.verdict.risk) is not None:
            for address in entry.causes:
                found.setdefault(address, set()).add(risk)
    return found


def _list_rule_changes(plan: Plan, words: _Words) -> Iterator[RuleRow]:
    missing = {(item.what, item.kind) for item in plan.missing_approvals}
    for change in plan.rule_changes:
        if change.before is not None and change.after is None and isinstance(change.before, str):
            values = sanitize(change.before)
        else:
            values = f"{words.line(change.before)} → {words.line(change.after)}"
        position = change.position
        yield RuleRow(
            change.risk,
            sanitize(change.rule),
            sanitize(change.subject),
            values,
            sanitize(f"{position.file}:{position.line}") if position is not None else "",
            (str(change.risk), change.rule) not in missing,
        )


def symbol(action: Action, order: Order | None) -> str:
    """The symbol of an action, as in Terraform: `+/-` creates before it deletes."""
    if action is Action.REPLACE:
        return "+/-" if order is Order.CREATE_FIRST else "-/+"
    return {Action.CREATE: "+", Action.UPDATE: "~", Action.DELETE: "-"}.get(action, "↷")


def _changes(plan: Plan, words: _Words) -> tuple[ChangeRow, ...]:
    """The changes, each with the deliveries of its calls."""
    if not plan.changes:
        return ()
    from reconciler.rendering.plan import deliveries  # deferred: most plans have no change

    by_address = {call.address: tuple(deliveries.describe(call.deliver)) for call in plan.calls if call.deliver}
    by_cause = _explain_risks(plan)
    rows = []
    for change in plan.changes:
        row = _change(change, words)
        if change.address in by_address and change.action in (Action.CREATE, Action.REPLACE):
            row = replace(row, deliveries=by_address[change.address])
        if (users := plan.users.get(change.address)) is not None:
            nearest = tuple(sanitize(str(user)) for user in users.nearest)
            row = replace(row, users=nearest, user_count=users.number)
        if by_entry := by_cause.get(str(change.address)):
            row = replace(row, access_risks=tuple(risk for risk in row.risks if risk in by_entry))
        rows.append(row)
    return tuple(rows)


def _change(change: Change, words: _Words) -> ChangeRow:
    from reconciler.rendering.plan import dns_records  # deferred, as above

    return ChangeRow(
        address=sanitize(str(change.address)),
        action=change.action,
        symbol=symbol(change.action, change.order),
        reason=change.reason,
        order=change.order,
        id=sanitize(change.id or ""),
        former=sanitize(str(change.former)) if change.former else "",
        risks=change.risks,
        protected=change.protected,
        position=sanitize(f"{change.position.file}:{change.position.line}") if change.position else "",
        fields=tuple(_field(field, words) for field in change.fields or _list_identity(change)),
        records=tuple(dns_records.describe(change)),
        parent=sanitize(str(change.parent)) if change.parent else "",
        is_pending=change.is_pending,
        cause=change.cause,
    )


def _addition(change: Change, words: _Words) -> ChangeRow:
    row = _change(change, words)
    return replace(row, fields=tuple(replace(field, is_kept=True) for field in row.fields))


def _cut_list(lines: Sequence[str]) -> tuple[str, ...]:
    """The first problems of the base: they are corrected there, not on this branch."""
    more = len(lines) - _MOST_OF_BASE
    return (*lines[:_MOST_OF_BASE], f"… and {count_more(more, 'problem')}") if more > 0 else tuple(lines)


def _problem(problem: Problem) -> ProblemRow:
    return ProblemRow(sanitize(str(problem)), problem.is_error, problem.severity is Severity.NOTE)


def _list_identity(change: Change) -> Iterator[FieldChange]:
    """The values that tell what a deleted object is, as fields that end."""
    return (FieldChange(name, value, None, cause=change.cause) for name, value in change.identity.items())


def _base(base: Base, words: _Words) -> BaseRow:
    return BaseRow(
        ref=sanitize(base.ref),
        commit=sanitize(base.commit[:_SHORT_COMMIT]),
        behind=base.behind,
        problems=_cut_list([sanitize(str(problem)) for problem in merge_repeated(base.problems)]),
        withdrawn=tuple(_change(change, words) for change in base.withdrawn),
    )


def _field(change: FieldChange, words: _Words) -> FieldRow:
    from reconciler.rendering.plan.differences import find_difference  # deferred, as above

    old, new = _both_values(change, words)
    return FieldRow(
        path=sanitize(change.path),
        old=old,
        new=new,
        diff=tuple(_diff(old.lines if old else (), new.lines if new else ())),
        changed_by=change.changed_by,
        forces_replacement=change.forces_replacement,
        position=sanitize(f"{change.position.file}:{change.position.line}") if change.position else "",
        cause=change.cause,
        difference=find_difference(change.old, change.new, words.line),
    )


def _both_values(change: FieldChange, words: _Words) -> tuple[DisplayValue | None, DisplayValue | None]:
    """Both values. Of PEM texts with the same certificates the texts themselves, so that the difference is shown."""
    old, new = (None if value is None else words.display(value) for value in (change.old, change.new))
    if old is None or new is None or old != new:
        return old, new
    written = words.as_written()
    old_text, new_text = written.display(change.old), written.display(change.new)
    return (old, new) if old_text == new_text else (old_text, new_text)  # equal: they differ in private keys


def _call(call: Call, numbers: Mapping[str, int]) -> CallRow:
    path = call.path
    if isinstance(path, Template):
        path = "".join(part if isinstance(part, str) else f"{{{part}}}" for part in path.parts)
    return CallRow(
        number=numbers[call.id],
        method=call.method,
        path=sanitize(path),
        address=sanitize(str(call.address)),
        needs=tuple(sorted(numbers[need] for need in call.needs if need in numbers)),
    )


def _approval(approval: Approval) -> ApprovalRow:
    flag, why = sanitize(approval.flag), sanitize(approval.why)
    return ApprovalRow(
        flag,
        why,
        approval.granted,
        approval.is_optional,
        approval.is_pending,
        sanitize(approval.what),
        approval.count,
        tuple(Named(sanitize(item.subject)) for item in approval.items),
        approval.is_of_access,
    )


def _diff(old: tuple[str, ...], new: tuple[str, ...]) -> Iterator[DiffLine]:
    matcher = difflib.SequenceMatcher(a=old, b=new, autojunk=False)
    for number, group in enumerate(matcher.get_grouped_opcodes(_CONTEXT)):
        if number:
            yield DiffLine("…", "")
        for tag, old_from, old_to, new_from, new_to in group:
            if tag == "equal":
                yield from (DiffLine(" ", line) for line in old[old_from:old_to])
                continue
            yield from (DiffLine("-", line) for line in old[old_from:old_to])
            yield from (DiffLine("+", line) for line in new[new_from:new_to])


class _Words:
    """Formats values, with the addresses of the objects whose ids the plan knows."""

    def __init__(self, plan: Plan, *, has_ids: bool = True) -> None:
        self._decodes = True
        self._resolved = plan.resolved
        observed = ((observed.id, str(address)) for address, observed in plan.observed.items())
        self._names = {id: name for id, name in observed if _OBJECT_ID.fullmatch(id)} | dict(plan.names)
        self._unique = frozenset[str]() if has_ids else self._list_unique()

    def _list_unique(self) -> frozenset[str]:
        """The names that tell an object from all others of the plan, without its id."""
        resolved = ((str(id), name.removesuffix(".id")) for name, id in self._resolved.items() if name.endswith(".id"))
        named = Counter(name for _, name in {*self._names.items(), *resolved})
        return frozenset(name for name, number in named.items() if number == 1)

    def _identify(self, name: str, id: str) -> str:
        """`IPPolicy/office (ipp_1)`; the name alone if that is sufficient, and ids are not wanted."""
        return sanitize(name) if name in self._unique else f"{sanitize(name)} ({sanitize(id)})"

    def as_written(self) -> _Words:
        """The same, but PEM text is not decoded."""
        words = copy(self)
        words._decodes = False
        return words

    def display(self, value: Value) -> DisplayValue:
        decoded = self._decode(value) if isinstance(value, str) else None
        if decoded is not None:
            return DisplayValue("; ".join(decoded), decoded, is_decoded=True)
        return DisplayValue(self.line(value), tuple(self.lines(value)))

    def _decode(self, text: str) -> tuple[str, ...] | None:
        """The certificates and public keys in a text, a line each; None if there are none."""
        if not self._decodes:
            return None
        from reconciler.rendering.plan import pem  # deferred, as above

        if pem.has_pem(text):
            return pem.describe(text)
        key = pem.describe_ssh_key(text)
        return None if key is None else (key,)

    def line(self, value: Value) -> str:
        """The whole value on one line."""
        match value:
            case Hidden(_, unread) if unread:
                return f"(sensitive, unknown: from {sanitize(unread)}, will be sent)"
            case Hidden() | Secret():
                return SENSITIVE
            case Ref():
                return self._reference(value)
            case Template(parts):
                return "".join(_quote(part) if isinstance(part, str) else self._reference(part) for part in parts)
            case None:
                return UNSET
            case bool():
                return "true" if value else "false"
            case str():
                name = self._names.get(value) if value else None
                if name is None and (decoded := self._decode(value)) is not None:
                    return "; ".join(decoded)
                return self._identify(name, value) if name else _quote(_conceal(value))
            case dict():
                return "{" + ", ".join(f"{sanitize(key)}: {self.line(value[key])}" for key in sorted(value)) + "}"
            case list() | tuple():
                return "[" + ", ".join(self.line(item) for item in value) + "]"
        return sanitize(str(value))

    def lines(self, value: Value) -> Iterator[str]:
        """The value on several lines: the lines of a text, items of a list or members of an object."""
        match value:
            case str() if "\n" in value:
                yield from self._decode(value) or map(_show_line, _conceal(value).removesuffix("\n").split("\n"))
            case dict() if value:
                for key in sorted(value):
                    yield from self._member(f"{sanitize(key)}:", value[key])
            case list() | tuple() if value:
                for item in value:
                    yield from self._item(item)
            case _:
                yield self.line(value)

    def _member(self, key: str, value: Value) -> Iterator[str]:
        line = self.line(value)
        if len(line) <= _SHORT or not (isinstance(value, (dict, list)) or (isinstance(value, str) and "\n" in value)):
            yield f"{key} {line}"
            return
        yield key
        yield from (f"  {line}" for line in self.lines(value))

    def _item(self, value: Value) -> Iterator[str]:
        line = self.line(value)
        if len(line) <= _SHORT or not isinstance(value, (dict, list)):
            yield line
            return
        first, *rest = self.lines(value)
        yield f"• {first}"
        yield from (f"  {line}" for line in rest)

    def _reference(self, ref: Ref) -> str:
        value = self._resolved.get(f"{ref.target}.{ref.output}")
        if value is None:
            return f"(known after apply: {sanitize(str(ref))})"
        if ref.output != "id":
            return f"{_quote(str(value))} ({sanitize(str(ref))})"
        return self._identify(str(ref.target), str(value))


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{sanitize(escaped)}"'


def _conceal(text: str) -> str:
    from reconciler.rendering.plan import pem  # deferred, as above

    return pem.conceal(text)


def _show_line(raw: str) -> str:
    """The sanitized line with spaces at its end written as `\\x20`, since they would be invisible."""
    line = sanitize(raw)
    text = line.rstrip(" ")
    return text + r"\x20" * (len(line) - len(text))


def format_value(value: Value) -> str:
    """A value on one line, sanitized and without secrets."""
    return _Words(Plan("")).line(value)
