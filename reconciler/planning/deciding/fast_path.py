"""A fast check that a resource is up to date, with the same result as `matching.match` and `decide`.

Values are compared as written and as read; canonical forms are computed only where these differ.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from reconciler.model.canonical import absences, canonical_value, is_shown, read
from reconciler.model.fields.annotations import InputOnly, PathOnly, ServerDefault
from reconciler.model.fields.field import Field, Shape
from reconciler.model.kind import Kind
from reconciler.model.manifest import Declaration, Ensure
from reconciler.model.snapshot import Live
from reconciler.model.value import Json, Ref, Value, substitute
from reconciler.planning.comparing.canonical_fields import Column, canonical_live_value, columns
from reconciler.planning.comparing.compare import differs
from reconciler.planning.comparing.last_applied import Follows, LastApplied
from reconciler.planning.comparing.server_defaults import find_reverted_defaults, server_defaults
from reconciler.planning.matching.assignments import Assignments

Resolve = Callable[[Ref], Value]


def is_up_to_date(
    assignments: Assignments, kind: Kind, declaration: Declaration, resolve: Resolve, follows: Follows
) -> Live | None:
    """The live object, assigned to the declaration, if it is certain that nothing has to be done.

    None is no answer: `match` and `decide` have to find it.
    """
    index = assignments.index
    live = index.find_sole(declaration)
    if (
        live is None
        or live.owner is None
        or not kind.keeps_owner
        or declaration.address.kind not in index.complete_kinds
    ):
        return None
    owner, special = live.owner, declaration.lifecycle
    if declaration.ensure is not Ensure.PRESENT or declaration.rotate is not None or special.ignore:
        return None
    if owner.pending or owner.protect != special.protect or owner.intent in index.snapshot.overwritten:
        return None
    spec, body = declaration.spec, live.body
    if server_defaults(kind) and any(find_reverted_defaults(kind, spec, owner.applied)):
        return None
    for name, is_optional, is_direct, blanks, column in _columns(kind):  # hot path: every field of every resource
        declared = spec.get(name)
        if declared is None and is_optional:
            continue
        value = body.get(name) if is_direct else _read_value(column.field, live)
        if declared is None:
            if not value and value.__class__ in blanks:
                continue
        elif declared.__class__ is str and declared == value and not column.is_unread:
            continue
        if not _is_same(column.field, declared, value, resolve):
            record = LastApplied(owner.applied, owner.intent, follows)
            if _is_different(column, declaration, live, resolve, record):
                return None
    return live if assignments.assign(live, declaration.address) == declaration.address else None


@cache
def _columns(kind: Kind) -> tuple[tuple[str, bool, bool, frozenset[type], Column], ...]:
    """The columns of a kind, each after what is always asked of it: name, is_optional, is_direct and blanks."""
    return tuple((column.name, column.is_optional, column.is_direct, column.blanks, column) for column in columns(kind))


def _read_value(field: Field, live: Live) -> Json:
    if field.name == "metadata":
        return live.metadata
    return live.parent_id if PathOnly in field.behaviors else read(field, live.body)


def _is_different(column: Column, declaration: Declaration, live: Live, resolve: Resolve, record: LastApplied) -> bool:
    """Whether a field differs, by canonical forms, and by the last applied value if responses do not show it."""
    field, declared = column.field, declaration.spec.get(column.name)
    is_hidden = column.is_unread and not is_shown(field, live.body)
    if declared is None and is_hidden and not record.holds(field.name):
        return False
    return differs(
        field,
        canonical_value(field, substitute(declared, resolve)),
        canonical_live_value(column, live),
        record,
        declaration,
    )


def _is_same(field: Field, declared: Value, value: Json, resolve: Resolve) -> bool:
    """Whether a declared and a live value are equal without canonicalization. False: their canonical forms decide."""
    if InputOnly in field.behaviors:
        return False
    if declared is None:
        return any(value.__class__ is absence.__class__ and value == absence for absence in absences(field))
    if declared.__class__ is Ref:
        declared = resolve(declared)
    if declared.__class__ is value.__class__ and declared == value:
        return field.is_exact or declared.__class__ is str
    if not field.is_exact:
        return False
    if declared.__class__ is list:
        return bool([resolve(item) if item.__class__ is Ref else item for item in declared] == value)
    if field.shape is Shape.OBJECT and declared.__class__ is dict and value.__class__ is dict:
        for sub in field.fields:
            inner = declared.get(sub.name)
            if inner is None and ServerDefault in sub.behaviors:
                continue
            if not _is_same(sub, inner, read(sub, value), resolve):
                return False
        return True
    return False
