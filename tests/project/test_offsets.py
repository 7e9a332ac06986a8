"""Positions of mistakes inside a traffic policy, in each way in which a policy is written in a manifest."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import indent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.problem import Position, Problem, Rejected
from reconciler.project.policies import offsets
from tests.project.texts import load_texts

HEAD = "kind: CloudEndpoint\nname: a\nspec:\n  url: https://a.example.com\n  traffic_policy:"


def problems(text: str, root: Path = Path()) -> tuple[Problem, ...]:
    try:
        return load_texts({"m.yaml": text.encode()}, "shop", {}, root=root).warnings
    except Rejected as rejected:
        return rejected.problems


def place_of(text: str, sign: str) -> tuple[int, int]:
    """Line and column of the first occurrence of these characters."""
    before = text.partition(sign)[0]
    return before.count("\n") + 1, len(before) - before.rfind("\n")


RULE = """
    on_http_request:
      - expressions:
          - {}
        actions: [{{type: deny}}]
"""
SETTING = """
    on_http_request:
      - actions:
          - type: custom-response
            config:
              {}
"""
LINES = "|\n            true &&\n              req.mehtod == 'GET'"
WRITTEN = {
    "plain": RULE.format("req.mehtod == 'GET'"),
    "quotes": RULE.format("\"req.mehtod == 'GET'\""),
    "block": RULE.format(LINES),
    "folded": RULE.format(">-\n            true &&\n            req.mehtod == 'GET'"),
    "document in a block": " |" + RULE.format("\"req.mehtod == 'GET'\""),
    "block in a block": " |" + RULE.format(LINES),
    "json": ' \'{"on_http_request": [{"expressions": ["req.mehtod == 1"], "actions": [{"type": "deny"}]}]}\'\n',
    "setting": SETTING.format('body: "a ${req.mehtod}"'),
    "setting in a block": SETTING.format("body: |\n                one\n                  ${req.mehtod}"),
}


@pytest.mark.parametrize("how", WRITTEN)
def test_a_mistake_in_a_policy_is_reported_at_its_position_in_the_manifest(how: str) -> None:
    text = HEAD + WRITTEN[how]
    (only,) = problems(text)
    assert only.code == "traffic-member"
    assert only.position == Position("m.yaml", *place_of(text, "mehtod"))


@pytest.mark.parametrize("written", [SETTING.format("bodi: a"), " |" + SETTING.format("bodi: a")])
def test_an_unknown_setting_of_an_action_is_reported_at_its_key(written: str) -> None:
    text = HEAD + written
    (only,) = problems(text)
    assert (only.code, only.position) == ("traffic-setting", Position("m.yaml", *place_of(text, "bodi")))


def test_a_mistake_in_an_included_policy_is_reported_in_its_file(tmp_path: Path) -> None:
    policy = "on_http_request:\n  - expressions:\n      - req.mehtod == 'GET'\n    actions: [{type: deny}]\n"
    (tmp_path / "policy.yaml").write_text(policy)
    (only,) = problems(f"{HEAD} {{from_file: policy.yaml}}\n", tmp_path)
    assert only.position == Position("policy.yaml", *place_of(policy, "mehtod"))


def test_a_mistake_in_an_escaped_text_is_reported_with_its_column_in_the_text() -> None:
    (only,) = problems(HEAD + RULE.format('"\\x72eq.mehtod == 1"'))
    assert only.position is not None
    assert only.position.line == 8
    assert only.text == "req has no member 'mehtod' (column 5 of the text)"


@given(st.text("ab\n é'\"\\#:{}", max_size=20), st.sampled_from(["|", "|+", "json", "quotes"]))
def test_the_position_of_any_expression_is_within_the_file(more: str, how: str) -> None:
    rules = [{"name": more, "expressions": ["req.mehtod == 'x'"], "actions": [{"type": "deny"}]}]
    document = json.dumps({"on_http_request": rules}, indent=1, ensure_ascii=how == "json")
    written = json.dumps(document) if how in ("quotes", "json") else f"{how}\n{indent(document, '    ')}"
    text = f"{HEAD} {written}\n"
    (only,) = problems(text)
    assert only.position is not None
    if how.startswith("|"):
        assert (only.position.line, only.position.column) == place_of(text, "mehtod")
    else:
        assert only.position.line == 5


def test_line_breaks_at_the_end_of_an_included_policy_keep_its_positions(tmp_path: Path) -> None:
    """The value has no line break at its end, and the file may have one."""
    policy = "on_http_request:\n  - expressions:\n      - req.mehtod == 'GET'\n    actions: [{type: deny}]"
    for end in ("", "\n", "\r\n"):
        (tmp_path / "policy.yaml").write_bytes(f"{policy}{end}".encode())
        (only,) = problems(f"{HEAD} {{from_file: ./policy.yaml}}\n", tmp_path)
        assert only.position == Position("policy.yaml", *place_of(policy, "mehtod"))


@pytest.mark.parametrize(
    ("written", "place", "where"),
    [
        ("\"on_http_request: [{expressions: ['req.mehtod == 1'], actions: [{type: deny}]}]\"", (5, 58), ""),
        ("'on_http_request: [{expressions: [\"req.mehtod == 1\"], actions: [{type: deny}]}]'", (5, 58), ""),
        (
            '"on_http_request:\\n- expressions: [req.mehtod == 1]\\n  actions: [{type: deny}]"',
            (5, 19),
            " (line 2, column 17 of the text)",
        ),
    ],
)
def test_a_mistake_in_a_quoted_document_is_reported_in_the_file_or_the_text(
    written: str, place: tuple[int, int], where: str
) -> None:
    (only,) = problems(f"{HEAD} {written}\n")
    assert only.position == Position("m.yaml", *place)
    assert only.text == f"on_http_request[0].expressions[0]: req has no member 'mehtod'{where}"


def test_a_mistake_at_the_start_of_a_text_has_the_position_of_the_text() -> None:
    text = HEAD + RULE.format('"\\x6eope == 1"')
    (only,) = problems(text)
    assert only.position == Position("m.yaml", *place_of(text, '"\\x6e'))
    assert "of the text" not in only.text


@pytest.mark.parametrize("start", ["", " |"])
def test_an_invalid_value_in_a_policy_is_reported_at_the_value(start: str) -> None:
    text = HEAD + start + RULE.format("'true'").replace("type: deny", "type: deni")
    (only,) = problems(text)
    assert only.position == Position("m.yaml", *place_of(text, "deni"))


@pytest.mark.parametrize(
    ("lines", "start", "text", "offset", "place"),
    [
        (["a: bcd"], (1, 4), "bcd", 0, (1, 4)),
        (["a: bcd"], (1, 4), "bcd", 2, (1, 6)),
        (["a: bcd"], (1, 4), "bcd", 5, (1, 9)),
        (["a: bcd # e"], (1, 4), "bcd", 2, (1, 6)),
        (["a: 'b''c'"], (1, 4), "b'c", 1, (1, 6)),
        (["a: 'b''c'"], (1, 4), "b'c", 2, (1, 8)),
        (['a: "b\\"c\\\\d"'], (1, 4), 'b"c\\d', 4, (1, 11)),
        (["a: |", "  xy", "", "  z"], (1, 4), "xy\n\nz\n", 1, (2, 4)),
        (["a: |", "  xy", "", "  z"], (1, 4), "xy\n\nz\n", 2, (2, 5)),
        (["a: |", "  xy", "", "  z"], (1, 4), "xy\n\nz\n", 4, (4, 3)),
        (["a: |", "    xy", "      z", "b: 1"], (1, 4), "xy\n  z\n", 5, (3, 7)),
        (["a: |-", "  x", " # y"], (1, 4), "x", 0, (2, 3)),
        (["a: >", "  x", "  y", "", "  z"], (1, 4), "x y", 2, (3, 3)),
        (["a: >", "  x", "  y"], (1, 4), "x y\n", 2, (3, 3)),
        (["a: x", "  y"], (1, 4), "x y", 2, (1, 4)),
        (["a: x"], (7, 1), "x", 0, (7, 1)),
        (["a: |", "b: 1"], (1, 4), "", 0, (1, 4)),
        (["a: ''"], (1, 4), "", 0, (1, 4)),
    ],
)
def test_a_character_of_a_text_has_a_position_in_the_file(
    lines: list[str], start: tuple[int, int], text: str, offset: int, place: tuple[int, int]
) -> None:
    assert offsets.place(lines, Position("f", *start), text, offset) == Position("f", *place)


def test_a_line_and_column_of_a_text_are_an_offset() -> None:
    text = "ab\n\ncd"
    found = [offsets.offset(text, line, column) for line, column in ((1, 1), (1, 3), (2, 1), (3, 1), (3, 2))]
    assert found == [0, 2, 3, 4, 5]
