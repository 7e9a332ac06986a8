"""What is skimmed is what the careful reader finds in the same text, and most of a project is skimmed."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reconciler.languages import yaml_fast_path
from reconciler.project.yaml import reader as yaml
from tests.bench import worlds

ORDINARY = """\
kind: IPPolicy
name: office
spec:
  description: "who may: come"
  metadata: '{"team":"web","pager":7}'
---
kind: HTTPSEdgeRoute
name: shop
spec:
  edge_id: {ref: HTTPSEdge/shop}
  match: /api
  ratio: -1.5e3
  enabled: true
  off: no
  none: ~
  empty:
  hosts: [a, 'b', "c\\td", 1]
  policy: |
    on_http_request:
      - name: x
  folded: >-
    a
    b
"""
SIGNS = st.sampled_from(
    [*list("\n :-[]{},&*!|>'\"%@#?~.<0x1eEtfn"), "---\n", "<<: ", "&a ", "*a", "!!str ", "\n  - ", "? "]
)


def carefully(text: bytes) -> yaml.Reading:
    reading = yaml.Reading()
    yaml._Reader(text, "f.yaml", reading).run()
    return reading


def typed(value: Any) -> Any:
    """The value so that 1, 1.0 and true differ, and the order of keys counts."""
    if isinstance(value, dict):
        return [(key, typed(item)) for key, item in value.items()]
    if isinstance(value, list):
        return list(map(typed, value))
    return (type(value).__name__, value)


def check(text: str) -> bool:
    """Whether the text was skimmed; if so, it is what the careful reader finds, without a problem."""
    written = text.encode(errors="ignore")
    skimmed = yaml_fast_path.read_documents(written)
    if skimmed is None:
        return False
    reading = carefully(written)
    assert reading.problems == []
    assert reading.complete
    assert [typed(value) for value, _, _ in skimmed] == [typed(document.value) for document in reading.documents]
    again = yaml.read(written, "f.yaml").documents
    assert [each.places.start for each in again] == [document.places.start for document in reading.documents]
    assert [dict(each.places) for each in again] == [dict(document.places) for document in reading.documents]
    return True


@st.composite
def edited(draw: st.DrawFn) -> str:
    """The ordinary text with a few signs put in, taken out or repeated."""
    text = ORDINARY
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(text)))
        gone = draw(st.integers(0, 3))
        text = text[:at] + draw(SIGNS) + text[at + gone :]
    return text


@given(edited())
@example(ORDINARY.replace("name: office", "kind: again"))
@example(ORDINARY.replace("name:", "1:", 1))
@example(ORDINARY.replace("office", "&a office").replace("shop\n", "*a\n", 1))
@example(ORDINARY.replace("a, 'b'", "!!str 1, !!int 'b'"))
@example("a: " + "[" * 70 + "]" * 70)
@example("a: .inf")
def test_what_is_skimmed_is_what_reading_with_care_finds(text: str) -> None:
    check(text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(st.lists(JSON, min_size=1, max_size=3))
def test_json_is_skimmed_as_what_it_says(values: list[Any]) -> None:
    check("\n---\n".join(json.dumps(value, ensure_ascii=False) for value in values))


def test_ordinary_texts_are_skimmed(tmp_path: Path) -> None:
    assert check(ORDINARY)
    worlds.project(tmp_path, 100)
    for file in (tmp_path / "manifests").iterdir():
        assert check(file.read_text())


@pytest.mark.parametrize(
    "text",
    ["a: &x 1", "a: &x {}", "a: *x", "a: !!str 1", "a: !x {}", "a: 1\na: 2", "1: a", "<<: {}", "{}: 1", "a: [", "? "],
)
def test_what_is_out_of_the_ordinary_is_left_to_the_careful_reader(text: str) -> None:
    assert yaml_fast_path.read_documents(text.encode()) is None


TEXT = b"a: {b: {c: 'ddddddddd'}}\n---\n[1, 2, 3, 4, 5]\n---\nx: yyyyyyyyyy\n"


@pytest.mark.parametrize("limit", ["MAX_SCALAR", "MAX_DEPTH"])
def test_beyond_a_limit_nothing_is_skimmed(monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    assert yaml_fast_path.read_documents(TEXT) is not None
    monkeypatch.setattr(yaml_fast_path, limit, 2)
    assert yaml_fast_path.read_documents(TEXT) is None


@pytest.mark.parametrize("limit", ["MAX_VALUES", "MAX_DOCUMENTS"])
def test_excess_is_left_to_the_careful_reader(monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    assert yaml.read(TEXT, "f.yaml").complete
    monkeypatch.setattr(yaml, limit, 2)
    (problem,) = yaml.read(TEXT, "f.yaml").problems
    assert "more than" in str(problem)
