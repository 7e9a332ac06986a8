"""What can be wrong with a store, each with the way out. Light: importing this imports no database library."""

from __future__ import annotations

MEMORY = "memory:"  # names a store that lives as long as the run: the owner records alone must do then
_ELSEWHERE = "name another place with RECONCILER_STORE"


class StoreError(Exception):
    """The text names the store, what is wrong and what to do."""


class Damaged(StoreError):
    def __init__(self, place: str, why: str) -> None:
        super().__init__(
            f"{place} is damaged ({why}); move it away, with the -wal and -shm beside it, and run again: objects with "
            "an owner record are recognised on the platform and nothing is created twice; what is lost is the history "
            "and the bindings of kinds that keep no owner record (bot users, event sources), which are then adopted by "
            "name with your consent"
        )


class Foreign(StoreError):
    def __init__(self, place: str, why: str) -> None:
        super().__init__(f"{place} is not a store ({why}), and was left as it is; {_ELSEWHERE}")


class Unavailable(StoreError):
    def __init__(self, place: str, why: str, remedy: str = "make it readable and writable") -> None:
        super().__init__(f"{place} cannot be used ({why}); {remedy}, or {_ELSEWHERE}")


_REMEDIES = {
    "locked": "another process works with it: wait for it to end",
    "readonly": "make the file and its folder writable",
    "read-only": "make the file and its folder writable",
    # what a server says, each with what an administrator can do
    "denied for database": "grant the role CONNECT on the database, and CREATE unless the schema reconciler is there",
    "denied for schema": "grant the role USAGE and CREATE on the schema reconciler",
    "denied for table": "grant the role SELECT, INSERT, UPDATE and DELETE on all tables in the schema reconciler",
    "must be owner of": "let the role that owns the tables open it once",
    "ermission denied": "make the file and its folder writable",
    "unable to open": "make the file and its folder writable",
    "full": "make room on the disk",
    "No space": "make room on the disk",
    "I/O": "make room on the disk, and see whether it is in order",
    "onnection": "see whether the server runs, and whether it lets you in",
}


def explain_unavailable(place: str, why: str) -> Unavailable:
    """With the way out that fits what the database or the system said."""
    for sign, remedy in _REMEDIES.items():
        if sign in why:
            return Unavailable(place, why, remedy)
    return Unavailable(place, why)


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
