"""`reconciler validate`: checks the project in all environments, without network access."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from reconciler.cli.terminal import exit_codes, formats, options, output
from reconciler.cli.terminal.group import Command
from reconciler.model import codes
from reconciler.model.problem import Position, Problem
from reconciler.rendering.text_tools import count

if TYPE_CHECKING:
    from reconciler.operations.opening.source import ProjectSource
    from reconciler.operations.results import ValidationResult


_FORMS = ("text", "junit")


def _parse_formats(values: tuple[str, ...]) -> formats.Outputs:
    chosen = formats.parse_outputs(values, _FORMS, "junit=access-tests.xml")
    if any(form == "text" and file for form, file in chosen):
        raise click.BadParameter("text has no file; redirect standard output")
    return chosen


@click.command(
    cls=Command,
    examples="""
        reconciler validate
        reconciler validate --strict
        reconciler validate --env prod --var region=eu
        reconciler validate --format text --format junit=.reconciler/access-tests.xml
    """,
)
@click.option(
    "--format",
    "chosen",
    metavar="FORM[=FILE]",
    multiple=True,
    callback=lambda _context, _parameter, values: _parse_formats(values),
    help=f"Output format: {', '.join(_FORMS)} (repeatable); junit has the access tests. [default: text]",
)
@click.option("--strict", is_flag=True, help="Also fail on literal secrets and other warnings marked strict.")
@options.project_options
def command(common: options.Options, chosen: formats.Outputs, strict: bool) -> int:
    """Check manifests and policies, in all environments or in the one given with --env.

    Needs no network access and no secrets: environment variables and secret files may be missing. The warnings on which
    --strict fails are listed in docs/errors.md.
    """
    from reconciler.cli.terminal import workspaces
    from reconciler.operations.validate import validate_project

    source = workspaces.source_of(common)
    reports = [file for form, file in chosen if form == "junit"]
    _check_files(source, reports)
    results = validate_project(source)
    is_chosen = source.chosen_environment is not None
    for file in reports:
        _write_junit(source, results, file)
    if not is_chosen:
        _refresh_schemas(source, results)
    problems = [*_merge(results), *results[-1].shared]
    output.print_problems(problems)
    refused = sorted({problem.code for problem in problems if codes.is_strict(problem.code)}) if strict else []
    if refused:
        output.print_note(f"error: --strict does not allow these warnings: {', '.join(refused)}")
    code = workspaces.problems_exit_code(problems) or (exit_codes.ERROR if refused else exit_codes.DONE)
    has_summary = any(form == "text" for form, _ in chosen)
    if has_summary and not common.quiet and code == exit_codes.DONE:
        for result in results:
            within = f" (environment {result.environment})" if result.environment and not is_chosen else ""
            output.print_result(f"Valid{within}: {_summary(result)}")
    return code


def _refresh_schemas(source: ProjectSource, results: Sequence[ValidationResult]) -> None:
    """Brings the names in the schemas of editors up to date, where the project has these schemas."""
    from reconciler.project.atomic_write import SCHEMAS

    if (source.path / SCHEMAS).is_dir():
        from reconciler.operations.authoring.editor_schemas import refresh_schemas

        refresh_schemas(source.path, results)


def _check_files(source: ProjectSource, files: Sequence[str]) -> None:
    """Raises if a file belongs to the project, as far as its settings can be read."""
    if any(files):
        from reconciler.cli.terminal import output_files
        from reconciler.operations.errors import InvalidProject

        with suppress(InvalidProject):
            output_files.check_outputs(source.read_settings(), (), *files)


def _write_junit(source: ProjectSource, results: Sequence[ValidationResult], file: str) -> None:
    """Writes the results of the access tests, as a suite for each environment, to a file or to standard output."""
    from reconciler.project import atomic_write
    from reconciler.rendering.junit import Suite, render_access_tests

    suites = [Suite(f"of {result.environment}" if result.environment else "", result.tests) for result in results]
    text = render_access_tests(suites, formats.find_prefix(source.path))
    if file:
        atomic_write.write_output(Path(file), text)
    else:
        output.print_result(text)


def _summary(result: ValidationResult) -> str:
    """`12 resources in 3 files, under 2 policies.`"""
    under = f", under {count(result.policies, 'policy', 'policies')}" if result.policies else ""
    resources = count(result.resources, "resource")
    tests = f", {count(len(result.tests), 'access test')}" if result.tests else ""
    return f"{resources} in {count(result.files, 'file')}{under}{tests}."


def _merge(results: Sequence[ValidationResult]) -> Sequence[Problem]:
    """Every problem once, with the environments that have it, unless all have it."""
    environments: dict[Problem, list[str | None]] = {}
    for result in results:
        for problem in dict.fromkeys(result.problems):
            environments.setdefault(problem, []).append(result.environment)
    merged = [
        problem
        if len(names) == len(results)
        else replace(problem, text=f"in {_name_environments(names)}: {problem.text}")
        for problem, names in environments.items()
    ]
    return sorted(merged, key=lambda problem: (problem.position or Position("", 0, 0), problem.subject, problem.text))


def _name_environments(names: Iterable[str | None]) -> str:
    """`environments prod and staging`"""
    from reconciler.project.documents import phrases

    named = [name for name in names if name is not None]
    parts = ["the project without an environment"] if len(named) < len(list(names)) else []
    if named:
        parts.append(f"environment{'s' if len(named) > 1 else ''} {phrases.join_words(named, 'and')}")
    return " and ".join(parts)
