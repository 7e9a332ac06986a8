"""Values changed in YAML: the file says what was asked for, and nothing else in it moves."""

from __future__ import annotations

import difflib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.value import canonical
from reconciler.planning.drift_acceptance import OMITTED
from reconciler.project.yaml import emit, patch
from reconciler.project.yaml import reader as yaml
from reconciler.project.yaml.patch import Unpatchable

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
    after = patch.patch_text(text, line, ("spec", *steps), value)
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
            OMITTED,
            [
                '-   tls_termination: {terminate_at: edge, min_version: "1.2"}  # see the audit',
                "+   tls_termination: {terminate_at: edge}  # see the audit",
            ],
        ),
        ("ip_restriction.enabled", False, ["-     enabled: true", "+     enabled: false"]),
        ("ip_restriction.enabled", OMITTED, ["-     enabled: true"]),
        (
            "ip_restriction",
            OMITTED,
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
    after = patch.patch_text(FILE, 6, ("spec", "region"), "eu")
    assert after.endswith("    b\n  region: eu\n# The end.\n")


def test_a_comment_inside_what_goes_is_not_thrown_away() -> None:
    text = "kind: a\nspec:\n  a:\n    b: 1\n    # why\n    c: 2\n"
    with pytest.raises(Unpatchable, match="a comment inside the value would be lost"):
        patch.patch_text(text, 1, ("spec", "a"), "x")


@pytest.mark.parametrize("path", [("spec", "a"), ("spec", "b")])
def test_what_an_alias_repeats_is_not_changed_in_one_place(path: tuple[str, ...]) -> None:
    text = "kind: a\nspec:\n  a: &x {c: 1, d: 2}\n  b: *x\n"
    with pytest.raises(Unpatchable):
        patch.patch_text(text, 1, path, {"c": 2, "d": 2})


def test_the_last_key_of_a_map_leaves_an_empty_map() -> None:
    text = "kind: a\nspec:\n  a:\n    b: 1\n  c: 2\n"
    assert patch.patch_text(text, 1, ("spec", "a", "b"), OMITTED) == "kind: a\nspec:\n  a: {}\n  c: 2\n"


@pytest.mark.parametrize(
    ("text", "path", "why"),
    [
        ("", ("spec", "a"), "the result would not be valid YAML"),
        ("# nothing\n", ("a",), "the result would not be valid YAML"),
        ("a: 1\n", (), "there is no document"),
    ],
)
def test_without_a_document_or_a_path_nothing_is_changed(text: str, path: tuple[str, ...], why: str) -> None:
    with pytest.raises(Unpatchable, match=why):
        patch.patch_text(text, 1, path, 1)


def test_a_value_on_a_line_of_its_own_in_brackets_stays_there() -> None:
    assert patch.patch_text("a: {b:\n  1}\n", 1, ("a", "b"), 2) == "a: {b:\n  2}\n"


def test_what_has_no_value_gets_one() -> None:
    assert patch.patch_text("kind: a\nspec:\n", 1, ("spec",), {"a": 1}) == "kind: a\nspec:\n  a: 1\n"


def test_lines_that_end_in_carriage_returns_go_on_to() -> None:
    text = "kind: a\r\nspec:\r\n  a: [1]\r\n"
    after = "kind: a\r\nspec:\r\n  a: [1]\r\n  b:\r\n    - x\r\n    - c: 2\r\n"
    assert patch.patch_text(text, 1, ("spec", "b"), ["x", {"c": 2}]) == after


WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=6)
SCALARS = (
    st.none() | st.booleans() | st.integers(-5, 5) | WORDS | st.sampled_from(["a: b", "- x", "# no", "yes", "{a}"])
)
KEYS = st.sampled_from(["a", "b", "c", "d e", "f:", "1"])
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3))
SPECS = st.dictionaries(KEYS, VALUES, min_size=1, max_size=4)


def block(spec: Any) -> str:
    return "\n".join(emit.block({"kind": "K", "spec": spec})) + "\n"


def flow(spec: Any) -> str:
    return f"kind: K\nspec: {emit.flow(spec)}\n"


def as_json(spec: Any) -> str:
    return json.dumps({"kind": "K", "spec": spec}, indent=2, ensure_ascii=True) + "\n"


