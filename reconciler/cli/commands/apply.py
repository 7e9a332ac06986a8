"""`reconciler apply`: applies a new plan, or one from a plan file."""

from __future__ import annotations

import dataclasses
import functools
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource
from msgspec.structs import replace

from reconciler.cli.terminal import exit_codes, options, output, output_files, snapshot_options
from reconciler.cli.terminal.group import Command

if TYPE_CHECKING:
    from reconciler.operations.applying.plan_files import PlanFile
    from reconciler.operations.workspace import Workspace


auto_approve_option = click.option("--auto-approve", "-y", is_flag=True, help="Apply without confirmation.")


@click.command(
    cls=Command,
    examples="""
        reconciler apply
        reconciler plan --out .reconciler/plan.json && reconciler apply .reconciler/plan.json -y
        reconciler apply --target 'IPPolicy/*' --events .reconciler/events.ndjson
        reconciler apply --reviewed .reconciler/plan-production.json -y
        reconciler apply -y --wait --wait-timeout 30m
    """,
)
@click.argument("file", required=False, metavar="[FILE]", type=click.Path(path_type=Path))
@click.option(
    "--partial",
    is_flag=True,
    help="If FILE is partly stale, or --reviewed finds changes that were not reviewed, skip these and apply the rest.",
)
@click.option(
    "--reviewed",
    is_flag=True,
    help="In a pipeline on a push: plan again, and apply only what the plan of the merged request contains.",
)
@click.option(
    "--max-age",
    metavar="AGE",
    callback=snapshot_options.parse_age,
    help="Fail if FILE is older, such as 12h. [default: no limit]",
)
@click.option("--wait", is_flag=True, help="After the calls, wait until what was changed is healthy; else exit with 7.")
@click.option(
    "--wait-timeout",
    metavar="DURATION",
    default="10m",
    show_default=True,
    callback=snapshot_options.parse_age,
    help="How long to wait at most, such as 10m.",
)
@auto_approve_option
@options.apply_options
def command(
    common: options.Options,
    file: Path | None,
    partial: bool,
    reviewed: bool,
    max_age: int | None,
    wait: bool,
    wait_timeout: int,
    auto_approve: bool,
) -> int:
    """Apply a plan: the plan in FILE, or a new one.

    Without FILE, creates a plan, shows it and asks for confirmation. With FILE, written by `plan --out`, fails with
    exit code 3 if an object that the plan depends on changed since then.

    With --wait, reads what was changed until it is healthy, and prints for each object why it waits and who acts next.
    An error that the platform does not try again in time ends the wait after 30 seconds. Does not wait for agents,
    except where one served before.

    With --reviewed, FILE is the plan file that the pipeline of a request wrote and kept as an artifact [default:
    .reconciler/plan.json]. Finds the pull or merge requests that the push of this pipeline merged, downloads their
    plan files, and plans again; fails with exit code 3 if a change is not in them. On GitHub, reads GITHUB_TOKEN,
    GITHUB_REPOSITORY, GITHUB_API_URL, GITHUB_SHA and GITHUB_EVENT_PATH; on GitLab, GITLAB_TOKEN, CI_API_V4_URL,
    CI_PROJECT_ID, CI_COMMIT_SHA, CI_COMMIT_BEFORE_SHA and CI_COMMIT_BRANCH.
    """
    if file is not None and not reviewed:
        file.stat()  # a missing file is reported before anything else is asked for
    require_terminal("apply", auto_approve)
    _check_wait(wait)
    seconds = wait_timeout if wait else None
    if reviewed:
        return _apply_reviewed(common, file or Path(".reconciler/plan.json"), partial, max_age, seconds, auto_approve)
    _check_options(common, file, partial, max_age)
    output_files.check_distinct(file, common.events)
    from reconciler.cli.applying import presenter
    from reconciler.cli.applying.summary import Wording
    from reconciler.cli.terminal import workspaces

    if file is None:
        opened, planned = workspaces.open_partial_workspace(common), None
    else:
        opened, planned = _open_with_plan(common, file, max_age)
    operation = functools.partial(opened.apply, planned, partial=partial, wait=seconds)
    wording = Wording("Apply these changes?", "Applied:")
    return presenter.run_apply(operation, opened, common, wording, ask=not auto_approve)


