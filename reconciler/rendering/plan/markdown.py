"""A plan as Markdown for a comment on a pull request: totals, approvals and risks, collapsed changes, calls.

All text from Git or the platform is in code (spans, fences longer than any run of backticks inside, or escaped HTML),
where GitHub and GitLab render no links, mentions, images or HTML.
"""

from __future__ import annotations

import hashlib
import html
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice, takewhile
from urllib.parse import quote, unquote

from msgspec import Struct
from msgspec.structs import replace

from reconciler.model.change import Action, Cause
from reconciler.model.health import HealthRow, State
from reconciler.model.plan import Plan
from reconciler.rendering import health_text
from reconciler.rendering.plan import access_drift, health_section, phrases
from reconciler.rendering.plan.approval_entries import render_entries
from reconciler.rendering.plan.excerpts import excerpts
from reconciler.rendering.plan.outline import (
    AccessRow,
    ApprovalRow,
    BaseRow,
    ChangeRow,
    FieldRow,
    Named,
    Outline,
    ProblemRow,
    RuleRow,
    SharedAccessRow,
    Variant,
    build_outline,
)
from reconciler.rendering.plan.phrases import Flavour, Resources, RiskPhrase
from reconciler.rendering.terminal_text import ELLIPSIS, sanitize
from reconciler.rendering.text_tools import count

LIMIT = 60_000  # characters: GitHub accepts 65,536 per comment
_NOTE = 400  # characters, reserved for the note about omissions
_SENTENCE = 70  # characters, reserved for a sentence about omissions
_LONGEST_LINE = 400  # characters of a line in a diff: enough for a certificate in base64
_FEW = 40  # lines of one field's diff
_CALLS_SHARE = 0.25  # of the room, reserved for the calls
_LISTED = (30, 10, 3, 0)  # of problems, approvals and risks each: the first of these numbers that fits
_FEW_APPROVED = 3  # entry points that an approval names before the section about access does
_FEW_PLACES = 8  # entry points of a line, with their environments
_FEW_ENTRIES = 16  # lines of approvals.yaml that need not be collapsed
_LINES_OF_ENTRY = 5  # of approvals.yaml, at most
_LONGEST_NAME = 300  # characters of a stack, in the marker
_MOST_STACKS = 50  # of one comment
_MARKER = re.compile(
    rf"<!-- reconciler stack=(?P<stack>[A-Za-z0-9_.~%]{{0,{_LONGEST_NAME}}}) account=[0-9a-f]{{16}} -->"
)
_KINDS = 40  # rows of the table
_HEALTH_SIGNS = {State.DEGRADED: "❌", State.UNKNOWN: "❔", State.PROGRESSING: "⏳"}
_SIGNS = {"…": "@@ … @@"}


class Cover(Struct, frozen=True):
    """Facts beside the plan.

    digest     of the whole plan, to tell it from another
    budget     requests per minute that the forecast assumes, 0 for none
    resources  how many are declared, if known
    """

    digest: str = ""
    budget: int = 0
    resources: Resources | None = None


def render_markdown(
    plan: Plan, cover: Cover | None = None, *, flavour: Flavour = Flavour.PLAN, limit: int = LIMIT
) -> str:
    """The page, in at most `limit` characters for any plan."""
    lines = list_entry_lines(plan) if flavour is Flavour.PLAN else []
    return Page(build_outline(plan), cover or Cover(), flavour, lines).text(limit)


def list_entry_lines(*plans: Plan) -> list[str]:
    """The lines of the entries of `approvals.yaml` that the plans lack."""
    return [sanitize(line) for line in render_entries(*plans).splitlines()]


