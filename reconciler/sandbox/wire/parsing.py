"""Reads what strangers wrote: JSON and YAML, however deep it is, and values that must have a form.

Knows nothing of what they are for. ValueError says what is wrong, in words fit for whoever wrote it.
"""

from __future__ import annotations

import json
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

_DEEPEST = 100
_MOST_BY_ALIAS = 100_000  # values: merged or written out, a few lines would become more than any memory holds
Form = TypeVar("Form", bound=BaseModel)
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
# A loader trips over tags that do not fit their values in ways of its own: `!!bool maybe`, `!!timestamp soon`.
_TRIPPED = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)


def document(text: str) -> Any:
    """What the text spells. ValueError for what is neither JSON nor YAML."""
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
    """Loading goes as deep as the text, in C, and copies what is merged by alias: so that is counted beforehand."""
    sizes: dict[str | None, int] = {}
    inner, anchors = [0], list[str | None]()  # of what is open: how many values are in it, and its own name
    by_alias = 0
    for event in yaml.parse(text, Loader=_Loader):
        match event:
            case yaml.AliasEvent():
                by_alias += sizes.get(event.anchor, 0)
                inner[-1] += sizes.get(event.anchor, 0)
                if by_alias > _MOST_BY_ALIAS:
                    raise _Excess(f"aliases in it stand for more than {_MOST_BY_ALIAS:,} values")
            case yaml.ScalarEvent():
                inner[-1] += 1
                sizes[event.anchor] = 1
            case yaml.CollectionStartEvent():
                inner.append(1)
                anchors.append(event.anchor)
                if len(anchors) > _DEEPEST:
                    raise _Excess(f"it is nested deeper than {_DEEPEST} levels")
            case yaml.CollectionEndEvent():
                size = inner.pop()
                inner[-1] += size
                sizes[anchors.pop()] = size


def validate(form: type[Form], value: Any) -> Form:
    """The value in this form."""
    if not isinstance(value, dict):
        raise ValueError("an object is wanted")
    try:
        return form.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ValueError(f"{where}: {first['msg'][:1].lower()}{first['msg'][1:]}") from error
