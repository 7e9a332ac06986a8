"""What needs a person before a plan is applied: errors, approvals, risks and changed access, a sentence for each.

Built from the rows of an outline: the same for one plan and for several plans together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from reconciler.model.access_change import Verdict
from reconciler.model.change import Action, Cause, Risk
from reconciler.model.rule_change import RuleRisk
from reconciler.rendering.plan import phrases
from reconciler.rendering.plan.outline import AccessRow, ApprovalRow, ChangeRow, Named, Outline, SharedAccessRow
from reconciler.rendering.text_tools import count

Quote = Callable[[str], str]

_NAMED = 3  # names in a sentence
_OF_RULES = frozenset(map(str, RuleRisk))


class Need(Struct, frozen=True):
    """One thing that a person has to decide, or to look at.

    text          a sentence
    details       further sentences, each on a line of its own
    changes       the addresses of the changes that it is about
    more          further entry points that change in the same way
    is_severe     shown in red
    is_required   nothing is applied before it is done
    environments  as of the rows; empty: all of them
    """

    text: str
    details: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    more: tuple[str, ...] = ()
    is_severe: bool = False
    is_required: bool = False
    environments: tuple[str, ...] = ()
    access: AccessRow | None = None  # the change of access that it is


def list_needs(rows: Outline, quote: Quote) -> list[Need]:
    """The needs of a plan: first those without which nothing is applied, then severe ones.

    What the reviewed commits do not cause is not counted, unless it needs approval.
    """
    needs = [*_list_errors(rows), *_list_approvals(rows, quote), *_list_access(rows, quote), *_list_risks(rows, quote)]
    return sorted(needs, key=lambda need: (not need.is_required, not need.is_severe))


def headline(needs: Sequence[Need]) -> str:
    """`2 things need you`"""
    return (
        f"{count(len(needs), 'thing')} {'needs' if len(needs) == 1 else 'need'} you" if needs else "Nothing needs you"
    )


def _list_errors(rows: Outline) -> Iterator[Need]:
    """One need for all errors, which a list of their own shows."""
    if rows.errors:
        text = "An error has" if len(rows.errors) == 1 else f"{len(rows.errors):,} errors have"
        yield Need(f"{text} to be corrected, listed below.", is_severe=True, is_required=True)


# --- approvals


def _list_approvals(rows: Outline, quote: Quote) -> Iterator[Need]:
    for row in rows.missing_approvals:
        found: list[Need] = []
        if row.is_of_access:
            found = list(_approve_access(rows, row, quote))
        elif row.what in _OF_RULES:
            found = list(_approve_rules(rows, row, quote))
        yield from found or [_approve_changes(rows, row, quote)]


def _approve_access(rows: Outline, row: ApprovalRow, quote: Quote) -> Iterator[Need]:
    """A need for each change of access that the approval is about, with who gets through."""
    names = {subject.name for subject in row.subjects}
    for access in rows.access:
        if access.verdict.risk == row.what and names.intersection((access.entry_point, *access.more)):
            yield _describe_access(access, quote, is_required=True)


def _approve_rules(rows: Outline, row: ApprovalRow, quote: Quote) -> Iterator[Need]:
    names = {subject.name for subject in row.subjects}
    loosened = [rule for rule in rows.rule_changes if rule.subject in names and rule.risk == row.what]
    for rule in phrases.group_rule_changes(loosened):
        text = f"{phrases.describe_rule_change(rule, quote)}."
        details = ("A reviewer of the base has to approve it: a branch cannot loosen the rules that judge it.",)
        place = (rule.position,) if rule.position else ()
        yield Need(text, (*details, *place), is_severe=True, is_required=True, environments=rule.environments)


def _approve_changes(rows: Outline, row: ApprovalRow, quote: Quote) -> Need:
    """`ReservedDomain/old will be deleted: irreversible, …`, with the other risks of the same changes."""
    subjects = {subject.name: subject for subject in row.subjects}
    changes = [change for change in rows.changes if change.address in subjects]
    texts = dict.fromkeys(
        _describe_risk(risk, [change], quote)
        for change in changes
        for risk in change.other_risks
        if risk in phrases.SEVERE and risk.text != row.why
    )
    stated = next((risk for risk in Risk if risk.text == row.why), None)
    is_of_all = not row.subjects or row.subjects[0].name == "*"
    why = f": {row.why}" if stated is None or is_of_all else f" {_SENTENCES.get(stated, row.why)}"
    return Need(
        f"{_name_approval(row, changes, quote)}{why}.",
        tuple(texts) if len(changes) <= _NAMED else (),
        tuple(dict.fromkeys(change.address for change in changes)),
        is_severe=any(risk in phrases.SEVERE for change in changes for risk in change.risks),
        is_required=True,
        environments=() if any(subject.environments for subject in row.subjects) else row.environments,
    )


def _name_approval(row: ApprovalRow, changes: Sequence[ChangeRow], quote: Quote) -> str:
    """`Deletion of ReservedDomain/old`; of a guard over the whole plan `Deletion of 12 resources`."""
    actions = {change.action for change in changes}
    noun = _NOUNS[actions.pop()] if len(actions) == 1 else _WORDS.get(row.what.partition("-")[0], "Change")
    if not row.subjects or row.subjects[0].name == "*":
        return f"{noun} of {count(row.count, 'resource')}" if row.what in _WORDS else "This plan"
    return f"{noun} of {_join_names(row.subjects, quote)}"


_NOUNS: Mapping[Action, str] = {
    Action.CREATE: "Creation",
    Action.UPDATE: "Update",
    Action.REPLACE: "Replacement",
    Action.DELETE: "Deletion",
    Action.ADOPT: "Adoption",
    Action.FORGET: "Release",
    Action.MOVE: "Move",
}
_WORDS = {str(action): noun for action, noun in _NOUNS.items()}


def _join_names(names: Sequence[Named], quote: Quote) -> str:
    """`a, b (prod) and 3 more`"""
    listed = ", ".join(quote(name.name) + phrases.label(name.environments) for name in names[:_NAMED])
    return listed + (f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else "")


# --- access and risks without a missing approval


def _list_access(rows: Outline, quote: Quote) -> Iterator[Need]:
    """Access that is widened or locked, or of which that is unknown, and that needs no approval."""
    asked = {(row.what, subject.name) for row in rows.approvals if row.is_of_access for subject in row.subjects}
    for row in rows.access:
        is_asked = (str(row.verdict.risk), row.entry_point) in asked
        if row.verdict.risk is not None and not is_asked and _is_of_branch(row.cause):
            yield _describe_access(row, quote)


def _describe_access(row: AccessRow, quote: Quote, *, is_required: bool = False) -> Need:
    """`https://x will let in requests that are refused today: 203.0.113.0/24 → everyone.`"""
    places = row.places if isinstance(row, SharedAccessRow) else tuple(map(Named, (row.entry_point, *row.more)))
    states = f"{quote(row.before)} → {quote(row.after)}" if row.before != row.after else quote(row.before)
    verb = _VERDICTS[row.verdict][len(places) > 1]
    will, doubt = ("will", "") if row.is_certain else ("may", ", which is uncertain")
    explained = phrases.explain_access(replace(row, causes=()), quote, with_states=False)  # the causes are linked
    return Need(
        f"{_join_names(places, quote)} {will} {verb}{doubt}: {states}.",
        tuple(text[0].upper() + text[1:] for text in explained),
        row.causes,
        tuple(place.name + phrases.label(place.environments) for place in places[_NAMED:]),
        phrases.is_grave(row),
        is_required,
        row.environments
        if isinstance(row, SharedAccessRow) and not any(place.environments for place in places)
        else (),
        row,
    )


_VERDICTS: Mapping[Verdict, tuple[str, str]] = {
    Verdict.WIDENS: ("let in requests that are refused today",) * 2,
    Verdict.EXPOSES: ("be a new way in", "be new ways in"),
    Verdict.LOCKS_OUT: ("refuse everyone",) * 2,
    Verdict.NARROWS: ("refuse requests that pass today",) * 2,
    Verdict.CLOSES: ("no longer be a way in", "no longer be ways in"),
}  # of one entry point, and of several


def _list_risks(rows: Outline, quote: Quote) -> Iterator[Need]:
    """Severe risks of changes that no approval is about, those of one kind and action together."""
    asked = {subject.name for row in rows.approvals for subject in row.subjects}
    changes = [row for row in rows.changes if row.address not in asked and _is_of_branch(row.cause)]
    groups: dict[tuple[Risk, Action, tuple[str, ...]], list[ChangeRow]] = {}
    for row in phrases.sort_by_severity(phrases.spread_risks(changes)):
        for risk in row.other_risks:
            if risk in phrases.SEVERE:
                groups.setdefault((risk, row.action, row.environments), []).append(row)
    for (risk, _, environments), group in groups.items():
        addresses = tuple(row.address for row in group)
        yield Need(_describe_risk(risk, group, quote), (), addresses, is_severe=True, environments=environments)


def _is_of_branch(cause: Cause | None) -> bool:
    return cause in (None, Cause.THIS_CHANGE)


def _describe_risk(risk: Risk, rows: Sequence[ChangeRow], quote: Quote) -> str:
    """`Replacement of TLSEdge/shop interrupts live traffic.`"""
    names = _join_names([Named(row.address) for row in rows], quote)
    return f"{_NOUNS[rows[0].action]} of {names} {_SENTENCES.get(risk, risk.text)}."


_SENTENCES: Mapping[Risk, str] = {
    Risk.IRREVERSIBLE: "cannot be undone, and another account may take the name",
    Risk.LEAVES_DNS_RECORD: "leaves a DNS record that leads nowhere: others may take the name over",
    Risk.RUNS_COMMAND: "runs a command on the machine that applies the plan",
}
