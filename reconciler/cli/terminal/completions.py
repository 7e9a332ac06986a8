"""Shell completion of environments, and of bash words that contain `:` or `=`."""

from __future__ import annotations

import os
from typing import ClassVar

import click
from click.shell_completion import BashComplete, CompletionItem, split_arg_string

from reconciler.cli.terminal import addresses


def complete_environment(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Completions of the project's environments."""
    folder = addresses.project_of(context) / "environments"
    names = sorted(path.stem for path in folder.glob("*.yaml") if not path.name.startswith("."))
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


class BashCompletion(BashComplete):
    """Completion for bash, which splits words at `:` and `=`: reads the whole line, and completes its last part."""

    source_template: ClassVar[str] = BashComplete.source_template.replace(
        'COMP_WORDS="${COMP_WORDS[*]}"',
        'COMP_LINE="${COMP_LINE:0:$COMP_POINT}" COMP_WORDBREAKS="$COMP_WORDBREAKS" COMP_WORDS="${COMP_WORDS[*]}"',
    )
    _skipped = ""  # the beginning of the incomplete word that bash does not replace

    def get_completion_args(self) -> tuple[list[str], str]:
        line = os.environ.get("COMP_LINE")
        if line is None:
            return super().get_completion_args()
        words = split_arg_string(line)
        incomplete = words.pop() if words and not line[-1:].isspace() else ""
        breaks = set(os.environ.get("COMP_WORDBREAKS", "")) & set(":=")
        end = max((incomplete.rfind(mark) for mark in breaks), default=-1) + 1
        self._skipped = incomplete[:end]
        return words[1:], incomplete

    def format_completion(self, item: CompletionItem) -> str:
        return f"{item.type},{item.value.removeprefix(self._skipped)}"
