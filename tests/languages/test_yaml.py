"""The YAML reader and ruamel.yaml read the same values from the same text."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from reconciler.kinds.rules import traffic_policy
from reconciler.languages.yaml import reader as yaml
from reconciler.languages.yaml.scalars import plain_lenient
from reconciler.model.numerals import to_plain

_CORPUS = Path(__file__).parents[1] / "kinds" / "corpus" / "traffic_policies.yaml"
EMBEDDED = yaml.Dialect(merges=True, plain=plain_lenient)
DOCUMENT = """\
kind: IPPolicy
name: office
spec: &spec
  description: "who may: come"
  metadata: '{"team":"web","pager":7}'
---
on_http_request:
  - name: block
    expressions: ["req.url.path.startsWith('/x')"]
    actions:
      - type: custom-response
        config: &config {status_code: 403, ratio: -1.5e3, since: 2024-01-01, at: 10:30, mode: 0o17, off: no, none: ~}
        body: |
          line one
            two
        folded: >-
          a
          b
      - {<<: *config, status_code: 404}
"""
SIGNS = [
    *"\n :-[]{},&*!|>'\"%@#?~.0x1eTZ_b=+",
    *("---\n", "? ", "1_0", "0b1", "0o7", "017", "No", "yes", "null", ".inf", "T10:00:00Z", " = ", "<<: ", "*spec"),
    *(" 7:0", "!!str ", "!!int ", "!!float ", "!!bool ", "&a ", "*a", "\n  - "),
]


def read_with_ruamel(text: str) -> list[Any] | None:
    """The documents in JSON types; None if ruamel.yaml refuses the text or constructs something else."""
    reader = YAML(typ="safe", pure=True)
    try:
        return [as_json(document) for document in reader.load_all(text)]
    except (YAMLError, ValueError, TypeError, LookupError, AttributeError, AssertionError, RecursionError):
        return None


def as_json(value: Any) -> Any:
    match value:
        case dict():
            return {key if isinstance(key, str) else json.dumps(key): as_json(item) for key, item in value.items()}
        case list():
            return list(map(as_json, value))
        case float() if not math.isfinite(value):
            raise ValueError
        case None | bool() | int() | float() | str():
            return value
    raise TypeError(value)


def with_types(value: Any) -> Any:
    """The value in a form in which 1, 1.0 and true differ."""
    if isinstance(value, dict):
        return {key: with_types(item) for key, item in value.items()}
    if isinstance(value, list):
        return list(map(with_types, value))
    value = to_plain(value)
    return (type(value).__name__, value)


def read(text: str) -> list[Any] | None:
    reading = yaml.read(text.encode(), "", EMBEDDED)
    if reading.problems:
        return None
    try:
        return [yaml.resolve_merges(document.value) for document in reading.documents]
    except ValueError:
        return None


# Read otherwise by ruamel.yaml: dates and the value sign, which are text in YAML 1.2, some tags, tabs, and numbers with
# underscores in odd places.
DIFFERENT = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}|=|__|_\b|\b_|[-+.]_|_\.|0[xob]_|!!|\t|[eE]_|_[eE]|\.[eE]")


@given(st.lists(st.tuples(st.integers(0, len(DOCUMENT)), st.sampled_from(SIGNS), st.integers(0, 2)), max_size=3))
@example([])
def test_an_edited_document_has_the_values_that_ruamel_reads(edits: list[tuple[int, str, int]]) -> None:
    text = DOCUMENT.replace("2024-01-01", "today")
    for at, sign, length in edits:
        text = text[:at] + sign + text[at + length :]
    ours, expected = read(text), read_with_ruamel(text)
    if ours is not None and expected is not None and not DIFFERENT.search(text):
        assert with_types(ours) == with_types(expected)


SCALARS = st.text(st.sampled_from("0123456789abefoxEXnN._+-~tru "), min_size=1, max_size=8).map(str.strip).filter(bool)


@given(SCALARS)
@example("No")
@example("017")
@example("0o17")
@example("1_000")
@example("0b11")
@example("1.10")
def test_an_unquoted_scalar_has_the_value_that_ruamel_reads(scalar: str) -> None:
    text = f"a: {scalar}\nb: [{scalar}]\n"
    ours, expected = read(text), read_with_ruamel(text)
    if ours is not None and expected is not None and not DIFFERENT.search(scalar):
        assert with_types(ours) == with_types(expected)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(st.lists(JSON, min_size=1, max_size=3))
def test_json_documents_have_their_own_values(values: list[Any]) -> None:
    text = "\n---\n".join(json.dumps(value) for value in values)
    reading = yaml.read(text.encode(), "")
    if not reading.problems:
        assert [with_types(document.value) for document in reading.documents] == [with_types(value) for value in values]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: &b {x: 1, y: 2}\nc: {<<: *b, y: 3}", {"a": {"x": 1, "y": 2}, "c": {"x": 1, "y": 3}}),
        ("a: &b {x: 1}\nc: {y: 3, <<: *b}", {"a": {"x": 1}, "c": {"x": 1, "y": 3}}),
        (
            "- &a {x: 1, y: 1}\n- &b {x: 2, z: 2}\n- {<<: [*a, *b]}",
            [{"x": 1, "y": 1}, {"x": 2, "z": 2}, {"x": 1, "y": 1, "z": 2}],
        ),
        ("- &a {x: 1}\n- &b {<<: *a, y: 2}\n- {<<: *b, z: 3}", [{"x": 1}, {"x": 1, "y": 2}, {"x": 1, "y": 2, "z": 3}]),
        ('{"<<": 1}', {"<<": 1}),
        ("{2: a, true: b, null: c, x: d}", {"2": "a", "true": "b", "null": "c", "x": "d"}),
    ],
)
def test_merge_keys_are_merged_as_ruamel_merges_them(text: str, value: Any) -> None:
    assert read(text) == [value]
    assert read_with_ruamel(text) == [value] or '"<<"' in text


@pytest.mark.parametrize("text", ["{<<: 1}", "{<<: [1]}", "{<<: {x: 1}, <<: {y: 1}}"])
def test_a_merge_key_without_a_map_is_refused(text: str) -> None:
    assert read(text) is None
    assert read_with_ruamel(text) is None


def list_policies() -> list[Any]:
    [document] = yaml.read(_CORPUS.read_bytes(), "").documents
    return [entry["policy"] for entry in (*document.value["right"], *document.value["wrong"])]


@pytest.mark.parametrize("policy", list_policies(), ids=lambda policy: str(policy)[:60])
def test_a_published_policy_has_the_values_that_ruamel_reads(policy: Any) -> None:
    text = policy if isinstance(policy, str) else json.dumps(to_plain(policy))
    expected = read_with_ruamel(text)
    if expected is None:
        pytest.skip("ruamel.yaml refuses this text")
    [document] = expected or [None]
    read_policy = traffic_policy.parse(text)
    assert (
        with_types(read_policy) == with_types(document)
        if isinstance(document, dict) and document
        else read_policy is None
    )