@given(
    st.sampled_from([block, flow, as_json]), SPECS, st.lists(KEYS, min_size=1, max_size=3), VALUES | st.just(OMITTED)
)
def test_whatever_is_handed_out_says_what_was_asked_for(spell: Any, spec: Any, keys: list[str], value: Any) -> None:
    text = f"# before\n{block({})}---\n{spell(spec)}---\nkind: after\n"
    line = text.splitlines().index("---") + 2
    path = ("spec", *keys)
    try:
        after = patch.patch_text(text, line, path, value)
    except Unpatchable:
        return
    old, new = (yaml.read(each.encode(), "f") for each in (text, after))
    assert new.problems == []
    assert [document.value for document in new.documents][::2] == [document.value for document in old.documents][::2]
    at = new.documents[1].value
    for part in path[:-1]:
        at = at.get(part, {}) if isinstance(at, dict) else {}
    found = at.get(path[-1], OMITTED) if isinstance(at, dict) else OMITTED
    assert (found is OMITTED) == (value is OMITTED)
    assert value is OMITTED or canonical(found) == canonical(value)


def lines_of(texts: list[str], notes: list[str], layout: str) -> str:
    """A list or map of these, a note behind each or none."""
    commas = ["," if "flow" in layout else ""] * len(texts)
    if not layout.startswith("block"):
        commas[-1] = ""
    marks = {"block list": "  - ", "items": "      "}.get(layout, "    ")
    entries = [f"{text}{comma}{note}" for text, comma, note in zip(texts, commas, notes, strict=True)]
    if layout == "one flow line":
        return f"  a: [{', '.join(texts)}]{notes[-1]}\n"
    if layout == "tight flow list":
        return "  a: [" + "\n     ".join(entries) + "]\n"
    inner = "".join(f"{marks}{entry}\n" for entry in entries)
    if layout == "items":
        return f"  a:\n    - {inner.lstrip()}"
    opening, closing = {"flow list": (" [", "  ]\n"), "flow map": (" {", "  }\n")}.get(layout, ("", ""))
    return f"  a:{opening}\n{inner}{closing}"


NOTES = st.sampled_from(["", " # of {}", "\n    # above {}"])


@given(
    st.sampled_from(["block list", "block map", "flow list", "flow map", "one flow line", "tight flow list", "items"]),
    st.lists(NOTES, min_size=1, max_size=4),
    st.data(),
)
def test_what_is_said_of_a_line_stays_with_it_or_goes_with_it(
    layout: str, kinds: list[str], data: st.DataObject
) -> None:
    names = [f"v{each}" for each in range(len(kinds))]
    is_map = "map" in layout or layout == "items"
    notes = [kind.format(name) for kind, name in zip(kinds, names, strict=True)]
    if layout in ("one flow line", "tight flow list"):  # what is behind the last is behind the bracket
        notes = ["" if layout == "one flow line" else note for note in notes[:-1]] + [""]
    kept = [name for name in names if data.draw(st.booleans())]
    if layout == "items":
        kept = kept or names[:1]  # what is said behind a dash is said of the item as well
    before = "kind: K\nspec:\n" + lines_of([f"{name}: 1" if is_map else name for name in names], notes, layout)
    value: Any = dict.fromkeys(kept, 1) if is_map else kept
    try:
        after = patch.patch_text(before, 1, ("spec", "a"), [value] if layout == "items" else value)
    except Unpatchable:
        return
    for name, note in zip(names, notes, strict=True):
        of_it = [line for line in after.splitlines() if name in line.partition("#")[0]]
        assert len(of_it) == (name in kept)
        if "above" in note:
            assert f"# above {name}" in after
        elif note:
            assert [line for line in after.splitlines() if f"# of {name}" in line] == of_it


def test_of_a_list_over_several_lines_each_item_takes_its_comment_with_it() -> None:
    text = "kind: K\nspec:\n  ids: [\n    {ref: A/p1},  # the office\n    {ref: A/p2},  # the contractor\n  ]\n"
    assert patch.patch_text(text, 1, ("spec", "ids"), [{"ref": "A/p1"}]) == text.replace(
        "    {ref: A/p2},  # the contractor\n", ""
    )
    assert patch.patch_text(text, 1, ("spec", "ids"), [{"ref": "A/p2"}]) == text.replace(
        "    {ref: A/p1},  # the office\n", ""
    )


@pytest.mark.parametrize(
    "text",
    [
        "kind: K\nspec:\n  a:\n    - b: 1  # one\n      # two\n      c: 2\n",
        "kind: K\nspec:\n  a: [{b: 1,  # one\n    c: 2}]\n",
        "kind: K\nspec:\n  a: [\n    {b: 1}  # one\n    # two\n    ]\n",
    ],
)
def test_a_comment_beside_what_goes_is_not_thrown_away(text: str) -> None:
    value: list[Any] = [{"c": 2}] if "c: 2" in text else []
    with pytest.raises(Unpatchable, match="a comment inside the value would be lost"):
        patch.patch_text(text, 1, ("spec", "a"), value)


