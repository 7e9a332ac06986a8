"""Puts what a seed file lists into a sandbox before it serves: requests to replay, and objects as they are.

The file is YAML or JSON: a list of `{path, body}` (a POST each) and `{collection, object}` (planted unchecked, for what
no client can create: ephemeral and edge endpoints).
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
    """Plants what a file lists. ValueError says which item cannot be planted, and why; then none is."""
    try:
        items = parsing.document(path.read_text(encoding="utf-8"))
        if not isinstance(items, list):
            raise ValueError("a seed is a list")
        load_items(objects, items)
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from error


def load_items(objects: Objects, items: Sequence[Any]) -> None:
    """As `plant`, with the items themselves."""
    router = Router(operations(objects.kinds))
    with objects.database.transaction():
        for number, item in enumerate(items, 1):
            try:
                _load_item(objects, router, item)
            except (Refusal, ValueError) as error:
                raise ValueError(f"item {number}: {error}") from error


def _load_item(objects: Objects, router: Router, item: Any) -> None:
    if isinstance(item, dict) and "collection" in item:
        planted = parsing.validate(RawObject, item)
        objects.insert_raw(planted.collection, planted.object)
        return
    posted = parsing.validate(CreateRequest, item)
    found = router.match(posted.path)
    if found is None or "POST" not in found.by_method:
        raise ValueError(f"nothing can be created at {posted.path}")
    objects.answer(found.by_method["POST"], found.values, posted.body, objects.view(""))
