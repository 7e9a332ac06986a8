"""Judges a branch by the rules of its base and by its own: the options and policies of a plan that both let through."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from reconciler.model.access_test import AccessTest
from reconciler.model.change import Risk
from reconciler.model.rule_change import RuleChange
from reconciler.model.value import Json
from reconciler.planning.deciding.options import PlanOptions
from reconciler.planning.guards import find_rule_approvals
from reconciler.planning.judging import rules as judging
from reconciler.planning.judging.rules import Rules
from reconciler.planning.policies.rule import Rule


class Judgment(Struct, frozen=True):
    """How a branch is judged.

    options   with the guards, protections and adoptions of both sides, and the rules that the branch loosens
    policies  of the base, to be evaluated beside those of the branch
    tests     access tests of the base, to be run beside those of the branch
    settings  the stricter of each setting of both sides
    """

    options: PlanOptions
    policies: tuple[Rule, ...]
    tests: tuple[AccessTest, ...]
    settings: Mapping[str, Json]


def judge(
    options: PlanOptions, base: Rules | None, head: Rules, unreadable: Sequence[RuleChange] = (), name: str = "the base"
) -> Judgment:
    """The judgment by both sides. A rule whose change is approved is judged as the branch has it alone.

    base        None: the base has no project, or its rules cannot be read
    unreadable  the rules of the base that cannot be read
    name        of the base, for the names of its policies
    """
    changes = (*unreadable, *(judging.find_rule_changes(base, head) if base is not None else ()))
    options = replace(options, rule_changes=changes)
    if base is None:
        return Judgment(options, (), (), head.settings)
    approved = frozenset(
        item.subject for approval in find_rule_approvals(options) if approval.granted for item in approval.items
    )
    settings: Mapping[str, Any] = judging.combine_settings(base, head, approved)
    required = settings["guards.require_approval"]
    options = replace(
        options,
        max_delete_percent=settings["guards.max_delete_percent"],
        max_update_percent=settings["guards.max_update_percent"],
        require_approval=frozenset(risk for risk in Risk if risk in required),
        protected=judging.find_protected(base, head, approved),
        newly_listed=judging.find_newly_listed(base, head),
        find_lost_rules=partial(judging.find_lost_rules, base),
        adopting=None if "base/manifests" in approved else judging.find_adopting(base, head),
    )
    policies = judging.select_policies(base, head, approved)
    named = tuple(replace(rule, name=f"{rule.name} of {name}") for rule in policies)
    tests = tuple(replace(test, base=name) for test in judging.select_tests(base, head, approved))
    return Judgment(options, named, tests, settings)
