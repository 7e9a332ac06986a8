"""`reconciler drift`: what changed on the platform since the last apply. A plan that is shown and dropped."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from reconciler.cli.terminal import exit_codes, formats, notifying, options, output
from reconciler.cli.terminal.group import Command

if TYPE_CHECKING:
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
        reconciler drift --accept TLSEdge/payments
        reconciler drift --ignore 'TLSEdge/payments.description'
        reconciler drift --unmanaged
    """,
)
@formats.option
@click.option("--pending", is_flag=True, help="Exit 2 also if only Git has changes that were not applied yet.")
@click.option(
    "--ignore",
    "ignored",
    metavar="GLOB",
    multiple=True,
    help="Do not report this difference, as 'Kind/name.field'; may be repeated.",
)
@click.option("--record", is_flag=True, help="Keep what was found, for `report`: names and paths, no values.")
@notifying.option
@click.option("--accept", is_flag=True, help="Write the platform's values into the manifests, and print the patch.")
@click.option("--both", is_flag=True, help="Of --accept: also what was changed in Git too, or nobody knows by whom.")
@click.option("--unmanaged", is_flag=True, help="Also list the objects that no stack manages.")
@click.argument("named", nargs=-1, metavar="[KIND/NAME]...")
@options.drift_options
def command(
    common: options.Options,
    chosen: formats.Outputs,
    pending: bool,
    ignored: tuple[str, ...],
    record: bool,
    targets_told: tuple[str, ...],
    accept: bool,
    both: bool,
    unmanaged: bool,
    named: tuple[str, ...],
) -> int:
    """Show what changed on the platform since the last apply; exit 2 if anything did.

    KIND/NAME narrows it, as --target does. Unapplied changes in Git are listed apart. With --accept, what the platform
    changed is written into the manifests, of all resources or of those that are named. A webhook is signed if
    RECONCILER_NOTIFY_KEY is set; mail needs RECONCILER_SMTP_URL and RECONCILER_MAIL_FROM.
    """
    if record and (common.targets or common.excludes or (named and not accept)):
        raise exit_codes.Stop(exit_codes.USAGE, "error: --record covers the whole stack; select no resources")
    _check_options(accept, both, unmanaged, chosen)
    notifying.check(targets_told)

    from reconciler.cli.commands import plan
    from reconciler.cli.terminal import workspaces
    from reconciler.cli.terminal.wait_notices import ReadProgress
    from reconciler.rendering.plan.phrases import Flavour

    if not accept:
        common = replace(common, targets=(*common.targets, *named))
    opened = workspaces.open_workspace(common)
    if record:
        _require_lasting_store(opened)
    drift = workspaces.run(opened.drift(ignore=ignored, on_event=ReadProgress(common.quiet)))
    _check_names(named, opened, drift)
    if record:
        _record(opened, drift.plan)
    if accept:
        code = _accept(opened, common, drift, named, ignored, both=both)
    else:
        plan.show(drift.plan, opened, common, chosen, Flavour.DRIFT)
        if unmanaged:
            _show_unmanaged(drift.plan, drift.snapshot)
        workspaces.print_tally(drift.plan)
        code = _exit_of(drift.plan, pending=pending)
    # Others last: whatever becomes of that, it was shown here.
    notifying.notify(targets_told, drift.plan, opened.options.now, quiet=common.quiet)
    return code


def _exit_of(plan: Plan, *, pending: bool) -> int:
    from reconciler.cli.terminal import workspaces

    if plan.errors:
        return workspaces.exit_code(plan)
    return exit_codes.CHANGES if plan.has_drift or (pending and plan.has_pending) else exit_codes.DONE


def _show_unmanaged(plan: Plan, snapshot: Snapshot) -> None:
    """Each object with the address that `import` would give it; what other stacks manage is counted."""
    from reconciler.operations.drift import list_unmanaged
    from reconciler.rendering import terminal_text

    found = list_unmanaged(plan, snapshot)
    lines = [f"  {address}  {id}" for address, id in found.objects]
    output.print_result("\n".join(["", "Not managed:", *lines]) if lines else "\nEvery object is managed.")
    if found.stacks:
        listed = ", ".join(
            f"{terminal_text.sanitize(stack)} ({output.count(number, 'object')})"
            for stack, number in found.stacks.items()
        )
        output.print_result(f"Managed by other stacks: {listed}.")


def _check_options(accept: bool, both: bool, unmanaged: bool, chosen: formats.Outputs) -> None:
    if not accept and both:
        raise exit_codes.Stop(exit_codes.USAGE, "error: --both is for --accept; give that too")
    if accept and any(form != "text" or file for form, file in chosen):
        raise exit_codes.Stop(exit_codes.USAGE, "error: --accept prints a patch; leave --format out")
    if accept and unmanaged:
        raise exit_codes.Stop(exit_codes.USAGE, "error: --accept prints a patch; leave --unmanaged out")


def _check_names(named: tuple[str, ...], opened: Workspace, drift: DriftResult) -> None:
    """Raises NothingSelected before anything is recorded or written."""
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
    """Writes the manifests and prints the patch. Exit 2 if anything still differs that is not known drift."""
    from reconciler.operations import accept_drift
    from reconciler.operations.drift import without_known_drift
    from reconciler.planning.deciding.options import PlanOptions

    wanted = PlanOptions(targets=named)
    found = accept_drift.accept(opened, drift.plan, drift.snapshot, selects=wanted.selects, both=both)
    accept_drift.write(opened, found)
    output.print_result(accept_drift.diff(found))
    for declined in found.declined:
        output.print_note(f"left out: {declined.subject}: {declined.why}")
    if not common.quiet:
        where = f" in {output.count(len(found.texts), 'file')}" if found.texts else ""
        output.print_note(f"Accepted {output.count(len(found.accepted), 'value')}{where}.")
    output.print_problems(found.remaining.problems)
    return _exit_of(without_known_drift(opened, found.remaining, ignored), pending=True)


def _require_lasting_store(opened: Workspace) -> None:
    from reconciler.operations.drift import keeps_history
    from reconciler.store.errors import MEMORY

    if not keeps_history(opened):
        raise exit_codes.Stop(exit_codes.USAGE, f"error: --record needs a store that lasts, and this one is {MEMORY}")


def _record(opened: Workspace, plan: Plan) -> None:
    from reconciler.cli.terminal import workspaces
    from reconciler.operations.drift import record_drift

    if plan.errors:  # what could not be seen would pass for what no longer differs
        output.print_note("note: not recorded, because of the problems")
        return
    workspaces.run(record_drift(opened, plan))
