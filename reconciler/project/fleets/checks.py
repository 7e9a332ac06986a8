"""Checks a fleet as a whole: selectors, the order of projects, waves, and that no two members use one API key."""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path as Folder
from typing import Final

from reconciler.model.fleet import NAME, TEMPLATE, Fleet, FleetProject, KeyMethod, Member, Selector
from reconciler.model.manifest import Path
from reconciler.model.problem import Finding, Severity, cut
from reconciler.model.suggestions import did_you_mean, with_suggestion
from reconciler.project import discovery, files
from reconciler.project.fleets.waves import assign_waves

_MAX_FINDINGS: Final = 20  # of one kind
_PATH_PART: Final = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9._@-]+")
_KEY_NOUNS: Final = {
    KeyMethod.ENV: "the environment variable",
    KeyMethod.FILE: "the file",
    KeyMethod.VAULT: "the secret in Vault",
}


def check_fleet(fleet: Fleet, folder: Folder) -> Iterator[Finding]:
    """Findings with paths in the fleet file. `folder`: of the fleet file."""
    members = tuple(fleet.members.values())
    if not members:
        yield Finding(("members",), "there are no members", "add a member: {name: shop-1}", code="empty-list")
    if not fleet.projects:
        yield Finding(("projects",), "there are no projects", "add one: {name: shop, path: shop}", code="empty-list")
    yield from _check_projects(fleet, folder)
    yield from _check_keys(fleet, members)
    if members:
        yield from _check_selectors(fleet, members)
        yield from _check_waves(fleet, members)


# --- projects ---------------------------------------------------------------------------------------------------------


def _check_projects(fleet: Fleet, folder: Folder) -> Iterator[Finding]:
    projects = tuple(fleet.projects.values())
    for index, project in enumerate(projects):
        yield from _check_folder(project, folder, ("projects", index, "path"))
        for place, other in enumerate(project.after):
            if other not in fleet.projects:
                remedy = did_you_mean(other, fleet.projects) or "name a project of this file"
                values = with_suggestion("project", other, fleet.projects)
                path = ("projects", index, "after", place)
                yield Finding(path, f"unknown project {other}", remedy, code="unknown-project", values=values)
    yield from _find_cycles(fleet.projects)
    yield from _find_repeated_projects(projects, fleet.members.values())


def _check_folder(project: FleetProject, folder: Folder, path: Path) -> Iterator[Finding]:
    try:
        inside = files.path_inside(project.path)
    except files.Unreadable as wrong:
        remedy = "only folders below that of the fleet file are allowed: move the fleet file up"
        yield Finding(path, str(wrong), remedy, code=wrong.code)
        return
    home, real = os.path.realpath(folder), os.path.realpath(folder / inside)
    if os.path.commonpath((home, real)) != home:
        text = f"{cut(inside)} is a symlink to a place outside the folder of the fleet file"
        yield Finding(path, text, "copy the project", code="path-outside-project")
    elif not (folder / inside / discovery.FILE).is_file():
        where = "in the folder of the fleet file" if inside == "." else f"in {cut(inside)}"
        remedy = "name the folder of a project with path:, relative to the fleet file"
        yield Finding(path, f"there is no {discovery.FILE} {where}", remedy, code="unreadable-file")


def _find_cycles(projects: Mapping[str, FleetProject]) -> Iterator[Finding]:
    done: set[str] = set()
    for index, name in enumerate(projects):
        cycle = _find_cycle(name, projects, done, [])
        if cycle:
            text = f"projects wait for each other: {' → '.join(cycle)}"
            remedy = "remove one of them from `after`"
            yield Finding(("projects", index, "after"), text, remedy, code="circular-projects")


def _find_cycle(name: str, projects: Mapping[str, FleetProject], done: set[str], way: list[str]) -> list[str]:
    """The first cycle that a project leads to; adds the projects that lead to none, or are reported, to `done`."""
    if name in way:
        return [*way[way.index(name) :], name]
    if name in done or name not in projects:
        return []
    for other in projects[name].after:
        if cycle := _find_cycle(other, projects, done, [*way, name]):
            done |= set(cycle)
            return cycle
    done.add(name)
    return []


def _find_repeated_projects(projects: Sequence[FleetProject], members: Iterable[Member]) -> Iterator[Finding]:
    """Finds members that get one stack twice: by two projects with the same folder and environment."""
    members = tuple(members)
    for index, project in enumerate(projects):
        for earlier in projects[:index]:
            if (_normal(earlier.path), earlier.environment) != (_normal(project.path), project.environment):
                continue
            both = [one for one in members if one.matches(project.select) and one.matches(earlier.select)]
            if both:
                text = f"{_count(both)} would get the same project as with {earlier.name}"
                remedy = "remove one of the two, or give them different environments or members"
                yield Finding(("projects", index), text, remedy, code="duplicate-project")


def _normal(path: str) -> str:
    try:
        return files.path_inside(path)
    except files.Unreadable:
        return path


# --- selectors and waves ----------------------------------------------------------------------------------------------


def _check_selectors(fleet: Fleet, members: Sequence[Member]) -> Iterator[Finding]:
    known: dict[str, set[str]] = defaultdict(set)
    for member in members:
        for label, value in member.labels.items():
            known[label].add(value)
    for path, selector in _selectors(fleet):
        findings = list(_check_selector(selector, path, known, members))
        yield from findings
        if not findings and not any(member.matches(selector) for member in members):
            yield _report_unused(path, "no member has all of these labels")


