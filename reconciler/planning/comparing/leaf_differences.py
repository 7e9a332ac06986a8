"""The leaves in which two canonical values of one field differ, each with what changed it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from reconciler.model.canonical import canonicalize, leaves
from reconciler.model.change import ChangedBy
from reconciler.model.fields.annotations import CreateOnly, InputOnly, SometimesReturned
from reconciler.model.fields.field import Field, Shape
from reconciler.model.value import Ref, Secret, Value, is_known, value_at
from reconciler.planning.comparing.canonical_fields import UNREAD, agrees
from reconciler.planning.comparing.causes import find_cause, find_removal_cause
from reconciler.planning.comparing.last_applied import LastApplied


class LeafDifference(NamedTuple):
    """A differing leaf. `path` begins with the name of the field; `old` is UNREAD where responses never show it."""

    path: str
    old: Value
    new: Value
    changed_by: ChangedBy


def compare_leaves(field: Field, want: Value, have: Value, last_applied: LastApplied) -> Iterator[LeafDifference]:
    """The leaves of one field in which the live value `have` differs from the declared value `want`.

    Leaves that responses never show are left to `compare_hidden_leaves`.
    """
    if field.shape is not Shape.OBJECT:
        cause = find_cause(field.name, field, field, have, want, last_applied)
        yield from _explain(field.name, have, want, cause)
        return
    bundle = last_applied.compare_bundle(field, want, have)
    if want is None:
        cause = find_removal_cause(field.name, field, field, have, last_applied, bundle)
        yield LeafDifference(field.name, have, None, cause)
        return
    old_leaves = {path: old for path, _, old in leaves(field, have)} if isinstance(have, dict) else {}
    is_leaf_found = False
    for path, leaf, new in leaves(field, want):
        if leaf.shape is Shape.OBJECT and new is None and isinstance(removed := leaf_value(path, have), dict):
            is_leaf_found = True
            cause = find_removal_cause(path, leaf, field, removed, last_applied, bundle)
            yield LeafDifference(path, removed, None, cause)
            continue
        if InputOnly in leaf:
            continue
        absent, old = path not in old_leaves, old_leaves.get(path)
        if agrees(leaf, new, old) and not (absent and new != canonicalize(leaf, leaf.default)):
            continue
        is_leaf_found = True
        cause = find_cause(path, leaf, field, old, new, last_applied, bundle, have_absent=absent)
        yield from _explain(path, old, new, cause)
    if not is_leaf_found:  # only the object itself is missing
        cause = ChangedBy.PLATFORM if last_applied.holds(field.name) else ChangedBy.GIT
        if last_applied.applied is None:
            cause = ChangedBy.UNKNOWN
        yield LeafDifference(field.name, have, want, cause)


def compare_hidden_leaves(
    field: Field, want: Value, have: Value, last_applied: LastApplied
) -> Iterator[LeafDifference]:
    """The leaves that responses do not show and whose declared value is not the one last applied.

    Of a leaf that some responses show, nothing can be compared unless the last apply is known.
    """
    for path, leaf, new in leaves(field, want):
        is_missing = SometimesReturned in leaf and leaf_value(path, have) is None
        if CreateOnly in leaf or (InputOnly not in leaf and InputOnly not in field and not is_missing):
            continue
        recorded = last_applied.digest_at(path, leaf, field)
        if is_missing and recorded is None:
            continue
        if not is_known(new):
            yield LeafDifference(path, UNREAD, new, ChangedBy.GIT)
        elif recorded is None:
            if new != canonicalize(leaf, leaf.default):
                yield LeafDifference(path, UNREAD, new, ChangedBy.UNKNOWN)
        elif not last_applied.matches(recorded, new):
            yield LeafDifference(path, UNREAD, new, ChangedBy.GIT)


def leaf_value(path: str, form: Value) -> Value:
    """The value at a path, which begins with the field's own name, within the value of the field."""
    return value_at(form, path.split(".")[1:])


def _explain(path: str, old: Value, new: Value, cause: ChangedBy) -> Iterator[LeafDifference]:
    """One difference for each differing place inside a document or map; lists of plain values stay whole."""
    if not (isinstance(old, dict) and isinstance(new, dict)) or not is_known(new):
        yield LeafDifference(path, old, new, cause)
        return
    from deepdiff import DeepDiff  # slow to import, and needed only for documents that differ

    stand_ins = _StandIns()
    tree = DeepDiff(stand_ins.put(old), stand_ins.put(new), view="tree", threshold_to_diff_deeper=0)
    rows = sorted(_diff_rows(tree), key=lambda row: row[0])
    for place, before, after in rows:
        yield LeafDifference(f"{path}{place}", stand_ins.take(before), stand_ins.take(after), cause)
    if not rows:
        yield LeafDifference(path, old, new, cause)


class _StandIns:
    """Texts that stand for secrets while documents are compared, the same text for equal secrets."""

    def __init__(self) -> None:
        self._secrets: list[Secret] = []

    def put(self, value: Value) -> Value:
        match value:
            case Secret():
                known = next((at for at, secret in enumerate(self._secrets) if secret == value), len(self._secrets))
                if known == len(self._secrets):
                    self._secrets.append(value)
                return f"{_STAND_IN}{known}"
            case dict():
                return {key: self.put(item) for key, item in value.items()}
            case list():
                return [self.put(item) for item in value]
        return value

    def take(self, value: Value) -> Value:
        match value:
            case str() if value.startswith(_STAND_IN) and value.removeprefix(_STAND_IN).isdecimal():
                at = int(value.removeprefix(_STAND_IN))
                return self._secrets[at] if at < len(self._secrets) else value
            case dict():
                return {key: self.take(item) for key, item in value.items()}
            case list():
                return [self.take(item) for item in value]
        return value


_STAND_IN: Final = "\0secret "


def _diff_rows(tree: Any) -> Iterator[tuple[str, Value, Value]]:
    for level in (level for levels in tree.values() for level in levels):
        keys = level.path(output_format="list")
        place = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys)
        before, after = level.t1, level.t2
        yield place, _drop_diff_marks(before), _drop_diff_marks(after)


def _drop_diff_marks(value: Any) -> Value:
    """None for the mark with which deepdiff says that a side has no value."""
    return value if value is None or isinstance(value, (bool, int, float, str, list, dict, Ref)) else None
