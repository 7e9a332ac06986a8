"""`Address`: the name of a declared resource, `Kind/name`."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple, Self

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")  # 100: leaves room for the owner record within 4096 bytes
_KIND = re.compile(r"[A-Z][A-Za-z0-9]*")


class Address(NamedTuple):
    """The name of a resource, `Kind/name`, unique within a stack. A tuple, because planning sorts and looks up many."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parses a text such as `TLSEdge/payments`. Raises ValueError, with what is wrong, for any other text."""
        word, slash, name = text.partition("/")
        if not slash:
            raise ValueError(f"{text!r} is not an address: write Kind/name")
        kind = _kind(word)
        if kind is None:
            raise ValueError(f"{word!r} is not the name of a kind: kinds begin with a capital letter")
        if not NAME.fullmatch(name):
            raise ValueError(
                f"{name!r} is not a valid name: up to 100 letters, digits, '.', "
                "'_' and '-', beginning with a letter or digit"
            )
        return cls(kind, name)


@lru_cache(maxsize=256)
def _kind(word: str) -> str | None:
    """The name of a kind, or None if it is invalid. Cached, so that all addresses share one string for each kind."""
    return word if _KIND.fullmatch(word) else None
