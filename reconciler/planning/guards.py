"""What a plan may not do unless the user allowed it by name. There is no force: consent is itemised."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from reconciler.model.change import Action, Reason
from reconciler.model.manifest import Ensure
from reconciler.model.plan import Consent
from reconciler.model.snapshot import Live
from reconciler.planning.deciding import delivery_targets
from reconciler.planning.deciding.additions import Addition
from reconciler.planning.deciding.decide import Decision
from reconciler.planning.deciding.options import Policy
from reconciler.planning.matching.index import Register

FEW = 10  # owned objects up to which a share of them says little


def is_protected(decision: Decision) -> bool:
    """Whether what goes may not: the flag on the live object outlives the declaration, one in Git counts at once."""
    return decision.ends_live and (decision.guarded or decision.protect)


def consents(
    decisions: Sequence[Decision],
    parts: Sequence[Live],
    register: Register,
    owned: int,
    policy: Policy,
    additions: Sequence[Addition] = (),
) -> tuple[Consent, ...]:
    """Everything that needs consent, marked with whether the policy gives it.

    `parts` go with what they are part of, without a call of their own; `owned` counts the live objects of this stack;
    `additions` are children that no manifest declares.
    """
    needed = [
        *_strangeness(decisions, register.snapshot.doubt),
        *_of_kind(decisions, parts, register),
        *delivery_targets.consents(decisions, register.snapshot),
        *_shares(decisions, owned, policy),
        *_emptiness(owned, len(register.manifest.declarations), policy),
        *_of_additions(additions),
    ]
    return tuple(
        replace(each, granted=each.granted or policy.allow.get((each.what, each.kind), 0) >= each.count)
        for each in needed
    )


def _of_kind(decisions: Sequence[Decision], parts: Sequence[Live], register: Register) -> Iterator[Consent]:
    protected = Counter(each.kind.name for each in decisions if is_protected(each))
    guarded = Counter(live.kind for live in parts if register.guards(live))
    for kind, count in sorted((protected + guarded).items()):
        yield Consent("delete-protected", kind, count, "protected by `lifecycle.protect`", parts=guarded[kind])
    gone = Counter(
        each.kind.name
        for each in decisions
        if each.ends_live and each.kind.irreplaceable and not is_protected(each) and not _buried(each)
    )
    for kind, count in sorted(gone.items()):
        yield Consent("delete", kind, count, "cannot be had back once it is gone")
    unmarked = Counter(
        each.kind.name
        for each in decisions
        if each.action is Action.DELETE and _is_unmarked(each) and not is_protected(each) and not _buried(each)
    )
    for kind, count in sorted(unmarked.items()):
        yield Consent("delete", kind, count, "carries no owner record: that it is ours, only the store says")
    foreign = Counter(live.kind for live in parts if not register.is_ours(live) and not register.guards(live))
    for kind, count in sorted(foreign.items()):
        yield Consent("delete", kind, count, "not ours, and goes with what it is part of", parts=count)
    found = Counter(each.kind.name for each in decisions if each.needs_consent)
    for kind, count in sorted(found.items()):
        yield Consent("adopt", kind, count, "exists already and belongs to nobody")


def _of_additions(additions: Sequence[Addition]) -> Iterator[Consent]:
    wanted = Counter(each.decision.kind.name for each in additions if each.is_to_go)
    for kind, count in sorted(wanted.items()):
        why = "added on the platform, to be deleted by `unmanaged_children: delete`; left alone without this"
        yield Consent("delete", kind, count, why, is_optional=True)


def _is_unmarked(decision: Decision) -> bool:
    """Whether nothing on the platform says whose it is: the store does, and may be older than the platform."""
    return not decision.kind.keeps_owner and decision.kind.parent is None


def _buried(decision: Decision) -> bool:
    """A tombstone in Git is consent."""
    return decision.declaration is not None and decision.declaration.ensure is Ensure.ABSENT


def _shares(decisions: Sequence[Decision], owned: int, policy: Policy) -> Iterator[Consent]:
    if owned < FEW or policy.destroy:
        return
    # What a run left half done, and the next one only clears up, is not a change that anybody asked for.
    # An addition is none of the owned objects, and is approved by number.
    no_delete = (Reason.UNDELIVERED, Reason.ADDED)
    deletes = sum(each.ends_live and not _buried(each) and each.reason not in no_delete for each in decisions)
    if deletes * 100 > owned * policy.max_delete_percent:
        yield Consent("delete", "*", deletes, f"more than {policy.max_delete_percent} % of {owned} owned objects")
    updates = sum(each.action in (Action.UPDATE, Action.MOVE) and not _is_settling(each) for each in decisions)
    if updates * 100 > owned * policy.max_update_percent:
        yield Consent("update", "*", updates, f"more than {policy.max_update_percent} % of {owned} owned objects")


def _is_settling(decision: Decision) -> bool:
    return decision.settles and decision.reason is Reason.RECORD


def _strangeness(decisions: Sequence[Decision], doubt: str) -> Iterator[Consent]:
    if doubt and any(each.action is not None for each in decisions):
        yield Consent("account", "*", 1, doubt)


def _emptiness(owned: int, declared: int, policy: Policy) -> Iterator[Consent]:
    if declared == 0 and owned > 0 and not policy.destroy:
        yield Consent("empty", "*", owned, "the manifests declare nothing, and the stack owns objects")
