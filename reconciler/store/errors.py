"""The errors of a store, each with its remedy. Importing this imports no database library."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.model.problem import ReconcilerError

MEMORY = "memory:"  # a store that ends with the run: then only owner records remain
_ELSEWHERE = "set RECONCILER_STORE to another path or URL"
_WITH_NEW_STORE = (  # what happens without the store
    "objects with an owner record are recognized on the platform and nothing is created twice; lost are the history "
    "and the bindings of kinds without owner records (bot users, event sources), which are then adopted by name with "
    "your approval"
)


class StoreError(ReconcilerError):
    """A store cannot be used: the text says which, why, and what to do."""


class Damaged(StoreError):
    """The content of the store is not valid."""

    def __init__(self, place: str, why: str) -> None:
        super().__init__(
            f"{place} is damaged ({why}); move it away, with its -wal and -shm files, and run again: {_WITH_NEW_STORE}"
        )


class Foreign(StoreError):
    """The file belongs to another program."""

    def __init__(self, place: str, why: str) -> None:
        super().__init__(f"{place} is not a store ({why}) and was not changed; {_ELSEWHERE}")


class Unreleased(StoreError):
    """The store was written by a reconciler from before the first release. It was not changed."""

    def __init__(self, place: str, version: int, oldest: int) -> None:
        super().__init__(
            f"{place} has schema version {version}, written by an unreleased reconciler, and was not changed; releases "
            f"read version {oldest} and later: keep it and use the reconciler that wrote it, or {_ELSEWHERE} and begin "
            f"with a new store: {_WITH_NEW_STORE}"
        )


class Unavailable(StoreError):
    """The store cannot be opened, read or written."""

    def __init__(self, place: str, why: str, remedy: str = "make it readable and writable") -> None:
        super().__init__(f"{place} cannot be used ({why}); {remedy}, or {_ELSEWHERE}")


_REMEDIES = {
    "locked": "another process uses it: wait until it has ended",
    "readonly": "make the file and its folder writable",
    "read-only": "make the file and its folder writable",
    # messages of a server, with what an administrator can do
    "denied for database": "grant the role CONNECT on the database, and CREATE unless the schema reconciler exists",
    "denied for schema": "grant the role USAGE and CREATE on the schema reconciler",
    "denied for table": "grant the role SELECT, INSERT, UPDATE and DELETE on all tables in the schema reconciler",
    "ermission denied": "make the file and its folder writable",
    "unable to open": "make the file and its folder writable",
    "full": "free disk space",
    "No space": "free disk space",
    "I/O": "check the disk and its free space",
    "onnection": "check that the server runs and accepts the connection",
}


def explain_unavailable(place: str, why: str) -> Unavailable:
    """The error with the remedy for a message of the database or the operating system."""
    for sign, remedy in _REMEDIES.items():
        if sign in why:
            return Unavailable(place, why, remedy)
    return Unavailable(place, why)


class Locked(StoreError):
    """Another process holds the lock.

    title  what is locked, such as `stack NAME`
    doing  what the process does with it, such as `applied`
    """

    def __init__(self, title: str, doing: str, host: str, pid: int, since: str, expires_in: float) -> None:
        super().__init__(
            f"{title} is being {doing} by process {pid} on {host} since {since}; wait for it to end "
            f"(if it died, the lock expires by itself within {max(1, round(expires_in))} s)"
        )


class LockLost(StoreError):
    """The lock expired, and another process acquired it. `title`: what was locked, such as `stack NAME`."""

    def __init__(self, title: str) -> None:
        super().__init__(
            f"the lock of {title} expired while this process was suspended, and another run acquired it; "
            "no further call was started; run again"
        )


class AlreadyExists(StoreError):
    """A row with the same key exists already."""


class UnknownRun(StoreError):
    """The store has no run of a fleet with this id."""

    def __init__(self, run: str, place: str) -> None:
        super().__init__(f"{place} has no run {run}; list the runs with `reconciler fleet status`")


class UnknownTask(StoreError):
    """The store has no such task."""

    def __init__(self, task: str, place: str) -> None:
        super().__init__(f"{place} has no task {task}; check that the worker uses the store of the coordinator")


class AmbiguousRun(StoreError):
    """The beginning of a run id matches several runs."""

    def __init__(self, text: str, runs: Sequence[str]) -> None:
        super().__init__(f"{text} may be any of the runs {', '.join(runs)}; give the whole id")
