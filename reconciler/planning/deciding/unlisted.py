"""Reports lists of the platform that are incomplete: one problem for each kind, not for each resource."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from reconciler.model.problem import Problem, Severity
from reconciler.model.snapshot import Snapshot
from reconciler.planning.deciding.options import PlanOptions

CODE = "kind-not-listed"


def merge_unlisted(problems: Iterable[Problem]) -> list[Problem]:
    """The problems, with those of one kind that have the same cause as one. Its subject is the kind."""
    merged: list[Problem] = []
    groups: dict[tuple[str, Severity], list[Problem]] = {}
    for problem in problems:
        if problem.code != CODE:
            merged.append(problem)
            continue
        group = groups.setdefault((problem.subject.partition("/")[0], problem.severity), [])
        group.append(problem)
        if len(group) == 1:
            merged.append(problem)
    whole = {id(group[0]): _merge(kind, group) for (kind, _), group in groups.items() if len(group) > 1}
    return [whole.get(id(problem), problem) for problem in merged]


def _merge(kind: str, group: list[Problem]) -> Problem:
    first = min(group, key=lambda problem: problem.subject)
    number = len(group)
    values = {**first.values, "resources": number}
    if first.severity is Severity.WARNING:  # about objects that are no longer declared
        text = f"{number:,} objects are no longer declared, but the list of {kind} objects is incomplete"
        return replace(first, subject=kind, text=text, values=values)
    return replace(first, subject=kind, text=f"{first.text} ({number:,} resources)", values=values)


def report_unread_lists(snapshot: Snapshot, problems: Iterable[Problem], options: PlanOptions) -> Iterator[Problem]:
    """A problem for each incomplete list that no other problem reports, and that may lack objects of the stack.

    An error if the stack is destroyed: objects may remain, and no later plan would find them. Otherwise a warning, if
    the store knows objects of the kind.
    """
    reported = {problem.subject.partition("/")[0] for problem in problems if problem.code == CODE}
    bound = {address.kind for address in snapshot.bindings if options.selects(address)}
    for kind, listing in sorted(snapshot.listings.items()):
        may_lack = options.selects_of(kind) if options.destroy else kind in bound
        if may_lack and kind not in reported and not listing.complete and not listing.denied and listing.is_offered:
            yield Problem(
                f"the list of {kind} objects is incomplete: {listing.why}",
                "try again; objects that the list lacks are neither compared nor deleted",
                kind,
                severity=Severity.ERROR if options.destroy else Severity.WARNING,
                code=CODE,
                confined=True,
            )
