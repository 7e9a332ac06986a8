"""Validates a fleet: its file, its projects and the variables of every member. Needs no network and no secrets.

A project is loaded once for each set of variables that members set, not once for each member. The values of all
members are checked by the types that the projects declare.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path, PurePosixPath

from msgspec import Struct
from msgspec.structs import replace

from reconciler.model.fleet import Fleet, FleetProject, Member
from reconciler.model.problem import Position, Problem, Rejected
from reconciler.model.suggestions import did_you_mean
from reconciler.operations.opening.source import ProjectSource
from reconciler.operations.results import ValidationResult
from reconciler.operations.runtime import Runtime
from reconciler.operations.validate import make_placeholder, validate_environment
from reconciler.project.fleets.load import FILE, load_fleet
from reconciler.project.settings import variables
from reconciler.project.settings.config import Config, load_config
from reconciler.project.settings.variables import NO_VALUE, Setting
from reconciler.rendering.text_tools import count

_NAMED = 3  # members that a message names
_Settings = Mapping[str, Setting]


class ProjectValidation(Struct, frozen=True):
    """The result of one project for the members that set the same variables.

    example  the member whose values were used
    members  number of the members
    """

    project: FleetProject
    example: str
    members: int
    result: ValidationResult


class FleetValidation(Struct, frozen=True):
    """The problems of a fleet.

    fleet     None if its file has errors; then no project was validated
    problems  of the fleet file and its members, and of the projects, with paths relative to the fleet file's folder
    """

    fleet: Fleet | None
    problems: tuple[Problem, ...]
    projects: tuple[ProjectValidation, ...] = ()

    @property
    def is_valid(self) -> bool:
        return not any(problem.is_error for problem in self.problems)


def validate_fleet(folder: Path, file: str = FILE, runtime: Runtime | None = None) -> FleetValidation:
    """Validates the fleet file with its members, and its projects."""
    try:
        fleet = load_fleet(folder, file)
    except Rejected as rejected:
        return FleetValidation(None, rejected.problems)
    root, below = folder / PurePosixPath(file).parent, str(PurePosixPath(file).parent)
    runtime = _without_choice(runtime or Runtime())
    settings = _read_settings(fleet, root, runtime)
    validated: list[ProjectValidation] = []
    problems = [*fleet.warnings, *_find_unknown_variables(fleet, settings)]
    for project in fleet.projects.values():
        members, found = _members_of(fleet, project), settings[project.name]
        if isinstance(found, Rejected):
            result = ValidationResult(project.environment, found.problems)
            validated.append(ProjectValidation(project, "", len(members), result))
        elif wrong := list(_check_values(project, found.settings, members)):
            problems += wrong
        else:
            source = ProjectSource(root / project.path, project.environment, runtime=runtime)
            validated += _validate_groups(source, project, found.settings, members)
    problems += _find_shared_stacks(fleet, settings, file)
    problems += _merge(validated, below)
    order = sorted(dict.fromkeys(problems), key=lambda one: (one.position or Position("", 0, 0), one.text))
    return FleetValidation(fleet, tuple(order), tuple(validated))


def check_variables(fleet: Fleet, root: Path, runtime: Runtime | None = None) -> tuple[Problem, ...]:
    """Checks the variables of all members against the projects' declarations, without loading manifests.

    For the start of a run: a member's variable that no project declares would be ignored. Projects that cannot be
    loaded are skipped; they fail for each member. `root`: folder of the fleet file.
    """
    settings = _read_settings(fleet, root, _without_choice(runtime or Runtime()))
    problems = list(_find_unknown_variables(fleet, settings))
    for project in fleet.projects.values():
        found = settings[project.name]
        if not isinstance(found, Rejected):
            problems += _check_values(project, found.settings, _members_of(fleet, project))
    return tuple(dict.fromkeys(problems))


def _without_choice(runtime: Runtime) -> Runtime:
    """Without RECONCILER_ENV: the fleet file names the environment of a project."""
    environ = {name: value for name, value in runtime.environ.items() if name != "RECONCILER_ENV"}
    return dataclasses.replace(runtime, environ=environ)


def _members_of(fleet: Fleet, project: FleetProject) -> list[Member]:
    return [member for member in fleet.members.values() if member.matches(project.select)]


def _read_settings(fleet: Fleet, root: Path, runtime: Runtime) -> dict[str, Config | Rejected]:
    """The settings of each project, or why it cannot be loaded, by its name."""
    found: dict[str, Config | Rejected] = {}
    for project in fleet.projects.values():
        try:
            placeholder = make_placeholder
            found[project.name] = load_config(root / project.path, runtime.environ, project.environment, placeholder)
        except Rejected as rejected:
            found[project.name] = rejected
    return found


def _validate_groups(
    source: ProjectSource, project: FleetProject, settings: _Settings, members: Sequence[Member]
) -> Iterator[ProjectValidation]:
    """Loads the project for one member of each group: the members that set the same variables of the project."""
    groups: dict[frozenset[str], list[Member]] = {}
    for member in members:
        groups.setdefault(frozenset(settings.keys() & member.variables.keys()), []).append(member)
    for names, group in groups.items():
        values = {name: group[0].variables[name] for name in sorted(names)}
        result = validate_environment(dataclasses.replace(source, variables=values), project.environment)
        yield ProjectValidation(project, group[0].name, len(group), result)


def _find_shared_stacks(fleet: Fleet, settings: Mapping[str, Config | Rejected], file: str) -> Iterator[Problem]:
    """Reports projects of the same member with the same stack: each would delete the objects of the other."""
    stacks = {name: found.stack for name, found in settings.items() if not isinstance(found, Rejected)}
    for one, other in combinations(stacks, 2):
        selects = [fleet.projects[name].select for name in (one, other)]
        member = next((item for item in fleet.members.values() if all(map(item.matches, selects))), None)
        if stacks[one] == stacks[other] and member is not None:
            names = f"projects {one} and {other}"
            yield Problem(
                f"{file}: {names} have the same stack {stacks[one]!r}, and {member.name} gets both",
                "give each project a stack of its own in its reconciler.yaml",
                code="shared-stack",
            )


# --- variables --------------------------------------------------------------------------------------------------------


def _check_values(project: FleetProject, settings: _Settings, members: Sequence[Member]) -> Iterator[Problem]:
    """Reports values of the wrong type, and variables without a value: each once, with its members."""
    found: dict[tuple[str, str, str, str], list[Member]] = {}
    types = {name: setting.type for name, setting in settings.items()}
    unset = [name for name, setting in settings.items() if setting.value is None]
    for member in members:
        for name in unset:
            if name not in member.variables:
                remedy = f"set variables.{name} of each member, or a default in the project"
                text = f"the variable {name} of the project {project.name} has no value"
                found.setdefault((name, text, remedy, NO_VALUE), []).append(member)
        for name, value in member.variables.items():
            if (kind := types.get(name)) is None:
                continue
            _, mismatch = variables.convert(value, kind)
            if mismatch is not None:
                text, remedy = mismatch
                remedy = remedy or f"write a value of the type {kind}"
                found.setdefault((name, text, remedy, "wrong-type"), []).append(member)
    for (name, text, remedy, code), group in found.items():
        yield _report(group, name, text, remedy, code)


def _find_unknown_variables(fleet: Fleet, settings: Mapping[str, Config | Rejected]) -> Iterator[Problem]:
    """Reports variables that no project of the fleet declares. A project ignores variables of the other projects."""
    known: set[str] = set()
    for found in settings.values():
        if isinstance(found, Rejected):
            return  # it may declare any variable
        known |= found.settings.keys()
    unknown: dict[str, list[Member]] = {}
    for member in fleet.members.values():
        for name in member.variables.keys() - known:
            unknown.setdefault(name, []).append(member)
    for name, group in sorted(unknown.items()):
        remedy = did_you_mean(name, known) or "define it under variables: in a project's reconciler.yaml"
        yield _report(group, name, "unknown variable: no project of the fleet declares it", remedy, "unknown-variable")


def _report(members: Sequence[Member], name: str, text: str, remedy: str, code: str) -> Problem:
    names = ", ".join(member.name for member in members[:_NAMED])
    more = f" and {count(len(members) - _NAMED, 'other')}" if len(members) > _NAMED else ""
    return Problem(f"{text} (for {names}{more})", remedy, f"variables.{name}", members[0].position, code=code)


# --- projects ---------------------------------------------------------------------------------------------------------


def _merge(validated: Sequence[ProjectValidation], below: str) -> Iterator[Problem]:
    """The problems of all projects, each once, with the path of the project before that of the file."""
    for one in validated:
        for problem in one.result.problems:
            position = problem.position
            if position is not None:
                path = PurePosixPath(below) / one.project.path / position.file
                position = replace(position, file=str(path))
            yield replace(problem, position=position)
