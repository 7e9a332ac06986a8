"""A decision: what happens to one resource, with its values. `decide` makes it, `ordering.calls` its calls."""

from __future__ import annotations

from dataclasses import dataclass, field

from reconciler.model.address import Address
from reconciler.model.canonical import CanonicalFields
from reconciler.model.change import Action, Change, Order, Reason, Risk
from reconciler.model.kind import Kind
from reconciler.model.manifest import Declaration, Ensure
from reconciler.model.problem import Problem
from reconciler.model.snapshot import Live
from reconciler.model.value import Value
from reconciler.planning.comparing.compare import Difference
from reconciler.planning.comparing.plan_fields import list_created_fields

_NOTHING: CanonicalFields = {}


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
    want: CanonicalFields = field(default_factory=lambda: _NOTHING)
    have: CanonicalFields = field(default_factory=lambda: _NOTHING)
    differences: tuple[Difference, ...] = ()
    order: Order | None = None
    former: Address | None = None
    moves_record: bool = False  # the owner record has to be written anew
    modules_only: bool = False
    needs_approval: bool = False  # to be adopted
    keeps_predecessor: bool = False  # a renewal: what is replaced lives on for the overlap
    address_reused: bool = False  # another object has its address now
    confirms_delivery: bool = False  # its secret has arrived, only the owner record does not say so yet
    live_protected: bool = False  # the live object says that it may not be deleted
    problem: Problem | None = None

    @property
    def is_new(self) -> bool:
        """Whether another object will answer to the address."""
        return self.action in (Action.CREATE, Action.REPLACE)

    @property
    def ends_live(self) -> bool:
        """Whether the live object goes."""
        return self.action in (Action.DELETE, Action.REPLACE) and not self.keeps_predecessor

    @property
    def is_kept(self) -> bool:
        """Whether the live object is, or becomes, ours and as declared."""
        present = self.declaration is not None and self.declaration.ensure is Ensure.PRESENT
        return present and self.problem is None and not self.is_new

    @property
    def interrupts_traffic(self) -> bool:
        """Whether what lets traffic through is taken away for a while, since a way to sign in takes another's place."""
        moved = [
            difference.field.name
            for difference in self.differences
            if difference.field.name in self.kind.exclusive_modules
        ]
        swaps = {self.want.get(name) is not None for name in moved} == {True, False}
        return swaps and self.have.get(str(self.kind.traffic_module)) is not None

    @property
    def protect(self) -> bool:
        return self.declaration is not None and self.declaration.lifecycle.protect

    def change(self, protected: bool = False) -> Change | None:
        """As the plan shows it."""
        if self.action is None:
            return None
        told = tuple(change for difference in self.differences for change in difference.changes)
        if self.action is Action.CREATE and self.declaration is not None:
            told = list_created_fields(self.kind, self.want, self.declaration)
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
        if self.kind.carries_traffic and (
            self.action is Action.DELETE or self.order is Order.DELETE_FIRST or self.interrupts_traffic
        ):
            risks.append(Risk.TRAFFIC)
        if self.kind.irreplaceable and self.ends_live:
            risks.append(Risk.GONE)
        if self.kind.one_time and self.is_new:
            deliveries = self.declaration.deliver.values() if self.declaration is not None else ()
            risks += [Risk.COMMAND] if any(delivery.way == "to_command" for delivery in deliveries) else []
            risks.append(Risk.TOKEN)
        return risks
