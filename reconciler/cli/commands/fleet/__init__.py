"""`reconciler fleet`: runs the same projects in many accounts. One module for each subcommand."""

from __future__ import annotations

import click

from reconciler.cli.terminal import exit_codes, output
from reconciler.cli.terminal.group import LazyGroup

COMMANDS = {
    "validate": "Check the fleet file, its members and its projects, without network access",
    "plan": "Plan all members, and show each shape of changes once",
    "apply": "Apply a reviewed plan to the members, wave by wave",
    "drift": "Show what changed on the platform, in all members",
    "status": "Show the last run and what it waits for",
    "pause": "Start no further task until the fleet is resumed",
    "resume": "End a pause, approve a wave, and continue a run",
    "retry": "Run the members of a run again that did not succeed",
    "report": "Show a run in any format",
}


@click.group(
    cls=LazyGroup,
    groups={"Commands": COMMANDS},
    package="reconciler.cli.commands.fleet",
    name="fleet",
    invoke_without_command=True,
    examples="""
        reconciler fleet validate
        reconciler fleet plan --format html=.reconciler/plan.html
        reconciler fleet apply 20261123-101500-a1b2
        reconciler fleet status
    """,
)
@click.pass_context
def command(context: click.Context) -> int:
    """Plan and apply the same projects in many accounts, from one fleet file."""
    if context.invoked_subcommand is not None:
        return exit_codes.DONE
    output.print_result(context.get_help())
    return exit_codes.USAGE
