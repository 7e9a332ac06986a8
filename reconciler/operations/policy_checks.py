"""Evaluates the project's policies for manifests and plans. Imports nothing further in a project without policies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconciler.model.change import Action
from reconciler.model.problem import Problem
from reconciler.model.value import digest

if TYPE_CHECKING:
    from reconciler.access.account import Account
    from reconciler.model.manifest import Manifest
    from reconciler.model.plan import Plan
    from reconciler.planning.policies.evaluate import AccessList
    from reconciler.planning.policies.rule import Rule
    from reconciler.project.settings.config import Config

Rules = tuple["Rule", ...]


def load_rules(config: Config) -> Rules:
    """The policies of the project; raises Rejected with every problem of their files."""
    if not any((config.root / policy).exists() for policy in config.policies) and not _are_configured(config):
        return ()
    from reconciler.project.policies.load import load_policies

    return load_policies(config)


def _are_configured(config: Config) -> bool:
    return ("policies",) in config.positions


def check_manifest(found: Rules, manifest: Manifest, now: float) -> tuple[Problem, ...]:
    """The findings of policies that need no plan."""
    if not found:
        return ()
    from reconciler import kinds
    from reconciler.planning.policies import evaluate as policies

    return policies.check_manifest(found, manifest, kinds.list_planned(), now)


def with_policy_findings(
    plan: Plan, found: Rules, now: float, manifest: Manifest | None, find_account: Callable[[], Account]
) -> Plan:
    """The plan with the current findings of the policies.

    manifest      that of the plan. None if it is not available: then findings about resources are kept if their policy
                  is unchanged, and a changed policy about resources is a problem of its own
    find_account  the account as the plan leaves it; called if there is a manifest and a policy about access
    """
    if not found:
        return plan
    from reconciler import kinds
    from reconciler.planning.policies import evaluate as policies

    digests = {rule.name: _digest(rule, now) for rule in found}
    of_resources = [rule for rule in found if rule.is_about_resources or rule.needs_manifest]
    unavailable = of_resources if manifest is None else []
    again = digests.keys() - {rule.name for rule in unavailable}
    kept = (problem for problem in plan.problems if problem.rule not in again)
    list_access = (lambda: _list_access(find_account)) if manifest is not None else None
    findings = policies.check_plan(found, plan, kinds.list_planned(), now, manifest, list_access)
    unasked = [
        _not_evaluated(rule, about)
        for rule in unavailable
        if plan.judged.get(rule.name) != digests[rule.name] and (about := _find_concerned(rule, plan))
    ]
    return replace(plan, problems=(*kept, *findings, *unasked), judged={**plan.judged, **digests})


def _list_access(find_account: Callable[[], Account]) -> AccessList:
    from reconciler.access.inventory import list_entries, list_unread
    from reconciler.planning.policies.evaluate import AccessList

    account = find_account()
    return AccessList(tuple(list_entries(account)), list_unread(account))


def _digest(rule: Rule, now: float) -> str:
    """A digest of all that a rule's result depends on: its text, valid exemptions, and the time if the rule uses it."""
    today = datetime.fromtimestamp(now, UTC).date()
    exempt = [[exemption.addresses, str(exemption.until)] for exemption in rule.exemptions if exemption.until >= today]
    time = now if "now" in rule.check.uses else None
    scope = [list(rule.kinds), list(rule.addresses), list(map(str, rule.actions))]
    return digest([rule.check.text, str(rule.severity), scope, exempt, time])


def _find_concerned(rule: Rule, plan: Plan) -> list[str]:
    """The addresses of the plan's changes that a rule about resources covers."""
    if rule.is_about_changes:
        changes = [change for change in plan.changes if not rule.actions or change.action in rule.actions]
    else:
        changes = [change for change in plan.changes if change.action not in (Action.DELETE, Action.FORGET)]
    return [str(change.address) for change in changes if rule.covers(change.address)]


def _not_evaluated(rule: Rule, about: Sequence[str]) -> Problem:
    whom = about[0] if len(about) == 1 else f"{about[0]} and {len(about) - 1} more"
    text = (
        f"the policy {rule.name} cannot be evaluated again for {whom}: the manifests changed after the plan was created"
    )
    return Problem(text, "plan again", position=rule.position, severity=rule.severity, rule=rule.name, code="policy")
