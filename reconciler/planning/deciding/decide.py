"""What has to happen to one declared resource, given the object it was matched with. Knows nothing of calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from reconciler.model import owner_record as owners
from reconciler.model.address import Address
from reconciler.model.canonical import Form, applied, wanted
from reconciler.model.change import Action, Change, Order, Reason, Risk
from reconciler.model.kind import Kind
from reconciler.model.manifest import Declaration, Ensure
from reconciler.model.owner_record import Owner
from reconciler.model.problem import Problem
from reconciler.model.snapshot import Listing, Live
from reconciler.model.value import Value
from reconciler.planning.comparing import ignore
from reconciler.planning.comparing.compare import Difference, Follows, Record, created, differences, record_is_current
from reconciler.planning.deciding import rotation
from reconciler.planning.deciding.exclusive_keys import claims
from reconciler.planning.deciding.options import Policy
from reconciler.planning.matching.index import Register
from reconciler.planning.matching.match import Basis, Match

_NOTHING: Form = {}


@dataclass(slots=True)
class Decision:
    """The outcome for one resource. `action` None: it is as declared, and nothing happens.

    Treated as frozen. Not made so, because there is one for each resource, and of twenty fields that costs 5 µs.
    """

    address: Address
    kind: Kind
    action: Action | None = None
    reason: Reason = Reason.FIELDS
    live: Live | None = None
    declaration: Declaration | None = None
    spec: dict[str, Value] = field(default_factory=lambda: _NOTHING)  # references resolved as far as they can be
    want: Form = field(default_factory=lambda: _NOTHING)
    have: Form = field(default_factory=lambda: _NOTHING)
    differences: tuple[Difference, ...] = ()
    order: Order | None = None
    former: Address | None = None
    moves_record: bool = False  # the owner record has to be written anew
    modules_only: bool = False
    needs_consent: bool = False  # to be adopted
    keeps_old: bool = False  # a renewal: what is replaced lives on for the overlap
    outlived: bool = False  # another object has its address now
    settles: bool = False  # its secret has arrived, only the owner record does not say so yet
    guarded: bool = False  # the live object says that it may not be deleted
    problem: Problem | None = None

    @property
    def is_new(self) -> bool:
        """Whether another object will answer to the address."""
        return self.action in (Action.CREATE, Action.REPLACE)

    @property
    def ends_live(self) -> bool:
        """Whether the live object goes."""
        return self.action in (Action.DELETE, Action.REPLACE) and not self.keeps_old

    @property
    def is_kept(self) -> bool:
        """Whether the live object is, or becomes, ours and as declared."""
        present = self.declaration is not None and self.declaration.ensure is Ensure.PRESENT
        return present and self.problem is None and not self.is_new

    @property
    def closes(self) -> bool:
        """Whether what lets traffic through is taken away for a while, since a way to sign in takes another's place."""
        moved = [each.field.name for each in self.differences if each.field.name in self.kind.one_of]
        swaps = {self.want.get(name) is not None for name in moved} == {True, False}
        return swaps and self.have.get(str(self.kind.opens)) is not None

    @property
    def protect(self) -> bool:
        return self.declaration is not None and self.declaration.lifecycle.protect

    def change(self, protected: bool = False) -> Change | None:
        """As the plan shows it."""
        if self.action is None:
            return None
        told = tuple(change for difference in self.differences for change in difference.changes)
        if self.action is Action.CREATE and self.declaration is not None:
            told = created(self.kind, self.want, self.declaration)
        return Change(
            address=self.address,
            action=self.action,
            reason=self.reason,
            id=self.live.id if self.live else None,
            fields=told,
            order=self.order,
            risks=tuple(self._risks()),
            protected=protected,
            position=self.declaration.position if self.declaration else None,
            former=self.former,
        )

    def _risks(self) -> list[Risk]:
        risks = []
        if self.kind.serves and (self.action is Action.DELETE or self.order is Order.DELETE_FIRST or self.closes):
            risks.append(Risk.TRAFFIC)
        if self.kind.irreplaceable and self.ends_live:
            risks.append(Risk.GONE)
        if self.kind.one_time and self.is_new:
            deliveries = self.declaration.deliver.values() if self.declaration is not None else ()
            risks += [Risk.COMMAND] if any(each.way == "to_command" for each in deliveries) else []
            risks.append(Risk.TOKEN)
        return risks


