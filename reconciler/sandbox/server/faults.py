"""Trouble on request: faults as data, a request budget, and the log of what was asked. Kept in memory only."""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, PrivateAttr

from reconciler.engine.ports import Clock
from reconciler.sandbox.base.database import Document
from reconciler.sandbox.wire import refusal

CUT = "cut"  # the connection is reset, nothing was done
COMMIT_THEN_CUT = "commit-then-cut"  # the connection is reset, everything was done
STATUS = "status"  # this status and body, nothing was done
COMMIT_THEN_STATUS = "commit-then-status"  # this status and body, everything was done
HANG = "hang"  # no answer for as long as the client waits, nothing was done
COMMIT_THEN_HANG = "commit-then-hang"  # no answer for as long as the client waits, everything was done
COMMIT_THEN_TRUNCATE = "commit-then-truncate"  # everything was done, and the answer breaks off in the middle
ANSWER = "answer"  # as without a fault; for its delay or its pace
_UNDONE = (CUT, STATUS, HANG)
_CREATES = {"/reserved_domains": 432, "/reserved_addrs": 509, "/api_keys": 614} | dict.fromkeys(
    ("/edges/tcp", "/edges/tls", "/edges/https"), 7071
)
PIECES = 8  # in which a paced answer is sent
_Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_HeaderName = Annotated[str, Field(pattern=r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")]
_HeaderValue = Annotated[str, Field(pattern=r"^[\t\x20-\x7e\u{a0}-\u{ff}]*$")]


class Fault(BaseModel):
    """
    on       "POST /credentials"; `*` stands for any method, and in the path for anything
    nth      the first of the matching requests that it meets, counted from 1
    times    how many it meets from there on; 0: all
    delay    seconds before anything else happens
    pace     seconds between the pieces in which the answer's body is sent
    chance   how likely it meets a request that it could meet, by the dice of its `seed`
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    on: Annotated[str, Field(pattern=r"^\S+ \S+$")]
    then: Literal[
        "cut",
        "commit-then-cut",
        "status",
        "commit-then-status",
        "hang",
        "commit-then-hang",
        "commit-then-truncate",
        "answer",
    ] = "answer"
    nth: Annotated[int, Field(ge=1)] = 1
    times: Annotated[int, Field(ge=0)] = 1
    status: Annotated[int, Field(ge=200, le=599)] = 503  # what is below is no answer yet
    body: JsonValue = None
    headers: dict[_HeaderName, _HeaderValue] = {}
    delay: _Seconds = 0.0
    pace: _Seconds = 0.0
    chance: Annotated[float, Field(ge=0, le=1)] = 1.0
    seed: int = 0
    _seen: int = 0
    _dice: random.Random = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        self._dice = random.Random(self.seed)  # noqa: S311 - faults are no secret

    @property
    def takes_effect(self) -> bool:
        """Whether what the request asked for takes effect."""
        return self.then not in _UNDONE

    def shown(self) -> dict[str, Any]:
        return {**self.model_dump(), "seen": self._seen}

    def matches(self, method: str, path: str) -> bool:
        """Whether this request has the trouble; counts it if it is one of those that could."""
        wanted, _, pattern = self.on.partition(" ")
        if wanted not in ("*", method) or not fnmatchcase(path, pattern):
            return False
        if self.chance < 1 and self._dice.random() >= self.chance:
            return False
        self._seen += 1
        return self._seen >= self.nth and (self.times == 0 or self._seen < self.nth + self.times)


class Faults:
    def __init__(self) -> None:
        self.all: list[Fault] = []

    def find_fault(self, method: str, path: str) -> Fault | None:
        """The first fault for this request; all that match have counted it."""
        met = [fault for fault in self.all if fault.matches(method, path)]
        return met[0] if met else None


class Limits(BaseModel):
    """
    limit     requests within so many seconds, the `window`
    at_once   requests at the same time
    creates   objects that may still be made, by path

    Null or absent: no limit.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    limit: Annotated[int, Field(ge=1)] | None = None
    window: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    at_once: Annotated[int, Field(ge=1)] | None = None
    creates: dict[str, Annotated[int, Field(ge=0)]] | None = None


class Budget:
    """At most so many requests within any window; those that are refused do not count."""

    def __init__(self, per_minute: int | None, clock: Clock) -> None:
        self._first = Limits(limit=per_minute)
        self._clock = clock
        self._running = 0
        self.clear()

    @contextmanager
    def count_running(self) -> Iterator[None]:
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
        moment = self._clock.now()
        while self._times and self._times[0] <= moment - self._window:
            self._times.popleft()
        if len(self._times) >= self._limit:
            over = refusal.OVER_BUDGET(limit=self._limit)
            over.headers["Retry-After"] = str(math.ceil(self._times[0] + self._window - moment))
            raise over
        self._times.append(moment)

    def set_limits(self, limits: Limits) -> None:
        self._times = deque[float]()
        self._limit, self._at_once, self._window = limits.limit, limits.at_once, limits.window or 60.0
        self._creates = dict(limits.creates or {})

    def clear(self) -> None:
        """As it was in the beginning."""
        self.set_limits(self._first)


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
