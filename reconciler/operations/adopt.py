"""Adopts exactly the named objects, which no stack manages. Any other change of their plan is an error."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconciler import kinds
from reconciler.model.address import Address
from reconciler.model.change import Action, Change, Reason
from reconciler.model.dialect import to_specification_id
from reconciler.model.manifest import Declaration, Ensure
from reconciler.model.plan import Plan
from reconciler.model.problem import Position, Problem
from reconciler.model.snapshot import Snapshot
from reconciler.operations.applying import apply
from reconciler.operations.authoring.drop_ids import drop_ids
from reconciler.operations.errors import InvalidProject
from reconciler.operations.open_project import OpenProject, Selection
from reconciler.operations.reporting import Note, OnEvent, Planned
from reconciler.operations.results import ApplyResult, Status

if TYPE_CHECKING:
    from reconciler.operations.applying.apply import Approve
    from reconciler.operations.reporting import OperationEvent

_INSTEAD = {
    Action.CREATE: (
        "does not exist on the platform, so there is nothing to adopt",
        "give the object's id with --id, or create it with apply",
    ),
    Action.UPDATE: ("is already managed by this stack, and differs", "run apply"),
    Action.MOVE: (
        "is already managed by this stack at another address",
        "declare the former address with `moved:` and run apply",
    ),
}
_NEVER = 2**62  # seconds
_BY_CALLER = {"remove `id`, set": "set", "remove it to create the object again": "omit --id"}


async def adopt(
    project: OpenProject,
    addresses: Sequence[Address],
    id: str | None,
    *,
    approve: Approve | None,
    on_event: OnEvent,
    stop: asyncio.Event | None,
) -> ApplyResult:
    """See `Workspace.adopt`. Raises InvalidProject if an address is not declared, or declared absent or forgotten."""
    adopting = _prepare_adoption(project, addresses, id)
    bindings: set[str] = set()

    def collect(event: OperationEvent) -> None:
        if isinstance(event, Planned):
            bindings.update(_find_store_only(event.plan))
        on_event(event)

    result = await apply.apply(
        adopting, None, approve=approve, on_event=collect, stop=stop, partial=False, wait=None, command="adopt"
    )
    if result.status not in (Status.APPLIED, Status.UNCHANGED):
        return result
    dropped = drop_ids(project, addresses)
    for address, file in dropped.changed.items():
        on_event(Note(f"removed `id` of {address} from {file}: its owner record identifies the object now"))
    for address, why in dropped.left.items():
        on_event(Note(f"note: `id` of {address} is no longer needed, and was not removed: {why}"))
    return replace(result, recorded_in_store=tuple(sorted(bindings)))


def _find_store_only(plan: Plan) -> set[str]:
    """Addresses that are adopted without a call: their kinds have no owner record, so only the store records them."""
    changed = {change.address for change in plan.changes}
    return {str(address) for address, binding in plan.bindings.items() if binding and address not in changed}


@dataclass(frozen=True)
class _AdoptedProject(OpenProject):
    """A project whose plans have an error for each change other than an adoption.

    by_caller  the address whose id is not in its manifest but was given with --id
    """

    by_caller: Address | None = None

    def plan_for(self, snapshot: Snapshot) -> Plan:
        plan = super().plan_for(snapshot)
        wrong = tuple(_problem(change) for change in plan.changes if change.action is not Action.ADOPT or change.fields)
        refused = (replace(problem, confined=False) for problem in plan.problems)  # all are adopted, or none
        return replace(plan, problems=tuple(map(self._reword, (*refused, *wrong))))

    def _reword(self, problem: Problem) -> Problem:
        """The problem with a remedy about --id, if that is where the id was given."""
        if self.by_caller is None or not problem.subject.startswith(str(self.by_caller)):
            return problem
        remedy = problem.remedy
        for written, given in _BY_CALLER.items():
            remedy = remedy.replace(written, given)
        return replace(problem, remedy=remedy)


def _prepare_adoption(project: OpenProject, addresses: Sequence[Address], id: str | None) -> OpenProject:
    declared = dict(project.manifest.declarations)
    for address in addresses:
        declared[address] = _to_adopt(declared.get(address), address, id)
    chosen = project.select(Selection(targets=tuple(map(str, addresses))), allow=project.options.allow, adopt=True)
    by_caller = next(
        (address for address in addresses if id and project.manifest.declarations[address].id is None), None
    )
    manifest = replace(project.manifest, declarations=declared)
    fields = {name: getattr(chosen, name) for name in OpenProject.__dataclass_fields__}
    return _AdoptedProject(**{**fields, "manifest": manifest, "by_caller": by_caller})


def _to_adopt(declaration: Declaration | None, address: Address, id: str | None) -> Declaration:
    if declaration is None:
        remedy = f"`reconciler import --target {address}` writes a manifest for it if it exists"
        raise _invalid(address, "is not declared", remedy)
    if declaration.ensure is not Ensure.PRESENT:
        text = f"is declared {declaration.ensure}"
        raise _invalid(address, text, "remove `ensure:` to adopt it", declaration.position)
    rotate = declaration.rotate
    return replace(
        declaration,
        id=to_specification_id(id, kinds.get(address.kind).id_prefix) if id else declaration.id,
        rotate=rotate and replace(rotate, after=_NEVER),  # an adoption replaces nothing
        lifecycle=declaration.lifecycle.model_copy(update={"adopt": True}),
    )


def _invalid(address: Address, text: str, remedy: str, position: Position | None = None) -> InvalidProject:
    return InvalidProject([Problem(text, remedy, str(address), position, code="not-adoptable")])


def _problem(change: Change) -> Problem:
    if change.action is Action.ADOPT:
        differing = ", ".join(dict.fromkeys(field.path for field in change.fields))
        remedy = "declare the live values, or adopt and update with `apply --adopt`"
        return Problem(
            f"would be adopted and changed: {differing}",
            remedy,
            str(change.address),
            change.position,
            code="adoption-with-changes",
        )
    if change.reason is Reason.NO_SUCH_ID:
        text, remedy = "no object has its id", "correct the id, or remove it to create the object again"
        return Problem(text, remedy, str(change.address), change.position, code="adoption-with-changes")
    text, remedy = _INSTEAD.get(
        change.action, (f"cannot only be adopted: the plan is to {change.action} it", "run apply")
    )
    return Problem(text, remedy, str(change.address), change.position, code="adoption-with-changes")
