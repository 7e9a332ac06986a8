"""`reconciler completion SHELL`: the completion script of a shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from reconciler.cli.terminal import exit_codes, output
from reconciler.cli.terminal.completions import BashCompletion
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
    """Print the completion script of a shell, for commands, options, kinds, addresses, environments and approvals."""
    script = BashCompletion if shell == "bash" else get_completion_class(shell)
    assert script is not None  # click knows the three shells above
    # Not `source()`, which starts bash to check its version: the script may run on another machine.
    completion = script(context.find_root().command, {}, "reconciler", "_RECONCILER_COMPLETE")
    output.print_result(completion.source_template % completion.source_vars())
    return exit_codes.DONE
