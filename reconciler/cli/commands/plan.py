"""`reconciler plan`: shows the changes and API calls that apply would make. Changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from reconciler.cli.terminal import (
    approvals,
    exit_codes,
    formats,
    options,
    output,
    output_files,
    plan_output,
    snapshot_options,
)
from reconciler.cli.terminal.group import Command

UNSET = "unset-environment-variable"

if TYPE_CHECKING:
    from reconciler.model.plan import Plan
    from reconciler.operations.open_project import OpenProject
    from reconciler.operations.workspace import Workspace


@click.command(
    cls=Command,
    examples="""
        reconciler plan
        reconciler plan --out .reconciler/plan.json --detailed-exitcode
        reconciler plan --base origin/main --fail-on approvals
        reconciler plan --secrets unchanged --out .reconciler/plan.json
        reconciler plan --target 'TLSEdge/*' --format json | jq .summary
        reconciler plan --destroy --out .reconciler/plan.json
        reconciler plan --snapshot .reconciler/snapshot.json --max-age 12h
        reconciler plan --format text --format html=.reconciler/plan.html --format sarif=.reconciler/plan.sarif
    """,
)
@click.option(
    "--out",
    metavar="FILE",
    type=options.OutputPath("name a file, or use --format json to print the plan", path_type=Path),
    help="Write a plan file for `apply FILE`, signed if RECONCILER_PLAN_KEY is set.",
)
@formats.option
@click.option(
    "--base",
    metavar="REF",
    help="Show which changes the commits since REF cause, apart from pending changes and drift.",
)
@click.option(
    "--fail-on",
    type=click.Choice(["approvals"]),
    help="Exit 4 if the plan lacks approvals, and print the entries of approvals.yaml that grant them.",
)
@click.option("--destroy", is_flag=True, help="Show what `destroy` would delete.")
@click.option("--detailed-exitcode", is_flag=True, help="Exit 2 if there are changes.")
@snapshot_options.add_options
@options.plan_options
def command(
    common: options.Options,
    out: Path | None,
    chosen: formats.Outputs,
    base: str | None,
    fail_on: str | None,
    destroy: bool,
    detailed_exitcode: bool,
    taken: Path | None,
    max_age: int,
) -> int:
    """Show the changes that apply would make, with each API call. Changes nothing."""
    from reconciler.api import pipeline_events
    from reconciler.cli.terminal import workspaces
    from reconciler.cli.terminal.wait_notices import ReadProgress

    if out is not None:
        _check_plan_key(common)
    if destroy:
        _refuse_with_destroy({"--base": base, "--replace": common.to_replace, "--snapshot": taken})
    files = [out, *formats.files_of(chosen)]
    output_files.check_distinct(taken, *files)
    opened: OpenProject
    if taken is None:
        snapshot_options.refuse_age_alone()
        opened = workspace = _open_to_destroy(common) if destroy else workspaces.open_partial_workspace(common)
        output_files.check_outputs(opened.config, opened.manifest.declarations.values(), *files)
        whole = any(form == "html" for form, _ in chosen)
        planned = workspaces.run(workspace.plan(base=base, whole=whole, on_event=ReadProgress(common.quiet)))
    else:
        planned = snapshot_options.plan_offline(common, taken, max_age, base)
        opened = planned.project
        output_files.check_outputs(opened.config, opened.manifest.declarations.values(), *files)
    plan = replace(planned.plan, request=pipeline_events.read_request(opened.runtime.environ))
    if out is not None:
        from reconciler.operations.applying import plan_files

        plan_files.write_plan(out, plan, opened.runtime.environ)
    plan_output.show(plan, planned.project, common, chosen, snapshot=planned.snapshot)
    workspaces.print_tally(plan)
    _print_unset_secrets(plan)
    is_judged = all(problem.rule for problem in plan.blocking_errors)  # a policy that an approval can replace, too
    if fail_on is not None and is_judged and plan.missing_approvals:
        approvals.print_missing(plan)
        return exit_codes.BLOCKED
    return workspaces.exit_code(plan, changes=exit_codes.CHANGES if detailed_exitcode else exit_codes.DONE)


def _print_unset_secrets(plan: Plan) -> None:
    """Names the variables with secrets that are not set, and how a job plans that may not read them."""
    unset = {str(problem.values["secret"]) for problem in plan.problems if problem.code == UNSET and problem.values}
    if unset:
        output.print_note(
            f"note: secrets that are not set here: {', '.join(sorted(unset))}; a job that may not read them plans with "
            "--secrets unchanged, which assumes that they are as last applied"
        )


def _check_plan_key(common: options.Options) -> None:
    """Fails before the account is read if the key that signs plan files cannot be used."""
    from reconciler.cli.terminal import workspaces
    from reconciler.operations.opening.plan_key import find_plan_key

    find_plan_key(workspaces.source_of(common).runtime.environ)


def _refuse_with_destroy(options: Mapping[str, object]) -> None:
    """Raises Stop for options that describe changes of declared resources."""
    for name, value in options.items():
        if value:
            raise exit_codes.Stop(exit_codes.USAGE, f"error: --destroy cannot be combined with {name}")


def _open_to_destroy(common: options.Options) -> Workspace:
    """The workspace as `destroy` opens it: without manifests, which may be invalid."""
    from reconciler.cli.terminal import workspaces
    from reconciler.operations.project_openers import open_without_manifests

    return workspaces.open_workspace(common, open_without_manifests).to_destroy()
