"""Judges the health of the objects of a stack, with the lists that it takes beside those of a plan."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconciler import kinds
from reconciler.engine.observe import observe
from reconciler.engine.ports import Refused
from reconciler.health.facts import Facts
from reconciler.kinds import read_only
from reconciler.model.address import Address
from reconciler.model.health import Health, HealthRow, State
from reconciler.model.snapshot import Listing, Live, LiveKey, Snapshot
from reconciler.operations.reporting import OnEvent, ignore_event

if TYPE_CHECKING:
    from reconciler.operations.open_project import OpenProject


async def find_health(
    project: OpenProject, snapshot: Snapshot, on_event: OnEvent = ignore_event, *, others: bool = False
) -> tuple[HealthRow, ...]:
    """The health of the selected objects of the stack, by address; of kinds that have health.

    Reads lists that no plan needs, such as those of tunnels, if something depends on them. A declared object that an
    incomplete list does not show is unknown.

    others  judge the other objects of the account instead: of other stacks and of none, without an address
    """
    read = snapshot
    while True:
        facts = build_facts(project, read)
        rows = [*_judge_others(project, facts)] if others else [*_judge_own(project, facts)]
        unread = facts.unread - read.listings.keys()
        if not unread:
            return tuple(sorted(rows, key=lambda row: (row.address, row.id)))
        read = await _read_also(project, read, unread, on_event)


def judge_known(project: OpenProject, snapshot: Snapshot) -> tuple[HealthRow, ...]:
    """As `find_health`, without a request: what depends on lists that were not read is unknown."""
    return tuple(sorted(_judge_own(project, build_facts(project, snapshot)), key=lambda row: (row.address, row.id)))


def build_facts(project: OpenProject, snapshot: Snapshot, now: float | None = None) -> Facts:
    """The facts about an account, with the settings and rotations of the project. `now`: seconds since 1970."""
    rotations = {
        address: float(declaration.rotate.after)
        for address, declaration in project.manifest.declarations.items()
        if declaration.rotate is not None
    }
    return Facts(snapshot, project.runtime.now() if now is None else now, project.config.expires_within, rotations)


def list_own(project: OpenProject, snapshot: Snapshot) -> dict[LiveKey, str]:
    """The address of each object of the stack: of its owner record, or of the store's binding."""
    stack = project.manifest.stack
    found = {(address.kind, binding.id): str(address) for address, binding in snapshot.bindings.items()}
    for listing in snapshot.listings.values():
        for live in listing.objects:
            if live.owner is not None and live.owner.stack == stack:
                found[live.key] = str(live.owner.address)
            elif live.owner is not None:
                found.pop(live.key, None)
    return found


def _judge_own(project: OpenProject, facts: Facts) -> Iterator[HealthRow]:
    own, judged = list_own(project, facts.snapshot), set[str]()
    for live in _list_judged(facts):
        if (address := own.get(live.key)) is not None:
            judged.add(address)
            if _is_selected(project, address) and (health := facts.judge(live)) is not None:
                yield HealthRow(address, live.id, health)
    for declared in project.manifest.declarations:
        listing = facts.snapshot.of(declared.kind)
        if kinds.get(declared.kind).health is None or listing.complete or str(declared) in judged:
            continue
        if project.options.selects(declared):
            reason = f"the list of {declared.kind} could not be read" + (f": {listing.why}" if listing.why else "")
            yield HealthRow(str(declared), "", Health(State.UNKNOWN, reason))


def _judge_others(project: OpenProject, facts: Facts) -> Iterator[HealthRow]:
    own = list_own(project, facts.snapshot)
    for live in _list_judged(facts):
        if live.key not in own and (health := facts.judge(live)) is not None:
            yield HealthRow("", live.id, health)


def _list_judged(facts: Facts) -> Iterator[Live]:
    """The objects of the kinds that have health."""
    for kind in kinds.list_planned():
        if kind.health is not None:
            yield from facts.snapshot.of(kind.name).objects


def _is_selected(project: OpenProject, address: str) -> bool:
    return not project.options.is_limited or project.options.selects(Address.parse(address))


async def _read_also(project: OpenProject, snapshot: Snapshot, names: set[str], on_event: OnEvent) -> Snapshot:
    """The snapshot with the lists of these kinds too, whether or not they could be read."""
    found = [kind for kind in map(read_only.find, sorted(names)) if kind is not None]
    try:
        async with project.open_reader(on_event) as reader:
            also = await observe(reader, found, concurrency=project.parallelism)
        listings = {name: also.of(name) for name in names}
    except Refused as refusal:  # the key may read the account, and none of these lists
        listings = dict.fromkeys(names, Listing(complete=False, why=str(refusal), denied=True))
    return replace(snapshot, listings={**snapshot.listings, **listings})
