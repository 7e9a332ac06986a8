"""The laws of judging a branch by its base, over random pairs of rules: what passes, passes by the base alone too."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from reconciler import kinds
from reconciler.model.fields.form import Form
from reconciler.model.manifest import Declaration, Lifecycle, Manifest
from reconciler.model.plan import Plan
from reconciler.model.problem import Position, Severity
from reconciler.model.rule_change import RuleRisk
from reconciler.planning.deciding.options import PlanOptions
from reconciler.planning.judging.judge import Judgment, judge
from reconciler.planning.judging.rules import (
    Rules,
    combine_settings,
    describe_policy,
    describe_resource,
    select_policies,
)
from reconciler.planning.judging.strictness import POLICY, RESOURCE, RULES, SETTINGS, Strictness
from reconciler.planning.planner import plan
from reconciler.planning.policies import evaluate
from reconciler.planning.policies.rule import LANGUAGE, Exemption, Rule
from reconciler.project.documents.manifest_document import ManifestDocument
from reconciler.project.policies.load import PolicyDocument
from reconciler.project.settings.project_file import ProjectFile
from tests.harness.builders import declare, live, manifest, record, snapshot
from tests.harness.tiers import examples

KINDS = kinds.every()
HERE = Position("policies/a.yaml", 1, 1)
law = settings(max_examples=examples(200), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])

# --- every setting and field is classified ----------------------------------------------------------------------------


def list_fields(model: type[Form], prefix: str = "") -> list[str]:
    found = []
    for name, field in model.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, Form):
            found += list_fields(inner, f"{prefix}{name}.")
        else:
            found.append(f"{prefix}{name}")
    return found


@pytest.mark.parametrize(
    ("model", "table", "derived"),
    [(ProjectFile, SETTINGS, set()), (PolicyDocument, POLICY, {"about"}), (ManifestDocument, RESOURCE, set())],
)
def test_each_setting_and_field_declares_what_loosens_it(
    model: type[Form], table: Mapping[str, Strictness | None], derived: set[str]
) -> None:
    assert sorted(list_fields(model)) == sorted(table.keys() - derived)


def test_every_rule_of_a_policy_and_a_resource_is_compared() -> None:
    policy = Rule("a", LANGUAGE.expression("true"), ("no",), HERE)
    assert describe_policy(policy).keys() == {name for name, order in POLICY.items() if order is not None}
    resource = describe_resource(declare("Vault/v"))
    assert resource.keys() == {name for name, order in RESOURCE.items() if order is not None}


def test_every_rule_can_be_approved_by_its_name() -> None:
    ordered = [order.risk for table in (SETTINGS, RESOURCE) for order in table.values() if order is not None]
    assert sum(map(len, RULES.values())) == len(ordered) + len(("base", "policy", "access-test"))


# --- random rules -----------------------------------------------------------------------------------------------------

names = st.lists(st.sampled_from(["a", "b", "c"]), unique=True).map(sorted)
risks = st.lists(st.sampled_from(["widens_access", "interrupts_traffic", "irreversible"]), unique=True).map(sorted)
days = st.sampled_from(["2026-01-01", "2030-01-01", "2040-01-01"])
VALUES: Mapping[str, st.SearchStrategy[Any]] = {
    "limits.requests_per_minute": st.sampled_from([0, 60, 600]),
    "limits.concurrency": st.integers(1, 4),
    "limits.settle_seconds": st.sampled_from([0.0, 10.0]),
    "guards.max_delete_percent": st.sampled_from([0, 20, 30, 100]),
    "guards.max_update_percent": st.sampled_from([0, 20, 30, 100]),
    "guards.require_approval": risks,
    "snapshots.public_key": st.sampled_from([None, "x", "y"]),
    "drift.ignore": st.dictionaries(st.sampled_from(["A/*", "A/b"]), days),
    "policies": names,
}
any_settings = st.fixed_dictionaries(
    {name: VALUES.get(name, st.sampled_from(["x", "y"])) for name, order in SETTINGS.items() if order is not None}
)
MESSAGES = [("no",), ("no ", LANGUAGE.expression("resource.name", "")), ("no ", LANGUAGE.expression("change", ""))]
CHECKS = ["true", "false", "resource.spec.description != 'new'", "size(plan.changes) < 2"]


@st.composite
def any_policies(draw: st.DrawFn) -> dict[str, Rule]:
    return {name: draw(any_policy(name)) for name in draw(st.lists(st.sampled_from("pq"), unique=True))}


@st.composite
def any_policy(draw: st.DrawFn, name: str) -> Rule:
    exemptions = draw(st.dictionaries(st.sampled_from(["TLSEdge/e0", "TLSEdge/*"]), days, max_size=1))
    return Rule(
        name,
        LANGUAGE.expression(draw(st.sampled_from(CHECKS))),
        draw(st.sampled_from(MESSAGES)),
        HERE,
        draw(st.sampled_from([Severity.ERROR, Severity.WARNING])),
        kinds=tuple(draw(st.sampled_from([(), ("TLSEdge",), ("Vault",), ("TLSEdge", "Vault")]))),
        addresses=tuple(draw(st.sampled_from([(), ("TLSEdge/e0",), ("*",)]))),
        exemptions=tuple(Exemption(glob, "why", date.fromisoformat(until), HERE) for glob, until in exemptions.items()),
    )


lifecycles = st.builds(Lifecycle, protect=st.booleans(), replace=st.booleans())


@st.composite
def any_edges(draw: st.DrawFn) -> list[Declaration]:
    numbers = draw(st.lists(st.integers(0, 3), unique=True))
    texts = {number: draw(st.sampled_from(["old", "new"])) for number in numbers}
    edges = [
        replace(declare(f"TLSEdge/e{number}", {"description": texts[number]}), lifecycle=draw(lifecycles))
        for number in sorted(numbers)
    ]
    return [declare("Vault/v", {"name": "v"}), *edges]


any_rules = st.builds(
    lambda written, policies, edges: Rules(written, policies, manifest(*edges)),
    any_settings,
    any_policies(),
    any_edges(),
)
EDGES = [live("TLSEdge", f"e{n}", {"description": "old"}, owner=record(f"TLSEdge/e{n}")) for n in range(4)]
ACCOUNT = snapshot(live("Vault", "v", {"name": "v"}, owner=record("Vault/v")), *EDGES)


def plan_by(judgment: Judgment, declared: Manifest, policies: Mapping[str, Rule]) -> Plan:
    """The plan of these declarations, with findings of the policies of both sides."""
    new_plan = plan(declared, ACCOUNT, KINDS, judgment.options)
    rules = (*policies.values(), *judgment.policies)
    findings = evaluate.check_plan(rules, new_plan, KINDS, judgment.options.now, declared)
    return replace(new_plan, problems=(*new_plan.problems, *findings))


def passes(new_plan: Plan) -> bool:
    return not new_plan.missing_approvals and not new_plan.errors


NOW = PlanOptions(now=1_800_000_000.0)  # in 2027


@law
@given(any_rules, any_rules)
def test_a_change_without_approval_satisfies_the_rules_of_the_base(base: Rules, head: Rules) -> None:
    judged = plan_by(judge(NOW, base, head), head.manifest, head.policies)
    alone = Rules(base.settings, base.policies, head.manifest)  # a branch that changes no rule but those of resources
    by_base = plan_by(judge(NOW, base, alone), head.manifest, base.policies)
    assert passes(by_base) or not passes(judged)


@law
@given(any_rules, any_rules)
def test_a_change_without_approval_satisfies_the_rules_of_the_branch(base: Rules, head: Rules) -> None:
    judged = plan_by(judge(NOW, base, head), head.manifest, head.policies)
    by_head = plan_by(judge(NOW, head, head), head.manifest, head.policies)
    assert passes(by_head) or not passes(judged)


@law
@given(any_rules, any_rules)
def test_only_the_rules_of_the_branch_apply_once_each_loosened_rule_is_approved(base: Rules, head: Rules) -> None:
    changes = judge(NOW, base, head).options.rule_changes or ()
    approving = replace(NOW, allow={(str(change.risk), change.rule): 99 for change in changes})
    judged = judge(approving, base, head)
    new_plan = plan_by(judged, head.manifest, head.policies)
    assert [approval.flag for approval in new_plan.missing_approvals if approval.what in set(RuleRisk)] == []
    assert judged.policies == ()
    for name, order in SETTINGS.items():
        if order is not None:
            assert not order.loosens(head.settings[name], judged.settings[name])


@law
@given(any_settings, any_settings)
def test_combined_settings_are_at_least_as_strict_as_either(one: dict[str, Any], other: dict[str, Any]) -> None:
    combined = combine_settings(Rules(one), Rules(other), ())
    for name, order in SETTINGS.items():
        if order is not None and order.strictest is not None:
            assert not order.loosens(one[name], combined[name])
            assert not order.loosens(other[name], combined[name])


@law
@given(any_settings, any_settings, any_settings)
def test_loosening_is_an_order(one: dict[str, Any], two: dict[str, Any], three: dict[str, Any]) -> None:
    for name, order in SETTINGS.items():
        if order is None:
            continue
        assert not order.loosens(one[name], one[name])
        if order.loosens(one[name], three[name]):  # in one step or in two
            assert order.loosens(one[name], two[name]) or order.loosens(two[name], three[name])


@law
@given(any_policy("p"), any_policy("p"), st.sampled_from(["severity", "kinds", "addresses", "exemptions", "message"]))
def test_a_policy_that_is_not_loosened_reports_each_earlier_breach(before: Rule, other: Rule, part: str) -> None:
    after = replace(before, **{part: getattr(other, part)})
    base, head = (Rules(dict.fromkeys(SETTINGS, ""), {"p": rule}) for rule in (before, after))
    if select_policies(base, head, ()):
        return
    declared = (declare(f"TLSEdge/e{number}", {"description": "new"}) for number in range(3))
    edges = manifest(declare("Vault/v", {"name": "v"}), *declared)
    new_plan = plan(edges, ACCOUNT, KINDS, NOW)
    found = [
        {
            problem.subject
            for problem in evaluate.check_plan([rule], new_plan, KINDS, NOW.now, edges)
            if problem.is_error
        }
        for rule in (before, after)
    ]
    assert found[0] <= found[1]
