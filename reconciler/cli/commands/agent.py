"""`reconciler agent config`: the configuration file of an agent, rendered from manifests."""

from __future__ import annotations

from pathlib import Path

import click

from reconciler.cli.terminal import exit_codes, options, output
from reconciler.cli.terminal.group import Command, Group


@click.group(
    cls=Group,
    name="agent",
    invoke_without_command=True,
    examples="""
        reconciler agent config berlin --out secrets/agent.yml
    """,
)
@click.pass_context
def command(context: click.Context) -> int:
    """Write the configuration file of an agent."""
    if context.invoked_subcommand is not None:
        return exit_codes.DONE
    output.print_result(context.get_help())
    return exit_codes.USAGE


@command.command(
    "config",
    cls=Command,
    examples="""
        reconciler agent config berlin
        reconciler agent config base berlin --out secrets/agent.yml
    """,
)
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option(
    "--out",
    metavar="FILE",
    type=options.OutputPath(
        "name a file, or omit --out to print the configuration without the token", path_type=Path, dir_okay=False
    ),
    help="File to write, including the token. [default: standard output, without the token]",
)
@options.project_options
def config(common: options.Options, names: tuple[str, ...], out: Path | None) -> int:
    """Print or write an agent's configuration file.

    Merges the AgentConfig manifests of the given names. The token is only written with --out, to a file that only you
    can read; keep that file out of Git. Reads the regional domains of agent ingresses from the platform, and changes
    nothing there.
    """
    from reconciler.cli.terminal import workspaces
    from reconciler.cli.terminal.wait_notices import ReadProgress
    from reconciler.operations.authoring import agent_config

    source, progress = workspaces.source_of(common), ReadProgress(common.quiet)
    if out is None:
        rendering = agent_config.render_agent_config(source, names, with_token=False, on_event=progress)
        output.print_result(workspaces.run(rendering))
        return exit_codes.DONE
    workspaces.run(agent_config.write_agent_config(source, names, out, on_event=progress))
    if not common.quiet:
        output.print_note(f"Wrote {out}.")
    return exit_codes.DONE
