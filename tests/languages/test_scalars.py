"""Unquoted scalars have the values of the core schema of YAML 1.2, whichever reader reads the text."""

from __future__ import annotations

import pytest

from reconciler.kinds.rules import traffic_policy
from reconciler.model.numerals import to_plain


def test_scalars_are_those_of_yaml_1_2() -> None:
    assert traffic_policy.parse("a: no\nb: on\nc: 15\nd: 2020-01-01\n") == {
        "a": "no",
        "b": "on",
        "c": 15,
        "d": "2020-01-01",
    }


@pytest.mark.parametrize(
    ("written", "meant"),
    [("1_000", 1000), ("0b11", 3), ("2024-01-01 10:00:00", "2024-01-01 10:00:00"), ("0o17", 15), ("no", "no")],
)
def test_a_scalar_has_the_same_value_with_each_reader(written: str, meant: object) -> None:
    for else_ in ("x", "&anchor x"):
        document = traffic_policy.parse(f"on_http_request: [{{value: {written}, other: {else_}}}]")
        assert document is not None
        assert to_plain(document["on_http_request"][0]["value"]) == meant
        assert str(document["on_http_request"][0]["value"]) == written
