"""What a project's policies say of its manifests and its plans. Loads nothing of them where there are none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from reconciler.model.change import Action
from reconciler.model.problem import Problem
from reconciler.model.value import digest

if TYPE_CHECKING:
    from reconciler.model.manifest import Manifest
    from reconciler.model.plan import Plan
    from reconciler.planning.policies.rule import Rule
    from reconciler.project.settings.config import Config

Rules = tuple["Rule", ...]


def load_rules(config: Config) -> Rules:
    """The policies of the project; Rejected tells all that is wrong with them."""
    if not any((config.root / policy).exists() for policy in config.policies) and not _are_configured(config):
        return ()
    from reconciler.project.policies.load import load_policies

    return load_policies(config)


def _are_configured(config: Config) -> bool:
    return ("policies",) in config.positions


def check_manifest(found: Rules, manifest: Manifest, now: float) -> tuple[Problem, ...]:
    """What can be said without a plan."""
    if not found:
        return ()
    from reconciler import kinds
    from reconciler.planning.policies import evaluate as policies

    return policies.check_manifest(found, manifest, kinds.list_planned(), now)


def with_policy_findings(plan: Plan, found: Rules, now: float, manifest: Manifest | None) -> Plan:
    """The plan with what the policies say of it now.

    Without its manifests, what was said of resources stays, of policies that would say the same; of others it is a
    problem of its own that they cannot be asked.
    """
    if not found:
        return plan
    from reconciler import kinds
    from reconciler.planning.policies import evaluate as policies

    digests = {rule.name: _digest(rule, now) for rule in found}
    of_resources = [rule for rule in found if rule.is_about_resources or "resource" in rule.uses]
    silent = of_resources if manifest is None else []
    again = digests.keys() - {rule.name for rule in silent}
    kept = (problem for problem in plan.problems if problem.rule not in again)
    said = policies.check_plan(found, plan, kinds.list_planned(), now, manifest)
    unasked = [
        _not_evaluated(rule, about)
        for rule in silent
        if plan.judged.get(rule.name) != digests[rule.name] and (about := _find_concerned(rule, plan))
    ]
    return replace(plan, problems=(*kept, *said, *unasked), judged=digests)


def _digest(rule: Rule, now: float) -> str:
    """Whoever has the same says the same of the same: the rule, the exemptions that hold, the time if it matters."""
    today = datetime.fromtimestamp(now, UTC).date()
    exempt = [[exemption.addresses, str(exemption.until)] for exemption in rule.exemptions if exemption.until >= today]
    time = now if "now" in rule.check.uses else None
    scope = [list(rule.kinds), list(rule.addresses), list(map(str, rule.actions))]
    return digest([rule.check.text, str(rule.severity), scope, exempt, time])


def _find_concerned(rule: Rule, plan: Plan) -> list[str]:
    """What a rule about resources would be asked of, among what the plan changes."""
    if rule.is_about_changes:
        changes = [change for change in plan.changes if not rule.actions or change.action in rule.actions]
    else:
        changes = [change for change in plan.changes if change.action not in (Action.DELETE, Action.FORGET)]
    return [str(change.address) for change in changes if rule.covers(change.address)]


def _not_evaluated(rule: Rule, about: Sequence[str]) -> Problem:
    whom = about[0] if len(about) == 1 else f"{about[0]} and {len(about) - 1} more"
    text = f"the policy {rule.name} cannot be asked anew about {whom}: the manifests are not those of the plan"
    return Problem(text, "plan again", position=rule.position, severity=rule.severity, rule=rule.name, code="policy")
