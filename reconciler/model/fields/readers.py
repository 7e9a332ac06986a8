"""Readers of annotated types: they return a value that is plainly valid. Any other is in doubt, and pydantic judges it.

A reader accepts only what pydantic accepts, and returns the same value. An annotation that checks a value has a method
`reader` beside pydantic's `__get_pydantic_core_schema__`, and both use the same rule.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Collection
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

Reader = Callable[[Any], Any]


class InDoubt(ValueError):
    """A value is not plainly valid: pydantic accepts it, or says what is wrong."""


def reader_of(annotation: Any) -> Reader:
    """The reader of a type. It returns the value, or raises InDoubt, or ValueError as the rules of a type may."""
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _read_annotated(*args)
    if origin is list:
        return _read_list(reader_of(args[0]))
    if origin is dict and args[0] is str:
        return _read_map(reader_of(args[1]))
    if origin is Literal:
        return _read_choice(args)
    if origin in (Union, types.UnionType):
        rest = [arg for arg in args if arg is not types.NoneType]
        return _read_optional(reader_of(rest[0])) if len(rest) == 1 else _doubt
    if hasattr(annotation, "model_read"):  # a form
        return annotation.model_read  # type: ignore[no-any-return]
    return _PLAIN.get(annotation, _doubt)


def _read_annotated(inner: Any, *words: Any) -> Reader:
    read = reader_of(inner)
    for word in words:
        if (add := getattr(word, "reader", None)) is not None:
            read = add(read)
        elif hasattr(word, "__get_pydantic_core_schema__") or type(word).__module__.partition(".")[0] in _JUDGES:
            return _doubt
    return read


_JUDGES: Final = ("pydantic", "pydantic_core", "annotated_types")  # their words check a value in a way of their own


def _doubt(value: Any) -> Any:
    raise InDoubt


def _read_any(value: Any) -> Any:
    return value


def _read_text(value: Any) -> Any:
    if value.__class__ is str:
        if not value.isascii():
            value.encode()  # fails for half a surrogate pair
        return value
    raise InDoubt


def _read_flag(value: Any) -> Any:
    if value is True or value is False:
        return value
    raise InDoubt


def _read_whole(value: Any) -> Any:
    if value.__class__ is int and -_EXACT < value < _EXACT:
        return value
    raise InDoubt


def _read_number(value: Any) -> Any:
    if value.__class__ is float:
        return value
    return float(_read_whole(value))


_EXACT: Final = 2**53  # whole numbers below are exact as floating-point numbers


def _read_list(read: Reader) -> Reader:
    def read_items(value: Any) -> Any:
        if value.__class__ is list:
            return [read(item) for item in value]
        raise InDoubt

    return read_items


def _read_map(read: Reader) -> Reader:
    def read_items(value: Any) -> Any:
        if value.__class__ is dict:
            return {_read_text(key): read(item) for key, item in value.items()}
        raise InDoubt

    return read_items


def _read_choice(choices: Collection[Any]) -> Reader:
    words = frozenset((choice.__class__, choice) for choice in choices)

    def read(value: Any) -> Any:
        if value.__class__ in (str, int) and (value.__class__, value) in words:
            return value
        raise InDoubt

    return read


def _read_optional(read: Reader) -> Reader:
    def read_or_none(value: Any) -> Any:
        return None if value is None else read(value)

    return read_or_none


_PLAIN: Final[dict[Any, Reader]] = {
    str: _read_text,
    bool: _read_flag,
    int: _read_whole,
    float: _read_number,
    Any: _read_any,
}
