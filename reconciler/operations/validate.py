"""Validates manifests and project policies in every environment, without network and secrets."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from reconciler.model.problem import Problem, Rejected
from reconciler.model.value import PENDING, Sealed, Value
from reconciler.operations import access_checks, policy_checks
from reconciler.operations.results import ValidationResult
from reconciler.project.manifests.load import load_manifests
from reconciler.project.settings import environments
from reconciler.project.settings.approvals import read_approvals
from reconciler.project.settings.config import load_config
from reconciler.project.settings.variables import NO_VALUE
from reconciler.rendering import agent_config

if TYPE_CHECKING:
    from reconciler.model.manifest import Declaration
    from reconciler.operations.opening.source import ProjectSource
    from reconciler.project.settings.config import Config


class _Checked(Struct, frozen=True):
    """The result of one environment and, if it is valid, its declarations with a delivery, and the files it read."""

    result: ValidationResult
    config: Config | None = None
    files: Sequence[str] = ()
    deliveries: Sequence[Declaration] = ()


def validate_project(source: ProjectSource) -> tuple[ValidationResult, ...]:
    """One result for the project without an environment and for each environment, or for the one that the source names.

    The last result also has the warnings about delivery targets that environments share.
    """
    chosen = source.chosen_environment
    names = [chosen] if chosen else [None, *environments.environment_names(source.path)]
    checked = _without_variable_templates([_check(source, name) for name in names])
    shared = _find_shared_targets(source, {item.result.environment: item.deliveries for item in checked})
    unused = _check_unused_components(source, checked)
    results = [replace(item.result, problems=(*item.result.problems, *unused)) for item in checked]
    results[-1] = replace(results[-1], shared=tuple(shared))
    return tuple(results)


def validate_environment(source: ProjectSource, name: str | None) -> ValidationResult:
    """The result of one environment, or of the project without one, whichever the source names."""
    return _check(source, name).result


def make_placeholder(source: str, is_secret: bool) -> Value:
    """The placeholder for the value of a missing environment variable or secret file."""
    return Sealed(source) if is_secret else PENDING


def _make_placeholder_in_manifests(source: str, is_secret: bool) -> Value | None:
    """As `make_placeholder`, but a missing file of a field that is not secret is an error: Git has it."""
    return None if source.startswith("file:") and not is_secret else make_placeholder(source, is_secret)


def _check(source: ProjectSource, name: str | None) -> _Checked:
    environ = source.runtime.environ
    config: Config | None = None
    try:
        config = load_config(source.path, environ, name, make_placeholder)
        rules, tests = policy_checks.load_rules(config), access_checks.load_tests(config)
        read_approvals(config.root, name)
        loaded = load_manifests(config, environ, source.variables, _make_placeholder_in_manifests)
    except Rejected as rejected:
        return _Checked(ValidationResult(name, rejected.problems), config)
    found = policy_checks.check_manifest(rules, loaded.manifest, source.runtime.now())
    tested = access_checks.check_manifest(tests, loaded.manifest)
    result = ValidationResult(
        name,
        (
            *loaded.warnings,
            *agent_config.find_conflicts(loaded.rendered),
            *found,
            *(tested.problems if tested is not None else ()),
            *_find_deliveries_to_runner(environ, loaded.manifest.declarations.values()),
        ),
        resources=len(loaded.manifest.declarations) + len(loaded.rendered),
        files=len(loaded.files),
        policies=len(rules),
        tests=tested.results if tested is not None else (),
        addresses=tuple(loaded.manifest.declarations),
    )
    deliveries = tuple(declaration for declaration in loaded.manifest.declarations.values() if declaration.deliver)
    return _Checked(result, config, loaded.files, deliveries)


def _check_unused_components(source: ProjectSource, checked: Sequence[_Checked]) -> Sequence[Problem]:
    """The problems of components that no environment uses. A file with problems already is not checked again."""
    used = {file for item in checked for file in item.files}
    used |= {
        problem.position.file for item in checked for problem in item.result.problems if problem.position is not None
    }
    config = next((item.config for item in checked if item.config is not None), None)
    if config is None:
        return ()  # its problems are reported with each environment
    environ = source.runtime.environ
    from reconciler.project.manifests import unused_components

    return unused_components.find_problems(config, environ, source.variables, used, _make_placeholder_in_manifests)


def _find_deliveries_to_runner(environ: Mapping[str, str], declarations: Iterable[Declaration]) -> Iterable[Problem]:
    """Warnings about deliveries to files, if this is a CI runner: GitHub, GitLab and others set CI=true there."""
    if environ.get("CI", "").lower() not in ("true", "1"):
        return ()
    from reconciler.project.manifests.checks.deliveries import find_deliveries_to_runner

    return find_deliveries_to_runner(declarations)


def _without_variable_templates(checked: Sequence[_Checked]) -> Sequence[_Checked]:
    """Leaves out the project without an environment if only environments set its variables: it cannot be planned."""
    alone, *others = checked
    if others and any(problem.code == NO_VALUE for problem in alone.result.problems):
        return others
    return checked


def _find_shared_targets(
    source: ProjectSource, loaded: Mapping[str | None, Sequence[Declaration]]
) -> Sequence[Problem]:
    """A warning for each delivery target that environments share: the later apply would overwrite the other's secret.

    loaded  deliveries of the environments that are loaded already. The others are loaded only if these have any; an
            environment that cannot be loaded is ignored
    """
    from reconciler.project.manifests.checks.deliveries import find_shared_targets

    names = environments.environment_names(source.path)
    if not names or not any(loaded.values()):
        return ()
    without_choice = {key: value for key, value in source.runtime.environ.items() if key != "RECONCILER_ENV"}
    other = dataclasses.replace(source, runtime=dataclasses.replace(source.runtime, environ=without_choice))
    declared = {name: loaded[name] if name in loaded else _check(other, name).deliveries for name in (None, *names)}
    root = os.path.realpath(source.path)
    found = find_shared_targets(declared, lambda path: os.path.realpath(f"{root}/{path}"))
    return [problem for problem, involved in found if not loaded.keys().isdisjoint(involved)]
