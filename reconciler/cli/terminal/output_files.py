"""Checks the files that a command writes, before it writes any: each is another file, and none is of the project."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from reconciler.model.manifest import Declaration
    from reconciler.project.settings.config import Config


def check_distinct(*files: Path | str | None) -> None:
    """Raises UsageError if two of the files that a command names are the same. Devices and pipes may be repeated."""
    seen: dict[str, Path] = {}
    for file in _regular(files):
        first = seen.setdefault(os.path.realpath(file), file)
        if first is not file:
            what = f"{file} is named twice" if first == file else f"{first} and {file} are the same file"
            raise click.UsageError(f"{what}; name a different file for each")


def check_outputs(config: Config, declarations: Iterable[Declaration], *files: Path | str | None) -> None:
    """Raises UnusableOutput if a file belongs to the project, or a delivery writes it."""
    for file in _regular(files):
        from reconciler.operations.output_files import check_output

        check_output(file, config, declarations, "write to another file")


def _regular(files: Iterable[Path | str | None]) -> list[Path]:
    """The files without those that are not named, and without devices and pipes."""
    named = [Path(file) for file in files if file]
    if not named:
        return []
    from reconciler.project import atomic_write

    return [file for file in named if not atomic_write.describe_non_file(file)]
