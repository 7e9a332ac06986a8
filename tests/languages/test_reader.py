"""Reading YAML: values, positions, limits and problems."""

from __future__ import annotations

import gc
import json
import re
import time
import tracemalloc
from array import array
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from ruamel.yaml import YAML
from ruamel.yaml.compat import StringIO
from ruamel.yaml.error import YAMLError

from reconciler.languages.yaml import reader as yaml
from reconciler.languages.yaml.errors import MAX_BYTES
from reconciler.languages.yaml.positions import Places
from reconciler.languages.yaml.reader import MAX_DEPTH, MAX_SCALAR
from reconciler.model.numerals import to_plain
from reconciler.model.problem import Position
from reconciler.project.yaml import emit
from tests.harness.steps import count_steps


def problem_lines(text: str | bytes) -> list[str]:
    return [str(problem) for problem in yaml.read(text.encode() if isinstance(text, str) else text, "f.yaml").problems]


def value(text: str) -> object:
    reading = yaml.read(text.encode(), "f.yaml")
    assert reading.problems == []
    return reading.documents[0].value


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("no", "no"),
        ("on", "on"),
        ("2024-01-01", "2024-01-01"),
        ("1:30", "1:30"),
        ("1_000", "1_000"),
        ("0o17", 15),
        ("0x1F", 31),
        ("012", 12),
        ("-1.5e3", -1500.0),
        (".5", 0.5),
        ("~", None),
        ("", None),
        ("Null", None),
        ("TRUE", True),
        ("'true'", "true"),
        ("!!str 1", "1"),
        ("!!float 1", 1.0),
        ("! 1", "1"),
    ],
)
def test_a_scalar_is_read_by_the_core_schema(written: str, meant: object) -> None:
    read = value(f"a: {written}")
    assert isinstance(read, dict)
    assert to_plain(read["a"]) == meant
    assert type(to_plain(read["a"])) is type(meant)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (
            "a: b: c",
            ["f.yaml:1:5: invalid YAML: unexpected ':'; check the indentation, or quote the text"],
        ),
        (
            "a: [1, 2\nb: 3\n",
            [
                "f.yaml:2:2: invalid YAML: a list is not closed with ']' (opened at line 1, column 4);"
                " close it, or check the indentation"
            ],
        ),
        (
            "x: 1\nb: {c: 1, d: [1, {e: 2}], c: 3}\nx: 7\nx: 8\n",
            [
                "f.yaml:2:27: duplicate key 'c', first at line 2, column 5; remove one of the two",
                "f.yaml:3:1: duplicate key 'x', first at line 1, column 1; remove one of the two",
                "f.yaml:4:1: duplicate key 'x', first at line 1, column 1; remove one of the two",
            ],
        ),
        ("a: !thing 1", ["f.yaml:1:4: unknown tag (!); remove it, or quote the text"]),
        ("a: !!binary aGk=", ["f.yaml:1:4: unknown tag !!binary; remove it, or quote the text"]),
        ("a: !!set {x}", ["f.yaml:1:4: unknown tag !!set; remove it, or quote the text"]),
        ("a: !!int x", ["f.yaml:1:4: !!int does not fit this value; remove the tag"]),
        ("<<: {a: 1}", ["f.yaml:1:1: merge keys (<<) are not supported (YAML 1.2 has none); write the fields out"]),
        ("1: x", ["f.yaml:1:1: the key '1' is not text; quote it"]),
        ("? [a]\n: x", ["f.yaml:1:3: a key must be text; write a list or map as a value, not as a key"]),
        (
            "a: *x",
            ["f.yaml:1:4: undefined alias (*); define the anchor first, or quote the text"],
        ),
        ("a: &x [*x]", ["f.yaml:1:8: the alias refers to a value that contains it; refer to an inner value"]),
        ("a: .inf", ["f.yaml:1:4: a number that JSON cannot represent; quote it if it is text"]),
        ("a: 1e999", ["f.yaml:1:4: number too large; quote it if it is text"]),
        ("- " * 70 + "x", ["f.yaml:1:129: nested deeper than 64 levels; reduce the nesting"]),
        (
            "a: é\x01",
            ["f.yaml:1:5: control character U+0001; remove it, or write it as an escape in double quotes"],
        ),
        (b"a: 1\nb: \xc3\xa9\xff", ["f.yaml:2:5: not UTF-8: byte 0xff at offset 10; save the file as UTF-8"]),
        (b"\xff\xfea\x00", ["f.yaml:1:1: not UTF-8: byte 0xff at offset 0; save the file as UTF-8"]),
    ],
)
def test_invalid_yaml_is_reported_with_a_position_and_a_remedy(text: str | bytes, lines: list[str]) -> None:
    assert problem_lines(text) == lines


