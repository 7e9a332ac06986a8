"""Tells at a glance that a resource is as it is declared: a short way for what most are, and no other meaning than
`matching.match` and `decide` together.

Values are compared as they were written and as they were read. Canonical forms are made only where these differ.
"""

from __future__ import annotations

from collections.abc import Callable

from reconciler.model.canonical import absences, canonical_value, read
from reconciler.model.fields.annotations import InputOnly, PathOnly, ServerDefault
from reconciler.model.fields.field import Field, Shape
from reconciler.model.kind import Kind
from reconciler.model.manifest import Declaration, Ensure
from reconciler.model.snapshot import Live
from reconciler.model.value import Json, Ref, Value, substitute
from reconciler.planning.comparing.canonical_fields import Column, canonical_live_value, columns
from reconciler.planning.comparing.compare import differs
from reconciler.planning.comparing.last_applied import Follows, LastApplied
from reconciler.planning.comparing.server_defaults import find_reverted_defaults
from reconciler.planning.matching.assignments import Assignments

Resolve = Callable[[Ref], Value]


def is_up_to_date(
    assignments: Assignments, kind: Kind, declaration: Declaration, resolve: Resolve, follows: Follows
) -> Live | None:
    """The live object, assigned to the declaration, if surely nothing has to be done. None: look closely."""
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
    if any(find_reverted_defaults(kind, spec, owner.applied)):
        return None
    for column in columns(kind):  # every field of every resource comes by here
        field, name, _, is_optional, is_unread, is_direct, blanks = column
        said = spec.get(name)
        shown = body.get(name) if is_direct else _read_value(field, live)
        if said is None:
            if is_optional or (not shown and shown.__class__ in blanks):
                continue
        elif said.__class__ is str and said == shown and not is_unread:
            continue
        if not _is_same(field, said, shown, resolve):
            record = LastApplied(owner.applied, owner.intent, follows)
            if _is_different(column, declaration, live, resolve, record):
                return None
    return live if assignments.assign(live, declaration.address) == declaration.address else None


def _read_value(field: Field, live: Live) -> Json:
    if field.name == "metadata":
        return live.metadata
    return live.parent_id if PathOnly in field.behaviors else read(field, live.body)


def _is_different(column: Column, declaration: Declaration, live: Live, resolve: Resolve, record: LastApplied) -> bool:
    """By their canonical forms, and by what was last applied where nothing is shown."""
    field, said = column.field, declaration.spec.get(column.name)
    if said is None and column.is_unread and not record.holds(field.name):
        return False
    return differs(
        field,
        canonical_value(field, substitute(said, resolve)),
        canonical_live_value(column, live),
        record,
        declaration,
    )


def _is_same(field: Field, said: Value, shown: Json, resolve: Resolve) -> bool:
    """Whether two values mean the same as they stand. False is no answer: their canonical forms have it."""
    if InputOnly in field.behaviors:
        return False
    if said is None:
        return any(shown.__class__ is absence.__class__ and shown == absence for absence in absences(field))
    if said.__class__ is Ref:
        said = resolve(said)
    if said.__class__ is shown.__class__ and said == shown:
        return field.is_exact or said.__class__ is str
    if not field.is_exact:
        return False
    if said.__class__ is list and shown.__class__ is list:
        return [resolve(each) if each.__class__ is Ref else each for each in said] == shown
    if field.shape is Shape.OBJECT and said.__class__ is dict and shown.__class__ is dict:
        for sub in field.fields:
            inner = said.get(sub.name)
            if inner is None and ServerDefault in sub.behaviors:
                continue
            if not _is_same(sub, inner, read(sub, shown), resolve):
                return False
        return True
    return False
