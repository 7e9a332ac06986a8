"""Manifests of children, moved into those of their parents: layouts, comments, and what stays where it is."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.model.address import Address
from reconciler.model.problem import Rejected
from reconciler.project.manifests.inline import locate, move_inline
from reconciler.project.yaml import format
from tests.harness.tiers import examples
from tests.project.texts import load

OFFICE = "kind: IPPolicy\nname: office\nspec:\n  description: Office\n"
RULE = "kind: IPPolicyRule\nname: office-lan\nspec:\n  ip_policy_id: {ref: IPPolicy/office}\n  cidr: 10.0.0.0/8\n"
DECLARED = [Address("IPPolicy", "office"), Address("IPPolicyRule", "office-used")]


def move(text: str, **others: str) -> tuple[Mapping[str, str], list[str]]:
    texts = {f"{name}.yaml": format.format_text(other, "") for name, other in {"a": text, **others}.items()}
    moved, problems = move_inline(texts, DECLARED)
    return moved, [f"{problem.text}; {problem.remedy}" for problem in problems]


@pytest.mark.parametrize(
    ("rule", "entry"),
    [
        (f"{RULE}  action: allow\n", "  lan:\n    cidr: 10.0.0.0/8\n    action: allow\n"),
        (
            "kind: IPPolicyRule\nname: office-lan\n"
            "spec: {cidr: 10.0.0.0/8, ip_policy_id: {ref: IPPolicy/office}, action: allow}  # all\n",
            "  lan: {cidr: 10.0.0.0/8, action: allow}  # all\n",
        ),
        (
            "# the first\n\n# of two\nkind: IPPolicyRule  # one\n# why\nname: office-lan  # two\n"
            "moved: IPPolicyRule/x  # three\nlifecycle:\n  # never\n  protect: true\n"
            "# fields\nspec:  # four\n  # above\n  ip_policy_id: {ref: IPPolicy/office}  # five\n  # net\n"
            "  cidr: 10.0.0.0/8  # six\n  action: allow\n  # end\n",
            "  # the first\n  # of two\n  # one\n  # why\n  # two\n  # fields\n  # four\n  # five\n  lan:\n"
            "    moved: IPPolicyRule/x  # three\n    lifecycle:\n      # never\n      protect: true\n"
            "    # above\n    # net\n    cidr: 10.0.0.0/8  # six\n    action: allow\n    # end\n",
        ),
        (
            "kind: IPPolicyRule\nname: office-lan\nensure: absent\nspec: {ip_policy_id: {ref: IPPolicy/office}}\n",
            "  lan:\n    ensure: absent\n",
        ),
        (
            "kind: IPPolicyRule\nname: office-lan\nlifecycle: {protect: true}\n"
            "spec: {ip_policy_id: {ref: IPPolicy/office}, cidr: 10.0.0.0/8, action: allow}\n",
            '  lan:\n    lifecycle: {protect: true}\n    cidr: "10.0.0.0/8"\n    action: allow\n',
        ),
        (
            "kind: IPPolicyRule\nname: office-7\nspec:\n  description: |\n    two\n\n    lines\n"
            "  ip_policy_id:\n    ref: IPPolicy/office\n  cidr: &net 10.0.0.0/8\n  metadata: *net\n",
            '  "7":\n    description: |\n      two\n\n      lines\n    cidr: &net 10.0.0.0/8\n    metadata: *net\n',
        ),
    ],
)
def test_a_document_becomes_an_entry_with_its_comments(rule: str, entry: str) -> None:
    expected = {"a.yaml": f"{OFFICE}rules:\n{entry}"}
    assert move(f"{OFFICE}---\n{rule}") == (expected, [])
    assert move(OFFICE, b=rule) == ({**expected, "b.yaml": ""}, [])
    assert move(f"{rule}---\n{OFFICE}") == (expected, [])


def test_an_entry_is_added_behind_those_that_the_parent_has() -> None:
    parent = f"{OFFICE}rules:\n  vpn:\n    cidr: 10.1.0.0/16\n  # the last\n"
    moved, problems = move(f"{parent}---\n{RULE}")
    assert (moved["a.yaml"], problems) == (f"{parent}  lan:\n    cidr: 10.0.0.0/8\n", [])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            OFFICE + "---\n" + RULE.replace("office-lan", "lan"),
            "its name does not begin with office-; `reconciler rename IPPolicyRule/lan IPPolicyRule/office-lan` "
            "renames it, and keeps the object",
        ),
        (
            OFFICE + "---\n" + RULE.replace("office-lan", "office-${{ each.key }}\nfor_each: [a]"),
            "it has for_each, which an entry cannot have; leave it as it is",
        ),
        (
            OFFICE.replace("office", "${{ each.key }}\nfor_each: [office]") + "---\n" + RULE,
            "for_each declares the parent, and rules there would be of every item; leave it as it is, or write `rules: "
            "${{ each.value.rules }}` there and give every item a map rules",
        ),
        (
            f"{OFFICE}rules: {{vpn: {{cidr: 10.1.0.0/16, action: deny}}}}\n---\n{RULE}",
            "rules of the parent is written in braces; write it as a block",
        ),
        (
            f"{{kind: IPPolicy, name: office}}\n---\n{RULE}",
            "a manifest in braces cannot be changed; run `reconciler fmt` after writing it as a block",
        ),
    ],
)
def test_a_document_that_cannot_be_an_entry_is_unchanged_and_the_reason_is_reported(text: str, problem: str) -> None:
    moved, problems = move(text)
    assert moved["a.yaml"] == format.format_text(text, "")
    assert problems == [f"cannot be declared in the manifest of IPPolicy/office: {problem}"]


@pytest.mark.parametrize(
    ("name", "suggested"),
    [
        ("lan", "office-lan"),
        ("lan-rule", "office-lan"),
        ("lan-office", "office-lan"),
        ("used", "office-used-2"),  # office-used is declared
        ("used-rule", "office-used-rule"),
        ("rule", "office-rule"),
        ("office", "office-rule"),
        ("officer", "office-officer"),
    ],
)
def test_the_suggested_name_has_no_word_twice_and_is_free(name: str, suggested: str) -> None:
    _, (problem,) = move(f"{OFFICE}---\n{RULE.replace('office-lan', name)}")
    assert f"`reconciler rename IPPolicyRule/{name} IPPolicyRule/{suggested}`" in problem


def test_two_children_get_different_suggestions() -> None:
    rules = [RULE.replace("office-lan", name) for name in ("lan", "lan-rule", "lan-office")]
    _, problems = move("---\n".join([OFFICE, *rules]))
    found = [problem.split("`")[1].split()[-1] for problem in problems]
    assert found == ["IPPolicyRule/office-lan", "IPPolicyRule/office-lan-rule", "IPPolicyRule/office-lan-office"]


def test_a_problem_has_the_position_of_its_manifest_in_either_text() -> None:
    text = format.format_text(f"{OFFICE}---\n{RULE}  action: allow\n---\n{RULE.replace('office-lan', 'lan')}", "")
    moved, problems = move_inline({"a.yaml": text}, DECLARED)
    for texts in ({"a.yaml": text}, moved):
        (problem,) = locate(problems, texts)
        assert problem.position is not None
        assert texts["a.yaml"].splitlines()[problem.position.line :][0] == "name: lan"


def test_a_child_of_an_object_that_is_not_declared_is_unchanged() -> None:
    text = f"{RULE.replace('{ref: IPPolicy/office}', 'ipp_1')}---\n{RULE.replace('IPPolicy/office', 'IPPolicy/other')}"
    assert move(text) == ({"a.yaml": format.format_text(text, "")}, [])


ENTRY = st.fixed_dictionaries(
    {
        "cidr": st.integers(0, 255).map(lambda number: f"10.{number}.0.0/16"),
        "action": st.sampled_from(["allow", "deny"]),
    },
    optional={"description": st.sampled_from(['"a: b # c"', "'x'", "|\n    two\n\n    lines", "plain  # note"])},
)
HEADS = st.sampled_from(["", "# note\n", "lifecycle: {protect: true}\n", "moved: IPPolicyRule/x  # before\n"])


@settings(max_examples=examples(8), deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["a", "office"]), HEADS, ENTRY), max_size=3))
def test_moved_children_declare_the_same_resources_and_nothing_moves_again(
    rules: list[tuple[str, str, dict[str, str]]],
) -> None:
    text = OFFICE
    for number, (parent, head, entry) in enumerate(rules):
        fields = "".join(f"  {name}: {value}\n" for name, value in entry.items())
        spec = f"spec:\n  ip_policy_id: {{ref: IPPolicy/office}}\n{fields}"
        text += f"---\nkind: IPPolicyRule\nname: {parent}-{number}\n{head}{spec}"
    moved, problems = move(text)
    assert len(problems) == sum(parent == "a" for parent, *_ in rules)
    assert _summarize(moved["a.yaml"]) == _summarize(text)
    assert sorted(format.comments_of(moved["a.yaml"])) == sorted(format.comments_of(text))
    assert move(moved["a.yaml"]) == (moved, problems)


def _summarize(text: str) -> object:
    try:
        found = load(text).manifest.declarations
    except Rejected as rejected:  # two rules with one network
        return {problem.code for problem in rejected.problems}
    return {address: (one.spec, one.lifecycle, one.moved, one.ensure) for address, one in found.items()}
