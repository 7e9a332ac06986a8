"""`reconciler completion SHELL`: the script that teaches a shell our commands and flags."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from reconciler.cli.terminal import exit_codes, output
from reconciler.cli.terminal.group import Command


@click.command(
    cls=Command,
    examples="""
        reconciler completion bash > ~/.local/share/bash-completion/completions/reconciler
        reconciler completion zsh > ~/.zfunc/_reconciler
        reconciler completion fish > ~/.config/fish/completions/reconciler.fish
    """,
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(context: click.Context, shell: str) -> int:
    """Print the completion script of a shell."""
    script = get_completion_class(shell)
    assert script is not None  # click knows the three shells above
    # The bash script is made for bash 4.4; click would start bash to ask, but it is not here that the script runs.
    made = script(context.find_root().command, {}, "reconciler", "_RECONCILER_COMPLETE")
    output.print_result(made.source_template % made.source_vars())
    return exit_codes.DONE
