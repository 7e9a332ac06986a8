"""Responses as the public platform shapes them, with invented values: read without a loss.

Each file has a response, what a manifest would declare for it, and the paths of what it hides from everybody.
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


def test_there_is_one_of_every_kind() -> None:
    assert {capture(file)["kind"] for file in CAPTURES} == {kind.name for kind in kinds.every()}


@each_capture
def test_a_manifest_declares_all_that_the_response_shows(file: Path) -> None:
    spec, hidden = describe(kinds.get(capture(file)["kind"]), live(file), lambda kind, id: None)
    assert (plain(spec), hidden) == (capture(file)["declares"], capture(file)["hidden"])


@each_capture
def test_what_is_declared_for_it_is_no_change(file: Path) -> None:
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
            return {key: plain(each) for key, each in value.items()}
        case list():
            return [plain(each) for each in value]
    return value
