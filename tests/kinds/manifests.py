"""The documents of the kinds' pages, as values a spec can be made of."""

from __future__ import annotations

from typing import Any

from ruamel.yaml import YAML

from reconciler.model.address import Address
from reconciler.model.kind import Kind
from reconciler.model.value import Ref, Template, Value
from reconciler.rendering.reference import kind_page

ELSEWHERE = Ref(Address("BotUser", "elsewhere"))


def document(kind: Kind) -> dict[str, Any]:
    """As it is written."""
    found = YAML(typ="safe", pure=True).load(kind_page.example(kind))
    assert isinstance(found, dict)
    return found


def spec(kind: Kind) -> dict[str, Value]:
    """With each value that stands elsewhere as a reference."""
    found = _deferred(document(kind)["spec"])
    assert isinstance(found, dict)
    return found


def _deferred(value: Any) -> Value:
    match value:
        case {"ref": str(target)} if len(value) == 1:
            return Ref(Address.parse(target))
        case {"from_env": _} | {"from_file": _} if len(value) == 1:
            return Template((ELSEWHERE,))
        case dict():
            return {key: _deferred(item) for key, item in value.items()}
        case list():
            return [_deferred(item) for item in value]
        case str() if "${{" in value:
            return Template((ELSEWHERE,))
    return value
