"""Patches of YAML: the file has the requested value, and all other text is unchanged."""

from __future__ import annotations

import difflib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.languages.yaml import reader as yaml
from reconciler.model.value import OMITTED, canonical
from reconciler.project.yaml import emit, patch
from reconciler.project.yaml.patch import Unpatchable, patch_text

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


def diff_after(path: str, value: Any, text: str = FILE, line: int = 6) -> list[str]:
    """The lines of the diff between a text and its patched form."""
    steps = tuple(int(part) if part.isdigit() else part for part in path.split("."))
    after = patch.patch_text(text, line, ("spec", *steps), value)
    return [line for line in difflib.ndiff(text.splitlines(), after.splitlines()) if line[0] in "+-"]


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
def test_a_patch_changes_only_the_necessary_lines(path: str, value: Any, lines: list[str]) -> None:
    assert diff_after(path, value) == lines


def test_a_key_is_added_before_the_comments_at_the_end_of_a_document() -> None:
    after = patch.patch_text(FILE, 6, ("spec", "region"), "eu")
    assert after.endswith("    b\n  region: eu\n# The end.\n")


def test_a_patch_that_would_remove_a_comment_inside_a_value_is_refused() -> None:
    text = "kind: a\nspec:\n  a:\n    b: 1\n    # why\n    c: 2\n"
    with pytest.raises(Unpatchable, match="a comment inside the value would be lost"):
        patch.patch_text(text, 1, ("spec", "a"), "x")


@pytest.mark.parametrize("path", [("spec", "a"), ("spec", "b")])
def test_a_value_that_an_alias_repeats_is_not_patched(path: tuple[str, ...]) -> None:
    text = "kind: a\nspec:\n  a: &x {c: 1, d: 2}\n  b: *x\n"
    with pytest.raises(Unpatchable):
        patch.patch_text(text, 1, path, {"c": 2, "d": 2})


def test_removing_the_last_key_of_a_map_leaves_an_empty_map() -> None:
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


def test_a_value_in_brackets_is_patched_on_its_own_line() -> None:
    assert patch.patch_text("a: {b:\n  1}\n", 1, ("a", "b"), 2) == "a: {b:\n  2}\n"


def test_a_key_without_a_value_is_set() -> None:
    assert patch.patch_text("kind: a\nspec:\n", 1, ("spec",), {"a": 1}) == "kind: a\nspec:\n  a: 1\n"


def test_a_patch_uses_the_line_breaks_of_the_file() -> None:
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
def test_a_patched_text_has_the_requested_value(render: Any, spec: Any, keys: list[str], value: Any) -> None:
    text = f"# before\n{block({})}---\n{render(spec)}---\nkind: after\n"
    line = text.splitlines().index("---") + 2
    path = ("spec", *keys)
    try:
        after = patch.patch_text(text, line, path, value)
    except Unpatchable:
        return
    old, new = (yaml.read(content.encode(), "f") for content in (text, after))
    assert new.problems == []
    assert [document.value for document in new.documents][::2] == [document.value for document in old.documents][::2]
    at = new.documents[1].value
    for part in path[:-1]:
        at = at.get(part, {}) if isinstance(at, dict) else {}
    found = at.get(path[-1], OMITTED) if isinstance(at, dict) else OMITTED
    assert (found is OMITTED) == (value is OMITTED)
    assert value is OMITTED or canonical(found) == canonical(value)


def lines_of(texts: list[str], notes: list[str], layout: str) -> str:
    """A list or map of these texts, each followed by its note."""
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
def test_a_comment_remains_with_its_line_or_is_removed_with_it(
    layout: str, kinds: list[str], data: st.DataObject
) -> None:
    names = [f"v{number}" for number in range(len(kinds))]
    is_map = "map" in layout or layout == "items"
    notes = [kind.format(name) for kind, name in zip(kinds, names, strict=True)]
    if layout in ("one flow line", "tight flow list"):  # the note of the last item is after the bracket
        notes = ["" if layout == "one flow line" else note for note in notes[:-1]] + [""]
    kept = [name for name in names if data.draw(st.booleans())]
    if layout == "items":
        kept = kept or names[:1]  # the comment after a dash is that of the item too
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


