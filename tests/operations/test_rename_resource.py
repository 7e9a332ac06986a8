"""A rename changes the name and what refers to it in every file, or nothing at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reconciler import InvalidProject, NothingSelected, Runtime, Workspace
from reconciler.operations.authoring import project_texts, rename_resource
from reconciler.operations.authoring.project_texts import EditedProject
from reconciler.operations.errors import UnusableEdit
from reconciler.operations.opening.source import ProjectSource
from reconciler.project import files
from tests.harness.builders import at

OFFICE = "kind: IPPolicy\nname: office\nspec: {description: Office}\n"
EDGE = """\
kind: TLSEdge
name: e
spec:
  description: ${{ IPPolicy/office.id }} and ${{ IPPolicy/office-2.id }}
  hostports: ["a.example.com:443"]
  ip_restriction:
    ip_policy_ids: [{ref: IPPolicy/office}]
"""
SECOND = "kind: IPPolicy\nname: office-2\nspec: {}\n"
DOMAIN = "kind: ReservedDomain\nname: a\nspec: {domain: a.example.com}\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path, {"reconciler.yaml": "version: 1\nstack: prod\n", "manifests/a.yaml": OFFICE})
    return tmp_path


def write(root: Path, texts: dict[str, str]) -> None:
    for path, text in texts.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


def rename(root: Path, old: str, new: str, **variables: Any) -> EditedProject:
    source = ProjectSource(root, variables=variables, runtime=Runtime(environ={}))
    return rename_resource.rename_resource(source, at(old), at(new))


def after(renamed: EditedProject) -> dict[str, str]:
    return {path: text for path, (_, text) in renamed.texts.items()}


def test_references_are_renamed_in_every_file_and_otherwise_unchanged(root: Path) -> None:
    policy = '{"on_http_request": [{"actions": [{"type": "restrict-ips", "config": {"ip_policies": [%s]}}]}]}'
    endpoint = (
        "kind: CloudEndpoint\nname: c\nspec:\n  url: https://a.example.com\n  traffic_policy: "
        + policy % '"${{ IPPolicy/office.id }}"'
        + "\n"
    )
    write(root, {"manifests/b.yaml": f"{EDGE}---\n{SECOND}---\n{DOMAIN}---\n{endpoint}"})
    renamed = rename(root, "IPPolicy/office", "IPPolicy/hq")
    changed = after(renamed)
    assert changed.keys() == {"manifests/a.yaml", "manifests/b.yaml"}
    assert changed["manifests/b.yaml"] == (root / "manifests/b.yaml").read_text().replace(
        "IPPolicy/office.id", "IPPolicy/hq.id"
    ).replace("ref: IPPolicy/office}", "ref: IPPolicy/hq}")
    assert "name: hq" in changed["manifests/a.yaml"]
    assert "moved: [IPPolicy/office]" in changed["manifests/a.yaml"]
    assert (root / "manifests/a.yaml").read_text() == OFFICE  # nothing is written yet
    project_texts.write(renamed)
    assert {path: (root / path).read_text() for path in changed} == changed
    (result,) = Workspace.validate(root, runtime=Runtime(environ={}))
    assert (result.is_valid, result.resources) == (True, 5)


INLINE = """\
kind: HTTPSEdge
name: shop
spec: {hostports: ["a.example.com:443"]}
routes:
  # for the office
  admin:
    match_type: path_prefix
    match: /admin
  docs: {match_type: exact_path, match: /docs}
---
kind: IPPolicy
name: office
spec: {description: "of ${{ HTTPSEdgeRoute/shop-admin }} and ${{ HTTPSEdgeRoute/shop-docs.id }}"}
rules:
  all: {cidr: 0.0.0.0/0, action: deny, description: "not ${{ HTTPSEdgeRoute/shop-admin.id }}"}
