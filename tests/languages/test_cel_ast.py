"""The syntax tree of an expression, with the place of each node in the text."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.languages.cel import Language
from reconciler.languages.cel_ast import Node, parse_tree

LANGUAGE = Language("shop")


def parse(text: str) -> Node:
    program, problems = LANGUAGE.check(text)
    assert program is not None, problems
    return parse_tree(program)


def walk(node: Node) -> Iterator[Node]:
    yield node
    for part in node.parts:
        yield from walk(part)


def list_nodes(text: str) -> list[tuple[str, str, int]]:
    return [(node.shape, node.name, node.offset) for node in walk(parse(text))]


@pytest.mark.parametrize(
    ("text", "nodes"),
    [
        ("shop.a.b", [("member", "b", 6), ("member", "a", 4), ("name", "shop", 0)]),
        ("has(shop.a)", [("has", "a", 3), ("name", "shop", 4)]),
        ("shop < 1.5", [("call", "_<_", 5), ("name", "shop", 0), ("constant", "double", 7)]),
        ("'é' == shop.a", [("call", "_==_", 4), ("constant", "string", 0), ("member", "a", 11), ("name", "shop", 7)]),
        ("[true, null]", [("list", "", 0), ("constant", "bool", 1), ("constant", "null", 7)]),
        ("{'a': shop}", [("map", "", 0), ("constant", "string", 1), ("name", "shop", 6)]),
        ("shop ==\n 1", [("call", "_==_", 5), ("name", "shop", 0), ("constant", "int", 9)]),
    ],
)
def test_each_node_has_its_shape_name_and_offset(text: str, nodes: list[tuple[str, str, int]]) -> None:
    assert list_nodes(text) == nodes


def test_a_method_differs_from_a_function() -> None:
    assert parse("shop.size()").is_method
    assert not parse("size(shop)").is_method


def test_a_macro_names_its_item_and_its_accumulated_value() -> None:
    node = parse("shop.a.exists(item, item == 3)")
    assert (node.shape, node.name, node.others, len(node.parts)) == ("macro", "item", ("", "@result"), 4)


TEXTS = st.recursive(
    st.sampled_from(["shop", "shop.b", "'é'"]), lambda inner: st.builds("[{}, dyn({}) == 1]".format, inner, inner)
)


@given(TEXTS)
def test_each_name_stands_at_its_offset(text: str) -> None:
    names = [node for node in walk(parse(text)) if node.shape == "name"]
    assert all(text.startswith(node.name, node.offset) for node in names)
    assert len(names) == text.count("shop")
