"""`Decision`: what happens to one resource, with its values."""

from __future__ import annotations

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.model.address import Address
from reconciler.model.canonical import CanonicalFields
from reconciler.model.change import Action, Order, Reason
from reconciler.model.kind import Kind
from reconciler.model.manifest import Declaration, Ensure
from reconciler.model.problem import Problem
from reconciler.model.snapshot import Live
from reconciler.model.value import Value
from reconciler.planning.comparing.compare import Difference

_NOTHING: CanonicalFields = {}


class Decision(Struct, frozen=True):
    """What happens to one resource. `action` None: nothing.

    spec      the declared values, with references resolved as far as possible
    want      the declared values in canonical form
    have      the live values in canonical form
    former    the address in the owner record, if the object is moved

    Never mutated. Not declared frozen, since that costs 5 µs for each resource of a project.
    """

    address: Address
    kind: Kind
    action: Action | None = None
    reason: Reason = Reason.FIELDS
    live: Live | None = None
    declaration: Declaration | None = None
    spec: dict[str, Value] = field(default_factory=lambda: _NOTHING)
    want: CanonicalFields = field(default_factory=lambda: _NOTHING)
    have: CanonicalFields = field(default_factory=lambda: _NOTHING)
    differences: tuple[Difference, ...] = ()
    order: Order | None = None
    former: Address | None = None
    moves_record: bool = False  # the owner record has to be written
    modules_only: bool = False  # of an object that is named by id, only the modules are managed
    needs_approval: bool = False  # of its adoption
    keeps_predecessor: bool = False  # a rotation: the replaced object exists for the overlap
    address_reused: bool = False  # another object has the address now
    confirms_delivery: bool = False  # the secret was delivered, but the owner record still says `pending`
    live_protected: bool = False  # the owner record or binding protects the object
    adopted: bool = False  # the object was adopted without approval, now or before
    problem: Problem | None = None

    @property
    def is_new(self) -> bool:
        """Whether a new object gets the address."""
        return self.action in (Action.CREATE, Action.REPLACE)

    @property
    def ends_live(self) -> bool:
        """Whether the live object is deleted."""
        return self.action in (Action.DELETE, Action.REPLACE) and not self.keeps_predecessor

    @property
    def is_kept(self) -> bool:
        """Whether the live object stays, managed and as declared, after the plan was applied."""
        present = self.declaration is not None and self.declaration.ensure is Ensure.PRESENT
        return present and self.problem is None and not self.is_new

    @property
    def interrupts_traffic(self) -> bool:
        """Whether the traffic module is removed for a moment, while authentication modules are exchanged."""
        changed = [
            difference.field.name
            for difference in self.differences
            if difference.field.name in self.kind.modules.exclusive
        ]
        swaps = {self.want.get(name) is not None for name in changed} == {True, False}
        return swaps and self.have.get(self.kind.modules.traffic) is not None

    @property
    def protect(self) -> bool:
        """Whether the manifest sets `lifecycle: {protect: true}`."""
        return self.declaration is not None and self.declaration.lifecycle.protect


def reverse_accepted(decision: Decision, remaining: Decision | None) -> Decision | None:
    """The update of the declared values to those live ones that edited manifests accept; None if they accept none.

    remaining   the decision of the edited manifests: what it lists still differs
    """
    left = {change.path for difference in remaining.differences for change in difference.changes} if remaining else ()
    accepted = []
    for difference in decision.differences:
        changes = tuple(
            replace(change, old=change.new, new=change.old) for change in difference.changes if change.path not in left
        )
        if changes:
            accepted.append(replace(difference, changes=changes))
    if not accepted:
        return None
    return replace(decision, action=Action.UPDATE, have=decision.want, want=decision.have, differences=tuple(accepted))
