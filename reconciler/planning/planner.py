"""`plan(manifest, snapshot, kinds, policy) -> Plan`: pure, and the same to the byte for the same input.

Resolves references in dependency order, matches, decides, orders, guards. Bad input is a problem in the plan, never an
exception.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from graphlib import CycleError

from reconciler.model.address import Address
from reconciler.model.canonical import applied, digests, wanted
from reconciler.model.change import Action, Reason
from reconciler.model.kind import Kind
from reconciler.model.manifest import Declaration, Ensure, Manifest
from reconciler.model.plan import Call, Forecast, Plan, Seen
from reconciler.model.problem import Problem, Severity
from reconciler.model.snapshot import Binding, Live, Snapshot
from reconciler.model.value import Ref, Value, references, substitute
from reconciler.planning.comparing.compare import shown
from reconciler.planning.comparing.name_references import spelt_out
from reconciler.planning.comparing.pending import is_pending
from reconciler.planning.deciding import delivery_targets
from reconciler.planning.deciding.additions import Addition, approved, find_additions, unknown_additions
from reconciler.planning.deciding.decide import Decision, decide
from reconciler.planning.deciding.exclusive_keys import LiveKey
from reconciler.planning.deciding.fast_path import unchanged
from reconciler.planning.deciding.options import Policy
from reconciler.planning.deciding.rotation import overlaps
from reconciler.planning.guards import consents, is_protected
from reconciler.planning.matching.index import Register, copies, elsewhere, orphans, unmanaged, whose
from reconciler.planning.matching.match import copied, match
from reconciler.planning.ordering import dependencies as order
from reconciler.planning.ordering.cycle_breaking import Exchange
from reconciler.planning.ordering.sequence import Sequenced, sequence

WINDOW = 60.0  # seconds over which the platform counts requests
PAGE = 100  # objects: the platform's largest page

__all__ = ["Policy", "paired", "plan"]


def plan(manifest: Manifest, snapshot: Snapshot, kinds: Sequence[Kind], policy: Policy) -> Plan:
    """The changes and calls that make the platform equal to the manifest, with all that stands in their way."""
    catalogue = {kind.name: kind for kind in kinds}
    manifest = _spelt_out(manifest, snapshot, catalogue)
    register = Register.of(manifest, snapshot, kinds)
    dependencies = order.dependencies(manifest, catalogue, _declared_hosts(register, catalogue))
    try:
        ordered = order.sort(dependencies)
    except CycleError as ring:
        return Plan(manifest.stack, problems=(_ring_problem(manifest, ring.args[1]),), manifest_digest=manifest.digest)
    planning = _Planning(register, catalogue, policy, dependencies)
    for address in ordered:
        planning.consider(manifest.declarations[address])
    planning.consider_orphans()
    planning.consider_additions()
    return planning.finish()


def paired(manifest: Manifest, snapshot: Snapshot, kinds: Sequence[Kind]) -> Mapping[tuple[str, str], Address]:
    """Which live object, by kind and locator, each declaration means. What cannot be told is left out."""
    catalogue = {kind.name: kind for kind in kinds}
    manifest = _spelt_out(manifest, snapshot, catalogue)
    register = Register.of(manifest, snapshot, kinds)
    dependencies = order.dependencies(manifest, catalogue, _declared_hosts(register, catalogue))
    if order.ring(dependencies) is not None:
        return {}
    planning = _Planning(register, catalogue, Policy(), dependencies)
    for address in order.sort(dependencies):
        planning.consider(manifest.declarations[address])
    return dict(register.taken)


def _spelt_out(manifest: Manifest, snapshot: Snapshot, kinds: Mapping[str, Kind]) -> Manifest:
    """The manifest with ids, or references to them, where it says names."""
    found = spelt_out(manifest.declarations, kinds, lambda kind: snapshot.of(kind).objects)
    return replace(manifest, declarations={**manifest.declarations, **found}) if found else manifest


@dataclass
class _Planning:
    """A plan in the making: what is decided so far, of the declarations and of what nobody declares any more."""

    register: Register
    kinds: Mapping[str, Kind]
    policy: Policy
    dependencies: Mapping[Address, Collection[Address]]
    decided: dict[Address, Decision] = field(default_factory=dict)
    orphaned: list[Decision] = field(default_factory=list)
    additions: list[Addition] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def consider(self, declaration: Declaration) -> None:
        kind = self.kinds[declaration.address.kind]
        asked = declaration.address in self.policy.to_replace
        live = None if asked else unchanged(self.register, kind, declaration, self.resolve, self.follows)
        if live is None:
            decision = self._decision(kind, declaration)
        else:
            decision = Decision(declaration.address, kind, live=live, declaration=declaration)
        self.decided[declaration.address] = decision

    def _decision(self, kind: Kind, declaration: Declaration) -> Decision:
        spec: dict[str, Value] = {name: substitute(value, self.resolve) for name, value in declaration.spec.items()}
        want = wanted(kind, spec)
        found = match(self.register, kind, declaration, want)
        left_alone = Decision(declaration.address, kind, live=found.live, declaration=declaration, former=found.former)
        if not self.policy.selects(declaration.address):
            return left_alone
        if (undecided := self._undecided(spec)) is not None:
            return replace(left_alone, problem=self._left(declaration, undecided))
        decision = decide(self.register, kind, declaration, spec, want, found, self.policy, self.follows)
        self.problems += [decision.problem] if decision.problem else self._missing(declaration, decision)
        if decision.action is None and decision.problem is None and kind.keeps_owner:
            self.register.drop_form(found.live)
            return left_alone  # of what stays as it is there is no more to remember
        return decision

    def _undecided(self, spec: Mapping[str, Value]) -> Address | None:
        """A resource that is referred to and waits for a person's answer."""
        if not any(each.confined for each in self.problems):
            return None
        targets = (self.decided.get(ref.target) for ref in references(dict(spec)))
        found = (each for each in targets if each is not None and each.problem is not None and each.problem.confined)
        return next((each.address for each in found), None)

    def _left(self, declaration: Declaration, target: Address) -> Problem:
        """Kept and returned: what refers to such a resource is left as it is, too."""
        text = f"it refers to {target}, of which several exist, and is left as it is"
        problem = Problem(
            text,
            f"resolve {target} first",
            str(declaration.address),
            declaration.position,
            code="credential-created-twice",
            confined=True,
        )
        self.problems.append(problem)
        return problem

    def _missing(self, declaration: Declaration, decision: Decision) -> list[Problem]:
        """What has to be there and is not: not on the platform, and not to be made by this plan."""
        if decision.action in (None, Action.DELETE, Action.FORGET):
            return []
        needed = {str(ref): ref.target for ref in references(decision.spec) if not self._comes(ref.target)}
        needed |= {
            str(address): address
            for address in self.dependencies[declaration.address]
            if not self._comes(address) and self.decided[address].live is None
        }
        return [
            Problem(
                f"it refers to {name}, {self._why_not(target)}",
                "select it too, or correct the reference",
                str(declaration.address),
                declaration.position,
            )
            for name, target in sorted(needed.items())
        ]

    def _comes(self, address: Address) -> bool:
        """Whether a reference that is not known yet will be, or why not has been told."""
        target = self.decided.get(address)
        return target is not None and (target.is_new or target.problem is not None)

    def _why_not(self, address: Address) -> str:
        target = self.decided.get(address)
        if target is None or target.live is None:
            return "which does not exist and is not to be created by this plan"
        return "which is to go" if target.ends_live else "which the platform does not show"

    def resolve(self, ref: Ref) -> Value:
        """The value behind a reference if the object stays; else the reference itself."""
        decision = self.decided.get(ref.target)
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
        spared = self._spared()
        left = [
            (address, live)
            for address, live in orphans(self.register, self.kinds, spared)
            if self.policy.selects(address) and not (spared and self.register.reserved.get(live.key) in spared)
        ]
        doubtful = copies(left)
        self.problems += [copied(address, lives) for address, lives in doubtful.items()]
        for address, live in left:
            if address in doubtful or self._overlaps(address, live):
                continue
            kind = self.kinds[live.kind]
            listing = self.register.snapshot.of(kind.name)
            if listing.complete:
                self.orphaned.append(self._orphan(kind, address, live))
            else:
                self.problems.append(
                    Problem(
                        f"{live.id} is no longer declared, and {kind.name} could not be listed to the end",
                        f"nothing of this kind is deleted; {listing.why}",
                        str(address),
                        severity=Severity.WARNING,
                        code="kind-not-listed",
                    )
                )

    def consider_additions(self) -> None:
        """What was added to our objects on the platform; what is to be deleted, and may, is an orphan."""
        kinds = self.kinds.values()
        self.additions = find_additions(self.register, kinds, self.decided.values(), self.policy)
        self.orphaned += [each.decision for each in approved(self.additions, self.policy)]
        self.problems += unknown_additions(self.register, kinds, self.decided.values())

    def _spared(self) -> set[Address]:
        """The addresses of which nothing is an orphan: what is left out or could not be matched, under any name."""
        spared: set[Address] = set()
        for address, decision in self.decided.items():
            if decision.problem is not None or not self.policy.selects(address):
                spared |= {address, *self.register.manifest.declarations[address].moved}
                spared |= {decision.former} if decision.former is not None else set()
        return spared

    def _orphan(self, kind: Kind, address: Address, live: Live) -> Decision:
        recorded = live.owner.address if live.owner is not None else address
        outlived = self._outlived_by(address)
        left = Reason.DESTROYED if self.policy.destroy else Reason.REMOVED
        return Decision(
            address,
            kind,
            action=Action.DELETE,
            reason=Reason.TWICE if live.key in self.register.twice else Reason.SUPERSEDED if outlived else left,
            live=live,
            former=recorded if recorded != address else None,
            have=self.register.form(kind, live),
            guarded=self.register.guards(live),
            outlived=outlived,
        )

    def _outlived_by(self, address: Address) -> bool:
        """Whether the address is declared, and has or gets an object of its own."""
        decision = self.decided.get(address)
        return decision is not None and (decision.live is not None or decision.is_new)

    def _overlaps(self, address: Address, live: Live) -> bool:
        """Whether it was renewed, and is to live for a while yet."""
        decision = self.decided.get(address) or self._renamed(address)
        if decision is None or decision.declaration is None or decision.live is None:
            return False
        return overlaps(decision.declaration, decision.live, live, self.policy.now)

    def _renamed(self, address: Address) -> Decision | None:
        """The decision for the object that bears an address in its record, and another one in Git."""
        bearers = self.register.by_owner.get(address, ())
        found = (self.decided.get(self.register.taken.get(each.key, address)) for each in bearers)
        return next((each for each in found if each is not None), None)

    def finish(self) -> Plan:
        decisions, (calls, problems, taken) = self._sequenced()
        parts = [self.register.by_locator[key] for key in sorted(taken)]
        moving = [each for each in decisions if each.action is not None]
        ours = [live for live in self.register.by_locator.values() if self.register.is_ours(live)]
        changes = {
            id(each): replace(change, is_pending=is_pending(each, self.register))
            for each in moving
            if (change := each.change(is_protected(each))) is not None
        }
        changes |= {id(each.decision): each.change() for each in self.additions if id(each.decision) in changes}
        left = [each for each in self.additions if id(each.decision) not in changes]
        known = {*taken, *(each.decision.live.key for each in self.additions if each.decision.live is not None)}
        manifest = self.register.manifest
        return Plan(
            stack=manifest.stack,
            changes=tuple(changes.values()),
            calls=tuple(map(self._told_what_it_overwrites, calls)),
            problems=(
                *self.problems,
                *problems,
                *self._torn(taken),
                *_unread(self.register.snapshot),
                *self._notes(decisions),
            ),
            consents=consents(moving, parts, self.register, len(ours), self.policy, self.additions),
            seen=dict(self._seen([*self.orphaned, *self.decided.values()])),
            bindings=self._bindings(),
            additions=tuple(each.change() for each in left),
            unmanaged=tuple(each for each in unmanaged(self.register, ours) if each not in known),
            elsewhere=elsewhere(self.register),
            targets=self.policy.targets,
            excludes=self.policy.excludes,
            manifest_digest=manifest.digest,
            declared=len(manifest.declarations),
            commit=self.policy.commit,
            forecast=_forecast(calls, self.register.snapshot, self.kinds, self.policy.requests_per_minute),
        )

    def _told_what_it_overwrites(self, call: Call) -> Call:
        target = self.register.snapshot.targets.get(call.address) if call.deliver else None
        return call if target is None else replace(call, overwrites=target.is_there or target.is_ours)

    def _notes(self, decisions: Iterable[Decision]) -> Iterable[Problem]:
        return delivery_targets.notes(
            (each for each in decisions if self.policy.selects(each.address)), self.register.snapshot
        )

    def _torn(self, taken: Mapping[LiveKey, Address]) -> Iterator[Problem]:
        """What is to stay, and would go with what it is part of."""
        for key, whole in sorted(taken.items()):
            live = self.register.by_locator[key]
            if not self.register.is_ours(live):
                continue
            address = live.owner.address if live.owner is not None else self.register.bound(live)[0]
            declaration = self.register.manifest.declarations.get(address)
            declared = declaration is not None and declaration.ensure is not Ensure.ABSENT
            if declared or self.policy.leaves_out(address):
                text = f"is {'declared' if declared else 'excluded'}, and would go with {whole}, which it is part of"
                position = declaration.position if declaration is not None else None
                yield Problem(text, "keep both or let go of both, and select both", str(address), position)

    def _sequenced(self) -> tuple[list[Decision], Sequenced]:
        while True:
            decisions = [*self.decided.values(), *self.orphaned]
            try:
                return decisions, sequence(decisions, self.dependencies, self.register, self.kinds)
            except Exchange as found:
                self.decided[found.decision.address] = found.decision

    def _seen(self, decisions: Iterable[Decision]) -> Iterable[tuple[Address, Seen]]:
        """What the calls were made from. Of two objects of one address the declared one counts."""
        for each in decisions:
            if each.live is not None and each.action is not None:
                form = self.register.form(each.kind, each.live)
                yield each.address, Seen(each.live.locator, shown(each.kind, form, each.address), whose(each.live))

    def _bindings(self) -> dict[Address, Binding | None]:
        """What the store is to remember of kinds without metadata, beyond what calls tell it."""
        found: dict[Address, Binding | None] = dict.fromkeys(self._outlived())
        for address, each in self.decided.items():
            if each.live is None or not self.policy.selects(address):
                continue
            if each.action is Action.FORGET:
                declared = self.register.manifest.declarations
                others = [other for other in self.register.bound(each.live) if other not in declared]
                found |= dict.fromkeys((address, *others))  # whatever the object was called before
            elif each.kind.keeps_owner or each.is_new:
                continue
            elif each.is_kept and not each.differences:
                told = digests(applied(each.kind, each.want), str(address))
                binding = Binding(each.live.locator, told, each.protect, self._still_replaces(each.kind, address))
                if binding != self.register.snapshot.bindings.get(address):
                    found[address] = binding
                if each.former is not None:
                    found[each.former] = None
        return found

    def _still_replaces(self, kind: Kind, address: Address) -> str | None:
        """What the object of an address was made to replace, while that is still there to be deleted."""
        binding = self.register.snapshot.bindings.get(address)
        old = binding.replaces if binding is not None else None
        return old if (kind.name, str(old)) in self.register.by_locator else None

    def _outlived(self) -> Iterator[Address]:
        """Bindings to what is gone, since another object may come to bear the same name, and is not ours; and to what
        says itself that it is called otherwise by now, since it may be forgotten under that name."""
        for address, binding in sorted(self.register.snapshot.bindings.items()):
            kind, declared = self.kinds.get(address.kind), self.register.manifest.declarations.get(address)
            if kind is None or (declared is not None and declared.ensure is Ensure.PRESENT):
                continue
            key = (kind.name, binding.id)
            live = self.register.by_locator.get(key)
            if kind.keeps_owner:
                owner = live.owner if live is not None else None
                outlived = owner is not None and (owner.stack, owner.address) != (self.register.stack, address)
            else:
                listed = self.register.snapshot.of(kind.name).complete
                # What is declared as another kind by now is that declaration's.
                outlived = listed and (live is None or self.register.twins.get(key) in self.register.taken)
            if outlived and self.policy.selects(address):
                yield address


