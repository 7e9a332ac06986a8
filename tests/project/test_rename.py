"""Renaming a resource in the files of a project: its name, references to it, and no other text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.languages.yaml import reader as yaml
from reconciler.model.address import Address
from reconciler.project.manifests import rename
from reconciler.project.manifests.rename import Renaming
from reconciler.project.yaml import emit
from reconciler.project.yaml.patch import Unpatchable

OLD, NEW = Address("IPPolicy", "a"), Address("IPPolicy", "b")


def make_renaming(old: Address = OLD, new: Address = NEW, more: Iterable[Address] = ()) -> Renaming:
    return Renaming(old, new, {old, *more}, {old: new})


@pytest.mark.parametrize(
    ("text", "rename_references"),
    [
        ("IPPolicy/a", "IPPolicy/b"),
        ("IPPolicy/a.id", "IPPolicy/b.id"),
        ("IPPolicy/a.b.c", "IPPolicy/b.b.c"),
        ("IPPolicy/a.x", None),  # a declared resource of this name
        ("IPPolicy/a.x.id", None),
        ("IPPolicy/ab", None),
        ("IPPolicy/", None),
        ("Vault/a", None),
        ("IPPolicy", None),
        ("a", None),
    ],
)
def test_a_reference_is_renamed_if_it_names_the_resource(text: str, rename_references: str | None) -> None:
    more = [Address("IPPolicy", "a.x"), Address("Vault", "a")]
    assert make_renaming(more=more).rename_reference(text) == rename_references


def test_a_name_with_dots_is_renamed_and_not_the_shorter_one() -> None:
    dotted = make_renaming(Address("IPPolicy", "a.x"), NEW, [OLD])
    assert [dotted.rename_reference(f"IPPolicy/{name}") for name in ("a.x.id", "a.y", "a")] == [
        "IPPolicy/b.id",
        None,
        None,
    ]


MANIFEST = """\
# IPPolicy/a is ours
kind: IPPolicy
name: {name}   # the name
spec: {{description: "a, not ${{{{ IPPolicy/a }}}} but $${{{{ IPPolicy/a.id }}}}"}}
---
kind: IPPolicyRule
name: a
spec:
  ip_policy_id: {{ref: IPPolicy/a}}  # IPPolicy/a
  description: "of ${{{{IPPolicy/a.id}}}} and ${{{{ IPPolicy/ab }}}}"
  more: [{{ref: "IPPolicy/a.id"}}, {{ref: IPPolicy/ab}}, {{ref: IPPolicy/a, other: IPPolicy/a}}]
---
kind: IPPolicy
name: ab
for_each:
  x: {{of: "${{{{ IPPolicy/a }}}}"}}
