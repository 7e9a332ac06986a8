"""A plan: frozen data that leaves no choice to whoever carries it out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from reconciler.model.address import Address
from reconciler.model.change import Change
from reconciler.model.known_drift import IgnoredDifference
from reconciler.model.manifest import Delivery
from reconciler.model.problem import Problem
from reconciler.model.snapshot import Binding
from reconciler.model.value import Json, Template, Value

VERSION = 3  # of the plan's JSON form; raised with every change a reader would notice


class Verb(StrEnum):
    CREATE = "create"  # POST on the collection
    UPDATE = "update"  # PATCH on the object
    DELETE = "delete"  # DELETE on the object
    PUT = "put module"
    REMOVE = "remove module"  # DELETE on the module's path

    @property
    def method(self) -> str:
        return {"create": "POST", "update": "PATCH", "put module": "PUT"}.get(self.value, "DELETE")


def create_id(address: Address) -> str:
    """The id of the call that creates the object of an address: a plan has at most one."""
    return f"create {address}"


@dataclass(frozen=True, slots=True)
class OwnerDraft:
    """The owner record a call will write; the engine adds the intent and digests what is known by then.

    intent    kept from the live object, or None: a new one
    applied   canonical values of the fields that differ from their default; may hold references
    """

    address: Address
    text: Value = ""
    intent: str | None = None
    applied: Mapping[str, Value] = field(default_factory=dict)
    protect: bool = False
    pending: bool = False
    replaces: str | None = None


@dataclass(frozen=True)
class Call:
    """One API request, exact but for references that earlier calls resolve."""

    id: str  # "create TLSEdge/payments", unique in the plan
    address: Address
    verb: Verb
    path: str | Template  # relative to the base address
    target: str | None = None  # id of the live object it acts on; None for a create
    body: Mapping[str, Value] | None = None
    needs: tuple[str, ...] = ()  # calls that must have succeeded
    owner: OwnerDraft | None = None
    deliver: Mapping[str, Delivery] = field(default_factory=dict)
    overwrites: bool = False  # what is at a delivery's target is ours, or a consent of the plan is about it
    unbinds: bool = True  # of a delete: the store may forget the address; False where another object has it now

    @property
    def method(self) -> str:
        return self.verb.method


@dataclass(frozen=True, slots=True)
class Observed:
    """A live object as the plan saw it: canonical value (sensitive: digest) per field."""

    id: str
    fields: Mapping[str, Json]
    owner: str = ""
    """Whose it was: "prod TLSEdge/payments", with ", protected" if it was; empty: nobody's. Of an object without an
    owner record the stack of its parent."""


@dataclass(frozen=True, slots=True)
class Approval:
    """Something the user must allow by name: `--allow delete:ReservedDomain=1`."""

    what: str  # "delete", "delete-protected", "update", "adopt", "overwrite", "empty", "account"
    kind: str  # a kind, or "*" for a guard over all of them
    count: int
    why: str
    granted: bool = False
    parts: int = 0  # of these, what goes with something and is no change of its own
    is_optional: bool = False  # without it the rest of the plan is carried out all the same

    @property
    def flag(self) -> str:
        return f"--allow {self.what}:{self.kind}={self.count}"


@dataclass(frozen=True, slots=True)
class Forecast:
    """What carrying it out will take. Seconds are at the request budget; 0 where there is none."""

    calls: int
    estimated_seconds: float


@dataclass(frozen=True)
class Base:
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


@dataclass(frozen=True)
class Plan:
    """All that will happen, in an order that is safe, and all that stands in its way."""

    stack: str
    changes: tuple[Change, ...] = ()
    calls: tuple[Call, ...] = ()  # in an order that satisfies every `needs`
    problems: tuple[Problem, ...] = ()
    approvals: tuple[Approval, ...] = ()
    observed: Mapping[Address, Observed] = field(default_factory=dict)
    resolved: Mapping[str, Json] = field(default_factory=dict)  # "Kind/name.output" of live objects calls refer to
    bindings: Mapping[Address, Binding | None] = field(default_factory=dict)  # for the store to remember or forget
    additions: tuple[Change, ...] = ()  # children of our objects that nobody declares, and that no call deletes
    unmanaged: tuple[tuple[str, str], ...] = ()  # (kind, id) of live objects that nobody declares or owns
    elsewhere: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    """By stack: objects of other stacks that carry no owner record, as (kind, id)."""
    ignored: tuple[IgnoredDifference, ...] = ()  # known drift, which is among neither changes nor additions
    account: str = ""  # where it is to be carried out: base address, and the account's name if it has one
    targets: tuple[str, ...] = ()  # globs; what they leave out was not planned
    excludes: tuple[str, ...] = ()
    manifest_digest: str = ""
    declared: int = 0  # resources in the manifests
    judged: Mapping[str, str] = field(default_factory=dict)  # the policies that were asked, and a digest of each
    commit: str = ""
    created: float = 0.0  # when it was created, seconds since 1970: tells it from another plan of the same content
    snapshot_time: float = (
        0.0  # when the snapshot file was that it was made from, seconds since 1970; 0: made from the account
    )
    forecast: Forecast = Forecast(0, 0.0)
    base: Base | None = None  # the commit that the plan was compared with
    version: int = VERSION

    @property
    def is_empty(self) -> bool:
        return not self.changes

    @property
    def has_drift(self) -> bool:
        """Whether anything differs that Git alone is not proven to have changed."""
        return bool(self.additions) or any(not change.is_pending for change in self.changes)

    @property
    def has_pending(self) -> bool:
        """Whether Git has changes that no apply carried out yet."""
        return any(change.is_pending for change in self.changes)

    @property
    def errors(self) -> tuple[Problem, ...]:
        return tuple(problem for problem in self.problems if problem.is_error)

    @property
    def blocking_errors(self) -> tuple[Problem, ...]:
        """The errors because of which nothing of the plan is applied."""
        return tuple(problem for problem in self.errors if not problem.confined)

    @property
    def confined_errors(self) -> tuple[Problem, ...]:
        """The errors that a person has to resolve, and that keep only their own subjects from being applied."""
        return tuple(problem for problem in self.errors if problem.confined)

    @property
    def missing_approvals(self) -> tuple[Approval, ...]:
        return tuple(consent for consent in self.approvals if not (consent.granted or consent.is_optional))

    @property
    def missing_optional_approvals(self) -> tuple[Approval, ...]:
        """Consents that are not given, and that nothing else waits for."""
        return tuple(consent for consent in self.approvals if consent.is_optional and not consent.granted)
