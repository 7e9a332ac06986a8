"""The ordered rules that decide what happens to a declared resource with a live object; `rules` lists them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from reconciler.model.canonical import canonical_spec
from reconciler.model.change import Action, Order, Reason
from reconciler.model.kind import Kind
from reconciler.model.manifest import Declaration
from reconciler.model.problem import Problem
from reconciler.model.snapshot import Live
from reconciler.model.value import Value
from reconciler.planning.comparing import ignore
from reconciler.planning.comparing.compare import find_differences
from reconciler.planning.comparing.last_applied import Follows, LastApplied, is_record_current
from reconciler.planning.deciding import rotation
from reconciler.planning.deciding.decision import Decision
from reconciler.planning.deciding.exclusive_keys import find_exclusive_keys
from reconciler.planning.deciding.options import PlanOptions
from reconciler.planning.matching.index import LiveIndex
from reconciler.planning.matching.match import Basis, Match


def rules() -> tuple[Rule, ...]:
    """All rules in order: the first that returns a decision decides."""
    return (
        # Changes that are impossible are refused first.
        refuse_to_send_undeclared_values,
        refuse_to_interrupt_ignored_traffic,
        refuse_to_replace_unmanaged,
        # Of an object that is not managed, only the declared modules are: no later rule applies to it.
        update_modules,
        # A replacement sets every field, so that no update in place is needed.
        replace_for_immutable_fields,
        replace_on_request,
        # The state of a one-time secret: its age counts only once it is delivered.
        defer_to_delivering_run,
        replace_undelivered,
        replace_overwritten,
        replace_due,
        # Updates in place: each writes the owner record together with all differing fields.
        move,
        adopt,
        update_fields,
        update_record,
    )


class Comparison(Struct, frozen=True):
    """A declared resource beside its live object.

    unchanged      the decision to do nothing
    decision       the same with the differences; rules return it or a changed copy
    last_applied   the digests of the last apply
    """

    index: LiveIndex
    options: PlanOptions
    match: Match
    declaration: Declaration
    live: Live
    last_applied: LastApplied
    unchanged: Decision
    decision: Decision

    @property
    def kind(self) -> Kind:
        return self.decision.kind

    @property
    def is_requested(self) -> bool:
        """Whether `--replace` names it."""
        return self.declaration.address in self.options.to_replace

    @property
    def is_undelivered(self) -> bool:
        """Whether the owner record says that the one-time secret was not delivered."""
        return _is_undelivered(self.kind, self.live, self.match)

    @property
    def is_record_stale(self) -> bool:
        """Whether the owner record, or the binding of a kind without one, has to be written though no field differs."""
        if not self.match.is_ours:
            return False
        if self.decision.confirms_delivery or (self.kind.keeps_owner and self.live.owner is None):
            return True  # in the second case, the owner record was overwritten
        owned = self.live.owner if self.kind.keeps_owner else self.index.snapshot.bindings.get(self.decision.address)
        return owned is not None and owned.protect != self.declaration.lifecycle.protect

    def refuse(self, text: str, remedy: str, *, code: str) -> Decision:
        """The decision to do nothing, with a problem."""
        return self._with_problem(build_problem(self.declaration, text, remedy, code=code))

    def decide_replacement(self, reason: Reason, *, keeps_predecessor: bool = False) -> Decision:
        """The decision to replace the object, or the problem that prevents it.

        `keeps_predecessor`: the old object is not deleted by this plan, since a rotation has an overlap.
        """
        kind, decision = self.kind, replace(self.decision, reason=reason)
        if not self.declaration.lifecycle.replace:
            immutable = reason is Reason.IMMUTABLE
            why = f"{_immutable_paths(decision)} cannot be updated in place" if immutable else reason.text
            text = f"{why}, and `lifecycle.replace: false` forbids a replacement"
            return self.refuse(text, "undo the change, or remove `lifecycle.replace`", code="cannot-be-replaced")
        problem = check_secret_sink(kind, self.declaration)
        problem = problem or check_undeclared_values(kind, self.declaration, decision.spec, "it cannot be replaced")
        if problem is not None:
            return self._with_problem(problem)
        held = find_exclusive_keys(kind, decision.have)
        taken = find_exclusive_keys(kind, canonical_spec(kind, decision.spec))
        return replace(
            decision,
            action=Action.REPLACE,
            # An exclusive key must be released before another object takes it.
            order=Order.CREATE_FIRST if set(held).isdisjoint(taken) else Order.DELETE_FIRST,
            moves_record=True,
            keeps_predecessor=keeps_predecessor,
        )

    def _with_problem(self, problem: Problem) -> Decision:
        return replace(self.decision, differences=(), problem=problem)


Rule = Callable[[Comparison], Decision | None]


def apply_rules(comparison: Comparison) -> Decision:
    """The decision of the first rule that returns one; otherwise nothing happens."""
    for rule in rules():
        decision = rule(comparison)
        if decision is not None:
            return decision
    return comparison.decision


def compare(index: LiveIndex, base: Decision, match: Match, options: PlanOptions, follows: Follows) -> Comparison:
    """Compares a declared resource with its live object `match.live`.

    base   the decision to do nothing, with the values of both sides

    Ignored fields (`lifecycle.ignore`) do not differ; their live values are part of the spec that calls send.
    """
    kind, declaration, live = base.kind, base.declaration, match.live
    assert declaration is not None
    assert live is not None
    spec, want, ignored = base.spec, base.want, declaration.lifecycle.ignore
    if ignored:
        spec = ignore.overlay_live(kind, spec, base.have, ignored)
        want = ignore.prune(kind, canonical_spec(kind, spec), ignored)
    modules_only = is_modules_only(kind, declaration)
    if modules_only:
        want = {name: value for name, value in want.items() if name in kind.modules_by_id}
    last_applied = read_last_applied(index, kind, declaration, match, follows)
    differing = find_differences(kind, declaration, want, base.have, last_applied)
    confirms = _is_undelivered(kind, live, match) and _is_received(index, live)
    decision = base
    if differing or modules_only or ignored or confirms:
        decision = replace(
            base, spec=spec, want=want, differences=differing, modules_only=modules_only, confirms_delivery=confirms
        )
    return Comparison(index, options, match, declaration, live, last_applied, base, decision)


# --- refusals ---------------------------------------------------------------------------------------------------------


def refuse_to_send_undeclared_values(comparison: Comparison) -> Decision | None:
    """Refuses to update a field that contains an ignored secret: it cannot be sent without its value."""
    changed = {difference.field.name for difference in comparison.decision.differences}
    if not changed:
        return None
    ignored = comparison.declaration.lifecycle.ignore
    hidden = ignore.find_undeclared_secrets(comparison.kind, comparison.decision.spec, ignored)
    names = [path for path in hidden if path.partition(".")[0] in changed]
    if not names:
        return None
    return comparison.refuse(*_explain_missing(names, "it cannot be changed"), code="ignored-field-needed")


def refuse_to_interrupt_ignored_traffic(comparison: Comparison) -> Decision | None:
    """Refuses to exchange authentication modules if the traffic module, removed meanwhile, is ignored."""
    module = comparison.kind.modules.traffic
    if not comparison.decision.interrupts_traffic or module not in comparison.declaration.lifecycle.ignore:
        return None
    text = f"{module} must be removed while the authentication module is exchanged, and no manifest declares its value"
    return comparison.refuse(
        text,
        f"declare {module}; or remove the old authentication module, apply, then add the new one",
        code="ignored-field-needed",
    )


def refuse_to_replace_unmanaged(comparison: Comparison) -> Decision | None:
    """Refuses `--replace` of an object that this stack does not own."""
    if not comparison.is_requested:
        return None
    if comparison.decision.modules_only:
        return comparison.refuse(
            f"only the modules of {comparison.live.id} are managed",
            f"remove {comparison.declaration.address} from --replace",
            code="cannot-be-replaced",
        )
    if not comparison.match.is_ours:
        return comparison.refuse(
            f"{comparison.live.id} is not managed by any stack and cannot be replaced",
            "adopt it first",
            code="not-owned",
        )
    return None


# --- modules ----------------------------------------------------------------------------------------------------------


def update_modules(comparison: Comparison) -> Decision | None:
    """Updates the declared modules of an unmanaged object that is named by id."""
    decision = comparison.decision
    if not decision.modules_only:
        return None
    return replace(decision, action=Action.UPDATE) if decision.differences else decision


# --- replacements -----------------------------------------------------------------------------------------------------


def replace_for_immutable_fields(comparison: Comparison) -> Decision | None:
    """Replaces if a field differs that cannot be updated in place; refuses to replace unmanaged objects."""
    if not any(difference.forces_replacement for difference in comparison.decision.differences):
        return None
    if comparison.match.is_ours:
        return comparison.decide_replacement(Reason.IMMUTABLE)
    names = _immutable_paths(comparison.decision)
    text = f"{comparison.live.id} is not managed by any stack, and differs in {names}, which cannot be updated in place"
    return comparison.refuse(
        text, "declare its live values, adopt it, then change it; or delete it on the platform", code="not-owned"
    )


def replace_on_request(comparison: Comparison) -> Decision | None:
    """Replaces a resource that `--replace` names."""
    return comparison.decide_replacement(Reason.REQUESTED) if comparison.is_requested else None


def defer_to_delivering_run(comparison: Comparison) -> Decision | None:
    """Does nothing while a run with another store may still deliver the secret: the next plan will decide."""
    is_elsewhere = comparison.declaration.address in comparison.index.pending_elsewhere
    return comparison.unchanged if comparison.is_undelivered and is_elsewhere else None


def replace_undelivered(comparison: Comparison) -> Decision | None:
    """Replaces a credential whose one-time secret was never delivered, since it cannot be read again."""
    if not comparison.is_undelivered or comparison.decision.confirms_delivery:
        return None
    return comparison.decide_replacement(Reason.UNDELIVERED)


def replace_overwritten(comparison: Comparison) -> Decision | None:
    """Replaces a credential whose delivered secret was overwritten by that of a later, deleted object."""
    owner = comparison.live.owner if comparison.match.is_ours and not comparison.is_undelivered else None
    if owner is None or comparison.index.snapshot.overwritten.get(owner.intent) != comparison.declaration.address:
        return None
    return comparison.decide_replacement(Reason.OVERWRITTEN)


def replace_due(comparison: Comparison) -> Decision | None:
    """Rotates a credential at the age that `rotate.after` sets, in seconds. The old object stays for the overlap."""
    rotate = comparison.declaration.rotate
    if rotate is None or not comparison.match.is_ours or comparison.is_undelivered:
        return None
    created = rotation.read_creation_time(comparison.live)
    if created is None or comparison.options.now < created + rotate.after:
        return None
    return comparison.decide_replacement(Reason.ROTATION, keeps_predecessor=rotate.overlap > 0)


# --- in place ---------------------------------------------------------------------------------------------------------


def move(comparison: Comparison) -> Decision | None:
    """Updates the owner record of an object that has a new address."""
    if comparison.match.former is None:
        return None
    return replace(comparison.decision, action=Action.MOVE, reason=Reason.RENAMED, moves_record=True)


def adopt(comparison: Comparison) -> Decision | None:
    """Adopts an unmanaged object. Needs approval, unless the manifest or the command requests it.

    An object without metadata that is as declared is in sync: no call would change it, and a run without a lasting
    store would adopt it each time. A child belongs to the parent, and needs approval if that is not managed.
    """
    if comparison.match.is_ours:
        return None
    is_requested = comparison.declaration.lifecycle.adopt
    adopting = comparison.options.adopting
    is_granted = is_requested and (adopting is None or comparison.declaration.address in adopting)
    is_approved = is_granted or comparison.options.adopt
    is_named = comparison.kind.parent is None or is_requested or comparison.match.basis is Basis.ID
    if is_named and not comparison.kind.keeps_owner and not comparison.decision.differences:
        return replace(comparison.decision, adopted=not is_approved)
    return replace(
        comparison.decision,
        action=Action.ADOPT,
        reason=Reason.UNOWNED,
        moves_record=True,
        needs_approval=not is_approved,
    )


def update_fields(comparison: Comparison) -> Decision | None:
    """Updates the differing fields, together with the owner record unless that is current."""
    if not comparison.decision.differences:
        return None
    moves_record = comparison.is_record_stale or not is_record_current(
        comparison.kind, comparison.decision.want, comparison.last_applied
    )
    return replace(comparison.decision, action=Action.UPDATE, moves_record=moves_record)


def update_record(comparison: Comparison) -> Decision | None:
    """Writes only the owner record: `lifecycle.protect` changed, a delivery is confirmed, or the record was lost."""
    if not comparison.is_record_stale:
        return None
    return replace(comparison.decision, action=Action.UPDATE, reason=Reason.RECORD, moves_record=True)


# --- problems ---------------------------------------------------------------------------------------------------------


def check_secret_sink(kind: Kind, declaration: Declaration) -> Problem | None:
    """The problem of a one-time secret without a target in `deliver`."""
    if not kind.one_time or kind.one_time in declaration.deliver:
        return None
    text = f"its {kind.one_time} can be read only once, and `deliver` names no target for it"
    remedy = f"add a target, such as `deliver: {{{kind.one_time}: {{to_file: secrets/{declaration.address.name}}}}}`"
    return build_problem(declaration, text, remedy, code="one-time-secret-undelivered")


def check_undeclared_values(
    kind: Kind, declaration: Declaration, spec: Mapping[str, Value], effect: str
) -> Problem | None:
    """The problem of ignored secrets without which the object cannot be created. `effect`: what is impossible."""
    names = ignore.find_undeclared_secrets(kind, spec, declaration.lifecycle.ignore)
    return build_problem(declaration, *_explain_missing(names, effect), code="ignored-field-needed") if names else None


def _explain_missing(names: list[str], effect: str) -> tuple[str, str]:
    joined = ", ".join(names)
    return f"{effect} without {joined}, which no manifest declares", f"declare {joined}"


def build_problem(declaration: Declaration, text: str, remedy: str, *, code: str) -> Problem:
    return Problem(text, remedy, str(declaration.address), declaration.position, code=code)


# --- the state of both sides --------------------------------------------------------------------------------------


def _immutable_paths(decision: Decision) -> str:
    changes = [change for difference in decision.differences for change in difference.changes]
    return ", ".join(change.path for change in changes if change.forces_replacement)


def _is_undelivered(kind: Kind, live: Live, match: Match) -> bool:
    return bool(kind.one_time) and match.is_ours and live.owner is not None and live.owner.pending


def _is_received(index: LiveIndex, live: Live) -> bool:
    """Whether the store has the receipt of the one-time secret."""
    return live.owner is not None and live.owner.intent in index.snapshot.receipts


def is_modules_only(kind: Kind, declaration: Declaration) -> bool:
    """Whether an object that is not managed is named by id, and only its modules are declared."""
    return (
        bool(kind.modules_by_id)
        and declaration.id is not None
        and any(declaration.spec.get(name) is None for name in kind.identity)
    )


def read_last_applied(
    index: LiveIndex, kind: Kind, declaration: Declaration, match: Match, follows: Follows
) -> LastApplied:
    """The last applied digests, from the owner record or else from the binding."""
    assert match.live is not None
    owner = match.live.owner
    if match.is_ours and owner is not None:
        return LastApplied(owner.applied, owner.intent, follows, owner.sources)
    binding = index.snapshot.bindings.get(match.former or declaration.address)
    if match.basis in (Basis.BINDING, Basis.FORMER) and binding is not None and not kind.keeps_owner:
        return LastApplied(binding.applied, str(match.former or declaration.address), follows)
    return LastApplied(None, follows=follows)
