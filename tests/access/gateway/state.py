"""The state of a request on its way through the platform, and the answers that end it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from tests.access.gateway.messages import Answer
from tests.access.gateway.open_rows import ADMITTING
from tests.access.gateway.servers import Key


@dataclass(frozen=True, slots=True)
class State:
    """What happened to a request so far: the open rows that it touched, a doubt that makes it unknown if it passes, the
    actions that rewrote it, and the internal endpoints that it was forwarded to."""

    rows: frozenset[str] = frozenset()
    doubt: str = ""
    rewrites: tuple[str, ...] = ()
    forwards: tuple[Key, ...] = ()

    def touch(self, row: str) -> State:
        return replace(self, rows=self.rows | {row})

    def doubts(self, row: str, reason: str) -> State:
        return replace(self, rows=self.rows | {row}, doubt=self.doubt or reason)


Answers = list[Answer]
Then = Callable[[State], Answers]
Gate = State | Answer
"""The result of a gate: the state of a request that may continue, or the answer that ends it."""


def unite(answers: Answers) -> Answer:
    """The answer of a union: a pass if there is one, preferably one without open rows; else unknown, else refused."""
    for outcome in ("pass", "unknown", "refuse"):
        if found := [answer for answer in answers if answer.outcome == outcome]:
            best = min(found, key=lambda answer: len(answer.open_outcome))
            if outcome == "pass" and not best.open_outcome:
                return best
            return replace(best, open_rows=frozenset[str]().union(*(answer.open_rows for answer in answers)))
    raise AssertionError("a request has at least one answer")


def refuse(state: State, reason: str, status: int | None = None, code: str = "", by: str = "") -> Answer:
    return Answer("refuse", reason, status, code, by, state.rows - ADMITTING)


def admit(state: State, reason: str, by: str, status: int | None = None) -> Answer:
    if state.doubt:
        return Answer("unknown", state.doubt, served_by=by, open_rows=state.rows)
    return Answer("pass", reason, status, served_by=by, open_rows=state.rows)
