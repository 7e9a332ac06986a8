"""Evaluates the policies of a project over manifests and plans (docs/policies.md). Pure: the time is a parameter.

Expressions see the source of a secret instead of its value. A rule that cannot be evaluated for a resource is a
violation, never a pass.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from msgspec import Struct
from msgspec import field as stored
from msgspec.structs import asdict, replace

from reconciler.kinds.rules import canonical
from reconciler.kinds.rules import traffic_policy as traffic
from reconciler.languages.cel import Bindings, EvaluationFailed, to_cel_values
from reconciler.model.access import PathOf, WayIn
from reconciler.model.access_entry import AccessEntry
from reconciler.model.address import Address
from reconciler.model.change import Action, Change
from reconciler.model.fields.field import Field, Shape
from reconciler.model.kind import Kind
from reconciler.model.manifest import Declaration, Ensure, Manifest
from reconciler.model.plan import Plan
from reconciler.model.problem import Position, Problem
from reconciler.model.value import Hidden, Json, Ref, Secret, Template, Value
from reconciler.planning.deciding.options import PlanOptions
from reconciler.planning.policies.relations import Relations
from reconciler.planning.policies.rule import LANGUAGE, Exemption, Rule

_MAX_BREACHES = 50  # violations of one rule that are listed


class AccessList(Struct, frozen=True):
    """The entry points of an account. `unread`: the kinds that may open more of them, with why they were not read."""

    entries: tuple[AccessEntry, ...] = ()
    unread: Mapping[str, str] = stored(default_factory=dict)


def check_manifest(rules: Sequence[Rule], manifest: Manifest, kinds: Sequence[Kind], now: float) -> tuple[Problem, ...]:
    """The violations of all rules that need no plan, errors first. `now`: seconds since 1970, for exemptions."""
    judge = _Evaluation(manifest, {kind.name: kind for kind in kinds}, now)
    return judge.evaluate([rule for rule in rules if not rule.needs_plan])


def check_plan(
    rules: Sequence[Rule],
    plan: Plan,
    kinds: Sequence[Kind],
    now: float,
    manifest: Manifest | None = None,
    list_access: Callable[[], AccessList] | None = None,
) -> tuple[Problem, ...]:
    """The violations by a plan and by the resources that it selects, errors first.

    now          seconds since 1970, for exemptions and expressions
    manifest     the manifest that was planned; without it, rules about resources are not evaluated
    list_access  the entry points of the account as the plan leaves it, called if a rule needs them; without it, rules
                 about access are not evaluated
    """
    whole = manifest if manifest is not None else Manifest(plan.stack, {})
    asked = [rule for rule in rules if manifest is not None or not rule.needs_manifest]
    asked = [rule for rule in asked if list_access is not None or not rule.reads_access]
    is_needed = any(rule.reads_access for rule in asked)
    access = list_access() if list_access is not None and is_needed else AccessList()
    return _Evaluation(whole, {kind.name: kind for kind in kinds}, now, plan, access).evaluate(asked)


class _Subject(Struct, frozen=True):
    """What a rule is evaluated for: a resource, a change, an entry point, or, with an empty name, the plan.

    name    the address of the resource
    values  what the variables are bound to, besides those that all subjects share
    entry   the entry point, as people call it
    bound   the bindings so far, by whether they have the resources of the plan, and the entry points
    """

    name: str
    values: Mapping[str, Any]
    declaration: Declaration | None = None
    position: Position | None = None
    entry: str = ""
    bound: dict[tuple[bool, bool], Bindings] = stored(default_factory=dict)


class _Evaluation(Struct, frozen=True, dict=True):
    """The input of one evaluation, and the values that expressions see."""

    manifest: Manifest
    kinds: Mapping[str, Kind]
    now: float
    plan: Plan | None = None
    access: AccessList = AccessList()

    def evaluate(self, rules: Sequence[Rule]) -> tuple[Problem, ...]:
        """The violations of the rules. Evaluates one subject after the other, since their values take much memory."""
        violations = {rule.name: self._report_unread(rule) for rule in rules}
        certain = [rule for rule in rules if "access" not in rule.uses or not violations[rule.name]]
        for rule, subject in self._find_questions(certain):
            if (problem := self._answer(rule, subject)) is not None:
                violations[rule.name].append(problem)
        problems = [problem for rule in rules for problem in _limit_breaches(rule, violations[rule.name])]
        return tuple(
            sorted(problems, key=lambda problem: (not problem.is_error, problem.position or Position("", 0, 0)))
        )

    def _report_unread(self, rule: Rule) -> list[Problem]:
        """The violation of a rule about entry points if there may be more of them than were read: never a pass."""
        if not rule.reads_access or not self.access.unread:
            return []
        lists = ", ".join(f"{kind} ({why})" for kind, why in sorted(self.access.unread.items()))
        why, remedy = f"not all ways in are known: {lists}", "use an API key that may read these kinds, or plan again"
        return [_report_unanswered(rule, _Subject("", {}), why, remedy)]

    def _answer(self, rule: Rule, subject: _Subject) -> Problem | None:
        try:
            bindings = self._bind(rule, subject)
            if rule.check.ask(bindings):
                return None
        except EvaluationFailed as why:
            return _report_unanswered(rule, subject, str(why))
        exemption = rule.exemption(*filter(None, (subject.name, subject.entry)))
        if exemption is not None and exemption.until >= self._today.date():
            return None
        return _report_breach(rule, subject, bindings, exemption)

    def _bind(self, rule: Rule, subject: _Subject) -> Bindings:
        """The variables that a rule sees. Only what it reads is there, since each evaluation converts it."""
        relations, plan = self._relations, self.plan if rule.lists_resources else None
        relations.rule = rule.name
        if plan is not None:
            relations.charge(relations.resources)
        if "access" in rule.uses:
            relations.charge(self._access)
        reads = plan is not None, "access" in rule.uses
        if reads not in subject.bound:
            around = dict(self._shared_values)
            if plan is not None:
                around["plan"] = {**around["plan"], "resources": relations.resources}
            if "access" in rule.uses:
                around["access"] = self._access
            subject.bound[reads] = LANGUAGE.bind(subject.values, around, relations.call, relations.find_bound)
        return subject.bound[reads]

    def _find_questions(self, rules: Sequence[Rule]) -> Iterator[tuple[Rule, _Subject]]:
        of_changes = [rule for rule in rules if rule.is_about_changes]
        for change in self.plan.changes if self.plan else ():
            actions = [rule for rule in of_changes if not rule.actions or change.action in rule.actions]
            yield from self._ask_about(change.address, change, actions)
        of_resources = [rule for rule in rules if rule.is_about_resources]
        for address in self._find_declared():
            yield from self._ask_about(address, self._changes.get(address), of_resources)
        of_entries = [rule for rule in rules if rule.is_about_entries]
        for entry in self.access.entries if of_entries else ():
            yield from self._ask_about_entry(entry, of_entries)
        rest = [rule for rule in rules if not (rule.is_about_changes or rule.is_about_resources or rule in of_entries)]
        yield from ((rule, _Subject("", {})) for rule in rest)

    def _ask_about(self, address: Address, change: Change | None, rules: list[Rule]) -> Iterator[tuple[Rule, _Subject]]:
        covering = [rule for rule in rules if rule.covers(address)]
        if covering:
            subject = self._build_subject(address, change)
            yield from ((rule, subject) for rule in covering)

    def _ask_about_entry(self, entry: AccessEntry, rules: list[Rule]) -> Iterator[tuple[Rule, _Subject]]:
        """The questions about an entry point that a selected resource decides about. Others are only in `access`."""
        declared = [self._relations.addresses[name] for name in entry.resources if name in self._relations.addresses]
        own = [address for address in declared if self._selection.selects(address)]
        if not own or entry.stack:
            return
        address = min(own, key=self._rank_decider)
        declaration = self.manifest.declarations[address]
        values = {"entry": asdict(entry), "resource": None, "change": None}
        subject = _Subject(str(address), values, declaration, declaration.position, entry.entry_point)
        yield from ((rule, subject) for rule in rules if any(map(rule.covers, declared)))

    def _rank_decider(self, address: Address) -> int:
        """0 for a route, which is the nearest to what an entry point serves; then its edge or endpoint."""
        access = self.kinds[address.kind].access
        return 0 if isinstance(access, PathOf) else 1 if isinstance(access, WayIn) else 2

    # --- subjects -----------------------------------------------------------------------------------------------------

    @cached_property
    def _changes(self) -> Mapping[Address, Change]:
        """The change of each address; of two, the first one, since the other deletes a replaced object."""
        return {change.address: change for change in reversed(self.plan.changes)} if self.plan else {}

    @cached_property
    def _selection(self) -> PlanOptions:
        return PlanOptions(targets=self.plan.targets, excludes=self.plan.excludes) if self.plan else PlanOptions()

    def _find_declared(self) -> Iterator[Address]:
        for address, declaration in self.manifest.declarations.items():
            if declaration.ensure is Ensure.PRESENT and self._selection.selects(address):
                yield address

    def _build_subject(self, address: Address, change: Change | None) -> _Subject:
        declaration = self.manifest.declarations.get(address)
        observed = self.plan.observed.get(address) if self.plan else None
        live = _to_json(observed.fields) if observed is not None else None
        known = self._relations.find_described(address)
        values = {
            "resource": self._describe_resource(address, declaration, live) if known is None else known,
            "change": change and _describe_change(change, live),
        }
        position = declaration.position if declaration else change.position if change else None
        return _Subject(str(address), values, declaration, position)

    # --- what expressions see -------------------------------------------------------------------------------------

    def _describe_resource(self, address: Address, declaration: Declaration | None, live: Json) -> Json:
        """A resource as expressions see it; with its live values if it is no longer declared."""
        fields = self.kinds[address.kind].fields if address.kind in self.kinds else ()
        return {
            "kind": address.kind,
            "name": address.name,
            "address": str(address),
            "declared": declaration is not None,
            "ensure": str(declaration.ensure) if declaration else "",
            "id": (declaration.id if declaration else None) or "",
            "protect": declaration.lifecycle.protect if declaration else False,
            "delivers": sorted(declaration.deliver) if declaration else [],
            "rotates": declaration is not None and declaration.rotate is not None,
            "spec": _fill_fields(fields, declaration.spec if declaration else live or {}),
        }

    @cached_property
    def _relations(self) -> Relations:
        most = max((len(entry.resources) for entry in self.access.entries), default=0)
        return Relations(self.manifest, self.kinds, self._describe_declared, most)

    def _describe_declared(self, address: Address) -> dict[str, Any]:
        resource = self._describe_resource(address, self.manifest.declarations[address], None)
        return dict(to_cel_values({"resource": resource})["resource"])

    @cached_property
    def _access(self) -> Any:
        return to_cel_values({"access": [asdict(_conceal(entry)) for entry in self.access.entries]})["access"]

    @cached_property
    def _today(self) -> datetime:
        return datetime.fromtimestamp(self.now, UTC)

    @cached_property
    def _shared_values(self) -> Mapping[str, Any]:
        if self.plan is None:
            return {}
        plan = self.plan
        counts = Counter(str(change.action) for change in plan.changes)
        values: Json = {
            "stack": plan.stack,
            "account": plan.account,
            "commit": plan.commit,
            "counts": {str(action): counts[str(action)] for action in Action},
            "calls": len(plan.calls),
            "resources": [],
            "changes": [
                {"address": str(change.address), "kind": change.address.kind, "action": str(change.action)}
                for change in plan.changes
            ],
        }
        return to_cel_values({"plan": values, "now": self._today, "change": None, "resource": None})


def _conceal(entry: AccessEntry) -> AccessEntry:
    """An entry point; of other stacks without their gates, since messages of policies appear in reviews."""
    return replace(entry, admits=f"gates of stack {entry.stack}", unknown=(), resources=()) if entry.stack else entry


def _describe_change(change: Change, live: Json) -> Json:
    return {
        "action": str(change.action),
        "reason": str(change.reason),
        "id": change.id or "",
        "protected": change.protected,
        "risks": [str(risk) for risk in change.risks],
        "former": str(change.former) if change.former else "",
        "live": live,
        "fields": [
            {
                "path": field.path,
                "old": _to_json(field.old),
                "new": _to_json(field.new),
                "changed_by": str(field.changed_by),
                "replaces": field.forces_replacement,
            }
            for field in change.fields
        ],
    }


def _fill_fields(fields: Sequence[Field], spec: Mapping[str, Value]) -> dict[str, Json]:
    """The spec with every field of the kind, so that expressions need not test whether a field is set."""
    declared = {name: _to_json(value) for name, value in spec.items()}
    return declared | {
        field.name: _describe_value(field, spec.get(field.name), field.default_beside(spec)) for field in fields
    }


def _describe_value(field: Field, value: Value, default: Json = None) -> Json:
    if value is None:
        value = default
    match field.shape:
        case Shape.OBJECT if isinstance(value, Mapping):
            return _fill_fields(field.fields, value)
        case Shape.LIST if value is None:
            return []
        case Shape.LIST if isinstance(value, list) and field.item is not None:
            return [_describe_value(field.item, item) for item in value]
        case Shape.ANY if isinstance(value, str) and field.canonical is canonical.policy:
            return traffic.parse(value) or value  # the document, from YAML, JSON or text
    return _to_json(value)


def _to_json(value: Value) -> Json:
    match value:
        case Secret():
            return {"source": value.source}
        case Hidden():
            return "(sensitive)"
        case Ref():
            return {"ref": str(value)}
        case Template():
            return str(value)
        case Mapping():
            return {key: _to_json(part) for key, part in value.items()}
        case list() | tuple():
            return [_to_json(item) for item in value]
    return value


# --- problems -----------------------------------------------------------------------------------------------------


def _report_breach(rule: Rule, subject: _Subject, bindings: Bindings, expired: Exemption | None) -> Problem:
    message = "".join(_render_part(part, bindings) for part in rule.message)
    if subject.entry not in message:
        message = f"{subject.entry}: {message}"
    ended = (
        f"; its exemption at {expired.position} expired on {expired.until} ({expired.reason})"
        if expired is not None
        else ""
    )
    where = subject.position
    if rule.field and subject.declaration is not None:
        where = subject.declaration.at(*rule.field.split("."))
    about = message.removeprefix(f"{subject.name} ")  # every output names the resource itself
    return Problem(
        f"{about} (policy {rule.name}{ended})",
        rule.remedy or f"correct it, or add an exemption at {rule.position.file}:{rule.position.line}",
        subject.name,
        where or rule.position,
        rule.severity,
        rule.name,
        code="policy",
        values={"policy": rule.name},
    )


def _render_part(part: Any, bindings: Bindings) -> str:
    if isinstance(part, str):
        return part
    try:
        answer = part.ask(bindings)
    except EvaluationFailed as why:
        return f"({why})"
    return answer if isinstance(answer, str) else json.dumps(answer, default=str, ensure_ascii=False)


def _report_unanswered(
    rule: Rule, subject: _Subject, why: str, remedy: str = "correct its check; has() tests whether a field exists"
) -> Problem:
    of = f" for {subject.entry or subject.name}" if subject.name else ""
    return Problem(
        f"policy {rule.name} cannot be evaluated{of}: {why}",
        remedy,
        "",
        rule.places.get("check", rule.position),
        rule.severity,
        rule.name,
        code="policy",
        values={"policy": rule.name},
    )


def _limit_breaches(rule: Rule, problems: list[Problem]) -> list[Problem]:
    if len(problems) <= _MAX_BREACHES:
        return problems
    more = Problem(
        f"{len(problems) - _MAX_BREACHES} more violate policy {rule.name}",
        "correct the listed ones first",
        position=rule.position,
        severity=rule.severity,
        rule=rule.name,
        code="policy",
        values={"policy": rule.name},
    )
    return [*problems[:_MAX_BREACHES], more]
