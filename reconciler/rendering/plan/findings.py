"""Annotations of a plan at lines of manifests: problems, missing approvals, risks and changes.

`sarif` and `ci_annotations` write them in their formats. The most severe come first, since viewers show only some:
what blocks the plan, then deletions, then the other changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from reconciler.model.access_change import Verdict
from reconciler.model.change import Action, Cause, Risk
from reconciler.model.plan import Plan
from reconciler.model.problem import Position, Severity, merge_repeated
from reconciler.model.rule_change import RuleRisk
from reconciler.rendering.plan import access_drift, phrases
from reconciler.rendering.plan.excerpts import excerpts
from reconciler.rendering.plan.outline import ChangeRow, DiffLine, DisplayValue, FieldRow, build_outline
from reconciler.rendering.plan.phrases import Flavour
from reconciler.rendering.terminal_text import cut, sanitize
from reconciler.rendering.text_tools import count, count_omitted

_NAMED = 3  # resources that a finding about an approval names
_LONGEST = 200  # cells of a value: a finding is cut at 1000 characters, and has old and new values


class Level(StrEnum):
    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Rule(Struct, frozen=True):
    """A type of finding: a stable id for programs, a text for people."""

    id: str
    text: str
    level: Level


RULES_CHANGED = {
    RuleRisk.LOOSENS: Rule("loosens-rule", "The branch loosens a rule that judges it", Level.ERROR),
    RuleRisk.PLACE: Rule("changes-where-it-applies", "The branch changes where it applies", Level.ERROR),
}
RULES_APPROVED = {risk: Rule(f"{rule.id}-approved", rule.text, Level.WARNING) for risk, rule in RULES_CHANGED.items()}
PROBLEM = Rule("problem", "The plan has an error", Level.ERROR)
POLICY = Rule("policy", "A project policy is violated", Level.ERROR)
ADVICE = Rule("policy-warning", "A project policy with `severity: warning` is violated", Level.WARNING)
WARNING = Rule("warning", "The plan has a warning", Level.WARNING)
APPROVAL = Rule("approval", "The plan is blocked until the change is approved", Level.ERROR)
RISKS = {
    Risk.WIDENS_ACCESS: Rule("widens-access", "More people, addresses or programs will have access", Level.WARNING),
    Risk.LOCKS_OUT: Rule("locks-out", "No one will get through an entry point that stays", Level.WARNING),
    Risk.EXPOSES: Rule("exposes", "A host and port without a way in will have one", Level.WARNING),
    Risk.IRREVERSIBLE: Rule("irreversible", "The deleted object cannot be recovered", Level.WARNING),
    Risk.LEAVES_DNS_RECORD: Rule(
        "leaves-dns-record", "DNS will point to a released name, which others may take over", Level.WARNING
    ),
    Risk.INTERRUPTS_TRAFFIC: Rule("interrupts-traffic", "Live traffic will be interrupted", Level.WARNING),
    Risk.RUNS_COMMAND: Rule("runs-command", "A command will run and receive a one-time secret", Level.WARNING),
    Risk.ISSUES_CREDENTIAL: Rule("issues-credential", "A one-time secret will be issued", Level.WARNING),
    Risk.DISABLES_AGENT: Rule("disables-agent", "Agents will lose their access", Level.WARNING),
    Risk.ADDED: Rule(
        "added-on-platform", "A child of a managed object was added on the platform and is not declared", Level.WARNING
    ),
}
ACCESS = {
    Verdict.NARROWS: Rule("narrows-access", "An entry point will refuse requests that it let through", Level.NOTE),
    Verdict.CLOSES: Rule("closes", "An entry point will be no way in any more", Level.NOTE),
}
DRIFTED_ACCESS = {
    Verdict.WIDENS: Rule("access-widened", "Access was widened on the platform", Level.ERROR),
    Verdict.EXPOSES: Rule("way-in-opened", "A new way in was opened on the platform", Level.ERROR),
    Verdict.LOCKS_OUT: Rule("everyone-locked-out", "Everyone was locked out on the platform", Level.ERROR),
    Verdict.NARROWS: Rule("access-narrowed", "Access was narrowed on the platform", Level.WARNING),
    Verdict.CLOSES: Rule("way-in-closed", "A way in was closed on the platform", Level.WARNING),
}
PROTECTED = Rule("protected", "A protected resource will be changed", Level.WARNING)
BASE = Rule("base", "The changes are not attributed to the reviewed commits", Level.WARNING)
BEFORE = {
    Cause.PENDING: Rule("pending-before", "Pending before this branch: in Git, not applied yet", Level.NOTE),
    Cause.DRIFT: Rule("drift-before", "Drift: changed on the platform, not by this branch", Level.NOTE),
}
NOTE = Rule("note", "The plan has a note", Level.NOTE)
CHANGE = Rule("change", "The platform differs from the manifests", Level.NOTE)
DRIFT = Rule("drift", "The platform changed since the last apply", Level.WARNING)
RULES = (
    *DRIFTED_ACCESS.values(),
    *RULES_CHANGED.values(),
    *RULES_APPROVED.values(),
    PROBLEM,
    POLICY,
    APPROVAL,
    *RISKS.values(),
    PROTECTED,
    ADVICE,
    WARNING,
    BASE,
    DRIFT,
    *ACCESS.values(),
    CHANGE,
    *BEFORE.values(),
    NOTE,
)  # the most severe first
_FIRST = frozenset({*DRIFTED_ACCESS.values(), *RULES_CHANGED.values(), *RULES_APPROVED.values()})
_BLOCKING = frozenset({PROBLEM, POLICY, APPROVAL})
_LAST = frozenset({*BEFORE.values(), NOTE})


class Finding(Struct, frozen=True):
    """An annotation.

    file   empty, with line and column 1, if no manifest mentions the subject
    brief  the text with long values cut to where they differ; empty if nothing is cut
    """

    rule: Rule
    text: str
    subject: str  # an address, a kind or a path
    file: str = ""
    line: int = 1
    column: int = 1
    brief: str = ""
    code: str = ""  # of a problem
    deliveries: tuple[str, ...] = ()  # in full, since `text` may be cut
    cause: Cause | None = None  # None: not a change, or the plan was not compared with a base
    is_deletion: bool = False

    @property
    def message(self) -> str:
        return self.brief or self.text

    @property
    def id(self) -> str:
        """The code of a problem, else the id of the rule."""
        return self.code or self.rule.id

    @property
    def level(self) -> Level:
        return self.rule.level


def list_findings(plan: Plan, *, flavour: Flavour = Flavour.PLAN, prefix: str = "") -> list[Finding]:
    """All findings, the most severe first. `prefix`: the project's folder below the repository's root."""
    findings = [*_base(plan), *_problems(plan), *_changes(plan, flavour)]
    if flavour is Flavour.PLAN:
        findings += [*_rule_changes(plan), *_access(plan), *_approvals(plan)]
    else:
        findings += _access_drift(plan)
    findings = [replace(finding, file=f"{prefix}{finding.file}") if finding.file else finding for finding in findings]
    return sorted(findings, key=_rank)


def limit_findings(findings: Sequence[Finding], most: int) -> list[Finding]:
    """At most so many findings, and a note that counts the others."""
    if (more := len(findings) - most) <= 0:
        return [*findings]
    return [*findings[:most], Finding(NOTE, count_omitted(more, "finding"), "")]


def _rank(item: Finding) -> tuple[object, ...]:
    stage = -1 if item.rule in _FIRST else 0 if item.rule in _BLOCKING else 2 if item.rule in _LAST else 1
    return (stage, not item.is_deletion, RULES.index(item.rule), item.file, item.line, item.column, item.subject)


def _problems(plan: Plan) -> Iterator[Finding]:
    for problem in merge_repeated(plan.problems):
        text = sanitize(problem.text + (f"; {problem.remedy}" if problem.remedy else ""))
        rule, policy_rule = (PROBLEM, POLICY) if problem.is_error else (WARNING, ADVICE)
        rule = policy_rule if problem.rule else NOTE if problem.severity is Severity.NOTE else rule
        yield _place(Finding(rule, text, sanitize(problem.subject), code=sanitize(problem.code)), problem.position)


def _base(plan: Plan) -> Iterator[Finding]:
    """Why the changes are not attributed. Positions in the base commit are part of the text only."""
    base = build_outline(plan).base
    if base is not None and (text := phrases.describe_base(base)):
        yield Finding(BASE, "; ".join([text.removesuffix("."), *base.problems]), base.ref)


def _rule_changes(plan: Plan) -> Iterator[Finding]:
    """The rules that the branch loosens: also those that are approved, since others may have approved them."""
    for change, row in zip(plan.rule_changes, build_outline(plan).rule_changes, strict=True):
        rule = (RULES_APPROVED if row.granted else RULES_CHANGED)[row.risk]
        brief = phrases.describe_rule_change(replace(row, values=cut(row.values, _LONGEST)))
        yield _place(Finding(rule, phrases.describe_rule_change(row), row.subject, brief=brief), change.position)


def _approvals(plan: Plan) -> Iterator[Finding]:
    rows = build_outline(plan).missing_approvals
    for approval, row in zip(plan.missing_approvals, rows, strict=True):
        if approval.what in map(str, RuleRisk):
            continue  # the rule has a finding of its own
        remedy = phrases.IN_GIT if row.subjects else phrases.NOT_IN_GIT
        text = f"Approval required: {phrases.name_subjects(row, _NAMED)}: {row.why}; {remedy}"
        yield Finding(APPROVAL, text, sanitize(approval.kind))


def _access(plan: Plan) -> Iterator[Finding]:
    """The entry points that let other requests through, at the first of the resources that cause it."""
    positions = {sanitize(str(change.address)): change.position for change in plan.changes}
    for row in build_outline(plan).access:
        rule = RISKS[row.verdict.risk] if row.verdict.risk is not None else ACCESS[row.verdict]
        if row.cause in BEFORE:
            rule = BEFORE[row.cause]
        more = f"; also {len(row.more):,} more entry points" if len(row.more) > 1 else f"; also {''.join(row.more)}"
        text = "; ".join([phrases.describe_verdict(row), *phrases.explain_access(row)]) + more * bool(row.more)
        short = replace(row, before=cut(row.before, _LONGEST), after=cut(row.after, _LONGEST))
        brief = "; ".join([phrases.describe_verdict(row), *phrases.explain_access(short)]) + more * bool(row.more)
        places = (positions.get(address) for address in row.causes)
        finding = Finding(rule, text, row.entry_point, brief=brief, cause=row.cause)
        yield _place(finding, next(filter(None, places), None))


def _access_drift(plan: Plan) -> Iterator[Finding]:
    """The entry points that the platform's changes open or close, at the first of the resources that cause it."""
    positions = {sanitize(str(change.address)): change.position for change in (*plan.additions, *plan.changes)}
    rows = build_outline(plan)
    for row in rows.access:
        more = f"; also {count(len(row.more), 'more entry point')}" if row.more else ""
        short = replace(row, before=cut(row.before, _LONGEST), after=cut(row.after, _LONGEST))
        text, brief = (
            "; ".join([access_drift.describe(rows, part), *access_drift.explain(part)]) + more for part in (row, short)
        )
        places = (positions.get(address) for address in row.causes)
        finding = Finding(DRIFTED_ACCESS[row.verdict], text, row.entry_point, brief=brief)
        yield _place(finding, next(filter(None, places), None))


