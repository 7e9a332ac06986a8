"""A plan as Markdown that fits one comment of a review: what it risks on top, details folded, calls last.

Everything that comes from Git or the platform stands in code (spans, fences longer than any run of backticks inside, or
escaped HTML), where neither GitHub nor GitLab looks for links, mentions, pictures or HTML.
"""

from __future__ import annotations

import hashlib
import html
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from urllib.parse import quote

from reconciler.model.change import Action
from reconciler.model.plan import Plan
from reconciler.rendering.plan import phrases
from reconciler.rendering.plan.excerpts import excerpts
from reconciler.rendering.plan.outline import ChangeRow, FieldRow, Outline, build_outline
from reconciler.rendering.plan.phrases import Flavour, Resources
from reconciler.rendering.terminal_text import ELLIPSIS, sanitize

LIMIT = 60_000  # characters: GitHub takes 65,536 a comment
_LONGEST_LINE = 400  # characters of a line in a diff: a certificate's base64 is shorter, a minified policy is not
_FEW = 40  # lines of one field's diff
_CALLS_SHARE = 0.25  # of the room, kept for the calls where changes would take it all
_LISTED = (30, 10, 3, 0)  # of problems, consents and changes with risks each, named one by one: the most that fit
_LONGEST_NAME = 300  # of a stack, in the marker
_KINDS = 40  # in the table
_SIGNS = {"…": "@@ … @@"}


@dataclass(frozen=True, slots=True)
class Cover:
    """What is said around a plan.

    digest     of the whole plan, by which a reader tells one from another
    budget     requests a minute the forecast was made with, 0 for none
    resources  how many are declared, if that is known
    """

    digest: str = ""
    budget: int = 0
    resources: Resources | None = None


def render_markdown(
    plan: Plan, cover: Cover | None = None, *, flavour: Flavour = Flavour.PLAN, limit: int = LIMIT
) -> str:
    """At most `limit` characters, whatever the plan."""
    return _Page(build_outline(plan), cover or Cover(), flavour).text(limit)


def marker(stack: str, account: str) -> str:
    """The hidden line by which the comment about a stack in an account is found again. Nothing in it ends it early."""
    name = quote(sanitize(stack), safe="").replace("-", "%2D")
    if len(name) > _LONGEST_NAME:
        name = _digest(name)
    return f"<!-- reconciler stack={name} account={_digest(sanitize(account))} -->"


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def code(text: str) -> str:
    """Clean text as a code span."""
    if not text:
        return ""
    fence = "`" * (_longest_run(text) + 1)
    pad = " " if text.startswith(("`", " ")) or text.endswith(("`", " ")) else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def fenced(lines: Sequence[str], language: str = "") -> Iterator[str]:
    """Clean lines as a block of code."""
    fence = "`" * max(3, max(map(_longest_run, lines), default=0) + 1)
    yield f"{fence}{language}"
    yield from lines
    yield fence


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)


