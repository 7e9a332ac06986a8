"""Past drift checks and runs: which resources drifted, what changed them, and the outcomes of calls. No field values.

Times are seconds since 1970, in UTC.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from reconciler.model.address import Address
from reconciler.model.change import Action, ChangedBy, Reason
from reconciler.model.event import Outcome


class DriftedResource(Struct, frozen=True):
    """A resource that differed in a drift check. `fields`: the dotted paths of the fields that differed."""

    address: Address
    action: Action
    reason: Reason
    changed_by: ChangedBy
    fields: tuple[str, ...] = ()


class DriftCheck(Struct, frozen=True):
    """The result of one drift check. `declared`: the number of declared resources."""

    at: float
    declared: int
    commit: str = ""
    moved: tuple[DriftedResource, ...] = ()


class Run(Struct, frozen=True):
    """One apply or destroy. `ended` is None, and `outcome` empty, if the process was killed.

    commit  of the manifests; empty: unknown
    actor   who started the run, as the CI system names the person; empty: unknown
    """

    command: str
    started: float
    ended: float | None = None
    outcome: str = ""
    calls: Mapping[Outcome, int] = field(default_factory=dict)  # number of calls by outcome
    commit: str = ""
    actor: str = ""
