"""Finds the project of a directory: the nearest directory above with a project file, within the Git repository.

A fleet file is found in the same way.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Final

from reconciler.project.files import Unreadable

FILE: Final = "reconciler.yaml"


def find_project(directory: Path) -> Path:
    """The nearest directory with a project file, from `directory` upwards, as a path relative to it, such as `..`.

    The search ends at the root of the Git repository, or of the file system. Returns an empty path if there is no
    project file. Raises Unreadable if a directory above has a project file of another user, which could send the API
    key to an address of that user's choice.
    """
    return find_folder(directory, FILE, "--project") or Path()


def find_folder(directory: Path, name: str, option: str) -> Path | None:
    """The nearest directory with a file of this name, as `find_project`; None if there is none.

    option  of the command line, which selects another directory or file
    """
    start = Path(os.path.realpath(directory))
    for folder in (start, *start.parents):
        file = folder / name
        if os.path.lexists(file):
            if folder != start and not _is_trusted(file):
                place = folder if name == FILE else file
                raise Unreadable(
                    f"{file} belongs to another user", f"pass {option} {shlex.quote(str(place))} to use it"
                )
            return Path(os.path.relpath(folder, start))
        if os.path.lexists(folder / ".git"):
            break
    return None


def _is_trusted(file: Path) -> bool:
    """Whether the file belongs to this user or to the administrator."""
    return not hasattr(os, "geteuid") or file.lstat().st_uid in (0, os.geteuid())
