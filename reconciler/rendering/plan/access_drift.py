"""Sentences about the entry points that drift opens or closes: before, by the manifests; after, as the platform is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from reconciler.model.access_change import Verdict
from reconciler.model.access_test import AccessResult
from reconciler.model.change import Reason
from reconciler.rendering.plan import phrases
from reconciler.rendering.plan.outline import AccessRow, Outline
from reconciler.rendering.terminal_text import sanitize
from reconciler.rendering.text_tools import count

_VERDICTS: Mapping[Verdict, str] = {
    Verdict.WIDENS: "access was widened on the platform",
    Verdict.EXPOSES: "a new way in was opened on the platform",
    Verdict.LOCKS_OUT: "everyone was locked out on the platform",
    Verdict.NARROWS: "access was narrowed on the platform",
    Verdict.CLOSES: "a way in was closed on the platform",
}
_HOW = {Reason.ADDED: "was added", Reason.VANISHED: "was deleted", Reason.DECLARED: "does not exist"}
_MOST_CAUSES = 3
_LONGEST = 180  # characters of a headline: GitHub and GitLab accept 255 in a title


def describe(
    rows: Outline, row: AccessRow, quote: Callable[[str], str] = str, emphasize: Callable[[str], str] = str
) -> str:
    """`Access was widened on the platform: https://x from 203.0.113.0/24 → everyone, because of …, which was added`"""
    return f"{emphasize(describe_verdict(row))}: {quote(row.entry_point)} {describe_states(rows, row, quote)}"


def describe_verdict(row: AccessRow) -> str:
    """`Access was widened on the platform`"""
    text = _VERDICTS[row.verdict]
    return f"{text[0].upper()}{text[1:]}" if row.is_certain else f"It is unknown whether {text}"


def describe_states(rows: Outline, row: AccessRow, quote: Callable[[str], str] = str) -> str:
    """`from 203.0.113.0/24 → everyone, because of IPPolicyRule/ipr_1, which was added`"""
    states = f"from {quote(row.before)} → {quote(row.after)}" if row.before != row.after else f"({quote(row.before)})"
    reasons = {change.address: change.reason for change in (*rows.changes, *rows.additions)}
    causes = [
        f"{quote(address)}, which {_HOW.get(reasons.get(address, Reason.FIELDS), 'was changed')}"
        for address in row.causes[:_MOST_CAUSES]
    ]
    more = len(row.causes) - _MOST_CAUSES
    return states + (f", because of {', and '.join(causes)}" if causes else "") + (f", and {more} more" * (more > 0))


def explain(row: AccessRow, quote: Callable[[str], str] = str) -> Iterator[str]:
    """An example, and what is not known."""
    _states, *details = phrases.explain_access(replace(row, causes=()), quote)
    yield from details


def headline(rows: Outline) -> str:
    """What drift opens to whom, for titles: `https://x is open to everyone (manifests: 203.0.113.0/24)`.

    Empty if no entry point lets in more requests, or no one any more.
    """
    grave = [row for row in rows.access if row.verdict.risk is not None]
    if not grave:
        return ""
    text, number = _shorten(grave[0]), sum(1 + len(row.more) for row in grave)
    return text + (f", and {count(number - 1, 'more entry point')}" if number > 1 else "")


def name_failed_test(failed: Sequence[AccessResult]) -> str:
    """The first failed access test, for titles: `access test fails: GET https://x/ … (expected deny, found allow)`.

    Empty if none failed.
    """
    if not failed:
        return ""
    first = failed[0]
    found = f" (expected {first.expect}, found {first.outcome})"
    more = f", and {count(len(failed) - 1, 'more test')}" if len(failed) > 1 else ""
    name = sanitize(first.test)
    name = name if len(name) <= _LONGEST - len(found) else f"{name[: _LONGEST - len(found) - 1]}…"
    return f"access test fails: {name}{found}{more}"


def _shorten(row: AccessRow) -> str:
    sure = row.is_certain
    if row.verdict is Verdict.LOCKS_OUT:
        text = "refuses everyone" if sure else "may refuse everyone"
    elif row.before == row.after:  # of another stack, whose gates are not shown
        text = "lets in more requests" if sure else "may let in more requests"
    else:
        text = f"{'is' if sure else 'may be'} open to {row.after}"
    known = f" (manifests: {row.before})" if row.before != row.after else ""
    whole = f"{row.entry_point} {text}{known}"
    return whole if len(whole) <= _LONGEST else f"{whole[: _LONGEST - 1]}…"
