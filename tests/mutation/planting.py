"""The bugs of planted.toml, as mutants."""

from __future__ import annotations

import tomllib
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import NamedTuple

from cosmic_ray.work_item import MutationSpec, WorkItem

PREFIX = "planted/"
"""Of the name of the operator, before the name of the bug."""
PLANTED = Path(__file__).with_name("planted.toml")


class Bug(NamedTuple):
    """An entry of planted.toml: `old`, which stands once in the file, becomes `new`."""

    name: str  # what a user would say
    file: str
    old: str
    new: str


@cache
def load_bugs(file: Path = PLANTED) -> dict[str, Bug]:
    entries = tomllib.loads(file.read_text())["bug"]
    return {entry["name"]: Bug(**entry) for entry in entries}


def plant(source: str, operator: str, file: Path = PLANTED) -> str | None:
    """The source with the bug of that operator; None if the text that it replaces is gone."""
    bug = load_bugs(file)[operator.removeprefix(PREFIX)]
    return source.replace(bug.old, bug.new) if source.count(bug.old) == 1 else None


def find_planted(root: Path, file: Path = PLANTED) -> tuple[dict[str, list[WorkItem]], list[Bug]]:
    """The bugs by package, and those whose text is gone."""
    found: dict[str, list[WorkItem]] = defaultdict(list)
    gone = []
    for number, bug in enumerate(load_bugs(file).values()):
        path = root / bug.file
        source = path.read_text() if path.is_file() else ""
        if source.count(bug.old) != 1:
            gone.append(bug)
            continue
        place = _find_change(source, bug)
        mutant = MutationSpec(
            module_path=Path(bug.file),
            operator_name=PREFIX + bug.name,
            occurrence=number,
            start_pos=place,
            end_pos=(place[0], place[1] + 1),
        )
        package = "/".join(bug.file.split("/")[:2])
        found[package].append(WorkItem.single(f"planted {bug.name}", mutant))
    return dict(found), gone


def _find_change(source: str, bug: Bug) -> tuple[int, int]:
    """The line and column of the first line that differs."""
    before = source.partition(bug.old)[0].count("\n") + 1
    old, new = bug.old.splitlines(), bug.new.splitlines()
    same = next((place for place, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1]), len(new))
    line = before + min(same, len(old) - 1)
    text = source.splitlines()[line - 1]
    return line, len(text) - len(text.lstrip())
