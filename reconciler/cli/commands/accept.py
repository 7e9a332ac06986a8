"""`reconciler accept`: writes the platform's values into the manifests, for the fields that changed on the platform."""

from __future__ import annotations

import click

from reconciler.cli.terminal import addresses, options, output
from reconciler.cli.terminal.group import Command
from reconciler.rendering.text_tools import count


@click.command(
    cls=Command,
    examples="""
        reconciler accept
        reconciler accept TLSEdge/payments
        reconciler accept 'TLSEdge/*' --both
        reconciler accept --ignore 'TLSEdge/payments.description'
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
    """
    from reconciler.cli.terminal import workspaces
    from reconciler.cli.terminal.wait_notices import ReadProgress
    from reconciler.operations import accept_drift

    opened = workspaces.open_workspace(common)
    accepting = opened.accept_drift(targets=named, both=both, ignore=ignored, on_event=ReadProgress(common.quiet))
    acceptance = workspaces.run(accepting)
    accept_drift.write(opened, acceptance)
    output.print_result(accept_drift.diff(acceptance))
    for declined in acceptance.declined:
        output.print_note(f"not accepted: {declined.subject}: {declined.why}")
    if not common.quiet:
        files = f" in {count(len(acceptance.texts), 'file')}" if acceptance.texts else ""
        output.print_note(f"Accepted {count(len(acceptance.accepted), 'value')}{files}.")
    output.print_problems(acceptance.remaining.problems)
    return workspaces.drift_exit_code(acceptance.remaining, pending=True)
