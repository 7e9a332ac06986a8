"""Loads a fleet: finds the fleet file, reads it and its members, and reports every problem with its position."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Final

from msgspec.structs import replace

from reconciler.languages.yaml.errors import MAX_BYTES
from reconciler.languages.yaml.positions import Places
from reconciler.model.fields.field import fields_of
from reconciler.model.fleet import (
    Fleet,
    FleetGuards,
    FleetProject,
    KeyMethod,
    KeySource,
    Member,
    Selector,
    Wave,
    WorkerRule,
)
from reconciler.model.problem import Finding, Position, Problem, Rejected, Severity
from reconciler.model.value import Json
from reconciler.project import discovery, files
from reconciler.project.documents import durations, phrases, validation
from reconciler.project.fleets import checks, members
from reconciler.project.fleets.fleet_file import ApiKey, FleetFile, Select, WaveEntry, parse_amount
from reconciler.project.settings.one_document import read_map, report_not_a_map

FILE: Final = "fleet.yaml"
REST: Final = "rest"
"""The name of the last wave, if the file has none that takes all members that are left."""

_MOST: Final = 100  # projects, waves, or rules for workers
_EMPTY: Final = "begin with version: 1"
_NEVER: Final = "write where the worker finds the key, as in {from_env: 'KEY_${{ member.name }}'}"


def find_fleet_file(start: Path, file: str = FILE) -> Path:
    """The nearest fleet file, from `start` upwards, within the Git repository. Raises Rejected if there is none."""
    try:
        folder = discovery.find_folder(start, file, "--file")
    except files.Unreadable as wrong:
        raise Rejected([Problem(str(wrong), wrong.remedy, code=wrong.code)]) from None
    if folder is None:
        text = f"there is no {file} here, nor in a folder above in this repository"
        raise Rejected([Problem(text, "create one, or name it with --file", code="unreadable-file")])
    return start / folder / file


def load_fleet(folder: Path, file: str = FILE) -> Fleet:
    """Loads a fleet file. Raises Rejected with every problem; warnings are in the fleet.

    file  relative to `folder`; what it names is relative to its own folder
    """
    try:
        text = files.read(folder, files.path_inside(file), MAX_BYTES)
    except files.Unreadable as wrong:
        raise Rejected([Problem(str(wrong), wrong.remedy, code=wrong.code)]) from None
    document = read_map(text, file, _EMPTY)
    if document is None:
        raise Rejected([report_not_a_map(None, file, _EMPTY)])
    written, places = document.value, document.places
    form, findings = _read_form(written)
    found, problems = _read_members(written, folder, file, places)
    fleet = None
    if form is not None:
        fleet = _build(form, found)
        if not any(problem.is_error for problem in problems):
            findings += checks.check_fleet(fleet, folder / PurePosixPath(file).parent)
    problems += [validation.to_problem(finding, places) for finding in findings]
    problems.sort(key=lambda problem: (problem.position or Position("", 0, 0), problem.text))
    if fleet is None or any(problem.is_error for problem in problems):
        raise Rejected(problems)
    return replace(fleet, warnings=tuple(problems))


def _read_members(
    written: Mapping[str, Json], folder: Path, file: str, places: Places
) -> tuple[dict[str, Member], list[Problem]]:
    entries = written.get("members")
    if "members" not in written:
        return {}, []
    if not isinstance(entries, str):
        return members.build_members(members.read_inline(entries, places))
    where = places.nearest(("members",))
    try:
        inside = files.path_inside(entries)
    except files.Unreadable as wrong:
        return {}, [Problem(str(wrong), members.PATH_RULE, "members", where, code=wrong.code)]
    path = str(PurePosixPath(file).parent / inside)
    return members.build_members(members.read_member_file(folder, path, where))


def _read_form(written: Mapping[str, Json]) -> tuple[FleetFile | None, list[Finding]]:
    """The file without its members, which are read elsewhere."""
    findings: list[Finding] = []
    values: dict[str, Any] = dict(written)
    if "members" in values:
        values["members"] = []
    if isinstance(values.get("api_key"), str):
        text = "a fleet file never contains an API key"
        findings.append(Finding(("api_key",), text, _NEVER, code="literal-secret"))
        values["api_key"] = {"from_env": "KEY"}
    form = FleetFile.model_try({"projects": [{"name": "main"}], **values})
    if not isinstance(form, FleetFile):
        return None, [*findings, *validation.problems_of(form, values, fields_of(FleetFile))]
    findings += _check_form(form)
    return (None if findings else form), findings


def _check_form(form: FleetFile) -> Iterator[Finding]:
    yield from _check_source(form.api_key)
    for section in ("projects", "waves", "workers"):
        if len(getattr(form, section)) > _MOST:
            text = f"more than {_MOST} {section}"
            yield Finding((section, _MOST), text, "remove some, or split the fleet", code="limit-exceeded")
    yield from _find_duplicate_names("projects", [project.name for project in form.projects])
    yield from _find_duplicate_names("waves", [wave.name for wave in form.waves])
    if form.waves and not _takes_all(form.waves[-1]):
        for index, wave in enumerate(form.waves):
            if wave.name == REST:
                text = f"{REST} is the name of the wave that takes the members that are left"
                yield Finding(("waves", index, "name"), text, "use another name", code="invalid-name")
    for index, wave in enumerate(form.waves[:-1]):
        if _takes_all(wave):
            text = f"{wave.name} takes all members, and leaves none for later waves"
            remedy = "set select or percent, or make it the last wave"
            yield Finding(("waves", index), text, remedy, Severity.ERROR, code="invalid-value")


def _check_source(written: ApiKey) -> Iterator[Finding]:
    given = [name for name in ApiKey.model_fields if getattr(written, name) is not None]
    if not given:
        yield Finding(("api_key",), "does not say where the key is found", _NEVER, code="missing-field")
    elif len(given) > 1:
        text = f"{phrases.join_words(given, 'and')} exclude each other"
        yield Finding(("api_key",), text, "keep one of them", code="conflicting-fields")


def _find_duplicate_names(section: str, names: list[str]) -> Iterator[Finding]:
    for index, name in enumerate(names):
        if name in names[:index]:
            text = f"duplicate name {name}"
            yield Finding((section, index, "name"), text, "rename one of the two", code="duplicate-name")


# --- the fleet --------------------------------------------------------------------------------------------------------


def _build(form: FleetFile, found: Mapping[str, Member]) -> Fleet:
    guards = form.guards
    return Fleet(
        form.fleet,
        found,
        {
            project.name: FleetProject(
                project.name, project.path, tuple(project.after), _selector(project.select), project.environment
            )
            for project in form.projects
        },
        _source(form.api_key),
        _waves(form),
        FleetGuards(None if guards.max_changed is None else parse_amount(guards.max_changed), guards.max_deletes),
        tuple(WorkerRule(_selector(rule.select), rule.needs) for rule in form.workers),
        form.limits.members_at_once,
        float(durations.to_seconds(form.limits.start_spread)),
        form.store,
    )


def _source(written: ApiKey) -> KeySource:
    if written.from_vault is not None:
        vault = written.from_vault
        return KeySource(KeyMethod.VAULT, vault.path, vault.mount, vault.field)
    if written.from_file is not None:
        return KeySource(KeyMethod.FILE, written.from_file)
    return KeySource(KeyMethod.ENV, written.from_env or "")


def _waves(form: FleetFile) -> tuple[Wave, ...]:
    if not form.waves:
        return (Wave("all"),)
    waves = tuple(map(_wave, form.waves))
    return waves if _takes_all(form.waves[-1]) else (*waves, Wave(REST))


def _wave(written: WaveEntry) -> Wave:
    deadline = written.progress_deadline
    return Wave(
        written.name,
        _selector(written.select),
        written.percent,
        parse_amount(written.max_failures),
        float(durations.to_seconds(written.min_success_time)) if written.min_success_time else 0.0,
        float(durations.to_seconds(deadline)) if deadline else None,
        written.approve,
    )


def _takes_all(wave: WaveEntry) -> bool:
    return not wave.select and wave.percent in (None, 100)


def _selector(written: Select) -> Selector:
    return {label: (value,) if isinstance(value, str) else tuple(value) for label, value in written.items()}
