"""Values changed in YAML: the file says what was asked for, and nothing else in it moves."""

from __future__ import annotations

import difflib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.value import canonical
from reconciler.planning.accepting import GONE
from reconciler.project import patching, spelling, yaml
from reconciler.project.patching import Unpatchable

FILE = """\
# The first.
kind: IPPolicy
name: office
---
# The edge of the payments.
kind: TLSEdge
name: pay   # its name
spec:
  # where
  hostports:
    - pay.example.com:443  # the shop
    - "api.example.com:443"
  tls_termination: {terminate_at: edge, min_version: "1.2"}  # see the audit

  ip_restriction:
    enabled: true
    ip_policy_ids: [{ref: IPPolicy/office}]
  description: >-
    Two
    lines
  metadata: |
    a
    b
# The end.
"""


def changed(path: str, value: Any, text: str = FILE, line: int = 6) -> list[str]:
    """The lines that differ."""
    steps = tuple(int(each) if each.isdigit() else each for each in path.split("."))
    after = patching.patched(text, line, ("spec", *steps), value)
    return [each for each in difflib.ndiff(text.splitlines(), after.splitlines()) if each[0] in "+-"]


@pytest.mark.parametrize(
    ("path", "value", "lines"),
    [
        (
            "tls_termination.min_version",
            "1.3",
            [
                '-   tls_termination: {terminate_at: edge, min_version: "1.2"}  # see the audit',
                '+   tls_termination: {terminate_at: edge, min_version: "1.3"}  # see the audit',
            ],
        ),
        (
            "tls_termination.min_version",
            GONE,
            [
                '-   tls_termination: {terminate_at: edge, min_version: "1.2"}  # see the audit',
                "+   tls_termination: {terminate_at: edge}  # see the audit",
            ],
        ),
        ("ip_restriction.enabled", False, ["-     enabled: true", "+     enabled: false"]),
        ("ip_restriction.enabled", GONE, ["-     enabled: true"]),
        (
            "ip_restriction",
            GONE,
            ["-   ip_restriction:", "-     enabled: true", "-     ip_policy_ids: [{ref: IPPolicy/office}]"],
        ),
        (
            "ip_restriction.ip_policy_ids",
            [{"ref": "IPPolicy/home"}, {"ref": "IPPolicy/office"}],
            [
                "-     ip_policy_ids: [{ref: IPPolicy/office}]",
                "+     ip_policy_ids: [{ref: IPPolicy/home}, {ref: IPPolicy/office}]",
            ],
        ),
        ("hostports", ["api.example.com:443"], ["-     - pay.example.com:443  # the shop"]),
        (
            "hostports",
            ["pay.example.com:443", "new.example.com:443", "api.example.com:443"],
            ['+     - "new.example.com:443"'],
        ),
        ("hostports", ["pay.example.com:443"], ['-     - "api.example.com:443"']),
        ("description", "one line", ["-   description: >-", "+   description: one line", "-     Two", "-     lines"]),
        ("metadata", "a\nc\n", ["-     b", "+     c"]),
        ("backend", {"backend_id": "bkd_1"}, ["+   backend:", "+     backend_id: bkd_1"]),
        ("region", "no", ['+   region: "no"']),
    ],
)
def test_only_what_has_to_changes(path: str, value: Any, lines: list[str]) -> None:
    assert changed(path, value) == lines


def test_the_last_key_of_a_document_is_followed_by_a_new_one_before_the_comments_that_end_it() -> None:
    after = patching.patched(FILE, 6, ("spec", "region"), "eu")
    assert after.endswith("    b\n  region: eu\n# The end.\n")


def test_a_comment_inside_what_goes_is_not_thrown_away() -> None:
    text = "kind: a\nspec:\n  a:\n    b: 1\n    # why\n    c: 2\n"
    with pytest.raises(Unpatchable, match="a comment inside it would be lost"):
        patching.patched(text, 1, ("spec", "a"), "x")