def test_an_item_of_a_list_is_removed_with_its_comment() -> None:
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
def test_a_comment_beside_a_removed_value_remains(text: str) -> None:
    value: list[Any] = [{"c": 2}] if "c: 2" in text else []
    with pytest.raises(Unpatchable, match="a comment inside the value would be lost"):
        patch.patch_text(text, 1, ("spec", "a"), value)


def test_an_emptied_value_has_only_the_comment_of_its_own_line() -> None:
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
def test_an_emptied_value_has_the_comment_after_its_bracket(before: str, value: Any, after: str) -> None:
    text = "kind: K\nspec:\n  a:{}\n"
    path = ("spec", "a")
    assert patch.patch_text(text.format(before), 1, path, value) == text.format(after)


def test_documents_are_found_with_any_line_breaks() -> None:
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
def test_any_value_of_a_generated_map_can_be_patched(spec: Any, data: st.DataObject) -> None:
    key = data.draw(st.sampled_from(sorted(spec)))
    value = data.draw(VALUES)
    after = patch.patch_text(block(spec), 1, ("spec", key), value)
    assert canonical(yaml.read(after.encode(), "f").documents[0].value["spec"]) == canonical({**spec, key: value})


# --- lists whose order is not significant -----------------------------------------------------------------------------

WEIGHTS = st.dictionaries(st.sampled_from("abcd"), st.integers(0, 3), min_size=1)


