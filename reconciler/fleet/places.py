"""Finds the store of a fleet and the folder of checkouts on a machine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from reconciler.model.fleet import Fleet

DEFAULT = "state/fleet.db"
"""Path of the store below the folder of the fleet file."""


def find_store(fleet: Fleet, folder: Path, environ: Mapping[str, str]) -> str:
    """The path or URL of a fleet's store: of RECONCILER_STORE, of the fleet file, or the default.

    folder  of the fleet file
    """
    chosen = environ.get("RECONCILER_STORE") or fleet.store or DEFAULT
    return chosen if "://" in chosen else str(folder / chosen)


def find_cache(environ: Mapping[str, str]) -> Path:
    """The folder of checkouts, which the processes of a user share: of RECONCILER_CACHE, or the default."""
    return Path(environ.get("RECONCILER_CACHE") or Path.home() / ".cache" / "reconciler")
