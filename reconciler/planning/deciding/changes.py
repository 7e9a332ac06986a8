"""The change of a decision, as a plan shows it."""

from __future__ import annotations

from reconciler.model.change import Action, Change
from reconciler.planning.comparing.plan_fields import list_created_fields
from reconciler.planning.deciding.decision import Decision
from reconciler.planning.deciding.risks import find_risks


def describe_change(decision: Decision, *, protected: bool = False) -> Change | None:
    """The change that a plan shows; None if nothing happens."""
    if decision.action is None:
        return None
    declaration = decision.declaration
    fields = tuple(change for difference in decision.differences for change in difference.changes)
    if decision.action is Action.CREATE and declaration is not None:
        fields = list_created_fields(decision.kind, decision.want, declaration)
    return Change(
        address=decision.address,
        action=decision.action,
        reason=decision.reason,
        id=decision.live.id if decision.live else None,
        fields=fields,
        order=decision.order,
        risks=find_risks(decision),
        protected=protected,
        position=declaration.position if declaration else None,
        former=decision.former,
    )