def test_what_is_emptied_keeps_the_comment_of_its_own_line_alone() -> None:
    text = "kind: K\nspec:\n  a:\n    - 1  # of the one\n  b:  # why\n"
    after = "kind: K\nspec:\n  a: []\n  b:  # why\n"
    assert patch.patch_text(text, 1, ("spec", "a"), []) == after
    assert patch.patch_text(after, 1, ("spec", "b"), []) == after.replace("b:  #", "b: []  #")


@pytest.mark.parametrize(
    ("before", "value", "after"),
    [
        (" [\n    1,\n    2\n  ] # why", [], " [] # why"),
        (" {\n    b: 1\n  }  # why", {}, " {}  # why"),
        ("\n    [\n      1\n    ] # why", [], " [] # why"),
    ],
)
def test_what_is_emptied_keeps_the_comment_behind_its_bracket(before: str, value: Any, after: str) -> None:
    text = "kind: K\nspec:\n  a:{}\n"
    path = ("spec", "a")
    assert patch.patch_text(text.format(before), 1, path, value) == text.format(after)


def test_documents_are_told_apart_whatever_ends_their_lines() -> None:
    text = "kind: a\r\nspec: {b: 1}\r\n---\r\nkind: c\r\nspec: {b: 1}\r\n"
    assert patch.patch_text(text, 4, ("spec", "b"), 2) == text[:-4] + "2}\r\n"


@pytest.mark.parametrize(
    ("before", "value", "after"),
    [
        ("    - - false", [[None, False]], "    - [null, false]"),
        ("    - - false", [[None, None, False]], "    - [null, null, false]"),
        ("    - - false\n      - null", [[None]], "    - [null]"),
        ("    - [1, 2]\n    - [3]", [[1, 2], [4]], "    - [1, 2]\n    - [4]"),
    ],
)
def test_a_list_in_a_list_is_replaced_as_a_whole(before: str, value: Any, after: str) -> None:
    text = "kind: K\nspec:\n  a:\n{}\n"
    assert patch.patch_text(text.format(before), 1, ("spec", "a"), value) == text.format(after)


@given(SPECS, st.data())
def test_in_our_own_layout_any_value_of_a_map_can_be_replaced(spec: Any, data: st.DataObject) -> None:
    key = data.draw(st.sampled_from(sorted(spec)))
    value = data.draw(VALUES)
    after = patch.patch_text(block(spec), 1, ("spec", key), value)
    assert canonical(yaml.read(after.encode(), "f").documents[0].value["spec"]) == canonical({**spec, key: value})


# --- lists whose order is not significant -----------------------------------------------------------------------------

WEIGHTS = st.dictionaries(st.sampled_from("abcd"), st.integers(0, 3), min_size=1)


@given(WEIGHTS, WEIGHTS, st.booleans(), st.data())
def test_maps_are_paired_by_their_key_and_comments_stay_with_it(
    old: dict[str, int], weights: dict[str, int], below: bool, data: st.DataObject
) -> None:
    new = dict(data.draw(st.permutations([*weights.items()])))

    def line(key: str, weight: int) -> str:
        return (
            f"- id: {key} # of {key}\n  weight: {weight}\n"
            if below
            else f"- {{id: {key}, weight: {weight}}} # of {key}\n"
        )

    text = "kind: K\nlist:\n" + "".join(line(*item) for item in old.items()) + "# The end.\n"
    pairs = {at: [*new].index(key) for at, key in enumerate(old) if key in new}
    was, wanted = ([{"id": key, "weight": weight} for key, weight in each.items()] for each in (old, new))
    try:
        after = patch.patch_unordered(text, 1, ("list",), was, wanted, pairs, "id")
    except Unpatchable:
        assert below
        assert old.keys() - new.keys()  # a comment inside what would be removed
        return
    kept = "".join(line(key, new[key]) for key in old if key in new)
    added = "".join(f"- {{id: {key}, weight: {weight}}}\n" for key, weight in new.items() if key not in old)
    assert after == f"kind: K\nlist:\n{kept}{added}# The end.\n"


@given(st.lists(st.integers(0, 5), unique=True), st.lists(st.integers(0, 5), unique=True))
def test_what_was_there_keeps_its_order_and_spelling(old: list[int], new: list[int]) -> None:
    pairs = {at: new.index(item) for at, item in enumerate(old) if item in new}
    spelt = [{"ref": f"K/{item}"} for item in old]
    after = patch.patch_unordered(block({"list": spelt}), 1, ("spec", "list"), spelt, new, pairs)
    kept = [{"ref": f"K/{item}"} for item in old if item in new]
    added = [item for item in new if item not in old]
    assert yaml.read(after.encode(), "f").documents[0].value["spec"]["list"] == [*kept, *added]
