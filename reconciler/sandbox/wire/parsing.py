"""Parses untrusted JSON and YAML with limits on depth and size, and validates values against pydantic models.

Raises ValueError with a message for the author of the input.
"""

from __future__ import annotations

import json
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

_DEEPEST = 100
_MOST_BY_ALIAS = 100_000  # values; expanded aliases of a few lines could otherwise exhaust the memory
Form = TypeVar("Form", bound=BaseModel)
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
# Exceptions of the loader for tags that do not fit their values, such as `!!bool maybe`.
_TRIPPED = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)


def document(text: str) -> Any:
    """The value of a JSON or YAML text. Raises ValueError if it is neither."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        _measure(text)
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader
    except _Excess:
        raise
    except yaml.MarkedYAMLError as error:
        at = f" at line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise ValueError(f"it is neither JSON nor YAML{at}") from error
    except (yaml.YAMLError, *_TRIPPED) as error:
        raise ValueError("it is neither JSON nor YAML") from error


class _Excess(ValueError):
    pass


def _measure(text: str) -> None:
    """Checks the depth and the expanded size before loading, because the C loader recurses and expands aliases."""
    sizes: dict[str | None, int] = {}
    inner, anchors = [0], list[str | None]()  # of the open collections: the number of values, and the anchor
    by_alias = 0
    for event in yaml.parse(text, Loader=_Loader):
        match event:
            case yaml.AliasEvent():
                by_alias += sizes.get(event.anchor, 0)
                inner[-1] += sizes.get(event.anchor, 0)
                if by_alias > _MOST_BY_ALIAS:
                    raise _Excess(f"its aliases expand to more than {_MOST_BY_ALIAS:,} values")
            case yaml.ScalarEvent():
                inner[-1] += 1
                sizes[event.anchor] = 1
            case yaml.CollectionStartEvent():
                inner.append(1)
                anchors.append(event.anchor)
                if len(anchors) > _DEEPEST:
                    raise _Excess(f"it has more than {_DEEPEST} levels")
            case yaml.CollectionEndEvent():
                size = inner.pop()
                inner[-1] += size
                sizes[anchors.pop()] = size


def validate(form: type[Form], value: Any) -> Form:
    """The value as an instance of a pydantic model. Raises ValueError with the first error."""
    if not isinstance(value, dict):
        raise ValueError("it must be an object")
    try:
        return form.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ValueError(f"{where}: {first['msg'][:1].lower()}{first['msg'][1:]}") from error
