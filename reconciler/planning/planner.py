"""`plan(manifest, snapshot, kinds, policy) -> Plan`: pure, and the same to the byte for the same input.

Resolves references in dependency order, matches, decides, orders, guards. Bad input is a problem in the plan, never an
exception.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from reconciler.model.address import Address
from reconciler.model.change import Action, Reason
from reconciler.model.kind import Kind
from reconciler.model.manifest import Declaration, Manifest
from reconciler.model.plan import Call, Forecast, Plan, Seen
from reconciler.model.problem import Problem, Severity
from reconciler.model.snapshot import Binding, Live, Snapshot
from reconciler.model.value import Ref, Value, digest, references, substitute
from reconciler.planning import order
from reconciler.planning.compare import shown
from reconciler.planning.decide import Decision, decide
from reconciler.planning.guard import consents, is_protected
from reconciler.planning.identify import Match, Register, match, orphans, unowned
from reconciler.planning.normalize import applied, wanted
from reconciler.planning.policy import Policy
from reconciler.planning.sequence import sequence

WINDOW = 60.0  # seconds over which the platform counts requests

__all__ = ["Policy", "plan"]


def plan(manifest: Manifest, snapshot: Snapshot, kinds: Sequence[Kind], policy: Policy) -> Plan:
    """The changes and calls that make the platform equal to the manifest, with all that stands in their way."""
    catalogue = {kind.name: kind for kind in kinds}
    register = Register.of(manifest, snapshot, kinds)
    dependencies = order.dependencies(manifest, catalogue, _declared_hosts(register, catalogue))
    ring = order.ring(dependencies)
    if ring is not None:
        return Plan(manifest.stack, problems=(_ring_problem(manifest, ring),), manifest_digest=manifest.digest)
    planning = _Planning(register, catalogue, policy)
    for address in order.sort(dependencies):
        planning.consider(manifest.declarations[address])
    planning.consider_orphans()
    return planning.finish(dependencies)


@dataclass
class _Planning:
    register: Register
    kinds: Mapping[str, Kind]
    policy: Policy
    decided: dict[Address, Decision] = field(default_factory=dict)
    orphaned: list[Decision] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def consider(self, declaration: Declaration) -> None:
        kind = self.kinds[declaration.address.kind]
        spec: dict[str, Value] = {name: substitute(value, self.resolve) for name, value in declaration.spec.items()}
        found = match(self.register, kind, declaration, wanted(kind, spec))
        if found.live is not None:
            self.register.take(found.live)
        if self.policy.selects(declaration.address):
            decision = decide(self.register, kind, declaration, spec, found, self.policy, self.follows)
            self.problems += [decision.problem] if decision.problem else self._unselected(declaration, decision)
        else:
            decision = self._left_alone(kind, declaration, found)
        self.decided[declaration.address] = decision

    def _left_alone(self, kind: Kind, declaration: Declaration, found: Match) -> Decision:
        return Decision(declaration.address, kind, live=found.live, declaration=declaration)

    def _unselected(self, declaration: Declaration, decision: Decision) -> list[Problem]:
        """References to what does not exist yet and is not to be made by this plan."""
        if decision.action in (None, Action.DELETE):
            return []
        waiting = {ref for ref in references(decision.spec) if not self._will_exist(ref)}
        missing = sorted(str(ref) for ref in waiting)
        return [
            Problem(
                f"it refers to {name}, which does not exist and is not to be created by this plan",
                "select it too, or correct the reference",
                str(declaration.address),
                declaration.position,
            )
            for name in missing
        ]

    def _will_exist(self, ref: Ref) -> bool:
        target = self.decided.get(ref.target)
        return target is not None and (target.is_new or target.problem is not None or target.live is not None)

    def resolve(self, ref: Ref) -> Value:
        """The value behind a reference if the object stays; else the reference itself."""
        decision = self.decided.get(ref.target)
        if decision is None or decision.live is None or decision.is_new or decision.ends_live:
            return ref
        if ref.output == "id":
            return decision.live.id
        value = decision.live.body.get(ref.output)
        return ref if value is None else value

    def follows(self, ref: Ref, live: Value) -> bool:
        """Whether the live value named the object that the reference's target is about to be made anew for."""
        target = self.decided.get(ref.target)
        named = live if isinstance(live, list) else [live]
        if target is None or not target.is_new:
            return False
        if target.live is not None:
            return target.live.id in named
        there = {each.id for each in self.register.snapshot.of(ref.target.kind).objects}
        return any(isinstance(each, str) and each not in there for each in named)

    def consider_orphans(self) -> None:
        spared = {
            address
            for address, decision in self.decided.items()
            if decision.problem is not None or not self.policy.selects(address)
        }
        for address, live in orphans(self.register, self.kinds, spared):
            if not self.policy.selects(address):
                continue
            kind = self.kinds[live.kind]
            listing = self.register.snapshot.of(kind.name)
            if listing.complete:
                self.orphaned.append(_orphan(kind, address, live, self.register))
            else:
                self.problems.append(
                    Problem(
                        f"{live.id} is no longer declared, and {kind.name} could not be listed to the end",
                        f"nothing of this kind is deleted; {listing.why}",
                        str(address),
                        severity=Severity.WARNING,
                    )
                )

    def finish(self, dependencies: Mapping[Address, Iterable[Address]]) -> Plan:
        decisions = [*self.decided.values(), *self.orphaned]
        calls, problems = sequence(decisions, dependencies, self.register, self.kinds)
        ours = self._ours()
        changes = [change for each in decisions if (change := each.change(is_protected(each))) is not None]
        manifest = self.register.manifest
        return Plan(
            stack=manifest.stack,
            changes=tuple(changes),
            calls=calls,
            problems=(*self.problems, *problems),
            consents=consents(decisions, len(ours), len(manifest.declarations), self.policy),
            seen=dict(self._seen(decisions)),
            bindings=self._bindings(),
            unowned=unowned(self.register, ours),
            manifest_digest=manifest.digest,
            commit=self.policy.commit,
            forecast=_forecast(calls, self.policy.requests_per_minute),
        )

    def _ours(self) -> list[Live]:
        bound = {(address.kind, each.id) for address, each in self.register.snapshot.bindings.items()}
        return [
            live
            for key, live in self.register.by_locator.items()
            if (live.owner is not None and live.owner.stack == self.register.stack) or key in bound
        ]

    def _seen(self, decisions: Iterable[Decision]) -> Iterable[tuple[Address, Seen]]:
        """What the calls were made from. Of an object that answers to two addresses' needs, the last word counts."""
        for each in decisions:
            if each.live is not None and each.action is not None:
                form = self.register.form(each.kind, each.live)
                yield each.address, Seen(each.live.locator, shown(each.kind, form, each.address))

    def _bindings(self) -> dict[Address, Binding | None]:
        """What the store is to remember of kinds without metadata, beyond what calls tell it."""
        found: dict[Address, Binding | None] = {}
        for address, each in self.decided.items():
            if each.kind.keeps_owner or each.live is None or each.is_new or not self.policy.selects(address):
                continue
            if each.action is Action.FORGET:
                found[address] = None
            elif each.action in (None, Action.ADOPT, Action.MOVE) and not each.differences:
                told = {path: digest(value, str(address)) for path, value in applied(each.kind, each.want).items()}
                binding = Binding(each.live.locator, told, each.protect)
                if binding != self.register.snapshot.bindings.get(address):
                    found[address] = binding
                if each.former is not None:
                    found[each.former] = None
        return found


