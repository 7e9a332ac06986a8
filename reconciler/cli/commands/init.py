"""`reconciler init`: a new project, asked for at a terminal or told by flags. Overwrites nothing, stores no key."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reconciler.cli.terminal import exit_codes, output
from reconciler.cli.terminal.group import Command

if TYPE_CHECKING:
    from reconciler.model import dialect
    from reconciler.operations.authoring.init_project import ProjectChoices, WrittenProject
    from reconciler.operations.runtime import Runtime

_HOSTS = ("github", "gitlab", "none")
_PROFILES: tuple[dialect.Name, ...] = ("specification", "ngrok")


@click.command(
    cls=Command,
    examples="""
        reconciler init
        reconciler init infrastructure --ci github
        reconciler init website --auto-approve --example --base-url http://127.0.0.1:4041
        reconciler init --auto-approve --base-url https://api.example.com --stack prod --ci gitlab
        reconciler init --ci github --package https://packages.example.com/reconciler-0.1.0-py3-none-any.whl
    """,
)
@click.argument("folder", metavar="[DIR]", default=".", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--stack", metavar="NAME", help="The ownership scope, unique in the account; the folder's name by default."
)
@click.option(
    "--profile",
    type=click.Choice(_PROFILES),
    help="Which dialect of the API the platform speaks; the first by default.",
)
@click.option("--base-url", metavar="URL", help="The platform's address; the profile ngrok knows its own.")
@click.option(
    "--ci",
    "host",
    type=click.Choice(_HOSTS),
    help="Write the pipelines of this code host; by default of the one that the folder's Git points to.",
)
@click.option(
    "--package",
    metavar="WHAT",
    help="What the pipelines install, as pip spells it: a wheel's URL, git+https://…@commit, or a name on your index; "
    "where this reconciler came from by default, if that was a URL.",
)
@click.option("--example", is_flag=True, help="Also write a first manifest, an IP policy with one rule, to try out.")
@click.option("--auto-approve", "-y", is_flag=True, help="Do not ask: use defaults for everything not given by a flag.")
@click.option("--no-check", is_flag=True, help="Do not try the API key.")
def command(
    folder: Path,
    stack: str | None,
    profile: dialect.Name | None,
    base_url: str | None,
    host: str | None,
    package: str | None,
    example: bool,
    auto_approve: bool,
    no_check: bool,
) -> int:
    """Write a new project: reconciler.yaml, schemas for editors, and pipelines.

    Existing files are kept. The API key is tried with one read, and is not stored.
    """
    from reconciler.operations.authoring import init_project
    from reconciler.operations.runtime import Runtime
    from reconciler.project import pipelines

    runtime = click.get_current_context().find_root().obj or Runtime()
    asking = not auto_approve
    if asking and not sys.stdin.isatty():
        raise exit_codes.Stop(
            exit_codes.USAGE, "error: stdin is not a terminal; pass --auto-approve to use defaults without questions"
        )
    proposed = init_project.ProjectChoices(
        stack or init_project.default_stack(folder),
        profile or _PROFILES[0],
        base_url or runtime.environ.get("RECONCILER_BASE_URL") or None,
        host or init_project.default_host(folder),
        pipelines.find_install_source() if package is None else package,
    )
    choices = _ask(proposed, given={stack, profile, base_url, host, package}) if asking else proposed
    _check_choices(choices)
    key = None if no_check else _try_key(choices, runtime, asking)
    flags = {"--stack": stack, "--profile": profile, "--base-url": base_url}
    given = [flag for flag, value in flags.items() if value is not None]
    if given and (folder / "reconciler.yaml").exists():
        output.print_note(f"note: reconciler.yaml already exists; ignoring {', '.join(given)}")
    _report_ignored_package(folder, choices, package)
    _show_files(init_project.write_project(folder, choices, example=example))
    output.print_result(_next_steps(folder, choices))
    if asking and key and click.confirm("Write manifests for what the account has already?", err=True):
        return _import(folder, replace(runtime, environ={**runtime.environ, init_project.KEY: key}))
    return exit_codes.DONE


def _import(folder: Path, runtime: Runtime) -> int:
    from reconciler.cli.commands import import_

    arguments = ["--project", str(folder)]
    return int(import_.command.main(arguments, "reconciler import", standalone_mode=False, obj=runtime))


def _ask(proposed: ProjectChoices, given: set[str | None]) -> ProjectChoices:
    """With the answers of whoever sits at the terminal; what a flag said is not asked for."""

    def ask(question: str, proposal: str | None, **more: Any) -> str:
        if proposal is not None and proposal in given:
            return proposal
        return str(click.prompt(question, default=proposal, err=True, **more))

    stack = ask("Name of the stack, unique in the account", proposed.stack)
    asked = ask("Dialect of the API", proposed.profile, type=click.Choice(_PROFILES))
    profile = next(profile for profile in _PROFILES if profile == asked)
    base_url = proposed.base_url
    if profile == "specification":
        base_url = ask("Address of the platform", proposed.base_url)
    host = ask("Pipelines for", proposed.host, type=click.Choice(_HOSTS))
    package = proposed.package
    if host != "none":
        question = "What they install: a wheel's URL, or git+https://…@commit (empty: later)"
        package = ask(question, package, show_default=bool(package)).strip()
    return replace(proposed, stack=stack, profile=profile, base_url=base_url, host=host, package=package)


def _check_choices(choices: ProjectChoices) -> None:
    from reconciler.operations.authoring import init_project

    wrong = init_project.check_choices(choices)
    lines = [f"error: --{name.replace('_', '-')}: {text}" for name, text in wrong.items()]
    if lines:
        raise exit_codes.Stop(exit_codes.USAGE, *lines)


def _try_key(choices: ProjectChoices, runtime: Runtime, asking: bool) -> str | None:
    """Reads once with the key, if there is one, and returns it. Fails if the platform does not accept it."""
    from reconciler.cli.terminal import workspaces
    from reconciler.model.value import Secret
    from reconciler.operations.authoring import init_project

    key, base_url = init_project.KEY, choices.platform_address
    if base_url is None:
        output.print_note("note: the key was not tried: there is no address yet")
        return None
    text = runtime.environ.get(key)
    if text is None and asking:
        text = click.prompt("API key, to try it (not stored; empty: later)", default="", hide_input=True, err=True)
    if not text:
        output.print_note(f"note: the key was not tried: {key} is not set")
        return None
    workspaces.run(init_project.try_key(base_url, choices.profile, Secret(text, f"env:{key}"), runtime))
    output.print_note(f"{base_url} accepts the key.")
    return str(text)


def _report_ignored_package(folder: Path, choices: ProjectChoices, given: str | None) -> None:
    from reconciler.project import pipelines

    place = pipelines.PACKAGE_IN.get(choices.host)
    if given and place is None:
        output.print_note("note: no pipelines are written; ignoring --package")
    elif given and (folder / str(place)).exists():
        output.print_note(f"note: {place} already exists; ignoring --package")


def _show_files(written: WrittenProject) -> None:
    for path, is_written in written.files.items():
        output.print_note(f"wrote {path}" if is_written else f"kept {path}, which already exists")
    if written.unignored:
        output.print_note(
            f"note: .gitignore does not say {' '.join(written.unignored)}: "
            "add what Git should not keep, secrets above all"
        )


def _next_steps(folder: Path, choices: ProjectChoices) -> str:
    from reconciler.operations.authoring.init_project import KEY

    steps = [] if folder == Path() else [f"cd {shlex.quote(str(folder))}"]
    if choices.profile == "specification" and choices.base_url is None:
        steps.append("edit reconciler.yaml     # base_url; `reconciler sandbox` is a platform to rehearse on")
    steps += [
        f"export {KEY}='<your key>'",
        "reconciler import --dry-run     # what exists already, as manifests",
        "reconciler plan                 # what would change; nothing does yet",
        "reconciler apply",
    ]
    text = "Next:\n" + "".join(f"  {step}\n" for step in steps)
    if choices.host == "github":
        text += (
            "The workflows want secrets: RECONCILER_READ_KEY, RECONCILER_PLAN_KEY, and in the environment production\n"
        )
        text += "RECONCILER_API_KEY. docs/gitops.md of reconciler says more.\n"
    elif choices.host == "gitlab":
        text += "The jobs want masked variables, which .gitlab-ci.yml lists at its top.\n"
    return text + _package_note(folder, choices)


def _package_note(folder: Path, choices: ProjectChoices) -> str:
    """What the pipelines do not know yet of what they install."""
    from reconciler.project import pipelines

    package, index = {"github": ("package", "index")}.get(choices.host, ("RECONCILER_PACKAGE", "PIP_INDEX_URL"))
    place = pipelines.PACKAGE_IN.get(choices.host)
    if place is None:
        return ""
    text = output.read_file(folder / place)
    if not pipelines.is_mentioned(choices.host, text):
        return f"They install nothing yet: say in {place} what, as {package}.\n"
    if pipelines.wants_index(choices.package) and pipelines.with_store(choices.package) in text:
        return f"{choices.package} is a name: say in {place} on which index of yours, as {index}.\n"
    return ""
