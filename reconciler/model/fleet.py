"""A fleet: many accounts that get the same projects. Its file and the records of its runs, as immutable data."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from fnmatch import fnmatchcase

from msgspec import Struct, field

from reconciler.model.history import CheckedHealth
from reconciler.model.problem import Position, Problem
from reconciler.model.value import Json

TEMPLATE = re.compile(r"\$\{\{\s*member\.(name|labels\.([A-Za-z0-9_.-]+))\s*\}\}")
_NO_VARIABLE = re.compile(r"[^A-Z0-9]")

NAME = "name"
"""In a selector: globs of member names. Every other key is a label."""

Selector = Mapping[str, tuple[str, ...]]
"""Label → accepted values; all labels must match. An empty selector matches every member."""


class Member(Struct, frozen=True):
    """One account of a fleet.

    variables  values of `${{ var.NAME }}` in the projects that it gets
    """

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, Json] = field(default_factory=dict)
    position: Position | None = None

    def matches(self, selector: Selector) -> bool:
        """Whether the selector selects this member."""
        return all(
            any(fnmatchcase(self.name, glob) for glob in accepted)
            if label == NAME
            else self.labels.get(label) in accepted
            for label, accepted in selector.items()
        )


class KeyMethod(StrEnum):
    """Where a worker finds a member's API key."""

    ENV = "from_env"  # a variable of the worker's environment
    FILE = "from_file"  # a file on the worker
    VAULT = "from_vault"  # a field of a secret in Vault, with the worker's VAULT_ADDR and token


class KeySource(Struct, frozen=True):
    """Where the API key of a member is found, on the worker that runs its tasks.

    text   name of the variable, path of the file, or path of the secret; may contain `${{ member.name }}` and
           `${{ member.labels.NAME }}`
    mount  of the KV engine in Vault
    field  of the secret in Vault
    """

    method: KeyMethod
    text: str
    mount: str = "secret"
    field: str = ""

    def locate(self, member: Member) -> str:
        """The text for one member; a label that it lacks is empty. What is inserted into the name of a variable gets
        upper-case letters, and `_` for other characters than letters and digits."""

        def fill(match: re.Match[str]) -> str:
            value = member.name if match[1] == "name" else member.labels.get(match[2], "")
            return _NO_VARIABLE.sub("_", value.upper()) if self.method is KeyMethod.ENV else value

        return TEMPLATE.sub(fill, self.text)


class FleetProject(Struct, frozen=True):
    """A project that members get.

    path         of the project's folder, relative to the folder of the fleet file
    after        projects of the same member that must have succeeded before
    environment  of the project; None: without an environment
    """

    name: str
    path: str
    after: tuple[str, ...] = ()
    select: Selector = field(default_factory=dict)
    environment: str | None = None


class Amount(Struct, frozen=True):
    """A number of members, or a percentage of them."""

    number: int
    is_percent: bool = False

    def of(self, total: int) -> int:
        """The number of members; a percentage is rounded down."""
        return self.number * total // 100 if self.is_percent else self.number

    def __str__(self) -> str:
        return f"{self.number}%" if self.is_percent else str(self.number)


class Wave(Struct, frozen=True):
    """A part of a fleet that is applied before the next part.

    select             members of earlier waves are left out
    percent            of the members that `select` matches, at least one; None: all
    max_failures       failed members after which the run starts no further member
    min_success_time   seconds between the end of this wave and the start of the next
    progress_deadline  seconds after which a member that has not finished counts as failed; None: no limit
    approve            whether a person must approve the start of the wave
    """

    name: str
    select: Selector = field(default_factory=dict)
    percent: int | None = None
    max_failures: Amount = Amount(0)
    min_success_time: float = 0.0
    progress_deadline: float | None = None
    approve: bool = False


class WorkerRule(Struct, frozen=True):
    """Members whose tasks need a Dask resource, such as `keys-eu`: only workers that have it run them."""

    select: Selector
    needs: str


class FleetGuards(Struct, frozen=True):
    """What one apply may do without `--allow`.

    max_changed  members with changes
    max_deletes  deleted objects in all members
    """

    max_changed: Amount | None = None
    max_deletes: int | None = None


class Fleet(Struct, frozen=True):
    """A fleet file. `waves` ends with a wave that takes every member that is left.

    members_at_once  tasks at a time in one process
    start_spread     seconds over which the first starts of a wave are spread
    store            path below the folder of the fleet file, or URL; None: `state/fleet.db`
    """

    name: str
    members: Mapping[str, Member]
    projects: Mapping[str, FleetProject]
    api_key: KeySource
    waves: tuple[Wave, ...] = (Wave("all"),)
    guards: FleetGuards = FleetGuards()
    workers: tuple[WorkerRule, ...] = ()
    members_at_once: int = 16
    start_spread: float = 0.0
    store: str | None = None
    warnings: tuple[Problem, ...] = ()

    def resource_of(self, member: Member) -> str:
        """The Dask resource that tasks of the member need; empty: none."""
        return next((rule.needs for rule in self.workers if member.matches(rule.select)), "")