@given(WEIGHTS, WEIGHTS, st.booleans(), st.data())
def test_maps_in_a_list_are_matched_by_key_and_have_their_comments(
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
    was, wanted = ([{"id": key, "weight": weight} for key, weight in weights.items()] for weights in (old, new))
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
def test_existing_items_have_their_order_and_spelling(old: list[int], new: list[int]) -> None:
    pairs = {at: new.index(item) for at, item in enumerate(old) if item in new}
    spelt = [{"ref": f"K/{item}"} for item in old]
    after = patch.patch_unordered(block({"list": spelt}), 1, ("spec", "list"), spelt, new, pairs)
    kept = [{"ref": f"K/{item}"} for item in old if item in new]
    added = [item for item in new if item not in old]
    assert yaml.read(after.encode(), "f").documents[0].value["spec"]["list"] == [*kept, *added]


# --- patches ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "path", "value", "after"),
    [
        # a key that is added
        ("a: 1", "b", 2, "a: 1\nb: 2"),
        ("a: 1\n", "b", 2, "a: 1\nb: 2\n"),
        ("a: 1  # one\n\n# end\n", "b", 2, "a: 1  # one\nb: 2\n\n# end\n"),
        ("a:\n  b: 1\nc: 2\n", "a.d", "x", "a:\n  b: 1\n  d: x\nc: 2\n"),
        ("a:\n    - b: 1\n", "a.0.c", 2, "a:\n    - b: 1\n      c: 2\n"),
        ("a: {}\n", "a.b", 1, "a: {b: 1}\n"),
        ("a: { }  # x\n", "a.b", [1], "a: {b: [1]}  # x\n"),
        ("a: {b: 1}\n", "a.c", {"d": 2}, "a: {b: 1, c: {d: 2}}\n"),
        ("a: {b: 1}\n", "a.c d", "x, y", 'a: {b: 1, c d: "x, y"}\n'),
        ("a: 1\n", "b.c.d", 2, "a: 1\nb:\n  c:\n    d: 2\n"),
        ("a:\n", "a.b", 2, "a:\n  b: 2\n"),
        ("a:  # x\nb: 1\n", "c", 2, "a:  # x\nb: 1\nc: 2\n"),
        ("a:\n  - |\n    x\n\n\n", "b", 1, "a:\n  - |\n    x\nb: 1\n\n\n"),
        ("a: |\n  x\n\n# end\n", "b", 1, "a: |\n  x\nb: 1\n\n# end\n"),
        ("a:\n", "b", 1, "a:\nb: 1\n"),
        # a value that is replaced
        ("a: 1 # x\n", "a", "y", 'a: "y" # x\n'),
        ("a: 1 # x\n", "a", [], "a: [] # x\n"),
        ("a: [1] # x\n", "a", "y", 'a: "y" # x\n'),
        ("a:\n  1 # x\nb: 1\n", "a", 2, "a: 2 # x\nb: 1\n"),
        ("a:\nb: 1\n", "a", 2, "a: 2\nb: 1\n"),
        ("a: # x\nb: 1\n", "a", 2, "a: 2 # x\nb: 1\n"),
        ("a:\n  b: 1\nc: 1\n", "a", "x", "a: x\nc: 1\n"),
        ("a:\n  - 1\n  - 2\nc: 1\n", "a", None, "a: null\nc: 1\n"),
        ("a: x\nc: 1\n", "a", {"b": [1]}, "a:\n  b:\n    - 1\nc: 1\n"),
        ("a: x\nc: 1\n", "a", "1\n2\n", "a: |\n  1\n  2\nc: 1\n"),
        ("{a: x, c: 1}\n", "a", {"b": "1\n2"}, '{a: {b: "1\\n2"}, c: 1}\n'),
        ("{a: , c: 1}\n", "a", 2, "{a: 2, c: 1}\n"),
        ('"a": {"b": 1}\n', "a.b", 2, '"a": {"b": 2}\n'),
        ("a: {ref: A/b}\n", "a", {"from_env": "X"}, "a: {from_env: X}\n"),
        ("a: {ref: A/b}\n", "a", {"ref": "A/c"}, "a: {ref: A/c}\n"),
        ("a: {b: 1}\n", "a", {"ref": "A/c"}, "a: {ref: A/c}\n"),
        ("a: !!str 1\n", "a", 2, "a: 2\n"),
        # a key that is removed
        ("a: 1\nb: 2\n", "a", OMITTED, "b: 2\n"),
        ("a: 1\nb: 2", "b", OMITTED, "a: 1\n"),
        ("a:\nb: 2\n", "a", OMITTED, "b: 2\n"),
        ("\na: 1\nb: 2\n", "a", OMITTED, "\nb: 2\n"),
        ("\n- a: 1\n", "0.a", 2, "\n- a: 2\n"),
        ("a: 1 # x\nb: 2\n", "a", OMITTED, "b: 2\n"),
        ("a: {b: 1, c: 2, d: 3}\n", "a.b", OMITTED, "a: {c: 2, d: 3}\n"),
        ("a: {b: 1, c: 2, d: 3}\n", "a.c", OMITTED, "a: {b: 1, d: 3}\n"),
        ("a: {b: 1, c: 2, d: 3}\n", "a.d", OMITTED, "a: {b: 1, c: 2}\n"),
        ("a: {b: 1} # x\n", "a.b", OMITTED, "a: {} # x\n"),
        ("a:\n  b: 1 # x\nc: 1\n", "a.b", OMITTED, "a: {}\nc: 1\n"),
        ("a:\n  - b: 1\n    c: 2\n", "a.0.b", OMITTED, "a:\n  - c: 2\n"),
        ("a:\n  - b: 1\n    c: 2\n", "a.0.c", OMITTED, "a:\n  - b: 1\n"),
        ("a:\n  - b: 1\n", "a.0.b", OMITTED, "a:\n  - {}\n"),
        ("a: {b: 1}\n", "a.x", OMITTED, "a: {b: 1}\n"),
        # items
        ("a: [1, 2, 3]\n", "a", [2, 3], "a: [2, 3]\n"),
        ("a: [1, 2, 3]\n", "a", [1, 3], "a: [1, 3]\n"),
        ("a: [1, 2, 3]\n", "a", [1, 2], "a: [1, 2]\n"),
        ("a: [1, 2]\n", "a", [0, 1, 2], "a: [0, 1, 2]\n"),
        ("a: [1, 2]\n", "a", [1, 9, 2], "a: [1, 9, 2]\n"),
        ("a: [1, 2]\n", "a", [1, 2, 9, 8], "a: [1, 2, 9, 8]\n"),
        ("a: [1, 2]\n", "a", [1, 9, 8, 7], "a: [1, 9, 8, 7]\n"),
        ("a: [1, 2, 3, 4]\n", "a", [1, 9], "a: [1, 9]\n"),
        ("a: [1]\n", "a", [], "a: []\n"),
        ("a: []\n", "a", [1], "a:\n  - 1\n"),
        ("a:\n- 1 # x\n- 2 # y\n", "a", [2], "a:\n- 2 # y\n"),
        ("a:\n- 1 # x\n- 2 # y\n", "a", [1], "a:\n- 1 # x\n"),
        ("a:\n- 1 # x\n- 2 # y", "a", [0, 1, 2], "a:\n- 0\n- 1 # x\n- 2 # y"),
        ("a:\n- 1 # x\n- 2 # y", "a", [1, 2, 3], "a:\n- 1 # x\n- 2 # y\n- 3"),
        ("a:\n  - 1 # x\n  - 2\n", "a", [1, {"b": 9}, 2], "a:\n  - 1 # x\n  - {b: 9}\n  - 2\n"),
        ("a:\n  - b: 1\n    c: 1\n  - b: 2\n", "a", [{"b": 1, "c": 9}, {"b": 2}], "a:\n  - b: 1\n    c: 9\n  - b: 2\n"),
        ("a:\n  - [1, 2]\n  - 3\n", "a", [[1, 9], 3], "a:\n  - [1, 9]\n  - 3\n"),
        ("a:\n- 1 # x\n- 2 # y\n- 3 # z\n", "a", [1, 8, 9], "a:\n- 1 # x\n- 8 # y\n- 9 # z\n"),
        ("a: [\n  1, # x\n  2\n]\n", "a", [1], "a: [\n  1, # x\n]\n"),
        ("a: [\n  1,\n  2 # y\n]\n", "a", [1], "a: [\n  1,\n]\n"),
        ("a: [\n  1,\n  2\n]\n", "a", [1], "a: [\n  1\n]\n"),
        ("a: [\n  1, # x\n  2\n]\n", "a", [2], "a: [\n  2\n]\n"),
        ("a:\n  - x\n", "a", ["y, z"], 'a:\n  - "y, z"\n'),
        ("a: [\n  1, # x\n  2, # y\n  3 # z\n]\n", "a", [1, 3], "a: [\n  1, # x\n  3 # z\n]\n"),
        ("a: [1, 2,\n  3, 4]\n", "a", [1, 2, 4], "a: [1, 2, 4]\n"),
        # carriage returns
        ("a: 1\r\nb: 2\r\n", "a", 3, "a: 3\r\nb: 2\r\n"),
        ("a: 1\r\nb: 2\r\n", "b", OMITTED, "a: 1\r\n"),
        ("a: 1\r\nb:\r\n  - 1\r\n", "b", [1, 2], "a: 1\r\nb:\r\n  - 1\r\n  - 2\r\n"),
        ("a: 1\r\n", "c", {"d": 1}, "a: 1\r\nc:\r\n  d: 1\r\n"),
        ("\ufeffa: 1\nb: 2\n", "a", 3, "\ufeffa: 3\nb: 2\n"),
        ("\ufeff{a: 1, b: 2}\n", "b", 30, "\ufeff{a: 1, b: 30}\n"),
        ("\u00e9: 1 # \u00e9\U0001f600\nb: 2\n", "b", 3, "\u00e9: 1 # \u00e9\U0001f600\nb: 3\n"),
    ],
)
def test_a_value_is_patched_in_its_own_layout(before: str, path: str, value: Any, after: str) -> None:
    steps = tuple(int(part) if part.isdigit() else part for part in path.split("."))
    assert patch_text(before, 1, steps, value) == after


