"""Judges a branch by the rules of its base and by its own: each demand of either, and each exemption of both."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from reconciler.model.change import Risk
from reconciler.model.rule_change import RuleChange
from reconciler.operations.base_plan import BaseSide
from reconciler.operations.project_rules import read_rules
from reconciler.planning.deciding.options import PlanOptions
from reconciler.planning.guards import find_rule_approvals
from reconciler.planning.judging import rules as judging
from reconciler.planning.judging.rules import Rules
from reconciler.project.settings.project_file import Limits

if TYPE_CHECKING:
    from reconciler.operations.workspace import Workspace


def judge(workspace: Workspace, side: BaseSide) -> Workspace:
    """The workspace whose plans are judged by the base too. Raises InvalidProject.

    A rule whose change is approved is judged as the branch has it alone.
    """
    head = read_rules(workspace.config, workspace.load_rules(), workspace.manifest)
    options = replace(workspace.options, rule_changes=tuple(_find_changes(side, head)))
    approved = frozenset(
        item.subject for approval in find_rule_approvals(options) if approval.granted for item in approval.items
    )
    judged = dataclasses.replace(workspace, options=options, base=side)
    if side.rules is None:
        return judged
    settings = judging.combine_settings(side.rules, head, approved)
    is_unknown = any(part.part == "manifests" for part in side.unreadable) and "base/manifests" in approved
    policies = [
        replace(rule, name=f"{rule.name} of {side.base.ref}")
        for rule in judging.select_policies(side.rules, head, approved)
    ]
    guarded = replace(
        _with_guards(options, settings),
        protected=judging.find_protected(side.rules, head, approved),
        adopting=None if is_unknown else judging.find_adopting(side.rules, head),
    )
    return _with_limits(dataclasses.replace(judged, options=guarded, base_policies=tuple(policies)), settings)


def _find_changes(side: BaseSide, head: Rules) -> Iterator[RuleChange]:
    for part in side.unreadable:
        yield judging.report_unreadable(part.part, part.why, part.causes, head)
    if side.rules is not None:
        yield from judging.find_rule_changes(side.rules, head)


def _with_guards(options: PlanOptions, settings: Any) -> PlanOptions:
    required = settings["guards.require_approval"]
    return replace(
        options,
        max_delete_percent=settings["guards.max_delete_percent"],
        max_update_percent=settings["guards.max_update_percent"],
        require_approval=frozenset(risk for risk in Risk if risk in required),
    )


def _with_limits(workspace: Workspace, settings: Any) -> Workspace:
    limits = Limits(
        requests_per_minute=settings["limits.requests_per_minute"] or None,
        concurrency=settings["limits.concurrency"],
        settle_seconds=settings["limits.settle_seconds"],
    )
    given, parallelism = workspace.config.limits, workspace.parallelism
    if limits == given:
        return workspace
    if parallelism == given.concurrency:  # else the caller chose another number
        parallelism = limits.concurrency
    account = replace(
        workspace.account, requests_per_minute=settings["limits.requests_per_minute"], connections=parallelism
    )
    return dataclasses.replace(
        workspace,
        config=replace(workspace.config, limits=limits),
        account=account,
        parallelism=parallelism,
        options=replace(workspace.options, requests_per_minute=account.budget),
    )
