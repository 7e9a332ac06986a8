"""The session of `adopt`: its plans may take over the named objects, and anything else that comes up is a problem."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from reconciler.cli import session
from reconciler.cli.session import Session
from reconciler.cli.terminal import exit_codes, output
from reconciler.cli.terminal.options import Options
from reconciler.model.address import Address
from reconciler.model.change import Action, Change
from reconciler.model.manifest import Declaration, Ensure
from reconciler.model.plan import Plan
from reconciler.model.problem import Problem
from reconciler.model.snapshot import Snapshot

_INSTEAD = {
    Action.CREATE: (
        "is not found on the platform, so there is nothing to take over",
        "name the object with --id, or have it made by apply",
    ),
    Action.UPDATE: ("is ours already, and differs", "apply puts it right"),
    Action.MOVE: ("is ours already, under another name", "say so with `moved:`, and apply"),
}
_BY_FLAG = {"remove `id:` and say": "say", "remove the line": "leave --id out"}


@dataclass(frozen=True)
class Adopting(Session):
    """`remembered` are those taken over without a call: their kinds carry no owner record, so the store has it.
    `by_flag` is the one whose id no manifest says."""

    remembered: set[Address] = field(default_factory=set)
    by_flag: Address | None = None

    def plan(self, snapshot: Snapshot) -> Plan:
        made = super().plan(snapshot)
        wrong = tuple(_problem(each) for each in made.changes if each.action is not Action.ADOPT or each.fields)
        changed = {change.address for change in made.changes}
        self.remembered.update(address for address, each in made.bindings.items() if each and address not in changed)
        return replace(made, problems=(*map(self._reworded, made.problems), *wrong))

    def _reworded(self, problem: Problem) -> Problem:
        """There is no `id:` to remove where a flag says it."""
        if self.by_flag is None or not problem.subject.startswith(str(self.by_flag)):
            return problem
        remedy = problem.remedy
        for written, flagged in _BY_FLAG.items():
            remedy = remedy.replace(written, flagged)
        return replace(problem, remedy=remedy)


def opened(options: Options, addresses: tuple[Address, ...], id: str | None) -> Adopting:
    """The session in which these are taken over. Rejected if one of them is not declared, or declared gone."""
    names = tuple(map(str, addresses))
    base = session.opened(replace(options, targets=names, adopt=True))
    declared = dict(base.manifest.declarations)
    for each in addresses:
        declared[each] = _consenting(declared.get(each), each, id)
    manifest = replace(base.manifest, declarations=declared)
    by_flag = next((each for each in addresses if id and base.manifest.declarations[each].id is None), None)
    return Adopting(**{**_fields(base), "manifest": manifest, "by_flag": by_flag})


def told(opened: Adopting, code: int) -> int:
    """Names what was taken over without a call."""
    if code == exit_codes.DONE and opened.remembered:
        names = ", ".join(sorted(map(str, opened.remembered)))
        output.answer(f"Remembered as ours: {names}.")
    return code


def _fields(base: Session) -> dict[str, Any]:
    return {name: getattr(base, name) for name in Session.__dataclass_fields__}


def _consenting(declaration: Declaration | None, address: Address, id: str | None) -> Declaration:
    if declaration is None:
        remedy = f"`reconciler import --target {address}` writes a manifest for an object that would be called so"
        raise exit_codes.Stop(exit_codes.ERROR, f"error: {address} is not declared; {remedy}")
    if declaration.ensure is not Ensure.PRESENT:
        raise exit_codes.Stop(
            exit_codes.ERROR,
            f"error: {declaration.position}: {address} is declared {declaration.ensure}; remove `ensure:` to adopt it",
        )
    return replace(declaration, id=id or declaration.id, lifecycle=replace(declaration.lifecycle, adopt=True))


def _problem(change: Change) -> Problem:
    if change.action is Action.ADOPT:
        differing = ", ".join(dict.fromkeys(each.path for each in change.fields))
        remedy = "declare what is there, or let `apply --adopt` do both"
        return Problem(f"would be taken over and changed: {differing}", remedy, str(change.address), change.position)
    text, remedy = _INSTEAD.get(change.action, (f"would be more than taken over: {change.action}", "apply does that"))
    return Problem(text, remedy, str(change.address), change.position)
