"""Shell completion of addresses, read from manifests without parsing YAML, to be fast.

Incomplete: finds only `kind:` and `name:` at the start of a line.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

_LINE = re.compile(r"^(kind|name):[ \t]*[\"']?([A-Za-z0-9][A-Za-z0-9._-]*)|^(---)", re.MULTILINE)
_MAX_FILES = 2000
_MAX_SIZE = 2_000_000  # bytes read of a file


def complete(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Completions of `Kind/name` from the project's manifests."""
    return [CompletionItem(address) for address in list_addresses(context) if address.startswith(incomplete)]


def list_addresses(context: click.Context) -> list[str]:
    """The addresses of the project that an incomplete command line selects, sorted."""
    return sorted(set(_read_addresses(project_of(context))))


def project_of(context: click.Context) -> Path:
    """The project directory that an incomplete command line selects."""
    from reconciler.project.discovery import find_project
    from reconciler.project.files import Unreadable

    project = context.params.get("project")
    if project is not None and context.get_parameter_source("project") is not ParameterSource.DEFAULT:
        return Path(project)
    try:
        return find_project(Path())
    except Unreadable:
        return Path()


def _read_addresses(root: Path) -> Iterator[str]:
    from reconciler.project import component_files, named_files
    from reconciler.project.files import Unreadable

    for file in _find_manifests(root):
        try:
            text = named_files.read_bytes(file, _MAX_SIZE).decode(errors="replace")
        except (OSError, Unreadable):
            continue
        if component_files.is_component(text):
            continue  # the name of each use precedes the names in it
        kind = name = ""
        for match in _LINE.finditer(text + "\n---"):
            if match[3]:
                if kind and name:
                    yield f"{kind}/{name}"
                kind = name = ""
            elif match[1] == "kind":
                kind = match[2]
            else:
                name = match[2]


def _find_manifests(root: Path) -> Iterator[Path]:
    count = 0
    for folder, folders, names in os.walk(root):
        folders[:] = [
            folder for folder in folders if not folder.startswith(".") and folder not in ("state", "node_modules")
        ]
        for name in names:
            if name.endswith((".yaml", ".yml")) and not name.startswith("."):
                count += 1
                if count > _MAX_FILES:
                    return
                yield Path(folder, name)