"""
PATCH = "HTTPSEdge/shop:\n  routes:\n    admin: {match: /ops}\nHTTPSEdgeRoute/shop-docs: {spec: {match: /d}}\n"


def test_an_inline_child_is_renamed_by_its_key(root: Path) -> None:
    write(root, {"manifests/a.yaml": INLINE, "environments/prod.yaml": PATCH})
    renamed = rename(root, "HTTPSEdgeRoute/shop-admin", "HTTPSEdgeRoute/shop-root")
    moved = INLINE.replace("  admin:", "  root:").replace("shop-admin", "shop-root")
    assert after(renamed) == {
        "manifests/a.yaml": moved.replace(
            "    match: /admin\n", "    match: /admin\n    moved: HTTPSEdgeRoute/shop-admin\n"
        ),
        "environments/prod.yaml": PATCH.replace("admin:", "root:"),
    }
    project_texts.write(renamed)
    again = rename(root, "HTTPSEdgeRoute/shop-docs", "HTTPSEdgeRoute/shop-help")
    text = after(again)["manifests/a.yaml"]
    assert "  help: {match_type: exact_path, match: /docs, moved: HTTPSEdgeRoute/shop-docs}\n" in text
    assert after(again)["environments/prod.yaml"].endswith("HTTPSEdgeRoute/shop-help: {spec: {match: /d}}\n")


def test_a_parent_is_renamed_with_its_inline_children(root: Path) -> None:
    write(root, {"manifests/a.yaml": INLINE, "environments/prod.yaml": PATCH})
    changed = after(rename(root, "HTTPSEdge/shop", "HTTPSEdge/store"))
    assert changed["environments/prod.yaml"] == PATCH.replace("/shop", "/store")
    expected = INLINE.replace("name: shop\n", "name: store\nmoved: [HTTPSEdge/shop]\n").replace("/shop-", "/store-")
    assert changed["manifests/a.yaml"] == expected


def test_the_new_name_of_an_inline_child_begins_with_that_of_its_parent(root: Path) -> None:
    write(root, {"manifests/a.yaml": INLINE})
    for name in ("root", "shop-", "shop"):
        with pytest.raises((UnusableEdit, ValueError), match=r"its name begins with shop-|not a valid name"):
            rename(root, "HTTPSEdgeRoute/shop-admin", f"HTTPSEdgeRoute/{name}")
    with pytest.raises(UnusableEdit, match="HTTPSEdgeRoute/shop-docs is already declared"):
        rename(root, "HTTPSEdgeRoute/shop-admin", "HTTPSEdgeRoute/shop-docs")
    route = "kind: HTTPSEdgeRoute\nname: x-docs\nspec: {edge_id: edghts_1, match_type: exact_path, match: /y}\n"
    write(root, {"manifests/b.yaml": route})
    with pytest.raises(UnusableEdit, match="x-docs is already declared"):
        rename(root, "HTTPSEdge/shop", "HTTPSEdge/x")


def test_a_resource_that_was_renamed_can_be_renamed_again_and_back(root: Path) -> None:
    for old, new in (("office", "hq"), ("hq", "main"), ("main", "office")):
        project_texts.write(rename(root, f"IPPolicy/{old}", f"IPPolicy/{new}"))
    text = (root / "manifests/a.yaml").read_text()
    assert "name: office" in text
    assert {"IPPolicy/hq", "IPPolicy/main"} <= {*text.replace("[", " ").replace("]", " ").replace(",", " ").split()}


def test_a_resource_without_an_object_gets_no_former_address(root: Path) -> None:
    """An agent's configuration is only rendered to a file."""
    credential = "kind: TunnelCredential\nname: t\nspec: {}\ndeliver: {token: {to_file: secrets/t}}\n"
    agent = "kind: AgentConfig\nname: berlin\nspec: {credential: {ref: TunnelCredential/t}}\n"
    write(root, {"manifests/b.yaml": f"{credential}---\n{agent}"})
    renamed = rename(root, "AgentConfig/berlin", "AgentConfig/paris")
    assert after(renamed) == {"manifests/b.yaml": f"{credential}---\n{agent.replace('berlin', 'paris')}"}
    moved = after(rename(root, "TunnelCredential/t", "TunnelCredential/u"))["manifests/b.yaml"]
    assert "credential: {ref: TunnelCredential/u}" in moved
    assert "moved: [TunnelCredential/t]" in moved


@pytest.mark.parametrize(
    ("old", "new", "error", "text"),
    [
        (
            "IPPolicy/offic",
            "IPPolicy/x",
            NothingSelected,
            "IPPolicy/offic is not declared; did you mean IPPolicy/office?",
        ),
        ("Vault/zzzzzzzzz", "Vault/x", NothingSelected, "Vault/zzzzzzzzz is not declared"),
        ("IPPolicy/office", "TLSEdge/office", UnusableEdit, "TLSEdge/office has another kind than IPPolicy/office; "),
        ("IPPolicy/office", "IPPolicy/office", UnusableEdit, "IPPolicy/office has this name already"),
        ("IPPolicy/office", "IPPolicy/office-2", UnusableEdit, "IPPolicy/office-2 is already declared; choose "),
        (
            "IPPolicy/office",
            "IPPolicy/first",
            UnusableEdit,
            "IPPolicy/first is a former address of IPPolicy/office-2",
        ),
        ("Vault/old", "Vault/new", UnusableEdit, "Vault/old is declared with `ensure: absent`; no object is kept"),
        (
            "IPPolicy/many-a",
            "IPPolicy/one",
            UnusableEdit,
            "IPPolicy/many-a is declared with for_each: its name is many-${{ each.key }}: a name from the same list ",
        ),
    ],
)
def test_an_invalid_rename_is_refused(root: Path, old: str, new: str, error: type[Exception], text: str) -> None:
    absent = "kind: Vault\nname: old\nensure: absent\nspec: {name: v}\n"
    many = "kind: IPPolicy\nfor_each: [a]\nname: many-${{ each.key }}\nspec: {}\n"
    former = "kind: IPPolicy\nname: office-2\nmoved: [IPPolicy/first]\nspec: {}\n"
    write(root, {"manifests/b.yaml": f"{former}---\n{absent}---\n{many}"})
    with pytest.raises(error) as refused:
        rename(root, old, new)
    assert str(refused.value).startswith(text)