def decide(
    register: Register,
    kind: Kind,
    declaration: Declaration,
    spec: dict[str, Value],
    want: Form,
    match: Match,
    policy: Policy,
    follows: Follows,
) -> Decision:
    """The decision for one declaration whose references were resolved into `spec`, which is `want` in one form."""
    present = declaration.ensure is Ensure.PRESENT
    compared = present and match.live is not None
    base = Decision(
        declaration.address,
        kind,
        declaration=declaration,
        live=match.live,
        former=match.former,
        spec=spec if compared else {},
        want=want if compared else {},
        have=register.form(kind, match.live) if match.live is not None else {},
        guarded=match.live is not None and register.guards(match.live),
    )
    listing = register.snapshot.of(kind.name)
    # An object that is named by its id, and was seen, needs no list to its end to be changed in place.
    named = present and match.live is not None and declaration.id is not None
    unlisted = None if listing.complete else _unlisted(kind, declaration, listing)
    if unlisted is not None and not named:
        return replace(base, problem=unlisted)
    if match.problem is not None:
        return replace(base, problem=match.problem)
    if not present:
        return _ending(base, declaration, match)
    if match.live is None:
        return _creation(register, base, spec)
    decision = _comparison(register, base, declaration, spec, want, match, policy, follows)
    if decision.moves_record and (full := _overfull(register.stack, decision, declaration)) is not None:
        return replace(base, problem=full)
    return replace(base, problem=unlisted) if unlisted is not None and decision.is_new else decision


def _overfull(stack: str, decision: Decision, declaration: Declaration) -> Problem | None:
    """Text that is left to others may leave no room for our record."""
    kind, live = decision.kind, decision.live
    if live is None or not kind.keeps_owner or "metadata" in decision.want:
        return None
    record = Owner(
        stack,
        decision.address,
        intent="",
        applied=dict.fromkeys(applied(kind, decision.want), ""),
        protect=decision.protect,
        pending=decision.is_new and kind.one_time is not None,
        replaces=live.id if decision.is_new else live.owner.replaces if live.owner is not None else None,
    )
    over = len(live.metadata.encode()) - owners.room(live.metadata, record, kind)
    if over <= 0:
        return None
    text = f"the metadata of {live.id} leaves no room for the owner record: it is {over} bytes too long"
    return _problem(declaration, text, "shorten it there, or declare it")


def _unlisted(kind: Kind, declaration: Declaration, listing: Listing) -> Problem:
    text = f"{kind.name} could not be listed to the end: {listing.why}"
    return _problem(declaration, text, "nothing of this kind is planned; try again")


def _problem(declaration: Declaration, text: str, remedy: str) -> Problem:
    return Problem(text, remedy, str(declaration.address), declaration.position)


def _ending(base: Decision, declaration: Declaration, match: Match) -> Decision:
    if base.live is None:
        return base
    if declaration.ensure is Ensure.FORGOTTEN:
        # A child without a record of its own has nothing to forget.
        remembered = match.is_ours and match.basis is not Basis.CHILD
        return replace(base, action=Action.FORGET, reason=Reason.FORGOTTEN) if remembered else base
    if not match.is_ours and not declaration.lifecycle.adopt:
        return replace(
            base,
            problem=_problem(
                declaration,
                f"{base.live.id} is to be absent, and belongs to nobody",
                "say `lifecycle: {adopt: true}` to have it deleted all the same",
            ),
        )
    return replace(base, action=Action.DELETE, reason=Reason.TOMBSTONE)


def _creation(register: Register, base: Decision, spec: dict[str, Value]) -> Decision:
    declaration = base.declaration
    assert declaration is not None
    if base.kind.one_time and base.kind.one_time not in declaration.deliver:
        return replace(base, problem=_undeliverable(base.kind, declaration))
    if hidden := ignore.unsaid(base.kind, spec, declaration.lifecycle.ignore):
        return replace(base, problem=_untold(declaration, "it does not exist, and cannot be made", hidden))
    known = any(each in register.snapshot.bindings for each in (declaration.address, *declaration.moved))
    return replace(
        base,
        action=Action.CREATE,
        reason=Reason.VANISHED if known else Reason.DECLARED,
        spec=spec,
        want=wanted(base.kind, spec),
        moves_record=True,
    )


