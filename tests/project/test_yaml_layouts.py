"""Patches, layouts and positions of YAML, in every form in which a value can be written."""

from __future__ import annotations

from array import array
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.languages.yaml_fast_path import MAX_DEPTH, MAX_SCALAR
from reconciler.model.problem import Position, Rejected
from reconciler.planning.drift_acceptance import OMITTED
from reconciler.project.yaml import emit, patch
from reconciler.project.yaml import reader as yaml
from reconciler.project.yaml.errors import MAX_BYTES
from reconciler.project.yaml.format import add_modeline, format_text
from reconciler.project.yaml.patch import Unpatchable, patch_text
from reconciler.project.yaml.positions import Places
from tests.project.test_yaml import JSON

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
def test_a_value_is_changed_in_its_own_layout(before: str, path: str, value: Any, after: str) -> None:
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
def test_a_change_that_would_lose_something_is_refused(before: str, path: str, value: Any, reason: str) -> None:
    steps = tuple(int(part) if part.isdigit() else part for part in path.split("."))
    with pytest.raises(Unpatchable, match=reason):
        patch_text(before, 1, steps, value)


DOCUMENTS = "a: 1\n---\n# x\na: 1\n--- # y\na: 1\nb: '\n ---'\n---a: 1\n"


@pytest.mark.parametrize(("line", "changed"), [(1, 1), (3, 4), (4, 4), (6, 6), (8, 6)])
def test_the_document_of_the_line_is_changed(line: int, changed: int) -> None:
    lines = DOCUMENTS.splitlines(keepends=True)
    lines[changed - 1] = lines[changed - 1].replace("1", "2")
    assert patch_text(DOCUMENTS, line, ("a",), 2) == "".join(lines)


@given(st.lists(st.integers(0, 4), min_size=1), st.lists(st.integers(0, 4), min_size=1), st.booleans())
def test_any_list_becomes_any_other_and_items_that_stay_keep_their_comments(
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
def test_items_of_the_file_stay_where_they_are_and_new_ones_follow(
    before: str, new: list[Any], pairs: dict[int, int], after: str
) -> None:
    old = yaml.read(before.encode(), "f").documents[0].value["a"]
    key = "k" if isinstance(new[0], dict) else None
    assert patch.patch_unordered(before, 1, ("a",), old, new, pairs, key) == after


# --- rendering --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"a": {}}, "a: {}"),
        ({"a": []}, "a: []"),
        ({"a": {"b": 1}}, "a:\n  b: 1"),
        ({"a": [1, {"b": 1, "c": [2]}]}, "a:\n  - 1\n  - b: 1\n    c:\n      - 2"),
        ({"a": [[1, 2]]}, "a:\n  -   - 1\n      - 2"),
        ({"a": {"ref": "A/b"}}, "a: {ref: A/b}"),
        ({"a": {"from_file": "f, g"}}, 'a: {from_file: "f, g"}'),
        ({"a": {"from_env": "X"}}, "a: {from_env: X}"),
        ({"a": {"ref": "A/b", "c": 1}}, "a:\n  ref: A/b\n  c: 1"),
        ({"a": "1\n2\n"}, "a: |\n  1\n  2"),
        ({"a": "1\n2"}, "a: |-\n  1\n  2"),
        ({"a": "1\n\n2"}, "a: |-\n  1\n\n  2"),
        ({"a": "1\n2\n\n"}, 'a: "1\\n2\\n\\n"'),
        ({"a": "\n1"}, 'a: "\\n1"'),
        ({"a": " 1\n2"}, 'a: " 1\\n2"'),
        ({"a": "1 \n2"}, 'a: "1 \\n2"'),
        ({"a": "1\u202e\n2"}, 'a: "1\\u202E\\n2"'),
        ({"a": "1\t2\n3"}, 'a: "1\\t2\\n3"'),
        ({"a b": {"c: d": 1}}, 'a b:\n  "c: d": 1'),
        ({"a": [["x, y"], {"ref": "z"}]}, 'a:\n  -   - "x, y"\n  - {ref: z}'),
        ({"a": None, "b": True, "c": 1.5}, "a: null\nb: true\nc: 1.5"),
        ({"a": "\u00e9\x85\ufffe\ud800"}, 'a: "\u00e9\\N\\uFFFE\\uD800"'),
    ],
)
def test_values_are_rendered_in_one_layout(value: Any, text: str) -> None:
    assert "\n".join(emit.block(value)) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"a": [1, "b"], "c d": {}}, "{a: [1, b], c d: {}}"),
        ([], "[]"),
        (["a, b", "c]", "{d", "e f", "g(h, i)"], '["a, b", "c]", "{d", e f, "g(h, i)"]'),
        ("a, b", '"a, b"'),
        ("", '""'),
        ("TRUE", '"TRUE"'),
        ("a: b", '"a: b"'),
        ("1a", '"1a"'),
        (7, "7"),
    ],
)
def test_values_are_rendered_on_one_line(value: Any, text: str) -> None:
    assert emit.flow(value) == text


