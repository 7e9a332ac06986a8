"""The kinds whose lists a plan of selected resources needs, and whether the plan of these lists is that of all lists.

Only plans without deletes are: what is deleted, moved or replaced concerns everything that may refer to it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from reconciler.model.access import Name
from reconciler.model.change import Action
from reconciler.model.fields.field import Field
from reconciler.model.kind import Kind
from reconciler.model.manifest import Declaration, Manifest
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Snapshot
from reconciler.model.value import references
from reconciler.planning.deciding.options import PlanOptions

_LOCAL: Final = frozenset({Action.CREATE, Action.UPDATE})
_SHARE_FROM: Final = 10  # owned objects, from which on the share of the updated ones is guarded


def find_needed_kinds(manifest: Manifest, kinds: Collection[Kind], options: PlanOptions) -> frozenset[str] | None:
    """The names of the kinds to read for a plan of the selected resources; None: all.

    Beside the selected kinds these are their parents and children, what they refer to, and, if one of them decides
    about access, every kind that does.
    """
    is_about_all = options.destroy or options.to_replace or options.rule_changes is not None
    if not options.targets or is_about_all or manifest.unread is not None or not manifest.declarations:
        return None
    by_name = {kind.name: kind for kind in kinds}
    needed = {kind.name for kind in kinds if any(_may_select(glob, kind.name) for glob in options.targets)}
    _add_family(needed, by_name)
    selected = [by_name[name] for name in needed]
    if any(kind.access is not None and not isinstance(kind.access, Name) for kind in selected):
        needed |= {kind.name for kind in kinds if kind.access is not None}
    if any(kind.records is not None for kind in selected):
        needed |= {kind.name for kind in kinds if kind.records is not None}
    _add_references(needed, by_name, manifest)
    return frozenset(needed) if needed < by_name.keys() else None


def is_independent(plan: Plan, snapshot: Snapshot) -> bool:
    """Whether the lists that were not read would change nothing in the plan of a snapshot without them."""
    actions = {change.action for change in plan.changes}
    if not actions <= _LOCAL or plan.approvals or any(problem.is_error for problem in plan.problems):
        return False
    return Action.UPDATE not in actions or _count_owned(snapshot, plan.stack) >= _SHARE_FROM


def _count_owned(snapshot: Snapshot, stack: str) -> int:
    lives = (live for listing in snapshot.listings.values() for live in listing.objects)
    return sum(live.owner is not None and live.owner.stack == stack for live in lives)


def _may_select(glob: str, kind: str) -> bool:
    """Whether a glob may match an address of a kind."""
    start = min((place for character in "*?[" if (place := glob.find(character)) >= 0), default=len(glob))
    literal, begin = glob[:start], f"{kind}/"
    return literal.startswith(begin) or begin.startswith(literal)


def _add_family(needed: set[str], kinds: Mapping[str, Kind]) -> None:
    """Adds the parents and children of kinds, since a child is selected by its parent, too."""
    size = 0
    while size < len(needed):
        size = len(needed)
        for kind in kinds.values():
            above = kind.part_of.kind if kind.part_of is not None else kind.name
            if kind.name in needed or above in needed:
                needed |= {kind.name, above, *(kind.part_kinds if kind.name in needed else ())}


def _add_references(needed: set[str], kinds: Mapping[str, Kind], manifest: Manifest) -> None:
    """Adds the kinds that the needed ones can refer to, or do in the manifest, and so on for the kinds that it adds."""
    hosts = [kind.name for kind in kinds.values() if kind.host is not None]
    refers: dict[str, set[str]] = {
        kind.name: {
            *(name for field in kind.fields for name in _list_types(field)),
            *(hosts if any(field.may_mention for field in kind.fields) else ()),
            *([kind.part_of.kind] if kind.part_of is not None else []),
        }
        for kind in kinds.values()
    }
    for address, declaration in manifest.declarations.items():
        refers[address.kind] |= set(_list_declared(declaration))
    waiting = [*needed]
    while waiting:
        more = (refers[waiting.pop()] & kinds.keys()) - needed
        needed |= more
        waiting += more


def _list_types(field: Field) -> Iterator[str]:
    yield from field.refs
    for inner in (*field.fields, *((field.item,) if field.item is not None else ())):
        yield from _list_types(inner)


def _list_declared(declaration: Declaration) -> Iterable[str]:
    return (ref.target.kind for value in declaration.spec.values() for ref in references(value))
