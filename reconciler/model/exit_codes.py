"""The exit codes of commands. They are stable: pipelines branch on them."""

DONE = 0  # succeeded, or nothing to do
ERROR = 1
CHANGES = 2  # `plan --detailed-exitcode` found changes, `drift` found drift, `status` something that is not settled
STALE = 3  # objects of the plan changed on the platform after it was created, or a change was not reviewed
BLOCKED = 4  # blocked by a guard or a policy
PARTLY = 5  # some calls or imports succeeded, others did not
AUTH = 6  # the API key is invalid, or lacks a permission
DEGRADED = 7  # something is degraded: an object, what was applied, or a DNS record
USAGE = 64  # EX_USAGE of sysexits.h
INTERRUPTED = 130  # 128 + SIGINT, as shells report it

# In the words of the README and the man page.
MEANINGS = {
    DONE: "success, or nothing to do",
    ERROR: "error",
    CHANGES: "changes found (`plan --detailed-exitcode`), drift, or a stack that is not settled (`status`)",
    STALE: "the plan is stale: its objects changed on the platform after it was created, or it was not reviewed",
    BLOCKED: "blocked by a guard (approve with `--allow`), or by a policy",
    PARTLY: "partly applied or imported",
    AUTH: "the API key is invalid, or lacks a permission",
    DEGRADED: (
        "something is degraded: what was applied (`apply --wait`), an object (`status`, `drift --health`), or DNS "
        "(`dns --verify`)"
    ),
    USAGE: "invalid command line",
    INTERRUPTED: "interrupted",
}