class _Page:
    """One rendering, in blocks: what is always there, then changes and calls as far as there is room."""

    def __init__(self, rows: Outline, cover: Cover, flavour: Flavour) -> None:
        self.rows = rows
        self.cover = cover
        self.flavour = flavour
        self.listed = _LISTED[0]

    def text(self, limit: int) -> str:
        tail = _joined(self.tail())
        head = ""
        for self.listed in _LISTED:
            head = _joined(self.head())
            if len(head) + len(tail) <= limit * 2 // 3:
                break
        room = limit - len(head) - len(tail) - 400  # for the words that say what was left out
        calls_whole = _joined(self.calls(len(self.rows.calls)))
        kept = min(len(calls_whole), int(room * _CALLS_SHARE))
        changes, folded, unnamed = self.changes(room - kept)
        calls, calls_left = self.fitting_calls(room - len(changes))
        note = self.note(folded, unnamed, calls_left)
        return "".join((head, note, changes, calls, tail)).rstrip("\n") + "\n"

    # --- always there

    def head(self) -> Iterator[str]:
        rows = self.rows
        yield marker(rows.stack, rows.account)
        if self.cover.digest:
            yield f"<!-- reconciler digest={quote(self.cover.digest, safe=':').replace('-', '%2D')} -->"
        name = "Drift" if self.flavour is Flavour.DRIFT else "Plan"
        yield f"## {name} for stack {code(_cut(rows.stack, 100))}"
        yield ""
        yield from self.summary()
        yield from self.scope()
        yield from self.problems()
        yield from self.approvals()
        yield from self.risks()
        yield from self.additions()

    def summary(self) -> Iterator[str]:
        """A line per kind and a column per action, as far as there are any; then the same in a sentence."""
        actions = [action for action in Action if self.rows.counts.get(action)]
        if actions:
            yield "| kind | " + " | ".join(actions) + " |"
            yield "| --- |" + " ---: |" * len(actions)
            counted = Counter((row.address.partition("/")[0], row.action) for row in self.rows.changes)
            kinds = sorted({kind for kind, _ in counted})
            for kind in kinds[:_KINDS]:
                cells = (str(counted[kind, action] or "") for action in actions)
                yield f"| {code(_cut(kind, 60)).replace('|', chr(92) + '|')} | " + " | ".join(cells) + " |"
            if len(kinds) > _KINDS:
                yield f"| {ELLIPSIS} {phrases.count(len(kinds) - _KINDS, 'more kind')} |" + " |" * len(actions)
            if len(kinds) > 1:
                totals = (f"**{self.rows.counts[action]}**" for action in actions)
                yield "| **all** | " + " | ".join(totals) + " |"
            yield ""
        if verdict := phrases.verdict(self.rows, self.flavour, self.cover.resources):
            yield f"**{verdict}**"
            yield ""

    def scope(self) -> Iterator[str]:
        rows = self.rows
        said = []
        if rows.account:
            said.append(f"on {code(_cut(rows.account, 200))}")
        if rows.commit:
            said.append(f"at commit {code(rows.commit[:12])}")
        for name, globs in (("only", rows.targets), ("without", rows.excludes)):
            if globs:
                said.append(f"{name} {code(_cut(' '.join(globs), 300))}")
        if said:
            yield ", ".join(said)[:1].upper() + ", ".join(said)[1:] + "."
            yield ""

    def problems(self) -> Iterator[str]:
        rows = sorted(self.rows.problems, key=lambda row: not row.is_error)
        if rows:
            yield "### Problems"
            yield ""
            lines = (f"- {'❌' if row.is_error else '⚠️'} {code(_cut(row.text, _LONGEST_LINE))}" for row in rows)
            yield from self.first(lines, len(rows), "problem")

    def approvals(self) -> Iterator[str]:
        rows = self.rows.approvals if self.flavour is Flavour.PLAN else ()
        if rows:
            yield "### Needs consent"
            yield ""
            lines = (
                f"- {'✅ given: ' if row.granted else '✋ '}{code(_cut(row.flag, 200))}: {code(_cut(row.why, 300))}"
                for row in rows
            )
            yield from self.first(lines, len(rows), "consent")

    def risks(self) -> Iterator[str]:
        rows = [row for row in self.rows.changes if row.risks or row.protected]
        if rows and self.flavour is Flavour.PLAN:
            yield "### ⚠️ Risks"
            yield ""
            lines = (_risk(row) for _, row in phrases.gravest(rows))
            yield from self.first(lines, len(rows), "change")

    def additions(self) -> Iterator[str]:
        rows = self.rows.additions
        if rows:
            yield f"### ⚠️ {phrases.ADDITIONS.removesuffix(':')}"
            yield ""
            yield from self.first(map(_addition, rows), len(rows), "addition")
            yield phrases.CHOICES
            yield ""

    def tail(self) -> Iterator[str]:
        if self.flavour is Flavour.PLAN and self.rows.changes:
            yield f"Forecast: {phrases.forecast(self.rows.forecast, self.cover.budget)}."
            yield ""
        if known := phrases.ignored(self.rows):
            yield known
            yield ""
        if self.rows.unmanaged:
            some = list(self.rows.unmanaged.items())[:_KINDS]
            yield f"Not managed: {', '.join(f'{number} {code(kind)}' for kind, number in some)} ({phrases.LISTS})."
            yield ""

    def note(self, folded: int, unnamed: int, calls: int) -> str:
        """What does not fit, and where it is."""
        said = []
        if folded:
            said.append(f"{phrases.count(folded, 'change')} without fields")
        if unnamed:
            said.append(f"{phrases.count(unnamed, 'change')} left out")
        if calls:
            said.append(f"{phrases.count(calls, 'call')} left out")
        if not said:
            return ""
        return (
            f"> **Shortened to fit a comment:** {', '.join(said)}. The plan file has all of it: `reconciler show`.\n\n"
        )

    def first(self, lines: Iterable[str], total: int, noun: str) -> Iterator[str]:
        """So many lines, and how many more there would be."""
        yield from islice(lines, self.listed)
        if total > self.listed:
            yield f"- {ELLIPSIS} {phrases.count(total - self.listed, f'more {noun}')}"
        yield ""

    # --- as far as there is room

    def changes(self, room: int) -> tuple[str, int, int]:
        """The changes, how many of them without their fields, and how many are not there at all."""
        rows = phrases.pending_last((row for _, row in phrases.gravest(self.rows.changes)), self.flavour)
        brief = [_joined(self.brief(row)) for row in rows]
        left = room - sum(map(len, brief)) - 1
        blocks, folded, unnamed = [], 0, 0
        if left < 0:  # not even their names fit
            taken = 0
            for number, block in enumerate(brief):
                taken += len(block)
                if taken > room:
                    unnamed = len(brief) - number
                    break
                blocks.append(block)
            return "".join([*blocks, "\n"]), len(blocks), unnamed
        for row, short in zip(rows, brief, strict=True):
            whole = _joined(self.whole(row))
            if len(whole) - len(short) <= left:
                left -= len(whole) - len(short)
                blocks.append(whole)
            else:
                folded += 1
                blocks.append(short)
        return "".join(blocks) + ("\n" if folded else ""), folded, 0

    def brief(self, row: ChangeRow) -> Iterator[str]:
        yield f"- `{row.symbol}` {code(_cut(row.address, 160))}"

    def whole(self, row: ChangeRow) -> Iterator[str]:
        was = f", was {_inert(row.former)}" if row.former else ""
        risks = "".join(f" · <b>{risk}</b>" for risk in row.risks) + (" · <b>protected</b>" if row.protected else "")
        place = f" · {_inert(row.position)}" if row.position else ""
        if self.flavour is Flavour.DRIFT and row.is_pending:
            place = f" · unapplied Git change{place}"
        yield "<details>"
        yield (f"<summary>{_inert(row.symbol)} {_inert(row.address)} {row.action}{was}{risks}{place}</summary>")
        yield ""
        order = f", {phrases.ORDERS[row.order]}" if row.order else ""
        yield f"{phrases.reason(row, self.flavour)}{order}" + (f" ({code(row.id)})" if row.id else "")
        yield ""
        if told := phrases.deliveries(row, self.flavour):
            yield from fenced(told, "text")
            yield ""
        if row.fields:
            yield from fenced([line for field in row.fields for line in self.field(row, field)], "diff")
            yield ""
        yield "</details>"
        yield ""

    def field(self, change: ChangeRow, row: FieldRow) -> Iterator[str]:
        """A field as lines of a diff: on one line where it is short, its lines below its name where not."""
        notes = phrases.notes(change, row, self.flavour)
        said = f"  ({', '.join(notes)})" if notes else ""
        lines = phrases.diff(row, self.flavour)
        shown = zip(lines, excerpts(lines, _LONGEST_LINE), strict=True)
        path = _cut(row.path, _LONGEST_LINE)
        if phrases.is_short(row):
            told = [f"{line.sign} {path}: {text}" for line, text in shown]
            yield from (*told[:-1], *(last + said for last in told[-1:]))
            return
        yield f"@@ {path} @@{said}"
        for line, text in islice(shown, _FEW):
            yield _SIGNS.get(line.sign) or f"{line.sign} {text}"
        if len(lines) > _FEW:
            yield f"  {ELLIPSIS} {phrases.count(len(lines) - _FEW, 'more line')}"

    def fitting_calls(self, room: int) -> tuple[str, int]:
        """As many calls as there is room for, and how many are left out."""
        number = len(self.rows.calls)
        while True:
            block = _joined(self.calls(number))
            if len(block) <= room or number == 0:
                return (block if len(block) <= room else ""), len(self.rows.calls) - number
            number = min(number - 1, number * max(room, 0) // len(block))

    def calls(self, number: int) -> Iterator[str]:
        rows = self.rows.calls[:number] if self.flavour is Flavour.PLAN else ()
        if not rows:
            return
        yield f"<details><summary>{phrases.count(len(self.rows.calls), 'call')}, in order</summary>"
        yield ""
        digits = len(str(len(self.rows.calls)))
        wide = min(60, max(len(row.path) for row in rows))
        lines = []
        for row in rows:
            after = f", after {', '.join(map(str, row.needs))}" if row.needs else ""
            lines.append(
                _cut(f"{row.number:>{digits}}  {row.method:<6}  {row.path:<{wide}}  {row.address}{after}", 240)
            )
        if number < len(self.rows.calls):
            lines.append(f"{ELLIPSIS} {phrases.count(len(self.rows.calls) - number, 'more call')}")
        yield from fenced(lines, "text")
        yield ""
        yield "</details>"
        yield ""


def _risk(row: ChangeRow) -> str:
    told = [f"- {_reasons(row)}: {row.action} {code(_cut(row.address, 160))}"]
    return "\n".join([*told, *(f"  - {code(_cut_told(line, _LONGEST_LINE))}" for line in row.deliveries)])


def _addition(row: ChangeRow) -> str:
    """`**risk**: `IPPolicyRule/ipr_1` in `IPPolicy/office`: `cidr: "0.0.0.0/0"``"""
    told = ", ".join(f"{field.path}: {field.old.line}" for field in row.fields if field.old)
    content = f": {code(_cut(told, 300))}" if told else ""
    return f"- {_reasons(row)}: {code(_cut(row.address, 160))} in {code(_cut(row.parent, 160))}{content}"


def _reasons(row: ChangeRow) -> str:
    said = [str(risk) for risk in row.risks] + (["protected"] if row.protected else [])
    return ", ".join(f"**{each}**" for each in said)


def _inert(text: str) -> str:
    """Clean text inside HTML, where a code element keeps mentions and links asleep."""
    return f"<code>{html.escape(_cut(text, 200))}</code>"


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + ELLIPSIS


def _cut_told(text: str, limit: int) -> str:
    """With how much is missing: what is cut off a command may be what matters."""
    return text if len(text) <= limit else f"{text[:limit]}{ELLIPSIS} ({len(text) - limit} more characters)"


def _joined(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
