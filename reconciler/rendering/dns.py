"""DNS records that an account needs, as files for the owners of zones, and what name servers say about them.

A file of a zone contains no directive and only complete names, so that no text of the platform means anything in it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from reconciler.model.dns import DNSFinding, DNSRecords, Zone
from reconciler.model.health import Actor, Record, State
from reconciler.rendering import terminal_text
from reconciler.rendering.health_text import SIGNS
from reconciler.rendering.text_tools import count

TTL: Final = 300  # seconds
SUFFIXES: Final[Mapping[str, str]] = {"text": "txt", "json": "json", "bind": "zone", "octodns": "yaml"}
"""The formats of `reconciler dns`, with the suffixes of their files."""

_ROW_KEYS: Final = frozenset({"name", "type", "value", "ttl", "needed_by", "purpose"})


class _Row(Struct, frozen=True):
    """One record, with all resources that need it."""

    owner: str
    type: str
    value: str
    needed_by: tuple[str, ...]
    purposes: tuple[str, ...]


def render_file(zone: Zone, form: str) -> str:
    """The file of one zone: the same as `render_zone`, by which `wrote_file` recognizes it."""
    return f"{_head(zone.name, '#')}\n{render_zone(zone, form)}" if form == "text" else render_zone(zone, form)


def wrote_file(content: str, zone: str, form: str) -> bool:
    """Whether the content of a file comes from `render_file`, for a zone of this name, in this or an earlier run."""
    if form == "json":
        return _is_zone_json(content, zone)
    return content.startswith(f"{_head(zone, ';' if form == 'bind' else '#')}\n")


def _is_zone_json(content: str, zone: str) -> bool:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return False
    if not isinstance(found, dict) or found.keys() != {"zone", "records"} or found["zone"] != zone:
        return False
    rows = found["records"]
    return isinstance(rows, list) and all(isinstance(row, dict) and row.keys() == _ROW_KEYS for row in rows)


def file_name(zone: Zone, form: str) -> str:
    """`example.com.yaml`, the name by which octoDNS finds the file of a zone."""
    return f"{zone.name}.{SUFFIXES[form]}"


def render_zone(zone: Zone, form: str) -> str:
    """The file of one zone in a format. The same records always give the same bytes."""
    rows = _merge(zone.records)
    match form:
        case "bind":
            return _join([_head(zone.name, ";"), *map(_bind_line, rows)])
        case "octodns":
            return _join([_head(zone.name, "#"), "---", *_octodns_lines(zone, rows)])
        case "json":
            return _to_json(_zone_json(zone))
    return _join(_text_table(zone.name, rows)) if rows else f"{zone.name}\n  no records\n"


def render_records(records: DNSRecords, form: str) -> str:
    """All zones in one text. Text and JSON also have the records that are in no zone."""
    if form == "json":
        return _to_json(
            {
                "zones": [_zone_json(zone) for zone in records.zones],
                "unzoned": [_row_json(row) for row in _merge(records.unzoned)],
                "misplaced": [
                    {**_row_json(row), "why": item.why, "remedy": item.remedy}
                    for item in records.misplaced
                    for row in _merge([item.record])
                ],
            }
        )
    parts = [render_zone(zone, form) for zone in records.zones]
    if form == "text":
        if records.unzoned:
            parts.append(_join(_text_table("In no zone of reconciler.yaml:", _merge(records.unzoned))))
        if records.misplaced:
            parts.append(_join(["Cannot be set:", *(f"  {line}" for line in list_misplaced(records))]))
    return "\n".join(parts)


def list_misplaced(records: DNSRecords) -> Iterator[str]:
    """A sentence for each record that no zone can contain."""
    for item in records.misplaced:
        yield terminal_text.sanitize(f"{item.record.needed_by}: {item.why}; {item.remedy}")


def list_unzoned(records: DNSRecords) -> Iterator[str]:
    """A line for each record in no zone of the project."""
    for row in _merge(records.unzoned):
        yield terminal_text.sanitize(f"{row.owner} {row.type} {row.value} ({', '.join(row.needed_by)})")


def _merge(records: Iterable[Record]) -> list[_Row]:
    """One row for each record, also if several resources need it."""
    groups: dict[tuple[str, str, str], list[Record]] = {}
    for record in records:
        groups.setdefault((record.owner, record.type, record.value), []).append(record)
    return [
        _Row(
            *key,
            tuple(sorted({record.needed_by for record in group})),
            tuple(sorted({record.purpose for record in group})),
        )
        for key, group in groups.items()
    ]


def _join(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _to_json(value: Any) -> str:
    text = json.dumps(value, indent=2)  # escapes what is unsafe
    return text.replace("##", "#\\u0023") + "\n"  # the runner of a pipeline would execute `##[…]`


def _head(zone: str, sign: str) -> str:
    return f"{sign} The records of {zone} that the tunnel platform needs. Written by `reconciler dns`; do not edit."


def _comment(row: _Row) -> str:
    """The resources that need a record, on one line of printable ASCII."""
    text = terminal_text.sanitize(f"{', '.join(row.needed_by)} ({', '.join(row.purposes)})")
    return text.encode("ascii", "backslashreplace").decode("ascii")


def _bind_line(row: _Row) -> str:
    return f"{row.owner}. {TTL} IN {row.type} {row.value}. ; {_comment(row)}"


# --- octoDNS ----------------------------------------------------------------------------------------------------------


def _octodns_lines(zone: Zone, rows: Sequence[_Row]) -> Iterator[str]:
    """The records below their name in the zone, which octoDNS requires in natural order."""
    groups: dict[tuple[str, str], list[_Row]] = {}
    for row in rows:
        groups.setdefault((row.owner.removesuffix(zone.name).removesuffix("."), row.type), []).append(row)
    if not groups:
        yield "{}"
    for name, type in sorted(groups, key=lambda key: _natural(key[0])):
        group = groups[name, type]
        yield f"'{name}':"
        yield from (f"  # {line}" for line in dict.fromkeys(map(_comment, group)))
        yield f"  ttl: {TTL}"
        yield f"  type: {type}"
        if type == "CNAME":
            yield f"  value: '{group[0].value}.'"
        else:
            yield "  values:"
            yield from (f"    - '{row.value}.'" for row in group)


def _natural(text: str) -> list[Any]:
    """Sorts numbers within names by their value."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", text)]


