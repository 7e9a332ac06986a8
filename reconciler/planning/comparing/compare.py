"""Finds the fields in which a declared resource and its live object differ.

Equality of canonical forms decides (docs/architecture.md, "How planning goes"). `leaf_differences` lists the leaves of
a field that differs, `causes` says what changed them.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from reconciler.model.canonical import CanonicalFields, canonicalize
from reconciler.model.change import ChangedBy, FieldChange
from reconciler.model.fields.annotations import Immutable, InputOnly
from reconciler.model.fields.field import Field
from reconciler.model.kind import Kind
from reconciler.model.manifest import Declaration
from reconciler.model.value import Value, is_known
from reconciler.planning.comparing.canonical_fields import UNREAD, agrees, drop_choices
from reconciler.planning.comparing.last_applied import LastApplied
from reconciler.planning.comparing.leaf_differences import compare_hidden_leaves, compare_leaves, leaf_value
from reconciler.planning.comparing.plan_fields import hide_secrets
from reconciler.planning.comparing.server_defaults import ServerChoice, find_reverted_defaults


class Difference(Struct, frozen=True):
    """One top-level field that differs, with one change for each differing leaf."""

    field: Field
    changes: tuple[FieldChange, ...]

    @property
    def forces_replacement(self) -> bool:
        return any(change.forces_replacement for change in self.changes)


def find_differences(
    kind: Kind, declaration: Declaration, want: CanonicalFields, have: CanonicalFields, last_applied: LastApplied
) -> tuple[Difference, ...]:
    """The fields that an update has to set.

    want           the declared fields, canonical and without ignored ones
    have           the live fields, canonical
    last_applied   decides what changed each leaf

    A field that was applied and is declared no more differs too, if the platform can take its choice back.
    """
    differing = []
    reverted = list(find_reverted_defaults(kind, want, last_applied.applied or {}, declaration.lifecycle.ignore))
    for field in kind.fields:
        changes = [
            field_change
            for choice in reverted
            if choice.top is field
            for field_change in _compare_reverted(choice, have, last_applied, declaration)
        ]
        if field.name in want and not (field.is_exact and want[field.name] == have.get(field.name)):
            changes += _compare_field(field, want[field.name], have.get(field.name), last_applied, declaration)
        if changes:
            differing.append(Difference(field, tuple(changes)))
    return tuple(differing)


def differs(field: Field, want: Value, have: Value, last_applied: LastApplied, declaration: Declaration) -> bool:
    """Whether `find_differences` would report this field."""
    if field.is_exact and want == have:
        return False
    return any(True for _ in _compare_field(field, want, have, last_applied, declaration))


def _compare_reverted(
    choice: ServerChoice, have: CanonicalFields, last_applied: LastApplied, declaration: Declaration
) -> Iterator[FieldChange]:
    """The change of a field that is no longer declared: to its documented default, or to the platform's choice."""
    path, field, top, default = choice
    old = leaf_value(path, have.get(top.name))
    new = canonicalize(field, default) if default else None
    if old is None or old is UNREAD or old == new:
        return
    recorded = last_applied.digest_at(path, field, top)
    assert recorded is not None  # only what was applied is reverted
    was_changed = not last_applied.matches(recorded, old)
    had_default = new is not None and last_applied.matches(recorded, new)
    yield FieldChange(
        path=path,
        old=hide_secrets(old, declaration.address, path),
        new=new,
        changed_by=ChangedBy.PLATFORM if had_default else ChangedBy.BOTH if was_changed else ChangedBy.GIT,
        position=declaration.at(*path.split(".")),
    )


def _compare_field(
    field: Field, want: Value, have: Value, last_applied: LastApplied, declaration: Declaration
) -> Iterator[FieldChange]:
    have = drop_choices(field, want, have)
    is_visible = not agrees(field, want, have)
    is_read = InputOnly in field and have is not UNREAD
    hidden = [] if is_read else list(compare_hidden_leaves(field, want, have, last_applied))
    if not is_visible and not hidden:
        return
    immutable = Immutable in field or _immutable_part_differs(field, want, have)
    visible = compare_leaves(field, want, have, last_applied) if is_visible else ()
    for path, old, new, changed_by in [*visible, *hidden]:
        # Not a reason to replace: the write-only value of an object that was never applied may be the same, and one
        # that is no longer declared has no effect.
        if old is UNREAD and immutable and (last_applied.applied is None or new is None):
            continue
        yield FieldChange(
            path=path,
            old=hide_secrets(old, declaration.address, path),
            new=hide_secrets(new, declaration.address, path),
            changed_by=changed_by,
            forces_replacement=immutable,
            position=declaration.at(*path.split(".")),
        )


def _immutable_part_differs(field: Field, want: Value, have: Value) -> bool:
    part = field.immutable_part
    return part is not None and is_known(want) and part.part(want) != part.part(have)
