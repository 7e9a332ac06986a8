"""Loads the project's policies: reads `policies/*.yaml` into rules, or reports everything that is wrong with them.

Expressions are compiled here, so that an error has the position of its expression. `planning.policies.evaluate` checks
resources and plans against the rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Final, Literal

from typing_extensions import Doc

from reconciler import kinds
from reconciler.kinds.types.fields import NonEmpty, check_with
from reconciler.languages.cel import Expression, InvalidExpression
from reconciler.languages.cel_types import Mistake
from reconciler.languages.yaml import reader as yaml
from reconciler.languages.yaml.errors import MAX_BYTES
from reconciler.languages.yaml.positions import Places
from reconciler.model.change import Action
from reconciler.model.fields.field import fields_of
from reconciler.model.fields.form import Form
from reconciler.model.problem import Finding, Position, Problem, Rejected, Severity
from reconciler.planning.policies.rule import LANGUAGE, Exemption, Rule
from reconciler.planning.policies.vocabulary import make_typed_language
from reconciler.project import files
from reconciler.project.documents import phrases, validation
from reconciler.project.documents.references import suggest_kind
from reconciler.project.policies import offsets
from reconciler.project.settings.config import FILE, Config

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_LANGUAGE: Final = "expressions are written in CEL (https://cel.dev)"
_EMBEDDED: Final = re.compile(r"\$\{([^{}]*)\}")


def _check_name(text: str) -> str | None:
    if _NAME.fullmatch(text):
        return None
    return "is not a valid name; use up to 100 letters, digits, '.', '_' and '-', beginning with a letter or digit"


def _check_day(text: str) -> str | None:
    try:
        return None if date.fromisoformat(text).isoformat() == text else _NO_DAY
    except ValueError:
        return _NO_DAY


_NO_DAY: Final = "is not a date; write it as 2030-12-31"


class Scope(Form):
    """Which resources a policy applies to. A resource must match every filter."""

    kinds: Annotated[list[NonEmpty], Doc("Kinds of resources. Default: all kinds.")] = []
    addresses: Annotated[list[NonEmpty], Doc("Addresses Kind/name; * and ? are wildcards.")] = []
    actions: Annotated[
        list[Literal["create", "update", "replace", "delete", "adopt", "forget", "move"]],
        Doc("Actions of a plan. A policy with actions applies to changes only."),
    ] = []


class ExemptionEntry(Form):
    """An exemption from a policy, with its reason and last day."""

    address: Annotated[NonEmpty, Doc("Address Kind/name, or an entry point; * and ? are wildcards.")]
    reason: Annotated[NonEmpty, Doc("Reason, for reviewers.")]
    until: Annotated[Annotated[str, check_with(_check_day)], Doc("Last day of the exemption, as 2030-12-31, in UTC.")]


class PolicyDocument(Form):
    """One policy. A file can hold several, separated by ---."""

    policy: Annotated[Annotated[str, check_with(_check_name)], Doc("Name of the policy, unique in the project.")]
    description: Annotated[str, Doc("Purpose of the policy.")] = ""
    severity: Annotated[Literal["error", "warning"], Doc("An error blocks the plan, a warning does not.")] = "error"
    scope: Scope = Scope()
    check: Annotated[
        NonEmpty,
        Doc("CEL expression over resource, change, plan, access, entry and now; true if the policy is satisfied."),
    ]
    message: Annotated[NonEmpty, Doc("Message for a violation; ${…} contains a CEL expression.")]
    remedy: Annotated[str, Doc("What to do about a violation.")] = ""
    field: Annotated[str, Doc("Field under spec whose position is reported, such as tls_termination.min_version.")] = ""
    exemptions: Annotated[list[ExemptionEntry], Doc("Exemptions from the policy.")] = []


def load_policies(config: Config) -> tuple[Rule, ...]:
    """Returns the policies of the project, sorted by name. Raises Rejected with every problem."""
    problems: list[Problem] = []
    rules: dict[str, Rule] = {}
    for file, text in _texts(config, problems):
        reading = yaml.read(text, file)
        problems += reading.problems
        lines = text.decode(errors="replace").removeprefix("\ufeff").splitlines()
        for document in reading.documents:
            if document.value is None or not document.sound:
                continue
            reader = _Reader(lines, document.places)
            rule = reader.rule(document.value)
            problems += [validation.to_problem(finding, document.places, reader.subject) for finding in reader.findings]
            problems += reader.problems
            if rule is not None and (first := rules.setdefault(rule.name, rule)) is not rule:
                where = document.places.nearest(("policy",))
                problems.append(
                    Problem(
                        f"duplicate policy name, first used at {first.position}",
                        "rename one of the two",
                        rule.name,
                        where,
                        code="duplicate-name",
                    )
                )
    if problems:
        raise Rejected(sorted(problems, key=lambda problem: (problem.position or Position("", 0, 0), problem.text)))
    return tuple(rules[name] for name in sorted(rules))


def _texts(config: Config, problems: list[Problem]) -> Iterator[tuple[str, bytes]]:
    """Yields the path and text of each policy file once. The default folder need not exist."""
    read: set[str] = set()
    for index, entry in enumerate(config.policies):
        where = config.positions.get(("policies", index))
        if where is None and not (config.root / entry).exists():
            continue
        try:
            for path in files.find_manifests(config.root, files.path_inside(entry)):
                if path not in read:
                    read.add(path)
                    yield path, files.read(config.root, path, MAX_BYTES)
        except files.Unreadable as wrong:
            problems.append(Problem(str(wrong), wrong.remedy, position=where or Position(FILE, 1, 1), code=wrong.code))


@dataclass
class _Reader:
    """Reads one policy document. `findings` are about its values, `problems` about expressions, at their position."""

    lines: Sequence[str]
    places: Places

    def __post_init__(self) -> None:
        self.findings: list[Finding] = []
        self.problems: list[Problem] = []
        self.subject = ""
        self._scope: tuple[str, ...] = ()

    def rule(self, written: object) -> Rule | None:
        if not isinstance(written, dict):
            self.findings.append(
                Finding(
                    (),
                    f"expected a map, found {phrases.describe_found(written)}",
                    "begin with policy:",
                    code="wrong-type",
                )
            )
            return None
        self.subject = str(written.get("policy", "")) if isinstance(written.get("policy"), str) else ""
        form = PolicyDocument.model_try(written)
        if not isinstance(form, PolicyDocument):
            self.findings += validation.problems_of(form, written, fields_of(PolicyDocument))
            return None
        self.findings += _unknown_kinds(form.scope)
        self._scope = tuple(form.scope.kinds)
        check = self._expression(("check",), form.check, 0, form.check, "BOOL")
        message = self._message(form.message)
        if check is None or message is None:
            return None
        rule = self._rule(form, check, message)
        if "entry" in rule.uses and (rule.is_about_changes or "resource" in rule.uses):
            self.findings.append(
                Finding(
                    ("check",),
                    "a policy about entry points has neither a resource nor a change",
                    "use refs(entry), the resources that decide about the entry point",
                    code="invalid-expression",
                )
            )
        return rule

    def _rule(self, form: PolicyDocument, check: Expression, message: tuple[str | Expression, ...]) -> Rule:
        return Rule(
            name=form.policy,
            check=check,
            message=message,
            position=self.places[()],
            severity=Severity(form.severity),
            remedy=form.remedy,
            field=form.field,
            kinds=tuple(form.scope.kinds),
            addresses=tuple(form.scope.addresses),
            actions=tuple(map(Action, form.scope.actions)),
            exemptions=tuple(self._exemptions(form)),
            places={"check": self._at(("check",), form.check, 0)},
        )

    def _exemptions(self, form: PolicyDocument) -> Iterator[Exemption]:
        for index, entry in enumerate(form.exemptions):
            where = self.places.nearest(("exemptions", index))
            yield Exemption(entry.address, entry.reason, date.fromisoformat(entry.until), where)

    def _message(self, text: str) -> tuple[str | Expression, ...] | None:
        """Splits a message into texts and expressions; None if an expression is invalid."""
        parts: list[str | Expression | None] = []
        end = 0
        for match in _EMBEDDED.finditer(text):
            expression = self._expression(("message",), text, match.start(1), match[1], "")
            parts += [text[end : match.start()], expression]
            end = match.end()
        valid = tuple(part for part in (*parts, text[end:]) if part is not None)
        return tuple(part for part in valid if part != "") if len(valid) > len(parts) else None

    def _expression(self, path: tuple[str], whole: str, begin: int, text: str, answers: str) -> Expression | None:
        """Compiles the expression at an offset of a text; adds a problem and returns None if it is invalid."""
        expression = None
        mistakes = make_typed_language(self._scope).find_mistakes(text, answers)
        try:
            expression = LANGUAGE.expression(text, answers)
        except InvalidExpression as invalid:
            wrong = invalid.wrong
            mistakes = mistakes or (Mistake(wrong.text, _LANGUAGE, wrong.line, wrong.column),)
        for mistake in mistakes:
            where = self._at(path, whole, begin + offsets.offset(text, mistake.line, mistake.column))
            what, subject = f"the expression {mistake.text}", f"{self.subject}.{path[0]}"
            self.problems.append(Problem(what, mistake.remedy, subject, where, code="invalid-expression"))
        return None if mistakes else expression

    def _at(self, path: tuple[str], text: str, offset: int) -> Position:
        return offsets.place(self.lines, self.places[path], text, offset)


def _unknown_kinds(scope: Scope) -> Iterator[Finding]:
    for index, name in enumerate(scope.kinds):
        if kinds.find(name) is None:
            yield Finding(("scope", "kinds", index), f"unknown kind {name!r}", suggest_kind(name), code="unknown-kind")
