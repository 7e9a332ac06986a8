"""Reads `approvals.yaml`: the approvals that a project records in Git."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any, Final

from reconciler.languages.yaml.positions import Places
from reconciler.model.approved import ApprovedItem
from reconciler.model.change import Risk
from reconciler.model.problem import Position, Problem, Rejected
from reconciler.model.rule_change import RuleRisk
from reconciler.project import files
from reconciler.project.documents import phrases
from reconciler.project.settings.one_document import MAX_BYTES, read_map

FILE: Final = "approvals.yaml"
RULES: Final = (
    *("delete", "delete-protected", "create", "adopt", "overwrite", "update"),
    *(risk for risk in Risk),
    *(risk for risk in RuleRisk),
)
_OTHERS: Final = ("id", "until", "digest", "env")
_EXAMPLE: Final = (
    "write an entry as `plan --fail-on approvals` prints it: `- {delete: Kind/name, id: …, until: …, digest: …}`"
)
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def read_approvals(root: Path, environment: str | None) -> tuple[ApprovedItem, ...]:
    """The entries for an environment, or for the project without one. None if there is no file. Raises Rejected."""
    if not (root / FILE).exists():
        return ()
    try:
        text = files.read(root, FILE, MAX_BYTES)
    except files.Unreadable as wrong:
        raise Rejected([Problem(str(wrong), wrong.remedy, position=Position(FILE, 1, 1), code=wrong.code)]) from None
    document = read_map(text, FILE, f"write `approvals:` and below it a list; {_EXAMPLE}")
    if document is None:
        return ()
    written, places = document.value, document.places
    assert isinstance(written, dict)
    problems = [
        _problem(places, (key,), f"unknown key {key!r}", "the file has one key, `approvals`")
        for key in written
        if key != "approvals"
    ]
    entries = written.get("approvals")
    if not isinstance(entries, list | None):
        problems.append(_problem(places, ("approvals",), f"expected a list, found {phrases.describe_found(entries)}"))
        entries = []
    items = [
        _read_entry(entry, ("approvals", index), places, problems)
        for index, entry in enumerate(entries or [])
        if not isinstance(entry, dict) or _may_apply(entry.get("env"), environment)
    ]
    if problems:
        raise Rejected(problems)
    return tuple(item for item in items if item is not None)


def _may_apply(environments: Any, environment: str | None) -> bool:
    """Whether an entry is read: it is for this environment, or what it says of environments is invalid."""
    if isinstance(environments, str | None):
        return environments == environment
    return not _is_list_of_names(environments) or environment in environments


def _is_list_of_names(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(name, str) and name for name in value)


def _read_entry(
    entry: Any, path: tuple[str | int, ...], places: Places, problems: list[Problem]
) -> ApprovedItem | None:
    if not isinstance(entry, Mapping):
        problems.append(_problem(places, path, f"expected a map, found {phrases.describe_found(entry)}"))
        return None
    rules = [key for key in entry if key not in _OTHERS]
    if len(rules) != 1 or rules[0] not in RULES:
        text = f"expected one rule, found {', '.join(map(str, rules)) or 'none'}"
        problems.append(_problem(places, path, text, f"the rules are {', '.join(RULES)}"))
        return None
    (rule,) = rules
    if not _is_list_of_names(entry.get("env")) and not isinstance(entry.get("env", ""), str):
        remedy = "write one environment, or a list of them: `env: [staging, prod]`"
        problems.append(_problem(places, (*path, "env"), "env must name an environment", remedy))
        return None
    values = {key: entry.get(key, "") for key in (rule, "id", "until", "digest")}
    for key, value in values.items():
        if not isinstance(value, str) or (not value and key != "id"):
            problems.append(_problem(places, (*path, key), f"{key} must be a text", f"quote it; {_EXAMPLE}"))
            return None
    if not _is_day(values["until"]):
        text = f"{values['until']!r} is not a date"
        problems.append(_problem(places, (*path, "until"), text, "write it like 2026-12-31"))
        return None
    return ApprovedItem(
        rule, values[rule], values["id"], values["digest"], values["until"], places.nearest((*path, rule))
    )


def _is_day(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return _DAY.fullmatch(text) is not None


def _problem(places: Places, path: tuple[str | int, ...], text: str, remedy: str = _EXAMPLE) -> Problem:
    return Problem(text, remedy, "", places.nearest(path), code="invalid-approval")