def _changes(plan: Plan, flavour: Flavour) -> Iterator[Finding]:
    rows = build_outline(plan)
    for change, row in zip(plan.additions, rows.additions, strict=True):
        brief = _describe(replace(row, fields=tuple(map(_cut, row.fields))), Flavour.DRIFT)
        rule = RISKS[Risk.ADDED] if row.cause is None else BEFORE.get(row.cause, RISKS[Risk.ADDED])
        finding = Finding(rule, _describe(row, Flavour.DRIFT), row.address, brief=brief, cause=row.cause)
        yield _place(finding, change.position)
    for change, row in zip(plan.changes, rows.changes, strict=True):
        text = _describe(row, flavour)
        brief = _describe(replace(row, fields=tuple(map(_cut, row.fields))), flavour)
        if flavour is Flavour.DRIFT:
            rule = CHANGE if change.is_pending else DRIFT
            finding = Finding(rule, text, row.address, brief=brief, is_deletion=change.action is Action.DELETE)
            yield _place(finding, change.position)
            continue
        rules = [RISKS[risk] for risk in row.other_risks] + ([PROTECTED] if row.protected else [])
        if row.cause in BEFORE:
            rules = [BEFORE[row.cause]]
        for rule in rules or [CHANGE]:
            begin = f"{rule.text}: " if rule is not CHANGE else ""
            finding = Finding(
                rule,
                begin + text,
                row.address,
                brief=begin + brief,
                deliveries=row.deliveries,
                cause=row.cause,
                is_deletion=change.action is Action.DELETE,
            )
            yield _place(finding, change.position)


def _describe(row: ChangeRow, flavour: Flavour) -> str:
    """`will be updated in place: min_version: "1.2" → "1.3"`"""
    fields = []
    for field in row.fields:
        notes = phrases.notes(row, field, flavour)
        fields.append(
            f"{field.path}: {phrases.explain(row, field, flavour)}" + (f" ({', '.join(notes)})" if notes else "")
        )
    fields[:0] = phrases.details(row, flavour)
    return ": ".join([phrases.reason(row, flavour), *(["; ".join(fields)] if fields else [])])


def _cut(row: FieldRow) -> FieldRow:
    """The row with long values cut to where they differ."""
    both = [DiffLine(sign, value.line) for sign, value in (("-", row.old), ("+", row.new)) if value]
    cut = {line.sign: DisplayValue(text, ()) for line, text in zip(both, excerpts(both, _LONGEST), strict=True)}
    return replace(row, old=cut.get("-"), new=cut.get("+"))


def _place(finding: Finding, position: Position | None) -> Finding:
    if position is None:
        return finding
    return replace(finding, file=sanitize(position.file), line=position.line, column=position.column)
