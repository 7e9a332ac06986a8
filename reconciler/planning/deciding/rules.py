"""The rules that decide what happens to a declared resource whose live object was found. `rules` has their order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

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
    """Every rule, in order: the first that answers decides."""
    return (
        # What cannot be carried out is refused, whatever else applies.
        refuse_to_send_undeclared_values,
        refuse_to_interrupt_ignored_traffic,
        refuse_to_replace_what_is_not_ours,
        # Of an object that is not ours, only the modules are managed: no other rule is for it.
        update_modules,
        # A replacement sends every field, so that an update in place has nothing left to do.
        replace_for_immutable_fields,
        replace_on_request,
        # The state of a one-time secret: while it is not delivered, its age says nothing.
        defer_to_delivering_run,
        replace_undelivered,
        replace_overwritten,
        replace_due,
        # In place: these write the owner record, and all fields that differ with it.
        move,
        adopt,
        update_fields,
        update_record,
    )


@dataclass(frozen=True, slots=True)
class Comparison:
    """A declared resource beside its live object.

    unchanged   the decision to do nothing
    decision    the same with the differences; rules answer with it or a changed copy
    record      what was last applied
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
        """Whether the owner record says that its one-time secret has not arrived."""
        return _is_undelivered(self.kind, self.live, self.match)

    @property
    def is_record_stale(self) -> bool:
        """Whether the owner record, or else the binding, has to be written although no field differs."""
        if not self.match.is_ours:
            return False
        if self.decision.confirms_delivery or (self.kind.keeps_owner and self.live.owner is None):
            return True  # of the latter, somebody overwrote the record
        owned = self.live.owner if self.kind.keeps_owner else self.index.snapshot.bindings.get(self.decision.address)
        return owned is not None and owned.protect != self.declaration.lifecycle.protect

    def refuse(self, text: str, remedy: str, *, code: str) -> Decision:
        return self._with_problem(build_problem(self.declaration, text, remedy, code=code))

    def decide_replacement(self, reason: Reason, *, keeps_predecessor: bool = False) -> Decision:
        """Another object in its place, or the problem that prevents it."""
        kind, decision = self.kind, replace(self.decision, reason=reason)
        if not self.declaration.lifecycle.replace:
            immutable = reason is Reason.IMMUTABLE
            why = f"{_immutable_paths(decision)} cannot be updated in place" if immutable else str(reason)
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
    """The answer of the first rule that has one; otherwise nothing happens."""
    for rule in rules():
        decision = rule(comparison)
        if decision is not None:
            return decision
    return comparison.decision


def compare(index: LiveIndex, base: Decision, match: Match, options: PlanOptions, follows: Follows) -> Comparison:
    """Both sides of a declared resource whose live object is `match.live`, with what differs."""
    kind, declaration, live = base.kind, base.declaration, match.live
    assert declaration is not None
    assert live is not None
    spec, want, ignored = base.spec, base.want, declaration.lifecycle.ignore
    if ignored:
        spec = ignore.overlay_live(kind, spec, base.have, ignored)
        want = ignore.prune(kind, canonical_spec(kind, spec), ignored)
    modules_only = _is_modules_only(kind, declaration)
    if modules_only:
        want = {name: value for name, value in want.items() if name in kind.modules_by_id}
    record = _read_last_applied(index, kind, declaration, match, follows)
    found = find_differences(kind, declaration, want, base.have, record)
    confirms = _is_undelivered(kind, live, match) and _is_received(index, live)
    decision = base
    if found or modules_only or ignored or confirms:
        decision = replace(
            base, spec=spec, want=want, differences=found, modules_only=modules_only, confirms_delivery=confirms
        )
    return Comparison(index, options, match, declaration, live, record, base, decision)


# --- refusals ---------------------------------------------------------------------------------------------------------


def refuse_to_send_undeclared_values(it: Comparison) -> Decision | None:
    """An ignored secret inside a field that differs: the field cannot be sent without it."""
    changed = {difference.field.name for difference in it.decision.differences}
    hidden = (
        ignore.find_undeclared_secrets(it.kind, it.decision.spec, it.declaration.lifecycle.ignore) if changed else []
    )
    names = [path for path in hidden if path.partition(".")[0] in changed]
    return it.refuse(*_explain_missing(names, "it cannot be changed"), code="ignored-field-needed") if names else None


