"""Attributes the changes of a plan to the reviewed commits, to earlier commits, or to the platform.

Both plans are made from one snapshot: what the plan of the base commit contains too was pending or had drifted before.
What neither plan explains alone counts as caused by the reviewed commits.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from msgspec.structs import replace

from reconciler.model.access_change import AccessChange
from reconciler.model.change import Action, Cause, Change, ChangedBy, FieldChange, Reason
from reconciler.model.plan import Approval, Base, Plan

# Reasons of changes that Git did not cause.
_OUTSIDE_GIT = frozenset({Reason.VANISHED, Reason.ADDED, Reason.DUPLICATE})
_OUTSIDE_GIT_OR_UNKNOWN = frozenset({ChangedBy.PLATFORM, ChangedBy.BOTH, ChangedBy.UNKNOWN})


def attribute(head: Plan, base_plan: Plan, base: Base) -> Plan:
    """The plan `head` with a cause for each change, addition, field and entry point.

    head, base_plan  plans of one snapshot with the same options, of the reviewed and of the base manifests
    """
    before = {(change.address, change.id): change for change in base_plan.changes}
    # An addition that the base only reports, and the head deletes, is deleted by the head.
    added = {(change.address, change.id): change for change in base_plan.additions}
    changes = tuple(_attribute(change, before.pop((change.address, change.id), None)) for change in head.changes)
    additions = tuple(
        _attribute(change, added.get(key) or before.pop(key, None))
        for change in head.additions
        for key in [(change.address, change.id)]
    )
    withdrawn = tuple(change for change in base_plan.changes if (change.address, change.id) in before)
    base = replace(base, withdrawn=withdrawn)
    return replace(
        head,
        changes=changes,
        additions=additions,
        access=_attribute_access(head, base_plan),
        approvals=_attribute_approvals(head.approvals, base_plan.approvals),
        base=base,
        names={**base_plan.names, **head.names},
    )


def _attribute_access(head: Plan, base_plan: Plan) -> tuple[AccessChange, ...]:
    """The entry points with a cause. Those that the base changes in the same way are pending, or had drifted."""
    before = {(entry.entry_point, entry.digest): entry for entry in base_plan.access}
    pending = {str(change.address) for change in base_plan.changes if change.is_pending}
    return tuple(
        replace(entry, cause=_find_access_cause(before.get((entry.entry_point, entry.digest)), pending))
        for entry in head.access
    )


def _find_access_cause(former: AccessChange | None, pending: Collection[str]) -> Cause:
    if former is None:
        return Cause.THIS_CHANGE
    return Cause.PENDING if all(cause in pending for cause in former.causes) else Cause.DRIFT


def _attribute_approvals(approvals: Iterable[Approval], former: Iterable[Approval]) -> tuple[Approval, ...]:
    """The approvals for the reviewed commits, followed by those that the plan of the base needs for the same items."""
    needed = {(approval.what, item) for approval in former for item in approval.items}
    marked = [
        replace(
            approval,
            is_pending=bool(approval.items) and all((approval.what, item) in needed for item in approval.items),
        )
        for approval in approvals
    ]
    return tuple(sorted(marked, key=lambda approval: approval.is_pending))


def _attribute(change: Change, former: Change | None) -> Change:
    fields = tuple(_attribute_fields(change, former))
    return replace(change, fields=fields, cause=_find_cause(change, former, {field.cause for field in fields}))


def _attribute_fields(change: Change, former: Change | None) -> Iterator[FieldChange]:
    before = {field.path: field for field in former.fields} if former is not None else {}
    for field in change.fields:
        earlier = before.get(field.path)
        if earlier is None or (earlier.old, earlier.new) != (field.old, field.new):
            cause = Cause.THIS_CHANGE
        elif change.id is not None and not change.is_pending and earlier.changed_by in _OUTSIDE_GIT_OR_UNKNOWN:
            cause = Cause.DRIFT
        else:
            cause = Cause.PENDING
        yield replace(field, cause=cause)


def _find_cause(change: Change, former: Change | None, fields: set[Cause | None]) -> Cause:
    """The cause of a change as a whole: this change if any part of it is."""
    if former is None or Cause.THIS_CHANGE in fields or _describe_action(change) != _describe_action(former):
        return Cause.THIS_CHANGE
    if change.reason in _OUTSIDE_GIT or Cause.DRIFT in fields or _is_unexplained_delete(change):
        return Cause.DRIFT
    return Cause.PENDING


def _is_unexplained_delete(change: Change) -> bool:
    """Whether an object to be deleted is not as it was last applied."""
    return change.action is Action.DELETE and not change.is_pending


def _describe_action(change: Change) -> tuple[object, ...]:
    """What a change does, apart from its fields."""
    return change.action, change.reason, change.order, change.former
