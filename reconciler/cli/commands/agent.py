"""`reconciler agent`: what agents need of this project, which is their configuration file."""

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
    """Write what agents are started with."""
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
        "name a file, or leave --out out to print it without the token", path_type=Path, dir_okay=False
    ),
    help="Write it, token and all.",
)
@options.project_options
def config(common: options.Options, names: tuple[str, ...], out: Path | None) -> int:
    """Print the configuration file of an agent, merged from manifests of the kind AgentConfig.

    The token is written to a FILE of which nobody else can read a word, and never printed: keep it out of Git, as
    secrets/ is. An agent ingress is asked for its regional domains; nothing is changed.
    """
    from reconciler.cli.terminal import workspaces
    from reconciler.cli.terminal.wait_notices import ReadProgress
    from reconciler.operations.authoring import agent_config

    rendering = agent_config.render_agent_config(
        workspaces.source_of(common), names, with_token=out is not None, on_event=ReadProgress(common.quiet)
    )
    text = workspaces.run(rendering)
    if out is None:
        output.print_result(text)
        return exit_codes.DONE
    agent_config.write_agent_config(out, text)
    if not common.quiet:
        output.print_note(f"Written: {out}")
    return exit_codes.DONE
