"""Faster imports of httpx and aiohttp for the command line. Changes global state, which a library must not do."""

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
    """Makes later imports of httpx and aiohttp load only what clients of `reconciler.api` use. Idempotent."""
    # httpx imports its command line, with rich and pygments, which takes half of its import time.
    sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]  # None makes its import fail
    if _CONNECTOR not in sys.modules and not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


_CONNECTOR = "aiohttp.connector"


class _Finder:
    """Finds `aiohttp.connector`, which loads the machine's certificates on import for SSL contexts not used here."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != _CONNECTOR:
            return None
        from importlib.util import find_spec

        sys.meta_path.remove(self)
        spec = find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)  # type: ignore[assignment]
        return spec


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
