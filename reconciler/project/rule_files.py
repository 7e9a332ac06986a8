"""The files of a repository that decide what needs approval and where changes apply, as its own settings name them.

Components are among them, since several projects may use one.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Final

from reconciler.model.problem import Rejected
from reconciler.model.value import Json
from reconciler.project import component_files, discovery, files
from reconciler.project.fleets.load import FILE as FLEET
from reconciler.project.settings import approvals, environments
from reconciler.project.settings.one_document import MAX_BYTES, read_map

_POLICIES: Final = "policies"
_COMPONENTS: Final = "components"


def list_rule_files(root: Path) -> list[str]:
    """Paths below the root, sorted; a folder ends with /. Of a file that cannot be read, the defaults count."""
    fleet = _read(root, FLEET)
    folders = {"", *(_join("", text).rstrip("/") for text in _texts(fleet.get("projects"), "path"))}
    found = {FLEET}
    if isinstance(members := fleet.get("members"), str):
        found.add(_join("", members))
    for folder in folders:
        found |= {_join(folder, path) for path in _list_of_project(root, folder)}
        found |= {_join(folder, path, component_files.normalize) for path in _list_components(root, folder)}
    return sorted(path for path in found if path)


def _list_of_project(root: Path, folder: str) -> Iterator[str]:
    yield from (discovery.FILE, approvals.FILE, f"{environments.FOLDER}/", f"{_POLICIES}/", "tests/")
    settings = _read(root, _join(folder, discovery.FILE))
    named = settings.get("policies")
    for path in named if isinstance(named, list) else ():
        if isinstance(path, str):
            yield path if PurePosixPath(path).suffix else f"{path.rstrip('/')}/"
    yield from _find_included({name: value for name, value in settings.items() if name != "platform"})


def _list_components(root: Path, folder: str) -> Iterator[str]:
    named = _read(root, _join(folder, discovery.FILE)).get("components")
    for path in named if isinstance(named, list) else (_COMPONENTS,):
        if isinstance(path, str):
            yield f"{path.rstrip('/')}/"


def _find_included(value: Json) -> Iterator[str]:
    """Yields the files that settings are read from."""
    if isinstance(value, dict):
        if value.keys() == {"from_file"} and isinstance(value["from_file"], str):
            yield value["from_file"]
        for item in value.values():
            yield from _find_included(item)
    elif isinstance(value, list):
        for item in value:
            yield from _find_included(item)


def _texts(items: Json, name: str) -> Iterator[str]:
    for item in items if isinstance(items, list) else ():
        if isinstance(item, dict) and isinstance(item.get(name), str):
            yield item[name]


def _read(root: Path, path: str) -> Mapping[str, Json]:
    try:
        document = read_map(files.read(root, path, MAX_BYTES), path, "")
    except (files.Unreadable, Rejected):
        return {}
    return document.value if document is not None and isinstance(document.value, dict) else {}


def _join(folder: str, path: str, normalize: Callable[[str], str] = files.path_inside) -> str:
    """A path within the root, with the / at its end; empty if it is not one of a file or folder in it."""
    try:
        inside = posixpath.normpath(PurePosixPath(folder, normalize(path)).as_posix())
    except files.Unreadable:
        return ""
    return "" if inside == "." or inside.split("/")[0] == ".." else inside + ("/" if path.endswith("/") else "")
