"""Trouble on request: faults as data, a request budget, and the log of what was asked. Kept in memory only."""

from __future__ import annotations

import math
import random
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
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
_CREATES = {"/reserved_domains": 432, "/reserved_addrs": 509, "/api_keys": 614} | dict.fromkeys(
    ("/edges/tcp", "/edges/tls", "/edges/https"), 7071
)
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
        self._at_once: int | None = None
        self._creates: dict[str, int] = {}
        self._window = 60.0
        self._times: deque[float] = deque()
        self._running = 0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Around all of a request, its delay included."""
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1

    def create(self, path: str) -> None:
        """One more object of a collection; the caps of single collections know no window."""
        if self._creates.get(path) == 0:
            code = _CREATES.get(path)
            raise replace(refusal.CREATES_OVER_BUDGET, code=code)(path=path)
        if path in self._creates:
            self._creates[path] -= 1

    def spend(self) -> None:
        if self._at_once is not None and self._running > self._at_once:
            raise refusal.TOO_MANY_AT_ONCE(limit=self._at_once)
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
        """Other limits, ValueError for what is none.

        `{"limit": 120, "window": 60, "at_once": 8, "creates": {"/reserved_domains": 3}}`: requests within so many
        seconds, requests at the same time, and objects that may still be made. Null or absent: no limit.
        """
        limit, at_once, window, creates = (raw.get(name) for name in ("limit", "at_once", "window", "creates"))
        window, creates = 60 if window is None else window, creates or {}
        if not (_is_limit(limit) and _is_limit(at_once) and isinstance(window, (int, float))):
            raise ValueError("a budget is a limit and a window of seconds")
        if not (isinstance(creates, dict) and all(isinstance(each, int) for each in creates.values())):
            raise ValueError("creates has a number for each path")
        self.clear()
        self._limit, self._at_once, self._window, self._creates = limit, at_once, float(window), dict(creates)

    def clear(self) -> None:
        self._times.clear()
        self._at_once, self._creates = None, {}


def _is_limit(value: Any) -> bool:
    return value is None or (isinstance(value, int) and value > 0)


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