def refuse_to_interrupt_ignored_traffic(it: Comparison) -> Decision | None:
    """To exchange one way to sign in for another takes the traffic module away, and no manifest says what it was."""
    module = str(it.kind.traffic_module)
    if not it.decision.interrupts_traffic or module not in it.declaration.lifecycle.ignore:
        return None
    text = f"{module} must be removed while the authentication module is exchanged, and no manifest declares its value"
    return it.refuse(
        text,
        f"declare {module}; or remove the old authentication module, apply, then add the new one",
        code="ignored-field-needed",
    )


def refuse_to_replace_what_is_not_ours(it: Comparison) -> Decision | None:
    """`--replace` of an object that this stack does not own."""
    if not it.is_requested:
        return None
    if it.decision.modules_only:
        return it.refuse(
            f"only the modules of {it.live.id} are managed",
            f"remove {it.declaration.address} from --replace",
            code="cannot-be-replaced",
        )
    if not it.match.is_ours:
        return it.refuse(
            f"{it.live.id} is not managed by any stack and cannot be replaced", "adopt it first", code="not-owned"
        )
    return None


# --- modules ----------------------------------------------------------------------------------------------------------


def update_modules(it: Comparison) -> Decision | None:
    """Of an object that is named by id, only the declared modules are managed."""
    if not it.decision.modules_only:
        return None
    return replace(it.decision, action=Action.UPDATE) if it.decision.differences else it.decision


# --- replacements -----------------------------------------------------------------------------------------------------


def replace_for_immutable_fields(it: Comparison) -> Decision | None:
    """A field differs that cannot be updated in place. An object that nobody owns is never replaced."""
    if not any(difference.forces_replacement for difference in it.decision.differences):
        return None
    if it.match.is_ours:
        return it.decide_replacement(Reason.IMMUTABLE)
    names = _immutable_paths(it.decision)
    text = f"{it.live.id} is not managed by any stack, and differs in {names}, which cannot be updated in place"
    return it.refuse(
        text, "declare its live values, adopt it, then change it; or delete it on the platform", code="not-owned"
    )


def replace_on_request(it: Comparison) -> Decision | None:
    return it.decide_replacement(Reason.ASKED) if it.is_requested else None


def defer_to_delivering_run(it: Comparison) -> Decision | None:
    """Another run, with another store, may be about to deliver the secret: the next plan sees what came of it."""
    return it.unchanged if it.is_undelivered and it.declaration.address in it.index.pending_elsewhere else None


def replace_undelivered(it: Comparison) -> Decision | None:
    """The one-time secret never arrived, and cannot be read again."""
    return (
        it.decide_replacement(Reason.UNDELIVERED) if it.is_undelivered and not it.decision.confirms_delivery else None
    )


def replace_overwritten(it: Comparison) -> Decision | None:
    """The secret of a later object, now gone, was delivered to the same target."""
    owner = it.live.owner if it.match.is_ours and not it.is_undelivered else None
    if owner is None or it.index.snapshot.overwritten.get(owner.intent) != it.declaration.address:
        return None
    return it.decide_replacement(Reason.OVERWRITTEN)


def replace_due(it: Comparison) -> Decision | None:
    """Its secret has reached the age at which `rotate` renews it. The old object stays for the overlap."""
    rotate = it.declaration.rotate
    if rotate is None or not it.match.is_ours or it.is_undelivered:
        return None
    created = rotation.read_creation_time(it.live)
    if created is None or it.options.now < created + rotate.after:
        return None
    return it.decide_replacement(Reason.ROTATION, keeps_predecessor=rotate.overlap > 0)


# --- in place ---------------------------------------------------------------------------------------------------------


def move(it: Comparison) -> Decision | None:
    """The same object, recorded under another address."""
    if it.match.former is None:
        return None
    return replace(it.decision, action=Action.MOVE, reason=Reason.RENAMED, moves_record=True)


