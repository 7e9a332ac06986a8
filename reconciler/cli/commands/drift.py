"""`reconciler drift`: shows what changed on the platform since the last apply, and records or reports it."""

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
    from reconciler.operations.drift_state import DriftState
    from reconciler.operations.open_project import OpenProject
    from reconciler.operations.reporting import OnEvent
    from reconciler.operations.results import DriftResult


@click.command(
    cls=Command,
    examples="""
        reconciler drift
        reconciler drift 'TLSEdge/*' --pending
        reconciler drift --exclude 'BotUser/*' --format json=.reconciler/drift.json
        reconciler drift --record --format markdown=.reconciler/drift.md
        reconciler drift --notify env:SLACK_WEBHOOK --notify mailto:ops@example.com
        reconciler drift --record --issue
        reconciler drift --health
        reconciler drift --ignore 'TLSEdge/payments.description'
        reconciler drift --fail-on access
        reconciler drift --unmanaged
        reconciler drift --secrets unchanged
    """,
)
@formats.option
@click.option("--pending", is_flag=True, help="Also exit 2 if Git has unapplied changes.")
@click.option(
    "--fail-on",
    type=click.Choice(["access"]),
    help="access: exit 2 only if drift lets in requests that the manifests refuse, or may do so, locks everyone out, "
    "or an access test fails.",
)
@options.ignore_option
@click.option(
    "--record",
    is_flag=True,
    help="Record the drift check for `report`: names, field paths and who gets through, no other values.",
)
@notifying.option
@click.option(
    "--issue",
    is_flag=True,
    help="Keep one issue per stack on GitHub or GitLab: open it for drift, update it, and close it without drift.",
)
@click.option(
    "--health", is_flag=True, help="Also judge whether the objects work; exit 7 if one is degraded and nothing drifted."
)
@click.option("--unmanaged", is_flag=True, help="Also list the objects that no stack manages.")
@click.argument("named", nargs=-1, metavar="[KIND/NAME]...", shell_complete=addresses.complete)
@options.drift_options
def command(
    common: options.Options,
    chosen: formats.Outputs,
    pending: bool,
    fail_on: str | None,
    ignored: tuple[str, ...],
    record: bool,
    notify_targets: tuple[str, ...],
    issue: bool,
    health: bool,
    unmanaged: bool,
    named: tuple[str, ...],
) -> int:
    """Show what changed on the platform since the last apply, and what changed it. Exits 2 if there is drift.

    KIND/NAME limits the check to some resources, like --target. Unapplied changes in Git are listed separately.
    Webhook requests of --notify are signed if RECONCILER_NOTIFY_KEY is set; mail requires RECONCILER_SMTP_URL and
    RECONCILER_MAIL_FROM. --issue reads GITHUB_TOKEN, GITHUB_REPOSITORY and GITHUB_API_URL, or GITLAB_TOKEN,
    CI_API_V4_URL and CI_PROJECT_ID.
    """
    common = replace(common, targets=(*common.targets, *named))
    for flag, is_set in (("--record", record), ("--issue", issue)):
        if is_set and (common.targets or common.excludes):
            raise exit_codes.Stop(exit_codes.USAGE, f"error: {flag} checks the whole stack; select no resources")
    if pending and fail_on is not None:
        raise exit_codes.Stop(exit_codes.USAGE, "error: --pending and --fail-on exclude each other; pass one of them")
    issues = code_hosts.find_issues() if issue else None
    notifying.check(notify_targets)

    from reconciler.cli.terminal import plan_output, workspaces
    from reconciler.cli.terminal.wait_notices import ReadProgress
    from reconciler.operations.drift import is_news, keeps_history, read_state, record_drift
    from reconciler.rendering.plan.phrases import Flavour
    from reconciler.store.errors import MEMORY

    opened = workspaces.open_partial_workspace(common)
    output_files.check_outputs(opened.config, opened.manifest.declarations.values(), *formats.files_of(chosen))
    if record and not keeps_history(opened):
        text = f"error: --record requires a persistent store; set `store` to a file, not {MEMORY}"
        raise exit_codes.Stop(exit_codes.USAGE, text)
    progress = ReadProgress(common.quiet)
    drift = workspaces.run(opened.drift(ignore=ignored, health=health, on_event=progress))
    earlier = workspaces.run(read_state(opened)) if health and notify_targets else None
    if record:
        workspaces.run(record_drift(opened, drift, progress))
    plan_output.show(drift.plan, opened, common, chosen, Flavour.DRIFT, snapshot=drift.snapshot)
    if unmanaged:
        _show_unmanaged(drift.plan, drift.snapshot, opened.manifest)
    workspaces.print_tally(drift.plan, "drift check")
    if issues is not None:
        earlier = _update_issue(issues, opened, drift, earlier, progress)
    # Last, so that the drift is printed even if a notification fails.
    if is_news(opened, drift, earlier):
        notifying.notify(notify_targets, drift.plan, opened.options.now, quiet=common.quiet)
    return workspaces.drift_exit_code(drift.plan, pending=pending, access_only=fail_on is not None)


def _update_issue(
    issues: IssueTracker, opened: OpenProject, drift: DriftResult, earlier: DriftState | None, on_event: OnEvent
) -> DriftState | None:
    """Updates the issue. Returns the state after the last check: `earlier`, or what the issue says of it."""
    from reconciler.engine.ports import Failure
    from reconciler.operations import drift_issue
    from reconciler.operations.drift import build_check
    from reconciler.operations.drift_state import IN_SYNC, find_state, read_line

    issue = drift_issue.find_issue(issues, drift.plan, on_event)
    if isinstance(issue, Failure):
        return earlier
    written = read_line(issue.body) if issue is not None else None
    state = find_state(build_check(opened, drift), written or IN_SYNC)
    drift_issue.update_issue(issues, issue, drift.plan, state, on_event)
    return earlier or written


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
