"""Reads the values of `{from_env: NAME}` and `{from_file: PATH}`: environment variables, files of the project."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path as Folder
from typing import Final

from reconciler.model.problem import cut
from reconciler.project import files
from reconciler.project.documents.references import Unresolved

MAX_INCLUDE: Final = 1024 * 1024


class Outside:
    """Environment and files of one run. `included` collects the content of every file that was read, by path."""

    def __init__(self, root: Folder, environ: Mapping[str, str]) -> None:
        self._root = root
        self._environ = environ
        self.included_files: dict[str, bytes] = {}
        self.visible_files: set[str] = set()  # those that are not only read for secrets
        self._texts: dict[str, str] = {}  # decoded once: a file may be included thousands of times

    def has(self, word: str, operand: str, *, is_secret: bool) -> bool:
        """Whether the source exists. An empty environment variable does not count as a secret."""
        if word == "from_env":
            return bool(self._environ.get(operand)) or (not is_secret and operand in self._environ)
        where = files.path_inside(operand)
        return where in self.included_files or os.path.lexists(self._root / where)

    def real_path(self, path: str) -> str:
        """The path, relative to the project's root, to which symlinks lead."""
        return os.path.relpath(os.path.realpath(self._root / path), os.path.realpath(self._root))

    def read(self, word: str, operand: str, *, is_secret: bool) -> str:
        """Returns the text of `{from_env: NAME}` or `{from_file: path}`. Raises Unresolved or Unreadable."""
        if word == "from_env":
            return self._read_environment(operand, is_secret)
        if not is_secret:
            self.visible_files.add(files.path_inside(operand))
        return self._read_file(operand)

    def _read_environment(self, name: str, is_secret: bool) -> str:
        text = self._environ.get(name)
        if text is None:
            raise Unresolved(
                f"the environment variable {cut(name)} is not set",
                f"export {shlex.quote(cut(name))} where reconciler runs",
                code="unset-environment-variable",
                values={"secret": name} if is_secret else None,
            )
        if not text.isascii() and "\udc80" <= max(text) <= "\udfff":
            raise Unresolved(
                f"the environment variable {cut(name)} is not UTF-8",
                "set it to UTF-8 text",
                code="unset-environment-variable",
            )
        if not text and is_secret:
            raise Unresolved(
                f"the environment variable {cut(name)} is empty",
                f"export {shlex.quote(cut(name))} where reconciler runs",
                code="unset-environment-variable",
                values={"secret": name},
            )
        return text

    def _read_file(self, path: str) -> str:
        where = files.path_inside(path)
        if (known := self._texts.get(where)) is not None:
            return known
        content = self.included_files.get(where)
        if content is None:
            content = self.included_files[where] = files.read(self._root, where, MAX_INCLUDE)
        try:
            text = content.decode()
        except UnicodeDecodeError as error:
            raise Unresolved(
                f"{where} is not UTF-8: byte 0x{content[error.start]:02x} at offset {error.start}",
                code="invalid-encoding",
            ) from None
        # Editors and `echo` append a newline that is not part of a one-line secret.
        self._texts[where] = text.rstrip("\r\n") if "\n" not in text.rstrip("\r\n") else text
        return self._texts[where]
