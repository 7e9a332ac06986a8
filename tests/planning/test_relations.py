"""`refs`, `referrers` and the list of resources: what policies find by the references of the manifests."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.languages import cel_cost
from reconciler.model.address import Address
from reconciler.model.manifest import Declaration, Ensure
from reconciler.model.problem import Position
from reconciler.planning.policies import evaluate as policies
from reconciler.planning.policies import relations
from reconciler.planning.policies.relations import Relations
from reconciler.planning.policies.rule import LANGUAGE, Rule
from tests.harness.builders import KINDS, at, declare, make_plan, manifest, ref, secret
from tests.harness.steps import count_steps
from tests.harness.tiers import examples

HERE = Position("policies/a.yaml", 1, 1)
OFFICE = declare("IPPolicy/office")
UNUSED = declare("IPPolicy/unused")
IN_OFFICE = declare("IPPolicyRule/office", {"ip_policy_id": ref("IPPolicy/office"), "cidr": "192.0.2.0/24"})
EDGE = declare(
    "TLSEdge/pay",
    {"hostports": ["pay.example.com:443"], "ip_restriction": {"ip_policy_ids": [ref("IPPolicy/office")]}},
)
DOMAIN = declare("ReservedDomain/pay", {"domain": "*.example.com"})
ALL = (OFFICE, UNUSED, IN_OFFICE, EDGE, DOMAIN)


def rule(check: str, message: str = "no", *parts: str, **options: Any) -> Rule:
    return Rule(
        "a", LANGUAGE.expression(check), (message, *(LANGUAGE.expression(part, "") for part in parts)), HERE, **options
    )


def find_violations(check: str, *declared: Declaration) -> list[str]:
    found = policies.check_manifest([rule(check)], manifest(*declared), KINDS, 0.0)
    assert not any("evaluated" in problem.text for problem in found), found
    return [problem.subject for problem in found]


def name_related(function: str, address: str, *declared: Declaration) -> list[str]:
    """What a function returns for a resource, as a policy reads it."""
    names = f"{function}(resource).map(r, r.address)"
    policy_rule = rule(f"{names} == ['nothing']", "", f"{names}.join(' ')", addresses=(address,))
    (problem,) = policies.check_manifest([policy_rule], manifest(*declared), KINDS, 0.0)
    return problem.text.removesuffix("(policy a)").split()


@pytest.mark.parametrize(
    ("function", "address", "found"),
    [
        ("refs", "IPPolicyRule/office", ["IPPolicy/office"]),
        ("refs", "TLSEdge/pay", ["IPPolicy/office", "ReservedDomain/pay"]),
        ("refs", "IPPolicy/office", []),
        ("referrers", "IPPolicy/office", ["IPPolicyRule/office", "TLSEdge/pay"]),
        ("referrers", "IPPolicy/unused", []),
        ("referrers", "ReservedDomain/pay", ["TLSEdge/pay"]),
        ("referrers", "TLSEdge/pay", []),
    ],
)
def test_a_policy_reads_what_a_resource_refers_to_and_what_refers_to_it(
    function: str, address: str, found: list[str]
) -> None:
    assert name_related(function, address, *ALL) == found


def test_a_resource_that_must_not_exist_is_no_referrer() -> None:
    absent = declare(str(EDGE.address), EDGE.spec, ensure=Ensure.ABSENT)
    assert name_related("referrers", "IPPolicy/office", OFFICE, IN_OFFICE, absent) == ["IPPolicyRule/office"]


def test_a_reference_to_what_is_not_declared_is_not_listed() -> None:
    assert name_related("refs", "TLSEdge/pay", EDGE) == []


def test_related_resources_have_the_same_fields_as_the_resource_itself() -> None:
    check = (
        "resource.kind != 'IPPolicyRule' || refs(resource)[0] == referrers(refs(resource)[0]).map(r, refs(r)[0])[0] && "
        "referrers(refs(resource)[0]).exists(r, r == resource)"
    )
    assert find_violations(check, OFFICE, IN_OFFICE) == []
    assert find_violations(check.replace("==", "!="), OFFICE, IN_OFFICE) == ["IPPolicyRule/office"]


def test_references_can_be_followed_further() -> None:
    check = (
        "resource.kind != 'ReservedDomain' || referrers(resource).exists(e, refs(e).exists(p, p.kind == 'IPPolicy'))"
    )
    assert find_violations(check, *ALL) == []
    assert find_violations(check, DOMAIN) == ["ReservedDomain/pay"]


names = st.sampled_from("abcdef")


@given(st.lists(st.tuples(names, st.lists(names, max_size=3)), max_size=6, unique_by=lambda item: item[0]))
@settings(max_examples=examples(60))
def test_a_resource_refers_to_another_if_and_only_if_the_other_has_it_as_a_referrer(
    world: list[tuple[str, list[str]]],
) -> None:
    declared = [
        declare(f"TLSEdge/{name}", {"ip_restriction": {"ip_policy_ids": [ref(f"IPPolicy/{to}") for to in targets]}})
        for name, targets in world
    ] + [declare(f"IPPolicy/{name}") for name in "abc"]
    found = make_relations(*declared)
    pairs = {(one, other) for one in found.addresses for other in list_addresses(found, "refs", one)}
    assert pairs == {(one, other) for other in found.addresses for one in list_addresses(found, "referrers", other)}
    assert pairs == {(f"TLSEdge/{name}", f"IPPolicy/{to}") for name, targets in world for to in targets if to in "abc"}


def make_relations(*declared: Declaration) -> Relations:
    def describe(address: Address) -> dict[str, Any]:
        return {"address": str(address)}

    return Relations(manifest(*declared), {kind.name: kind for kind in KINDS}, describe)


def list_addresses(found: Relations, function: str, address: str) -> list[str]:
    return [value["address"] for value in found.call(function, {"address": address})]


def test_a_policy_reads_the_list_of_the_resources_that_the_plan_leaves() -> None:
    check = (
        "plan.resources.map(r, r.address) == ['IPPolicy/office', 'TLSEdge/pay'] && plan.resources.size() == 2 && "
        "plan.resources[1].spec.hostports == ['pay.example.com:443'] && plan.resources[1].declared"
    )
    absent = declare("IPPolicy/gone", ensure=Ensure.ABSENT)
    plan = make_plan(OFFICE, EDGE)
    assert policies.check_plan([rule(check)], plan, KINDS, 0.0, manifest(OFFICE, EDGE, absent)) == ()
    (problem,) = policies.check_plan([rule(f"!({check})")], plan, KINDS, 0.0, manifest(OFFICE, EDGE, absent))
    assert problem.text == "no (policy a)"


def test_a_policy_about_relations_is_not_evaluated_without_manifests() -> None:
    rules = [rule("plan.resources.size() > 5"), rule("change == null || refs({'address': 'x'}).size() > 5")]
    assert policies.check_plan(rules, make_plan(OFFICE), KINDS, 0.0) == ()


@given(st.text(min_size=8, max_size=12))
def test_no_policy_reads_the_secret_of_a_related_resource(text: str) -> None:
    vault = declare("Vault/v", {"name": "v"})
    hidden = declare("Secret/a", {"vault_id": ref("Vault/v"), "name": "a", "value": secret(f"«{text}»", "env:X")})
    policy_rule = rule("resource.kind == ''", "", "referrers(resource)", addresses=("Vault/*",))
    (problem,) = policies.check_manifest([policy_rule], manifest(vault, hidden), KINDS, 0.0)
    assert f"«{text}»" not in str(problem)
    assert "env:X" in problem.text
    listing = rule("plan.calls < 0", "", "plan.resources")
    (problem,) = policies.check_plan([listing], make_plan(vault, hidden), KINDS, 0.0, manifest(vault, hidden))
    assert f"«{text}»" not in str(problem)


@pytest.mark.parametrize("argument", ["3", "'IPPolicy/office'", "[1]", "{}", "{'address': 3}", "resource.spec", "null"])
def test_a_function_refuses_what_is_no_resource(argument: str) -> None:
    check = f"refs(dyn({argument})).size() < 9"
    (problem,) = policies.check_manifest([rule(check, addresses=("*",))], manifest(OFFICE), KINDS, 0.0)
    assert problem.text.startswith("policy a cannot be evaluated for IPPolicy/office: refs")


# --- bounds -----------------------------------------------------------------------------------------------------------


def make_world(size: int) -> list[Declaration]:
    edges = [
        declare(
            f"TLSEdge/e{number}",
            {"ip_restriction": {"ip_policy_ids": [ref("IPPolicy/hub"), ref(f"IPPolicy/p{number}")]}},
        )
        for number in range(size)
    ]
    return [declare("IPPolicy/hub"), *edges, *(declare(f"IPPolicy/p{number}") for number in range(size))]


@pytest.mark.parametrize(
    "check",
    [
        "refs(resource).size() < 9",
        "referrers(resource).size() < 1000",
        "refs(resource).all(p, p.kind == 'IPPolicy')",
        "referrers(resource).filter(e, e.name != 'e3').map(e, e.name + '-').join() != '-'",
    ],
)
def test_the_work_for_relations_grows_with_the_resources_and_their_references(
    check: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cel_cost, "_SIZES", ())  # estimates the cost of each evaluation, as with many resources
    steps = []
    for size in (20, 80):
        check_all = partial(policies.check_manifest, [rule(check)], manifest(*make_world(size)), KINDS, 0.0)
        steps.append(count_steps(check_all))
    assert steps[1] < 5 * steps[0]


HOSTILE = "refs(resource).all(p, referrers(p).all(e, refs(e).all(q, referrers(q).size() >= 0)))"


def test_a_policy_that_reads_too_much_ends_with_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relations, "_MOST", 4 * 1024 * 1024)
    began = time.process_time()
    found = policies.check_manifest([rule(HOSTILE, kinds=("TLSEdge",))], manifest(*make_world(150)), KINDS, 0.0)
    assert time.process_time() - began < 20
    assert found
    assert "reads more than 256 million characters and items" in found[0].text


def test_values_that_one_policy_reads_do_not_count_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relations, "_MOST", 1024 * 1024)
    good = Rule("b", LANGUAGE.expression("refs(resource).size() < 9"), ("no",), HERE)
    found = policies.check_manifest([rule(HOSTILE, kinds=("TLSEdge",)), good], manifest(*make_world(60)), KINDS, 0.0)
    assert {problem.rule for problem in found} == {"a"}


def test_reading_all_resources_for_each_resource_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    declared = make_world(40)
    plan = make_plan(*declared)
    quadratic = rule("plan.resources.exists(r, r.address == resource.address)")
    assert policies.check_plan([quadratic], plan, KINDS, 0.0, manifest(*declared)) == ()
    monkeypatch.setattr(relations, "_MOST", 100_000)
    found = policies.check_plan([quadratic], plan, KINDS, 0.0, manifest(*declared))
    assert "use refs or referrers instead of plan.resources" in found[0].text


def test_a_plan_is_not_converted_with_its_resources_for_a_policy_that_does_not_read_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(relations, "_MOST", 10)
    plan = make_plan(OFFICE)
    check = "plan.changes.size() == 1 && resource.address == 'IPPolicy/office'"
    assert policies.check_plan([rule(check)], plan, KINDS, 0.0, manifest(OFFICE)) == ()


def test_an_address_is_found_once_for_all_policies() -> None:
    described: list[Address] = []

    def describe(address: Address) -> dict[str, Any]:
        described.append(address)
        return {"address": str(address)}

    found = Relations(manifest(*ALL), {kind.name: kind for kind in KINDS}, describe)
    for _ in range(3):
        found.call("referrers", {"address": "IPPolicy/office"})
    assert described == [at("IPPolicyRule/office"), at("TLSEdge/pay")]
