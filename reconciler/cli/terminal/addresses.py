"""The addresses of a project's manifests for the shell's completion: read off the text, since a Tab key waits for them.

Not for anything that has to be right: what is no plain `kind:` and `name:` at the margin is passed over.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import click
from click.shell_completion import CompletionItem

_LINE = re.compile(r"^(kind|name):[ \t]*[\"']?([A-Za-z0-9][A-Za-z0-9._-]*)|^(---)", re.MULTILINE)
_MOST = 2000  # files; what a Tab key can wait for
_LARGEST = 2_000_000  # bytes of one


def complete(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """`Kind/name` of what the project declares."""
    root = Path(context.params.get("project") or os.environ.get("RECONCILER_PROJECT") or ".")
    found = {address for address in _read_addresses(root) if address.startswith(incomplete)}
    return [CompletionItem(address) for address in sorted(found)]


def _read_addresses(root: Path) -> Iterator[str]:
    for file in _find_manifests(root):
        try:
            text = file.read_bytes()[:_LARGEST].decode(errors="replace")
        except OSError:
            continue
        kind = name = ""
        for found in _LINE.finditer(text + "\n---"):
            if found[3]:
                if kind and name:
                    yield f"{kind}/{name}"
                kind = name = ""
            elif found[1] == "kind":
                kind = found[2]
            else:
                name = found[2]


def _find_manifests(root: Path) -> Iterator[Path]:
    seen = 0
    for folder, folders, names in os.walk(root):
        folders[:] = [
            folder for folder in folders if not folder.startswith(".") and folder not in ("state", "node_modules")
        ]
        for name in names:
            if name.endswith((".yaml", ".yml")) and not name.startswith("."):
                seen += 1
                if seen > _MOST:
                    return
                yield Path(folder, name)
