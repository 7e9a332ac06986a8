"""Functions and comparisons of the filter language. They raise ValueError for unsupported operands."""

from __future__ import annotations

import operator
import re
from datetime import datetime, timedelta
from typing import Any

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
ORDER = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def size(value: Any) -> int:
    if not isinstance(value, str | list | dict):
        if value is None:
            return 0
        raise ValueError("size() requires a text or a list")
    return len(value)


def timestamp(value: Any) -> datetime:
    if isinstance(value, datetime):
        return value
    try:
        moment = datetime.fromisoformat(value)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{value!r} is not an RFC 3339 timestamp") from error
    if moment.tzinfo is None:
        raise ValueError(f"{value!r} has no time zone")
    return moment


def duration(value: Any) -> timedelta:
    if isinstance(value, timedelta):
        return value
    parts = _DURATION.findall(value) if isinstance(value, str) else []
    if not parts or "".join(map("".join, parts)) != value:
        raise ValueError(f"{value!r} is not a duration such as 90s, 1h30m or 7d")
    try:
        return timedelta(seconds=sum(float(amount) * _SECONDS[unit] for amount, unit in parts))
    except OverflowError as error:
        raise ValueError(f"{value!r} is too long") from error


def compare(sign: str, left: Any, right: Any) -> bool:
    if sign == "in":
        if not isinstance(right, list | dict):
            if right is None:
                return False
            raise ValueError("the right operand of in must be a list")
        return any(compare("==", left, item) for item in right)
    # A text such as created_at that is compared with a timestamp is converted to a timestamp.
    if isinstance(left, datetime) and isinstance(right, str) and right:
        right = timestamp(right)
    elif isinstance(right, datetime) and isinstance(left, str) and left:
        left = timestamp(left)
    if sign in ("==", "!="):
        same = isinstance(left, bool) is isinstance(right, bool) and left == right
        return bool(same) is (sign == "==")
    if left is None or right is None:
        return False
    try:
        if isinstance(left, bool | list | dict) or isinstance(right, bool | list | dict):
            raise TypeError
        return bool(ORDER[sign](left, right))
    except TypeError as error:
        raise ValueError(f"{sign} cannot compare these types") from error
