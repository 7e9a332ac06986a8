"""Documents that `fmt` recognizes as formatted, beside ruamel.yaml's round trip."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.languages.yaml import reader as yaml
from reconciler.project.yaml import format as format_yaml
from reconciler.project.yaml.format import ORDER, format_text
from reconciler.project.yaml.formatted import is_formatted
from tests.harness.tiers import examples

SCALARS = (
    "x", "two words", "two  spaces", "5", "-5", "1e3", "~", "null", "no", "a#b", "a:b", "a, [b] {c}", "${{ var.x }}",
    "é", "😀",
    "'one'", "'it''s'", "' '", '"two"', '"a\\nb"', '"\\u0041"', '"\\\\ \\""', "{}", "[]", "[ ]", "{ref: A/b}",
    "{a: b, c: 'd'}",
    "[a, b c]", "[{a: b}, [c]]", "[a,b]", "{a: [b, {c: d}]}", "[a b, https://c:1/d]", '["x, y"]', "&a x", "*a",
    "!!str 5",
    "> x", "@", "%", "- x", "? x", "x:", "{a:  b}", "[-1]", "{a: -}", "[$x]", "", '{"a": b}', "[a: b]", "{a, b}",
    "a\tb", "'a\tb'", "a\u00a0b", "'a\u200db'", '"a\u202eb"',
)  # fmt: skip
COMMENTS = ("", "", "", "", "  # c", " #", "   # a: b", "  ## x", " # 'x", "#x")
BETWEEN = ("# c", "#", "# a: b", "- x", "#- x", "# c ", "")
KEYS = ("a", "b-c", "d.e", "kind", "name", "spec", "with", "x" * 99, "x" * 128, "'q'", "1", "é", "a b", "- a")


class _Writer:
    """Writes a random document, mostly as `fmt` does, with oddities at a given rate."""

    def __init__(self, random: Random, oddity: float) -> None:
        self._random = random
        self._oddity = oddity

    def _is_odd(self) -> bool:
        return self._random.random() < self._oddity

    def _choose(self, values: tuple[str, ...], usual: int) -> str:
        return self._random.choice(values if self._is_odd() else values[:usual])

    def _step(self) -> int:
        return self._random.choice((0, 1, 2, 3, 4)) if self._is_odd() else 2

    def document(self) -> str:
        return "\n".join(self._map(0, 3)) + "\n"

    def _between(self, column: int) -> Iterator[str]:
        while self._random.random() < 0.15:
            line = self._choose(BETWEEN, 3) if self._random.random() < 0.6 else ""
            yield " " * self._random.choice((column, column, column, 0, 2, 4, 5)) + line if line else line

    def _map(self, column: int, levels: int) -> Iterator[str]:
        keys = list(dict.fromkeys(self._choose(KEYS, 8) for _ in range(self._random.choice((1, 2, 3)))))
        if not self._is_odd():
            keys.sort(key=lambda key: ORDER.index(key) if key in ORDER else len(ORDER))
        for key in keys:
            yield from self._between(column)
            yield from self._value(f"{' ' * column}{key}:", column, levels)

    def _list(self, column: int, levels: int) -> Iterator[str]:
        for _ in range(self._random.choice((1, 2))):
            yield from self._between(column)
            head = f"{' ' * column}-"
            if levels and self._random.random() < 0.5:
                first, *rest = self._map(column + 2, levels - 1)
                yield f"{head} {first.lstrip()}"
                yield from rest
            else:
                yield from self._value(head, column, 0)

    def _value(self, head: str, column: int, levels: int) -> Iterator[str]:
        comment = self._choose(COMMENTS, 7)
        shape = self._random.random()
        if levels and shape < 0.5:
            yield f"{head}{comment}"
            yield from self._between(column)
            inner = column + self._step()
            yield from (self._map if shape < 0.25 else self._list)(inner, levels - 1)
        elif shape < 0.65:
            yield f"{head} {self._choose(('|', '|-', '|+', '>', '|2', '| # c'), 2)}"
            indent = " " * (column + (self._step() or 1))
            for _ in range(self._random.choice((1, 2, 3))):
                line = self._choose(
                    ("text", "# no comment", "a: b", "", "  more", "- x", "'", "end ", "\tx", "\u00a0"), 6
                )
                yield f"{indent}{line}" if line else ""
        else:
            gap = "  " if self._is_odd() else " "
            yield f"{head}{gap}{self._choose(SCALARS, 30)}{comment}".rstrip()


@settings(max_examples=examples(60))
@given(st.integers(min_value=0), st.sampled_from((0.0, 0.02, 0.1, 0.3)))
def test_a_document_that_is_recognized_is_unchanged_by_the_round_trip(seed: int, oddity: float) -> None:
    writer = _Writer(Random(seed), oddity)
    documents = [writer.document().strip("\n") + "\n" for _ in range(5)]
    for text in documents:
        if is_formatted(text, ORDER) and not yaml.read(text.encode(), "f.yaml").problems:
            assert format_yaml._round_trip(text, "f.yaml") == text


ROOT = Path(__file__).parents[2]
MANIFESTS = sorted(ROOT.glob("examples/*/manifests/*.yaml")) + sorted(
    ROOT.glob("tests/stories/*/after/manifests/*.yaml")
)


def test_manifests_of_examples_and_stories_are_recognized_and_the_round_trip_agrees() -> None:
    texts = {path: path.read_text() for path in MANIFESTS}
    pieces = [piece for path, text in texts.items() for piece in format_yaml.split_documents(text, path.name)]
    recognized = [piece for piece in pieces if is_formatted(piece, ORDER)]
    assert len(recognized) >= 0.95 * len(pieces) > 100
    assert [piece for piece in recognized[::5] if format_yaml._round_trip(piece, "f.yaml") != piece] == []


LAYOUTS = """\
# yaml-language-server: $schema=s
# top

