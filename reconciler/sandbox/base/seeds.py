"""Seed files: requests and objects that are loaded into a sandbox before it serves.

The file is YAML or JSON: a list of `{path, body}` (each sent as a POST) and `{collection, object}` (stored without
validation, for objects that no client can create, such as ephemeral endpoints).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, JsonValue

from reconciler.sandbox.operations.objects import Objects
from reconciler.sandbox.operations.routes import Router, operations
from reconciler.sandbox.wire import parsing
from reconciler.sandbox.wire.refusal import Refusal


class RawObject(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    collection: str
    object: dict[str, JsonValue]


class CreateRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    path: str
    body: dict[str, JsonValue] = {}


def load_seed(objects: Objects, path: Path) -> None:
    """Loads a seed file. Raises ValueError with the first invalid item; nothing is loaded then."""
    try:
        items = parsing.document(path.read_text(encoding="utf-8"))
        if not isinstance(items, list):
            raise ValueError("a seed file must be a list")
        load_items(objects, items)
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from error


def load_items(objects: Objects, items: Sequence[Any]) -> None:
    """Loads the items of a seed file; see `load_seed`."""
    router = Router(operations(objects.kinds))
    with objects.database.transaction():
        for number, item in enumerate(items, 1):
            try:
                _load_item(objects, router, item)
            except (Refusal, ValueError) as error:
                raise ValueError(f"item {number}: {error}") from error


def _load_item(objects: Objects, router: Router, item: Any) -> None:
    if isinstance(item, dict) and "collection" in item:
        raw = parsing.validate(RawObject, item)
        objects.insert_raw(raw.collection, raw.object)
        return
    create = parsing.validate(CreateRequest, item)
    match = router.match(create.path)
    if match is None or "POST" not in match.by_method:
        raise ValueError(f"POST {create.path} is not supported")
    objects.answer(match.by_method["POST"], match.values, create.body, objects.view(""))
