"""`forget` declares exactly the named resources forgotten, in every file and environment, or changes nothing."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from reconciler import InvalidProject, NothingSelected, Runtime
from reconciler.operations.authoring import project_texts
from reconciler.operations.authoring.forget_resources import forget_resources
from reconciler.operations.authoring.project_texts import EditedProject
from reconciler.operations.errors import UnusableEdit
from reconciler.operations.opening.source import ProjectSource

SETTINGS = "version: 1\nstack: prod\n"
POLICIES = """\
# the office
kind: IPPolicy
name: office   # the first
spec: {description: Office}
---
kind: IPPolicyRule
name: desk
spec: {ip_policy_id: {ref: IPPolicy/office}, cidr: 192.0.2.0/24, action: allow}
"""
CITIES = """\
kind: BotUser
for_each:
  rome: {text: Rome}
  oslo: {text: Oslo}   # the north
  bern: {text: Bern}
name: city-${{ each.key }}
spec: {name: "${{ each.value.text }}"}
"""
EDGE = "kind: TLSEdge\nname: e\nspec: {ip_restriction: {ip_policy_ids: [{ref: IPPolicy/office}]}}\n"
AGENT = (
    "kind: TunnelCredential\nname: t\nspec: {}\ndeliver: {token: {to_file: secrets/t}}\n---\n"
    "kind: AgentConfig\nname: berlin\nspec: {credential: {ref: TunnelCredential/t}}\n"
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    texts = {"reconciler.yaml": SETTINGS, "manifests/a.yaml": POLICIES, "manifests/b.yaml": CITIES}
    return write(tmp_path, texts)


def write(root: Path, texts: dict[str, str]) -> Path:
    for path, text in texts.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def forget(root: Path, *patterns: str, environment: str | None = None) -> EditedProject:
    source = ProjectSource(root, environment, runtime=Runtime(environ={}))
    edited = asyncio.run(forget_resources(source, patterns))
    project_texts.write(edited)
    return edited


def states(root: Path, kind: str) -> dict[str, str]:
    """`ensure` of the declared resources of a kind, by name."""
    source = ProjectSource(root, runtime=Runtime(environ={}))
    declared = project_texts.load(source, project_texts.read(source))[None]
    return {address.name: str(item.ensure) for address, item in declared.items() if address.kind == kind}


ITEMS = """\
kind: IPPolicy
name: p-${{ each.key }}
for_each:
  rome: {rules: {lan: {cidr: 10.0.0.0/16, action: allow}}}
  oslo: {rules: {lan: {cidr: 10.1.0.0/16, action: allow}}}
spec: {}
# map
"""


def test_the_line_is_added_to_a_resource_and_its_children_and_nothing_else_changes(root: Path) -> None:
    write(root, {"manifests/a.yaml": POLICIES.replace("# the first\n", "# the first\nid: ipp_1\n")})
    edited = forget(root, "IPPolicy/office")
    assert (root / "manifests/a.yaml").read_text() == POLICIES.replace(
        "# the first\n", "# the first\nid: ipp_1\nensure: forgotten\n"
    ).replace("name: desk\n", "name: desk\nensure: forgotten\n")
    assert edited.notes == ("IPPolicyRule/desk is part of a forgotten resource, and is forgotten too",)
    with pytest.raises(UnusableEdit, match="is declared `ensure: forgotten` already"):
        forget(root, "IPPolicy/office")


def test_an_inline_child_is_forgotten_in_its_entry_or_with_its_parent(root: Path) -> None:
    text = "kind: IPPolicy\nname: office\nid: ipp_1\nrules:\n  desk: {cidr: 192.0.2.0/24, action: allow}  # all\n"
    write(root, {"manifests/a.yaml": text})
    forget(root, "IPPolicyRule/office-desk")
    assert (root / "manifests/a.yaml").read_text() == text.replace("allow}", "allow, ensure: forgotten}")
    write(root, {"manifests/a.yaml": text})
    forget(root, "IPPolicy/office")
    assert (root / "manifests/a.yaml").read_text() == text.replace("ipp_1\n", "ipp_1\nensure: forgotten\n")


INLINE = """\
kind: Vault
name: %s
spec: {name: "%s"}
secrets:
  api:   # of the shop
    name: API
    value: {from_env: API}
  db: {name: DB, value: {from_env: DB}}
