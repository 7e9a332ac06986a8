"""Says how a declared resource and its live object differ, field by field, and who moved each field.

Equality decides; deepdiff only explains a pair that differs. Knows nothing of calls; see `calls`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from reconciler.model import owner_record
from reconciler.model.address import Address
from reconciler.model.canonical import (
    CanonicalFields,
    canonicalize,
    collect_applied,
    collect_applied_in,
    digests,
    leaves,
)
from reconciler.model.change import ChangedBy, FieldChange
from reconciler.model.fields.annotations import Immutable, InputOnly, PathOnly, ServerDefault
from reconciler.model.fields.field import Field, Shape
from reconciler.model.kind import Kind
from reconciler.model.manifest import Declaration
from reconciler.model.value import Hidden, Ref, Secret, Value, digest, has_secret, is_known, references
from reconciler.planning.comparing.canonical_fields import UNREAD, agrees
from reconciler.planning.comparing.server_defaults import ServerChoice, find_reverted_defaults

Follows = Callable[[Ref, Value], bool]

ABSENT = "-"  # the digest of a leaf whose object is not there
SERVER_CHOICE = "?"  # the platform's own choice was applied: not ours, and not known


class BundleComparison(NamedTuple):
    """Whether each side is not what was applied to a field as a whole. `git` None: not known yet."""

    platform: bool
    git: bool | None


@dataclass(frozen=True)
class LastApplied:
    """What was last applied: digests per path, salted with the intent. None: nothing is known of it.

    `follows` tells whether a reference not known yet differs from a live value only because its target is made anew.
    """

    applied: Mapping[str, str] | None
    salt: str = ""
    follows: Follows = lambda ref, live: False

    def of(self, path: str, leaf: Field, top: Field) -> str | None:
        if self.applied is None:
            return None
        if path in self.applied:
            return self.applied[path]
        if top.shape is Shape.OBJECT and path != top.name and not self.holds(path.rpartition(".")[0]):
            return ABSENT
        if ServerDefault in leaf:
            return SERVER_CHOICE
        return digest(canonicalize(leaf, leaf.default), self.salt)

    def matches(self, recorded: str, value: Value) -> bool:
        """Whether a recorded digest stands for this value. Older records may hold a sensitive value that came from a
        reference by the digest of its plain text."""
        if digest(value, self.salt) == recorded:
            return True
        return value.__class__ is Secret and digest(value.reveal()) == recorded

    def bundle(self, field: Field, want: Value, have: Value) -> BundleComparison | None:
        """How both sides of a field compare with the bundled digests of what was applied inside it, if they are."""
        recorded = (self.applied or {}).get(owner_record.bundle(field.name))
        if recorded is None:
            return None
        platform = self._digest_bundle(field, have) != recorded
        return BundleComparison(platform, self._digest_bundle(field, want) != recorded if is_known(want) else None)

    def _digest_bundle(self, field: Field, value: Value) -> str:
        inside = collect_applied_in(field, value) if isinstance(value, dict) else {}
        return owner_record.fold(field, digests(inside, self.salt)).get(owner_record.bundle(field.name), ABSENT)

    def holds(self, name: str) -> bool:
        """Whether anything was applied to this field, or inside it."""
        return self.applied is not None and owner_record.holds(self.applied, name)


@dataclass(frozen=True)
class Difference:
    """One declared field that differs from its live value."""

    field: Field
    changes: tuple[FieldChange, ...]

    @property
    def forces_replacement(self) -> bool:
        return any(change.forces_replacement for change in self.changes)


def find_differences(
    kind: Kind, declaration: Declaration, want: CanonicalFields, have: CanonicalFields, record: LastApplied
) -> tuple[Difference, ...]:
    """Every field in which the declaration wants something else than is live."""
    found = []
    given = list(find_reverted_defaults(kind, want, record.applied or {}, declaration.lifecycle.ignore))
    for field in kind.fields:
        changes = [
            field_change
            for choice in given
            if choice.top is field
            for field_change in _compare_reverted(choice, have, record, declaration)
        ]
        if field.name in want and not (field.is_exact and want[field.name] == have.get(field.name)):
            changes += _compare_field(field, want[field.name], have.get(field.name), record, declaration)
        if changes:
            found.append(Difference(field, tuple(changes)))
    return tuple(found)


def _compare_reverted(
    choice: ServerChoice, have: CanonicalFields, record: LastApplied, declaration: Declaration
) -> Iterator[FieldChange]:
    """To the documented default, or to whatever the platform chooses where a part is sent without it."""
    path, field, top, default = choice
    old = value_at(path, have.get(top.name))
    new = canonicalize(field, default) if default else None
    if old is None or old is UNREAD or old == new:
        return
    last = record.of(path, field, top)
    moved = last is None or not record.matches(last, old)
    due = new is not None and last is not None and record.matches(last, new)
    yield FieldChange(
        path=path,
        old=_hide_secrets(old, declaration.address, path),
        new=new,
        changed_by=ChangedBy.PLATFORM if due else ChangedBy.BOTH if moved else ChangedBy.GIT,
        position=declaration.at(*path.split(".")),
    )


def differs(field: Field, want: Value, have: Value, record: LastApplied, declaration: Declaration) -> bool:
    """Whether the declaration wants something else of this field than is live."""
    if field.is_exact and want == have:
        return False
    return any(True for _ in _compare_field(field, want, have, record, declaration))


def is_record_current(kind: Kind, want: CanonicalFields, record: LastApplied) -> bool:
    """Whether the owner record already says what applying the declaration would make it say."""
    if record.applied is None:
        return False
    due = collect_applied(kind, want)
    bundled = [field for field in kind.fields if owner_record.bundle(field.name) in record.applied]
    if not all(map(is_known, due.values())) or (due.keys() != record.applied.keys() and not bundled):
        return False
    digested = digests(due, record.salt)
    for field in bundled:
        digested = owner_record.fold(field, digested)
    return digested == dict(record.applied)


def _compare_field(
    field: Field, want: Value, have: Value, record: LastApplied, declaration: Declaration
) -> Iterator[FieldChange]:
    visible = not agrees(field, want, have)
    hidden = list(_compare_hidden_leaves(field, want, record))
    if not visible and not hidden:
        return
    immutable = Immutable in field or _immutable_part_differs(field, want, have)
    for path, old, new, mover in [*(_compare_leaves(field, want, have, record) if visible else ()), *hidden]:
        # An unreadable value of an object we never applied may well be the same, and one that is declared no more
        # harms nobody: no reason to replace the object.
        if old is UNREAD and immutable and (record.applied is None or new is None):
            continue
        yield FieldChange(
            path=path,
            old=_hide_secrets(old, declaration.address, path),
            new=_hide_secrets(new, declaration.address, path),
            changed_by=mover,
            forces_replacement=immutable,
            position=declaration.at(*path.split(".")),
        )


def _immutable_part_differs(field: Field, want: Value, have: Value) -> bool:
    part = field.immutable_part
    return part is not None and is_known(want) and part.part(want) != part.part(have)


FieldComparison = tuple[str, Value, Value, ChangedBy]


def _compare_leaves(field: Field, want: Value, have: Value, record: LastApplied) -> Iterator[FieldComparison]:
    """The differing leaves: path, old, new, mover."""
    if field.shape is not Shape.OBJECT:
        yield from explain_difference(field.name, have, want, find_cause(field.name, field, field, have, want, record))
        return
    bundle = record.bundle(field, want, have)
    if want is None:
        yield field.name, have, None, find_removal_cause(field.name, field, field, have, record, bundle)
        return
    old_leaves = {path: old for path, _, old in leaves(field, have)} if isinstance(have, dict) else {}
    is_leaf_found = False
    for path, leaf, new in leaves(field, want):
        if leaf.shape is Shape.OBJECT and new is None and isinstance(gone := value_at(path, have), dict):
            is_leaf_found = True
            yield path, gone, None, find_removal_cause(path, leaf, field, gone, record, bundle)
            continue
        absent = path not in old_leaves and InputOnly not in leaf
        old = UNREAD if InputOnly in leaf else old_leaves.get(path)
        if InputOnly in leaf or (agrees(leaf, new, old) and not (absent and new != canonicalize(leaf, leaf.default))):
            continue
        is_leaf_found = True
        mover = find_cause(path, leaf, field, old, new, record, bundle, have_absent=absent)
        yield from explain_difference(path, old, new, mover)
    if not is_leaf_found:  # nothing but the object itself is missing
        rec = None if record.applied is None else record.holds(field.name)
        yield field.name, have, want, ChangedBy.UNKNOWN if rec is None else ChangedBy.PLATFORM if rec else ChangedBy.GIT


def value_at(path: str, form: Value) -> Value:
    """The value at a path within a field's own value."""
    for name in path.split(".")[1:]:
        form = form.get(name) if isinstance(form, dict) else None
    return form


