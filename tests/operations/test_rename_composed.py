"""Inline children, and instances and resources of components, are renamed where their name is written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reconciler import Runtime
from reconciler.model.address import Address
from reconciler.operations.authoring import project_texts
from reconciler.operations.authoring.project_texts import EditedProject
from reconciler.operations.authoring.rename_resource import rename_resource
from reconciler.operations.errors import UnusableEdit
from reconciler.operations.opening.source import ProjectSource

SETTINGS = "version: 1\nstack: prod\n"
OFFICE = "kind: IPPolicy\nname: office\nspec: {}\n"
LAN = "{cidr: 192.0.2.0/24, action: allow}"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write(tmp_path, {"reconciler.yaml": SETTINGS, "manifests/a.yaml": OFFICE})


def write(root: Path, texts: dict[str, str]) -> Path:
    for path, text in texts.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def rename(root: Path, old: str, new: str) -> EditedProject:
    renamed = rename_resource(source(root), parse(old), parse(new))
    project_texts.write(renamed)
    return renamed


def parse(text: str) -> Address:
    kind, _, name = text.partition("/")
    return Address(kind, name)


def source(root: Path) -> ProjectSource:
    return ProjectSource(root, runtime=Runtime(environ={}))


def moves(root: Path, environment: str | None = None) -> dict[str, list[str]]:
    declared = project_texts.load(source(root), project_texts.read(source(root)))[environment]
    return {str(address): [*map(str, item.moved)] for address, item in declared.items() if item.moved}


def after(renamed: EditedProject) -> dict[str, str]:
    return {path: text for path, (_, text) in renamed.texts.items()}


def test_a_child_that_only_an_environment_adds_is_renamed_in_its_file(root: Path) -> None:
    lan = LAN.replace("192", "198")
    patch = f"IPPolicy/office:\n  rules:\n    vpn: {LAN} # all\n    lan: {lan}\n"
    write(root, {"environments/prod.yaml": patch, "environments/test.yaml": patch, "environments/dev.yaml": ""})
    changed = after(rename(root, "IPPolicyRule/office-vpn", "IPPolicyRule/office-net"))
    expected = patch.replace(f"vpn: {LAN}", f"net: {LAN[:-1]}, moved: IPPolicyRule/office-vpn}}")
    assert changed == {"environments/prod.yaml": expected, "environments/test.yaml": expected}
    assert moves(root, "prod") == {"IPPolicyRule/office-net": ["IPPolicyRule/office-vpn"]}
    assert rename(root, "IPPolicy/office", "IPPolicy/hq").notes == (
        "renamed with it: IPPolicyRule/office-lan is now IPPolicyRule/hq-lan, "
        "IPPolicyRule/office-net is now IPPolicyRule/hq-net",
    )


SITES = """\
kind: IPPolicy
name: p-${{ each.key }}
for_each:
  rome: {of: Rome, rules: {vpn: {cidr: 10.0.0.0/16, action: allow}}}
  oslo: {of: Oslo, rules: {vpn: {cidr: 10.1.0.0/16, action: allow}}}