# --- runs -------------------------------------------------------------------------------------------------------------


class RunVerb(StrEnum):
    """What a run does with each member."""

    PLAN = "plan"
    APPLY = "apply"
    DRIFT = "drift"


class RunState(StrEnum):
    """The state of a run."""

    OPEN = "open"  # its coordinator works, or was stopped and can resume it
    SUCCEEDED = "succeeded"  # every task ended, and no more failed than allowed
    FAILED = "failed"  # a wave had more failures than allowed: no further member was started


class TaskState(StrEnum):
    """The state of a task."""

    WAITING = "waiting"
    RUNNING = "running"  # or its worker died
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STALE = "stale"  # the account or the manifests changed since the plan that was approved: nothing was sent
    BLOCKED = "blocked"  # its shape is not approved, or a policy forbids it: nothing was sent
    SKIPPED = "skipped"  # never started: the run ended before, or a project that it comes after failed

    @property
    def is_final(self) -> bool:
        return self not in (TaskState.WAITING, TaskState.RUNNING)


class Task(Struct, frozen=True):
    """What travels to a worker: names and digests only.

    source  the folder of the repository, or a Git URL
    file    the fleet file, relative to the source
    commit  empty: the files as they are
    needs   Dask resource; empty: none
    health  of a drift check: also judge whether the objects work
    """

    run: str
    fleet: str
    member: str
    project: str
    verb: RunVerb
    source: str
    file: str
    commit: str = ""
    needs: str = ""
    health: bool = False

    @property
    def key(self) -> str:
        """Names the task in schedulers, leases and logs."""
        return f"{self.run}/{self.member}/{self.project}"


class TaskRecord(Struct, frozen=True):
    """A task as the store knows it.

    wave         place of the wave among those of the run
    attempts     workers that started it
    worker       host and process of the last
    exit_code    as of the same command for one project; None: not ended
    counts       changes by action
    changes      address → digest of the change that was planned; of an apply: was applied
    shape        digest of the shape of its plan; empty: none
    reason       why it did not succeed, in one line without secrets
    seconds      of the last attempt
    requests     sent by all attempts
    started      seconds since 1970
    ended        seconds since 1970
    health       of a drift check that judged it: the objects that are not healthy; None: unknown
    alive        last heartbeat of its last worker, seconds since 1970
    """

    run: str
    member: str
    project: str
    wave: int = 0
    state: TaskState = TaskState.WAITING
    attempts: int = 0
    worker: str = ""
    exit_code: int | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    changes: Mapping[str, str] = field(default_factory=dict)
    shape: str = ""
    reason: str = ""
    seconds: float = 0.0
    requests: int = 0
    started: float | None = None
    ended: float | None = None
    health: CheckedHealth | None = None
    alive: float | None = None

    @property
    def key(self) -> str:
        """As of the task."""
        return f"{self.run}/{self.member}/{self.project}"


class Run(Struct, frozen=True):
    """A run over a fleet.

    reviewed         of an apply: the run whose plans were approved
    approved_shapes  digests; of an apply
    approved_waves   names of waves that a person approved
    actor            who started it, as the CI system names the person
    reason           why it failed
    waves            of an apply: the waves of the fleet file when the run was started
    health           of a drift check: whether it judges health
    """

    id: str
    fleet: str
    verb: RunVerb
    source: str
    file: str
    commit: str
    created: float
    state: RunState = RunState.OPEN
    ended: float | None = None
    reviewed: str = ""
    approved_shapes: tuple[str, ...] = ()
    approved_waves: tuple[str, ...] = ()
    actor: str = ""
    reason: str = ""
    waves: tuple[Wave, ...] = ()
    health: bool = False

    def wave_at(self, place: int) -> Wave:
        """The wave of a task, by its place."""
        return self.waves[place] if self.waves else Wave("all")


class Shape(Struct, frozen=True):
    """Plans that differ only in values of their members' variables, represented by one of them.

    plan      the exemplar, as the text of a plan file: no secrets
    """

    digest: str
    member: str
    project: str
    plan: str


class Pause(Struct, frozen=True):
    """A pause of a fleet: no task starts. `until`: seconds since 1970; None: until it is resumed."""

    fleet: str
    since: float
    until: float | None = None
    reason: str = ""
    actor: str = ""
