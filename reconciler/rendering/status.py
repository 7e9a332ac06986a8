"""The state of a stack as text, Markdown or JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import asdict

from reconciler.model.health import Actor, HealthRow, State
from reconciler.model.json_text import write_json
from reconciler.model.status import StackStatus
from reconciler.rendering import terminal_text
from reconciler.rendering.health_text import SIGNS, name_object
from reconciler.rendering.plan.markdown import code
from reconciler.rendering.text_tools import count, format_duration, format_time

_ILL: Final = (State.DEGRADED, State.PROGRESSING, State.UNKNOWN)
PERSONS: Final = (Actor.YOU, Actor.ZONE_OWNER)
_NAMED: Final = 10  # resources that differ


def list_sections(status: StackStatus) -> Iterator[tuple[str, tuple[HealthRow, ...]]]:
    """What is not healthy: what needs a person first, then what progresses by itself, then what is unknown."""
    ill = [row for state in _ILL for row in status.list_in(state)]
    needing = tuple(row for row in ill if row.health.actor in PERSONS and row.health.state is not State.UNKNOWN)
    degraded = tuple(row for row in status.list_in(State.DEGRADED) if row not in needing)
    progressing = tuple(row for row in status.list_in(State.PROGRESSING) if row not in needing)
    sections = {
        "Needs a person": needing,
        "Degraded": degraded,
        "Progressing": progressing,
        "Unknown": status.list_in(State.UNKNOWN),
    }
    yield from ((title, rows) for title, rows in sections.items() if rows)


def describe_sync(status: StackStatus) -> str:
    """`drift: 2 resources changed on the platform (read now)`"""
    sync = status.sync
    if sync.at is None:
        return f"unknown: {sync.why}, and no drift check is recorded"
    counts = []
    if sync.drifted:
        counts.append(f"{count(len(sync.drifted), 'resource')} changed on the platform")
    if sync.pending:
        is_one = len(sync.pending) == 1
        counts.append(
            f"{count(len(sync.pending), 'resource')} changed in Git and {'is' if is_one else 'are'} not applied yet"
        )
    state = "no drift" if sync.pending and not sync.drifted else str(sync.state)
    text = f"{state}: {', '.join(counts)}" if counts else state
    if sync.is_now:
        return f"{text} (read now{f', not completely: {sync.why}' if sync.why else ''})"
    age = format_duration(max(0.0, status.at - sync.at))
    return f"{text} (last known from the drift check of {format_time(sync.at)}, {age} ago: now {sync.why})"


def describe_health(status: StackStatus) -> str:
    """`1 degraded, 2 progressing, 30 healthy`"""
    numbers = {state: len(status.list_in(state)) for state in (*_ILL, State.HEALTHY)}
    parts = [f"{number} {state}" for state, number in numbers.items() if number]
    verified = ", checked with name servers" if status.is_verified else ""
    return (", ".join(parts) or "no resource has health") + verified


def describe_actor(row: HealthRow) -> str:
    """Who acts and what to do: `zone owner: set shop.example.com CNAME …`"""
    actor, advice = row.health.actor, row.health.advice
    if actor and not advice:
        return "you act" if actor is Actor.YOU else f"the {actor} acts"
    return ": ".join(filter(None, (actor, advice)))


# --- text -------------------------------------------------------------------------------------------------------------


def render_text(status: StackStatus, width: int) -> str:
    """One screen: sync, health, what is not healthy with its reason and who acts, and the next dates."""
    lines: list[str] = []

    def add(text: str, indent: int) -> None:
        lines.extend(_wrap(text, indent, width))

    environment = f", environment {status.environment}" if status.environment else ""
    add(f"Stack {status.stack}{environment}: {status.account}, {format_time(status.at)}", 2)
    add(f"Sync: {describe_sync(status)}", 2)
    for title, names in (("changed on the platform", status.sync.drifted), ("not applied yet", status.sync.pending)):
        if names:
            add(f"  {title}: {_shorten(names)}", 4)
    add(f"Health: {describe_health(status)}", 2)
    for title, rows in list_sections(status):
        lines += ["", f"{title}:"]
        for row in rows:
            add(f"{SIGNS[row.health.state]} {name_object(row)}: {row.health.reason or row.health.state}", 4)
            if what := describe_actor(row):
                add(f"    {what}", 6)
    if status.dates:
        lines += ["", f"In the next {count(status.days, 'day')}:"]
        for due in status.dates:
            add(f"  {format_time(due.at)}  {due.subject} {due.event}", 4)
    return "".join(f"{line}\n" for line in lines)


def _shorten(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + _say_more(names)


def _wrap(text: str, indent: int, width: int) -> Iterator[str]:
    """The text in lines of at most `width` cells; all but the first are indented."""
    text = terminal_text.sanitize(text)
    start = len(text) - len(text.lstrip(" "))
    first, *rest = terminal_text.wrap(text.lstrip(" "), max(20, width - indent))
    yield f"{' ' * start}{first.rstrip()}"
    yield from (f"{' ' * indent}{line}" for line in rest)


# --- Markdown ---------------------------------------------------------------------------------------------------------


def render_markdown(status: StackStatus) -> str:
    """The same for a comment or a page of a wiki."""
    environment = f", environment {cell(status.environment)}" if status.environment else ""
    lines = [
        f"# Status of {cell(status.stack)}{environment}",
        "",
        f"- Read: {format_time(status.at)}, {cell(status.account)}",
        f"- Sync: {cell(describe_sync(status))}",
        f"- Health: {describe_health(status)}",
    ]
    for title, names in (("Changed on the platform", status.sync.drifted), ("Unapplied", status.sync.pending)):
        if names:
            lines.append(f"- {title}: {', '.join(map(cell, names[:_NAMED]))}{_say_more(names)}")
    for title, rows in list_sections(status):
        lines += ["", f"## {title}", "", "| resource | state | reason | what to do |", "| --- | --- | --- | --- |"]
        for row in rows:
            cells = (cell(name_object(row)), str(row.health.state), cell(row.health.reason), cell(describe_actor(row)))
            lines.append(f"| {' | '.join(cells)} |")
    if status.dates:
        lines += ["", f"## In the next {count(status.days, 'day')}", "", "| when | what |", "| --- | --- |"]
        lines += [f"| {format_time(due.at)} | {cell(due.subject)} {due.event} |" for due in status.dates]
    return "".join(f"{line}\n" for line in lines)


def cell(text: str) -> str:
    """Text as code, in which markup has no effect; also in a table."""
    return code(terminal_text.sanitize(text)).replace("|", "\\|")


def _say_more(names: Sequence[str]) -> str:
    return f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""


# --- JSON -------------------------------------------------------------------------------------------------------------


def render_json(status: StackStatus) -> str:
    """One JSON object, documented in docs/outputs.md."""
    document: dict[str, Any] = {
        "stack": status.stack,
        "environment": status.environment,
        "account": status.account,
        "at": status.at,
        "sync": asdict(status.sync),
        "health": [_row_json(row) for row in status.health],
        "counts": {str(state): len(status.list_in(state)) for state in State},
        "dates": [asdict(due) for due in status.dates],
        "verified": status.is_verified,
        "exit_code": status.exit_code,
    }
    return write_json(document).replace("##", "#\\u0023") + "\n"


def _row_json(row: HealthRow) -> Mapping[str, Any]:
    return {"address": row.address, "id": row.id, **asdict(row.health)}