def test_a_quoted_text_after_an_equal_unquoted_number_is_text() -> None:
    assert value("[1, '1', 1, \"1\"]") == [1, "1", 1, "1"]


def test_a_quoted_merge_key_is_text() -> None:
    assert value("'<<': 1") == {"<<": 1}


def test_documents_before_a_syntax_error_are_read() -> None:
    reading = yaml.read(b"a: 1\n---\nb: [\n", "f.yaml")
    assert [document.value for document in reading.documents] == [{"a": 1}]
    assert not reading.complete


def test_an_alias_repeats_the_value_of_its_anchor() -> None:
    assert value("a: &x {b: [1]}\nc: *x\nd: &y t\n*y : *x") == {
        "a": {"b": [1]},
        "c": {"b": [1]},
        "d": "t",
        "t": {"b": [1]},
    }


def test_an_anchor_may_be_inside_another() -> None:
    assert value("a: &x {b: &y [1], c: 2}\nd: *y\ne: *x") == {
        "a": {"b": [1], "c": 2},
        "d": [1],
        "e": {"b": [1], "c": 2},
    }


def test_the_tags_of_the_core_schema_may_be_written_out() -> None:
    assert value("a: !!map {b: !!seq [!!str 1]}") == {"a": {"b": ["1"]}}
    assert "unknown tag" in problem_lines("a: !!seq {b: 1}")[0]
    assert "unknown tag" in problem_lines("a: !!map [1]")[0]


def test_an_alias_of_a_quoted_merge_key_is_text() -> None:
    assert value("a: &x '<<'\n*x : 1") == {"a": "<<", "<<": 1}


def test_a_missing_item_has_the_position_of_its_list() -> None:
    places = yaml.read(b"a:\n  - 1\n", "f.yaml").documents[0].places
    for index in (1, 2, 5):
        assert places.nearest(("a", index)) == places[("a",)]


def test_an_anchor_is_defined_in_its_own_document_only() -> None:
    assert problem_lines("a: &x 1\n---\nb: *x") == [
        "f.yaml:3:4: undefined alias (*); define the anchor first, or quote the text"
    ]


def _bomb() -> bytes:
    names = "abcdefghijklmno"
    lines = ["a: &a [" + ",".join(["lol"] * 9) + "]"]
    lines += [f"{b}: &{b} [{','.join([f'*{a}'] * 9)}]" for a, b in pairwise(names)]
    return "\n".join(lines).encode()


def _seconds(text: bytes) -> float:
    began = time.process_time()
    yaml.read(text, "f.yaml")
    return time.process_time() - began


def test_a_bomb_of_aliases_is_refused_quickly() -> None:
    ordinary = min(_seconds(b"a: [" + b"x," * 100_000 + b"]") for _ in range(3))
    assert min(_seconds(_bomb()) for _ in range(3)) < ordinary
    tracemalloc.start()
    problems = yaml.read(_bomb(), "f.yaml").problems
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [str(problem) for problem in problems] == [
        "f.yaml:6:8: aliases expand to more than 100,000 values; use fewer aliases"
    ]
    assert peak < 50_000_000


def test_a_chain_of_aliases_has_the_depth_of_its_expansion() -> None:
    text = "- &a0 [x]\n" + "".join(f"- &a{n} [*a{n - 1}]\n" for n in range(1, 80))
    assert problem_lines(text) == ["f.yaml:64:9: nested deeper than 64 levels; reduce the nesting"]


