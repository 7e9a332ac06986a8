"""Command classes for click: help with examples, suggestions for misspelled commands, and lazily imported commands.

The table of commands contains their one-line help, so that `--help` and completion import no command.
"""

from __future__ import annotations

import importlib
import keyword
from collections.abc import Mapping
from typing import Any

import click
from click.shell_completion import CompletionItem

from reconciler.model.suggestions import did_you_mean

COMMON = ("project", "environment", "variables", "no_color", "quiet", "log_format", "trace")
"""Names of the options that most commands have: their help is in that of `reconciler` only."""


class Command(click.Command):
    """A command whose help ends with examples, and names the options of most commands without explaining them."""

    def __init__(self, *args: Any, examples: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.examples = examples

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.BadOptionUsage as wrong:
            if wrong.ctx is None and wrong.message.endswith("requires an argument."):
                raise click.UsageError(self._name_argument(ctx, wrong.option_name), ctx) from None
            raise

    def _name_argument(self, ctx: click.Context, option: str) -> str:
        """The problem of an option without its value: what the value is, and an example if the help has one."""
        param = next((param for param in self.get_params(ctx) if option in param.opts), None)
        value = param.make_metavar(ctx) if param is not None else "a value"
        lines = (line.strip() for line in self.examples.splitlines())
        example = next((line for line in lines if option in line.replace("=", " ").split()), "")
        return f"option {option!r} requires {value}" + (f", as in `{example}`" if example else "")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        params = self.get_params(ctx)
        common = [param.opts[0] for param in params if param.name in COMMON]
        own = (param for param in params if isinstance(param, click.Option) and param.name not in COMMON)
        records = [param.get_help_record(ctx) for param in own]  # the usage line has the arguments
        with formatter.section("Options"):
            formatter.write_dl([record for record in records if record is not None])
        if common:
            formatter.write_paragraph()
            formatter.write_text(f"Also {', '.join(common)}: see `reconciler --help`.")

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_examples(self.examples, formatter)


class Group(click.Group):
    """A group whose help ends with examples, and which suggests a name for an unknown command."""

    def __init__(self, *args: Any, examples: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.examples = examples

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_examples(self.examples, formatter)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if not name.startswith("-") and name not in (commands := self.list_commands(ctx)):
            hint = did_you_mean(name, commands) or f"`{ctx.command_path} --help` lists all commands"
            raise click.UsageError(f"unknown command {name!r}; {hint}", ctx)
        return super().resolve_command(ctx, args)


class LazyGroup(Group):
    """A group that imports a command when it is invoked: `plan` is `reconciler.cli.commands.plan.command`.

    groups   the one-line help of each command by name, by the title of its group
    package  the package of their modules
    """

    def __init__(
        self,
        *args: Any,
        groups: Mapping[str, Mapping[str, str]],
        package: str = "reconciler.cli.commands",
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.groups = groups
        self.table = {name: line for group in groups.values() for name, line in group.items()}
        self.package = package

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.table:
            return None
        module = f"{cmd_name}_" if keyword.iskeyword(cmd_name) else cmd_name
        command: click.Command = importlib.import_module(f"{self.package}.{module}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, self.table))  # the same in each group
        for title, group in self.groups.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), line) for name, line in group.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        items = [CompletionItem(name, help=line) for name, line in self.table.items() if name.startswith(incomplete)]
        return items + click.Command.shell_complete(self, ctx, incomplete)


def write_examples(examples: str, formatter: click.HelpFormatter) -> None:
    lines = [line.strip() for line in examples.strip().splitlines()]
    if lines:
        with formatter.section("Examples"):
            for line in lines:
                formatter.write(f"{'':>{formatter.current_indent}}{line}\n")