@pytest.mark.parametrize("path", [("spec", "a"), ("spec", "b")])
def test_what_an_alias_repeats_is_not_changed_in_one_place(path: tuple[str, ...]) -> None:
    text = "kind: a\nspec:\n  a: &x {c: 1, d: 2}\n  b: *x\n"
    with pytest.raises(Unpatchable):
        patching.patched(text, 1, path, {"c": 2, "d": 2})


def test_the_last_key_of_a_map_leaves_an_empty_map() -> None:
    text = "kind: a\nspec:\n  a:\n    b: 1\n  c: 2\n"
    assert patching.patched(text, 1, ("spec", "a", "b"), GONE) == "kind: a\nspec:\n  a: {}\n  c: 2\n"


def test_what_has_no_value_gets_one() -> None:
    assert patching.patched("kind: a\nspec:\n", 1, ("spec",), {"a": 1}) == "kind: a\nspec:\n  a: 1\n"


def test_lines_that_end_in_carriage_returns_go_on_to() -> None:
    text = "kind: a\r\nspec:\r\n  a: [1]\r\n"
    after = "kind: a\r\nspec:\r\n  a: [1]\r\n  b:\r\n    - x\r\n    - c: 2\r\n"
    assert patching.patched(text, 1, ("spec", "b"), ["x", {"c": 2}]) == after


WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=6)
SCALARS = (
    st.none() | st.booleans() | st.integers(-5, 5) | WORDS | st.sampled_from(["a: b", "- x", "# no", "yes", "{a}"])
)
KEYS = st.sampled_from(["a", "b", "c", "d e", "f:", "1"])
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3))
SPECS = st.dictionaries(KEYS, VALUES, min_size=1, max_size=4)


def block(spec: Any) -> str:
    return "\n".join(spelling.block({"kind": "K", "spec": spec})) + "\n"


def flow(spec: Any) -> str:
    return f"kind: K\nspec: {spelling.flow(spec)}\n"


def as_json(spec: Any) -> str:
    return json.dumps({"kind": "K", "spec": spec}, indent=2, ensure_ascii=True) + "\n"


@given(st.sampled_from([block, flow, as_json]), SPECS, st.lists(KEYS, min_size=1, max_size=3), VALUES | st.just(GONE))
def test_whatever_is_handed_out_says_what_was_asked_for(spell: Any, spec: Any, keys: list[str], value: Any) -> None:
    text = f"# before\n{block({})}---\n{spell(spec)}---\nkind: after\n"
    line = text.splitlines().index("---") + 2
    path = ("spec", *keys)
    try:
        after = patching.patched(text, line, path, value)
    except Unpatchable:
        return
    old, new = (yaml.read(each.encode(), "f") for each in (text, after))
    assert new.problems == []
    assert [each.value for each in new.documents][::2] == [each.value for each in old.documents][::2]
    at = new.documents[1].value
    for part in path[:-1]:
        at = at.get(part, {}) if isinstance(at, dict) else {}
    found = at.get(path[-1], GONE) if isinstance(at, dict) else GONE
    assert (found is GONE) == (value is GONE)
    assert value is GONE or canonical(found) == canonical(value)


@given(SPECS, st.data())
def test_in_our_own_layout_any_value_of_a_map_can_be_replaced(spec: Any, data: st.DataObject) -> None:
    key = data.draw(st.sampled_from(sorted(spec)))
    value = data.draw(VALUES)
    after = patching.patched(block(spec), 1, ("spec", key), value)
    assert canonical(yaml.read(after.encode(), "f").documents[0].value["spec"]) == canonical({**spec, key: value})


@given(st.lists(st.integers(0, 5)), st.lists(st.integers(0, 5)))
def test_what_was_there_keeps_its_order(old: list[int], new: list[int]) -> None:
    ordered = patching.ordered_like(old, new)
    assert sorted(ordered) == sorted(new)
    if sorted(old) == sorted(new):
        assert ordered == old
