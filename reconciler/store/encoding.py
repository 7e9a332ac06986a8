"""What all stores have in common: the version of the tables, and the encoding and the seal of rows."""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from json.encoder import encode_basestring_ascii
from types import NoneType
from typing import Final

VERSION = 8  # that of the first release; stores of earlier versions were written before it, and are refused
NAME = "reconciler"  # the schema of the tables on a server

encode_json = json.JSONEncoder(sort_keys=True).encode
"""Encodes JSON for a row, as `json.dumps` would, which builds a new encoder for each call."""


def seal(*content: object) -> str:
    """The digest of a row's content, as JSON."""
    # Not `encode_json(content)`, which takes twice as long: a plan checks a row for each resource.
    parts = [encode_basestring_ascii(value) if value.__class__ is str else _encode(value) for value in content]
    return hashlib.blake2b(f"[{', '.join(parts)}]".encode(), digest_size=8).hexdigest()


def _encode(value: object) -> str:
    return _encode_small(value) if value.__class__ in _SMALL else encode_json(value)


_SMALL: Final = (int, NoneType)  # not bool: True equals 1, and would be encoded alike
_encode_small = lru_cache(maxsize=64)(encode_json)
