"""Durations in YAML: a number and a unit, as in `90d` or `24h`."""

from __future__ import annotations

import re
from typing import Final

EXAMPLE: Final = "write a duration, as in 90d or 24h"
_DURATION: Final = re.compile(r"[0-9]{1,6}[smhdw]")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}


def check_duration(text: str) -> str | None:
    """Checks a duration. Returns `problem; remedy` or None."""
    return None if _DURATION.fullmatch(text) else f"{text!r} is not a duration; {EXAMPLE}"


def to_seconds(duration: str) -> int:
    """The seconds of a valid duration."""
    return int(duration[:-1]) * _SECONDS[duration[-1]]
