"""The fast path reads the same as the full reader, and it reads most files of a project."""

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


def read_fully(text: bytes) -> yaml.Reading:
    reading = yaml.Reading()
    yaml._Reader(text, "f.yaml", reading).run()
    return reading


def with_types(value: Any) -> Any:
    """The value with its types, so that 1, 1.0 and true differ, and with the order of keys."""
    if isinstance(value, dict):
        return [(key, with_types(item)) for key, item in value.items()]
    if isinstance(value, list):
        return list(map(with_types, value))
    return (type(value).__name__, value)


def check(text: str) -> bool:
    """Returns whether the fast path read the text. If so, the full reader must read the same, without a problem."""
    written = text.encode(errors="ignore")
    fast = yaml_fast_path.read_documents(written)
    if fast is None:
        return False
    reading = read_fully(written)
    assert reading.problems == []
    assert reading.complete
    assert [with_types(value) for value, _, _ in fast] == [with_types(document.value) for document in reading.documents]
    again = yaml.read(written, "f.yaml").documents
    assert [document.places.start for document in again] == [document.places.start for document in reading.documents]
    assert [dict(document.places) for document in again] == [dict(document.places) for document in reading.documents]
    return True


@st.composite
def texts_with_edits(draw: st.DrawFn) -> str:
    """The ordinary text with a few characters inserted or removed."""
    text = ORDINARY
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(text)))
        removed = draw(st.integers(0, 3))
        text = text[:at] + draw(SIGNS) + text[at + removed :]
    return text


@given(texts_with_edits())
@example(ORDINARY.replace("name: office", "kind: again"))
@example(ORDINARY.replace("name:", "1:", 1))
@example(ORDINARY.replace("office", "&a office").replace("shop\n", "*a\n", 1))
@example(ORDINARY.replace("a, 'b'", "!!str 1, !!int 'b'"))
@example("a: " + "[" * 70 + "]" * 70)
@example("a: .inf")
def test_the_fast_path_reads_the_same_as_the_full_reader(text: str) -> None:
    check(text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(st.lists(JSON, min_size=1, max_size=3))
def test_json_is_read_the_same_by_both_readers(values: list[Any]) -> None:
    check("\n---\n".join(json.dumps(value, ensure_ascii=False) for value in values))


def test_ordinary_texts_are_read_by_the_fast_path(tmp_path: Path) -> None:
    assert check(ORDINARY)
    worlds.project(tmp_path, 100)
    for file in (tmp_path / "manifests").iterdir():
        assert check(file.read_text())


@pytest.mark.parametrize(
    "text",
    ["a: &x 1", "a: &x {}", "a: *x", "a: !!str 1", "a: !x {}", "a: 1\na: 2", "1: a", "<<: {}", "{}: 1", "a: [", "? "],
)
def test_unusual_syntax_is_left_to_the_full_reader(text: str) -> None:
    assert yaml_fast_path.read_documents(text.encode()) is None


TEXT = b"a: {b: {c: 'ddddddddd'}}\n---\n[1, 2, 3, 4, 5]\n---\nx: yyyyyyyyyy\n"


@pytest.mark.parametrize("limit", ["MAX_SCALAR", "MAX_DEPTH"])
def test_text_beyond_a_limit_is_left_to_the_full_reader(monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    assert yaml_fast_path.read_documents(TEXT) is not None
    monkeypatch.setattr(yaml_fast_path, limit, 2)
    assert yaml_fast_path.read_documents(TEXT) is None


@pytest.mark.parametrize("limit", ["MAX_VALUES", "MAX_DOCUMENTS"])
def test_excess_is_reported_by_the_full_reader(monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    assert yaml.read(TEXT, "f.yaml").complete
    monkeypatch.setattr(yaml, limit, 2)
    (problem,) = yaml.read(TEXT, "f.yaml").problems
    assert "more than" in str(problem)
