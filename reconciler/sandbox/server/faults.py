"""Injected faults, the request budget, and the request log of the sandbox. All are kept in memory only."""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal

from msgspec.structs import replace
from pydantic import BaseModel, ConfigDict, Field, JsonValue, PrivateAttr

from reconciler.engine.ports import Clock
from reconciler.sandbox.base.database import Document
from reconciler.sandbox.wire import refusal

# The effects of a fault. With `commit-then-` the request is executed first, otherwise not.
CUT = "cut"  # resets the connection
COMMIT_THEN_CUT = "commit-then-cut"
STATUS = "status"  # returns the fault's status and body
COMMIT_THEN_STATUS = "commit-then-status"
HANG = "hang"  # returns no response while the client waits
COMMIT_THEN_HANG = "commit-then-hang"
COMMIT_THEN_TRUNCATE = "commit-then-truncate"  # sends half of the response
ANSWER = "answer"  # executes and answers the request; for a delay or a pace alone
_UNDONE = (CUT, STATUS, HANG)
_CREATES = {"/reserved_domains": 432, "/reserved_addrs": 509, "/api_keys": 614} | dict.fromkeys(
    ("/edges/tcp", "/edges/tls", "/edges/https"), 7071
)
PIECES = 8  # of a response that is sent with a pace
_Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_HeaderName = Annotated[str, Field(pattern=r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")]
_HeaderValue = Annotated[str, Field(pattern=r"^[\t\x20-\x7e\u{a0}-\u{ff}]*$")]


class Fault(BaseModel):
    """An injected fault.

    on       method and path, such as "POST /credentials"; `*` matches any method, and any part of a path
    nth      the first matching request that is affected, counted from 1
    times    the number of requests that are affected from there on; 0: all
    delay    seconds before anything else happens
    pace     seconds between the pieces in which the body of the response is sent
    hide     seconds for which an object that the request creates is neither listed nor returned by GET
    chance   the probability that a matching request is affected
    seed     of the random numbers for `chance`
    account  the account whose requests match; None: all accounts
    agent    whether the requests are those of the agent's API instead of the platform's
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
    status: Annotated[int, Field(ge=200, le=599)] = 503  # lower ones are not final responses
    body: JsonValue = None
    headers: dict[_HeaderName, _HeaderValue] = {}
    delay: _Seconds = 0.0
    pace: _Seconds = 0.0
    hide: _Seconds = 0.0
    chance: Annotated[float, Field(ge=0, le=1)] = 1.0
    seed: int = 0
    account: str | None = None
    agent: bool = False
    _seen: int = 0
    _random: random.Random = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        self._random = random.Random(self.seed)  # noqa: S311 - no cryptographic use

    @property
    def takes_effect(self) -> bool:
        """Whether the request is executed."""
        return self.then not in _UNDONE

    def to_json(self) -> dict[str, Any]:
        omitted = {name for name in ("account", "agent") if not getattr(self, name)}
        return {**self.model_dump(exclude=omitted), "seen": self._seen}

    def matches(self, method: str, path: str, account: str = "", *, agent: bool = False) -> bool:
        """Whether the fault affects this request; counts the request if it matches."""
        if self.agent is not agent:
            return False
        expected, _, pattern = self.on.partition(" ")
        if expected not in ("*", method) or not fnmatchcase(path, pattern):
            return False
        if self.account not in (None, account):
            return False
        if self.chance < 1 and self._random.random() >= self.chance:
            return False
        self._seen += 1
        return self._seen >= self.nth and (self.times == 0 or self._seen < self.nth + self.times)


class Faults:
    """The faults of a sandbox, in the order in which they were added."""

    def __init__(self) -> None:
        self.all: list[Fault] = []

    def find_fault(self, method: str, path: str, account: str = "", *, agent: bool = False) -> Fault | None:
        """The first fault that affects this request, or None. Every fault that matches counts the request."""
        faults = [fault for fault in self.all if fault.matches(method, path, account, agent=agent)]
        return faults[0] if faults else None


class HiddenObjects:
    """New objects that reads do not show yet, as of a platform whose replicas lag behind."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until: dict[tuple[str, str], float] = {}  # account and id

    def hide(self, account: str, id: str, seconds: float) -> None:
        self._until[account, id] = self._clock.now() + seconds

    def is_hidden(self, account: str, id: object) -> bool:
        return isinstance(id, str) and self._until.get((account, id), 0.0) > self._clock.now()

    def without_hidden(self, account: str, body: Document, lists: Iterable[str]) -> Document:
        """The body of a response without the hidden objects in its `lists` of children."""
        if not self._until:
            return body
        visible = {
            name: [item for item in body[name] if not self.is_hidden(account, item.get("id"))]
            for name in lists
            if isinstance(body.get(name), list) and all(isinstance(item, dict) for item in body[name])
        }
        return {**body, **visible}

    def clear(self) -> None:
        self._until.clear()


class Limits(BaseModel):
    """The limits of a budget; null or omitted: no limit.

    limit     requests within `window` seconds
    window    seconds; 60 if omitted
    at_once   concurrent requests
    creates   objects that can still be created, by path
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    limit: Annotated[int, Field(ge=1)] | None = None
    window: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    at_once: Annotated[int, Field(ge=1)] | None = None
    creates: dict[str, Annotated[int, Field(ge=0)]] | None = None


class Budget:
    """Enforces the limits of one account on requests in a window, concurrent requests and creates.

    Rejected requests do not count.
    """

    def __init__(self, limits: Limits, clock: Clock) -> None:
        self._clock = clock
        self._running = 0
        self.set_limits(limits)

    @contextmanager
    def count_running(self) -> Iterator[None]:
        """Counts a request as concurrent inside the block, including its delay."""
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1

    def create(self, path: str) -> None:
        """Counts the create of an object in a collection. Raises Refusal over the limit."""
        if self._creates.get(path) == 0:
            code = _CREATES.get(path)
            raise replace(refusal.CREATES_OVER_BUDGET, code=code)(path=path)
        if path in self._creates:
            self._creates[path] -= 1

    def spend(self) -> None:
        """Counts a request. Raises Refusal over the limit, with the header Retry-After where waiting helps."""
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


class Budgets:
    """The budget of each account, created at its first request. All begin with the same limits."""

    def __init__(self, per_minute: int | None, clock: Clock) -> None:
        self._first = self._limits = Limits(limit=per_minute)
        self._clock = clock
        self._of: dict[str, Budget] = {}

    def find(self, account: str) -> Budget:
        if account not in self._of:
            self._of[account] = Budget(self._limits, self._clock)
        return self._of[account]

    def set_limits(self, limits: Limits, account: str | None = None) -> None:
        """Sets the limits of an account; None: of each account."""
        if account is not None:
            self.find(account).set_limits(limits)
            return
        self._limits = limits
        for budget in self._of.values():
            budget.set_limits(limits)

    def clear(self) -> None:
        """Restores the initial limits."""
        self.set_limits(self._first)


class Log:
    """The log of requests, in order. `status` is 0 if there was no response."""

    def __init__(self) -> None:
        self._entries: deque[Document] = deque(maxlen=200_000)  # bounds the memory of long benchmarks
        self._sequence = 0

    def write(self, method: str, path: str, status: int, account: str = "") -> None:
        """Adds an entry, with the field `account` unless the request is of the first account."""
        self._sequence += 1
        entry = {"sequence": self._sequence, "method": method, "path": path, "status": status}
        self._entries.append({**entry, "account": account} if account else entry)

    def since(self, sequence: int, account: str | None = None) -> list[Document]:
        """The entries after a sequence number, of one account or of all."""
        entries = [entry for entry in self._entries if entry["sequence"] > sequence]
        return [entry for entry in entries if account is None or entry.get("account", "") == account]

    def clear(self) -> None:
        self._entries.clear()
