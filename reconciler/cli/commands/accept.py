"""`reconciler accept`: writes the platform's values into the manifests, for the fields that changed on the platform."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from reconciler.cli.terminal import addresses, exit_codes, options, output
from reconciler.cli.terminal.group import Command
from reconciler.rendering.text_tools import count

if TYPE_CHECKING:
    from reconciler.operations.accept_drift import Acceptance


@click.command(
    cls=Command,
    examples="""
        reconciler accept
        reconciler accept TLSEdge/payments
        reconciler accept 'TLSEdge/*' --both
        reconciler accept --ignore 'TLSEdge/payments.description'
        reconciler accept 'IPPolicyRule/*' --allow 'widens_access:*=1'
    """,
)
@click.option("--both", is_flag=True, help="Also overwrite fields that changed in Git too, or by an unknown cause.")
@options.ignore_option
@click.argument("named", nargs=-1, metavar="[KIND/NAME]...", shell_complete=addresses.complete)
@options.drift_options
def command(common: options.Options, both: bool, ignored: tuple[str, ...], named: tuple[str, ...]) -> int:
    """Write the platform's values into the manifests, and print the diff. Exits 2 if differences remain.

    Accepts the fields that changed on the platform since the last apply, of all resources or of those that KIND/NAME
    selects. Sends nothing to the platform. Values that cannot be accepted are listed with the reason.

    If the values open an entry point, or widen access in another way, shows who gets through before and after, and
    writes nothing without approval: asks at a terminal, and needs --allow otherwise. Exits 4 if approval is missing.
    """
    from reconciler.cli.applying.questions import is_confirmed
    from reconciler.cli.terminal import workspaces
    from reconciler.cli.terminal.wait_notices import ReadProgress
    from reconciler.operations import accept_drift

    opened = workspaces.open_workspace(common)
    accepting = opened.accept_drift(targets=named, both=both, ignore=ignored, on_event=ReadProgress(common.quiet))
    acceptance = workspaces.run(accepting)
    if acceptance.missing_approvals or not common.quiet:
        _print_access(acceptance)
    is_approved = bool(acceptance.missing_approvals) and sys.stdin.isatty()
    if is_approved and not workspaces.run(is_confirmed("Write what was opened into the manifests?")):
        raise exit_codes.Stop(exit_codes.ERROR, "Cancelled; nothing was written.")
    accept_drift.write(opened, acceptance, is_approved=is_approved)
    output.print_result(accept_drift.diff(acceptance))
    for declined in acceptance.declined:
        output.print_note(f"not accepted: {declined.subject}: {declined.why}")
    if not common.quiet:
        files = f" in {count(len(acceptance.texts), 'file')}" if acceptance.texts else ""
        output.print_note(f"Accepted {count(len(acceptance.accepted), 'value')}{files}.")
    output.print_problems(acceptance.remaining.problems)
    return workspaces.drift_exit_code(acceptance.remaining, pending=True)


def _print_access(acceptance: Acceptance) -> None:
    """Prints who gets through before and after, on standard error: standard output is the patch."""
    from msgspec.structs import replace

    from reconciler.rendering.plan.text import render_acceptance

    view = replace(acceptance.remaining, access=acceptance.access, approvals=acceptance.approvals)
    for line in render_acceptance(view, width=output.width()).splitlines():
        output.print_note(line)
