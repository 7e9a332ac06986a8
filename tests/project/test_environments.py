"""Environments, variables, defaults and `for_each` in whole projects. Invalid ones are in `mistakes`."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconciler.model.address import Address
from reconciler.model.value import Ref
from reconciler.project.documents import budget
from reconciler.project.manifests import load
from tests.harness.tiers import examples
from tests.project.texts import ProjectFolder

# --- environments -----------------------------------------------------------------------------------------------------


def test_an_environment_overrides_settings_and_manifests(project: ProjectFolder) -> None:
    project.write("reconciler.yaml", "stack: shop\nguards: {max_delete_percent: 20, max_update_percent: 20}\n")
    project.write(
        "environments/prod.yaml",
        "stack: shop-prod\nguards: {max_delete_percent: 5, max_update_percent: null}\n"
        "IPPolicy/office:\n  lifecycle: {protect: true}\n  spec:\n    metadata: prod\n",
    )
    read = project.config("prod")
    assert (read.stack, read.guards.max_delete_percent, read.guards.max_update_percent) == ("shop-prod", 5, 30)
    office = project.declarations("prod")["IPPolicy/office"]
    assert office.spec == {"description": "base", "metadata": "prod"}
    assert office.lifecycle.protect
    assert str(office.at("metadata")) == "environments/prod.yaml:6:15"
    assert str(office.at("description")) == "manifests/a.yaml:3:21"


def test_the_environment_variable_selects_an_environment_unless_a_flag_does(project: ProjectFolder) -> None:
    project.write("environments/prod.yaml", "stack: shop-prod\n")
    project.write("environments/test.yaml", "stack: shop-test\n")
    assert project.config(None, {"RECONCILER_ENV": "prod"}).stack == "shop-prod"
    assert project.config("test", {"RECONCILER_ENV": "prod"}).stack == "shop-test"


@pytest.mark.parametrize("text", ["", "# nothing\n", "{}\n", "IPPolicy/office: {}\n", "IPPolicy/office: {spec: {}}\n"])
def test_an_empty_environment_changes_nothing(project: ProjectFolder, text: str) -> None:
    project.write("environments/prod.yaml", text)
    plain, laid = project.declarations()["IPPolicy/office"], project.declarations("prod")["IPPolicy/office"]
    assert (laid.spec, laid.lifecycle, laid.position) == (plain.spec, plain.lifecycle, plain.position)
    assert laid.at("description") == plain.at("description")


def test_an_environment_can_leave_out_a_resource(project: ProjectFolder) -> None:
    project.write("environments/dev.yaml", "IPPolicy/office: null\n")
    assert project.declarations("dev") == {}


def test_an_unknown_environment_is_reported_with_the_closest_name(project: ProjectFolder) -> None:
    project.write("environments/production.yaml", "")
    assert project.problem_lines("prodution") == [
        "unknown environment prodution: there is no file environments/prodution.yaml; did you mean production?"
    ]
    assert "is not a valid environment name" in project.problem_lines("../../etc/passwd")[0]


def test_an_unreadable_environment_is_not_reported_as_unknown(project: ProjectFolder) -> None:
    project.write("environments/prod.yaml", " " * (1024 * 1024 + 1))
    assert project.problem_lines("prod") == ["environments/prod.yaml is larger than 1 MiB; use a smaller file"]


def test_the_digest_of_the_manifests_covers_variables_set_by_flags(project: ProjectFolder) -> None:
    project.write("reconciler.yaml", "stack: shop\nvariables: {x: one}\n")
    assert len({project.load(**given).manifest.digest for given in ({}, {"x": "two"}, {"x": "three"})}) == 3
    assert project.load(x="two").manifest.digest == project.load(x="two").manifest.digest


def test_the_digest_of_the_manifests_covers_the_environment(project: ProjectFolder) -> None:
    project.write("environments/prod.yaml", "IPPolicy/office: {spec: {metadata: a}}\n")
    first = project.load("prod").manifest.digest
    project.write("environments/prod.yaml", "IPPolicy/office: {spec: {metadata: b}}\n")
    assert len({first, project.load("prod").manifest.digest, project.load().manifest.digest}) == 3


# --- variables --------------------------------------------------------------------------------------------------------


TYPED = "stack: shop\nvariables:\n  text: {type: string, default: a}\n  size: {type: integer, default: 3}\n"


def test_a_flag_overrides_an_environment_which_overrides_a_default(project: ProjectFolder) -> None:
    project.write("reconciler.yaml", TYPED)
    project.write("manifests/a.yaml", "kind: IPPolicy\nname: office\nspec: {description: '${{ var.text }}'}\n")
    project.write("environments/prod.yaml", "variables: {text: b}\n")
    found = [
        project.declarations(*environment)["IPPolicy/office"].spec["description"] for environment in ((), ("prod",))
    ]
    found.append(project.declarations("prod", text="c")["IPPolicy/office"].spec["description"])
    assert found == ["a", "b", "c"]


def test_a_value_of_the_wrong_type_is_reported_with_its_flag(project: ProjectFolder) -> None:
    project.write("reconciler.yaml", TYPED)
    assert project.problem_lines(size="three") == [
        "--var size: expected a whole number, found text; write --var 'size=3'",
    ]


def test_an_invalid_value_of_a_flag_is_reported_once(project: ProjectFolder) -> None:
    project.write("reconciler.yaml", "stack: p\nvariables:\n  towns: {type: map}\n")
    project.write("manifests/a.yaml", "kind: IPPolicy\nname: 'p-${{ each.key }}'\nfor_each: '${{ var.towns }}'\n")
    wrong = ["--var towns: expected a map, found invalid YAML; write --var 'towns={a: 1}'"]
    assert project.problem_lines(towns="{berlin: ") == wrong


def test_a_flag_for_an_undeclared_variable_is_refused(project: ProjectFolder) -> None:
    project.write("reconciler.yaml", TYPED)
    assert project.problem_lines(sise="4", region="eu") == [
        "--var region: unknown variable; define it under variables: in reconciler.yaml",
        "--var sise: unknown variable; did you mean size?",
    ]


def test_a_variable_without_a_value_can_be_set_by_a_flag(project: ProjectFolder) -> None:
    project.write("reconciler.yaml", "stack: shop\nvariables: {region: {type: string}}\n")
    assert project.declarations(region="eu")


@pytest.mark.parametrize(
    ("kind", "text", "meant"),
    [("integer", "7", 7), ("number", "0.5", 0.5), ("boolean", "true", True), ("list", "[a, b]", ["a", "b"]),
     ("map", "{a: 1}", {"a": 1}), ("string", "7", "7")],
)  # fmt: skip
def test_a_flag_is_read_as_the_type_of_its_variable(project: ProjectFolder, kind: str, text: str, meant: Any) -> None:
    from reconciler.project.settings import variables

    project.write("reconciler.yaml", f"stack: shop\nvariables: {{v: {{type: {kind}}}}}\n")
    problems: list[Any] = []
    assert variables.settle_variables(project.config().settings, {"v": text}, problems)["v"].value == meant
    assert problems == []


def test_a_list_variable_is_inserted_as_a_list(project: ProjectFolder) -> None:
    project.write("reconciler.yaml", "stack: shop\nvariables: {ports: ['a.example.com:443']}\n")
    project.write("manifests/a.yaml", "kind: TLSEdge\nname: e\nspec: {hostports: '${{ var.ports }}'}\n")
    assert project.declarations()["TLSEdge/e"].spec == {"hostports": ["a.example.com:443"]}


# --- defaults ---------------------------------------------------------------------------------------------------------


def test_manifests_override_the_defaults_of_their_kind(project: ProjectFolder) -> None:
    project.write(
        "reconciler.yaml",
        "stack: shop\n"
        "defaults:\n  IPPolicy: {spec: {description: theirs, metadata: ours}, lifecycle: {protect: true}}\n",
    )
    office = project.declarations()["IPPolicy/office"]
    assert office.spec == {"description": "base", "metadata": "ours"}
    assert office.lifecycle.protect
    assert str(office.at("metadata")) == "reconciler.yaml:3:52"
    project.write("manifests/a.yaml", "kind: IPPolicy\nname: office\nspec: {metadata: null}\n")
    assert project.declarations()["IPPolicy/office"].spec == {"description": "theirs"}


# --- for_each ---------------------------------------------------------------------------------------------------------


EACH = "kind: IPPolicy\nname: 'x-${{ each.key }}'\nfor_each: %s\nspec: {description: '%s'}\n"
RULES = """\
kind: IPPolicy
name: "office-${{ each.key }}"
for_each: [berlin, oslo]
spec: {description: "in ${{ each.value }}"}
---
kind: IPPolicyRule
name: "${{ each.key }}"
for_each:
  lan: {cidr: 10.0.0.0/8, at: berlin}
  vpn: {cidr: 10.1.0.0/16, at: oslo}