def render_changes(plan: Plan, *, flavour: Flavour = Flavour.PLAN, limit: int = LIMIT) -> str:
    """The changes and additions alone, in at most `limit` characters: as part of another page."""
    page = Page(build_outline(plan), Cover(), flavour)
    added = page.fit_additions(limit * 2 // 3)
    text, collapsed, omitted = page.changes(limit - len(added) - _SENTENCE)
    if omitted:
        return f"{added}{text}{' and '.join(_describe_omitted(omitted))}.\n"
    return f"{added}{text}{count(collapsed, 'change')} without fields.\n" if collapsed else added + text


def marker(stack: str, account: str) -> str:
    """The hidden line that identifies the comment of a stack and account. No name can end the line early."""
    name = quote(sanitize(stack), safe="").replace("-", "%2D")
    if len(name) > _LONGEST_NAME:
        name = _digest(name)
    return f"<!-- reconciler stack={name} account={_digest(sanitize(account))} -->"


def mark_digest(digest: str) -> str:
    """The hidden line that tells a plan from another."""
    return f"<!-- reconciler digest={quote(digest, safe=':').replace('-', '%2D')} -->"


NO_PLAN = "<!-- reconciler no plan -->"
"""The hidden line that identifies a comment without any plan."""


def read_markers(text: str) -> list[str]:
    """The markers at the beginning of a comment, one per stack. Lines that were edited are not markers."""
    lines = (line.strip() for line in text.splitlines())
    return list(dict.fromkeys(islice(takewhile(_MARKER.fullmatch, lines), _MOST_STACKS)))


def name_stack(marker: str) -> str:
    """The stack of a marker that `read_markers` returned."""
    found = _MARKER.fullmatch(marker)
    return sanitize(unquote(found["stack"])) if found else ""


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def code(text: str) -> str:
    """Sanitized text as a code span."""
    if not text:
        return ""
    fence = "`" * (_longest_run(text) + 1)
    pad = " " if text.startswith(("`", " ")) or text.endswith(("`", " ")) else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def fence_code(lines: Sequence[str], language: str = "") -> Iterator[str]:
    """Sanitized lines as a block of code."""
    fence = "`" * max(3, max(map(_longest_run, lines), default=0) + 1)
    yield f"{fence}{language}"
    yield from lines
    yield fence


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)


