"""Finds declarations with `ensure: absent` or `ensure: forgotten` whose work is done, and which may be deleted."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from reconciler.model.address import Address
from reconciler.model.manifest import Ensure, Manifest
from reconciler.model.problem import Problem, Severity
from reconciler.planning.deciding.decision import Decision
from reconciler.planning.deciding.options import PlanOptions

_MOST_NAMES = 5


def report_finished(
    manifest: Manifest,
    decided: Mapping[Address, Decision],
    dependencies: Mapping[Address, Collection[Address]],
    options: PlanOptions,
) -> Iterator[Problem]:
    """One note with the declarations that nothing is left to do for and that nothing refers to, if there are any.

    None while a manifest is invalid: it may refer to them.
    """
    if manifest.unread is not None:
        return
    declared = manifest.declarations
    removals = [address for address, found in declared.items() if found.ensure is not Ensure.PRESENT]
    finished = {
        address
        for address in removals
        if (decision := decided.get(address)) is not None and _is_finished(decision) and options.selects(address)
    }
    if not finished:
        return
    finished -= {other for user, needed in dependencies.items() if user not in finished for other in needed}
    # Parts of a resource whose manifest is still needed stay with it.
    kept = set(removals) - finished
    names = [
        f"{name} (ensure: {declared[name].ensure})"
        for name in sorted(finished)
        if kept.isdisjoint(dependencies.get(name, ()))
    ]
    if not names:
        return
    more = [f"{len(names) - _MOST_NAMES} more"] if len(names) > _MOST_NAMES else []
    one = len(names) == 1
    yield Problem(
        f"nothing is left to do for {', '.join([*names[:_MOST_NAMES], *more])}",
        f"delete {'this manifest' if one else 'these manifests'}, unless another environment has yet to apply "
        f"{'it' if one else 'them'}",
        severity=Severity.NOTE,
        code="manifest-finished",
    )


def _is_finished(decision: Decision) -> bool:
    return decision.action is None and decision.problem is None