@pytest.mark.parametrize(
    ("before", "path", "value", "reason"),
    [
        ("a: 1\rb: 2\n", "a", 2, "the file has unusual line breaks"),
        ("a: 1 # \u2028\n", "a", 2, "the file has unusual line breaks"),
        ("a: 1\na: 2\n", "a", 2, "the result would not be valid YAML"),
        ("", "a", 2, "the result would not be valid YAML"),
        ("[1]\n", "a", 2, "the value around it is not a map"),
        ("a: x\n", "a.b", 2, "the value around it is not a map"),
        ("a: [1]\n", "a.b", 2, "the value around it is not a map"),
        ("a: # x\n  [1,\n  # y\n  2]\n", "a", "z", "a comment inside the value would be lost"),
        ("a:\n  # x\n  1\n", "a", 2, "a comment inside the value would be lost"),
        ("a:\n  # x\n  1\n", "a", {"b": {"c": 1}}, "a comment inside the value would be lost"),
        ("a:\n  - [1,\n    # x\n    2]\n", "a", [3], "a comment inside the value would be lost"),
        ("a:\n  b: 1\n  # x\n  c: 2\nd: 1\n", "a", OMITTED, "a comment inside the value would be lost"),
        ("a:\n  - b: 1\n    # x\n    c: 2\n", "a.0.b", OMITTED, "a comment inside the value would be lost"),
        ("a: {\n  # x\n  b: 1\n}\n", "a.b", OMITTED, "a comment inside the value would be lost"),
        ("a: [{b: 1, # x\n  c: 1}, 2]\n", "a", [2], "a comment inside the value would be lost"),
        ("a: 1\n", "x.y", OMITTED, "its layout does not allow it"),
        ("- - 1\n  - 2\n", "0", [2], "its layout does not allow it"),
    ],
)
def test_a_patch_that_would_lose_text_is_refused(before: str, path: str, value: Any, reason: str) -> None:
    steps = tuple(int(part) if part.isdigit() else part for part in path.split("."))
    with pytest.raises(Unpatchable, match=reason):
        patch_text(before, 1, steps, value)


