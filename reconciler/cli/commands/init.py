"""`reconciler init`: creates a project from prompts or options. Overwrites no file and stores no API key."""

from __future__ import annotations

import dataclasses
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

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
        reconciler init --ci github --environment staging --environment prod --approvers @octo/platform
        reconciler init --update
        reconciler init --ci github --package https://packages.example.com/reconciler-0.1.0-py3-none-any.whl
    """,
)
@click.argument("folder", metavar="[DIR]", default=".", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--stack", metavar="NAME", help="Name of the stack, unique in the account. [default: name of the directory]"
)
@click.option(
    "--profile",
    type=click.Choice(_PROFILES),
    help="API dialect of the platform. [default: specification]",
)
@click.option("--base-url", metavar="URL", help="Base URL of the API; not needed for the ngrok profile.")
@click.option(
    "--ci",
    "host",
    type=click.Choice(_HOSTS),
    help="Write CI pipelines for this code host, at the root of the repository only. [default: from the Git remote]",
)
@click.option(
    "--package",
    metavar="REQUIREMENT",
    help="Package that the pipelines install with pip: URL of a wheel, git+https://…@commit, or a name on your index. "
    "[default: the URL from which this reconciler was installed, if any]",
)
@click.option(
    "--environment",
    "environments",
    metavar="NAME",
    multiple=True,
    help="Environment of the project, in the order in which pipelines apply a merge (repeatable). "
    "[default: environments/*.yaml, production last]",
)
@click.option(
    "--approvers",
    metavar="OWNERS",
    help="Code owners of approvals.yaml and of the pipelines, such as @octo/platform.",
)
@click.option(
    "--update",
    is_flag=True,
    help="Bring the pipelines that init wrote to this version, and show the difference. Keeps files that were edited.",
)
@click.option("--check", is_flag=True, help="With --update: write nothing; exit 2 if a pipeline is not up to date.")
@click.option("--example", is_flag=True, help="Also write an example manifest: an IP policy with one rule.")
@click.option(
    "--auto-approve",
    "-y",
    is_flag=True,
    help="Run non-interactively, with defaults for everything not given by a flag.",
)
@click.option("--no-check", is_flag=True, help="Do not test the API key.")
def command(
    folder: Path,
    stack: str | None,
    profile: dialect.Name | None,
    base_url: str | None,
    host: str | None,
    package: str | None,
    environments: tuple[str, ...],
    approvers: str | None,
    update: bool,
    check: bool,
    example: bool,
    auto_approve: bool,
    no_check: bool,
) -> int:
    """Create a new project: reconciler.yaml, JSON Schemas for editors, and CI pipelines.

    Existing files are not changed, but for --update. The API key is tested with one read request and not stored.
    """
    if update:
        others = {"--stack": stack, "--profile": profile, "--base-url": base_url, "--package": package}
        _refuse_with_update({**others, "--approvers": approvers, "--example": example})
        return _update(folder, host, environments, is_check=check)
    if check:
        raise exit_codes.Stop(exit_codes.USAGE, "error: --check requires --update")

    from reconciler.operations.authoring import init_project
    from reconciler.operations.runtime import Runtime
    from reconciler.project import pipelines

    runtime = click.get_current_context().find_root().obj or Runtime()
    is_interactive = not auto_approve
    if is_interactive and not sys.stdin.isatty():
        raise exit_codes.Stop(
            exit_codes.USAGE, "error: stdin is not a terminal; pass --auto-approve to run non-interactively"
        )
    defaults = init_project.ProjectChoices(
        stack or init_project.default_stack(folder),
        profile or _PROFILES[0],
        base_url or runtime.environ.get("RECONCILER_BASE_URL") or None,
        host or init_project.default_host(folder),
        pipelines.find_install_source() if package is None else package,
        environments or init_project.default_environments(folder),
        approvers or "",
    )
    project_file = folder / "reconciler.yaml"
    is_new = not project_file.exists()
    fixed = {stack, profile, base_url, host, package}
    choices = _prompt(defaults, fixed, is_new=is_new) if is_interactive else defaults
    _check_choices(folder, choices)
    if not is_new:
        choices = init_project.with_settings(folder, choices, runtime.environ)
    key = None if no_check else _try_key(choices, runtime, is_new=is_new, is_interactive=is_interactive)
    flags = {"--stack": stack, "--profile": profile, "--base-url": base_url}
    ignored = [flag for flag, value in flags.items() if value is not None]
    if ignored and not is_new:
        output.print_note(f"note: reconciler.yaml already exists; ignoring {', '.join(ignored)}")
    _report_ignored_package(folder, choices, package)
    owners = init_project.find_code_owners(folder, choices.host)
    _show_files(init_project.write_project(folder, choices, example=example))
    _report_code_owners(folder, choices, owners)
    if choices.host in pipelines.HOSTS and len(choices.environments) > 1:
        output.print_note(
            f"note: pipelines apply a merge in this order: {', '.join(choices.environments)}; "
            "pass --environment to choose another order"
        )
    output.print_result(_next_steps(folder, choices))
    if is_interactive and key and click.confirm("Write manifests for the account's existing objects?", err=True):
        return _import(folder, dataclasses.replace(runtime, environ={**runtime.environ, init_project.KEY: key}))
    return exit_codes.DONE


def _refuse_with_update(others: dict[str, object]) -> None:
    """Raises Stop for options about what an update does not write."""
    for name, value in others.items():
        if value:
            raise exit_codes.Stop(exit_codes.USAGE, f"error: --update cannot be combined with {name}")


def _update(folder: Path, host: str | None, environments: tuple[str, ...], *, is_check: bool) -> int:
    """Brings generated pipelines to this version: prints the difference, and what is left to do."""
    from reconciler.operations.authoring import update_pipelines
    from reconciler.project.files import Unreadable
    from reconciler.project.pipeline_updates import State

    try:
        host = host or update_pipelines.find_host(folder)
        if host is None or host == "none":
            raise exit_codes.Stop(exit_codes.ERROR, "error: there are no pipelines; `reconciler init --ci` writes them")
        updates = update_pipelines.update_pipelines(folder, host, environments, is_check=is_check)
    except Unreadable as wrong:
        raise exit_codes.Stop(exit_codes.ERROR, f"error: {wrong}; {wrong.remedy}") from None
    for found in updates:
        output.print_result(found.diff)
    for found in updates:
        match found.state:
            case State.CURRENT:
                output.print_note(f"up to date: {found.path}")
            case State.EDITED:
                output.print_note(f"up to date, with your edits: {found.path}")
            case State.OUTDATED:
                output.print_note(f"{'outdated' if is_check else 'updated'}: {found.path}")
            case State.CHANGED:
                output.print_note(
                    f"error: {found.path} was edited, and is kept; apply what you need of the difference by hand, with "
                    "its first line, or delete the file and run `reconciler init`"
                )
            case State.MISSING:
                output.print_note(f"note: {found.path} does not exist; `reconciler init --ci {host}` writes it")
    states = {found.state for found in updates}
    if is_check:
        return exit_codes.CHANGES if states & {State.OUTDATED, State.CHANGED} else exit_codes.DONE
    return exit_codes.ERROR if State.CHANGED in states else exit_codes.DONE


def _import(folder: Path, runtime: Runtime) -> int:
    from reconciler.cli.commands import import_

    arguments = ["--project", str(folder)]
    return int(import_.command.main(arguments, "reconciler import", standalone_mode=False, obj=runtime))


def _prompt(defaults: ProjectChoices, fixed: set[str | None], *, is_new: bool) -> ProjectChoices:
    """The choices of the user at the terminal. Not asked for: values in `fixed`, which come from options, and what an
    existing project file says.
    """

    def ask(question: str, default: str | None, **more: Any) -> str:
        if default is not None and default in fixed:
            return default
        return str(click.prompt(question, default=default, err=True, **more))

    stack, profile, base_url = defaults.stack, defaults.profile, defaults.base_url
    if is_new:
        stack = ask("Stack name, unique in the account", stack)
        answer = ask("API dialect", profile, type=click.Choice(_PROFILES))
        profile = next(profile for profile in _PROFILES if profile == answer)
        if profile == "specification":
            base_url = ask("Base URL of the API", base_url)
    host = ask("CI pipelines for", defaults.host, type=click.Choice(_HOSTS))
    package = defaults.package
    if host != "none":
        question = "Package to install in pipelines: URL of a wheel, or git+https://…@commit (leave empty to set later)"
        package = ask(question, package, show_default=bool(package)).strip()
    return replace(defaults, stack=stack, profile=profile, base_url=base_url, host=host, package=package)


def _check_choices(folder: Path, choices: ProjectChoices) -> None:
    from reconciler.operations.authoring import init_project

    problems = dict(init_project.check_choices(choices))
    if problem := init_project.check_host(folder, choices.host):
        problems["ci"] = problem
    lines = [f"error: --{name.replace('_', '-')}: {text}" for name, text in problems.items()]
    if lines:
        raise exit_codes.Stop(exit_codes.USAGE, *lines)


def _try_key(choices: ProjectChoices, runtime: Runtime, *, is_new: bool, is_interactive: bool) -> str | None:
    """Tests the API key with one read request and returns it; None without a key. Fails if the key is rejected."""
    from reconciler.cli.terminal import workspaces
    from reconciler.model.value import Secret
    from reconciler.operations.authoring import init_project

    key, base_url = init_project.KEY, choices.platform_address
    if base_url is None:
        why = "no base URL" if is_new else "no base URL could be read from reconciler.yaml"
        output.print_note(f"note: API key not tested: {why}")
        return None
    text = runtime.environ.get(key)
    if text is None and is_interactive:
        text = click.prompt("API key to test (not stored; leave empty to skip)", default="", hide_input=True, err=True)
    if not text:
        output.print_note(f"note: API key not tested: {key} is not set")
        return None
    workspaces.run(init_project.try_key(base_url, choices.profile, Secret(text, f"env:{key}"), runtime))
    output.print_note(f"{base_url} accepted the API key.")
    return str(text)


def _report_ignored_package(folder: Path, choices: ProjectChoices, package: str | None) -> None:
    from reconciler.project import pipelines

    place = pipelines.PACKAGE_IN.get(choices.host)
    if package and place is None:
        output.print_note("note: no pipelines are written; ignoring --package")
    elif package and (folder / str(place)).exists():
        output.print_note(f"note: {place} already exists; ignoring --package")


def _report_code_owners(folder: Path, choices: ProjectChoices, owners: str | None) -> None:
    """Tells who must review approvals, and what is left to do. `owners`: the CODEOWNERS file that existed before."""
    from reconciler.operations.authoring import init_project
    from reconciler.project import pipelines

    if choices.host not in pipelines.HOSTS:
        if choices.approvers:
            output.print_note("note: no pipelines are written; ignoring --approvers")
        return
    place = owners or pipelines.CODE_OWNERS_PLACE[choices.host]
    if owners:
        named = replace(choices, approvers=choices.approvers or "@OWNER/TEAM")
        lines = init_project.render_code_owners(folder, named, owners).splitlines()
        added = ", ".join(line for line in lines if not line.startswith("#"))
        output.print_note(f"note: {place} decides who reviews approvals.yaml; check that it contains: {added}")
    elif choices.approvers:
        output.print_note(f"note: {place} names {choices.approvers} as reviewers of approvals.yaml")
    else:
        output.print_note(f"note: {place} does not name the reviewers of approvals.yaml yet; edit it")


def _show_files(written: WrittenProject) -> None:
    for path, is_written in written.files.items():
        output.print_note(f"wrote {path}" if is_written else f"kept {path}, which already exists")
    if written.unignored:
        output.print_note(
            f"note: .gitignore does not list {' '.join(written.unignored)}; add them, because they may contain secrets"
        )


def _next_steps(folder: Path, choices: ProjectChoices) -> str:
    from reconciler.operations.authoring.init_project import KEY

    steps = [] if folder == Path() else [f"cd {shlex.quote(str(folder))}"]
    if choices.profile == "specification" and choices.base_url is None:
        steps.append("edit reconciler.yaml     # set base_url; `reconciler sandbox` runs a local platform for tests")
    steps += [
        f"export {KEY}='<your key>'",
        "reconciler import --dry-run     # show manifests for existing objects",
        "reconciler plan                 # show changes without applying them",
        "reconciler apply",
    ]
    text = "Next steps:\n" + "".join(f"  {step}\n" for step in steps)
    if choices.host == "github":
        text += (
            "The workflows require the secrets RECONCILER_READ_KEY and RECONCILER_PLAN_KEY, and RECONCILER_API_KEY in\n"
            f"{_list_environments(choices)}; see docs/gitops.md of reconciler.\n"
        )
    elif choices.host == "gitlab":
        text += "The jobs require masked variables, which are listed at the top of .gitlab-ci.yml.\n"
    return text + _package_note(folder, choices)


def _list_environments(choices: ProjectChoices) -> str:
    *first, last = choices.environments or ("production",)
    return f"the environments {', '.join(first)} and {last}" if first else f"the environment {last}"


def _package_note(folder: Path, choices: ProjectChoices) -> str:
    """What is left to configure for the installation of reconciler in pipelines; empty if nothing is."""
    from reconciler.project import pipelines

    package, index = {"github": ("package", "index")}.get(choices.host, ("RECONCILER_PACKAGE", "PIP_INDEX_URL"))
    place = pipelines.PACKAGE_IN.get(choices.host)
    if place is None:
        return ""
    text = output.read_file(folder / place)
    if not pipelines.is_mentioned(choices.host, text):
        return f"The pipelines have no package to install yet: set {package} in {place}.\n"
    if pipelines.wants_index(choices.package) and pipelines.with_store(choices.package) in text:
        return f"{choices.package} is installed from a package index: set {index} in {place} to its URL.\n"
    return ""