spec: {description: "${{ each.value.of }}"}
rules:
"""


def test_an_entry_that_all_items_of_for_each_share_is_renamed_for_all_of_them(root: Path) -> None:
    text = f"{SITES}  vpn:\n    cidr: 10.0.0.0/8\n    action: allow\n"
    patch = "IPPolicy/p-rome: {rules: {vpn: {action: deny}}}\nIPPolicyRule/p-oslo-vpn: {spec: {action: deny}}\n"
    write(root, {"manifests/b.yaml": text, "environments/prod.yaml": patch})
    renamed = rename(root, "IPPolicyRule/p-rome-vpn", "IPPolicyRule/p-rome-net")
    assert after(renamed) == {
        "manifests/b.yaml": text.replace("  vpn:\n", "  net:\n") + '    moved: "IPPolicyRule/p-${{ each.key }}-vpn"\n',
        "environments/prod.yaml": patch.replace("vpn", "net"),
    }
    assert renamed.notes == ("renamed with it: IPPolicyRule/p-oslo-vpn is now IPPolicyRule/p-oslo-net",)
    assert renamed.mentions == ()
    assert moves(root) == {f"IPPolicyRule/p-{city}-net": [f"IPPolicyRule/p-{city}-vpn"] for city in ("rome", "oslo")}


@pytest.mark.parametrize("settings", ["", "variables:\n  sites:\n    default:\n"])
def test_an_entry_of_one_item_is_renamed_in_the_item_or_variable(root: Path, settings: str) -> None:
    items = "\n".join(f"{' ' * 4}{line}" for line in SITES.splitlines()[3:5])
    text = f"{SITES.removesuffix(chr(10))} ${{{{ each.value.rules }}}}\n"
    if settings:
        text = text.replace("for_each:\n", "for_each: ${{ var.sites }}\n").replace(
            "\n".join(SITES.splitlines()[3:5]) + "\n", ""
        )
        write(root, {"reconciler.yaml": f"{SETTINGS}{settings}{items}\n"})
    write(root, {"manifests/b.yaml": text})
    path = "reconciler.yaml" if settings else "manifests/b.yaml"
    before = (root / path).read_text()
    renamed = rename(root, "IPPolicyRule/p-oslo-vpn", "IPPolicyRule/p-oslo-net")
    vpn, net = ("{vpn: {cidr: 10.1.0.0/16, action: allow", "{net: {cidr: 10.1.0.0/16, action: allow")
    assert after(renamed) == {path: before.replace(vpn, f"{net}, moved: IPPolicyRule/p-oslo-vpn")}
    assert moves(root) == {"IPPolicyRule/p-oslo-net": ["IPPolicyRule/p-oslo-vpn"]}
    assert renamed.notes == ()


def test_the_advice_for_an_entry_written_as_an_expression_moves_its_objects(root: Path) -> None:
    text = (
        SITES.replace("rules: {vpn: {cidr", "vpn: {cidr").replace("allow}}}", "allow}}")
        + "  vpn: ${{ each.value.vpn }}\n"
    )
    write(root, {"manifests/b.yaml": text})
    with pytest.raises(UnusableEdit) as refused:
        rename(root, "IPPolicyRule/p-oslo-vpn", "IPPolicyRule/p-oslo-net")
    assert str(refused.value) == (
        "IPPolicyRule/p-oslo-vpn is declared in manifests/b.yaml:8:3, which cannot be changed: the entry is an "
        "expression\nchange the key vpn to net by hand, and add to the value of the entry "
        "moved: IPPolicyRule/p-oslo-vpn for IPPolicyRule/p-oslo-net, "
        "moved: IPPolicyRule/p-rome-vpn for IPPolicyRule/p-rome-net"
    )
    for city in ("rome", "oslo"):
        text = re.sub(rf"({city}: .*vpn: {{)", rf"\1moved: IPPolicyRule/p-{city}-vpn, ", text)
    write(root, {"manifests/b.yaml": text.replace("\n  vpn:", "\n  net:")})
    assert moves(root) == {f"IPPolicyRule/p-{city}-net": [f"IPPolicyRule/p-{city}-vpn"] for city in ("rome", "oslo")}


def test_an_entry_of_a_variable_that_two_resources_use_is_not_renamed_for_one(root: Path) -> None:
    text = "kind: IPPolicy\nname: %s-${{ each.key }}\nfor_each: ${{ var.sites }}\nspec: {}\nrules: ${{ each.value }}\n"
    settings = f"{SETTINGS}variables:\n  sites:\n    default: {{x: {{lan: {LAN}}}}}\n"
    write(root, {"reconciler.yaml": settings, "manifests/b.yaml": f"{text % 'a'}---\n{text % 'b'}"})
    with pytest.raises(UnusableEdit, match=r"its entry in reconciler.yaml:5:19 declares IPPolicyRule/b-x-lan too"):
        rename(root, "IPPolicyRule/a-x-lan", "IPPolicyRule/a-x-net")


SITE = f"""\
inputs: {{more: {{type: map, default: {{}}}}}}
---
kind: IPPolicy
name: policy
spec: {{}}
rules:
  lan: {LAN}
