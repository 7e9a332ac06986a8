"""`reconciler validate`: everything that can be known to be wrong without a network, in every environment at once."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from reconciler.cli import judging, sharing
from reconciler.cli.terminal import exit_codes, options, output
from reconciler.cli.terminal.group import Command
from reconciler.model import codes
from reconciler.model.problem import Position, Problem, Rejected

if TYPE_CHECKING:
    from reconciler.model.manifest import Declaration


@dataclass(frozen=True)
class Checked:
    """The problems of one environment, or of the project without one (`name` is None); if valid, what it declares.

    deliveries   the declarations that deliver a one-time secret
    """

    name: str | None
    problems: tuple[Problem, ...]
    summary: str = ""
    deliveries: Sequence[Declaration] = ()


@click.command(
    cls=Command,
    examples="""
        reconciler validate
        reconciler validate --strict
        reconciler validate --env prod --var region=eu
    """,
)
@click.option("--strict", is_flag=True, help="Fail on literal secrets and on warnings that are certain mistakes.")
@options.offline
def command(common: options.Options, strict: bool) -> int:
    """Check the manifests and the project's policies, in all environments or the one given by --env.

    Needs no network and no secrets: environment variables and secret files may be missing.
    """
    from reconciler.project.settings import environments

    chosen = common.environment or os.environ.get("RECONCILER_ENV")
    names = [chosen] if chosen else [None, *environments.names(common.project)]
    checked = _needed([_check(common, name) for name in names])
    problems = [*_merge(checked), *sharing.check(common, {each.name: each.deliveries for each in checked})]
    output.problems(problems)
    refused = sorted({each.code for each in problems if codes.is_strict(each.code)}) if strict else []
    if refused:
        output.say(f"error: --strict fails on these warnings: {', '.join(refused)}")
    code = judging.code(problems) or (exit_codes.ERROR if refused else exit_codes.DONE)
    if not common.quiet and code == exit_codes.DONE:
        for each in checked:
            within = f" (environment {each.name})" if each.name and not chosen else ""
            output.answer(f"Valid{within}: {each.summary}")
    return code


def _check(common: options.Options, name: str | None) -> Checked:
    from reconciler.project.manifests import load as manifests
    from reconciler.project.settings import config

    try:
        project = config.load(common.project, os.environ, name, sharing.stand_in)
        rules = judging.rules(project)
        loaded = manifests.load(project, os.environ, common.variables, sharing.stand_in)
    except Rejected as rejected:
        return Checked(name, rejected.problems)
    problems = (*loaded.warnings, *judging.of_manifest(rules, loaded.manifest, time.time()))
    resources = output.count(len(loaded.manifest.declarations) + len(loaded.rendered), "resource")
    under = f", under {output.count(len(rules), 'policy', 'policies')}" if rules else ""
    summary = f"{resources} in {output.count(len(loaded.files), 'file')}{under}."
    return Checked(name, problems, summary, sharing.deliveries(loaded.manifest))


def _needed(checked: Sequence[Checked]) -> Sequence[Checked]:
    """Without the project itself if only its environments give values to its variables: it is never planned alone."""
    from reconciler.project.settings.variables import NO_VALUE

    alone, *others = checked
    if others and any(each.code == NO_VALUE for each in alone.problems):
        return others
    return checked


def _merge(checked: Sequence[Checked]) -> Sequence[Problem]:
    """Every problem once, with the environments that have it, unless all have it."""
    found: dict[Problem, list[str | None]] = {}
    for each in checked:
        for problem in dict.fromkeys(each.problems):
            found.setdefault(problem, []).append(each.name)
    told = [
        problem if len(names) == len(checked) else replace(problem, text=f"in {_named(names)}: {problem.text}")
        for problem, names in found.items()
    ]
    return sorted(told, key=lambda each: (each.position or Position("", 0, 0), each.subject, each.text))


def _named(names: Iterable[str | None]) -> str:
    """`environments prod and staging`"""
    from reconciler.project.documents import phrases

    named = [each for each in names if each is not None]
    parts = ["the project without an environment"] if len(named) < len(list(names)) else []
    if named:
        parts.append(f"environment{'s' if len(named) > 1 else ''} {phrases.listed(named, 'and')}")
    return " and ".join(parts)
