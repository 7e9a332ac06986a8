"""Copies files of a commit to a temporary folder: those that the project's own files name, and no others.

The tree of the commit is not trusted. Symlinks are followed within the project of the commit only, and nothing but
regular files is written; what no file of the project can be, such as `..` or `.git`, is refused.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Final

from reconciler.languages.yaml.errors import MAX_BYTES
from reconciler.model.problem import Position, Problem, Rejected, cut
from reconciler.operations.opening.git import GitError
from reconciler.operations.opening.git_objects import FOLDER, MAX_TREE, Entry, Objects, parse_tree
from reconciler.project import component_files, files
from reconciler.project.documents.outside import MAX_INCLUDE
from reconciler.project.settings import approvals, config, environments

MAX_TOTAL: Final = 256 * 1024 * 1024
"""Bytes of all files that are read from a commit: 50,000 resources have 25 MB."""

MAX_TREES: Final = 64 * 1024 * 1024
"""Bytes of all folders that are read from a commit: a million files beside the project's own."""

MAX_FILES: Final = 100_000
"""Files and folders that are read from a commit. A few trees that contain each other can name billions."""

_MAX_LINKS = 40  # symlinks in one path, as Linux has it
_MAX_PATH = 4096  # bytes of the target of a symlink, as Linux has it
_MAX_DEPTH = 64
_MANIFESTS = tuple(suffix.encode() for suffix in files.MANIFESTS)
_GIT = re.compile(rb"\.git|git~[0-9]+", re.IGNORECASE)  # names of the folder `.git`, also where case does not count


