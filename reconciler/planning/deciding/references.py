"""Resolves references to resources that are already decided, and reports references to unavailable ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from reconciler.model.address import Address
from reconciler.model.change import Action
from reconciler.model.manifest import Declaration, Ensure, Manifest
from reconciler.model.problem import Problem
from reconciler.model.snapshot import Live, Snapshot
from reconciler.model.value import Ref, Value, references
from reconciler.planning.deciding.decision import Decision


class References:
    """Resolves references by the decisions so far; `decided` grows in dependency order."""

    def __init__(
        self,
        decided: Mapping[Address, Decision],
        snapshot: Snapshot,
        find_skipped: Callable[[Address], Live | None] = lambda address: None,
    ) -> None:
        """`find_skipped` returns the object of a resource that is not planned, if it is certain which one it is."""
        self._decided = decided
        self._snapshot = snapshot
        self._find_skipped = find_skipped

    def resolve(self, ref: Ref) -> Value:
        """The referenced value if its object exists and stays; else the reference, which the apply resolves."""
        decision = self._decided.get(ref.target)
        if decision is not None and decision.action is not None and (decision.is_new or decision.ends_live):
            return ref
        live = decision.live if decision is not None else None
        if live is None and (decision is None or decision.problem is not None):
            live = self._find_skipped(ref.target)
        if live is None:
            return ref
        if ref.output == "id":
            return live.id
        value: Value = live.body
        for part in ref.output.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        return ref if value is None else value

    def is_forgotten(self, ref: Ref) -> bool:
        """Whether the target is declared `ensure: forgotten`, and nothing tells any more which object it is."""
        target = self._decided.get(ref.target)
        declaration = target.declaration if target is not None and target.live is None else None
        return declaration is not None and declaration.ensure is Ensure.FORGOTTEN

    def follows(self, ref: Ref, live: Value) -> bool:
        """Whether the live value is the id of an object that the target of the reference replaces or has replaced."""
        target = self._decided.get(ref.target)
        ids = live if isinstance(live, list) else [live]
        if target is None or not target.is_new:
            return False
        if target.live is not None:
            return target.live.id in ids
        existing = {live_object.id for live_object in self._snapshot.of(ref.target.kind).objects}
        return any(isinstance(id, str) and id not in existing for id in ids)

    def find_skipped(
        self, declaration: Declaration, dependencies: Iterable[Address], manifest: Manifest
    ) -> Address | None:
        """A resource that the declaration refers to, and that is not planned.

        Of those whose host name it mentions, only one that does not exist.
        """
        for ref in references(dict(declaration.spec)):
            target = self._decided.get(ref.target)
            if manifest.may_declare(ref.target) if target is None else target.problem is not None:
                return ref.target
        needed = (self._decided[address] for address in dependencies)
        return next((other.address for other in needed if other.problem is not None and other.live is None), None)

    def find_unavailable(
        self, declaration: Declaration, decision: Decision, dependencies: Iterable[Address]
    ) -> Iterator[Problem]:
        """A problem for each dependency that neither exists on the platform nor is created by this plan."""
        if decision.action in (None, Action.DELETE, Action.FORGET):
            return
        needed = {str(ref): ref.target for ref in references(decision.spec) if not self._will_exist(ref.target)}
        needed |= {
            str(address): address
            for address in dependencies
            if not self._will_exist(address)
            and self._decided[address].live is None
            and not self.is_forgotten(Ref(address))
        }
        for name, target in sorted(needed.items()):
            yield Problem(
                f"it refers to {name}, {self._why_unavailable(target)}",
                self._remedy(target),
                str(declaration.address),
                declaration.position,
                code="reference-unavailable",
                values={"reference": name},
            )

    def _will_exist(self, address: Address) -> bool:
        """Whether the target is created by this plan, or has a problem of its own."""
        target = self._decided.get(address)
        return target is not None and (target.is_new or target.problem is not None)

    def _why_unavailable(self, address: Address) -> str:
        target = self._decided.get(address)
        if self.is_forgotten(Ref(address)):
            return "which this stack does not manage any more"
        if target is None or target.live is None:
            return "which does not exist and will not be created by this plan"
        return "which will be deleted" if target.ends_live else "which the platform does not return"

    def _remedy(self, address: Address) -> str:
        if self.is_forgotten(Ref(address)):
            return f"write the id instead of the reference, or set `id:` on {address}"
        return f"select {address} too, or correct the reference"


def report_skipped_referrer(declaration: Declaration, target: Address) -> Problem:
    """The problem of a change that would refer to a resource that is not planned."""
    return Problem(
        f"its change is skipped, since it refers to {target}, which cannot be planned",
        f"resolve the problem of {target} first",
        str(declaration.address),
        declaration.position,
        code="refers-to-skipped",
    )
