"""Reads existing manifests for an import, and writes the proposed files. Never changes existing content."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping
from pathlib import Path

from reconciler.languages.yaml import reader as yaml
from reconciler.languages.yaml.errors import MAX_BYTES
from reconciler.model.value import canonical
from reconciler.operations.errors import InvalidProject, UnwritableProposal
from reconciler.project import atomic_write, files
from reconciler.project.manifests import write as write_manifests
from reconciler.project.settings.config import Config

_MODE = 0o644  # the files contain no secrets


def default_folder(config: Config) -> str:
    """The project's first folder of manifests."""
    folders = (
        manifest
        for manifest in config.manifests
        if not manifest.endswith(files.MANIFESTS) and not (config.root / manifest).is_file()
    )
    return next(folders, "manifests")


def is_read(config: Config, folder: str) -> bool:
    """Whether the project reads manifests from the folder."""
    named = map(files.path_inside, config.manifests)
    return any(path in (".", folder) or folder.startswith(f"{path}/") for path in named)


def read_manifests(root: Path, folder: str) -> dict[str, str]:
    """The texts of the manifests that an import into the folder may extend, by path.

    Omits unreadable files, for which `write` raises.
    """
    found = {}
    folders = (folder, write_manifests.join_path(folder, write_manifests.SERVICES))
    for path in sorted(
        write_manifests.join_path(where, file.name) for where in folders for file in (root / where).glob("*.yaml")
    ):
        with contextlib.suppress(files.Unreadable, UnicodeDecodeError):
            found[path] = files.read(root, path, MAX_BYTES).decode()
    return found


_REMEDY = "nothing was written; name another folder with --out, or add to these manifests with --append"


def write(
    root: Path, texts: Mapping[str, str], extended: Collection[str] = (), *, remedy: str = _REMEDY
) -> frozenset[str]:
    """Writes files of a proposal; returns the paths of those that changed. Raises UnwritableProposal, before anything
    is written, if a file exists with other content.

    extended  manifests that may exist: their text is the beginning of the new one
    """
    changed = _find_changed_files(root, texts, extended, remedy)
    # Included files come first: an interrupted import leaves no manifest that includes a missing file.
    for path in sorted(changed, key=lambda path: (path.endswith(".yaml"), path)):
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        mode = file.stat().st_mode & 0o7777 if file.exists() else _MODE
        atomic_write.write(file, changed[path], mode)
    return frozenset(changed)


def _find_changed_files(root: Path, texts: Mapping[str, str], extended: Collection[str], remedy: str) -> dict[str, str]:
    changed, others = {}, []
    for path, text in texts.items():
        files.refuse_symlink(root, path)
        if not (root / path).exists():
            changed[path] = text
        elif (present := files.read(root, path, MAX_BYTES)) == text.encode():
            continue
        elif path in extended:
            _check_unchanged(path, present, text)
            changed[path] = text
        else:
            others.append(path)
    if others:
        raise UnwritableProposal(
            *(f"{path} exists with other content" for path in others),
            remedy=remedy,
        )
    return changed


def _check_unchanged(path: str, present: bytes, text: str) -> None:
    """Raises UnwritableProposal if the new text changes existing documents, such as an unterminated last one."""
    before, after = yaml.read(present, path), yaml.read(text.encode(), path)
    if before.problems:
        raise InvalidProject(before.problems)
    old, new = (
        [canonical(document.value) for document in of.documents if document.value is not None] for of in (before, after)
    )
    if new[: len(old)] != old:
        raise UnwritableProposal(
            f"{path} cannot be appended to: its last document would change",
            remedy="nothing was written; end its last line with a line break, or name another folder with --out",
        )
