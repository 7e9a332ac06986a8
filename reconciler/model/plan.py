"""`Plan` and its calls, approvals and preconditions, as immutable data that leaves no decisions to the engine."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct, field

from reconciler.model.access_change import AccessChange, Verdict
from reconciler.model.access_test import AccessResult, AccessStatus
from reconciler.model.address import Address
from reconciler.model.change import Change
from reconciler.model.health import HealthRow, State
from reconciler.model.known_drift import IgnoredDifference
from reconciler.model.manifest import Delivery
from reconciler.model.problem import Problem, Severity
from reconciler.model.rule_change import RuleChange
from reconciler.model.snapshot import Binding
from reconciler.model.value import Json, Template, Value

VERSION = 3  # of the JSON form of plans; increased with every incompatible change


class Verb(StrEnum):
    CREATE = "create"  # POST on the collection
    UPDATE = "update"  # PATCH on the object, or PUT of the whole object
    DELETE = "delete"  # DELETE on the object
    PUT = "put module"
    REMOVE = "remove module"  # DELETE on the module's path

    @property
    def method(self) -> str:
        return {"create": "POST", "update": "PATCH", "put module": "PUT"}.get(self.value, "DELETE")


def create_id(address: Address) -> str:
    """The id of the call that creates the object of an address: a plan has at most one."""
    return f"create {address}"


class OwnerDraft(Struct, frozen=True):
    """The owner record that a call will write. The engine adds the intent, resolves references and computes digests.

    intent    that of the live object; None: a new one
    applied   canonical values of the fields that differ from their default; may contain references
    """

    address: Address
    text: Value = ""
    intent: str | None = None
    applied: Mapping[str, Value] = field(default_factory=dict)
    protect: bool = False
    pending: bool = False
    replaces: str | None = None
    adopted: bool = False  # of a binding: the object was adopted without approval
    sources: Mapping[str, str] = field(default_factory=dict)  # as of an owner record


class Call(Struct, frozen=True):
    """One API request, complete except for references that earlier calls resolve."""

    id: str  # "create TLSEdge/payments", unique in the plan
    address: Address
    verb: Verb
    path: str | Template  # relative to the base address
    target: str | None = None  # id of the live object it acts on; None for a create
    body: Mapping[str, Value] | None = None
    needs: tuple[str, ...] = ()  # calls that must have succeeded
    owner: OwnerDraft | None = None
    deliver: Mapping[str, Delivery] = field(default_factory=dict)
    overwrites: bool = False  # the target's content was delivered by this stack, or an approval covers it
    unbinds: bool = True  # of a delete: the store removes the binding; False if another object has the address now
    is_whole: bool = False  # of an update: the body has the whole object, for APIs that do not update parts

    @property
    def method(self) -> str:
        return "PUT" if self.is_whole else self.verb.method


class Observed(Struct, frozen=True):
    """A live object at the time of the plan: the canonical value of each field, a digest for sensitive fields."""

    id: str
    fields: Mapping[str, Json]
    owner: str = ""
    """The owner: "prod TLSEdge/payments", followed by ", protected" if protected; empty: unmanaged. For an object
    without an owner record, the stack of its parent."""


class AssumedSecret(Struct, frozen=True):
    """A sensitive value that was not read and is assumed to be the one last applied.

    path     `oidc.client_secret`, or of a place inside a document
    source   `env:NAME` or `file:path`
    salt     of the digest
    """

    address: Address
    path: str
    source: str
    salt: str
    digest: str


class ApprovalItem(Struct, frozen=True):
    """One object that an approval is about.

    subject  `Kind/name`, or `Kind/id` if it is not declared; an entry point, such as `https://shop.example.com/admin…`;
             `*` stands for all that a guard over the plan is about
    id       of the live object; empty if there is none yet
    digest   of what will happen to it: another change needs another approval. Time and commit are not part of it
    """

    subject: str
    id: str
    digest: str


class Approval(Struct, frozen=True):
    """A required approval, granted with `--allow delete:ReservedDomain=1`."""

    what: str  # "delete", "delete-protected", "update", "create", "adopt", "overwrite", "empty", "account", or a risk
    kind: str  # a kind, the address of the only object, "*" for a guard over all kinds, or a rule that a branch loosens
    count: int
    why: str
    granted: bool = False
    parts: int = 0  # how many of `count` are children that are deleted with their parent
    is_optional: bool = False  # without it, the rest of the plan is still applied
    items: tuple[ApprovalItem, ...] = ()  # empty: it can be granted with `--allow` only
    is_pending: bool = False  # the plan of the base needs it too: it is not for the reviewed commits

    @property
    def is_of_access(self) -> bool:
        """Whether the items are entry points, which are no objects."""
        return self.kind == "*" and self.what in _ACCESS_RISKS

    @property
    def flag(self) -> str:
        return f"--allow {self.what}:{self.kind}={self.count}"


_ACCESS_RISKS = frozenset(str(verdict.risk) for verdict in Verdict if verdict.risk is not None)


class Users(Struct, frozen=True):
    """The declared resources that use one that a plan changes, directly or through others.

    nearest  the first of them, the nearest first
    number   of all; 1001 stands for more than 1,000
    """

    nearest: tuple[Address, ...]
    number: int


class Forecast(Struct, frozen=True):
    """The number of API calls of an apply, and the estimated seconds at the request budget (0 without a budget)."""

    calls: int
    estimated_seconds: float


class Base(Struct, frozen=True):
    """The commit whose plan for the same snapshot tells which changes of a plan are new.

    ref, commit  as the user named it, and the id of the commit
    behind       commits of the base that the planned manifests do not contain; if there are any, nothing is attributed
    problems     why there is no plan of the base; if there are any, nothing is attributed
    withdrawn    changes that the base plans, and that the planned manifests make unnecessary
    """

    ref: str
    commit: str
    behind: int = 0
    problems: tuple[Problem, ...] = ()
    withdrawn: tuple[Change, ...] = ()

    @property
    def is_comparable(self) -> bool:
        """Whether the changes of the plan are attributed."""
        return not self.behind and not self.problems


class Request(Struct, frozen=True):
    """The pull or merge request whose pipeline created a plan, as the code host described it.

    repository  OWNER/NAME at GitHub, the number of the project at GitLab
    base        name of the branch that it is to be merged into
    head        id of its last commit
    """

    repository: str
    number: int
    base: str
    head: str


class Plan(Struct, frozen=True):
    """All changes and calls of an apply, in a safe order, and the problems and missing approvals that block it."""

    stack: str
    rule_changes: tuple[RuleChange, ...] = ()  # of the branch, compared with its base
    access: tuple[AccessChange, ...] = ()  # the entry points whose users change, the gravest first
    changes: tuple[Change, ...] = ()  # deletions first
    calls: tuple[Call, ...] = ()  # in an order that satisfies every `needs`
    problems: tuple[Problem, ...] = ()
    approvals: tuple[Approval, ...] = ()
    observed: Mapping[Address, Observed] = field(default_factory=dict)
    resolved: Mapping[str, Json] = field(default_factory=dict)  # values of "Kind/name.output" that calls refer to
    bindings: Mapping[Address, Binding | None] = field(default_factory=dict)  # to store; None: to remove
    additions: tuple[Change, ...] = ()  # undeclared children of managed objects that no call deletes
    unmanaged: tuple[tuple[str, str], ...] = ()  # (kind, id) of live objects that no stack manages
    elsewhere: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    """By stack: objects of other stacks that carry no owner record, as (kind, id)."""
    ignored: tuple[IgnoredDifference, ...] = ()  # known drift; not part of changes and additions
    account: str = ""  # the account: base address, and the account's name if the project has one
    targets: tuple[str, ...] = ()  # globs; other resources were not planned
    excludes: tuple[str, ...] = ()
    manifest_digest: str = ""
    declared: int = 0  # resources in the manifests
    judged: Mapping[str, str] = field(default_factory=dict)  # the policies that were evaluated, and a digest of each
    unread: tuple[str, ...] = ()  # the sources of secrets that were not read, such as `env:NAME`
    assumed: tuple[AssumedSecret, ...] = ()
    access_tests: tuple[AccessResult, ...] = ()
    health: tuple[HealthRow, ...] | None = None  # of the stack's objects, in drift; None: it was not judged
    commit: str = ""
    created: float = 0.0  # time of creation, seconds since 1970; distinguishes plans with the same content
    snapshot_time: float = 0.0  # time of the snapshot file, seconds since 1970; 0: planned from the account
    forecast: Forecast = Forecast(0, 0.0)
    base: Base | None = None  # the commit that the plan was compared with
    names: Mapping[str, str] = field(default_factory=dict)
    """By id: what people call the objects whose ids are in values of changes, such as `IPPolicy/office`."""
    users: Mapping[Address, Users] = field(default_factory=dict)  # of resources that are updated, replaced or deleted
    environment: str = ""  # the environment of the project, if one was selected
    request: Request | None = None  # that of the pipeline in which the plan was created
    version: int = VERSION

    @property
    def is_empty(self) -> bool:
        return not self.changes

    @property
    def has_drift(self) -> bool:
        """Of drift: whether Git alone is not proven to have caused all differences, or an access test fails."""
        return bool(self.additions or self.failed_tests) or any(not change.is_pending for change in self.changes)

    @property
    def failed_tests(self) -> tuple[AccessResult, ...]:
        """The access tests that fail, without those that only warn."""
        return tuple(
            result
            for result in self.access_tests
            if result.status is AccessStatus.FAILED and result.severity is Severity.ERROR
        )

    @property
    def has_pending(self) -> bool:
        """Whether Git has changes that were not applied yet."""
        return any(change.is_pending for change in self.changes)

    @property
    def is_degraded(self) -> bool:
        """Whether an object is known not to work."""
        return any(row.health.state is State.DEGRADED for row in self.health or ())

    @property
    def errors(self) -> tuple[Problem, ...]:
        return tuple(problem for problem in self.problems if problem.is_error)

    @property
    def blocking_errors(self) -> tuple[Problem, ...]:
        """The errors that block the whole plan."""
        return tuple(problem for problem in self.errors if not problem.confined)

    @property
    def confined_errors(self) -> tuple[Problem, ...]:
        """The errors that block only their own subjects; the rest of the plan is applied."""
        return tuple(problem for problem in self.errors if problem.confined)

    @property
    def missing_approvals(self) -> tuple[Approval, ...]:
        return tuple(approval for approval in self.approvals if not (approval.granted or approval.is_optional))

    @property
    def missing_optional_approvals(self) -> tuple[Approval, ...]:
        """The optional approvals that are not granted; the rest of the plan does not wait for them."""
        return tuple(approval for approval in self.approvals if approval.is_optional and not approval.granted)