kind: HTTPSEdge # end of line
name: ${{ var.name }}-x
spec:

  # about
  metadata: '{"team":"it''s"}'
  url: https://example.com:443/a?b=c#d
  list:
    - one
    - key: "two\\n"
      # between
      more: [a, {ref: A/b}, [c]]
    - list:
        - {x: y}
  nested:
    number: -5
    policy: |
      on_http_request:
        - x

      # not a comment
# end
other: null
"""


def test_a_formatted_file_is_recognized_without_the_round_trip(monkeypatch: pytest.MonkeyPatch) -> None:
    text = LAYOUTS.replace("\n    - list:\n        - {x: y}", "") + "---\nkind: A\nspec:\n  a:\n    - {x: y}\n"
    assert format_text(text, "f.yaml") == text
    monkeypatch.setattr(format_yaml, "_round_trip", None)
    assert format_text(text, "f.yaml") == text


@pytest.mark.parametrize(
    "text",
    [
        "name: a\nkind: b\n",
        "a:\n    b: 1\n",
        "a:\n- b\n",
        "- a\n",
        " a: 1\n",
        "a:  1\n",
        "a: 1 \n",
        "a: |\n    x\n",
        "a: [b,c]\n",
        "a: [ ]\n",
        "a: {b: c,}\n",
        'a: "\\u0041"\n',
        "a: &b c\n",
        "a: >\n  b\n",
        "a: b\n  c\n",
        "a:\n  - - b\n",
        "a:\n  - \n    b: 1\n",
        f"{'k' * 128}: 1\n",
        "a:\tb\n",
        "a: b",
        "# nothing\n",
        "a:\n  - {b: c} # d\n\n  - e:\n      - f\n",
        f"a: {'b ' * (1 << 18)}c\n",
    ],
)
def test_any_other_layout_is_left_to_the_round_trip(text: str) -> None:
    assert not is_formatted(text, ORDER)
