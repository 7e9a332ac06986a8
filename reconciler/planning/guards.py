"""The guards: which changes of a plan need approval, by rule, kind and count. No option approves everything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from reconciler.model.change import Action, Reason
from reconciler.model.manifest import Ensure
from reconciler.model.plan import Approval
from reconciler.model.snapshot import Live
from reconciler.planning.deciding import delivery_targets
from reconciler.planning.deciding.additions import Addition
from reconciler.planning.deciding.decision import Decision
from reconciler.planning.deciding.options import PlanOptions
from reconciler.planning.deciding.risks import find_risks
from reconciler.planning.matching.index import LiveIndex

SMALL_STACK = 10  # objects below which no share of them is guarded


def is_protected(decision: Decision) -> bool:
    """Whether the change deletes a protected object: by its owner record or binding, or by its manifest.

    The owner record counts even after the manifest was removed, the manifest before it was applied.
    """
    return decision.ends_live and (decision.live_protected or decision.protect)


def find_required_approvals(
    decisions: Sequence[Decision],
    parts: Sequence[Live],
    index: LiveIndex,
    owned: int,
    options: PlanOptions,
    additions: Sequence[Addition] = (),
) -> tuple[Approval, ...]:
    """The approvals that the plan needs, with `granted` set for those that the options give.

    decisions   those with an action
    parts       live objects that the platform deletes with their parent, without a call
    owned       the number of live objects of this stack
    additions   undeclared children of objects of this stack
    """
    needed = [
        *_check_account(decisions, index.snapshot.doubt),
        *_check_kinds(decisions, parts, index),
        *delivery_targets.find_overwrite_approvals(decisions, index.snapshot),
        *_check_shares(decisions, owned, options),
        *_check_empty_manifests(owned, len(index.manifest.declarations), options),
        *_check_additions(additions),
        *_check_risks(decisions, options),
    ]
    return tuple(
        replace(
            approval, granted=approval.granted or options.allow.get((approval.what, approval.kind), 0) >= approval.count
        )
        for approval in needed
    )


def _check_kinds(decisions: Sequence[Decision], parts: Sequence[Live], index: LiveIndex) -> Iterator[Approval]:
    protected = Counter(decision.kind.name for decision in decisions if is_protected(decision))
    guarded = Counter(live.kind for live in parts if index.is_protected(live))
    for kind, count in sorted((protected + guarded).items()):
        yield Approval("delete-protected", kind, count, "protected by `lifecycle.protect`", parts=guarded[kind])
    irreversible = Counter(
        decision.kind.name
        for decision in decisions
        if decision.ends_live
        and decision.kind.irreplaceable
        and not is_protected(decision)
        and not _is_declared_absent(decision)
    )
    for kind, count in sorted(irreversible.items()):
        yield Approval("delete", kind, count, "irreversible: cannot be recovered after deletion")
    unmarked = Counter(
        decision.kind.name
        for decision in decisions
        if decision.action is Action.DELETE
        and _is_owned_by_store_only(decision)
        and not is_protected(decision)
        and not _is_declared_absent(decision)
    )
    for kind, count in sorted(unmarked.items()):
        yield Approval("delete", kind, count, "this kind has no metadata: ownership is known only from the local store")
    foreign = Counter(live.kind for live in parts if not index.is_ours(live) and not index.is_protected(live))
    for kind, count in sorted(foreign.items()):
        yield Approval(
            "delete", kind, count, "not managed by this stack, and will be deleted with its parent", parts=count
        )
    adopted = Counter(decision.kind.name for decision in decisions if decision.needs_approval)
    for kind, count in sorted(adopted.items()):
        yield Approval("adopt", kind, count, "already exists and is not managed by any stack")


def _check_additions(additions: Sequence[Addition]) -> Iterator[Approval]:
    wanted = Counter(addition.decision.kind.name for addition in additions if addition.is_to_be_deleted)
    for kind, count in sorted(wanted.items()):
        why = "added on the platform; `unmanaged_children: delete` deletes it only with this approval"
        yield Approval("delete", kind, count, why, is_optional=True)


def _check_risks(decisions: Sequence[Decision], options: PlanOptions) -> Iterator[Approval]:
    """The risks for which the project requires approval (`guards.require_approval`)."""
    if not options.require_approval:
        return
    counts = Counter(
        (risk, decision.kind.name)
        for decision in decisions
        for risk in find_risks(decision)
        if risk in options.require_approval
    )
    for (risk, kind), count in sorted(counts.items()):
        yield Approval(str(risk), kind, count, risk.text)


def _is_owned_by_store_only(decision: Decision) -> bool:
    """Whether only the store knows the owner of the object, which may be older than the platform."""
    return not decision.kind.keeps_owner and decision.kind.parent is None


def _is_declared_absent(decision: Decision) -> bool:
    """Whether `ensure: absent` declares the deletion, which counts as its approval."""
    return decision.declaration is not None and decision.declaration.ensure is Ensure.ABSENT


def _check_shares(decisions: Sequence[Decision], owned: int, options: PlanOptions) -> Iterator[Approval]:
    if owned < SMALL_STACK or options.destroy:
        return
    # Not counted: credentials whose delivery failed, which the next run replaces, and additions, which are not owned
    # and are approved by number.
    uncounted = (Reason.UNDELIVERED, Reason.ADDED)
    deletes = sum(
        decision.ends_live and not _is_declared_absent(decision) and decision.reason not in uncounted
        for decision in decisions
    )
    if deletes * 100 > owned * options.max_delete_percent:
        yield Approval(
            "delete", "*", deletes, f"more than {options.max_delete_percent} % of the {owned} objects of this stack"
        )
    updates = sum(
        decision.action in (Action.UPDATE, Action.MOVE) and not _is_settling(decision) for decision in decisions
    )
    if updates * 100 > owned * options.max_update_percent:
        yield Approval(
            "update", "*", updates, f"more than {options.max_update_percent} % of the {owned} objects of this stack"
        )


def _is_settling(decision: Decision) -> bool:
    """Whether the update only clears `pending` after a delivery."""
    return decision.confirms_delivery and decision.reason is Reason.RECORD


def _check_account(decisions: Sequence[Decision], doubt: str) -> Iterator[Approval]:
    if doubt and any(decision.action is not None for decision in decisions):
        yield Approval("account", "*", 1, doubt)


def _check_empty_manifests(owned: int, declared: int, options: PlanOptions) -> Iterator[Approval]:
    if declared == 0 and owned > 0 and not options.destroy:
        yield Approval("empty", "*", owned, "the manifests declare no resource, but the stack owns objects")
