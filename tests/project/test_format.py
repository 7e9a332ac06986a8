"""`fmt`: the layout of files, and text that it never changes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML
from ruamel.yaml.compat import StringIO

from reconciler.languages.yaml import reader as yaml
from reconciler.model.problem import Rejected
from reconciler.project.yaml.format import ORDER, add_modeline, format_text
from tests.harness.tiers import examples
from tests.languages.test_reader import JSON

UNTIDY = """\
# licence

# about the spec
spec:
    hostports:
    - "a.example.com:443"   # first
    text: |
      not moved
        # not a comment
# about the name
name: x
kind: TLSEdge # end of line

# the end
---
name: y
kind: IPPolicy
"""

TIDY = """\
# licence

kind: TLSEdge # end of line
# about the name
name: x
# about the spec
spec:
  hostports:
    - "a.example.com:443"   # first
  text: |
    not moved
      # not a comment

# the end
---
kind: IPPolicy
name: y
"""


def test_keys_are_sorted_together_with_their_comments() -> None:
    assert format_text(UNTIDY, "f.yaml") == TIDY


def test_a_formatted_text_is_unchanged() -> None:
    assert format_text(TIDY, "f.yaml") == TIDY


def test_a_file_with_problems_is_not_formatted() -> None:
    with pytest.raises(Rejected, match=r"^f\.yaml:2:1: duplicate key 'a'"):
        format_text("a: 1\na: 2\n", "f.yaml")


@pytest.mark.parametrize("text", ["a: 1\n...\n", "%YAML 1.2\n---\na: 1\n"])
def test_a_file_with_directives_is_refused(text: str) -> None:
    with pytest.raises(Rejected, match=r"directives and '\.\.\.' are not supported by fmt"):
        format_text(text, "f.yaml")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "kind: a\nname: |+\n  b\n\n",
            "f.yaml:2:7: cannot be formatted without changing this value; write it in double quotes",
        ),
        (
            "kind: a\nname: |\n  b",
            "f.yaml:2:7: cannot be formatted without changing this value; write it in double quotes",
        ),
        (
            "spec:\n  a: |+\n    b\n\nname: a\n",
            "f.yaml:2:6: cannot be formatted without changing this value; write it in double quotes",
        ),
        (
            "a: # x\n  [\n  # y\n 1]\n",
            "f.yaml:3:1: cannot be formatted without losing this comment; move it above the key",
        ),
    ],
)
def test_text_that_cannot_be_formatted_is_reported_at_its_position(text: str, problem: str) -> None:
    with pytest.raises(Rejected) as caught:
        format_text(text, "f.yaml")
    assert [str(problem) for problem in caught.value.problems] == [problem]


@pytest.mark.parametrize(
    "text",
    [
        'a: "\\u202Eevil \\u200B"\n',
        'a: "ad\\u200Dmin"\n',
        'a: "\U0001f469\u200d\U0001f4bb \u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"\n',
    ],
)
def test_invisible_characters_remain_escaped_except_within_words_and_emoji(text: str) -> None:
    assert format_text(text, "f.yaml") == text


@pytest.mark.parametrize("text", ["a: !!str 2024\n", 'a: !!str "b"\n'])
def test_tags_are_unchanged(text: str) -> None:
    assert format_text(text, "f.yaml") == text


LINE = "# yaml-language-server: $schema=s\n"


@pytest.mark.parametrize(
    ("text", "formatted"),
    [
        ("a: 1\n---\nb: 1\n", f"{LINE}a: 1\n---\n{LINE}b: 1\n"),
        ("---\na: 1\n", f"---\n{LINE}a: 1\n"),
        ("# mine\n--- # first\na: 1\n", f"# mine\n--- # first\n{LINE}a: 1\n"),
        (f"{LINE}---\na: 1\n", f"{LINE}---\na: 1\n"),
        ("\ufeffa: 1\n", f"\ufeff{LINE}a: 1\n"),
    ],
)
def test_the_modeline_is_added_to_each_document_once(text: str, formatted: str) -> None:
    assert add_modeline(text, "s") == formatted
    assert add_modeline(formatted, "s") == formatted


def test_a_comment_beside_a_document_marker_remains_in_its_document() -> None:
    assert format_text("a: 1\n--- # two\nb: 2\n", "f.yaml") == "a: 1\n---\n# two\nb: 2\n"


def test_a_file_of_comments_is_unchanged() -> None:
    assert format_text("# later\n", "f.yaml") == "# later\n"


DOCUMENT = st.lists(st.sampled_from(ORDER), unique=True, min_size=1).flatmap(
    lambda keys: st.fixed_dictionaries(dict.fromkeys(keys, JSON))
)


@settings(max_examples=examples(40))  # ruamel.yaml is slow
@given(st.lists(DOCUMENT, min_size=1, max_size=2))
def test_formatting_is_idempotent_and_preserves_values(documents: list[dict]) -> None:
    out = StringIO()
    writer = YAML(typ="safe", pure=True)
    writer.default_flow_style = False
    writer.dump_all(documents, out)
    once = format_text(out.getvalue(), "f.yaml")
    assert format_text(once, "f.yaml") == once
    assert [document.value for document in yaml.read(once.encode(), "f.yaml").documents] == documents


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
def test_the_modeline_is_added_to_a_document_without_one(text: str, after: str) -> None:
    assert add_modeline(text, "s") == after