# --- fmt --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("spec: {}\nkind: a\n", "kind: a\nspec: {}\n"),
        ("z: 1\nspec: 1\ny: 2\nname: b\n", "name: b\nspec: 1\nz: 1\ny: 2\n"),
        ("# top\nspec: 1\n# k\nkind: a\n# end\n", "# k\nkind: a\n# top\nspec: 1\n# end\n"),
        ("# top\n\nspec: 1\nkind: a\n", "# top\n\nkind: a\nspec: 1\n"),
        ("{spec: 1, kind: a}\n", "{spec: 1, kind: a}\n"),
        ("  spec: 1\n  kind: a\n", "kind: a\nspec: 1\n"),
        ("- spec: 1\n  kind: a\n", "  - spec: 1\n    kind: a\n"),
        (
            "# yaml-language-server: $schema=s\nspec: 1\nkind: a\n",
            "# yaml-language-server: $schema=s\nkind: a\nspec: 1\n",
        ),
        ("---\nkind: a\n", "kind: a\n"),
        ("--- # first\nkind: a\n---\n---\nkind: b\n", "# first\nkind: a\n---\nkind: b\n"),
        ("kind: a\n---\n# none\n", "kind: a\n---\n# none\n"),
        ("kind: a\n\n\n---   \n\nkind: b\n", "kind: a\n---\nkind: b\n"),
        (
            "kind: 1_000\nname: 0x10\nspec: 12345678901234567890.10\n",
            "kind: 1_000\nname: 0x10\nspec: 12345678901234567890.10\n",
        ),
        ("kind: a\nspec:\n    a:\n    - b\n", "kind: a\nspec:\n  a:\n    - b\n"),
        ("a: 'x'\nb: \"y\"\n", "a: 'x'\nb: \"y\"\n"),
        (f"a: {'x ' * 200}y\n", f"a: {'x ' * 200}y\n"),
        ("a: [{b: 1}]\n", "a: [{b: 1}]\n"),
        ("", ""),
        ("\n\n", ""),
        ("# only\n", "# only\n"),
        ("text\n", "text\n"),
    ],
)
def test_a_file_is_formatted(before: str, after: str) -> None:
    assert format_text(before, "f.yaml") == after
    assert format_text(after, "f.yaml") == after


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: 1\n--- b\n", "2:1: text on the line of a '---'; put it on the next line"),
        ("a: 1\n---b: 1\n", "2:1: text on the line of a '---'; put it on the next line"),
        ("%YAML 1.2\n---\na: 1\n", "1:1: directives and '...' are not supported by fmt; remove them"),
        ("a: 1\n...\n", "2:1: directives and '...' are not supported by fmt; remove them"),
        ("a: [\n", "2:1: invalid YAML: "),
        ("kind: a\nname:\tb\n", "1:1: cannot be formatted; replace tab characters by spaces"),
        (
            "a: &x 1\nd: # y\n  *x\n",
            "2:1: cannot be formatted without losing this comment; move it above the key",
        ),
        (
            "b: 1 # y\na: &x 1\nd: # y\n  *x\n",
            "3:1: cannot be formatted without losing this comment; move it above the key",
        ),
    ],
)
def test_a_file_that_cannot_be_formatted_is_reported_at_its_line(text: str, problem: str) -> None:
    with pytest.raises(Rejected) as caught:
        format_text(text, "f.yaml")
    assert str(caught.value).startswith(f"f.yaml:{problem}")


