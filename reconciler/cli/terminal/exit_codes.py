"""What the process answers with when it ends. A stable contract: pipelines branch on these numbers.

`Stop` ends a command early with one of them and a line for the user.
"""

from __future__ import annotations

DONE = 0  # done, or nothing to do
ERROR = 1
CHANGES = 2  # `plan --detailed-exitcode` found changes, `drift` found drift
STALE = 3  # the platform moved since the plan was made
BLOCKED = 4  # a guard or a policy stands in the way
PARTLY = 5  # some calls were carried out, or objects imported, some were not
AUTH = 6  # the platform does not accept the key, or does not let it do this
USAGE = 64  # EX_USAGE of sysexits.h
INTERRUPTED = 130  # 128 + SIGINT, as shells report it

# In the words of the README and the man page.
MEANINGS = {
    DONE: "done, or nothing to do",
    ERROR: "error",
    CHANGES: "there are changes (`plan --detailed-exitcode`), or drift",
    STALE: "the plan is stale: what it touches has moved",
    BLOCKED: "blocked by a guard until it is allowed by name, or by a policy",
    PARTLY: "partly applied, or imported",
    AUTH: "the key is wrong, or may not do this",
    USAGE: "the command line is wrong",
    INTERRUPTED: "interrupted",
}


class Stop(Exception):
    """Ends the command: each line goes to standard error, the code to the shell."""

    def __init__(self, code: int, *lines: str) -> None:
        super().__init__("\n".join(lines))
        self.code = code
        self.lines = lines