class BaseFiles:
    """The files of a project as of a commit, in the folder `root`, which is at its place in the folder `repository`.

    The folder has the settings, their environments and the approvals. `add` copies more files. Errors in files are
    Rejected, those of Git are GitError.
    """

    def __init__(self, root: Path, objects: Objects, commit: str, project: str) -> None:
        """root: an empty folder. project: the project's folder in the repository, such as `infra/tunnels`, or `.`."""
        self.repository = root
        self.root = root / project
        self.root.mkdir(parents=True, exist_ok=True)
        self._project = project
        self._objects = objects
        self._id_size = len(commit) // 2
        self._trees: dict[str, Mapping[bytes, Entry]] = {}
        self._copied: set[str] = set()
        self._size = self._size_of_trees = self._count = 0
        self._top = Entry(FOLDER, f"{commit}^{{tree}}")
        self._home = self._follow(self._top, project)
        if self.has_project:
            self._add_settings()

    @property
    def has_project(self) -> bool:
        """Whether the commit has the project: its folder with a project file, even one that cannot be read."""
        try:
            return self._find(config.FILE) is not None
        except files.Unreadable:
            return True

    def _add_settings(self) -> None:
        """Copies the project file, the approvals and the environments. The reader reports one that is no file."""
        paths = [config.FILE, approvals.FILE]
        with suppress(files.Unreadable):
            folder = self._find(environments.FOLDER)
            names = self._list(folder) if folder is not None and folder.is_folder else ()
            paths += [f"{environments.FOLDER}/{os.fsdecode(name)}" for name in names if name.endswith(b".yaml")]
        for path in paths:
            with suppress(files.Unreadable):
                if (entry := self._find(path)) is not None:
                    self._count_one()
                    self._copy(path, entry, MAX_BYTES)

    def add(self, *paths: str) -> None:
        """Copies files, and of folders the YAML files below. A path that the commit does not have is ignored.

        Raises Rejected if something on the way is no file or folder of the project.
        """
        problems = []
        for path in paths:
            try:
                self._add(path)
            except files.Unreadable as wrong:
                problems.append(Problem(str(wrong), wrong.remedy, position=Position(path, 1, 1), code=wrong.code))
        if problems:
            raise Rejected(problems)

    def add_components(self, *folders: str) -> None:
        """Copies the components in folders of the repository. Raises Rejected if a folder leads out of it.

        One that is no regular file is left out: a use of it is an error, as of one that does not exist.
        """
        for folder in folders:
            try:
                self._add_components(component_files.normalize(folder))
            except files.Unreadable as wrong:
                where = Position(config.FILE, 1, 1)
                raise Rejected([Problem(str(wrong), wrong.remedy, position=where, code=wrong.code)]) from None

    def _add_components(self, folder: str) -> None:
        if os.path.normpath(f"{self._project}/{folder}").split("/")[0] == "..":  # also if a symlink makes it one inside
            raise _is_outside(folder)
        entry = self._follow(self._top, f"{self._project}/{folder}")
        if entry is None or not entry.is_folder:
            return
        for raw, item in sorted(self._list(entry).items()):
            if raw.startswith(b".") or not raw.endswith(_MANIFESTS):
                continue
            self._count_one()
            path = f"{folder}/{_decode(raw)}"
            target = self._follow(self._top, f"{self._project}/{path}") if item.is_symlink else item
            if target is not None and not target.is_folder and not target.is_submodule:
                self._copy(path, target, MAX_BYTES)

    def has(self, path: str) -> bool:
        """Copies a file that another one names, such as `from_file`. Returns whether the commit has it.

        Raises Unreadable if it leads out of the project.
        """
        where = files.path_inside(path)
        entry = self._find(where)
        if entry is not None:
            self._count_one()
            self._copy(where, entry, MAX_INCLUDE)
        return entry is not None

    def _add(self, path: str) -> None:
        where = files.path_inside(path)
        entry = self._find(where)
        if entry is None:
            return
        found = list(self._walk(entry, where)) if entry.is_folder else [(where, entry)]
        for inner, item in found:
            if item.is_folder:
                self._make_folder(inner)
            else:
                self._copy(inner, item, MAX_BYTES)

    def _walk(self, folder: Entry, path: str, depth: int = 0) -> Iterator[tuple[str, Entry]]:
        """Yields a folder, those below it, and the manifests in them, as `files.find_manifests` finds them."""
        if depth > _MAX_DEPTH:
            raise files.Unreadable(f"{cut(path)} is below more than {_MAX_DEPTH} folders", "use fewer folders")
        yield path, folder
        for raw, entry in sorted(self._list(folder).items()):
            if raw.startswith(b".") and b"/" not in raw:
                continue
            self._count_one()
            inner = f"{path}/{_decode(raw)}"
            target = self._find(inner) if entry.is_symlink else entry
            if entry.is_folder:
                yield from self._walk(entry, inner, depth + 1)
            elif target is not None and target.is_folder:
                text = f"{cut(inner)} is a symlink to a folder"
                raise files.Unreadable(text, "list its target under manifests: instead")
            elif raw.endswith(_MANIFESTS):
                if target is None:  # a skipped manifest would count as no longer declared
                    raise files.Unreadable(f"{cut(inner)} is a symlink to no file", "correct or remove the symlink")
                yield inner, target

    def _copy(self, path: str, entry: Entry, limit: int) -> None:
        """Copies one regular file. Of one that is too large, only the size, which the reader refuses."""
        if path in self._copied:
            return
        if entry.is_submodule:
            raise files.Unreadable(f"{cut(path)} is a submodule", "use files of the same repository")
        if entry.is_folder:
            raise files.Unreadable(f"{cut(path)} is not a regular file", "name a file")
        content = self._objects.read(entry.id, "blob", limit)
        self._make_folder(str(PurePosixPath(path).parent))
        with _explain_errors(path), self._target(path).open("wb") as file:
            if content is None:
                file.truncate(limit + 1)
            else:
                self._size += len(content)
                file.write(content)
        self._check_size()
        self._copied.add(path)

    def _make_folder(self, path: str) -> None:
        with _explain_errors(path):
            self._target(path).mkdir(parents=True, exist_ok=True)

    def _target(self, path: str) -> Path:
        """Where a path of the project is written. Raises Unreadable if that is outside the folder of the copy."""
        target = Path(os.path.normpath(self.root / path))
        if not target.is_relative_to(os.path.normpath(self.repository)):
            raise _is_outside(path)
        return target

    def _count_one(self) -> None:
        self._count += 1
        if self._count > MAX_FILES:
            raise GitError(f"the project has more than {MAX_FILES:,} files and folders in this commit")

    def _check_size(self) -> None:
        if self._size > MAX_TOTAL or self._size_of_trees > MAX_TREES:
            raise GitError(f"the project has more than {MAX_TOTAL // 1024 // 1024} MiB in this commit")

    def _find(self, path: str) -> Entry | None:
        """What is at a path of the project, symlinks followed. Raises Unreadable if these leave the project."""
        return None if self._home is None else self._follow(self._home, path)

    def _follow(self, home: Entry, path: str) -> Entry | None:
        above, parts, links = [home], path.split("/")[::-1], 0
        while parts:
            part = parts.pop()
            if part in ("", "."):
                continue
            if part == "..":
                above.pop()
                if not above:
                    raise _leaves(path)
                continue
            entry = self._list(above[-1]).get(_check_part(part)) if above[-1].is_folder else None
            if entry is None:
                return None
            if not entry.is_symlink:
                above.append(entry)
                continue
            links += 1
            if links > _MAX_LINKS:
                raise files.Unreadable(f"{cut(path)} is a circular symlink", "name a file")
            parts += self._read_link(entry, path).split("/")[::-1]
        return above[-1]

    def _read_link(self, entry: Entry, path: str) -> str:
        target = self._objects.read(entry.id, "blob", _MAX_PATH)
        if not target or target.startswith(b"/") or b"\0" in target:
            raise _leaves(path)
        return os.fsdecode(target)

    def _list(self, folder: Entry) -> Mapping[bytes, Entry]:
        found = self._trees.get(folder.id)
        if found is None:
            content = self._objects.read(folder.id, "tree", MAX_TREE)
            if content is None:
                raise GitError(f"a folder of the commit is larger than {MAX_TREE // 1024 // 1024} MiB")
            self._size_of_trees += len(content)
            self._check_size()
            found = self._trees[folder.id] = parse_tree(content, self._id_size)
        return found


def _decode(raw: bytes) -> str:
    name = os.fsdecode(raw)
    _check_part(name)
    return name


def _check_part(part: str) -> bytes:
    """A part of a path as a name in a tree. Raises Unreadable for one that no file of a project can have."""
    name = os.fsencode(part)
    if name in (b"", b".", b"..") or b"/" in name or _GIT.fullmatch(name.rstrip(b". ")):
        raise files.Unreadable(f"{cut(part)} is no name of a file in a commit", "rename the file")
    return name


def _leaves(path: str) -> files.Unreadable:
    return files.Unreadable(
        f"{cut(path)} is a symlink to a place outside the project",
        "copy the file into the project",
        code="path-outside-project",
    )


def _is_outside(path: str) -> files.Unreadable:
    return files.Unreadable(
        f"{cut(path)} is outside the Git repository",
        "write a folder of the repository",
        code="path-outside-project",
    )


@contextmanager
def _explain_errors(path: str) -> Iterator[None]:
    """Turns an error of the file system, for example for a name that is too long, into one about the path."""
    try:
        yield
    except OSError as error:
        raise files.Unreadable(f"{cut(path)}: {str(error.strerror).lower()}", "rename the file") from None