def test_a_file_that_is_too_large_is_refused() -> None:
    assert problem_lines(b" " * (MAX_BYTES + 1)) == ["f.yaml:1:1: larger than 5 MiB; split the file"]


def test_a_file_of_too_many_values_is_refused() -> None:
    lines = problem_lines("[" + "1," * (yaml.MAX_VALUES + 10) + "]")
    assert lines == ["f.yaml:1:1: more than 500,000 values in one file; split the file"]


def test_values_and_keys_have_positions() -> None:
    text = "kind: X\nspec:\n  a: [1, {b: 2}]\n  c:\n    - d\n  e: |\n    text\n"
    places = yaml.read(text.encode(), "f.yaml").documents[0].places
    assert {path: (where.line, where.column) for path, where in places.items()} == {
        (): (1, 1),
        ("kind",): (1, 7),
        ("spec",): (2, 1),  # a block map has the position of its key
        ("spec", "a"): (3, 6),
        ("spec", "a", 0): (3, 7),
        ("spec", "a", 1): (3, 10),
        ("spec", "a", 1, "b"): (3, 14),
        ("spec", "c"): (4, 3),
        ("spec", "c", 0): (5, 7),
        ("spec", "e"): (6, 6),
    }
    assert places.key(("spec", "a", 1, "b")) == Position("f.yaml", 3, 11)
    assert places.nearest(("spec", "nothing", 3)) == Position("f.yaml", 2, 1)


def test_values_after_an_alias_have_their_positions() -> None:
    places = yaml.read(b"a: &x [1, 2]\nb: *x\nc: 3\n", "f.yaml").documents[0].places
    assert places[("b",)] == Position("f.yaml", 2, 4)
    assert places[("b", 1)] == Position("f.yaml", 1, 11)
    assert places[("c",)] == Position("f.yaml", 3, 4)


def test_the_garbage_collector_is_enabled_after_reading() -> None:
    yaml.read(b"a: 1", "f.yaml")
    assert gc.isenabled()


TEXT = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufeff\ufffe\uffff\u2028\u2029"), max_size=20
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)


@given(JSON)
def test_json_reads_back_equal(written: object) -> None:
    reading = yaml.read(json.dumps(written, ensure_ascii=False).encode(), "f.yaml")
    assert reading.problems == []
    assert [document.value for document in reading.documents] == [written]


@given(JSON)
def test_yaml_written_by_ruamel_reads_back_equal(written: object) -> None:
    out = StringIO()
    writer = YAML(typ="safe", pure=True)
    writer.default_flow_style = False  # in flow style, ruamel cannot read some of the keys that it writes
    writer.width = 1 << 20
    writer.dump({"value": written}, out)
    reading = yaml.read(out.getvalue().encode(), "f.yaml")
    assert [str(problem) for problem in reading.problems] == []
    assert reading.documents[0].value == {"value": written}


@given(JSON)
def test_each_position_points_at_its_value(written: object) -> None:
    text = json.dumps(written, ensure_ascii=False, indent=1)
    document = yaml.read(text.encode(), "f.yaml").documents[0]
    lines = text.split("\n")
    for path, where in document.places.items():
        here: Any = written
        for part in path:
            here = here[part]
        if not isinstance(here, (dict, list)):
            spelt = json.dumps(here, ensure_ascii=False)
            assert lines[where.line - 1][where.column - 1 :].startswith(spelt)


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_reported(text: bytes) -> None:
    reading = yaml.read(text, "f.yaml")
    assert reading.complete or reading.problems


@given(st.text("[]{}:,-?&*!|>'\"%@` \nab1#<", max_size=30))
def test_any_punctuation_is_read_or_reported(text: str) -> None:
    reading = yaml.read(text.encode(), "f.yaml")
    assert reading.complete or reading.problems


