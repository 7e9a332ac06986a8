"""Reserved places, to which no one-time secret is delivered: Git's data, CI configuration, the project's own files.

Names are compared without case and without characters that file systems ignore, since `.GIT` may be `.git` on the file
system of a checkout.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Final

_GIT: Final = "it belongs to Git's own data"
_PIPELINES: Final = "it is part of the CI configuration"
_ANYWHERE: Final = {".git": _GIT, "git~1": _GIT, ".github": _PIPELINES}  # git~1: the short name of .git on Windows
_BELOW_ROOT: Final = {
    ".gitlab": _PIPELINES,
    ".gitea": _PIPELINES,
    ".forgejo": _PIPELINES,
    ".circleci": _PIPELINES,
    ".buildkite": _PIPELINES,
    ".woodpecker": _PIPELINES,
    ".tekton": _PIPELINES,
    ".azure-pipelines": _PIPELINES,
}
_PIPELINE_FILE: Final = re.compile(
    r"(\.gitlab-ci|azure-pipelines|bitbucket-pipelines|\.travis|\.drone|\.woodpecker|\.?appveyor|\.cirrus|cloudbuild"
    r"|buildspec|\.?semaphore)\.ya?ml|jenkinsfile(\..*)?|\.drone\.(star|jsonnet)|.*\.gitlab-ci\.ya?ml"
)


class Reserved:
    """The reserved places of one project.

    root   the project's folder, as a real path
    own    real paths of the project's own files and folders, and what each is for
    """

    def __init__(self, root: str, own: Mapping[str, str]) -> None:
        self._root = fold(root)
        self._own = {fold(place): what for place, what in own.items()}
        self._nodes = dict(_nodes(own))

    def use(self, place: str) -> str | None:
        """Why a place (a real path) is reserved; None if a secret may be written there."""
        if (own := self.own_use(place)) is not None:
            return own
        folded = fold(place)
        names = PurePosixPath(folded).parts
        below = (
            PurePosixPath(folded).relative_to(self._root).parts if self._root in _with_parents(folded) else names[-1:]
        )
        found = next((_ANYWHERE[name] for name in names if name in _ANYWHERE), None)
        found = found or next((_BELOW_ROOT[name] for name in below if name in _BELOW_ROOT), None)
        return found or (_PIPELINES if _PIPELINE_FILE.fullmatch(names[-1]) else None)

    def own_use(self, place: str) -> str | None:
        """As `use`, for the project's own files and folders alone."""
        own = next((self._own[upward] for upward in _with_parents(fold(place)) if upward in self._own), None)
        return None if own is None else f"it belongs to the project's {own}"

    def use_of(self, found: os.stat_result) -> str | None:
        """As `use`, for an existing folder or file, whatever name it was opened by."""
        own = self._nodes.get((found.st_dev, found.st_ino))
        return None if own is None else f"it belongs to the project's {own}"


def fold(place: str) -> str:
    """Normalizes a path, so that equal results mean the same place, also on file systems that ignore case."""
    return "/".join(map(_fold_name, place.split("/")))


def _fold_name(name: str) -> str:
    legible = "".join(
        character for character in unicodedata.normalize("NFKC", name) if unicodedata.category(character) != "Cf"
    )
    return legible.casefold().rstrip(". ") or name


def _with_parents(place: str) -> list[str]:
    return [place, *map(str, PurePosixPath(place).parents)]


def _nodes(own: Mapping[str, str]) -> list[tuple[tuple[int, int], str]]:
    found = []
    for place, what in own.items():
        try:
            node = os.stat(place)  # noqa: PTH116 - a real path
        except OSError:
            continue
        found.append(((node.st_dev, node.st_ino), what))
    return found
