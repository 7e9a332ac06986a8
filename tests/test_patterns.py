"""Regular expressions mean the same in every version of Python that is supported."""

from __future__ import annotations

import re
from pathlib import Path

import reconciler

POSSESSIVE_GROUP = re.compile(r"\)(?:[*+?]|\{\d*,?\d*\})\+")


def test_no_group_is_repeated_possessively() -> None:
    """Before 3.11.5, such as in Debian 12, `(?:ab|c)*+` matches wrongly, or never ends (python/cpython#106052).
    `(?>(?:ab|c)*)` means the same everywhere."""
    found = [
        f"{file}:{number}: {line.strip()}"
        for file in Path(reconciler.__file__).parent.rglob("*.py")
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if POSSESSIVE_GROUP.search(line)
    ]
    assert found == []
