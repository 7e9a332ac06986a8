"""Responses in the shape of the public platform, with invented values: imported completely, and then in sync.

Each file has a response, the spec that a manifest would declare for it, and the paths of fields that no response has.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from reconciler import kinds
from reconciler.model.canonical import CanonicalFields, canonical_spec
from reconciler.model.dialect import DIALECTS
from reconciler.model.snapshot import Live
from reconciler.planning.comparing.canonical_fields import agrees, canonical_live
from reconciler.planning.importing.describe import Attachment, describe

CAPTURES = sorted((Path(__file__).parent / "captures").glob("*.json"))
each_capture = pytest.mark.parametrize("file", CAPTURES, ids=[file.stem for file in CAPTURES])


@cache
def capture(file: Path) -> Mapping[str, Any]:
    found = json.loads(file.read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def live(file: Path) -> Live:
    found = capture(file)
    kind = kinds.get(found["kind"])
    profile = DIALECTS[found.get("profile", "specification")]
    body = profile.translate_response(kind.path, found["response"])
    return Live(kind.name, body[kind.key], body, found.get("parent_id"))


def test_every_kind_has_a_captured_response() -> None:
    assert {capture(file)["kind"] for file in CAPTURES} == {kind.name for kind in kinds.every()}


@each_capture
def test_an_imported_manifest_declares_each_field_of_the_response(file: Path) -> None:
    spec, hidden = describe(kinds.get(capture(file)["kind"]), live(file), lambda kind, id: None)
    assert (plain(spec), hidden) == (capture(file)["declares"], capture(file)["hidden"])


@each_capture
def test_an_imported_manifest_is_in_sync_with_the_response(file: Path) -> None:
    kind = kinds.get(capture(file)["kind"])
    want, have = canonical_spec(kind, capture(file)["declares"]), canonical_live(kind, live(file))
    for path in capture(file)["hidden"]:
        want, have = without(want, path), without(have, path)
    assert [name for name in want if name in have and not agrees(kind.by_name[name], want[name], have[name])] == []


def without(form: CanonicalFields, path: str) -> CanonicalFields:
    head, _, rest = path.partition(".")
    if not rest:
        return {name: value for name, value in form.items() if name != head}
    return {**form, head: without(form[head], rest)}


def plain(value: Any) -> Any:
    match value:
        case Attachment(text=text):
            return text
        case dict():
            return {key: plain(item) for key, item in value.items()}
        case list():
            return [plain(item) for item in value]
    return value
