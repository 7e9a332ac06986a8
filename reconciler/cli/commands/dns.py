"""`reconciler dns`: the DNS records that the account needs, as files for the owners of zones; `--verify` asks DNS."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler.cli.terminal import exit_codes, options, output
from reconciler.cli.terminal.group import Command

if TYPE_CHECKING:
    from reconciler.model.dns import DNSRecords
    from reconciler.operations.workspace import Workspace


@click.command(
    cls=Command,
    examples="""
        reconciler dns
        reconciler dns --format octodns --out dns
        reconciler dns --format octodns --out dns --check
        reconciler dns --verify
    """,
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "bind", "octodns"]),
    default="text",
    show_default=True,
    help="Output format.",
)
@click.option(
    "--out",
    metavar="DIR",
    type=options.OutputPath("name a folder", whole=False, path_type=Path, file_okay=False),
    help="Write a file for each zone of reconciler.yaml into this folder. [default: standard output]",
)
@click.option(
    "--check", is_flag=True, help="Write nothing; exit 2 if a file in the folder is out of date or of no zone."
)
@click.option("--verify", is_flag=True, help="Ask the name servers of each zone which records are set.")
@options.name_server_option
@options.account_options
def command(
    common: options.Options, form: str, out: Path | None, check: bool, verify: bool, name_server: str | None
) -> int:
    """Print the DNS records that the account needs: CNAME for hostnames, NS for agent ingresses.

    Changes no DNS: the files are for the administrators of the zones (`dns.zones` in reconciler.yaml), or for octoDNS.
    With --verify, asks the servers to which each zone is delegated, and exits 7 if a record is missing or wrong, 2 if
    nothing can be shown.
    """
    from reconciler.cli.terminal import workspaces

    if check and out is None:
        raise click.UsageError("--check needs --out DIR, the folder with the files")
    if verify and (out is not None or form not in ("text", "json")):
        raise click.UsageError("--verify prints a report as text or JSON; use it without --out and other formats")
    options.check_name_server(name_server, verify=verify)
    opened = workspaces.open_workspace(common)
    if verify:
        return _verify(common, opened, form, name_server)
    return _write(common, opened, form, out, check=check)


def _write(common: options.Options, opened: Workspace, form: str, out: Path | None, *, check: bool) -> int:
    from reconciler.cli.terminal import workspaces
    from reconciler.cli.terminal.wait_notices import ReadProgress
    from reconciler.operations import dns_records
    from reconciler.rendering import dns as rendering
    from reconciler.rendering.text_tools import count

    if (out is not None or form in ("bind", "octodns")) and not opened.config.zones:
        remedy = "name them in reconciler.yaml: `dns: {zones: [example.com]}`"
        raise exit_codes.Stop(
            exit_codes.ERROR, f"error: files are written by zone, and the project names none; {remedy}"
        )
    records = workspaces.run(opened.dns_records(on_event=ReadProgress(common.quiet)))
    if out is not None or form in ("bind", "octodns"):
        _warn(records)
    if out is None:
        output.print_result(rendering.render_records(records, form))
        return exit_codes.DONE
    if check:
        found = dns_records.compare_files(records, form, out)
        output.print_result("".join(f"{file} is out of date\n" for file in found.outdated))
        output.print_result("".join(f"{file} is of no zone of reconciler.yaml\n" for file in found.stale))
        return exit_codes.DONE if found.is_current else exit_codes.CHANGES
    written = dns_records.write_zones(opened, records, form, out)
    if not common.quiet:
        unchanged = len(records.zones) - len(written.outdated)
        output.print_note(f"Wrote {count(len(written.outdated), 'file')} to {out}, {unchanged} unchanged.")
        for file in written.stale:
            output.print_note(f"Removed {file}: it is of no zone of reconciler.yaml.")
    return exit_codes.DONE


def _warn(records: DNSRecords) -> None:
    """Reports the records that no file contains."""
    from reconciler.rendering import dns as rendering

    for line in rendering.list_unzoned(records):
        output.print_note(f"warning: in no zone of reconciler.yaml: {line}")
    for line in rendering.list_misplaced(records):
        output.print_note(f"warning: {line}")


def _verify(common: options.Options, opened: Workspace, form: str, name_server: str | None) -> int:
    from reconciler.cli.terminal import workspaces
    from reconciler.cli.terminal.wait_notices import ReadProgress
    from reconciler.model.health import State
    from reconciler.rendering import dns as rendering

    report = workspaces.run(opened.verify_dns(name_server, on_event=ReadProgress(common.quiet)))
    render = rendering.render_findings_json if form == "json" else rendering.render_findings
    output.print_result(render(report.findings, report.records, report.unread))
    if report.state is State.DEGRADED:
        return exit_codes.DEGRADED
    return exit_codes.DONE if report.state is State.HEALTHY else exit_codes.CHANGES
