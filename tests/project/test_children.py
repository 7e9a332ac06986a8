"""Children that are declared inline, in the manifest of their parent: addresses, layers, positions and limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.languages.yaml import reader as yaml
from reconciler.model.address import Address
from reconciler.model.manifest import Declaration, Ensure
from reconciler.model.problem import Rejected
from reconciler.project.documents.layout_changes import list_changes
from reconciler.project.manifests import children
from reconciler.project.yaml import emit
from tests.harness.steps import count_steps
from tests.harness.tiers import examples
from tests.project.texts import ProjectFolder, load, problem_lines

OFFICE = """\
kind: IPPolicy
name: office
spec: {description: Where we work}
rules:
  lan: {cidr: 203.0.113.0/24, action: allow}
  vpn:
    cidr: 198.51.100.0/24
    action: allow
    lifecycle: {protect: true}
"""


def declarations_of(text: str, **more: Any) -> Mapping[str, Declaration]:
    return {str(address): found for address, found in load(text, **more).manifest.declarations.items()}


def test_an_inline_child_is_a_resource_of_its_own() -> None:
    found = declarations_of(OFFICE)
    assert list(found) == ["IPPolicy/office", "IPPolicyRule/office-lan", "IPPolicyRule/office-vpn"]
    assert found["IPPolicy/office"].spec == {"description": "Where we work"}
    vpn = found["IPPolicyRule/office-vpn"]
    assert str(vpn.spec["ip_policy_id"]) == "IPPolicy/office"
    assert (vpn.spec["cidr"], vpn.spec["action"], vpn.lifecycle.protect) == ("198.51.100.0/24", "allow", True)


def test_the_positions_of_an_inline_child_are_those_of_its_entry() -> None:
    found = declarations_of(OFFICE)
    lan, vpn = found["IPPolicyRule/office-lan"], found["IPPolicyRule/office-vpn"]
    assert (str(lan.position), str(lan.at("cidr"))) == ("a.yaml:5:3", "a.yaml:5:15")
    assert (str(vpn.position), str(vpn.at("cidr"))) == ("a.yaml:6:3", "a.yaml:7:11")
    assert str(vpn.at("ip_policy_id")) == str(vpn.at()) == "a.yaml:6:3"
    assert str(vpn.positions["lifecycle", "protect"]) == "a.yaml:9:26"


def test_every_instance_of_a_parent_with_for_each_has_its_children() -> None:
    text = """\
        kind: HTTPSEdge
        name: shop-${{ each.key }}
        for_each: {eu: {path: /eu, more: {docs: {match_type: exact_path, match: /docs}}}, us: {path: /us, more: {}}}
        routes:
          main: {match_type: path_prefix, match: "${{ each.value.path }}"}
        """
    found = declarations_of(text)
    assert list(found) == [
        "HTTPSEdge/shop-eu",
        "HTTPSEdgeRoute/shop-eu-main",
        "HTTPSEdge/shop-us",
        "HTTPSEdgeRoute/shop-us-main",
    ]
    main = found["HTTPSEdgeRoute/shop-us-main"]
    assert (str(main.spec["edge_id"]), main.spec["match"]) == ("HTTPSEdge/shop-us", "/us")
    assert (str(main.position), str(main.at("match"))) == ("a.yaml:5:3", "a.yaml:3:94")
    whole = text.replace(
        'routes:\n          main: {match_type: path_prefix, match: "${{ each.value.path }}"}',
        "routes: ${{ each.value.more }}",
    )
    assert whole != text
    docs = declarations_of(whole)["HTTPSEdgeRoute/shop-eu-docs"]
    assert (str(docs.position), str(docs.at("match"))) == ("a.yaml:4:1", "a.yaml:3:73")


def test_layers_of_the_parent_and_of_the_child_apply_to_an_inline_child(project: ProjectFolder) -> None:
    project.write("reconciler.yaml", "stack: s\ndefaults: {IPPolicyRule: {spec: {description: d, metadata: m}}}\n")
    project.write("manifests/a.yaml", OFFICE)
    project.write(
        "environments/prod.yaml",
        "IPPolicy/office:\n  rules:\n    lan: {cidr: 10.0.0.0/8}\n    vpn: null\n"
        "    new: {cidr: 10.1.0.0/16, action: deny}\nIPPolicyRule/office-lan: {spec: {description: e}}\n",
    )
    found = project.load("prod").manifest.declarations
    lan, new = (found[Address("IPPolicyRule", name)] for name in ("office-lan", "office-new"))
    assert Address("IPPolicyRule", "office-vpn") not in found
    assert (lan.spec["cidr"], lan.spec["description"], lan.spec["metadata"]) == ("10.0.0.0/8", "e", "m")
    assert (new.spec["action"], new.spec["description"]) == ("deny", "d")
    assert (str(lan.position), str(lan.at("cidr"))) == ("manifests/a.yaml:5:3", "environments/prod.yaml:3:17")
    assert str(new.position) == "environments/prod.yaml:5:5"


def test_an_environment_leaves_out_a_parent_with_its_inline_children(project: ProjectFolder) -> None:
    project.write("reconciler.yaml", "stack: s\n")
    project.write("manifests/a.yaml", OFFICE)
    project.write("environments/prod.yaml", "IPPolicy/office: null\n")
    project.write("environments/test.yaml", "IPPolicyRule/office-lan: null\n")
    manifest = project.load("prod").manifest
    assert sorted(map(str, manifest.left_out)) == [
        "IPPolicy/office",
        "IPPolicyRule/office-lan",
        "IPPolicyRule/office-vpn",
    ]
    assert manifest.is_empty
    assert [*map(str, project.load("test").manifest.declarations)] == ["IPPolicy/office", "IPPolicyRule/office-vpn"]


@pytest.mark.parametrize("ensure", ["absent", "forgotten"])
def test_inline_children_end_with_their_parent(ensure: str) -> None:
    found = declarations_of(f"{OFFICE}ensure: {ensure}\n")
    assert {declaration.ensure for declaration in found.values()} == {Ensure(ensure)}


def test_when_decides_about_one_inline_child_in_each_instance_and_environment(project: ProjectFolder) -> None:
    project.write("reconciler.yaml", "stack: s\nvariables: {vpn: {type: boolean, default: false}}\n")
    project.write(
        "manifests/a.yaml",
        "kind: IPPolicy\nname: p-${{ each.key }}\nfor_each: {a: {lan: true}, b: {lan: false}}\nspec: {}\nrules:\n"
        "  lan: {when: '${{ each.value.lan }}', cidr: 10.0.0.0/8, action: allow}\n"
        "  vpn: {when: '${{ var.vpn }}', cidr: 10.1.0.0/16, action: allow}\n",
    )
    patch = "variables: {vpn: true}\nIPPolicy/p-a: {rules: {vpn: {action: deny}, lan: {when: false}}}\n"
    project.write("environments/prod.yaml", f"{patch}IPPolicyRule/p-a-vpn: {{lifecycle: {{protect: true}}}}\n")
    rules = {name: found for name, found in project.declarations("prod").items() if "Rule" in name}
    assert {name for name in project.declarations() if "Rule" in name} == {"IPPolicyRule/p-a-lan"}
    assert {*rules} == {"IPPolicyRule/p-a-vpn", "IPPolicyRule/p-b-vpn"}
    vpn = rules["IPPolicyRule/p-a-vpn"]
    assert (vpn.spec["action"], vpn.lifecycle.protect, vpn.position.line) == ("deny", True, 7)


def test_an_input_without_a_value_is_no_condition_of_an_inline_child(project: ProjectFolder) -> None:
    project.write("reconciler.yaml", "stack: s\n")
    part = "inputs: {open: {type: boolean, default: null}}\n---\nkind: IPPolicy\nname: p\nspec: {}\n"
    project.write(
        "components/part.yaml",
        f"{part}rules: {{lan: {{when: '${{{{ input.open }}}}', cidr: 10.0.0.0/8, action: allow}}}}\n",
    )
    project.write("manifests/a.yaml", "component: part\nname: a\n")
    (line,) = project.problem_lines()
    assert "IPPolicyRule/a-p-lan.when: expected true or false, found nothing" in line
    project.write("manifests/a.yaml", "component: part\nname: a\nwith: {open: false}\n")
    assert [*project.declarations()] == ["IPPolicy/a-p"]


def test_an_inline_child_is_absent_or_forgotten_by_itself() -> None:
    found = declarations_of(OFFICE.replace("action: allow}", "action: allow, ensure: absent}"))
    assert found["IPPolicyRule/office-lan"].ensure is Ensure.ABSENT
    assert found["IPPolicyRule/office-vpn"].ensure is Ensure.PRESENT


def test_the_former_names_of_a_parent_are_those_of_its_inline_children() -> None:
    text = OFFICE.replace("name: office", "name: hq\nmoved: [IPPolicy/office, IPPolicy/old]")
    found = declarations_of(text.replace("allow}", "allow, moved: IPPolicyRule/hq-net}"))
    assert [*map(str, found["IPPolicyRule/hq-lan"].moved)] == [
        "IPPolicyRule/hq-net",
        "IPPolicyRule/office-lan",
        "IPPolicyRule/old-lan",
    ]
    assert [*map(str, found["IPPolicyRule/hq-vpn"].moved)] == ["IPPolicyRule/office-vpn", "IPPolicyRule/old-vpn"]


def test_secret_and_text_fields_of_an_inline_child_are_known_in_an_instance() -> None:
    text = """\
        kind: Vault
        name: v-${{ each.key }}
        for_each: {a: {number: 7}}
        spec: {name: "${{ each.key }}"}
        secrets: {x: {name: "${{ each.value.number }}", value: %s}}
        """
    assert declarations_of(text % "{from_env: KEY}", environ={"KEY": "k"})["Secret/v-a-x"].spec["name"] == "7"
    (line,) = problem_lines(text % "'${{ lower(each.key) }}'")
    assert line.startswith(
        "a.yaml:5:56: Vault/v-${{ each.key }}.secrets.x.value: functions are not available in secret"
    )


def test_a_diff_of_the_layout_hides_the_secret_of_an_inline_child() -> None:
    text = "kind: Vault\nname: v\nspec: {name: v}\nsecrets:\n    x: {name: x, value: hunter22}\n"
    lines = "\n".join(list_changes("a.yaml", text, text.replace("    x", "  x")))
    assert "name: x" in lines
    assert "hunter22" not in lines


def test_a_reference_names_an_inline_child_like_any_resource() -> None:
    text = OFFICE + "---\nkind: EventDestination\nname: e\nspec: {metadata: 'see ${{ IPPolicyRule/office-lan.id }}'}\n"
    lines = problem_lines(text.replace("office-lan", "office-lam"))
    assert any("did you mean IPPolicyRule/office-lan?" in line for line in lines)


def test_the_problems_of_many_wrong_entries_are_limited() -> None:
    text = "kind: IPPolicy\nname: a\nrules:\n" + "".join(f"  r{number}: x\n" for number in range(500))
    lines = problem_lines(text)
    assert len(lines) == 102
    assert "a.yaml:3:1: IPPolicy/a.rules: more than 100 problems in this map; correct those above first" in lines


def test_the_work_for_inline_children_grows_with_their_number() -> None:
    def steps(count: int) -> int:
        entries = "".join(f"  r{n}: {{cidr: 10.{n // 256}.{n % 256}.0/24, action: allow}}\n" for n in range(count))
        text = f"kind: IPPolicy\nname: a\nrules:\n{entries}"
        return count_steps(lambda: [one.at("cidr") for one in declarations_of(text).values()])

    steps(1)  # imports
    assert steps(400) < 5 * steps(100)


NAMES = st.text("abc-.", min_size=1, max_size=3).filter(lambda name: name[0].isalpha())
RULES = st.dictionaries(
    NAMES,
    st.fixed_dictionaries(
        {
            "cidr": st.integers(0, 255).map(lambda number: f"10.{number}.0.0/16"),
            "action": st.sampled_from(["allow", "deny", "${{ var.action }}"]),
        },
        optional={
            "description": st.sampled_from(["x", "of ${{ IPPolicy/p }}"]),
            "lifecycle": st.just({"protect": True}),
            "ensure": st.sampled_from(["absent", "forgotten", "present"]),
            "moved": st.just("IPPolicyRule/before"),
        },
    ),
    max_size=4,
)


@settings(max_examples=examples(10), deadline=None)
@given(RULES)
def test_inline_children_declare_the_same_resources_as_manifests_of_their_own(rules: dict[str, Any]) -> None:
    inline = {"kind": "IPPolicy", "name": "p", "rules": rules}
    documents: list[dict[str, Any]] = [{"kind": "IPPolicy", "name": "p"}]
    for key, entry in rules.items():
        beside = {name: item for name, item in entry.items() if name in ("lifecycle", "ensure", "moved")}
        spec = {"ip_policy_id": {"ref": "IPPolicy/p"}} | {n: i for n, i in entry.items() if n not in beside}
        documents.append({"kind": "IPPolicyRule", "name": f"p-{key}", **beside, "spec": spec})
    one, other = (_load_all(values) for values in ([inline], documents))
    assert one == other


def _load_all(documents: list[dict[str, Any]]) -> Any:
    text = "---\n".join("\n".join(emit.block(document)) + "\n" for document in documents)
    try:
        found = declarations_of(text, variables={"action": "allow"})
    except Rejected as rejected:  # the same mistakes, at other places
        return sorted((problem.subject, problem.code) for problem in rejected.problems)
    return {
        address: (one.spec, one.ensure, one.lifecycle, one.moved, one.id, one.deliver) for address, one in found.items()
    }


@pytest.mark.parametrize(
    ("address", "path"),
    [
        ("IPPolicy/office", ()),
        ("IPPolicyRule/office-lan", ("rules", "lan")),
        ("IPPolicyRule/office-x", None),
        ("IPPolicyRule/office", None),
        ("Secret/office-lan", None),
    ],
)
def test_the_place_of_a_declaration_in_a_document_is_found(address: str, path: tuple[str, ...] | None) -> None:
    (document,) = yaml.read(OFFICE.encode(), "a.yaml").documents
    assert children.find_place(document.value, Address.parse(address)) == path
    assert children.find_place({**document.value, "for_each": {}}, Address.parse(address)) is None
