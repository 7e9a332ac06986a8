"""How long to wait before the next attempt, when to give up, and the wait itself."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from msgspec import Struct

from reconciler.engine.ports import Failure, Lost, Stop, Transient


class RetryPolicy(Struct, frozen=True):
    """Exponential backoff with full jitter: the n-th wait is uniform between 0 and `base * 2**(n-1)` seconds.

    attempts        number of attempts, including the first
    state_attempts  the same after a 400 that reports the state of another object, which changes within seconds or never
    base            seconds
    cap             longest wait of the backoff in seconds; the platform counts requests per minute
    patience        seconds; a longer Retry-After than this is an error
    lag             seconds after which the effect of a request must show in a list
    settle          seconds for which the platform may not show an object that it made
    """

    attempts: int = 10
    state_attempts: int = 6
    base: float = 0.5
    cap: float = 60.0
    patience: float = 300.0
    lag: float = 1.0
    settle: float = 10.0


READS = RetryPolicy(attempts=5)
"""For lists, at which a user waits: a wrong address must not take minutes to be reported."""

FIRST_CONTACT = RetryPolicy(attempts=3, base=0.3)
"""Until the first response: the address is probably wrong, which is reported within about a second."""

_THROTTLED = 8  # times the base: the request budget refills over a minute, so quick attempts only waste it


def wait_seconds(attempt: int, failure: Failure, fraction: float, policy: RetryPolicy) -> float | None:
    """Seconds to wait after the `attempt`-th attempt failed; None: give up. `fraction`: a random number in [0, 1)."""
    if not isinstance(failure, (Transient, Lost)):
        return None
    if attempt >= (policy.state_attempts if failure.status == 400 else policy.attempts):
        return None
    asked = failure.retry_after if isinstance(failure, Transient) else None
    if asked is not None:
        # Every client gets the same Retry-After: the jitter spreads their next requests.
        return asked + fraction * policy.base if asked <= policy.patience else None
    if failure.status == 429:
        ceiling = _longest_wait(attempt, policy.base * _THROTTLED, policy.cap)
        return ceiling / 2 + fraction * ceiling / 2
    return fraction * _longest_wait(attempt, policy.base, policy.cap)


def _longest_wait(attempt: int, base: float, cap: float) -> float:
    return min(cap, base * 2.0 ** min(attempt - 1, 30))


async def sleep_until_stopped(sleeping: Awaitable[object], stop: Stop) -> bool:
    """Waits for `sleeping`, at most until the run is stopped; whether it was stopped."""
    waits = (asyncio.ensure_future(sleeping), asyncio.ensure_future(stop.wait()))
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for waiting in waits:
            waiting.cancel()
    return stop.is_set()
