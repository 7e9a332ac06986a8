"""The examples on the kinds' pages, as documents and as values of a spec."""

from __future__ import annotations

from typing import Any

from ruamel.yaml import YAML

from reconciler.model.address import Address
from reconciler.model.kind import Kind
from reconciler.model.value import Ref, Template, Value
from reconciler.rendering.reference import kind_page

ELSEWHERE = Ref(Address("BotUser", "elsewhere"))


def document(kind: Kind) -> dict[str, Any]:
    """The example as written."""
    found = YAML(typ="safe", pure=True).load(kind_page.example(kind))
    assert isinstance(found, dict)
    return found


def spec(kind: Kind) -> dict[str, Value]:
    """The spec of the example, with a reference for each value that is defined elsewhere."""
    found = _defer(document(kind)["spec"])
    assert isinstance(found, dict)
    return found


def _defer(value: Any) -> Value:
    match value:
        case {"ref": str(target)} if len(value) == 1:
            return Ref(Address.parse(target))
        case {"from_env": _} | {"from_file": _} if len(value) == 1:
            return Template((ELSEWHERE,))
        case dict():
            return {key: _defer(item) for key, item in value.items()}
        case list():
            return [_defer(item) for item in value]
        case str() if "${{" in value:
            return Template((ELSEWHERE,))
    return value
