"""Locates the store of a project, and opens it if it exists."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.project.settings.config import DEFAULT_STORE, Config
from reconciler.store.errors import MEMORY

if TYPE_CHECKING:
    from reconciler.store.history import History
    from reconciler.store.reading import StoreReader
    from reconciler.store.store import Store


def store_location(config: Config) -> str:
    """The path or URL of the project's store."""
    location = config.store or DEFAULT_STORE
    return location if "://" in location or location == MEMORY else str(config.root / location)


def ledger_path(config: Config) -> Path | None:
    """The file that counts requests, beside the file of the store: processes that share the store share the budget."""
    location = store_location(config)
    return None if "://" in location or location == MEMORY else Path(location).with_name("requests.db")


@asynccontextmanager
async def open_existing_store(config: Config) -> AsyncIterator[StoreReader | None]:
    """The store, or None if it does not exist: an operation that only reads does not create it."""
    location = store_location(config)
    if "://" in location:
        async with open_project_store(config) as store:
            yield store
    elif location == MEMORY or not (_exists(location) or _exists(f"{location}-wal")):
        yield None
    else:
        from reconciler.store.reading import open_reader  # deferred: most plans without a store need no part of it

        async with open_reader(location, config.store_scope) as reader:
            yield reader


@asynccontextmanager
async def open_drift_history(config: Config) -> AsyncIterator[History]:
    """The drift checks in the store, which is created if it does not exist."""
    async with open_existing_store(config) as reader:
        if reader is not None:
            yield reader.drift_history
            return
    async with open_project_store(config) as store:
        yield store.drift_history


def open_project_store(config: Config) -> AbstractAsyncContextManager[Store]:
    """The store, which is created if it does not exist."""
    from reconciler.store.store import open_store  # imports SQLAlchemy, 100 ms

    return open_store(store_location(config), config.store_scope)


def _exists(path: str) -> bool:
    """Whether a path exists. True also if it cannot be read: opening it raises the error, and nothing is planned."""
    try:
        os.stat(path)  # noqa: PTH116 - a path of the store's
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return True