"""


def test_a_child_of_every_item_of_for_each_is_forgotten_in_the_map_that_they_share(root: Path) -> None:
    text = (INLINE % ("v-${{ each.key }}", "${{ each.key }}")).replace("spec:", "for_each: [x, y]\nspec:")
    write(root, {"manifests/c.yaml": text})
    forget(root, "Secret/v-*-db")
    assert (root / "manifests/c.yaml").read_text() == text.replace("DB}}", "DB}, ensure: forgotten}")
    write(root, {"manifests/c.yaml": text})
    forget(root, "Vault/v-*")
    assert (root / "manifests/c.yaml").read_text() == text.replace("key }}\nfor", "key }}\nensure: forgotten\nfor")


def test_the_advice_for_a_child_of_one_item_of_for_each_forgets_it(root: Path) -> None:
    text = (INLINE % ("v-${{ each.key }}", "${{ each.key }}")).replace("spec:", "for_each: {x: {}, y: {}}\nspec:")
    write(root, {"manifests/c.yaml": text})
    with pytest.raises(UnusableEdit, match=r"^manifests/c.yaml:9:3: Secret/v-x-db shares its entry") as refused:
        forget(root, "Secret/v-x-db")
    in_entry, in_item = re.findall("write `(.*?)`.*`(.*?)` in the item", str(refused.value))[0]
    followed = text.replace("DB}}", f"DB}}, {in_entry}}}").replace("x: {}", f"x: {{{in_item}}}")
    write(root, {"manifests/c.yaml": followed})
    assert states(root, "Secret") == {
        "v-x-api": "present", "v-x-db": "forgotten", "v-y-api": "present", "v-y-db": "present"
    }  # fmt: skip


def test_a_child_of_one_item_of_for_each_is_forgotten_in_the_item_that_has_it(root: Path) -> None:
    text = ITEMS.replace("# map", "rules: ${{ each.value.rules }}")
    write(root, {"manifests/c.yaml": text})
    forget(root, "IPPolicyRule/p-oslo-lan")
    assert (root / "manifests/c.yaml").read_text() == text.replace(
        "10.1.0.0/16, action: allow", "10.1.0.0/16, action: allow, ensure: forgotten"
    )


@pytest.mark.parametrize("rules", ["${{ each.value.rules }}", "{lan: {cidr: 192.0.2.0/24, action: allow}}"])
def test_one_item_of_for_each_is_forgotten_with_its_inline_children(root: Path, rules: str) -> None:
    text = ITEMS.replace("# map", f"rules: {rules}").replace("spec:", "moved: {oslo: IPPolicy/old}\nspec:")
    write(root, {"manifests/c.yaml": text, "environments/x.yaml": ""})
    forget(root, "IPPolicy/p-oslo")
    assert states(root, "IPPolicy") == {"office": "present", "p-rome": "present", "p-oslo": "forgotten"}
    assert states(root, "IPPolicyRule") == {"desk": "present", "p-rome-lan": "present", "p-oslo-lan": "forgotten"}
    assert (root / "manifests/c.yaml").read_text().endswith("rules:\n  lan: {}\n")


def test_the_advice_for_an_item_of_a_variable_names_its_children(root: Path) -> None:
    items = "{rome: {lan: {cidr: 10.0.0.0/16, action: allow}}, oslo: {lan: {cidr: 10.1.0.0/16, action: allow}}}"
    text = "kind: IPPolicy\nname: p-${{ each.key }}\nfor_each: ${{ var.sites }}\nrules: ${{ each.value }}\n"
    settings = f"{SETTINGS}variables:\n  sites:\n    default: {items}\n"
    write(root, {"reconciler.yaml": settings, "manifests/c.yaml": text, "environments/x.yaml": ""})
    with pytest.raises(UnusableEdit, match=r"^reconciler.yaml:5:\d+: .*write `ensure: forgotten` in this entry"):
        forget(root, "IPPolicyRule/p-oslo-lan")
    with pytest.raises(UnusableEdit, match="IPPolicy/p-oslo is declared with other resources") as refused:
        forget(root, "IPPolicy/p-oslo")
    document = str(refused.value).split("`")[1]
    without = settings.replace(", oslo: {lan: {cidr: 10.1.0.0/16, action: allow}}", "")
    write(root, {"reconciler.yaml": without, "manifests/c.yaml": f"{text}---\n{document}\n"})
    assert states(root, "IPPolicyRule") == {"desk": "present", "p-rome-lan": "present", "p-oslo-lan": "forgotten"}


def test_one_item_of_for_each_becomes_a_document_of_its_own(root: Path) -> None:
    forget(root, "BotUser/city-oslo")
    assert (root / "manifests/b.yaml").read_text() == (
        CITIES.replace("  oslo: {text: Oslo}   # the north\n", "")
        + "---\nkind: BotUser\nname: city-oslo\nensure: forgotten\n"
    )


def test_all_items_of_for_each_are_forgotten_by_one_line(root: Path) -> None:
    forget(root, "BotUser/city-*")
    assert (root / "manifests/b.yaml").read_text() == CITIES.replace("}}\nspec", "}}\nensure: forgotten\nspec")


def test_in_one_environment_the_others_keep_managing_it(root: Path) -> None:
    staging, prod = "# small\nIPPolicy/office:\n  spec: {description: Staging}   # text\n", "BotUser/city-rome: null\n"
    write(root, {"environments/staging.yaml": staging, "environments/prod.yaml": prod})
    patched = staging.replace("IPPolicy/office:", "IPPolicy/office:\n  id: ipp_1")
    write(root, {"environments/staging.yaml": patched})
    edited = forget(root, "IPPolicy/office", "BotUser/city-oslo", environment="staging")
    assert edited.texts.keys() == {"environments/staging.yaml"}
    assert (root / "environments/staging.yaml").read_text() == (
        patched + "  ensure: forgotten\nBotUser/city-oslo:\n  ensure: forgotten\nIPPolicyRule/desk:\n"
        "  ensure: forgotten\n"
    )


def test_a_resource_of_a_component_is_forgotten_in_an_environment(root: Path) -> None:
    component = "inputs: {}\n---\nkind: BotUser\nname: bot\nspec: {name: bot}\n"
    uses = "component: team\nname: a\n---\nkind: BotUser\nname: bot\nspec: {name: other}\n"
    texts = {"components/team.yaml": component, "manifests/c.yaml": uses, "environments/staging.yaml": ""}
    write(root, texts)
    with pytest.raises(UnusableEdit, match=r"a-bot belongs to the component team, used in .* `--env NAME` forgets it"):
        forget(root, "BotUser/a-bot")
    forget(root, "BotUser/a-bot", environment="staging")
    assert (root / "environments/staging.yaml").read_text() == "BotUser/a-bot:\n  ensure: forgotten\n"
    forget(root, "BotUser/bot")  # the name of the resource in the component is another one
    assert (root / "manifests/c.yaml").read_text() == uses.replace("bot\nspec", "bot\nensure: forgotten\nspec")
    assert (root / "components/team.yaml").read_text() == component


def test_a_whole_environment_is_forgotten_with_a_wildcard(root: Path) -> None:
    write(root, {"environments/staging.yaml": "IPPolicy/office: {id: ipp_1}\nBotUser/city-rome: null\n"})
    forget(root, "*", environment="staging")
    assert (root / "environments/staging.yaml").read_text().count("ensure: forgotten") == 4
    assert (root / "manifests/a.yaml").read_text() == POLICIES


def test_a_reference_from_several_environments_needs_their_ids(root: Path) -> None:
    write(root, {"environments/prod.yaml": "", "manifests/c.yaml": EDGE})
    edited = forget(root, "IPPolicy/office")
    assert edited.notes[1:] == (
        "manifests/c.yaml:1:1: TLSEdge/e refers to IPPolicy/office: keep the manifest of IPPolicy/office after the "
        "apply. `reconciler forget IPPolicy/office --env NAME` writes the id that an environment needs for new "
        "references",
    )


@pytest.mark.parametrize(
    ("patterns", "text", "error", "message"),
    [
        (["IPPolicy/offic"], "", NothingSelected, "IPPolicy/offic is not declared; did you mean IPPolicy/office?"),
        (["AgentConfig/berlin"], AGENT, UnusableEdit, "AgentConfig/berlin has no object that could be kept; delete "),
        (["TunnelCredential/t"], AGENT, InvalidProject, "API key"),
        (
            ["BotUser/x"],
            "kind: BotUser\nname: x\nensure: absent\nspec: {name: x}\n",
            UnusableEdit,
            "is declared `ensure: absent`; remove that line to keep its object",
        ),
        (
            ["BotUser/v-b"],
            'kind: BotUser\nfor_each: "${{ var.names }}"\nname: v-${{ each.key }}\nspec: {name: "${{ each.key }}"}\n',
            UnusableEdit,
            "manifests/c.yaml:1:1: BotUser/v-b is declared with other resources in one document; remove it there, and "
            "add the document `{kind: BotUser, name: v-b, ensure: forgotten}`",
        ),
    ],
)
def test_a_resource_that_cannot_be_forgotten_is_refused_and_no_file_changes(
    root: Path, patterns: list[str], text: str, error: type[Exception], message: str
) -> None:
    write(root, {"manifests/c.yaml": text})
    write(root, {"reconciler.yaml": "version: 1\nstack: prod\nvariables: {names: [a, b]}\n"})
    with pytest.raises(error) as refused:
        forget(root, *patterns)
    assert message in str(refused.value)
    assert (root / "manifests/c.yaml").read_text() == text
    assert (root / "manifests/a.yaml").read_text() == POLICIES
