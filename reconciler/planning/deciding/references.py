"""Resolves references to resources that are already decided, and reports references to unavailable ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from reconciler.model.address import Address
from reconciler.model.change import Action
from reconciler.model.manifest import Declaration, Ensure
from reconciler.model.problem import Problem
from reconciler.model.snapshot import Snapshot
from reconciler.model.value import Ref, Value, references
from reconciler.planning.deciding.decision import Decision


class References:
    """Resolves references by the decisions so far; `decided` grows in dependency order."""

    def __init__(self, decided: Mapping[Address, Decision], snapshot: Snapshot) -> None:
        self._decided = decided
        self._snapshot = snapshot

    def resolve(self, ref: Ref) -> Value:
        """The referenced value if its object exists and stays; else the reference, which the apply resolves."""
        decision = self._decided.get(ref.target)
        if decision is None or decision.live is None:
            return ref
        if decision.action is not None and (decision.is_new or decision.ends_live):
            return ref
        if ref.output == "id":
            return decision.live.id
        value: Value = decision.live.body
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

    def find_confined(self, spec: Mapping[str, Value]) -> Address | None:
        """A referenced resource with a problem that a user has to resolve, and that is confined to its referrers."""
        targets = (self._decided.get(ref.target) for ref in references(dict(spec)))
        confined = (
            target
            for target in targets
            if target is not None and target.problem is not None and target.problem.confined
        )
        return next((decision.address for decision in confined), None)

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
    """The problem of a resource that refers to a credential of which several exist."""
    return Problem(
        f"it refers to {target}, of which several exist, so that nothing is planned for it",
        f"resolve {target} first",
        str(declaration.address),
        declaration.position,
        code="credential-created-twice",
        confined=True,
    )