# --- what libyaml reads otherwise than YAML 1.2 -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("a: { ?foo: bar }", (1, 6), "'?' within brackets begins a key only before a space"),
        ("a:\n  [x, # y\n   ?x]", (3, 4), "'?' within brackets"),
        ("[?x: y]", (1, 2), "'?' within brackets"),
        ("a: &an:chor value", (1, 7), "':' in the name of an anchor"),
        ("a: &an?chor value", (1, 7), "'?' in the name of an anchor"),
        ("k: &x 1\na: [*x:b]", (2, 7), "':' in the name of an anchor"),
        ("a: b # c\u2028d: e", (1, 9), "line separator U+2028"),
        ("a: b\u2029c: d", (1, 5), "line separator U+2029"),
        ('a: "\u00e9"\nb: c\u0085d', (2, 5), "line separator U+0085"),
    ],
)
def test_text_that_libyaml_would_misread_is_refused_at_its_position(
    text: str, place: tuple[int, int], words: str
) -> None:
    reading = yaml.read(text.encode(), "a.yaml")
    (problem,) = reading.problems
    assert problem.position == Position("a.yaml", *place)
    assert words in problem.text
    assert problem.remedy
    assert reading.documents == []


@pytest.mark.parametrize(
    "text",
    [
        "?x: y",
        "{a?: b}",
        "{ ? a : b}",
        "a: what ?x",
        "a: '{ ?x }'",
        "# [?x]\na: b",
        "a: |\n  {?x: &b:c}\n",
        "a: 1 && *:x",
    ],
)
def test_text_similar_to_misread_text_is_read(text: str) -> None:
    assert yaml.read(text.encode(), "a.yaml").problems == []


@given(st.from_regex(r"\A(?:[a-z]|[?:-][a-z])[a-z?:&*!|>'\"%@`-]{0,4}[a-z]\Z"))
def test_a_plain_word_within_brackets_is_read_unchanged_or_refused(word: str) -> None:
    reading = yaml.read(f"[{word}]".encode(), "a.yaml")
    if not reading.problems:
        assert [document.value for document in reading.documents] == [[word]]


@given(st.lists(st.sampled_from([*"ab?:-,&*#!|>[]{}'\" \n", ": ", "- ", "? ", "\n  "]), max_size=10).map("".join))
@example("a: &b:c d")
def test_two_parsers_read_the_same_values(text: str) -> None:
    reading = yaml.read(text.encode(), "a.yaml")
    if reading.problems or not all(document.sound for document in reading.documents):
        return
    if re.search(r"!(?=\s|$)", text):
        return  # a text by the tag `!` (YAML 1.2, 6.9.1), which the other parser ignores
    try:
        other = list(YAML(typ="safe", pure=True).load_all(text))
    except (YAMLError, ValueError, TypeError):
        return  # it refuses more texts
    assert [document.value for document in reading.documents] == other


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
def test_unreadable_text_is_reported_at_its_position(text: bytes, problems: list[str]) -> None:
    found = [str(problem) for problem in yaml.read(text, "f.yaml").problems]
    assert [line[: len(problem) + 7] for line, problem in zip(found, problems, strict=True)] == [
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


def test_an_alias_has_its_own_position_and_its_parts_have_those_of_the_anchor() -> None:
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


def test_each_position_behind_a_long_list_is_found_without_a_walk_through_the_list() -> None:
    text = f"items: [{', '.join(map(str, range(2000)))}]\nspec: {{a: 1, b: 2}}\n"
    places = yaml.read(text.encode(), "f").documents[0].places
    once = count_steps(lambda: places.key(("spec", "a")))
    assert count_steps(lambda: places.key(("spec", "b"))) < 100 < 1000 < once


def test_a_document_without_values_begins_at_the_start() -> None:
    empty = Places("f", None, array("Q", [0]))
    assert empty.start == Position("f", 1, 1)
    assert (empty[()], empty.key(()), empty.nearest(("a",)), () in empty) == (*[Position("f", 1, 1)] * 3, True)


@pytest.mark.parametrize(
    ("dialect", "message"),
    [
        (yaml.Dialect(values=5), "more than 5 values in one file"),
        (yaml.Dialect(depth=1), "nested deeper than 1 levels"),
        (yaml.Dialect(), ""),
    ],
)
def test_a_dialect_has_limits_of_its_own(dialect: yaml.Dialect, message: str) -> None:
    text = b"a: {b: {c: d}}\n---\n[1, 2, 3]\n"
    assert [problem.text for problem in yaml.read(text, "f.yaml", dialect).problems] == ([message] if message else [])