spec:
  ip_policy_id: {ref: "IPPolicy/office-${{ each.value.at }}"}
  cidr: "${{ each.value.cidr }}"
  action: allow
"""


def test_for_each_declares_one_resource_per_item(project: ProjectFolder) -> None:
    project.write("manifests/a.yaml", RULES)
    declared = project.declarations()
    assert [*declared] == ["IPPolicy/office-berlin", "IPPolicy/office-oslo", "IPPolicyRule/lan", "IPPolicyRule/vpn"]
    assert declared["IPPolicy/office-oslo"].spec == {"description": "in oslo"}
    assert declared["IPPolicyRule/vpn"].spec == {
        "ip_policy_id": Ref(Address("IPPolicy", "office-oslo")), "cidr": "10.1.0.0/16", "action": "allow",
    }  # fmt: skip
    assert str(declared["IPPolicyRule/vpn"].at("cidr")) == "manifests/a.yaml:10:15"
    assert str(declared["IPPolicyRule/vpn"].at("action")) == "manifests/a.yaml:14:11"


def test_an_environment_patches_an_instance_by_its_name(project: ProjectFolder) -> None:
    project.write("manifests/a.yaml", RULES)
    project.write(
        "environments/prod.yaml", "IPPolicy/office-oslo: {spec: {description: Oslo}}\nIPPolicyRule/lan: null\n"
    )
    declared = project.declarations("prod")
    assert declared["IPPolicy/office-oslo"].spec == {"description": "Oslo"}
    assert declared["IPPolicy/office-berlin"].spec == {"description": "in berlin"}
    assert "IPPolicyRule/lan" not in declared


def test_a_number_of_an_item_or_variable_becomes_text_in_a_text_field(project: ProjectFolder) -> None:
    project.write("reconciler.yaml", "stack: shop\nvariables: {n: {type: number}, l: {type: list}}\n")
    project.write("manifests/a.yaml", EACH % ("'${{ var.l }}'", "${{ each.value }}"))
    assert project.declarations(l="[x, 3]", n="3")["IPPolicy/x-3"].spec == {"description": "3"}
    project.write("manifests/a.yaml", EACH % ("[a]", "${{ var.n }}"))
    assert project.declarations(l="[]", n="3")["IPPolicy/x-a"].spec == {"description": "3"}


def test_the_items_may_be_the_value_of_a_variable(project: ProjectFolder) -> None:
    project.write("reconciler.yaml", "stack: shop\nvariables: {offices: {type: list, default: []}}\n")
    project.write("environments/prod.yaml", "variables: {offices: [rome]}\n")
    project.write("manifests/a.yaml", EACH % ("'${{ var.offices }}'", "${{ each.value }}"))
    assert project.declarations() == {}
    assert str(project.declarations("prod")["IPPolicy/x-rome"].at("description")) == "environments/prod.yaml:1:23"
    assert [*project.declarations("prod", offices="[a, b]")] == ["IPPolicy/x-a", "IPPolicy/x-b"]


def test_an_item_with_the_text_of_an_expression_is_not_resolved_again(project: ProjectFolder) -> None:
    project.write("manifests/a.yaml", EACH % ("{a: '$${{ each.key }}'}", "${{ each.value }}"))
    assert project.declarations()["IPPolicy/x-a"].spec == {"description": "${{ each.key }}"}


def test_the_number_of_instances_is_limited(project: ProjectFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two files share the limit, of which 100 are left here. tests/security/test_unfolding.py spends all 50,000."""
    monkeypatch.setattr(load, "Budget", lambda: budget.Budget(instances=100))
    numbers = ", ".join(str(number) for number in range(51))
    one = f'kind: IPPolicy\nname: "%s-${{{{ each.key }}}}"\nfor_each: [{numbers}]\n'
    project.write("manifests/a.yaml", one % "a")
    assert len(project.declarations()) == 51
    project.write("manifests/b.yaml", one % "b")
    (line,) = project.problem_lines()
    assert line.endswith(
        "for_each: for_each and components expand to more than 50,000 resources in this project; "
        "use less: shorten the largest texts, or insert them in fewer resources"
    )


