"""Where a project's store is, and opening it if there is one."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.project.settings.config import DEFAULT_STORE, Config
from reconciler.store.errors import MEMORY

if TYPE_CHECKING:
    from reconciler.store.store import Store


def store_location(config: Config) -> str:
    """The path or URL of the project's store."""
    location = config.store or DEFAULT_STORE
    return location if "://" in location or location == MEMORY else str(config.root / location)


def ledger_path(config: Config) -> Path | None:
    """The file of sent requests, beside the store's file: processes that share the store share the account's budget."""
    location = store_location(config)
    return None if "://" in location or location == MEMORY else Path(location).with_name("requests.db")


@asynccontextmanager
async def open_existing_store(config: Config) -> AsyncIterator[Store | None]:
    """The store, or None where there is none yet: an operation that only reads creates none."""
    location = store_location(config)
    if location == MEMORY or ("://" not in location and not (_exists(location) or _exists(f"{location}-wal"))):
        yield None
        return
    from reconciler.store.store import open_store  # imports SQLAlchemy, 100 ms

    async with open_store(location) as store:
        yield store


def _exists(path: str) -> bool:
    """True also if the path may not be read: opening it says so, and nothing is planned without its content."""
    try:
        os.stat(path)  # noqa: PTH116 - a path of the store's
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return True