def test_a_resource_may_be_renamed_to_its_former_address(root: Path) -> None:
    write(root, {"manifests/a.yaml": OFFICE.replace("spec:", "moved: [IPPolicy/first]\nspec:")})
    assert "name: first" in after(rename(root, "IPPolicy/office", "IPPolicy/first"))["manifests/a.yaml"]


def test_resources_of_environments_are_renamed_too(root: Path) -> None:
    write(
        root,
        {
            "environments/eu.yaml": "manifests: [manifests/, eu/]\nIPPolicy/office: {spec: {description: EU}}\n",
            "eu/b.yaml": f"{EDGE}---\n{SECOND}---\n{DOMAIN}",
        },
    )
    changed = after(rename(root, "IPPolicy/office", "IPPolicy/hq"))
    assert changed.keys() == {"manifests/a.yaml", "eu/b.yaml", "environments/eu.yaml"}
    assert "IPPolicy/hq: {spec: {description: EU}}" in changed["environments/eu.yaml"]
    only_there = rename(root, "TLSEdge/e", "TLSEdge/f")
    assert after(only_there).keys() == {"eu/b.yaml"}


def test_a_manifest_in_a_nested_folder_is_renamed(root: Path) -> None:
    (root / "manifests/a.yaml").unlink()
    write(root, {"manifests/teams/web/a.yaml": OFFICE})
    assert after(rename(root, "IPPolicy/office", "IPPolicy/hq")).keys() == {"manifests/teams/web/a.yaml"}


def test_a_rename_uses_the_variables_of_environments(root: Path) -> None:
    settings = "version: 1\nstack: prod\nvariables: {text: {type: string}}\n"
    write(
        root,
        {
            "reconciler.yaml": settings,
            "manifests/a.yaml": OFFICE.replace("{description: Office}", "{description: '${{ var.text }}'}"),
        },
    )
    with pytest.raises(InvalidProject, match="text"):
        rename(root, "IPPolicy/office", "IPPolicy/hq")
    write(root, {"environments/eu.yaml": "variables: {text: eu}\n"})
    assert after(rename(root, "IPPolicy/office", "IPPolicy/hq")).keys() == {"manifests/a.yaml"}
    write(root, {"environments/us.yaml": "stack: us\n"})
    with pytest.raises(InvalidProject, match="text"):
        rename(root, "IPPolicy/office", "IPPolicy/hq")


def test_a_rename_to_an_invalid_project_is_refused(root: Path) -> None:
    """The reference is put together of a variable, so that no text can be changed."""
    settings = "version: 1\nstack: prod\nvariables: {which: office}\n"
    edge = EDGE.replace("{ref: IPPolicy/office}", '{ref: "IPPolicy/${{ each.value }}"}').replace(
        "name: e\n", "name: e-${{ each.value }}\nfor_each: [office]\n"
    )
    write(root, {"reconciler.yaml": settings, "manifests/b.yaml": f"{edge}---\n{SECOND}---\n{DOMAIN}"})
    with pytest.raises(UnusableEdit) as refused:
        rename(root, "IPPolicy/office", "IPPolicy/hq")
    assert refused.value.lines[0] == "after renaming IPPolicy/office the manifests would be invalid"
    assert "IPPolicy/office" in refused.value.lines[1]


def test_lines_that_still_mention_the_old_address_are_reported(root: Path) -> None:
    write(
        root,
        {
            "manifests/a.yaml": f"# IPPolicy/office is the first\n{OFFICE}",
            "approvals.yaml": "# none\n# not for IPPolicy/office\n",
            "policies/rules.yaml": '# see IPPolicy/office\npolicy: p\nmessage: no\ncheck: "true"\n',
        },
    )
    assert rename(root, "IPPolicy/office", "IPPolicy/hq").mentions == (
        "manifests/a.yaml:1 still mentions IPPolicy/office",
        "approvals.yaml:2 still mentions IPPolicy/office",
        "policies/rules.yaml:1 still mentions IPPolicy/office",
    )
    (root / "approvals.yaml").unlink()
    (root / "policies/rules.yaml").unlink()
    (root / "policies").rmdir()
    assert rename(root, "IPPolicy/office", "IPPolicy/hq").mentions == (
        "manifests/a.yaml:1 still mentions IPPolicy/office",
    )