def find_removal_cause(
    path: str, field: Field, top: Field, have: Value, record: LastApplied, bundle: BundleComparison | None
) -> ChangedBy:
    """Who moved an object that is there and not wanted."""
    return _combine_causes(
        {
            find_cause(place, leaf, top, old, None, record, bundle, want_absent=True)
            for place, leaf, old in leaves(field, have, path)
        }
    )


def _compare_hidden_leaves(field: Field, want: Value, record: LastApplied) -> Iterator[FieldComparison]:
    """Leaves that responses never show, and that are not what the record says was last applied."""
    for path, leaf, new in leaves(field, want):
        if InputOnly not in leaf and InputOnly not in field:
            continue
        last = record.of(path, leaf, field)
        if not is_known(new):
            yield path, UNREAD, new, ChangedBy.GIT
        elif last is None:
            if new != canonicalize(leaf, leaf.default):
                yield path, UNREAD, new, ChangedBy.UNKNOWN
        elif not record.matches(last, new):
            yield path, UNREAD, new, ChangedBy.GIT


def find_cause(
    path: str,
    leaf: Field,
    top: Field,
    old: Value,
    new: Value,
    record: LastApplied,
    bundle: BundleComparison | None = None,
    *,
    have_absent: bool = False,
    want_absent: bool = False,
) -> ChangedBy:
    if PathOnly in top:
        return ChangedBy.GIT  # no object moves to another parent
    last = record.of(path, leaf, top)
    if last is None:
        return ChangedBy.UNKNOWN
    if last == SERVER_CHOICE:
        return ChangedBy.GIT  # where the platform chose, only a declaration makes a difference
    if bundle is not None and not owner_record.may_bundle(leaf):
        bundle = None
    if bundle is not None:
        platform = bundle.platform
    else:
        platform = last != ABSENT if have_absent else not record.matches(last, old)
    if not is_known(new):
        follows = all(record.follows(ref, old) for ref in references(new))
        return ChangedBy.PLATFORM if platform else ChangedBy.FOLLOWS if follows else ChangedBy.GIT
    if bundle is not None:
        git = bundle.git is not False
    else:
        git = last != ABSENT if want_absent else not record.matches(last, new)
    if platform and git:
        return ChangedBy.BOTH
    return ChangedBy.PLATFORM if platform else ChangedBy.GIT


