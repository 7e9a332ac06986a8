"""Hides known drift (`drift.ignore`, docs/drift.md). Changes that only Git made are never hidden."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.model.change import Action, Change, ChangedBy, FieldChange, Reason
from reconciler.model.known_drift import IgnoredDifference, KnownDrift
from reconciler.model.plan import Plan
from reconciler.model.problem import Problem, Severity

_GIT = (ChangedBy.GIT, ChangedBy.FOLLOWS)
_RECORDED = (ChangedBy.PLATFORM, ChangedBy.BOTH)  # known only if an owner record exists
_WHOLE = (Action.CREATE, Action.DELETE)  # whose fields cannot be ignored one by one
_ENDS = re.compile(r"[.\[]")


def ignore_known(plan: Plan, entries: Sequence[KnownDrift], today: str) -> Plan:
    """The plan without the differences that `known` entries hide, with a warning for each entry that hides none.

    today   YYYY-MM-DD; an entry is valid until the end of the day that its `until` names

    A plan with hidden differences has no calls, since it must not be applied.
    """
    if not entries:
        return plan
    hiding = _Filter([known_drift for known_drift in entries if not known_drift.until or today <= known_drift.until])
    changes = tuple(visible for change in plan.changes if (visible := hiding.remove_hidden(change)) is not None)
    additions = tuple(visible for change in plan.additions if (visible := hiding.remove_hidden(change)) is not None)
    problems = (*plan.problems, *_warnings(plan, entries, hiding))
    if not hiding.ignored:
        return replace(plan, problems=problems)
    return replace(
        plan,
        changes=changes,
        additions=additions,
        problems=problems,
        ignored=tuple(hiding.ignored),
        calls=(),
        bindings={},
    )


class _Filter(Struct, frozen=True):
    entries: Sequence[KnownDrift]
    ignored: list[IgnoredDifference] = field(default_factory=list)
    used: set[str] = field(default_factory=set)

    def remove_hidden(self, change: Change) -> Change | None:
        """The change without its hidden fields; None if all of it is hidden."""
        address = str(change.address)
        if change.is_pending:
            return change
        if self._hides(address, ""):
            return None
        if change.action in _WHOLE:
            return change
        fields = [
            field_change
            for field_change in change.fields
            if field_change.changed_by in _GIT or not self._hides(address, field_change.path)
        ]
        hidden = [field_change for field_change in change.fields if field_change not in fields]
        if not hidden:
            return change
        if not fields and change.reason in (Reason.FIELDS, Reason.IMMUTABLE):
            return None
        return _keep_fields(change, fields, hidden)

    def _hides(self, address: str, path: str) -> bool:
        entry = next((known_drift for known_drift in self.entries if _matches(known_drift.match, address, path)), None)
        if entry is None:
            return False
        self.used.add(entry.match)
        subject = f"{address}.{path}" if path else address
        self.ignored.append(IgnoredDifference(subject, entry.until, entry.reason))
        return True


def _matches(glob: str, address: str, path: str) -> bool:
    """Whether the glob matches the field, an object that encloses it, or, without a path, the resource."""
    if not path:
        return fnmatchcase(address, glob)
    whole = f"{address}.{path}"
    ends = [match.start() for match in _ENDS.finditer(whole, len(address) + 1)]
    return any(fnmatchcase(whole[:end], glob) for end in (*ends, len(whole)))


def _keep_fields(change: Change, fields: Sequence[FieldChange], hidden: Sequence[FieldChange]) -> Change:
    """The change with only these fields, which are pending if the owner record proves that Git changed them.

    That a hidden field was changed on the platform proves that an owner record exists.
    """
    is_proven = any(field_change.changed_by in _RECORDED for field_change in hidden) and all(
        field_change.changed_by in _GIT for field_change in fields
    )
    visible = replace(change, fields=tuple(fields), is_pending=bool(fields) and is_proven)
    if change.reason is Reason.IMMUTABLE and not any(field_change.forces_replacement for field_change in fields):
        visible = replace(visible, action=Action.UPDATE, reason=Reason.FIELDS, order=None, risks=())
    return visible


def _warnings(plan: Plan, entries: Sequence[KnownDrift], hiding: _Filter) -> Iterator[Problem]:
    for entry in entries:
        if entry not in hiding.entries:
            text = f"expired on {entry.until} and has no effect"
            code = "known-drift-expired"
        elif entry.match in hiding.used or plan.targets or plan.excludes or plan.errors:
            continue  # resources that were not planned may differ
        else:
            text = "matches no difference"
            code = "known-drift-unmatched"
        remedy = "remove the entry from `drift.ignore`, or set a later `until`" if entry.until else "correct --ignore"
        yield Problem(
            f"known drift {entry.match!r} {text}",
            remedy,
            position=entry.position,
            severity=Severity.WARNING,
            code=code,
        )
