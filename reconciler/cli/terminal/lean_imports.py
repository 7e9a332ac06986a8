"""Faster imports of libraries for the command line. Changes global state, which a library must not do."""

# The base classes of importlib.abc are left out: they load tempfile, random and more, 4 ms that `validate` saves.
from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType


def install() -> None:
    """Makes a later import of pydantic load only what the command line uses. Idempotent."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


_PLUGINS = "pydantic.plugin._loader"


class _Finder:
    """Finds, in place of pydantic's search for plugins, which reads the metadata of every installed package, that of
    none."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != _PLUGINS:
            return None
        from importlib.machinery import ModuleSpec

        return ModuleSpec(fullname, _NoPlugins())  # type: ignore[arg-type]


class _NoPlugins:
    def create_module(self, spec: ModuleSpec) -> None:
        """The default."""

    def exec_module(self, module: ModuleType) -> None:
        module.get_plugins = tuple  # type: ignore[attr-defined]