def adopt(it: Comparison) -> Decision | None:
    """An object that no stack owns: needs approval, unless the manifest asks for it or names the object by id."""
    if it.match.is_ours:
        return None
    is_written = it.declaration.lifecycle.adopt or it.match.basis is Basis.ID
    if is_written and not it.kind.keeps_owner and not it.decision.differences:
        return it.decision  # a store that lives for one run would have it adopted in each
    consent = is_written or it.options.adopt
    return replace(
        it.decision, action=Action.ADOPT, reason=Reason.UNOWNED, moves_record=True, needs_approval=not consent
    )


def update_fields(it: Comparison) -> Decision | None:
    """The owner record is written with the fields, unless it is right already."""
    if not it.decision.differences:
        return None
    moves_record = it.is_record_stale or not is_record_current(it.kind, it.decision.want, it.last_applied)
    return replace(it.decision, action=Action.UPDATE, moves_record=moves_record)


def update_record(it: Comparison) -> Decision | None:
    if not it.is_record_stale:
        return None
    return replace(it.decision, action=Action.UPDATE, reason=Reason.RECORD, moves_record=True)


# --- problems ---------------------------------------------------------------------------------------------------------


def check_secret_sink(kind: Kind, declaration: Declaration) -> Problem | None:
    """A one-time secret that `deliver` gives no target."""
    if not kind.one_time or kind.one_time in declaration.deliver:
        return None
    text = f"its {kind.one_time} can be read only once, and `deliver` names no target for it"
    remedy = f"add a target, such as `deliver: {{{kind.one_time}: {{to_file: secrets/{declaration.address.name}}}}}`"
    return build_problem(declaration, text, remedy, code="one-time-secret-undelivered")


def check_undeclared_values(
    kind: Kind, declaration: Declaration, spec: Mapping[str, Value], effect: str
) -> Problem | None:
    """Ignored secrets without which the object cannot be sent as a whole. `effect`: what is impossible."""
    names = ignore.find_undeclared_secrets(kind, spec, declaration.lifecycle.ignore)
    return build_problem(declaration, *_explain_missing(names, effect), code="ignored-field-needed") if names else None


def _explain_missing(names: list[str], effect: str) -> tuple[str, str]:
    joined = ", ".join(names)
    return f"{effect} without {joined}, which no manifest declares", f"declare {joined}"


def build_problem(declaration: Declaration, text: str, remedy: str, *, code: str) -> Problem:
    return Problem(text, remedy, str(declaration.address), declaration.position, code=code)


# --- what is known of both sides --------------------------------------------------------------------------------------


def _immutable_paths(decision: Decision) -> str:
    changes = [change for difference in decision.differences for change in difference.changes]
    return ", ".join(change.path for change in changes if change.forces_replacement)


def _is_undelivered(kind: Kind, live: Live, match: Match) -> bool:
    return bool(kind.one_time) and match.is_ours and live.owner is not None and live.owner.pending


def _is_received(index: LiveIndex, live: Live) -> bool:
    """Whether the store knows that the one-time secret arrived."""
    return live.owner is not None and live.owner.intent in index.snapshot.receipts


def _is_modules_only(kind: Kind, declaration: Declaration) -> bool:
    """Whether an object of somebody else's is named by id, and only its modules are managed."""
    return (
        bool(kind.modules_by_id)
        and declaration.id is not None
        and any(declaration.spec.get(name) is None for name in kind.identity)
    )


def _read_last_applied(
    index: LiveIndex, kind: Kind, declaration: Declaration, match: Match, follows: Follows
) -> LastApplied:
    """What is known to have been applied last."""
    assert match.live is not None
    owner = match.live.owner
    if match.is_ours and owner is not None:
        return LastApplied(owner.applied, owner.intent, follows)
    binding = index.snapshot.bindings.get(match.former or declaration.address)
    if match.basis in (Basis.BINDING, Basis.FORMER) and binding is not None and not kind.keeps_owner:
        return LastApplied(binding.applied, str(match.former or declaration.address), follows)
    return LastApplied(None, follows=follows)