def _undeliverable(kind: Kind, declaration: Declaration) -> Problem:
    return _problem(
        declaration,
        f"its {kind.one_time} can be read only once, and has nowhere to go",
        f"say where, as in `deliver: {{{kind.one_time}: {{to_file: secrets/{declaration.address.name}}}}}`",
    )


def _untold(declaration: Declaration, text: str, hidden: Sequence[str]) -> Problem:
    names = ", ".join(hidden)
    return _problem(declaration, f"{text} without {names}, which no manifest tells", f"declare {names}")


def _comparison(
    register: Register,
    base: Decision,
    declaration: Declaration,
    spec: dict[str, Value],
    want: Form,
    match: Match,
    policy: Policy,
    follows: Follows,
) -> Decision:
    live, kind, have = match.live, base.kind, base.have
    assert live is not None
    if declaration.lifecycle.ignore:
        spec = ignore.overlaid(kind, spec, have, declaration.lifecycle.ignore)
        want = ignore.pruned(kind, wanted(kind, spec), declaration.lifecycle.ignore)
    modules_only = is_modules_only(kind, declaration)
    if modules_only:
        want = {name: value for name, value in want.items() if name in kind.modules_by_id}
    record = _record(register, kind, declaration, match, follows)
    found = differences(kind, declaration, want, have, record)
    decision = base
    if found or modules_only or declaration.lifecycle.ignore:
        decision = replace(base, spec=spec, want=want, differences=found, modules_only=modules_only)
    moved = {difference.field.name for difference in found}
    hidden = ignore.unsaid(kind, spec, declaration.lifecycle.ignore)
    if hidden := [path for path in hidden if path.partition(".")[0] in moved]:
        return replace(decision, differences=(), problem=_untold(declaration, "it cannot be changed", hidden))
    asked = declaration.address in policy.to_replace
    if decision.closes and kind.opens in declaration.lifecycle.ignore:
        return replace(decision, differences=(), problem=_unopened(declaration, str(kind.opens)))
    if asked and (modules_only or not match.is_ours):
        return replace(decision, differences=(), problem=_not_ours(declaration, live, modules_only))
    if modules_only:
        return replace(decision, action=Action.UPDATE) if found else decision
    if any(difference.forces_replacement for difference in found):
        return _replacement(decision, declaration) if match.is_ours else _unlike(decision, declaration)
    if asked:
        return _replacement(replace(decision, reason=Reason.ASKED), declaration)
    owner = live.owner if match.is_ours else None
    if owner is not None and owner.pending and kind.one_time:
        if declaration.address in register.pending_elsewhere:
            return base  # the next run sees what came of it
        if owner.intent not in register.snapshot.receipts:
            return _replacement(replace(decision, reason=Reason.UNDELIVERED), declaration)
        decision = replace(decision, settles=True)
    elif owner is not None and register.snapshot.overwritten.get(owner.intent) == declaration.address:
        return _replacement(replace(decision, reason=Reason.OVERWRITTEN), declaration)
    elif match.is_ours and _is_due(declaration, live, policy):
        overlap = declaration.rotate is not None and declaration.rotate.overlap > 0
        return _replacement(replace(decision, reason=Reason.ROTATION, keeps_old=overlap), declaration)
    return _in_place(register, decision, record, match, policy)


def _is_due(declaration: Declaration, live: Live, policy: Policy) -> bool:
    made = rotation.made_at(live) if declaration.rotate is not None else None
    return declaration.rotate is not None and made is not None and policy.now >= made + declaration.rotate.after


def _not_ours(declaration: Declaration, live: Live, modules_only: bool) -> Problem:
    if modules_only:
        return _problem(declaration, f"of {live.id} only the modules are managed", "leave it out of --replace")
    return _problem(declaration, f"{live.id} belongs to nobody, and is not ours to replace", "adopt it first")