def _check_selector(
    selector: Selector, path: Path, known: Mapping[str, set[str]], members: Sequence[Member]
) -> Iterator[Finding]:
    for label, accepted in selector.items():
        where = (*path, label)
        if not accepted:
            yield _report_unused(where, "the list is empty: no member matches")
        elif label == NAME:
            for glob in accepted:
                if not any(fnmatchcase(member.name, glob) for member in members):
                    yield _report_unmatched(
                        where, f"no member is named {cut(glob)}", glob, [member.name for member in members]
                    )
        elif label not in known:
            yield _report_unmatched(where, f"no member has the label {cut(label)}", label, known, is_key=True)
        else:
            for value in accepted:
                if value not in known[label]:
                    yield _report_unmatched(where, f"no member has {cut(label)}: {cut(value)}", value, known[label])


def _report_unmatched(path: Path, text: str, word: str, known: Iterable[str], *, is_key: bool = False) -> Finding:
    known = sorted(known)
    remedy = did_you_mean(word, known) or (
        f"known: {', '.join(map(cut, known))}" if len(known) <= 10 and known else "correct it, or label members so"
    )
    return Finding(path, text, remedy, Severity.WARNING, code="unmatched-label", is_key=is_key)


def _report_unused(path: Path, text: str) -> Finding:
    remedy = "correct the selector, or remove the entry"
    return Finding(path, text, remedy, Severity.WARNING, code="selects-no-member")


def _selectors(fleet: Fleet) -> Iterator[tuple[Path, Selector]]:
    """The selectors of the file with their paths, without empty ones."""
    sections = {
        "projects": [project.select for project in fleet.projects.values()],
        "waves": [wave.select for wave in fleet.waves],
        "workers": [rule.select for rule in fleet.workers],
    }
    for section, selectors in sections.items():
        for index, selector in enumerate(selectors):
            if selector:
                yield (section, index, "select"), selector


def _check_waves(fleet: Fleet, members: Sequence[Member]) -> Iterator[Finding]:
    """Warns of waves whose members are all in earlier waves. The last wave may be empty."""
    counts = Counter(assign_waves(fleet, members).values())
    for index, wave in enumerate(fleet.waves[:-1]):
        if not counts[index] and any(member.matches(wave.select) for member in members):
            yield _report_unused(("waves", index), f"all members that {wave.name} selects are in earlier waves")


# --- keys -------------------------------------------------------------------------------------------------------------


def _check_keys(fleet: Fleet, members: Sequence[Member]) -> Iterator[Finding]:
    source = fleet.api_key
    path = ("api_key", source.method.value)
    labels = {found[2] for found in TEMPLATE.finditer(source.text) if found[2]}
    for label in sorted(labels):
        if missing := [member for member in members if label not in member.labels]:
            text = f"{_count(missing)} {'has' if len(missing) == 1 else 'have'} no label {label}"
            yield Finding(path, text, f"set labels.{label} of each member", code="missing-label")
        unsafe = [one for one in members if label in one.labels and not _PATH_PART.fullmatch(one.labels[label])]
        if unsafe and source.method is not KeyMethod.ENV:
            text = f"the label {label} of {_count(unsafe)} cannot be part of a path"
            yield Finding(path, text, "use letters, digits, '.', '_', '@' and '-' only", code="invalid-value")
    if not any(label not in member.labels for label in labels for member in members):
        yield from _find_shared_keys(fleet, members, path)


def _find_shared_keys(fleet: Fleet, members: Sequence[Member], path: Path) -> Iterator[Finding]:
    """Finds members with the same key and a common project: each would change the objects of the other."""
    by_place: dict[str, list[Member]] = defaultdict(list)
    for member in members:
        by_place[fleet.api_key.locate(member)].append(member)
    shared = [(place, group) for place, group in by_place.items() if len(group) > 1]
    found = 0
    for place, group in shared:
        for project in fleet.projects.values():
            both = [member for member in group if member.matches(project.select)]
            if len(both) > 1:
                found += 1
                if found <= _MAX_FINDINGS:
                    yield _report_shared_key(fleet, place, both, project, path)
                break


def _report_shared_key(fleet: Fleet, place: str, both: Sequence[Member], project: FleetProject, path: Path) -> Finding:
    source = fleet.api_key
    text = (
        f"{_count(both)} would use the same API key for the project {project.name}: "
        f"{_KEY_NOUNS[source.method]} {cut(place)}"
    )
    remedy = "use ${{ member.name }}, so that each member has a key of its own"
    if any(found[1] == "name" for found in TEMPLATE.finditer(source.text)):
        remedy = "rename one of them: in the name of a variable, '-', '.' and '_' are equal"
    return Finding(path, text, remedy, code="shared-api-key", values={"members": [one.name for one in both]})


def _count(members: Sequence[Member]) -> str:
    """The members in words: their number, and up to three of them."""
    if len(members) == 1:
        return f"member {members[0].name}"
    names = ", ".join(member.name for member in members[:3])
    return f"{len(members)} members ({names}{', …' if len(members) > 3 else ''})"
