"""Distinguishes pending changes, which only Git made and no apply has applied yet, from drift (docs/drift.md).

A change is pending if the owner record or the store proves that the platform still has what was last applied. What is
missing, unknown, or changed on both sides is drift: a wrong "pending" would hide a change made outside Git.
"""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.model.canonical import collect_applied, leaf_at
from reconciler.model.change import ChangedBy, Reason
from reconciler.model.fields.annotations import InputOnly, ServerDefault, SometimesReturned
from reconciler.model.snapshot import Live
from reconciler.model.value import digest
from reconciler.planning.comparing.canonical_fields import UNREAD
from reconciler.planning.deciding.decision import Decision
from reconciler.planning.matching.index import LiveIndex

_GIT = frozenset({ChangedBy.GIT, ChangedBy.FOLLOWS})
_BY_FIELDS = frozenset({Reason.FIELDS, Reason.IMMUTABLE, Reason.RENAMED, Reason.ROTATION})
_CONSEQUENCES = frozenset({Reason.EXCHANGED, Reason.PARENT})  # of other changes, which are listed themselves
_ENDS = frozenset({Reason.REMOVED, Reason.ABSENT, Reason.FORGOTTEN})


def is_pending(decision: Decision, index: LiveIndex) -> bool:
    """Whether it is proven that only Git made the change."""
    live, reason = decision.live, decision.reason
    if live is None:
        return reason is Reason.DECLARED and index.knows_all_creates
    if not index.is_ours(live) or (decision.kind.keeps_owner and live.owner is None):
        return False  # it was never applied, or its owner record was removed
    causes = {change.changed_by for difference in decision.differences for change in difference.changes}
    if reason in _ENDS:
        return _is_as_applied(decision, index)
    if reason is Reason.SUPERSEDED:
        return _is_retired(decision, index) and _is_as_applied(decision, index)
    if reason is Reason.RECORD:
        return not decision.confirms_delivery  # `lifecycle.protect` was edited
    if reason in _CONSEQUENCES:
        return causes <= _GIT
    return reason in _BY_FIELDS and causes <= _GIT and (bool(causes) or reason is not Reason.FIELDS)


def _is_retired(decision: Decision, index: LiveIndex) -> bool:
    """Whether the object is a credential that an apply replaced, and both tokens were delivered: its overlap ended.

    An apply that was interrupted after both deliveries leaves the same. Of other kinds, only an interrupted apply
    leaves a replaced object.
    """
    live, address = decision.live, decision.address
    assert live is not None
    others = [*index.by_owner.get(address, ()), *(other for former, other in index.superseded if former == address)]
    owners = [other.owner for other in others if other.owner is not None]
    is_replaced = any(owner.replaces == live.id for owner in owners)
    return decision.kind.one_time is not None and is_replaced and not any(owner.pending for owner in owners)


def _is_as_applied(decision: Decision, index: LiveIndex) -> bool:
    """Whether each readable field has the value that was last applied."""
    live, kind = decision.live, decision.kind
    assert live is not None
    recorded, salt = _read_applied(live, index)
    live_leaves = collect_applied(kind, {name: value for name, value in decision.have.items() if value is not UNREAD})
    for path, value in live_leaves.items():
        leaf = leaf_at(kind.fields, path)
        is_choice = path not in recorded and leaf is not None and ServerDefault in leaf
        is_missing = value is None and leaf is not None and SometimesReturned in leaf
        forms = leaf.forms_of(value) if leaf is not None else (value,)
        if not is_choice and not is_missing and recorded.get(path) not in [digest(form, salt) for form in forms]:
            return False
    tops = {path.partition(".")[0] for path in live_leaves}
    for path in recorded.keys() - live_leaves.keys():
        leaf = leaf_at(kind.fields, path)
        if path not in tops and not (leaf is not None and (InputOnly in leaf or SometimesReturned in leaf)):
            return False
    return True


def _read_applied(live: Live, index: LiveIndex) -> tuple[Mapping[str, str], str]:
    """The digests last applied by path, and their salt."""
    if live.owner is not None:
        return live.owner.applied, live.owner.intent
    address = index.find_bound_addresses(live)[0]
    return index.snapshot.bindings[address].applied, str(address)
