"""Finds the id of a forgotten resource, which has no owner record any more, in an object that refers to it.

The id is the one that was last applied, so that a reference may stay in the manifests after `ensure: forgotten`. It is
found only if the platform still has it there: a reference that was changed on the platform never counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from reconciler.model.canonical import canonical_value, leaves
from reconciler.model.fields.field import Field
from reconciler.model.kind import Kind
from reconciler.model.snapshot import Live
from reconciler.model.value import Ref, Value, references
from reconciler.planning.comparing.last_applied import LastApplied
from reconciler.planning.comparing.leaf_differences import leaf_value
from reconciler.planning.matching.index import LiveIndex

IsForgotten = Callable[[Ref], bool]


def restore_ids(
    index: LiveIndex,
    kind: Kind,
    spec: Mapping[str, Value],
    live: Live,
    last_applied: LastApplied,
    is_forgotten: IsForgotten,
) -> dict[str, Value]:
    """The spec of a referrer with ids in place of references to forgotten resources, as far as they are found.

    live           the object of the referrer
    is_forgotten   whether a reference is to a forgotten resource whose object was not found
    """
    have = index.form(kind, live)
    restored = dict(spec)
    for field in kind.fields:
        declared = spec.get(field.name)
        if declared is None or not any(map(is_forgotten, references(declared))):
            continue
        candidate = _fill(index, declared, have.get(field.name), is_forgotten)
        if _was_applied(field, declared, candidate, last_applied, is_forgotten):
            restored[field.name] = candidate
    return restored


def _fill(index: LiveIndex, declared: Value, have: Value, is_forgotten: IsForgotten) -> Value:
    """The declared value with live ids in place of references, where it is clear which id stands for which."""
    match declared:
        case Ref() if is_forgotten(declared):
            return have if _is_unmanaged(index, declared, have) else declared
        case dict() if isinstance(have, dict):
            return {name: _fill(index, value, have.get(name), is_forgotten) for name, value in declared.items()}
        case list() if isinstance(have, list):
            lost = [item for item in declared if isinstance(item, Ref) and is_forgotten(item)]
            others = [id for id in have if id not in declared]
            if len(lost) == len(others) and all(map(lambda ref, id: _is_unmanaged(index, ref, id), lost, others)):
                ids = iter(others)
                return [next(ids) if isinstance(item, Ref) and is_forgotten(item) else item for item in declared]
    return declared


def _is_unmanaged(index: LiveIndex, ref: Ref, id: Value) -> bool:
    """Whether an id is that of an object of the reference's kind that this stack does not manage."""
    live = index.by_locator.get((ref.target.kind, id)) if isinstance(id, str) else None
    return ref.output == "id" and live is not None and not index.is_ours(live)


def _was_applied(
    field: Field, declared: Value, candidate: Value, last_applied: LastApplied, is_forgotten: IsForgotten
) -> bool:
    """Whether the leaves with such references are, with the ids in their place, as last applied."""
    form = canonical_value(field, candidate)
    if any(map(is_forgotten, references(form))):
        return False
    bundle = last_applied.compare_bundle(field, form, form)
    if bundle is not None:
        return bundle.git is False
    for path, leaf, value in leaves(field, canonical_value(field, declared)):
        if any(map(is_forgotten, references(value))):
            recorded = last_applied.digest_at(path, leaf, field)
            if recorded is None or not last_applied.matches(recorded, leaf_value(path, form)):
                return False
    return True