# --- JSON and text ----------------------------------------------------------------------------------------------------


def _zone_json(zone: Zone) -> dict[str, Any]:
    return {"zone": zone.name, "records": [_row_json(row) for row in _merge(zone.records)]}


def _row_json(row: _Row) -> dict[str, Any]:
    return {
        "name": row.owner,
        "type": row.type,
        "value": row.value,
        "ttl": TTL,
        "needed_by": list(row.needed_by),
        "purpose": ", ".join(row.purposes),
    }


def _text_table(title: str, rows: Sequence[_Row]) -> Iterator[str]:
    yield title
    cells = [(row.owner, row.type, row.value, _comment(row)) for row in rows]
    widths = [max(len(cell[column]) for cell in cells) for column in range(4)]
    for cell in cells:
        padded = (text.ljust(width) for text, width in zip(cell, widths, strict=True))
        yield f"  {'  '.join(padded)}".rstrip()


# --- what name servers say --------------------------------------------------------------------------------------------


def render_findings(findings: Sequence[DNSFinding], records: DNSRecords, unread: Mapping[str, str]) -> str:
    """What is wrong or unknown, with what to do and who has to, and how many records are set.

    unread  the kinds whose list is incomplete, with the reason
    """
    lines = [_describe_sums(findings, records, is_complete=not unread)]
    for finding in findings:
        if finding.health.state is State.HEALTHY:
            continue
        need, health = finding.need, finding.health
        lines += ["", f"{SIGNS[health.state]} {', '.join(need.needed_by)}", f"    {health.reason}"]
        if health.advice:
            who = f"{health.actor}: " if health.actor is Actor.ZONE_OWNER else ""
            lines.append(f"    {who}{health.advice}")
    for item in records.misplaced:
        lines += ["", f"! {item.record.needed_by}", f"    {item.why}", f"    {item.remedy}"]
    for name, why in unread.items():
        lines += [
            "",
            f"{SIGNS[State.UNKNOWN]} {name}",
            f"    its list is incomplete, so that more records may be needed: {why}",
        ]
    return _join(map(terminal_text.sanitize, lines))


def _describe_sums(findings: Sequence[DNSFinding], records: DNSRecords, *, is_complete: bool) -> str:
    states = [finding.health.state for finding in findings]
    numbers = {
        "set": states.count(State.HEALTHY),
        "waiting for the platform": states.count(State.PROGRESSING),
        "wrong": states.count(State.DEGRADED) + len(records.misplaced),
        "unknown": states.count(State.UNKNOWN),
    }
    parts = [f"{number} {word}" for word, number in numbers.items() if number]
    if not is_complete:
        return f"DNS, as far as the account could be read: {', '.join(parts) or 'no record'}."
    return f"DNS: {', '.join(parts)}." if parts else f"DNS: {count(0, 'record')} needed."


def render_findings_json(findings: Sequence[DNSFinding], records: DNSRecords, unread: Mapping[str, str]) -> str:
    """One JSON object: what each name needs and what DNS says about it. `unread`: as of `render_findings`."""
    return _to_json(
        {
            "findings": [
                {
                    "name": finding.need.owner,
                    "type": finding.need.type,
                    "values": list(finding.need.values),
                    "needed_by": list(finding.need.needed_by),
                    "state": finding.health.state,
                    "reason": finding.health.reason,
                    "advice": finding.health.advice,
                    "actor": finding.health.actor,
                    "retries_at": finding.health.retries_at,
                }
                for finding in findings
            ],
            "misplaced": [
                {**_row_json(row), "why": item.why, "remedy": item.remedy}
                for item in records.misplaced
                for row in _merge([item.record])
            ],
            "unread": [{"kind": name, "why": why} for name, why in unread.items()],
        }
    )
