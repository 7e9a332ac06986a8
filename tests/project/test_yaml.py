import gc
import json
import re
import time
import tracemalloc
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from ruamel.yaml import YAML
from ruamel.yaml.compat import StringIO
from ruamel.yaml.error import YAMLError

from reconciler.model.numerals import to_plain
from reconciler.model.problem import Position
from reconciler.project.yaml import reader as yaml
from reconciler.project.yaml.errors import MAX_BYTES


def told(text: str | bytes) -> list[str]:
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
def test_a_scalar_means_what_the_core_schema_says(written: str, meant: object) -> None:
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
def test_what_is_wrong_is_one_line_that_says_where_and_what_to_do(text: str | bytes, lines: list[str]) -> None:
    assert told(text) == lines


def test_a_quoted_merge_key_is_text() -> None:
    assert value("'<<': 1") == {"<<": 1}


def test_documents_before_a_syntax_error_are_read() -> None:
    reading = yaml.read(b"a: 1\n---\nb: [\n", "f.yaml")
    assert [document.value for document in reading.documents] == [{"a": 1}]
    assert not reading.complete


def test_an_alias_repeats_what_its_anchor_names() -> None:
    assert value("a: &x {b: [1]}\nc: *x\nd: &y t\n*y : *x") == {
        "a": {"b": [1]},
        "c": {"b": [1]},
        "d": "t",
        "t": {"b": [1]},
    }


def test_an_anchor_inside_another_is_one_of_its_own() -> None:
    assert value("a: &x {b: &y [1], c: 2}\nd: *y\ne: *x") == {
        "a": {"b": [1], "c": 2},
        "d": [1],
        "e": {"b": [1], "c": 2},
    }


def test_the_tags_of_the_core_schema_may_be_written_out() -> None:
    assert value("a: !!map {b: !!seq [!!str 1]}") == {"a": {"b": ["1"]}}
    assert "unknown tag" in told("a: !!seq {b: 1}")[0]
    assert "unknown tag" in told("a: !!map [1]")[0]


def test_an_alias_of_a_quoted_merge_key_is_text() -> None:
    assert value("a: &x '<<'\n*x : 1") == {"a": "<<", "<<": 1}


def test_an_item_that_a_list_does_not_have_has_the_place_of_the_list() -> None:
    places = yaml.read(b"a:\n  - 1\n", "f.yaml").documents[0].places
    for index in (1, 2, 5):
        assert places.nearest(("a", index)) == places[("a",)]


def test_an_anchor_is_known_in_its_own_document_only() -> None:
    assert told("a: &x 1\n---\nb: *x") == [
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


def test_a_bomb_is_refused_at_once() -> None:
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


def test_a_chain_of_aliases_is_as_deep_as_what_it_expands_to() -> None:
    text = "- &a0 [x]\n" + "".join(f"- &a{n} [*a{n - 1}]\n" for n in range(1, 80))
    assert told(text) == ["f.yaml:64:9: nested deeper than 64 levels; reduce the nesting"]


def test_a_file_that_is_too_large_is_refused() -> None:
    assert told(b" " * (MAX_BYTES + 1)) == ["f.yaml:1:1: larger than 5 MiB; split the file"]


def test_a_file_of_too_many_values_is_refused() -> None:
    lines = told("[" + "1," * (yaml.MAX_VALUES + 10) + "]")
    assert lines == ["f.yaml:1:1: more than 500,000 values in one file; split the file"]


def test_each_value_knows_its_place() -> None:
    text = "kind: X\nspec:\n  a: [1, {b: 2}]\n  c:\n    - d\n  e: |\n    text\n"
    places = yaml.read(text.encode(), "f.yaml").documents[0].places
    assert {path: (where.line, where.column) for path, where in places.items()} == {
        (): (1, 1),
        ("kind",): (1, 7),
        ("spec",): (2, 1),  # a block map is found at its key
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


def test_places_behind_an_alias_are_right() -> None:
    places = yaml.read(b"a: &x [1, 2]\nb: *x\nc: 3\n", "f.yaml").documents[0].places
    assert places[("b",)] == Position("f.yaml", 2, 4)
    assert places[("b", 1)] == Position("f.yaml", 1, 11)
    assert places[("c",)] == Position("f.yaml", 3, 4)


def test_the_collector_is_as_it_was_afterwards() -> None:
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
def test_what_ruamel_writes_reads_back_equal(written: object) -> None:
    out = StringIO()
    writer = YAML(typ="safe", pure=True)
    writer.default_flow_style = False  # in flow style it writes some keys that it cannot read again itself
    writer.width = 1 << 20
    writer.dump({"value": written}, out)
    reading = yaml.read(out.getvalue().encode(), "f.yaml")
    assert [str(problem) for problem in reading.problems] == []
    assert reading.documents[0].value == {"value": written}


@given(JSON)
def test_every_place_points_at_what_stands_there(written: object) -> None:
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
def test_any_bytes_are_read_or_told_about(text: bytes) -> None:
    reading = yaml.read(text, "f.yaml")
    assert reading.complete or reading.problems


@given(st.text("[]{}:,-?&*!|>'\"%@` \nab1#<", max_size=30))
def test_any_punctuation_is_read_or_told_about(text: str) -> None:
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
def test_what_would_be_misread_is_refused_at_its_place(text: str, place: tuple[int, int], words: str) -> None:
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
def test_what_only_looks_so_is_read(text: str) -> None:
    assert yaml.read(text.encode(), "a.yaml").problems == []


@given(st.from_regex(r"\A(?:[a-z]|[?:-][a-z])[a-z?:&*!|>'\"%@`-]{0,4}[a-z]\Z"))
def test_a_plain_word_within_brackets_means_itself_or_is_refused(word: str) -> None:
    reading = yaml.read(f"[{word}]".encode(), "a.yaml")
    if not reading.problems:
        assert [document.value for document in reading.documents] == [[word]]


@given(st.lists(st.sampled_from([*"ab?:-,&*#!|>[]{}'\" \n", ": ", "- ", "? ", "\n  "]), max_size=10).map("".join))
@example("a: &b:c d")
def test_what_two_parsers_read_they_read_alike(text: str) -> None:
    reading = yaml.read(text.encode(), "a.yaml")
    if reading.problems or not all(document.sound for document in reading.documents):
        return
    if re.search(r"!(?=\s|$)", text):
        return  # a text by the tag `!` (YAML 1.2, 6.9.1), which the other parser ignores
    try:
        other = list(YAML(typ="safe", pure=True).load_all(text))
    except (YAMLError, ValueError, TypeError):
        return  # it refuses some texts besides
    assert [document.value for document in reading.documents] == other