LINE = "# yaml-language-server: $schema=s\n"


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("", LINE),
        ("a: 1\n--- # x\nb: 1\n--- c\n", f"{LINE}a: 1\n--- # x\n{LINE}b: 1\n--- c\n"),
        (f"{LINE}a: 1\n---\nb: 1\n", f"{LINE}a: 1\n---\n{LINE}b: 1\n"),
        (f"a: 1\n---\n{LINE}b: 1\n", f"{LINE}a: 1\n---\n{LINE}b: 1\n"),
        (f"\n# x\n---\n{LINE}a: 1\n", f"\n# x\n---\n{LINE}a: 1\n"),
        (f"{LINE}\n---\na: 1\n---\nb: 1\n", f"{LINE}\n---\na: 1\n---\n{LINE}b: 1\n"),
        ("  # yaml-language-server: $schema=other\na: 1\n", "  # yaml-language-server: $schema=other\na: 1\n"),
        ("# yaml-language-server:\na: 1\n", f"{LINE}# yaml-language-server:\na: 1\n"),
    ],
)
def test_a_document_without_the_line_for_editors_gets_it(text: str, after: str) -> None:
    assert add_modeline(text, "s") == after


# --- reading ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        (b"a: \xff", ["1:4: not UTF-8: byte 0xff at offset 3; save the file as UTF-8"]),
        (b"\xc3\xa9: 1\n\xc3\xa9 \xff", ["2:3: not UTF-8: byte 0xff at offset 9; save the file as UTF-8"]),
        (b"a: 1\nb: \x01", ["2:4: control character U+0001; remove it, or write it as an escape in double quotes"]),
        (b"\x7f", ["1:1: control character U+007F; remove it, or write it as an escape in double quotes"]),
        ("a: \x80".encode(), ["1:4: control character U+0080; remove it, or write it as an escape in double quotes"]),
        ("a: \uffff".encode(), ["1:4: control character U+FFFF; remove it, or write it as an escape in double quotes"]),
        ("\ufeffa: 1".encode(), []),
        ("a: \u00a0\ufffd\U0001f600".encode(), []),
        (b"a: b: c", ["1:5: invalid YAML: unexpected ':'; check the indentation, or quote the text"]),
        (b"a: 'x", ["1:6: invalid YAML: a quoted text is not closed (opened at line 1, column 4); close the quotes"]),
        (
            b"a:\n  - [1\n",
            ["3:1: invalid YAML: a list is not closed with ']' (opened at line 2, column 5); close it"],
        ),
        (b"a: {b: 1\n", ["2:1: invalid YAML: a map is not closed with '}' (opened at line 1, column 4); close it, or"]),
        (b"a: @x", ["1:4: invalid YAML: a value cannot begin with this character; quote the text, and indent with sp"]),
        (
            b'a: "\\q"',
            ["1:5: invalid YAML: unknown escape sequence in double quotes; use single quotes, or write"],
        ),
        (b"a: !x!y z", ["1:4: invalid YAML: unknown tag; remove it, or quote the text"]),
        (b"a: !x y", ["1:4: unknown tag (!); remove it, or quote the text"]),
        (b"a: !!set {}", ["1:4: unknown tag !!set; remove it, or quote the text"]),
        (b"a: !!seq {}", ["1:4: unknown tag !!seq; remove it, or quote the text"]),
        (b"a: !!map []", ["1:4: unknown tag !!map; remove it, or quote the text"]),
        (b"a: !!int x", ["1:4: !!int does not fit this value; remove the tag"]),
        (b"a: !!int 1.5", ["1:4: !!int does not fit this value; remove the tag"]),
        (b"a: !!int true", ["1:4: !!int does not fit this value; remove the tag"]),
        (b"a: !!float true", ["1:4: !!float does not fit this value; remove the tag"]),
        (b"a: !!bool 1", ["1:4: !!bool does not fit this value; remove the tag"]),
        (b"a: !!null x", ["1:4: !!null does not fit this value; remove the tag"]),
        (b"a: !!timestamp 2020-01-01", ["1:4: unknown tag !!timestamp; remove it, or quote the text"]),
        (b"1: x", ["1:1: the key '1' is not text; quote it"]),
        (b"? \n: x", ["1:2: the key '(empty)' is not text; quote it"]),
        (b"{a: 1, a: 2}", ["1:8: duplicate key 'a', first at line 1, column 2; remove one of the two"]),
        (
            b"a: {x: 1, y: [1, {z: 1}], x: 2}",
            ["1:27: duplicate key 'x', first at line 1, column 5; remove one of"],
        ),
        (f"{'k' * 61}: 1\n{'k' * 61}: 2".encode(), [f"2:1: duplicate key '{'k' * 57}...', first at line 1, column 1;"]),
        (f"{'k' * 60}: 1\n{'k' * 60}: 2".encode(), [f"2:1: duplicate key '{'k' * 60}', first at line 1, column 1; re"]),
        (b"? [a]\n: 1", ["1:3: a key must be text; write a list or map as a value, not as a key"]),
        (b"<<: {a: 1}", ["1:1: merge keys (<<) are not supported (YAML 1.2 has none); write the fields out"]),
        (b"a: &x [*x]", ["1:8: the alias refers to a value that contains it; refer to an inner value"]),
        (b"a: *secret", ["1:4: undefined alias (*); define the anchor first, or quote the text"]),
        (b"a: &x 1\n---\nb: *x", ["3:4: undefined alias (*); define the anchor first, or quote the text"]),
    ],
)
def test_what_cannot_be_read_is_reported_at_its_place(text: bytes, problems: list[str]) -> None:
    found = [str(problem) for problem in yaml.read(text, "f.yaml").problems]
    assert [each[: len(problem) + 7] for each, problem in zip(found, problems, strict=True)] == [
        f"f.yaml:{problem}" for problem in problems
    ]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: !!str 1", {"a": "1"}),
        ("a: ! 1", {"a": "1"}),
        ("a: !!float 1", {"a": 1.0}),
        ("a: !!float 1.5", {"a": 1.5}),
        ("a: !!int 1", {"a": 1}),
        ("a: !!bool true", {"a": True}),
        ("a: !!null ''", {"a": None}),
        ("a: !!map {}\nb: !!seq []\nc: ! {}", {"a": {}, "b": [], "c": {}}),
        ("'<<': 1", {"<<": 1}),
        ("a: &x {b: 1}\nc: [*x, *x]", {"a": {"b": 1}, "c": [{"b": 1}, {"b": 1}]}),
        ("a: &x k\n*x : 1", {"a": "k", "k": 1}),
        ("a: &x 1\nb: &x 2\nc: *x", {"a": 1, "b": 2, "c": 2}),
    ],
)
def test_tags_and_aliases_have_their_values(text: str, value: Any) -> None:
    reading = yaml.read(text.encode(), "f.yaml")
    assert reading.problems == []
    found = reading.documents[0].value
    assert (found, repr(found)) == (value, repr(value))