DOCUMENTS = "a: 1\n---\n# x\na: 1\n--- # y\na: 1\nb: '\n ---'\n---a: 1\n"


@pytest.mark.parametrize(("line", "diff_after"), [(1, 1), (3, 4), (4, 4), (6, 6), (8, 6)])
def test_the_document_at_the_line_is_patched(line: int, diff_after: int) -> None:
    lines = DOCUMENTS.splitlines(keepends=True)
    lines[diff_after - 1] = lines[diff_after - 1].replace("1", "2")
    assert patch_text(DOCUMENTS, line, ("a",), 2) == "".join(lines)


@given(st.lists(st.integers(0, 4), min_size=1), st.lists(st.integers(0, 4), min_size=1), st.booleans())
def test_a_list_is_patched_to_any_other_and_remaining_items_have_their_comments(
    old: list[int], new: list[int], is_flow: bool
) -> None:
    items = "\n".join(f"  {item}, # of {item}" if is_flow else f"  - {item} # of {item}" for item in old)
    before = f"a: [\n{items}\n]\nb: 1\n" if is_flow else f"a:\n{items}\nb: 1\n"
    try:
        after = patch_text(before, 1, ("a",), list(new))
    except Unpatchable:
        assert is_flow
        return
    assert yaml.read(after.encode(), "f").documents[0].value == {"a": new, "b": 1}
    if old == new:
        assert after == before


@pytest.mark.parametrize(
    ("before", "new", "pairs", "after"),
    [
        ("a: [x, q]\n", ["q", "s"], {1: 0}, "a: [q, s]\n"),
        ("a:\n- x # x\n- q # q\n", ["q", "s"], {1: 0}, "a:\n- q # q\n- s\n"),
        ("a: [{k: x, v: 1}, {v: 2, k: q}]\n", [{"k": "q", "v": 3}], {1: 0}, "a: [{v: 3, k: q}]\n"),
        ("a: [{k: x, v: 1}]\n", [{"k": "q", "v": 1}], {}, "a: [{k: q, v: 1}]\n"),
        ("a: [{k: x, v: 1}]\n", [{"k": "q", "v": 1}, {"k": "X", "v": 2}], {0: 1}, "a: [{k: x, v: 2}, {k: q, v: 1}]\n"),
        ("a: []\n", [{"k": "q", "v": 1}], {}, "a:\n  - k: q\n    v: 1\n"),
        ("a:\n- k: x\n  v: 1 # x\n", [{"k": "q", "v": 1}], {}, "a:\n- {k: q, v: 1}\n"),
    ],
)
def test_items_of_the_file_remain_in_order_and_new_ones_are_added_after_them(
    before: str, new: list[Any], pairs: dict[int, int], after: str
) -> None:
    old = yaml.read(before.encode(), "f").documents[0].value["a"]
    key = "k" if isinstance(new[0], dict) else None
    assert patch.patch_unordered(before, 1, ("a",), old, new, pairs, key) == after