---
kind: IPPolicy
name: extra
spec: {{description: "of ${{{{ component.name }}}} for ${{{{ IPPolicyRule/policy-lan.id }}}}"}}
rules: ${{{{ input.more }}}}
---
kind: TLSEdge
name: edge
spec: {{ip_restriction: {{ip_policy_ids: [{{ref: IPPolicy/policy}}]}}}}
"""
USES = "component: site\nname: rome # the first\n---\ncomponent: site\nname: oslo\n"


def test_an_instance_of_a_component_is_renamed_with_all_of_its_resources(root: Path) -> None:
    other = "kind: TLSEdge\nname: e\nspec: {ip_restriction: {ip_policy_ids: [{ref: IPPolicy/rome-policy}]}}\n"
    patch = "IPPolicyRule/rome-policy-lan: {spec: {action: deny}}\n"
    texts = {"components/site.yaml": SITE, "manifests/b.yaml": USES, "manifests/c.yaml": other}
    for old, new in (
        ("site/rome", "site/bern"),
        ("IPPolicy/rome-policy", "IPPolicy/bern-policy"),
        ("IPPolicyRule/rome-policy-lan", "IPPolicyRule/bern-policy-lan"),
    ):
        write(root, {**texts, "environments/prod.yaml": patch})
        renamed = rename(root, old, new)
        assert after(renamed) == {
            "manifests/b.yaml": USES.replace("rome # the first\n", "bern # the first\nmoved: [rome]\n"),
            "manifests/c.yaml": other.replace("rome", "bern"),
            "environments/prod.yaml": patch.replace("rome", "bern"),
        }
        assert renamed.notes[-1] == "IPPolicy/bern-extra.description contains the name of the instance, and changes"
        assert moves(root) == {
            address.replace("rome", "bern"): [address]
            for address in (
                "IPPolicy/rome-policy",
                "IPPolicyRule/rome-policy-lan",
                "IPPolicy/rome-extra",
                "TLSEdge/rome-edge",
            )
        }


def test_an_instance_is_not_renamed_if_a_field_with_its_name_cannot_be_updated(root: Path) -> None:
    site = "inputs: {}\n---\nkind: ReservedDomain\nname: d\nspec: {domain: '${{ component.name }}.example.com'}\n"
    write(root, {"components/site.yaml": site, "manifests/b.yaml": USES})
    with pytest.raises(UnusableEdit, match="renaming site/rome would also change ReservedDomain/bern-d"):
        rename(root, "site/rome", "site/bern")


def test_an_instance_of_for_each_is_renamed_by_its_key(root: Path) -> None:
    uses = "component: site\nname: ${{ each.key }}\nfor_each: [rome, oslo]\n"
    write(root, {"components/site.yaml": SITE, "manifests/b.yaml": uses})
    rename(root, "site/oslo", "site/bern")
    assert (root / "manifests/b.yaml").read_text() == uses.replace("oslo]\n", "bern]\nmoved: {bern: oslo}\n")
    assert moves(root)["IPPolicyRule/bern-policy-lan"] == ["IPPolicyRule/oslo-policy-lan"]
    described = f"{LAN[:-1]}, description: 'of ${{{{ each.key }}}}'}}"
    write(root, {"manifests/b.yaml": f"{uses}with: {{more: {{x: {described}}}}}\n"})
    with pytest.raises(UnusableEdit, match=r"with uses each.key too.*add moved: {bern: oslo} beside for_each"):
        rename(root, "site/oslo", "site/bern")


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        (
            "IPPolicy/rome-policy",
            "IPPolicy/rome-allowed",
            {
                "name: policy\n": "name: allowed\nmoved: [IPPolicy/policy]\n",
                "IPPolicy/policy}": "IPPolicy/allowed}",
                "IPPolicyRule/policy-lan": "IPPolicyRule/allowed-lan",
            },
        ),
        (
            "IPPolicyRule/oslo-policy-lan",
            "IPPolicyRule/oslo-policy-net",
            {f"lan: {LAN}": f"net: {LAN[:-1]}, moved: IPPolicyRule/policy-lan}}", "policy-lan.id": "policy-net.id"},
        ),
    ],
)
def test_a_resource_of_a_component_is_renamed_in_its_file_for_every_instance(
    root: Path, old: str, new: str, changed: dict[str, str]
) -> None:
    write(root, {"components/site.yaml": SITE, "manifests/b.yaml": USES})
    before = {*moves(root)}
    renamed = rename(root, old, new)
    expected = SITE
    for text, put in changed.items():
        assert text in expected
        expected = expected.replace(text, put)
    assert after(renamed) == {"components/site.yaml": expected}
    assert before == set()
    kind, name = new.split("/")
    for city in ("rome", "oslo"):
        address = f"{kind}/{city}-{name.partition('-')[2]}"
        assert moves(root)[address] == [f"{kind}/{city}-{old.partition('-')[2]}"]


def test_an_instance_and_a_child_that_have_new_names_move_from_either(root: Path) -> None:
    write(root, {"components/site.yaml": SITE, "manifests/b.yaml": USES})
    rename(root, "IPPolicyRule/rome-policy-lan", "IPPolicyRule/rome-policy-net")
    rename(root, "site/rome", "site/bern")
    assert {*moves(root)["IPPolicyRule/bern-policy-net"]} == {
        "IPPolicyRule/rome-policy-net", "IPPolicyRule/rome-policy-lan", "IPPolicyRule/bern-policy-lan"
    }  # fmt: skip


def test_an_entry_that_an_input_has_is_renamed_in_the_use(root: Path) -> None:
    uses = USES.replace("name: oslo\n", f"name: oslo\nwith: {{more: {{lan: {LAN}}}}}\n")
    write(root, {"components/site.yaml": SITE, "manifests/b.yaml": uses})
    renamed = rename(root, "IPPolicyRule/oslo-extra-lan", "IPPolicyRule/oslo-extra-net")
    put = f"{{net: {LAN[:-1]}, moved: IPPolicyRule/oslo-extra-lan}}"
    assert after(renamed) == {"manifests/b.yaml": uses.replace(f"{{lan: {LAN}", put)}
    assert moves(root) == {"IPPolicyRule/oslo-extra-net": ["IPPolicyRule/oslo-extra-lan"]}


NESTED = """\
inputs: {parts: {type: map, default: {}}}
---
component: site
name: main
---
component: site
name: ${{ each.key }}
for_each: ${{ input.parts }}
---
kind: IPPolicy
name: p-${{ each.key }}
for_each: [a, b]
spec: {description: "of ${{ IPPolicy/main-policy.id }}"}
"""


def test_parts_of_nested_components_are_renamed_where_their_name_is_written(root: Path) -> None:
    texts = {
        "components/site.yaml": SITE,
        "components/group.yaml": NESTED,
        "manifests/b.yaml": "component: group\nname: x\nwith: {parts: {w: {}}}\n",
    }
    write(root, texts)
    rename(root, "IPPolicy/x-main-policy", "IPPolicy/x-core-policy")
    rename(root, "IPPolicy/x-p-a", "IPPolicy/x-p-c")
    assert (root / "components/group.yaml").read_text() == NESTED.replace(
        "name: main\n", "name: core\nmoved: [main]\n"
    ).replace("for_each: [a, b]\n", "for_each: [c, b]\nmoved: {c: IPPolicy/p-a}\n").replace(
        "main-policy", "core-policy"
    )
    assert moves(root)["IPPolicy/x-p-c"] == ["IPPolicy/x-p-a"]
    assert moves(root)["TLSEdge/x-core-edge"] == ["TLSEdge/x-main-edge"]
    write(root, texts)
    with pytest.raises(UnusableEdit) as refused:
        rename(root, "TLSEdge/x-w-edge", "TLSEdge/x-v-edge")
    assert "change that key to v, and add moved: {v: w} beside for_each in components/group.yaml:6:1" in str(
        refused.value
    )
    write(
        root,
        {
            "components/group.yaml": NESTED.replace("input.parts }}\n", "input.parts }}\nmoved: {v: w}\n"),
            "manifests/b.yaml": texts["manifests/b.yaml"].replace("w:", "v:"),
        },
    )
    assert moves(root)["TLSEdge/x-v-edge"] == ["TLSEdge/x-w-edge"]


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("site/rome", "site/oslo", "IPPolicy/oslo-policy is already declared"),
        ("site/rome", "other/bern", "other/bern is of another component than site/rome; write site/bern"),
        ("site/bern", "site/x", "site/bern is not declared"),
        ("TLSEdge/rome-edge", "TLSEdge/bern", "its new name begins with rome- or ends with -edge"),
        ("TLSEdge/rome-edge", "TLSEdge/office-edge", "TLSEdge/office-edge is already declared"),
        ("IPPolicyRule/office-lan", "IPPolicyRule/lan", "its name begins with office-"),
    ],
)
def test_a_part_that_cannot_be_renamed_is_refused_with_the_reason(root: Path, old: str, new: str, reason: str) -> None:
    edge = "kind: TLSEdge\nname: office-edge\nspec: {}\n"
    inline = f"{OFFICE}rules: {{lan: {LAN}}}\n"
    write(
        root,
        {"components/site.yaml": SITE, "manifests/b.yaml": USES, "manifests/c.yaml": edge, "manifests/a.yaml": inline},
    )
    with pytest.raises(Exception, match=reason):
        rename(root, old, new)


def test_a_component_that_other_projects_may_use_is_renamed_by_hand(tmp_path: Path) -> None:
    root = tmp_path / "project"
    texts = {
        "reconciler.yaml": f"{SETTINGS}components: [../common]\n",
        "manifests/b.yaml": USES,
        "../common/site.yaml": SITE,
    }
    write(root, texts)
    (tmp_path / ".git").mkdir()
    with pytest.raises(
        UnusableEdit, match=r"is declared in \.\./common/site\.yaml, which other projects may use"
    ) as refused:
        rename(root, "IPPolicy/rome-policy", "IPPolicy/rome-x")
    assert "change its name to x there, and add moved: IPPolicy/policy" in str(refused.value)
    assert [*after(rename(root, "site/rome", "site/bern"))] == ["manifests/b.yaml"]
