"""Evaluation of policies: their scope, the values that expressions read, and the problems that they report."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from reconciler.languages.cel import Expression
from reconciler.model.change import Action
from reconciler.model.manifest import Declaration, Ensure, Path, Rotation
from reconciler.model.problem import Position, Severity
from reconciler.planning.deciding.options import PlanOptions
from reconciler.planning.policies import evaluate as policies
from reconciler.planning.policies.rule import LANGUAGE, Exemption, Rule
from tests.harness.builders import (
    KINDS,
    build_account,
    declare,
    live,
    make_plan,
    manifest,
    record,
    ref,
    secret,
    snapshot,
)

HERE = Position("policies/a.yaml", 1, 1)
NOW = datetime(2026, 6, 15, 12, tzinfo=UTC).timestamp()


def rule(check: str, message: str = "no", *parts: str, **options: Any) -> Rule:
    text_parts: tuple[str | Expression, ...] = (message, *(LANGUAGE.expression(part, "") for part in parts))
    return Rule("a", LANGUAGE.expression(check), text_parts, HERE, **options)


def check_offline(policy_rule: Rule, *declared: Declaration) -> list[str]:
    return [problem.subject for problem in policies.check_manifest([policy_rule], manifest(*declared), KINDS, NOW)]


OFFICE = declare("IPPolicy/office", {"description": "x"})
EDGE = declare("TLSEdge/pay", {"hostports": ["pay.example.com:443"]})


@pytest.mark.parametrize(
    ("scope", "subjects"),
    [
        ({}, ["IPPolicy/office", "TLSEdge/pay"]),
        ({"kinds": ("TLSEdge",)}, ["TLSEdge/pay"]),
        ({"addresses": ("*/off*",)}, ["IPPolicy/office"]),
        ({"addresses": ("*/none",)}, []),
        ({"kinds": ("TLSEdge",), "addresses": ("*/off*",)}, []),
    ],
)
def test_a_rule_applies_to_the_resources_in_its_scope(scope: dict[str, Any], subjects: list[str]) -> None:
    assert sorted(check_offline(rule("resource.kind == ''", **scope), OFFICE, EDGE)) == subjects


def test_a_rule_with_addresses_applies_to_resources_even_if_its_check_names_none() -> None:
    assert check_offline(rule("1 == 2", addresses=("*/off*",)), OFFICE, EDGE) == ["IPPolicy/office"]


def test_an_absent_resource_is_not_checked() -> None:
    assert check_offline(rule("resource.kind == ''"), declare("IPPolicy/a", ensure=Ensure.ABSENT)) == []


DECLARED = "resource.declared && resource.ensure == 'present'"


@pytest.mark.parametrize(
    ("credential", "check"),
    [
        ({}, DECLARED + " && resource.id == '' && !resource.protect && !resource.rotates"),
        ({"id": "cr_1", "protect": True}, "resource.id == 'cr_1' && resource.protect && !resource.rotates"),
        ({"rotates": True}, "resource.rotates && resource.delivers == ['token']"),
        ({"deliver": False}, "resource.delivers == [] && resource.name == 'a' && resource.kind == 'TunnelCredential'"),
    ],
)
def test_a_rule_reads_what_is_declared_beside_the_fields(credential: dict[str, Any], check: str) -> None:
    rotates = credential.pop("rotates", False)
    declared = declare("TunnelCredential/a", **credential)
    declared = replace(declared, rotate=Rotation(30 * 86_400)) if rotates else declared
    assert check_offline(rule(check), declared) == []
    assert check_offline(rule(f"!({check})"), declared) == ["TunnelCredential/a"]


@pytest.mark.parametrize("check", ["change == null", "plan.calls == 0 && resource.ok", "now < now"])
def test_a_rule_that_needs_a_plan_is_not_evaluated_offline(check: str) -> None:
    assert check_offline(rule(check, kinds=("IPPolicy",)), OFFICE) == []


def test_an_undeclared_field_has_its_documented_default() -> None:
    check = (
        "resource.spec.hostports == [] && resource.spec.tls_termination.terminate_at == 'edge' && "
        "resource.spec.tls_termination.min_version == null && resource.spec.ip_restriction == null"
    )
    assert check_offline(rule(check), declare("TLSEdge/a", {"tls_termination": {}})) == []


@pytest.mark.parametrize(("host", "bindings"), [("a.internal", "['internal']"), ("a.example.com", "['public']")])
def test_a_default_derived_from_another_field_has_its_actual_value(host: str, bindings: str) -> None:
    declared = declare("CloudEndpoint/a", {"url": f"https://{host}", "traffic_policy": "p"})
    assert check_offline(rule(f"resource.spec.bindings == {bindings}"), declared) == []


def test_a_traffic_policy_is_a_document_in_any_notation() -> None:
    document = "on_http_request:\n  - actions: [{type: deny}]"
    check = "resource.spec.traffic_policy.value.on_http_request[0].actions[0].type == 'deny'"
    assert check_offline(rule(check), declare("TLSEdge/a", {"traffic_policy": {"value": document}})) == []


def test_a_reference_has_the_address_of_its_target() -> None:
    spec = {"ip_restriction": {"ip_policy_ids": [ref("IPPolicy/office")]}}
    check = "resource.spec.ip_restriction.ip_policy_ids == [{'ref': 'IPPolicy/office'}]"
    assert check_offline(rule(check), declare("TLSEdge/a", spec)) == []


@given(st.text(min_size=8, max_size=12))
def test_no_expression_reads_a_secret(text: str) -> None:
    policy_rule = rule("resource.kind == ''", "", "resource")
    declared = declare("Secret/a", {"value": secret(f"«{text}»", "env:X")})
    (problem,) = policies.check_manifest([policy_rule], manifest(declared), KINDS, NOW)
    assert f"«{text}»" not in str(problem)
    assert '{"source": "env:X"}' in problem.text


def test_a_change_is_checked_once_and_only_for_its_actions() -> None:
    world = build_account(OFFICE, declare("IPPolicy/old", {}))
    changed = declare("IPPolicy/office", {"description": "y"})
    plan = make_plan(changed, declare("IPPolicy/new", {}), seen=world.snapshot())

    def find_violations(*actions: Action) -> set[str]:
        found = policies.check_plan([rule("change == null", actions=actions)], plan, KINDS, NOW, manifest(changed))
        return {problem.subject for problem in found}

    assert find_violations() == {"IPPolicy/office", "IPPolicy/new", "IPPolicy/old"}
    assert find_violations(Action.DELETE) == {"IPPolicy/old"}
    assert find_violations(Action.CREATE, Action.UPDATE) == {"IPPolicy/office", "IPPolicy/new"}


def test_a_change_has_its_fields_and_the_live_object() -> None:
    world = build_account(OFFICE)
    changed = declare("IPPolicy/office", {"description": "y"})
    plan = make_plan(changed, seen=world.snapshot())
    check = (
        "change.action == 'update' && change.reason == 'fields' && change.live.description == 'x' && "
        "change.fields == [{'path': 'description', 'old': 'x', 'new': 'y', 'changed_by': 'git', 'replaces': false}] && "
        "plan.counts == {'create': 0, 'update': 1, 'replace': 0, 'delete': 0, 'adopt': 0, 'forget': 0, 'move': 0} && "
        "plan.changes[0].address == resource.address && plan.stack == 'laws' && now.getMonth() == 5"
    )
    assert policies.check_plan([rule(check)], plan, KINDS, NOW, manifest(changed)) == ()


def test_a_change_has_the_id_and_former_address_of_its_object_as_text() -> None:
    policy = live("IPPolicy", "ipp_1", owner=record("IPPolicy/old", {}))
    declared = [declare("IPPolicy/moved", moved=["IPPolicy/old"]), declare("IPPolicy/new")]
    plan = make_plan(*declared, seen=snapshot(policy))
    policy_rule = rule("false", "", "change.id + '|' + change.former", actions=(Action.CREATE, Action.MOVE))
    found = policies.check_plan([policy_rule], plan, KINDS, NOW, manifest(*declared))
    assert {problem.subject: problem.text for problem in found} == {
        "IPPolicy/moved": "ipp_1|IPPolicy/old (policy a)",
        "IPPolicy/new": "| (policy a)",
    }


def test_a_violation_by_an_undeclared_object_has_the_position_of_the_rule() -> None:
    plan = make_plan(seen=build_account(OFFICE).snapshot())
    policy_rule = rule("false", field="description", actions=(Action.DELETE,))
    (problem,) = policies.check_plan([policy_rule], plan, KINDS, NOW, manifest())
    assert (problem.subject, problem.position) == ("IPPolicy/office", HERE)


def test_an_undeclared_object_has_its_live_values() -> None:
    plan = make_plan(seen=build_account(OFFICE).snapshot())
    policy_rule = rule(
        "resource.declared || resource.protect || resource.ensure != '' || resource.rotates",
        "live: ",
        "resource.spec.description",
        actions=(Action.DELETE,),
    )
    (problem,) = policies.check_plan([policy_rule], plan, KINDS, NOW, manifest())
    assert problem.text.startswith("live: x (policy a)")


def test_unselected_resources_are_not_checked() -> None:
    plan = make_plan(OFFICE, EDGE, options=PlanOptions(targets=("TLSEdge/*",)))
    found = policies.check_plan([rule("resource.kind == ''")], plan, KINDS, NOW, manifest(OFFICE, EDGE))
    assert [problem.subject for problem in found] == ["TLSEdge/pay"]


def test_a_rule_about_the_plan_is_evaluated_once() -> None:
    plan = make_plan(OFFICE, EDGE)
    (problem,) = policies.check_plan(
        [rule("plan.calls == 1", "calls: ", "plan.calls")], plan, KINDS, NOW, manifest(OFFICE)
    )
    assert (problem.subject, problem.position) == ("", HERE)
    assert problem.text.startswith("calls: 2")


def test_only_changes_are_checked_without_manifests() -> None:
    plan = make_plan(OFFICE)
    rules = [rule("resource.kind == ''"), rule("change.action == ''")]
    (problem,) = policies.check_plan(rules, plan, KINDS, NOW)
    assert problem.subject == "IPPolicy/office"


@pytest.mark.parametrize("severity", list(Severity))
def test_a_rule_that_cannot_be_evaluated_is_a_problem(severity: Severity) -> None:
    policy_rule = rule(
        "resource.spec.nope == ''", severity=severity, places={"check": Position("policies/a.yaml", 2, 8)}
    )
    (problem,) = policies.check_manifest([policy_rule], manifest(OFFICE), KINDS, NOW)
    assert (problem.text, problem.severity, problem.rule) == (
        "policy a cannot be evaluated for IPPolicy/office: there is no nope",
        severity,
        "a",
    )
    assert str(problem.position) == "policies/a.yaml:2:8"


def test_a_rule_about_the_plan_that_cannot_be_evaluated_names_no_resource() -> None:
    (problem,) = policies.check_plan([rule("plan.nope == 1")], make_plan(OFFICE), KINDS, NOW, manifest(OFFICE))
    assert problem.text == "policy a cannot be evaluated: there is no nope"


def test_a_message_that_cannot_be_evaluated_is_reported_with_the_violation() -> None:
    (problem,) = policies.check_manifest(
        [rule("false || resource.kind == ''", "x", "resource.nope")], manifest(OFFICE), KINDS, NOW
    )
    assert problem.text == "x(there is no nope) (policy a)"


def test_a_violation_has_the_position_of_the_field_of_the_rule() -> None:
    positions: Mapping[Path, Position] = {("spec", "description"): Position("m.yaml", 4, 16)}
    declared = Declaration(OFFICE.address, OFFICE.spec, Position("m.yaml", 1, 1), positions)
    (problem,) = policies.check_manifest(
        [rule("resource.kind == ''", field="description")], manifest(declared), KINDS, NOW
    )
    assert str(problem.position) == "m.yaml:4:16"


def exempt(until: date) -> Rule:
    return rule(
        "resource.kind == ''", exemptions=(Exemption("IPPolicy/*", "the old site", until, Position("p", 5, 3)),)
    )


def test_violations_are_sorted_by_severity_and_position() -> None:
    declared = manifest(
        *(
            replace(declare(f"IPPolicy/{name}"), position=Position(file, line, 1))
            for name, file, line in (("a", "b.yaml", 9), ("b", "b.yaml", 2), ("c", "a.yaml", 3))
        )
    )
    rules = [
        replace(rule("resource.kind == ''"), name="warns", severity=Severity.WARNING),
        replace(rule("resource.name != 'b'"), name="fails"),
    ]
    found = policies.check_manifest(rules, declared, KINDS, NOW)
    assert [(problem.rule, problem.subject[-1]) for problem in found] == [
        ("fails", "b"),
        ("warns", "c"),
        ("warns", "b"),
        ("warns", "a"),
    ]


@pytest.mark.parametrize(
    ("remedy", "expected"),
    [("ask the team", "ask the team"), ("", "correct it, or add an exemption at policies/a.yaml:1")],
)
def test_a_violation_has_a_remedy(remedy: str, expected: str) -> None:
    policy_rule = replace(rule("resource.kind == ''"), remedy=remedy)
    (problem,) = policies.check_manifest([policy_rule], manifest(OFFICE), KINDS, NOW)
    assert problem.remedy == expected


def test_an_exemption_is_valid_to_the_end_of_its_day() -> None:
    assert check_offline(exempt(date(2026, 6, 15)), OFFICE, EDGE) == ["TLSEdge/pay"]


def test_an_expired_exemption_is_reported_and_exempts_nothing() -> None:
    (problem,) = policies.check_manifest([exempt(date(2026, 6, 14))], manifest(OFFICE), KINDS, NOW)
    assert problem.text == "no (policy a; its exemption at p:5:3 expired on 2026-06-14 (the old site))"


def test_many_violations_of_one_rule_are_counted() -> None:
    many: Mapping[str, Declaration] = {str(n): declare(f"IPPolicy/{n}", {}) for n in range(60)}
    found = policies.check_manifest([rule("resource.kind == ''")], manifest(*many.values()), KINDS, NOW)
    assert (len(found), found[-1].text) == (51, "10 more violate policy a")
