"""Faster imports of libraries for the command line. Changes global state, which a library must not do."""

# The base classes of importlib.abc are left out: they load tempfile, random and more, 4 ms that `validate` saves.
from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.abc import Loader
    from importlib.machinery import ModuleSpec
    from types import ModuleType


def install() -> None:
    """Makes later imports of httpx, aiohttp and pydantic load only what the command line uses. Idempotent."""
    # httpx imports its command line, with rich and pygments, which takes half of its import time.
    sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]  # None makes its import fail
    if _CONNECTOR not in sys.modules and not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


_CONNECTOR = "aiohttp.connector"
_PLUGINS = "pydantic.plugin._loader"


class _Finder:
    """Finds `aiohttp.connector`, which loads the machine's certificates on import for SSL contexts not used here, and
    in place of pydantic's search for plugins, which reads the metadata of every installed package, that of none."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == _PLUGINS:
            from importlib.machinery import ModuleSpec

            return ModuleSpec(fullname, _NoPlugins())  # type: ignore[arg-type]
        if fullname != _CONNECTOR:
            return None
        from importlib.util import find_spec

        sys.meta_path.remove(self)
        spec = find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)  # type: ignore[assignment]
        return spec


class _NoPlugins:
    def create_module(self, spec: ModuleSpec) -> None:
        """The default."""

    def exec_module(self, module: ModuleType) -> None:
        module.get_plugins = tuple  # type: ignore[attr-defined]


class _Loader:
    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        with _without_certificates():
            self._loader.exec_module(module)


@contextmanager
def _without_certificates() -> Iterator[None]:
    """Creates SSL contexts inside the block without loading the machine's certificates."""
    import ssl

    ssl.SSLContext.set_default_verify_paths = lambda self: None  # type: ignore[method-assign]
    try:
        yield
    finally:
        del ssl.SSLContext.set_default_verify_paths  # uncovers the method of the base class