lifecycle: {{ref: IPPolicy/a}}
"""


@pytest.mark.parametrize(
    ("name", "new"), [("a", "b"), ("'a'", "'b'"), ('"a"', '"b"')], ids=["plain", "single", "double"]
)
def test_names_and_references_are_renamed_and_all_other_text_is_unchanged(name: str, new: str) -> None:
    after = rename.rename_in_manifests(MANIFEST.format(name=name), make_renaming())
    expected = MANIFEST.format(name=f"{new}   # the name\nmoved: [IPPolicy/a]").replace("a]   # the name", "a]")
    for old, put in (
        ("not ${{ IPPolicy/a }}", "not ${{ IPPolicy/b }}"),
        ("{ref: IPPolicy/a}  #", "{ref: IPPolicy/b}  #"),
        ("${{IPPolicy/a.id}}", "${{IPPolicy/b.id}}"),
        ('{ref: "IPPolicy/a.id"}', '{ref: "IPPolicy/b.id"}'),
        ('of: "${{ IPPolicy/a }}"', 'of: "${{ IPPolicy/b }}"'),
    ):
        assert old in expected
        expected = expected.replace(old, put)
    assert after == expected


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("kind: IPPolicy\nname: a", "kind: IPPolicy\nname: b\nmoved: [IPPolicy/a]\n"),
        ("name: a\r\nkind: IPPolicy\r\n", "name: b\r\nkind: IPPolicy\r\nmoved: [IPPolicy/a]\r\n"),
        (
            "---\n  kind: IPPolicy\n  spec: {}\n  name: a # x\n",
            "---\n  kind: IPPolicy\n  spec: {}\n  name: b # x\n  moved: [IPPolicy/a]\n",
        ),
        (
            "kind: IPPolicy\nname: a\nensure: absent\nid: ipp_1\nspec: {}\n",
            "kind: IPPolicy\nname: b\nensure: absent\nid: ipp_1\nmoved: [IPPolicy/a]\nspec: {}\n",
        ),
        ("{kind: IPPolicy, name: a}\n", "{kind: IPPolicy, name: b, moved: [IPPolicy/a]}\n"),
        (
            "kind: IPPolicy\nname: a\nmoved: IPPolicy/o\n",
            "kind: IPPolicy\nname: b\nmoved:\n  - IPPolicy/o\n  - IPPolicy/a\n",
        ),
        ("kind: IPPolicy\nname: a\nmoved: null\n", "kind: IPPolicy\nname: b\nmoved:\n  - IPPolicy/a\n"),
        ("kind: IPPolicy\nname: a\nmoved:\n", "kind: IPPolicy\nname: b\nmoved:\n  - IPPolicy/a\n"),
        (
            "kind: IPPolicy\nname: a\nmoved: [IPPolicy/o, IPPolicy/b]\n",
            "kind: IPPolicy\nname: b\nmoved: [IPPolicy/o, IPPolicy/a]\n",
        ),
        ("kind: IPPolicy\nname: a\nmoved: IPPolicy/b\n", "kind: IPPolicy\nname: b\nmoved:\n  - IPPolicy/a\n"),
    ],
)
def test_the_former_address_is_added(text: str, after: str) -> None:
    assert rename.rename_in_manifests(text, make_renaming()) == after


def test_a_resource_without_an_object_has_no_former_address() -> None:
    old, new = Address("AgentConfig", "a"), Address("AgentConfig", "b")
    text = "kind: AgentConfig\nname: a\nspec: {}\n"
    assert rename.rename_in_manifests(text, make_renaming(old, new)) == text.replace("name: a", "name: b")


@pytest.mark.parametrize("name", ["no", "1", "1.5", "null"])
def test_a_new_name_that_is_not_plain_text_is_quoted(name: str) -> None:
    after = rename.rename_in_manifests("kind: IPPolicy\nname: a\n", make_renaming(new=Address("IPPolicy", name)))
    assert after.splitlines()[1] == f'name: "{name}"'


@pytest.mark.parametrize(
    ("text", "is_declaring"),
    [
        ("kind: IPPolicy\nname: a\n", True),
        ("kind: Vault\nname: v\n---\n{name: a, kind: IPPolicy}\n", True),
        ("kind: IPPolicy\nname: a\nfor_each: [x]\n", False),
        ("kind: IPPolicy\nname: ab\n", False),
        ("kind: Vault\nname: a\n", False),
        ("kind: [IPPolicy]\nname: a\n", False),
        ("kind: IPPolicy\nname: [a]\n", False),
        ("- kind: IPPolicy\n  name: a\n", False),
        ("IPPolicy/a\n", False),
        ("name: a\n", False),
        ("kind: IPPolicy\n", False),
        ("", False),
    ],
)
def test_a_file_declares_what_it_names_literally(text: str, is_declaring: bool) -> None:
    assert rename.is_declared(text, OLD) == is_declaring
    if not is_declaring:
        assert rename.rename_in_manifests(text, make_renaming()) == text


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("kind: IPPolicy\nname: a\rspec: {}\n", "unusual line breaks"),
        ("kind: IPPolicy\nname: a # \u2028\n", "unusual line breaks"),
        ("kind: IPPolicy\nname: a # \ufeff\n", "unusual line breaks"),
        ("kind: [\n", "its layout does not allow it"),
        ('kind: IPPolicy\nname: "\\x61"\n', "a name is written with escapes"),
        ('kind: X\nspec: {ref: "IPPolicy/\\x61"}\n', "a name is written with escapes"),
    ],
)
def test_a_text_that_cannot_be_changed_in_place_is_refused(text: str, reason: str) -> None:
    with pytest.raises(Unpatchable, match=reason):
        rename.rename_in_manifests(text, make_renaming())


def test_a_byte_order_mark_is_unchanged() -> None:
    text = "\ufeff{kind: IPPolicy, name: a}\n"
    assert rename.rename_in_manifests(text, make_renaming()) == "\ufeff{kind: IPPolicy, name: b, moved: [IPPolicy/a]}\n"
    text = "\ufeffspec: {x: {ref: IPPolicy/a}, y: '${{ IPPolicy/a.id }}'}\nkind: X\n"
    assert rename.rename_in_manifests(text, make_renaming()) == text.replace("IPPolicy/a", "IPPolicy/b")


def test_a_reference_that_an_alias_repeats_is_renamed_once() -> None:
    text = "kind: X\nspec:\n  a: &it {ref: IPPolicy/a}\n  b: *it\n"
    assert rename.rename_in_manifests(text, make_renaming()) == text.replace("IPPolicy/a", "IPPolicy/b")


SETTINGS = """\
stack: shop  # IPPolicy/a
variables: {note: "${{ IPPolicy/a }}"}
drift:
  ignore:
    - {match: IPPolicy/a, until: 2030-12-31, reason: IPPolicy/a}
    - {match: IPPolicy/a.description, until: 2030-12-31, reason: x}
    - {match: IPPolicy/ab, until: 2030-12-31, reason: x}
    - {match: IPPolicy/*, until: 2030-12-31, reason: x}
defaults:
  IPRestriction: {spec: {ip_policy_ids: [{ref: IPPolicy/a}]}}
IPPolicy/a: {spec: {description: of}}
IPRestriction/r: {spec: {ip_policy_ids: [{ref: IPPolicy/a}, "${{ IPPolicy/a.id }}"]}}
IPPolicy/ab: null
"""


def test_patches_defaults_and_known_drift_of_settings_are_renamed() -> None:
    expected = SETTINGS
    for old in (
        "{match: IPPolicy/a, ",
        "{match: IPPolicy/a.description",
        "{ref: IPPolicy/a}]}}\nI",
        "IPPolicy/a: {spec: {desc",
        "{ref: IPPolicy/a}, ",
        '"${{ IPPolicy/a.id }}"]',
    ):
        assert expected.count(old) == 1
        expected = expected.replace(old, old.replace("IPPolicy/a", "IPPolicy/b"))
    assert rename.rename_in_settings(SETTINGS, make_renaming()) == expected


@pytest.mark.parametrize(
    "text",
    ["", "[IPPolicy/a]\n", "drift: IPPolicy/a\n", "drift: {ignore: IPPolicy/a}\n", "drift: {ignore: [a, {b: 1}]}\n"],
)
def test_settings_without_the_resource_are_unchanged(text: str) -> None:
    assert rename.rename_in_settings(text, make_renaming()) == text


def test_lines_that_mention_the_address_are_found_but_not_those_of_former_addresses() -> None:
    lines = {
        "# see IPPolicy/a": True,
        "a: IPPolicy/a.id": True,
        "b: (IPPolicy/a)": True,
        "moved: [IPPolicy/a]  # IPPolicy/a": True,
        "c: {moved: IPPolicy/a, match: IPPolicy/a}": True,
        "list:": False,
        "  - IPPolicy/a and more": True,
        "  - IPPolicy/a": True,
        "d: {moved: IPPolicy/a}": False,
        "e: {moved: [IPPolicy/o, IPPolicy/a]}": False,
        'f: {"moved": IPPolicy/a}': False,
        "g: {moved: {news: IPPolicy/a, blog: [IPPolicy/a]}}": False,
        "h:": False,
        "  moved:": False,
        "    - IPPolicy/a": False,
        '    - "IPPolicy/a"': False,
        "i:": False,
        "  moved: # by key": False,
        "    news: IPPolicy/a": False,
        "j: XIPPolicy/a": False,
        "k: x/IPPolicy/a": False,
        "l: IPPolicy/a-b IPPolicy/a_b IPPolicy/ab IPPolicy/a1": False,
        "": False,
    }
    found = [*rename.find_mentions("\n".join(lines), OLD)]
    assert found == [number for number, (_, is_mention) in enumerate(lines.items(), 1) if is_mention]
    assert [*rename.find_mentions("[ no YAML\nIPPolicy/a", OLD)] == [2]


WORDS = st.sampled_from(["a", "IPPolicy/a", "IPPolicy/a.id", "${{ IPPolicy/a }} x", "IPPolicy/ab", "", "é\U0001f600"])
VALUES: Any = st.recursive(
    WORDS | st.fixed_dictionaries({"ref": WORDS}),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


def rename_references(value: Any) -> Any:
    """The expected value after the renaming."""
    if isinstance(value, dict):
        if [*value] == ["ref"]:
            known = {"IPPolicy/a": "IPPolicy/b", "IPPolicy/a.id": "IPPolicy/b.id"}
            return {"ref": known.get(value["ref"], value["ref"])}
        return {key: rename_references(item) for key, item in value.items()}
    if isinstance(value, list):
        return [rename_references(item) for item in value]
    return value.replace("${{ IPPolicy/a }}", "${{ IPPolicy/b }}")


@given(VALUES, st.booleans())
def test_only_the_references_of_a_value_are_renamed(value: Any, is_flow: bool) -> None:
    spec = emit.flow(value) if is_flow else None
    text = f"kind: X\nspec: {spec}\n" if is_flow else "\n".join(emit.block({"kind": "X", "spec": value})) + "\n"
    (document,) = yaml.read(rename.rename_in_manifests(text, make_renaming()).encode(), "f").documents
    assert document.value == {"kind": "X", "spec": rename_references(value)}
