"""The value of an unquoted scalar in the core schema of YAML 1.2: `no`, `on` and dates are text."""

from __future__ import annotations

import re
from typing import Final

from reconciler.model.numerals import keep_spelling
from reconciler.model.value import Json

_PLAIN: Final[dict[str, Json]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
MAY_BE_PLAIN: Final = frozenset("0123456789+-.~nNtTfF")
_INTEGER: Final = re.compile(r"[-+]?[0-9]+")
_OCTAL: Final = re.compile(r"0o[0-7]+")
_HEXADECIMAL: Final = re.compile(r"0x[0-9a-fA-F]+")
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE: Final = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_BINARY: Final = re.compile(r"[-+]?0b_*[01][01_]*")
_SEPARATED: Final = re.compile(r"[-+]?[0-9.][0-9a-fA-Fox_.+-]*")
_MAX_DIGITS: Final = 300  # no number with more of them is finite


def plain(text: str) -> Json:
    """The value of an unquoted scalar. Raises ValueError for a number that JSON cannot represent.

    A number that Python would write in another way keeps its spelling (`model.numerals`).
    """
    if text in _PLAIN:
        return _PLAIN[text]
    if text[0].isalpha():
        return text
    if _NOT_FINITE.fullmatch(text):
        raise ValueError("a number that JSON cannot represent")
    if _INTEGER.fullmatch(text) or _FLOAT.fullmatch(text):
        if len(text) > _MAX_DIGITS:
            raise ValueError("a number of more than 300 digits")
        if _INTEGER.fullmatch(text):
            return keep_spelling(text, int(text))
        number = float(text)
        if number in (float("inf"), float("-inf")):
            raise ValueError("number too large")
        return keep_spelling(text, number)
    if len(text) <= _MAX_DIGITS and (_OCTAL.fullmatch(text) or _HEXADECIMAL.fullmatch(text)):
        return keep_spelling(text, int(text, 0))
    return text


def plain_lenient(text: str) -> Json:
    """As `plain`, with the numbers that readers of YAML 1.1 know besides: `1_000` and `0b11`."""
    value = plain(text)
    if value is not text or len(text) > _MAX_DIGITS or ("_" not in text and "0b" not in text):
        return value
    digits = text.replace("_", "")
    if _BINARY.fullmatch(text):
        return keep_spelling(text, int(digits, 0))
    return keep_spelling(text, number) if _SEPARATED.fullmatch(text) and (number := plain(digits)) != digits else value