def test_the_size_of_repeated_items_is_limited(project: ProjectFolder) -> None:
    many, text = ", ".join(f"k{number}" for number in range(200)), "x" * 500_000
    project.write("reconciler.yaml", f"stack: shop\nvariables: {{many: [{many}]}}\n")
    project.write("manifests/a.yaml", EACH % ("'${{ var.many }}'", "${{ each.key }}" + text))
    (line,) = project.problem_lines()
    assert "the manifests hold more than 60,000,000 characters, with everything that they insert" in line


ITEMS = st.dictionaries(st.from_regex(r"[a-z][a-z0-9]{0,5}", fullmatch=True), st.integers(0, 9), min_size=1, max_size=5)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(25))
@given(ITEMS)
def test_the_order_of_items_changes_nothing(project: ProjectFolder, items: dict[str, int]) -> None:
    def specs_of(pairs: list[tuple[str, int]]) -> dict[str, Any]:
        written = ", ".join(f"{key}: {{n: {value}}}" for key, value in pairs)
        project.write("manifests/a.yaml", EACH % (f"{{{written}}}", "${{ each.value.n }}!"))
        return {name: dict(declaration.spec) for name, declaration in project.declarations().items()}

    forwards = specs_of([*items.items()])
    assert forwards == specs_of([*reversed(items.items())])
    assert forwards == {f"IPPolicy/x-{key}": {"description": f"{value}!"} for key, value in items.items()}
