"""Components: what a use expands to, where its values come from, and what is reported where."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from reconciler.model.address import Address
from reconciler.model.value import Ref, references
from reconciler.project.manifests.load import load_manifests
from tests.project.texts import ProjectFolder

SERVICE = """\
inputs:
  host: {type: string, description: The host name.}
  policy: {type: string, default: null}
  routes: {type: map, default: {}}
  is_private: {type: boolean, default: false}
---
kind: HTTPSEdge
name: edge
spec:
  description: ${{ component.name }} at ${{ lower(input.host) }}
  hostports: ["${{ input.host }}:443"]
---
kind: HTTPSEdgeRoute
name: ${{ each.key }}
for_each: ${{ input.routes }}
spec:
  edge_id: {ref: HTTPSEdge/edge}
  match: ${{ each.value }}
  match_type: path_prefix
  description: to ${{ HTTPSEdge/edge.id }}
---
kind: IPPolicy
name: office
when: ${{ input.is_private }}
spec:
  description: ${{ input.policy }}
"""
USE = """\
component: service
name: shop
with:
  host: Shop.example.com
  routes: {admin: /admin, api: /api}
"""


@pytest.fixture
def shop(project: ProjectFolder) -> ProjectFolder:
    project.write("components/service.yaml", SERVICE)
    project.write("manifests/a.yaml", USE)
    return project


def test_the_name_of_the_use_precedes_those_of_the_resources(shop: ProjectFolder) -> None:
    found = shop.declarations()
    assert [*found] == ["HTTPSEdge/shop-edge", "HTTPSEdgeRoute/shop-admin", "HTTPSEdgeRoute/shop-api"]
    edge, admin, _ = found.values()
    assert edge.spec == {"description": "shop at shop.example.com", "hostports": ["Shop.example.com:443"]}
    assert admin.spec["edge_id"] == Ref(Address("HTTPSEdge", "shop-edge"))
    assert {str(reference.target) for reference in references(admin.spec)} == {"HTTPSEdge/shop-edge"}


def test_a_component_is_used_for_each_item_of_a_list_or_map(shop: ProjectFolder) -> None:
    shop.write(
        "manifests/a.yaml",
        "component: service\nname: ${{ each.key }}\nfor_each: {a: {routes: {x: /x}}, b: {}}\n"
        "with: {host: '${{ each.key }}.example.com', routes: '${{ default(each.value.routes, null) }}'}\n",
    )
    assert [*shop.declarations()] == ["HTTPSEdge/a-edge", "HTTPSEdgeRoute/a-x", "HTTPSEdge/b-edge"]


def test_a_list_inside_a_list_needs_a_component(project: ProjectFolder) -> None:
    project.write(
        "manifests/a.yaml",
        "kind: IPPolicy\nname: ${{ each.key }}\nfor_each: '${{ each.value.paths }}'\nspec: {}\n",
    )
    assert project.problem_lines() == [
        "manifests/a.yaml:3:11: IPPolicy/${{ each.key }}.for_each: for_each cannot take its items from another "
        "for_each; put the inner resources into a component with that list as an input, and use it with for_each"
    ]


def test_null_from_an_input_leaves_the_field_out(shop: ProjectFolder) -> None:
    shop.write("manifests/a.yaml", f"{USE}  is_private: true\n")
    assert shop.declarations()["IPPolicy/shop-office"].spec == {}
    shop.write("manifests/a.yaml", f"{USE}  is_private: true\n  policy: Ours\n")
    assert shop.declarations()["IPPolicy/shop-office"].spec == {"description": "Ours"}
    shop.write("manifests/a.yaml", f"{USE}  routes: null\n".replace("  routes: {admin: /admin, api: /api}\n", ""))
    assert [*shop.declarations()] == ["HTTPSEdge/shop-edge"]


def test_when_decides_by_a_variable_or_an_item_whether_a_resource_is_declared(project: ProjectFolder) -> None:
    project.write("reconciler.yaml", "stack: shop\nvariables: {on: {type: boolean, default: false}}\n")
    project.write(
        "manifests/a.yaml",
        "kind: IPPolicy\nname: ${{ each.key }}\nfor_each: {a: true, b: false}\nwhen: ${{ each.value }}\nspec: {}\n"
        "---\nkind: IPPolicy\nname: c\nwhen: '${{ var.on }}'\nspec: {}\n",
    )
    assert [*project.declarations()] == ["IPPolicy/a"]
    project.write("environments/on.yaml", "variables: {on: true}\nIPPolicy/c: {spec: {description: patched}}\n")
    assert project.declarations("on")["IPPolicy/c"].spec == {"description": "patched"}


@pytest.mark.parametrize(
    ("when", "text"),
    [
        ("'yes'", "expected true or false, found text"),
        ("null", "expected true or false, found nothing"),
        ("${{ var.x }}", "unknown variable x"),
    ],
)
def test_when_takes_true_and_false_only(project: ProjectFolder, when: str, text: str) -> None:
    project.write("manifests/a.yaml", f"kind: IPPolicy\nname: a\nwhen: {when}\nspec: {{}}\n")
    (line,) = project.problem_lines()
    assert line.startswith(f"manifests/a.yaml:3:7: IPPolicy/a.when: {text}; ")


def test_a_reference_to_what_when_leaves_out_names_the_line(shop: ProjectFolder) -> None:
    shop.write(
        "components/service.yaml",
        f"{SERVICE}---\nkind: IPPolicyRule\nname: lan\nspec:\n  ip_policy_id: {{ref: IPPolicy/office}}\n"
        "  cidr: 10.0.0.0/8\n  action: allow\n",
    )
    (line,) = shop.problem_lines()
    assert "refers to IPPolicy/shop-office, which components/service.yaml:24:7 leaves out (component service" in line


def test_a_reference_names_a_resource_of_the_component_first_and_one_under_with_does_not(
    project: ProjectFolder,
) -> None:
    project.write(
        "components/rule.yaml",
        "inputs: {policy: {type: string}}\n---\nkind: IPPolicy\nname: office\nspec: {}\n"
        "---\nkind: IPPolicyRule\nname: own\n"
        "spec: {ip_policy_id: {ref: IPPolicy/office}, cidr: 10.0.0.0/8, action: deny}\n"
        "---\nkind: IPPolicyRule\nname: given\n"
        "spec: {ip_policy_id: '${{ input.policy }}', cidr: 10.0.0.0/8, action: deny}\n"
        "---\nkind: IPPolicyRule\nname: other\n"
        "spec: {ip_policy_id: {ref: IPPolicy/else}, cidr: 10.0.0.0/8, action: deny}\n",
    )
    project.write(
        "manifests/a.yaml",
        "component: rule\nname: a\nwith: {policy: {ref: IPPolicy/office}}\n---\n"
        "kind: IPPolicy\nname: office\n---\nkind: IPPolicy\nname: else\n---\nkind: IPPolicy\nname: a-else\n",
    )
    found = project.declarations()
    targets = {
        name: str(next(iter(references(found[f"IPPolicyRule/a-{name}"].spec))).target)
        for name in ("own", "given", "other")
    }
    assert targets == {"own": "IPPolicy/a-office", "given": "IPPolicy/office", "other": "IPPolicy/else"}


def test_a_reference_of_the_use_does_not_become_one_of_the_component_within_a_text(project: ProjectFolder) -> None:
    part = "inputs: {text: {type: string}}\n---\nkind: IPPolicy\nname: office\nspec: {description: '%s'}\n"
    project.write("components/part.yaml", part % "for ${{ input.text }}")
    use = "component: part\nname: a\nwith: {text: '${{ %s.id }}'}\n---\nkind: IPPolicy\nname: %s\n"
    project.write("manifests/a.yaml", use % ("IPPolicy/home", "home"))
    (home,) = references(project.declarations()["IPPolicy/a-office"].spec)
    assert str(home.target) == "IPPolicy/home"
    project.write("manifests/a.yaml", use % ("IPPolicy/office", "office"))
    assert project.problem_lines() == [
        "components/part.yaml:5:21: IPPolicy/a-office.spec.description: IPPolicy/office.id is a resource of the "
        "component too, within this text (component part, used in manifests/a.yaml:1:1); "
        "pass the whole text as the input"
    ]
    project.write("components/part.yaml", part % "${{ input.text }}")
    (office,) = references(project.declarations()["IPPolicy/a-office"].spec)
    assert str(office.target) == "IPPolicy/office"


def test_a_component_uses_others(shop: ProjectFolder) -> None:
    shop.write(
        "components/pair.yaml",
        "inputs: {hosts: {type: map}}\n---\ncomponent: service\nname: ${{ each.key }}\nfor_each: ${{ input.hosts }}\n"
        "with: {host: '${{ each.value }}'}\n---\n"
        "kind: HTTPSEdgeRoute\nname: r\nspec: {edge_id: {ref: HTTPSEdge/a-edge}, match: /, match_type: path_prefix}\n",
    )
    shop.write("manifests/a.yaml", "component: pair\nname: eu\nwith: {hosts: {a: a.example.com, b: b.example.com}}\n")
    found = shop.declarations()
    assert [*found] == ["HTTPSEdge/eu-a-edge", "HTTPSEdge/eu-b-edge", "HTTPSEdgeRoute/eu-r"]
    assert found["HTTPSEdgeRoute/eu-r"].spec["edge_id"] == Ref(Address("HTTPSEdge", "eu-a-edge"))


def test_inputs_take_variables_also_as_arguments(shop: ProjectFolder) -> None:
    shop.write(
        "reconciler.yaml", "stack: shop\nvariables: {host: Eu.example.com, paths: {type: map, default: {x: /x}}}\n"
    )
    shop.write(
        "manifests/a.yaml",
        "component: service\nname: shop\nwith: {host: '${{ var.host }}', routes: '${{ var.paths }}'}\n",
    )
    found = shop.declarations()
    assert found["HTTPSEdge/shop-edge"].spec["description"] == "shop at eu.example.com"
    assert "HTTPSEdgeRoute/shop-x" in found


def test_former_names_of_uses_and_resources_are_those_of_each_object(shop: ProjectFolder) -> None:
    shop.write("components/service.yaml", SERVICE.replace("name: edge\n", "name: edge\nmoved: HTTPSEdge/front\n"))
    shop.write("manifests/a.yaml", USE.replace("name: shop\n", "name: shop\nmoved: store\n"))
    moved = {name: [*map(str, declaration.moved)] for name, declaration in shop.declarations().items()}
    assert moved == {
        "HTTPSEdge/shop-edge": ["HTTPSEdge/shop-front", "HTTPSEdge/store-edge", "HTTPSEdge/store-front"],
        "HTTPSEdgeRoute/shop-admin": ["HTTPSEdgeRoute/store-admin"],
        "HTTPSEdgeRoute/shop-api": ["HTTPSEdgeRoute/store-api"],
    }


def test_a_resource_that_was_written_out_moves_into_a_component(shop: ProjectFolder) -> None:
    shop.write(
        "components/service.yaml",
        SERVICE.replace("name: edge\n", "name: edge\nmoved: HTTPSEdge/${{ component.name }}\n"),
    )
    assert [*map(str, shop.declarations()["HTTPSEdge/shop-edge"].moved)] == ["HTTPSEdge/shop"]


@pytest.mark.parametrize(
    ("use", "lines"),
    [
        (
            "component: servise\nname: shop\n",
            ["manifests/a.yaml:1:12: servise/shop.component: there is no component servise; did you mean service?"],
        ),
        (
            "component: service\nname: shop\nwith: {hots: x}\n",
            [
                "manifests/a.yaml:3:7: service/shop.with: the input host of components/service.yaml has no value; "
                "write with: {host: …} (The host name.)",
                "manifests/a.yaml:3:8: service/shop.with.hots: unknown input of components/service.yaml; "
                "did you mean host?",
            ],
        ),
        (
            "component: service\nname: shop\nwith: {host: 7, routes: [a]}\n",
            [
                "manifests/a.yaml:3:14: service/shop.with.host: expected text, found a whole number; quote it",
                "manifests/a.yaml:3:25: service/shop.with.routes: expected a map, found a list; "
                "write a map, as in {a: 1}",
            ],
        ),
        (
            "component: service\nname: shop\nhost: x\nwith: {host: x}\n",
            ["manifests/a.yaml:3:1: service/shop.host: unknown field; write it under with"],
        ),
        (
            "component: ../service\nname: a b\nwith: []\nmoved: [Kind/x]\n",
            [
                "manifests/a.yaml:1:12: ../service/a b.component: is not the name of a component; "
                "write the name of its file, without .yaml",
                "manifests/a.yaml:2:7: ../service/a b.name: is not a valid name; use up to 100 letters, digits, '.', "
                "'_' and '-', beginning with a letter or digit",
                "manifests/a.yaml:3:7: ../service/a b.with: expected a map, found a list; write with: {input: value}",
                "manifests/a.yaml:4:9: ../service/a b.moved[0]: is not a former name of the instance; "
                "write moved: OLDNAME",
            ],
        ),
    ],
)
def test_a_mistake_of_a_use_is_reported_in_its_lines(shop: ProjectFolder, use: str, lines: list[str]) -> None:
    shop.write("manifests/a.yaml", use)
    assert shop.problem_lines() == lines


def test_a_mistake_of_a_component_is_reported_in_its_line_with_the_use(shop: ProjectFolder) -> None:
    shop.write(
        "components/service.yaml",
        SERVICE.replace("match_type: path_prefix", "match_typ: x").replace("lower(input.host)", "input.hots"),
    )
    used = "component service, used in manifests/a.yaml:1:1"
    assert shop.problem_lines()[:1] == [
        f"components/service.yaml:10:16: HTTPSEdge/shop-edge.spec.description: unknown input hots ({used}); "
        "did you mean host?"
    ]
    shop.write("components/service.yaml", SERVICE.replace("match_type: path_prefix", "match_typ: x"))
    assert [line for line in shop.problem_lines() if "admin" in line] == [
        f"components/service.yaml:16:1: HTTPSEdgeRoute/shop-admin.match_type: missing required field ({used}); "
        "set it, or set id: to the id of an existing object",
        f"components/service.yaml:19:3: HTTPSEdgeRoute/shop-admin.match_typ: unknown field ({used}); "
        "did you mean match_type?",
    ]


def test_a_wrong_value_is_reported_in_the_line_of_the_use(shop: ProjectFolder) -> None:
    shop.write("manifests/a.yaml", f"{USE}  is_private: true\n  policy: {{ref: IPPolicy/none}}\n")
    (line,) = shop.problem_lines()
    assert line.startswith("manifests/a.yaml:7:11: IPPolicy/shop-office.description: refers to IPPolicy/none")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "1:1: is no component: its first document does not declare inputs"),
        ("kind: IPPolicy\nname: a\n", "1:1: is no component: its first document does not declare inputs"),
        ("inputs: [a]\n", "1:9: inputs: expected a map, found a list"),
        ("inputs: {a: text}\n", "1:13: inputs.a: expected a map, found text"),
        ("inputs: {a: {}}\n", "1:13: inputs.a: the input has no type"),
        ("inputs: {a: {type: text}}\n", "1:20: inputs.a.type: unknown type"),
        ("inputs: {a: {type: string, default: 1}}\n", "1:37: inputs.a.default: expected text, found a whole number"),
        ("inputs: {a: {type: string, required: true}}\n", "1:28: inputs.a.required: unknown field"),
        ("inputs: {'a b': {type: string}}\n", "1:17: inputs.a b: 'a b' is not a valid name of an input"),
        ("inputs: {}\noutputs: {}\n", "2:1: outputs: unknown field"),
        ("inputs: {}\n---\ninputs: {}\nkind: IPPolicy\nname: a\n", "3:9: inputs: only the first document declares"),
        ("inputs: {}\n---\n[a]\n", "3:1: expected a map, found a list"),
        ("inputs: {}\n---\nkind: IPPolicy\n", "3:1: missing required field name"),
        ("inputs: {}\n---\nkind: IPPolicy\nname: 7\n", "4:7: name: expected text, found a whole number"),
        ("inputs: {}\n---\nkind: [\n", "4:1: "),
    ],
)
def test_an_invalid_component_is_reported_once(project: ProjectFolder, text: str, line: str) -> None:
    project.write("components/service.yaml", text)
    project.write("manifests/a.yaml", "component: service\nname: a\n---\ncomponent: service\nname: b\n")
    (found,) = project.problem_lines()
    assert found.startswith(f"components/service.yaml:{line}")


@pytest.mark.parametrize(
    "text",
    [
        "policy: open\nscope: {kinds: [IPPolicy]}\ncheck: 'true'\nmessage: x\n",
        "approvals: [{create: IPPolicy/a}]\n",
        "stack: other\nguards: {max_delete_percent: 100}\n",
        "IPPolicy/a: {lifecycle: {protect: false}}\n",
    ],
)
def test_a_component_has_resources_only(project: ProjectFolder, text: str) -> None:
    project.write("components/service.yaml", f"inputs: {{}}\n---\n{text}")
    project.write("manifests/a.yaml", "component: service\nname: a\n")
    (line,) = project.problem_lines()
    assert line == (
        "components/service.yaml:3:1: declares no resource; "
        "write kind, name and spec: a component has only resources, no settings, policies or approvals"
    )


def test_a_component_that_uses_itself_is_an_error_with_the_loop(project: ProjectFolder) -> None:
    project.write("components/a.yaml", "inputs: {}\n---\ncomponent: b\nname: b\n")
    project.write("components/b.yaml", "inputs: {}\n---\ncomponent: a\nname: a\n")
    project.write("manifests/a.yaml", "component: a\nname: x\n")
    assert project.problem_lines() == [
        "components/b.yaml:3:12: a/x-b-a.component: the component uses itself: a → b → a "
        "(component b, used in components/a.yaml:3:1 and used in manifests/a.yaml:1:1); remove this use"
    ]


def test_components_inside_each_other_have_a_limit(project: ProjectFolder) -> None:
    for number in range(9):
        project.write(f"components/c{number}.yaml", f"inputs: {{}}\n---\ncomponent: c{number + 1}\nname: a\n")
    project.write("components/c9.yaml", "inputs: {}\n---\nkind: IPPolicy\nname: a\n")
    project.write("manifests/a.yaml", "component: c0\nname: a\n")
    (line,) = project.problem_lines()
    assert "more than 8 components inside each other" in line
    project.write("manifests/a.yaml", "component: c2\nname: a\n")
    assert [*project.declarations()] == ["IPPolicy/a-a-a-a-a-a-a-a-a"]


def test_a_component_may_be_in_another_folder_of_the_repository(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    project = ProjectFolder(tmp_path / "infra" / "shop")
    project.write("reconciler.yaml", "stack: shop\ncomponents: [../common]\n")
    project.write("../common/service.yaml", SERVICE)
    project.write("manifests/a.yaml", USE)
    position = project.declarations()["HTTPSEdge/shop-edge"].position
    assert str(position) == "../common/service.yaml:7:1"
    assert "../common/service.yaml" in project.load().files


@pytest.mark.parametrize("inside", [True, False])
def test_a_symlink_may_not_lead_out_of_the_repository(tmp_path: Path, inside: bool) -> None:
    (tmp_path / "outside.yaml").write_text(SERVICE)
    (tmp_path / "repository" / ".git").mkdir(parents=True)
    (tmp_path / "repository" / "inside.yaml").write_text(SERVICE)
    project = ProjectFolder(tmp_path / "repository" / "shop")
    (project.root / "components").mkdir()
    target = "../../inside.yaml" if inside else "../../../outside.yaml"
    (project.root / "components" / "service.yaml").symlink_to(target)
    project.write("manifests/a.yaml", USE)
    if inside:
        assert "HTTPSEdge/shop-edge" in project.declarations()
    else:
        assert project.problem_lines() == [
            "manifests/a.yaml:1:12: service/shop.component: components/service.yaml is outside the Git repository; "
            "copy the file into the repository"
        ]


def test_nothing_is_read_from_outside_of_a_project_without_a_repository(tmp_path: Path) -> None:
    project = ProjectFolder(tmp_path / "shop")
    project.write("../common/service.yaml", SERVICE)
    project.write("reconciler.yaml", "stack: shop\ncomponents: [../common]\n")
    project.write("manifests/a.yaml", USE)
    (line,) = project.problem_lines()
    assert "../common/service.yaml is outside the Git repository" in line
    project.write("manifests/a.yaml", USE.replace("service", "servise"))
    (line,) = project.problem_lines()
    assert "there is no component servise; create ../common/servise.yaml" in line


def test_a_special_file_is_no_component(shop: ProjectFolder) -> None:
    (shop.root / "components" / "service.yaml").unlink()
    os.mkfifo(shop.root / "components" / "service.yaml")
    (line,) = shop.problem_lines()
    assert "components/service.yaml is not a regular file" in line


def test_a_component_is_no_manifest(shop: ProjectFolder) -> None:
    shop.write("reconciler.yaml", "stack: shop\nmanifests: [manifests, shared]\ncomponents: [shared/components]\n")
    shop.write("shared/components/service.yaml", SERVICE)
    assert len(shop.declarations()) == 3


def test_two_files_of_one_name_are_an_error(shop: ProjectFolder) -> None:
    shop.write("reconciler.yaml", "stack: shop\ncomponents: [components, more]\n")
    shop.write("more/service.yml", SERVICE)
    (line,) = shop.problem_lines()
    assert line.endswith("service is in components/service.yaml and more/service.yml; rename one of the files")


def test_the_digest_of_the_manifests_covers_components(shop: ProjectFolder) -> None:
    before = shop.load().manifest.digest
    shop.write("components/service.yaml", f"{SERVICE}# a comment\n")
    assert shop.load().manifest.digest != before


def test_defaults_and_patches_apply_to_the_resources_of_a_component(shop: ProjectFolder) -> None:
    shop.write("reconciler.yaml", "stack: shop\ndefaults: {HTTPSEdge: {lifecycle: {protect: true}}}\n")
    shop.write(
        "environments/prod.yaml", "HTTPSEdge/shop-edge: {spec: {description: patched}}\nHTTPSEdgeRoute/shop-api: null\n"
    )
    found = shop.declarations("prod")
    assert found["HTTPSEdge/shop-edge"].lifecycle.protect
    assert found["HTTPSEdge/shop-edge"].spec["description"] == "patched"
    assert "HTTPSEdgeRoute/shop-api" not in found


def test_children_are_declared_inline_in_a_component(project: ProjectFolder) -> None:
    project.write(
        "components/office.yaml",
        "inputs: {lan: {type: string}, rules: {type: map, default: {}}}\n---\nkind: IPPolicy\nname: ${{ each.key }}\n"
        "for_each: [a, b]\nspec: {}\nrules:\n  lan: {cidr: '${{ input.lan }}', action: allow}\n"
        "---\nkind: IPPolicy\nname: c\nspec: {}\nrules: ${{ input.rules }}\n"
        "---\nkind: IPRestriction\nname: all\nspec: {type: api, ip_policy_ids: [{ref: IPPolicy/a}]}\n",
    )
    project.write(
        "manifests/a.yaml",
        "component: office\nname: x\nwith: {lan: 10.0.0.0/8, rules: {vpn: {cidr: 10.1.0.0/16, action: deny}}}\n",
    )
    found = project.declarations()
    assert sorted(found) == [
        "IPPolicy/x-a", "IPPolicy/x-b", "IPPolicy/x-c", "IPPolicyRule/x-a-lan", "IPPolicyRule/x-b-lan",
        "IPPolicyRule/x-c-vpn", "IPRestriction/x-all",
    ]  # fmt: skip
    lan, vpn = found["IPPolicyRule/x-b-lan"], found["IPPolicyRule/x-c-vpn"]
    assert (lan.spec["ip_policy_id"], lan.spec["cidr"]) == (Ref(Address("IPPolicy", "x-b")), "10.0.0.0/8")
    assert (str(lan.at("cidr")), str(vpn.at("cidr"))) == ("manifests/a.yaml:3:13", "manifests/a.yaml:3:45")
    assert str(lan.at("action")).startswith("components/office.yaml:8:")


def test_an_error_in_a_component_skips_the_resources_that_have_it(shop: ProjectFolder) -> None:
    shop.write("components/service.yaml", SERVICE.replace("match_type: path_prefix", "match_typ: x"))
    loaded = load_manifests(shop.config(), {}, partial_if_invalid=True)
    assert [*map(str, loaded.manifest.declarations)] == ["HTTPSEdge/shop-edge"]
    assert loaded.manifest.unread is not None
    assert sorted(map(str, loaded.manifest.unread.addresses)) == [
        "HTTPSEdgeRoute/shop-admin",
        "HTTPSEdgeRoute/shop-api",
    ]
    shop.write("manifests/a.yaml", f"{USE}---\ncomponent: none\nname: a\n")
    shop.write("components/service.yaml", SERVICE)
    loaded = load_manifests(shop.config(), {}, partial_if_invalid=True)
    assert len(loaded.manifest.declarations) == 3
    assert loaded.manifest.unread is not None
    assert loaded.manifest.unread.has_unknown