def test_components_and_policies_that_only_an_environment_has_are_read(root: Path) -> None:
    write(
        root,
        {
            "environments/prod.yaml": "components: [services]\npolicies: [rules]\nmanifests: [prod]\n",
            "prod/a.yaml": f"{OFFICE}---\ncomponent: service\nname: shop\nwith: {{host: shop.example.com}}\n",
            "services/service.yaml": "inputs: {host: {type: string}}\n---\n"
            "kind: ReservedDomain\nname: domain\nspec: {domain: '${{ input.host }}'}\n",
            "rules/a.yaml": '# see IPPolicy/office\npolicy: p\nmessage: no\ncheck: "true"\n',
        },
    )
    renamed = rename(root, "IPPolicy/office", "IPPolicy/hq")
    assert renamed.mentions == ("rules/a.yaml:1 still mentions IPPolicy/office",)
    assert renamed.texts.keys() == {"manifests/a.yaml", "prod/a.yaml"}


def test_the_mode_of_a_file_is_unchanged_and_no_symlink_is_followed(root: Path, tmp_path: Path) -> None:
    file = root / "manifests/a.yaml"
    file.chmod(0o640)
    project_texts.write(rename(root, "IPPolicy/office", "IPPolicy/hq"))
    assert file.stat().st_mode & 0o7777 == 0o640
    renamed = rename(root, "IPPolicy/hq", "IPPolicy/main")
    text = file.read_text()
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(files.Unreadable):
        project_texts.write(renamed)
    assert (tmp_path / "elsewhere").read_text() == text


def test_files_that_cannot_be_read_are_refused(root: Path) -> None:
    (root / "manifests/b.yaml").write_bytes(b"# \xff\n")
    with pytest.raises(UnusableEdit, match="not UTF-8"):
        rename(root, "IPPolicy/office", "IPPolicy/hq")
    (root / "manifests/b.yaml").unlink()
    (root / "reconciler.yaml").unlink()
    with pytest.raises(InvalidProject):
        rename(root, "IPPolicy/office", "IPPolicy/hq")


RULE = "kind: IPPolicyRule\nname: %s\nspec: {ip_policy_id: %s, cidr: 10.0.0.0/8, action: deny}\n"


def test_references_of_components_are_renamed_but_not_those_to_their_own_resources(root: Path) -> None:
    own = f"inputs: {{}}\n---\n{OFFICE}---\n{RULE % ('a', '{ref: IPPolicy/office}')}"
    other = f"inputs: {{policy: {{type: string}}}}\n---\n{RULE % ('a', '{ref: IPPolicy/office}')}"
    uses = "component: own\nname: x\n---\ncomponent: other\nname: y\nwith: {policy: {ref: IPPolicy/office}}\n"
    write(root, {"components/own.yaml": own, "components/other.yaml": other, "manifests/b.yaml": uses})
    changed = after(rename(root, "IPPolicy/office", "IPPolicy/hq"))
    assert changed["components/other.yaml"] == other.replace("IPPolicy/office", "IPPolicy/hq")
    assert changed["manifests/b.yaml"] == uses.replace("IPPolicy/office", "IPPolicy/hq")
    assert "components/own.yaml" not in changed


def test_a_component_that_other_projects_may_use_is_not_changed(tmp_path: Path) -> None:
    root = tmp_path / "project"
    rule = f"inputs: {{}}\n---\n{RULE % ('a', '{ref: IPPolicy/office}')}"
    settings = "version: 1\nstack: prod\ncomponents: [../common]\n"
    texts = {"reconciler.yaml": settings, "manifests/a.yaml": f"{OFFICE}---\ncomponent: rule\nname: x\n"}
    write(root, {**texts, "../common/rule.yaml": rule})
    (tmp_path / ".git").mkdir()
    with pytest.raises(UnusableEdit, match=r"\.\./common/rule\.yaml refers to IPPolicy/office, and other projects"):
        rename(root, "IPPolicy/office", "IPPolicy/hq")
    write(root, {"../common/rule.yaml": rule.replace("IPPolicy/office", "IPPolicy/other")})
    write(root, {"manifests/c.yaml": "kind: IPPolicy\nname: other\nspec: {}\n"})
    assert [*after(rename(root, "IPPolicy/office", "IPPolicy/hq"))] == ["manifests/a.yaml"]