def _combine_causes(movers: set[ChangedBy]) -> ChangedBy:
    return (
        movers.pop() if len(movers) == 1 else ChangedBy.BOTH if ChangedBy.UNKNOWN not in movers else ChangedBy.UNKNOWN
    )


def explain_difference(path: str, old: Value, new: Value, mover: ChangedBy) -> Iterator[FieldComparison]:
    """One row per differing place inside a document or map; lists of plain values stay whole."""
    if not (isinstance(old, dict) and isinstance(new, dict)) or not is_known(new) or has_secret([old, new]):
        yield path, old, new, mover
        return
    from deepdiff import DeepDiff  # heavy, and wanted only where a document differs

    rows = sorted(_diff_rows(DeepDiff(old, new, view="tree", threshold_to_diff_deeper=0)), key=lambda row: row[0])
    for place, before, after in rows:
        yield f"{path}{place}", before, after, mover
    if not rows:
        yield path, old, new, mover


def _diff_rows(tree: Any) -> Iterator[tuple[str, Value, Value]]:
    for level in (level for levels in tree.values() for level in levels):
        keys = level.path(output_format="list")
        place = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys)
        before, after = level.t1, level.t2
        yield place, _drop_diff_marks(before), _drop_diff_marks(after)


def _drop_diff_marks(value: Any) -> Value:
    """deepdiff's mark for `not there` is none of ours."""
    return value if value is None or isinstance(value, (bool, int, float, str, list, dict, Ref)) else None


def _hide_secrets(value: Value, address: Address, path: str) -> Value:
    """What a plan may carry: sensitive values as digests."""
    if value is UNREAD:
        return None
    if isinstance(value, Secret):
        return Hidden(digest(value, f"{address}:{path}"))
    if has_secret(value):
        match value:
            case dict():
                return {key: _hide_secrets(each, address, f"{path}.{key}") for key, each in value.items()}
            case list():
                return [_hide_secrets(each, address, path) for each in value]
    return value


def show_fields(kind: Kind, form: CanonicalFields, address: Address) -> dict[str, Value]:
    """A whole form for a plan's memory of what it saw."""
    return {name: _hide_secrets(value, address, name) for name, value in form.items() if value is not UNREAD}


def list_created_fields(kind: Kind, want: CanonicalFields, declaration: Declaration) -> tuple[FieldChange, ...]:
    """What a create says: every leaf that is not its default."""
    return tuple(
        FieldChange(
            path,
            None,
            _hide_secrets(value, declaration.address, path),
            ChangedBy.GIT,
            position=declaration.at(*path.split(".")),
        )
        for path, value in collect_applied(kind, want).items()
    )
