"""Tracks which calls of a plan may start now, and which are skipped because a call that they need failed."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from enum import StrEnum

from reconciler.model.event import Outcome
from reconciler.model.plan import Call


class State(StrEnum):
    BLOCKED = "blocked"
    READY = "ready"
    RUNNING = "running"
    ENDED = "ended"


_SUCCESS = (Outcome.DONE, Outcome.ALREADY)
_ENDED = {Outcome.FAILED: "failed", Outcome.SKIPPED: "was skipped", Outcome.UNKNOWN: "may have failed"}


class Schedule:
    """The states of the calls of one plan. The work of a whole run is linear in the number of calls and needs."""

    def __init__(self, calls: Sequence[Call]) -> None:
        """Raises ValueError if two calls have one id, or if a call needs one that is not before it."""
        self._calls = tuple(calls)
        self._place: dict[str, int] = {}
        self._dependents: dict[str, list[str]] = {}
        self._waits_for: dict[str, int] = {}
        self._states: dict[str, State] = {}
        self._outcomes: dict[str, Outcome] = {}
        self._ready: list[tuple[int, int]] = []
        for place, call in enumerate(self._calls):
            self._add(place, call)
        self._chain_lengths = self._count_dependents()
        for call in self._calls:
            if self._states[call.id] is State.READY:
                self._add_ready(call.id)

    def _add(self, place: int, call: Call) -> None:
        if call.id in self._place:
            raise ValueError(f"two calls have the id {call.id!r}")
        needs = dict.fromkeys(call.needs)
        for need in needs:
            if need not in self._place:
                raise ValueError(f"{call.id!r} needs {need!r}, which is not before it")
            self._dependents[need].append(call.id)
        self._place[call.id] = place
        self._dependents[call.id] = []
        self._waits_for[call.id] = len(needs)
        self._states[call.id] = State.BLOCKED if needs else State.READY

    def _count_dependents(self) -> dict[str, int]:
        """For each call the length of the longest chain of calls that wait for it."""
        behind = dict.fromkeys(self._place, 0)
        for call in reversed(self._calls):
            for need in call.needs:
                behind[need] = max(behind[need], behind[call.id] + 1)
        return behind

    def _add_ready(self, call_id: str) -> None:
        heapq.heappush(self._ready, (-self._chain_lengths[call_id], self._place[call_id]))

    @property
    def is_over(self) -> bool:
        return len(self._outcomes) == len(self._calls)

    def state(self, call_id: str) -> State:
        return self._states[call_id]

    def take(self) -> Call | None:
        """Takes the next ready call and marks it as running; None if no call is ready.

        The call with the longest chain of waiting calls comes first, so that long chains start early; otherwise in the
        order of the plan.
        """
        if not self._ready:
            return None
        call = self._calls[heapq.heappop(self._ready)[1]]
        self._states[call.id] = State.RUNNING
        return call

    def end(self, call_id: str, outcome: Outcome) -> list[tuple[Call, str]]:
        """Records how a call ended; returns the calls that are skipped because of it, each with the reason."""
        self._states[call_id] = State.ENDED
        self._outcomes[call_id] = outcome
        if outcome in _SUCCESS:
            for dependent in self._dependents[call_id]:
                self._waits_for[dependent] -= 1
                if self._waits_for[dependent] == 0 and self._states[dependent] is State.BLOCKED:
                    self._states[dependent] = State.READY
                    self._add_ready(dependent)
            return []
        return list(self._skip_below(call_id))

    def _skip_below(self, call_id: str) -> Iterator[tuple[Call, str]]:
        frontier = [call_id]
        while frontier:
            cause = frontier.pop()
            for dependent in self._dependents[cause]:
                if self._states[dependent] is not State.BLOCKED:
                    continue
                self._states[dependent] = State.ENDED
                self._outcomes[dependent] = Outcome.SKIPPED
                frontier.append(dependent)
                yield self._calls[self._place[dependent]], _reason_skipped(cause, self._outcomes[cause])

    def abandon(self) -> list[Call]:
        """Skips every call that has not started, and returns these calls."""
        waiting = [call for call in self._calls if self._states[call.id] in (State.BLOCKED, State.READY)]
        for call in waiting:
            self._states[call.id] = State.ENDED
            self._outcomes[call.id] = Outcome.SKIPPED
        self._ready.clear()
        return waiting


def _reason_skipped(cause: str, outcome: Outcome) -> str:
    return f"it needs {cause}, which {_ENDED[outcome]}"
