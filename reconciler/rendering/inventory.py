"""The ways into an account as text, Markdown or JSON. The same account gives the same bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import asdict

from reconciler.access.tracing import Explanation, Step
from reconciler.model.access_entry import AccessEntry
from reconciler.rendering import terminal_text
from reconciler.rendering.plan.markdown import code
from reconciler.rendering.text_tools import count

GROUPS = {
    "public": "Reachable from the internet",
    "internal": "Internal",
    "kubernetes": "In Kubernetes clusters",
    "account": "The account",
    "credential": "Who may open ways in",
}


def render_text(entries: Sequence[AccessEntry], width: int) -> str:
    """A block for each entry point: its name, who gets through, and which resources decide. `!` is public."""
    lines: list[str] = []
    for title, group in _group(entries):
        lines += [f"{title}:"]
        for entry in group:
            lines += _wrap(f"{'!' if entry.public and is_place(entry) else ' '} {_title(entry)}", 4, width)
            lines += _wrap(f"    {entry.admits}{_list_doubts(entry)}", 6, width)
            lines += _wrap(f"    {', '.join(entry.resources)}", 6, width) if entry.resources else []
        lines.append("")
    return "".join(f"{line}\n" for line in [*lines, summarize(entries)])


def render_markdown(entries: Sequence[AccessEntry]) -> str:
    """A table for each group, for a file that is committed or a comment."""
    lines = ["# Access", "", summarize(entries), ""]
    for title, group in _group(entries):
        lines += [f"## {title}", "", "| entry point | who gets through | decided by |", "| --- | --- | --- |"]
        for entry in group:
            public = " **public**" if entry.public and is_place(entry) else ""
            who = f"{entry.admits}{_list_doubts(entry)}"
            lines.append(
                f"| {_cell(_title(entry))}{public} | {_cell(who)} | {', '.join(map(_cell, entry.resources))} |"
            )
        lines.append("")
    return "\n".join(lines)


def render_json(entries: Sequence[AccessEntry], incomplete: Mapping[str, str]) -> str:
    """`{"entries": […], "incomplete": {kind: reason}}`, with the fields of `AccessEntry`."""
    document: dict[str, Any] = {"entries": [asdict(entry) for entry in entries], "incomplete": dict(incomplete)}
    return json.dumps(document, indent=2, ensure_ascii=True).replace("##", "#\\u0023") + "\n"


def summarize(entries: Sequence[AccessEntry]) -> str:
    """`12 ways in, 3 of them public, 1 in part unknown.`"""
    places = [entry for entry in entries if is_place(entry)]
    public = sum(entry.public for entry in places)
    unknown = sum(bool(entry.unknown) for entry in places)
    parts = [count(len(places), "way in", "ways in"), f"{public} of them public"]
    return ", ".join([*parts, *([f"{unknown} in part unknown"] if unknown else [])]) + "."


def render_explanation(explanation: Explanation, positions: Mapping[str, str], width: int) -> str:
    """The steps of a request, each with the resources that it comes from and their positions, and how it ends."""
    lines = [line for step in explanation.steps for line in _render_step(step, positions, width)]
    ending = {"pass": "The request passes.", "refuse": "The request is refused."}
    end = ending.get(explanation.outcome, "It is unknown whether the request passes.")
    reasons = [f"  it depends on: {reason}" for reason in explanation.depends_on]
    return "".join(f"{line}\n" for line in [*lines, end, *(part for text in reasons for part in _wrap(text, 4, width))])


def render_explanation_json(explanation: Explanation) -> str:
    """`{"outcome", "steps": [{"text", "resources", "holds"}], "depends_on"}`."""
    return (
        json.dumps(
            {
                "outcome": str(explanation.outcome),
                "steps": [asdict(step) for step in explanation.steps],
                "depends_on": list(explanation.depends_on),
            },
            indent=2,
        ).replace("##", "#\\u0023")
        + "\n"
    )


def _render_step(step: Step, positions: Mapping[str, str], width: int) -> Iterator[str]:
    mark = {True: "+", False: "-", None: " "}[step.holds]
    yield from _wrap(f"{mark} {step.text}", 4, width)
    for name in step.resources:
        position = positions.get(name)
        yield from _wrap(f"    {name}{f'  {position}' if position else ''}", 6, width)


def _group(entries: Sequence[AccessEntry]) -> Iterator[tuple[str, list[AccessEntry]]]:
    for binding, title in GROUPS.items():
        if group := [entry for entry in entries if entry.binding == binding]:
            yield title, group


def is_place(entry: AccessEntry) -> bool:
    """Whether clients connect to it: neither a part of the account, nor a credential."""
    return entry.binding not in ("account", "credential")


def name_entry(entry: AccessEntry) -> str:
    """The entry point without its binding, which the group says."""
    return entry.entry_point.removesuffix(f" ({entry.binding})")


def _title(entry: AccessEntry) -> str:
    labels = ", ".join(list_labels(entry))
    return f"{name_entry(entry)}{f' ({labels})' if labels else ''}"


def list_labels(entry: AccessEntry) -> list[str]:
    """`stack web`, `unmanaged` or `ephemeral`: whose objects alone serve an entry point that is not this stack's."""
    return [*([f"stack {entry.stack}"] if entry.stack else []), *([entry.origin] if entry.origin else [])]


def _list_doubts(entry: AccessEntry) -> str:
    return "".join(f"; unknown: {what}" for what in entry.unknown)


def _wrap(text: str, indent: int, width: int) -> list[str]:
    """Lines of at most `width` cells. The leading blanks of the text stay, and further lines are indented."""
    text = terminal_text.sanitize(text)
    lead = len(text) - len(text.lstrip())
    first, *rest = terminal_text.wrap(text.lstrip(), max(width - max(lead, indent), 20))
    return [" " * lead + first.rstrip(), *(" " * indent + line for line in rest)]


def _cell(text: str) -> str:
    """Text in a cell of a Markdown table, as code: markup has no effect in it."""
    return code(terminal_text.sanitize(text)).replace("|", "\\|")
