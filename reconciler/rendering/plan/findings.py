"""What of a plan is worth a mark beside a line of a manifest: problems, withheld consents, risks, and each change.

Knows no format; `sarif` and `ci_annotations` spell it. The gravest come first, since some readers show only so many.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from reconciler.model.change import Risk
from reconciler.model.plan import Plan
from reconciler.model.problem import Position, Severity
from reconciler.rendering.plan import phrases
from reconciler.rendering.plan.excerpts import excerpts
from reconciler.rendering.plan.outline import ChangeRow, DiffLine, FieldRow, Shown, build_outline
from reconciler.rendering.plan.phrases import Flavour
from reconciler.rendering.terminal_text import sanitize

_LONGEST = 200  # cells of a value: a finding is cut at 1000 characters, and new values stand behind old ones


class Level(StrEnum):
    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Rule:
    """A sort of finding: its id is for machines and stays, its text is for people."""

    id: str
    text: str
    level: Level


PROBLEM = Rule("problem", "The manifests and the platform do not fit together", Level.ERROR)
POLICY = Rule("policy", "A policy of the project is broken", Level.ERROR)
ADVICE = Rule("policy-warning", "A policy of the project is broken, and only warns", Level.WARNING)
WARNING = Rule("warning", "Something should be looked at", Level.WARNING)
APPROVAL = Rule("consent", "A guard holds the plan back until this is allowed by name", Level.ERROR)
RISKS = {
    Risk.COMMAND: Rule("runs-a-command", "A command will run, and gets a one-time secret", Level.WARNING),
    Risk.GONE: Rule("cannot-be-had-back", "What is deleted cannot be had back", Level.WARNING),
    Risk.TRAFFIC: Rule("breaks-live-traffic", "Live traffic is interrupted", Level.WARNING),
    Risk.ADDED: Rule(
        "added-on-platform", "A child of an owned object was added on the platform, and is not declared", Level.WARNING
    ),
    Risk.TOKEN: Rule("token-will-be-issued", "A one-time secret will be issued", Level.WARNING),
}
PROTECTED = Rule("protected", "A protected object is touched", Level.WARNING)
NOTE = Rule("note", "Good to know", Level.NOTE)
CHANGE = Rule("change", "The platform differs from what is declared", Level.NOTE)
DRIFT = Rule("drift", "The platform moved since the last apply", Level.WARNING)
RULES = (PROBLEM, POLICY, APPROVAL, *RISKS.values(), PROTECTED, ADVICE, WARNING, DRIFT, CHANGE, NOTE)  # gravest first


@dataclass(frozen=True, slots=True)
class Finding:
    """`file` is empty, and line and column are 1, where nothing is written of it any more.

    `brief` is the text with what is long in it cut to where it differs; empty if that is all of it.
    """

    rule: Rule
    text: str
    subject: str  # an address, or what else it is about
    file: str = ""
    line: int = 1
    column: int = 1
    brief: str = ""
    code: str = ""  # as of a Problem
    deliveries: tuple[str, ...] = ()  # whole, where `text` may be shown in part

    @property
    def shown(self) -> str:
        return self.brief or self.text

    @property
    def id(self) -> str:
        """What machines call it: the code of a problem, else the rule."""
        return self.code or self.rule.id

    @property
    def level(self) -> Level:
        return self.rule.level


def findings(plan: Plan, *, flavour: Flavour = Flavour.PLAN, prefix: str = "") -> list[Finding]:
    """All of them, the gravest first. `prefix`: the folder of the project below the repository's root."""
    found = [*_problems(plan), *_changes(plan, flavour)]
    if flavour is Flavour.PLAN:
        found += _consents(plan)
    found = [replace(finding, file=f"{prefix}{finding.file}") if finding.file else finding for finding in found]
    return sorted(found, key=lambda each: (RULES.index(each.rule), each.file, each.line, each.column, each.subject))


def _problems(plan: Plan) -> Iterator[Finding]:
    for problem in plan.problems:
        text = sanitize(problem.text + (f"; {problem.remedy}" if problem.remedy else ""))
        ours, theirs = (PROBLEM, POLICY) if problem.is_error else (WARNING, ADVICE)
        ours = NOTE if problem.severity is Severity.NOTE else ours
        rule = theirs if problem.rule else ours
        yield _placed(Finding(rule, text, sanitize(problem.subject), code=sanitize(problem.code)), problem.position)


def _consents(plan: Plan) -> Iterator[Finding]:
    for consent in plan.missing_approvals:
        yield Finding(APPROVAL, sanitize(f"{consent.why}; allow it with {consent.flag}"), sanitize(consent.kind))


def _changes(plan: Plan, flavour: Flavour) -> Iterator[Finding]:
    rows = build_outline(plan)
    for change, row in zip(plan.additions, rows.additions, strict=True):
        brief = _told(row._replace(fields=tuple(map(_cut, row.fields))), Flavour.DRIFT)
        rule = RISKS[Risk.ADDED]
        yield _placed(Finding(rule, _told(row, Flavour.DRIFT), row.address, brief=brief), change.position)
    for change, row in zip(plan.changes, rows.changes, strict=True):
        text = _told(row, flavour)
        brief = _told(row._replace(fields=tuple(map(_cut, row.fields))), flavour)
        if flavour is Flavour.DRIFT:
            rule = CHANGE if change.is_pending else DRIFT
            yield _placed(Finding(rule, text, row.address, brief=brief), change.position)
            continue
        rules = [RISKS[risk] for risk in row.risks] + ([PROTECTED] if row.protected else [])
        for rule in rules or [CHANGE]:
            begin = f"{rule.text}: " if rule is not CHANGE else ""
            found = Finding(rule, begin + text, row.address, brief=begin + brief, deliveries=row.deliveries)
            yield _placed(found, change.position)


def _told(row: ChangeRow, flavour: Flavour) -> str:
    """`update: fields differ: min_version: "1.2" → "1.3"`"""
    fields = []
    for field in row.fields:
        notes = phrases.notes(row, field, flavour)
        fields.append(f"{field.path}: {phrases.values(field, flavour)}" + (f" ({', '.join(notes)})" if notes else ""))
    fields[:0] = phrases.deliveries(row, flavour)
    action = "" if flavour is Flavour.DRIFT else f"{row.action}: "
    return action + ": ".join([phrases.reason(row, flavour), *(["; ".join(fields)] if fields else [])])


def _cut(row: FieldRow) -> FieldRow:
    """With values of which there is room for a few."""
    both = [DiffLine(sign, each.line) for sign, each in (("-", row.old), ("+", row.new)) if each]
    shown = {line.sign: Shown(text, ()) for line, text in zip(both, excerpts(both, _LONGEST), strict=True)}
    return row._replace(old=shown.get("-"), new=shown.get("+"))


def _placed(finding: Finding, position: Position | None) -> Finding:
    if position is None:
        return finding
    return replace(finding, file=sanitize(position.file), line=position.line, column=position.column)
