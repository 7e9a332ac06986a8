"""Tells changes that only Git made, and that no apply carried out yet, from drift.

A change is pending where the owner record or the store proves that the platform still has what was applied last. What
is absent, unknown, or changed on both sides is drift: a wrong "pending" would hide a change of somebody else's.
"""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.model.canonical import collect_applied, leaf_at
from reconciler.model.change import ChangedBy, Reason
from reconciler.model.fields.annotations import InputOnly, ServerDefault
from reconciler.model.snapshot import Live
from reconciler.model.value import digest
from reconciler.planning.comparing.canonical_fields import UNREAD
from reconciler.planning.deciding.decision import Decision
from reconciler.planning.matching.index import LiveIndex

_GIT = frozenset({ChangedBy.GIT, ChangedBy.FOLLOWS})
_BY_FIELDS = frozenset({Reason.FIELDS, Reason.IMMUTABLE, Reason.RENAMED, Reason.ROTATION})
_CONSEQUENCES = frozenset({Reason.EXCHANGED, Reason.PARENT})  # of other changes, which are told for themselves
_ENDS = frozenset({Reason.REMOVED, Reason.TOMBSTONE, Reason.FORGOTTEN})


def is_pending(decision: Decision, index: LiveIndex) -> bool:
    """Whether Git alone is proven to have made the change."""
    live, reason = decision.live, decision.reason
    if live is None:
        return reason is Reason.DECLARED and index.knows_all_creates
    if not index.is_ours(live) or (decision.kind.keeps_owner and live.owner is None):
        return False  # it was never applied, or somebody removed our record
    movers = {change.changed_by for difference in decision.differences for change in difference.changes}
    if reason in _ENDS:
        return _is_as_applied(decision, index)
    if reason is Reason.RECORD:
        return not decision.confirms_delivery  # `lifecycle.protect` was edited
    if reason in _CONSEQUENCES:
        return movers <= _GIT
    return reason in _BY_FIELDS and movers <= _GIT and (bool(movers) or reason is not Reason.FIELDS)


def _is_as_applied(decision: Decision, index: LiveIndex) -> bool:
    """Whether each field that can be read has the value that was applied last."""
    live, kind = decision.live, decision.kind
    assert live is not None
    recorded, salt = _read_applied(live, index)
    seen = collect_applied(kind, {name: each for name, each in decision.have.items() if each is not UNREAD})
    for path, value in seen.items():
        leaf = leaf_at(kind.fields, path)
        is_choice = path not in recorded and leaf is not None and ServerDefault in leaf
        if value is not UNREAD and not is_choice and digest(value, salt) != recorded.get(path):
            return False
    tops = {path.partition(".")[0] for path in seen}
    for path in recorded.keys() - seen.keys():
        leaf = leaf_at(kind.fields, path)
        if path not in tops and not (leaf is not None and InputOnly in leaf):
            return False
    return True


def _read_applied(live: Live, index: LiveIndex) -> tuple[Mapping[str, str], str]:
    """What was applied last, and the salt of its digests."""
    if live.owner is not None:
        return live.owner.applied, live.owner.intent
    address = index.find_bound_addresses(live)[0]
    return index.snapshot.bindings[address].applied, str(address)
