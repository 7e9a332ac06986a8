"""Mutation operators that cosmic-ray does not have, in the form of its own: removed statements, forced conditions,
dropped operands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from cosmic_ray.operators.operator import Example, Operator
from parso.python.tree import Name

Position = tuple[tuple[int, int], tuple[int, int]]

REMOVED = ("atom_expr", "del_stmt", "raise_stmt")


class RemoveStatement(Operator):
    """Replaces a call, a `raise`, a `del`, or an assignment to an attribute or an item by `pass`."""

    def mutation_positions(self, node: Any) -> Iterator[Position]:
        if node.type == "simple_stmt" and _has_effect(node.children[0]):
            yield node.children[0].start_pos, node.children[0].end_pos

    def mutate(self, node: Any, index: int) -> Any:
        node.children[0] = _word("pass", node.children[0])
        return node

    @classmethod
    def examples(cls) -> Sequence[Example]:
        return (
            Example("if x:\n    f(x)\n", "if x:\n    pass\n"),
            Example("if x:\n    raise X\n", "if x:\n    pass\n"),
            Example("x.y = 1\n", "pass\n"),
            Example("x[0] += 1\n", "pass\n"),
            Example("async def f():\n    await g()\n", "async def f():\n    pass\n"),
        )


def _word(text: str, instead: Any) -> Name:
    return Name(text, instead.start_pos, prefix=instead.get_first_leaf().prefix)


def _has_effect(node: Any) -> bool:
    if node.type == "expr_stmt":  # a plain name that is never assigned is found by any test that runs the line
        return node.children[0].type == "atom_expr" or getattr(node.children[1], "value", "=") != "="
    return node.type in REMOVED or (node.type == "keyword" and node.value == "raise")


class ForceCondition(Operator):
    """Replaces the condition of `if`, `elif`, `while`, a ternary or a comprehension by True, then by False."""

    def mutation_positions(self, node: Any) -> Iterator[Position]:
        for place in _conditions(node):
            condition = node.children[place]
            for _ in _force_values(node):
                yield condition.start_pos, condition.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        values = _force_values(node)
        place = list(_conditions(node))[index // len(values)]
        node.children[place] = _word(values[index % len(values)], node.children[place])
        return node

    @classmethod
    def examples(cls) -> Sequence[Example]:
        return (
            Example("if x: pass", "if True: pass"),
            Example("if x: pass", "if False: pass", occurrence=1),
            Example("if x: pass\nelif y: pass", "if x: pass\nelif False: pass", occurrence=3),
            Example("while x: pass", "while False: pass"),
            Example("a if b else c", "a if False else c", occurrence=1),
            Example("[a for a in b if a]", "[a for a in b if True]"),
        )


def _force_values(node: Any) -> tuple[str, ...]:
    return ("False",) if node.type == "while_stmt" else ("True", "False")


def _conditions(node: Any) -> list[int]:
    """The places of the conditions among the children."""
    if node.type in ("if_stmt", "while_stmt"):
        return [
            place + 1
            for place, child in enumerate(node.children)
            if child.type == "keyword" and child.value in ("if", "elif", "while")
        ]
    if node.type == "test":  # a ternary
        return [2]
    if node.type == "comp_if":
        return [1]
    return []


class DropOperand(Operator):
    """Leaves one operand of `and` or `or` out."""

    def mutation_positions(self, node: Any) -> Iterator[Position]:
        if node.type in ("and_test", "or_test"):
            for operand in node.children[::2]:
                yield operand.start_pos, operand.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        place = 2 * index
        if place == 0:  # the next operand takes its place, without a line break between
            prefix = node.get_first_leaf().prefix
            del node.children[:2]
            node.get_first_leaf().prefix = prefix
        else:
            del node.children[place - 1 : place + 1]
        return node

    @classmethod
    def examples(cls) -> Sequence[Example]:
        return (
            Example("x and y", "y"),
            Example("x and y", "x", occurrence=1),
            Example("x or y or z", "x or z", occurrence=1),
        )


OWN: dict[str, type[Operator]] = {
    f"reconciler/{operator.__name__}": operator for operator in (RemoveStatement, ForceCondition, DropOperand)
}