def _orphan(kind: Kind, address: Address, live: Live, register: Register) -> Decision:
    return Decision(
        address, kind, action=Action.DELETE, reason=Reason.REMOVED, live=live, have=register.form(kind, live)
    )


def _declared_hosts(register: Register, kinds: Mapping[str, Kind]) -> order.HostIndex[Address]:
    """Which declaration holds a host name: a declared domain, or the address the platform gave to one of ours."""
    index: order.HostIndex[Address] = order.HostIndex()
    for address, declaration in register.manifest.declarations.items():
        name = kinds[address.kind].host
        if name is None:
            continue
        declared = declaration.spec.get(name)
        if isinstance(declared, str):
            index.add(declared, address)
        for live in register.by_owner.get(address, []):
            index.add(live.body.get(name), address)
    return index


def _forecast(calls: Sequence[Call], requests_per_minute: int) -> Forecast:
    """A budget of N lets N calls go at once, and N more every minute after."""
    count = len(calls)
    waits = (count - 1) // requests_per_minute if requests_per_minute and count else 0
    return Forecast(count, WINDOW * waits)


def _ring_problem(manifest: Manifest, ring: Sequence[Address]) -> Problem:
    first = manifest.declarations[ring[0]]
    around = " → ".join(str(address) for address in ring)
    return Problem(f"refers to itself: {around}", "break the ring", str(ring[0]), first.position)
