"""Trouble on request: faults as data, a request budget, and the log of what was asked. Kept in memory only."""

from __future__ import annotations

import math
import random
import time
from collections import deque
from dataclasses import dataclass, field, fields
from fnmatch import fnmatchcase
from typing import Any

from reconciler.sandbox import refusal
from reconciler.sandbox.database import Document

CUT = "cut"  # the connection is reset, nothing was done
COMMIT_THEN_CUT = "commit-then-cut"  # the connection is reset, everything was done
STATUS = "status"  # this status and body, nothing was done
COMMIT_THEN_STATUS = "commit-then-status"  # this status and body, everything was done
HANG = "hang"  # no answer for as long as the client waits, nothing was done
COMMIT_THEN_HANG = "commit-then-hang"  # no answer for as long as the client waits, everything was done
COMMIT_THEN_TRUNCATE = "commit-then-truncate"  # everything was done, and the answer breaks off in the middle
ANSWER = "answer"  # as without a fault; for its delay or its pace
_OUTCOMES = (
    CUT,
    COMMIT_THEN_CUT,
    STATUS,
    COMMIT_THEN_STATUS,
    HANG,
    COMMIT_THEN_HANG,
    COMMIT_THEN_TRUNCATE,
    ANSWER,
)
_UNDONE = (CUT, STATUS, HANG)
PIECES = 8  # in which a paced answer is sent


@dataclass
class Fault:
    """
    on       "POST /credentials"; `*` stands for any method, and in the path for anything
    nth      the first of the matching requests that it meets, counted from 1
    times    how many it meets from there on; 0: all
    delay    seconds before anything else happens
    pace     seconds between the pieces in which the answer's body is sent
    chance   how likely it meets a request that it could meet, by the dice of its `seed`
    """

    on: str
    then: str = ANSWER
    nth: int = 1
    times: int = 1
    status: int = 503
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    pace: float = 0.0
    chance: float = 1.0
    seed: int = 0
    seen: int = 0

    def __post_init__(self) -> None:
        self._dice = random.Random(self.seed)  # noqa: S311 - faults are no secret

    @property
    def is_done(self) -> bool:
        """Whether what the request asked for takes effect."""
        return self.then not in _UNDONE

    def shown(self) -> dict[str, Any]:
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @classmethod
    def parse(cls, raw: Any) -> Fault:
        """ValueError for what is not a fault."""
        if not isinstance(raw, dict):
            raise ValueError("a fault is an object")
        unknown = raw.keys() - (cls.__dataclass_fields__.keys() - {"seen"})
        if unknown:
            raise ValueError(f"a fault has no {', '.join(sorted(unknown))}")
        try:
            fault = cls(**raw)
        except TypeError as error:
            raise ValueError("a fault needs `on`") from error
        if fault.then not in _OUTCOMES:
            raise ValueError(f"then is one of {', '.join(_OUTCOMES)}, not {fault.then!r}")
        if " " not in str(fault.on):
            raise ValueError("on is a method and a path")
        return fault

    def meets(self, method: str, path: str) -> bool:
        """Whether this request has the trouble; counts it if it is one of those that could."""
        wanted, _, pattern = self.on.partition(" ")
        if wanted not in ("*", method) or not fnmatchcase(path, pattern):
            return False
        if self.chance < 1 and self._dice.random() >= self.chance:
            return False
        self.seen += 1
        return self.seen >= self.nth and (self.times == 0 or self.seen < self.nth + self.times)


class Faults:
    def __init__(self) -> None:
        self.all: list[Fault] = []

    def met(self, method: str, path: str) -> Fault | None:
        """The first fault for this request; all that match have counted it."""
        met = [fault for fault in self.all if fault.meets(method, path)]
        return met[0] if met else None


class Budget:
    """At most so many requests within any window; those that are refused do not count."""

    def __init__(self, per_minute: int | None) -> None:
        self._limit = per_minute
        self._window = 60.0
        self._times: deque[float] = deque()

    def spend(self) -> None:
        if self._limit is None:
            return
        moment = time.monotonic()
        while self._times and self._times[0] <= moment - self._window:
            self._times.popleft()
        if len(self._times) >= self._limit:
            over = refusal.OVER_BUDGET(limit=self._limit)
            over.headers["Retry-After"] = str(math.ceil(self._times[0] + self._window - moment))
            raise over
        self._times.append(moment)

    def become(self, raw: Any) -> None:
        """`{"limit": 120, "window": 60}`: another limit (null: none), and seconds; ValueError for what is neither."""
        limit, window = raw.get("limit"), raw.get("window", 60)
        if not (limit is None or (isinstance(limit, int) and limit > 0)) or not isinstance(window, (int, float)):
            raise ValueError("a budget is a limit and a window of seconds")
        self._limit, self._window = limit, float(window)
        self.clear()

    def clear(self) -> None:
        self._times.clear()


class Log:
    """What was asked, in order. `status` is 0 where the connection was cut."""

    def __init__(self) -> None:
        self._entries: deque[Document] = deque(maxlen=200_000)  # so that a day of benchmarks does not fill the memory
        self._sequence = 0

    def write(self, method: str, path: str, status: int) -> None:
        self._sequence += 1
        self._entries.append({"sequence": self._sequence, "method": method, "path": path, "status": status})

    def since(self, sequence: int) -> list[Document]:
        return [entry for entry in self._entries if entry["sequence"] > sequence]

    def clear(self) -> None:
        self._entries.clear()
