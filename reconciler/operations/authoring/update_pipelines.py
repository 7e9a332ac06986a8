"""Brings the pipelines that `init` wrote to the text of this version: shows the difference, and overwrites no edit."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from reconciler.project import atomic_write, files, named_files, pipelines
from reconciler.project.pipeline_updates import State, compare, read_environments


class PipelineUpdate(Struct, frozen=True):
    """One generated file: what was found, and the difference to the text of this version, empty if there is none."""

    path: str
    state: State
    diff: str = ""


def find_host(folder: Path) -> str | None:
    """The code host whose generated pipelines the folder has."""
    return next((host for host in pipelines.HOSTS if any(_read_existing(folder, host))), None)


def update_pipelines(
    folder: Path, host: str, environments: Sequence[str] = (), *, is_check: bool = False
) -> tuple[PipelineUpdate, ...]:
    """Replaces the files that are as an earlier version generated them; keeps all others.

    environments  in the order in which a merge is applied; none: those that the files were generated for
    is_check      write nothing

    Raises Unreadable for a file that leads out of the folder, or is no text.
    """
    existing = dict(_read_existing(folder, host))
    names = tuple(environments) or next(filter(None, map(read_environments, existing.values())), ())
    updates = []
    for path, generated in pipelines.read_pipelines(host, "", names).items():
        text = existing.get(path)
        if text is None:
            updates.append(PipelineUpdate(path, State.MISSING))
            continue
        state, new = compare(host, path, text, generated, names)
        if state in (State.CURRENT, State.EDITED):
            updates.append(PipelineUpdate(path, state))
            continue
        updates.append(PipelineUpdate(path, state, "".join(_diff(path, text, new))))
        if state is State.OUTDATED and not is_check:
            atomic_write.write(folder / path, new, 0o644)
    return tuple(updates)


def _read_existing(folder: Path, host: str) -> Iterator[tuple[str, str]]:
    """The files of the host's pipelines that exist, and their texts."""
    paths: Mapping[str, str] = pipelines.read_pipelines(host)
    for path in paths:
        files.refuse_symlink(folder, path)
        if (folder / path).exists():
            yield path, named_files.read_text(folder / path, named_files.LARGEST_TEXT)


def _diff(path: str, old: str, new: str) -> Iterator[str]:
    for line in difflib.unified_diff(old.splitlines(), new.splitlines(), f"a/{path}", f"b/{path}", lineterm=""):
        yield f"{line}\n"
