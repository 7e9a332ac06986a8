"""What a project's policies say of its manifests and its plans. Loads nothing of them where there are none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from reconciler.cli import exits

if TYPE_CHECKING:
    from reconciler.model.manifest import Manifest
    from reconciler.model.plan import Plan
    from reconciler.model.problem import Problem
    from reconciler.planning.rule import Rule
    from reconciler.project.config import Config

Rules = tuple["Rule", ...]


def rules(config: Config) -> Rules:
    """The policies of the project; Rejected tells all that is wrong with them."""
    if not any((config.root / each).exists() for each in config.policies) and not _are_asked_for(config):
        return ()
    from reconciler.project import policies

    return policies.load(config)


def _are_asked_for(config: Config) -> bool:
    return ("policies",) in config.positions


def of_manifest(found: Rules, manifest: Manifest, now: float) -> tuple[Problem, ...]:
    """What can be said without a plan."""
    if not found:
        return ()
    from reconciler import kinds
    from reconciler.planning import policies

    return policies.of_manifest(found, manifest, kinds.planned(), now)


def judged(plan: Plan, found: Rules, now: float, manifest: Manifest | None) -> Plan:
    """The plan with what the policies say of it now. Without its manifests, what they said of resources stays."""
    if not found:
        return plan
    from reconciler import kinds
    from reconciler.planning import policies

    again = {rule.name for rule in found if manifest is not None or "resource" not in rule.uses}
    kept = (problem for problem in plan.problems if problem.rule not in again)
    said = policies.of_plan(found, plan, kinds.planned(), now, manifest)
    return replace(plan, problems=(*kept, *said))


def code(problems: Sequence[Problem]) -> int:
    """What problems end a command with: only policies, and none of the program's own."""
    errors = [problem for problem in problems if problem.is_error]
    return exits.DONE if not errors else exits.BLOCKED if all(each.rule for each in errors) else exits.ERROR