def _declared_hosts(register: Register, kinds: Mapping[str, Kind]) -> order.HostIndex[Address]:
    """Which declaration holds a host name: a declared domain, or the address the platform gave to one of ours."""
    index: order.HostIndex[Address] = order.HostIndex()
    for address, declaration in register.manifest.declarations.items():
        name = kinds[address.kind].host
        if name is None or declaration.ensure is not Ensure.PRESENT:
            continue
        declared = declaration.spec.get(name)
        if isinstance(declared, str):
            index.add(declared, address)
        for live in register.recorded(kinds[address.kind], address):
            index.add(live.body.get(name), address)
    return index


def _unread(snapshot: Snapshot) -> list[Problem]:
    """What a key for a part of the account does not show."""
    denied = sorted(name for name, listing in snapshot.listings.items() if listing.denied)
    if not denied:
        return []
    text = f"the API key may not read these kinds: {', '.join(denied)}"
    remedy = "nothing of them is compared or deleted; use a key that may"
    return [Problem(text, remedy, severity=Severity.WARNING, code="kind-not-readable")]


def _forecast(calls: Sequence[Call], snapshot: Snapshot, kinds: Mapping[str, Kind], per_minute: int) -> Forecast:
    """A budget of N lets N requests go at once, and N more every minute after: the look before the calls is of them."""
    count = len(calls)
    if not per_minute or not count:
        return Forecast(count, 0.0)
    requests = _pages(snapshot, kinds) + _checks(calls, snapshot, kinds, per_minute) + count
    return Forecast(count, WINDOW * ((requests - 1) // per_minute))


def _pages(snapshot: Snapshot, kinds: Mapping[str, Kind]) -> int:
    """The requests that a look like this one takes."""
    objects: dict[str, int] = {}
    for name, listing in snapshot.listings.items():
        if name in kinds and kinds[name].parent is None:
            objects[kinds[name].path] = objects.get(kinds[name].path, 0) + len(listing.objects)
    return sum(max(1, -(-number // PAGE)) for number in objects.values())


def _checks(calls: Sequence[Call], snapshot: Snapshot, kinds: Mapping[str, Kind], per_minute: int) -> int:
    """The requests that re-read owner records, one by one or by a list in each minute, whichever are fewer."""
    old = Counter(
        each.address.kind for each in calls if each.target is not None and kinds[each.address.kind].keeps_owner
    )
    found = 0
    for kind, number in old.items():
        pages = 1 + len(snapshot.of(kind).objects) // PAGE
        found += min(number, pages * -(-number // max(1, per_minute - pages)))
    return found


def _ring_problem(manifest: Manifest, ring: Sequence[Address]) -> Problem:
    first = manifest.declarations[ring[0]]
    around = " → ".join(str(address) for address in ring)
    return Problem(f"refers to itself: {around}", "break the ring", str(ring[0]), first.position)