def test_values_of_aliases_have_the_position_of_the_alias_and_their_parts_that_of_the_anchor() -> None:
    places = yaml.read(b"a: &x {b: 1, c: &y 2}\nd: *x\ne: [*y, 3]\nf: 4\n", "f").documents[0].places
    assert {path: (places[path].line, places[path].column) for path in places} == {
        (): (1, 1),
        ("a",): (1, 4),
        ("a", "b"): (1, 11),
        ("a", "c"): (1, 17),
        ("d",): (2, 4),
        ("d", "b"): (1, 11),
        ("d", "c"): (1, 17),
        ("e",): (3, 4),
        ("e", 0): (3, 5),
        ("e", 1): (3, 9),
        ("f",): (4, 4),
    }


def test_a_bomb_of_aliases_and_deep_nesting_are_refused() -> None:
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 7)
    )
    (problem,) = yaml.read(bomb.encode(), "f").problems
    assert problem.text == "aliases expand to more than 100,000 values"
    for depth, is_refused in ((MAX_DEPTH, False), (MAX_DEPTH + 1, True)):
        problems = yaml.read(("[" * depth + "]" * depth).encode(), "f").problems
        assert bool(problems) == is_refused
        text = f"a: &x {'[' * (depth - 2)}{']' * (depth - 2)}\nb: [*x]\n"
        assert bool(yaml.read(text.encode(), "f").problems) == is_refused


