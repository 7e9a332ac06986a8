"""The guards: which changes of a plan need approval, by rule, kind and count. No option approves everything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime

from msgspec.structs import replace

from reconciler.model.access_change import AccessChange
from reconciler.model.address import Address
from reconciler.model.change import Action, Reason, Risk
from reconciler.model.plan import Approval, ApprovalItem
from reconciler.model.problem import Problem, Severity
from reconciler.model.rule_change import RuleRisk
from reconciler.model.snapshot import Live
from reconciler.planning.deciding import delivery_targets
from reconciler.planning.deciding.additions import Addition
from reconciler.planning.deciding.approval_items import describe_all, describe_item, describe_part
from reconciler.planning.deciding.decision import Decision
from reconciler.planning.deciding.options import PlanOptions
from reconciler.planning.matching.index import LiveIndex

SMALL_STACK = 10  # objects below which no share of them but 0 % is guarded


def is_protected(decision: Decision, options: PlanOptions) -> bool:
    """Whether the change deletes a protected object: by its owner record or binding, its manifest, or that of the base.

    The owner record counts even after the manifest was removed, the manifest before it was applied.
    """
    if not decision.ends_live:
        return False
    return decision.live_protected or decision.protect or not options.protected.isdisjoint(_list_addresses(decision))


def _list_addresses(decision: Decision) -> Iterator[Address]:
    """The address of a resource, and those that it had before."""
    yield decision.address
    if decision.former is not None:
        yield decision.former
    if decision.declaration is not None:
        yield from decision.declaration.moved


def find_required_approvals(
    decisions: Sequence[Decision],
    parts: Sequence[Live],
    index: LiveIndex,
    owned: int,
    options: PlanOptions,
    additions: Sequence[Addition] = (),
    access: Sequence[AccessChange] = (),
) -> tuple[Approval, ...]:
    """The approvals that the plan needs, with `granted` set for those that the options give.

    decisions   those with an action
    parts       live objects that the platform deletes with their parent, without a call
    owned       the number of live objects of this stack
    additions   undeclared children of objects of this stack
    access      the entry points that the plan changes
    """
    needed = [
        *find_rule_approvals(options),
        *_check_account(decisions, index.snapshot.doubt),
        *_check_kinds(decisions, parts, index, options),
        *delivery_targets.find_overwrite_approvals(decisions, index.snapshot),
        *_check_shares(
            decisions, owned, options, {addition.decision.address for addition in additions if addition.is_unlisted}
        ),
        *_check_empty_manifests(
            owned, len(index.manifest.declarations), options, is_partial=index.manifest.unread is not None
        ),
        *_check_additions(additions),
        *_check_risks(decisions, options),
        *_check_access(access, options),
    ]
    return tuple(_grant(approval, options) for approval in needed)


def find_acceptance_approvals(
    edits: Sequence[Decision], access: Sequence[AccessChange], options: PlanOptions
) -> tuple[Approval, ...]:
    """The approvals that values of the platform need before manifests declare them.

    Each opening needs one, whatever the project requires: no later plan shows it.

    edits    the updates that the manifests accept
    access   the entry points that they change
    """
    required = (options.require_approval & {Risk.LOCKS_OUT}) | {Risk.WIDENS_ACCESS, Risk.EXPOSES}
    guarded = replace(options, require_approval=required)
    needed = (*_check_risks(edits, guarded), *_check_access(access, guarded))
    return tuple(_grant(approval, options) for approval in needed)


def find_rule_approvals(options: PlanOptions) -> Iterator[Approval]:
    """The approvals of rules that the branch loosens, with `granted` set: one for each type of rule."""
    by_rule: dict[tuple[RuleRisk, str], list[ApprovalItem]] = {}
    for change in options.rule_changes or ():
        by_rule.setdefault((change.risk, change.rule), []).append(ApprovalItem(change.subject, "", change.digest))
    for (risk, rule), items in by_rule.items():
        yield _grant(Approval(str(risk), rule, len(items), f"this branch {risk.text}", items=tuple(items)), options)


def find_unused(approvals: Iterable[Approval], options: PlanOptions) -> Iterator[Problem]:
    """A warning for each entry of `approvals.yaml` that does not approve the change of this plan that it names.

    A note if the plan has no such change, as after every apply of an approved change, unless an approval of the same
    rule is missing: the entry may be misspelled.
    """
    approvals = tuple(approvals)
    needed = {(approval.what, item.subject): item for approval in approvals for item in approval.items}
    lacking = {approval.what for approval in approvals if not approval.granted}
    for entry in () if options.is_limited else options.approved:
        if options.rule_changes is None and entry.what in RULE_RISKS:
            continue  # without a base, no rule is compared
        item, is_expired = needed.get((entry.what, entry.subject)), entry.until < _today(options)
        if item is None and entry.what not in lacking:
            end = "remove the entry" if is_expired else f"it can stay until {entry.until}"
            text = "expired, and this plan has no such change" if is_expired else "this plan has no such change"
            yield Problem(text, end, str(entry), entry.position, Severity.NOTE, code="unused-approval")
            continue
        if item is None:
            text, remedy = "approves no change of this plan", "correct or remove the entry"
        elif is_expired:
            text, remedy = f"expired on {entry.until}", "set a later `until` if the change is still approved"
        elif entry.id != item.id:
            text, remedy = f"approves {entry.id or 'no object'}, but the object is {item.id or 'new'}", _REVIEW
        elif entry.digest != item.digest:
            text, remedy = f"approves another change: its digest is {item.digest} now", _REVIEW
        else:
            continue
        yield Problem(text, remedy, str(entry), entry.position, Severity.WARNING, code="unused-approval")


_REVIEW = "review the change, and replace the entry"
RULE_RISKS = frozenset(map(str, RuleRisk))


def _grant(approval: Approval, options: PlanOptions) -> Approval:
    """The approval with `granted` set if the flags or the entries of `approvals.yaml` grant it."""
    today = _today(options)
    entries = {
        (entry.subject, entry.id, entry.digest)
        for entry in options.approved
        if entry.what == approval.what and today <= entry.until
    }
    approved = sum((item.subject, item.id, item.digest) in entries for item in approval.items)
    if approval.items and approved == len(approval.items):
        return replace(approval, granted=True)
    allowed = options.allow.get((approval.what, approval.kind), 0)
    return replace(approval, granted=approval.granted or allowed >= approval.count - approved)


def _today(options: PlanOptions) -> str:
    return datetime.fromtimestamp(options.now, UTC).date().isoformat()


def _check_kinds(
    decisions: Sequence[Decision], parts: Sequence[Live], index: LiveIndex, options: PlanOptions
) -> Iterator[Approval]:
    protected = [decision for decision in decisions if is_protected(decision, options)]
    rest = [decision for decision in decisions if not is_protected(decision, options)]
    guarded = [live for live in parts if _is_guarded(live, index, options)]
    yield from _by_kind("delete-protected", "protected by `lifecycle.protect`", protected, guarded)
    irreversible = (decision for decision in rest if _is_irreversible(decision))
    yield from _by_kind("delete", "irreversible: cannot be recovered after deletion", irreversible)
    unmarked = (
        decision
        for decision in rest
        if decision.action is Action.DELETE and _is_owned_by_store_only(decision) and not decision.adopted
    )
    why = "this kind has no metadata: ownership is known only from the local store"
    yield from _by_kind("delete", why, unmarked)
    yield from _check_adopted(decisions)
    unmanaged = (
        decision for decision in rest if _deletes_unmanaged(decision, index) and not _is_irreversible(decision)
    )
    yield from _by_kind("delete", "declared with `ensure: absent`, but not managed by any stack", unmanaged)
    foreign = [live for live in parts if live not in guarded and not index.is_ours(live)]
    yield from _by_kind("delete", "not managed by this stack, and will be deleted with its parent", (), foreign)
    doubtful = [decision for decision in decisions if decision.needs_approval]
    adopted = (decision for decision in doubtful if decision.action is not Action.CREATE)
    yield from _by_kind("adopt", "already exists and is not managed by any stack", adopted)
    created = (decision for decision in doubtful if decision.action is Action.CREATE)
    yield from _by_kind("create", "no object has the id that its manifest names", created)


def _check_adopted(decisions: Iterable[Decision]) -> Iterator[Approval]:
    """The deletions of objects that were adopted without approval, each with an approval that names the object."""
    why = "it was found by its name and adopted without approval, so that the approval must name it"
    for decision in decisions:
        if decision.ends_live and decision.adopted:
            yield Approval("delete", str(decision.address), 1, why, items=(describe_item(decision),))


def _by_kind(what: str, why: str, decisions: Iterable[Decision], parts: Sequence[Live] = ()) -> Iterator[Approval]:
    """One approval for each kind. `parts`: objects that are deleted with their parent."""
    items: dict[str, list[ApprovalItem]] = {}
    for decision in decisions:
        items.setdefault(decision.kind.name, []).append(describe_item(decision))
    for live in parts:
        items.setdefault(live.kind, []).append(describe_part(live))
    counts = Counter(live.kind for live in parts)
    for kind in sorted(items):
        yield Approval(what, kind, len(items[kind]), why, parts=counts[kind], items=tuple(items[kind]))


def _check_additions(additions: Sequence[Addition]) -> Iterator[Approval]:
    why = "added on the platform; deleted only with this approval"
    wanted = (addition.decision for addition in additions if addition.is_to_be_deleted and not addition.is_unlisted)
    for approval in _by_kind("delete", why, wanted):
        yield replace(approval, is_optional=True)


def _check_risks(decisions: Sequence[Decision], options: PlanOptions) -> Iterator[Approval]:
    """The risks for which the project requires approval (`guards.require_approval`).

    Irreversible changes need approval as `delete` or `delete-protected` in every project, and are not asked for twice.
    """
    required = options.require_approval - {Risk.IRREVERSIBLE}
    if not required:
        return
    from reconciler.planning.deciding.risks import find_risks  # deferred: most plans change nothing

    risks = [(decision, find_risks(decision)) for decision in decisions]
    for risk in sorted(required):
        yield from _by_kind(str(risk), risk.text, (decision for decision, found in risks if risk in found))


def _check_access(access: Sequence[AccessChange], options: PlanOptions) -> Iterator[Approval]:
    """The entry points whose change has a risk that needs approval: the approval names each, before and after."""
    for risk in sorted(options.require_approval):
        items = tuple(
            ApprovalItem(change.entry_point, "", change.digest) for change in access if change.verdict.risk is risk
        )
        if items:
            yield Approval(str(risk), "*", len(items), risk.text, items=items)


def _is_guarded(live: Live, index: LiveIndex, options: PlanOptions) -> bool:
    """Whether an object that is deleted with its parent is protected."""
    owner = live.owner
    addresses = [owner.address] if owner is not None and owner.stack == index.stack else []
    return index.is_protected(live) or not options.protected.isdisjoint((*addresses, *index.find_bound_addresses(live)))


def _is_irreversible(decision: Decision) -> bool:
    return decision.ends_live and decision.kind.irreplaceable


def _deletes_unmanaged(decision: Decision, index: LiveIndex) -> bool:
    """Whether `ensure: absent` with `lifecycle.adopt` deletes an object that no stack manages."""
    live = decision.live
    is_absent = decision.action is Action.DELETE and decision.reason is Reason.ABSENT and live is not None
    return is_absent and decision.kind.keeps_owner and live is not None and not index.is_ours(live)


def _is_owned_by_store_only(decision: Decision) -> bool:
    """Whether only the store knows the owner of the object, which may be older than the platform."""
    return not decision.kind.keeps_owner and decision.kind.parent is None


def _check_shares(
    decisions: Sequence[Decision], owned: int, options: PlanOptions, unlisted: Collection[Address]
) -> Iterator[Approval]:
    if options.destroy:
        return
    # Not counted: credentials whose delivery failed, which the next run replaces, and additions that are approved by
    # number, which are not owned.
    uncounted = (Reason.UNDELIVERED, Reason.ADDED)
    deletes = [
        decision
        for decision in decisions
        if decision.ends_live and (decision.reason not in uncounted or decision.address in unlisted)
    ]
    updates = [
        decision
        for decision in decisions
        if decision.action in (Action.UPDATE, Action.MOVE) and not _is_settling(decision)
    ]
    for what, counted, limit in (
        ("delete", deletes, options.max_delete_percent),
        ("update", updates, options.max_update_percent),
    ):
        is_guarded = owned >= SMALL_STACK or limit == 0
        if is_guarded and len(counted) * 100 > owned * limit:
            why = f"more than {limit} % of the {owned} objects of this stack"
            yield Approval(what, "*", len(counted), why, items=(describe_all(counted),))


def _is_settling(decision: Decision) -> bool:
    """Whether the update only clears `pending` after a delivery."""
    return decision.confirms_delivery and decision.reason is Reason.RECORD


def _check_account(decisions: Sequence[Decision], doubt: str) -> Iterator[Approval]:
    if doubt and any(decision.action is not None for decision in decisions):
        yield Approval("account", "*", 1, doubt)


def _check_empty_manifests(owned: int, declared: int, options: PlanOptions, *, is_partial: bool) -> Iterator[Approval]:
    if declared == 0 and owned > 0 and not options.destroy and not is_partial:
        yield Approval("empty", "*", owned, "the manifests declare no resource, but the stack owns objects")
