"""Finds and reads the files of components: below the project's folder, or elsewhere in its Git repository.

A component has the name of its file. Nothing else of a project is read from outside its folder.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Final

from reconciler.languages.yaml.errors import MAX_BYTES
from reconciler.model.problem import cut
from reconciler.model.value import Json
from reconciler.project import files
from reconciler.project.files import MANIFESTS, Unreadable

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_HEAD: Final = re.compile(r"^inputs:", re.MULTILINE)
_MOST: Final = 1_000  # files of a folder whose names are listed
_LONGEST: Final = 4096  # characters of a path


def normalize(path: str) -> str:
    """Normalizes a path relative to the project's root, which may begin with `..`. Raises Unreadable."""
    if ".." not in PurePosixPath(path).parts or PurePosixPath(path).is_absolute():
        return files.path_inside(path)
    if "\0" in path or len(path) > _LONGEST:
        raise Unreadable(f"{cut(path)} is no path", "write a folder of the repository", code="path-outside-project")
    return os.path.normpath(path)


def find_repository(root: Path) -> Path:
    """The folder that may have components: the Git repository around the project, otherwise the project."""
    start = Path(os.path.realpath(root))
    return next((above for above in (start, *start.parents) if os.path.lexists(above / ".git")), start)


def find(root: Path, folders: Iterable[str], name: str) -> list[str]:
    """The paths at which a component of this name is, relative to the root."""
    paths = [f"{normalize(folder)}/{name}{suffix}" for folder in folders for suffix in MANIFESTS]
    return [path for path in dict.fromkeys(paths) if os.path.lexists(root / path)]


def list_all(root: Path, folders: Iterable[str], repository: Path | None = None) -> Iterator[str]:
    """Yields the paths of the components in the folders, sorted within each.

    Skips folders that cannot be listed, or are outside the repository.
    """
    home = os.path.realpath(repository or find_repository(root))
    for folder in folders:
        here = normalize(folder)
        if os.path.commonpath((home, os.path.realpath(root / here))) != home:
            continue
        try:
            with os.scandir(root / here) as entries:
                names = sorted(entry.name for entry in islice(entries, _MOST))
        except OSError:
            continue
        for file in names:
            stem, suffix = os.path.splitext(file)  # noqa: PTH122 - of a name
            if suffix in MANIFESTS and NAME.fullmatch(stem):
                yield f"{here}/{file}"


def read(root: Path, path: str, repository: Path | None = None) -> bytes:
    """Reads a component. Raises Unreadable if it is outside the repository, or no regular file."""
    within = repository or find_repository(root)
    return files.read(root, path, MAX_BYTES, within)


def name_of(path: str) -> str:
    """The name of the component in a file."""
    return PurePosixPath(path).stem


def is_component(text: str) -> bool:
    """Whether a text looks like a component, without parsing it."""
    return _HEAD.search(text) is not None


def is_head(value: Json) -> bool:
    """Whether a document is the first one of a component."""
    return isinstance(value, dict) and "inputs" in value and "kind" not in value and "component" not in value
