"""The targets of one-time secrets: which need approval to be overwritten, and which delivered files are missing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec.structs import replace

from reconciler.model.address import Address
from reconciler.model.change import Action
from reconciler.model.kind import Kind
from reconciler.model.manifest import FILE_WAYS, REMOTE_WAYS, Declaration, Delivery, Ensure, Manifest
from reconciler.model.owner_record import Owner
from reconciler.model.plan import Approval, Call
from reconciler.model.problem import Problem, Severity
from reconciler.model.snapshot import IssuedSecret, Place, Snapshot, Target
from reconciler.planning.deciding.approval_items import describe_item
from reconciler.planning.deciding.decision import Decision

_NAMED = 3  # targets that an approval names


def find_deliveries(manifest: Manifest, kinds: Iterable[Kind]) -> Mapping[Address, Delivery]:
    """The deliveries to files and secret stores, by address. What a command overwrites cannot be known."""
    outputs = {kind.name: kind.one_time for kind in kinds if kind.one_time is not None}
    candidates = (
        (declaration, declaration.deliver.get(str(outputs.get(declaration.address.kind))))
        for declaration in manifest.declarations.values()
    )
    return {
        declaration.address: delivery
        for declaration, delivery in candidates
        if delivery is not None and delivery.way in (*FILE_WAYS, *REMOTE_WAYS) and declaration.ensure is Ensure.PRESENT
    }


def find_targets(
    manifest: Manifest,
    snapshot: Snapshot,
    deliveries: Mapping[Address, Delivery],
    issued: Sequence[IssuedSecret],
    place_of: Callable[[Delivery], Place],
    is_there: Callable[[Delivery], bool | None],
) -> Mapping[Address, Target]:
    """The state of the target of each delivery, by address.

    issued     the creates that the store knows, with where their secrets were delivered
    place_of   the path and entry of a delivery on this machine
    is_there   whether the target exists; None if it cannot be determined
    """
    targets = {}
    for address, delivery in deliveries.items():
        place, exists = place_of(delivery), is_there(delivery)
        owned = _find_owned(snapshot, manifest.stack, address)
        intents = {owner.intent for owner in owned if not owner.pending}
        explaining = _select_issued(manifest.declarations[address], owned, issued)
        targets[address] = Target(
            delivery.label,
            is_there=bool(exists),
            is_ours=any(issued.place.is_same(place) for issued in explaining),
            is_gone=exists is False
            and delivery.way in FILE_WAYS
            and any(issued.arrived and issued.intent in intents and issued.place == place for issued in explaining),
        )
    return targets


def _find_owned(snapshot: Snapshot, stack: str, address: Address) -> list[Owner]:
    owners = (live.owner for live in snapshot.of(address.kind).objects)
    return [owner for owner in owners if owner is not None and owner.stack == stack and owner.address == address]


def _select_issued(
    declaration: Declaration, owned: Sequence[Owner], issued: Iterable[IssuedSecret]
) -> list[IssuedSecret]:
    """The creates of this resource, under its present and former addresses."""
    addresses = {declaration.address, *declaration.moved}
    intents = {owner.intent for owner in owned}
    return [entry for entry in issued if entry.address in addresses or entry.intent in intents]


def overwrites_foreign_target(decision: Decision, snapshot: Snapshot) -> bool:
    """Whether the plan would overwrite a target that is not known to be from an earlier delivery of this stack."""
    target = snapshot.targets.get(decision.address)
    return decision.is_new and target is not None and target.is_there and not target.is_ours


def find_overwrite_approvals(decisions: Iterable[Decision], snapshot: Snapshot) -> Iterable[Approval]:
    """The approvals for targets that would be overwritten, one for each kind."""
    by_kind: dict[str, list[Decision]] = {}
    for decision in decisions:
        if overwrites_foreign_target(decision, snapshot):
            by_kind.setdefault(decision.kind.name, []).append(decision)
    for kind, overwriting in sorted(by_kind.items()):
        targets = [snapshot.targets[decision.address].label for decision in overwriting]
        more = f" and {len(targets) - _NAMED} more" if len(targets) > _NAMED else ""
        exist = "exists" if len(targets) == 1 else "exist"
        names = ", ".join(targets[:_NAMED])
        why = f"{names}{more} {exist}, not known to be from an earlier delivery, and will be overwritten"
        yield Approval("overwrite", kind, len(targets), why, items=tuple(map(describe_item, overwriting)))


def mark_overwrite(call: Call, snapshot: Snapshot) -> Call:
    """The call with `overwrites` set if its delivery has an existing target, or had one of this stack."""
    target = snapshot.targets.get(call.address) if call.deliver else None
    return call if target is None else replace(call, overwrites=target.is_there or target.is_ours)


def report_missing_files(decisions: Iterable[Decision], snapshot: Snapshot) -> Iterable[Problem]:
    """A note for each delivered file that no longer exists and that the plan does not deliver again."""
    for decision in decisions:
        target = snapshot.targets.get(decision.address)
        if target is None or not target.is_gone or decision.is_new or decision.action is Action.DELETE:
            continue
        declaration = decision.declaration
        delivery = declaration.deliver.get(str(decision.kind.one_time)) if declaration is not None else None
        secret = decision.kind.one_time
        yield Problem(
            f"its {secret} was delivered to {target.label} on this machine, and does not exist there any more",
            f"if the {secret} is lost, issue a new one with `apply --replace {decision.address}`",
            str(decision.address),
            delivery.position if delivery is not None else None,
            Severity.NOTE,
            code="delivered-file-gone",
        )