def _check_wait(wait: bool) -> None:
    """Raises a usage error for --wait-timeout without --wait."""
    source = click.get_current_context().get_parameter_source("wait_timeout")
    if not wait and source is not ParameterSource.DEFAULT:
        raise click.UsageError("--wait-timeout requires --wait")


def _apply_reviewed(
    common: options.Options, file: Path, partial: bool, max_age: int | None, wait: float | None, auto_approve: bool
) -> int:
    """Applies what was reviewed of the push that this pipeline runs on."""
    from reconciler.cli.applying import presenter
    from reconciler.cli.applying.summary import Wording
    from reconciler.cli.terminal import code_hosts, workspaces
    from reconciler.operations.applying.reviewed import FirstPush, find_merged, find_reviewed

    if max_age is not None:
        raise exit_codes.Stop(exit_codes.USAGE, "error: --max-age cannot be combined with --reviewed")
    if file.is_absolute() or ".." in file.parts:
        raise exit_codes.Stop(
            exit_codes.USAGE, f"error: with --reviewed, FILE is a path in the repository of the pipeline, not {file}"
        )
    source, reviews = workspaces.source_of(common), code_hosts.find_reviews()
    merged = find_merged(source.path, source.runtime.environ, reviews)
    if isinstance(merged, FirstPush):
        output.print_note(f"note: {merged.note}")
        return exit_codes.DONE
    opened = workspaces.open_partial_workspace(common)
    reviewed = find_reviewed(opened, reviews, merged, file.as_posix())
    operation = functools.partial(opened.apply, reviewed, partial=partial, wait=wait)
    wording = Wording("Apply these changes?", "Applied:", approves_in_git=True)
    return presenter.run_apply(operation, opened, common, wording, ask=not auto_approve)


def _open_with_plan(common: options.Options, file: Path, max_age: int | None) -> tuple[Workspace, PlanFile]:
    """The workspace and the plan file. Raises Stop if the file is older than `max_age` seconds."""
    from reconciler.cli.terminal import workspaces
    from reconciler.operations.applying import plan_files
    from reconciler.operations.project_openers import open_with_plan
    from reconciler.operations.workspace import Workspace

    opened, planned = open_with_plan(workspaces.source_of(common), file)
    if reason := plan_files.reason_too_old(planned, max_age, opened.runtime.now()):
        raise exit_codes.Stop(exit_codes.STALE, f"error: {reason}")
    if not planned.is_signed and not common.quiet:
        output.print_note(plan_files.signature_note(planned.name))
    workspace = Workspace.of(dataclasses.replace(opened, options=replace(opened.options, allow=common.allow)))
    return workspace, planned


def _check_options(common: options.Options, file: Path | None, partial: bool, max_age: int | None) -> None:
    """Raises Stop for options that need a plan file, and for options that a plan file has fixed already."""
    for option, is_set in {"--max-age": max_age is not None, "--partial": partial}.items():
        if file is None and is_set:
            raise exit_codes.Stop(
                exit_codes.USAGE, f"error: {option} requires a plan file: `reconciler apply FILE {option}`"
            )
    values = {
        "--target": common.targets,
        "--exclude": common.excludes,
        "--replace": common.to_replace,
        "--adopt": common.adopt,
    }
    flags = [flag for flag, value in values.items() if value]
    if file is not None and flags:
        raise exit_codes.Stop(
            exit_codes.USAGE,
            f"error: {' and '.join(flags)} cannot be combined with a plan file; "
            f"pass {'it' if len(flags) == 1 else 'them'} to `reconciler plan --out {shlex.quote(str(file))}`",
        )


def require_terminal(name: str, auto_approve: bool) -> None:
    """Raises Stop if approval is required and stdin is not a terminal, as in a pipeline."""
    if not auto_approve and not sys.stdin.isatty():
        raise exit_codes.Stop(
            exit_codes.USAGE, f"error: stdin is not a terminal; pass --auto-approve to {name} without confirmation"
        )
