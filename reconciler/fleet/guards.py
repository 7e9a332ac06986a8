"""The guards of a fleet: the maximum changes of one apply in all members together, without approval of more."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from msgspec import Struct

from reconciler.model.change import Action
from reconciler.model.fleet import Fleet, TaskRecord, TaskState
from reconciler.rendering.text_tools import count

MEMBERS, DELETES = "members", "deletes"
_DELETING = (Action.DELETE, Action.REPLACE)


class Excess(Struct, frozen=True):
    """Changes of an apply beyond a guard. `what`: MEMBERS or DELETES."""

    what: str
    count: int
    limit: str

    @property
    def flag(self) -> str:
        return f"--allow {self.what}={self.count}"

    def __str__(self) -> str:
        if self.what == MEMBERS:
            return f"{count(self.count, 'member')} would change, and guards.max_changed allows {self.limit}"
        return f"{count(self.count, 'object')} would be deleted, and guards.max_deletes allows {self.limit}"


def find_excess(
    fleet: Fleet, plans: Iterable[TaskRecord], shapes: Collection[str], allowed: Mapping[str, int]
) -> Iterator[Excess]:
    """Yields the changes beyond the guards of the fleet, if these plans were applied.

    plans    tasks of the reviewed run, of the selected members
    shapes   digests of the approved shapes: other plans are not applied
    allowed  by MEMBERS or DELETES: the approved number
    """
    applied = [plan for plan in plans if plan.state is TaskState.SUCCEEDED and plan.changes and plan.shape in shapes]
    guards = fleet.guards
    changed = len({plan.member for plan in applied})
    if guards.max_changed is not None:
        limit = max(guards.max_changed.of(len(fleet.members)), allowed.get(MEMBERS, 0))
        if changed > limit:
            yield Excess(MEMBERS, changed, str(guards.max_changed))
    deleted = sum(plan.counts.get(action, 0) for plan in applied for action in _DELETING)
    if guards.max_deletes is not None and deleted > max(guards.max_deletes, allowed.get(DELETES, 0)):
        yield Excess(DELETES, deleted, str(guards.max_deletes))