def test_limits_of_a_file_are_exact() -> None:
    assert yaml.read(b"#" * MAX_BYTES, "f").problems == []
    (problem,) = yaml.read(b"#" * (MAX_BYTES + 1), "f").problems
    assert str(problem) == "f:1:1: larger than 5 MiB; split the file"
    many = b"a\n" + b"---\na\n" * (yaml.MAX_DOCUMENTS - 1)
    assert len(yaml.read(many, "f").documents) == yaml.MAX_DOCUMENTS == 20_000
    (problem,) = yaml.read(many + b"---\na\n", "f").problems
    assert str(problem) == "f:1:1: more than 20,000 documents in one file; split the file"


@pytest.mark.parametrize("start", ["a: ", "a: &x "])
def test_a_text_has_at_most_a_mebibyte(start: str) -> None:
    text = "x" * MAX_SCALAR
    reading = yaml.read(f"{start}{text}\nb: {text}\n".encode(), "f")
    assert (reading.problems, reading.documents[0].value) == ([], {"a": text, "b": text})
    (problem,) = yaml.read(f"b: 1\n{start}{text}x\n".encode(), "f").problems
    assert str(problem).startswith(
        f"f:2:{len(start) + 1 - 3 * ('&' in start)}: text longer than 1 MiB; move it to a file"
    )


def test_the_first_hundred_problems_of_a_file_are_reported() -> None:
    lines = [f"{number}: x" for number in range(100)]
    assert len(yaml.read("\n".join(lines).encode(), "f").problems) == 100
    reading = yaml.read("\n".join([*lines, "100: x", "101: x"]).encode(), "f")
    assert (len(reading.problems), reading.complete) == (101, False)
    assert str(reading.problems[-1]) == "f:101:1: more than 100 problems in this file; correct those above first"


@given(JSON)
def test_positions_are_found_by_path_and_by_item(value: Any) -> None:
    text = "\n".join(emit.block({"k": value})) + "\n"
    (document,) = yaml.read(text.encode(), "f").documents
    places = document.places
    assert len(places) == len(list(places)) == len({*places})
    for path in places:
        assert places.nearest((*path, "none", 0)) == places[path]
        inner = document.value
        for part in path:
            inner = inner[part]
        if isinstance(inner, list):
            items = [places[(*path, index)] for index in range(len(inner))]
            plain = [isinstance(item, (dict, list)) for item in inner]
            found = places.items_of(path)
            assert [(one, is_nested) for one, is_nested in zip(found, plain, strict=True) if not is_nested] == [
                (one, is_nested) for one, is_nested in zip(items, plain, strict=True) if not is_nested
            ]
            assert (*path, len(inner)) not in places
            assert (*path, -1) not in places
            assert (*path, "0") not in places


def test_a_map_below_its_key_has_the_position_of_the_key() -> None:
    places = yaml.read(b"a:\n  b: 1\nc: {d: 1}\ne:\n  - 1\nf:\n  x\n", "f").documents[0].places
    assert {path[0]: (places[path].line, places.key(path).line) for path in places if len(path) == 1} == {
        "a": (1, 1),
        "c": (3, 3),
        "e": (4, 4),
        "f": (7, 6),
    }
    assert places.key(("e", 0)) == places[("e", 0)] == Position("f", 5, 5)


def test_released_positions_are_read_again_and_those_of_a_changed_file_are_the_start() -> None:
    reading = yaml.read(b"a: 1\n---\nb:\n  c: 1\n", "f")
    second = reading.documents[1].places
    second.release(lambda: [document.places for document in yaml.read(b"a: 1\n---\nb:\n  c: 1\n", "f").documents])
    assert second[("b", "c")] == Position("f", 4, 6)
    second.release(lambda: ())
    assert (second.nearest(("b", "c")), ("b",) in second) == (Position("f", 3, 1), False)
    assert Places("f", None, array("Q", [0])).start == Position("f", 1, 1)
