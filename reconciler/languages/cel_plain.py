"""Recognizes the most common expressions of traffic policies, which have no flaws.

They are comparisons of a documented variable with a constant, joined by `&&` and `||`. `cel_check` checks all others
with the implementation of CEL, whose import takes 13 MB and a tenth of the start of a small plan.
"""

from __future__ import annotations

import re
from typing import Final

from reconciler.languages import traffic_catalog

_LONGEST: Final = 1_000  # characters; longer ones are rare
_JOINED: Final = re.compile(r"&&|\|\|")
_TEXT: Final = "'[A-Za-z0-9 _./:;,@~*+=-]*'"
_COMPARED: Final = re.compile(
    rf" *([a-z0-9_.]+)(?: *[!=]= *({_TEXT}|[0-9]{{1,9}})|\.(?:startsWith|endsWith|contains)\( *({_TEXT}) *\)) *"
)


def is_plain_condition(text: str) -> bool:
    """Whether an expression is such a condition: one of true or false, without flaws."""
    return len(text) <= _LONGEST and all(map(_is_comparison, _JOINED.split(text)))


def _is_comparison(text: str) -> bool:
    found = _COMPARED.fullmatch(text)
    if found is None:
        return False
    constant = found[2] or found[3]
    kind = "string" if constant.startswith("'") else "int"
    return traffic_catalog.variables().get(found[1]) == kind
