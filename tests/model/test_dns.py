"""Names in DNS."""

from __future__ import annotations

import dns.name
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.dns import clean_name, is_below, list_parents


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Shop.Example.COM.", "shop.example.com"),
        ("*.apps.example.com", "*.apps.example.com"),
        ("_acme-challenge.example.com", "_acme-challenge.example.com"),
        ("xn--BCHER-kva.example", "xn--bcher-kva.example"),
        ("1e3.example", "1e3.example"),
        ("com", "com"),
        ("a-.example", None),
        ("-a.example", None),
        ("a.example..", None),
        ("a b.example", None),
        ("a\n.example", None),
        ("a.example\n", None),
        ("*", None),
    ],
)
def test_a_name_is_cleaned_or_refused(text: str, name: str | None) -> None:
    assert clean_name(text) == name


@given(st.text(alphabet="aB1-_.*\\\"';$@( \n\x00é", max_size=12) | st.text(max_size=8))
def test_a_clean_name_means_the_same_to_dnspython(text: str) -> None:
    """No character of it is special in a zone file."""
    if (name := clean_name(text)) is not None:
        assert dns.name.from_text(f"{name}.").to_text() == f"{name}."
        assert clean_name(name) == name
        assert not set(name) & set("\\\"';$@() \n\t")


def test_a_name_is_below_its_parents_only() -> None:
    assert list(list_parents("a.b.example")) == ["b.example", "example"]
    assert is_below("a.b.example", "b.example")
    assert not is_below("b.example", "b.example")
    assert not is_below("ab.example", "b.example")
