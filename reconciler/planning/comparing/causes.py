"""What changed a field since the last apply: Git, the platform, or both."""

from __future__ import annotations

from reconciler.model import owner_record
from reconciler.model.canonical import leaves
from reconciler.model.change import ChangedBy
from reconciler.model.fields.annotations import PathOnly
from reconciler.model.fields.field import Field
from reconciler.model.value import Value, is_known, references
from reconciler.planning.comparing.last_applied import ABSENT, SERVER_CHOICE, BundleComparison, LastApplied


def find_cause(
    path: str,
    leaf: Field,
    top: Field,
    old: Value,
    new: Value,
    last_applied: LastApplied,
    bundle: BundleComparison | None = None,
    *,
    have_absent: bool = False,
    want_absent: bool = False,
) -> ChangedBy:
    """What made the live value `old` and the declared value `new` of one leaf differ, by the last applied digest.

    path          dotted, from the name of the top-level field `top`
    bundle        the comparison of the whole field, if the owner record holds one digest for it
    have_absent   the live object that would hold the leaf does not exist
    want_absent   the declaration does not have the object that would hold the leaf

    UNKNOWN if nothing is known of the last apply; FOLLOWS if Git changed nothing and only the id of a replaced
    referenced object differs (docs/drift.md).
    """
    if PathOnly in top:
        return ChangedBy.GIT  # the platform never moves an object to another parent
    recorded = last_applied.digest_at(path, leaf, top)
    if recorded is None:
        return ChangedBy.UNKNOWN
    if recorded == SERVER_CHOICE:
        return ChangedBy.GIT  # no value was declared, so that only a new declaration differs
    if bundle is not None and not owner_record.may_bundle(leaf):
        bundle = None
    if bundle is not None:
        platform = bundle.platform
    else:
        as_applied = any(last_applied.matches(recorded, form) for form in leaf.forms_of(old))
        platform = recorded != ABSENT if have_absent else not as_applied
    if not is_known(new):
        follows = all(last_applied.follows(ref, old) for ref in references(new))
        return ChangedBy.PLATFORM if platform else ChangedBy.FOLLOWS if follows else ChangedBy.GIT
    if bundle is not None:
        git = bundle.git is not False
    else:
        git = recorded != ABSENT if want_absent else not last_applied.matches(recorded, new)
    if platform and git:
        return ChangedBy.BOTH
    return ChangedBy.PLATFORM if platform else ChangedBy.GIT


def find_removal_cause(
    path: str, field: Field, top: Field, have: Value, last_applied: LastApplied, bundle: BundleComparison | None
) -> ChangedBy:
    """What changed an object within a field that is live and not declared: the combined causes of its leaves."""
    return _combine_causes(
        {
            find_cause(place, leaf, top, old, None, last_applied, bundle, want_absent=True)
            for place, leaf, old in leaves(field, have, path)
        }
    )


def _combine_causes(causes: set[ChangedBy]) -> ChangedBy:
    if len(causes) == 1:
        return causes.pop()
    return ChangedBy.UNKNOWN if ChangedBy.UNKNOWN in causes else ChangedBy.BOTH
