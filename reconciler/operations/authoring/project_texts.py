"""Reads the texts of a project for an edit, loads the changed ones in every environment, and writes them."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from reconciler.languages.yaml.errors import MAX_BYTES
from reconciler.model.address import Address
from reconciler.model.manifest import Declaration
from reconciler.model.problem import Rejected
from reconciler.operations.errors import InvalidProject, UnusableEdit
from reconciler.operations.opening.source import ProjectSource
from reconciler.operations.validate import make_placeholder
from reconciler.project import atomic_write, component_files, files
from reconciler.project.manifests.load import load_manifests
from reconciler.project.settings import environments
from reconciler.project.settings.config import FILE, Config, load_config
from reconciler.project.settings.variables import NO_VALUE

Declared = Mapping[Address, Declaration]


class EditedProject(Struct, frozen=True):
    """The changed files of a project.

    texts     path → text before and after
    mentions  lines of other files, and comments, that still contain a former address: `FILE:LINE still mentions …`
    notes     what else the reader of the diff should know
    """

    root: Path
    texts: Mapping[str, tuple[str, str]]
    mentions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def read(source: ProjectSource) -> dict[str, str]:
    """The files of a project that declare resources or settings, by path. Raises InvalidProject or UnusableEdit."""
    root = source.path
    try:
        configs = list_configs(root)
        paths = [FILE, *(f"{environments.FOLDER}/{name}.yaml" for name in environments.environment_names(root))]
        for folder in sorted({folder for config in configs for folder in config.manifests}):
            paths += files.find_manifests(root, files.path_inside(folder))
        texts = {path: files.read(root, path, MAX_BYTES).decode() for path in dict.fromkeys(paths)}
        used = component_files.list_all(root, sorted({folder for config in configs for folder in config.components}))
        return texts | {path: component_files.read(root, path).decode() for path in used}
    except Rejected as rejected:
        raise InvalidProject(rejected.problems) from rejected
    except UnicodeDecodeError:
        raise UnusableEdit("a file of the project is not UTF-8 text") from None


def list_configs(root: Path) -> list[Config]:
    """The settings without an environment, and those of each. Raises Rejected."""
    names = (None, *environments.environment_names(root))
    return [load_config(root, {}, name, make_placeholder) for name in names]


def has_manifests(path: str, text: str) -> bool:
    """Whether a file declares resources by their addresses: not the project file, an environment or a component."""
    return is_manifest(path) and not component_files.is_component(text)


def is_manifest(path: str) -> bool:
    return path != FILE and not path.startswith(f"{environments.FOLDER}/")


def load(source: ProjectSource, texts: Mapping[str, str]) -> dict[str | None, Declared]:
    """The declarations of each environment, if the project had these texts. Raises InvalidProject."""
    names = environments.environment_names(source.path)
    above = max(path.split("/").count("..") for path in texts)  # folders above the project that have components
    with tempfile.TemporaryDirectory(prefix="reconciler-edit-") as folder:
        root = Path(folder, *["project"] * above)
        root.mkdir(parents=True, exist_ok=True)
        for path, text in texts.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(text.encode())
        loaded: dict[str | None, Declared] = {}
        for name in (None, *names):
            try:
                config = replace(load_config(root, {}, name, make_placeholder), repository=Path(folder))
                found = load_manifests(config, {}, source.variables, make_placeholder)
            except Rejected as rejected:
                if name is None and names and any(problem.code == NO_VALUE for problem in rejected.problems):
                    continue  # only environments set its variables
                raise InvalidProject(rejected.problems) from rejected
            loaded[name] = {**found.manifest.declarations, **found.rendered}
    return loaded


def write(edited: EditedProject) -> None:
    """Writes the changed files. Raises Unreadable if a path leads through a symbolic link, or OSError."""
    for path in edited.texts:
        files.refuse_symlink(edited.root, path)
    for path, (_, after) in edited.texts.items():
        file = edited.root / path
        atomic_write.write(file, after, file.stat().st_mode & 0o7777)
