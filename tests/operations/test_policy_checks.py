"""Policies of a plan file whose manifests are not at hand: what is evaluated again, kept, or unknown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.access.account import Account
from reconciler.model.change import Action, Change, Reason
from reconciler.model.manifest import Manifest
from reconciler.model.plan import Plan
from reconciler.model.problem import Problem, Severity
from reconciler.operations import policy_checks
from reconciler.operations.policy_checks import Rules, check_manifest, load_rules
from reconciler.project.settings.config import load_config
from tests.harness.builders import at, declare, manifest

ABOUT_RESOURCES = {"policy": "p", "message": "no", "check": "resource.spec.description != 'x'"}
ABOUT_CHANGES = {
    "policy": "p",
    "message": "no",
    "check": "resource.spec.description != 'x'",
    "scope": {"actions": ["update"]},
}


def rules(root: Path, *documents: dict[str, Any]) -> Rules:
    (root / "policies").mkdir(exist_ok=True)
    (root / "reconciler.yaml").write_text("version: 1\nstack: laws\n")
    (root / "policies/p.yaml").write_text("---\n".join(f"{json.dumps(document)}\n" for document in documents))
    return load_rules(load_config(root, {}))


def plan_of(*changes: tuple[str, Action], **more: Any) -> Plan:
    return Plan("laws", changes=tuple(Change(at(where), action, Reason.FIELDS) for where, action in changes), **more)


def with_policy_findings(plan: Plan, found: Rules, now: float, declared: Manifest | None) -> Plan:
    return policy_checks.with_policy_findings(plan, found, now, declared, lambda: Account(()))


A, B = "IPPolicy/a", "IPPolicy/b"


@pytest.mark.parametrize(
    ("document", "changes", "about"),
    [
        (ABOUT_RESOURCES, [(A, Action.UPDATE)], "IPPolicy/a"),
        (ABOUT_RESOURCES, [(A, Action.CREATE), (B, Action.ADOPT)], "IPPolicy/a and 1 more"),
        (ABOUT_RESOURCES, [(A, Action.DELETE), (B, Action.FORGET)], ""),
        (ABOUT_RESOURCES, [], ""),
        ({**ABOUT_RESOURCES, "scope": {"kinds": ["TLSEdge"]}}, [(A, Action.UPDATE)], ""),
        (
            {**ABOUT_RESOURCES, "scope": {"addresses": ["IPPolicy/b*"]}},
            [(A, Action.UPDATE), (B, Action.UPDATE)],
            "IPPolicy/b",
        ),
        (ABOUT_CHANGES, [(A, Action.UPDATE), (B, Action.CREATE)], "IPPolicy/a"),
        (ABOUT_CHANGES, [(A, Action.CREATE)], ""),
        ({**ABOUT_CHANGES, "scope": {"actions": ["delete"]}}, [(A, Action.DELETE)], "IPPolicy/a"),
        (
            {**ABOUT_RESOURCES, "check": "change.action != resource.kind"},
            [(A, Action.DELETE)],
            "IPPolicy/a",
        ),
        ({"policy": "p", "message": "no", "check": "size(plan.changes) < 9"}, [(A, Action.UPDATE)], ""),
    ],
)
def test_a_changed_policy_without_manifests_is_unknown_for_the_resources_in_its_scope(
    tmp_path: Path, document: dict[str, Any], changes: list[tuple[str, Action]], about: str
) -> None:
    found = with_policy_findings(plan_of(*changes), rules(tmp_path, document), 0.0, None)
    violations = [problem for problem in found.problems if problem.code == "policy"]
    assert [problem.text for problem in violations] == (
        [f"the policy p cannot be evaluated again for {about}: the manifests changed after the plan was created"]
        if about
        else []
    )
    assert [(problem.rule, problem.remedy, problem.severity) for problem in violations] == [
        ("p", "plan again", Severity.ERROR) for _ in violations
    ]


def test_a_finding_of_the_plan_remains_while_its_policy_is_unchanged(tmp_path: Path) -> None:
    found = rules(tmp_path, ABOUT_RESOURCES)
    finding, other = Problem("no", rule="p", code="policy"), Problem("hm", code="x")
    plan = plan_of((A, Action.UPDATE), problems=(finding, other))
    judged = with_policy_findings(plan, found, 0.0, manifest()).judged
    again = with_policy_findings(replace(plan, judged=judged), found, 0.0, None)
    assert (again.problems, again.judged) == ((finding, other), judged)
    warning = rules(tmp_path, {**ABOUT_RESOURCES, "severity": "warning"})
    problems = with_policy_findings(replace(plan, judged=judged), warning, 0.0, None).problems
    assert [problem.severity for problem in problems] == [Severity.ERROR, Severity.ERROR, Severity.WARNING]


def test_a_policy_is_evaluated_again_with_the_manifests(tmp_path: Path) -> None:
    found = rules(tmp_path, ABOUT_RESOURCES)
    stale = Problem("of an earlier time", rule="p", code="policy")
    plan = plan_of((A, Action.UPDATE), problems=(stale,))
    declared = manifest(declare(A, {"description": "x"}), declare(B, {"description": "y"}))
    assert [problem.subject for problem in with_policy_findings(plan, found, 0.0, declared).problems] == [A]
    assert [problem.subject for problem in check_manifest(found, declared, 0.0)] == [A]
    assert check_manifest((), declared, 0.0) == ()
    assert with_policy_findings(plan, (), 0.0, declared) is plan


def test_a_policy_for_the_plan_is_evaluated_without_manifests(tmp_path: Path) -> None:
    found = rules(tmp_path, {"policy": "p", "message": "no", "check": "size(plan.changes) < 1"})
    stale = Problem("of an earlier time", rule="p", code="policy")
    problems = with_policy_findings(plan_of((A, Action.UPDATE), problems=(stale,)), found, 0.0, None).problems
    assert [problem.text for problem in problems] == ["no (policy p)"]


@pytest.mark.parametrize(
    "changed",
    [
        {"severity": "warning"},
        {"scope": {"kinds": ["IPPolicy"]}},
        {"scope": {"addresses": ["IPPolicy/*"]}},
        {"scope": {"actions": ["update"]}},
        {"check": "resource.spec.description != 'y'"},
        {"exemptions": [{"address": A, "until": "2999-01-01", "reason": "r"}]},
    ],
)
def test_the_digest_distinguishes_policies(tmp_path: Path, changed: dict[str, Any]) -> None:
    before, after = (
        with_policy_findings(plan_of(), rules(tmp_path, {**ABOUT_RESOURCES, **more}), 0.0, manifest()).judged["p"]
        for more in ({}, changed)
    )
    assert before != after
    words = {"message": "another text", "remedy": "do something"}
    same = with_policy_findings(plan_of(), rules(tmp_path, {**ABOUT_RESOURCES, **words}), 0.0, manifest())
    assert same.judged["p"] == before
