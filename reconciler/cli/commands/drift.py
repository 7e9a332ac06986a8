"""`reconciler drift`: shows what changed on the platform since the last apply, and records, reports or accepts it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from reconciler.cli.terminal import addresses, code_hosts, exit_codes, formats, notifying, options, output, output_files
from reconciler.cli.terminal.group import Command
from reconciler.rendering.text_tools import count

if TYPE_CHECKING:
    from reconciler.api.code_hosts import IssueTracker
    from reconciler.model.manifest import Manifest
    from reconciler.model.plan import Plan
    from reconciler.model.snapshot import Snapshot
    from reconciler.operations.results import DriftResult
    from reconciler.operations.workspace import Workspace


@click.command(
    cls=Command,
    examples="""
        reconciler drift
        reconciler drift 'TLSEdge/*' --pending
        reconciler drift --exclude 'BotUser/*' --format json=drift.json
        reconciler drift --record --format markdown=drift.md
        reconciler drift --notify env:SLACK_WEBHOOK --notify mailto:ops@example.com
        reconciler drift --record --issue
        reconciler drift --accept TLSEdge/payments
        reconciler drift --ignore 'TLSEdge/payments.description'
        reconciler drift --unmanaged
    """,
)
@formats.option
@click.option("--pending", is_flag=True, help="Also exit 2 if Git has unapplied changes.")
@click.option(
    "--ignore",
    "ignored",
    metavar="GLOB",
    multiple=True,
    help="Do not report this difference, such as 'TLSEdge/*.description' (repeatable).",
)
@click.option("--record", is_flag=True, help="Record the drift check for `report`: names and field paths, no values.")
@notifying.option
@click.option(
    "--issue",
    is_flag=True,
    help="Keep one issue per stack on GitHub or GitLab: open it for drift, update it, and close it without drift.",
)
@click.option("--accept", is_flag=True, help="Write the platform's values into the manifests and print the diff.")
@click.option(
    "--both", is_flag=True, help="With --accept: also overwrite fields that changed in Git too, or by an unknown cause."
)
@click.option("--unmanaged", is_flag=True, help="Also list the objects that no stack manages.")
@click.argument("named", nargs=-1, metavar="[KIND/NAME]...", shell_complete=addresses.complete)
@options.drift_options
def command(
    common: options.Options,
    chosen: formats.Outputs,
    pending: bool,
    ignored: tuple[str, ...],
    record: bool,
    notify_targets: tuple[str, ...],
    issue: bool,
    accept: bool,
    both: bool,
    unmanaged: bool,
    named: tuple[str, ...],
) -> int:
    """Show what changed on the platform since the last apply, and what changed it. Exits 2 if there is drift.

    KIND/NAME limits the check to some resources, like --target. Unapplied changes in Git are listed separately.
    Webhook requests of --notify are signed if RECONCILER_NOTIFY_KEY is set; mail requires RECONCILER_SMTP_URL and
    RECONCILER_MAIL_FROM. --issue reads GITHUB_TOKEN, GITHUB_REPOSITORY and GITHUB_API_URL, or GITLAB_TOKEN,
    CI_API_V4_URL and CI_PROJECT_ID.
    """
    for flag, is_set in (("--record", record), ("--issue", issue)):
        if is_set and (common.targets or common.excludes or (named and not accept)):
            raise exit_codes.Stop(exit_codes.USAGE, f"error: {flag} checks the whole stack; select no resources")
    if issue and accept:
        raise exit_codes.Stop(exit_codes.USAGE, "error: --issue reports drift; omit --accept")
    issues = code_hosts.find_issues() if issue else None
    _check_options(accept, both, unmanaged, chosen)
    notifying.check(notify_targets)

    from reconciler.cli.terminal import plan_output, workspaces
    from reconciler.cli.terminal.wait_notices import ReadProgress
    from reconciler.rendering.plan.phrases import Flavour

    if not accept:
        common = replace(common, targets=(*common.targets, *named))
    opened = workspaces.open_workspace(common) if accept else workspaces.open_partial_workspace(common)
    output_files.check_outputs(opened.config, opened.manifest.declarations.values(), *formats.files_of(chosen))
    if record:
        _require_lasting_store(opened)
    drift = workspaces.run(opened.drift(ignore=ignored, on_event=ReadProgress(common.quiet)))
    _check_names(named, opened, drift)
    if record:
        _record(opened, drift.plan)
    if accept:
        code = _accept(opened, common, drift, named, ignored, both=both)
    else:
        plan_output.show(drift.plan, opened, common, chosen, Flavour.DRIFT)
        if unmanaged:
            _show_unmanaged(drift.plan, drift.snapshot, opened.manifest)
        workspaces.print_tally(drift.plan)
        code = _exit_of(drift.plan, pending=pending)
    if issues is not None:
        _update_issue(issues, drift.plan, opened, common)
    # Last, so that the drift is printed even if a notification fails.
    notifying.notify(notify_targets, drift.plan, opened.options.now, quiet=common.quiet)
    return code


def _update_issue(issues: IssueTracker, plan: Plan, opened: Workspace, common: options.Options) -> None:
    """Opens or updates the issue of the stack if there is drift, otherwise closes it. A failure is a warning."""
    from reconciler.api.code_hosts import IssueResult
    from reconciler.engine.ports import Failure
    from reconciler.rendering import terminal_text
    from reconciler.rendering.plan import markdown, phrases

    if plan.errors and not plan.has_drift:  # a resource that could not be read would count as repaired
        output.print_note("note: issue not changed, because the plan has errors")
        return
    marker = markdown.marker(plan.stack, plan.account)
    body = markdown.render_markdown(plan, flavour=phrases.Flavour.DRIFT)
    title = f"Drift in {terminal_text.sanitize(plan.stack)}"
    try:
        change = issues.upsert_issue if plan.has_drift else issues.close_issue
        result = change(title, body, marker)
    except Failure as failure:
        output.print_note(f"warning: issue not changed: {failure}")
        return
    if not common.quiet and result is not IssueResult.NONE:
        output.print_note(_ISSUE_RESULTS[result])


_ISSUE_RESULTS = {
    "opened": "Issue opened.",
    "updated": "Issue updated.",
    "current": "Issue unchanged.",
    "closed": "Issue closed.",
}


def _exit_of(plan: Plan, *, pending: bool) -> int:
    from reconciler.cli.terminal import workspaces

    if plan.errors:
        return workspaces.exit_code(plan)
    return exit_codes.CHANGES if plan.has_drift or (pending and plan.has_pending) else exit_codes.DONE


def _show_unmanaged(plan: Plan, snapshot: Snapshot, manifest: Manifest) -> None:
    """Prints each unmanaged object with the address that `import` would propose, and counts those of other stacks."""
    from reconciler.operations.drift import list_unmanaged
    from reconciler.rendering import terminal_text

    unmanaged = list_unmanaged(plan, snapshot, manifest)
    lines = [f"  {address}  {id}" for address, id in unmanaged.objects]
    output.print_result("\n".join(["", "Not managed:", *lines]) if lines else "\nEvery object is managed.")
    if unmanaged.stacks:
        stacks = ", ".join(
            f"{terminal_text.sanitize(stack)} ({count(number, 'object')})" for stack, number in unmanaged.stacks.items()
        )
        output.print_result(f"Managed by other stacks: {stacks}.")


def _check_options(accept: bool, both: bool, unmanaged: bool, chosen: formats.Outputs) -> None:
    if not accept and both:
        raise exit_codes.Stop(exit_codes.USAGE, "error: --both requires --accept")
    if accept and any(form != "text" or file for form, file in chosen):
        raise exit_codes.Stop(exit_codes.USAGE, "error: --accept always prints a diff; omit --format")
    if accept and unmanaged:
        raise exit_codes.Stop(exit_codes.USAGE, "error: --accept always prints a diff; omit --unmanaged")


def _check_names(named: tuple[str, ...], opened: Workspace, drift: DriftResult) -> None:
    """Raises NothingSelected if a name selects no resource, before anything is recorded or written."""
    from reconciler.operations.reporting import ignore_event
    from reconciler.operations.selection import check_selection
    from reconciler.planning.deciding.options import PlanOptions

    check_selection(PlanOptions(targets=named), opened.manifest, drift.snapshot, ignore_event)


def _accept(
    opened: Workspace,
    common: options.Options,
    drift: DriftResult,
    named: tuple[str, ...],
    ignored: tuple[str, ...],
    *,
    both: bool,
) -> int:
    """Writes the manifests and prints the diff. Returns 2 if differences remain that are not known drift."""
    from reconciler.operations import accept_drift
    from reconciler.operations.drift import without_known_drift
    from reconciler.planning.deciding.options import PlanOptions

    selection = PlanOptions(targets=named)
    acceptance = accept_drift.accept(opened, drift.plan, drift.snapshot, selects=selection.selects, both=both)
    accept_drift.write(opened, acceptance)
    output.print_result(accept_drift.diff(acceptance))
    for declined in acceptance.declined:
        output.print_note(f"not accepted: {declined.subject}: {declined.why}")
    if not common.quiet:
        files = f" in {count(len(acceptance.texts), 'file')}" if acceptance.texts else ""
        output.print_note(f"Accepted {count(len(acceptance.accepted), 'value')}{files}.")
    output.print_problems(acceptance.remaining.problems)
    return _exit_of(without_known_drift(opened, acceptance.remaining, ignored), pending=True)


def _require_lasting_store(opened: Workspace) -> None:
    from reconciler.operations.drift import keeps_history
    from reconciler.store.errors import MEMORY

    if not keeps_history(opened):
        raise exit_codes.Stop(
            exit_codes.USAGE,
            f"error: --record requires a persistent store; set `store` to a file, not {MEMORY}",
        )


def _record(opened: Workspace, plan: Plan) -> None:
    from reconciler.cli.terminal import workspaces
    from reconciler.operations.drift import record_drift

    if plan.errors:  # a resource that could not be read would count as one that no longer differs
        output.print_note("note: drift check not recorded, because the plan has errors")
        return
    workspaces.run(record_drift(opened, plan))
