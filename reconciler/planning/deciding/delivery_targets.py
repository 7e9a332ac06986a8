"""Whose the files are that one-time secrets are delivered to: what may be overwritten, and what is gone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from reconciler.model.address import Address
from reconciler.model.change import Action
from reconciler.model.kind import Kind
from reconciler.model.manifest import Declaration, Delivery, Ensure, Manifest
from reconciler.model.plan import Approval, Call
from reconciler.model.problem import Problem, Severity
from reconciler.model.snapshot import IssuedSecret, Live, Place, Snapshot, Target
from reconciler.planning.deciding.decision import Decision

_NAMED = 3  # targets that a consent names


def find_file_deliveries(manifest: Manifest, kinds: Iterable[Kind]) -> Mapping[Address, Delivery]:
    """The deliveries that write files. Whether a command overwrites something nobody can tell."""
    outputs = {kind.name: kind.one_time for kind in kinds if kind.one_time is not None}
    found = (
        (declaration, declaration.deliver.get(str(outputs.get(declaration.address.kind))))
        for declaration in manifest.declarations.values()
    )
    return {
        each.address: delivery
        for each, delivery in found
        if delivery is not None and delivery.way != "to_command" and each.ensure is Ensure.PRESENT
    }


def find_targets(
    manifest: Manifest,
    snapshot: Snapshot,
    deliveries: Mapping[Address, Delivery],
    issued: Sequence[IssuedSecret],
    place_of: Callable[[Delivery], Place],
    is_there: Callable[[Delivery], bool | None],
) -> Mapping[Address, Target]:
    """The state of each target. `is_there` answers None where that cannot be told."""
    found = {}
    for address, delivery in deliveries.items():
        place, there = place_of(delivery), is_there(delivery)
        owned = _find_owned(snapshot, manifest.stack, address)
        intents = {each.owner.intent for each in owned if each.owner is not None and not each.owner.pending}
        explaining = _select_issued(manifest.declarations[address], owned, issued)
        found[address] = Target(
            f"the entry {place.entry} of {place.path}" if delivery.way == "to_dotenv" else place.path,
            is_there=bool(there),
            is_ours=any(issued.place is None or issued.place.is_same(place) for issued in explaining),
            is_gone=there is False
            and any(issued.arrived and issued.intent in intents and issued.place == place for issued in explaining),
        )
    return found


def _find_owned(snapshot: Snapshot, stack: str, address: Address) -> list[Live]:
    return [
        each
        for each in snapshot.of(address.kind).objects
        if each.owner is not None and each.owner.stack == stack and each.owner.address == address
    ]


def _select_issued(
    declaration: Declaration, owned: Sequence[Live], issued: Iterable[IssuedSecret]
) -> list[IssuedSecret]:
    """Creates of this resource, under whatever name it had."""
    addresses = {declaration.address, *declaration.moved}
    intents = {each.owner.intent for each in owned if each.owner is not None}
    return [each for each in issued if each.address in addresses or each.intent in intents]


def overwrites_foreign_target(decision: Decision, snapshot: Snapshot) -> bool:
    """Whether a secret that will be issued would overwrite what is not known to be ours."""
    target = snapshot.targets.get(decision.address)
    return decision.is_new and target is not None and target.is_there and not target.is_ours


def find_overwrite_approvals(decisions: Iterable[Decision], snapshot: Snapshot) -> Iterable[Approval]:
    """What has to be allowed before it is overwritten."""
    by_kind: dict[str, list[str]] = {}
    for decision in decisions:
        if overwrites_foreign_target(decision, snapshot):
            by_kind.setdefault(decision.kind.name, []).append(snapshot.targets[decision.address].shown)
    for kind, shown in sorted(by_kind.items()):
        more = f" and {len(shown) - _NAMED} more" if len(shown) > _NAMED else ""
        exist = "exists" if len(shown) == 1 else "exist"
        names = ", ".join(shown[:_NAMED])
        why = f"{names}{more} {exist}, not known to be from an earlier delivery, and will be overwritten"
        yield Approval("overwrite", kind, len(shown), why)


def mark_overwrite(call: Call, snapshot: Snapshot) -> Call:
    """The call, marked if something is at the target of its delivery, or was delivered there by this stack."""
    target = snapshot.targets.get(call.address) if call.deliver else None
    return call if target is None else replace(call, overwrites=target.is_there or target.is_ours)


def report_missing_files(decisions: Iterable[Decision], snapshot: Snapshot) -> Iterable[Problem]:
    """Delivered files that are gone, where nothing is planned that would deliver them anew."""
    for decision in decisions:
        target = snapshot.targets.get(decision.address)
        if target is None or not target.is_gone or decision.is_new or decision.action is Action.DELETE:
            continue
        declaration = decision.declaration
        delivery = declaration.deliver.get(str(decision.kind.one_time)) if declaration is not None else None
        secret = decision.kind.one_time
        yield Problem(
            f"its {secret} was delivered to {target.shown} on this machine, and does not exist there any more",
            f"if the {secret} is lost, issue a new one with `apply --replace {decision.address}`",
            str(decision.address),
            delivery.position if delivery is not None else None,
            Severity.NOTE,
            code="delivered-file-gone",
        )
