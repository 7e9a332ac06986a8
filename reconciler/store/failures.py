"""What can be wrong with a store, each with the way out. Light: importing this imports no database library."""

from __future__ import annotations


class StoreError(Exception):
    """The text names the store, what is wrong and what to do."""


class Damaged(StoreError):
    def __init__(self, place: str, why: str) -> None:
        super().__init__(
            f"{place} is damaged ({why}); move it away and run again: objects with an owner record are recognised on "
            "the platform and nothing is created twice; what is lost is the history and the bindings of kinds that "
            "keep no owner record (bot users, event sources), which are then adopted by name with your consent"
        )


class Unavailable(StoreError):
    def __init__(self, place: str, why: str) -> None:
        super().__init__(
            f"{place} cannot be used ({why}); make room or make it writable, "
            "or name another place with RECONCILER_STORE"
        )


class Locked(StoreError):
    """Another run is at work on the stack."""

    def __init__(self, stack: str, host: str, pid: int, since: str, expires_in: float) -> None:
        super().__init__(
            f"stack {stack} is being applied by process {pid} on {host} since {since}; wait for it to end "
            f"(if it died, the lock expires by itself within {max(1, round(expires_in))} s)"
        )


class LockLost(StoreError):
    def __init__(self, stack: str) -> None:
        super().__init__(
            f"the lock of stack {stack} expired while this process was asleep, and another run took it; "
            "nothing more was started; run again"
        )