def _unopened(declaration: Declaration, opens: str) -> Problem:
    text = f"a way to sign in takes another's place; the {opens} goes meanwhile, and what it was no manifest tells"
    return _problem(declaration, text, f"declare the {opens}; or remove the one, apply, and add the other")


def _unlike(decision: Decision, declaration: Declaration) -> Decision:
    """To take over is not to delete: what belongs to nobody is never replaced."""
    assert decision.live is not None
    text = f"{decision.live.id} belongs to nobody, and differs in {_forcing(decision)}, which cannot change in place"
    remedy = "declare what is live, adopt it, and change it then; or delete it by hand"
    return replace(decision, differences=(), problem=_problem(declaration, text, remedy))


def _forcing(decision: Decision) -> str:
    changes = [change for each in decision.differences for change in each.changes if change.forces_replacement]
    return ", ".join(change.path for change in changes)


def _in_place(register: Register, decision: Decision, record: Record, match: Match, policy: Policy) -> Decision:
    declaration, live = decision.declaration, decision.live
    assert declaration is not None
    assert live is not None
    owned = live.owner if decision.kind.keeps_owner else register.snapshot.bindings.get(decision.address)
    stale = match.is_ours and (
        decision.settles
        or (decision.kind.keeps_owner and live.owner is None)  # somebody wrote over the record
        or (owned is not None and owned.protect != declaration.lifecycle.protect)
    )
    if match.former is not None:
        return replace(decision, action=Action.MOVE, reason=Reason.RENAMED, moves_record=True)
    if not match.is_ours:
        written = declaration.lifecycle.adopt or match.basis is Basis.ID
        if written and not decision.kind.keeps_owner and not decision.differences:
            return decision  # a store that lives for one run would have it taken over in each
        consent = written or policy.adopt
        return replace(
            decision, action=Action.ADOPT, reason=Reason.UNOWNED, moves_record=True, needs_consent=not consent
        )
    if decision.differences:
        moves = stale or not record_is_current(decision.kind, decision.want, record)
        return replace(decision, action=Action.UPDATE, moves_record=moves)
    return replace(decision, action=Action.UPDATE, reason=Reason.RECORD, moves_record=True) if stale else decision


def _replacement(decision: Decision, declaration: Declaration) -> Decision:
    if not declaration.lifecycle.replace:
        names = _forcing(decision)
        why = f"{names} cannot change in place" if names else str(decision.reason)
        text = f"{why}, and `lifecycle.replace: false` forbids a replacement"
        return replace(decision, problem=_problem(declaration, text, "undo the change, or allow the replacement"))
    if decision.kind.one_time and decision.kind.one_time not in declaration.deliver:
        return replace(decision, problem=_undeliverable(decision.kind, declaration))
    if hidden := ignore.unsaid(decision.kind, decision.spec, declaration.lifecycle.ignore):
        return replace(decision, differences=(), problem=_untold(declaration, "it cannot be replaced", hidden))
    held, taken = claims(decision.kind, decision.have), claims(decision.kind, wanted(decision.kind, decision.spec))
    return replace(
        decision,
        action=Action.REPLACE,
        reason=Reason.IMMUTABLE if decision.reason is Reason.FIELDS else decision.reason,
        # What only one may hold, the old one has to let go of.
        order=Order.CREATE_FIRST if set(held).isdisjoint(taken) else Order.DELETE_FIRST,
        moves_record=True,
    )


def is_modules_only(kind: Kind, declaration: Declaration) -> bool:
    """Whether an object of somebody else's is named by id, and only its modules are managed."""
    return (
        bool(kind.modules_by_id)
        and declaration.id is not None
        and any(declaration.spec.get(name) is None for name in kind.identity)
    )


def _record(register: Register, kind: Kind, declaration: Declaration, match: Match, follows: Follows) -> Record:
    """What is known to have been applied last."""
    assert match.live is not None
    owner = match.live.owner
    if match.is_ours and owner is not None:
        return Record(owner.applied, owner.intent, follows)
    binding = register.snapshot.bindings.get(match.former or declaration.address)
    if match.basis in (Basis.BINDING, Basis.FORMER) and binding is not None and not kind.keeps_owner:
        return Record(binding.applied, str(match.former or declaration.address), follows)
    return Record(None, follows=follows)
