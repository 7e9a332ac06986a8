"""The approvals that are granted by approving a shape. `planning.reviewed_changes` recognizes reviewed changes."""

from __future__ import annotations

from reconciler.model.fleet import Shape
from reconciler.model.value import Secret
from reconciler.operations.open_project import Allow
from reconciler.rendering.wire import plan_json


def approvals_of(shape: Shape) -> Allow:
    """The approvals that are granted by approving a shape: those that its plans require beyond those of the project."""
    plan = plan_json.read_plan(shape.plan, lambda source, _: Secret("", source))
    allow: dict[tuple[str, str], int] = {}
    for item in plan.missing_approvals:
        allow[item.what, item.kind] = max(item.count, allow.get((item.what, item.kind), 0))
    return allow
