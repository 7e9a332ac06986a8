"""`Program`: how a region of an entry point treats a request, as a decision graph of conditions.

Programs are built from their end: a gate gets the program of requests that it lets through and that of the others.
Equal programs of one `Builder` are the same object, so that what did not change is recognized without looking at it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, Final

from msgspec import Struct

from reconciler.access.conditions import Condition, Source
from reconciler.access.networks import EVERYWHERE


class Outcome(Struct, frozen=True, eq=False):
    """The end of a program."""

    passes: bool


PASS: Final = Outcome(True)
"""The request reaches an upstream, or an answer that the account's owner wrote."""
REFUSE: Final = Outcome(False)


class Branch(Struct, frozen=True, eq=False):
    """Continues with `then` if the condition holds, else with `otherwise`."""

    condition: Condition
    then: Program
    otherwise: Program


Program = Outcome | Branch


_SECRET: Final = re.compile(r"\(secret \d+\)")


class Builder:
    """Makes programs; equal ones are identical."""

    def __init__(self) -> None:
        self._made: dict[tuple[Condition, int, int], Branch] = {}
        self.compiled: defaultdict[Any, list[Any]] = defaultdict(list)
        """What was compiled so far for the states that share the builder, by what was asked for."""
        self.policies: dict[tuple[object, ...], tuple[Any, Program, tuple[object, ...]]] = {}
        """The policies that were compiled and ask nothing of the account, with their programs and words."""
        self.secrets: dict[str, str] = {}
        """The name of each secret text that conditions mention. Names say nothing about the texts."""
        self._texts: dict[str, str] = {}

    def name_secret(self, text: str) -> str:
        """The name of a secret, which conditions mention in its place."""
        if text not in self.secrets:
            name = self.secrets[text] = f"(secret {len(self.secrets)})"
            self._texts[name] = text
        return self.secrets[text]

    def replace_secrets(self, text: str, replacement: Callable[[str], str]) -> str:
        """A text with the replacement of each secret in the place of its name."""
        if "(secret " not in text:
            return text

        def replace(match: re.Match[str]) -> str:
            secret = self._texts.get(match[0])
            return match[0] if secret is None else replacement(secret)

        return _SECRET.sub(replace, text)

    def branch(self, condition: Condition, then: Program, otherwise: Program = REFUSE) -> Program:
        if then is otherwise:
            return then
        if isinstance(condition, Source):
            if not condition.networks:
                return otherwise
            if condition.networks == EVERYWHERE:
                return then
        key = condition, id(then), id(otherwise)
        return self._made.get(key) or self._made.setdefault(key, Branch(condition, then, otherwise))

    def either(self, first: Program, second: Program) -> Program:
        """Passes what at least one of both passes, as a pool does whose members are chosen at random."""
        if first is second or second is REFUSE:
            return first
        if PASS in (first, second):
            return PASS
        if first is REFUSE:
            return second
        return self._replace_end(first, second)

    def _replace_end(self, program: Program, refused: Program) -> Program:
        """The program with `refused` in the place of REFUSE. Iterative: programs may be long."""
        done: dict[int, Program] = {id(PASS): PASS, id(REFUSE): refused}
        stack = [program]
        while stack:
            node = stack[-1]
            if id(node) in done:
                stack.pop()
                continue
            assert isinstance(node, Branch)
            missing = [part for part in (node.then, node.otherwise) if id(part) not in done]
            if missing:
                stack += missing
                continue
            done[id(node)] = self.branch(node.condition, done[id(node.then)], done[id(node.otherwise)])
            stack.pop()
        return done[id(program)]


def conditions_of(*programs: Program) -> Iterator[Condition]:
    """Each condition of the programs, once for each test."""
    seen: set[int] = set()
    stack: list[Program] = list(programs)
    while stack:
        node = stack.pop()
        if not isinstance(node, Branch) or id(node) in seen:
            continue
        seen.add(id(node))
        yield node.condition
        stack += (node.otherwise, node.then)
