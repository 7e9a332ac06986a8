"""The headers of a response, whose names have no case."""

from __future__ import annotations

from collections.abc import Iterable
from typing import overload


class Headers:
    """Headers by name. The values of a repeated name are joined by a comma, as HTTP defines."""

    __slots__ = ("_values",)

    def __init__(self, fields: Iterable[tuple[str, str]] = ()) -> None:
        self._values: dict[str, str] = {}
        for name, value in fields:
            key = name.lower()
            self._values[key] = f"{self._values[key]}, {value}" if key in self._values else value

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._values

    @overload
    def get(self, name: str) -> str | None: ...

    @overload
    def get(self, name: str, default: str) -> str: ...

    def get(self, name: str, default: str | None = None) -> str | None:
        return self._values.get(name.lower(), default)
