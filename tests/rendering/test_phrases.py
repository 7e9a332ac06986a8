"""The sentences of a plan as tables: a row for each combination of the values that a sentence depends on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import pytest
from msgspec.structs import replace

from reconciler.model.access_change import AccessChange, Verdict
from reconciler.model.access_test import AccessResult, AccessStatus, Expected
from reconciler.model.address import Address
from reconciler.model.change import Action, Cause, Change, ChangedBy, FieldChange, Order, Reason, Risk
from reconciler.model.plan import Approval, ApprovalItem, Base, Plan
from reconciler.model.problem import Position, Severity
from reconciler.model.rule_change import RuleChange, RuleRisk
from reconciler.model.value import Hidden
from reconciler.rendering.plan import access_drift, needs, phrases
from reconciler.rendering.plan.outline import ApprovalRow, ChangeRow, Named, Outline, Variant, build_outline
from reconciler.rendering.plan.phrases import Flavour
from tests.rendering.test_text import compare

AT = Position("a.yaml", 1, 1)
PARENT, OTHER = Address("IPPolicy", "office"), Address("IPPolicyRule", "lan")
CAUSES: tuple[Cause | None, ...] = (None, *Cause)


def rows(**parts: object) -> Outline:
    return build_outline(Plan("prod", **parts))  # type: ignore[arg-type]


def row_of(change: Change) -> ChangeRow:
    return rows(changes=(change,)).changes[0]


def update(*fields: FieldChange, **parts: object) -> ChangeRow:
    return row_of(replace(Change(OTHER, Action.UPDATE, Reason.FIELDS, fields=fields), **parts))


def by(*causes: ChangedBy) -> tuple[FieldChange, ...]:
    return tuple(FieldChange(f"f{place}", 1, 2, cause) for place, cause in enumerate(causes))


def table(name: str, lines: Iterator[str]) -> None:
    compare(f"phrases/{name}.txt", "".join(f"{line}\n" for line in lines))


def test_each_reason_is_described_for_each_action() -> None:
    def list_lines() -> Iterator[str]:
        for reason, action in product(Reason, Action):
            change = Change(OTHER, action, reason, fields=by(ChangedBy.GIT))
            plan, drift = (phrases.reason(row_of(change), flavour) for flavour in Flavour)
            yield f"{reason.name} {action}: {plan} | {drift}"
        immutable = Change(OTHER, Action.REPLACE, Reason.IMMUTABLE, order=Order.CREATE_FIRST)
        for number, order in product((0, 1, 3, 4, 5), (None, *Order)):
            fields = tuple(FieldChange(f"f{place}", 1, 2, forces_replacement=True) for place in range(number))
            row = row_of(replace(immutable, order=order, fields=fields))
            yield f"{number} {order}: {phrases.reason(row, Flavour.PLAN)}"
        for reason in Reason:
            change = Change(OTHER, Action.DELETE, reason, parent=PARENT, is_pending=True, order=Order.DELETE_FIRST)
            plan, drift = (phrases.reason(row_of(change), flavour, "«{}»".format) for flavour in Flavour)
            yield f"{reason.name} in a parent, pending: {plan} | {drift}"

    table("reasons", list_lines())


def test_the_notes_of_a_field_name_its_cause() -> None:
    def list_lines() -> Iterator[str]:
        fields = product((True, False), ChangedBy, CAUSES)
        for (forces, changed_by, cause), action in product(fields, (Action.UPDATE, Action.DELETE)):
            field = FieldChange("f", 1, 2, changed_by, forces, cause=cause)
            (row,) = rows(changes=(Change(OTHER, action, Reason.FIELDS, fields=(field,)),)).changes
            for own in (None, Cause.THIS_CHANGE, Cause.DRIFT):
                plan, drift = (phrases.notes(replace(row, cause=own), row.fields[0], flavour) for flavour in Flavour)
                if plan or drift:
                    yield f"{forces} {changed_by.name} {cause} in {action} {own}: {plan} | {drift}"

    table("notes", list_lines())


VALUES = (
    None,
    "a",
    "b",
    "one\ntwo\n",
    "one\nthree\n",
    [1, 2],
    [2, 3],
    {"k": 1, "l": 2},
    {"k": 1},
    Hidden("x"),
    Hidden("y"),
)


def test_the_values_of_a_field() -> None:
    def list_lines() -> Iterator[str]:
        for old, new in product(VALUES, VALUES):
            if type(old) is not type(new) and None not in (old, new):
                continue
            row = update(FieldChange("f", old, new, ChangedBy.GIT))
            (field,) = row.fields
            both = [phrases.values(field, flavour) for flavour in Flavour]
            explained = [phrases.explain(row, field, flavour) for flavour in Flavour]
            whole = phrases.explain(replace(row, action=Action.CREATE), field, Flavour.PLAN)
            child = phrases.explain(replace(row, parent="IPPolicy/office"), field, Flavour.DRIFT)
            yield f"{old!r} {new!r}: {' | '.join(both)}"
            yield f"  {' | '.join([*explained, whole, child])}"
            for kept in (False, True):
                lines = phrases.diff(replace(field, is_kept=kept), Flavour.PLAN)
                yield f"  {'kept' if kept else 'diff'}: {' / '.join(f'{line.sign}{line.text}' for line in lines)}"

    table("values", list_lines())


def test_a_resource_has_the_cause_of_its_fields() -> None:
    def list_lines() -> Iterator[str]:
        several = [causes for number in range(3) for causes in product(ChangedBy, repeat=number)]
        for causes in [*several, (ChangedBy.GIT, ChangedBy.FOLLOWS, ChangedBy.UNKNOWN)]:
            yield f"{' '.join(cause.name for cause in causes)}: {phrases.find_cause(update(*by(*causes))).name}"
        for reason in Reason:
            found = update(*by(ChangedBy.PLATFORM), reason=reason)
            pending = phrases.find_cause(replace(found, is_pending=True))
            yield f"{reason.name}: {phrases.find_cause(found).name}, pending {pending.name}"

    table("causes", list_lines())


def entry(verdict: Verdict, **parts: object) -> AccessChange:
    made = AccessChange("https://a", verdict, "office", "everyone", "`GET /`", True, ("IPPolicyRule/lan",), "d")
    return replace(made, **parts)


def test_a_change_of_access_for_each_verdict() -> None:
    def list_lines() -> Iterator[str]:
        for verdict, is_certain, cause in product(Verdict, (True, False), CAUSES):
            change = entry(verdict, is_certain=is_certain, cause=cause, depends_on=() if is_certain else ("x", "y"))
            seen = rows(access=(change,), base=Base("main", "c"))
            (row,) = seen.access
            yield f"{verdict.name} {is_certain} {cause}"
            yield f"  {phrases.describe_access(row, '«{}»'.format, '*{}*'.format)} | {phrases.count_access(seen)}"
            yield f"  {'; '.join(phrases.explain_access(row))} | grave {phrases.is_grave(row)}"
            yield f"  {access_drift.describe(seen, row, '«{}»'.format, '*{}*'.format)}"
            yield f"  {access_drift.headline(seen)}"
            yield from (f"  {need.text} {need.is_severe} {need.details}" for need in needs.list_needs(seen, str))
        for parts in (
            {"before": "everyone"},
            {"witness": ""},
            {"causes": ()},
            {"causes": tuple("abcd")},
            {"causes": tuple("abcde")},
        ):
            seen = rows(access=(entry(Verdict.WIDENS, **parts),))
            yield f"{parts}: {'; '.join(phrases.explain_access(seen.access[0]))}"
            yield f"  without states: {'; '.join(phrases.explain_access(seen.access[0], with_states=False))}"
            yield f"  {access_drift.describe(seen, seen.access[0])}"
            yield f"  {access_drift.headline(seen)}"
        reasons = {Reason.ADDED: Action.DELETE, Reason.VANISHED: Action.CREATE, Reason.DECLARED: Action.CREATE}
        for reason, action in reasons.items():
            for part in ("changes", "additions"):
                seen = rows(access=(entry(Verdict.CLOSES),), **{part: (Change(OTHER, action, reason),)})
                yield f"{reason.name} in {part}: {access_drift.describe(seen, seen.access[0])}"
        for number in range(1, 4):
            several = tuple(entry(Verdict.WIDENS, entry_point=f"https://{place}") for place in range(number))
            mixed = (*several, entry(Verdict.NARROWS), entry(Verdict.EXPOSES))
            yield f"{number}: {' | '.join(access_drift.headline(rows(access=some)) for some in (several, mixed))}"
        failed = [
            AccessResult(f"GET /{n}", AccessStatus.FAILED, Expected.DENY, Expected.ALLOW, "", AT) for n in range(3)
        ]
        yield from (f"{n} failed: {access_drift.name_failed_test(failed[:n])}" for n in range(4))

    table("access", list_lines())


def test_the_totals_of_drift() -> None:
    def list_lines() -> Iterator[str]:
        change = Change(OTHER, Action.UPDATE, Reason.FIELDS, fields=by(ChangedBy.PLATFORM))
        pending = replace(change, is_pending=True)
        added = Change(OTHER, Action.DELETE, Reason.ADDED, parent=PARENT)
        failed = AccessResult("t", AccessStatus.FAILED, Expected.DENY, Expected.ALLOW, "", AT)
        only_warns = replace(failed, severity=Severity.WARNING)
        for parts in product((0, 1), (0, 1), (0, 1, 2), (0, 1, 2), ((), ("TLSEdge/*",))):
            changes, additions, waiting, tests, targets = parts
            seen = rows(
                changes=(change,) * changes + (pending,) * waiting,
                additions=(added,) * additions,
                access_tests=(failed,) * tests + (only_warns,),
                targets=targets,
            )
            yield f"{parts}: {phrases.verdict(seen, Flavour.DRIFT, 9)} | {phrases.verdict(seen, Flavour.DRIFT)}"
        for targets, excludes in product(((), ("a",)), ((), ("b",))):
            seen = rows(targets=targets, excludes=excludes)
            for resources in (None, 0, 2, phrases.Selected(0, of=0), phrases.Selected(1, of=2)):
                plan, drift = (phrases.verdict(seen, flavour, resources) for flavour in Flavour)
                yield f"{targets} {excludes} {resources}: {plan} | {drift}"

    table("drift", list_lines())


@pytest.mark.parametrize(
    ("environments", "others", "covers"),
    [("", "", True), ("", "a", True), ("a", "", False), ("ab", "a", True), ("a", "ab", False), ("a", "b", False)],
)
def test_environments_cover_others(environments: str, others: str, covers: bool) -> None:
    assert phrases._covers(tuple(environments), tuple(others)) is covers


def test_a_risk_that_an_approval_states_is_reported_once() -> None:
    """Unless the change delivers a secret, whose commands have to be read."""
    risks = (Risk.IRREVERSIBLE, Risk.INTERRUPTS_TRAFFIC)
    row = update(risks=risks)
    delivering = Variant(("prod",), deliveries=("token will be delivered",))
    approval = ApprovalRow("", Risk.IRREVERSIBLE.text, False, subjects=(Named(row.address),))

    def list_left(row: ChangeRow, *approvals: ApprovalRow) -> tuple[Risk, ...]:
        return next(phrases.without_approved_risks([row], approvals)).risks

    assert list_left(row) == risks
    assert list_left(row, approval) == risks[1:]
    assert list_left(row, replace(approval, why="another reason")) == risks
    assert list_left(row, replace(approval, subjects=(Named("BotUser/x"),))) == risks
    assert list_left(replace(row, deliveries=("token",)), approval) == risks
    assert list_left(replace(row, variants=(delivering,)), approval) == risks
    assert list_left(replace(row, variants=(replace(delivering, deliveries=()),)), approval) == risks[1:]
    assert list_left(row, replace(approval, subjects=(Named(row.address, ("prod",)),))) == risks
    in_prod = replace(row, environments=("prod",))
    assert list_left(in_prod, replace(approval, subjects=(Named(row.address, ("prod", "dev")),))) == risks[1:]


def test_changes_are_in_the_order_of_their_risks() -> None:
    parts: Sequence[tuple[str, tuple[Risk, ...], Action, bool]] = [
        ("none", (), Action.UPDATE, False),
        ("deleted", (), Action.DELETE, False),
        ("protected", (), Action.UPDATE, True),
        ("protected-deleted", (), Action.DELETE, True),
        *((risk.name.lower().replace("_", "-"), (risk,), Action.UPDATE, False) for risk in reversed(Risk)),
        ("both", (Risk.IRREVERSIBLE, Risk.WIDENS_ACCESS), Action.UPDATE, False),
        ("irreversible-deleted", (Risk.IRREVERSIBLE,), Action.DELETE, False),
        ("again", (Risk.IRREVERSIBLE,), Action.UPDATE, False),
        ("told", (Risk.IRREVERSIBLE,), Action.UPDATE, False),
        ("told-in-prod", (Risk.IRREVERSIBLE,), Action.UPDATE, False),
    ]
    seen = [
        row_of(Change(Address("BotUser", name), action, Reason.FIELDS, risks=risks, protected=protected))
        for name, risks, action, protected in parts
    ]
    seen[-2] = replace(seen[-2], deliveries=("token",))
    variant = Variant(("prod",), deliveries=("token",), risks=(Risk.LOCKS_OUT,), access_risks=(Risk.LOCKS_OUT,))
    seen[-1] = replace(seen[-1], variants=(variant, Variant(("dev",), records=("DNS",))))

    def list_lines() -> Iterator[str]:
        yield "by severity: " + ", ".join(row.address for row in phrases.sort_by_severity(seen))
        yield "deletions first: " + ", ".join(row.address for row in phrases.sort_deletions_first(seen))
        for row in seen:
            yield f"{row.address}: {[(risk.text, risk.name, risk.is_severe) for risk in phrases.weigh_risks(row)]}"
        for group in phrases.group_by_risks(seen):
            yield "group: " + ", ".join(row.address for row in group)
        for row in phrases.spread_risks(seen[-3:]):
            risks, others, of_access = (
                [risk.name for risk in some] for some in (row.risks, row.other_risks, row.access_risks)
            )
            yield f"spread: {row.address} {row.environments} {risks} {others} {of_access}"
            yield f"  {row.deliveries} {row.protected} {len(row.variants)}"

    table("risks", list_lines())


def test_equal_changes_of_rules_are_one() -> None:
    def list_lines() -> Iterator[str]:
        for number in range(1, 6):
            changes = tuple(
                RuleChange(RuleRisk.LOOSENS, "guards", f"guards.x{place}", 1, 2, "d", Position("a.yaml", place + 1, 1))
                for place in range(number)
            )
            other = RuleChange(RuleRisk.PLACE, "policy", "policy/a", "everywhere", None, "d")
            for approvals in (
                (),
                (Approval("loosens_rule", "guards", 1, "", items=(ApprovalItem("guards.x0", "", "d"),)),),
            ):
                for row in phrases.group_rule_changes(
                    rows(rule_changes=(*changes, other), approvals=approvals).rule_changes
                ):
                    sentence = phrases.describe_rule_change(row, "«{}»".format)
                    yield f"{number}: {sentence} at {row.position or 'no place'}"

    table("rules", list_lines())


def test_the_subjects_of_an_approval() -> None:
    def list_lines() -> Iterator[str]:
        flags = product((False, True), repeat=3)
        for granted, optional, pending in flags:
            row = ApprovalRow("--allow x", "why", granted, optional, pending)
            yield f"{granted} {optional} {pending}: {phrases.approval(row)} | {phrases.rank_approval(row)}"
        names = tuple(Named(f"BotUser/b{place}", ("prod",) * (place % 2)) for place in range(1200))
        for number, most in product((0, 1, 2, 3, 4, 5, 1200), (0, 1, 3)):
            row = ApprovalRow(
                "", "why", False, what="delete", count=1234, subjects=names[:number], environments=("dev",)
            )
            yield f"{number} of at most {most}: {phrases.name_subjects(row, most, '«{}»'.format)}"
        yield phrases.name_subjects(ApprovalRow("", "", False, subjects=(Named("a"), Named("*"))), 3)
        everything = ApprovalRow("", "why", False, what="delete", count=1234, subjects=(Named("*"),))
        yield phrases.name_subjects(everything, 3)
        yield phrases.name_subjects(replace(everything, environments=("dev", "prod")), 3, "«{}»".format)

    table("approvals", list_lines())


def test_pending_changes_are_last_in_drift() -> None:
    seen = [update(is_pending=is_pending, id=str(place)) for place, is_pending in enumerate((True, False, True, False))]
    assert [row.id for row in phrases.sort_pending_last(seen, Flavour.DRIFT)] == ["1", "3", "0", "2"]
    assert phrases.sort_pending_last(seen, Flavour.PLAN) == seen
