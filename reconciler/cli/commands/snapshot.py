"""`reconciler snapshot`: saves the account without secret values, to plan where no API key is available.

An example is the pull request of a fork: see `plan --snapshot`.
"""

from __future__ import annotations

from pathlib import Path

import click

from reconciler.cli.terminal import exit_codes, options, output, output_files
from reconciler.cli.terminal.group import Command
from reconciler.rendering.text_tools import count


@click.command(
    cls=Command,
    examples="""
        reconciler snapshot --out .reconciler/snapshot.json
        reconciler snapshot --secrets unchanged --out .reconciler/snapshot.json
        reconciler plan --snapshot .reconciler/snapshot.json --max-age 12h
    """,
)
@click.option(
    "--out",
    metavar="FILE",
    required=True,
    type=options.OutputPath("name a file", path_type=Path),
    help="File to write.",
)
@options.snapshot_options
def command(common: options.Options, out: Path) -> int:
    """Save the account to a file, without secret values, to plan without an API key (`plan --snapshot`).

    The file is signed if RECONCILER_SNAPSHOT_KEY is an Ed25519 private key in PEM format. It contains the configuration
    of all objects: share it only with people who may read the account.
    """
    from reconciler.cli.terminal import workspaces
    from reconciler.cli.terminal.wait_notices import ReadProgress
    from reconciler.operations.authoring import snapshot_files

    source = workspaces.source_of(common)
    key = snapshot_files.read_signing_key(source.runtime.environ)
    opened = workspaces.open_workspace(common)
    output_files.check_outputs(opened.config, opened.manifest.declarations.values(), out)
    writing = snapshot_files.write_snapshot(opened, out, key, on_event=ReadProgress(common.quiet))
    written = workspaces.run(writing)
    for name, why in written.incomplete.items():
        output.print_note(f"warning: the list of {name} is incomplete: {why}")
    if not common.quiet:
        signed = "signed" if written.is_signed else f"not signed: {snapshot_files.KEY} is not set"
        output.print_note(f"Wrote {count(written.objects, 'object')} to {out}, {signed}.")
    return exit_codes.DONE