class Page:
    """One rendering: the parts that are always present, then changes and calls as far as there is room."""

    def __init__(self, rows: Outline, cover: Cover, flavour: Flavour, entries: Sequence[str] = ()) -> None:
        self.rows = rows
        self.cover = cover
        self.flavour = flavour
        self.entries = entries  # lines of approvals.yaml that grant the missing approvals
        self.is_attributed = flavour is Flavour.PLAN and rows.is_attributed
        self.listed = _LISTED[0]

    def text(self, limit: int) -> str:
        head = tail = ""
        for self.listed in _LISTED:
            head, tail = _join(self.head()), _join(self.tail())
            if len(head) + len(tail) <= limit * 2 // 3:
                break
        room = limit - len(head) - len(tail) - _NOTE
        all_calls = _join(self.calls(len(self.rows.calls)))
        reserved = min(len(all_calls), int(room * _CALLS_SHARE))
        changes, collapsed, omitted = self.changes(room - reserved)
        calls, omitted_calls = self.fit_calls(room - len(changes))
        note = self.note(collapsed, omitted, omitted_calls)
        return "".join((head, note, changes, calls, tail)).rstrip("\n") + "\n"

    # --- always present

    def head(self) -> Iterator[str]:
        rows = self.rows
        yield marker(rows.stack, rows.account)
        if self.cover.digest:
            yield mark_digest(self.cover.digest)
        name = "Drift" if self.flavour is Flavour.DRIFT else "Plan"
        place = f", environment {code(cut(rows.environment, 100))}" if rows.environment else ""
        yield f"## {name} for stack {code(cut(rows.stack, 100))}{place}"
        yield ""
        yield from self.list_access_drift()
        yield from self.rule_changes()
        yield from self.base()
        if self.flavour is Flavour.PLAN and (access := phrases.count_access(rows)):
            yield f"**{access}**"
            yield ""
        yield from self.groups_summary() if self.is_attributed else self.summary()
        yield from self.health()
        yield from self.scope()
        yield from self.problems()
        yield from self.approvals()
        yield from self.access()
        yield from self.risks()
        yield from self.additions([row for row in self.rows.additions if self.is_of_branch(row)])

    def rule_changes(self) -> Iterator[str]:
        """The rules that this branch loosens, and the places that it changes."""
        rows = phrases.group_rule_changes(self.rows.rule_changes)
        if rows:
            yield "### ⚠️ Rules"
            yield ""
            short = (replace(row, values=cut(row.values, _LONGEST_LINE)) for row in rows)
            lines = (f"- {'✅' if row.granted else '❌'} {_rule_change(row)}" for row in short)
            yield from self.first(lines, len(rows), "rule")

    def is_of_branch(self, row: ChangeRow) -> bool:
        """Whether a change is shown at the top: in a review, those that this branch causes; otherwise all."""
        return not self.is_attributed or row.cause is Cause.THIS_CHANGE

    def base(self) -> Iterator[str]:
        """Why the changes are not attributed to this branch."""
        if self.rows.base is not None:
            yield from self.describe_base(self.rows.base)

    def describe_base(self, base: BaseRow) -> Iterator[str]:
        if text := phrases.describe_base(_cut_base(base), code):
            yield f"⚠️ **{text}**"
            yield ""
            if base.problems:
                lines = (f"- ❌ {code(cut(problem, _LONGEST_LINE))}" for problem in base.problems)
                yield from self.first(lines, len(base.problems), "problem")

    def groups_summary(self) -> Iterator[str]:
        """The changes by this branch in a sentence, and what is not due to it as a list."""
        base = self.rows.base
        assert base is not None
        branch, *others = phrases.list_groups(self.rows)
        base = _cut_base(base)
        yield f"**{phrases.summarize_group(branch)}** Compared with {code(base.ref)} ({code(base.commit)})."
        yield ""
        for group in others:
            severe = [risk.text for row in group.changes for risk in phrases.weigh_risks(row) if risk.is_severe]
            yield f"- {phrases.summarize_group(group)}" + (f" ⚠️ {', '.join(dict.fromkeys(severe))}" if severe else "")
        if base.withdrawn:
            yield from self.withdrawn(base.withdrawn)
        elif others:
            yield ""
        elif not branch.changes:
            yield from self.verdict()

    def withdrawn(self, rows: Sequence[ChangeRow]) -> Iterator[str]:
        texts = (f"- {phrases.describe_withdrawn(row, quote_name)}{quote_label(row.environments)}" for row in rows)
        yield from self.first(texts, len(rows), "change")

    def summary(self) -> Iterator[str]:
        """A table with a row per kind and a column per action, and the totals as a sentence."""
        actions = [action for action in Action if self.rows.counts.get(action)]
        if actions:
            yield "| kind | " + " | ".join(actions) + " |"
            yield "| --- |" + " ---: |" * len(actions)
            counted = Counter((row.address.partition("/")[0], row.action) for row in self.rows.changes)
            kinds = sorted({kind for kind, _ in counted})
            for kind in kinds[:_KINDS]:
                cells = (str(counted[kind, action] or "") for action in actions)
                yield f"| {code(cut(kind, 60)).replace('|', chr(92) + '|')} | " + " | ".join(cells) + " |"
            if len(kinds) > _KINDS:
                yield f"| {ELLIPSIS} {count(len(kinds) - _KINDS, 'more kind')} |" + " |" * len(actions)
            if len(kinds) > 1:
                totals = (f"**{self.rows.counts[action]}**" for action in actions)
                yield "| **all** | " + " | ".join(totals) + " |"
            yield ""
        yield from self.verdict()

    def verdict(self) -> Iterator[str]:
        if verdict := phrases.verdict(self.rows, self.flavour, self.cover.resources):
            yield f"**{verdict}**"
            yield ""

    def scope(self) -> Iterator[str]:
        rows = self.rows
        facts = [
            ("Account", cut(rows.account, 200)),
            ("Commit", rows.commit[:12]),
            ("Targets", cut(" ".join(rows.targets), 300)),
            ("Excluded", cut(" ".join(rows.excludes), 300)),
        ]
        if lines := [f"{name}: {code(text)}" for name, text in facts if text]:
            yield " · ".join(lines)
            yield ""

    def problems(self) -> Iterator[str]:
        if rows := self.rows.urgent_problems:
            yield "### Problems"
            yield ""
            lines = (f"- {'❌' if row.is_error else '⚠️'} {_problem(row)}" for row in rows)
            yield from self.first(lines, len(rows), "problem")

    def approvals(self) -> Iterator[str]:
        rows = self.rows.approvals if self.flavour is Flavour.PLAN else ()
        if rows:
            yield "### Approvals"
            yield ""
            yield from self.first((_approval(row, self.listed) for row in rows), len(rows), "approval")
        if self.entries and len(self.entries) <= self.listed * _LINES_OF_ENTRY:
            is_long = len(self.entries) > _FEW_ENTRIES
            text = "To approve, add to {} in a reviewed commit:"
            place = "<code>approvals.yaml</code>" if is_long else code("approvals.yaml")
            yield f"<details><summary>{text.format(place)}</summary>" if is_long else text.format(place)
            yield ""
            yield from fence_code(self.entries, "yaml")
            yield ""
            yield from ("</details>", "") if is_long else ()
        elif self.entries:
            yield "For the entries of `approvals.yaml`: `reconciler plan --fail-on approvals`."
            yield ""

    def access(self) -> Iterator[str]:
        """The entry points that let other requests through."""
        rows = self.rows.access if self.flavour is Flavour.PLAN else ()
        if rows:
            yield f"### {phrases.ACCESS}"
            yield ""
            yield from self.first((_access(row, self.listed) for row in rows), len(rows), "group")

    def list_access_drift(self) -> Iterator[str]:
        """The entry points that the platform's changes open or close."""
        rows = self.rows.access if self.flavour is Flavour.DRIFT else ()
        if rows:
            lines = (_describe_access_drift(self.rows, row, self.listed) for row in rows)
            yield from self.first(lines, len(rows), "group")

    def health(self) -> Iterator[str]:
        """The health of the stack, apart from its drift."""
        if self.rows.health is None:
            return
        yield f"**{health_section.describe_health(self.rows.health)}**"
        yield ""
        ill = health_section.list_unhealthy(self.rows.health)
        if ill:
            lines = (f"- {_HEALTH_SIGNS[row.health.state]} {_describe_health(row)}" for row in ill)
            yield from self.first(lines, len(ill), "object")

    def risks(self) -> Iterator[str]:
        rows = phrases.spread_risks(filter(self.is_of_branch, self.rows.changes))
        groups = phrases.group_by_risks(phrases.without_approved_risks(rows, self.rows.approvals))
        if groups and self.flavour is Flavour.PLAN:
            yield "### ⚠️ Risks"
            yield ""
            lines = (_risk(rows, self.listed) for rows in groups)
            yield from self.first(lines, len(groups), "group")

    def additions(self, rows: Sequence[ChangeRow]) -> Iterator[str]:
        if rows:
            yield f"### ⚠️ {phrases.ADDITIONS.removesuffix(':')}"
            yield ""
            yield from self.first(map(_addition, rows), len(rows), "addition")
            yield phrases.CHOICES
            yield ""

    def fit_additions(self, room: int) -> str:
        """As many additions as there is room for, at least their number."""
        text = ""
        for self.listed in _LISTED:
            text = _join(self.additions(self.rows.additions))
            if len(text) <= room:
                break
        return text

    def tail(self) -> Iterator[str]:
        yield from self.totals()
        if notes := self.rows.notes:
            yield from self.first((f"- {_problem(row)}" for row in notes), len(notes), "note")

    def totals(self) -> Iterator[str]:
        if self.is_attributed and self.rows.changes:
            yield from self.verdict()
        if self.flavour is Flavour.PLAN and self.rows.changes:
            yield f"{phrases.forecast(self.rows.forecast, self.cover.budget)}."
            yield ""
        if ignored := phrases.describe_ignored(self.rows):
            yield ignored
            yield ""
        if unmanaged := describe_unmanaged(self.rows):
            yield unmanaged
            yield ""

    def note(self, collapsed: int, omitted: Sequence[ChangeRow], calls: int) -> str:
        """What was omitted, and the command that shows it."""
        parts = []
        if collapsed:
            parts.append(f"{count(collapsed, 'change')} without fields")
        parts += _describe_omitted(omitted)
        if calls:
            parts.append(f"{count(calls, 'call')} omitted")
        if not parts:
            return ""
        return f"> **Shortened to fit a comment:** {', '.join(parts)}. For the full plan: `reconciler show FILE`.\n\n"

    def first(self, lines: Iterable[str], total: int, noun: str) -> Iterator[str]:
        """As many lines as are listed, and the number of the others."""
        yield from islice(lines, self.listed)
        if total > self.listed:
            yield f"- {ELLIPSIS} {count(total - self.listed, f'more {noun}')}"
        yield ""

    # --- as far as it fits

    def changes(self, room: int) -> tuple[str, int, Sequence[ChangeRow]]:
        """The changes, how many of them are without their fields, and those that are omitted: deletions last of all."""
        if self.is_attributed:
            return self.groups(room)
        rows = phrases.sort_deletions_first(self.rows.changes)
        return self.fit_changes(phrases.sort_pending_last(rows, self.flavour), room)

    def groups(self, room: int) -> tuple[str, int, Sequence[ChangeRow]]:
        """The changes of this branch, then the other groups folded. Returns the same as `changes`."""
        groups = phrases.list_groups(self.rows)
        frames = [self.frame(group) for group in groups]
        left = room - sum(len(head) + len(tail) for head, tail in frames)
        parts: list[str] = []
        collapsed, omitted = 0, list[ChangeRow]()
        for number, (group, (head, tail)) in enumerate(zip(groups, frames, strict=True)):
            reserved = self.reserve([row for rest in groups[number + 1 :] for row in rest.changes], max(left, 0))
            rows = phrases.sort_deletions_first(group.changes)
            text, without_fields, without_line = self.fit_changes(rows, left - reserved)
            left -= len(text)
            collapsed, omitted = collapsed + without_fields, [*omitted, *without_line]
            parts += [head, text, tail.removeprefix("\n") if text.endswith("\n\n") else tail]
        return "".join(parts), collapsed, omitted

    def reserve(self, rows: Sequence[ChangeRow], room: int) -> int:
        """Room for the changes of later groups, without their fields: a third, and more for deletions."""
        lengths = {True: 0, False: 0}
        for row in rows:
            lengths[row.action is Action.DELETE] += len(_join(self.brief(row)))
        return max(min(sum(lengths.values()), room // 3), min(lengths[True] + 1, room * 2 // 3))

    def frame(self, group: phrases.Group) -> tuple[str, str]:
        """What stands before and after the changes of a group."""
        base = self.rows.base
        assert base is not None
        if group.cause is Cause.THIS_CHANGE:
            return (f"### {phrases.THIS_BRANCH}\n\n" if group.changes else ""), ""
        title = f"{phrases.describe_group(group, base)} ({phrases.count_group(group)})"
        head = ["<details>", f"<summary><b>{html.escape(title)}</b></summary>", "", *self.additions(group.additions)]
        return _join(head), "\n</details>\n\n"

    def fit_changes(self, rows: Sequence[ChangeRow], room: int) -> tuple[str, int, Sequence[ChangeRow]]:
        """As `changes`, for some of the rows."""
        brief = [_join(self.brief(row)) for row in rows]
        left = room - sum(map(len, brief)) - 1
        blocks, collapsed, omitted = [], 0, rows[:0]
        if left < 0:  # not even all addresses fit
            used = 1
            for number, block in enumerate(brief):
                used += len(block)
                if used > room:
                    omitted = rows[number:]
                    break
                blocks.append(block)
            return "".join([*blocks, "\n"]), len(blocks), omitted
        for row, short in zip(rows, brief, strict=True):
            whole = _join(self.whole(row))
            if len(whole) - len(short) <= left:
                left -= len(whole) - len(short)
                blocks.append(whole)
            else:
                collapsed += 1
                blocks.append(short)
        return "".join(blocks) + ("\n" if collapsed else ""), collapsed, ()

    def brief(self, row: ChangeRow) -> Iterator[str]:
        yield f"- `{row.symbol}` {quote_name(row.address)}{quote_label(row.environments)}"

    def whole(self, row: ChangeRow) -> Iterator[str]:
        was = f", was {_inert(row.former)}" if row.former else ""
        risks = "".join(
            f" · <b>{html.escape(risk.name)}</b>" if risk.is_severe else f" · {html.escape(risk.name)}"
            for risk in phrases.weigh_risks(row)
        )
        place = f" · {_inert(row.position)}" if row.position else ""
        if self.flavour is Flavour.DRIFT and row.is_pending:
            place = f" · unapplied Git change{place}"
        yield "<details>"
        of = phrases.label(row.environments, _inert)
        yield f"<summary>{_inert(row.symbol)} {_inert(row.address)} {row.action}{was}{of}{risks}{place}</summary>"
        yield ""
        yield phrases.reason(row, self.flavour, code) + (f" ({code(row.id)})" if row.id else "")
        yield ""
        if details := phrases.details(row, self.flavour):
            yield from fence_code(details, "text")
            yield ""
        if row.fields:
            yield from fence_code([line for field in row.fields for line in self.field(row, field)], "diff")
            yield ""
        for variant in row.variants:
            yield from self.variant(row, variant)
        yield "</details>"
        yield ""

    def variant(self, row: ChangeRow, variant: Variant) -> Iterator[str]:
        """What the change has in some environments only."""
        risks = [risk.text for risk in phrases.weigh_risks(replace(row, risks=variant.risks, protected=False))]
        yield f"{', '.join(map(quote_name, variant.environments))}: {', '.join(risks)}".rstrip()
        yield ""
        if details := phrases.details(
            replace(row, deliveries=variant.deliveries, records=variant.records), self.flavour
        ):
            yield from fence_code(details, "text")
            yield ""
        if variant.fields:
            yield from fence_code([line for field in variant.fields for line in self.field(row, field)], "diff")
            yield ""

    def field(self, change: ChangeRow, row: FieldRow) -> Iterator[str]:
        """A field as lines of a diff: on one line if its values are short, otherwise below a line with its path."""
        notes = phrases.notes(change, row, self.flavour)
        note = f"  ({', '.join(notes)})" if notes else ""
        lines = phrases.diff(row, self.flavour)
        pairs = zip(lines, excerpts(lines, _LONGEST_LINE), strict=True)
        path = cut(row.path, _LONGEST_LINE)
        if phrases.is_short(row):
            *first, last = [f"{line.sign} {path}: {text}" for line, text in pairs] or [f"  {path}"]
            yield from (*first, last + note)
            return
        yield f"@@ {path} @@{note}"
        for line, text in islice(pairs, _FEW):
            yield _SIGNS.get(line.sign) or f"{line.sign} {text}"
        if len(lines) > _FEW:
            yield f"  {ELLIPSIS} {count(len(lines) - _FEW, 'more line')}"

    def fit_calls(self, room: int) -> tuple[str, int]:
        """As many calls as there is room for, and how many are omitted."""
        number = len(self.rows.calls)
        while True:
            block = _join(self.calls(number))
            if len(block) <= room or number == 0:
                return block, len(self.rows.calls) - number
            number = min(number - 1, number * max(room, 0) // len(block))

    def calls(self, number: int) -> Iterator[str]:
        rows = self.rows.calls[:number] if self.flavour is Flavour.PLAN else ()
        if not rows:
            return
        yield f"<details><summary>{count(len(self.rows.calls), 'call')}, in order</summary>"
        yield ""
        digits = len(str(len(self.rows.calls)))
        wide = min(60, max(len(row.path) for row in rows))
        lines = []
        for row in rows:
            after = f", after {', '.join(map(str, row.needs))}" if row.needs else ""
            lines.append(cut(f"{row.number:>{digits}}  {row.method:<6}  {row.path:<{wide}}  {row.address}{after}", 240))
        if number < len(self.rows.calls):
            lines.append(f"{ELLIPSIS} {count(len(self.rows.calls) - number, 'more call')}")
        yield from fence_code(lines, "text")
        yield ""
        yield "</details>"
        yield ""


def _describe_omitted(rows: Sequence[ChangeRow]) -> list[str]:
    deletions = sum(row.action is Action.DELETE for row in rows)
    others = len(rows) - deletions
    return [
        *([f"**{count(deletions, 'deletion')} omitted**"] if deletions else []),
        *([f"{count(others, 'other change' if deletions else 'change')} omitted"] if others else []),
    ]


def _risk(rows: Sequence[ChangeRow], listed: int) -> str:
    """Changes with equal risks: `**irreversible**: delete `ReservedDomain/a`, `ReservedDomain/b``"""
    changes = "; ".join(f"{action} {_names(group, listed)}" for action, group in phrases.group_by_action(rows).items())
    lines = [Named(line) for row in rows for line in row.deliveries]
    lines += [Named(line, part.environments) for row in rows for part in row.variants for line in part.deliveries]
    head = f"- {_join_risks(phrases.weigh_other_risks(rows[0]))}: {changes}"
    details = (f"  - {code(_cut_visibly(line.name, _LONGEST_LINE))}{quote_label(line.environments)}" for line in lines)
    return "\n".join([head, *details])


def _access(row: AccessRow, listed: int) -> str:
    """`- ⚠️ `https://shop.example.com/admin…` **lets in requests that were refused**`, and an example below it."""
    bold = (lambda text: f"**{text}**") if phrases.is_grave(row) else str
    details = phrases.explain_access(row, _short_code)
    if isinstance(row, SharedAccessRow):
        return _join_shared_access(row, bold, details, listed)
    return _join_access(row, phrases.describe_access(row, _short_code, bold), details, listed)


def _join_shared_access(row: SharedAccessRow, bold: Callable[[str], str], details: Iterable[str], listed: int) -> str:
    """`- ⚠️ **lets in requests that were refused**: `https://a` (`staging`), `https://b` (`prod`)`, and why below it."""
    most = min(max(listed, 1), _FEW_PLACES)
    names = ", ".join(quote_name(place.name) + quote_label(place.environments) for place in row.places[:most])
    rest = f" and {len(row.places) - most:,} more" if len(row.places) > most else ""
    cause = phrases.describe_access_cause(row)
    lines = [f"- {'⚠️ ' if row.verdict.risk is not None else ''}{bold(phrases.describe_verdict(row))}: {names}{rest}"]
    lines[0] += f" ({cause})" if cause else ""
    lines += [f"  - {line}" for line in details]
    if row.other_causes:
        others = ", ".join(
            quote_name(other.name) + quote_label(other.environments) for other in row.other_causes[:most]
        )
        lines.append(f"  - also caused by {others}")
    return "\n".join(lines)


def _describe_access_drift(rows: Outline, row: AccessRow, listed: int) -> str:
    """`- ⚠️ **Access was widened on the platform**: `https://x` from `203.0.113.0/24` → `everyone`, because of …`"""
    text = access_drift.describe(rows, row, _short_code, lambda text: f"**{text}**")
    return _join_access(row, text, access_drift.explain(row, _short_code), listed)


def _join_access(row: AccessRow, text: str, details: Iterable[str], listed: int) -> str:
    lines = [f"- {'⚠️ ' if row.verdict.risk is not None else ''}{text}"]
    lines += [f"  - {line}" for line in details]
    if row.more:
        names = row.more[: max(listed, 1) * phrases.FEW_ENTRY_POINTS]
        rest = f" and {len(row.more) - len(names):,} more" if len(row.more) > len(names) else ""
        fold = f"and {count(len(row.more), 'more entry point')}"
        lines += [
            f"  - <details><summary>{fold}</summary>",
            "",
            f"    {', '.join(code(cut(name, 160)) for name in names)}{rest}",
            "",
            "    </details>",
        ]
    return "\n".join(lines)


def _describe_health(row: HealthRow) -> str:
    return f"{row.health.state}: {_short_code(health_text.format_row(row))}"


def _short_code(text: str) -> str:
    return code(cut(text, _LONGEST_LINE))


def _names(rows: Sequence[ChangeRow], listed: int) -> str:
    names = ", ".join(quote_name(row.address) + quote_label(row.environments) for row in rows[:listed])
    return names + (f" and {len(rows) - listed} more" if len(rows) > listed else "")


def _approval(row: ApprovalRow, listed: int) -> str:
    """`- ✋ **required**: `ReservedDomain/old`: `irreversible: cannot be recovered after deletion``"""
    state = "✅ approved" if row.granted else f"✋ **{phrases.rank_approval(row)}**"
    names = f"{row.what}{quote_label(row.environments)}"
    if row.is_of_access and len(row.subjects) > _FEW_APPROVED:
        names = f"{count(len(row.subjects), 'entry point')} under {phrases.ACCESS}"
    elif row.subjects:
        names = phrases.name_subjects(row, listed, quote_name)
    remedy = "" if row.subjects or row.granted else f" ({phrases.NOT_IN_GIT})"
    return f"- {state}: {names}: {code(cut(row.why, 300))}{remedy}"


def describe_unmanaged(rows: Outline) -> str:
    """`Not managed: 2 `BotUser` (list them with `drift --unmanaged`).`; empty if there are none."""
    listed = ", ".join(f"{number} {code(kind)}" for kind, number in list(rows.unmanaged.items())[:_KINDS])
    return f"Not managed: {listed} ({phrases.LISTS})." if listed else ""


def quote_name(text: str) -> str:
    return code(cut(text, 160))


def quote_label(environments: Sequence[str]) -> str:
    return phrases.label(environments, quote_name)


def _rule_change(row: RuleRow) -> str:
    return phrases.describe_rule_change(row, code) + quote_label(row.environments)


def _problem(row: ProblemRow) -> str:
    return code(cut(row.text, _LONGEST_LINE)) + quote_label(row.environments)


def _addition(row: ChangeRow) -> str:
    """`**risk**: `IPPolicyRule/ipr_1` in `IPPolicy/office`: `cidr: "0.0.0.0/0"``"""
    fields = ", ".join(f"{field.path}: {field.old.line}" for field in row.fields if field.old)
    content = f": {code(cut(fields, 300))}" if fields else ""
    place = f"{quote_name(row.parent)}{quote_label(row.environments)}"
    return f"- {_risks(row)}: {quote_name(row.address)} in {place}{content}"


def _risks(row: ChangeRow) -> str:
    return _join_risks(phrases.weigh_risks(row))


def _join_risks(risks: Iterable[RiskPhrase]) -> str:
    return ", ".join(f"**{risk.text}**" if risk.is_severe else risk.text for risk in risks)


def _cut_base(base: BaseRow) -> BaseRow:
    return replace(base, ref=cut(base.ref, 100))


def _inert(text: str) -> str:
    """Sanitized text inside HTML, in a code element, in which mentions and links are not active."""
    return f"<code>{html.escape(cut(text, 200))}</code>"


def cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + ELLIPSIS


def _cut_visibly(text: str, limit: int) -> str:
    """The text with the number of omitted characters: the end of a command may matter."""
    return text if len(text) <= limit else f"{text[:limit]}{ELLIPSIS} ({len(text) - limit} more characters)"


def _join(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
