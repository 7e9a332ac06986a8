"""The exit codes of the process, and `Stop`, which ends a command with one of them and a message."""

from reconciler.model.exit_codes import (
    AUTH,
    BLOCKED,
    CHANGES,
    DEGRADED,
    DONE,
    ERROR,
    INTERRUPTED,
    MEANINGS,
    PARTLY,
    STALE,
    USAGE,
)

__all__ = [
    "AUTH",
    "BLOCKED",
    "CHANGES",
    "DEGRADED",
    "DONE",
    "ERROR",
    "INTERRUPTED",
    "MEANINGS",
    "PARTLY",
    "STALE",
    "USAGE",
    "Stop",
]


class Stop(Exception):
    """Ends the command with an exit code, after each of the lines is printed on standard error."""

    def __init__(self, code: int, *lines: str) -> None:
        super().__init__("\n".join(lines))
        self.code = code
        self.lines = lines
